"""Sparse multiclass linear classifiers with a duality-gap certificate."""

from fenchel.lambda_max import lambda_max
from fenchel.solve import Result, solve
from fenchel.termination import Record, Status

__all__ = ["Record", "Result", "Status", "__version__", "lambda_max", "solve"]

__version__ = "0.1.0"
