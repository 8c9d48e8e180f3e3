"""Steps of a smooth loss on the classes one by one: cheap Newton steps for the way to a solution.

The Hessian of a Newton step couples all classes. Its blocks on the diagonal, one for a class, are
small and cost little; what they leave out, and what has changed since they were formed, is left to
one number that multiplies them: the quotient of Barzilai and Borwein of the last step, with the
non-monotone test of SpaRSA (Wright, Nowak and Figueiredo). Far from the solution these steps gain
as much as Newton steps at a part of the cost; close to it they slow down where classes are
correlated, and Newton steps take over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fenchel.kernels import class_blocks as kernels
from fenchel.kernels.by_class import curvature_by_class
from fenchel.problem import Problem
from fenchel.solvers.l1_model import forms_hessian
from fenchel.solvers.working_set import Columns, Entries

#: Passes of coordinate descent in a step, and the relative size of changes that ends them.
SWEEPS, CLOSE = 5, 0.1

#: Passes where the loss is smoothed around a centre: that problem is not the last.
SWEEPS_SMOOTHED = 3

#: A value may be as large as the largest of the last so many, less this part of the prediction.
MEMORY, SUFFICIENT = 3, 5e-4

#: The curvature of a sample is at least this part of the mean over all samples.
LEAST = 0.1

#: A step that is refused is tried again with the blocks so many times larger.
SHORTER = 3.0

#: The multiple of the blocks stays within these bounds; a step beyond them is given up.
SCALES = 1e-3, 1e12

#: Steps between two looks at all features.
STEPS = 6

#: No hand-over while more than this part of the non-zeros came or went since the last look.
UNSETTLED = 0.2

#: A refreshed working set may take in as many entries a class: they cost these steps little.
NEW_BY_CLASS = 4

#: The damping that Newton steps begin with after a hand-over, close to the solution of a smooth
#: loss, and of a smoothed one, where X is dense and where it is sparse.
DAMPING, DAMPING_SMOOTHED, DAMPING_SMOOTHED_SPARSE = 1e-4, 1e-3, 1e-2

#: The blocks are formed anew where the curvature of a step was beyond these multiples of theirs.
TRUSTED = 0.5, 2.0


def few_coefficients(problem: Problem) -> bool:
    """Whether there are no more coefficients than samples, so that blocks of all are small."""
    return problem.d * problem.k <= problem.n


@dataclass
class Blocks:
    """The blocks of the Hessian on its diagonal, one for a class: its entries lie together."""

    _step: Callable[..., float]
    sweeps: int = SWEEPS

    @classmethod
    def of(
        cls, problem: Problem, columns: Columns, entries: Entries, V: np.ndarray, eta: float
    ) -> Blocks:
        """The blocks of the entries at the dual point V; eta is the step of a smoothed loss.

        V is by class, (k, n), where X is dense.
        """
        classes, bounds = entries.bounds
        curvature = np.empty((classes.size, problem.n))
        smooth = problem.loss.smooth
        if smooth:
            h, scale = problem.loss.curvature(V, 1.0), 1.0
        else:
            h, scale = (V > 0.0).view(np.uint8), eta  # a byte an entry: V is large
            by_sample = h if columns.sparse else h.T
            by_sample[np.arange(problem.n), problem.y] = 1  # without mass, it gets it on its way up
        args = h, scale, problem.y, problem.weights, classes, LEAST, smooth, curvature
        (kernels.class_curvature if columns.sparse else curvature_by_class)(*args)
        if columns.sparse:
            indptr, indices, data, _ = columns.data
            csc = indptr, indices, data, entries.feature, bounds, curvature
            sweeps = SWEEPS if problem.loss.smooth else SWEEPS_SMOOTHED
            return cls(partial(kernels.sparse_class_steps, *csc), sweeps)
        offset = np.concatenate([[0], np.cumsum(np.diff(bounds) ** 2)])
        values = columns.blocks(entries, bounds, curvature, offset)
        return cls(partial(kernels.class_steps, values, offset, bounds))

    def step(
        self,
        scale: float,
        g: np.ndarray,
        u: np.ndarray,
        penalty: np.ndarray,
        below: np.ndarray,
        s: np.ndarray,
    ) -> float:
        """Minimise over the steps s with K times scale for the Hessian; returns s^T K s."""
        return self._step(scale, g, u, penalty, below, self.sweeps, CLOSE, s)


@dataclass
class Progress:
    """What the steps remember from one to the next."""

    scale: float = 1.0  # what the blocks are multiplied by
    blocks: Blocks | None = None  # None where they have to be formed anew
    values: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    gained: float = np.inf  # by the steps of the last look
    spent: float = 0.0  # on steps that Newton steps would have been worth
    slow: bool = False  # Newton steps are the better choice from now on

    def looked(self, gain: float, settled: bool, cost: float, newton: float) -> None:
        """Tell what the steps of a look have gained and cost, and what a Newton step costs.

        Where the non-zeros have settled, two Newton steps divide the error by a hundred or more. If
        these steps would cost more than that at their present rate, and have done so for the cost
        of a Newton step, they are given up: at most about twice the least cost, as with skis that
        are rented until their price is paid.
        """
        rate = gain / self.gained
        looks = np.log(1e-2) / np.log(np.clip(rate, 1e-300, 1.0 - 1e-15))
        self.spent = self.spent + cost if settled and looks * cost > 2.0 * newton else 0.0
        self.slow = self.spent >= newton or gain <= 0.0
        self.gained, self.blocks = gain, None

    def accepts(self, value: float, quadratic: float) -> bool:
        """Whether a step to this value is good enough; ``quadratic`` is s^T K s."""
        return value <= max(self.values) - SUFFICIENT * self.scale * quadratic

    def stepped(self, value: float, curvature: float, quadratic: float) -> None:
        """Tell about a step: <change of gradient, s>, and s^T K s which stands for it."""
        self.values.append(value)
        quotient = curvature / quadratic if quadratic > 0.0 else 1.0
        self.scale = min(max(quotient, SCALES[0]), SCALES[1])
        if not TRUSTED[0] <= quotient <= TRUSTED[1]:
            self.blocks = None


def costs(
    problem: Problem, columns: Columns, entries: Entries, n_steps: int, many: bool
) -> tuple[float, float]:
    """What steps on single classes and one Newton step cost, in multiplications.

    ``many`` says whether V has few zeros, so that no sample can be left out.

    One of BLAS counts as an eighth; an exponential as ten.
    """
    size, n = entries.klass.size, problem.n
    stored = columns.stored(entries)
    steps = 2.0 * stored + 10.0 * n * problem.k
    if columns.sparse:
        steps += 2.0 * SWEEPS * stored
    else:
        steps += float((np.bincount(entries.klass) ** 2.0).sum()) * n / 8
    if not columns.sparse and forms_hessian(size, n, blas=many):
        return n_steps * steps, size**2 * n / 8 + 0.4 * size**3
    return n_steps * steps, 40.0 * stored
