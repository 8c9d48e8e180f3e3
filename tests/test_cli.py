"""The command: what it writes, what it prints, and how it ends."""

from __future__ import annotations

import csv
import gzip
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_iris

import fenchel
from fenchel.cli import main
from fenchel.cli.data import read
from fenchel.interrupts import deferred_interrupts

COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, load_iris().target_names[y]


@pytest.fixture
def folder(tmp_path, iris, monkeypatch):
    """Iris in every format, and the working directory."""
    X, y, names = iris
    dump_svmlight_file(X, y, str(tmp_path / "iris.svm"), zero_based=False)
    (tmp_path / "iris.svm.gz").write_bytes(gzip.compress((tmp_path / "iris.svm").read_bytes()))
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    S = sp.csr_array(X)
    np.savez(tmp_path / "sparse.npz", data=S.data, indices=S.indices, indptr=S.indptr,
             shape=S.shape, y=y)  # fmt: skip
    sp.save_npz(tmp_path / "scipy.npz", S)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "y.txt").write_text("\n".join(names) + "\n")
    for name, delimiter in (("iris.csv", ","), ("iris.tsv", "\t")):
        with open(tmp_path / name, "w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow([*COLUMNS, "species"])
            writer.writerows([*x, name] for x, name in zip(X.tolist(), names, strict=True))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words: str) -> SimpleNamespace:
    code = main([*words])
    out, err = capsys.readouterr()
    return SimpleNamespace(code=code, out=out, err=err)


FIT = ("--loss", "softmax", "--alpha", "0.01")


@pytest.mark.parametrize(
    "data",
    [
        ["iris.svm"],
        ["iris.svm.gz"],
        ["iris.npz"],
        ["sparse.npz"],
        ["scipy.npz", "--labels", "y.npy"],
        ["X.npy", "--labels", "y.npy"],
        ["X.npy", "--labels", "y.txt"],
        ["iris.csv"],
        ["iris.csv", "--target", "species"],
        ["iris.tsv", "--target", "5"],
    ],
)
def test_every_format_gives_the_estimator_s_model(folder, capsys, iris, data) -> None:
    X, y, _ = iris
    # far below what is compared: dense and sparse formats take different ways to a tolerance
    found = run(capsys, "fit", *data, *FIT, "--tol", "1e-10", "--model", "model.npz")
    assert found.code == 0, found.err
    expected = fenchel.SparseLinearClassifier("softmax", 0.01, tol=1e-10, random_state=0).fit(X, y)
    model = fenchel.load("model.npz")
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-6, atol=1e-9)
    assert f"objective  {expected.objective_:.6g}" in found.out
    assert f"gap        {model.dual_gap_:.3g}" in found.out
    scored = run(capsys, "predict", "model.npz", *data, "--score")
    assert scored.out == f"accuracy {expected.score(X, y):.6f} (145 of 150)\n"


def test_options_reach_the_estimator(folder, capsys) -> None:
    found = run(
        capsys, "fit", "iris.csv", "--loss", "sparsemax", "--alpha", "0.2", "--alpha-scale", "max",
        "--no-intercept", "--class-weight", "setosa=2,versicolor=0.5", "--solver", "mirror-prox",
        "--max-iter", "40", "--max-time", "1000", "--seed", "3", "--tol", "0.5", "--penalty",
        "group", "--positive", "--model", "model.npz", "--history", "history.csv",
    )  # fmt: skip
    assert found.code == 0, found.err
    model = fenchel.load("model.npz")
    parameters = model.get_params()
    expected = {
        "loss": "sparsemax", "alpha": 0.2, "alpha_scale": "max", "fit_intercept": False,
        "class_weight": {"setosa": 2.0, "versicolor": 0.5}, "solver": "mirror-prox",
        "max_iter": 40, "max_time": 1000.0, "random_state": 3, "tol": 0.5, "penalty": "group",
        "positive": True,
    }  # fmt: skip
    assert {key: parameters[key] for key in expected} == expected
    assert model.feature_names_in_.tolist() == COLUMNS
    with open("history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["iteration"]) for row in rows] == [r.iteration for r in model.history_]
    assert float(rows[-1]["best_gap"]) == pytest.approx(model.dual_gap_, rel=1e-6)


def test_not_converged_is_said_and_the_model_is_written(folder, capsys) -> None:
    found = run(capsys, "fit", "iris.csv", "--max-iter", "1", "--tol", "1e-9", "--model", "m.npz")
    assert found.code == 3
    assert found.err.startswith("fenchel: not converged: max_iter;")
    assert found.err.count("\n") == 1
    assert "status     max_iter after 1 iterations" in found.out
    assert fenchel.load("m.npz").status_ == "max_iter"


def test_verbose_shows_every_check(folder, capsys) -> None:
    found = run(capsys, "fit", "iris.csv", "-v", "--model", "m.npz")
    lines = found.err.splitlines()
    assert len(lines) == len(fenchel.load("m.npz").history_)
    assert lines[0].startswith("iteration 0, ")


@pytest.fixture
def model(folder, capsys):
    assert run(capsys, "fit", "iris.csv", *FIT, "--model", "model.npz").code == 0
    return fenchel.load("model.npz")


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def test_predictions(model, capsys, iris) -> None:
    X = iris[0]
    model.__dict__.pop("feature_names_in_")
    assert run(capsys, "predict", "model.npz", "iris.csv").out.split() == model.predict(X).tolist()
    for option, expected in (
        ("--proba", model.predict_proba(X)),
        ("--decision", model.decision_function(X)),
    ):
        head, *rows = rows_of(run(capsys, "predict", "model.npz", "X.npy", option).out)
        assert head == model.classes_.tolist()
        np.testing.assert_allclose(np.array(rows, dtype=float), expected, rtol=1e-8, atol=1e-12)
    head, *rows = rows_of(run(capsys, "predict", "model.npz", "X.npy", "--top", "2").out)
    assert head == ["label_1", "score_1", "label_2", "score_2"]
    labels, scores = model.predict_topk(X, 2, return_scores=True)
    assert [[row[0], row[2]] for row in rows] == labels.tolist()
    np.testing.assert_allclose([[float(r[1]), float(r[3])] for r in rows], scores, rtol=1e-8)


def test_predictions_come_in_blocks(model, capsys, monkeypatch) -> None:
    whole = run(capsys, "predict", "model.npz", "iris.csv", "--proba").out
    monkeypatch.setattr("fenchel.cli.predict.BLOCK_ENTRIES", 21)  # 7 rows a block
    assert run(capsys, "predict", "model.npz", "iris.csv", "--proba").out == whole


def test_output_is_a_file_that_is_complete_or_absent(model, capsys, folder) -> None:
    assert run(capsys, "predict", "model.npz", "iris.csv", "--output", "labels.txt").out == ""
    assert (folder / "labels.txt").read_text() == run(capsys, "predict", "model.npz", "X.npy").out
    (folder / "labels.txt").write_text("before\n")
    found = run(capsys, "predict", "model.npz", "iris.csv", "--top", "9", "--output", "labels.txt")
    assert found.code == 1
    assert (folder / "labels.txt").read_text() == "before\n"
    assert not list(folder.glob(".*.tmp"))


def test_two_classes_have_two_scores(folder, capsys) -> None:
    (folder / "two.csv").write_text("-2,a\n-1,a\n1,b\n2,b\n")
    assert run(capsys, "fit", "two.csv", "--model", "two.npz").code == 0
    head, *rows = rows_of(run(capsys, "predict", "two.npz", "two.csv", "--decision").out)
    scores = np.array(rows, dtype=float)
    assert head == ["a", "b"]
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    margin = fenchel.load("two.npz").decision_function(X)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], margin, rtol=1e-8)


def test_columns_are_found_by_name(model, capsys, folder) -> None:
    """Other order, other columns, no labels: the names decide."""
    rows = rows_of((folder / "iris.csv").read_text())
    with open("other.csv", "w", newline="") as file:
        csv.writer(file).writerows([[r[3], "0", r[1], r[0], r[2]] for r in rows])
    whole = run(capsys, "predict", "model.npz", "iris.csv").out
    assert run(capsys, "predict", "model.npz", "other.csv").out == whole
    (folder / "few.csv").write_text("sepal length,petal length\n1,2\n")
    found = run(capsys, "predict", "model.npz", "few.csv")
    assert (found.code, found.err) == (
        1, "fenchel: error: few.csv: no column 'sepal width', which the model needs\n",
    )  # fmt: skip


def test_labels_are_compared_in_the_type_of_the_model(folder, capsys) -> None:
    """A test file that holds only the labels that look like numbers is no file of numbers."""
    (folder / "train.csv").write_text("0,1\n1,2\n9,x\n" * 5)
    (folder / "test.csv").write_text("0,1\n1,2\n")
    assert run(capsys, "fit", "train.csv", "--alpha", "1e-4", "--model", "m.npz").code == 0
    assert run(capsys, "predict", "m.npz", "test.csv", "--score").out.endswith("(2 of 2)\n")


def test_no_accuracy_where_no_label_is_the_model_s(folder, capsys) -> None:
    (folder / "train.csv").write_text("0,a\n1,b\n" * 5)
    (folder / "test.csv").write_text("0,7\n1,8\n")
    assert run(capsys, "fit", "train.csv", "--alpha", "1e-4", "--model", "m.npz").code == 0
    found = run(capsys, "predict", "m.npz", "test.csv", "--score")
    assert (found.code, found.out) == (1, "")
    assert "no label in test.csv (the first is 7) is one of the model's" in found.err


def test_a_svmlight_file_may_miss_the_last_features(folder, capsys) -> None:
    assert run(capsys, "fit", "iris.svm", *FIT, "--model", "m.npz").code == 0
    (folder / "short.svm").write_text("0 1:5.1 2:3.5\n")
    assert run(capsys, "predict", "m.npz", "short.svm").code == 0
    (folder / "long.svm").write_text("0 1:5.1 7:3.5\n")
    found = run(capsys, "predict", "m.npz", "long.svm")
    assert (found.code, "a feature number is 7, but the model has 4" in found.err) == (1, True)


BAD = {
    "empty.svm": (b"", "empty"),
    "word.svm": (b"0 1:a\n1 1:2\n", "could not convert"),
    "nan.svm": (b"0 1:nan\n1 1:2\n", "NaN (first at row 0, column 0)"),
    "huge.svm": (b"0 1:1e400\n1 1:2\n", "infinity"),
    "far.svm": (b"0 99999999999:1\n1 1:2\n", "number of 2^31 or more"),
    "cut.svm.gz": (gzip.compress(b"0 1:1\n1 1:2\n" * 100)[:20], "cut.svm.gz"),
    "one.svm": (b"0 1:1\n0 1:2\n", "class"),
    "empty.csv": (b"", "empty"),
    "word.csv": (b"a,b,y\n1,2,p\n1,?,q\n", "'?' is not a number (row 3, column 2)"),
    "ragged.csv": (b"1,2,p\n1,q\n", "row 2 has 2 cells, the first row has 3"),
    "binary.csv": (b"\xff\xfe\x00,\n", "not a text file"),
    "twice.csv": (b"x,x,y\n1,2,p\n2,1,q\n", "columns 1 and 2 are both named 'x'"),
    "missing.csv": (b"NA,3.5,p\n1,2,q\n", "'NA' (row 1, column 1) stands above a number, but"),
    "numbered.csv": (b"0,1,y\n1,2,0\n2,1,1\n", "'y' (row 1, column 3) stands above a number"),
    "nolabel.csv": (b"a,y\n1,p\n2,q\n3, \n", "the label is empty (row 4, column 2)"),
    "wide.csv": (b"1," + b"a" * 200_000 + b"\n", "wide.csv: field larger than field limit"),
    "bits.csv.gz": (gzip.compress(b"1,p\n")[:10] + b"\xff" * 20, "bits.csv.gz: Error -3"),
    "label.svm": (b"9007199254740993 1:1\n1 1:2\n", "a label is 9007199254740992: from 2^53 on"),
    "text.npz": (b"not a zip", "text.npz"),
    "text.npy": (b"not an array", "text.npy"),
    "noformat.dat": (b"1,2\n", "use --format"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_one_line_and_exit_code_1(folder, capsys, name) -> None:
    content, message = BAD[name]
    (folder / name).write_bytes(content)
    found = run(capsys, "fit", name, "--model", "m.npz")
    assert found.code == 1
    assert found.err.startswith("fenchel: error: ")
    assert found.err.count("\n") == 1
    assert message in found.err
    assert not (folder / "m.npz").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "absent.svm"], "absent.svm: no such file"),
        (["fit", "iris.csv", "--target", "kind"], "no column 'kind': the columns are sepal length"),
        (["fit", "X.npy"], "has no labels: use --labels"),
        (
            ["fit", "X.npy", "--labels", "short.txt"],
            "short.txt: labels of shape (1,) for 150 sample(s)",
        ),
        (["fit", "scipy.npz"], "has no labels"),
        (["fit", "y.npy", "--labels", "y.npy"], "two dimensions"),
        (["fit", "iris.csv", "--alpha", "-1"], "must be >= 0"),
        (["fit", "iris.csv", "--class-weight", "setosa"], "not of the form label=factor"),
        (["fit", "iris.csv", "--class-weight", "rosa=1"], "no label 'rosa'"),
        (
            ["fit", "iris.csv", "--class-weight", "setosa=1,setosa=2"],
            "label 'setosa' has two factors",
        ),
        (["fit", "iris.csv", "--model", "no/m.npz"], "its folder does not exist"),
        (
            ["fit", "iris.csv", "--solver", "primal-dual", "--penalty", "group"],
            "cannot be used here",
        ),
        (["predict", "absent.npz", "X.npy"], "absent.npz: no such file"),
        (["predict", "iris.npz", "X.npy"], "iris.npz"),
        (["predict", "model.npz", "model.npz"], "model.npz: this is a model, not data"),
        (["predict", "model.npz", "narrow.npy"], "2 features, but the model has 4"),
        (["predict", "model.npz", "X.npy", "--score"], "has no labels"),
        (["reproduce", "figure1", "--methods", "magic"], "no method 'magic'"),
        (["predict", "model.npz", "X.npy", "--labels", "y.npy"], "only --score needs labels"),
        (["reproduce", "figure1", "--draw"], "holds no results"),
        (["reproduce", "figure1", "--draw", "--sizes", "9"], "--sizes is an option of table1 only"),
        (["reproduce", "table1", "--quick", "--draw"], "--draw is an option of figure1 only"),
        (["reproduce", "figure1", "--draw", "--full", "--budget", "1"], "--full and --budget"),
        (["reproduce", "figure1", "--quick", "--size", "9"], "--quick and --size contradict"),
        (["reproduce", "figure1", "--size", "1"], "size must be 2 or more, found 1"),
        (["reproduce", "table1", "--size", "9"], "--size is an option of figure1 only"),
        (["reproduce", "table1", "--quick", "--output", "X.npy"], "--output X.npy is a file"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(model, capsys, words, message) -> None:
    np.save("narrow.npy", np.ones((3, 2)))
    with open("short.txt", "w") as file:
        file.write("a\n")
    found = run(capsys, *words)
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert message in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "."], "--model . is a folder: give the name of a file"),
        (["--model", ""], "--model '': the name is empty"),
        (["--history", "."], "--history . is a folder"),
        (["--model", "/dev/null"], "--model /dev/null is no regular file"),
        (["--model", "m.npz", "--history", "./m.npz"], "--history ./m.npz is --model too"),
        (["--model", "iris.csv"], "--model iris.csv is an input too"),
        (["--model", "m" * 250], "cannot be written: File name too long"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_fitted(
    folder, capsys, monkeypatch, words, message
) -> None:
    monkeypatch.setattr("fenchel.cli.fit.make_model", lambda *arguments: pytest.fail("a fit"))
    found = run(capsys, "fit", "iris.csv", *words)
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert message in found.err
    assert not list(folder.glob(".*.tmp"))


def test_links_are_written_through(model, capsys, folder) -> None:
    (folder / "there").mkdir()
    names = {"--output": "labels.txt", "--model": "again.npz", "--history": "checks.csv"}
    for name in names.values():
        (folder / name).symlink_to(folder / "there" / name)
    assert run(capsys, "predict", "model.npz", "iris.csv", "--output", "labels.txt").code == 0
    words = ["--model", "again.npz", "--history", "checks.csv"]
    assert run(capsys, "fit", "iris.csv", *words).code == 0
    assert sorted(path.name for path in (folder / "there").iterdir()) == sorted(names.values())
    assert all((folder / name).is_symlink() for name in names.values())


def test_a_link_to_an_input_is_not_written_through(model, capsys, folder) -> None:
    (folder / "link.csv").symlink_to(folder / "iris.csv")
    found = run(capsys, "predict", "model.npz", "iris.csv", "--output", "link.csv")
    assert (found.code, "--output link.csv is an input too" in found.err) == (1, True)


def test_predictions_do_not_replace_what_they_are_made_of(model, capsys, folder) -> None:
    for name in ("model.npz", "iris.csv"):
        before = (folder / name).read_bytes()
        found = run(capsys, "predict", "model.npz", "iris.csv", "--output", name)
        assert (found.code, f"--output {name} is an input too" in found.err) == (1, True)
        assert (folder / name).read_bytes() == before


def test_debug_shows_the_traceback(folder, capsys) -> None:
    found = run(capsys, "fit", "absent.svm", "--debug")
    assert found.code == 1
    assert "Traceback" in found.err


@pytest.mark.parametrize(
    "words",
    [[], ["fit"], ["fit", "iris.csv", "--loss", "magic"], ["predict", "m", "x", "--top", "x"],
     ["predict", "m", "x", "--proba", "--score"], ["reproduce", "table1", "--repetitions", "0"]],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, words) -> None:
    found = run(capsys, *words)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert found.err.startswith("fenchel: usage: ")


@pytest.mark.parametrize("words", [[], ["fit"], ["predict"], ["reproduce"]])
def test_help_has_examples(capsys, words) -> None:
    found = run(capsys, *words, "--help")
    assert found.code == 0
    assert "examples:\n  fenchel " in found.out


def test_version_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "fenchel", "--version"], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout == f"fenchel {fenchel.__version__}\n"


def listen() -> None:
    """A shell lets its background jobs ignore Ctrl-C, and the tests may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_while_it_starts_is_one_line() -> None:
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "fenchel", "--version"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=listen,
    ) as process:
        next(line for line in process.stderr if "numpy" in line)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert said == ["fenchel: interrupted: nothing was written"]
    assert (process.returncode, out) == (130, "")


def test_an_interrupt_of_an_import_waits_for_its_end() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = []

    def load() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("the rest of the import")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert steps == ["the rest of the import"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # at once again
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_the_shell_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupted_fit_writes_its_best_model(folder) -> None:
    words = ["fit", "iris.csv", "--no-intercept", "--solver", "mirror-descent", "--tol", "0",
             "--max-iter", "1000000000", "-v", "--model", "m.npz"]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "fenchel", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=listen,
    ) as process:
        for line in process.stderr:
            if line.startswith("iteration ") and not line.startswith("iteration 0"):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "fenchel: interrupted: the best model so far was written" in err
    assert "status     interrupted" in out
    assert fenchel.load("m.npz").status_ == "interrupted"


def test_a_reader_that_goes_away_ends_it_quietly(model, folder) -> None:
    X = np.tile(np.load("X.npy"), (200, 1))
    np.save("long.npy", X)
    with subprocess.Popen([sys.executable, "-m", "fenchel", "predict", "model.npz", "long.npy"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # fmt: skip
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (141, b"")


@given(content=st.binary(max_size=60), suffix=st.sampled_from(["svm", "csv", "npz", "npy"]))
def test_random_bytes_are_data_or_an_error(tmp_path_factory, content, suffix) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"x.{suffix}"
    path.write_bytes(content)
    options = SimpleNamespace(
        data=str(path),
        format=None,
        separator=None,
        target=None,
        labels=None,
        index_base="auto",
    )
    try:
        data = read(options)
    except (ValueError, OSError) as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert 0 not in data.X.shape
