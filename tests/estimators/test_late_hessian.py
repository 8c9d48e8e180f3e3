"""What Newton steps will form or gather, told by a look that ends before them."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import fit_size, late_hessian, memory, memory_look
from fenchel.design import DenseDesign
from fenchel.design import dense as dense_design
from fenchel.fit_size import Seen, Size
from fenchel.late_hessian import Met, forms_later, gathered_later
from fenchel.losses import get_loss
from fenchel.problem import Problem
from fenchel.samples import distinct
from fenchel.solvers.kept_hessian import KeptHessian, Room
from fenchel.solvers.l1_model import BLAS_SIZE
from fenchel.solvers.newton_state import FACE
from fenchel.solvers.packed_quadratic import PackedQuadratic
from fenchel.solvers.proximal_newton import PRODUCTS
from fenchel.solvers.working_set import Columns, Entries

N, D, K = 200, 30, 6


@pytest.fixture
def problem():
    X = np.random.default_rng(0).standard_normal((N, D))
    return Problem.from_data(X, np.arange(N) % K, loss="hinge", lam=1e-3)


@pytest.fixture
def V():
    """A dual point with one to three classes in a sample."""
    rng = np.random.default_rng(1)
    V = np.zeros((N, K))
    for row, count in zip(V, rng.integers(1, 3, N), strict=True):
        row[rng.choice(K, count, replace=False)] = 1.0 / count
    return V


@pytest.fixture
def entries():
    return Entries.of(sp.random_array((D, K), density=0.3, rng=np.random.default_rng(2)))


@pytest.mark.parametrize("times", [1, 3])
def test_what_samples_with_curvature_meet(problem, V, entries, times):
    used = times * entries.u.size
    met = Met.of(problem, V, entries, used)
    sizes = times * np.bincount(entries.klass, minlength=K)
    curved = np.count_nonzero(V, axis=1) > 1
    entries_met = (V[curved] > 0) @ sizes
    assert met.values == pytest.approx(entries_met.sum())
    assert met.work == pytest.approx(min((entries_met**2).sum(), used**2 * curved.sum() / 8))
    assert met.at_the_end == pytest.approx(min(1.0, used / (np.count_nonzero(V) - N)))
    known = KeptHessian.none(K).work(
        Columns.of(problem.design), entries, 1.0 * (V > 0), problem.weights
    )
    if times == 1:  # the same as the steps themselves count
        assert (met.work, 2.0 * met.values) == pytest.approx((min(known[1:3]), known[3]))
    assert met.work_for(2 * used, 3.0) == pytest.approx(12 * met.work)


def test_a_dual_point_with_few_zeros_leaves_no_sample_out(problem, entries):
    met = Met.of(problem, np.full((N, K), 1 / K), entries, 50)
    assert (met.positions, met.values, met.work) == (N * K, 50 * N, 50**2 * N / 8)


def test_no_more_is_solved_for_than_pays(problem, V, entries):
    """Up to there a direct solve is cheaper than the products of a step."""
    met = Met.of(problem, V, entries, 40)
    most = met.most_solved(2.0)
    solve = FACE * most**3 + met.work_for(most, 2.0)
    assert solve == pytest.approx(2.0 * PRODUCTS * 2.0 * met.values * most / 40)


def test_a_late_hessian_is_counted_for_no_more_than_pays(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = rng.standard_normal((1500, 150))
    X[np.arange(1500), y] += 3.0
    monkeypatch.setattr("fenchel.solvers.newton_state.BLAS_SIZE", 10)  # none while it is looked at
    monkeypatch.setattr(PackedQuadratic, "forms_hessian", lambda self: False)
    arguments = X, y, get_loss("hinge"), 1e-2, "absolute", y.size
    assert memory_look.look(*arguments).face > 30
    monkeypatch.setattr(Met, "most_solved", lambda self, times: 20.0)
    assert 0 < memory_look.look(*arguments).face <= 20
    monkeypatch.setattr(Met, "work_for", lambda self, size, times: np.inf)
    assert memory_look.look(*arguments).without


def test_no_more_of_a_hessian_is_solved_than_a_vertex_has_equations(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = rng.standard_normal((1500, 150))
    X[np.arange(1500), y] += 3.0
    faces = []
    for times in (0.0, memory_look.EQUATIONS, 3.0):
        monkeypatch.setattr(memory_look, "EQUATIONS", times)
        seen = memory_look.look(X, y, get_loss("hinge"), 1e-2, "absolute", y.size)
        faces.append(seen.face)
    assert not seen.dense
    assert 0 < faces[0] <= faces[1] <= faces[2] < seen.hessian
    assert faces[0] < faces[2]


def test_a_hessian_of_what_was_handed_over_or_of_the_vertex_that_was_told(monkeypatch):
    """Whichever is the larger, beside what is solved of it."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = rng.standard_normal((1500, 150))
    X[np.arange(1500), y] += 3.0
    monkeypatch.setattr(PackedQuadratic, "forms_hessian", lambda self: False)  # in one product
    formed, square = [], memory_look.NoRoom.square
    monkeypatch.setattr(
        memory_look.NoRoom, "square", lambda self, size: formed.append(size) or square(self, size)
    )
    told, size = [], memory_look.solution_size
    hand_over = memory_look.UntilHessian._hand_over
    monkeypatch.setattr(
        memory_look.UntilHessian,
        "_hand_over",
        lambda self, state: told.append(size(state.inner.now.V)) or hand_over(self, state),
    )
    monkeypatch.setattr(memory_look, "ETA_GROWTH", 0.0)  # far from the end
    seen = []
    for times in (0.0, 2.0):
        monkeypatch.setattr(memory_look, "EQUATIONS", times)
        seen.append(memory_look.look(X, y, get_loss("hinge"), 1e-2, "absolute", y.size))
    first, later = seen
    assert not first.dense
    assert first.hessian == formed[0] > first.face > 0
    assert later.face == 2 * told[-1] > first.face
    coming = memory_look.most_new(SimpleNamespace(d=151, k=10), int(later.face), growth=0.25)
    assert later.hessian == later.face + memory_look.COMING * coming
    monkeypatch.setattr(memory_look, "ETA_GROWTH", np.inf)  # close to the end: no more of them
    assert memory_look.look(X, y, get_loss("hinge"), 1e-2, "absolute", y.size) == first


def test_more_coefficients_are_used_of_a_rough_model_than_stay(monkeypatch):
    """With sparsemax: a Hessian too large for those of the look may be formed of the others."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = rng.standard_normal((1500, 150))
    X[np.arange(1500), y] += 3.0
    monkeypatch.setattr("fenchel.solvers.newton_state.BLAS_SIZE", 10)  # none while it is looked at
    monkeypatch.setattr(PackedQuadratic, "forms_hessian", lambda self: False)
    arguments = X, y, get_loss("sparsemax"), 3e-3, "absolute", y.size
    seen = {}
    for equations in (50, 10**6):
        monkeypatch.setattr(memory_look, "solution_size", lambda V, size=equations: size)
        seen[equations] = memory_look.look(*arguments)
    assert seen[50].face == int(1.1 * 50) < seen[10**6].face
    assert seen[50].hessian == seen[10**6].hessian > 0
    monkeypatch.setattr(memory_look, "BLAS_SIZE", 100)
    assert memory_look.look(*arguments).without
    monkeypatch.setattr(memory_look, "solution_size", lambda V: 50)
    assert not memory_look.look(*arguments).without


def test_a_hessian_is_formed_at_last_if_it_is_ever_cheap_enough(monkeypatch):
    softmax = SimpleNamespace(loss=get_loss("softmax"), n=10_000, k=20)
    hinge = SimpleNamespace(loss=get_loss("hinge"), n=10_000, k=20)

    def of(used, work=0.0):
        return Met(used, 0.0, 0.0, work, 1.0)

    assert forms_later(softmax, of(1800), 0.0, 1.0)
    assert not forms_later(softmax, of(1900), 0.0, 1.0)  # too many multiplications
    softmax.n = 100
    assert forms_later(softmax, of(BLAS_SIZE), 0.0, 1.0)
    assert not forms_later(softmax, of(BLAS_SIZE + 1), 0.0, 1.0)  # too many rows
    met = of(100, late_hessian.ROW_WORK / 2)
    assert forms_later(hinge, met, 100, 1.9)
    assert not forms_later(hinge, met, 100, 2.1)  # too many samples
    assert not forms_later(hinge, met, 150, 1.0)  # the working set is larger than what is used


def test_what_is_gathered_after_steps_that_were_too_long():
    problem = SimpleNamespace(d=61)
    assert gathered_later(problem, 57, 1000, 0.1) == (12 + 8) * 57 * 1000
    assert gathered_later(problem, 57, 10**7, 0.1) == 12 * 57 * 10**7  # too large a product
    assert gathered_later(problem, 57, 1000, 1e-3) == 0  # a Hessian is worth it in any case
    assert gathered_later(problem, 62, 1000, 0.1) == 0  # read from X itself
    assert gathered_later(problem, 9, 1000, 1.0) == 0


def test_a_look_counts_what_is_gathered_after_a_hessian_of_a_dense_dual_point():
    """A penalty that leaves intercepts alone, at first: Newton steps come before all others."""
    rng = np.random.default_rng(0)
    n, k = 4000, 40
    y = np.minimum(rng.geometric(0.15, n) - 1, k - 1)
    X = np.where(rng.random((n, 60)) < 0.3, 1.0, 0.0)
    X[np.arange(n), y] += 0.3
    seen = memory_look.look(X, y, get_loss("hinge"), 0.1, "absolute", n)
    assert seen.dense
    assert 0 < seen.instead == gathered_later(SimpleNamespace(d=61), np.unique(y).size, n, 0.1)
    smooth = memory_look.look(X, y, get_loss("softmax"), 0.1, "absolute", n)
    assert smooth.instead == 0.0


def test_blocks_of_single_classes_are_counted(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 6
    X = rng.standard_normal((1500, 300))
    X[np.arange(1500), y] += 3.0
    made, blocks = [], Columns.blocks
    monkeypatch.setattr(Columns, "blocks", lambda *args: made.append(blocks(*args)) or made[-1])
    seen = memory_look.look(X, y, get_loss("sparsemax"), 1e-3, "absolute", 1500)
    assert max(block.nbytes for block in made) < seen.blocks
    assert seen.blocks < 2 * max(block.nbytes for block in made)
    size = Size.of(X, 6, "sparsemax")
    assert size.fit_bytes(Seen(blocks=2e8)) - size.fit_bytes(Seen(blocks=1e8)) == 1e8
    # what was gathered before a Hessian is not all given back
    none, some = (size.fit_bytes(Seen(4000.0, instead=n)) for n in (0.0, 1e8))
    assert some - none == pytest.approx(fit_size.KEPT_DENSE * 1e8, abs=2)
    assert Entries(np.arange(5), np.array([0, 0, 0, 1, 1]), np.ones(5)).block_bytes == 8 * (13 + 9)


def test_positions_are_read_where_the_dual_point_is_dense():
    """Else values are gathered, and these are counted."""
    size = Size.of(np.ones((50_000, 100)), 3, "sparsemax")
    sparse, dense = (size.fit_bytes(Seen(without=True, dense=few)) for few in (False, True))
    assert sparse == size.fit_bytes(Seen())
    assert dense - sparse == pytest.approx(fit_size.POSITIONS * size.stored, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "sparsemax"])
def test_a_dual_point_that_was_seen_has_curvature_on_its_support(loss, monkeypatch):
    """What it had before is in the trace; a centre is one array more."""
    X = sp.random_array((2000, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    size, scores = Size.of(X, 100, loss), 8 * 2000 * 100
    few, more, all_ = (size.fit_bytes(Seen(settled=part)) for part in (0.2, 0.3, 1.0))
    assert more - few == pytest.approx(0.1 * fit_size.CURVATURE * scores, abs=2)
    if loss == "hinge":
        lacking = fit_size.CENTRE - (1.0 - 0.8 * fit_size.CURVATURE)
        assert all_ - few == pytest.approx(lacking * scores, abs=2)
    y = np.arange(2000) % 20
    X = sp.csr_array(X + sp.csr_array((np.ones(2000), (np.arange(2000), y)), shape=X.shape))
    monkeypatch.setattr(memory_look, "WHOLE_SECONDS", 0.0)  # no more than a look
    monkeypatch.setattr(memory_look, "LOOK_ROUNDS", 1000)  # up to the end
    monkeypatch.setattr(memory_look.UntilHessian, "_may_turn", staticmethod(lambda problem: False))
    monkeypatch.setattr(PackedQuadratic, "forms_hessian", lambda self: False)
    states, init = [], memory_look.UntilHessian.init
    monkeypatch.setattr(
        memory_look.UntilHessian, "init", lambda *args: states.append(init(*args)) or states[-1]
    )
    samples = distinct(X, y, None)
    size = Size.of(X, 20, loss, samples[0])
    _, seen, _ = memory.traced_once(size, X, y, 1e-3, "absolute", samples)
    V = states[-1].inner.V
    assert seen.settled == np.count_nonzero(V) / V.size < 0.7


def test_the_start_holds_residuals_of_some_classes():
    X = sp.csr_array((100_000, 100))
    few, many = (Size.of(X, k, "softmax").fit_bytes(Seen(at_start=True)) for k in (100, 200))
    assert many - few == 2 * 8 * 100_000 * 100  # as many residuals
    hinge, softmax = (
        Size.of(X, 200, loss).fit_bytes(Seen(at_start=True)) for loss in ("hinge", "softmax")
    )
    assert hinge > softmax + 8 * 100_000 * 150


def test_a_hessian_in_one_product_is_made_without_arrays_of_all_positions():
    n, k = 4000, 50
    rng = np.random.default_rng(0)
    entries = Entries(np.arange(k), np.arange(k), np.ones(k))
    columns = Columns.of(DenseDesign(rng.standard_normal((n, k))))
    h = np.full((n, k), 1.0 / k)
    quadratic = PackedQuadratic(
        entries.klass, *columns.pack(entries, h, np.full(n, 1 / n)), np.ones(k)
    )
    room = Room(0)
    quadratic.hessian(room)
    tracemalloc.start()
    quadratic.hessian(room)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 8 * k * n + 8 * n * k / 2  # the factor, and a part of as many numbers


def test_a_product_with_a_sparse_u_copies_little_of_x_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 500))
    U = sp.random_array((500, 4), density=0.5, rng=rng)
    design = DenseDesign(X)
    expected = design.matmul(U)
    tracemalloc.start()
    found = design.matmul(U)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < X.nbytes / 4
    np.testing.assert_allclose(found, X @ U.toarray(), atol=1e-12)
    monkeypatch.setattr(dense_design, "COPIED_ENTRIES", X.size)  # all at once: the same bits
    np.testing.assert_array_equal(design.matmul(U), expected)
