"""The sublinear solver where there is no time for anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.free_memory import available_memory
from fenchel.kernels.sublinear import DUAL_USED, PRIMAL_USED
from fenchel.kernels.sublinear_state import largest_of_average
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.of_class_means import best_multiple
from fenchel.solvers.sublinear import Run, Sublinear

#: Coefficients of the average that are kept: with so few the objective costs a part of a pass, and
#: 3000 of them gave the same to three digits.
ENTRIES = 300

#: Problems with fewer multiplications in one pass have a point of another solver in a moment.
LARGE = 1 << 28

#: Bytes that the touched classes may take, and copies of X beside them, at most.
ROOM, COPIES = 2 << 30, 2


@dataclass
class State:
    problem: Problem
    run: Run


class Hurried(Solver):
    """The sublinear solver (alg:main) with a certificate as cheap as its iterations.

    For a time in which nothing else has a point at all. The average has an entry in every feature
    of a touched class, and its dual point costs a pass; what is handed out are its largest entries,
    times the best factor, beside the dual point that the run has already.
    """

    name: ClassVar[str] = Sublinear.name
    default_max_iter: ClassVar[int] = Sublinear.default_max_iter

    solver: ClassVar[Sublinear] = Sublinear()

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        return State(problem, self.solver.init(problem, start, rng, horizon))

    def advance(self, state: State, n_steps: int) -> None:
        self.solver.advance(state.run, n_steps)

    def points(self, state: State) -> list[Point]:
        problem, run = state.problem, state.run
        U = largest_of_average(run.lazy, run.scale, ENTRIES, spared=int(problem.intercept))
        return [Point(best_multiple(problem, U), None, "largest of the average")]

    def passes(self, problem: Problem) -> float:
        return self.solver.passes(problem)

    def iterations_per_check(self, problem: Problem) -> int:
        """Iterations that read ten times as much as one objective, all scores of all samples."""
        return max(1, 10 * problem.n * problem.k // (problem.n + problem.d))

    def exhausted(self, state: State) -> bool:
        """Whether the touched classes have taken the room that they may have."""
        problem, count = state.problem, state.run.lazy.count
        return bool(16 * (count[PRIMAL_USED] * problem.d + count[DUAL_USED] * problem.n) > ROOM)

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Whether the problem is so large that it may be needed, and one that it can solve."""
        X = problem.design.X
        large = (X.nnz if problem.design.is_sparse else X.size) * problem.k >= LARGE
        if not large or problem.radius is not None or Sublinear.refuses(problem):
            return False
        free = available_memory()
        if free is not None and free < ROOM + COPIES * _bytes(X):
            return False
        try:
            return problem.radius_bound() > 0.0
        except ValueError:  # no ball is known that holds a solution
            return False


def _bytes(X: Matrix) -> int:
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)
