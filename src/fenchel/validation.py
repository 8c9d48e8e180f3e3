"""Checks of what the user hands over.

Every error names the argument, what was found, and what to do about it.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Sums of squares of larger numbers overflow.
LARGEST = 1e150


def refuse_mask(name: str, values: Any) -> None:
    """Raise where some entries of a masked array are masked: numpy would read them as numbers."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with {np.ma.count_masked(values)} masked entries: fill "
            f"them, for example with {name}.filled(0), or drop their rows."
        )


def refuse_lazy(name: str, values: Any) -> None:
    """Raise where a data frame is only a plan of one: numpy would read it as a single object."""
    if hasattr(values, "collect"):
        raise TypeError(
            f"{name} is a {type(values).__name__}, which holds no rows yet: give {name}.collect()."
        )


def refuse_broken(name: str, X: Any) -> None:
    """Raise where the positions of a CSR or CSC matrix point out of it: no kernel looks again."""
    if not sp.issparse(X) or X.format not in ("csr", "csc"):
        return
    major, minor = X.shape if X.format == "csr" else X.shape[::-1]
    starts, positions = X.indptr, X.indices
    whole = starts.size == major + 1 and starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
    if not whole or starts[-1] > min(positions.size, X.data.size):
        found = f"indptr is not ascending from 0 to the number of entries ({X.data.size})"
    else:
        positions = positions[: starts[-1]]  # what room there is behind belongs to nothing
        if positions.size == 0 or 0 <= positions.min() <= positions.max() < minor:
            return
        found = f"indices go from {positions.min()} to {positions.max()}, beyond {minor - 1}"
    raise ValueError(
        f"{name} is a broken {X.format.upper()} matrix of shape {X.shape}, whose {found}: make it "
        "anew, for example from rows, columns and values with scipy.sparse.coo_array."
    )


def check_flag(name: str, value: Any) -> bool:
    """Return a bool; text such as "False" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, found {value!r}.")
    return bool(value)


def check_design(X: Any) -> np.ndarray | sp.csr_array:
    """Return X as an ndarray or a CSR array of float64 or float32, finite and non-empty."""
    X = check_entries(X)
    return X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)


def check_entries(X: Any) -> np.ndarray | sp.csr_array:
    """Return X as an ndarray or a CSR array of any numbers, finite and non-empty."""
    if sp.issparse(X):
        _check_dtype("X", X.dtype)
        refuse_broken("X", X)
        X = sp.csr_array(X)
        values = X.data
    else:
        refuse_mask("X", X)
        refuse_lazy("X", X)
        X = np.asarray(X)
        _check_dtype("X", X.dtype)
        values = X
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions (samples, features), found shape {X.shape}: "
            "reshape a single feature with X.reshape(-1, 1), a single sample with "
            "X.reshape(1, -1)."
        )
    if 0 in X.shape:
        raise ValueError(
            f"X is empty, found shape {X.shape} with 0 sample(s) or 0 feature(s): "
            "give at least one row and one column."
        )
    if not np.isfinite(values).all():
        raise ValueError(_describe_non_finite(X))
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest > LARGEST:
        raise ValueError(
            f"X has entries as large as {largest:g}, whose squares overflow: scale the columns, "
            "for example with sklearn.preprocessing.MaxAbsScaler."
        )
    return X


def _check_dtype(name: str, dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise ValueError(
            f"{name} holds complex numbers (dtype {dtype}): give real features, "
            "for example real and imaginary parts as separate columns."
        )
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has dtype {dtype}, which is not numeric: encode it as numbers first, "
            "for example with sklearn.preprocessing.OneHotEncoder, or call astype(float)."
        )


def _describe_non_finite(X: Any) -> str:
    if sp.issparse(X):
        coo = X.tocoo()
        at = int(np.flatnonzero(~np.isfinite(coo.data))[0])
        row, column, value = int(coo.row[at]), int(coo.col[at]), coo.data[at]
    else:
        row, column = (int(index) for index in np.argwhere(~np.isfinite(X))[0])
        value = X[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    return (
        f"X contains {what} (first at row {row}, column {column}): remove or impute it, "
        "for example with sklearn.impute.SimpleImputer."
    )


def check_labels(y: Any, classes: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the class codes (n,) and the labels in column order (k,)."""
    codes, found = encode_labels(y, n_samples)
    if classes is None:
        if found.size < 2:
            raise ValueError(
                f"y has one class only ({found[0]!r}): at least two are needed. If others exist "
                "but have no sample here, name them all with classes=[...]."
            )
        return codes, found
    refuse_mask("classes", classes)
    return _codes_in(found, codes, np.asarray(classes))


def encode_labels(y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes (n,) of the labels that occur, and these in their order."""
    refuse_mask("y", y)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(
            f"y must be one label a sample, found shape {y.shape}: "
            "turn indicator columns into labels with y.argmax(axis=1)."
        )
    if y.shape[0] != n_samples:
        raise ValueError(
            f"y has {y.shape[0]} label(s) but X has {n_samples} sample(s): "
            "give one label a row of X."
        )
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity: drop the rows without a label.")
    try:
        found, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"y mixes labels that cannot be sorted ({error}): convert them to one type, "
            "for example y.astype(str)."
        ) from error
    if any(label != label for label in found.tolist()):  # among objects
        raise ValueError("y contains NaN: drop the rows without a label.")
    return codes.astype(np.intp).ravel(), found


def _codes_in(
    found: np.ndarray, codes: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if classes.ndim != 1 or classes.size < 2:
        raise ValueError(
            f"classes must list at least two labels, found shape {classes.shape}: "
            "name every label once, in column order."
        )
    if any(label != label for label in classes.tolist()):  # NaN and NaT equal no label
        raise ValueError("classes names a label that is NaN: name labels that a row can have.")
    position = {label: column for column, label in enumerate(classes.tolist())}
    if len(position) != classes.size:
        raise ValueError("classes names a label more than once: name every label once.")
    missing = [label for label in found.tolist() if label not in position]
    if missing:
        raise ValueError(
            f"y holds {len(missing)} label(s) that classes does not name (first: {missing[0]!r}): "
            "add them to classes, or drop those rows."
        )
    column = np.array([position[label] for label in found.tolist()], dtype=np.intp)
    return column[codes.ravel()], classes


def check_sample_weight(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return weights that sum to one; a weight is a repetition of its row."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weights = _check_vector("sample_weight", sample_weight, n_samples, "sample")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total <= 0:
        raise ValueError(
            "sample_weight is zero for every sample: give at least one positive weight."
        )
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity: divide the weights by their maximum.")
    return weights / total


def check_penalty_factor(penalty_factor: Any, n_features: int) -> np.ndarray:
    """Return one non-negative factor a feature."""
    if penalty_factor is None:
        return np.ones(n_features)
    return _check_vector("penalty_factor", penalty_factor, n_features, "feature")


def _check_vector(name: str, values: Any, size: int, unit: str) -> np.ndarray:
    refuse_mask(name, values)
    given, values = values, np.asarray(values)
    if values.dtype.kind not in "biuf":
        found = repr(given) if values.ndim == 0 else f"dtype {values.dtype}"
        raise ValueError(f"{name} must be a list of real numbers, one a {unit}, found {found}.")
    values = values.astype(np.float64)
    if values.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), one a {unit}, found {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity: give finite numbers.")
    if (values < 0).any():
        at = int(np.flatnonzero(values < 0)[0])
        raise ValueError(f"{name} is negative ({values[at]} for {unit} {at}): give numbers >= 0.")
    return values


def check_number(
    name: str, value: Any, *, positive: bool = False, remedy: str = "give a finite number"
) -> float:
    """Return a finite float >= 0 (> 0 with ``positive``)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, found {value!r}: {remedy}.")
    value = float(value)
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, found {value}: {remedy}.")
    if value < 0 or (positive and value == 0):
        bound = "> 0" if positive else ">= 0"
        raise ValueError(f"{name} must be {bound}, found {value}: {remedy}.")
    return value


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a record or None, found {callback!r}.")


def check_generator(name: str, rng: Any) -> np.random.Generator:
    """Return a generator: the one given, or a new one from a seed or from None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be a whole number >= 0, a numpy generator or None, found {rng!r}."
        ) from error


def check_budget(name: str, value: Any, *, integer: bool = False) -> float | int | None:
    """Return a positive budget, or None for no limit."""
    if value is None:
        return None
    if integer:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} must be a whole number or None, found {value!r}.")
        if value < 0:
            raise ValueError(
                f"{name} must be >= 0, found {value}: leave it None for the solver's own limit."
            )
        return int(value)
    return check_number(name, value, remedy="leave it None for no limit")
