"""The size of a model: 20 newsgroups and 130,107 words, against LogisticRegression's."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from sklearn.linear_model import LogisticRegression

from _data import load
from fenchel import SparseLinearClassifier
from fenchel.plotting import new_figure, save_figure


def main() -> None:
    data = load("news20")
    X, y = data["X"], data["classes"][data["y"]]
    X_test, y_test = data["X_test"], data["classes"][data["y_test"]]
    peer = LogisticRegression(C=10.0, max_iter=500).fit(X, y)
    dense = peer.coef_.size
    print(f"LogisticRegression (l2): {dense:,} coefficients, {peer.coef_.nbytes / 1e6:.1f} MB,")
    print(f"  test accuracy {peer.score(X_test, y_test):.3f}\n")
    print(f"{'alpha':>8}{'non-zeros':>11}{'file':>10}{'accuracy':>10}{'gap':>9}{'time':>8}")
    rows = []
    for alpha in (1e-3, 3e-4, 1e-4, 3e-5):
        began = time.perf_counter()
        model = SparseLinearClassifier("sparsemax", alpha=alpha, tol=1e-2).fit(X, y)
        seconds = time.perf_counter() - began
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.npz")
            size = (Path(folder) / "model.npz").stat().st_size
        rows.append((model.sparsify().coef_.nnz, model.score(X_test, y_test)))
        print(
            f"{alpha:>8.0e}{rows[-1][0]:>11,}{size / 1e3:>7.0f} kB{rows[-1][1]:>10.3f}"
            f"{model.dual_gap_:>9.0e}{seconds:>6.1f} s"
        )
    figure, (axes,) = new_figure(1)
    axes.semilogx(*zip(*rows, strict=True), marker="o", label="fenchel, sparsemax and l1")
    axes.plot(dense, peer.score(X_test, y_test), "s", label="LogisticRegression, l2")
    axes.set(xlabel="coefficients", ylabel="test accuracy", title="20 newsgroups")
    axes.legend()
    print(f"picture: {save_figure(figure, 'examples-output/news20.png')}")


if __name__ == "__main__":
    main()
