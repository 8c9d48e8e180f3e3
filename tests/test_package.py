"""The package imports its names when they are first used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import fenchel


def test_public_names_are_there_and_hidden_by_no_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(fenchel.__path__)}
    assert not modules & set(fenchel.__all__)
    for name in set(fenchel.__all__) - {"__version__"}:
        assert getattr(fenchel, name).__name__ == name
    assert set(fenchel.__all__) <= set(dir(fenchel))


def test_modules_are_attributes_and_nothing_else_is() -> None:
    code = "import fenchel; print(fenchel.losses.Hinge().name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hinge\n"
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        _ = fenchel.magic


def test_a_fit_starts_without_scipys_optimisers() -> None:
    """They take a sixth of the time of the import, and few fits ask for one."""
    code = "import sys; from fenchel import solve; print('scipy.optimize' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
