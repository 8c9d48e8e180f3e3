"""Errors of our own, and the one place where an optional dependency is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


def require(module: str, extra: str) -> Any:
    """Import an optional module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs {module.split('.')[0]}, which is not installed: "
            f"pip install 'fenchel[{extra}]'"
        ) from error
