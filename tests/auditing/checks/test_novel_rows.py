"""Novel rows: the promise of the p-values, its level by simulation, what is flagged, and what is told."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

import aboveboard
from aboveboard._stats.intervals import newcombe
from aboveboard.auditing.checks import novel_rows
from aboveboard.auditing.subject import make_subject


def rows(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 3)) + shift, columns=list("abc"))
    frame["town"] = rng.choice(["x", "y", "z"], n)
    frame["g"] = rng.choice(["m", "f"], n)
    frame["y"] = (frame["a"] - shift + rng.standard_normal(n) > 0).astype(int)
    frame["p"] = 1 / (1 + np.exp(-2 * (frame["a"] - shift)))
    return frame


def check(new, train=None, effort="standard", seed=0, **more):
    train = rows(3000, seed=99) if train is None else train
    options = {"predictions": "p", "prediction_type": "score", "sensitive_features": ["g"]} | more
    subject = make_subject(None, new, "y", train=train, **options)
    found = novel_rows.check(subject, random_state=seed, effort=effort)
    return {f.id.partition("/")[2]: f for f in found}


def test_p_values_are_the_share_that_is_as_large():
    calibration = np.array([1.0, 2.0, 2.0, 3.0])
    assert novel_rows.conformal_p_values(calibration, np.array([0.0, 2.0, 3.0, 4.0])).tolist() == [1.0, 0.8, 0.4, 0.2]


def test_rows_of_the_same_source_are_flagged_as_often_as_promised():
    found = check(rows(4000))["share"]
    assert (found.severity, found.status) == ("ok", "ran")
    assert abs(found.value) < 0.02


def test_rows_from_elsewhere_are_a_warning():
    new = rows(2000)
    new.loc[:599, ["a", "b"]] += 8
    found = check(new)["share"]
    assert (found.severity, found.status) == ("warn", "ran")
    assert found.value == pytest.approx(0.3, abs=0.02)
    assert "There the model is right in" in found.statement
    (table,) = found.tables
    assert [row[1] for row in table.rows] == [round((found.value + 75 / 1501) * 2000), 2000 - table.rows[0][1]]


@pytest.mark.parametrize("change", ["word", "missing", "infinite"])
def test_unheard_words_and_gaps_are_novel(change):
    train = rows(3000, seed=99)
    new = rows(1000)
    some = np.arange(1000) < 300
    if change == "word":
        train["town"] = "x"
        new["town"] = np.where(some, "elsewhere", "x")
        train[["a", "b", "c"]] /= 20
        new[["a", "b", "c"]] /= 20
        train[["a", "b", "c"]] = train[["a", "b", "c"]].round()
        new[["a", "b", "c"]] = new[["a", "b", "c"]].round()
    else:
        new.loc[some, "a"] = np.nan if change == "missing" else np.inf
        new.loc[some, "b"] = np.nan if change == "missing" else -np.inf
    assert check(new, train)["share"].value > 0.2


def test_a_group_that_the_training_data_do_not_describe_is_named():
    new = rows(3000)
    new.loc[(new["g"] == "f") & (np.arange(3000) % 2 == 0), ["a", "b"]] += 8
    found = check(new)["g"]
    assert (found.severity, found.group) == ("warn", "g=f")


def test_few_training_rows_or_no_common_column_are_inconclusive():
    assert check(rows(500), rows(150, seed=99))["share"].status == "inconclusive"
    new = rows(500)[["a", "y", "p", "g"]]
    train = rows(500, seed=99)[["a", "y"]].astype({"a": str})
    subject = make_subject(None, new, "y", train=train, predictions="p", prediction_type="score", drop=["g"])
    (found,) = novel_rows.check(subject, random_state=0, effort="quick")
    assert "same kind" in found.reason


def test_fewer_flagged_rows_than_the_smallest_cell_are_not_told():
    found = check(rows(100))["share"]
    assert (found.value, found.tables) == (None, ())
    assert "Fewer than 10 rows" in found.statement


def test_numbers_are_judged_by_their_errors():
    new, train = rows(1500), rows(3000, seed=99)
    for frame in (new, train):
        frame["y"] = frame["a"] * 1.5
    found = check(new, train, task="regression", prediction_type=None)["share"]
    assert [column.name for column in found.tables[0].columns] == ["rows", "n", "mean absolute error"]
    assert "right in" not in found.statement


def test_it_needs_the_training_data():
    frame = rows(300)
    report = aboveboard.audit(None, frame, "y", predictions="p", prediction_type="score", only="novel_rows")
    (silent,) = report.not_run
    assert "training data" in silent.reason


def test_every_effort_and_seed_gives_the_same_again():
    new = rows(800)
    for effort in ("quick", "standard", "full"):
        assert check(new, effort=effort)["share"] == check(new, effort=effort)["share"]


def test_hostile_names_pass(hostile_name):
    new, train = rows(400), rows(400, seed=99)
    for frame in (new, train):
        frame["town"] = pd.Series([hostile_name, "x"] * 200, dtype=object)
    new["g"] = pd.Series([hostile_name, "f"] * 200, dtype=object)
    for finding in check(new, train, effort="quick").values():
        json.dumps(finding.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("n", "m"), [(200, 500), (2000, 5000), (50_000, 5000)])
def test_the_level_holds_where_nothing_differs(n, m):
    """How many of n rows exceed the j-th largest of m others is beta-binomial, whatever the distribution: the interval
    holds zero in 95 % of 20,000 draws (acceptance region: 3.1 standard errors), on either side in 97 %.
    """
    j = int(np.floor(0.05 * (m + 1)))
    count = betabinom.rvs(n, j, m + 1 - j, size=20_000, random_state=0)
    low, high = newcombe(count / n, n, np.full(20_000, j / (m + 1)), m)
    error = 3.1 * np.sqrt(0.05 * 0.95 / 20_000)
    assert np.mean((low <= 0) & (high >= 0)) >= 0.95 - error - 0.005
    assert np.mean(low > 0) <= 0.03 + error


@pytest.mark.slow
def test_the_whole_check_keeps_the_level_on_tables_of_one_source():
    """2,000 tables: the interval of the excess holds zero in 95 % of them, up to 3.1 standard errors."""
    held = 0
    for seed in range(2000):
        found = check(rows(600, seed=2 * seed), rows(1000, seed=2 * seed + 1), effort="quick", seed=seed)["share"]
        held += found.interval is not None and found.interval.low <= 0 <= found.interval.high
    assert held / 2000 >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / 2000) - 0.005
