"""ONNX graphs predict what the models predict."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fenchel import SparseLinearClassifier, SparseLinearClassifierCV
from fenchel.exceptions import MissingExtraError
from fenchel.onnx import to_onnx
from shared_data import load_shared

NAMES = np.array(["set", "versi", "virg"])


def outputs(model, X):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    session = runtime.InferenceSession(to_onnx(model, X).SerializeToString())
    if hasattr(X, "columns"):
        given = {name: X[name].to_numpy()[:, None] for name in X.columns}
    else:
        given = {session.get_inputs()[0].name: X.toarray() if sp.issparse(X) else X}
    return session.run(["label", "probabilities"], given)


def check(model, X, atol=1e-12):
    labels, values = outputs(model, X)
    assert (labels == model.predict(X)).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(values, model.predict_proba(X), atol=atol)
    else:
        scores = model.decision_function(X)
        found = values if scores.ndim == 2 else values[:, 1] - values[:, 0]
        np.testing.assert_allclose(found, scores, atol=atol)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
@pytest.mark.parametrize(
    "kind", ["numbers", "strings", "objects", "booleans", "floats", "large floats"]
)
def test_labels_of_every_type(loss, kind):
    X, codes = load_iris(return_X_y=True)
    y = {
        "numbers": codes - 7,
        "strings": NAMES[codes],
        "objects": NAMES.astype(object)[codes],
        "booleans": codes == 1,
        "floats": codes * 2.0,
        "large floats": codes + 2.0**24,  # neighbours that float32 does not tell apart
    }[kind]
    model = SparseLinearClassifier(loss, alpha=0.02, tol=1e-2).fit(X, y)
    check(model, X)
    check(model.sparsify(), X)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_digits(loss):
    X, y = load_digits(return_X_y=True)
    check(SparseLinearClassifier(loss, alpha=0.01, tol=1e-2).fit(X / 16, y), X / 16)


def test_float32_pipelines_and_cross_validated_models():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    model = make_pipeline(StandardScaler(), SparseLinearClassifierCV("softmax", alphas=2, cv=2))
    check(model.fit(X, NAMES[y]), X, atol=1e-5)
    assert outputs(model, X)[1].dtype == np.float32


def frame_of(library, X, types=("float64",) * 4):
    columns = zip("abcd", X.T, types, strict=True)
    return pytest.importorskip(library).DataFrame(
        {name: column.astype(kind) for name, column, kind in columns}
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "types",
    [
        ["float64"] * 4,
        ["float32"] * 4,
        ["int64"] * 4,
        ["float32", "int64", "float64", "bool"],
    ],
)
def test_a_data_frame_has_an_input_for_every_column(library, types):
    X, y = load_iris(return_X_y=True)
    frame = frame_of(library, X, types)
    model = SparseLinearClassifier("softmax", alpha=0.02).fit(frame, NAMES[y])
    check(model, frame, atol=1e-5 if set(types) == {"float32"} else 1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pipeline_on_a_data_frame(library):
    X, y = load_iris(return_X_y=True)
    frame = frame_of(library, X)
    model = make_pipeline(StandardScaler(), SparseLinearClassifier("softmax", alpha=0.02))
    check(model.fit(frame, NAMES[y]), frame, atol=1e-6)  # skl2onnx scales in float32


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pipeline_on_words_in_a_data_frame(library):
    X, y = load_iris(return_X_y=True)
    words = np.array(["short", "long"])[(X[:, 2] > 3).astype(int)]
    frame = pytest.importorskip(library).DataFrame({"petal": words.tolist(), "width": X[:, 3]})
    columns = make_column_transformer((OneHotEncoder(), ["petal"]), ("passthrough", ["width"]))
    model = make_pipeline(columns, SparseLinearClassifier("softmax", alpha=0.02))
    check(model.fit(frame, NAMES[y]), frame, atol=1e-6)


def test_rows_in_a_list():
    pytest.importorskip("skl2onnx")
    X, y = load_iris(return_X_y=True)
    model = SparseLinearClassifier("softmax", alpha=0.02).fit(X, y)
    assert to_onnx(model, X.tolist()) == to_onnx(model, X)


def test_data_frames_without_a_type_or_rows_are_refused():
    pytest.importorskip("skl2onnx")
    polars = pytest.importorskip("polars")
    X, y = load_iris(return_X_y=True)
    frame = frame_of("polars", X)
    model = SparseLinearClassifier(alpha=0.1).fit(frame, y)
    with pytest.raises(TypeError, match=r"X is a LazyFrame.*give X.collect\(\)"):
        to_onnx(model, frame.lazy())
    with pytest.raises(ValueError, match="X has 0 values in the first row of the column 'a'"):
        to_onnx(model, frame[:0])
    with pytest.raises(TypeError, match="X: the column 'b' is of type datetime64"):
        to_onnx(model, frame.with_columns(b=polars.lit("2020-01-01").str.to_date()))


def test_whole_numbers_are_computed_in_float64():
    X, y = load_iris(return_X_y=True)
    X = X.astype(int)
    check(SparseLinearClassifier("softmax", alpha=0.02).fit(X, y), X)


def test_labels_beyond_64_bits_with_a_sign_are_refused():
    pytest.importorskip("skl2onnx")
    X, y = load_iris(return_X_y=True)
    labels = np.array([1, 2, 2**63 + 5], dtype=np.uint64)[y]
    model = SparseLinearClassifier(alpha=0.1).fit(X, labels)
    with pytest.raises(ValueError, match="classes_ holds 9223372036854775813"):
        to_onnx(model, X)


@pytest.mark.parametrize("name", ["usps", "letter", "dna", "banking77"])
def test_shared_sets(name):
    data = load_shared(name)
    X, y = data["X"][::5], data["classes"][data["y"][::5]]
    model = SparseLinearClassifier("softmax", 0.2, alpha_scale="max", tol=2e-2).fit(X, y)
    assert abs(model.coef_).sum() > 0.0  # a model of zeros would show nothing
    check(model, data["X_test"][:500], atol=1e-9)


def test_without_the_extra_the_command_is_named(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = SparseLinearClassifier(alpha=0.1).fit(X, y)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fenchel\[onnx\]'"):
        to_onnx(model, X)
