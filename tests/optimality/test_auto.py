"""What "auto" chooses, how it begins, and that it says so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.solvers import primal_dual
from instances import INSTANCES
from support import refusal, solve

TAKEN = [i for i in INSTANCES if refusal("primal-dual", "hinge", i) is None]


def test_auto_says_what_it_chose() -> None:
    instance = TAKEN[0]
    free = solve(instance, "hinge", "auto", max_iter=1)
    group = solve(instance, "hinge", "auto", max_iter=1, penalty="group")
    assert (free.solver, group.solver) == ("primal-dual", "mirror-prox")
    assert "primal-dual" in free.history[0].note
    assert "penalty" in group.history[0].note


@pytest.mark.parametrize(
    ("loss", "d", "sparse", "radius", "why"),
    [
        ("softmax", 40, False, None, "Newton steps, because the loss is smooth"),
        ("hinge", 40, True, None, "Newton steps, because X is sparse"),
        ("hinge", 5, False, None, "Newton steps, because there are no more coefficients"),
        ("hinge", 40, False, None, "hybrid gradient steps, because X is dense"),
        ("hinge", 40, False, 3.0, "the one of the ball"),
    ],
)
def test_auto_says_how_it_begins(
    loss: str, d: int, sparse: bool, radius: float | None, why: str
) -> None:
    rng = np.random.default_rng(0)
    X, y = np.where(rng.random((60, d)) < 0.05, 1.0, 0.0), np.arange(60) % 4
    X = sp.csr_array(X) if sparse else X
    result = fenchel.solve(X, y, loss=loss, lam=1e-2, radius=radius, max_iter=1)
    assert why in result.history[0].note


def sparse_noise(n: int, d: int, k: int) -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(1)
    X = sp.random_array((n, d), density=0.02, rng=rng, format="csr")
    return X, rng.integers(0, k, n)


def test_sparse_data_with_many_coefficients_turn_to_hybrid_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = sparse_noise(300, 900, 4)
    few = fenchel.solve(X, y, lam=6e-3)
    assert not any("hybrid gradient" in record.note for record in few.history)
    many = fenchel.solve(X, y, lam=1e-3)
    turned = [record for record in many.history if "hybrid gradient from" in record.note]
    assert len(turned) == 1
    assert "samples are many" in turned[0].note
    assert many.status == "converged"
    monkeypatch.setattr(primal_dual, "SMALL_ENTRIES", (300 + 900) * 4 - 1)
    newton = fenchel.solve(X, y, lam=1e-3)
    assert not any("hybrid gradient" in record.note for record in newton.history)
    assert max(many.dual, newton.dual) <= min(many.primal, newton.primal)
    assert fenchel.solve(X, y, loss="softmax", lam=1e-4).solver == "primal-dual"  # never turns
