import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

pytest.importorskip("numba")
from aboveboard.core import InputError
from aboveboard.unlearning import DynFrsClassifier, ErasureLog, RememberedWarning, UnlearningPipeline


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["Bern", "Oslo", "Rom"], 200), "age": rng.integers(18, 90, 200)})
    return X, (X["age"] > 50).astype(int)


def _encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]), (StandardScaler(), ["age"])
    )


def test_encoders_stay_as_they_were_fitted_and_what_they_remember_is_named(frame):
    X, y = frame
    model = UnlearningPipeline([("encode", _encoder()), ("forest", DynFrsClassifier(20, random_state=0))])
    model.fit(X, y, sample_id=np.arange(200) + 1000)
    assert "encode/onehotencoder: OneHotEncoder.categories_" in model.remembered_
    assert "encode/standardscaler: StandardScaler.mean_" in model.remembered_
    mean = model.named_steps["encode"].named_transformers_["standardscaler"].mean_.copy()
    with pytest.warns(RememberedWarning, match=r"StandardScaler\.mean_"):
        model.remove([1000, 1001])
    model.partial_fit(X[:1], y[:1], sample_id=[5])
    assert model.named_steps["encode"].named_transformers_["standardscaler"].mean_ == mean
    encoded = model.named_steps["encode"].transform(pd.concat([X[:1], X[2:]]))
    afresh = DynFrsClassifier(20, random_state=0).fit(encoded, np.r_[y[:1], y[2:]], sample_id=[5, *range(1002, 1200)])
    assert model.fingerprint() == afresh.fingerprint()
    assert any("OneHotEncoder.categories_" in line for line in model.certify().does_not_cover)
    assert model.certify().holds


def test_steps_that_learn_nothing_are_not_warned_of(frame, recwarn):
    X, y = frame
    steps = [
        ("age", FunctionTransformer(lambda table: table[["age"]].to_numpy())),
        ("norm", Normalizer()),
        ("forest", DynFrsClassifier(10, random_state=0)),
    ]
    model = UnlearningPipeline(steps).fit(X, y)
    model.remove(0)
    assert model.remembered_ == ()
    assert not [w for w in recwarn if issubclass(w.category, RememberedWarning)]


def test_a_last_step_that_cannot_forget_is_refused(frame):
    with pytest.raises(InputError, match="LogisticRegression, which cannot forget"):
        UnlearningPipeline([("encode", _encoder()), ("model", LogisticRegression())]).fit(*frame)


@pytest.mark.filterwarnings("ignore::aboveboard.unlearning.RememberedWarning")
def test_a_pipeline_can_be_erased_from_under_a_log(frame, tmp_path):
    X, y = frame
    model = UnlearningPipeline([("encode", _encoder()), ("forest", DynFrsClassifier(10, random_state=0))]).fit(X, y)
    with ErasureLog(tmp_path / "log.db", b"k" * 32) as log:
        assert log.erase(model, [3, 4]).n_left == 198
        log.admit(model, X[:2], y[:2], [700, 701])
        assert not log.matches(model)
        assert log.erase(model, 700).n_left == 199
        assert log.matches(model)
