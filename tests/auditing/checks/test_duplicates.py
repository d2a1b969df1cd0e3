import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from aboveboard.auditing.checks.duplicates import check
from aboveboard.auditing.subject import make_subject


def findings(X, y=None, **options):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(len(X)) % 2) if y is None else y
    options = {"predictions": np.full(len(X), 0.5), "prediction_type": "score"} | options
    return {f.id: f for f in check(make_subject(None, X, y, **options), random_state=0, effort="standard")}


def rich(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice(["u", "v", None], n)})


def test_rows_that_all_differ_are_fine():
    found = findings(rich(), ids=np.arange(1000))
    assert {f.severity for f in found.values()} == {"ok"}
    assert {f.value for f in found.values()} == {0}


def test_planted_repeats_warn_and_are_counted_as_pandas_does():
    X = rich()
    X.iloc[500:560] = X.iloc[:60].to_numpy()
    X.iloc[560:570] = X.iloc[:10].to_numpy()
    finding = findings(X)["duplicates/rows"]
    assert finding.severity == "warn"
    assert finding.value == X.duplicated().mean() == 0.07
    counts = {row[0]: row[1] for row in finding.tables[0].rows}
    assert counts == {"twice": 100, "three times": 30, "four times or more": 0}


def test_repeats_of_few_values_are_noted_and_not_warned_of():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (900, 4)), columns=list("abcd"))
    found = findings(X)
    assert found["duplicates/rows"].severity == "note"
    assert found["duplicates/rows"].value == X.duplicated().mean()
    assert found["duplicates/labels"].severity == "note"


def test_the_best_possible_accuracy_is_that_of_a_full_tree():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (900, 4)), columns=list("abcd"))
    y = rng.integers(0, 2, 900)
    best = DecisionTreeClassifier(random_state=0).fit(X, y).score(X, y)
    finding = findings(X, y)["duplicates/labels"]
    assert f"{100 * best:.2f} %" in finding.statement
    clash = pd.Series(y).groupby([X[c] for c in X]).transform("nunique") > 1
    assert finding.value == pytest.approx(clash.mean())


def test_conflicting_targets_of_rows_that_agree_beyond_chance_warn():
    X = rich()
    X.iloc[500:600] = X.iloc[:100].to_numpy()
    y = np.arange(1000) % 2
    y[500:600] = 1 - y[:100]
    finding = findings(X, y)["duplicates/labels"]
    assert (finding.severity, finding.value) == ("warn", 0.2)
    y[500:600] = y[:100]
    assert findings(X, y)["duplicates/labels"].value == 0


def test_few_repeats_are_not_counted_aloud():
    X = rich()
    X.iloc[0] = X.iloc[1]
    finding = findings(X)["duplicates/rows"]
    assert finding.value is None
    assert finding.statement.startswith("Fewer than 10 rows")
    assert finding.evidence == ()


def test_repeated_ids_warn_unless_clusters_are_named():
    ids = np.arange(1000)
    ids[:100] = 5
    assert findings(rich(), ids=ids)["duplicates/ids"].severity == "warn"
    assert findings(rich(), ids=ids)["duplicates/ids"].value == 0.1
    assert findings(rich(), ids=ids, clusters=ids)["duplicates/ids"].severity == "note"
    gaps = pd.Series(ids).where(ids > 50).astype("Int64")
    assert "have no id" in findings(rich(), ids=gaps)["duplicates/ids"].statement
