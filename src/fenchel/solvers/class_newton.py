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
from fenchel.kernels.sampled_curvature import sampled_columns
from fenchel.problem import Problem
from fenchel.solvers.l1_model import forms_hessian
from fenchel.solvers.working_set import Columns, Entries
from fenchel.threads import each

#: Passes of coordinate descent in a step, and the relative size of changes that ends them.
SWEEPS, CLOSE = 5, 0.1

#: Passes where the loss is smoothed around a centre: that problem is not the last.
SWEEPS_SMOOTHED = 3

#: Blocks of sparse data are formed of so many samples a class, where there are so many times as
#: many, and of so many classes at a time.
SAMPLES, TIMES_AS_MANY, AT_A_TIME = 1 << 12, 5, 16

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
    work: float  # multiplications of a step, about
    sweeps: int = SWEEPS

    @classmethod
    def of(
        cls, problem: Problem, columns: Columns, entries: Entries, V: np.ndarray, eta: float
    ) -> Blocks:
        """The blocks of the entries at the dual point V; eta is the step of a smoothed loss.

        V is by class, (k, n), where X is dense.
        """
        classes, bounds = entries.bounds
        smooth = problem.loss.smooth
        V = V if columns.sparse else V.T
        if smooth:
            h, scale = problem.loss.curvature(V, 1.0, problem.y), 1.0
        else:
            h, scale = problem.loss.support(V, eta, problem.y), eta
            h[np.arange(problem.n), problem.y] = 1  # without mass, it gets it on its way up
        h = h if columns.sparse else h.T
        args = problem.y, problem.weights
        if not columns.sparse:
            curvature = np.empty((classes.size, problem.n))
            curvature_by_class(h, scale, *args, classes, LEAST, smooth, curvature)
            values = columns.blocks(entries, curvature)
            step = partial(kernels.class_steps, values, entries.offset, bounds)
            return cls(step, 2.0 * SWEEPS * columns.stored(entries))
        part = np.empty(problem.n)
        kernels.one_over_row_sums(h, part)

        def curvature_of(some: slice) -> np.ndarray:
            out = np.empty((classes[some].size, problem.n))
            kernels.class_curvature(h, part, scale, *args, classes[some], LEAST, smooth, out)
            return out

        sweeps = SWEEPS if smooth else SWEEPS_SMOOTHED
        csc = *columns.data[:3], entries.feature
        if problem.n > TIMES_AS_MANY * SAMPLES:
            blocks = _sampled_blocks(csc, bounds, curvature_of)
        else:
            blocks = _column_blocks(csc, bounds, curvature_of(slice(None)))
        pointer, feature = blocks[0], blocks[3]
        stored = float((pointer[feature + 1] - pointer[feature]).sum())
        step = partial(kernels.sparse_class_steps, *blocks)
        return cls(step, 2.0 * sweeps * stored, sweeps)

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


def _column_blocks(csc: tuple, bounds: np.ndarray, curvature: np.ndarray) -> tuple:
    """What ``sparse_class_steps`` wants to know of the blocks of all samples."""
    diagonal = np.empty(bounds[-1])
    blocks = *csc, bounds, curvature, diagonal
    kernels.sparse_diagonals(*blocks)
    return *blocks, np.zeros_like(diagonal)


def _sampled_blocks(
    csc: tuple, bounds: np.ndarray, curvature_of: Callable[[slice], np.ndarray]
) -> tuple:
    """The same for blocks of the samples that matter (:mod:`fenchel.kernels.sampled_curvature`).

    Some classes at a time: the curvature of all can be as large as the scores.
    """

    def of(start: int) -> tuple:
        some = slice(start, min(start + AT_A_TIME, bounds.size - 1))
        return sampled_columns(*csc, bounds[start : some.stop + 1], curvature_of(some), SAMPLES)

    found = each(of, range(0, bounds.size - 1, AT_A_TIME), csc[0].size + csc[1].size)
    pointer, sample, x, kept, diagonal, lacking = zip(*found, strict=True)
    ends = np.cumsum([0, *(part[-1] for part in pointer)])
    joined = [part[1:] + end for part, end in zip(pointer, ends, strict=False)]
    columns = np.concatenate([[0], *joined]), np.concatenate(sample), np.concatenate(x)
    own = np.arange(bounds[-1])  # a column for every entry
    return *columns, own, bounds, *(np.concatenate(part) for part in (kept, diagonal, lacking))


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
        are rented until their price is paid. A look at a good rate takes nothing off: where they
        crawl, the gains of single looks go up and down.
        """
        rate = gain / self.gained
        looks = np.log(1e-2) / np.log(np.clip(rate, 1e-300, 1.0 - 1e-15))
        if settled and looks * cost > 2.0 * newton:
            self.spent += cost
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
