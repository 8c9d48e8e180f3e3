"""Products of a working set by rows, and classes that are taken for one, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from fenchel.design import make_design
from fenchel.losses import get_loss
from fenchel.problem import Problem
from fenchel.solvers import joined as joined_module
from fenchel.solvers import working_set
from fenchel.solvers.joined import joined, joins
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_rows import WorkingRows
from fenchel.solvers.working_set import Columns, Entries


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture
def problem(rng: np.random.Generator) -> Problem:
    n, d, k = 60, 25, 7
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    X[7] = 0.0
    y, weights = rng.integers(0, k, n), rng.random(n)
    return Problem.from_data(
        sp.csr_array(X), y, loss="softmax", lam=0.02, sample_weight=weights, classes=np.arange(k)
    )


def some_entries(rng: np.random.Generator, d: int, classes: list[int], k: int) -> Entries:
    U = np.zeros((d, k))
    U[:, classes] = rng.standard_normal((d, len(classes))) * (rng.random((d, len(classes))) < 0.4)
    return Entries.of(U)


def test_products_by_rows(problem: Problem, rng: np.random.Generator) -> None:
    entries = some_entries(rng, problem.d, [0, 2, 3, 6], problem.k)
    rows = WorkingRows.of(problem.design.X, entries)
    V = rng.random((problem.n, problem.k))
    V[::3] = np.eye(problem.k)[problem.y[::3]]  # these are left out
    expected = problem.gradient(V)[entries.feature, entries.klass]
    np.testing.assert_allclose(rows.gradient(problem, V), expected, atol=1e-15)
    for values in (entries.u, np.where(rng.random(entries.u.size) < 0.3, entries.u, 0.0)):
        Z = rng.standard_normal((problem.n, problem.k))
        S = entries.matrix(values, (problem.d, problem.k)).toarray()
        expected = Z + problem.design.X @ S
        rows.add_product(Z, values)
        np.testing.assert_allclose(Z, expected, atol=1e-13)
    nothing = WorkingRows.of(problem.design.X, Entries.empty())
    assert nothing.gradient(problem, V).size == 0


def test_rows_are_made_once_for_the_same_entries(
    problem: Problem, rng: np.random.Generator, monkeypatch
) -> None:
    monkeypatch.setattr(working_set, "LARGE", 0)
    made, of = [], WorkingRows.of
    monkeypatch.setattr(WorkingRows, "of", lambda *args: made.append(1) or of(*args))
    columns, V = Columns.of(problem.design), rng.random((problem.n, problem.k))
    for classes in ([0, 2], [1, 5]):
        entries = some_entries(rng, problem.d, classes, problem.k)
        assert columns.reads_entries(entries, np.eye(problem.k)[problem.y])
        expected = problem.gradient(V)[entries.feature, entries.klass]
        for _ in range(2):
            found = columns.gradient_of_dense(entries, problem, V)
            np.testing.assert_allclose(found, expected, atol=1e-15)
            entries.u = 2.0 * entries.u
        S = entries.matrix(entries.u, (problem.d, problem.k)).toarray()
        product = columns.product(entries, entries.u, problem.k)
        np.testing.assert_allclose(product, problem.design.X @ S, atol=1e-13)
    assert len(made) == 2


def test_the_score_of_joint_classes(rng: np.random.Generator) -> None:
    Z, classes = rng.standard_normal((9, 6)), np.array([1, 2, 4])
    Z[2] = 0.0
    Z[3] *= 300.0  # no exponential of these alone is finite
    found = get_loss("softmax").joint_score(Z, classes)
    np.testing.assert_allclose(found, logsumexp(Z[:, classes], axis=1), rtol=1e-13)
    with pytest.raises(NotImplementedError):
        get_loss("hinge").joint_score(Z, classes)


def test_a_problem_with_joint_classes_is_the_same_on_its_entries(
    problem: Problem, rng: np.random.Generator
) -> None:
    entries = some_entries(rng, problem.d, [1, 4], problem.k)
    Z = rng.standard_normal((problem.n, problem.k))
    small, mine, scores, constant = joined(problem, entries, Z)
    assert small.k == 3
    for _ in range(2):
        V, W = problem.loss.argmax(Z, problem.y), small.loss.argmax(scores, small.y)
        np.testing.assert_allclose(W[:, :2], V[:, [1, 4]], atol=1e-14)
        risk = problem.weights @ problem.loss.value(Z, problem.y)
        same = problem.weights @ small.loss.value(scores, small.y)
        assert constant + same == pytest.approx(risk)
        g = problem.gradient(V)[entries.feature, entries.klass]
        np.testing.assert_allclose(small.gradient(W)[mine.feature, mine.klass], g, atol=1e-14)
        step = rng.standard_normal((problem.n, 2))  # of the classes with entries
        Z[:, [1, 4]] += step
        scores[:, :2] += step


def test_steps_with_joint_classes_are_those_with_all(problem: Problem, monkeypatch) -> None:
    def run(part: float, large: int) -> tuple:
        monkeypatch.setattr(joined_module, "FEW_CLASSES", part)
        monkeypatch.setattr(joined_module, "LARGE", large)
        solver, rng = ProximalNewton(), np.random.default_rng(0)
        state = solver.init(rare, None, rng, 1)
        solver.advance(state, 6)
        calls.append(joins(rare, state.entries))
        (point,) = solver.points(state)
        return point.U, point.V, state.value, state.Z

    calls: list[bool] = []
    y = np.where(np.arange(problem.n) % 9 == 4, problem.y, problem.y % 2)  # most classes are rare
    rare = Problem.from_data(
        problem.design.X, y, loss="softmax", lam=0.08, classes=np.arange(problem.k)
    )
    monkeypatch.setattr(working_set, "MIN_NEW_SMALL", 4)
    for few, all_classes in zip(run(0.9, 0), run(0.0, 0), strict=True):
        np.testing.assert_allclose(few, all_classes, atol=1e-9)
    assert calls == [True, False]
    run(0.9, 1 << 30)
    assert not calls[-1]  # where V is small there is nothing to be gained


def test_a_design_by_rows_is_not_asked_of_dense_data(rng: np.random.Generator) -> None:
    columns = Columns.of(make_design(rng.random((5, 4))))
    assert columns._by_rows(Entries.empty(), 1 << 40) is None
