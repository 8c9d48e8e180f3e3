"""The solvers by name."""

from __future__ import annotations

import logging

from fenchel.problem import Problem
from fenchel.solvers.base import Solver
from fenchel.solvers.hurried import Hurried
from fenchel.solvers.hybrid_gradient import HybridGradient
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.stochastic import FullSampling, PartialSampling
from fenchel.solvers.subgradient import Subgradient
from fenchel.solvers.sublinear import Sublinear

logger = logging.getLogger("fenchel")

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        MirrorDescent,
        MirrorProx,
        PartialSampling,
        FullSampling,
        Sublinear,
        PrimalDual,
        HybridGradient,
        ProximalNewton,
        Subgradient,
    )
}


def get_solver(solver: str | Solver, step: str | float | None) -> Solver:
    """Turn a name other than "auto" into a solver; a solver object is returned as it is."""
    if isinstance(solver, Solver):
        if step is not None:
            raise ValueError(
                "step is given twice: set it on the solver object, or name the solver."
            )
        return solver
    if solver not in SOLVERS:
        names = ["auto", *sorted(SOLVERS)]
        raise ValueError(f"solver must be one of {names} or a Solver object, found {solver!r}.")
    return SOLVERS[solver](step=step)  # type: ignore[call-arg]


def choose(problem: Problem, step: str | float | None = None) -> Solver:
    """The solver that "auto" stands for on this problem; the reason is logged and recorded."""
    refused = PrimalDual.refuses(problem)
    if step is not None:
        method: Solver = MirrorProx(step=step)
        method.reason = f"auto: {method.name}, because a step was given"
    elif refused:
        method = MirrorProx()
        method.reason = f"auto: {method.name}, because {refused}"
    else:
        method = PrimalDual()
        method.fallback = Hurried() if Hurried.suits(problem) else None
        method.reason = f"auto: {method.name}, {method.plan(problem)}"
    logger.info(method.reason)
    return method
