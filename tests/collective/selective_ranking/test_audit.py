"""Findings on a published order: what they count, how sure they are, and when they say nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from aboveboard.collective import SelectiveRanker, rank_audit, stability_audit
from aboveboard.core import SUPPRESSED, InputError

AWARD = ["Tom Thibodeau", "Monty Williams", "Quin Snyder", "Doc Rivers", "Nate McMillan", "Steve Nash",
         "Michael Malone"]  # fmt: skip


def by_id(findings):
    return {finding.id: finding for finding in findings}


def votes(agree, against, tied=0, missing=0):
    rows = [[2.0, 1.0]] * agree + [[1.0, 2.0]] * against + [[1.0, 1.0]] * tied + [[1.0, np.nan]] * missing
    return pd.DataFrame(rows, columns=["a", "b"])


def test_the_award_order_of_the_nba_ballots_fails_at_the_unnamed_coaches(nba):
    found = by_id(rank_audit(AWARD, SelectiveRanker(votes="rank").fit(nba)))
    order, winner = found["rank_audit/order"], found["rank_audit/winner"]
    assert order.severity == "fail"
    assert order.value == 0.95
    assert "Steve Nash belongs above Michael Malone. 95 of 100 judges" in order.statement
    assert winner.status == "inconclusive"
    assert winner.value == 0.52
    assert "over Monty Williams" in winner.statement
    assert "3 tiers" in found["rank_audit/tiers"].statement


@pytest.mark.parametrize(
    ("agree", "against", "severity", "status"),
    [
        (90, 10, "ok", "ran"),
        (10, 90, "fail", "ran"),
        (50, 50, "note", "inconclusive"),
        (45, 55, "note", "inconclusive"),
    ],
)
def test_a_pair_is_judged_by_its_whole_interval(agree, against, severity, status):
    order = by_id(rank_audit(["a", "b"], votes(agree, against)))["rank_audit/order"]
    assert (order.severity, order.status) == (severity, status)
    assert order.value == against / 100
    n = agree + against
    assert order.interval.low == pytest.approx(beta.ppf(0.025, against, n - against + 1))
    assert order.interval.high == pytest.approx(beta.ppf(0.975, against + 1, n - against))


def test_ties_and_missing_votes_are_dissent():
    order = by_id(rank_audit(["a", "b"], votes(40, 20, tied=25, missing=15)))["rank_audit/order"]
    assert order.value == 0.6
    (table,) = order.tables
    assert table.rows[0][2:6] == (100, 40, 20, 40)


def test_rescaled_votes_count_those_who_voted_on_both():
    order = by_id(rank_audit(["a", "b"], votes(40, 20, missing=15), missing="rescale"))["rank_audit/order"]
    assert (order.value, order.n) == (pytest.approx(1 / 3), 60)
    half = by_id(rank_audit(["a", "b"], votes(40, 20, tied=20), ties="half"))["rank_audit/order"]
    assert half.value == pytest.approx(30 / 80)


def test_the_intervals_hold_for_all_pairs_at_once():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 6))
    order = by_id(rank_audit(range(6), scores))["rank_audit/order"]
    assert order.interval.simultaneous
    against = round(order.value * 60)
    assert order.interval.low == pytest.approx(beta.ppf(0.025 / 5, against, 60 - against + 1))


@pytest.mark.slow
def test_orders_without_a_reason_fail_in_few_of_many_samples():
    """Judges support each pair of neighbours half of the time, so any fail is false; 2,000 samples, level 5 %."""
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(2000):
        scores = np.argsort(rng.random((30, 4)), axis=1).astype(float)
        failed += by_id(rank_audit(range(4), scores, tolerated=0.0))["rank_audit/order"].severity == "fail"
    assert failed / 2000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_an_order_with_ties_claims_nothing_within_them():
    scores = np.tile([6.0, 5.0, 4.0], (50, 1))
    found = by_id(rank_audit([[0, 1], 2], scores))
    assert {tuple(row[:2]) for row in found["rank_audit/order"].tables[0].rows} == {("0", "2"), ("1", "2")}
    assert found["rank_audit/winner"].statement.startswith("0, among the first 2") or (
        found["rank_audit/winner"].statement.startswith("1, among the first 2")
    )
    assert set(by_id(rank_audit([[0, 1, 2]], scores))) == {"rank_audit/tiers"}


def test_few_judges_are_not_shown():
    for finding in (*rank_audit(["a", "b"], votes(9, 0)), *stability_audit(votes(9, 0))):
        assert finding.status == "inconclusive"
        assert finding.value is None
        assert not finding.evidence
        assert "--min-cell 1" in finding.reason
    assert by_id(rank_audit(["a", "b"], votes(9, 0), min_judges=1))["rank_audit/order"].severity == "ok"


def test_pairs_with_few_votes_are_suppressed():
    scores = pd.DataFrame({"a": [3.0] * 30, "b": [2.0] * 30, "c": [1.0] * 5 + [np.nan] * 25})
    found = by_id(rank_audit(["a", "b", "c"], scores, missing="rescale"))
    rows = found["rank_audit/order"].tables[0].rows
    assert rows[1] == ("b", "c", *[SUPPRESSED] * 6)
    assert found["rank_audit/order"].status == "inconclusive"
    assert found["rank_audit/tiers"].status == "inconclusive"
    assert not found["rank_audit/tiers"].evidence


def test_ignored_votes_that_end_the_path_early_say_so():
    scores = pd.DataFrame({"a": [3.0] * 40, "b": [2.0] * 40, "c": [1.0] * 12 + [np.nan] * 28})
    tiers = by_id(rank_audit(["a", "b", "c"], scores, missing="ignore", tolerated=0.4))["rank_audit/tiers"]
    assert tiers.status == "inconclusive"
    assert "too few judges voted on" in tiers.statement


def test_the_leaders_of_a_close_board_swap_and_selective_comparisons_stay(nba):
    found = by_id(stability_audit(SelectiveRanker(votes="rank").fit(nba), n_bootstrap=300, random_state=0))
    borda = found["rank_stability/borda"]
    assert borda.severity == "warn"
    assert 0.3 < borda.value < 0.55
    assert borda.remedies == ("SelectiveRanker",)
    assert found["rank_stability/selective"].severity == "ok"
    assert found["rank_stability/selective"].value == 0


def test_a_clear_board_is_stable():
    found = by_id(stability_audit(np.tile([6.0, 5.0, 4.0], (40, 1)), n_bootstrap=200, random_state=0))
    assert found["rank_stability/borda"].severity == "ok"
    assert found["rank_stability/borda"].value == 0


def test_a_board_without_a_comparison_has_none_that_could_turn():
    circle = [[6.0, 5, 4], [4, 6, 5], [5, 4, 6]] * 10
    found = by_id(stability_audit(circle, n_bootstrap=50, random_state=0))
    assert "makes no comparison" in found["rank_stability/selective"].statement
    assert found["rank_stability/selective"].severity == "note"


@pytest.mark.parametrize(
    ("order", "message"),
    [(["a"], "leaves out 'b'"), (["a", "b", "a"], "names 'a' twice"), (["a", "x"], "names 'x', which is no item")],
)
def test_an_order_that_is_none_is_refused(order, message):
    with pytest.raises(InputError, match=message):
        rank_audit(order, votes(20, 1))


def test_hostile_and_endless_names_are_cut_and_kept(hostile_name):
    names = [hostile_name, hostile_name + "b"]
    scores = votes(30, 2).set_axis(pd.Index(names, dtype=object), axis=1)
    for finding in rank_audit(names, scores):
        assert len(finding.statement) < 600
