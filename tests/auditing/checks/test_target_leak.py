import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.target_leak import check
from aboveboard.auditing.subject import make_subject

N = 2000


def findings(X, y, **options):
    options = {"predictions": np.full(len(y), 0.5), "prediction_type": "score"} | options
    return {f.id: f for f in check(make_subject(None, X, y, **options), random_state=0, effort="quick")}


def honest(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.choice(list("uvw"), N), "id": [f"i{k}" for k in range(N)]})
    y = (X["a"] + rng.normal(size=N) > 0).astype(int).to_numpy()
    return X, y, rng


def test_honest_columns_raise_no_alarm():
    X, y, _ = honest()
    found = findings(X, y)
    assert set(found) == {"target_leak/columns"}
    assert found["target_leak/columns"].severity == "ok"
    assert "'a'" in found["target_leak/columns"].statement


def test_noise_raises_no_alarm():
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
        X["c"] = rng.integers(0, 150, 200).astype(str)
        X.loc[rng.random(200) < 0.5, "a"] = np.nan
        assert set(findings(X, rng.integers(0, 2, 200))) == {"target_leak/columns"}


@pytest.mark.parametrize(
    "leak",
    [
        lambda y, rng: y * 100.0 + rng.normal(size=N),
        lambda y, rng: np.where(y == 1, "closed", "open"),
        lambda y, rng: pd.Series(
            pd.Timestamp("2021-01-01") + pd.to_timedelta(y * 30 + rng.integers(0, 9, N), unit="D")
        ),
        lambda y, rng: y == 0,
        lambda y, rng: [f"case {2 * k + v}" for k, v in zip(rng.integers(0, 40, N), y, strict=True)],
    ],
    ids=["number", "text", "date", "boolean", "many levels"],
)
def test_a_column_that_knows_the_target_fails(leak):
    X, y, rng = honest()
    found = findings(X.assign(leak=leak(y, rng)), y)
    assert found["target_leak/leak"].severity == "fail"
    assert found["target_leak/leak"].value > 0.99
    assert len(found) == 1


def test_two_columns_that_know_the_target_do_not_hide_each_other():
    X, y, _ = honest()
    found = findings(X.assign(one=y, two=1 - y), y)
    assert found["target_leak/one"].severity == found["target_leak/two"].severity == "fail"


def test_an_easy_task_where_all_columns_are_good_does_not_fail():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = pd.DataFrame({name: y * 3.6 + rng.normal(size=N) for name in "abc"})
    X["d"] = y * 3 + rng.normal(size=N)
    found = findings(X, y)
    assert any(finding.severity == "warn" for finding in found.values())
    assert not any(finding.severity == "fail" for finding in found.values())


def test_too_few_rows_to_be_sure_are_said_to_be():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    found = findings(pd.DataFrame({"leak": y, "x": rng.normal(size=30)}), y)
    assert found["target_leak/leak"].status == "inconclusive"


def test_missingness_that_knows_the_target_is_found():
    X, y, rng = honest()
    X["late"] = np.where((y == 1) ^ (rng.random(N) < 0.05), rng.normal(size=N), np.nan)
    found = findings(X, y)
    assert found["target_leak/late/missing"].severity == "warn"
    assert found["target_leak/late/missing"].value > 0.9


def test_sorted_rows_and_telling_ids_are_noted():
    X, y, rng = honest()
    order = np.argsort(y, kind="stable")
    found = findings(X.iloc[order].reset_index(drop=True), y[order], ids=np.arange(N))
    assert found["target_leak/row_order"].severity == "note"
    assert found["target_leak/ids"].severity == "note"
    mixed = findings(X, y, ids=rng.permutation(N))
    assert "target_leak/row_order" not in mixed
    assert "target_leak/ids" not in mixed


def test_a_copy_of_a_number_fails_and_a_good_predictor_does_not():
    rng = np.random.default_rng(0)
    a = rng.normal(size=N)
    y = np.exp(a) + rng.normal(size=N) * 0.5
    X = pd.DataFrame({"a": a, "b": rng.normal(size=N)})
    options = {"predictions": y, "prediction_type": None, "task": "regression"}
    assert findings(X, y, **options)["target_leak/columns"].severity == "ok"
    assert findings(X.assign(euro=y * 1.1 - 3), y, **options)["target_leak/euro"].severity == "fail"


def test_several_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(["r", "g", "b"], N)
    X = pd.DataFrame({"a": rng.normal(size=N), "leak": pd.Series(y).map({"r": 3, "g": 1, "b": 2})})
    found = findings(X, y, predictions=y, prediction_type="label")
    assert found["target_leak/leak"].severity == "fail"
