import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aboveboard.auditing.checks.label_drift import check
from aboveboard.auditing.subject import make_subject
from aboveboard.data import load_acs_employment, load_adult


def findings(new, old, **options):
    subject = make_subject(None, new, "y", reference=old, **({"predictions": "p"} | options))
    return {f.id.removeprefix("label_drift/"): f for f in check(subject, random_state=0, effort="standard")}


def people(n, seed, rate=0.3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"g": rng.choice(["a", "b"], n), "y": (rng.random(n) < rate).astype(int), "p": rng.random(n)})


def test_a_base_rate_that_rose_is_found():
    new, old = people(3000, 0, 0.5), people(3000, 1)
    finding = findings(new, old)["base_rate"]
    assert finding.severity == "fail"
    assert finding.value == pytest.approx(new["y"].mean() - old["y"].mean())
    assert finding.interval.low < 0.2 < finding.interval.high
    assert finding.statement.startswith("The share of '1' went from")


def test_a_base_rate_that_changed_in_one_group_is_found():
    new, old = people(8000, 0), people(8000, 1)
    new.loc[new["g"] == "b", "y"] = (np.random.default_rng(2).random((new["g"] == "b").sum()) < 0.45).astype(int)
    finding = findings(new, old, sensitive_features=["g"])["base_rate/g"]
    assert finding.severity == "warn"
    assert finding.statement.startswith("g: for b,")


def test_classes_are_compared_by_their_shares_and_one_that_is_gone_has_its_share():
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"x": 1.0, "y": rng.choice(list("abcd"), 4000), "p": "a"})
    new = old.assign(y=rng.choice(list("abc"), 4000))
    finding = findings(new, old)["classes"]
    assert finding.interval.low < 0.25 < finding.interval.high
    rows = {row[0]: row[1:3] for row in finding.tables[0].rows}
    assert rows["(a class that is gone)"] == pytest.approx(((old["y"] == "d").mean(), 0.0))


def test_a_binary_target_with_a_third_label_then_is_compared_by_classes():
    old = people(3000, 1)
    old.loc[:299, "y"] = 2
    assert set(findings(people(3000, 0), old)) == {"classes"}


def test_numbers_are_compared_by_their_distribution():
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"x": 1.0, "y": rng.normal(size=3000), "p": rng.normal(size=3000)})
    new = old.assign(y=old["y"] * 2)
    finding = findings(new, old)["values"]
    assert finding.value == pytest.approx(stats.ks_2samp(new["y"], old["y"]).statistic)


def test_few_labels_tell_nothing():
    assert findings(people(3000, 0), people(12, 1))["base_rate"].status == "inconclusive"


def test_people_who_are_in_both_tables_are_compared_with_themselves():
    old = people(500, 1).assign(who=range(500))
    new = old.assign(y=old["y"].where(np.arange(500) >= 10, 1 - old["y"]))
    apart = findings(new.drop(columns="who"), old.drop(columns="who"))["base_rate"].interval
    together = findings(new, old, clusters="who")["base_rate"].interval
    assert together.high - together.low < 0.5 * (apart.high - apart.low)


def test_real_surveys_agree_with_a_twentieth_of_themselves():
    rng = np.random.default_rng(0)
    years = [load_acs_employment(year=year) for year in (2018, 2015)]
    adult = load_adult()
    women = (adult.X["sex"] == "Female").to_numpy()
    for first, second, expected in (
        (years[0].y_binary, years[1].y_binary, "ok"),
        (adult.y_binary[women], adult.y_binary[~women], "fail"),
    ):
        tables = [pd.DataFrame({"x": 1.0, "y": np.asarray(y), "p": 0.5}) for y in (first, second)]
        options = {"prediction_type": "score"}
        assert findings(*tables, **options)["base_rate"].severity == expected
        part = [table.iloc[rng.permutation(len(table))[: len(table) // 20]] for table in tables]
        assert findings(*part, **options)["base_rate"].severity in (expected, "warn" if expected == "fail" else "ok")
