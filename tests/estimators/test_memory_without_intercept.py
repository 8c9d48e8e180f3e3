"""What a fit takes without an intercept, where classes without coefficients share arrays."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from fenchel import (
    SparseLinearClassifier,
    SparseLinearClassifierCV,
    estimate_memory,
    fit_size,
    memory,
    memory_look,
    memory_refusal,
)
from fenchel.fit_size import Apart, Seen, Size
from fenchel.losses import Hinge, get_loss
from fenchel.solvers import alike
from fenchel.solvers.newton_state import State
from fenchel.solvers.primal_dual import moving_classes

N, D, K = 3000, 400, 200


@pytest.fixture
def few_move() -> tuple[sp.csr_array, np.ndarray]:
    """Text of many classes, of which a few are frequent: only these have coefficients."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(N) < 0.7, rng.integers(0, 6, N), np.arange(N) % K)
    X = np.where(rng.random((N, D)) < 0.02, rng.random((N, D)), 0.0)
    X[np.arange(N), y] += 2.0 * (y < 12)
    return sp.csr_array(X), y


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let data be large enough for that, and for no look at more than their start."""
    monkeypatch.setattr(alike, "LARGE", 0)
    for name, value in (("WHOLE_ENTRIES", -1), ("LOOK_SPARSE", -1), ("BETWEEN_SPARSE", 0)):
        monkeypatch.setattr(fit_size, name, value)


def problem_of(data: tuple, loss: str = "hinge", lam: float = 6e-3, intercept: bool = False):
    X, y = data
    rows = np.arange(y.size)
    return memory_look.begun(X, y, K, get_loss(loss), lam, "absolute", rows, None, intercept)


@pytest.mark.parametrize("lam", [1e-3, 6e-3, 1e-2])
@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_what_wants_to_leave_zero_is_known_without_scores(few_move, lam, loss, monkeypatch):
    monkeypatch.setattr(memory_look, "first_entries", lambda d, k, by_class: d * k)
    problem = problem_of(few_move, loss, lam)
    apart = memory_look.apart(problem)
    X, weights = problem.design.X.toarray(), problem.weights
    R = weights[:, None] * (problem.dual_at_zero() - np.eye(K)[problem.y])
    wants = np.abs(X.T @ R) > lam
    assert apart.classes == moving_classes(problem) == wants.any(axis=0).sum()
    length = np.count_nonzero(X, axis=0)
    met = np.minimum(length @ wants, N).sum() / (N * K)
    assert apart.met == pytest.approx(met)
    assert apart.values == pytest.approx((length @ wants).sum() / N)


def test_no_more_than_the_first_working_set_is_gathered(few_move, monkeypatch):
    monkeypatch.setattr(memory_look, "first_entries", lambda d, k, by_class: 5)
    problem = problem_of(few_move, lam=1e-3)
    assert 0 < memory_look.apart(problem).values <= 5 * 0.3  # a frequent feature is in 0.3 of all


def test_all_classes_have_their_own_where_something_has_no_penalty(few_move):
    assert memory_look.apart(problem_of(few_move)) is not None
    assert memory_look.apart(problem_of(few_move, intercept=True)) is None
    assert memory_look.apart(problem_of(few_move, lam=0.0)) is None
    X, y = few_move
    assert memory_look.apart(problem_of((X.toarray(), y))) is None
    costs = Hinge(cost=1.0 - np.eye(K))
    problem = memory_look.begun(X, y, K, costs, 1e-3, "absolute", np.arange(N), None, False)
    assert memory_look.apart(problem) is None


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("lam", [6e-3, 1e-2])
def test_the_classes_that_want_a_coefficient_are_those_with_columns(few_move, lam, monkeypatch):
    apart, known, know = memory_look.apart(problem_of(few_move, lam=lam)), [], State._know

    def spy(state: State, classes: np.ndarray) -> None:
        know(state, classes)
        known.append(K if state.alike is None else state.alike.classes.size)

    monkeypatch.setattr(State, "_know", spy)
    X, y = few_move
    SparseLinearClassifier(alpha=lam, fit_intercept=False).fit(X, y)
    assert 0 < apart.classes <= known[-1] <= 1.2 * apart.classes


def test_no_array_of_scores_is_made_for_that(few_move):
    problem = problem_of(few_move, lam=6e-3)
    memory_look.apart(problem)  # compiles
    tracemalloc.start()
    memory_look.apart(problem)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 0.5 * 8 * N * K


@pytest.mark.usefixtures("large")
def test_a_fit_is_refused_by_its_own_intercept(few_move, monkeypatch):
    """Also a path, and beside features without penalty, which act as one."""
    X, y = few_move
    enough = estimate_memory(X, y, alpha=6e-3, fit_intercept=False)
    assert enough < 0.7 * estimate_memory(X, y, alpha=6e-3)
    monkeypatch.setattr(memory_refusal, "available_memory", lambda: enough)
    model = SparseLinearClassifier(alpha=6e-3, fit_intercept=False).fit(X, y)
    assert len(model.path(X, y, alphas=[1e-2, 6e-3])) == 2
    free = np.ones(D)
    free[7] = 0.0
    for other in ({"fit_intercept": True}, {"penalty_factor": free}, {"warm_start": True}):
        with pytest.raises(MemoryError):
            SparseLinearClassifier(alpha=6e-3, max_iter=1, **{"fit_intercept": False} | other).fit(
                X, y
            )
    with pytest.raises(MemoryError):
        SparseLinearClassifier(fit_intercept=True).path(X, y, alphas=[1e-2, 6e-3])


@pytest.mark.usefixtures("large")
def test_folds_are_refused_by_their_own_intercept(few_move, monkeypatch):
    X, y = few_move
    model = SparseLinearClassifierCV(alphas=[1e-2], cv=KFold(2), fit_intercept=False)
    enough = 2 * estimate_memory(X, y, alpha=1e-2, fit_intercept=False)
    assert enough < estimate_memory(X, y, alpha=1e-2)
    monkeypatch.setattr(memory_refusal, "available_memory", lambda: enough)
    model.fit(X, y)
    with pytest.raises(MemoryError):
        model.set_params(fit_intercept=True).fit(X, y)


@pytest.mark.usefixtures("large")
def test_columns_of_few_classes_are_counted_and_v_with_all(few_move, monkeypatch):
    size = Size.of(few_move[0], K, "hinge", intercept=False)
    monkeypatch.setattr(fit_size, "START_ENTRIES", 0)

    def taken(classes: int, met: float = 0.0, values: float = 0.0) -> int:
        return size.fit_bytes(Seen(only_start=True, apart=Apart(classes, met, values)))

    own = (fit_size.HELD_SCORES + fit_size.CERTIFIED) * 8 * N  # of a class
    kept = 1.0 + fit_size.KEPT * (own / (8 * N) - 1.0)
    assert taken(8) - taken(3) == pytest.approx(5 * 8 * N * kept, abs=2)
    monkeypatch.setattr(fit_size, "MAPPED", 0)  # what is freed is given back
    assert taken(8) - taken(3) == pytest.approx(5 * 8 * N, abs=2)
    assert taken(130) - taken(129) == pytest.approx(own, abs=2)
    assert taken(138) < taken(139)  # each has its column
    assert taken(139, 0.0, 1e9) == taken(K, 0.0, 1e9)  # the others will follow
    assert taken(K, 0.5) - taken(K) == pytest.approx(fit_size.CERTIFIED_MET * 4 * N * K, abs=2)
    assert taken(K, 0.5, 1e9) - taken(K, 0.5) == pytest.approx(
        fit_size.GATHERED_PART * 36 * N * K - (1.2 + 0.7) * 8 * N * K, abs=2
    )
    assert taken(K) < size.fit_bytes()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("loss", "more"), [("softmax", fit_size.MODEL_APART), ("sparsemax", 0.0)])
def test_few_classes_take_little_with_a_smooth_loss(few_move, loss, more):
    size = Size.of(few_move[0], K, loss, intercept=False)

    def taken(classes: int | None) -> int:
        apart = None if classes is None else Apart(classes, 0.0, 0.0)
        return size.fit_bytes(Seen(only_start=True, apart=apart))

    copies = fit_size.FLOOR + int((fit_size.SPARSE_COPIES + 0.3 * (N * K > 1 << 20)) * size.stored)
    assert taken(0) - copies == pytest.approx((fit_size.SMOOTH_APART + more) * 8 * N * K, abs=2)
    assert taken(K) == taken(K + 1) == taken(None)  # as beside an intercept
    assert taken(K // 2) == pytest.approx((taken(0) + taken(K)) / 2, abs=2)
    X, y = few_move
    without = estimate_memory(X, y, loss, alpha=6e-3, fit_intercept=False)
    assert without < 0.8 * estimate_memory(X, y, loss, alpha=6e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_no_column_of_ones_is_counted(few_move, sparse):
    X = few_move[0] if sparse else few_move[0].toarray()
    problem = problem_of((X, few_move[1]))
    size = Size.of(X, K, "softmax", intercept=False)
    X = problem.design.X
    assert size.stored == (X.data.nbytes + X.indices.nbytes if sparse else X.nbytes)
    assert size.columns == problem.d == D
    more = Size.of(few_move[0] if sparse else X, K, "softmax")
    assert more.stored - size.stored == N * (12 if sparse else 8)
    assert more.columns == D + 1
    for other in (size, more):
        assert other.with_features(D) == other
        assert other.with_features(D // 2).stored < other.stored
    assert size.with_features(D // 2).stored == pytest.approx(size.stored / 2, abs=12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_dense_data_are_looked_at_with_or_without(loss, intercept, monkeypatch):
    monkeypatch.setattr(fit_size, "WHOLE_ENTRIES", -1)
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = rng.standard_normal((1500, 150))
    X[np.arange(1500), y] += 3.0
    found, begun = [], memory_look.begun
    for module in (memory, memory_look):
        monkeypatch.setattr(module, "begun", lambda *a: found.append(begun(*a)) or found[-1])
    estimate_memory(X, y, loss, alpha=1e-2, fit_intercept=intercept)
    monkeypatch.setattr(fit_size, "WHOLE_ENTRIES", 1 << 20)
    estimate_memory(X, y, loss, alpha=1e-2, fit_intercept=intercept)  # traced
    assert len(found) >= 2
    assert {problem.intercept for problem in found} == {intercept}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_residuals_at_the_start_are_counted_where_classes_differ(loss):
    """Beside an intercept the first V has the masses of the classes; else it is the same in all."""
    rng = np.random.default_rng(0)
    X, y = sp.random_array((N, D), density=0.02, format="csr", rng=rng), np.arange(N) % K
    uneven = np.where(np.arange(N) == 0, 1, y)
    even, other = (estimate_memory(X, labels, loss, alpha=1.0) for labels in (y, uneven))
    assert other - even == pytest.approx(8 * N * K, rel=0.01)
    without = (estimate_memory(X, a, loss, alpha=1.0, fit_intercept=False) for a in (y, uneven))
    assert len(set(without)) == 1
    few = y % 20  # their residuals are multiplied as they are
    assert not memory_look.is_even(memory_look.begun(
        X, few, 20, get_loss(loss), 1.0, "absolute", np.arange(N)
    ))  # fmt: skip
