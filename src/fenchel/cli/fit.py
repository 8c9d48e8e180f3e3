"""``fenchel fit``: from a data file to a certified model."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from fenchel.cli.data import read
from fenchel.cli.files import Data
from fenchel.cli.terminal import EXIT, check_writable, complain, progress, say
from fenchel.estimators import SparseLinearClassifier
from fenchel.reproduce.records import write_csv


def run(options: Namespace) -> int:
    """Fit, write the model and the history, and print the certificate."""
    check_writable(
        {"--model": options.model, "--history": options.history}, [options.data, options.labels]
    )
    data = read(options)
    if data.y is None:
        raise ValueError(f"{options.data} has no labels: use --labels")
    began = time.perf_counter()
    with progress(options.verbose) as callback:
        model = make_model(options, data.y, callback)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code says it
            model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    if data.names is not None:
        model.feature_names_in_ = np.array(data.names, dtype=object)
    model.source_ = {"target": data.target, "index_base": data.index_base}
    if options.model is not None:
        model.save(options.model)
    if options.history is not None:
        write_csv(options.history, [asdict(record) for record in model.history_])
    for line in certificate(model, data, options, seconds):
        say(line)
    return _verdict(model, options)


def make_model(options: Namespace, y: np.ndarray, callback: Any) -> SparseLinearClassifier:
    """The estimator that the options describe."""
    return SparseLinearClassifier(
        loss=options.loss,
        alpha=options.alpha,
        alpha_scale=options.alpha_scale,
        tol=options.tol,
        solver=options.solver,
        fit_intercept=not options.no_intercept,
        class_weight=class_weight(options.class_weight, y),
        penalty=options.penalty,
        positive=options.positive,
        max_iter=options.max_iter,
        max_time=options.max_time,
        random_state=options.seed,
        callback=callback,
    )


def class_weight(text: str | None, y: np.ndarray) -> Any:
    """``None``, "balanced", or a dictionary from "label=factor,label=factor"."""
    if text is None or text == "balanced":
        return text
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for part in text.split(","):
        name, equals, factor = part.rpartition("=")
        try:
            value = float(factor)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"--class-weight: {part!r} is not of the form label=factor")
        if name not in labels:
            raise ValueError(f"--class-weight: no label {name!r} in the data")
        if labels[name] in weights:
            raise ValueError(f"--class-weight: label {name!r} has two factors: give one")
        weights[labels[name]] = value
    return weights


def certificate(
    model: SparseLinearClassifier, data: Data, options: Namespace, seconds: float
) -> list[str]:
    """What the fit found, for people."""
    n, d = data.X.shape
    k = model.classes_.size
    nonzeros = model.coef_.nnz if sp.issparse(model.coef_) else np.count_nonzero(model.coef_)
    goal = options.tol * model.history_[0].primal  # the history begins at U = 0
    lines = [
        f"data       {n} samples, {d} features, {k} classes",
        f"model      {options.loss}, alpha {model.alpha_:.6g}, {nonzeros} of {k * d} coefficients "
        "are not zero",
        f"objective  {model.objective_:.6g}",
        f"at least   {model.dual_objective_:.6g}",
        f"gap        {model.dual_gap_:.3g} (asked for {goal:.3g})",
        f"status     {model.status_} after {model.n_iter_} iterations, {seconds:.1f} s",
    ]
    written = [name for name in (options.model, options.history) if name is not None]
    return [*lines, f"written    {', '.join(written)}"] if written else lines


def _verdict(model: SparseLinearClassifier, options: Namespace) -> int:
    if model.status_ == "converged":
        return EXIT.OK
    best = "the best model so far was written" if options.model else "no --model was given"
    if model.status_ == "interrupted":
        complain("interrupted", best)
        return EXIT.INTERRUPTED
    complain("not converged", f"{model.status_}; the gap is above the tolerance; {best}")
    return EXIT.NOT_CONVERGED
