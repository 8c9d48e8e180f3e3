"""The quadratic of a Newton step class by class against plain numpy, and against the other one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fenchel
from fenchel.datasets import make_paper
from fenchel.design import make_design
from fenchel.solvers import l1_model
from fenchel.solvers.class_quadratic import MOST, ClassQuadratic
from fenchel.solvers.packed_quadratic import PackedQuadratic
from fenchel.solvers.working_set import Columns, Entries

N, D, K = 13, 7, 5


class Setting:
    """Random data, a V without zeros, and a working set with classes of odd and even sizes."""

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        self.rng, self.X = rng, rng.standard_normal((N, D))
        self.V, self.w = rng.dirichlet(np.ones(K), N), rng.random(N)
        sizes = ((0, 4), (1, 1), (3, 7), (4, 2))
        some = [l * D + rng.permutation(D)[:size] for l, size in sizes]
        chosen = np.sort(np.concatenate(some))
        self.entries = Entries(chosen % D, chosen // D, rng.standard_normal(chosen.size))
        self.damping = 0.1 * rng.random(chosen.size)
        self.columns = Columns.of(make_design(self.X))
        H = np.zeros((K * D, K * D))  # sum_i w_i (diag(v) - v v^T) (x) x x^T, features fastest
        for x, v, w in zip(self.X, self.V, self.w, strict=True):
            H += w * np.kron(np.diag(v) - np.outer(v, v), np.outer(x, x))
        self.H = H[np.ix_(chosen, chosen)]

    def by_class(self) -> ClassQuadratic:
        made = ClassQuadratic(self.columns, self.entries, self.V, self.w, self.damping)
        made.begin()
        return made

    def packed(self) -> PackedQuadratic:
        shared = self.columns.share(self.entries, self.V, self.w)
        made = PackedQuadratic(self.entries.klass, *shared, self.damping)
        made.begin()
        return made


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.mark.parametrize("kind", ["by_class", "packed"])
@pytest.mark.parametrize("whole", [True, False], ids=["all entries", "a face"])
def test_values_slopes_and_solutions(setting: Setting, kind: str, whole: bool) -> None:
    quadratic, H = getattr(setting, kind)(), setting.H
    size = setting.damping.size
    face = np.arange(size) if whole else np.array([1, 4, 5, 8, 9, 11])
    one, other = setting.rng.standard_normal((2, face.size))
    s = np.zeros(size)
    for change in (one, other):
        s[face] += change
        assert quadratic.value_after(face, change) == pytest.approx(0.5 * s @ H @ s)
        quadratic.accept()
        assert quadratic.value() == pytest.approx(0.5 * s @ H @ s)
        assert_allclose(quadratic.slopes(face), (H @ s)[face], atol=1e-13)
    assert quadratic.value_after(face, one) != pytest.approx(quadratic.value())  # and not accepted
    assert_allclose(quadratic.slopes(face), (H @ s)[face], atol=1e-13)
    damped = (H + np.diag(setting.damping))[np.ix_(face, face)]
    residual = setting.rng.standard_normal(face.size)
    d, n_iter = quadratic.solve(face, residual.copy(), 1e-12, 100)
    assert_allclose(damped @ d, residual, atol=1e-11)
    assert 1 < n_iter <= 2 * face.size
    d, n_iter = quadratic.solve(face, residual.copy(), 1e-12, 1)
    assert n_iter == 1
    assert_allclose(d, _first_iterate(damped, setting.entries.klass[face], residual))
    assert quadratic.solve(face, residual, 1e3, 9)[1] == 0


def _first_iterate(H: np.ndarray, klass: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """The first step of conjugate gradients preconditioned by the blocks of the classes."""
    z = np.linalg.solve(np.where(klass[:, None] == klass, H, 0.0), residual)
    return (residual @ z) / (z @ H @ z) * z


@pytest.mark.parametrize("positive", [False, True], ids=["both signs", "positive"])
def test_sweeps_are_coordinate_descent(setting: Setting, positive: bool) -> None:
    H, damping = setting.H + np.diag(setting.damping), setting.damping
    size = damping.size
    g, penalty = setting.rng.standard_normal(size), 0.3 * setting.rng.random(size)
    below = np.full(size, np.inf) if positive else penalty
    u = np.maximum(setting.entries.u, 0.0) if positive else setting.entries.u
    expected, largest = np.zeros(size), []
    for _ in range(3):
        changes = []
        for e in range(size):
            old, h = u[e] + expected[e], H[e, e]
            z = old - (g + H @ expected)[e] / h
            new = max(z - penalty[e] / h, 0.0) if z > 0 else min(z + below[e] / h, 0.0)
            expected[e] = new - u[e]
            changes.append(abs(new - old) * h)
        largest.append(max(changes))
    for quadratic in (setting.by_class(), setting.packed()):
        s = np.zeros(size)
        found = [quadratic.sweep(g, u, penalty, below, s) for _ in range(3)]
        assert_allclose(s, expected, atol=1e-12)
        assert_allclose(found, largest, atol=1e-12)
        assert quadratic.value() == pytest.approx(0.5 * s @ setting.H @ s)


def test_the_same_minimum(setting: Setting) -> None:
    size = setting.damping.size
    g, penalty = setting.rng.standard_normal(size), 0.3 * setting.rng.random(size)
    effort = l1_model.Effort(rounds=50, sweeps=1, cg=200, products=0)
    args = g, setting.entries.u, penalty, penalty, setting.damping, 1e-11, effort
    s, _ = l1_model.minimise_quadratic(setting.by_class(), *args)
    direct = l1_model.minimise_dense(
        setting.H + np.diag(setting.damping), g, setting.entries.u, penalty, penalty, 1e-12
    )
    assert_allclose(s, direct, atol=1e-8)


def test_what_it_suits(monkeypatch) -> None:
    monkeypatch.setattr("fenchel.solvers.class_quadratic.DENSE_SIZE", 0)
    dense = Columns.of(make_design(np.ones((3, MOST + 1))))
    few, many = (Entries(np.arange(m), np.zeros(m, int), np.ones(m)) for m in (MOST, MOST + 1))
    assert ClassQuadratic.suits(dense, few)
    assert not ClassQuadratic.suits(dense, many)
    monkeypatch.undo()
    assert not ClassQuadratic.suits(dense, few)  # its Hessian is formed


def test_a_fit_with_many_classes_uses_it(monkeypatch) -> None:
    data = make_paper(80, rng=0)
    monkeypatch.setattr("fenchel.solvers.class_quadratic.DENSE_SIZE", 100)
    made, init = [], ClassQuadratic.__init__
    monkeypatch.setattr(
        ClassQuadratic, "__init__", lambda self, *args: (made.append(1), init(self, *args))[1]
    )
    args = {"loss": "softmax", "lam": 1e-3, "classes": np.arange(80), "tol": 1e-7}
    one = fenchel.solve(data.X, data.y, **args)
    assert made
    assert one.status == "converged"
    monkeypatch.setattr(ClassQuadratic, "suits", lambda *_: False)
    other = fenchel.solve(data.X, data.y, **args)
    assert max(one.dual, other.dual) <= min(one.primal, other.primal)
