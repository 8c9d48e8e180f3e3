"""Properties that hold for any data: drawn by hypothesis, and a list of extreme cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import checker
import fenchel
import reference
from instances import BY_NAME, LOSS_NAMES, Instance
from support import SOLVER_NAMES, refusal, solve

#: Deterministic solvers: their whole path obeys the symmetries, not only the optimum.
DETERMINISTIC = ["mirror-descent", "mirror-prox"]

losses = st.sampled_from(LOSS_NAMES)
deterministic = st.sampled_from(DETERMINISTIC)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Small problems with every option; features on a grid, so that ties and zeros happen."""
    n, d, k = draw(st.integers(2, 8)), draw(st.integers(1, 6)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-3, 4, (n, d)) / 2 if draw(st.booleans()) else rng.standard_normal((n, d))
    X = X * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    y = rng.integers(0, k, n)
    lam = draw(st.sampled_from([1e-3, 0.05, 0.5])) * max(np.abs(X).max(), 1e-3)
    return Instance(
        "drawn",
        sp.csr_array(X) if draw(st.booleans()) else X,
        y,
        k,
        float(lam),
        weights=rng.integers(1, 5, n).astype(float) if draw(st.booleans()) else None,
        penalty_factor=rng.uniform(0.2, 3.0, d) if draw(st.booleans()) else None,
        radius=float(rng.uniform(0.1, 3.0)) if draw(st.booleans()) else None,
    )


def check(result: fenchel.Result, instance: Instance, loss: str) -> None:
    checker.check(result, instance.X, instance.y, loss=loss, **instance.check_arguments())


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@given(instance=instances(), loss=losses)
def test_every_certificate_holds(solver: str, instance: Instance, loss: str) -> None:
    """The checker asserts the values, the simplex, feasibility, and dual <= primal."""
    if refusal(solver, loss, instance):
        return
    result = solve(instance, loss, solver, max_passes=12)
    check(result, instance, loss)
    assert result.gap >= -1e-12 * max(1.0, result.primal)


@given(instance=instances(), loss=losses, solver=deterministic, seed=st.integers(0, 1000))
def test_permuting_classes_features_and_samples(
    instance: Instance, loss: str, solver: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n, d = instance.X.shape
    rows, columns, classes = rng.permutation(n), rng.permutation(d), rng.permutation(instance.k)
    other = replace(
        instance,
        X=checker.dense(instance.X)[rows][:, columns],
        y=np.argsort(classes)[instance.y][rows],
        weights=None if instance.weights is None else instance.weights[rows],
        penalty_factor=None
        if instance.penalty_factor is None
        else instance.penalty_factor[columns],
    )
    a, b = (solve(case, loss, solver, max_iter=12, tol=0.0) for case in (instance, other))
    scale = max(1.0, a.primal)
    assert b.primal == pytest.approx(a.primal, abs=1e-7 * scale)
    assert b.dual == pytest.approx(a.dual, abs=1e-7 * max(scale, abs(a.dual)))
    if a.point == b.point and not a.point.startswith("zero"):
        U, V = checker.dense(a.U), checker.dense(a.V)
        size = max(np.abs(U).max(), 1e-12)
        np.testing.assert_allclose(b.U, U[columns][:, classes], atol=1e-6 * size)
        if "dual" not in a.point:
            np.testing.assert_allclose(b.V, V[rows][:, classes], atol=1e-6)


@given(
    instance=instances(),
    loss=losses,
    solver=deterministic,
    factor=st.sampled_from([1e-6, 0.1, 3.0, 1e5]),
)
def test_scaling_the_features(instance: Instance, loss: str, solver: str, factor: float) -> None:
    """X a, lam a and R / a: the same problem in U / a."""
    other = replace(
        instance,
        X=instance.X * factor,
        lam=instance.lam * factor,
        radius=None if instance.radius is None else instance.radius / factor,
    )
    a, b = (solve(case, loss, solver, max_iter=12, tol=0.0) for case in (instance, other))
    scale = max(1.0, a.primal, abs(a.dual))
    assert b.primal == pytest.approx(a.primal, abs=1e-7 * scale)
    assert b.dual == pytest.approx(a.dual, abs=1e-7 * scale)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("factor", [1e-20, 1e-60])
@pytest.mark.parametrize("name", ["three-classes", "sparse"])
def test_tiny_features_take_no_more_iterations(name: str, factor: float, loss: str) -> None:
    """No limit of the Newton steps is in the units of X."""
    instance = BY_NAME[name]
    tiny = replace(instance, X=instance.X * factor, lam=instance.lam * factor)
    a, b = (solve(case, loss, "primal-dual", tol=1e-6, max_iter=500) for case in (instance, tiny))
    assert b.status == "converged"
    assert b.primal == pytest.approx(a.primal, abs=2e-6)
    assert b.n_iter <= a.n_iter + 5


@given(instance=instances(), loss=losses, solver=deterministic)
def test_a_weight_is_a_repetition(instance: Instance, loss: str, solver: str) -> None:
    n = instance.X.shape[0]
    counts = np.arange(n) % 4
    counts[0] = 2
    weighted = replace(instance, weights=counts.astype(float))
    repeated = replace(
        instance,
        X=np.repeat(checker.dense(instance.X), counts, axis=0),
        y=np.repeat(instance.y, counts),
        weights=None,
    )
    a, b = (solve(case, loss, solver, max_iter=12, tol=0.0) for case in (weighted, repeated))
    scale = max(1.0, a.primal, abs(a.dual))
    assert b.primal == pytest.approx(a.primal, abs=1e-7 * scale)
    assert b.dual == pytest.approx(a.dual, abs=1e-7 * scale)


@given(instance=instances(), loss=losses, solver=deterministic)
def test_doubling_a_feature_with_its_price_changes_nothing(
    instance: Instance, loss: str, solver: str
) -> None:
    """[X, X] has the optimum of X: bounds of either problem bound both."""
    X = checker.dense(instance.X)
    factors = instance.penalty_factor
    doubled = replace(
        instance,
        X=np.concatenate([X, X], axis=1),
        penalty_factor=None if factors is None else np.concatenate([factors, factors]),
    )
    a, b = (solve(case, loss, solver, max_iter=30) for case in (instance, doubled))
    slack = 1e-9 * max(1.0, a.primal, b.primal)
    assert a.dual <= b.primal + slack
    assert b.dual <= a.primal + slack


@given(instance=instances(), loss=losses, solver=st.sampled_from(SOLVER_NAMES))
def test_the_type_of_the_matrix_does_not_matter(instance: Instance, loss: str, solver: str) -> None:
    if refusal(solver, loss, instance):
        return
    dense = checker.dense(instance.X)
    wide = sp.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    narrow = sp.csr_array(dense)
    narrow.indices, narrow.indptr = narrow.indices.astype(np.int32), narrow.indptr.astype(np.int32)
    budget: dict = {"max_passes": 12, "tol": 0.0}
    if solver in ("primal-dual", "proximal-newton"):
        budget = {"tol": 1e-8}  # one type may need a step more where the curvature is singular
    results = [solve(replace(instance, X=X), loss, solver, **budget) for X in (dense, wide, narrow)]
    assert results[1].primal == results[2].primal  # the same sums in the same order
    assert results[1].dual == results[2].dual
    scale = max(1.0, results[0].primal, abs(results[0].dual))
    assert results[1].primal == pytest.approx(results[0].primal, abs=1e-6 * scale)
    assert results[1].dual == pytest.approx(results[0].dual, abs=1e-6 * scale)


@given(instance=instances(), loss=losses, solver=deterministic)
def test_single_precision_is_close(instance: Instance, loss: str, solver: str) -> None:
    single = replace(instance, X=checker.dense(instance.X).astype(np.float32))
    same = replace(instance, X=single.X.astype(np.float64))
    a, b = (solve(case, loss, solver, max_iter=12, tol=0.0) for case in (single, same))
    scale = max(1.0, a.primal, abs(a.dual))
    assert a.U.dtype == a.V.dtype == np.float64
    assert a.primal == pytest.approx(b.primal, abs=1e-9 * scale)  # products are in float64
    check(a, single, loss)


def strip(instance: Instance) -> dict[str, Any]:
    """Arguments of lambda_max."""
    arguments = instance.arguments()
    return {name: arguments[name] for name in ("sample_weight", "penalty_factor", "classes")}


@given(instance=instances(), loss=losses)
def test_lambda_max_is_where_the_solution_leaves_zero(instance: Instance, loss: str) -> None:
    instance = replace(instance, radius=None)
    top = fenchel.lambda_max(instance.X, instance.y, loss=loss, **strip(instance))
    assert top >= 0
    if top == 0:
        return
    above = replace(instance, lam=top * (1 + 1e-6))
    result = solve(above, loss, "mirror-prox", tol=1e-3, max_iter=20_000)
    # zero is optimal there: no certified bound may exclude it
    at_zero = result.history[0].primal
    assert result.dual <= at_zero + 1e-9
    assert result.primal >= at_zero * (1 - 1e-9)
    assert not np.any(checker.dense(result.U))


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["binary-wide", "three-classes", "sparse", "weighted",
                                  "penalty-factors", "absent-class"])  # fmt: skip
def test_lambda_max_is_sharp(name: str, loss: str) -> None:
    """At lambda_max U = 0 is optimal, a little below it is not (by the reference solvers)."""
    instance = BY_NAME[name]
    top = fenchel.lambda_max(instance.X, instance.y, loss=loss, **strip(instance))
    at_zero = {"hinge": 1.0, "softmax": np.log(instance.k), "sparsemax": 0.5 * (1 - 1 / instance.k)}
    for factor in (1.0, 0.95, 0.5):
        case = replace(instance, lam=factor * top, name=f"{name}-top-{factor}")
        optimum = reference.optimum(case, loss)
        if factor == 1.0:
            assert optimum == pytest.approx(at_zero[loss], abs=1e-6)
        else:
            assert optimum < at_zero[loss] - 1e-5
    result = solve(case, loss, "mirror-prox", tol=0.0, max_iter=300)
    assert np.any(result.U)
    assert result.primal < at_zero[loss]


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("factor", [1e-100, 1e-6, 1e6, 1e100])
def test_lambda_max_scales_with_the_features(factor: float, loss: str) -> None:
    instance = BY_NAME["weighted"]
    arguments = strip(instance) | {"loss": loss}
    plain = fenchel.lambda_max(instance.X, instance.y, **arguments)
    scaled = fenchel.lambda_max(instance.X * factor, instance.y, **arguments)
    assert scaled == pytest.approx(factor * plain, rel=2e-7)


# --- extreme values: an error or a finite answer, never NaN ---------------------------------------


def extreme_cases() -> dict[str, dict[str, Any]]:
    base = BY_NAME["three-classes"]
    X, y = base.X, base.y
    mixed = X.copy()
    mixed[:, 0] *= 1e300
    mixed[:, 1] *= 1e-300
    tiny_column = X.copy()
    tiny_column[:, 0] = 5e-324
    empty_rows = X.copy()
    empty_rows[::2] = 0.0
    return {
        "large": {"X": X * 1e140, "lam": 1e138},
        "large-small-lam": {"X": X * 1e140, "lam": 0.1},
        "small": {"X": X * 1e-140, "lam": 1e-142},
        "huge": {"X": X * 1e300, "lam": 1e298},
        "huge-small-lam": {"X": X * 1e300, "lam": 0.1},
        "tiny": {"X": X * 1e-300, "lam": 1e-302},
        "tiny-large-lam": {"X": X * 1e-300, "lam": 0.1},
        "mixed": {"X": mixed},
        "subnormal": {"X": tiny_column},
        "zero-matrix": {"X": np.zeros_like(X)},
        "empty-sparse": {"X": sp.csr_array(X.shape)},
        "constant": {"X": np.ones_like(X)},
        "empty-rows": {"X": empty_rows},
        "empty-column": {"X": np.where(np.arange(X.shape[1]) == 1, 0.0, X)},
        "one-sample-a-class": {"X": X[:3], "y": np.arange(3)},
        "one-sample": {"X": X[:1], "y": [0], "classes": [0, 1, 2]},
        "one-feature": {"X": X[:, :1]},
        "duplicated-rows": {"X": np.repeat(X[:5], 6, axis=0)},
        "contradicting-labels": {"X": np.repeat(X[:10], 3, axis=0), "y": np.arange(30) % 3},
        "two-classes": {"y": y % 2},
        "one-present-class": {"y": np.zeros(y.size, int), "classes": [0, 1]},
        "many-absent-classes": {"classes": np.arange(60)},
        "tiny-lam": {"lam": 1e-300},
        "huge-lam": {"lam": 1e300},
        "zero-lam-ball": {"lam": 0.0, "radius": 1.0},
        "tiny-ball": {"radius": 1e-300},
        "huge-ball": {"radius": 1e300},
        "one-heavy-sample": {"sample_weight": np.where(np.arange(y.size) == 0, 1e300, 1e-300)},
        "wild-factors": {"penalty_factor": np.logspace(-8, 8, X.shape[1])},
    }


EXTREME = extreme_cases()


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_values_give_an_answer_or_an_error(name: str, solver: str) -> None:
    base = BY_NAME["three-classes"]
    for loss in LOSS_NAMES:
        arguments = {"X": base.X, "y": base.y, "lam": 0.05, "rng": 0, "max_passes": 12}
        arguments |= EXTREME[name]
        try:
            result = fenchel.solve(
                arguments.pop("X"), arguments.pop("y"), loss=loss, solver=solver, **arguments
            )
        except ValueError as error:
            assert len(str(error)) > 30  # a sentence of ours  # noqa: PT017
            assert any(  # noqa: PT017
                word in str(error) for word in ("radius", "loss", "lam", "X", "scale")
            )
            continue
        values = [result.primal, result.dual, result.gap]
        assert np.isfinite(values).all(), (loss, values, result.status)
        assert np.isfinite(checker.dense(result.U)).all()
        V = checker.dense(result.V)
        assert V.min() >= 0
        assert np.abs(V.sum(axis=1) - 1).max() <= 1e-12
        assert result.dual <= result.primal * (1 + 1e-12) + 1e-12
        assert not any(np.isnan(record.best_gap) for record in result.history)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["huge", "tiny", "zero-matrix", "constant", "one-sample-a-class",
                                  "duplicated-rows", "two-classes"])  # fmt: skip
def test_lambda_max_of_extreme_values(name: str, loss: str) -> None:
    base = BY_NAME["three-classes"]
    arguments = {"X": base.X, "y": base.y} | EXTREME[name]
    if name == "huge":
        with pytest.raises(ValueError, match=r"X has entries as large as .* scale the columns"):
            fenchel.lambda_max(arguments["X"], arguments["y"], loss=loss)
        return
    top = fenchel.lambda_max(arguments["X"], arguments["y"], loss=loss)
    assert np.isfinite(top)
    assert top >= 0


def test_lambda_max_does_not_search_among_rounding_errors(monkeypatch: Any) -> None:
    """Constant features and classes of one size: every gradient is zero, but for rounding."""
    monkeypatch.setattr("fenchel.null_penalty._solution", None)
    assert 0.0 <= fenchel.lambda_max(np.full((150, 4), 3.0), np.arange(150) % 3) < 1e-14


def test_lambda_max_of_the_hinge_loss_beside_an_intercept() -> None:
    """Just above it only the intercept is left, below it a coefficient is not zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = (X @ rng.standard_normal((4, 3)) + [0.8, 0.0, -0.8]).argmax(axis=1)
    top = fenchel.lambda_max(X, y, fit_intercept=True)
    above = fenchel.solve(X, y, lam=1.001 * top, fit_intercept=True, tol=1e-7)
    below = fenchel.solve(X, y, lam=0.97 * top, fit_intercept=True, tol=1e-7)
    assert np.abs(above.U).sum() * top <= 1e-4
    assert np.abs(below.U).sum() * top > 1e-4
