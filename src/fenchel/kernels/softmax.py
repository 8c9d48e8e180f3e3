"""The softmax loss, its probabilities and its conjugate, row by row."""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.entropy import log_positive
from fenchel.kernels.exp import exp
from fenchel.kernels.primitives import floats, larger
from fenchel.kernels.simplex import SMALLEST


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def softmax_rows(Z: np.ndarray, y: np.ndarray, losses: np.ndarray, V: np.ndarray) -> None:
    """``losses_i = log sum_l exp z_il - z_i,y(i)``, and ``V = exp(Z)`` with rows summing to one."""
    n, k = Z.shape
    for i in range(n):
        top = Z[i, 0]
        for l in range(1, k):
            top = Z[i, l] if Z[i, l] > top else top
        total = 0.0
        for l in range(k):
            V[i, l] = exp(Z[i, l] - top)
            total += V[i, l]
        scale = 1.0 / total
        for l in range(k):
            V[i, l] *= scale
        losses[i] = math.log(total) + (top - Z[i, y[i]])


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def entropy_rows(V: np.ndarray, out: np.ndarray) -> None:
    """``out_i = sum_l v_il log v_il`` for V >= 0."""
    n, k = V.shape
    for i in range(n):
        total = 0.0
        for l in range(k):
            total += V[i, l] * log_positive(larger(V[i, l], SMALLEST))
        out[i] = total


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def log_sum_exp_rows(Z: np.ndarray, classes: np.ndarray, out: np.ndarray) -> None:
    """``out_i = log sum_l exp z_il`` over some classes."""
    size = classes.size
    z, at_zero = floats(size), math.log(size)
    for i in range(Z.shape[0]):
        length = 0.0
        for t in range(size):
            z[t] = Z[i, classes[t]]
            length += abs(z[t])
        if length == 0.0:  # classes without coefficients
            out[i] = at_zero
            continue
        top = z[0]
        for t in range(1, size):
            top = z[t] if z[t] > top else top
        total = 0.0
        for t in range(size):
            total += exp(z[t] - top)
        out[i] = math.log(total) + top
