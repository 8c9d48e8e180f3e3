"""Whether Newton steps on dense data will form a Hessian, and what they gather of X if not.

A look at a fit ends before most Newton steps. What these will do follows from the samples that have
curvature by then and from the coefficients that these meet (:meth:`.State.dense_hessian`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.fit_size import DOUBLE, POSITION
from fenchel.kernels.row_hessian import row_work
from fenchel.problem import Problem
from fenchel.solvers.l1_model import forms_hessian
from fenchel.solvers.newton_state import FACE, ROW_WORK
from fenchel.solvers.primal_dual import solution_size
from fenchel.solvers.proximal_newton import DAMPED, PRODUCTS, RAISED
from fenchel.solvers.working_set import Entries, many


@dataclass(frozen=True)
class Met:
    """What the samples with curvature meet of some coefficients."""

    used: int  # coefficients
    positions: float  # samples with curvature, in each class where they have some
    values: float  # of X for the coefficients there, what steps without a Hessian gather
    work: float  # multiplications for the Hessian, by the cheaper way
    at_the_end: float  # part of these samples that a loss which is not smooth leaves at a vertex

    @classmethod
    def of(cls, problem: Problem, V: np.ndarray, entries: Entries, used: int) -> Met:
        """By a dual point, for so many coefficients that are spread over the classes as these."""
        n, k = V.shape
        at_the_end = min(1.0, used / max(solution_size(V), 1))
        if many(V) or not entries.u.size:  # no sample is left out
            return cls(used, n * k, float(used * n), used**2 * n / 8, at_the_end)
        h = problem.loss.curvature(V, 1.0, problem.y)
        classes, bounds = entries.bounds
        sizes = np.diff(bounds) * (used / entries.u.size)
        args = np.empty((0, k)), problem.weights, classes, sizes, sizes
        n_rows, values, by_rows, _ = row_work(h, *args)
        work = min(by_rows, used**2 * n_rows / 8)
        return cls(used, float(np.count_nonzero(h)), values, work, at_the_end)

    def work_for(self, size: float, times: float) -> float:
        """Multiplications for a Hessian of another size, with so many times the samples."""
        return times * self.work * (size / max(self.used, 1)) ** 2

    def most_solved(self, times: float) -> float:
        """The most coefficients that are solved for directly, with so many times the samples.

        Conjugate gradients are the cheaper way to more: ``FACE s^3 + work(s)`` is as much as the
        products of a step then.
        """
        linear = self.work_for(1.0, times)
        products = 2.0 * PRODUCTS * times * self.values / max(self.used, 1)
        return float((np.sqrt(linear**2 + 4.0 * FACE * products) - linear) / (2.0 * FACE))


def forms_later(problem: Problem, met: Met, size: float, times: float) -> bool:
    """Whether a Hessian is formed at last, where the first Newton steps are made without one.

    With a smooth loss where one of the coefficients is ever formed: less and less damping makes it
    worth its price. With another fewer and fewer samples have curvature: where one of this size is
    cheap enough at the end.
    """
    if problem.loss.smooth:
        return forms_hessian(met.used, problem.n, blas=True)
    return met.work_for(size, times) <= ROW_WORK


def gathered_later(problem: Problem, size: int, n: int, damping: float) -> int:
    """Bytes of X that are gathered after a first Hessian of a dense dual point, for n samples.

    With a loss that is not smooth, where Newton steps come before all others: a step that is too
    long raises the damping, and with much of it a few products are cheaper than a Hessian by BLAS.
    For no more entries than features values are gathered then, of all samples, and a Hessian may
    still be made of them, in one product.
    """
    products = PRODUCTS * min(1.0, DAMPED / min(1.0, RAISED[1] * damping))
    if size > problem.d or size / 8 <= 2.0 * products:
        return 0
    factor = DOUBLE * forms_hessian(size, n)
    return (DOUBLE + POSITION + factor) * size * n
