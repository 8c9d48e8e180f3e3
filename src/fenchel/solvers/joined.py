"""Classes whose scores do not move, taken for one: steps on a working set of few classes cost less.

With the softmax loss classes without entries in the working set act on the others by the sum of
their exponentials alone, which stays as it is: one class with the score ``log sum exp`` in their
place has the same loss, but for a constant, and the same gradient and Hessian on the entries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fenchel.problem import Problem
from fenchel.solvers.working_set import Entries

#: Scores and V of the classes with entries and one more are copied where these are at most this
#: part of all classes, and only where a pass over V takes time.
FEW_CLASSES, LARGE = 0.4, 1 << 22


def joins(problem: Problem, entries: Entries) -> bool:
    """Whether the classes without entries are taken for one."""
    few = entries.classes.size + 1 <= FEW_CLASSES * problem.k
    return problem.loss.joins and few and problem.n * problem.k >= LARGE


def joined(
    problem: Problem, entries: Entries, Z: np.ndarray
) -> tuple[Problem, Entries, np.ndarray, float]:
    """The problem with the other classes as its last one, entries and scores, and the constant."""
    classes = entries.classes
    place = np.full(problem.k, classes.size)
    place[classes] = np.arange(classes.size)
    others = np.flatnonzero(place == classes.size)
    scores = np.empty((problem.n, classes.size + 1))

    def fill(rows: slice) -> None:
        scores[rows, :-1] = Z[rows, classes]
        scores[rows, -1] = problem.loss.joint_score(Z[rows], others)

    problem.in_rows(fill)
    y = place[problem.y]
    outside = np.flatnonzero(y == classes.size)
    moved = scores[outside, -1] - Z[outside, problem.y[outside]]
    small = replace(problem, y=y, classes=np.arange(classes.size + 1))
    return (
        small,
        Entries(entries.feature, place[entries.klass], entries.u),
        scores,
        float(problem.weights[outside] @ moved),
    )
