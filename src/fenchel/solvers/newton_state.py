"""What Newton steps with an l1 penalty on a working set know, and compute of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel.kernels.curvature import residual_columns
from fenchel.kernels.l1_newton import largest_subgradient
from fenchel.losses.base import true_class
from fenchel.problem import Problem
from fenchel.solvers.alike import Alike
from fenchel.solvers.class_newton import Progress
from fenchel.solvers.class_quadratic import ClassQuadratic
from fenchel.solvers.class_scores import ClassScores
from fenchel.solvers.kept_hessian import KeptHessian, Room
from fenchel.solvers.l1_model import BLAS_SIZE, BLAS_WORK
from fenchel.solvers.packed_quadratic import PackedQuadratic
from fenchel.solvers.working_set import Columns, Entries, many

#: The centre moves when the inner error is this part of what smoothing costs.
INNER = 1.0

#: On dense data the Hessian is formed where that takes at most so many multiplications (more with
#: few zeros in the curvature, where conjugate gradients are as dear). The solves on the faces of a
#: step take so many times the cube of the non-zeros.
ROW_WORK, FACE = 1 << 28, 0.4

#: A Hessian with at least this damping is formed in single precision.
SINGLE = 1e-6

#: By BLAS that takes so many times less than multiplications sample by sample are counted for.
SINGLE_GAIN = 2

#: Where nothing is known of the optimum.
FAR_APART = np.inf, -np.inf

#: The proximal step on V grows by this factor from one centre to the next.
ETA_GROWTH = 3.0


@dataclass
class State:
    """Where Newton steps are, and what follows from that; :class:`.ProximalNewton` moves it."""

    problem: Problem
    columns: Columns
    entries: Entries
    Z: np.ndarray  # X U, updated in place
    V: np.ndarray  # the dual point that belongs to Z, updated in place
    value: float  # the smoothed risk at Z
    centre: np.ndarray | None  # V0, None for a loss that is smooth by itself
    eta: float  # step of the proximal term ||v - v0||^2 / (2 eta)
    curvature: np.ndarray  # sum_i weights_i X_ij^2, what damping is measured in
    room: Room  # of the Hessian
    constant: float = 0.0  # what is added to the risk, where classes are joined
    growth: float = ETA_GROWTH  # of eta, from one centre to the next
    damping: float = 0.1
    gap: float = np.inf  # of (U, V) when surveyed last, where V has a centre
    bracket: tuple[float, float] = FAR_APART  # the lowest primal and highest dual value surveyed
    survey: tuple[np.ndarray, np.ndarray, bool] | None = None  # what V violates; if it is solved
    gap_by_class: float = 0.0  # about, after steps on single classes with a smooth loss
    rough: bool = False  # after such steps: too far away for the model of a dual point
    enough: float = 0.0  # a subgradient on the working set that asks for no more Newton steps
    moved: bool = False  # the centre, since the last Newton step
    work: float = 0.0  # multiplications of this iteration, about
    by_class: Progress | None = None  # of the steps on single classes, None where there are none
    scores: ClassScores | None = None  # what Z and V are during such steps on dense data
    step: np.ndarray | None = None  # of the working set, known from a sharpened dual point
    looked: bool = False  # the working set is that of V, since a dual point was sharpened
    stiff: bool = False  # the model without damping takes too long
    on_path: bool = False  # another penalty came before
    earlier: tuple[Entries, float] | None = None  # the solution with the penalty before, and that
    follows: bool = False  # the next iteration is the first with another penalty
    sharp: np.ndarray | None = None  # the dual point of the model whose step was taken last
    gradient: np.ndarray | None = None  # all of G_U at V, where that is known
    hessian: KeptHessian | None = None  # of dense data, for the next step to change
    known: tuple[Problem, Entries, tuple] | None = None  # penalties, and what they belong to
    shown: float = np.inf  # what gap_so_far was when a point was handed out last
    alike: Alike | None = None  # what the columns are, where they are not those of all classes

    def __post_init__(self) -> None:
        self.columns.make(self.entries.feature)

    @property
    def whole(self) -> Problem:
        """The problem with all classes; ``problem`` has those that Z and V have columns for."""
        return self.problem if self.alike is None else self.alike.problem

    @property
    def gap_so_far(self) -> float:
        """The gap of the best U and V surveyed."""
        return self.bracket[0] - self.bracket[1]

    def take_in(self, feature: np.ndarray, klass: np.ndarray) -> None:
        """Take the non-zeros and these entries, of any class, for the working set."""
        if self.alike is not None:
            self._know(np.unique(klass))
        if self.alike is not None:
            klass = self.alike.place[klass]
        self.work_on(self.entries.with_new(feature, klass))

    def _know(self, classes: np.ndarray) -> None:
        """Let these classes have columns of their own, or all where they are many."""
        known = self.alike
        assert known is not None
        classes = np.union1d(known.classes, classes)
        if classes.size == known.classes.size:
            return
        more = self.alike = Alike.of(known.problem, classes)
        self.problem = known.problem if more is None else more.small
        entries = known.in_all(self.entries)
        klass = entries.klass if more is None else more.place[entries.klass]
        self.entries = Entries(entries.feature, klass, entries.u)
        for name in ("Z", "V", "centre"):  # one after the other: they are large
            A = getattr(self, name)
            setattr(self, name, known.spread(A) if more is None else known.with_new(A, more))

    def work_on(self, entries: Entries) -> None:
        """Take these entries for the working set."""
        self.entries = entries
        self.columns.make(entries.feature)

    @cached_property
    def size(self) -> float:
        """The largest root mean square of a feature, if below 1: gradients are as small as that."""
        return min(1.0, float(np.sqrt(self.curvature.max()))) or 1.0

    def evaluate(self) -> None:
        """The (smoothed) risk at Z, and the maximising V: G_U belongs to it."""
        problem, loss = self.problem, self.problem.loss
        self.value, self.gradient, self.survey = self.constant, None, None
        if loss.twice_differentiable:
            self.hessian = None  # of V, which is about to change in all samples
        self.work += 10.0 * self.Z.size
        if self.scores is not None:
            self.value += self.scores.evaluate()
            return

        def of(rows: slice) -> float:
            y, Z, V = problem.y[rows], self.Z[rows], self.V[rows]
            if self.centre is not None:
                losses = loss.smoothed(self.centre[rows], Z, self.eta, y, V)
            else:
                losses = loss.evaluate(Z, y, V)
            return float(problem.weights[rows] @ losses)

        self.value += problem.sum_of_rows(of)

    def add(self, s: np.ndarray) -> None:
        """Add a step on the working set to the scores."""
        if self.scores is None:
            self.columns.add_product(self.Z, self.entries, s)
        else:
            self.scores.add(self.entries, s)

    def objective(self) -> float:
        """The (smoothed) risk and the penalty."""
        return self.value + float(self.penalties[0] @ np.abs(self.entries.u))

    def subgradient(self) -> tuple[float, np.ndarray, np.ndarray]:
        """The largest entry of the smallest subgradient on the working set, G_U, and lam c."""
        entries, problem = self.entries, self.problem
        if self.scores is not None:
            return self._with_penalty(self.scores.gradient(entries))
        if self.columns.reads_all(entries, problem.k):
            self.know_gradient()
        if self.gradient is not None:
            g = self.gradient[entries.feature, entries.klass]
        elif self.columns.reads_entries(entries, self.V):
            g = self.columns.gradient_of_dense(entries, problem, self.V)
        else:
            columns = residual_columns(self.V, problem.y, problem.weights, entries.classes)
            g = self.columns.gradient(entries, columns)
        return self._with_penalty(g)

    def know_gradient(self) -> None:
        """Compute all of G_U at V, where that is done at once and has not been yet."""
        if self.gradient is None:
            self.gradient = self.problem.full_gradient(self.V)

    def _with_penalty(self, g: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """What ``subgradient`` returns for this G_U on the working set."""
        penalty, below = self.penalties
        return largest_subgradient(g, self.entries.u, penalty, below), g, penalty

    @property
    def penalties(self) -> tuple[np.ndarray, np.ndarray]:
        """lam c of every entry, and the same for negative values: infinite where U >= 0."""
        problem, entries = self.problem, self.entries
        if self.known is None or self.known[0] is not problem or self.known[1] is not entries:
            penalty = problem.lam * problem.penalty_factor[entries.feature]
            below = np.where(problem.nonnegative[entries.feature], np.inf, penalty)
            self.known = problem, entries, (penalty, below)
        return self.known[2]

    def solved(self, scale: float) -> bool:
        """Whether the smoothed problem is solved well enough for the centre to move.

        The gap of (U, V) is what smoothing costs, ``loss(z) - (<v - y, z> - f(v))``, plus the inner
        error: complementarity, and the loss of dual value by scaling V towards the labels, and
        along a path by giving the classes their masses. Without that a solution of an intercept
        alone, which tends to zero, would seem solved whatever V is: the centre would move, and eta
        grow, in each iteration.
        """
        problem, entries = self.problem, self.entries

        def of(rows: slice) -> tuple[float, float, float]:
            w, y, V, Z = problem.weights[rows], problem.y[rows], self.V[rows], self.Z[rows]
            linear = w @ (np.einsum("il,il->i", V, Z) - true_class(Z, y))
            return w @ problem.loss.f(V, y), linear, w @ problem.loss.value(Z, y)

        F, linear, risk = (float(sum(parts)) for parts in zip(*problem.in_rows(of), strict=True))
        smoothing = risk - (linear - F)
        penalty = float(self.penalties[0] @ np.abs(entries.u))
        if self.on_path:
            scale *= 1.0 - self._mixed()
        inner = linear + penalty + (1.0 - scale) * -F
        self.gap = smoothing + inner
        primal, (lowest, highest) = risk + penalty, self.bracket
        self.bracket = min(lowest, primal), max(highest, primal - self.gap)
        # on the working set, subgradients below this make no larger inner error
        self.enough = 0.3 * INNER * smoothing / max(float(np.abs(entries.u).sum()), 1e-300)
        return abs(inner) <= INNER * smoothing  # below zero where free features are not solved

    def _mixed(self) -> float:
        """The part of V that a certificate replaces, so that all classes have their masses.

        Zero where there is no intercept, and where G_U is not known: X is sparse, or G_U large.
        """
        problem = self.problem
        if not problem.intercept or self.gradient is None:
            return 0.0
        excess = self.gradient[-1]  # of mass in V, beyond that in the labels
        found = np.bincount(problem.y, weights=problem.weights, minlength=problem.k) + excess
        return float((excess[found > 0.0] / found[found > 0.0]).max(initial=0.0))

    def gap_on_working_set(self, error: float, g: np.ndarray, penalty: np.ndarray) -> float:
        """About the gap, for a smooth loss and what ``subgradient`` returns: no look is needed.

        Complementarity, and what scaling V costs by the constraints of the working set.
        """
        u = self.entries.u
        complementarity = float(g @ u + penalty @ np.abs(u))
        shrunk = error / max(self.problem.lam + error, 1e-300)
        return complementarity + shrunk * (self.objective() - complementarity)

    def after(self, s: np.ndarray, V: np.ndarray, feature: np.ndarray, klass: np.ndarray) -> State:
        """After a step on the working set, with this V and these entries in place of the zeros.

        The Hessian here is used up: the next one is made in its room.
        """
        self.hessian = None
        now = Entries(self.entries.feature, self.entries.klass, self.entries.u + s)
        entries = now.with_new(feature, klass)
        return replace(self, V=V, entries=entries, gradient=None, survey=None, hessian=None)

    def centre_free(self, values: np.ndarray) -> None:
        """Take the mean over the classes off the values of features without penalty, in place.

        It changes no loss, and Newton steps have none but for rounding.
        """
        entries, problem = self.entries, self.problem
        if not problem.has_free:
            return
        where = np.flatnonzero(self.penalties[1] == 0.0)
        if where.size:
            feature = entries.feature[where]
            mean = np.bincount(feature, weights=values[where]) / problem.k
            mean[np.bincount(feature) < problem.k] = 0.0
            values[where] -= mean[feature]

    def dense_hessian(self, h: np.ndarray, damping: float, products: float) -> np.ndarray | None:
        """The Hessian on the working set, or None where conjugate gradients are the cheaper way."""
        columns, entries, weights = self.columns, self.entries, self.problem.weights
        if columns.sparse or entries.u.size > BLAS_SIZE:
            return None
        kept, nothing = self.hessian, KeptHessian.none(h.shape[1])
        if kept is None or (damping < SINGLE and not kept.exact):
            kept = nothing
        changed, anew, by_blas, product = kept.work(columns, entries, h, weights)
        by_rows = min(changed, anew)
        work = min(by_rows, by_blas)
        solves = FACE * float(np.count_nonzero(entries.u)) ** 3
        most = BLAS_WORK / 8 if self.centre is None and many(h) else ROW_WORK
        if work > most or work + solves > products * product:
            return None
        self.work += work
        if by_rows * (1 if damping < SINGLE else SINGLE_GAIN) < by_blas:
            kept = kept if changed <= anew else nothing
            self.hessian = kept.at(columns, entries, h, weights, self.room)
        else:
            exact, H = damping < SINGLE, self.room.square(entries.u.size)
            size = None if exact else np.sqrt(self.curvature)
            columns.dense_hessian(entries, h, weights, size, H)
            self.hessian = KeptHessian(entries, h, H, exact)
        return self.hessian.H

    def quadratic(self, h: np.ndarray, damping: np.ndarray) -> ClassQuadratic | PackedQuadratic:
        """``s^T H s / 2`` on the working set, where the Hessian is not formed."""
        columns, entries, weights = self.columns, self.entries, self.problem.weights
        if columns.packs(entries, h):
            packed = PackedQuadratic(entries.klass, *columns.pack(entries, h, weights), damping)
            self.room.instead = max(self.room.instead, packed.nbytes)
            return packed
        if ClassQuadratic.suits(columns, entries):
            return ClassQuadratic(columns, entries, h, weights, damping)
        return PackedQuadratic(entries.klass, *columns.share(entries, h, weights), damping)
