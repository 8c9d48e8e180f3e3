"""What the solvers of the penalised problem have in common."""

from __future__ import annotations

from fenchel.problem import Problem
from fenchel.solvers.base import Solver


class PenalisedSolver(Solver):
    """A solver without a ball and without a step to choose."""

    def __init__(self, step: str | float | None = None) -> None:
        if step is not None:
            raise ValueError(f"solver={self.name!r} finds its own steps: leave step out.")

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Why the problem cannot be solved by such a solver; empty where it can."""
        if problem.radius is not None:
            return "it solves the penalised problem, and a radius was given"
        if problem.norm.q != 1:
            return "it needs penalty='l1'"
        return ""

    def check_problem(self, problem: Problem) -> None:
        """Raise where the problem is refused."""
        refused = self.refuses(problem)
        if refused:
            raise ValueError(f"solver={self.name!r} cannot be used here: {refused}.")
