"""The features of a working set as dense data, where they are frequent in a sparse X.

What is rare has no coefficient: in text of characters, counts of words, or genes of single cells
the features of a working set can have values in half of the samples, though X has them in one of a
hundred places. Steps on the working set read nothing else of X, and without indices they take a
part of the time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fenchel.design import DenseDesign
from fenchel.problem import Problem
from fenchel.solvers.newton_state import State
from fenchel.solvers.working_set import Columns, Entries

#: Features are gathered where this part of their values is stored, if what the entries have of them
#: are at least so many, so that it matters, and the array has at most so many entries.
FREQUENT, LEAST_STORED, MOST_ENTRIES = 0.2, 1 << 20, 1 << 24

#: Steps on dense data have scores and dual point by class as well: of no more entries than this.
MOST_SCORES = 1 << 23


def gathers(state: State) -> bool:
    """Whether the features of the working set are worked with as dense data."""
    return are_frequent(state.problem, state.columns, state.entries)


def are_frequent(problem: Problem, columns: Columns, entries: Entries) -> bool:
    """Whether the features of a working set are worth an array.

    With a smooth loss: else few samples matter once V has zeros, and they are packed.
    """
    if not (columns.sparse and problem.loss.smooth and problem.n * problem.k <= MOST_SCORES):
        return False
    stored = columns.stored(entries)
    if stored < max(LEAST_STORED, FREQUENT * problem.n * entries.u.size):
        return False
    return problem.n * features_of(problem, entries).size <= MOST_ENTRIES


def gathered(state: State) -> tuple[State, np.ndarray]:
    """The same state with the features of its working set alone, and which these are.

    Z and V are those of the state itself: what becomes of them stays there.
    """
    problem, entries = state.problem, state.entries
    features = features_of(problem, entries)
    indptr, indices, data, n = state.columns.data
    Xt = np.zeros((features.size, n))
    for row, j in zip(Xt, features, strict=True):
        row[indices[indptr[j] : indptr[j + 1]]] = data[indptr[j] : indptr[j + 1]]
    design = DenseDesign(Xt.T)
    small = replace(problem, design=design, penalty_factor=problem.penalty_factor[features])
    place = np.searchsorted(features, entries.feature)
    return replace(
        state, problem=small, columns=Columns.of(design), alike=None,
        entries=Entries(place, entries.klass, entries.u), curvature=state.curvature[features],
        gradient=None, survey=None, hessian=None, known=None,
    ), features  # fmt: skip


def features_of(problem: Problem, entries: Entries) -> np.ndarray:
    """The features of the entries; the intercept, which stays the last one, in any case."""
    features = np.unique(entries.feature)
    return np.union1d(features, problem.d - 1) if problem.intercept else features
