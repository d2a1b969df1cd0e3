import pickle
import sys
import zipfile

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from aboveboard._model_host.loaders import Untrusted
from aboveboard._model_host.loaders.objects import load_function, load_pickle, load_skops
from aboveboard.core.errors import InputError

X, Y = load_iris(return_X_y=True, as_frame=True)


def in_skops(folder, model, trusted=()):
    skops.io.dump(model, folder / "m.skops")
    return load_skops({"path": str(folder / "m.skops"), "trusted": list(trusted)})


def test_a_skops_file_gives_the_estimator_in_it(tmp_path):
    model = LogisticRegression(max_iter=500).fit(X, Y)
    loaded = in_skops(tmp_path, model)
    assert (loaded.model, loaded.feature_names, loaded.n_features) == ("LogisticRegression", list(X.columns), 4)
    assert list(loaded.classes) == [0, 1, 2]
    assert not loaded.regressor
    assert (loaded.questions["predict_proba"](X) == model.predict_proba(X)).all()
    assert set(loaded.versions()) == {"scikit-learn", "skops"}
    assert in_skops(tmp_path, LinearRegression().fit(X, Y)).regressor


def test_all_types_that_are_not_trusted_are_named_at_once(tmp_path):
    forest = RandomForestClassifier(2).fit(X, Y)
    forest.note = pytest.approx  # a function that is nowhere trusted
    with pytest.raises(Untrusted) as caught:
        in_skops(tmp_path, forest, ["sklearn.tree._tree.Tree"])
    assert any("approx" in name for name in caught.value.types)
    assert "sklearn.tree._tree.Tree" not in caught.value.types


def test_what_was_trusted_is_told_and_what_the_file_does_not_hold_is_not(tmp_path):
    names = ["sklearn.tree._tree.Tree", "not.In.It"]
    if skops.io.get_untrusted_types(data=skops.io.dumps(RandomForestClassifier(2).fit(X, Y))):  # newer skops ask
        assert in_skops(tmp_path, RandomForestClassifier(2).fit(X, Y), names).trusted == ("sklearn.tree._tree.Tree",)
    assert in_skops(tmp_path, LogisticRegression(max_iter=500).fit(X, Y), names).trusted == ()


@pytest.mark.parametrize("content", [b"no zip", b""])
def test_a_file_that_is_no_skops_file_is_refused(tmp_path, content):
    (tmp_path / "m.skops").write_bytes(content)
    with pytest.raises(InputError, match=r"'m\.skops' is no skops file"):
        load_skops({"path": str(tmp_path / "m.skops"), "trusted": []})
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(InputError, match="cannot be read as a skops file"):
        load_skops({"path": str(tmp_path / "m.skops"), "trusted": []})


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds a dict without predict"):
        in_skops(tmp_path, {"a": 1})
    several = MultiOutputClassifier(LogisticRegression(max_iter=500)).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(InputError, match="a model of several targets"):
        in_skops(tmp_path, several)


@pytest.mark.parametrize("dump", [joblib.dump, lambda model, path: path.write_bytes(pickle.dumps(model))])
def test_a_pickle_gives_the_estimator_in_it_and_a_plain_warning(tmp_path, dump):
    model = LogisticRegression(max_iter=500).fit(X, Y)
    dump(model, tmp_path / "m.pkl")
    loaded = load_pickle({"path": str(tmp_path / "m.pkl")})
    assert (loaded.questions["predict"](X) == model.predict(X)).all()
    assert loaded.notes == ("'m.pkl' was unpickled (--trust-pickle), which runs whatever code the file names.",)


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"cnowhere\nnothing\n.", b"garbage", b"\x80\x05\x95"])
def test_a_damaged_pickle_is_refused(tmp_path, content):
    (tmp_path / "m.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"m\.pkl"):
        load_pickle({"path": str(tmp_path / "m.pkl")})


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_scoring.py").write_text(
        "class kept:\n    @staticmethod\n    def half(rows):\n        return [0.5] * len(rows)\n\n\nnumber = 3\n",
        encoding="utf-8",
    )
    (tmp_path / "own_broken.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "own_lacking.py").write_text("import not_installed_anywhere\n", encoding="utf-8")
    yield lambda name: load_function({"function": name, "folder": str(tmp_path)})
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_a_function_is_called_with_the_rows(module):
    loaded = module("own_scoring:kept.half")
    assert loaded.questions["call"](X).tolist() == [0.5] * 150
    assert loaded.classes is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_gone:f", "there is no module 'own_gone'"),
        ("own_scoring.sub:f", r"there is no module 'own_scoring\.sub'"),
        ("own_scoring:kept.hal", "Did you mean 'half'"),
        ("own_scoring:number", "is a int"),
        ("own_broken:f", "cannot be imported: ZeroDivisionError"),
        ("own_lacking:f", "needs 'not_installed_anywhere'"),
    ],
)
def test_a_function_that_is_not_there_is_refused(module, name, message):
    with pytest.raises(InputError, match=message):
        module(name)
