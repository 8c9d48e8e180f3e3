"""Data files of the command: a model is given the columns and the labels that it was fitted on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fenchel
from fenchel.cli import main
from fenchel.cli.labels import as_labels_of

#: The label is the sign of b.
A, B, C = [1] * 4 + [2] * 4, [-2, -1, 1, 2] * 2, [0] * 8
LABELS = ["low" if b < 0 else "high" for b in B]
RIGHT = "accuracy 1.000000 (8 of 8)\n"

BIG = 2**53  # the next whole number is no float64


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> SimpleNamespace:
        code = main([*words])
        out, err = capsys.readouterr()
        assert err.count("\n") == (code != 0)
        return SimpleNamespace(code=code, out=out, err=err)

    return command


def write(name: str, columns: dict[str, list] | list[list]) -> None:
    """A table, with a header where the columns have names."""
    header = [",".join(columns)] if isinstance(columns, dict) else []
    values = columns.values() if isinstance(columns, dict) else columns
    rows = [",".join(map(str, row)) for row in zip(*values, strict=True)]
    with open(name, "w", encoding="utf-8") as file:
        file.write("\n".join([*header, *rows]) + "\n")


@pytest.fixture
def named(run):
    write("train.csv", {"kind": LABELS, "a": A, "b": B})
    assert run("fit", "train.csv", "--target", "kind", "--model", "m.npz").code == 0


@pytest.fixture
def unnamed(run):
    write("train.csv", [LABELS, A, B])
    assert run("fit", "train.csv", "--target", "1", "--model", "m.npz").code == 0


def without_source() -> None:
    """The model as a version that knew no source, or Python, has written it."""
    model = fenchel.load("m.npz")
    del model.source_
    model.save("m.npz")


def test_the_labels_are_where_they_were(run, named) -> None:
    write("test.csv", {"id": C, "b": B, "kind": LABELS, "a": A})
    assert run("predict", "m.npz", "test.csv", "--score").out == RIGHT
    write("test.csv", {"id": C, "b": B, "a": A})
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS
    found = run("predict", "m.npz", "test.csv", "--score")
    assert found.err.startswith("fenchel: error: --score: test.csv has no labels")
    found = run("predict", "m.npz", "test.csv", "--target", "sort")
    assert found.err == "fenchel: error: test.csv: no column 'sort': the columns are id, b, a\n"


def test_a_model_without_a_source_takes_the_only_other_column(run, named) -> None:
    without_source()
    assert run("predict", "m.npz", "train.csv", "--score").out == RIGHT
    write("test.csv", {"id": C, "b": B, "kind": LABELS, "a": A})
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS
    found = run("predict", "m.npz", "test.csv", "--score")
    assert found.err == (
        "fenchel: error: test.csv: the labels may be in any of the columns id, kind: use --target\n"
    )
    assert run("predict", "m.npz", "test.csv", "--score", "--target", "kind").out == RIGHT


def test_labels_that_are_not_needed_are_not_read(run, named) -> None:
    write("test.csv", {"kind": [""] * 8, "a": A, "b": B})
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS
    found = run("predict", "m.npz", "test.csv", "--score")
    assert "test.csv: the label is empty (row 2, column 1)" in found.err


def test_two_columns_of_one_name_are_refused(run, named) -> None:
    write("test.csv", [["b", *B], ["a", *A], ["b", *C]])
    found = run("predict", "m.npz", "test.csv")
    assert "test.csv: columns 1 and 3 are both named 'b'" in found.err


def test_a_table_without_a_header_goes_by_place(run, unnamed) -> None:
    assert run("predict", "m.npz", "train.csv", "--score").out == RIGHT  # the label is first
    write("test.csv", [A, B])
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS
    write("test.csv", [A, B, LABELS])
    assert run("predict", "m.npz", "test.csv", "--target", "3", "--score").out == RIGHT
    write("test.csv", [A, B, C, LABELS])
    found = run("predict", "m.npz", "test.csv")
    assert found.err == "fenchel: error: test.csv: 4 columns, but the model has 2 features\n"


def test_a_named_model_takes_a_table_without_a_header(run, named) -> None:
    write("test.csv", [A, B])
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS
    write("test.csv", [A, B, LABELS])
    found = run("predict", "m.npz", "test.csv")
    assert "no header says which column holds the labels: use --target" in found.err
    assert run("predict", "m.npz", "test.csv", "--target", "3", "--score").out == RIGHT


def test_names_that_are_numbers_are_a_header_of_the_model(run, named) -> None:
    model = fenchel.load("m.npz")
    model.feature_names_in_ = np.array(["0", "1"], dtype=object)
    model.save("m.npz")
    write("test.csv", {"1": B, "0": A})
    assert run("predict", "m.npz", "test.csv").out.split() == LABELS


def write_svmlight(name: str, features: list[str], labels: list[int] | None = None) -> None:
    with open(name, "w", encoding="utf-8") as file:
        for i, row in enumerate(features):
            file.write(f"{labels[i] if labels else 0} {row}\n")


@pytest.mark.parametrize("base", [0, 1])
def test_features_are_counted_as_in_the_fit(run, base) -> None:
    """A test file without the first feature does not shift the others."""
    write_svmlight("train.svm", [f"{base}:1 {base + 2}:{b} {base + 3}:1" for b in B], B)
    assert run("fit", "train.svm", "--alpha", "1e-4", "--model", "m.npz").code == 0
    model = fenchel.load("m.npz")
    assert model.source_["index_base"] == base
    write_svmlight("test.svm", [f"{base + 2}:{b}" for b in B])
    X = np.zeros((8, 4))
    X[:, 2] = B
    expected = [str(label) for label in model.predict(X)]
    assert run("predict", "m.npz", "test.svm").out.split() == expected
    # what is said of this file holds for this file
    other = 1 - base
    write_svmlight("other.svm", [f"{other + 2}:{b}" for b in B])
    found = run("predict", "m.npz", "other.svm", "--index-base", str(other))
    assert found.out.split() == expected


def test_a_feature_number_out_of_range_names_the_option(run) -> None:
    write_svmlight("train.svm", [f"1:{b} 2:1" for b in B], B)
    assert run("fit", "train.svm", "--model", "m.npz").code == 0
    write_svmlight("zero.svm", [f"0:{b}" for b in B])
    found = run("predict", "m.npz", "zero.svm")
    assert "a feature number is 0, but the model's data count from 1: use --index-base 0" in (
        found.err
    )
    assert run("predict", "m.npz", "zero.svm", "--index-base", "0").code == 0
    found = run("fit", "zero.svm", "--index-base", "1")
    assert "a feature number is 0, but --index-base is 1" in found.err
    found = run("predict", "m.npz", "train.svm", "--index-base", "0")
    assert "a feature number is 2, but the model has 2 features, counted from 0" in found.err


def test_a_model_that_does_not_know_asks_where_both_counts_fit(run) -> None:
    write_svmlight("train.svm", [f"1:{b} 3:1" for b in B], B)
    assert run("fit", "train.svm", "--model", "m.npz").code == 0
    without_source()
    assert run("predict", "m.npz", "train.svm").code == 0  # 3 of 3 features: from 1
    write_svmlight("test.svm", [f"1:{b}" for b in B])
    found = run("predict", "m.npz", "test.svm")
    assert "feature numbers from 1 to 1 may count from 0 or from 1" in found.err
    assert run("predict", "m.npz", "test.svm", "--index-base", "1").code == 0
    write_svmlight("test.svm", [f"0:{b}" for b in B])
    assert run("predict", "m.npz", "test.svm").code == 0


@pytest.mark.parametrize("name", ["x.svm", "x.npz", "x.npy", "x.csv"])
def test_options_of_another_format_are_refused(run, name) -> None:
    option = ["--index-base", "1"] if name == "x.csv" else ["--target", "y"]
    found = run("fit", name, *option)
    assert found.err.startswith(f"fenchel: error: {' '.join(option)}: {name} is read as ")
    if name != "x.csv":
        found = run("fit", name, "--separator", ";")
        assert found.err.startswith(f"fenchel: error: --separator ';': {name} is read as ")


@pytest.mark.parametrize(
    ("separator", "name", "remedy"),
    [
        (";", "x.csv", "--separator ';'"),
        ("|", "x.csv", "--separator '|'"),
        ("\t", "x.csv", "--format tsv"),
        (",", "x.tsv", "--format csv"),
        (";", "x.tsv", "--separator ';'"),
    ],
)
@pytest.mark.parametrize("header", [["a,b,kind"], []])
def test_another_separator_is_seen_and_can_be_given(run, separator, name, remedy, header) -> None:
    rows = header + [f"{a},{b},{label}" for a, b, label in zip(A, B, LABELS, strict=True)]
    with open(name, "w", encoding="utf-8") as file:
        file.write("\n".join(rows).replace(",", separator) + "\n")
    found = run("fit", name)
    own = "\t" if name == "x.tsv" else ","
    assert found.err == (
        f"fenchel: error: {name}: one column, with {own!r} between cells, but 3 with "
        f"{separator!r}: use {remedy}\n"
    )
    words = remedy.replace("'", "").split()
    assert run("fit", name, *words, "--model", "m.npz").code == 0
    assert run("predict", "m.npz", name, *words, "--score").out == RIGHT
    assert remedy in run("predict", "m.npz", name).err


def test_a_table_with_commas_in_its_numbers_is_seen_to_have_another_separator(run) -> None:
    with open("x.csv", "w", encoding="utf-8") as file:
        file.write("a;b;kind\n1,5;2;low\n2;1,5;high\n")
    assert "3 with ';': use --separator ';'" in run("fit", "x.csv").err
    found = run("fit", "x.csv", "--separator", ";")
    assert found.err == "fenchel: error: x.csv: '1,5' is not a number (row 2, column 1)\n"


def test_a_single_column_is_data_or_is_refused_by_name(run) -> None:
    write("x.csv", {"b": B})
    found = run("fit", "x.csv")
    assert found.err.startswith("fenchel: error: x.csv: one column, with ',' between cells")
    assert "--labels" in found.err
    write("y.txt", [LABELS])
    assert run("fit", "x.csv", "--labels", "y.txt").code == 0


@pytest.mark.parametrize("separator", ["", ";;", '"'])
def test_a_separator_is_one_character(run, separator) -> None:
    found = run("fit", "x.csv", "--separator", separator)
    assert found.code == 2
    assert "is not one character that can separate cells" in found.err


@pytest.mark.parametrize(
    ("y", "same"),
    [
        (np.array([BIG, BIG + 1]), [True, True]),
        (np.array([BIG + 1, BIG]), [False, False]),
        (np.array([BIG, BIG + 1], dtype=np.float64), [True, False]),  # both are 2^53
        (np.array([str(BIG), str(BIG)]), [True, False]),
        (np.array([f"{BIG}.0", "word"]), [True, False]),
    ],
)
def test_whole_numbers_are_compared_exactly(y, same) -> None:
    classes = np.array([BIG, BIG + 1])
    assert (as_labels_of(y, classes) == as_labels_of(classes, classes)).tolist() == same


def test_every_sample_has_one_label(run) -> None:
    write("x.csv", [A, B])
    with open("y.txt", "w", encoding="utf-8") as file:
        file.write("\n".join([*LABELS[:3], "", *LABELS[3:]]) + "\n\n")
    found = run("fit", "x.csv", "--labels", "y.txt")
    assert found.err == "fenchel: error: y.txt: line 4 is empty: every sample needs a label\n"
    np.savez("x.npz", X=np.array([A, B]).T, y=np.array(LABELS)[:, None])
    found = run("fit", "x.npz")
    assert "x.npz: labels of shape (8, 1) for 8 sample(s)" in found.err


@pytest.mark.parametrize("name", ["noise.npz", "noise.npy", "objects.npz"])
def test_nobody_is_told_to_unpickle_a_file(run, name):
    if name == "objects.npz":
        np.savez(name, X=np.array([[None]]), y=np.zeros(1))
    else:
        with open(name, "wb") as file:
            file.write(b"\x80\x04 no array of numbers")
    done = run("fit", name, *(["--labels", name] if name.endswith(".npy") else []))
    assert done.code == 1
    assert f"{name}: no arrays of numbers" in done.err
    assert "pickle" not in done.err
