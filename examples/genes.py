"""Select genes: nine kinds of cancer told apart by a few of 6,830 genes (NCI60)."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from _data import load
from fenchel import SparseLinearClassifier, SparseLinearClassifierCV
from fenchel.plotting import new_figure, plot_coefficients, save_figure


def main() -> None:
    data = load("nci60")
    X, y = StandardScaler().fit_transform(data["X"]), data["classes"][data["y"]]
    X, y = X[y != "PROSTATE"], y[y != "PROSTATE"]  # two samples are too few to leave one out
    model = SparseLinearClassifierCV(
        "softmax", alphas=15, eps=0.05, cv=5, selection="one-standard-error", n_jobs=2
    ).fit(X, y)
    coef = model.densify().coef_
    used = np.flatnonzero(coef.any(axis=0))
    print(f"{y.size} samples, {X.shape[1]} genes, {model.classes_.size} kinds of cancer")
    print(f"chosen alpha {model.alpha_:.4f}, certified gap {model.dual_gap_:.1e}")
    chosen = list(model.alphas_).index(model.alpha_)
    scores = model.scores_.mean(axis=1)
    print(f"accuracy on left-out folds {scores[chosen]:.3f} (the best alpha's: {scores.max():.3f})")
    print(f"{used.size} genes are used:")
    for label, row in zip(model.classes_, coef, strict=True):
        best = np.argsort(-np.abs(row))[:6]
        names = ", ".join(f"{j} ({row[j]:+.2f})" for j in best if row[j])
        print(f"  {label:<10} {names}")
    path = SparseLinearClassifier("softmax").path(X, y, alphas=15, eps=0.05)
    figure, axes = new_figure(2)
    axes[0].semilogx(path.alphas, path.nonzeros, marker="o", label="non-zeros")
    axes[0].axvline(model.alpha_, color="grey", linestyle="--", label="chosen")
    axes[0].set(xlabel="alpha", ylabel="coefficients used", title="regularisation path")
    ticks = [0.02, 0.05, 0.1, 0.2]
    axes[0].set_xticks(ticks, [str(tick) for tick in ticks])
    axes[0].set_xticks([], minor=True)
    axes[0].legend()
    plot_coefficients(axes[1], coef[:, used].T, f"the {used.size} genes that are used")
    axes[1].set_yticks(range(model.classes_.size), model.classes_, fontsize=8)
    axes[1].set(xlabel="gene (counted among those used)", ylabel="")
    print(f"picture: {save_figure(figure, 'examples-output/genes.png')}")


if __name__ == "__main__":
    main()
