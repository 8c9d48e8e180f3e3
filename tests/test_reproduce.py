"""``fenchel reproduce`` in its quick mode, and what its curves are made of."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fenchel.certificate import certify
from fenchel.cli import main
from fenchel.reproduce import figure1, results, table1
from fenchel.reproduce.configurations import CONFIGURATIONS
from fenchel.reproduce.curves import ACCURATE, Row, run_method
from fenchel.reproduce.methods import BUDGETS, methods
from fenchel.reproduce.records import read_csv
from fenchel.solvers.sublinear import Sublinear


def silent(line: str) -> None:
    pass


@pytest.mark.parametrize("configuration", ["paper", "authors"])
def test_quick_figure1(configuration, tmp_path, capsys) -> None:
    words = ["reproduce", "figure1", "--quick", "--configuration", configuration, "--output",
             str(tmp_path)]  # fmt: skip
    assert main(words) == 0
    title = f"figure1-{configuration}-{figure1.QUICK_SIZE}"
    folder = tmp_path / title
    known = methods(CONFIGURATIONS[configuration])
    assert {path.stem for path in folder.glob("*.csv")} == set(known)
    for name, method in known.items():
        about, rows = read_csv(folder / f"{name}.csv")
        assert about["command"] == (
            f"fenchel reproduce figure1 --configuration {configuration} --quick --seed 0"
        )
        assert str(tmp_path) not in str(about)
        assert {row["repetition"] for row in rows} == ({"0", "1"} if method.random else {"0"})
        for row in rows:
            primal, dual, gap = (float(row[key]) for key in ("primal", "dual", "gap"))
            assert gap == pytest.approx(primal - dual, abs=1e-5)
            assert gap >= 0.0

    _, rows = read_csv(tmp_path / f"{title}.csv")
    last = {row["method"]: row for row in rows}  # the rows of a method are in order
    for row in rows:
        assert -1e-6 <= float(row["accuracy_min"]) <= float(row["accuracy"])
    # a sampled method has hardly begun after 10^3 iterations; these are near the optimum
    assert float(last["default"]["gap"]) < 2e-2
    assert float(last["mirror-prox-online"]["gap"]) < 5e-2
    for axis in ("seconds", "iterations"):
        for suffix in ("png", "svg"):
            assert (tmp_path / f"{title}-{axis}.{suffix}").stat().st_size > 10_000

    picture = tmp_path / f"{title}-seconds.png"
    picture.unlink()
    assert main([*words, "--draw"]) == 0
    assert picture.exists()

    before = {path: path.read_bytes() for path in folder.glob("*.csv")}
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().err.count("found") == len(known)
    assert before == {path: path.read_bytes() for path in folder.glob("*.csv")}


RESULTS = Path(__file__).parents[1] / "experiments" / "results"


def test_another_size_has_files_of_its_own(tmp_path, capsys) -> None:
    """A run beside the committed files of the paper's size leaves them and their picture alone."""
    shutil.copytree(RESULTS / "figure1-authors", tmp_path / "figure1-authors")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    words = ["reproduce", "figure1", "--output", str(tmp_path)]
    small = [*words, "--size", "12", "--methods", "full-smd", "mirror-descent", "--repetitions",
             "2", "--budget", "0.01"]  # fmt: skip
    assert main(small) == 0
    assert "authors' numbers" not in capsys.readouterr().out
    assert before == {path: path.read_bytes() for path in before}
    assert {path.stem for path in (tmp_path / "figure1-authors-12").iterdir()} == {
        "full-smd", "mirror-descent"
    }  # fmt: skip
    about, rows = read_csv(tmp_path / "figure1-authors-12" / "full-smd.csv")
    assert (about["size"], rows[0]["iterations"]) == ("12", "10")
    assert "--size 12 " in about["command"]
    pictures = [f"figure1-authors-12-{axis}.svg" for axis in ("seconds", "iterations")]
    for picture in pictures:
        text = (tmp_path / picture).read_text()
        assert "n = d = k = 12, lam = 0.0833333" in text
        assert "numbers" not in text
        assert "natural scale" not in text

    assert main([*words, "--draw"]) == 0  # of the paper's size, beside the authors' numbers
    assert "mirror-prox, authors' numbers" in capsys.readouterr().out
    text = (tmp_path / "figure1-authors-seconds.svg").read_text()
    assert "n = d = k = 1000, lam = 0.001" in text
    assert "gap (ball), natural scale" in text
    assert "Full-SMD, authors' numbers" in text

    (tmp_path / "figure1-authors-12" / "ssm.csv").write_bytes(
        (tmp_path / "figure1-authors" / "ssm.csv").read_bytes()
    )
    assert main([*words, "--draw", "--size", "12"]) == 1
    assert "ssm.csv is of size 1000 and not 12" in capsys.readouterr().err


def test_the_committed_files_are_those_of_the_methods() -> None:
    folders = [path for path in RESULTS.glob("figure1-*") if path.is_dir()]
    assert len(folders) == 4
    for folder in folders:
        configuration, _, size = folder.name.removeprefix("figure1-").partition("-")
        known = methods(CONFIGURATIONS[configuration])
        assert {path.stem for path in folder.iterdir()} == set(known)
        for name, method in known.items():
            about, _ = read_csv(folder / f"{name}.csv")
            assert about["size"] == (size or "1000")
            assert about["step"] == method.step
            # at 1000 mirror descent was run when it still ended at 10^3
            last = 1000 if name == "mirror-descent" and not size else method.iterations[-1]
            assert about["iterations"] == f"up to {last}"


def test_quick_table1(tmp_path, capsys) -> None:
    for configuration in CONFIGURATIONS:
        assert main(["reproduce", "table1", "--quick", "--configuration", configuration,
                     "--output", str(tmp_path)]) == 0  # fmt: skip
        about, rows = read_csv(tmp_path / f"table1-{configuration}.csv")
        assert [(int(r["size"]), int(r["iterations"])) for r in rows] == [
            (size, T) for size in table1.QUICK_SIZES for T in table1.QUICK_ITERATIONS
        ]
        assert all(float(r["seconds_min"]) <= float(r["seconds"]) for r in rows)
        assert about["growth"].endswith("from 50 to 200)")


def test_best_so_far_and_when_a_gap_was_reached() -> None:
    rows = [
        {"iterations": T, "seconds": seconds, "primal": primal, "dual": dual}
        for T, seconds, primal, dual in (
            ("1", "0.5", "3", "0"), ("2", "1", "4", "1"), ("3", "1.5", "2", "0.5")
        )
    ]  # fmt: skip
    curve = results.read_curve(rows)
    assert np.concatenate(curve.gap).tolist() == [3.0, 3.0, 1.5]
    best = curve.best_so_far()
    assert np.concatenate(best.primal).tolist() == [3.0, 3.0, 2.0]
    assert np.concatenate(best.gap).tolist() == [3.0, 2.0, 1.0]
    assert (curve.best_dual, curve.best_primal) == (1.0, np.inf)  # not known to be in the ball
    words = results.reached({"some": best})[1].split()
    assert words == ["some", "0.5", "1.5", "-", "-", "-", "-", "-"]


def test_slopes_are_those_of_the_decades() -> None:
    grid = CONFIGURATIONS["paper"].iterations[:8]

    def curve(power: float, first: int = 0, last: int = 8) -> results.Curve:
        return results.read_curve(
            [
                {"iterations": str(T), "seconds": "1", "primal": str(scale * T**power), "dual": "0"}
                for T in grid[first:last]
                for scale in (2.0, 3.0)
            ]
        )

    curves = {"slow": curve(-0.5), "fast": curve(-1.0)}
    curves |= {"late": curve(-0.5, first=2), "short": curve(-0.5, last=7)}
    head, *lines = (line.split() for line in results.slopes(curves))
    assert head[-6:] == ["1e+02", "1e+03", "1e+04", "1e+05", "1e+06", "3.2e+06"]
    assert lines == [
        ["slow", "-0.50", "-0.50", "-0.50", "-", "-", "-"],
        ["fast", "-1.00", "-1.00", "-1.00", "-", "-", "-"],
        ["late", "-", "-0.50", "-0.50", "-", "-", "-"],
        ["short", "-0.50", "-0.50", "-", "-", "-", "-"],
    ]
    bend = replace(curves["slow"], gap=[np.array([max(100.0 / T, 0.1) * T**-1e-3]) for T in grid])
    assert results.slopes({"bend": bend})[1].split()[1:4:2] == ["-1.00", "0.00"]


def test_growth_is_the_exponent() -> None:
    rows = [
        {"size": size, "iterations": T, "seconds": T * size**1.25}
        for size in (10, 20, 80)
        for T in (1, 2)
    ]
    assert table1.growth(rows) == pytest.approx(1.25)


def test_the_paper_s_numbers() -> None:
    published = table1.authors_seconds()
    assert len(published) == 10
    assert (published[400, 10_000], published[6400, 20_000]) == (1.17, 30.77)
    curves = results.authors_curves()
    assert [v.size for v in curves["full-smd"].primal] == [10] * 12
    assert curves["full-smd"].iterations[-1] == 3162277
    assert curves["mirror-prox"].gap[-1] == pytest.approx(0.148, abs=5e-4)
    assert np.isnan(curves["ssm"].gap[0]).all()


def test_iterations_are_those_of_the_paper() -> None:
    assert CONFIGURATIONS["paper"].iterations == [
        3, 10, 31, 100, 316, 1000, 3162, 10_000, 31_622, 100_000, 316_227, 1_000_000
    ]  # fmt: skip
    curves = results.authors_curves()
    authors = methods(CONFIGURATIONS["authors"])
    for name in ("full-smd", "ssm", "mirror-prox"):
        assert authors[name].iterations == curves[name].iterations.tolist()
    assert methods(CONFIGURATIONS["paper"])["ssm"].iterations[-1] == 10**5
    for configuration in CONFIGURATIONS.values():
        for name in ("full-smd", "full-smd-online", "partial-online", "mirror-descent"):
            assert methods(configuration)[name].iterations == configuration.iterations
    assert set(BUDGETS) == set(methods(CONFIGURATIONS["paper"]))


def test_settings_differ_as_described() -> None:
    paper, authors = (CONFIGURATIONS[name].figure1(40, 0) for name in ("paper", "authors"))
    assert (paper.radius, authors.radius) == (40.0, 20.0)
    assert paper.ball.lam == authors.ball.lam == 1 / 40
    assert paper.frobenius == pytest.approx(np.sqrt(40))
    assert authors.frobenius == pytest.approx(np.sqrt(40) / 2)
    paper, authors = (CONFIGURATIONS[name].table1(40, 0) for name in ("paper", "authors"))
    assert (paper.radius, authors.radius) == (40.0, 40.0)
    assert (paper.ball.lam, authors.ball.lam) == (1e-3, 0.0)


def test_the_authors_step() -> None:
    """The formula, with the constants named as in their program."""
    setting = CONFIGURATIONS["authors"].figure1(30, 0)
    X, n, R, T = setting.ball.design.X, 30, setting.radius, 1000
    L = np.linalg.norm(X, axis=0).max() / n
    lip = L * np.sqrt(R**2 * n)
    sigma_u, sigma_v = 4 * L**2 * R**2, 2 * n * L**2 + 2 * np.abs(X).max(axis=1).sum()
    theta = 2 * (n * sigma_u + R**2 * sigma_v) / n
    assert setting.authors_step(T) == pytest.approx(2 / (np.sqrt(T) * (lip + np.sqrt(theta))))
    assert setting.lipschitz == pytest.approx(lip)
    assert setting.mean_square == pytest.approx(np.linalg.norm(X) ** 2 / n)


@pytest.mark.parametrize("name", ["full-smd", "full-smd-online"])
def test_a_point_of_a_curve_is_the_solver_s_own(name) -> None:
    """Whether every point is a run, or one run is read at all: T iterations from the start."""
    configuration = CONFIGURATIONS["authors"]
    setting = configuration.figure1(30, 0)
    method = replace(methods(configuration)[name], iterations=[10, 31, 2000])
    rows = run_method(method, setting, 2, None, silent)
    assert sorted((row.iterations, row.repetition) for row in rows) == [
        (T, repetition) for T in (10, 31, 2000) for repetition in (0, 1)
    ]
    for row in rows:
        T = row.iterations
        solver = Sublinear(setting.authors_step(T) if name == "full-smd" else None)
        rng = np.random.default_rng([2020, row.repetition])
        state = solver.init(setting.ball, None, rng, 2000)
        solver.advance(state, T)
        point = solver.points(state)[0]
        expected = certify(setting.ball, point.U, point.V)
        assert (row.primal, row.dual) == (expected.primal, expected.dual)


def test_a_budget_ends_a_curve() -> None:
    configuration = CONFIGURATIONS["paper"]
    setting = configuration.figure1(20, 0)
    for name in ("full-smd", "full-smd-online"):
        method = methods(configuration)[name]
        rows = run_method(method, setting, 3, 1e-9, silent)
        assert [(row.iterations, row.repetition) for row in rows] == [(3, 0), (3, 1), (3, 2)]


class Clock:
    """A run of T iterations takes T seconds, and its certificate one more."""

    now = 0.0

    def __init__(self, method, setting, horizon, repetition) -> None:
        self.repetition, self.iterations, self.seconds = repetition, 0, 0.0

    def go_to(self, iterations: int) -> Row:
        Clock.now += iterations - self.iterations + 1.0
        self.iterations, self.seconds = iterations, float(iterations)
        return Row(iterations, self.repetition, self.seconds, 1.0, 0.0, 1.0, "ball", 0)


@pytest.mark.parametrize(
    ("name", "budget", "expected"),
    [
        # each point a run: 3 x (1 + 1) s, then 2 of the 3 runs of 10 + 1 s fit into the 29 s left
        ("full-smd", 35.0, [(1, 0), (1, 1), (1, 2), (10, 0), (10, 1)]),
        ("full-smd", 5000.0, [(T, r) for T in (1, 10, 100) for r in range(3)]),
        # one run for all: 3 x (10 + 2) s fit, 3 x (100 + 3) s do not
        ("full-smd-online", 300.0, [(T, r) for r in range(3) for T in (1, 10)]),
        ("full-smd-online", 310.0, [(T, r) for r in range(3) for T in (1, 10, 100)]),
        # nothing but the first point fits
        ("full-smd-online", 30.0, [(1, r) for r in range(3)]),
        # a deterministic method is run once
        ("mirror-prox", 105.0, [(1, 0), (10, 0), (100, 0)]),
    ],
)
def test_a_budget_buys_all_repetitions_or_some_of_a_last_point(
    monkeypatch, name, budget, expected
) -> None:
    monkeypatch.setattr("fenchel.reproduce.curves.Timed", Clock)
    monkeypatch.setattr("fenchel.reproduce.curves.time.process_time", lambda: Clock.now)
    configuration = CONFIGURATIONS["paper"]
    method = replace(methods(configuration)[name], iterations=[1, 10, 100])
    rows = run_method(method, configuration.figure1(20, 0), 3, budget, silent)
    assert [(row.iterations, row.repetition) for row in rows] == expected


def test_only_full_has_no_budget() -> None:
    assert set(figure1.plan("paper", full=True).budgets.values()) == {None}
    assert figure1.plan("paper").budgets == BUDGETS
    assert set(figure1.plan("paper", budget=7.0).budgets.values()) == {7.0}


def test_the_default_solver_reaches_the_optimum_of_the_ball_where_that_is_on_its_boundary() -> None:
    task = figure1.plan("authors", size=50)
    setting = task.configuration.figure1(task.size, task.seed)
    rows = run_method(task.methods["default"], setting, 1, None, silent)
    assert rows[-1].gap <= ACCURATE
    assert rows[-1].certifies == "ball"
    # without the ball it ends at a lower value, outside
    free = run_method(methods(task.configuration)["default"], setting, 1, None, silent)
    assert rows[-1].dual > max(row.dual for row in free) + 1e-3
    assert figure1.plan("authors").methods["default"].penalised


def test_only_the_size_of_the_paper_is_not_in_the_names() -> None:
    assert figure1.plan("paper").title == figure1.plan("paper", size=1000).title == "figure1-paper"
    assert figure1.plan("authors", size=50).title == "figure1-authors-50"
    assert figure1.plan("paper", quick=True).title == "figure1-paper-120"
    assert figure1.plan("paper", size=50).budgets == BUDGETS
