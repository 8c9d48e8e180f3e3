"""Stochastic mirror descent (SMD): sampled estimates in place of the two matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem
from fenchel.sampling import SAMPLERS, Sampler
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.mirror_descent import starting_point
from fenchel.solvers.partial_sweep import PartialSweep, can_sweep
from fenchel.steps import OnlineStep, StepRule, make_step
from fenchel.steps.online import DRAWS, Moments
from fenchel.steps.theory import stochastic_step

AVERAGES = ("iterates", "suffix", "noisy")


class Iterates(Protocol):
    """The iterates of a run and the weighted sums of them, in whatever form they are stored."""

    U_sum: np.ndarray
    V_sum: np.ndarray
    noisy_sum: np.ndarray | None

    def step(self, rate_U: float, rate_V: float, weight: float) -> None:
        """Add the iterates to the sums with this weight, then make one iteration."""
        ...

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """The point of U's geometry, and V."""
        ...


class PlainIterates:
    """Any loss, geometry and sampling scheme: O(dk + nk) work for each draw."""

    def __init__(
        self,
        problem: Problem,
        sampler: Sampler,
        u: np.ndarray,
        V: np.ndarray,
        rng: np.random.Generator,
        batch: int,
        noisy: bool,
    ) -> None:
        self.problem, self.sampler, self.rng, self.batch = problem, sampler, rng, batch
        self.u, self.V = u, V
        self.U_sum, self.V_sum = np.zeros((problem.d, problem.k)), np.zeros_like(V)
        self.noisy_sum = np.zeros_like(self.U_sum) if noisy else None

    def step(self, rate_U: float, rate_V: float, weight: float) -> None:
        problem, primal, dual = self.problem, self.sampler.primal, self.sampler.dual
        self.U_sum += weight * primal.coef(self.u)
        self.V_sum += weight * self.V
        eta = self.sampler.draw_dual(self.V, self.rng, self.batch)
        self.u = primal.step(self.u, eta.matrix(), rate_U)
        xi = self.sampler.draw_primal(self.u, self.rng, self.batch)  # at the new U, as in alg:main
        self.V = dual.step(problem.loss, self.V, xi.matrix(), rate_V, problem.y)
        if self.noisy_sum is not None:
            xi.add_noisy_point(self.noisy_sum, weight)

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        return self.u, self.V


@dataclass
class State:
    problem: Problem
    sampler: Sampler
    iterates: Iterates
    rng: np.random.Generator
    step: StepRule | OnlineStep
    total: float = 0.0  # sum of the weights
    t: int = 0
    #: The sums at the last two powers of two, for the average of a suffix.
    marks: tuple[tuple[float, np.ndarray, np.ndarray], ...] = ()


class StochasticMirrorDescent(Solver):
    """What the sampled solvers share.

    Parameters
    ----------
    step : "online" (the default: :class:`~fenchel.steps.OnlineStep`, measured from the draws),
        "theory" (eq:md-stochastic-step, needs to know the number of iterations), "inverse-sqrt",
        or a number.
    primal, dual : names of geometries; the paper's by default.
    batch : draws averaged in one estimate.
    average : "iterates", "suffix" (between the last half and the last three quarters of them), or
        "noisy" for the sampled estimates of U (sec:alg-details): sparse as long as there are few,
        with a guarantee for the primal only, so that V is still the average of the iterates.
    """

    scheme: ClassVar[str]

    def __init__(
        self,
        step: str | float | None = None,
        primal: str | None = None,
        dual: str = "2x1",
        batch: int = 1,
        average: str = "iterates",
    ) -> None:
        if average not in AVERAGES:
            raise ValueError(f"average must be one of {list(AVERAGES)}, found {average!r}.")
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise ValueError(f"batch must be a positive integer, found {batch!r}.")
        self.step, self.primal, self.dual = step, primal, dual
        self.batch, self.average = batch, average

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        primal, dual = make_geometries(problem, problem.radius_bound(), self.primal, self.dual)
        sampler = SAMPLERS[self.scheme](problem, primal, dual)
        if self.step in (None, "online"):
            step: StepRule | OnlineStep = OnlineStep(primal.omega_bound, dual.omega_bound)
        else:
            step = self._theory_rule(sampler, horizon)
        iterates = self._iterates(problem, sampler, start, rng)
        return State(problem, sampler, iterates, rng, step)

    def _theory_rule(self, sampler: Sampler, horizon: int) -> StepRule:
        primal, dual = sampler.primal, sampler.dual
        variances = sampler.variance_bounds(self.batch)
        theory = stochastic_step(sampler.lipschitz, primal, dual, variances, horizon)
        return make_step(self.step, theory, theory * np.sqrt(horizon), default="theory")

    def _iterates(
        self, problem: Problem, sampler: Sampler, start: Start | None, rng: np.random.Generator
    ) -> Iterates:
        u, V = starting_point(sampler.primal, sampler.dual, start)
        noisy = self.average == "noisy"
        return PlainIterates(problem, sampler, u, V, rng, self.batch, noisy)

    def advance(self, state: State, n_steps: int) -> None:
        step, iterates = state.step, state.iterates
        omega_U, omega_V = state.sampler.primal.omega_bound, state.sampler.dual.omega_bound
        for _ in range(n_steps):
            if self.average == "suffix" and state.t & (state.t - 1) == 0:
                sums = state.total, iterates.U_sum.copy(), iterates.V_sum.copy()
                state.marks = (*state.marks[-1:], sums)
            if isinstance(step, OnlineStep):
                if step.due(state.t):
                    step.measure(measure(state.sampler, *iterates.point(), state.rng, self.batch))
                weight, (rate_U, rate_V) = step.omega, step.rates
            else:
                weight = step(state.t)
                rate_U, rate_V = 2 * weight * omega_U, 2 * weight * omega_V
            iterates.step(rate_U, rate_V, weight)
            state.total += weight
            state.t += 1

    def points(self, state: State) -> list[Point]:
        iterates, total = state.iterates, state.total
        V = iterates.V_sum / total
        if iterates.noisy_sum is not None:
            U = iterates.noisy_sum / total
            return [Point(U, V, "average of noisy iterates (dual: average)")]
        average = Point(iterates.U_sum / total, V, "average")
        if self.average == "iterates":
            return [average]
        before, U_before, V_before = state.marks[0]
        later = total - before
        U, V = (iterates.U_sum - U_before) / later, (iterates.V_sum - V_before) / later
        # a difference of sums can miss zero by a rounding error
        return [Point(U, np.maximum(V, 0.0), "average of a suffix"), average]

    def passes(self, problem: Problem) -> float:
        return self.batch * (1.0 / problem.n + 1.0 / problem.d)  # rows and columns of X


class PartialSampling(StochasticMirrorDescent):
    """Partial sampling (sec:part-stoch): O(dk + nk) an iteration, for any loss and geometry.

    The parameters are those of :class:`StochasticMirrorDescent`.
    """

    name: ClassVar[str] = "partial-sampling"
    scheme: ClassVar[str] = "partial"
    default_max_iter: ClassVar[int] = 100_000

    def _iterates(
        self, problem: Problem, sampler: Sampler, start: Start | None, rng: np.random.Generator
    ) -> Iterates:
        if can_sweep(problem, sampler) and self.batch == 1:
            return PartialSweep(problem, sampler, start, rng, self.average == "noisy")
        return super()._iterates(problem, sampler, start, rng)


class FullSampling(StochasticMirrorDescent):
    """Full sampling (sec:full-stoch), written plainly: O(dk + nk) an iteration, for any loss.

    ``Sublinear`` makes the same iterations for the hinge loss in O(d + n + sqrt k), and is the one
    to use there. This solver stays for what cannot be done lazily (other losses, the geometry 2x2
    of V, suffix averages, mini-batches), and does not hand over to ``Sublinear`` where it could:
    an independent way to the same law is what the lazy one is compared with. The parameters are
    those of :class:`StochasticMirrorDescent`.
    """

    name: ClassVar[str] = "full-sampling"
    scheme: ClassVar[str] = "full"
    default_max_iter: ClassVar[int] = 100_000


def measure(
    sampler: Sampler, u: np.ndarray, V: np.ndarray, rng: np.random.Generator, batch: int = 1
) -> Moments:
    """The moments of sampled gradients at (u, V), from a few draws."""
    primal, dual = sampler.primal, sampler.dual
    etas = sampler.draw_dual(V, rng, DRAWS * batch).split(batch)
    xis = sampler.draw_primal(u, rng, DRAWS * batch).split(batch)
    moments = [
        (
            primal.norm_type.dual(eta) / primal.radius,
            float(sampler.q_V.rows(xi).max()),
            primal.local_square(u, eta),
            dual.local_square(V, xi),
        )
        for eta, xi in zip(etas, xis, strict=False)
    ]
    return Moments(*np.mean(moments, axis=0))
