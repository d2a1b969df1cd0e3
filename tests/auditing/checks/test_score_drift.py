import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aboveboard.auditing.checks.score_drift import check
from aboveboard.auditing.subject import make_subject


def findings(new, old, **options):
    subject = make_subject(None, new, "y", reference=old, **({"predictions": "p"} | options))
    found = check(subject, random_state=0, effort="standard")
    assert all(finding.statement.endswith(".") for finding in found)
    assert len({finding.id for finding in found}) == len(found)
    return {finding.id.removeprefix("score_drift/"): finding for finding in found}


def answers(n, seed, power=1.0, **columns):
    rng = np.random.default_rng(seed)
    p = rng.random(n) ** power
    frame = pd.DataFrame({"g": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]), "y": rng.integers(0, 2, n), "p": p})
    return frame.assign(**columns)


def test_answers_that_stayed_are_fine():
    found = findings(answers(20_000, 0), answers(18_000, 1), sensitive_features=["g"])
    assert set(found) == {"scores", "scores/g", "selection_rate", "selection_rate/g"}
    assert {(finding.severity, finding.status) for finding in found.values()} == {("ok", "ran")}


def test_scores_that_moved_are_found_with_their_distance_and_a_figure():
    new, old = answers(4000, 0, power=2.0), answers(4000, 1)
    finding = findings(new, old)["scores"]
    assert finding.severity == "warn"
    assert finding.value == pytest.approx(stats.ks_2samp(new["p"], old["p"]).statistic)
    assert finding.interval.low < 0.25 < finding.interval.high  # x^(1/2) - x is largest at 1/4
    assert [series.name for series in finding.figures[0].series] == ["now", "then"]
    for series, table in zip(finding.figures[0].series, (new, old), strict=True):
        counts = np.histogram(table["p"], bins=20, range=(0, 1))[0] / len(table)
        assert series.y == pytest.approx(counts, abs=1e-3)
    means = {row[0]: row[1] for row in finding.tables[0].rows}
    assert means["mean now"] == pytest.approx(new["p"].mean())
    assert means["mean then"] == pytest.approx(old["p"].mean())


def test_the_selection_rate_is_compared_as_newcombe_does():
    new, old = answers(4000, 0, power=2.0), answers(3000, 1)
    finding = findings(new, old, threshold=0.4)["selection_rate"]
    hits = [table["p"] >= 0.4 for table in (new, old)]
    assert finding.value == pytest.approx(hits[0].mean() - hits[1].mean())
    ends = [stats.binomtest(int(hit.sum()), len(hit)).proportion_ci(0.95, method="wilson") for hit in hits]
    low = finding.value - np.hypot(hits[0].mean() - ends[0].low, ends[1].high - hits[1].mean())
    assert finding.interval.low == pytest.approx(low)
    assert finding.severity == "fail"
    assert "went from" in finding.statement


def test_a_change_in_one_group_is_found_and_named_where_everybody_together_stayed():
    new, old = answers(9000, 0), answers(9000, 1)
    new.loc[new["g"] == "c", "p"] **= 2
    new.loc[new["g"] == "b", "p"] **= 0.75
    found = findings(new, old, sensitive_features=["g"])
    assert found["selection_rate"].severity == "ok"
    finding = found["selection_rate/g"]
    assert finding.severity == "fail"
    assert finding.statement.startswith("g: for c, the share predicted '1' went from")
    rates = [table.groupby("g")["p"].apply(lambda p: (p >= 0.5).mean()) for table in (new, old)]
    rows = {row[0]: row for row in finding.tables[0].rows}
    for group in "abc":
        assert rows[group][2:5] == pytest.approx((rates[1][group], rates[0][group], rates[0][group] - rates[1][group]))


def test_groups_that_are_new_gone_or_small_are_left_out_and_counted():
    new = answers(3000, 0, g=["a"] * 1990 + ["new"] * 1000 + ["tiny"] * 10)
    old = answers(3000, 1, g=["a"] * 1990 + ["gone"] * 1000 + ["tiny"] * 10)
    finding = findings(new, old, sensitive_features=["g"])["scores/g"]
    assert [row[0] for row in finding.tables[0].rows] in ([], ["a"])
    assert "groups with too few rows" in finding.tables[0].note or finding.status == "inconclusive"


def test_without_two_large_groups_nothing_is_said_about_groups():
    old = answers(3000, 1, g="other")
    finding = findings(answers(3000, 0, g="one"), old, sensitive_features=["g"])["scores/g"]
    assert finding.status == "inconclusive"


def test_labels_have_no_scores_to_compare():
    new, old = (answers(3000, seed).assign(p=lambda t: (t["p"] > 0.4).astype(int)) for seed in (0, 1))
    assert set(findings(new, old)) == {"selection_rate"}


def test_several_classes_are_compared_by_their_shares():
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"x": 1.0, "y": rng.choice(list("abc"), 4000), "p": rng.choice(list("abc"), 4000)})
    new = old.assign(p=rng.choice(list("abc"), 4000, p=[0.6, 0.2, 0.2]))
    finding = findings(new, old)["classes"]
    assert finding.severity == "warn"
    assert finding.interval.low < 0.6 - 1 / 3 < finding.interval.high
    assert "'a' went from" in finding.statement
    four = old.assign(p=rng.choice(list("abcd"), 4000), y=rng.choice(list("abcd"), 4000))
    gone = findings(old, four)["classes"]
    assert gone.severity == "warn"
    assert "(a class that is gone)" in {row[0] for row in gone.tables[0].rows}


def test_numbers_are_compared_by_their_distribution():
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"x": 1.0, "y": rng.normal(size=3000), "p": rng.normal(size=3000)})
    finding = findings(old.assign(p=old["p"] + 0.5), old)["values"]
    assert finding.severity == "warn"
    rows = {row[0]: row[1] for row in finding.tables[0].rows}
    assert rows["change in standard deviations of then"] == pytest.approx(0.5 / old["p"].std(ddof=0))


def test_constant_scores_can_be_compared():
    found = findings(answers(500, 0, p=0.3), answers(500, 1, p=0.3))
    assert found["scores"].value == 0.0


@pytest.mark.parametrize("rows", [2, 20])
def test_few_rows_tell_nothing(rows):
    found = findings(answers(3000, 0), answers(rows, 1))
    assert {finding.status for finding in found.values()} == {"inconclusive"}


def test_the_verdict_is_the_same_for_a_twentieth_of_the_rows():
    for power, expected in ((1.0, "ok"), (3.0, "fail")):
        for n in (40_000, 2000):
            assert findings(answers(n, 0, power), answers(n, 1))["scores"].severity == expected


def test_no_share_of_few_people_is_drawn():
    new = answers(3000, 0)
    new["p"] = np.where(np.arange(3000) < 4, 0.975, 0.9 * new["p"])
    series = findings(new, answers(3000, 1))["scores"].figures[0].series[0]
    assert series.y[19] is None
    assert sum(y is None for y in series.y) >= 2


def false_alarms(draws):
    """How often a change of exactly the limit, in all five groups at once, is called a change."""
    alarms = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        groups = np.repeat(list("abcde"), 400)
        new = pd.DataFrame({"g": groups, "y": rng.integers(0, 2, 2000), "p": (rng.random(2000) < 0.45).astype(int)})
        old = pd.DataFrame({"g": groups, "y": rng.integers(0, 2, 2000), "p": (rng.random(2000) < 0.40).astype(int)})
        alarms += findings(new, old, sensitive_features=["g"])["selection_rate/g"].severity != "ok"
    return alarms / draws


@pytest.mark.slow
def test_a_change_by_the_limit_in_every_group_is_called_one_in_no_more_than_five_of_a_hundred_audits():
    assert false_alarms(2000) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_a_change_by_the_limit_is_hardly_ever_called_one():
    assert false_alarms(60) <= 0.1
