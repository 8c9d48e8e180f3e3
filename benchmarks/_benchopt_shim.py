"""Just enough of benchopt to run its benchmark files without it, in one process a cell."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

PEERS = Path(__file__).resolve().parent / "peers"


class _Parametrised:
    """Parameters become attributes; the first value of each is the default."""

    parameters: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, **chosen: Any) -> None:
        unknown = set(chosen) - set(self.parameters)
        if unknown:
            raise ValueError(f"{type(self).__module__} has no parameter {sorted(unknown)}.")
        for name, values in self.parameters.items():
            setattr(self, name, chosen.get(name, values[0]))


class BaseDataset(_Parametrised):
    """``get_data() -> dict``."""


class BaseObjective(_Parametrised):
    """``set_data(**data)``, ``get_objective() -> dict``, ``evaluate_result(**result) -> dict``."""

    def __init__(self, **chosen: Any) -> None:  # lam takes any value here
        for name, value in chosen.items():
            setattr(self, name, value)


class BaseSolver(_Parametrised):
    """``set_objective(**objective)``, ``run(stop_val)``, ``get_result() -> dict``."""

    certified = False  #: True where the tolerance is the certified gap, relative to P(0)

    def skip(self, **objective: Any) -> tuple[bool, str | None]:
        return False, None


#: What benchopt hands to the first ``get_next``.
START = {"iteration": 0, "tolerance": 1e38}


def load(kind: str, name: str) -> Any:
    """The Dataset, Solver or Objective class of a benchmark file."""
    shim = types.ModuleType("benchopt")
    shim.BaseDataset, shim.BaseObjective, shim.BaseSolver = BaseDataset, BaseObjective, BaseSolver
    sys.modules["benchopt"] = shim
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    path = PEERS / "objective.py" if kind == "objective" else PEERS / f"{kind}s" / f"{name}.py"
    if not path.exists():
        raise FileNotFoundError(f"no {kind} {name!r}: {path.relative_to(PEERS.parent)} is absent.")
    spec = importlib.util.spec_from_file_location(f"peers_{kind}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kind.capitalize())
