"""ONNX graphs predict what the models predict."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SparseLinearClassifier, SparseLinearClassifierCV
from fenchel.exceptions import MissingExtraError
from fenchel.onnx import to_onnx
from shared_data import load_shared

NAMES = np.array(["set", "versi", "virg"])


def outputs(model, X):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    session = runtime.InferenceSession(to_onnx(model, X).SerializeToString())
    X = X.toarray() if sp.issparse(X) else X
    return session.run(["label", "probabilities"], {session.get_inputs()[0].name: X})


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
@pytest.mark.parametrize("kind", ["numbers", "strings", "objects", "booleans", "floats"])
def test_labels_of_every_type(loss, kind):
    X, codes = load_iris(return_X_y=True)
    y = {
        "numbers": codes - 7,
        "strings": NAMES[codes],
        "objects": NAMES.astype(object)[codes],
        "booleans": codes == 1,
        "floats": codes * 2.0,
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


@pytest.mark.parametrize("name", ["usps", "letter", "dna", "banking77"])
def test_shared_sets(name):
    data = load_shared(name)
    X, y = data["X"][::5], data["classes"][data["y"][::5]]
    model = SparseLinearClassifier("softmax", alpha=0.003, tol=2e-2).fit(X, y)
    check(model, data["X_test"][:500], atol=1e-9)


def test_without_the_extra_the_command_is_named(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = SparseLinearClassifier(alpha=0.1).fit(X, y)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fenchel\[onnx\]'"):
        to_onnx(model, X)
