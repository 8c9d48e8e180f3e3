"""The features of a working set of sparse data as dense data."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.problem import Problem
from fenchel.solvers import gathered as module
from fenchel.solvers import joined, proximal_newton
from fenchel.solvers.base import Start
from fenchel.solvers.gathered import gathered, gathers
from fenchel.solvers.proximal_newton import ProximalNewton

N, D, K = 250, 120, 5


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    """Gather also what is small."""
    monkeypatch.setattr(module, "LEAST_STORED", 0)


def data():
    """Every third feature is frequent, the others are rare."""
    rng = np.random.default_rng(0)
    often = np.where(np.arange(D) % 3 == 0, 0.5, 0.02)
    X = np.where(rng.random((N, D)) < often, rng.standard_normal((N, D)), 0.0)
    scores = X[:, :30:3] @ rng.standard_normal((10, K)) + 0.3 * rng.standard_normal((N, K))
    return sp.csr_array(X), np.argmax(scores, axis=1)


def state_of(features, **options):
    """A state with entries of these features in some classes."""
    X, y = data()
    options = {"loss": "softmax", "lam": 0.01, "classes": np.arange(K)} | options
    problem = Problem.from_data(X, y, **options)
    rng = np.random.default_rng(1)
    U = np.zeros((problem.d, K))
    U[features] = rng.standard_normal((len(features), K)) * (rng.random((len(features), K)) < 0.7)
    U = np.abs(U) if options.get("positive") else U
    solver = ProximalNewton()
    return solver.init(problem, Start(U, None), np.random.default_rng(0), 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "sparsemax"}, {"fit_intercept": True}, {"fit_intercept": True, "positive": True},
     {"penalty_factor": np.linspace(0.5, 2.0, D)}, {"sample_weight": np.linspace(1.0, 2.0, N)}],
)  # fmt: skip
def test_steps_see_the_same_problem(options):
    state = state_of([0, 3, 9, 30, 60], **options)
    small, features = gathered(state)
    assert gathers(state)
    assert not small.columns.sparse
    entries, here = state.entries, small.entries
    np.testing.assert_array_equal(features[here.feature], entries.feature)
    np.testing.assert_array_equal(here.klass, entries.klass)
    assert small.Z is state.Z
    assert small.V is state.V
    s = np.random.default_rng(2).standard_normal(entries.u.size)
    np.testing.assert_allclose(
        small.columns.product(here, s, K), state.columns.product(entries, s, K), atol=1e-12
    )
    for mine, theirs in zip(small.subgradient(), state.subgradient(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-13)
    for mine, theirs in zip(small.penalties, state.penalties, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(small.curvature, state.curvature[features])
    if state.problem.intercept:  # its place tells the problem what it is
        assert features[-1] == state.problem.d - 1


def test_the_step_of_a_model_is_the_same(monkeypatch):
    state = state_of([0, 3, 9, 30, 60])
    _, g, penalty = state.subgradient()
    solver, effort = ProximalNewton(), proximal_newton.Effort(8, 5, 100, 6000)
    s, _ = solver._minimise(state, g, penalty, 1e-10, 1e-3, effort)
    monkeypatch.setattr(module, "FREQUENT", 2.0)
    sparse, _ = solver._minimise(state, g, penalty, 1e-10, 1e-3, effort)
    assert np.abs(s).max() > 0.1
    np.testing.assert_allclose(s, sparse, atol=1e-6)


def test_what_steps_have_learnt_stays_known(monkeypatch):
    state, smalls = state_of([0, 3, 9, 30, 60]), []

    def spied(state):
        smalls.append(gathered(state))
        return smalls[-1]

    monkeypatch.setattr(proximal_newton, "gathered", spied)
    state.by_class.slow = True  # Newton steps
    before = state.objective()
    ProximalNewton()._steps(state)
    ((small, _),) = smalls
    assert state.objective() == pytest.approx(small.objective(), rel=1e-12)
    assert state.objective() < before
    for name in ("damping", "rough", "gap_by_class"):
        assert getattr(state, name) == getattr(small, name), name
    assert state.work == small.work + 10.0 * state.Z.size  # and the last evaluation
    assert small.damping != 0.1  # where it begins
    _, g, penalty = state.subgradient()
    done = state.work
    ProximalNewton()._minimise(state, g, penalty, 1e-3, 1e-3, proximal_newton.Effort(2, 5, 9, 1e9))
    assert state.work > done


def test_what_is_rare_large_or_not_smooth_is_not_gathered(monkeypatch):
    frequent, rare = [0, 3, 9, 30], [1, 2, 4, 5]
    assert gathers(state_of(frequent))
    assert not gathers(state_of(rare))
    assert not gathers(state_of(frequent, loss="hinge"))
    for name, most in (("MOST_ENTRIES", 4 * N), ("MOST_SCORES", N * K)):
        monkeypatch.setattr(module, name, most)
        assert gathers(state_of(frequent))
        monkeypatch.setattr(module, name, most - 1)
        assert not gathers(state_of(frequent))
        monkeypatch.undo()
        monkeypatch.setattr(module, "LEAST_STORED", 0)
    state = state_of(frequent)
    monkeypatch.setattr(module, "LEAST_STORED", state.columns.stored(state.entries))
    assert gathers(state)
    monkeypatch.setattr(module, "LEAST_STORED", state.columns.stored(state.entries) + 1)
    assert not gathers(state)


@pytest.mark.parametrize(
    ("loss", "k", "fit_intercept"),
    [("softmax", K, False), ("sparsemax", K, False), ("softmax", K, True), ("softmax", 30, False)],
)
def test_both_ways_lead_to_the_same_certified_solution(monkeypatch, loss, k, fit_intercept):
    X, y = data()
    monkeypatch.setattr(joined, "LARGE", 0)  # with 30 classes most are joined as well
    used = []
    monkeypatch.setattr(
        proximal_newton, "gathered", lambda state: used.append(1) or gathered(state)
    )
    options = {"loss": loss, "lam": 5e-3, "tol": 1e-8, "fit_intercept": fit_intercept}
    options["classes"] = np.arange(k)
    dense = fenchel.solve(X, y, **options)
    assert dense.status == "converged"
    assert used
    n_used = len(used)
    monkeypatch.setattr(module, "FREQUENT", 2.0)
    sparse = fenchel.solve(X, y, **options)
    assert len(used) == n_used
    at_zero = sparse.history[0].primal
    assert max(dense.dual, sparse.dual) <= min(dense.primal, sparse.primal) + 1e-13
    assert dense.primal == pytest.approx(sparse.primal, abs=2e-8 * at_zero)
    assert dense.primal < 0.9 * at_zero
