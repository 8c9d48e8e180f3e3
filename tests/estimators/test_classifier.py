"""What the estimator adds to ``fenchel.solve``: conventions, attributes, warnings, predictions."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import SparseLinearClassifier
from fenchel.losses import Hinge

LOSSES = ("hinge", "softmax", "sparsemax")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["set", "versi", "virg"])[y]


@pytest.fixture(scope="module")
def fitted(iris):
    return {loss: SparseLinearClassifier(loss=loss, alpha=1e-2).fit(*iris) for loss in LOSSES}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_belongs_to_the_coefficients(fitted, iris, loss):
    X, y = iris
    model = fitted[loss]
    problem = fenchel.problem.Problem.from_data(X, y, loss=loss, lam=1e-2)
    scores = X @ model.coef_.T + model.intercept_
    risk = problem.loss.value(scores, problem.y).mean()
    assert model.objective_ == pytest.approx(risk + 1e-2 * np.abs(model.coef_).sum(), rel=1e-12)
    assert model.dual_gap_ == model.objective_ - model.dual_objective_ <= 1e-3 * problem.at_zero
    assert model.status_ == "converged"
    assert model.history_[-1].best_gap == pytest.approx(model.dual_gap_, abs=1e-15)
    assert model.intercept_.sum() == pytest.approx(0, abs=1e-12)


def test_one_warning_says_gap_tolerance_and_remedy(iris):
    model = SparseLinearClassifier(alpha=1e-3, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*iris)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert f"{model.dual_gap_:.3g}" in text
    assert "tol * P(0) = 1e-09 * 1 = 1e-09" in text
    assert "raise max_iter above 1, scale the features" in text
    assert caught[0].filename == __file__
    assert model.status_ == "max_iter"


def test_the_warning_knows_rounding_and_the_better_solver(iris):
    with pytest.warns(ConvergenceWarning, match="raise tol, because a gap of this size is round"):
        SparseLinearClassifier("softmax", alpha=0.05, tol=0.0, max_iter=60).fit(*iris)
    with pytest.warns(ConvergenceWarning, match="above 3, use solver='auto'"):
        SparseLinearClassifier(solver="mirror-prox", max_iter=3).fit(*iris)
    with pytest.warns(ConvergenceWarning) as caught:  # where there is no better one
        SparseLinearClassifier("softmax", penalty="group", max_iter=3).fit(*iris)
    assert "auto" not in str(caught[0].message)


def test_parameters_are_untouched_and_survive_clone(iris):
    factor = np.array([1.0, 2.0, 1.0, 0.5])
    params = {"penalty_factor": factor, "class_weight": {"set": 2.0}, "loss": "softmax"}
    model = SparseLinearClassifier(**params)
    before = model.get_params()
    model.fit(*iris)
    assert all(model.get_params()[name] is before[name] for name in before)
    assert clone(model).get_params()["penalty_factor"].tolist() == factor.tolist()


def test_pickle_pipeline_and_grid_search(iris):
    X, y = iris
    model = make_pipeline(StandardScaler(), SparseLinearClassifier(loss="softmax"))
    search = GridSearchCV(model, {"sparselinearclassifier__alpha": [1e-1, 1e-2]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict_proba(X) == search.predict_proba(X)).all()


def test_metadata_routing_hands_the_weights_on(iris):
    X, y = iris
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseLinearClassifier().set_fit_request(sample_weight=True)
        with pytest.raises(TypeError):
            cross_val_score(model, X, y, params={"weights": np.ones(y.size)})
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, y, params={"sample_weight": (y == "set") + 1e-6})
    assert scores.mean() < 0.8  # hardly more than one class has weight


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_give_names(iris, library):
    X, y = iris
    frame = pytest.importorskip(library).DataFrame({f"f{j}": X[:, j] for j in range(4)})
    model = SparseLinearClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (model.predict(frame) == SparseLinearClassifier().fit(X, y).predict(X)).all()


def test_float32_in_is_a_float32_model(iris):
    X, y = iris
    model = SparseLinearClassifier(loss="softmax", alpha=1e-2).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32
    reference = SparseLinearClassifier(loss="softmax", alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.02)


def test_hinge_has_no_probabilities_and_says_what_has(fitted, iris):
    assert not hasattr(fitted["hinge"], "predict_proba")
    with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
        fitted["hinge"].predict_proba(iris[0])


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_in_a_stack_of_models(iris, loss):
    X, y = iris
    models = [(f"{alpha}", SparseLinearClassifier(loss, alpha=alpha)) for alpha in (0.01, 0.1)]
    stack = StackingClassifier(models, cv=3).fit(X, y)  # goes by the names of methods
    assert stack.stack_method_ == ["decision_function" if loss == "hinge" else "predict_proba"] * 2
    assert stack.score(X, y) > 0.9


def test_methods_for_probabilities_have_names_and_signatures():
    for name in ("predict_proba", "predict_log_proba"):
        assert getattr(SparseLinearClassifier("softmax"), name).__name__ == name
        assert list(inspect.signature(getattr(SparseLinearClassifier, name)).parameters) == [
            "self",
            "X",
        ]


def test_probabilities(fitted, iris):
    X, _ = iris
    for loss in ("softmax", "sparsemax"):
        P = fitted[loss].predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
        assert (fitted[loss].classes_[P.argmax(axis=1)] == fitted[loss].predict(X)).all()
    scores = fitted["softmax"].decision_function(X)
    odds = np.log(fitted["softmax"].predict_proba(X))
    np.testing.assert_allclose(odds[:, 0] - odds[:, 1], scores[:, 0] - scores[:, 1], atol=1e-9)
    assert (fitted["sparsemax"].predict_proba(X) == 0).any()


def test_two_classes(iris):
    X, y = iris
    model = SparseLinearClassifier(loss="softmax").fit(X[:100], y[:100])
    assert model.coef_.shape == (2, 4)
    margin = model.decision_function(X)
    assert margin.shape == (150,)
    P = model.predict_proba(X)
    np.testing.assert_allclose(np.log(P[:, 1] / P[:, 0]), margin, atol=1e-9)


@pytest.mark.parametrize("sparse_coef", [False, True])
@pytest.mark.parametrize("sparse_X", [False, True])
@pytest.mark.parametrize("working_memory", [1024, 0.002])
def test_predictions_do_not_depend_on_blocks_or_layout(
    fitted, iris, sparse_coef, sparse_X, working_memory
):
    X, _ = iris
    model = clone(fitted["softmax"]).set_params(warm_start=False)
    model.__dict__.update(fitted["softmax"].__dict__)
    model = model.sparsify() if sparse_coef else model.densify()
    scores = X @ fitted["softmax"].densify().coef_.T + model.intercept_
    given = sp.csr_array(X) if sparse_X else X
    with sklearn.config_context(working_memory=working_memory):
        np.testing.assert_allclose(model.decision_function(given), scores, atol=1e-12)
        assert (model.predict(given) == model.classes_[scores.argmax(axis=1)]).all()
        labels, values = model.predict_topk(given, 2, return_scores=True)
    order = np.argsort(-scores, axis=1)[:, :2]
    assert (labels == model.classes_[order]).all()
    np.testing.assert_allclose(values, np.take_along_axis(scores, order, 1), atol=1e-12)


@pytest.mark.parametrize("sparse_coef", [False, True])
@pytest.mark.parametrize("sparse_X", [False, True])
@pytest.mark.parametrize("k", [3, 400])
def test_predictions_stay_within_working_memory(sparse_coef, sparse_X, k):
    rng = np.random.default_rng(0)
    n, d = 10_000, 1000  # with three classes X is large beside the scores, with 400 small
    X = sp.random_array((n, d), density=0.3, dtype=np.float32, format="csr", rng=rng)
    model = SparseLinearClassifier("softmax")
    model.coef_ = sp.random_array((k, d), density=0.1, format="csr", rng=rng)
    model.intercept_, model.classes_, model.n_features_in_ = np.zeros(k), np.arange(k), d
    model = model if sparse_coef else model.densify()
    X = X if sparse_X else X.toarray()
    budget = 4 * 2**20
    coefficients = 2 * 8 * k * d  # a product may turn them
    with sklearn.config_context(working_memory=budget / 2**20, assume_finite=True):
        for predict, *more in [
            (model.predict,),
            (model.predict_topk, 2),
            (model.predict_proba,),
            (model.predict_log_proba,),
        ]:
            predict(X[:9], *more)  # compiles
            tracemalloc.start()
            answer = predict(X, *more)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 1.2 * budget + coefficients + answer.nbytes


def test_topk_by_sorting_is_topk_by_search_also_for_ties(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (200, 3)).astype(float)
    coef = rng.integers(-1, 2, (9, 3)).astype(float)
    found = next(fenchel.prediction.top_blocks(X, coef, np.zeros(9), 4))[1:]
    monkeypatch.setattr(fenchel.prediction, "FEW", 0)
    by_sorting = next(fenchel.prediction.top_blocks(X, coef, np.zeros(9), 4))[1:]
    assert (found[0] == by_sorting[0]).all()
    assert (found[1] == by_sorting[1]).all()


def test_topk_by_default(fitted, iris):
    X, _ = iris
    assert (fitted["hinge"].predict_topk(X) == fitted["hinge"].predict_topk(X, 3)).all()
    many = SparseLinearClassifier("softmax", alpha=0.1).fit(X, np.arange(len(X)) % 8)
    assert many.predict_topk(X).shape == (len(X), 5)


@pytest.mark.parametrize("n_top", [0, 4, 2.5, "2"])
def test_topk_refuses_what_is_no_number_of_classes(fitted, iris, n_top):
    with pytest.raises(ValueError, match=r"n_top .* number of classes \(3\)"):
        fitted["hinge"].predict_topk(iris[0], n_top)


def test_large_sparse_coefficients_are_kept_sparse():
    X = sp.random_array((60, 200_000), density=1e-3, rng=0, format="csr")
    y = np.arange(60) % 3
    X = X + sp.csr_array((np.ones(60), (np.arange(60), y)), shape=X.shape)
    model = SparseLinearClassifier(loss="softmax", alpha=1e-2).fit(X, y)
    assert sp.issparse(model.coef_)
    assert model.coef_.shape == (3, 200_000)
    assert model.score(X, y) == 1.0
    scores = model.decision_function(X)
    np.testing.assert_allclose(model.densify().decision_function(X), scores, atol=1e-12)


def test_warm_start_uses_both_points(iris):
    model = SparseLinearClassifier(alpha=1e-2, tol=1e-5, warm_start=True).fit(*iris)
    cold = model.n_iter_
    model.fit(*iris)
    assert cold > 0
    assert model.n_iter_ == 0  # the certified pair is certified at once
    model.fit(iris[0][:120], iris[1][:120])  # other rows: the primal point alone
    assert model.status_ == "converged"


def test_class_weight_is_a_sample_weight(iris):
    X, y = iris
    keep = np.r_[0:50, 50:60, 100:130]
    options = {"loss": "sparsemax", "alpha": 1e-2, "tol": 1e-10}
    weights = np.where(y[keep] == "set", 1 / 50, np.where(y[keep] == "versi", 1 / 10, 1 / 30))
    balanced = SparseLinearClassifier(class_weight="balanced", **options).fit(X[keep], y[keep])
    weighted = SparseLinearClassifier(**options).fit(X[keep], y[keep], weights)
    assert balanced.objective_ == pytest.approx(weighted.objective_, abs=1e-9)
    assert balanced.objective_ != pytest.approx(
        SparseLinearClassifier(**options).fit(X[keep], y[keep]).objective_, abs=1e-4
    )


def test_alpha_as_a_fraction_of_lambda_max(iris):
    X, y = iris
    options = {"loss": "softmax", "alpha_scale": "max", "tol": 1e-9}
    zero = SparseLinearClassifier(alpha=1.001, **options | {"tol": 1e-5}).fit(X, y)
    assert not zero.coef_.any()
    model = SparseLinearClassifier(alpha=0.98, **options).fit(X, y)
    assert model.coef_.any()
    largest = fenchel.lambda_max(X, y, loss="softmax", fit_intercept=True)
    assert model.alpha_ == pytest.approx(0.98 * largest, rel=1e-12)
    assert model.alpha == 0.98
    with pytest.raises(ValueError, match="alpha_scale must be 'absolute' or 'max'"):
        SparseLinearClassifier(alpha_scale="relative").fit(X, y)


def test_callback_can_stop_and_verbose_shows_the_checks(iris, capsys):
    records = []

    def stop_at_second(record):
        records.append(record)
        return len(records) == 2

    model = SparseLinearClassifier(alpha=1e-3, tol=1e-9, callback=stop_at_second, verbose=1)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(*iris)
    assert model.status_ == "interrupted"
    assert records == model.history_
    assert capsys.readouterr().err.count("certified gap") >= 2


def test_scikit_learn_callbacks_are_told(iris):
    pytest.importorskip("sklearn.callback")

    class Counter:
        begun = ended = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1

    counter = Counter()
    model = SparseLinearClassifier().set_callbacks(counter).fit(*iris)
    assert counter.begun == counter.ended == 1 + len(model.history_)


def test_scikit_learn_callbacks_get_a_model_that_predicts(iris):
    pytest.importorskip("sklearn.callback")
    X, y = iris
    seen = []

    class Watcher:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator, metadata):
            seen.append((fitted_estimator.score(X, y), fitted_estimator.coef_.copy()))
            assert (metadata["sample_weight"] == 1).all()

    model = SparseLinearClassifier(tol=1e-4).set_callbacks(Watcher())
    model.fit(X, y, np.ones(y.size))
    assert len(seen) == 1 + len(model.history_)
    assert (seen[-1][1] == model.coef_).all()
    assert (seen[-2][1] == model.coef_).all()  # the last check is the end of the fit
    assert not seen[0][1].any()
    assert seen[-1][0] == model.score(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_positive_allows_no_negative_coefficient(fitted, iris, loss):
    model = SparseLinearClassifier(loss=loss, alpha=1e-2, positive=True).fit(*iris)
    assert model.status_ == "converged"
    assert model.coef_.min() == 0.0
    assert fitted[loss].coef_.min() < 0.0
    assert model.objective_ > fitted[loss].dual_objective_


def test_labels_that_cannot_be_sorted_are_refused_in_words(iris):
    X, _ = iris
    with pytest.raises(ValueError, match="drop the rows without a label"):
        SparseLinearClassifier().fit(X, np.array(["a", None, "b"] * 50, dtype=object))
    with pytest.raises(ValueError, match=r"one class only \(7\)"):
        SparseLinearClassifier().fit(X, np.full(150, 7))


def test_loss_objects(iris):
    X, y = iris
    cost = np.array([[0, 1, 1], [5, 0, 5], [1, 1, 0]], dtype=float)
    model = SparseLinearClassifier(Hinge(cost=cost), alpha=1e-2).fit(X, y)
    assert model.status_ == "converged"
    assert not hasattr(model, "predict_proba")


def test_digits_dense_and_sparse_agree():
    X, y = load_digits(return_X_y=True)
    X = X[:400] / 16
    dense = SparseLinearClassifier(loss="sparsemax", alpha=1e-2, tol=1e-6).fit(X, y[:400])
    sparse = SparseLinearClassifier(loss="sparsemax", alpha=1e-2, tol=1e-6).fit(
        sp.csr_array(X), y[:400]
    )
    assert dense.objective_ == pytest.approx(sparse.objective_, abs=2e-6)
    assert (dense.predict(X) == sparse.predict(X)).mean() > 0.99


@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_is_one_over_c_times_the_weights(iris, weighted):
    X, y = iris
    weights = np.random.default_rng(0).integers(1, 4, y.size) if weighted else np.ones(y.size)
    peer = LogisticRegression(l1_ratio=1, C=0.5, solver="saga", tol=1e-7, max_iter=10_000)
    peer.fit(X, y, weights)
    model = SparseLinearClassifier("softmax", alpha=1 / (0.5 * weights.sum()), tol=1e-12)
    model.fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)
