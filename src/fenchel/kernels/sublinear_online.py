"""What the online step needs of the lazy state: moments of the draws, and weights in the sums."""

from __future__ import annotations

import numpy as np

from fenchel.kernels import sublinear as lazy
from fenchel.kernels.sublinear import ALPHA, DUAL_USED, PRIMAL_USED, TILE, TOTAL, State
from fenchel.kernels.sublinear_design import DenseData, SparseData
from fenchel.kernels.sublinear_draws import draw_class_of_row, draw_entry, draw_row
from fenchel.steps.online import DRAWS, Moments


def measure(data: DenseData | SparseData, s: State, radius: float) -> Moments:
    """The moments of one-column estimates at the iterates, from a few draws of the run's own."""
    fields = s.rows.reshape(-1, lazy.FIELDS, TILE).swapaxes(0, 1).reshape(lazy.FIELDS, -1)
    beta, true = fields[lazy.BETA // TILE], fields[lazy.TRUE // TILE]
    weights = fields[lazy.W_TAU // TILE, : s.y.size] / np.where(s.tau > 0.0, s.tau, 1.0)
    sums = np.zeros(4)
    for _ in range(DRAWS):
        j, tau_rho = draw_row(s)
        l, _ = draw_class_of_row(s, j)
        if tau_rho > 0.0:
            features, x = _row(data, j)
            slot = s.slot[l]
            E = s.primal[slot, _places(features)] if slot >= 0 else np.ones(features.size)
            eta = x * (tau_rho / s.tau[j])
            sums[0] += tau_rho / radius
            sums[2] += s.scalar[ALPHA] * float((E + 1.0 / E) @ eta**2) / radius
        i, l, _, sigma_pi = draw_entry(s)
        if s.sigma[i] > 0.0:
            samples, x = _column(data, i)
            place = s.place[l]
            stored = place < s.count[DUAL_USED]
            W = s.dual[place, _places(samples)] if stored else s.free[samples]
            V = np.where(s.y[samples] == l, true[samples], beta[samples] * W)
            xi = x * (sigma_pi / s.sigma[i])
            sums[1] += sigma_pi / s.sigma[i] * s.column_max[i]
            sums[3] += float((weights[samples] * V) @ xi**2)
    return Moments(*(sums / DRAWS))


def scale_sums(s: State, factor: float) -> None:
    """Multiply the sums of all iterates so far, so that those to come weigh more or less."""
    lazy.flush_primal(s)
    lazy.renormalise(s)
    s.primal[: s.count[PRIMAL_USED]].reshape(-1, 2, TILE)[:, 1] *= factor
    s.dual[: s.count[DUAL_USED]].reshape(-1, 2, TILE)[:, 1] *= factor
    s.flushed[:] *= factor
    s.scalar[TOTAL] *= factor


def _row(data: DenseData | SparseData, j: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(data, DenseData):
        return np.arange(data.X.shape[1]), data.X[j]
    entries = slice(data.indptr[j], data.indptr[j + 1])
    return data.indices[entries], data.data[entries]


def _column(data: DenseData | SparseData, i: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(data, DenseData):
        n = data.X.shape[0]
        return np.arange(n), data.Xt[i, :n]
    entries = slice(data.column_indptr[i], data.column_indptr[i + 1])
    return data.column_indices[entries], data.column_data[entries]


def _places(i: np.ndarray) -> np.ndarray:
    """Where these elements lie in the row of a slot."""
    return (i // TILE) * (2 * TILE) + i % TILE
