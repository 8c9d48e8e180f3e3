"""The refusal of a fit that would not fit into memory, with what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import BACKENDS, get_active_backend

from fenchel.design import is_hardly_sparse
from fenchel.fit_size import DOUBLE, POSITION, SCORE_ARRAYS, Apart, Seen, Size
from fenchel.free_memory import available_memory
from fenchel.memory import looked_at
from fenchel.memory_look import Samples
from fenchel.problem import Matrix
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.validation import check_flag, check_penalty_factor

#: Bytes of a process of its own for a fold, with the modules and kernels that it loads.
PROCESS = 200_000_000

#: Backends of joblib that make processes on this machine: others may have memory elsewhere.
OWN_PROCESSES = ("loky", "multiprocessing")


@dataclass(frozen=True)
class Folds:
    """Fits of a cross-validation to parts of the rows, beside the problem of all."""

    part: float  # of the distinct samples in the largest of them
    at_once: int
    processes: bool  # each has one of its own
    times: float  # bytes of X as it is given, in those of the one that a fit makes of it

    @classmethod
    def of(
        cls, X: Matrix, size: Size, splits: list[tuple[np.ndarray, np.ndarray]], n_jobs: int | None
    ) -> Folds:
        """Those of some splits of X, as joblib would run them now."""
        largest = max(len(train) for train, _ in splits)
        given = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
        backend, at_once = (
            get_active_backend()[0],
            min(joblib.effective_n_jobs(n_jobs), len(splits)),
        )
        processes = at_once > 1 and type(backend) in [BACKENDS[name] for name in OWN_PROCESSES]
        threads = getattr(backend, "supports_sharedmem", False)
        at_once = at_once if processes or threads else 1
        return cls(min(1.0, largest / size.n), at_once, processes, given / size.stored)

    def bytes_of(self, size: Size, seen: Seen | None) -> float:
        """What all take that are at work at once, with the problem of all rows.

        Each has copies of its rows of X and of those that it is tested on; processes have X in
        memory that they share.
        """
        given = self.times * size.stored
        fold = size.with_rows(max(1, int(self.part * size.n))).fit_bytes(seen) + given
        problem = size.stored * (1 if size.nonzeros is None else 2)
        return problem + self.processes * given + self.at_once * (fold + PROCESS * self.processes)


@dataclass(frozen=True)
class Need:
    """What an estimator needs for data of some size."""

    certified: bool  # by the solver that the estimate is made for
    folds: Folds | None

    def __call__(self, size: Size, seen: Seen | None) -> float:
        if not self.certified:
            return size.least_bytes()
        fit = size.fit_bytes(seen)
        return fit if self.folds is None else max(fit, self.folds.bytes_of(size, seen))


def check(
    estimator: Any,
    X: Matrix,
    codes: np.ndarray,
    samples: Samples,
    penalty: tuple[float, str],
    splits: list[tuple[np.ndarray, np.ndarray]] | None = None,
) -> None:
    """Raise MemoryError where a fit to these samples cannot fit into the memory that is free.

    The penalty is the smallest that is asked for, with its unit. Where the solver is not the one
    that memory is estimated for, only what no solver could do is refused.
    """
    free, loss, k = available_memory(), estimator.loss, estimator.classes_.size
    if free is None:
        return
    size = Size.of(X, k, loss, samples[0], intercept=has_all_columns(estimator, X.shape[1]))
    folds = None if splits is None else Folds.of(X, size, splits, estimator.n_jobs)
    need = Need(is_certified(estimator), folds)
    if need(size, None) <= free:  # with any penalty: no need to look
        return
    seen = None
    if need.certified:  # the look itself has to fit: it forms no Hessian
        least = Seen(only_start=True, apart=Apart(0, 0.0, 0.0)) if size.is_apart else Seen()
        most = most_of(size.n, lambda n: need(size.with_rows(n), least) <= free)
        seen = looked_at(size, X, codes, *penalty, samples, most)
    if need(size, seen) > free:
        raise MemoryError(refusal(X, size, seen, need, free))


def has_all_columns(estimator: Any, d: int) -> bool:
    """Whether every class has scores of its own from the start, as beside an intercept.

    A feature without penalty may have a coefficient in each of them, and a V that a fit begins with
    has a column for each.
    """
    intercept = check_flag("fit_intercept", estimator.fit_intercept)
    free = not check_penalty_factor(estimator.penalty_factor, d).all()
    return intercept or free or getattr(estimator, "warm_start", False)


def is_certified(estimator: Any) -> bool:
    """Whether the solver is the one that memory is estimated for."""
    named = estimator.solver in ("auto", PrimalDual.name) or isinstance(
        estimator.solver, PrimalDual
    )
    return bool(named and estimator.penalty == "l1")


def refusal(X: Matrix, size: Size, seen: Seen | None, need: Need, free: int) -> str:
    """What is needed, what is free, and what would help."""
    needed, gib = need(size, seen), 2**30
    about = "about" if need.certified else "at least"
    parts = f"{2 * size.stored / gib:.3g} GiB are for copies of X"
    if need.certified:
        scores = SCORE_ARRAYS * DOUBLE * size.n * size.k
        parts += f" and {scores / gib:.3g} GiB for scores and dual variables"
    else:
        parts = "all of it for a copy of X"
    at_once = 1 if need.folds is None else need.folds.at_once
    folds = "" if at_once == 1 else f" ({at_once} folds at once)"
    remedies = list(_remedies(X, size, seen, need, free))
    helps = ", or ".join(remedies) or "no single change of the data is enough, free some memory"
    return (
        f"{size.n} distinct samples with {size.d} features and {size.k} classes need {about} "
        f"{needed / gib:.3g} GiB{folds}, of which {parts}, but {free / gib:.3g} GiB are free: "
        f"{helps}."
    )


def _remedies(X: Matrix, size: Size, seen: Seen | None, need: Need, free: int) -> Iterator[str]:
    """Each change that would be enough by itself."""

    def fits(other: Size, known: Seen | None = seen) -> bool:
        return need(other, known) <= free

    folds = need.folds
    if folds is not None and folds.at_once > 1:
        jobs = most_of(
            folds.at_once,
            lambda m: (
                replace(need, folds=replace(folds, at_once=m, processes=m > 1))(size, seen) <= free
            ),
        )
        if jobs:
            yield f"give n_jobs={jobs}"
    if rows := most_of(size.n, lambda n: fits(size.with_rows(n))):
        yield f"fit at most {rows} of these rows"
    if features := most_of(size.d, lambda d: fits(size.with_features(d))):
        yield f"keep at most {features} of the features"
    if size.nonzeros is None:
        if not size.is_widened and fits(replace(size, stored=size.stored // 2)):
            yield "give X as float32"
        if not sp.issparse(X) and fits(_stored_sparse(X, size)):
            yield "give X as a scipy.sparse.csr_array"
        if need.certified and fits(size, Seen()):
            yield "raise alpha, with which fewer coefficients are used"
    if (classes := most_of(size.k, lambda k: fits(size.with_classes(k)))) > 1:
        yield f"merge rare classes, to at most {classes}"


def _stored_sparse(X: np.ndarray, size: Size) -> Size:
    """The size where only the non-zeros of an array are stored, if these are few."""
    part = np.count_nonzero(X) / X.size
    nonzeros = int(part * size.n * size.d) + size.n * size.intercept
    if is_hardly_sparse(size.n, size.columns, nonzeros):
        return size
    return replace(size, stored=nonzeros * (DOUBLE + POSITION), nonzeros=nonzeros)


def most_of(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to count that fits, where all smaller ones do: 0 where none does."""
    most, beyond = 0, count + 1
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if fits(middle) else (most, middle)
    return most
