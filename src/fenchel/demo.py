"""``python -m fenchel.demo``: certified sparse models on real and on the paper's synthetic data."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from fenchel.datasets import make_paper
from fenchel.plotting import new_figure, plot_coefficients, plot_gap, save_figure
from fenchel.solving import Result, solve


@dataclass(frozen=True)
class Task:
    """Training data, test data and a penalty."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    lam: float
    tol: float
    classes: np.ndarray | None = None


def tasks() -> list[Task]:
    """scikit-learn's digits, and the problem of the paper's Figure 1 at n = d = k = 100."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0, stratify=y)
    size = 100
    data = make_paper(2 * size, size, size, rng=0)
    train, test = slice(0, size), slice(size, None)
    return [
        Task("digits", X_train, y_train, X_test, y_test, lam=1e-3, tol=1e-3),
        Task(
            f"paper's synthetic, n=d=k={size}",
            data.X[train],
            data.y[train],
            data.X[test],
            data.y[test],
            lam=data.lam,
            tol=1e-2,
            classes=data.classes,
        ),
    ]


def accuracy(result: Result, X: np.ndarray, y: np.ndarray) -> float:
    """The share of right answers; the class with the highest score is the answer."""
    return float(np.mean(result.classes[np.argmax(X @ result.U, axis=1)] == y))


def fit(task: Task) -> tuple[Result, float]:
    """Fit the hinge loss; the time includes compiling, checking and certifying."""
    began = time.perf_counter()
    result = solve(
        task.X, task.y, loss="hinge", lam=task.lam, tol=task.tol, classes=task.classes, rng=0
    )
    return result, time.perf_counter() - began


def row(task: Task, result: Result, seconds: float) -> str:
    """One line of the table."""
    nonzero = f"{np.count_nonzero(result.U):,} of {result.U.shape[0] * result.U.shape[1]:,}"
    return (
        f"{task.name:<32}{result.primal:>10.5f}{result.gap:>11.1e}{nonzero:>17}"
        f"{accuracy(result, task.X_test, task.y_test):>10.1%}{seconds:>8.1f} s  {result.status}"
    )


def draw(results: dict[str, Result]) -> Any:
    """Gap against time, and the coefficients of each model."""
    figure, axes = new_figure(3)
    plot_gap(axes[0], results)
    for panel, (name, result) in zip(axes[1:], results.items(), strict=True):
        plot_coefficients(panel, result.U, f"coefficients, {name}")
    return figure


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo-output/demo.png", help="the picture's file name")
    options = parser.parse_args()
    print("Multiclass hinge loss with an l1 penalty. The optimum lies between")
    print("objective - certified gap and objective.\n")
    print(
        f"{'data':<32}{'objective':>10}{'certified':>11}{'non-zeros':>17}{'test':>10}{'time':>8}\n"
        f"{'':<32}{'':>10}{'gap':>11}{'':>17}{'accuracy':>10}"
    )
    results: dict[str, Result] = {}
    for task in tasks():
        result, seconds = fit(task)
        results[task.name] = result
        print(row(task, result, seconds))
    path = save_figure(draw(results), options.output)
    print(f"\nPicture (gap against time, coefficients): {path}")


if __name__ == "__main__":
    main()
