"""Where Newton steps begin with the next penalty of a path: the last point, changed towards it."""

from __future__ import annotations

import numpy as np

from fenchel.solvers.l1_model import kept_signs
from fenchel.solvers.newton_state import State
from fenchel.solvers.working_set import Entries, violators, worst

#: A dual point shrinks with the penalty in the samples with no more loss than this.
SETTLED = 0.15

#: The part of the last change of U that is made once more for the next penalty: with more of it
#: violations are larger, and one Newton step is still not enough.
AGAIN = 0.3

#: Constraints that are at this part of their bound, or closer, may be violated a few steps later:
#: their entries come in at once, as many as are this part of the non-zeros.
CLOSE, MOST_CLOSE = 0.9, 0.1


def extrapolate(state: State, last: float) -> None:
    """Change the solution with the penalty ``last`` as it changed from the penalty before.

    Not with sparse data, where steps on single classes come first and gain nothing by it.
    """
    problem, entries, earlier = state.problem, state.entries, state.earlier
    if state.columns.sparse:
        return
    state.earlier = Entries(entries.feature, entries.klass, entries.u.copy()), last
    if earlier is None or not 0.0 < problem.lam < last < earlier[1]:
        return
    part = AGAIN * min(1.0, np.log(problem.lam / last) / np.log(last / earlier[1]))
    place = entries.place_in(earlier[0], problem.d)
    before = np.append(earlier[0].u, 0.0)[place]  # zero for what was not there
    free = state.penalties[1] == 0.0
    entries.u = kept_signs(entries.u, part * (entries.u - before), free)
    state.Z = state.columns.product(entries, entries.u, problem.k)
    state.evaluate()


def shrink_centre(state: State, ratio: float) -> None:
    """Move the centre towards the labels, for a penalty smaller by the ratio.

    The bounds on G_U shrink with it. That is taken from the samples at their margin: those with a
    loss keep all of their mass on mistakes.
    """
    problem, centre = state.problem, state.centre
    assert centre is not None
    few = np.flatnonzero(problem.loss.value(state.Z, problem.y) <= SETTLED)
    centre[few] *= ratio
    centre[few, problem.y[few]] += 1.0 - ratio


def newcomers(state: State, limit: int) -> tuple[np.ndarray, np.ndarray, float]:
    """What comes into the working set of dense data, and the scale (:func:`.violators`).

    Right after the penalty or the centre has changed the constraints of most non-zeros are
    violated. These are in the working set anyway, and leave its ``limit`` to others.
    """
    problem, entries = state.problem, state.entries
    known = entries.only(np.flatnonzero(entries.u))
    close = problem.with_penalty(CLOSE * problem.lam)
    every = problem.d * problem.k
    feature, klass, excess, scale = violators(close, state.V, every, state.gradient)
    new = np.flatnonzero(Entries(feature, klass, excess).place_in(known, problem.d) < 0)
    feature, klass = feature[new], klass[new]
    over = excess[new] - (problem.lam - close.lam) * problem.penalty_factor[feature]
    most = max(int(np.count_nonzero(over > 0.0)), 1 + int(MOST_CLOSE * known.u.size))
    feature, klass, _ = worst(feature, klass, over, min(limit, most))
    return feature, klass, min(1.0, scale / CLOSE)
