"""One cell of the comparison, in a process of its own: one solver on one problem.

Prints one JSON line a run, so that whatever happens later, what was measured is there.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core.caching import FunctionCache

from _benchopt_shim import START, load
from peers.benchmark_utils.ladder import ITERATIONS

#: A run shorter than this is repeated, and the fastest counts, for every solver: at least so often
#: and at most so often, as long as that takes no more than so many seconds. Of three runs of 20
#: milliseconds the fastest was 19 or 28 within ten minutes.
SHORT, AT_LEAST, AT_MOST, REPEATED = 0.5, 3, 20, 2.0

#: No further runs once the value has not moved in this many.
PATIENCE = 4

#: The strictest tolerance that is asked of a solver.
LAST_TOLERANCE = 1e-9

#: No cell may take more memory than this.
MOST_BYTES = 12 << 30


#: Runs end at this suboptimality, relative to the optimum or where it is not known to P(0).
DONE = 1e-6


class Kernels:
    """Counts how often numba looks for a compiled function that this process has not yet."""

    def __init__(self) -> None:
        self.asked_for = 0
        load = FunctionCache.load_overload

        def counted(cache: FunctionCache, *arguments: Any) -> Any:
            self.asked_for += 1
            return load(cache, *arguments)

        FunctionCache.load_overload = counted


KERNELS = Kernels()


def main() -> None:
    try:
        measure(json.loads(sys.argv[1]))
    except ImportError as error:
        say(status=f"skipped: not installed ({error})")
    except FileNotFoundError as error:
        say(status=f"skipped: {error}")
    except MemoryError:
        say(status=f"failed: needs more than {MOST_BYTES >> 30} GiB")


def measure(spec: dict[str, Any]) -> None:
    """Run the cell that ``run_peers.py`` describes."""
    solver_class = load("solver", spec["solver"])
    data = load("dataset", spec["dataset"])(**spec["dataset_parameters"]).get_data()
    solver = solver_class(**spec["solver_parameters"])
    solver.threads, solver.time_limit = spec["threads"], spec["limit"]
    objective = load("objective", "")(loss=spec["loss"], lam=spec["lam"])
    objective.set_data(**data)
    arguments = objective.get_objective()
    refused, reason = solver.skip(**arguments)
    if refused:
        return say(status=f"skipped: {reason}")
    warm_up = _warm_up(solver, sp.issparse(data["X"]), spec["loss"])
    if spec["warm_up_only"]:
        return say(status="warm-up", warm_up=warm_up)
    began = time.perf_counter()
    solver.set_objective(**arguments)
    setup = time.perf_counter() - began
    if solver.name == "fenchel":
        say(status="product", cpu=_product(data["X"], data["k"]))
    _ladder(solver, objective, spec, {"setup": setup, "warm_up": warm_up})


def _ladder(solver: Any, objective: Any, spec: dict[str, Any], shared: dict[str, float]) -> None:
    """Fresh runs, each with a stricter knob, until the optimum or a limit is reached."""
    by_iterations = solver.sampling_strategy == "iteration"
    stop = solver.get_next(START[solver.sampling_strategy])
    values: list[float] = []
    spent = 0.0
    while by_iterations or stop >= LAST_TOLERANCE:
        before = KERNELS.asked_for
        cpu, wall = _timed(solver, stop, spec["limit"])
        if KERNELS.asked_for > before:  # some that the warm-up had not reached: on the clock
            cpu, wall = _timed(solver, stop, spec["limit"])
        if cpu < SHORT:
            cpu, wall = _fastest(solver, stop, spec["limit"], cpu, wall)
        spent += cpu / solver.threads
        value = objective.evaluate_result(**solver.get_result())
        say(status="ok", stop=stop, cpu=cpu, wall=wall, **value, **shared)
        values.append(value["value"])
        bound = max(value["dual"], spec["dual"])
        if value["value"] - bound <= DONE * (bound if bound > 0 else value["at_zero"]):
            return
        if by_iterations and len(values) > PATIENCE and values[-PATIENCE] - values[-1] <= 1e-12:
            return say(status="stalled")
        # one more run by iterations is foreseeable, one with a stricter tolerance is not
        foreseen = cpu / solver.threads * (ITERATIONS if by_iterations else 1.0)
        keeps_limit = hasattr(type(solver), "time_limit") and wall >= spec["limit"]
        if keeps_limit or foreseen >= spec["limit"] or spent >= 1.5 * spec["limit"]:
            return say(status="limit")
        stop = solver.get_next(stop)
        # where the tolerance is the certified gap, a run that would end at once is left out
        while solver.certified and value["gap"] <= stop * value["at_zero"]:
            stop = solver.get_next(stop)
    say(status="last tolerance")


def _timed(solver: Any, stop: float, limit: float) -> tuple[float, float]:
    """CPU and wall seconds of a run; a solver that ignores its time limit dies by the signal."""
    allowed = 2.0 * limit + 10.0 if hasattr(type(solver), "time_limit") else 1.2 * limit
    signal.setitimer(signal.ITIMER_PROF, solver.threads * allowed)
    cpu, wall = _cpu(), time.perf_counter()
    solver.run(stop)
    cpu, wall = _cpu() - cpu, time.perf_counter() - wall
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    return cpu, wall


def _fastest(
    solver: Any, stop: float, limit: float, cpu: float, wall: float
) -> tuple[float, float]:
    """The same for a short run that took so long the first time, repeated."""
    began, n_runs = time.perf_counter() - wall, 1
    while n_runs < AT_LEAST or (n_runs < AT_MOST and time.perf_counter() - began < REPEATED):
        again = _timed(solver, stop, limit)
        cpu, wall, n_runs = min(cpu, again[0]), min(wall, again[1]), n_runs + 1
    return cpu, wall


def _cpu() -> float:
    """CPU seconds of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _warm_up(solver: Any, sparse: bool, loss: str) -> float:
    """Small problems of the same kind, so that nothing is loaded or compiled on the clock.

    Wide and tall, or filled more and less, and for softmax with many classes: solvers may treat
    them differently. (With the hinge loss the last would take the linear programs too long.)
    """
    rng = np.random.default_rng(0)
    made = [_classes(rng, 120, 60, 6), _classes(rng, 600, 20, 6)]
    if loss == "softmax":
        made.append(_classes(rng, 200, 120, 100))
    if sparse:
        fills = ((made[0], 0.4), (made[0], 0.05), *((many, 0.2) for many in made[2:]))
        made = [(_emptied(rng, X, fill), y, k) for (X, y, k), fill in fills]
    limit, solver.time_limit = solver.time_limit, 120.0  # compiling takes long
    began = time.perf_counter()
    for X, y, k in made:
        solver.set_objective(X=X, y=y, k=k, loss=loss, lam=1e-3)
        solver.run(1e-10 if solver.sampling_strategy == "tolerance" else 20)
        solver.get_result()
    solver.time_limit = limit
    return time.perf_counter() - began


def _classes(
    rng: np.random.Generator, n: int, d: int, k: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Samples of k classes, labels and k."""
    X = rng.standard_normal((n, d))
    noise = 0.3 * rng.standard_normal((n - k, k))
    return X, np.append(np.arange(k), (X[k:, :k] + noise).argmax(axis=1)), k


def _emptied(rng: np.random.Generator, X: np.ndarray, fill: float) -> sp.csr_array:
    """X with only a part of its entries."""
    return sp.csr_array(np.where(rng.random(X.shape) >= fill, 0.0, X))


def _product(X: Any, k: int) -> float:
    """CPU seconds of one product of X with a dense U."""
    U = np.ones((X.shape[1], k))
    times = []
    for _ in range(3):
        began = _cpu()
        X @ U
        times.append(_cpu() - began)
    return min(times)


def say(**record: Any) -> None:
    """A line for the parent; the solvers' own printing goes elsewhere."""
    print(json.dumps(record, default=float), file=CHANNEL, flush=True)


if __name__ == "__main__":
    # what compiled code prints must not mix with the records
    CHANNEL = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    main()
