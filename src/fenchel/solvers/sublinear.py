"""The sublinear solver of the paper (alg:main), for the multiclass hinge loss.

An iteration reads one row and one column of X and touches one class of U and one of V: its cost is
O(d + n + sqrt k), and with a sparse X the d falls to the entries of the row. Memory grows with the
touched classes only. :mod:`fenchel.kernels.sublinear` explains what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit

from fenchel.kernels.borrowed import borrowed
from fenchel.kernels.sublinear import (
    DUAL_USED,
    PRIMAL_USED,
    TOTAL,
    State,
    T,
    cut,
    decay,
    dual_slot,
    look_at_rows,
    options,
    primal_slot,
    scale_primal,
    upkeep,
)
from fenchel.kernels.sublinear_design import (
    DenseData,
    SparseData,
    multiply_dual,
    multiply_primal,
)
from fenchel.kernels.sublinear_draws import draw_class_of_row, draw_entry, draw_row
from fenchel.kernels.sublinear_online import measure, scale_sums
from fenchel.kernels.sublinear_state import (
    DENSE_ENTRIES,
    average_dual,
    average_primal,
    grow,
    make_data,
    make_state,
    restored,
    start_dual,
    start_primal,
    trimmed,
)
from fenchel.problem import Problem
from fenchel.solvers.base import Point, Solver, Start
from fenchel.steps import Constant, OnlineStep, StepRule, make_step
from fenchel.time_limit import leave_in_time

#: The penalty of an intercept in the steps, in parts of that of a feature. The certificate is that
#: of an intercept without penalty.
INTERCEPT_FACTOR = 0.1

#: Iterations made by one call of the compiled loop at most.
CHUNK = 1 << 14


@njit(**options)
def iterate(data, s, lam, radius, rates, noisy):  # type: ignore[no-untyped-def]
    """Algorithm alg:main for t = T, T+1, ...; returns early when there is no free slot left.

    ``rates`` (m, 2) multiply eta and xi in the exponents: 2 gamma R log(2dk) and 2 gamma log k in
    the paper. Row t of ``noisy`` receives the entry (i, l, value) which is the unbiased estimate of
    U^t; ``noisy`` may have no rows.
    """
    data, s = borrowed(data), borrowed(s)  # type: ignore[call-arg]
    for t in range(rates.shape[0]):
        if s.count[PRIMAL_USED] == s.primal.shape[0] or s.count[DUAL_USED] == s.dual.shape[0]:
            return t
        s.count[T] += 1

        # eta, the only non-zero column of the estimate of Xhat^T (V - Y) / n (line alg:line-eta)
        j, tau_rho = draw_row(s)
        l, sign = draw_class_of_row(s, j)
        eta = sign * tau_rho / s.tau[j] if tau_rho > 0.0 else 0.0
        # TrackPrimal and UpdatePrimal
        slot = primal_slot(s, l)
        rate = rates[t, 0]
        multiply_primal(data, s, slot, j, cut(rate * eta, s.tau[j]))
        scale_primal(s, l, slot, decay(rate * lam), radius)

        # xi, the only non-zero column of the estimate of Xhat U (line alg:line-xi)
        i, l, sign, sigma_pi = draw_entry(s)
        xi = sign * sigma_pi / s.sigma[i] if s.sigma[i] > 0.0 else 0.0
        # TrackDual and UpdateDual
        slot = dual_slot(s, l)
        rate = rates[t, 1]
        c = cut(rate * xi, s.column_max[i])
        multiply_dual(data, s, slot, l, i, c, decay(rate))
        look_at_rows(s, abs(c) * s.column_max[i] + rate)
        s.scalar[TOTAL] += 1.0
        upkeep(s)

        if noisy.shape[0] > 0:
            noisy[t, 0], noisy[t, 1], noisy[t, 2] = i, l, xi
    return rates.shape[0]


@dataclass
class Run:
    """A run in progress: the lazy state, and what it was made from."""

    data: DenseData | SparseData
    lazy: State
    lam: float
    radius: float
    scale: np.ndarray | float  # U of the user is U of the run divided by this
    step: StepRule | OnlineStep
    horizon: int
    noisy_keys: np.ndarray  # l d + i of the entries met
    noisy_sums: np.ndarray

    @property
    def total(self) -> float:
        """The weight of U^0 .. U^T in the sums, where that of U^T is 1."""
        return float(self.lazy.scalar[TOTAL])


class Sublinear(Solver):
    """Alg. alg:main: full sampling, lazy updates, lazily tracked averages.

    Parameters
    ----------
    step : "online" (the default: :class:`~fenchel.steps.OnlineStep`, measured from the draws),
        "theory" (eq:md-stochastic-step), "inverse-sqrt", or a number.
    average : "iterates", or "noisy" for the mean of the sampled estimates of U^t (sec:alg-details,
        last paragraph): at most one non-zero an iteration, with a guarantee for the primal only.
        The certificate holds for either; its V is the mean of the iterates.

    Notes
    -----
    Sample weights enter the law of the rows and the norms of the columns, as repetitions would.
    Penalty factors are feature scales, U_i c_i and X_i / c_i, and change the ball that a ``radius``
    describes, so that the two are not accepted together. An intercept is a feature with a small
    penalty to the steps; the certificate does not know that penalty.
    """

    name: ClassVar[str] = "sublinear"
    default_max_iter: ClassVar[int] = 1_000_000

    def __init__(self, step: str | float | None = None, average: str = "iterates") -> None:
        if average not in ("iterates", "noisy"):
            raise ValueError(f"average must be 'iterates' or 'noisy', found {average!r}.")
        self.step, self.average = step, average

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> Run:
        refused = self.refuses(problem)
        if refused:
            raise ValueError(refused)
        factor, design = _factors(problem), problem.design
        scale: np.ndarray | float
        if np.ptp(factor) == 0:
            X, scale = design.X, 1.0
            lam, radius = problem.lam * factor[0], problem.radius_bound()
        else:
            X, scale = _divide_columns(design.X, factor), factor
            lam, radius = problem.lam, problem.at_zero / problem.lam
        data = make_data(X)
        leave_in_time()  # each of these is a reading of X, and nothing without the others
        tau, column_max = _largest(X)
        leave_in_time()
        sigma = design.column_norms(problem.weights) / scale
        key = int(rng.integers(2**64, dtype=np.uint64))
        state = make_state(
            problem.y, problem.k, problem.weights, sigma, tau, column_max, radius, key
        )
        if start is not None:
            U = start.U if np.ptp(factor) == 0 else sp.diags_array(factor) @ sp.csc_array(start.U)
            state = start_primal(state, U, radius)
            if start.V is not None:
                state = start_dual(state, start.V)
        if self.step in (None, "online"):
            log_k, log_dk = np.log(problem.k), np.log(2.0 * problem.d * problem.k)
            step: StepRule | OnlineStep = OnlineStep(radius**2 * log_dk, max(1.0, log_k))
        else:
            theory = theory_step(state, problem.weights, radius, horizon)
            step = make_step(self.step, theory, theory * np.sqrt(horizon), default="theory")
        empty = np.empty(0, dtype=np.int64), np.empty(0)
        return Run(data, state, lam, radius, scale, step, horizon, *empty)

    @staticmethod
    def refuses(problem: Problem) -> str:
        """What the problem has that this solver cannot do, and what can; empty where it can."""
        if problem.loss.name != "hinge" or getattr(problem.loss, "cost", None) is not None:
            return (
                "solver='sublinear' is made for loss='hinge' without costs, found "
                f"{problem.loss!r}: use solver='partial-sampling' for other losses."
            )
        if problem.positive:
            return (
                "solver='sublinear' stores both signs of U in one number, and cannot keep "
                "positive=True: use solver='primal-dual', or 'full-sampling', which draws the same "
                "entries."
            )
        if (problem.norm.p, problem.norm.q) != (1, 1):
            return (
                "solver='sublinear' needs penalty='l1': the columns of U are sampled, and the "
                "group penalty couples them. Use solver='partial-sampling'."
            )
        factor = _factors(problem)
        if np.ptp(factor) > 0 and (problem.radius is not None or problem.lam * factor.min() <= 0):
            return (
                "solver='sublinear' takes a penalty_factor that varies only if all its entries and "
                "lam are positive and radius is None: leave radius out, or use "
                "solver='partial-sampling'."
            )
        return ""

    def advance(self, run: Run, n_steps: int) -> None:
        while n_steps > 0:
            rates = _rates(run, min(n_steps, CHUNK))
            noisy = np.empty((rates.shape[0] if self.average == "noisy" else 0, 3))
            done = iterate(run.data, run.lazy, run.lam, run.radius, rates, noisy)
            if done < rates.shape[0]:
                run.lazy = grow(run.lazy)
            if self.average == "noisy":
                _book(run, noisy[:done])
            n_steps -= done

    def points(self, run: Run) -> list[Point]:
        V = average_dual(run.lazy)
        if self.average == "noisy":
            return [Point(_noisy_mean(run), V, "average of noisy iterates (dual: average)")]
        return [Point(average_primal(run.lazy, run.scale), V, "average")]

    def passes(self, problem: Problem) -> float:
        return 1.0 / problem.n + 1.0 / problem.d  # a row and a column

    def save(self, run: Run) -> dict[str, np.ndarray]:
        """All that a run needs to go on later, to the bit; arrays only."""
        return trimmed(run.lazy) | {
            "horizon": np.array(run.horizon),
            "noisy_keys": run.noisy_keys,
            "noisy_sums": run.noisy_sums,
            "online": run.step.save() if isinstance(run.step, OnlineStep) else np.empty(0),
        }

    def resume(self, problem: Problem, arrays: dict[str, np.ndarray]) -> Run:
        """The run that :meth:`save` wrote down, on the same problem."""
        run = self.init(problem, None, np.random.default_rng(0), int(arrays["horizon"]))
        run.lazy = restored(arrays)
        run.noisy_keys, run.noisy_sums = arrays["noisy_keys"], arrays["noisy_sums"]
        if isinstance(run.step, OnlineStep):
            run.step.restore(arrays["online"])
        return run


def theory_step(s: State, weights: np.ndarray, radius: float, horizon: int) -> float:
    """eq:md-stochastic-step with the variance bounds eq:variance-bounds-partial.

    n cancels between Omega_V = n log k and the norms, which are weighted means here:
    ||X^T||_{inf x 2} / sqrt n is the largest sigma, ||X||_{1 x inf} / n the mean of tau.
    """
    log_k, omega_u = np.log(s.slot.size), radius**2 * np.log(2.0 * s.sigma.size * s.slot.size)
    sigma, tau = float(s.sigma.max()), float(weights @ s.tau)
    lipschitz = sigma * np.sqrt(5.0 * omega_u * log_k)
    noise = np.sqrt(omega_u * (8.0 * sigma**2 + 8.0 * tau**2) + 4.0 * radius**2 * sigma**2 * log_k)
    return float(1.0 / (np.sqrt(2.0 * horizon) * (max(lipschitz, noise) or 1.0)))


def _factors(problem: Problem) -> np.ndarray:
    """The penalty factors of the run, where one lam serves all: an intercept has a small one."""
    factors = problem.penalty_factor.copy()
    if problem.intercept:
        factors[-1] = INTERCEPT_FACTOR * factors[:-1].min()
    return factors


def _divide_columns(X: Any, factor: np.ndarray) -> Any:
    if sp.issparse(X):
        return sp.csr_array((X.data / factor[X.indices], X.indices, X.indptr), shape=X.shape)
    return X / factor


def _largest(X: Any) -> tuple[np.ndarray, ...]:
    """The largest absolute entry of every row and of every column, in float64."""
    if sp.issparse(X):
        size = abs(X)
        return tuple(np.asarray(size.max(axis=a).toarray()).ravel() for a in (1, 0))
    # in two calls without a copy of |X|
    return tuple(
        np.maximum(X.max(axis=a), -X.min(axis=a)).astype(np.float64, copy=False) for a in (1, 0)
    )


def _rates(run: Run, size: int) -> np.ndarray:
    """The rates of the next iterations, at most ``size`` of them."""
    s, t = run.lazy, int(run.lazy.count[T])
    if isinstance(run.step, OnlineStep):
        if run.step.due(t):
            before = run.step.omega
            run.step.measure(measure(run.data, s, run.radius))
            if t > 0 and run.step.omega < before:
                _weigh(run, before / run.step.omega)
        rate_U, rate_V = run.step.rates
        size = min(size, run.step.epoch_end - t)
        return np.tile([rate_U / run.radius, rate_V], (size, 1))
    if isinstance(run.step, Constant):
        gammas = np.full(size, run.step.gamma)
    else:
        gammas = np.array([run.step(i) for i in range(t, t + size)])
    log_k, log_dk = np.log(s.slot.size), np.log(2.0 * s.sigma.size * s.slot.size)
    with np.errstate(over="ignore"):  # an infinite exponent is cut as every large one is
        return 2.0 * gammas[:, None] * [log_dk * run.radius, log_k]


def _weigh(run: Run, factor: float) -> None:
    """Let all iterates so far weigh ``factor`` times as much as those to come."""
    scale_sums(run.lazy, factor)
    run.noisy_sums *= factor


def _book(run: Run, noisy: np.ndarray) -> None:
    """Add the estimates of U of some iterations, in their order, to the sums."""
    d = run.lazy.sigma.size
    keys = noisy[:, 0].astype(np.int64) + d * noisy[:, 1].astype(np.int64)
    values = np.concatenate([run.noisy_sums, noisy[:, 2]])
    run.noisy_keys, where = np.unique(np.concatenate([run.noisy_keys, keys]), return_inverse=True)
    run.noisy_sums = np.bincount(where, values, minlength=run.noisy_keys.size)


def _noisy_mean(run: Run) -> np.ndarray | sp.csc_array:
    d, k = run.lazy.sigma.size, run.lazy.slot.size
    i = run.noisy_keys % d
    values = run.noisy_sums / max(1.0, run.total - 1.0)
    if isinstance(run.scale, np.ndarray):
        values = values / run.scale[i]
    U = sp.csc_array((values, (i, run.noisy_keys // d)), shape=(d, k))
    return U.toarray() if d * k <= DENSE_ENTRIES else U
