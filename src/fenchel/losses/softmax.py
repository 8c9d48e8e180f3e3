"""The multiclass logistic loss (eq:loss-logistic)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import wrightomega

from fenchel.kernels.by_class import softmax_by_class
from fenchel.kernels.simplex import SMALLEST, multiply_rows
from fenchel.kernels.softmax import entropy_rows, log_sum_exp_rows, softmax_rows
from fenchel.losses.base import Loss
from fenchel.losses.multiplier import solve_multiplier


class Softmax(Loss):
    """``log sum_l exp z_l - z_y``, with f(v, y) = sum_l v_l log v_l."""

    name: ClassVar[str] = "softmax"
    smooth = True
    twice_differentiable = True
    joins = True

    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.value_and_argmax(Z, y)[0]

    def argmax(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.value_and_argmax(Z, y)[1]

    def value_and_argmax(self, Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = np.empty(Z.shape)
        return self.evaluate(Z, y, V), V

    def evaluate(self, Z: np.ndarray, y: np.ndarray, V: np.ndarray) -> np.ndarray:
        losses = np.empty(len(Z))
        softmax_rows(np.ascontiguousarray(Z, dtype=np.float64), y, losses, V)
        return losses

    def risk_by_class(
        self, Zt: np.ndarray, y: np.ndarray, weights: np.ndarray, Vt: np.ndarray
    ) -> float:
        return softmax_by_class(Zt, y, weights, Vt)

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty(len(V))
        entropy_rows(np.ascontiguousarray(V, dtype=np.float64), out)
        return out

    def curvature(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        return V

    def joint_score(self, Z: np.ndarray, classes: np.ndarray) -> np.ndarray:
        out = np.empty(len(Z))
        log_sum_exp_rows(Z, classes, out)
        return out

    def prox_entropy(self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        # z - log v - (log v - log v0) / eta is constant on the row
        out = np.empty_like(V0)
        multiply_rows(np.maximum(V0, SMALLEST), Z, 1 / (1 + eta), eta / (1 + eta), out)
        return out

    def prox_euclidean(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        # v / eta + log v = (z + v0 / eta - mu), so v / eta is Wright's omega of that - log eta
        def entries(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            omega = wrightomega(T - np.log(eta))
            return eta * omega, eta * omega / (1 + omega)

        return solve_multiplier(entries, Z + V0 / eta)
