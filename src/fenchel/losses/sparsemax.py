"""The sparsemax loss of Martins and Astudillo, as a Fenchel-Young loss (Blondel et al. 2018)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import wrightomega

from fenchel.kernels.simplex import SMALLEST, project_rows
from fenchel.kernels.sparsemax import sparsemax
from fenchel.losses.base import Loss
from fenchel.losses.multiplier import solve_multiplier


class Sparsemax(Loss):
    """f(v, y) = (||v||^2 - 1) / 2: probabilities that can be exactly zero."""

    name: ClassVar[str] = "sparsemax"
    smooth = True

    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.value_and_argmax(Z, y)[0]

    def value_and_argmax(self, Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = np.zeros(Z.shape)
        return self.evaluate(Z, y, V), V

    def evaluate(self, Z: np.ndarray, y: np.ndarray, V: np.ndarray) -> np.ndarray:
        losses = np.empty(y.size)
        sparsemax(np.ascontiguousarray(Z, dtype=np.float64), y, V, losses)
        return losses

    def argmax(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.array(Z, dtype=np.float64)
        project_rows(out, out[:0], out)
        return out

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.5 * (np.einsum("il,il->i", V, V) - 1.0)

    def prox_entropy(self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        # v + log(v) / eta = z + log(v0) / eta - mu, so eta v is Wright's omega of eta times that
        def entries(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            omega = wrightomega(T + np.log(eta))
            return omega / eta, omega / (1 + omega) / eta

        T0 = eta * Z + np.log(np.maximum(V0, SMALLEST))
        return np.maximum(solve_multiplier(entries, T0), SMALLEST)

    def prox_euclidean(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        out = (V0 + eta * Z) / (1 + eta)
        project_rows(out, V0, out)
        return out
