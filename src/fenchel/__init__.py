"""Sparse multiclass linear classifiers with a duality-gap certificate.

The public names and the modules are imported when they are first used, so that the command can
answer Ctrl-C while it starts (:mod:`fenchel.cli`). No module may have a public name: it would
hide it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenchel.cross_validation import SparseLinearClassifierCV
    from fenchel.estimators import SparseLinearClassifier
    from fenchel.memory import estimate_memory
    from fenchel.null_penalty import lambda_max
    from fenchel.persistence import load
    from fenchel.solving import Result, solve
    from fenchel.termination import Record, Status

__all__ = [
    "Record",
    "Result",
    "SparseLinearClassifier",
    "SparseLinearClassifierCV",
    "Status",
    "__version__",
    "estimate_memory",
    "lambda_max",
    "load",
    "solve",
]

__version__ = "0.1.0"

#: The modules of the public names.
_HOMES = {
    "Record": "termination",
    "Result": "solving",
    "SparseLinearClassifier": "estimators",
    "SparseLinearClassifierCV": "cross_validation",
    "Status": "termination",
    "estimate_memory": "memory",
    "lambda_max": "null_penalty",
    "load": "persistence",
    "solve": "solving",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"fenchel.{_HOMES[name]}"), name)
    if find_spec(f"fenchel.{name}") is None:
        raise AttributeError(f"module 'fenchel' has no attribute {name!r}")
    return import_module(f"fenchel.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
