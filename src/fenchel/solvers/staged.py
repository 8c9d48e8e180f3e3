"""A solver that another one leads from one problem to the next."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from fenchel.problem import Problem
from fenchel.solvers.base import Solver


class Staged(Solver):
    """One iteration is one of the solver of the stages, which is looked at from time to time.

    The state has the state of that solver as ``inner``, the iterations made as ``t``, the one at
    which it is looked at next as ``look``, and what was decided as ``notes``.

    Parameters
    ----------
    solver : the solver of the stages.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.default_max_iter = solver.default_max_iter  # type: ignore[misc]

    def advance(self, state: Any, n_steps: int) -> None:
        while n_steps > 0:
            steps = min(n_steps, state.look - state.t)
            self.solver.advance(state.inner, steps)
            state.t += steps
            n_steps -= steps
            if state.t == state.look:
                self._look(state)

    @abstractmethod
    def _look(self, state: Any) -> None:
        """Begin another stage where this one has come far enough, and set ``look``."""

    def passes(self, problem: Problem) -> float:
        return self.solver.passes(problem)

    def note(self, state: Any) -> str:
        notes = "; ".join([*state.notes, self.solver.note(state.inner)]).strip("; ")
        state.notes.clear()
        return notes
