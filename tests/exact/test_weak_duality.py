"""Weak duality of the hinge certificate in exact rational arithmetic.

The float arrays U and V are taken as the exact rationals that they are. Rounding leaves the rows of
V off the simplex, and G off its bounds, by some 1e-16; both are repaired exactly (rows divided by
their sums, V moved towards the labels) and the repair must be that small. What is left is a proof.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from checker import dense
from instances import Instance, with_cost
from support import SOLVER_NAMES, refusal, solve

#: How much of the certificate the exact repair may take away.
REPAIR = Fraction(1, 10**12)


def tiny(
    seed: int, *, weighted: bool = False, radius: float | None = None, positive: bool = False
) -> Instance:
    rng = np.random.default_rng(seed)
    n, d, k = 5, 3, 3
    return Instance(
        f"tiny-{seed}",
        rng.standard_normal((n, d)),
        np.arange(n) % k,
        k,
        0.125,
        weights=rng.integers(1, 4, n).astype(float) if weighted else None,
        penalty_factor=rng.uniform(0.5, 2.0, d) if weighted else None,
        radius=radius,
        positive=positive,
    )


CASES = [
    tiny(0),
    tiny(1, weighted=True),
    tiny(2, radius=0.5),
    with_cost(tiny(3)),
    tiny(4, weighted=True, positive=True),
]


def exact(A: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(a)) for a in row] for row in np.atleast_2d(A)]


class Exact:
    """The hinge problem over the rationals."""

    def __init__(self, instance: Instance) -> None:
        n, d = instance.X.shape
        self.X, self.y, self.k = exact(instance.X), instance.y.tolist(), instance.k
        weights = [Fraction(1)] * n if instance.weights is None else exact(instance.weights)[0]
        self.w = [weight / sum(weights) for weight in weights]
        factors = np.ones(d) if instance.penalty_factor is None else instance.penalty_factor
        self.bounds = [Fraction(instance.lam) * c for c in exact(factors)[0]]
        self.positive = instance.positive
        self.cost = exact(1.0 - np.eye(self.k) if instance.cost is None else instance.cost)

    def primal(self, U: list[list[Fraction]]) -> Fraction:
        total = sum(b * abs(u) for b, row in zip(self.bounds, U, strict=True) for u in row)
        for x, y, w in zip(self.X, self.y, self.w, strict=True):
            z = [sum(xj * row[l] for xj, row in zip(x, U, strict=True)) for l in range(self.k)]
            total += w * max(self.cost[y][l] + z[l] - z[y] for l in range(self.k))
        return total

    def gain(self, V: list[list[Fraction]]) -> Fraction:
        """-F(V)."""
        return sum(
            w * sum(c * v for c, v in zip(self.cost[y], row, strict=True))
            for w, y, row in zip(self.w, self.y, V, strict=True)
        )

    def gradient_sizes(self, V: list[list[Fraction]]) -> list[Fraction]:
        """max_l |G(j,l)| for every feature j; where U >= 0, that of its negative part."""
        sizes = []
        for j in range(len(self.bounds)):
            entries = [
                sum(
                    w * x[j] * (row[l] - (l == y))
                    for w, x, y, row in zip(self.w, self.X, self.y, V, strict=True)
                )
                for l in range(self.k)
            ]
            sizes.append(max(max(-g, 0) if self.positive else abs(g) for g in entries))
        return sizes

    def toward_labels(self, V: list[list[Fraction]], s: Fraction) -> list[list[Fraction]]:
        return [
            [s * v + (1 - s) * (l == y) for l, v in enumerate(row)]
            for y, row in zip(self.y, V, strict=True)
        ]


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("instance", CASES, ids=lambda instance: instance.name)
def test_the_dual_value_is_below_the_primal_value_exactly(instance: Instance, solver: str) -> None:
    if refusal(solver, "hinge", instance):
        pytest.skip("refused, as tests/optimality asserts")
    result = solve(instance, "hinge", solver, tol=1e-12, max_passes=200)
    problem = Exact(instance)
    U, V = exact(dense(result.U)), exact(dense(result.V))

    assert not instance.positive or all(u >= 0 for row in U for u in row)

    # the rows, onto the simplex
    assert all(v >= 0 for row in V for v in row)
    assert all(abs(sum(row) - 1) <= REPAIR for row in V)
    V = [[v / sum(row) for v in row] for row in V]

    sizes = problem.gradient_sizes(V)
    if instance.radius is None:
        ratios = [b / g for b, g in zip(problem.bounds, sizes, strict=True) if g]
        shrink = min([Fraction(1), *ratios])
        assert shrink >= 1 - REPAIR
        V = problem.toward_labels(V, shrink)
        sizes = problem.gradient_sizes(V)
        assert all(g <= b for g, b in zip(sizes, problem.bounds, strict=True))  # no tolerance
        dual = problem.gain(V)
    else:
        radius = Fraction(instance.radius)
        size = sum(abs(u) for row in U for u in row)
        assert size <= radius * (1 + REPAIR)
        U = [[u * min(Fraction(1), radius / size) for u in row] for row in U] if size else U
        excess = max(g - b for g, b in zip(sizes, problem.bounds, strict=True))
        dual = problem.gain(V) - radius * max(Fraction(0), excess)

    primal = problem.primal(U)
    assert dual <= primal  # no tolerance
    assert abs(float(primal) - result.primal) <= 1e-12 * max(1.0, abs(result.primal))
    assert abs(float(dual) - result.dual) <= 1e-11 * max(1.0, abs(result.dual))
