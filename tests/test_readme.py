"""The README's examples run, and print what it says they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def examples():
    return EXAMPLE.findall(README.read_text())


def test_there_are_examples():
    assert len(examples()) == 2


@pytest.mark.parametrize("index", [0, 1])
def test_example(index: int) -> None:
    code, expected = examples()[index]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", expected)
    # the last digits may differ from one BLAS to the next
    for found, said in zip(NUMBER.findall(done.stdout), NUMBER.findall(expected), strict=True):
        assert float(found) == pytest.approx(float(said), rel=0.1)
