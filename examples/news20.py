"""20 newsgroups: the size of a model against LogisticRegression's, and the top words of each class.

The shared file has no vocabulary. Its columns are the words of the posts in alphabetical order, and
so the words are found again in the posts, which scikit-learn has in its cache or downloads (14 MB,
``fetch_20newsgroups``); without a network the numbers of the columns are printed.
debian_section.py has words in any case.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from _data import load
from fenchel import SparseLinearClassifier
from fenchel.plotting import new_figure, save_figure


def find_words(n_words: int) -> np.ndarray | None:
    """The words of the columns, or None where they cannot be known."""
    try:
        posts = fetch_20newsgroups(subset="train").data
    except OSError:  # no network
        return None
    words = CountVectorizer().fit(posts).get_feature_names_out()
    return words if words.size == n_words else None


def show_top_words(model: SparseLinearClassifier) -> None:
    coef = model.sparsify().coef_
    words = find_words(coef.shape[1])
    if words is None:
        print("\nthe file has no vocabulary, and the posts cannot be downloaded: columns")
    for label, start, stop in zip(model.classes_, coef.indptr, coef.indptr[1:], strict=False):
        best = coef.indices[start:stop][np.argsort(-coef.data[start:stop])[:6]]
        names = best.astype(str) if words is None else words[best]
        print(f"  {label:<26} {', '.join(names)}")


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
    show_top_words(model)
    figure, (axes,) = new_figure(1)
    axes.semilogx(*zip(*rows, strict=True), marker="o", label="fenchel, sparsemax and l1")
    axes.plot(dense, peer.score(X_test, y_test), "s", label="LogisticRegression, l2")
    axes.set(xlabel="coefficients", ylabel="test accuracy", title="20 newsgroups")
    axes.legend()
    print(f"picture: {save_figure(figure, 'examples-output/news20.png')}")


if __name__ == "__main__":
    main()
