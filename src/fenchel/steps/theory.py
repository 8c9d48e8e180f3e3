"""The step of the stochastic theorems."""

from __future__ import annotations

import numpy as np

from fenchel.geometry.base import DualGeometry, PrimalGeometry


def stochastic_step(
    lipschitz: float,
    primal: PrimalGeometry,
    dual: DualGeometry,
    variances: tuple[float, float],
    horizon: int,
) -> float:
    """eq:md-stochastic-step, for the average of ``horizon`` iterates.

    ``variances`` are bounds on sigma_U^2 and sigma_V^2, as samplers give them.
    """
    largest = max(*stochastic_constants(lipschitz, primal, dual, variances))
    return float(1.0 / (np.sqrt(2.0 * horizon) * (largest or 1.0)))


def stochastic_bound(
    lipschitz: float,
    primal: PrimalGeometry,
    dual: DualGeometry,
    variances: tuple[float, float],
    horizon: int,
    remainder: float,
) -> float:
    """The expected gap that th:md-partial promises (the first line of eq:md-partial-result)."""
    constants = stochastic_constants(lipschitz, primal, dual, variances)
    return float(2.0 * np.sqrt(2.0 / horizon) * sum(constants) + remainder / horizon)


def stochastic_constants(
    lipschitz: float, primal: PrimalGeometry, dual: DualGeometry, variances: tuple[float, float]
) -> tuple[float, float]:
    """``L sqrt(5 Omega_U Omega_V)`` and ``sqrt(Omega_U sigma_V^2 + Omega_V sigma_U^2)``."""
    omega_U, omega_V = primal.omega_bound, dual.omega_bound
    sigma_U, sigma_V = variances
    return (
        lipschitz * float(np.sqrt(5.0 * omega_U * omega_V)),
        float(np.sqrt(omega_U * sigma_V + omega_V * sigma_U)),
    )
