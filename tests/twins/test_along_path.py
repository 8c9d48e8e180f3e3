"""Where Newton steps begin with the next penalty of a path, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel.certificate import certify
from fenchel.problem import Problem
from fenchel.solvers import along_path, proximal_newton
from fenchel.solvers.along_path import newcomers
from fenchel.solvers.base import Start
from fenchel.solvers.newton_state import ETA_GROWTH, State
from fenchel.solvers.proximal_newton import (
    ETA_GROWTH_PATH,
    ETA_GROWTH_PATH_SPARSE,
    ProximalNewton,
)


def next_penalty(positive: bool) -> State:
    """The state that a smaller penalty begins with."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 40))
    y = np.argmax(X[:, :4] + 0.5 * rng.standard_normal((150, 4)), axis=1)
    factor = rng.choice([0.5, 1.0, 2.0], 40)
    problem = Problem.from_data(X, y, lam=0.02, penalty_factor=factor, positive=positive)
    solver = ProximalNewton()
    state = solver.init(problem, None, rng, 1)
    solver.advance(state, 8)
    solver.follow(state, problem.with_penalty(0.01), Start(np.zeros((40, 4))), rng, 1)
    state.know_gradient()
    return state


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("limit", [3, 12, 10**6])
def test_what_is_at_work_already_takes_no_room_of_newcomers(limit: int, positive: bool) -> None:
    state = next_penalty(positive)
    problem, entries = state.problem, state.entries
    G = problem.constrained_part(problem.full_gradient(state.V))
    bound = np.broadcast_to(problem.lam * problem.penalty_factor[:, None], G.shape)
    known = entries.array(entries.u, G.shape) != 0.0
    violated = (bound < G) & ~known
    assert ((bound < G) & known).sum() > 3  # these would have taken all of the smallest limit
    assert violated.sum() > 3
    feature, klass, scale = newcomers(state, limit)
    found = np.zeros(G.shape, bool)
    found[feature, klass] = True
    assert found.sum() == feature.size <= limit
    assert not (found & known).any()
    assert (along_path.CLOSE * bound < G)[found].all()
    if feature.size < limit:
        assert found[violated].all()
        assert feature.size <= max(violated.sum(), 1 + along_path.MOST_CLOSE * known.sum())
    else:
        assert (violated & ~found).sum() == violated.sum() - limit
        assert (G - bound)[violated & ~found].max(initial=-1.0) <= (G - bound)[found].min()
    assert scale == pytest.approx(min(1.0, (bound[G > 0.0] / G[G > 0.0]).min()))


def test_what_is_close_to_its_bound_comes_in_where_little_is_violated(monkeypatch) -> None:
    state = next_penalty(False)
    G, lam = np.abs(state.problem.full_gradient(state.V)), state.problem.lam
    known = np.count_nonzero(state.entries.u)
    inside = G / state.problem.penalty_factor[:, None]
    inside[state.entries.array(state.entries.u, G.shape) != 0.0] = 0.0
    state.problem = state.problem.with_penalty(float(inside.max()) * (1.0 + 1e-9))
    assert lam < state.problem.lam
    monkeypatch.setattr(along_path, "CLOSE", 0.5)
    close = (inside > along_path.CLOSE * state.problem.lam).sum()
    assert close > 2
    for part in (0.0, 2.0 / known, 1e6):
        monkeypatch.setattr(along_path, "MOST_CLOSE", part)
        feature, _, _ = newcomers(state, 10**6)
        assert feature.size == min(close, 1 + int(part * known))


def test_newcomers_are_for_the_penalties_after_the_first(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        proximal_newton, "newcomers", lambda *args: asked.append(args) or newcomers(*args)
    )
    state = next_penalty(False)
    assert not asked
    ProximalNewton().advance(state, 1)
    assert asked


def test_a_survey_along_a_path_counts_the_masses_that_classes_lack() -> None:
    """An intercept that is nearly zero would hide them: no product of U and G_U tells of them."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((90, 5)), np.repeat([0, 1, 2], [60, 20, 10])
    problem = Problem.from_data(X, y, lam=10.0, fit_intercept=True)
    U, V = np.zeros((6, 3)), rng.dirichlet(np.ones(3), 90)
    U[-1] = [1e-9, 0.0, -1e-9]
    solver = ProximalNewton()
    state = solver.init(problem, Start(U, V), rng, 1)
    gaps = {}
    for state.on_path in (False, True):
        solver._survey(state)
        gaps[state.on_path] = state.gap
    certified = certify(problem, U, state.V).gap
    assert gaps[False] < 0.8 * certified
    found, masses = problem.weights @ state.V, np.bincount(y) / 90
    lost = (1.0 - masses / found).max() * (problem.weights @ (1.0 - state.V[np.arange(90), y]))
    assert certified <= gaps[True] == pytest.approx(gaps[False] + lost)
    flat = Problem.from_data(X, y, lam=10.0)
    state = solver.init(flat, Start(U[:-1], V), rng, 1)
    for state.on_path in (False, True):
        solver._survey(state)
        gaps[state.on_path] = state.gap
    assert gaps[False] == gaps[True]


@pytest.mark.parametrize("sparse", [False, True])
def test_steps_of_the_dual_grow_slower_after_the_first_penalty(sparse: bool) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 40)) * (rng.random((150, 40)) < 0.1)
    y = rng.integers(0, 4, 150)
    problem = Problem.from_data(sp.csr_array(X) if sparse else X, y, lam=0.02)
    assert problem.design.is_sparse == sparse
    solver, nothing = ProximalNewton(), np.empty(0, np.int64)
    state = solver.init(problem, None, rng, 1)
    later = ETA_GROWTH_PATH_SPARSE if sparse else ETA_GROWTH_PATH
    for growth in (ETA_GROWTH, later):
        before, state.survey = state.eta, (nothing, nothing, True)
        solver._look(state)  # which finds the smoothed problem solved, and moves the centre
        assert state.eta == pytest.approx(growth * before)
        solver.follow(state, problem.with_penalty(0.01), Start(np.zeros((40, 4))), rng, 1)
    assert 1.0 < later < ETA_GROWTH
