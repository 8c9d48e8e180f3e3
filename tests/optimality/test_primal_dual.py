"""The certified solver reaches what the others only approach."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits, make_classification

import fenchel
import reference
from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.kernels.hybrid_gradient import nonzeros
from fenchel.kernels.simplex import project_rows
from fenchel.losses import Hinge
from fenchel.null_penalty import smallest_null_penalty
from fenchel.problem import Problem
from fenchel.solvers import primal_dual
from fenchel.solvers.along_path import AGAIN
from fenchel.solvers.base import Start
from fenchel.solvers.class_newton import Blocks
from fenchel.solvers.hybrid_gradient import LOOK, HybridGradient
from fenchel.solvers.linear_program import LinearProgram
from fenchel.solvers.primal_dual import (
    FINISH_NEWTON,
    MOST,
    PATIENCE_NEWTON,
    PrimalDual,
    State,
    _pruned,
    solution_size,
)
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_set import violators
from instances import BY_NAME, INSTANCES, LOSS_NAMES, Instance
from support import make_problem, refusal, same_bits, solve

TAKEN = [i for i in INSTANCES if refusal("primal-dual", "hinge", i) is None]


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("instance", TAKEN, ids=lambda instance: instance.name)
def test_certified_to_high_accuracy(instance: Instance, loss: str) -> None:
    result = solve(instance, loss, "primal-dual", tol=1e-8)
    if instance.penalty_factor is not None and (instance.penalty_factor == 0).any():
        # without a penalty the dual constraint is an equality, which rounding alone breaks
        assert result.dual >= 0.0
    else:
        assert result.status == "converged"
    optimum = reference.optimum(instance, loss)
    assert result.primal <= optimum + 2 * reference.TOLERANCE * max(1.0, optimum)


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_an_intercept_is_certified_too(loss: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    y = (X @ rng.standard_normal((5, 3)) + [1.0, 0.0, -1.0]).argmax(axis=1)
    result = fenchel.solve(X, y, loss=loss, lam=0.02, fit_intercept=True, tol=1e-6)
    assert result.solver == "primal-dual"
    assert result.status == "converged"


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_dense_and_sparse_agree(loss: str) -> None:
    instance = TAKEN[0]
    dense = solve(instance, loss, "primal-dual", tol=1e-9)
    X = sp.csr_array(instance.X)
    sparse = fenchel.solve(
        X, instance.y, loss=loss, solver="primal-dual", tol=1e-9, **instance.arguments()
    )
    assert sparse.primal == pytest.approx(dense.primal, abs=2e-9)


def test_slices_are_the_same_run() -> None:
    problem = make_problem(TAKEN[0])
    solver = PrimalDual()
    whole, cut = (solver.init(problem, None, np.random.default_rng(0), 9) for _ in range(2))
    solver.advance(whole, 5)
    for steps in (1, 3, 1):
        solver.advance(cut, steps)
    for a, b in zip(solver.points(whole), solver.points(cut), strict=True):
        assert same_bits(a.U, b.U)
        assert same_bits(a.V, b.V)


def test_points_do_not_change_when_the_solver_goes_on() -> None:
    """V is updated in place: what is handed out must be certified before, or be a copy."""
    instance = TAKEN[0]
    first = solve(instance, "hinge", "primal-dual", tol=0.0, max_iter=1)
    later = solve(instance, "hinge", "primal-dual", tol=0.0, max_iter=8)
    assert later.gap < first.gap
    again = solve(instance, "hinge", "primal-dual", tol=0.0, max_iter=1)
    assert same_bits(first.V, again.V)


def test_starting_at_the_solution_takes_one_iteration() -> None:
    instance = TAKEN[0]
    result = solve(instance, "hinge", "primal-dual", tol=1e-6)
    again = solve(instance, "hinge", "primal-dual", tol=1e-5, start=result)
    assert again.n_iter <= 1


def test_hybrid_gradient_hands_out_the_best_point_so_far() -> None:
    """Gaps go up and down; a bad look must not replace a better one before it."""
    data = make_paper(40, rng=2)
    problem = Problem.from_data(data.X, data.y, lam=data.lam, classes=data.classes)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    gaps = []
    for _ in range(40):
        solver.advance(state, LOOK)
        (point,) = solver.points(state)
        gaps.append(certify(problem, point.U, point.V).gap)
    assert (np.diff(gaps) <= 1e-12).all()


def test_a_gap_is_forgotten_with_its_penalty() -> None:
    """Or a linear program would be tried at a point that is no longer close to the solution."""
    problem = make_problem(TAKEN[0])
    solver, rng = PrimalDual(), np.random.default_rng(0)
    state = solver.init(problem, Start(np.zeros((problem.d, problem.k))), rng, 1)
    solver.advance(state, 2)
    assert state.inner.gap < np.inf
    (point,) = solver.points(state)
    start = Start(point.U, point.V)
    after = solver.follow(state, problem.with_penalty(0.5 * problem.lam), start, rng, 1)
    assert after.inner.gap == np.inf


def test_scaled_prices_scale_the_optimum() -> None:
    """No constant of the solver is tied to mistakes that cost 1."""
    instance = TAKEN[0]
    cost = 1.0 - np.eye(instance.k)
    small, large = (
        fenchel.solve(instance.X, instance.y, loss=Hinge(c * cost), lam=instance.lam, tol=1e-7)
        for c in (1e-3, 1e3)
    )
    assert small.status == large.status == "converged"
    assert large.primal == pytest.approx(1e6 * small.primal, rel=1e-5)


@pytest.mark.parametrize(("d", "first"), [(15, ProximalNewton), (16, HybridGradient)])
def test_no_more_coefficients_than_samples_are_left_to_newton_steps(d: int, first: type) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, d)), np.arange(60) % 4
    problem = Problem.from_data(X, y, loss="hinge", lam=1e-2)
    assert type(PrimalDual().init(problem, None, rng, 1).method) is first
    steps = ProximalNewton().init(problem, None, rng, 1).by_class
    assert (steps is not None) == (first is ProximalNewton)
    assert ProximalNewton().init(problem, Start(np.zeros((d, 4))), rng, 1).by_class is None


def test_projection_ends_where_rounding_ties_entries() -> None:
    """Large entries that differ by rounding only once made the active set grow and shrink."""
    rng = np.random.default_rng(0)
    A = 1e9 + np.cumsum(rng.integers(0, 2, (2000, 20)), axis=1) * np.spacing(1e9)
    out = np.empty_like(A)
    project_rows(A, A[:0], out)
    np.testing.assert_allclose(out.sum(axis=1), 1.0, atol=1e-6)


def test_a_rough_point_is_handed_over_without_its_small_entries() -> None:
    U = np.array([[1.0, 0.0, -0.3], [0.05, 2.0, 0.2], [-0.5, 0.3, 0.0], [0.0, -0.1, 0.01]])
    point = sp.csc_array(U)
    kept = _pruned(point, 10).toarray()
    assert_array_equal(kept, np.where(np.abs(U) >= 0.1 * np.abs(U).max(axis=0), U, 0.0))
    kept = _pruned(point, 3).toarray()  # the three largest of all
    assert_array_equal(kept, np.where(np.abs(U) >= 0.5, U, 0.0))
    assert_array_equal(point.toarray(), U)  # the point itself is as it was


@pytest.mark.parametrize(
    ("gap", "d", "kept"),
    [(0.5, 800, MOST), (0.01, 800, 4 * 800), (0.01, 3000, 7)],
    ids=["rough", "not rough", "far too many"],
)
def test_what_is_handed_over_of_a_point(gap: float, d: int, kept: int) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, d)), rng.integers(0, 4, 30)
    problem = Problem.from_data(X, y, loss="hinge", lam=1e-3)
    solver = PrimalDual()
    state = solver.init(problem, None, rng, 1)
    U = rng.uniform(1.0, 2.0, size=(4, d))
    state.inner.primal, state.inner.gap = (1.0, nonzeros(U, U.size)), gap * problem.at_zero
    state.inner.now.V[:] = 0.0
    state.inner.now.V[:, 0] = 1.0
    state.inner.now.V[:7, 1] = 0.5  # seven equations between scores
    state.inner.iteration, state.reference = 1000, state.inner.gap
    state.inner.eta, state.inner.omega = 0.3, 10.0
    solver._hand_over(state)
    assert np.count_nonzero(state.inner.entries.u) == kept
    assert state.inner.eta == pytest.approx(0.03)  # of the proximal term: the dual step so far


@pytest.mark.parametrize(
    ("d", "support", "iteration", "patience"),
    [
        (100, 1, 900, 60),  # cheap products, no end to them all the same
        (80_000, 1, 900, 14),
        (1_000_000, 1, 900, 10),
        (1_000_000, 0, 300, 120),
        (1_000_000, 0, 900, 300),
        (10, 3, 900, 60 + 5 * 80**3 // 168_400),  # 80 equations between scores
        (10, 4, 900, 60 + 5 * 120**3 // 168_400),
        (100, 4, 900, 60 + 5 * 120**3 // 244_000),
    ],
)
def test_hybrid_gradient_has_the_patience_of_a_newton_iteration(
    d: int, support: int, iteration: int, patience: int, monkeypatch
) -> None:
    """The longer, the cheaper its products are and the more coefficients the solution has."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 30)), rng.integers(0, 4, 40)
    problem = Problem.from_data(X, y, loss="hinge", lam=1e-3, classes=np.arange(4))
    monkeypatch.setattr(Problem, "d", d)
    V = np.zeros((40, 4))
    V[:, :support] = 1.0  # no more than its non-zeros matters
    for since in (patience - 1, patience):
        point = SimpleNamespace(U=np.zeros((30, 4)), V=V)
        inner = SimpleNamespace(iteration=iteration, gap=1e-3, now=point)
        state = State(problem, HybridGradient(), inner, reference=1e-3, since=iteration - since)
        assert PrimalDual()._hybrid_is_slow(state) == (since == patience)


def test_a_point_of_hybrid_gradient_is_looked_at_before_it_is_left() -> None:
    """It may be good enough; Newton steps come in the next iteration, and are looked at each."""
    problem, solver = Problem.from_data(**noise(60, 200, 3), loss="hinge", lam=1e-3), PrimalDual()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    while not state.slow:
        solver.advance(state, solver.iterations_to_check(problem, state))
        assert isinstance(state.method, HybridGradient)
    (point,) = solver.points(state)
    assert certify(problem, point.U, point.V, "").gap <= 1.0001 * state.inner.gap
    assert solver.iterations_to_check(problem, state) == 1
    solver.advance(state, 1)
    assert isinstance(state.method, ProximalNewton)
    assert "hybrid gradient iterations, then Newton steps" in solver.note(state)


def test_patience_has_an_end_where_no_hessian_would_be_formed(monkeypatch) -> None:
    full, V = np.ones((40, 10)), np.ones((40, 4))
    monkeypatch.setattr(primal_dual, "BLAS_SIZE", 100)
    assert solution_size(V) == 120
    part = sp.csr_array(np.tril(full))
    for X, products in ((full, 400), (part, 2 * part.nnz)):
        problem = SimpleNamespace(n=40, d=10, k=4, design=SimpleNamespace(X=X))
        work = products * 4 + 1000 * 40 * 4 + 170 * 10 * 4
        assert PrimalDual._patience(problem, 1, V) == 60 + 5 * 100**3 // work


def noise(n: int, d: int, k: int) -> dict:
    """Labels that have nothing to do with X: as many coefficients as samples, or more."""
    return {"X": np.random.default_rng(0).standard_normal((n, d)), "y": np.arange(n) % k}


def test_a_rough_dual_point_tells_the_size_of_the_solution() -> None:
    data = noise(100, 1000, 4)
    solution = fenchel.solve(**data, lam=1e-2, tol=1e-8)
    problem = Problem.from_data(**data, lam=1e-2)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, 2 * LOOK)
    assert state.gap > 0.02 * problem.at_zero
    size = np.count_nonzero(solution.U)
    assert 0.85 * size <= solution_size(state.now.V) <= 1.15 * size
    assert np.count_nonzero(solver.points(state)[0].U) > 2 * size
    assert solution_size(np.zeros((3, 2))) == 0


def test_noise_with_many_coefficients_is_left_to_hybrid_gradient() -> None:
    """Newton steps on hundreds of entries cost far more, and their note says what they are for."""
    data = noise(200, 600, 5)
    rough = fenchel.solve(**data, lam=1e-2, tol=1e-3)
    assert not any("Newton" in record.note for record in rough.history)
    fine = fenchel.solve(**data, lam=1e-2, tol=1e-7)
    (note,) = (record.note for record in fine.history if "Newton" in record.note)
    assert "for about" in note
    assert fine.status == "converged"


def test_steps_on_single_classes_begin_again_along_a_path_of_sparse_data() -> None:
    rng = np.random.default_rng(4)
    X = sp.random_array((60, 40), density=0.2, rng=rng, format="csr")
    y = rng.integers(0, 3, 60)
    problem = Problem.from_data(X, y, loss="softmax", lam=1e-3)
    solver = ProximalNewton()
    state = solver.init(problem, None, rng, 1)
    state.by_class.slow = True
    start = Start(np.zeros((40, 3)))
    state = solver.follow(state, problem.with_penalty(5e-4), start, rng, 1)
    assert not state.by_class.slow


@pytest.mark.parametrize("gap", [1e-5, 1e-8])
@pytest.mark.parametrize("waited", [PATIENCE_NEWTON - 1, PATIENCE_NEWTON])
def test_newton_steps_are_left_where_they_gain_no_more(gap: float, waited: int) -> None:
    problem = make_problem(TAKEN[0])
    solver, rng = PrimalDual(), np.random.default_rng(0)
    state = solver.init(problem, Start(np.zeros((problem.d, problem.k))), rng, 1)
    state.inner.gap = state.reference = gap * problem.at_zero
    state.iteration = waited
    solver.advance(state, 1)
    at_its_end = gap < FINISH_NEWTON or waited == PATIENCE_NEWTON
    assert isinstance(state.method, LinearProgram) == at_its_end
    assert (state.before is not None) == at_its_end


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["none", "intercept"])
def test_the_bound_of_a_smooth_loss_tells_how_good_the_point_is(sparse, fit_intercept) -> None:
    """The gap of V itself is some hundred times what U is above the optimum."""
    X, y = load_digits(return_X_y=True)
    X = sp.csr_array(X[::4] / 16) if sparse else X[::4] / 16
    arguments = {"loss": "softmax", "lam": 3e-3, "fit_intercept": fit_intercept}
    optimum = fenchel.solve(X, y[::4], tol=1e-10, **arguments).dual
    for tol in (1e-3, 1e-5):
        result = fenchel.solve(X, y[::4], tol=tol, **arguments)
        assert result.status == "converged"
        assert 0.0 <= result.gap <= 3.0 * (result.primal - optimum) + 1e-9
        assert result.point == result.history[-1].point == "last (dual: linearised)"


def test_the_step_of_a_sharpened_dual_point_is_taken_next() -> None:
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    method.advance(state, 2)
    before = state.value + problem.lam * np.abs(state.entries.u).sum()
    V = method.sharpened(state)
    step = state.entries.u + state.step
    assert V is not None
    method.advance(state, 1)
    np.testing.assert_array_equal(state.entries.u, step)
    assert state.value + problem.lam * np.abs(state.entries.u).sum() < before
    assert state.step is None


def test_a_known_step_is_forgotten_with_its_penalty() -> None:
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    method, rng = ProximalNewton(), np.random.default_rng(0)
    state = method.init(problem, None, rng, 1)
    method.advance(state, 2)
    method.sharpened(state)
    start = Start(method.points(state)[0].U, None)
    state = method.follow(state, problem.with_penalty(0.5 * problem.lam), start, rng, 1)
    assert state.step is None
    assert not state.looked


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_next_penalty_of_a_path_takes_one_model_where_x_is_dense(sparse, monkeypatch) -> None:
    X, y = load_digits(return_X_y=True)
    X = sp.csr_array(X[::4] / 16) if sparse else X[::4] / 16
    problem = Problem.from_data(X, y[::4], loss="softmax", lam=0.01)
    method, rng = ProximalNewton(), np.random.default_rng(0)
    state = method.init(problem, None, rng, 1)
    method.advance(state, 8)
    point = method.points(state)[0]
    following = problem.with_penalty(0.8 * problem.lam)
    state = method.follow(state, following, Start(point.U, point.V), rng, 1)
    before = certify(following, point.U, point.V).gap
    method.advance(state, 1)
    point = method.points(state)[0]
    assert (state.sharp is not None) == (not sparse)
    if not sparse:
        assert_array_equal(point.V, state.sharp)
        assert certify(following, point.U, point.V).gap < 0.02 * before
        assert certify(following, point.U, state.V.copy()).gap > 0.02 * before
        method.advance(state, 1)
        assert state.sharp is None
        assert_array_equal(method.points(state)[0].V, state.V)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("penalties", "part"),
    [
        ((0.02, 0.016, 0.0128), AGAIN),
        ((0.02, 0.0128, 0.01024), AGAIN / 2),
        ((0.02, 0.019, 0.01), AGAIN),
        ((0.02, 0.02, 0.016), 0.0),
        ((0.016, 0.02, 0.016), 0.0),
        ((0.02, 0.016, 0.016), 0.0),
        ((0.02, 0.016, 0.0), 0.0),
    ],
)
def test_u_goes_on_along_a_path_as_it_went(penalties, part, sparse) -> None:
    X, y = load_digits(return_X_y=True)
    X = sp.csr_array(X[::4] / 16) if sparse else X[::4] / 16
    problem = Problem.from_data(X, y[::4], loss="sparsemax", lam=penalties[0], fit_intercept=True)
    method, rng, solutions = ProximalNewton(), np.random.default_rng(0), []
    state = method.init(problem, None, rng, 1)
    for lam in penalties[1:]:
        method.advance(state, 8)
        solutions.append(method.points(state)[0])
        start = Start(solutions[-1].U, solutions[-1].V)
        state = method.follow(state, problem.with_penalty(lam), start, rng, 1)
    first, second = solutions[0].U, solutions[1].U
    goes_on = second + (0.0 if sparse else part) * (second - first)
    goes_on[:-1][goes_on[:-1] * second[:-1] <= 0.0] = 0.0  # the intercept has no penalty
    U = method.points(state)[0].U
    np.testing.assert_allclose(U, goes_on, rtol=1e-12, atol=1e-14)
    Z = problem.design.matmul(U)
    off = state.Z - Z  # by the mean of the intercept, which no loss sees
    np.testing.assert_allclose(off, np.broadcast_to(off[0, 0], off.shape), atol=1e-10)
    np.testing.assert_allclose(state.V, problem.loss.argmax(Z, problem.y), atol=1e-9)


def test_the_hinge_loss_and_softmax_begin_a_penalty_at_the_last_solution() -> None:
    for loss in "hinge", "softmax":
        problem = make_problem(BY_NAME["three-classes"], loss)
        method, rng = ProximalNewton(), np.random.default_rng(0)
        state = method.init(problem, None, rng, 1)
        for part in 0.8, 0.64:
            method.advance(state, 4)
            last = method.points(state)[0]
            following = problem.with_penalty(part * problem.lam)
            state = method.follow(state, following, Start(last.U, last.V), rng, 1)
        assert_array_equal(method.points(state)[0].U, last.U)


def test_a_model_that_takes_long_is_given_up_for_the_run(monkeypatch) -> None:
    problem = make_problem(BY_NAME["sparse"], "softmax")
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    method.advance(state, 2)
    monkeypatch.setattr("fenchel.solvers.linearised.MOST_CG", -1)
    assert method.sharpened(state) is None
    assert state.step is None
    monkeypatch.undo()
    assert method.sharpened(state) is None  # and is not tried again
    method.advance(state, 1)
    start = Start(method.points(state)[0].U, None)
    state = method.follow(state, problem, start, np.random.default_rng(0), 1)
    assert method.sharpened(state) is not None


def test_entries_that_the_dual_point_of_a_model_violates_join_it(monkeypatch) -> None:
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    U = solve(BY_NAME["three-classes"], "softmax", "primal-dual", tol=1e-8).U
    U[np.abs(U) == np.abs(U)[U != 0.0].min()] = 0.0  # the model has to find it again
    method, none = ProximalNewton(), np.empty(0, np.int64)
    state = method.init(problem, Start(U), np.random.default_rng(0), 1)
    near = "fenchel.solvers.linearised.near_bounds"
    monkeypatch.setattr(near, lambda *_: (none, none))  # the non-zeros alone, at first
    V = method.sharpened(state)
    assert V is not None
    assert violators(problem, V, 10**6)[-1] > 1.0 - 1e-6


@pytest.mark.parametrize("on_path", [False, True])
def test_a_model_whose_entries_do_it_is_not_solved_again(on_path: bool, monkeypatch) -> None:
    """Where V' violates what is in the model, the same model would have the same V'."""
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    method.advance(state, 2)
    solved, minimise = [], ProximalNewton._minimise

    def counted(self, state, *arguments):
        solved.append(state.entries.u.size)
        return minimise(self, state, *arguments)

    def known(problem, V, *_):
        return state.entries.feature[:1], state.entries.klass[:1], np.ones(1), 0.5

    monkeypatch.setattr(ProximalNewton, "_minimise", counted)
    monkeypatch.setattr("fenchel.solvers.linearised.violators", known)
    state.on_path = on_path
    assert method.sharpened(state) is not None
    assert len(solved) == 1
    assert state.stiff == on_path  # there it is not tried again, but for a larger penalty


def test_a_rough_point_has_no_model_worth_its_price() -> None:
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    problem = problem.with_penalty(0.1 * smallest_null_penalty(problem))
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    assert method.sharpened(state) is None
    assert state.step is None


def test_a_rough_point_is_not_asked_for_the_dual_point_of_a_model() -> None:
    """Nor certified for its sake: only a gap near the goal is worth a certificate then."""
    problem, solver = make_problem(BY_NAME["three-classes"], "softmax"), ProximalNewton()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, 2)
    state.gap_by_class, state.rough = 0.05, False
    assert not solver.is_far(state, 1e-3, 0.1)  # near enough to be sharpened
    assert solver.sharpened(state) is not None
    state.rough = True
    assert solver.is_far(state, 1e-3, 0.1)
    assert solver.is_far(state, 0.03, 0.1)  # by less than two times its estimate
    assert not solver.is_far(state, 0.04, 0.1)
    assert solver.sharpened(state) is None


def test_rows_that_leave_the_simplex_cost_the_dual_point_of_a_model_little(monkeypatch) -> None:
    """Brought back, they make V' violate constraints: another model, made at V', repairs that."""
    X, y = load_digits(return_X_y=True)
    problem = Problem.from_data(X[::2] / 16, y[::2], loss="softmax", lam=1e-4)
    optimum = fenchel.solve(X[::2] / 16, y[::2], loss="softmax", lam=1e-4, tol=1e-9).dual
    monkeypatch.setattr("fenchel.solvers.linearised.LEFT", 1.0)
    bounds = []
    for rounds in (1, 3):
        monkeypatch.setattr("fenchel.solvers.linearised.ROUNDS", rounds)
        method = ProximalNewton()
        state = method.init(problem, None, np.random.default_rng(0), 1)
        V = None
        while V is None:
            method.advance(state, 1)
            V = method.sharpened(state)
        certificate = certify(problem, method.points(state)[0].U, V)
        bounds.append((optimum - certificate.dual) / (certificate.primal - optimum))
    assert bounds[1] < 3.0 < 6.0 < bounds[0]


def test_what_a_repaired_dual_point_still_violates_joins_its_model() -> None:
    """Here one entry does after the second model, and would cost eighteen times the gap."""
    X, y = load_digits(return_X_y=True)
    problem = {"X": X / 16, "y": y, "loss": "softmax", "lam": 1e-4}
    result = fenchel.solve(**problem, tol=1e-3)
    optimum = fenchel.solve(**problem, tol=1e-7).dual
    assert 0.0 < result.gap <= 2.0 * (result.primal - optimum)


def test_blocks_that_are_formed_anew_are_of_the_entries_that_move(monkeypatch) -> None:
    data = make_paper(60, rng=0)
    problem = Problem.from_data(data.X, data.y, loss="softmax", lam=data.lam, classes=data.classes)
    method, of, made = ProximalNewton(), Blocks.of, []
    state = method.init(problem, None, np.random.default_rng(0), 1)

    def recorded(problem, columns, entries, V, eta):
        made[-1].append(entries)
        return of(problem, columns, entries, V, eta)

    monkeypatch.setattr(Blocks, "of", recorded)
    for _ in range(4):
        made.append([])
        method.advance(state, 1)
    pairs = [pair for blocks in made for pair in pairwise(blocks)]
    assert any(after.u.size < 0.8 * before.u.size for before, after in pairs)
    for before, after in pairs:
        left_out = before.place_in(after, problem.d) < 0
        assert not before.u[left_out].any()


def test_a_step_is_forgotten_where_its_model_grew_and_was_given_up(monkeypatch) -> None:
    """It belongs to fewer entries than the working set has by then."""
    problem = make_problem(BY_NAME["three-classes"], "softmax")
    U = solve(BY_NAME["three-classes"], "softmax", "primal-dual", tol=1e-8).U
    U[np.abs(U) == np.abs(U)[U != 0.0].min()] = 0.0  # joins the model in its second round
    method, none = ProximalNewton(), np.empty(0, np.int64)
    state = method.init(problem, Start(U), np.random.default_rng(0), 1)
    near = "fenchel.solvers.linearised.near_bounds"
    monkeypatch.setattr(near, lambda *_: (none, none))
    minimise, sizes = ProximalNewton._minimise, []

    def given_up(self, state, *arguments):
        sizes.append(state.entries.u.size)
        return minimise(self, state, *arguments)[0], 1000 * (len(sizes) > 1)

    monkeypatch.setattr(ProximalNewton, "_minimise", given_up)
    assert method.sharpened(state) is not None  # the dual point of the first round
    assert sizes[1] > sizes[0]
    assert state.stiff
    assert state.step is None
    monkeypatch.undo()
    method.advance(state, 1)
    assert state.entries.u.size


@pytest.mark.parametrize("loss", ["sparsemax", "hinge"])
def test_damping_that_holds_a_step_back_falls(loss, monkeypatch) -> None:
    """Where conjugate gradients take neither few nor many iterations: by them it would stay."""
    X, y = make_classification(
        200, 80, n_informative=10, n_redundant=10, n_classes=4, random_state=0
    )
    problem = Problem.from_data(X, y, loss=loss, lam=3e-3)
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    method.advance(state, 5)
    minimise = method._minimise
    monkeypatch.setattr(method, "_minimise", lambda *args: (minimise(*args)[0], 30))
    for damping, after in ((10.0, 3.0), (1e-12, 1e-12)):
        state.damping = damping
        error, g, penalty = state.subgradient()
        method._newton(state, g, penalty, error)
        assert state.damping == after
