"""When a dearer dual point is asked for: a pure function of the gap, the limit and the data."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.sparse as sp

from fenchel.design import make_design
from fenchel.sharpening import gap_limit, may_be_sharper, sharp_from
from fenchel.solvers.continued import FAR
from fenchel.termination import Budget
from instances import INSTANCES
from support import make_problem


@pytest.fixture(params=["dense", "sparse"])
def problem(request):
    found = make_problem(INSTANCES[0])
    if request.param == "dense":
        return found
    X = sp.csr_array((found.n, found.d))
    return replace(found, design=make_design(X))


def asked(problem, gap: float, tol: float, enough: float = 0.0) -> bool:
    """Gap and limit in units of P(0), as a tolerance and as a gap: both say the same."""
    unit = problem.at_zero
    by_tol = may_be_sharper(problem, gap * unit, Budget(tol=tol), enough)
    assert may_be_sharper(problem, gap * unit, Budget(tol=0.0, gap=tol * unit), enough) == by_tol
    return by_tol


def test_where_it_may_end_the_run(problem) -> None:
    rough, square = (0.2, 0.06) if problem.design.is_sparse else (0.1, 0.25)
    assert not asked(problem, 1.01 * rough, 0.9)  # still rough
    assert asked(problem, 0.99 * rough, 0.9)  # has ended, and the bound may be better than that
    gap = 0.9 * rough
    assert asked(problem, gap, 1.01 * square * gap**2)
    assert not asked(problem, gap, 0.99 * square * gap**2)
    assert asked(problem, 1e-3, 1e-3)
    assert not asked(problem, 1e-13, 1e-3)  # nothing to gain


def test_sparse_data_ask_earlier() -> None:
    dense = make_problem(INSTANCES[0])
    sparse = replace(dense, design=make_design(sp.csr_array((dense.n, dense.d))))
    assert sharp_from(sparse, 1e-3) > sharp_from(dense, 1e-3)


@pytest.mark.parametrize(("gap", "wanted"), [(0.03, True), (5e-3, True), (3e-3, False)])
def test_along_a_path_only_far_from_the_limit(problem, gap: float, wanted: bool) -> None:
    assert asked(problem, gap, 1e-3, FAR) == wanted


def test_the_larger_of_both_limits_counts() -> None:
    assert gap_limit(Budget(tol=1e-3, gap=0.5), at_zero=2.0) == 0.25
    assert gap_limit(Budget(tol=0.3, gap=0.5), at_zero=2.0) == 0.3
