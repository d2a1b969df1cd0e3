import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.shared_rows import check
from aboveboard.auditing.subject import make_subject


def finding_of(test, train, **options):
    rng = np.random.default_rng(0)
    y, y_train = rng.integers(0, 2, len(test)), rng.integers(0, 2, len(train))
    y[:2] = [0, 1]
    subject = make_subject(
        None, test, y, predictions=np.full(len(test), 0.5), prediction_type="score", train=(train, y_train), **options
    )
    (finding,) = check(subject, random_state=0, effort="standard")
    return finding


def rich(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n), "k": rng.integers(0, 9, n), "c": rng.choice(["u", "v", None], n)})


def test_fresh_rows_share_nothing():
    finding = finding_of(rich(500, 0), rich(900, 1))
    assert (finding.severity, finding.value) == ("ok", 0)


@pytest.mark.parametrize(("shared", "severity"), [(100, "fail"), (15, "warn"), (3, "ok")])
def test_planted_rows_are_counted(shared, severity):
    test, train = rich(500, 0), rich(900, 1)
    test.iloc[:shared] = train.iloc[100 : 100 + shared].to_numpy()
    finding = finding_of(test, train)
    assert finding.severity == severity
    assert finding.value == (None if shared < 10 else shared / 500)
    assert ("fewer than 10" in finding.statement.lower()) == (shared < 10)


def test_rows_are_the_same_in_another_container():
    train = rich(400, 0)
    test = train.copy()
    test["k"] = test["k"].astype("float64")
    test["c"] = test["c"].astype("category")
    assert finding_of(test, train).value == 1
    assert finding_of(train.convert_dtypes(dtype_backend="pyarrow"), train).value == 1
    assert finding_of(train.astype({"x": "float32"}), train).value == 1


def test_rows_of_few_values_that_agree_by_chance_raise_no_alarm():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(100):
        rows = pd.DataFrame(rng.integers(0, 3, (1500, 6)), columns=list("abcdef"))
        finding = finding_of(rows.iloc[:500].reset_index(drop=True), rows.iloc[500:].reset_index(drop=True))
        alarms += finding.severity != "ok"
        assert "chance" in finding.statement
    assert alarms <= 5


def test_an_excess_over_chance_is_found():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 4, (6000, 6)), columns=list("abcdef"))
    test, train = rows.iloc[:1000].reset_index(drop=True), rows.iloc[1000:1500].reset_index(drop=True)
    test.iloc[:400] = train.iloc[:400].to_numpy()
    assert finding_of(test, train).severity == "fail"


def test_the_share_with_the_same_target_is_told():
    train = rich(400, 0)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    subject = make_subject(
        None,
        train,
        y,
        predictions=np.full(400, 0.5),
        prediction_type="score",
        train=(train, np.where(np.arange(400) < 100, y, 1 - y)),
    )
    (finding,) = check(subject, random_state=0, effort="standard")
    shares = dict(finding.tables[0].rows)
    assert shares["the same, with the same target"] == 0.25
