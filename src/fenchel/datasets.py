"""The synthetic problems of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Synthetic:
    """A synthetic problem; ``classes`` lists all k labels, also those without a sample."""

    X: np.ndarray
    y: np.ndarray
    classes: np.ndarray
    lam: float
    radius: float


def make_paper(
    n: int,
    d: int | None = None,
    k: int | None = None,
    *,
    variant: str = "authors",
    rng: np.random.Generator | int | None = None,
) -> Synthetic:
    """The problem of sec:experiments: Gaussian X, labels from a diagonal U0 with noise.

    Parameters
    ----------
    n, d, k : samples, features and classes; d and k default to n.
    variant : "paper" (U0 = I, noise N(0,1)/sqrt(d), R = ||U0||_1, lam = 1e-3, as printed),
        or "authors" (U0 = I/2, noise N(0,1)/sqrt(k), R = ||U0||_1, lam = 1e-3, which is what their
        program runs for Figure 1).
    rng : seed or generator.
    """
    d, k = n if d is None else d, n if k is None else k
    if variant not in ("paper", "authors"):
        raise ValueError(f"variant must be 'paper' or 'authors', found {variant!r}.")
    rng = np.random.default_rng(rng)
    scale, spread = (1.0, np.sqrt(d)) if variant == "paper" else (0.5, np.sqrt(k))
    diagonal = min(d, k)
    X = rng.standard_normal((n, d))
    scores = rng.standard_normal((n, k)) / spread
    scores[:, :diagonal] += scale * X[:, :diagonal]
    return Synthetic(X, scores.argmax(axis=1), np.arange(k), 1e-3, scale * diagonal)
