"""Counts of votes: the same as one judge and one pair at a time, however they are counted."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.collective import ranks_from_orders
from aboveboard.collective.selective_ranking import _votes
from aboveboard.collective.selective_ranking._votes import PairBallots, RankBallots
from aboveboard.core import InputError


def votes(p, n, seed, gaps=0.2):
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 4, size=(p, n)).astype(float)
    found[rng.random((p, n)) < gaps] = np.nan
    return found


@pytest.mark.parametrize("missing", ["dissent", "ignore", "rescale"])
@pytest.mark.parametrize("ties", ["dissent", "half"])
@pytest.mark.parametrize(("p", "n"), [(3, 6), (9, 4), (1, 2)])
def test_the_weights_are_those_of_one_judge_and_pair_at_a_time(missing, ties, p, n, brute):
    for seed in range(5):
        scores = votes(p, n, seed)
        counted = RankBallots(scores).tally().dissent(missing, ties).T
        np.testing.assert_allclose(counted, brute.weights(scores, missing, ties), rtol=1e-12)


def test_few_judges_and_few_items_are_counted_alike(brute):
    for p, n in ((300, 5), (5, 300)):
        scores = votes(p, n, 0)
        ballots = RankBallots(scores)
        by_judge = _votes._support_by_judge(ballots.above, ballots.below)
        by_item = _votes._support_by_item(ballots.above, ballots.below)
        assert (by_judge == by_item).all()
    small = scores[:, :4]
    assert (brute.weights(small) == RankBallots(small).tally().dissent("dissent", "dissent").T).all()


def test_bytes_do_not_run_over_with_many_judges():
    ballots = RankBallots(np.tile(np.arange(3.0), (1000, 1)))
    support = _votes._support_by_judge(ballots.above, ballots.below)
    assert support[2, 0] == support[2, 1] == support[1, 0] == 1000
    assert support[0].sum() == 0


def test_many_judges_are_counted_in_blocks(monkeypatch):
    scores = votes(200, 5, 1)
    whole = RankBallots(scores).tally()
    monkeypatch.setattr(_votes, "_ONE_BLOCK", 64)
    assert (RankBallots(scores).tally().support == whole.support).all()


@pytest.mark.parametrize("flat", [2**25, 0])
def test_resampled_votes_are_those_of_judges_who_are_there_several_times(flat, monkeypatch):
    monkeypatch.setattr(_votes, "_FLAT", flat)
    scores = votes(7, 4, 3)
    times = np.array([0, 3, 1, 0, 2, 1, 0])
    again, repeated = RankBallots(scores).tally(times), RankBallots(np.repeat(scores, times, axis=0)).tally()
    assert (again.support == repeated.support).all()
    assert (again.compared == repeated.compared)[~np.eye(4, dtype=bool)].all()
    assert again.n_judges == repeated.n_judges == 7


@given(st.integers(0, 10_000))
def test_comparisons_give_the_counts_of_the_rankings_that_they_come_from(seed):
    scores = votes(5, 4, seed, gaps=0.3)
    rows = []
    for k, judge in enumerate(scores):
        for i in range(4):
            for j in range(i + 1, 4):
                if not np.isnan(judge[i] + judge[j]):
                    first, second = (i, j) if judge[i] >= judge[j] else (j, i)
                    rows.append((k, first, second, judge[i] == judge[j]))
    if not rows:
        return
    who, winner, loser, tie = (np.array(column) for column in zip(*rows, strict=True))
    pairs = PairBallots.from_rows(who, winner, loser, tie.astype(bool), n_items=4)
    pairs.n_judges = 5
    off = ~np.eye(4, dtype=bool)
    for times in (None, np.array([2, 0, 1, 1, 3])):
        one, other = pairs.tally(times), RankBallots(scores).tally(times)
        assert (one.support == other.support).all()
        assert (one.compared == other.compared)[off].all()


def test_what_a_judge_says_of_a_pair_several_times_counts_once_by_majority():
    judge, winner, loser = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), np.array([1, 1, 0, 1, 0])
    tally = PairBallots.from_rows(judge, winner, loser, np.zeros(5, dtype=bool), n_items=2).tally()
    assert tally.support.tolist() == [[0, 1], [0, 0]]  # judge 1 is torn
    assert tally.compared[0, 1] == 2
    assert tally.ties()[0, 1] == 1


def test_orders_become_ranks():
    table = ranks_from_orders([["b", "a", "c"], ["c", None, None]])
    assert table.columns.tolist() == ["b", "a", "c"]
    assert table.to_numpy().tolist() == [[1, 2, 3], [2, 2, 1]]
    kept = ranks_from_orders([["c", None]], items=["a", "c"], unlisted="missing")
    assert kept["c"].tolist() == [1]
    assert kept["a"].isna().all()


def test_the_ranks_of_an_order_are_its_inverse():
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(6) for _ in range(20)])
    ranks = ranks_from_orders(orders, items=range(6)).to_numpy()
    assert (np.argsort(ranks, axis=1) == orders).all()


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        ([["a", "a"]], {}, "twice"),
        ([["a", "x"]], {"items": ["a", "b"]}, "'x' was named and is none of the items"),
        ([["a"]], {"items": ["a", "a"]}, "an item is among the items twice"),
    ],
)
def test_orders_that_are_none_are_refused(orders, options, message):
    with pytest.raises(InputError, match=message):
        ranks_from_orders(orders, **options)


def test_ranks_of_orders_is_a_table_with_the_items_as_columns():
    assert isinstance(ranks_from_orders([["a", "b"]]), pd.DataFrame)
