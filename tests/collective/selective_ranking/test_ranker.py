"""The estimator: what it reads and refuses, its guarantees as certificates, and its bound for a population."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.collective import SelectiveRanker
from aboveboard.core import Certificate, InputError

NAN = float("nan")
VOTES = pd.DataFrame({"tea": [3.0, 3, 2, 3], "coffee": [2.0, 1, 3, 2], "water": [1.0, 2, 1, NAN]})


@parametrize_with_checks([SelectiveRanker(), SelectiveRanker(0.3, ties="half")])
def test_it_follows_scikit_learn(estimator, check):
    check(estimator)


# --- what it reads ----------------------------------------------------------------------------------------------------


def test_labels_are_the_columns_or_numbers():
    assert SelectiveRanker().fit(VOTES).items_ == ("tea", "coffee", "water")
    assert SelectiveRanker().fit(VOTES.to_numpy()).items_ == (0, 1, 2)
    assert SelectiveRanker().fit(pl.DataFrame(VOTES.to_dict("list"))).items_ == ("tea", "coffee", "water")
    assert SelectiveRanker().fit(VOTES.set_axis([7, 8, 9], axis=1)).items_ == (7, 8, 9)


def test_ranks_are_scores_turned_round():
    ranks = SelectiveRanker(votes="rank").fit(5 - VOTES)
    assert (ranks.weights_ == SelectiveRanker().fit(VOTES).weights_).all()


def test_only_the_order_of_scores_matters():
    one, other = SelectiveRanker().fit(VOTES), SelectiveRanker().fit(np.exp(3 * VOTES))
    assert (one.weights_ == other.weights_).all()


def test_integers_booleans_and_nullable_columns_are_votes():
    table = pd.DataFrame({"a": pd.array([1, None, 3], "Int64"), "b": [True, False, True]})
    ranker = SelectiveRanker().fit(table)
    assert ranker.compared_[0, 1] == 2
    assert ranker.support_[0, 1] == 1


def test_a_judge_without_a_vote_counts_and_is_mentioned():
    with pytest.warns(UserWarning, match="1 of 3 judges placed no item"):
        ranker = SelectiveRanker().fit([[2, 1], [2, 1], [NAN, NAN]])
    assert ranker.compare(0, 1) == pytest.approx(1 / 3)


def test_scores_that_read_like_ranks_are_mentioned():
    ranks = [[1, 2, 3], [2, 1, 3], [1, 2, 2]]
    with pytest.warns(UserWarning, match="say votes='rank'"):
        SelectiveRanker().fit(ranks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SelectiveRanker(votes="rank").fit(ranks)
        SelectiveRanker().fit([[4, 5, 3], [2, 1, 3], [1, 2, 2]])
        SelectiveRanker().fit([[1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("missing", ["dissent", "rescale"])
def test_comparisons_give_the_same_path_as_the_rankings(missing):
    rows = [
        (k, *((i, j) if row[i] > row[j] else (j, i)), row[i] == row[j])
        for k, row in VOTES.iterrows()
        for i, j in itertools.combinations(VOTES.columns, 2)
        if not np.isnan(row[i] + row[j])
    ]
    judge, winner, loser, tie = zip(*rows, strict=True)
    pairs = SelectiveRanker(missing=missing).fit_pairwise(judge, winner, loser, tie, items=VOTES.columns)
    whole = SelectiveRanker(missing=missing).fit(VOTES)
    np.testing.assert_allclose(pairs.weights_, whole.weights_)
    np.testing.assert_array_equal(pairs.path_.boundary_dissent, whole.path_.boundary_dissent)
    for tau in (0.0, 0.25, 0.45):
        np.testing.assert_allclose(pairs.overruled(tau), whole.overruled(tau))


def test_without_judges_each_comparison_stands_alone():
    ranker = SelectiveRanker(missing="rescale").fit_pairwise(None, ["a", "a", "b", "b"], ["b", "b", "c", "c"])
    assert ranker.n_judges_ == 4
    assert ranker.items_ == ("a", "b", "c")
    assert ranker.compare("a", "b") is None  # nobody compared a with c, so that no order of them holds
    assert ranker.path_.at(0.4) == [["a", "b", "c"]]


# --- what it says -----------------------------------------------------------------------------------------------------


def test_disputed_pairs_are_those_within_tiers_the_closest_first(nba):
    ranker = SelectiveRanker(votes="rank").fit(nba)
    table = ranker.disputed_pairs(0.28)
    sizes = [len(tier) for tier in ranker.path_.at(0.28)]
    assert len(table) == sum(size * (size - 1) // 2 for size in sizes)
    row = table[table["item"] == "Monty Williams"].iloc[0]
    assert (row["other"], row["prefer_item"], row["prefer_other"], row["tied"], row["missing"]) == (
        "Tom Thibodeau", 52, 48, 0, 0,
    )  # fmt: skip
    assert row["separates_at"] == 0.48
    assert (table["prefer_item"] >= table["prefer_other"]).all()
    assert (table["prefer_item"] - table["prefer_other"]).is_monotonic_increasing
    every = ranker.disputed_pairs(0.0)
    for _, pair in every.iterrows():
        either = [ranker.compare(pair["item"], pair["other"]), ranker.compare(pair["other"], pair["item"])]
        found = [tau for tau in either if tau is not None]
        assert pair["separates_at"] == found[0] if found else np.isnan(pair["separates_at"])


def test_overruled_preferences_are_counted_judge_by_judge(nba):
    ranker = SelectiveRanker(votes="rank").fit(nba)
    tier = ranker.path_.tier_of(0.48)
    expected = []
    for ranks in nba.to_numpy():
        strict = [(i, j) for i in range(7) for j in range(7) if ranks[i] < ranks[j]]
        expected.append(sum(tier[i] > tier[j] for i, j in strict) / len(strict))
    np.testing.assert_allclose(ranker.overruled(0.48), expected)
    assert (ranker.overruled(0.0) == 0).all()


def test_the_tiers_for_one_dissent_stand_on_the_estimator(nba):
    ranker = SelectiveRanker(0.28, votes="rank").fit(nba)
    assert ranker.tiers_ == ranker.path_.at(0.28)
    assert ranker.labels_.tolist() == [2, 0, 2, 2, 2, 1, 0]
    assert not hasattr(SelectiveRanker(votes="rank").fit(nba), "tiers_")
    assert ranker.top_tier() == ["Monty Williams"]
    assert ranker.top_tier(0.3) == ["Monty Williams", "Tom Thibodeau"]


def test_the_certificate_is_checked_on_the_votes_and_comes_back_from_json(nba):
    certificate = SelectiveRanker(0.28, votes="rank").fit(nba).certificate_
    assert certificate.holds
    assert certificate.confidence is None
    assert certificate.guarantee.startswith("At most 28 % of the judges fail to support any of the 14 comparisons")
    assert certificate.assumptions[0].statistic == 0.28
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    gaps = SelectiveRanker(0.3).fit(VOTES).certificate_
    assert gaps.guarantee.startswith("However the missing votes would have come out, at most 30 %")


def test_the_bootstrap_agrees_with_fits_on_the_drawn_judges(nba):
    ranker = SelectiveRanker(votes="rank").fit(nba)
    found = ranker.stability(0.28, n_bootstrap=50, random_state=3)
    rng = np.random.default_rng(3)
    tier = ranker.path_.tier_of(0.28)
    claims = tier[:, None] < tier[None, :]
    lost, swapped = [], 0
    points = -(nba.to_numpy()[:, :, None] - nba.to_numpy()[:, None, :])
    borda = np.sign(points).sum(axis=(0, 2))
    first, second = np.argsort(-borda)[:2]
    for _ in range(50):
        times = np.bincount(rng.integers(100, size=100), minlength=100)
        drawn = nba.loc[nba.index.repeat(times)]
        again = SelectiveRanker(votes="rank").fit(drawn).path_.tier_of(0.28)
        lost.append((claims & (again[:, None] == again[None, :])).sum() / claims.sum())
        anew = np.tensordot(times, np.sign(points), axes=1).sum(axis=1)
        swapped += anew[first] < anew[second]
    np.testing.assert_allclose(found.selective_lost, lost)
    assert found.borda_top_reversed == swapped / 50
    assert found.borda_top == (nba.columns[first], nba.columns[second])
    assert found.claims == 14
    again = ranker.stability(0.28, n_bootstrap=50, random_state=3)
    assert (again.borda_reversed == found.borda_reversed).all()


def test_the_selective_ranking_of_the_nba_ballots_does_not_turn_round(nba):
    found = SelectiveRanker(votes="rank").fit(nba).stability(0.28, n_bootstrap=300, random_state=0)
    assert found.selective_reversed.max() == 0
    assert found.borda_top_reversed > 0.25


# --- a population -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["dissent", "half"])
def test_with_confidence_all_comparisons_hold_for_the_population(ties):
    """2,000 draws; a claim that is wrong for the population may occur in one draw of ten, give or take its error."""
    rng = np.random.default_rng(0)
    kinds = np.array([[3, 2, 1], [2, 3, 1], [2, 2, 1], [1, 3, 2]], dtype=float) / 2
    share = np.array([0.5, 0.3, 0.1, 0.1])
    support = sum(s * (k[:, None] > k[None, :]) for s, k in zip(share, kinds, strict=True))
    tied = sum(s * (k[:, None] == k[None, :]) for s, k in zip(share, kinds, strict=True))
    dissent = 1 - support - (tied / 2 if ties == "half" else 0)
    wrong = made = 0
    for _ in range(2000):
        counts = rng.multinomial(40, share)
        votes = np.repeat(kinds, counts, axis=0)
        path = SelectiveRanker(votes="score", ties=ties, confidence=0.9).fit(votes).path_
        bad = False
        for tau in path.levels.tolist():
            tier = path.tier_of(tau)
            claims = tier[:, None] < tier[None, :]
            made += claims.any()
            bad |= bool((dissent[claims] > tau + 1e-12).any())
        wrong += bad
    assert made > 1000
    assert wrong / 2000 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 2000)


def test_with_confidence_a_comparison_costs_more_dissent_and_less_with_more_judges(nba):
    bare, sure = (SelectiveRanker(votes="rank", confidence=c).fit(nba) for c in (None, 0.95))
    many = SelectiveRanker(votes="rank", confidence=0.95).fit(pd.concat([nba] * 20))
    pair = ("Quin Snyder", "Doc Rivers")
    assert bare.compare(*pair) < many.compare(*pair) < sure.compare(*pair)
    assert SelectiveRanker(0.45, votes="rank", confidence=0.95).fit(nba).certificate_.confidence == 0.95


# --- what it refuses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dissent": 0.5}, "tau is 0.5"),
        ({"dissent": -0.1}, "tau is -0.1"),
        ({"votes": "ranks"}, "Did you mean 'rank'"),
        ({"missing": "drop"}, "missing is 'drop'"),
        ({"ties": None}, "ties is None"),
        ({"confidence": 1.0}, "the confidence is 1.0"),
        ({"confidence": 0.9, "missing": "ignore"}, "a confidence was given with missing='ignore'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SelectiveRanker(**options).fit(VOTES)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([[1.0], [2.0]], "minimum of 2"),
        (np.empty((0, 3)), "minimum of 1"),
        ([[1.0, np.inf]], "infinity"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "two columns are called 'a'"),
        ([["x", "y"]], "could not convert"),
    ],
)
def test_votes_that_are_none_are_refused(votes, message):
    with pytest.raises(ValueError, match=message):
        SelectiveRanker().fit(votes)


def test_ignored_votes_need_a_vote_on_every_pair():
    votes = pd.DataFrame({"a": [1.0, NAN], "b": [2.0, 1.0], "c": [NAN, 2.0]})
    with pytest.raises(InputError, match="no judge voted on both 'a' and 'c'"):
        SelectiveRanker(missing="ignore").fit(votes)
    assert SelectiveRanker(missing="dissent").fit(votes).path_.at(0.4) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((["j", "j"], ["a", "a"], ["a", "b"]), {}, "compared with itself"),
        ((["j", "k"], ["a"], ["b"]), {}, "judge has 2 entries"),
        ((None, ["a"], [None]), {}, "loser is missing in 1 rows"),
        ((None, [], []), {}, "there are no comparisons"),
        ((None, ["a"], ["b"]), {"items": ["a", "c"]}, "'b' was compared and is none of the items"),
        ((None, ["a"], ["b"]), {"items": ["a", "a", "b"]}, "an item is among the items twice"),
        ((None, [["a"]], ["b"]), {}, "2 dimensions"),
    ],
)
def test_comparisons_that_are_none_are_refused(columns, options, message):
    with pytest.raises(InputError, match=message):
        SelectiveRanker().fit_pairwise(*columns, **options)


def test_an_unknown_item_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="Did you mean 'coffee'"):
        SelectiveRanker().fit(VOTES).compare("cofee", "tea")


def test_nothing_is_told_before_a_fit():
    for call in ("compare", "overruled", "top_tier", "certify", "stability", "disputed_pairs"):
        with pytest.raises(NotFittedError):
            getattr(SelectiveRanker(), call)(*(("a", "b") if call == "compare" else (0.1,)))


def test_a_clone_has_the_options_and_no_votes():
    again = clone(SelectiveRanker(0.2, votes="rank", missing="rescale").fit(VOTES))
    assert again.get_params() == SelectiveRanker(0.2, votes="rank", missing="rescale").get_params()
    assert not hasattr(again, "path_")
