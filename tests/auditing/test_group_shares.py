"""Shares by group: judged one-sidedly, withheld where they describe few, and right in 95 % of samples."""

import json

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.group_shares import GroupShare, group_share_finding
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.subject import make_subject

COMMON = {"id": "abstention/g", "check": "abstention", "area": "uncertainty"}


def finding(group, hit, seed=0, beside=None, **more):
    frame = pd.DataFrame({"g": pd.Series(group, dtype=object), "x": 1.0, "y": np.arange(len(group)) % 2})
    subject = make_subject(None, frame, "y", predictions=frame["y"].to_numpy(), sensitive_features=["g"], **more)
    share = GroupShare(np.asarray(hit), "hit", "Rows hit", Limits()["abstention.group"], beside or {})
    return group_share_finding(subject, "g", share, np.random.default_rng(seed), **COMMON)


def drawn(rates, n=500, seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat([f"g{i}" for i in range(len(rates))], n)
    return group, rng.random(len(group)) < np.repeat(rates, n)


def test_a_group_that_is_hit_more_often_is_a_warning():
    group, hit = drawn([0.2, 0.2, 0.6])
    found = finding(group, hit)
    assert (found.severity, found.status, found.group) == ("warn", "ran", "g=g2")
    assert found.value == pytest.approx(hit[group == "g2"].mean() - hit.mean())
    assert found.interval.low < found.value < found.interval.high


def test_a_group_that_is_spared_is_none():
    group, hit = drawn([0.2, 0.2, 0.2, 0.2, 0.0], n=2000)
    found = finding(group, hit)
    assert (found.severity, found.status) == ("ok", "ran")
    assert min(row[3] for row in found.tables[0].rows) < -0.1


def test_few_rows_are_inconclusive():
    group, hit = drawn([0.2, 0.3], n=40)
    assert finding(group, hit).status == "inconclusive"
    assert finding(["a"] * 60, np.arange(60) < 20).status == "inconclusive"


def test_small_groups_are_withheld():
    group, hit = drawn([0.2, 0.2, 0.2])
    group = group.astype(object)
    group[:4] = "tiny"
    found = finding(group, hit)
    row = next(row for row in found.tables[0].rows if row[0] == "tiny")
    assert set(row[1:]) == {"suppressed"}
    assert "tiny" not in found.figures[0].series[0].x


def test_other_outcomes_stand_beside_it():
    group, hit = drawn([0.2, 0.4])
    right = (np.arange(len(hit)) % 3 > 0).astype(float)
    table = finding(group, hit, beside={"right": np.where(hit, np.nan, right)}).tables[0]
    for name, *_, mean in table.rows:
        assert mean == pytest.approx(right[~hit & (group == name)].mean())


def test_a_reference_group_is_compared_with():
    group, hit = drawn([0.2, 0.6])
    found = finding(group, hit, reference_group={"g": "g0"})
    assert found.value == pytest.approx(hit[group == "g1"].mean() - hit[group == "g0"].mean())


def test_clusters_and_weights_count():
    group, hit = drawn([0.2, 0.35], n=200)
    alone = finding(group, hit)
    again = finding(np.repeat(group, 5), np.repeat(hit, 5), clusters=np.repeat(np.arange(400), 5))
    assert again.interval.high - again.interval.low > 0.9 * (alone.interval.high - alone.interval.low)
    assert finding(group, hit, sample_weight=np.where(hit, 0.0, 1.0)).value == pytest.approx(0)


def test_hostile_names_pass(hostile_name):
    group, hit = drawn([0.2, 0.6])
    found = finding([hostile_name if name == "g1" else name for name in group], hit)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.severity == "warn"


@pytest.mark.slow
def test_equal_groups_are_warned_about_in_no_more_than_5_percent_of_samples():
    """2,000 samples of three groups at the limit's edge: one group lies exactly 10 points above everybody."""
    rates = np.array([0.2, 0.2, 0.35])
    assert rates[2] - rates.mean() == pytest.approx(0.1)
    warned = sum(finding(*drawn(rates, n=100, seed=s), seed=s).severity == "warn" for s in range(2000))
    assert warned / 2000 <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / 2000)
