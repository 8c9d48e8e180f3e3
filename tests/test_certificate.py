"""The certificate on its own: any U and any V give true bounds, whatever made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import checker
import reference
from fenchel.certificate import Certificate, certify, for_smaller_penalty, with_dual_point
from fenchel.design.dense import DenseDesign
from fenchel.problem import Problem
from instances import BY_NAME, LOSS_NAMES, Instance
from support import make_problem

NAMES = ["three-classes", "weighted", "penalty-factors", "sparse-wide", "ball", "group",
         "ball-weighted-sparse"]  # fmt: skip
every_case = pytest.mark.parametrize("name", NAMES)
every_loss = pytest.mark.parametrize("loss", LOSS_NAMES)


def points(instance: Instance, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, d = instance.X.shape
    return rng.standard_normal((d, instance.k)), rng.dirichlet(np.full(instance.k, 0.3), n)


def check(certificate: Certificate, instance: Instance, loss: str) -> checker.Bounds:
    found = checker.bounds(
        instance.X,
        instance.y,
        certificate.U,
        certificate.V,
        loss=loss,
        **instance.check_arguments(),
    )
    assert found.primal == pytest.approx(certificate.primal, rel=1e-9)
    assert found.dual == pytest.approx(certificate.dual, rel=1e-9, abs=1e-9)
    assert certificate.gap == certificate.primal - certificate.dual
    return found


@every_loss
@every_case
def test_arbitrary_points_bracket_the_optimum(name: str, loss: str) -> None:
    """U far outside the ball, V far from feasible."""
    instance = BY_NAME[name]
    problem = make_problem(instance, loss)
    optimum = reference.optimum(instance, loss)
    for seed in range(5):
        U, V = points(instance, seed)
        found = check(certify(problem, U, V), instance, loss)
        assert found.dual - reference.TOLERANCE <= optimum <= found.primal + reference.TOLERANCE


@every_case
def test_a_point_outside_the_ball_is_brought_inside(name: str) -> None:
    instance = replace(BY_NAME[name], radius=0.25)
    U, V = points(instance)
    certificate = certify(make_problem(instance), U, V)
    check(certificate, instance, "hinge")
    np.testing.assert_allclose(
        certificate.U * np.abs(U).sum(), U * np.abs(certificate.U).sum(), rtol=1e-12
    )
    inside = 1e-3 * U
    np.testing.assert_array_equal(certify(make_problem(instance), inside, V).U, inside)


def test_rows_are_divided_by_their_sums() -> None:
    """A drift that rounding leaves is repaired; the checker allows 1e-12 and no more."""
    for name in ("three-classes", "ball"):
        instance = BY_NAME[name]
        U, V = points(instance)
        drift = 1 + 1e-8 * np.random.default_rng(1).uniform(-1, 1, (V.shape[0], 1))
        for drifted in (V * drift, sp.csr_array(V * drift)):
            check(certify(make_problem(instance), U, drifted), instance, "hinge")


@pytest.mark.parametrize("spoil", [
    lambda V: V * 1.001,
    lambda V: V - np.eye(V.shape[1])[np.zeros(len(V), int)] * 2 * V[:, [0]],
    lambda V: np.zeros_like(V),
    lambda V: V * np.nan,
])  # fmt: skip
def test_what_is_not_a_dual_point_is_refused(spoil) -> None:
    instance = BY_NAME["three-classes"]
    U, V = points(instance)
    with pytest.raises(ValueError, match="V is not a dual point"):
        certify(make_problem(instance), U, spoil(V))


@every_loss
@every_case
def test_sparse_points_give_the_same_bounds(name: str, loss: str) -> None:
    instance = BY_NAME[name]
    problem = make_problem(instance, loss)
    U, V = points(instance)
    U[np.abs(U) < 1] = 0.0
    V = np.eye(instance.k)[V.argmax(axis=1)] * 0.5 + np.eye(instance.k)[instance.y] * 0.5
    dense, sparse = certify(problem, U, V), certify(problem, sp.csr_array(U), sp.csr_array(V))
    assert sparse.primal == pytest.approx(dense.primal, rel=1e-12)
    assert sparse.dual == pytest.approx(dense.dual, rel=1e-9, abs=1e-12)
    check(sparse, instance, loss)


@every_loss
@pytest.mark.parametrize("name", ["three-classes", "weighted", "penalty-factors", "group"])
def test_no_feasible_point_on_the_ray_from_the_labels_is_better(name: str, loss: str) -> None:
    instance = BY_NAME[name]
    problem = make_problem(instance, loss)
    U, V = points(instance)
    Y = np.eye(instance.k)[instance.y]
    best = certify(problem, U, V).dual
    assert best >= 0.0  # V = Y is always feasible
    for s in np.linspace(0.0, 3.0, 400):
        W = Y + s * (V - Y)
        try:
            found = checker.bounds(
                instance.X, instance.y, U, W, loss=loss, **instance.check_arguments()
            )
        except AssertionError:  # outside the simplex, or beyond the bounds on G
            continue
        assert found.dual <= best + 1e-7


def test_the_arrays_are_not_changed() -> None:
    for name in ("three-classes", "ball"):
        U, V = points(BY_NAME[name])
        before = U.copy(), V.copy()
        certify(make_problem(BY_NAME[name]), U, V)
        np.testing.assert_array_equal(U, before[0])
        np.testing.assert_array_equal(V, before[1])


def test_zero_gap_at_a_known_optimum() -> None:
    """Above lambda_max U = 0 is optimal, and the certificate says so."""
    instance = replace(BY_NAME["three-classes"], lam=1e3)
    problem = make_problem(instance, "softmax")
    V = np.full((problem.n, problem.k), 1 / problem.k)
    certificate = certify(problem, np.zeros((problem.d, problem.k)), V)
    assert certificate.primal == pytest.approx(np.log(3))
    assert abs(certificate.gap) <= 1e-10


@pytest.mark.parametrize("k", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("copies", [1, 3, 7, 10])
def test_masses_that_already_match_stay_as_they_are(k: int, copies: int) -> None:
    """With an intercept V must carry the labels' masses; rounding alone must not spoil one."""
    n = k * copies
    X = np.random.default_rng(0).standard_normal((n, 3))
    y = np.arange(n) % k
    for loss in LOSS_NAMES:
        problem = Problem.from_data(X, y, loss=loss, lam=1.0, fit_intercept=True)
        others = (1 - np.eye(k)[y]) / (k - 1)
        for V in (np.full((n, k), 1 / k), np.eye(k)[y], others):
            certificate = certify(problem, np.zeros((problem.d, k)), V)
            assert np.isfinite([certificate.primal, certificate.dual]).all()
            assert np.isfinite(certificate.V).all()
            assert certificate.dual <= certificate.primal + 1e-12
            np.testing.assert_allclose(certificate.V.mean(axis=0), 1 / k, atol=1e-14)


def test_a_sparse_dual_point_has_the_constraints_of_a_dense_one() -> None:
    """With few non-zeros the product is a sparse one; weights and labels count as before."""
    rng = np.random.default_rng(1)
    n, d, k = 50, 6, 40
    X, y = rng.standard_normal((n, d)), rng.integers(0, k, n)
    weight = rng.random(n)
    problem = Problem.from_data(X, y, lam=0.1, classes=np.arange(k), sample_weight=weight)
    V = np.zeros((n, k))
    V[np.arange(n), rng.integers(0, k, n)] = 1.0
    W = (V - np.eye(k)[y]) * (weight / weight.sum())[:, None]
    expected = np.abs(X.T @ W).max(axis=1)
    for point in (V, sp.csr_array(V), sp.csc_array(V)):
        np.testing.assert_allclose(problem.gradient_row_norms(point), expected, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@every_loss
@pytest.mark.parametrize("name", ["three-classes", "weighted", "penalty-factors", "sparse-wide"])
def test_a_certificate_holds_for_a_smaller_penalty_without_a_product(
    name: str, loss: str, make, fit_intercept: bool
) -> None:
    problem = make_problem(BY_NAME[name], loss, fit_intercept=fit_intercept)
    rng = np.random.default_rng(0)
    U = rng.standard_normal((problem.d, problem.k))
    V = rng.dirichlet(np.full(problem.k, 0.3), problem.n)
    known = certify(problem, U, make(V))
    before = known.V.copy()
    for part in (1.0, 0.6, 0.0):
        other = problem.with_penalty(part * problem.lam)
        found = for_smaller_penalty(other, known, problem.lam)
        afresh = certify(other, found.U, found.V)
        assert found.primal == pytest.approx(afresh.primal, rel=1e-12)
        assert found.dual <= afresh.dual + 1e-12
        norms = other.gradient_row_norms(found.V)
        bounds = other.lam * other.penalty_factor
        assert (norms <= bounds + 1e-12).all()
    assert abs(known.V - before).max() == 0.0


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense V", "sparse V"])
def test_norms_that_limit_nothing_are_bounded_instead(make, positive: bool) -> None:
    """A rare feature is not multiplied where it cannot matter; the others' norms are exact."""
    rng = np.random.default_rng(0)
    n, d, k = 60, 40, 4
    X = sp.random_array((n, d), density=0.1, rng=rng).tocsr()
    V = np.zeros((n, k))
    V[np.arange(n), rng.integers(0, k, n)] = 1.0
    V[:3] = 1.0 / k
    problem = Problem.from_data(X, rng.integers(0, k, n), lam=0.01, positive=positive)
    exact = problem.gradient_row_norms(V)
    enough = np.full(d, np.median(exact))
    found = problem.gradient_row_norms(make(V), enough)
    assert (found >= exact * (1 - 1e-15)).all()
    larger = found > exact * (1 + 1e-12)
    assert larger.any()
    assert (found[larger] <= enough[larger]).all()
    assert (~larger).any()


@every_case
@every_loss
def test_another_dual_point_gives_the_certificate_of_the_pair(name: str, loss: str) -> None:
    instance = BY_NAME[name]
    problem = make_problem(instance, loss)
    (U, V), (_, other) = points(instance), points(instance, seed=1)
    found = with_dual_point(problem, certify(problem, U, V), other, "another")
    expected = certify(problem, U, other)
    assert (found.primal, found.dual) == (expected.primal, expected.dual)
    np.testing.assert_array_equal(found.V, expected.V)
    check(found, instance, loss)


def test_a_sparse_dual_point_is_read_by_rows(monkeypatch) -> None:
    """By columns the kernel takes four times as long, and is compiled once more."""
    problem = make_problem(BY_NAME["sparse"])
    V = sp.csr_array(np.full((problem.n, problem.k), 1.0 / problem.k))
    layouts = []
    monkeypatch.setattr(
        "fenchel.problem.raise_to_largest", lambda *a: layouts.append(a[1].flags.c_contiguous)
    )
    problem.gradient_row_norms(V)
    assert layouts == [True]


@pytest.mark.parametrize("at_a_time", [1 << 18, 13], ids=["at once", "in parts"])
def test_norms_of_columns_of_any_size(at_a_time: int, monkeypatch) -> None:
    """Those whose squares leave the range of floats are scaled before."""
    monkeypatch.setattr("fenchel.design.dense.SQUARED_ENTRIES", at_a_time)
    size = np.array([1.0, 0.0, 1e-170, 1e149, 3.0, 1e-90])
    X = np.random.default_rng(0).standard_normal((20, 6)) * size
    weights = np.full(20, 0.05)
    expected = size * np.sqrt(weights @ (X / np.where(size > 0, size, 1.0)) ** 2)
    np.testing.assert_allclose(DenseDesign(X).column_norms(weights), expected, rtol=1e-13)
    np.testing.assert_array_equal(DenseDesign(X[:, :2]).column_norms(weights)[1], 0.0)
