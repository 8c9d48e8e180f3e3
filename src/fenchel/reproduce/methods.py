"""The methods of Figure 1: which solver with which step, how far, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fenchel.reproduce.configurations import Configuration, Setting
from fenchel.solvers.base import Solver
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.stochastic import PartialSampling
from fenchel.solvers.subgradient import Subgradient
from fenchel.solvers.sublinear import Sublinear

#: CPU seconds that a method may take with all its repetitions and certificates, unless the user
#: sets another limit or none: together half an hour for one configuration.
BUDGETS = {
    "default": 150.0,
    "full-smd": 300.0,
    "full-smd-online": 250.0,
    "partial": 100.0,
    "partial-online": 120.0,
    "ssm": 200.0,
    "mirror-prox": 450.0,
    "mirror-prox-online": 150.0,
    "mirror-descent": 80.0,
}

#: The authors ran SSM and Mirror Prox this far.
SSM_LIMIT, MIRROR_PROX_LIMIT = 10**5, 3000


@dataclass(frozen=True)
class Method:
    """One curve of the figure.

    Attributes
    ----------
    name : on the command line and in the files; label : in the picture.
    solver : makes the solver from the instance and the number of iterations.
    step : the step in words.
    iterations : where the curve has points; with ``own_checks``, where it ends at the latest.
    random : repeated with other seeds, or deterministic and run once.
    by_horizon : the step depends on the number of iterations, so that every point of the curve
        is a run of its own; otherwise one run is read at all of them.
    penalised : the solver works without the ball (at the paper's size its optimum lies inside).
    last : the last iterate is reported, and not the average.
    own_checks : the curve has points where the solver lets itself be checked.
    """

    name: str
    label: str
    solver: Callable[[Setting, int], Solver]
    step: str
    iterations: list[int]
    random: bool = True
    by_horizon: bool = False
    penalised: bool = False
    last: bool = False
    own_checks: bool = False


def methods(configuration: Configuration) -> dict[str, Method]:
    """The methods of a configuration by name, the default solver first.

    With the configuration's own steps: Full-SMD, SSM and Mirror Prox, which are in the paper's
    figure, and mirror descent and partial sampling, which are not. With our steps ("online"):
    Full-SMD, partial sampling and Mirror Prox. And the solver that ``solver="auto"`` chooses.
    """
    T = configuration.iterations
    ssm = [t for t in T if t <= SSM_LIMIT]
    prox = sorted({round(10 ** (i / 10)) for i in range(36)})  # as the authors read it
    prox = [t for t in prox if t <= MIRROR_PROX_LIMIT]
    common = [
        Method("default", "default solver", lambda s, t: PrimalDual(), "its own",
               [1000], random=False, penalised=True, own_checks=True),
        Method("full-smd-online", "Full-SMD, our step", lambda s, t: Sublinear(), "online", T),
        Method("partial-online", "partial sampling, our step", lambda s, t: PartialSampling(),
               "online", T),
        Method("mirror-prox-online", "Mirror Prox, our step", lambda s, t: MirrorProx(), "online",
               prox, random=False),
    ]  # fmt: skip
    if configuration.name == "paper":
        own = [
            Method("full-smd", "Full-SMD", lambda s, t: Sublinear("theory"),
                   "eq:md-stochastic-step", T, by_horizon=True),
            Method("partial", "partial sampling", lambda s, t: PartialSampling("theory"),
                   "eq:md-stochastic-step", T, by_horizon=True),
            Method("ssm", "SSM", lambda s, t: Subgradient(_ssm_step(s, t, 2.0)),
                   "||U0||_F / (G sqrt(T)), G^2 = 2 mean ||x||^2", ssm, by_horizon=True),
            Method("mirror-prox", "Mirror Prox", lambda s, t: MirrorProx("theory"),
                   "1 / (2 L sqrt(Omega_U Omega_V))", prox, random=False),
            Method("mirror-descent", "mirror descent", lambda s, t: MirrorDescent("theory"),
                   "th:md-deterministic", T, random=False, by_horizon=True),
        ]  # fmt: skip
    else:
        own = [
            Method("full-smd", "Full-SMD", lambda s, t: Sublinear(s.authors_step(t)),
                   "2 / (sqrt(T) (Lip + sqrt(Theta)))", T, by_horizon=True),
            Method("ssm", "SSM", lambda s, t: Subgradient(_ssm_step(s, t, 1.0)),
                   "||U0||_F sqrt(n) / (sqrt(T) ||X||_F)", ssm, by_horizon=True, penalised=True,
                   last=True),
            Method("mirror-prox", "Mirror Prox", lambda s, t: MirrorProx(1.0 / s.lipschitz),
                   "1 / Lip", prox, random=False),
            Method("mirror-descent", "mirror descent", lambda s, t: MirrorDescent(),
                   "inverse-sqrt, our default: their program has none", T, random=False),
        ]  # fmt: skip
    return {method.name: method for method in common + own}


def _ssm_step(setting: Setting, iterations: int, factor: float) -> float:
    return float(setting.frobenius / np.sqrt(factor * setting.mean_square * iterations))
