"""Model files: a zip of plain arrays and a JSON header, without pickle.

Nothing in a file is believed before it is checked: what it contains, the type and the size that
each array declares (before memory is taken for it), the indices of sparse coefficients, that all
numbers are finite, and that the certificate is one.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from fenchel.losses import LOSSES, Hinge, get_loss
from fenchel.problem import PENALTIES
from fenchel.termination import Record, Status

FORMAT = "fenchel-model"

#: Raised when an older reader would misread a file; what it may leave unread raises nothing.
VERSION = 1

#: Limits on what ``load`` accepts: the header in bytes, and any array in bytes.
HEADER_BYTES = 1 << 26
ARRAY_BYTES = 1 << 40

#: Kinds of numpy types that an array may have, by member.
KINDS = {
    "coef": "f",
    "coef_data": "f",
    "coef_indices": "i",
    "coef_indptr": "i",
    "intercept": "f",
    "classes": "biufU",
    "feature_names": "U",
    "penalty_factor": "f",
    "cost": "f",
}

#: A certificate may be off by this part of the objective.
ROUNDING = 1e-9


def _is_number(value: Any) -> bool:
    return _is(value, float) and 0 <= value < np.inf


def _is_count(value: Any) -> bool:
    return _is(value, int) and value >= 0


def _is_switch(value: Any) -> bool:
    return _is(value, bool)


#: Parameters that are numbers, words or None, and what a file may hold for them.
PLAIN: dict[str, Callable[[Any], bool]] = {
    "alpha": _is_number,
    "alpha_scale": ("absolute", "max").__contains__,
    "tol": _is_number,
    "fit_intercept": _is_switch,
    "penalty": PENALTIES.__contains__,
    "positive": _is_switch,
    "max_iter": lambda value: value is None or _is_count(value),
    "max_time": lambda value: value is None or _is_number(value),
    "warm_start": _is_switch,
    "verbose": lambda value: _is_switch(value) or _is_count(value),
}

FITTED = ("alpha_", "n_iter_", "objective_", "dual_objective_", "dual_gap_", "status_")


#: How the command line read the data of a fit, which it needs again to predict: the column of the
#: labels (its name, or without a header its number from 1) and svmlight's first feature number.
SOURCE = ("target", "index_base")


class ModelFileError(ValueError):
    """The file is not a model file that this version can read."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; an existing file is replaced only when the new one is complete.

    A link stays one: the file that it points to is replaced. Of the parameters, ``callback`` is
    left out, a solver object is saved by its name, and ``random_state`` only where it is a number.
    """
    header, arrays = _describe(model)
    path = Path(path)
    target = Path(os.path.realpath(path))  # where a link points to
    if target.is_dir():
        problem = "the model cannot be written (it is a folder), give the path of a file"
        raise IsADirectoryError(errno.EISDIR, problem, str(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:  # which names the temporary file
        problem = f"the model cannot be written ({error.strerror}), give another path"
        raise OSError(error.errno, problem, str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr("header.json", json.dumps(header))
                for member, array in arrays.items():
                    with archive.open(f"{member}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file as a fitted :class:`~fenchel.SparseLinearClassifier`."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            header = _read_header(archive)
            arrays = {
                member: _read_array(archive, member)
                for member in KINDS
                if f"{member}.npy" in archive.namelist()
            }
        return _rebuild(header, arrays)
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
        raise
    except KeyError as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a readable model: it has no {error.args[0]!r}"
        ) from error
    except Exception as error:  # a broken zip or array can raise almost anything
        raise ModelFileError(f"{os.fspath(path)!r} is not a readable model: {error}") from error


def _describe(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    loss = get_loss(model.loss)
    if type(loss) is not LOSSES.get(loss.name):
        raise ValueError(
            f"loss={loss!r} is an object of your own, which a model file cannot hold: save "
            "coef_, intercept_ and classes_ with numpy instead."
        )
    coef, classes = model.coef_, np.asarray(model.classes_)
    # a cross-validated model is saved as the model that it chose
    params = {"alpha": model.alpha_} | model.get_params(deep=False)
    if "alphas" in params:
        params["alpha_scale"] = "absolute"
    plain = {name: _plain(params[name]) for name in PLAIN if name in params}
    for name, value in plain.items():
        if not PLAIN[name](value):  # set after the fit: fit itself refuses it
            raise ValueError(f"{name}={value!r} is nothing that fit would take: set it right.")
    solver = params["solver"]
    seed = params["random_state"]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "loss": loss.name,
        "shape": list(coef.shape),
        "dtype": coef.dtype.name,
        "classes_were_objects": classes.dtype == object,
        "params": plain
        | {
            "solver": solver if isinstance(solver, str) else solver.name,
            "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
            "class_weight": _pairs(params["class_weight"]),
        },
        "fitted": {name: _plain(getattr(model, name)) for name in FITTED},
        "history": [asdict(record) for record in model.history_],
    }
    if hasattr(model, "source_"):
        header["source"] = model.source_
    arrays = {"intercept": model.intercept_, "classes": _without_objects(classes, "classes_")}
    if sp.issparse(coef):
        csr = sp.csr_array(coef)
        arrays |= {"coef_data": csr.data, "coef_indices": csr.indices, "coef_indptr": csr.indptr}
    else:
        arrays["coef"] = coef
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = _without_objects(model.feature_names_in_, "feature_names_in_")
    if params["penalty_factor"] is not None:
        arrays["penalty_factor"] = np.asarray(params["penalty_factor"], dtype=np.float64)
    if isinstance(loss, Hinge) and loss.cost is not None:
        arrays["cost"] = loss.cost
    return header, arrays


def _rebuild(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    from fenchel.estimators import SparseLinearClassifier

    k, d = header["shape"]
    classes = arrays["classes"]
    _require(_is(k, int) and _is(d, int) and k >= 2 and d >= 1, f"shape {k} x {d}")
    for name, size in (("intercept", k), ("classes", k), ("feature_names", d),
                       ("penalty_factor", d)):  # fmt: skip
        if name in arrays:
            _require(arrays[name].shape == (size,), f"{name} has shape {arrays[name].shape}")
    for name in ("intercept", "penalty_factor", "cost", "coef"):
        _require(name not in arrays or bool(np.isfinite(arrays[name]).all()), f"{name} not finite")
    _require(np.unique(classes).size == k, "classes are not distinct")
    _require(classes.dtype.kind != "f" or not np.isnan(classes).any(), "a class is NaN")
    _require(header["loss"] in LOSSES, f"unknown loss {header['loss']!r}")
    loss = Hinge(arrays["cost"]) if "cost" in arrays else header["loss"]
    get_loss(loss).check_classes(k)
    params = _checked_params(header["params"])
    weights = header["params"]["class_weight"]
    model = SparseLinearClassifier(
        loss,
        solver=str(header["params"]["solver"]),
        random_state=header["params"]["random_state"],
        class_weight=weights if weights is None or isinstance(weights, str) else dict(weights),
        penalty_factor=arrays.get("penalty_factor"),
        **params,
    )
    model.coef_ = _coefficients(arrays, (k, d))
    _require(model.coef_.dtype in (np.float64, np.float32), f"coef has type {model.coef_.dtype}")
    model.intercept_ = arrays["intercept"]
    model.classes_ = classes.astype(object) if header["classes_were_objects"] else classes
    model.n_features_in_ = d
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    if "source" in header:
        model.source_ = _source(header["source"], d)
    model.__dict__.update(_checked_fit(header["fitted"]))
    model.history_ = [_checked_record(record) for record in header["history"]]
    return model


def _checked_params(found: dict[str, Any]) -> dict[str, Any]:
    """The parameters that are numbers, words or None."""
    params = {name: found[name] for name in PLAIN if name in found}
    for name, value in params.items():
        _require(PLAIN[name](value), f"{name} is {value!r}")
    return params


def _checked_fit(fitted: dict[str, Any]) -> dict[str, Any]:
    """How the fit ended, and its certificate."""
    values = {name: fitted[name] for name in FITTED}
    for name, value in values.items():
        kind = {"n_iter_": int, "status_": str}.get(name, float)
        _require(_is(value, kind), f"{name} is {value!r}")
    _require(values["alpha_"] >= 0 and np.isfinite(values["alpha_"]), "alpha_ out of range")
    _require(values["n_iter_"] >= 0, "n_iter_ is negative")
    _require(values["status_"] in list(Status), f"unknown status {values['status_']!r}")
    bounds = values["objective_"], values["dual_objective_"]
    _require(bool(np.isfinite(bounds).all()), "the certificate is not finite")
    _require(values["dual_gap_"] == bounds[0] - bounds[1], "dual_gap_ is not that of its bounds")
    least = -ROUNDING * max(1.0, abs(bounds[0]))
    _require(values["dual_gap_"] >= least, "dual_objective_ is above objective_")
    return values


def _checked_record(record: dict[str, Any]) -> Record:
    """A check of the fit; what a later version may have added is left out."""
    kinds = {"int": int, "float": float, "str": str}
    values = {field.name: record[field.name] for field in fields(Record) if field.name in record}
    for field in fields(Record):
        if field.name in values:
            value = values[field.name]
            _require(_is(value, kinds[str(field.type)]), f"history: {field.name} is {value!r}")
    return Record(**values)


def _is(value: Any, kind: type) -> bool:
    """Whether JSON's value is of a kind; a whole number is a float, too."""
    return type(value) is kind or (kind is float and type(value) is int)


def _source(found: dict[str, Any], d: int) -> dict[str, Any]:
    source = {name: found.get(name) for name in SOURCE}
    target, base = source["target"], source["index_base"]
    numbered = type(target) is int and 1 <= target <= d + 1
    _require(target is None or isinstance(target, str) or numbered, f"target {target!r}")
    _require(base is None or (type(base) is int and base in (0, 1)), f"index_base {base!r}")
    return source


def _coefficients(arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> Any:
    if "coef" in arrays:
        _require(arrays["coef"].shape == shape, f"coef has shape {arrays['coef'].shape}")
        return arrays["coef"]
    data, indices, indptr = (arrays[f"coef_{part}"] for part in ("data", "indices", "indptr"))
    _require(data.ndim == indices.ndim == indptr.ndim == 1, "coef is not a CSR matrix")
    _require(data.size == indices.size and indptr.size == shape[0] + 1, "coef arrays do not fit")
    _require(indptr[0] == 0 and indptr[-1] == data.size, "coef row pointers do not fit")
    _require(bool((np.diff(indptr) >= 0).all()), "coef row pointers decrease")
    _require(
        not indices.size or (indices.min() >= 0 and indices.max() < shape[1]),
        "coef has a feature out of range",
    )
    _require(bool(np.isfinite(data).all()), "coef not finite")
    _require(shape[1] <= np.iinfo(indices.dtype).max, f"{shape[1]} features")
    return sp.csr_array((data, indices, indptr), shape=shape)


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    size = archive.getinfo("header.json").file_size
    _require(size <= HEADER_BYTES, f"the header has {size} bytes")
    with archive.open("header.json") as entry:
        header = json.loads(entry.read(HEADER_BYTES))
    _require(isinstance(header, dict) and header.get("format") == FORMAT, "no such header")
    _require(
        header.get("version") == VERSION,
        f"its version is {header.get('version')!r}, this fenchel reads version {VERSION}",
    )
    return header


def _read_array(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    info = archive.getinfo(f"{member}.npy")
    with archive.open(info) as entry:
        shape, fortran, dtype = _read_array_header(entry)
        _require(dtype.kind in KINDS[member], f"{member} has type {dtype}")
        size = dtype.itemsize
        for length in shape:
            _require(length >= 0, f"{member} has shape {shape}")
            size *= length  # Python's integers do not overflow
        # a declared size must be backed by bytes of the archive before memory is taken for it
        _require(size <= min(ARRAY_BYTES, info.file_size), f"{member} declares {size} bytes")
        content = entry.read(size)
        _require(len(content) == size, f"{member} is cut short")
    array = np.frombuffer(bytearray(content), dtype=dtype).astype(
        dtype.newbyteorder("="), copy=False
    )
    return array.reshape(shape, order="F" if fortran else "C")


def _read_array_header(entry: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(entry)
    _require(version in ((1, 0), (2, 0)), f"array format {version}")
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    return read(entry)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ModelFileError(what)


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _pairs(class_weight: Any) -> Any:
    """A dictionary's keys need not be strings, as those of JSON must."""
    if not isinstance(class_weight, dict):
        return class_weight
    return [[_plain(label), _plain(weight)] for label, weight in class_weight.items()]


def _without_objects(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind in "biufU":
        return array
    if not all(isinstance(value, str) for value in array.tolist()):
        raise ValueError(f"{name} mixes types that a model file cannot hold: use str or numbers.")
    return array.astype(str)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
