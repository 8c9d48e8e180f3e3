"""Which solver takes which problem, so that one parametrised test serves all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import fenchel
from fenchel.losses import Hinge, Loss
from fenchel.problem import Problem
from fenchel.solvers.registry import SOLVERS
from instances import Instance

#: Solvers that take only some problems; they must refuse the others with a clear error.
ONLY_LOSSES = {"sublinear": {"hinge"}}
PENALISED = {"primal-dual", "hybrid-gradient", "proximal-newton"}
NO_GROUP_PENALTY = {*PENALISED, "sublinear", "full-sampling"}
NO_RADIUS = PENALISED - {"primal-dual"}
NO_COST = {"sublinear"}
NO_SIGNS = {"sublinear"}
NO_FACTORS_IN_A_BALL = {"sublinear"}

SOLVER_NAMES = sorted(SOLVERS)


def refusal(solver: str, loss: str, instance: Instance) -> str | None:
    """The word that the solver's refusal must name; None where it takes the problem."""
    costly = instance.cost is not None and solver in NO_COST
    if costly or loss not in ONLY_LOSSES.get(solver, {loss}):
        return "loss"
    if instance.positive and solver in NO_SIGNS:
        return "positive"
    if instance.penalty == "group" and solver in NO_GROUP_PENALTY:
        return "penalty"
    if instance.radius is not None and solver in NO_RADIUS:
        return "radius"
    confined = instance.radius is not None or instance.lam == 0
    if confined and instance.penalty_factor is not None and solver in NO_FACTORS_IN_A_BALL:
        return "penalty_factor"
    return None


def make_loss(instance: Instance, loss: str) -> str | Loss:
    """The loss argument of an instance."""
    return loss if instance.cost is None else Hinge(instance.cost)


def make_problem(instance: Instance, loss: str = "hinge", **changes: Any) -> Problem:
    """The instance as the package's own problem."""
    arguments = instance.arguments() | changes
    return Problem.from_data(instance.X, instance.y, loss=make_loss(instance, loss), **arguments)


def solve(instance: Instance, loss: str, solver: str, **options: Any) -> fenchel.Result:
    """``fenchel.solve`` on an instance, with a fixed seed."""
    options = instance.arguments() | {"rng": 0} | options
    return fenchel.solve(
        instance.X, instance.y, loss=make_loss(instance, loss), solver=solver, **options
    )


def same_bits(a: Any, b: Any) -> bool:
    """Equal to the last bit, dense or sparse."""
    a, b = (m.toarray() if hasattr(m, "toarray") else np.asarray(m) for m in (a, b))
    return a.shape == b.shape and a.tobytes() == b.tobytes()
