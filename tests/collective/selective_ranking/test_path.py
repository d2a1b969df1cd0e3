"""The path: equal to a search through every ranking, nested, stable, safe against missing votes, maximal and unique."""

import itertools
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse.csgraph import connected_components

from aboveboard.collective import SelectiveRanker, check_tiers
from aboveboard.collective.selective_ranking._path import order_and_boundaries
from aboveboard.core import InputError

TAUS = (0.0, 0.1, 0.2, 1 / 3, 0.4, 0.49)
# The disagreement weights of the 2020-21 NBA coach of the year award, as counted by the authors of the method.
NBA = [
    [0, 6, 95, 95, 89, 26, 7],
    [95, 0, 99, 100, 99, 73, 52],
    [88, 4, 0, 95, 88, 25, 6],
    [88, 4, 95, 0, 88, 25, 5],
    [88, 4, 95, 95, 0, 25, 5],
    [92, 28, 96, 96, 89, 0, 17],
    [95, 48, 99, 99, 99, 83, 0],
]
REST = {"Doc Rivers", "Steve Nash", "Michael Malone", "Nate McMillan"}

small_votes = hnp.arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(2, 4)),
    elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, float("nan")]),
)


def fitted(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return SelectiveRanker(**options).fit(data)


def claims(tier):
    return tier[:, None] < tier[None, :]


# --- worked examples --------------------------------------------------------------------------------------------------


def test_the_nba_ballots_give_the_published_weights_and_tiers(nba):
    ranker = fitted(nba, votes="rank")
    assert ranker.weights_.tolist() == NBA
    path = ranker.path_
    assert path.levels.tolist() == [0.26, 0.28, 0.48]
    sets = {tau: [set(tier) for tier in path.at(tau)] for tau in (0.0, 0.25, 0.26, 0.28, 0.47, 0.48, 0.4999)}
    assert sets[0.0] == sets[0.25] == [set(nba.columns)]
    assert sets[0.26] == [{"Monty Williams", "Quin Snyder", "Tom Thibodeau"}, REST]
    assert sets[0.28] == sets[0.47] == [{"Monty Williams", "Tom Thibodeau"}, {"Quin Snyder"}, REST]
    assert sets[0.48] == sets[0.4999] == [{"Monty Williams"}, {"Tom Thibodeau"}, {"Quin Snyder"}, REST]
    assert ranker.compare("Monty Williams", "Tom Thibodeau") == 0.48
    assert ranker.compare("Tom Thibodeau", "Monty Williams") is None


def test_unanimous_judges_give_their_order_at_no_dissent():
    path = fitted(np.tile([3.0, 1.0, 2.0], (5, 1))).path_
    assert path.at(0.0) == [[0], [2], [1]]
    assert path.comparability.tolist() == [1.0]


def test_a_condorcet_triangle_is_one_tier_for_every_dissent():
    path = fitted([[3, 2, 1], [1, 3, 2], [2, 1, 3]]).path_
    assert len(path.levels) == 0
    assert path.at(0.499) == [[0, 1, 2]]
    assert path.finest == 0.0


def test_the_tiers_of_a_single_judge_are_their_ties():
    path = fitted([[2.0, 5.0, 2.0, 1.0]]).path_
    assert path.at(0.0) == [[1], [0, 2], [3]]


def test_a_share_that_is_a_whole_number_of_judges_is_met_exactly():
    """3 of 10 judges dissent: 0.3 is enough, although 0.1 + 0.2 is not 0.3 in binary."""
    votes = np.array([[2.0, 1.0]] * 7 + [[1.0, 2.0]] * 3)
    path = fitted(votes).path_
    assert path.at(0.1 + 0.2) == path.at(0.3) == [[0], [1]]
    assert path.at(0.299) == [[0, 1]]


# --- against a search through every ranking ---------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["dissent", "rescale", "ignore"])
@pytest.mark.parametrize("ties", ["dissent", "half"])
def test_the_path_is_the_one_best_ranking_for_every_dissent(missing, ties, brute):
    rng = np.random.default_rng(0)
    compared = 0
    for n in (2, 3, 4, 4, 5):
        votes = rng.integers(0, 3, size=(int(rng.integers(2, 8)), n)).astype(float)
        votes[rng.random(votes.shape) < 0.1] = np.nan
        try:
            ranker = fitted(votes, missing=missing, ties=ties)
        except InputError:
            continue
        w = brute.weights(votes, missing, ties)
        for tau in TAUS:
            if tau >= ranker.path_.limit:
                continue
            (best,) = brute.best(w, len(votes), tau)
            assert (ranker.path_.tier_of(tau) == best).all()
            compared += 1
    assert compared >= 10


def test_the_path_is_the_condensation_of_each_digraph():
    rng = np.random.default_rng(1)
    for seed in range(20):
        p, n = int(rng.integers(3, 40)), int(rng.integers(5, 30))
        votes = rng.normal(size=(p, n)).round(1) + np.linspace(0, rng.random() * 3, n)
        ranker = fitted(votes)
        for tau in np.arange(0, p / 2) / p:
            arcs = ranker.weights_ > tau * p + 1e-9 * p
            count, component = connected_components(arcs, connection="strong")
            tier = ranker.path_.tier_of(tau)
            assert count == tier.max() + 1, seed
            assert len({*zip(tier.tolist(), component.tolist(), strict=True)}) == count
            found = check_tiers(ranker.path_.tiers(tau), ranker.weights_, n_judges=p, tau=tau)
            assert found.feasible
            assert found.maximal


# --- theorems ---------------------------------------------------------------------------------------------------------


@given(small_votes)
def test_a_larger_dissent_refines_the_tiers(votes):
    path = fitted(votes).path_
    assert len(path.levels) <= votes.shape[1] - 1
    for tau, wider in itertools.pairwise(TAUS):
        assert (claims(path.tier_of(tau)) <= claims(path.tier_of(wider))).all()


@given(small_votes, st.data())
def test_a_few_judges_who_change_their_minds_cost_their_share_of_dissent(votes, data):
    p, n = votes.shape
    changed = votes.copy()
    k = data.draw(st.integers(0, p))
    changed[:k] = data.draw(hnp.arrays(float, (k, n), elements=st.sampled_from([0.0, 1.0, 2.0, float("nan")])))
    old, new = fitted(votes).path_, fitted(changed).path_
    for tau in TAUS:
        if tau + k / p < 0.5:
            assert (claims(old.tier_of(tau)) <= claims(new.tier_of(tau + k / p))).all()


@given(small_votes, st.data())
def test_missing_votes_that_count_as_dissent_cannot_overturn_a_comparison(votes, data):
    gaps = np.isnan(votes)
    filled = votes.copy()
    filled[gaps] = data.draw(hnp.arrays(float, int(gaps.sum()), elements=st.sampled_from([-1.0, 0.5, 1.0, 9.0])))
    before, after = fitted(votes).path_, fitted(filled).path_
    for tau in TAUS:
        assert (claims(before.tier_of(tau)) <= claims(after.tier_of(tau))).all()


@given(small_votes, st.randoms(use_true_random=False))
def test_names_and_the_order_of_judges_do_not_matter(votes, random):
    p, n = votes.shape
    items, judges = list(range(n)), list(range(p))
    random.shuffle(items)
    random.shuffle(judges)
    path, again = fitted(votes).path_, fitted(votes[judges][:, items]).path_
    for tau in TAUS:
        assert (path.tier_of(tau)[items] == again.tier_of(tau)).all()


@given(small_votes)
def test_every_judge_twice_leaves_the_path_as_it_is(votes):
    path, again = fitted(votes).path_, fitted(np.repeat(votes, 2, axis=0)).path_
    np.testing.assert_array_equal(path.boundary_dissent, again.boundary_dissent)
    assert (path.order == again.order).all()


@given(small_votes)
def test_leaving_out_an_item_keeps_every_comparison_of_the_others(votes):
    if votes.shape[1] < 3:
        return
    path, fewer = fitted(votes).path_, fitted(votes[:, :-1]).path_
    for tau in TAUS:
        assert (claims(path.tier_of(tau))[:-1, :-1] <= claims(fewer.tier_of(tau))).all()


def _smith_set(beats):
    """Return the smallest set whose members each beat everything outside it: grown from each item."""
    n = len(beats)
    best = set(range(n))
    for start in range(n):
        grown = {start}
        while True:
            more = {j for j in range(n) if j not in grown and any(not beats[i, j] for i in grown)}
            if not more:
                break
            grown |= more
        best = min(best, grown, key=len)
    return best


def test_without_ties_the_last_top_tier_is_the_smith_set():
    rng = np.random.default_rng(2)
    for _ in range(200):
        p, n = 2 * int(rng.integers(1, 6)) + 1, int(rng.integers(3, 8))
        votes = np.array([rng.permutation(n) for _ in range(p)], dtype=float)
        beats = (votes[:, :, None] > votes[:, None, :]).sum(axis=0) > p / 2
        ranker = fitted(votes)
        assert set(ranker.top_tier()) == _smith_set(beats)
        winners = np.flatnonzero(beats.sum(axis=1) == n - 1)
        if len(winners):
            assert ranker.top_tier() == [int(winners[0])]


# --- the object -------------------------------------------------------------------------------------------------------


def test_the_smallest_dissent_that_separates_two_items_is_where_the_tiers_do(nba):
    ranker = fitted(nba, votes="rank")
    for i, first in enumerate(nba.columns):
        for j, second in enumerate(nba.columns):
            if i == j:
                continue
            tau = ranker.compare(first, second)
            if tau is None:
                tier = ranker.path_.tier_of(0.4999)
                assert tier[i] >= tier[j]
            else:
                at, below = ranker.path_.tier_of(tau), ranker.path_.tier_of(tau - 0.005)
                assert at[i] < at[j]
                assert below[i] >= below[j]


def test_the_frame_has_a_row_for_each_ranking(nba):
    frame = fitted(nba, votes="rank").path_.to_frame()
    assert frame["tau"].tolist() == [0.0, 0.26, 0.28, 0.48]
    assert frame["tiers"].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(frame["comparable"], [0, 12 / 21, 14 / 21, 15 / 21])
    assert frame["top"].iloc[-1] == ("Monty Williams",)


def test_the_figure_climbs_to_the_last_share(nba):
    (series,) = fitted(nba, votes="rank").path_.figure().series
    assert series.x[0] == 0.0
    assert series.x[-1] == 0.5
    assert list(series.y) == sorted(series.y)
    assert series.y[-1] == pytest.approx(15 / 21)


def test_the_dendrogram_is_drawn_with_any_names(hostile_names):
    mpl.use("Agg")
    names = [name for name in hostile_names.values() if name.isprintable()][:12]
    votes = pd.DataFrame(np.tile(np.arange(len(names), dtype=float), (3, 1)), columns=names)
    ax = fitted(votes).path_.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == names[::-1]
    assert len(ax.lines) == len(names) - 1
    ax.figure.canvas.draw()
    mpl.pyplot.close(ax.figure)


@pytest.mark.parametrize("tau", [-0.1, 0.5, 1.0, float("nan"), float("inf")])
def test_a_dissent_outside_is_refused(tau):
    with pytest.raises(InputError, match="tau"):
        fitted([[1, 2], [2, 1]]).path_.at(tau)


@pytest.mark.parametrize("tau", ["0.2", None, True, [0.1]])
def test_a_dissent_that_is_no_number_is_refused(tau):
    with pytest.raises(TypeError, match="must be a number"):
        fitted([[1, 2], [2, 1]]).path_.at(tau)


def test_the_path_of_ignored_votes_stops_where_a_pair_has_too_few():
    nan = float("nan")
    votes = pd.DataFrame({"a": [3, 3, 3, 3, nan], "b": [2, 2, 2, 2, 2], "c": [1, nan, nan, nan, nan]})
    path = fitted(votes, missing="ignore").path_
    assert path.limit == pytest.approx(0.2)  # one judge compared a with c: from one fifth on, both can be claimed
    assert set(path.blocking) <= {"a", "b", "c"}
    assert path.at(0.0) == [["a"], ["b"], ["c"]]
    with pytest.raises(InputError, match=r"neither order of '[abc]' and '[abc]' can be refused"):
        path.at(0.2)


# --- the independent check --------------------------------------------------------------------------------------------


def test_the_check_finds_a_ranking_that_claims_too_much():
    w = [[0, 6], [4, 0]]
    assert check_tiers([[0], [1]], w, n_judges=10, tau=0.4).feasible
    found = check_tiers([[1], [0]], w, n_judges=10, tau=0.4)
    assert not found.feasible
    assert found.worst_dissent == 0.6


def test_the_check_finds_a_ranking_that_claims_too_little():
    found = check_tiers([[0, 1]], [[0, 6], [4, 0]], n_judges=10, tau=0.4)
    assert found.feasible
    assert not found.maximal
    assert found.worst_dissent == 0.0


@settings(max_examples=30)
@given(small_votes)
def test_only_the_selective_ranking_passes_the_check(votes):
    ranker = fitted(votes)
    n = votes.shape[1]
    for tau in (0.0, 0.25, 0.45):
        passed = []
        for tier in (np.array(t) for t in np.ndindex(*(n,) * n) if set(t) == set(range(max(t) + 1))):
            tiers = [np.flatnonzero(tier == place).tolist() for place in range(tier.max() + 1)]
            found = check_tiers(tiers, ranker.weights_, n_judges=len(votes), tau=tau)
            if found.feasible and found.maximal:
                passed.append(tier.tolist())
        assert passed == [ranker.path_.tier_of(tau).tolist()]


@pytest.mark.parametrize("tiers", [[[0]], [[0], [0, 1]], [[0], [1], [1]]])
def test_the_check_refuses_what_is_no_ranking(tiers):
    with pytest.raises(InputError, match="every item once"):
        check_tiers(tiers, [[0, 1], [1, 0]], n_judges=2, tau=0.1)


@pytest.mark.parametrize("n", [2, 8, 63, 64, 65, 66, 130])
def test_boundaries_are_the_largest_dissent_against_those_above(n):
    rng = np.random.default_rng(3)
    w = rng.integers(0, 20, size=(n, n))
    against = np.maximum(w, 20 - w.T)
    order, worst = order_and_boundaries(against, 10.0)
    for k in range(1, len(w)):
        assert worst[k - 1] == against[np.ix_(order[:k], order[k:])].max()
