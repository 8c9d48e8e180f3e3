"""The memory of small fits, which are made as a whole and traced."""

from __future__ import annotations

import sys
import tracemalloc
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import SparseLinearClassifier, estimate_memory, fit_size, memory, memory_look
from fenchel.losses import get_loss
from fenchel.samples import distinct
from fenchel.solvers.kept_hessian import Room
from fenchel.traced_memory import PAGE


@pytest.fixture
def small():
    """Dense data of which a fit takes a part of a second."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 4
    X = rng.standard_normal((300, 150))
    X[np.arange(300), y] += 2.0
    return X, y


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_small_fit_is_made_and_traced(small, loss, sparse, monkeypatch):
    X, y = small
    X = sp.csr_array(X) if sparse else X
    model = SparseLinearClassifier(loss, alpha=3e-3).fit(X, y)
    monkeypatch.setattr(memory, "looked_at", None)
    estimate = estimate_memory(X, y, loss, alpha=3e-3)
    formed, square = [0], Room.square
    monkeypatch.setattr(Room, "square", lambda *args: formed.append(args[1]) or square(*args))
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if max(formed):  # of the room for the largest Hessian there may be this much is written to
        peak -= 8 * (Room(X.shape[1] * 4 + 4).size - max(formed) ** 2)
    assert estimate == pytest.approx((1.0 + memory.GAPS) * peak, rel=0.1)


def test_of_a_room_only_what_is_written_to_is_memory():
    peak, megabyte = memory_look.Peak(), 1 << 20
    room = memory_look.TracedRoom.of(Room(2000), peak)
    tracemalloc.start()
    try:
        room.square(100)[:] = 1.0
        before = peak.fold()
        assert before == pytest.approx(8 * 100**2, abs=megabyte // 10)
        array = np.ones(megabyte)
        del array  # the room grows after that, where it is free again
        room.square(200)
        room.behind(200)
        assert peak.fold() == pytest.approx(8 * 100**2 + 8 * megabyte, abs=megabyte // 10)
        room.square(1500)
        room.square(10)  # what was written to stays memory
        assert peak.fold() == pytest.approx(8 * 1500**2, abs=megabyte // 10)
        room.behind(1500)
        assert peak.fold() == pytest.approx(2 * 8 * 1500**2, abs=megabyte // 10)
        room.square(1500)[:] = 1.0
        room.behind(1500)[: 500**2] = 1.0  # a face is smaller than its Hessian
        written = 8 * (1500**2 + 500**2)
        assert peak.taken() == pytest.approx(written, abs=2 * megabyte + 8 * PAGE)
        assert peak.taken() < peak.fold() - 10 * megabyte
        room.array[:] = 0.0
        assert peak.taken() == pytest.approx(0, abs=megabyte // 10)  # nor its last page
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN \\(first at row 7, column 3\\)"),
        (1j, "complex numbers"),
        ("seven", "not numeric"),
        (None, "not numeric"),
    ],
)
def test_wrong_entries_of_small_data_are_named(small, value, message):
    X, y = small
    X = X.astype(np.result_type(X, value) if isinstance(value, float | complex) else object)
    X[7, 3] = value
    with pytest.raises(ValueError, match=message):
        estimate_memory(X, y)
    assert not tracemalloc.is_tracing()


def test_data_without_features_are_refused(small):
    X, y = small
    with pytest.raises(ValueError, match="X is empty"):
        estimate_memory(X[:, :0], y)


def test_what_a_fit_loads_is_not_counted(small, monkeypatch):
    """It is made again, unless every fit loads something."""
    loaded, answers = [], [(10**8, None, True), (10**7, None, True)]
    monkeypatch.setattr(memory, "kernels_and_modules", lambda: tuple(loaded))

    def fit(*args):
        if len(answers) > 1:
            loaded.append("a kernel")
        return answers.pop(0)

    monkeypatch.setattr(memory, "traced_once", fit)
    assert estimate_memory(*small) == 10**7
    answers[:] = [(10**12, None, True)] * 10
    assert estimate_memory(*small) < 10**12
    assert len(answers) == 10 - memory.TRACED_FITS


def test_kernels_that_are_loaded_are_noticed(monkeypatch):
    kernel = numba.njit(lambda number: number + 1)
    monkeypatch.setitem(sys.modules, "fenchel.another", SimpleNamespace(kernel=kernel))
    known = memory.kernels_and_modules()
    assert memory.kernels_and_modules() == known
    kernel(1)
    assert memory.kernels_and_modules()[0] > known[0]


def test_who_traces_for_himself_is_not_disturbed(small, monkeypatch):
    monkeypatch.setattr(memory, "traced_once", None)
    tracemalloc.start()
    try:
        estimate = estimate_memory(*small, "softmax")
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(fit_size, "WHOLE_ENTRIES", -1)
    assert estimate == estimate_memory(*small, "softmax")


def test_no_whole_fit_is_made_where_it_may_not_fit(small, monkeypatch):
    monkeypatch.setattr(memory, "traced_once", None)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert estimate_memory(*small) > 1000


def counted_look(data):
    """The look that is made of softmax on larger data."""
    X, y = data
    return memory.look(X, y, get_loss("softmax"), 1e-3, "absolute", y.size)


def test_a_fit_that_takes_long_is_counted_after_all(small, monkeypatch):
    """With what was traced so far, if that is more; and nothing is traced after it."""
    monkeypatch.setattr(memory_look, "WHOLE_SECONDS", 0.0)
    size = fit_size.Size.of(small[0], 4, "softmax")
    taken, seen, ended = memory.traced(size, *small, 1e-3, "absolute", distinct(*small, None))
    assert taken > small[0].nbytes
    assert not ended
    assert seen.hessian == pytest.approx(counted_look(small).hessian, rel=0.2)
    assert estimate_memory(*small, "softmax") == pytest.approx(size.fit_bytes(seen), rel=1e-3)
    monkeypatch.setattr(memory, "traced", lambda *args: (10**9, seen, False))
    assert estimate_memory(*small, "softmax") == 10**9


def test_no_second_look_is_made_where_a_trace_has_seen_a_hessian(small, monkeypatch):
    """The look ends with the time of the trace, which ends with it."""
    now, square = iter(range(10**6)), Room.square
    monkeypatch.setattr(memory_look.time, "thread_time", lambda: next(now))
    formed = []
    monkeypatch.setattr(Room, "square", lambda *args: formed.append(args[1]) or square(*args))
    for seconds in range(1, 50):  # one for each step
        monkeypatch.setattr(memory_look, "WHOLE_SECONDS", seconds)
        formed.clear()
        size = fit_size.Size.of(small[0], 4, "softmax")
        _, seen, ended = memory.traced(size, *small, 1e-3, "absolute", distinct(*small, None))
        assert not tracemalloc.is_tracing()
        if formed:
            break
    assert not ended
    assert seen.hessian >= memory_look.LATER * max(formed)


def test_a_widened_block_leaves_a_gap(small, monkeypatch):
    X, y = small
    estimates = {}
    for dtype in (np.float32, np.float64):
        for gap in (0, memory.DESIGN_ENTRIES):
            monkeypatch.setattr(memory, "DESIGN_ENTRIES", gap)
            estimates[dtype, gap] = estimate_memory(X.astype(dtype), y, "softmax", alpha=0.03)
    assert estimates[np.float64, 0] == pytest.approx(estimates[np.float64, gap], rel=0.02)
    more = estimates[np.float32, gap] - estimates[np.float32, 0]
    assert more == pytest.approx(8 * X.size, rel=0.05)
