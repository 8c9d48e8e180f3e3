"""Model files: nothing is lost, and nothing in a file is believed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import fenchel
from fenchel import SparseLinearClassifier, SparseLinearClassifierCV
from fenchel.losses import Hinge, SeparableLoss
from fenchel.persistence import ModelFileError

X, CODES = load_iris(return_X_y=True)
NAMES = np.array(["set", "versi", "virg"])


def fitted(y=CODES, **params):
    return SparseLinearClassifier(**{"loss": "softmax", "alpha": 1e-2} | params).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "params"),
    [
        (CODES, {}),
        (CODES - 1.0, {"class_weight": {0.0: 2.0}}),
        (NAMES[CODES], {"class_weight": {"set": 2.0}, "penalty_factor": [1, 2, 3, 4]}),
        (NAMES.astype(object)[CODES], {"class_weight": "balanced", "random_state": 3}),
        (CODES == 0, {"loss": "hinge"}),
        (CODES, {"loss": Hinge(cost=1 - np.eye(3))}),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_is_lost(tmp_path, labels, params, sparse):
    model = fitted(labels, **params)
    model = model.sparsify() if sparse else model
    model.save(tmp_path / "model.npz")
    again = fenchel.load(tmp_path / "model.npz")
    assert sp.issparse(again.coef_) == sparse
    assert (again.densify().coef_ == model.densify().coef_).all()
    assert (again.intercept_ == model.intercept_).all()
    assert again.classes_.dtype == model.classes_.dtype
    assert (again.predict(X) == model.predict(X)).all()
    for name in ("objective_", "dual_gap_", "status_", "n_iter_", "alpha_", "history_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.get_params()["class_weight"] == params.get("class_weight")
    assert again.get_params()["random_state"] == params.get("random_state")
    np.testing.assert_array_equal(again.penalty_factor, params.get("penalty_factor"))
    assert repr(again.loss) == repr(model.loss)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.npz"]


def test_feature_names_and_cross_validated_models(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    model = SparseLinearClassifierCV(alphas=3, cv=2).fit(frame, CODES)
    model.save(tmp_path / "model.npz")
    again = fenchel.load(tmp_path / "model.npz")
    assert again.feature_names_in_.tolist() == list("abcd")
    assert again.alpha == again.alpha_ == model.alpha_
    assert (again.predict(frame) == model.predict(frame)).all()


def test_the_source_of_the_data_is_kept_until_the_next_fit(tmp_path):
    path = tmp_path / "model.npz"
    fitted().save(path)
    assert not hasattr(fenchel.load(path), "source_")
    model = fitted()
    model.source_ = {"target": "species", "index_base": None}
    model.save(path)
    again = fenchel.load(path)
    assert again.source_ == model.source_
    assert not hasattr(again.fit(X, CODES), "source_")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.npz"
    fitted().save(path)
    before = path.read_bytes()
    square = SeparableLoss(lambda v, true: 0.5 * v**2, lambda v, true: v)
    bad = fitted()
    bad.loss = square
    with pytest.raises(ValueError, match="an object of your own"):
        bad.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    """The file that it points to is replaced, and so is one that it will point to."""
    models, links = tmp_path / "models", tmp_path / "links"
    models.mkdir()
    links.mkdir()
    link = links / "latest.npz"
    link.symlink_to(os.path.join("..", "models", "model.npz"))
    for alpha in (0.1, 0.2):
        fitted(alpha=alpha).save(link)
        assert link.is_symlink()
        assert fenchel.load(models / "model.npz").alpha == alpha
    assert [path.name for path in (*models.iterdir(), *links.iterdir())] == [
        "model.npz",
        "latest.npz",
    ]


def rewritten(path, **members):
    """A copy of a model file with some members replaced."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, value in members.items():
        if name == "header":
            header = json.loads(content["header.json"])
            content["header.json"] = json.dumps(header | value).encode()
        elif name == "fitted":
            header = json.loads(content["header.json"])
            header["fitted"] |= value
            content["header.json"] = json.dumps(header).encode()
        elif name == "params":
            header = json.loads(content["header.json"])
            header["params"] |= value
            content["header.json"] = json.dumps(header).encode()
        elif name == "record":
            header = json.loads(content["header.json"])
            header["history"][0] |= value
            content["header.json"] = json.dumps(header).encode()
        elif isinstance(value, bytes):
            content[f"{name}.npy"] = value
        else:
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=True)
            content[f"{name}.npy"] = buffer.getvalue()
    changed = path.with_name("changed.npz")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    return changed


def huge():
    """The header of an array of 8 PB, and nothing behind it."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    )
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"coef_data": huge()}, "coef_data declares"),
        ({"coef_data": np.array([None] * 3, dtype=object)}, "type object"),
        ({"coef_indices": np.full(4, 9)}, "do not fit|out of range"),
        ({"coef_indptr": np.array([0, 3, 1, 4])}, "decrease|do not fit"),
        ({"intercept": np.array([0.0, np.nan, 0.0])}, "intercept not finite"),
        ({"intercept": np.zeros(4)}, "intercept has shape"),
        ({"classes": np.zeros(3)}, "not distinct"),
        ({"classes": np.array([0.0, 1.0, np.nan])}, "a class is NaN"),
        ({"coef": np.zeros((3, 4), np.float16)}, "coef has type float16"),
        ({"header": {"shape": [3.7, 4]}}, "shape 3.7 x 4"),
        ({"header": {"version": 99}}, "version is 99"),
        ({"header": {"format": "other"}}, "no such header"),
        ({"header": {"shape": [3, 5]}}, "feature|shape|readable"),
        ({"header": {"shape": "many"}}, "readable"),
        ({"header": {"loss": "os.system"}}, "unknown loss"),
        ({"header": {"params": {}}}, "it has no 'class_weight'"),
        ({"header": {"shape": [3, 10**15]}}, f"{10**15} features|has shape"),
        ({"params": {"alpha": "x"}}, "alpha is 'x'"),
        ({"params": {"alpha_scale": "large"}}, "alpha_scale is 'large'"),
        ({"params": {"tol": -1}}, "tol is -1"),
        ({"params": {"fit_intercept": 1}}, "fit_intercept is 1"),
        ({"params": {"penalty": "l2"}}, "penalty is 'l2'"),
        ({"params": {"positive": None}}, "positive is None"),
        ({"params": {"max_iter": 2.5}}, "max_iter is 2.5"),
        ({"params": {"max_time": -3}}, "max_time is -3"),
        ({"params": {"warm_start": "no"}}, "warm_start is 'no'"),
        ({"params": {"verbose": "yes"}}, "verbose is 'yes'"),
        ({"fitted": {"objective_": 1.0, "dual_objective_": 2.0, "dual_gap_": -1.0}}, "above"),
        ({"header": {"source": {"target": 6}}}, "target 6"),
        ({"header": {"source": {"index_base": 2}}}, "index_base 2"),
        ({"header": {"fitted": {}}}, "readable"),
        ({"fitted": {"dual_gap_": "x"}}, "dual_gap_ is 'x'"),
        ({"fitted": {"dual_gap_": 0.0}}, "not that of its bounds"),
        ({"fitted": {"objective_": np.inf, "dual_gap_": np.inf}}, "not finite"),
        ({"fitted": {"objective_": np.nan}}, "not finite"),
        ({"fitted": {"dual_objective_": None}}, "dual_objective_ is None"),
        ({"fitted": {"alpha_": -1.0}}, "alpha_ out of range"),
        ({"fitted": {"alpha_": np.inf}}, "alpha_ out of range"),
        ({"fitted": {"n_iter_": 1.5}}, "n_iter_ is 1.5"),
        ({"fitted": {"n_iter_": True}}, "n_iter_ is True"),
        ({"fitted": {"n_iter_": -1}}, "negative"),
        ({"fitted": {"status_": "perfect"}}, "unknown status 'perfect'"),
        ({"header": {"history": [1]}}, "readable"),
        ({"record": {"gap": "small"}}, "gap is 'small'"),
        ({"record": {"iteration": 0.5}}, "iteration is 0.5"),
        ({"record": {"note": 7}}, "note is 7"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, members, message):
    path = tmp_path / "model.npz"
    model = fitted(penalty_factor=[1, 1, 1, 1]).sparsify()
    model.coef_ = sp.csr_array(np.array([[1.0, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 4]]))
    model.save(path)
    fenchel.load(path)
    with pytest.raises(ModelFileError, match=message):
        fenchel.load(rewritten(path, **members))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_of_a_machine_with_another_byte_order(tmp_path, sparse):
    path = tmp_path / "model.npz"
    model = fitted().sparsify() if sparse else fitted()
    model.save(path)
    parts = vars(model.coef_) if sparse else {}
    names = {f"coef_{part}": parts[part] for part in ("data", "indices", "indptr") if sparse}
    names = names or {"coef": model.coef_}
    swapped = {name: a.astype(a.dtype.newbyteorder()) for name, a in names.items()}
    again = fenchel.load(rewritten(path, **swapped))
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert (again.predict_proba(sp.csr_array(X)) == model.predict_proba(sp.csr_array(X))).all()
    coef = again.coef_
    assert all(a.dtype.isnative for a in ([coef.data, coef.indices] if sparse else [coef]))


def test_a_diverged_history_and_a_later_one_are_read(tmp_path):
    path = tmp_path / "model.npz"
    fitted().save(path)
    changed = rewritten(path, record={"gap": np.inf, "primal": np.inf, "new": 1, "passes": 0})
    assert fenchel.load(changed).history_[0].gap == np.inf


def test_an_error_names_the_path_that_was_given(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot be written .*nodir.model\.npz'$"):
        fitted().save(tmp_path / "nodir" / "model.npz")


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "model.npz"
    fitted().save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    del content["classes.npy"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    with pytest.raises(ModelFileError, match="it has no 'classes'"):
        fenchel.load(path)


def test_a_folder_is_no_model_file(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"it is a folder.*give the path of a file"):
        fitted().save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_set_wrong_after_the_fit_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="alpha='x' is nothing that fit would take"):
        fitted().set_params(alpha="x").save(tmp_path / "model.npz")
    fitted().set_params(tol=1e-9).save(tmp_path / "model.npz")  # another fit may be planned
    assert fenchel.load(tmp_path / "model.npz").tol == 1e-9


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    fitted().save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for size in [0, 1, 100, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            fenchel.load(path)
    for _ in range(200):  # a flipped byte is refused, or falls where it does no harm
        flipped = bytearray(content)
        flipped[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with contextlib.suppress(ModelFileError):
            fenchel.load(path)
    with pytest.raises(FileNotFoundError):
        fenchel.load(tmp_path / "none.npz")


def test_skops(tmp_path):
    skops = pytest.importorskip("skops.io")
    model = fitted()
    skops.dump(model, tmp_path / "model.skops")
    unknown = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("fenchel.") for name in unknown)
    again = skops.load(tmp_path / "model.skops", trusted=unknown)
    assert (again.predict(X) == model.predict(X)).all()
