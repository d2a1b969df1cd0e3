import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("numba")
from aboveboard.core import InputError
from aboveboard.unlearning import DynFrsClassifier, DynFrsRegressor


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(list("xyz"), 300), "c": rng.normal(size=300)})
    return X, np.where(X["a"] + (X["b"] == "x") > 0.3, "yes", "no")


def test_a_saved_forest_comes_back_with_the_same_fingerprint_and_goes_on_living(tmp_path, rows):
    X, y = rows
    model = DynFrsClassifier(20, random_state=0, categorical_features=["b"], occurrence=0.3)
    model.fit(X, y, sample_weight=np.arange(300) % 3 + 1).remove(range(0, 90, 3))
    model.save(tmp_path / "model")
    other = DynFrsClassifier.load(tmp_path / "model")
    assert other.fingerprint() == model.fingerprint()
    assert np.array_equal(other.predict(X), model.predict(X))
    assert list(other.feature_names_in_) == ["a", "b", "c"]
    for each in (model, other):
        each.remove([1, 2]).partial_fit(X[:2], y[:2])
    assert other.fingerprint() == model.fingerprint()
    assert other.sample_ids_[-1] == 301


def test_a_saved_regressor_comes_back(tmp_path, rows):
    X = rows[0][["a", "c"]]
    model = DynFrsRegressor(20, random_state=0).fit(X, X["a"] * 2).remove([5])
    model.save(tmp_path / "model")
    assert DynFrsRegressor.load(tmp_path / "model", n_jobs=2).fingerprint() == model.fingerprint()


def test_after_an_erasure_the_row_is_gone_from_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[7] = 123456.75, -98765.5, 31337.25
    path = tmp_path / "model"
    ids = np.arange(300) * 7_919_000_001 + 10**15
    model = DynFrsClassifier(20, random_state=0).fit(X, rng.integers(0, 2, 300), sample_id=ids)
    model.save(path)
    marks = [np.float32(value).tobytes() for value in X[7]] + [np.int64(ids[7]).tobytes()]
    assert all(mark in path.read_bytes() for mark in marks)
    model.remove(int(ids[7])).save(path)
    assert not any(mark in path.read_bytes() for mark in marks)
    assert os.listdir(tmp_path) == ["model"]


def test_the_bytes_of_a_file_depend_on_the_model_alone(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    DynFrsClassifier(20, random_state=0).fit(X, y).remove(range(50)).save(tmp_path / "one")
    DynFrsClassifier(20, random_state=0).fit(X[50:], y[50:], sample_id=range(50, 100)).save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failure_while_writing_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    model = DynFrsClassifier(20, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        model.remove(1).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_numpy_alone_reads_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    DynFrsClassifier(5, random_state=0).fit(X, y).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert np.array_equal(file["X"], X.astype(np.float32))


def test_files_that_are_no_forest_are_refused(tmp_path, rows):
    X, y = rows[0][["a", "c"]], rows[1]
    DynFrsClassifier(5, random_state=0).fit(X, y).save(tmp_path / "model")
    with pytest.raises(InputError, match="there is no file"):
        DynFrsClassifier.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds a DynFrsClassifier"):
        DynFrsRegressor.load(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text").write_text("hello")
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    (tmp_path / "flipped").write_bytes(flipped)
    for name in ("half", "text", "flipped"):
        with pytest.raises(InputError, match="or is damaged"):
            DynFrsClassifier.load(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "model") as old, zipfile.ZipFile(tmp_path / "later", "w") as new:
        for name in old.namelist():
            header = json.loads(old.read(name)) if name == "header.json" else None
            if header:
                header["model"]["algorithm"] += 1
            new.writestr(name, json.dumps(header) if header else old.read(name))
    with pytest.raises(InputError, match="a version whose forests differ"):
        DynFrsClassifier.load(tmp_path / "later")
