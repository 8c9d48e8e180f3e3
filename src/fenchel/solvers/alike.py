"""Two columns for all classes that no step has worked on, in Newton steps with the hinge loss.

Such classes have a score of zero, and in a row of V and of its centre all of them but the true one
have the same value. So scores, V and centre have columns for the classes worked on so far, one for
the true class where that is not among them (else for another that is not), and one for what all the
others have each: :class:`fenchel.losses.hinge.JointHinge` knows how many they are. Of hundreds of
classes, with text, most may stay without a coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel.design import SparseDesign
from fenchel.equal_columns import EqualColumns
from fenchel.feature_products import beyond
from fenchel.losses.hinge import JointHinge
from fenchel.problem import Problem
from fenchel.solvers.working_set import Entries, worst

#: Every class has its column where those worked on, and two more, are more than this part of all,
#: where V is so small that a pass over it takes no time, or the others too many for two bytes.
FEW_CLASSES, LARGE, MOST = 0.7, 1 << 22, np.iinfo(np.uint16).max


def share(n: int, k: int, known: int) -> bool:
    """Whether classes of large sparse data share columns where so many have their own."""
    return known + 2 <= FEW_CLASSES * k <= FEW_CLASSES * MOST and n * k >= LARGE


@dataclass(frozen=True)
class Alike:
    """A problem, and the classes worked on so far, in ascending order."""

    problem: Problem
    classes: np.ndarray

    @classmethod
    def of(cls, problem: Problem, classes: np.ndarray) -> Alike | None:
        """None where every class has its own column."""
        worth = problem.design.is_sparse and share(problem.n, problem.k, classes.size)
        # a feature without penalty has a coefficient in every class
        suits = worth and problem.loss.alike and not problem.has_free
        return cls(problem, classes) if suits else None

    @cached_property
    def place(self) -> np.ndarray:
        """The column of every class: the last but one for those not worked on."""
        place = np.full(self.problem.k, self.classes.size)
        place[self.classes] = np.arange(self.classes.size)
        return place

    @property
    def times(self) -> int:
        """How many classes the last column stands for."""
        return self.problem.k - self.classes.size - 1

    @cached_property
    def small(self) -> Problem:
        """The problem with these columns for its classes."""
        y, classes = self.place[self.problem.y], np.arange(self.classes.size + 2)
        return replace(self.problem, y=y, classes=classes, loss=JointHinge(self.times))

    def in_all(self, entries: Entries) -> Entries:
        """Entries of the columns as entries of all classes."""
        return Entries(entries.feature, self.classes[entries.klass], entries.u)

    def columns(self, A: np.ndarray, classes: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The columns that A, which has these, has for any of all classes."""
        place, m = self.place[classes], self.classes.size
        known, other = np.flatnonzero(place < m), np.flatnonzero(place == m)
        where = np.full(self.problem.k, -1)
        where[classes[other]] = other
        for rows in self.problem.row_blocks():  # what is copied stays in the cache
            some, part = out[rows], A[rows]
            some[:] = part[:, -1:]
            some[:, known] = part[:, place[known]]
            true = where[self.problem.y[rows]]
            own = np.flatnonzero(true >= 0)
            some[own, true[own]] = part[own, m]
        return out

    def spread(self, A: np.ndarray) -> np.ndarray:
        """A with a column for every class."""
        shape = self.problem.n, self.problem.k
        return self.columns(A, np.arange(self.problem.k), np.empty(shape))

    def with_new(self, A: np.ndarray, more: Alike) -> np.ndarray:
        """A with the columns of another, which knows more classes."""
        out = np.empty((self.problem.n, more.classes.size + 2))
        self.columns(A, more.classes, out[:, :-2])
        inside = more.small.y < more.classes.size
        out[:, -2] = np.where(inside, A[:, -1], A[:, -2])
        out[:, -1] = A[:, -1]
        return out

    def violators(
        self, V: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """What V, by these columns, violates in all classes (:func:`.working_set.violators`)."""
        problem, design = self.problem, self.problem.design
        assert isinstance(design, SparseDesign)
        beside = EqualColumns(V, self).residual(problem)
        bound = problem.lam * problem.penalty_factor
        feature, klass, excess, scale = beyond(design.csc, beside, problem.nonnegative, bound)
        return *worst(feature, klass, excess, limit), scale
