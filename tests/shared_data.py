"""Real data sets for tests that skip where they are absent (FENCHEL_DATA names the folder)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "_data.py"


def load_shared(name: str) -> dict[str, Any]:
    """X, y, classes, and X_test and y_test where there is a test part, as in the examples."""
    if not EXAMPLES.exists():
        pytest.skip("the examples are not part of this copy")
    spec = importlib.util.spec_from_file_location("_data", EXAMPLES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        return module.load(name)
    except SystemExit as absent:
        pytest.skip(str(absent))
