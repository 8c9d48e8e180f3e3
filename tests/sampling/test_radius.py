"""The growing series of balls (rem:radius)."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel
from fenchel.problem import Problem
from fenchel.radius import BOUNDARY, GROWTH, RadiusSearch
from fenchel.solvers.base import Start
from fenchel.solvers.mirror_prox import MirrorProx


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    y = (X[:, :3] + 0.2 * rng.standard_normal((60, 3))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("solver", ["mirror-prox", "partial-sampling", "sublinear"])
def test_search_finds_the_penalised_solution(data, solver, loss):
    if (solver, loss) == ("sublinear", "softmax"):
        pytest.skip("the sublinear solver is for the hinge loss")
    X, y = data
    lam = 0.02
    reference = fenchel.solve(X, y, loss=loss, lam=lam, solver="mirror-prox", tol=1e-3)
    tol = {"mirror-prox": 0.01, "partial-sampling": 0.15, "sublinear": 0.15}[solver]
    result = fenchel.solve(
        X, y, loss=loss, lam=lam, radius="search", solver=solver, tol=tol, rng=0,
        max_iter={"mirror-prox": 4000, "partial-sampling": 20_000, "sublinear": 400_000}[solver],
    )  # fmt: skip
    assert result.status == "converged"
    assert result.certifies == "penalised"
    assert result.dual <= reference.primal
    assert result.primal >= reference.dual
    notes = [record.note for record in result.history if "radius" in record.note]
    assert notes  # it began too small
    if solver == "mirror-prox":  # accurate enough for the ball to matter
        last = float(notes[-1].split("-> ")[1].split(";")[0])
        size = np.abs(reference.U).sum()
        assert size * (1 - 1e-2) <= last <= GROWTH / BOUNDARY * size


def test_a_warm_start_begins_in_its_own_ball(data):
    X, y = data
    problem = Problem.from_data(X, y, lam=0.02)
    U = np.zeros((10, 3))
    U[0, 0] = 8.0
    search = RadiusSearch(MirrorProx())
    rng = np.random.default_rng(0)
    assert search.init(problem, Start(U), rng, 10).radius == pytest.approx(8.0 / BOUNDARY)
    cold = search.init(problem, None, rng, 10)
    assert cold.radius < 2.0
    search.advance(cold, 1)
    assert search.points(cold)[0].U.shape == (10, 3)


def test_slices_and_growth(data):
    """Cutting a run into slices changes nothing, also where a ball grows."""
    X, y = data
    problem = Problem.from_data(X, y, lam=0.02)
    search = RadiusSearch(MirrorProx())
    whole = search.init(problem, None, np.random.default_rng(0), 300)
    search.advance(whole, 300)
    pieces = search.init(problem, None, np.random.default_rng(0), 300)
    first, grown = pieces.radius, 0
    for _ in range(300):
        search.advance(pieces, 1)
        (point,) = search.points(pieces)
        assert np.isfinite(point.U).all()
        grown += "radius" in search.note(pieces)
    assert pieces.radius == whole.radius > first
    assert grown >= 1
    np.testing.assert_array_equal(search.points(whole)[0].U, search.points(pieces)[0].U)


def test_nothing_to_search():
    X, y = np.eye(3), [0, 1, 2]
    problem = Problem.from_data(X, y, lam=0.1, radius=1.0)
    with pytest.raises(ValueError, match="nothing to search"):
        RadiusSearch(MirrorProx()).init(problem, None, np.random.default_rng(0), 1)
    with pytest.raises(ValueError, match="radius"):
        fenchel.solve(X, y, lam=0.0, radius="search", solver="mirror-prox")
