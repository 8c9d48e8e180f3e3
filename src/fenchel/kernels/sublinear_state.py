"""Making, growing and reading the lazy state of the sublinear solver; nothing here is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design.dense import by_columns
from fenchel.kernels import sublinear as lazy
from fenchel.kernels.sublinear import ALPHA, DUAL_USED, PRIMAL_USED, SIZE, TOTAL, A, State
from fenchel.kernels.sublinear_design import DenseData, SparseData

#: A matrix with more entries than this is returned sparse.
DENSE_ENTRIES = 1 << 25
#: A warm start is mixed with this much of the centre, because a zero would stay one for ever.
INTERIOR = 1e-2


def make_data(X: np.ndarray | sp.sparray) -> DenseData | SparseData:
    """X by rows and by columns, as the compiled loop reads it."""
    if not sp.issparse(X):
        X = np.ascontiguousarray(X)
        Xt = _aligned((X.shape[1], _padded(X.shape[0])), X.dtype)
        by_columns(X, Xt[:, : X.shape[0]])
        Xt[:, X.shape[0] :] = 0.0
        return DenseData(X, Xt, _aligned((lazy.TILE,)))
    X, n = sp.csr_array(X), X.shape[0]
    columns = X.tocsc()
    return SparseData(
        X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data,
        np.zeros(_padded(n)), np.zeros(_padded(n)),
    )  # fmt: skip


def make_state(
    y: np.ndarray,
    k: int,
    weights: np.ndarray,
    sigma: np.ndarray,
    tau: np.ndarray,
    column_max: np.ndarray,
    radius: float,
    key: int,
) -> State:
    """The state before the first iteration (line alg:line-U-init): no class is touched."""
    n, d = y.size, sigma.size
    tile = lazy.TILE
    row_tiles, feature_tiles = -(-n // tile), -(-d // tile)
    rows = _aligned((row_tiles, lazy.FIELDS, tile))
    rows[:, lazy.BETA // tile] = rows[:, lazy.B // tile] = 1.0
    rows[:, lazy.TRUE // tile] = _tiles(np.full(n, 1.0 / k))
    rows[:, lazy.W_TAU // tile] = _tiles(weights * tau)
    group = int(np.ceil(np.sqrt(k)))
    count = np.zeros(10, dtype=np.int64)
    count[lazy.SIZE] = group
    alpha = radius / (2.0 * d * k)
    state = State(
        rng=np.array([key, 0], dtype=np.uint64),
        count=count,
        scalar=np.array([alpha, alpha, alpha, 1.0, 0.0]),
        slot=np.full(k, -1, dtype=np.int64),
        primal=np.empty((0, 2 * tile * feature_tiles)),
        base=np.empty(0),
        tile_sigma=np.empty((0, feature_tiles)),
        tile_mass=np.empty((0, feature_tiles)),
        sigma=sigma,
        sigma_untouched=2.0 * _tiles(sigma).sum(axis=1),
        class_sigma=np.full(k, 2.0 * sigma.sum()),
        class_mass=np.full(k, 2.0 * d),
        group_sigma=_group_sums(np.full(k, 2.0 * sigma.sum()), group),
        group_mass=_group_sums(np.full(k, 2.0 * d), group),
        order=np.arange(k),
        place=np.arange(k),
        dual=np.empty((0, 2 * tile * row_tiles)),
        block=np.empty((0, tile * row_tiles)),
        rows=rows.reshape(-1),
        free=np.full(n, 1.0 / k),
        flushed=np.zeros(n),
        tile_rho=_tiles(weights * tau * (1.0 - 1.0 / k)).sum(axis=1),
        tau=tau,
        column_max=column_max,
        y=y.astype(np.int64),
        law=np.zeros(tile),
    )
    return grow(state)


def grow(s: State) -> State:
    """Make room for more touched classes where it has run out."""
    k = s.slot.size
    if s.count[PRIMAL_USED] == s.primal.shape[0]:
        s = _with_primal_slots(s, _more(s.primal, k))
    if s.count[DUAL_USED] == s.dual.shape[0]:
        s = _with_dual_slots(s, _more(s.dual, k))
    return s


def _with_primal_slots(s: State, slots: int) -> State:
    return s._replace(
        primal=_resized(s.primal, slots),
        base=_resized(s.base, slots),
        tile_sigma=_resized(s.tile_sigma, slots),
        tile_mass=_resized(s.tile_mass, slots),
    )


def _with_dual_slots(s: State, slots: int) -> State:
    blocks = -(-slots // int(s.count[SIZE]))
    return s._replace(dual=_resized(s.dual, slots), block=_resized(s.block, blocks))


def _more(array: np.ndarray, k: int) -> int:
    """The next number of slots: half as many again, and 512 MiB at the least.

    Slots are filled in order, and the system grants a page when it is first written: what is asked
    for here is address space, not memory. One slot more than there are classes, so that the loop
    never waits for a slot it cannot get.
    """
    slots, row = array.shape
    return min(k + 1, max(slots + slots // 2, (512 << 20) // (8 * row), 16))


def _resized(array: np.ndarray, length: int) -> np.ndarray:
    larger = _aligned((length, *array.shape[1:]))
    kept = min(length, array.shape[0])
    larger[:kept] = array[:kept]
    return larger


def _aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array at the start of a cache line: vectors that cross lines are stored at half speed."""
    size, item = int(np.prod(shape)), np.dtype(dtype).itemsize
    memory = np.empty(size + 64 // item, dtype=dtype)
    start = -memory.ctypes.data % 64 // item
    return memory[start : start + size].reshape(shape)


def _padded(size: int) -> int:
    """The size in whole tiles."""
    return -(-size // lazy.TILE) * lazy.TILE


def _tiles(values: np.ndarray) -> np.ndarray:
    """A vector in rows of TILE, padded with zeros."""
    padded = np.zeros(_padded(values.size))
    padded[: values.size] = values
    return padded.reshape(-1, lazy.TILE)


def _group_sums(values: np.ndarray, size: int) -> np.ndarray:
    return np.add.reduceat(values, np.arange(0, values.size, size))


# -- warm starts ---------------------------------------------------------------------------------


def start_primal(s: State, U: np.ndarray | sp.sparray, radius: float) -> State:
    """Begin near U instead of at the centre."""
    d, k = s.sigma.size, s.slot.size
    columns = sp.csc_array(U)
    size = float(abs(columns).sum())
    columns *= (1 - INTERIOR) * min(1.0, radius / size if size > 0 else 1.0)
    # alpha (E - 1/E) = U at alpha = INTERIOR R / (2dk); the total stays below R
    alpha = INTERIOR * radius / (2.0 * d * k)
    touched = np.flatnonzero(np.diff(columns.indptr))
    s = _with_primal_slots(s, touched.size + 1)
    for slot, l in enumerate(touched):
        E = np.exp(np.arcsinh(columns[:, [l]].toarray().ravel() / (2.0 * alpha)))
        s.slot[l] = slot
        both = _tiles(E + 1.0 / E)
        _fields(s.primal, slot)[:, 0] = 1.0
        _fields(s.primal, slot)[:, 1] = 0.0
        s.primal[slot, _places(d)] = E
        s.base[slot] = 0.0
        s.tile_mass[slot] = both.sum(axis=1)
        s.tile_sigma[slot] = (both * _tiles(s.sigma)).sum(axis=1)
        s.class_mass[l], s.class_sigma[l] = s.tile_mass[slot].sum(), s.tile_sigma[slot].sum()
    group = int(s.count[SIZE])
    s.group_sigma[:] = _group_sums(s.class_sigma, group)
    s.group_mass[:] = _group_sums(s.class_mass, group)
    s.count[PRIMAL_USED] = touched.size
    s.scalar[:2] = min(alpha, radius / s.class_mass.sum())
    return s


def start_dual(s: State, V: np.ndarray | sp.sparray) -> State:
    """Begin near V instead of at the uniform rows."""
    n, k = s.y.size, s.slot.size
    columns = V.tocsc() if sp.issparse(V) else V
    rows = s.rows.reshape(-1, lazy.FIELDS, lazy.TILE)
    true = np.asarray(V[np.arange(n), s.y]).ravel()
    s.free[:] = INTERIOR / k
    rows[:, lazy.TRUE // lazy.TILE] = _tiles((1 - INTERIOR) * true + INTERIOR / k)
    touched = np.flatnonzero(np.asarray((columns > 0).sum(axis=0)).ravel())
    s = _with_dual_slots(s, touched.size + 1)
    for l in touched:
        column = columns[:, [l]].toarray().ravel() if sp.issparse(V) else columns[:, l]
        W = np.where(s.y == l, 0.0, INTERIOR / k + (1 - INTERIOR) * column)
        if (s.free < W).any():
            slot = lazy.dual_slot(s, l)
            s.dual[slot, _places(n)] = W
    rows[:, lazy.B // lazy.TILE] = 0.0
    lazy.renormalise(s)
    s.count[lazy.RENORMALISED] = 0
    rows[:, lazy.B // lazy.TILE] = 1.0
    return s


# -- reading -------------------------------------------------------------------------------------


def last_primal(s: State) -> tuple[np.ndarray, np.ndarray]:
    """(U1, U2) of the moment, dense (d, k)."""
    E = np.ones((s.slot.size, s.sigma.size))
    stored = s.slot >= 0
    E[stored] = s.primal[s.slot[stored]][:, _places(s.sigma.size)]
    return s.scalar[ALPHA] * E.T, s.scalar[ALPHA] / E.T


def last_dual(s: State) -> np.ndarray:
    """V of the moment, dense (n, k)."""
    n, used = s.y.size, s.count[DUAL_USED]
    beta, true = _row_field(s, lazy.BETA), _row_field(s, lazy.TRUE)
    V = np.repeat((beta * s.free)[:, None], s.slot.size, axis=1)
    V[:, s.order[:used]] = beta[:, None] * s.dual[:used, _places(n)].T
    V[np.arange(n), s.y] = true
    return V


def average_primal(s: State, scale: np.ndarray | float = 1.0) -> np.ndarray | sp.csc_array:
    """The mean of U^0 .. U^T, divided by ``scale`` row by row: exactly 0 in untouched classes."""
    d, k = s.sigma.size, s.slot.size
    touched = np.flatnonzero(s.slot >= 0)
    if d * k <= DENSE_ENTRIES:
        U = np.zeros((d, k))
        for l in touched:
            U[:, l] = _average_of_class(s, scale, l)
        return U
    # counted first, so that the result is the only large array made here
    indptr = np.zeros(k + 1, dtype=np.int64)
    for l in touched:
        indptr[l + 1] = np.count_nonzero(_average_of_class(s, scale, l))
    indptr = np.cumsum(indptr)
    values = np.empty(indptr[-1])
    indices = np.empty(indptr[-1], dtype=np.int32 if max(d, indptr[-1]) < 2**31 else np.int64)
    for l in touched:
        dense = _average_of_class(s, scale, l)
        where = np.flatnonzero(dense)
        indices[indptr[l] : indptr[l + 1]] = where
        values[indptr[l] : indptr[l + 1]] = dense[where]
    return sp.csc_array((values, indices, indptr.astype(indices.dtype)), shape=(d, k))


def _average_of_class(s: State, scale: np.ndarray | float, l: int) -> np.ndarray:
    """The column of a touched class in the mean of U^0 .. U^T."""
    row, places = s.primal[s.slot[l]], _places(s.sigma.size)
    E = row[places]
    since = s.scalar[A] - s.base[s.slot[l]]
    return (row[places + lazy.TILE] + (E - 1.0 / E) * since) / (scale * s.scalar[TOTAL])


def largest_of_average(
    s: State, scale: np.ndarray | float, most: int, spared: int = 0
) -> sp.csc_array:
    """The mean of U^0 .. U^T with its ``most`` largest entries, and the last ``spared`` rows."""
    d, k = s.sigma.size, s.slot.size
    found = []
    for l in np.flatnonzero(s.slot >= 0):
        column = _average_of_class(s, scale, l)
        size = np.abs(column)
        size[d - spared :] = np.inf
        some = np.argpartition(size, -most)[-most:] if most < d else np.arange(d)
        found.append((some, np.full(some.size, l), column[some], size[some]))
    if not found:
        return sp.csc_array((d, k))
    feature, klass, value, size = (np.concatenate(part) for part in zip(*found, strict=True))
    limit = np.sort(size[np.isfinite(size)])[::-1][:most].min(initial=np.inf)
    keep = size >= limit
    return sp.csc_array((value[keep], (feature[keep], klass[keep])), shape=(d, k))


def average_dual(s: State) -> np.ndarray | sp.csr_array:
    """The mean of V^0 .. V^T, rows summing to one.

    All classes that no draw has touched share one column. Where (n, k) is too large to be written
    out, their mass goes to the true class of each row: still a dual point, and a sparse one.
    """
    n, k, used = s.y.size, s.slot.size, s.count[DUAL_USED]
    since = _row_field(s, lazy.B)
    untouched = s.flushed + s.free * since
    classes, places = s.order[:used], _places(n)
    rows = np.arange(n)
    if n * k <= DENSE_ENTRIES:
        V = np.repeat(untouched[:, None], k, axis=1)
        V[:, classes] = (s.dual[:used, places + lazy.TILE] + s.dual[:used, places] * since).T
        V[rows, s.y] = 0.0
        np.maximum(V, 0.0, out=V)  # rounding
        V[rows, s.y] = np.maximum(s.scalar[TOTAL] - V.sum(axis=1), 0.0)
        return V / V.sum(axis=1, keepdims=True)
    V = s.dual[:used, places + lazy.TILE] + s.dual[:used, places] * since
    np.maximum(V, 0.0, out=V)
    others = V.sum(axis=0)
    own = np.flatnonzero(s.place[s.y] >= used)  # rows whose own class is not stored
    missing = np.full(n, float(k - used))
    missing[own] -= 1.0
    # what the stored classes leave: that of the true class, and that of those without a slot
    true = np.maximum(s.scalar[TOTAL] - others, missing * untouched)
    total = others + true
    columns = sp.csr_array((true / total, (rows, s.y)), shape=(n, k))
    sums = sp.coo_array(V.T / total[:, None])
    return columns + sp.csr_array((sums.data, (sums.row, classes[sums.col])), shape=(n, k))


def trimmed(s: State) -> dict[str, np.ndarray]:
    """The arrays of a state, without unused slots; :func:`restored` is the inverse."""
    arrays = s._asdict()
    slots, blocks = s.count[DUAL_USED], -(-s.count[DUAL_USED] // s.count[SIZE])
    for name in ("primal", "base", "tile_sigma", "tile_mass"):
        arrays[name] = arrays[name][: s.count[PRIMAL_USED]]
    arrays["dual"], arrays["block"] = s.dual[:slots], s.block[:blocks]
    return {name: array.copy() for name, array in arrays.items()}


def restored(arrays: dict[str, np.ndarray]) -> State:
    """A state that goes on, to the bit, where the one that was trimmed stood."""
    return grow(State(**{name: arrays[name].copy() for name in State._fields}))


def _fields(array: np.ndarray, slot: int) -> np.ndarray:
    """The row of a slot as (tiles, 2, TILE), a view."""
    return array[slot].reshape(-1, 2, lazy.TILE)


def _places(size: int) -> np.ndarray:
    """Where elements 0 .. size-1 lie in the row of a slot."""
    i = np.arange(size)
    return (i // lazy.TILE) * (2 * lazy.TILE) + i % lazy.TILE


def _row_field(s: State, name: int) -> np.ndarray:
    fields = s.rows.reshape(-1, lazy.FIELDS, lazy.TILE)
    return fields[:, name // lazy.TILE].ravel()[: s.y.size]
