import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aboveboard.auditing.checks.group_missingness import check
from aboveboard.auditing.subject import make_subject


def findings(X, groups, **options):
    y = np.arange(len(X)) % 2
    subject = make_subject(
        None, X, y, predictions=np.full(len(X), 0.5), prediction_type="score", sensitive_features=groups, **options
    )
    return {finding.id: finding for finding in check(subject, random_state=0, effort="standard")}


def people(n=4000, shares=(0.1, 0.1), columns=3, seed=0, weights=(0.5, 0.5)):
    rng = np.random.default_rng(seed)
    names = list("abcdefgh"[: len(shares)])
    groups = pd.Series(rng.choice(names, n, p=weights), name="g")
    rate = groups.map(dict(zip(names, shares, strict=True))).to_numpy()
    X = pd.DataFrame({f"x{j}": np.where(rng.random(n) < rate, np.nan, rng.normal(size=n)) for j in range(columns)})
    return X.assign(full=1.0), groups


def test_values_missing_alike_are_fine():
    found = findings(*people(20_000))
    assert (found["group_missingness/g"].severity, found["group_missingness/g"].status) == ("ok", "ran")


def test_values_missing_for_one_group_are_found():
    X, groups = people(shares=(0.05, 0.25))
    finding = findings(X, groups)["group_missingness/g"]
    assert finding.severity == "warn"
    mask = X.isna().to_numpy()[:, :3]
    rates = mask[groups == "a"].mean(axis=0) - mask[groups == "b"].mean(axis=0)
    assert finding.value == pytest.approx(rates[np.argmax(np.abs(rates))])
    assert finding.interval.simultaneous
    assert {row[0] for row in finding.tables[0].rows} == {"x0", "x1", "x2"}


def test_few_rows_give_no_verdict():
    assert findings(*people(80))["group_missingness/g"].status == "inconclusive"


def test_no_missing_values_are_said_to_be_none():
    X, groups = people()
    assert "no feature has missing values" in findings(X[["full"]], groups)["group_missingness/g"].statement


def test_intervals_are_newcombes_at_the_level_of_the_family():
    X, groups = people(500, columns=1)
    row = findings(X, groups)["group_missingness/g"].tables[0].rows[0]
    mask = X["x0"].isna().to_numpy()
    a, b = mask[groups == "a"], mask[groups == "b"]
    ci = [stats.binomtest(int(m.sum()), len(m)).proportion_ci(0.95, method="wilson") for m in (a, b)]
    low = a.mean() - b.mean() - np.hypot(a.mean() - ci[0].low, ci[1].high - b.mean())
    high = a.mean() - b.mean() + np.hypot(ci[0].high - a.mean(), b.mean() - ci[1].low)
    assert row[6] == pytest.approx((low, high))


@pytest.mark.parametrize("draws", [120, pytest.param(2000, marks=pytest.mark.slow)])
def test_equal_groups_are_hardly_ever_warned_of(draws):
    alarms = 0
    for seed in range(draws):
        X, groups = people(800, shares=(0.3,) * 4, columns=5, seed=seed, weights=(0.25,) * 4)
        alarms += findings(X, groups)["group_missingness/g"].severity != "ok"
    assert alarms <= 0.05 * draws


def test_small_groups_are_neither_compared_nor_shown():
    X, groups = people(2000, shares=(0.1, 0.1, 1.0), weights=(0.5, 0.497, 0.003))
    assert 0 < (groups == "c").sum() < 10
    finding = findings(X, groups)["group_missingness/g"]
    assert not any(row[1] == "c" for row in finding.tables[0].rows)
    assert finding.severity == "ok"


def test_a_reference_group_is_compared_with():
    X, groups = people(6000, shares=(0.1, 0.1, 0.4), weights=(0.4, 0.3, 0.3))
    finding = findings(X, groups, reference_group={"g": "b"})["group_missingness/g"]
    assert {row[1] for row in finding.tables[0].rows} == {"a", "c"}
    assert "in b" in finding.statement
    rates = X["x0"].isna().groupby(groups).mean()
    row = next(row for row in finding.tables[0].rows if row[:2] == ("x0", "c"))
    assert row[5] == pytest.approx(rates["c"] - rates["b"])


def test_rows_of_one_person_count_once():
    X, groups = people(400, shares=(0.05, 0.15))
    repeat = np.repeat(np.arange(400), 20)
    many = findings(X.iloc[repeat].reset_index(drop=True), groups.iloc[repeat].reset_index(drop=True))
    aware = findings(X.iloc[repeat].reset_index(drop=True), groups.iloc[repeat].reset_index(drop=True), clusters=repeat)
    assert many["group_missingness/g"].severity == "warn"
    assert aware["group_missingness/g"].status == "inconclusive"


def test_the_sensitive_column_itself_is_not_compared_with_its_own_missing_group():
    X, groups = people(2000)
    X["g"] = groups.where(np.arange(2000) % 5 > 0)
    finding = findings(X, ["g"])["group_missingness/g"]
    assert not any(row[0] == "g" for row in finding.tables[0].rows)
