import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

pytest.importorskip("numba")
import aboveboard
from aboveboard.auditing.checks import forgetting
from aboveboard.auditing.subject import make_subject
from aboveboard.unlearning import DynFrsClassifier, UnlearningPipeline


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "gap": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "town": rng.choice(["x", "y", "z"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "own": rng.random(n) < 0.5,
        }
    )
    return X, (X["a"] + (X["town"] == "x") + 0.3 * rng.normal(size=n) > 0.4).astype(int)


def finding_of(model, test, train, effort="quick", **options):
    subject = make_subject(model, *test, train=train, **options)
    (finding,) = forgetting.check(subject, random_state=0, effort=effort)
    return finding


@pytest.fixture(scope="module")
def data():
    return rows(1500, 1), rows(500, 2)


def test_a_model_that_must_be_refitted_is_compared_with_one_that_forgets(data):
    train, test = data
    model = RandomForestClassifier(50, random_state=0).fit(train[0][["a", "own"]], train[1])
    finding = finding_of(model, (test[0][["a", "own"]], test[1]), (train[0][["a", "own"]], train[1]))
    assert finding.severity == "note"
    assert "fitted again on the 1,499 training rows left" in finding.statement
    assert finding.remedies == ("DynFrsClassifier",)
    (table,) = finding.tables
    theirs = (model.predict(test[0][["a", "own"]]) == test[1]).mean()
    assert table.rows[0][1:] == (1499, pytest.approx(theirs))
    assert 0 < table.rows[1][1] < 1499
    assert table.rows[1][2] > 0.75
    assert finding.interval.low <= finding.value <= finding.interval.high
    assert finding.value == pytest.approx(table.rows[1][2] - theirs)


def test_words_gaps_dates_and_truth_values_are_read(data):
    train, test = data
    says = finding_of(lambda X: np.full(len(X), 0.5), test, train)
    assert "Nothing shows how to take a row out" in says.statement
    assert says.tables[0].rows[1][2] > 0.8


def test_the_accuracies_are_weighted(data):
    train, test = data
    model = RandomForestClassifier(20, random_state=0).fit(train[0][["a"]], train[1])
    weight = np.where(test[1] == 1, 5.0, 1.0)
    finding = finding_of(model, (test[0][["a"]], test[1]), (train[0][["a"]], train[1]), sample_weight=weight)
    right = model.predict(test[0][["a"]]) == test[1]
    assert finding.tables[0].rows[0][2] == pytest.approx(np.average(right, weights=weight))


def test_a_regression_is_compared_by_r2():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
    y = 2 * X["a"] + X["b"] + 0.1 * rng.normal(size=900)
    model = LinearRegression().fit(X[:600], y[:600])
    finding = finding_of(model, (X[600:], y[600:]), (X[:600], y[:600]))
    assert finding.tables[0].rows[0][2] == pytest.approx(model.score(X[600:], y[600:]))
    assert "loses more than 0.01 in R2" in finding.reason
    assert finding.remedies == ()


def test_a_forest_that_forgets_is_checked_and_one_that_was_tampered_with_is_found_out(data):
    (X, y), (X_test, y_test) = data
    columns = ["a", "own"]
    model = DynFrsClassifier(10, random_state=0).fit(X[columns], y).remove(3)
    test = (X_test[columns], y_test)
    assert finding_of(model, test, (X[columns], y)).severity == "ok"
    pipeline = UnlearningPipeline([("scale", StandardScaler()), ("forest", DynFrsClassifier(10, random_state=0))])
    assert finding_of(pipeline.fit(X[columns], y), test, (X[columns], y)).severity == "ok"
    model.resolve()
    tree = model.forest_.trees[0]
    tree.threshold[np.flatnonzero(tree.child >= 0)[0]] += 1.0
    finding = finding_of(model, test, (X[columns], y))
    assert finding.severity == "fail"
    assert "differ" in finding.statement


def test_too_few_rows_are_not_compared(data):
    train, test = data
    few = (train[0][["a"]][:30], train[1][:30])
    model = RandomForestClassifier(5, random_state=0).fit(*few)
    finding = finding_of(model, (test[0][["a"]][:30], test[1][:30]), few)
    assert "Too few rows" in finding.reason
    assert finding.tables == ()


def test_without_numba_the_extra_is_named(data, monkeypatch):
    train, test = data
    monkeypatch.setattr(forgetting, "find_spec", lambda _: None)
    finding = finding_of(lambda X: np.full(len(X), 0.5), test, train)
    assert "aboveboard[fast]" in finding.reason
    assert finding.severity == "note"


def test_the_audit_says_it_when_model_and_training_data_are_given_and_twice_the_same(data):
    train, test = data
    model = RandomForestClassifier(10, random_state=0).fit(train[0][["a"]], train[1])
    one, two = (
        aboveboard.audit(
            model, test[0][["a"]], test[1], train=(train[0][["a"]], train[1]), only="unlearning", effort="quick"
        ).to_dict()
        for _ in range(2)
    )
    assert one["findings"] == two["findings"]
    assert [finding["id"] for finding in one["findings"]] == ["forgetting/erasure"]
