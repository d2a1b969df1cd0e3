import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import aboveboard
from aboveboard._model_host.loaders.boosters import load_lightgbm, load_xgboost
from aboveboard.auditing.models.formats import order_for
from aboveboard.core.errors import InputError, ModelError

xgboost = pytest.importorskip("xgboost")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # LightGBM looks for Dask, which may warn of its own future
    lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

BINARY = load_breast_cancer(return_X_y=True, as_frame=True)
MANY = load_iris(return_X_y=True, as_frame=True)
NUMBERS = load_diabetes(return_X_y=True, as_frame=True)


def read(path):
    order = order_for(str(path), trust=None, trust_types=(), trust_pickle=False)
    load = {"xgboost": load_xgboost, "lightgbm": load_lightgbm}[order.format]
    return load(order.to_dict())


def with_words(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=n), "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n))})
    return X, ((X["size"] > 0) ^ (X["colour"] == "red")).astype(int)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize(("X", "y"), [BINARY, MANY], ids=["binary", "multiclass"])
def test_xgboost_gives_the_probabilities_of_the_classifier_that_saved_it(tmp_path, suffix, X, y):
    model = xgboost.XGBClassifier(n_estimators=8).fit(X, y)
    model.save_model(tmp_path / f"m{suffix}")
    loaded = read(tmp_path / f"m{suffix}")
    assert loaded.feature_names == list(X.columns)
    assert list(loaded.classes) == list(model.classes_)
    np.testing.assert_allclose(loaded.questions["predict_proba"](X), model.predict_proba(X), atol=1e-6)
    assert (loaded.questions["predict"](X) == model.predict(X)).all()


@pytest.mark.parametrize(("X", "y"), [BINARY, MANY], ids=["binary", "multiclass"])
def test_lightgbm_gives_the_probabilities_of_the_classifier_that_saved_it(tmp_path, X, y):
    X = X.rename(columns=lambda name: name.replace(" ", "_"))
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)
    model.booster_.save_model(tmp_path / "m.txt")
    loaded = read(tmp_path / "m.txt")
    assert loaded.feature_names == list(X.columns)
    np.testing.assert_allclose(loaded.questions["predict_proba"](X), model.predict_proba(X), atol=1e-9)
    assert (loaded.questions["predict"](X) == model.predict(X)).all()


def test_regressions_say_that_they_are(tmp_path):
    X, y = NUMBERS
    first = xgboost.XGBRegressor(n_estimators=8).fit(X, y)
    first.save_model(tmp_path / "m.json")
    second = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1).fit(X, y)
    second.booster_.save_model(tmp_path / "m.txt")
    for name, model in (("m.json", first), ("m.txt", second)):
        loaded = read(tmp_path / name)
        assert loaded.regressor
        assert loaded.classes is None
        np.testing.assert_allclose(loaded.questions["predict"](X), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("binary:logitraw", lambda b, d: 1 / (1 + np.exp(-b.predict(d, output_margin=True)))),
        ("binary:logistic", lambda b, d: b.predict(d)),
    ],
)
def test_log_odds_become_probabilities(tmp_path, objective, expected):
    X, y = BINARY
    data = xgboost.DMatrix(X, y)
    booster = xgboost.train({"objective": objective}, data, 5)
    booster.save_model(tmp_path / "m.json")
    asked = read(tmp_path / "m.json").questions["predict_proba"](X)
    np.testing.assert_allclose(asked[:, 1], expected(booster, data), atol=1e-6)


def test_softmax_keeps_its_probabilities_and_hinge_has_none(tmp_path):
    X, y = MANY
    data = xgboost.DMatrix(X, y)
    params = {"num_class": 3, "base_score": 0.5}
    labels = xgboost.train(params | {"objective": "multi:softmax"}, data, 5)
    shares = xgboost.train(params | {"objective": "multi:softprob"}, data, 5)
    labels.save_model(tmp_path / "m.json")
    loaded = read(tmp_path / "m.json")
    np.testing.assert_allclose(loaded.questions["predict_proba"](X), shares.predict(data), atol=1e-6)
    assert (loaded.questions["predict"](X) == labels.predict(data)).all()
    X, y = BINARY
    xgboost.train({"objective": "binary:hinge"}, xgboost.DMatrix(X, y), 5).save_model(tmp_path / "m.json")
    assert list(read(tmp_path / "m.json").questions) == ["predict"]


def test_training_that_stopped_early_answers_with_its_best_round(tmp_path):
    X, y = BINARY
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.3, 1 - y, y)
    model = xgboost.XGBClassifier(n_estimators=60, learning_rate=1.0, early_stopping_rounds=5)
    model.fit(X[:300], noisy[:300], eval_set=[(X[300:], noisy[300:])], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    model.save_model(tmp_path / "m.ubj")
    asked = read(tmp_path / "m.ubj").questions["predict_proba"](X)
    np.testing.assert_allclose(asked, model.predict_proba(X), atol=1e-6)


def test_models_of_arrays_know_the_number_of_their_columns_only(tmp_path):
    X, y = BINARY
    xgboost.XGBClassifier(n_estimators=2).fit(X.to_numpy(), y).save_model(tmp_path / "m.json")
    lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(X.to_numpy(), y).booster_.save_model(tmp_path / "m.txt")
    for name in ("m.json", "m.txt"):
        loaded = read(tmp_path / name)
        assert (loaded.feature_names, loaded.n_features) == (None, 30)
        assert loaded.questions["predict_proba"](X.to_numpy()).shape == (569, 2)


def test_lightgbm_codes_categories_as_in_training_however_they_come(tmp_path):
    X, y = with_words()
    X.insert(0, "whole", pd.Categorical(np.random.default_rng(1).choice([3, 7], len(X))))
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)
    model.booster_.save_model(tmp_path / "m.txt")
    ask = read(tmp_path / "m.txt").questions["predict_proba"]
    expected = model.predict_proba(X)
    forms = [
        X,
        X.assign(colour=X["colour"].astype(str)),
        X.assign(colour=X["colour"].cat.set_categories(["zebra", "blue", "green", "red"])),
        X.assign(whole=X["whole"].astype("int64")),
    ]
    for form in forms:
        np.testing.assert_allclose(ask(form), expected)
    unseen = X.assign(colour=X["colour"].astype(str).replace("red", "mauve"))
    np.testing.assert_allclose(ask(unseen), model.predict_proba(X.assign(colour=X["colour"].replace("red", np.nan))))


def test_xgboost_codes_categories_as_in_training_or_is_refused_where_the_file_does_not_tell(tmp_path):
    X, y = with_words()
    model = xgboost.XGBClassifier(n_estimators=8, enable_categorical=True, tree_method="hist").fit(X, y)
    model.save_model(tmp_path / "m.json")
    if not hasattr(model.get_booster(), "get_categories"):  # before 3.1 the file holds no categories
        with pytest.raises(InputError, match=r"columns of categories \('colour'\)"):
            read(tmp_path / "m.json")
        return
    ask = read(tmp_path / "m.json").questions["predict_proba"]
    other_order = X["colour"].cat.reorder_categories(["red", "green", "blue"])
    for form in (X, X.assign(colour=X["colour"].astype(str)), X.assign(colour=other_order)):
        np.testing.assert_allclose(ask(form), model.predict_proba(X), atol=1e-6)


def test_rankers_are_refused(tmp_path):
    X, y = BINARY
    xgboost.XGBRanker(n_estimators=2).fit(X, y, qid=np.arange(len(y)) // 20).save_model(tmp_path / "m.json")
    with pytest.raises(InputError, match="objective 'rank:"):
        read(tmp_path / "m.json")
    lightgbm.LGBMRanker(n_estimators=2, verbose=-1).fit(X, y, group=[569]).booster_.save_model(tmp_path / "m.txt")
    with pytest.raises(InputError, match="objective 'lambdarank'"):
        read(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.json", b'{"learner": 1}', "cannot be read as a model of XGBoost"),
        ("m.json", b'{"a": []}', "cannot be read as a model of XGBoost"),
        ("m.json", b"[1, 2]", "no model of XGBoost"),
        ("m.ubj", b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner", "cannot be read as a model of XGBoost"),
        ("m.txt", b"just some text", "no model of XGBoost"),
        ("m.txt", b"tree\nversion=v4\n", "cannot be read as a model of LightGBM"),
        ("m.model", b"binf\x00\x00", "old binary format"),
        ("m.txt", b"", "is empty"),
    ],
)
def test_a_file_that_is_no_such_model_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_an_audit_of_a_model_file_finds_what_the_audit_of_its_classifier_does(tmp_path):
    X, y = BINARY
    X = X.rename(columns=lambda name: name.replace(" ", "_")).iloc[:, :6]
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(X[:300], y[:300])
    model.booster_.save_model(tmp_path / "m.txt")
    options = {"train": (X[:300], y[:300]), "effort": "quick", "only": ["performance", "model"]}
    with aboveboard.open_model(tmp_path / "m.txt") as hosted:
        theirs = aboveboard.audit(hosted, X[300:], y[300:], **options)
    ours = aboveboard.audit(model, X[300:], y[300:], **options)
    if not hasattr(model, "feature_names_in_"):  # the file knows its columns where an older classifier did not
        options["skip"] = "model_inputs"
    found = [[f.to_dict() for f in r.findings if f.check not in options.get("skip", ())] for r in (theirs, ours)]
    assert found[0] == found[1]
    assert theirs.subject["model"] == "LightGBM binary"
    assert list(theirs.subject["model_source"]["versions"]) == ["lightgbm"]


def test_labels_that_the_user_names_stand_for_the_codes(tmp_path):
    X, y = BINARY
    model = xgboost.XGBClassifier(n_estimators=4).fit(X, y)
    model.save_model(tmp_path / "m.json")
    words = np.array(["malign", "benign"])[y]
    with aboveboard.open_model(tmp_path / "m.json", classes=["malign", "benign"]) as named:
        assert (named.predict(X) == np.array(["malign", "benign"])[model.predict(X)]).all()
        report = aboveboard.audit(named, X, words, only="performance", effort="quick")
    assert report.subject["classes"] == ["malign", "benign"]
    with aboveboard.open_model(tmp_path / "m.json") as coded, pytest.raises(InputError, match=r"classes=\[\.\.\.\]"):
        aboveboard.audit(coded, X, words)
    with pytest.raises(InputError, match="are the same"):
        aboveboard.open_model(tmp_path / "m.json", classes=["a", "a"])


def test_columns_of_text_that_the_model_does_not_know_are_an_error_of_the_model(tmp_path):
    X, y = BINARY
    xgboost.XGBClassifier(n_estimators=2).fit(X, y).save_model(tmp_path / "m.json")
    with aboveboard.open_model(tmp_path / "m.json") as model, pytest.raises(ModelError, match="raised ValueError"):
        model.predict(X.astype(str))
