"""The paper's bounds against measurements, in the quick form of ``experiments/theory.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not installed")

KINDS = ("Gaussian", "bounded", "heavy")
LABELS = ("Omega, 1x1", "Omega, 1x2", "Omega, 2x1", "Omega, 2x2", "th:lip", "th:variance-partial",
          "th:variance-full", "th:md-deterministic", "th:md-partial", "th:md-full")  # fmt: skip


@pytest.fixture(scope="module")
def theory() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("theory", FOLDER / "theory.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


@pytest.fixture(scope="module")
def rows(theory: ModuleType) -> list[dict]:
    return theory.collect(quick=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", LABELS)
def test_the_bounds_hold(rows: list[dict], label: str, kind: str) -> None:
    mine = [r for r in rows if r["theorem"].startswith(label) and r["data"] == kind]
    assert mine
    for r in mine:
        assert r["holds"], f"{r['quantity']}: measured {r['measured']}, bound {r['bound']}"


def test_measurements_are_not_trivial(rows: list[dict]) -> None:
    """A measurement of zero would be within every bound."""
    compared = [r for r in rows if r["bound"] > 0]
    assert len(compared) > 100
    assert min(r["measured"] / r["bound"] for r in compared) > 0.01


def test_a_row_beyond_its_bound_is_noticed(theory: ModuleType) -> None:
    assert theory.row("x", "heavy", "gap", 1.0, 1.0)["holds"]
    assert not theory.row("x", "heavy", "gap", 1.001, 1.0)["holds"]
    assert not theory.row("x", "heavy", "gap", 0.999, 1.0, equal=True)["holds"]
