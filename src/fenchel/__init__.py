"""Sparse multiclass linear classifiers with a duality-gap certificate."""

from fenchel.cross_validation import SparseLinearClassifierCV
from fenchel.estimators import SparseLinearClassifier
from fenchel.lambda_max import lambda_max
from fenchel.memory import estimate_memory
from fenchel.persistence import load
from fenchel.solve import Result, solve
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
