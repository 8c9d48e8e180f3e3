"""What the arrays of a fit take, counted from its size and from what was seen of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fenchel.design import is_hardly_sparse
from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.driver import START_ENTRIES
from fenchel.losses import Loss, Sparsemax, get_loss
from fenchel.problem import BLOCK_ENTRIES, Matrix
from fenchel.solvers.alike import FEW_CLASSES, share
from fenchel.solvers.gathered import MOST_ENTRIES as MOST_FREQUENT
from fenchel.solvers.l1_model import BLAS_SIZE, DENSE_SIZE, DENSE_WORK
from fenchel.solvers.primal_dual import DENSE_ENTRIES
from fenchel.solvers.working_rows import LARGE
from fenchel.solvers.working_set import COPIED_ENTRIES, HESSIAN_ENTRIES, WORTH_A_COPY

#: A fit of at most so many entries of X and scores is made as a whole and traced.
WHOLE_ENTRIES = 1 << 20

#: What any fit takes: objects and buffers; and what the allocator keeps between the arrays, as a
#: part of them, up to so many bytes.
FLOOR, BETWEEN, MOST_BETWEEN = 200_000, 0.08, 5_000_000

#: The same with sparse data that are large or have frequent features: arrays come in many sizes.
BETWEEN_SPARSE = 9_000_000

#: Arrays of the size of the scores (n x k) at the peak, in a Newton step: X U, V, the best V; rows,
#: weights and shares of the curvature, the change of X U and a spare one of it. A loss that is not
#: smooth has a centre as well, which a dense X has room for: less is gathered than is allowed for.
#: Counted from what was measured, as are the others here. Rows, weights and shares are two arrays
#: and a half, and only of where a V has curvature: with sparsemax on its support, which is anything
#: from all of the scores (a large penalty) to next to nothing. Of that no more than this part is
#: counted: where it is larger, values of X are no longer gathered.
SCORE_ARRAYS, CENTRE, CURVATURE, SUPPORT = 8, 0.3, 2.5, 0.6

#: Two more of them where they are large and the loss is not smooth. Measured, in the first sweeps
#: of Newton steps; which arrays they are was not traced.
LARGE_CENTRE = 2.0

#: Arrays of scores on dense data with a smooth loss; with another, of which some are held by class
#: too; and where a fit ends at its start.
SMOOTH_SCORES, CLASS_SCORES, START_SCORES = 6.6, 8.6, 2

#: Blocks of the gradient (d x k) at the same time; of sparse data only what is beyond its bound is
#: kept.
GRADIENT_BLOCKS = 3

#: Arrays of the size of the scores and of U that the hybrid gradient steps hold together with a
#: check: three points with their products, sums, the last restart and the best point. U is sparse.
HYBRID_SCORES, HYBRID_GRADIENTS = 14, 7

#: Without an intercept, with the hinge loss on sparse data, only classes with coefficients have
#: something of their own. Arrays with a column for each of these, or for all where they are many
#: (:mod:`fenchel.solvers.alike`), are X U, V, its centre and the best V, and for a certificate a
#: copy of V: one with zeros takes more, and it has some in samples that coefficients meet. Newton
#: steps gather values of X and positions of some bytes, or take the positions of all samples: of
#: that this part is counted, because samples without curvature are left out.
HELD_SCORES, CERTIFIED, CERTIFIED_MET, GATHERED_PART = 4, 1.2, 1.4, 0.78

#: With a smooth loss X U, V, the best V and what a certificate takes have a column for every class,
#: and so has the dual point of a Newton model, if not always at the peak. The rest of what is
#: counted beside an intercept is by the part of the classes that want a coefficient.
SMOOTH_APART, MODEL_APART = 4.1, 0.5

#: Of what was freed, some is still there when more is asked for, between nothing and all: at the
#: end V has a column for every class. Arrays of more bytes than this are mapped, and unmapped.
#: Beside the Hessian of dense data it is the second part of what steps before it have gathered.
KEPT, KEPT_DENSE, MAPPED = 0.45, 0.6, 32 << 20

#: X is held by rows and by columns, and what was freed beside them is not all used again. At the
#: start two doubles for a non-zero are there as well, of which the norms of the columns are made,
#: but only so many arrays of scores, V at zero and as a dual point; and the residuals of some
#: classes, unless V is the same in all of them. A loss that is not smooth makes V at zero of more,
#: before X is there by columns; the second number where it is the same.
SPARSE_COPIES, NORM_DOUBLES, FIRST_SCORES, FIRST_MARGINS = 2.2, 2, 2, (4, 3)

#: Bytes of a number, in double and in single precision, and of a position.
DOUBLE, SINGLE, POSITION = 8, 4, 4

#: The rows of a sparse X in the features of the working set are copied where scores are many: about
#: this part of X.
WORKING_PART = 0.3

#: Where features of the working set are frequent they become an array, which grows by about this
#: factor, and steps on single classes have so many arrays of scores beside it: X U, V and the best
#: V; the first two by class as well, and the curvature, which sparsemax makes of its support. In
#: Newton steps after them about the last part of the array is left, and an array of scores less is
#: counted: some fits end before them.
FREQUENT_GROWTH, FREQUENT_SCORES, FREQUENT_SUPPORT, FREQUENT_LATER = 1.2, 6, 1, 0.4

#: Bytes of a sample with curvature in a class: row, weight, share, and two numbers of a product.
OF_POSITION = 36

#: Products with a dense X in single precision widen a block of it, and turn that by columns.
WIDENED = 1.6

#: Where no Hessian is formed of dense data, the positions that Newton steps read take about this
#: part of X.
POSITIONS = 0.9

#: At sparse data, which have small Hessians only, it is up to so many entries of X and scores; and
#: where features of the working set become an array, so many of that and scores.
LOOK_SPARSE, LOOK_FREQUENT = 1 << 20, 1 << 22

#: There is no look where the Hessian is at most this part of the rest in any case.
SMALL_PART = 0.1


@dataclass(frozen=True)
class Apart:
    """What coefficients want to leave zero, of classes that need not have any."""

    classes: int  # where some do
    met: float  # part of the scores: samples that they meet, in each class
    values: float  # of X, for each sample, in the first working set


@dataclass(frozen=True)
class Seen:
    """What a look tells of a fit."""

    hessian: float = 0.0  # rows of the largest that is formed
    face: float = 0.0  # rows of what is solved of it
    samples: float = 0.0  # of which it is made in one product, if it is
    at_start: bool = False  # whether zero is the solution
    even: bool = False  # whether V is the same there in all classes but the true one
    without: bool = False  # whether Newton steps are made without one
    instead: float = 0.0  # bytes that these gather of X
    blocks: float = 0.0  # bytes of the blocks of single classes, of steps before them
    dense: bool = False  # whether the dual point has few zeros
    support: float = SUPPORT  # part of the scores with curvature, of sparsemax and sparse data
    settled: float = 1.0  # the same of any loss where a V was seen whose support gets smaller
    only_start: bool = False  # whether nothing but the start was looked at
    frequent: float = 0.0  # entries of the first array that is made of features of sparse data
    apart: Apart | None = None  # where classes without coefficients have nothing of their own


@dataclass(frozen=True)
class Size:
    """What the memory of a fit depends on."""

    n: int  # distinct samples: the others are merged before anything else is done
    d: int
    k: int
    stored: int  # bytes of X beside a column of ones
    nonzeros: int | None  # of X beside a column of ones, where its design is sparse
    loss: Loss
    intercept: bool = True  # or another feature without penalty

    @classmethod
    def of(
        cls,
        X: Matrix,
        k: int,
        loss: str | Loss,
        rows: np.ndarray | None = None,
        intercept: bool = True,
    ) -> Size:
        """That of a fit to these rows of X, which is in CSR form where it is sparse; or to all."""
        (n, d), loss = X.shape, get_loss(loss)
        n = n if rows is None else rows.size
        if sp.issparse(X):
            nonzeros = X.nnz if rows is None else int(np.diff(X.indptr)[rows].sum())
            nonzeros += n * intercept
            if not is_hardly_sparse(n, d + intercept, nonzeros):
                position = X.indices.itemsize if X.format in ("csr", "csc") else POSITION
                stored = nonzeros * (DOUBLE + position)
                return cls(n, d, k, stored, nonzeros, loss, intercept)
        item = SINGLE if X.dtype == np.float32 and not sp.issparse(X) else DOUBLE
        return cls(n, d, k, n * (d + intercept) * item, None, loss, intercept)

    @property
    def columns(self) -> int:
        """Those of X, with that of the intercept."""
        return self.d + self.intercept

    def with_rows(self, n: int) -> Size:
        """The same with so many of the rows."""
        nonzeros = None if self.nonzeros is None else self.nonzeros * n // self.n
        return replace(self, n=n, stored=self.stored * n // self.n, nonzeros=nonzeros)

    def with_features(self, d: int) -> Size:
        """The same with so many of the features."""
        if self.nonzeros is None:
            stored = self.stored // self.columns * (d + self.intercept)
            return replace(self, d=d, stored=stored)
        ones = self.n * self.intercept
        nonzeros = ones + (self.nonzeros - ones) * d // self.d
        stored = self.stored // self.nonzeros * nonzeros
        return replace(self, d=d, stored=stored, nonzeros=nonzeros)

    def with_classes(self, k: int) -> Size:
        """The same with so many classes."""
        return replace(self, k=k)

    def least_bytes(self) -> int:
        """What any solver takes: a copy of X, whatever it makes of U and V."""
        return FLOOR + self.stored

    def fit_bytes(self, seen: Seen | None = None) -> int:
        """What a fit takes, by what was seen: by default, with as large a Hessian as may be."""
        n, d, k, loss = self.n, self.d, self.k, self.loss
        scores, gradient = 8 * n * k, 8 * d * k
        if self.nonzeros is not None:
            work: float = SCORE_ARRAYS * scores
            settled = 1.0 if seen is None else seen.settled
            if not loss.smooth:
                centre = min(CENTRE, 1.0 - (1.0 - settled) * CURVATURE)
                work += (centre + LARGE_CENTRE * (n * k > LARGE)) * scores
            elif isinstance(loss, Sparsemax):
                part = min(settled, SUPPORT if seen is None else seen.support)
                work -= (1.0 - part) * CURVATURE * scores
            if seen is not None and seen.apart is not None:
                work = self._apart_bytes(seen.apart, work)
            if seen is not None and seen.frequent:
                arrays = FREQUENT_SCORES + FREQUENT_SUPPORT * isinstance(loss, Sparsemax)
                entries = min(FREQUENT_GROWTH * seen.frequent, MOST_FREQUENT)
                later = DOUBLE * FREQUENT_LATER * seen.frequent - scores
                work = max(work + later, arrays * scores + DOUBLE * entries)
            copies = SPARSE_COPIES + (WORKING_PART if n * k > LARGE else 0.0)
            start = self._start_bytes(scores, seen is not None and seen.even)
            if seen is None or seen.only_start:  # some Hessian may be formed
                return FLOOR + int(BETWEEN_SPARSE + copies * self.stored + max(work, start))
            if seen.at_start:  # by rows and by columns, and nothing after it
                return FLOOR + int(2 * self.stored + start)
            hessian = factor_bytes(seen.hessian, min(n, seen.samples))
            between = BETWEEN_SPARSE if seen.frequent else 0
            return FLOOR + int(between + hessian + copies * self.stored + max(work, start))
        if seen is None:
            most = min(d * k, BLAS_SIZE)
            seen = Seen(most, min(n, most))  # no more coefficients are used than there are samples
        blocks = GRADIENT_BLOCKS * min(gradient, 8 * BLOCK_ENTRIES)
        if seen.at_start:
            return with_rest(self.stored + START_SCORES * scores + blocks)
        work = (SMOOTH_SCORES if loss.smooth else CLASS_SCORES) * scores + blocks
        rows = min(seen.hessian, n * k)  # of fewer samples than were looked at it is smaller
        hessian = 8 * (rows**2 + min(seen.face, n * k) ** 2)
        if seen.samples:
            hessian = max(hessian, factor_bytes(rows, min(n, seen.samples)))
        if loss.smooth or seen.dense:  # by products of some samples at a time
            hessian += 8 * min(rows * n, HESSIAN_ENTRIES)
        if rows and seen.dense and not loss.twice_differentiable:  # of those with curvature, copied
            hessian += 8 * min(WORTH_A_COPY * n * d, COPIED_ENTRIES)
        # where V has few zeros, values are gathered only for no more entries than features
        read = POSITIONS * self.stored if seen.without and seen.dense else 0.0
        # of what steps before it have gathered, the allocator keeps some
        kept = 0.0 if seen.dense else KEPT_DENSE * seen.instead
        work += max(hessian + kept, seen.instead, seen.blocks, read)
        if self.is_widened:
            work += WIDENED * DOUBLE * min(n * d, DESIGN_ENTRIES)
        if self._begins_rough:
            work = max(work, HYBRID_SCORES * scores + HYBRID_GRADIENTS * gradient)
        return with_rest(2 * self.stored + work)

    def _start_bytes(self, scores: float, even: bool) -> float:
        """What the start takes beside two copies of sparse X."""
        assert self.nonzeros is not None
        start: float = NORM_DOUBLES * DOUBLE * self.nonzeros
        if (
            self.is_apart and not self.loss.smooth
        ):  # nothing but V is held there, or the labels where scores are many
            scores *= self.n * self.k <= START_ENTRIES
            return max(start + scores, FIRST_MARGINS[1] * scores - self.stored)
        classes = 0 if even else min(self.k, max(1, BLOCK_ENTRIES // max(self.columns, self.n)))
        start += FIRST_SCORES * scores + DOUBLE * self.n * classes
        return start if self.loss.smooth else max(start, FIRST_MARGINS[even] * scores - self.stored)

    def _apart_bytes(self, apart: Apart, most: float) -> float:
        """What is held beside sparse X where only some classes have something of their own.

        ``most`` is what it is where all have.
        """
        n, k, classes = self.n, self.k, min(apart.classes, self.k)
        if self.loss.smooth:
            arrays = SMOOTH_APART + MODEL_APART * self.loss.twice_differentiable
            least = min(arrays * DOUBLE * n * k, most)
            return least + (most - least) * classes / k
        shared = share(n, k, classes)
        if classes + 2 > FEW_CLASSES * k:
            classes = k  # the others will follow
        own = DOUBLE * n * (classes + 2 if shared else k)
        values, places = apart.values * n, n * classes
        packed = (DOUBLE + POSITION) * values + OF_POSITION * min(values, places)
        gathered = GATHERED_PART * min(packed, OF_POSITION * places)
        copy = CERTIFIED + (0.0 if shared else CERTIFIED_MET * apart.met)
        work = HELD_SCORES * own + max(copy * own, gathered)
        if not shared:
            return work
        kept = KEPT * (work - own) if own <= MAPPED else 0.0
        return max(work, own + kept + DOUBLE * n * k)

    @property
    def is_apart(self) -> bool:
        """Whether classes without coefficients have nothing of their own, of sparse data."""
        known = self.loss.alike or self.loss.smooth
        return self.nonzeros is not None and not self.intercept and known

    @property
    def is_small(self) -> bool:
        """Whether a whole fit is worth a try."""
        stored = self.n * self.d if self.nonzeros is None else self.nonzeros
        return stored + self.n * self.k <= WHOLE_ENTRIES

    @property
    def is_widened(self) -> bool:
        """Whether X is dense and of single precision."""
        return self.nonzeros is None and self.stored < DOUBLE * self.n * self.columns

    @property
    def begins(self) -> bool:
        """Whether a fit of sparse data is begun: where the largest Hessian would matter."""
        assert self.nonzeros is not None
        size = min(DENSE_SIZE, np.sqrt(DENSE_WORK / self.n), self.d * self.k)
        small = self.nonzeros + self.n * self.k <= LOOK_SPARSE
        return bool(small and factor_bytes(size, self.n) > SMALL_PART * self.fit_bytes(Seen()))

    @property
    def _begins_rough(self) -> bool:
        """Whether hybrid gradient steps come first (:class:`.PrimalDual`), for dense data."""
        fits = (self.n + self.d) * self.k <= DENSE_ENTRIES
        return not self.loss.smooth and self.columns * self.k > self.n and fits


def with_rest(arrays: float) -> int:
    """What arrays take, and what is between and beside them."""
    return FLOOR + int(arrays + min(BETWEEN * arrays, MOST_BETWEEN))


def factor_bytes(size: float, n_rows: float) -> float:
    """What a Hessian in one product takes: its factor, the product of that, and its negative."""
    return 8.0 * size * (n_rows + 2.0 * size)
