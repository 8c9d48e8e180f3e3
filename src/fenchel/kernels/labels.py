"""Dual points on the way to the labels."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.primitives import larger


@kernel()
def toward_labels(V: np.ndarray, y: np.ndarray, s: float, out: np.ndarray) -> None:
    """``out = Y + s (V - Y)``, with no entry below zero by rounding; out may be V itself."""
    for i in range(V.shape[0]):
        for l in range(V.shape[1]):
            out[i, l] = s * V[i, l]
        out[i, y[i]] = larger(out[i, y[i]] + (1.0 - s), 0.0)
