"""Result files say how they were made, and come back as they were written."""

from __future__ import annotations

import pytest

from fenchel.reproduce.records import facts, read_csv, write_csv


def test_round_trip(tmp_path) -> None:
    rows = [{"method": "a, b", "T": 10, "gap": 0.123456789}, {"method": "c", "T": 3, "gap": 2.0}]
    path = write_csv(tmp_path / "sub" / "x.csv", rows, {"seed": 3, "cpu": "Some: CPU"})
    found, back = read_csv(path)
    assert found == {"seed": "3", "cpu": "Some: CPU"}
    assert back == [
        {"method": "a, b", "T": "10", "gap": "0.1234568"},
        {"method": "c", "T": "3", "gap": "2"},
    ]
    assert [p.name for p in path.parent.iterdir()] == ["x.csv"]  # no temporary file is left


def test_a_row_with_a_key_too_many_leaves_the_old_file(tmp_path) -> None:
    path = write_csv(tmp_path / "x.csv", [{"a": 1}])
    with pytest.raises(ValueError, match="b"):
        write_csv(path, [{"a": 1}, {"a": 2, "b": 3}])
    assert path.read_text() == "a\n1\n"


def test_facts_name_no_place(monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["/some/where/table1.py", "--sizes", "40 50"])
    found = facts(seed=7, note="quick")
    assert found["command"] == "table1.py --sizes '40 50'"
    assert (found["seed"], found["note"]) == (7, "quick")
    assert {"fenchel", "cpu", "cores", "python", "numpy", "numba"} <= found.keys()
