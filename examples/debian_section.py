"""The words that tell 57 sections of Debian apart, from the descriptions of its packages."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from _data import load_text
from fenchel import SparseLinearClassifier
from fenchel.plotting import new_figure, save_figure

#: Rows to learn from: every third, which keeps the example short.
EVERY = 3


def main() -> None:
    texts, sections = load_text("debian_section", "train")
    test_texts, test_sections = load_text("debian_section", "test")
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
    X = words.fit_transform(texts[::EVERY])
    names = words.get_feature_names_out()
    model = SparseLinearClassifier("sparsemax", alpha=5e-5, tol=1e-2).fit(X, sections[::EVERY])
    X_test = words.transform(test_texts)
    coef = model.sparsify().coef_
    print(f"{X.shape[0]} packages, {X.shape[1]} words, {model.classes_.size} sections")
    print(f"certified gap {model.dual_gap_:.1e} ({model.status_})")
    print(f"{coef.nnz:,} of {coef.shape[0] * coef.shape[1]:,} coefficients are not zero")
    top = model.predict_topk(X_test, 3)
    hits = top == np.array(test_sections)[:, None]
    print(f"test accuracy {hits[:, 0].mean():.3f}, among the best three {hits.any(1).mean():.3f}\n")
    for label, start, stop in zip(model.classes_, coef.indptr, coef.indptr[1:], strict=False):
        best = np.argsort(-coef.data[start:stop])[:6]
        words_of = ", ".join(names[coef.indices[start:stop][best]])
        print(f"  {label:<16} {words_of or '(no word)'}")
    counts = np.diff(coef.indptr)
    order = np.argsort(counts)
    figure, (axes,) = new_figure(1, width=6, height=8)
    axes.barh(model.classes_[order], counts[order])
    axes.tick_params(axis="y", labelsize=6)
    axes.margins(y=0.01)
    axes.set(xlabel="words used", title="how many words a section needs")
    print(f"\npicture: {save_figure(figure, 'examples-output/debian_section.png')}")


if __name__ == "__main__":
    main()
