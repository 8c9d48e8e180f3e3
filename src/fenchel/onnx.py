"""ONNX: a fitted model as a graph that other runtimes execute (``pip install 'fenchel[onnx]'``).

skl2onnx learns here how to convert our classifiers, so that a pipeline which ends with one converts
too. The graph has two outputs: ``label``, and ``probabilities`` (n, k), which are the scores of the
classes where the loss models no probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.cross_validation import SparseLinearClassifierCV
from fenchel.estimators import LinearClassifier, SparseLinearClassifier
from fenchel.exceptions import require
from fenchel.losses import Softmax, Sparsemax, get_loss
from fenchel.validation import refuse_lazy

#: ONNX's names of what the labels of a model can be, by the kind of numpy's type.
LABELS = {
    "i": "Int64TensorType",
    "u": "Int64TensorType",
    "f": "DoubleTensorType",
    "b": "BooleanTensorType",
    "U": "StringTensorType",
    "O": "StringTensorType",
}


def to_onnx(model: Any, X: Any, **options: Any) -> Any:
    """A fitted model, or a pipeline that ends with one, as an ONNX graph.

    Parameters
    ----------
    model : a fitted :class:`~fenchel.SparseLinearClassifier` or its kin, or a pipeline.
    X : some rows of data; their type and number of columns become those of the graph's input, and
        a data frame (pandas, polars) gives one input for each of its columns. A graph takes dense
        rows, and computes in float32 where all of X is float32, as the model does.
    **options : for ``skl2onnx.to_onnx``, such as ``target_opset``.

    Returns
    -------
    onnx.ModelProto
        ``graph.SerializeToString()`` is what a runtime reads. Its outputs are ``label`` and
        ``probabilities``, (n, k) also with two classes. As in every graph of skl2onnx the second
        one has this name even where the loss models no probabilities (hinge): it holds the scores.
    """
    skl2onnx = register()
    refuse_lazy("X", X)
    if hasattr(X, "columns"):
        return skl2onnx.to_onnx(model, **{"initial_types": _columns(X)} | options)
    rows = X[:1].toarray() if sp.issparse(X) else np.asarray(X[:1])
    return skl2onnx.to_onnx(model, rows, **options)


def _columns(frame: Any) -> list[tuple[str, Any]]:
    """The name and the type of every column of a data frame, whosever it is."""
    types = require("skl2onnx.common.data_types", "onnx")
    columns = []
    for name in frame.columns:
        values = _first(frame, name)
        words = values.dtype == object and all(isinstance(value, str) for value in values)
        try:
            [(_, kind)] = types.guess_data_type(values.astype(str) if words else values)
        except NotImplementedError as error:
            raise TypeError(
                f"X: the column {name!r} is of type {values.dtype}, which ONNX has no input for: "
                "convert it to numbers or text first."
            ) from error
        kind.shape = [None, 1]
        columns.append((name, kind))
    return columns


def _first(frame: Any, name: str) -> np.ndarray:
    """The first value of a column, as an array."""
    values = frame[:1][name].to_numpy()
    if values.shape != (1,):
        raise ValueError(
            f"X has {values.size} values in the first row of the column {name!r}: give a data "
            "frame with at least one row, and a name of its own for every column."
        )
    return values


def register() -> Any:
    """Teach skl2onnx our classifiers; returns that module."""
    skl2onnx = require("skl2onnx", "onnx")
    for estimator in (SparseLinearClassifier, SparseLinearClassifierCV):
        skl2onnx.update_registered_converter(
            estimator, _alias(estimator), _declare_shapes, _convert, parser=_declare
        )
    return skl2onnx


def _alias(estimator: type) -> str:
    return f"Fenchel{estimator.__name__}"


def _declare(scope: Any, model: LinearClassifier, inputs: Any, custom_parsers: Any = None) -> Any:
    """The operator and its outputs; their shapes follow when those of the inputs are known."""
    types = require("skl2onnx.common.data_types", "onnx")
    operator = scope.declare_local_operator(_alias(type(model)), model)
    operator.inputs = inputs
    if model.classes_.dtype.kind == "u" and model.classes_.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"classes_ holds {model.classes_.max()}, and ONNX has labels of 64 bits with a sign: "
            "fit the model to smaller numbers, or to text."
        )
    labels = getattr(types, LABELS[model.classes_.dtype.kind])
    for name, kind in (("label", labels), ("probabilities", types.FloatTensorType)):
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _declare_shapes(operator: Any) -> None:
    types = require("skl2onnx.common.data_types", "onnx")
    given = [variable.type for variable in operator.inputs]
    single = all(isinstance(kind, types.FloatTensorType) for kind in given)
    rows, k = given[0].shape[0], operator.raw_operator.classes_.size
    operator.outputs[0].type.shape = [rows]
    operator.outputs[1].type = (types.FloatTensorType if single else types.DoubleTensorType)(
        [rows, k]
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Scores from the columns that the model uses, the best label, and the probabilities."""
    types = require("skl2onnx.common.data_types", "onnx")
    model = operator.raw_operator
    real = types.guess_proto_type(operator.outputs[1].type)
    graph = _Graph(scope, container, int(real), int(operator.target_opset))
    coef = sp.csc_array(model.coef_)
    used = np.flatnonzero(np.diff(coef.indptr))
    parts = [graph.node("Cast", [part.full_name], to=real) for part in operator.inputs]
    X = graph.node("Concat", parts, axis=1)  # a data frame has an input for every column
    columns = graph.node("Gather", [X, graph.integers("used", used)], axis=1)
    products = graph.node("MatMul", [columns, graph.reals("coef", coef[:, used].toarray().T)])
    scores = graph.node("Add", [products, graph.reals("intercept", model.intercept_[None, :])])
    best = graph.node("ArgMax", [scores], axis=1, keepdims=0)
    labels = graph.labels(model.classes_, types.guess_proto_type(operator.outputs[0].type))
    graph.node("Gather", [labels, best], operator.outputs[0].full_name, axis=0)
    loss, k = get_loss(model.loss), model.classes_.size
    _add_probabilities(graph, loss, k, scores, operator.outputs[1].full_name)


def _add_probabilities(graph: _Graph, loss: Any, k: int, scores: str, output: str) -> None:
    if isinstance(loss, Softmax):
        graph.node("Softmax", [scores], output, axis=1)
    elif isinstance(loss, Sparsemax):
        # the projection onto the simplex is max(z - t, 0) with t = max_m (z_1 + .. + z_m - 1) / m,
        # over the scores in falling order
        ordered = graph.node("TopK", [scores, graph.integers("all", [k])], outputs=2, axis=1)
        sums = graph.node("CumSum", [ordered, graph.integers("axis", 1)])
        less = graph.node("Sub", [sums, graph.reals("unit", [[1.0]])])
        shares = graph.node("Div", [less, graph.reals("counts", np.arange(1, k + 1)[None, :])])
        highest = graph.node("TopK", [shares, graph.integers("one", [1])], outputs=2, axis=1)
        graph.node("Relu", [graph.node("Sub", [scores, highest])], output)
    else:
        graph.node("Identity", [scores], output)


class _Graph:
    """Nodes and constants of a graph, with names that are used once."""

    def __init__(self, scope: Any, container: Any, real: int, opset: int) -> None:
        self.scope, self.container, self.real, self.opset = scope, container, real, opset
        self.integer = int(require("onnx", "onnx").TensorProto.INT64)

    def node(
        self, kind: str, inputs: list[str], output: str = "", outputs: int = 1, **attributes: Any
    ) -> str:
        """Add a node; returns the name of its first output."""
        names = [output or self.scope.get_unique_variable_name(kind.lower())]
        names += [self.scope.get_unique_variable_name("unused") for _ in range(outputs - 1)]
        attributes["name"] = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, inputs, names, op_version=self.opset, **attributes)
        return names[0]

    def reals(self, name: str, values: Any) -> str:
        """A constant array of the type in which the graph computes."""
        return self._constant(name, self.real, np.asarray(values, dtype=np.float64))

    def integers(self, name: str, values: Any) -> str:
        return self._constant(name, self.integer, np.asarray(values, dtype=np.int64))

    def labels(self, classes: np.ndarray, kind: int) -> str:
        text = classes.dtype.kind in "UO"
        values = np.array([str(c).encode() for c in classes]) if text else classes
        return self._constant("classes", kind, values)

    def _constant(self, name: str, kind: int, values: np.ndarray) -> str:
        name = self.scope.get_unique_variable_name(name)
        self.container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
        return name
