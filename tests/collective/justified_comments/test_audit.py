"""A feed is judged by the definition, small groups are not shown, and what a repair takes is counted."""

import numpy as np
import pytest

from aboveboard.collective import ApprovalImputer, feed_audit
from aboveboard.core import InputError

TWO_CAMPS = np.vstack([np.repeat([[1, 1, 0]], 60, axis=0), np.repeat([[0, 0, 1]], 40, axis=0)])


def by_id(*args, **options):
    return {finding.id: finding for finding in feed_audit(*args, **options)}


def test_a_group_of_a_kth_that_is_left_out_fails_the_feed():
    found = by_id([0, 1, 2], TWO_CAMPS[10:], k=[2, 5], labels=["a", "b", "c"])
    assert set(found) == {"feed/top2", "feed/top3", "feed/repair"}  # the feed has three comments
    top = found["feed/top2"]
    assert (top.severity, top.value) == ("ok", pytest.approx(80 / 90))
    worse = by_id([0, 1, 2], TWO_CAMPS[20:], k=[2], labels=["a", "b", "c"])
    assert (worse["feed/top2"].severity, worse["feed/top2"].value) == ("fail", 1.0)
    assert "40 of 80 readers approve c" in worse["feed/top2"].statement
    assert worse["feed/top2"].remedies == ("RepresentativeRanker",)
    assert worse["feed/repair"].value == 0.5
    assert worse["feed/repair"].tables[0].rows == ((2, 0.5, 1, 1.0, "yes"),)


def test_groups_of_readers_are_reported():
    found = by_id([0, 1, 2], TWO_CAMPS, k=[2], groups={"side": ["l"] * 60 + ["r"] * 35 + [None] * 5})
    finding = found["feed/groups/side"]
    rows = {row[0]: row for row in finding.tables[0].rows}
    assert (rows["l"][2], rows["r"][2], rows["(missing)"][2]) == (1.0, 0.0, "suppressed")
    assert (finding.value, finding.n, finding.severity) == (0.0, 35, "note")


def test_small_groups_are_not_shown():
    approvals = np.vstack([np.repeat([[1, 0]], 55, axis=0), np.repeat([[0, 1]], 5, axis=0)])
    finding = by_id([0, 1], approvals, k=[1])["feed/top1"]
    assert finding.value is None
    assert "fewer than 10 of 60" in finding.statement
    assert not any("5" in str(cell) for row in finding.tables[0].rows for cell in row)


def test_few_readers_are_inconclusive():
    findings = feed_audit([0, 1, 2], TWO_CAMPS[58:62])
    assert {finding.status for finding in findings} == {"inconclusive"}
    assert {finding.value for finding in findings} == {None}


def test_intervals_of_a_sample_hold_for_those_it_was_drawn_from():
    """The largest excluded share of a known population lies in the interval in at least 95 % of samples."""
    rng = np.random.default_rng(0)
    chances = np.array([0.5, 0.2, 0.18, 0.12])  # readers approve one comment each; the first is shown
    inside = 0
    for _ in range(400):
        approvals = np.eye(4)[rng.choice(4, size=150, p=chances)]
        interval = by_id([0], approvals, k=[1], readers="sample")["feed/top1"].interval
        inside += interval.low <= 0.2 <= interval.high
    assert inside >= 375  # fewer has a chance below 0.1 % at 95 %


def test_where_everybody_is_served_that_is_said():
    finding = by_id([0], np.ones((20, 2)), k=[1])["feed/top1"]
    assert (finding.severity, finding.value) == ("ok", 0.0)
    assert finding.statement.startswith("Every reader who approves any comment")


def test_votes_that_tell_nothing_are_warned_of():
    rng = np.random.default_rng(0)
    votes = rng.choice([-1, 1, 0], size=(40, 6), p=[0.3, 0.3, 0.4])
    imputer = ApprovalImputer(rank=2, random_state=0).fit(votes)
    finding = by_id([0, 1], imputer, k=[2], n_draws=10, random_state=0)["feed/imputed"]
    assert finding.severity == ("note" if imputer.cv_log_loss_ < imputer.baseline_log_loss_ else "warn")


@pytest.mark.parametrize(
    ("order", "options", "message"),
    [
        ([], {}, "order is empty"),
        ([0, 0], {}, "twice"),
        ([0, 9], {}, "positions"),
        ([0], {"k": []}, "k is"),
        ([0], {"k": [0]}, "k is"),
        ([0], {"labels": ["a"]}, "1 labels"),
        ([0], {"readers": "some"}, "readers is 'some'"),
        ([0], {"readers": "sample", "weights": np.ones(100)}, "weights or a sample"),
        ([0], {"groups": {"g": ["a"]}}, "groups 'g' have 1 labels"),
    ],
)
def test_what_is_no_feed_is_refused(order, options, message):
    with pytest.raises(InputError, match=message):
        feed_audit(order, TWO_CAMPS, **options)
