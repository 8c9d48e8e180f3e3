"""Ctrl-C, callbacks and time limits outside the plain fit: nothing goes on as if all were well."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import SparseLinearClassifier, SparseLinearClassifierCV
from fenchel import path as paths
from fenchel.solvers.primal_dual import PrimalDual


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture
def ctrl_c(monkeypatch):
    """``ctrl_c(n)`` interrupts the n-th slice of iterations from now on."""
    advance, left = PrimalDual.advance, [None]

    def interrupted(self, state, n_steps):
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        advance(self, state, n_steps)

    monkeypatch.setattr(PrimalDual, "advance", interrupted)

    def press(at):
        left[0] = at

    return press


def slices(monkeypatch, call):
    """How many slices of iterations a call takes."""
    advance, made = PrimalDual.advance, []
    with monkeypatch.context() as patch:
        patch.setattr(PrimalDual, "advance", lambda *a: (made.append(1), advance(*a)))
        call()
    return len(made)


def test_a_path_ends_with_the_interrupted_point(iris, ctrl_c):
    model = SparseLinearClassifier("softmax", tol=1e-6)
    whole = model.path(*iris, alphas=6)
    ctrl_c(4)
    with pytest.warns(ConvergenceWarning, match=r"interrupted: it has \d of 6 points") as caught:
        path = model.path(*iris, alphas=6)
    assert caught[0].filename == __file__
    assert 0 < len(path) < 6
    assert path[-1].status == "interrupted"
    assert all(point.status == "converged" for point in path[:-1])
    assert path[-1].dual_objective <= whole[len(path) - 1].objective <= path[-1].objective + 1e-5


def test_a_path_that_is_interrupted_between_two_points_keeps_those_so_far(iris, monkeypatch):
    made, start = [], paths._start

    def interrupted(*arguments):
        made.append(1)
        if len(made) == 3:
            raise KeyboardInterrupt
        return start(*arguments)

    monkeypatch.setattr(paths, "_start", interrupted)
    with pytest.warns(ConvergenceWarning, match="it has 3 of 6 points"):
        path = SparseLinearClassifier("softmax").path(*iris, alphas=6)
    assert [point.status for point in path] == ["converged"] * 3


def test_the_folds_raise(iris, ctrl_c):
    """A penalty is not chosen from folds that were cut short."""
    model = SparseLinearClassifierCV("softmax", alphas=4, cv=3)
    ctrl_c(5)
    with pytest.raises(KeyboardInterrupt, match="in the folds"):
        model.fit(*iris)
    assert not hasattr(model, "coef_")


def test_the_fit_after_the_folds_is_certified_for_the_chosen_penalty(iris, ctrl_c, monkeypatch):
    X, y = iris
    model = SparseLinearClassifierCV("softmax", alphas=8, eps=1e-3, cv=3)
    total = slices(monkeypatch, lambda: model.fit(X, y))
    alpha, objective = model.alpha_, model.objective_
    grid, alone = model.alphas_[model.alphas_ >= alpha], SparseLinearClassifier("softmax")
    last = slices(monkeypatch, lambda: alone.path(X, y, alphas=grid))
    assert last > 3
    ctrl_c(total - last + 2)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert (model.status_, model.alpha_) == ("interrupted", alpha)
    risk = fenchel.losses.get_loss("softmax").value(X @ model.coef_.T + model.intercept_, y).mean()
    assert model.objective_ == pytest.approx(risk + alpha * np.abs(model.coef_).sum(), rel=1e-12)
    assert model.dual_objective_ <= objective < model.objective_
    assert model.dual_gap_ == model.objective_ - model.dual_objective_


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_search_for_lambda_max_raises(iris, ctrl_c, fit_intercept, monkeypatch):
    monkeypatch.setattr("fenchel.null_program.MOST_ENTRIES", 0)  # or a linear program has it
    ctrl_c(2)
    with pytest.raises(KeyboardInterrupt, match="lambda_max"):
        fenchel.lambda_max(*iris, fit_intercept=fit_intercept)
    model = SparseLinearClassifier(alpha=0.1, alpha_scale="max", fit_intercept=fit_intercept)
    ctrl_c(2)
    with pytest.raises(KeyboardInterrupt, match="lambda_max"):
        model.fit(*iris)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_search_for_lambda_max_has_the_time_of_the_fit(iris, fit_intercept):
    options = {"alpha_scale": "max", "max_time": 1e-6, "fit_intercept": fit_intercept}
    with pytest.raises(TimeoutError, match=r"lambda_max.*raise max_time.*alpha_scale='absolute'"):
        SparseLinearClassifier(alpha=0.1, **options).fit(*iris)
    with pytest.raises(TimeoutError, match="lambda_max"):
        SparseLinearClassifier(**options).path(*iris, alphas=[0.5, 0.1])
    with pytest.raises(TimeoutError, match="lambda_max"):
        SparseLinearClassifierCV(alphas=[0.5, 0.1], **options).fit(*iris)


def test_what_the_search_took_is_missing_afterwards(iris, monkeypatch):
    def slow(problem, max_time):
        time.sleep(0.02)
        return 0.1

    monkeypatch.setattr(paths, "smallest_null_penalty", slow)
    model = SparseLinearClassifier(alpha=0.01, alpha_scale="max", tol=1e-12, max_time=0.01)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model.fit(*iris)
    assert (model.status_, model.n_iter_) == ("max_time", 0)
    with pytest.raises(TypeError, match="max_time must be a number"):
        SparseLinearClassifier(max_time="1").fit(*iris)


def test_numpys_true_stops_a_fit(iris):
    model = SparseLinearClassifier(tol=1e-9, callback=lambda record: np.bool_(True))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(*iris)
    assert len(model.history_) == 1
    model = SparseLinearClassifier(callback=lambda record: 1)  # a count, say, is no answer
    assert model.fit(*iris).status_ == "converged"


def test_a_path_tells_the_callback_and_the_log_of_every_check(iris, capsys):
    records = []
    model = SparseLinearClassifier("softmax", callback=records.append, verbose=1)
    path = model.path(*iris, alphas=4)
    assert sum(record.iteration == 0 for record in records) == len(path) == 4
    ends = [b for b, a in zip(records, [*records[1:], records[0]], strict=True) if a.iteration == 0]
    assert [record.iteration for record in ends] == [point.n_iter for point in path]
    assert capsys.readouterr().err.count(" s: primal ") == len(records)


def test_a_callback_ends_a_path(iris):
    records = []

    def second_point(record):
        records.append(record)
        return sum(r.iteration == 0 for r in records) == 2

    model = SparseLinearClassifier("softmax", tol=1e-6, callback=second_point)
    with pytest.warns(ConvergenceWarning, match="it has 2 of 4 points"):
        path = model.path(*iris, alphas=4)
    assert [point.status for point in path] == ["converged", "interrupted"]


def test_cross_validation_tells_the_callback_of_the_fit_on_all_data(iris):
    records = []
    model = SparseLinearClassifierCV("softmax", alphas=4, cv=3, callback=records.append)
    model.fit(*iris)
    chosen = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    assert sum(record.iteration == 0 for record in records) == chosen + 1
    assert records[-len(model.history_) :] == model.history_


def test_a_path_tells_scikit_learn_callbacks(iris):
    pytest.importorskip("sklearn.callback")
    told = []

    class Watcher:
        def setup(self, estimator, context):
            told.append("setup")

        def teardown(self, estimator, context):
            told.append("teardown")

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            told.append(context.task_name)

    records = []
    model = SparseLinearClassifier("softmax", callback=records.append).set_callbacks(Watcher())
    model.path(*iris, alphas=3)
    assert told == ["setup", *["check"] * len(records), "fit", "teardown"]
    assert not hasattr(model, "classes_")
