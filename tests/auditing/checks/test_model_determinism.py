import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from aboveboard.auditing.checks.model_determinism import check
from aboveboard.auditing.subject import make_subject

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = (X["a"] + RNG.normal(size=N) > 0).astype(int).to_numpy()


def findings(model, y=Y):
    return {f.id.partition("/")[2]: f for f in check(make_subject(model, X, y), random_state=0, effort="quick")}


def sigmoid(z):
    return 1 / (1 + np.exp(-np.asarray(z, dtype=float)))


@pytest.mark.parametrize(
    "model", [LogisticRegression().fit(X, Y), HistGradientBoostingClassifier(max_iter=5).fit(X, Y)]
)
def test_ordinary_models_are_deterministic(model):
    found = findings(model)
    assert set(found) == {"repeat", "order", "batches", "single"}
    assert {finding.severity for finding in found.values()} == {"ok"}


def test_a_regressor_is_deterministic():
    assert {f.severity for f in findings(LinearRegression().fit(X, X["a"] * 1e6), X["a"] * 1e6).values()} == {"ok"}


def test_a_model_that_draws_lots_fails_everywhere():
    rng = np.random.default_rng(1)
    found = findings(lambda frame: sigmoid(frame["a"] + rng.normal(size=len(frame))))
    assert {finding.severity for finding in found.values()} == {"fail"}


def test_a_model_that_looks_at_its_neighbours_fails_in_batches_only():
    def model(frame):
        return sigmoid(frame["a"] - frame["a"].mean())

    found = findings(model)
    assert {key: finding.severity for key, finding in found.items()} == {
        "repeat": "ok",
        "order": "ok",
        "batches": "fail",
        "single": "fail",
    }


def test_a_model_that_looks_at_the_position_fails_in_another_order():
    found = findings(lambda frame: sigmoid(frame["a"] + np.arange(len(frame)) % 2))
    assert found["repeat"].severity == "ok"
    assert found["order"].severity == "fail"


def test_rounding_is_noted_and_small_changes_without_a_new_label_are_warned_of():
    state = {"calls": 0}

    def shaky(size):
        def model(frame):
            state["calls"] += 1
            return np.where(frame["a"] > 0, 0.8, 0.2) + size * state["calls"]

        return model

    assert findings(shaky(1e-7))["repeat"].severity == "note"
    assert findings(shaky(1e-4))["repeat"].severity == "warn"
    assert findings(shaky(1e-13))["repeat"].severity == "ok"


def test_a_model_that_fails_on_a_single_row_is_told_by_the_type_of_its_error():
    def model(frame):
        if len(frame) == 1:
            raise KeyError("secret value 42")
        return sigmoid(frame["a"])

    finding = findings(model)["single"]
    assert finding.severity == "fail"
    assert "KeyError" in finding.statement
    assert "secret" not in finding.statement + finding.reason
