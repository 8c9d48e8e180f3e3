"""The comparison with the peers: cells agree on the optimum, the report says what they did."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel
import fenchel.datasets

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

SIZE, LAM = 20, 1e-2


def run_cell(loss, solver, parameters, dual):
    spec = {
        "solver": solver,
        "solver_parameters": parameters,
        "dataset": "synthetic",
        "dataset_parameters": {"n": SIZE, "empty_classes": True},
        "loss": loss,
        "lam": LAM,
        "threads": 1,
        "limit": 60.0,
        "dual": dual,
        "warm_up_only": False,
    }
    command = [sys.executable, str(BENCHMARKS / "_peer_cell.py"), json.dumps(spec)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("loss", "solver", "parameters"),
    [("hinge", "highs_lp", {"method": "ipx"}), ("softmax", "fenchel_auto", {})],
)
def test_a_cell_finds_the_optimum(loss, solver, parameters):
    made = fenchel.datasets.make_paper(SIZE, rng=0)
    exact = fenchel.solve(made.X, made.y, classes=made.classes, loss=loss, lam=LAM, tol=1e-7)
    lines = run_cell(loss, solver, parameters, exact.dual)
    if lines[-1]["status"].startswith("skipped: not installed"):
        pytest.skip(lines[-1]["status"])
    runs = [line for line in lines if line["status"] == "ok"]
    assert all(line["value"] >= line["dual"] for line in runs)
    best = min(line["value"] for line in runs)
    assert exact.dual - 1e-9 <= best <= exact.primal + 1e-5


def test_a_missing_data_set_is_named():
    spec = {"solver": "fenchel_auto", "solver_parameters": {}, "dataset": "text",
            "dataset_parameters": {"text": "news20"}}  # fmt: skip
    command = [sys.executable, str(BENCHMARKS / "_peer_cell.py"), json.dumps(spec)]
    env = {name: value for name, value in os.environ.items() if name != "FENCHEL_DATA"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert json.loads(done.stdout)["status"].startswith("skipped: news20: set FENCHEL_DATA")


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("report_peers")


def record(solver, status="ok", cpu=1.0, value=1.0, dual=0.0):
    gap = value - dual
    measured = {"cpu": cpu, "wall": cpu, "value": value, "dual": dual, "gap": gap, "at_zero": 1.0}
    cell = {"row": "hinge digits 1e-2", "solver": solver, "threads": "1", "limit": 20.0}
    return cell | measured | {"status": status}


def test_the_report_takes_the_fastest_run_and_bounds_what_did_not_arrive(report):
    records = [
        record("fenchel", cpu=0.5, value=0.5005, dual=0.499),
        record("fenchel", cpu=2.0, value=0.5, dual=0.5),
        record("slow", cpu=4.0, value=0.505, dual=0.0),
        record("slow", cpu=6.0, value=0.5008, dual=0.0),
        record("slow", cpu=16.0, value=0.5007, dual=0.0),
        record("slow", status="limit"),
    ]
    found = report.Results(report.ROWS[0], records, "1")
    assert found.time("fenchel", 1e-3) == 0.5
    assert found.time("fenchel", 1e-3, "gap") == 2.0
    assert found.best_peer(1e-3) == (6.0, "slow")
    assert found.ratio(1e-3) == (12.0, "12")
    assert found.ratio(1e-6) == (8.0, "> 8")  # the peer's longest run, not its limit
    assert found.gap_at("slow", 1e-3) == pytest.approx(0.5008)


def test_suboptimality_is_relative_to_the_model_of_zeros_or_to_the_optimum(report):
    records = [record("fenchel", cpu=1.0, value=0.5004, dual=0.5)]  # P(0) is 1
    assert report.Results(report.ROWS[0], records, "1").time("fenchel", 5e-4) == 1.0
    strict = report.Results(report.ROWS[0], records, "1", at_optimum=True)
    assert strict.time("fenchel", 5e-4) == float("inf")
    assert strict.time("fenchel", 1e-3) == 1.0


def test_a_peer_that_was_killed_bounds_the_ratio_and_a_skipped_one_does_not(report):
    ours = [record("fenchel", cpu=0.5, value=0.5, dual=0.5)]
    skipped = [record("huge", status="skipped: too large")]
    found = report.Results(report.ROWS[0], ours + skipped, "1")
    assert found.ratio(1e-3)[1] == "no peer"
    found = report.Results(report.ROWS[0], ours + skipped + [record("slow", "killed")], "1")
    assert found.ratio(1e-3) == (40.0, "> 40")


def test_a_lost_level_is_reported_as_lost(report):
    records = [record("fenchel", value=0.6, dual=0.4), record("other", value=0.4, dual=0.4)]
    found = report.Results(report.ROWS[0], records, "1")
    assert found.ratio(1e-3) == (0.0, "lost")
    target = report.Target(1e-3, times=10)
    assert report._judge(found, target)[2] == "missed"


def test_what_was_known_of_the_optimum_stays_known_when_a_cell_is_measured_anew(report):
    runner = importlib.import_module("run_peers")
    old = [record("fenchel", value=0.5, dual=0.499), record("slow", value=0.6, dual=0.1)]
    key = {"row": "hinge digits 1e-2", "solver": "fenchel", "threads": "1"}
    for _ in range(2):  # the second time the bound itself is there
        new = [record("fenchel", value=0.5005, dual=0.4)]
        old = runner._replaced(old, key, new)
        assert [r["status"] for r in old].count("bound") == 1
        found = report.Results(report.ROWS[0], old, "1")
        assert found.bound == 0.499
        assert found.time("fenchel", 2e-3) == 1.0
        assert found.time("fenchel", 1e-3) == float("inf")


def test_a_bound_is_no_run_of_the_report(report, tmp_path, capsys):
    runner = importlib.import_module("run_peers")
    key = {"row": "hinge digits 1e-2", "solver": "fenchel", "threads": "1"}
    records = runner._replaced([record("fenchel")], key, [record("fenchel")])
    fields = dict.fromkeys(runner.FIELDS, "")
    store = tmp_path / "peers.csv"
    runner._write(store, [fields | r for r in records])
    store.with_suffix(".json").write_text(json.dumps(runner._machine()))
    report.report(store, write=False)
    assert "## 1 thread, CPU seconds" in capsys.readouterr().out
