"""Bad input: the error names the argument, the finding and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.losses import Hinge
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.validation import refuse_broken
from instances import BY_NAME

X = BY_NAME["three-classes"].X
Y = BY_NAME["three-classes"].y
N, D = X.shape


def changed(value: Any, dtype: Any = float) -> np.ndarray:
    out = X.astype(dtype)
    out[2, 3] = value
    return out


def broken(entry: int | None, value: int) -> sp.csr_array:
    """X with one wrong column number, or with a row that ends before it begins."""
    out = sp.csr_array(X)
    out.sum_duplicates()  # and so X is known to be canonical, and not looked at again
    if entry is None:
        out.indptr[5] = value
    else:
        out.indices[entry] = value
    return out


def solve(**changes: Any) -> fenchel.Result:
    arguments = {"X": X, "y": Y, "lam": 0.1, "max_iter": 2} | changes
    return fenchel.solve(arguments.pop("X"), arguments.pop("y"), **arguments)


def weights(value: float, size: int = N) -> np.ndarray:
    out = np.ones(size)
    out[1] = value
    return out


# arguments, and the words that the message must hold: argument, finding, remedy
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nan": ({"X": changed(np.nan)}, ["X", "NaN", "row 2, column 3", "impute"]),
    "inf": ({"X": changed(-np.inf)}, ["X", "infinity", "row 2, column 3", "remove"]),
    "sparse-nan": ({"X": sp.csr_array(changed(np.nan))}, ["X", "NaN", "row 2, column 3"]),
    "huge": ({"X": changed(1e200)}, ["X", "1e+200", "overflow", "MaxAbsScaler"]),
    "huge-radius": (
        {"radius": 1e200, "solver": "mirror-descent"},
        ["radius", "1e+200", "smaller radius"],
    ),
    "tiny-lam": ({"lam": 1e-200, "solver": "mirror-prox"}, ["radius", "1e+200", "larger lam"]),
    "mask": (
        {"X": np.ma.masked_array(X, changed(np.nan) != X)},
        ["X", "1 masked", "filled", "drop"],
    ),
    "masked-labels": ({"y": np.ma.masked_array(Y, Y == 0)}, ["y", "masked", "drop"]),
    "masked-weights": (
        {"sample_weight": np.ma.masked_array(np.ones(N), np.arange(N) < 2)},
        ["sample_weight", "2 masked", "filled"],
    ),
    "text-intercept": ({"fit_intercept": "False"}, ["fit_intercept", "'False'", "True or False"]),
    "text-positive": ({"positive": "no"}, ["positive", "'no'", "True or False"]),
    "free-feature-group": (
        {"penalty_factor": weights(0.0, D), "penalty": "group"},
        ["penalty_factor", "zero", "positive", "radius="],
    ),
    "complex": ({"X": X + 1j}, ["X", "complex", "real and imaginary parts"]),
    "object": ({"X": X.astype(object)}, ["X", "object", "astype(float)"]),
    "text": ({"X": X.astype(str)}, ["X", "not numeric", "encode"]),
    "vector": ({"X": X[:, 0]}, ["X", "two dimensions", f"({N},)", "reshape"]),
    "cube": ({"X": X[:, :, None]}, ["X", "two dimensions", "reshape"]),
    "no-rows": ({"X": X[:0], "y": Y[:0]}, ["X", "empty", "(0, ", "at least one row"]),
    "no-columns": ({"X": X[:, :0]}, ["X", "empty", ", 0)", "one column"]),
    "short-y": ({"y": Y[:-1]}, ["y", f"{N - 1} label", f"{N} sample", "one label a row"]),
    "y-matrix": ({"y": np.eye(3)[Y]}, ["y", f"({N}, 3)", "argmax"]),
    "one-class": ({"y": np.zeros(N)}, ["y", "one class only", "classes="]),
    "nan-labels": ({"y": np.where(Y == 0, np.nan, Y)}, ["y", "NaN", "drop"]),
    "mixed-labels": (
        {"y": np.array(["a", 1, None] * (N // 3), dtype=object)},
        ["y", "cannot be sorted", "one type"],
    ),
    "unknown-class": ({"classes": [0, 1]}, ["classes", "does not name", "2", "add them"]),
    "repeated-class": (
        {"classes": [0, 1, 2, 2]},
        ["classes", "more than once", "every label once"],
    ),
    "single-class": ({"classes": [0]}, ["classes", "at least two", "(1,)", "every label"]),
    "masked-classes": (
        {"classes": np.ma.masked_array([0, 1, 2, 3], [0, 0, 0, 1])},
        ["classes", "1 masked", "filled"],
    ),
    "nan-class": ({"classes": [0.0, 1.0, 2.0, np.nan]}, ["classes", "NaN", "name labels"]),
    "broken-columns": ({"X": broken(3, 99)}, ["X", "CSR", "indices", "to 99", "coo_array"]),
    "broken-rows": ({"X": broken(None, 1)}, ["X", "CSR", "indptr", "ascending", "coo_array"]),
    "negative-seed": ({"rng": -1}, ["rng", "-1", "whole number >= 0", "generator"]),
    "text-seed": ({"rng": "a"}, ["rng", "'a'", "whole number >= 0", "generator"]),
    "callback": ({"callback": 3}, ["callback", "3", "function"]),
    "start-without-U": ({"start": (None, np.eye(3)[Y])}, ["start", "no U", "zeros"]),
    "complex-start": ({"start": np.ones((D, 3)) * 1j}, ["start", "U", "complex128", "real"]),
    "object-start": ({"start": np.ones((D, 3), object)}, ["start", "U", "object", "real"]),
    "start-intercept": (
        {"start": np.ones((D, 3)), "fit_intercept": True},
        ["start", "U", f"({D + 1}, 3)", "last row the intercept", f"({D}, 3)"],
    ),
    "negative-lam": ({"lam": -0.1}, ["lam", "-0.1", ">= 0"]),
    "nan-lam": ({"lam": np.nan}, ["lam", "finite", "nan", "number >= 0"]),
    "inf-lam": ({"lam": np.inf}, ["lam", "finite", "inf", "number >= 0"]),
    "text-lam": ({"lam": "0.1"}, ["lam", "'0.1'", "number"]),
    "bool-lam": ({"lam": True}, ["lam", "True", "number"]),
    "none-lam": ({"lam": None}, ["lam", "None", "number"]),
    "zero-radius": ({"radius": 0}, ["radius", "> 0", "0.0", "leave it None"]),
    "negative-radius": ({"radius": -1.0}, ["radius", "> 0", "-1.0", "leave it None"]),
    "nan-radius": ({"radius": np.nan}, ["radius", "finite", "nan", "leave it None"]),
    "lam-zero-no-radius": (
        {"lam": 0, "solver": "mirror-prox"},
        ["lam=0", "radius=", "primal-dual"],
    ),
    "free-feature-no-radius": (
        {"penalty_factor": weights(0.0, D), "solver": "mirror-descent"},
        ["penalty_factor", "zero", "radius="],
    ),
    "negative-weight": (
        {"sample_weight": weights(-1.0)},
        ["sample_weight", "-1.0", "sample 1", ">= 0"],
    ),
    "zero-weights": (
        {"sample_weight": np.zeros(N)},
        ["sample_weight", "zero for every", "positive"],
    ),
    "nan-weight": ({"sample_weight": weights(np.nan)}, ["sample_weight", "NaN", "finite"]),
    "huge-weights": (
        {"sample_weight": np.full(N, 1e308)},
        ["sample_weight", "sums to infinity", "divide"],
    ),
    "short-weights": (
        {"sample_weight": np.ones(N - 1)},
        ["sample_weight", f"({N},)", f"({N - 1},)"],
    ),
    "complex-weights": ({"sample_weight": np.ones(N) + 0j}, ["sample_weight", "complex", "real"]),
    "nan-among-objects": (
        {"y": np.where(np.arange(N) == 1, np.nan, Y).astype(object)},
        ["y", "NaN", "drop the rows"],
    ),
    "text-weights": ({"sample_weight": ["1"] * N}, ["sample_weight", "real numbers", "<U1"]),
    "named-factors": (
        {"penalty_factor": {"a": 1}},
        ["penalty_factor", "one a feature", "{'a': 1}"],
    ),
    "no-factors": ({"penalty_factor": "x"}, ["penalty_factor", "real numbers", "'x'"]),
    "complex-factors": ({"penalty_factor": [1j] * D}, ["penalty_factor", "real numbers"]),
    "loss-of-another-name": ({"loss": "log_loss"}, ["loss", "'log_loss'", "'softmax' here"]),
    "other-penalty": ({"penalty": "l2"}, ["penalty", "'l2'", "'group', 'l1'", "another package"]),
    "penalties": ({"penalty": ["l1"]}, ["penalty", "['l1']"]),
    "negative-factor": (
        {"penalty_factor": weights(-2.0, D)},
        ["penalty_factor", "-2.0", "feature 1", ">= 0"],
    ),
    "short-factors": (
        {"penalty_factor": np.ones(D + 1)},
        ["penalty_factor", f"({D},)", f"({D + 1},)"],
    ),
    "loss": ({"loss": "square"}, ["loss", "'square'", "hinge", "softmax"]),
    "loss-type": ({"loss": 3}, ["loss", "3", "hinge", "softmax"]),
    "penalty": ({"penalty": "l2"}, ["penalty", "'l2'", "group", "l1"]),
    "solver": ({"solver": "adam"}, ["solver", "'adam'", "auto", "mirror-prox"]),
    "solver-type": ({"solver": 1}, ["solver", "1", "auto", "mirror-prox"]),
    "step": (
        {"step": "big", "solver": "mirror-prox"},
        ["step", "'big'", "theory", "positive number"],
    ),
    "negative-step": (
        {"step": -1.0, "solver": "mirror-descent"},
        ["step", "-1.0", "positive number"],
    ),
    "zero-step": ({"step": 0, "solver": "subgradient"}, ["step", "0", "positive number"]),
    "nan-step": ({"step": np.nan, "solver": "mirror-descent"}, ["step", "nan", "positive number"]),
    "inf-step": ({"step": np.inf, "solver": "mirror-descent"}, ["step", "inf", "positive number"]),
    "bool-step": ({"step": True, "solver": "mirror-descent"}, ["step", "True", "positive number"]),
    "online-descent": (
        {"step": "online", "solver": "mirror-descent"},
        ["step", "'online'", "theory"],
    ),
    "step-twice": ({"step": 0.1, "solver": MirrorProx()}, ["step", "twice", "solver object"]),
    "negative-tol": ({"tol": -1e-3}, ["tol", ">= 0", "-0.001", "1e-3"]),
    "nan-tol": ({"tol": np.nan}, ["tol", "finite", "nan", "1e-3"]),
    "text-tol": ({"tol": "small"}, ["tol", "'small'", "1e-3"]),
    "negative-max-iter": ({"max_iter": -1}, ["max_iter", ">= 0", "-1", "None"]),
    "float-max-iter": ({"max_iter": 1.5}, ["max_iter", "whole number", "1.5", "None"]),
    "negative-passes": ({"max_passes": -2}, ["max_passes", ">= 0", "-2", "None"]),
    "nan-time": ({"max_time": np.nan}, ["max_time", "finite", "nan", "None"]),
    "text-time": ({"max_time": "1h"}, ["max_time", "'1h'", "None"]),
    "start-shape": ({"start": np.zeros((D, 2))}, ["start", "U", f"({D}, 3)", f"({D}, 2)"]),
    "start-V-shape": (
        {"start": (np.zeros((D, 3)), np.zeros((N, 2)))},
        ["start", "V", f"({N}, 3)", f"({N}, 2)"],
    ),
    "start-type": ({"start": "warm"}, ["start", "U", f"({D}, 3)", "str"]),
    "start-nan": ({"start": np.full((D, 3), np.nan)}, ["start", "U", "NaN"]),
    "start-not-dual": ({"start": (np.zeros((D, 3)), np.zeros((N, 3)))}, ["start", "V", "row sums"]),
    "start-triple": ({"start": (X, X, X)}, ["start", "(U, V)"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_names_argument_finding_and_remedy(name: str) -> None:
    changes, words = CASES[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        solve(**changes)
    message = str(caught.value)
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (np.ones((2, 3)), ["cost", "square", "(2, 3)"]),
        (np.ones((3, 3)), ["cost", "diagonal", "right answer"]),
        (np.array([[0, -1.0], [1, 0]]), ["cost", ">= 0"]),
        (np.array([[0, np.nan], [1, 0]]), ["cost", "finite"]),
    ],
)
def test_costs(cost: np.ndarray, words: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Hinge(cost)
    assert all(word in str(caught.value) for word in words)


def test_costs_must_fit_the_classes() -> None:
    with pytest.raises(ValueError, match=r"cost has 2 class.* but the data has 3: give a row"):
        solve(loss=Hinge(1 - np.eye(2)))


@pytest.mark.parametrize("name", ["nan", "complex", "one-class", "zero-weights", "short-factors"])
def test_lambda_max_checks_the_same(name: str) -> None:
    changes, words = CASES[name]
    arguments = {"X": X, "y": Y} | changes
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fenchel.lambda_max(arguments.pop("X"), arguments.pop("y"), **arguments)
    assert all(word in str(caught.value) for word in words)


# --- what looks unusual and is legal -----------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        np.array(["low", "mid", "high"])[Y],
        [["low", "mid", "high"][c] for c in Y],
        Y.astype(float),
        Y[:, None],
        np.array([10, -3, 7])[Y],
        Y.astype(np.int8),
    ],
    ids=["text", "list", "float", "column", "integers", "int8"],
)
def test_labels_of_any_type(y: Any) -> None:
    labels = np.unique(np.asarray(y))
    result = solve(y=y, max_iter=5)
    np.testing.assert_array_equal(result.classes, labels)
    codes = np.searchsorted(labels, np.asarray(y).ravel())
    by_code = solve(y=codes, max_iter=5)
    np.testing.assert_array_equal(result.U, by_code.U)


def test_boolean_labels() -> None:
    result = solve(y=Y == 0, max_iter=5)
    assert result.classes.tolist() == [False, True]


def test_classes_set_the_columns() -> None:
    forward, back = (
        solve(classes=classes, max_iter=30, solver="mirror-prox")
        for classes in ([0, 1, 2], [2, 1, 0])
    )
    np.testing.assert_array_equal(back.classes, [2, 1, 0])
    np.testing.assert_allclose(forward.U, back.U[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("kind", [np.int64, np.int8, bool, np.float32, np.float16])
def test_numeric_types_of_features(kind: Any) -> None:
    rounded = np.round(X).astype(kind)
    a, b = solve(X=rounded, max_iter=20), solve(X=rounded.astype(float), max_iter=20)
    assert a.primal == pytest.approx(b.primal, rel=1e-12)


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array]
)
def test_sparse_formats(make: Any) -> None:
    a, b = solve(X=make(X), max_iter=20), solve(X=sp.csr_array(X), max_iter=20)
    assert a.primal == pytest.approx(b.primal, rel=1e-10)
    assert a.dual == pytest.approx(b.dual, rel=1e-10)
    dense = solve()
    assert max(a.dual, dense.dual) <= min(a.primal, dense.primal)


def test_duplicate_entries_of_a_sparse_matrix_add_up() -> None:
    halves = sp.coo_array(
        (np.tile(X.ravel() / 2, 2), np.tile(np.indices(X.shape).reshape(2, -1), 2))
    )
    assert solve(X=halves, max_iter=20).primal == pytest.approx(
        solve(X=sp.csr_array(X), max_iter=20).primal, rel=1e-10
    )


@pytest.mark.parametrize("layout", ["F", "strided", "list", "readonly"])
def test_memory_layouts(layout: str) -> None:
    other = {
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "list": X.tolist(),
        "readonly": X.copy(),
    }[layout]
    if layout == "readonly":
        other.flags.writeable = False
    a, b = solve(X=other, max_iter=20), solve(max_iter=20)
    assert a.primal == pytest.approx(b.primal, rel=1e-12)


def test_room_behind_the_entries_of_a_sparse_matrix_is_not_looked_at() -> None:
    roomy, plain = sp.csr_array(X), sp.csr_array(X)
    roomy.data, roomy.indices = np.append(roomy.data, 1.0), np.append(roomy.indices, 99)
    refuse_broken("X", roomy)
    assert solve(X=roomy).primal == solve(X=plain).primal
