"""The solvers by name."""

from __future__ import annotations

from fenchel.solvers.base import Solver
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.stochastic import FullSampling, PartialSampling
from fenchel.solvers.subgradient import Subgradient
from fenchel.solvers.sublinear import Sublinear

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        MirrorDescent,
        MirrorProx,
        PartialSampling,
        FullSampling,
        Sublinear,
        PrimalDual,
        Subgradient,
    )
}

#: What "auto" stands for.
DEFAULT = MirrorProx


def get_solver(solver: str | Solver, step: str | float | None) -> Solver:
    """Turn a name into a solver; a solver object is returned as it is."""
    if isinstance(solver, Solver):
        if step is not None:
            raise ValueError(
                "step is given twice: set it on the solver object, or name the solver."
            )
        return solver
    if solver == "auto":
        return DEFAULT(step=step)
    if solver not in SOLVERS:
        names = ["auto", *sorted(SOLVERS)]
        raise ValueError(f"solver must be one of {names} or a Solver object, found {solver!r}.")
    return SOLVERS[solver](step=step)  # type: ignore[call-arg]
