"""Who is told about a fit's checks: a function, scikit-learn's callbacks, and the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from fenchel.driver import Observer, stops
from fenchel.prediction import fitted
from fenchel.problem import Problem
from fenchel.solving import split_intercept
from fenchel.termination import Record
from fenchel.validation import check_callback

logger = logging.getLogger("fenchel")

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    FIT_FRAMES = 2  #: frames of the stack between the user and what ``fit`` calls
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method

    FIT_FRAMES = 1


class FitMonitor(Observer):
    """One callback for the driver, which tells everyone; any of them can stop the fit.

    Told are the estimator's ``callback``, a plain function of a
    :class:`~fenchel.termination.Record`; scikit-learn's callbacks, for which every check is a
    subtask of the fit, with the model as it is then; and at ``verbose`` 1 and above the log.
    """

    def __init__(
        self, estimator: Any, problem: Problem, X: Any, y: Any, weights: np.ndarray | None
    ) -> None:
        check_callback(estimator.callback)
        self.estimator, self.problem, self.dtype = estimator, problem, X.dtype
        self.data = {"X": X, "y": y, "metadata": {"sample_weight": weights}}
        self.context = None
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def __call__(self, record: Record) -> bool:
        """Tell everyone about a check; True stops the fit."""
        stop = False
        if self.estimator.verbose > 0:
            logger.info(
                "iteration %d, %.1f s: primal %.6g, dual %.6g, certified gap %.3g, %d non-zeros",
                record.iteration, record.wall, record.primal, record.dual, record.best_gap,
                record.nnz,
            )  # fmt: skip
        if self.estimator.callback is not None:
            stop = stops(self.estimator.callback(record))
        if self.context is not None:
            check = self.context.subcontext(task_name="check")
            check.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            stop |= bool(
                check.call_on_fit_task_end(
                    estimator=self.estimator,
                    reconstruction_attributes=self._model_so_far,
                    **self.data,
                )
            )
        return stop

    def _model_so_far(self) -> dict[str, Any]:
        """What a copy of the estimator needs to predict, were the fit to end here."""
        return fitted(*split_intercept(self.problem, self.best().U), self.dtype)

    def end(self) -> None:
        """The estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes={}, **self.data
            )


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """Show the log on the standard error stream: at 1 the checks, at 2 all that there is."""
    if not isinstance(verbose, Integral | np.bool_) or verbose < 0:
        raise ValueError(f"verbose must be a whole number >= 0 (0, 1 or 2), found {verbose!r}.")
    if not verbose:
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
