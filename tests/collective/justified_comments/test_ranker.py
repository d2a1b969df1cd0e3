"""Every rule is representative, the exact one is the best, and the certificate says so."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.collective import RepresentativeRanker, extended_justified_representation, justified_representation
from aboveboard.core import Certificate, InputError

RULES = ("exact", "greedy", "score_greedy", "mes")
each_rule = pytest.mark.parametrize("rule", RULES)


def drawn(seed, n=(3, 12), m=(3, 9), k=(1, 3)):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(*n)), int(rng.integers(*m))
    approvals = rng.random(shape) < rng.uniform(0.1, 0.6)
    return approvals, rng.random(shape[1]), int(rng.integers(k[0], k[1] + 1))


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_rule_finds_what_brute_force_finds(seed):
    approvals, scores, k = drawn(seed)
    best = max(
        scores[list(chosen)].mean()
        for chosen in combinations(range(len(scores)), k)
        if justified_representation(approvals, chosen, k).satisfied
    )
    ranking = RepresentativeRanker(k).rank(approvals, scores)
    assert ranking.score == pytest.approx(best, abs=1e-6)
    assert ranking.optimal
    assert ranking.bound >= ranking.score


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_rule_finds_the_best_order_for_prefixes(seed):
    approvals, scores, _ = drawn(seed, m=(4, 7))
    lengths = (1, 3)
    best = max(
        np.mean([scores[list(order[:p])].mean() for p in lengths])
        for order in permutations(range(len(scores)), 3)
        if all(justified_representation(approvals, order[:p], p).satisfied for p in lengths)
    )
    ranking = RepresentativeRanker(3, prefixes=(1,)).rank(approvals, scores)
    assert ranking.score == pytest.approx(best, abs=1e-6)
    assert list(ranking.reports) == [1, 3]


@given(st.integers(0, 2**32 - 1), st.sampled_from(RULES))
@settings(max_examples=60, deadline=None)
def test_every_rule_is_representative_and_none_beats_the_exact_one(seed, rule):
    approvals, scores, k = drawn(seed, n=(2, 30), m=(5, 15), k=(1, 5))
    weights = np.random.default_rng(seed).integers(1, 5, size=len(approvals))
    ranking = RepresentativeRanker(k, rule=rule).rank(approvals, scores, weights=weights)
    assert len(set(ranking.order.tolist())) == k
    assert justified_representation(approvals, ranking.order, k, weights=weights).satisfied
    assert justified_representation(approvals, ranking.justifying_set, k, weights=weights).satisfied
    assert (np.diff(scores[ranking.order]) <= 0).all()
    exact = RepresentativeRanker(k).rank(approvals, scores, weights=weights)
    assert ranking.score <= exact.score + 1e-9 <= ranking.best_score + 2e-9
    if rule == "mes":
        assert extended_justified_representation(approvals, ranking.order, k, weights=weights).satisfied
    if "price_bound" in (stated := ranking.certificate().parameters):
        assert stated["price"] <= stated["price_bound"] + 1e-9


@given(st.integers(0, 2**32 - 1), st.sampled_from(("exact", "greedy", "score_greedy")))
@settings(max_examples=30, deadline=None)
def test_every_prefix_is_representative_where_that_was_asked(seed, rule):
    approvals, scores, _ = drawn(seed, n=(2, 30), m=(6, 10))
    ranking = RepresentativeRanker(5, rule=rule, prefixes="all").rank(approvals, scores)
    for p in range(1, 6):
        assert justified_representation(approvals, ranking.order[:p], p).satisfied
    assert ranking.certificate().holds


@pytest.mark.parametrize("seed", range(10))
def test_moving_comments_up_never_costs_score(seed):
    approvals, scores, _ = drawn(seed, n=(20, 40), m=(10, 20))
    found = [
        RepresentativeRanker(6, rule=rule, prefixes="all").rank(approvals, scores).score
        for rule in ("greedy", "score_greedy", "exact")
    ]
    assert found == sorted(found)


@each_rule
def test_where_everybody_approves_everything_nothing_is_lost(rule):
    ranking = RepresentativeRanker(3, rule=rule).rank(np.ones((7, 5)), [1, 5, 2, 4, 3])
    assert ranking.order.tolist() == [1, 3, 4] or rule in ("greedy", "score_greedy", "mes")
    assert ranking.score_loss == 0.0


@each_rule
def test_as_many_single_readers_as_places_each_get_theirs(rule):
    approvals = np.hstack([np.zeros((4, 3)), np.eye(4)])
    ranking = RepresentativeRanker(4, rule=rule).rank(approvals, [9, 9, 9, 1, 2, 3, 4])
    assert ranking.selected.tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("rule", ["greedy", "score_greedy", "mes"])
def test_one_place_goes_to_the_comment_that_all_approve(rule):
    approvals = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]])
    assert RepresentativeRanker(1, rule=rule).rank(approvals, [3, 2, 1]).order.tolist() == [2]


def test_one_place_needs_no_comment_that_all_approve():
    """At k = 1 only a group of all readers counts, and one of them who is served is enough."""
    approvals = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]])
    assert RepresentativeRanker(1).rank(approvals, [3, 2, 1]).order.tolist() == [0]
    assert not justified_representation([[0, 1], [0, 1]], [0], 1).satisfied


@each_rule
def test_two_halves_that_agree_on_nothing_get_one_place_each(rule):
    approvals = np.kron(np.eye(2), np.ones((5, 3)))
    order = RepresentativeRanker(2, rule=rule).rank(approvals, [6, 5, 4, 3, 2, 1]).order
    assert order.tolist() == [0, 3]


def test_equal_shares_gives_a_larger_group_more_places():
    approvals = np.vstack([np.repeat([[1, 1, 1, 0, 0]], 6, axis=0), np.repeat([[0, 0, 0, 1, 1]], 2, axis=0)])
    scores = [1, 1, 1, 9, 8]
    assert RepresentativeRanker(4, rule="mes").rank(approvals, scores).selected.tolist() == [0, 1, 2, 3]
    assert RepresentativeRanker(4, rule="exact").rank(approvals, scores).score > 4.0


def test_greedy_serves_most_first_and_score_greedy_the_best_score_first():
    approvals = np.array([[1, 1, 0]] * 4 + [[1, 0, 0]] * 2 + [[0, 0, 1]] * 2)
    scores = [0.1, 0.9, 0.5]
    assert RepresentativeRanker(2, rule="greedy").rank(approvals, scores).order.tolist() == [1, 0]
    assert RepresentativeRanker(2, rule="score_greedy").rank(approvals, scores).order.tolist() == [1, 2]


def test_without_time_the_greedy_order_comes_back_with_its_gap():
    rng = np.random.default_rng(3)
    approvals = np.where(np.arange(300)[:, None] % 3 == np.arange(120) % 3, rng.random((300, 120)) < 0.3, 0)
    scores = rng.random(120) + 2.0 * (np.arange(120) % 3 == 0)
    ranking = RepresentativeRanker(8, time_limit=1e-9).rank(approvals, scores)
    assert ranking.report.satisfied
    assert not ranking.optimal
    assert ranking.gap > 0
    assert ranking.bound >= RepresentativeRanker(8).rank(approvals, scores).score


def test_the_certificate_holds_and_survives_json():
    approvals, scores, _ = drawn(5)
    certificate = RepresentativeRanker(2, rule="mes").rank(approvals, scores).certificate()
    assert certificate.holds
    assert any("EJR+" in assumption.text for assumption in certificate.assumptions)
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_losses_are_shares_of_the_best_score_whatever_its_sign():
    approvals = np.kron(np.eye(2), np.ones((5, 2)))
    ranking = RepresentativeRanker(2).rank(approvals, [-1.0, -1.0, -3.0, -4.0])
    assert (ranking.best_score, ranking.score, ranking.score_loss) == (-1.0, -2.0, 1.0)
    assert "price" not in ranking.certificate().parameters


@pytest.mark.parametrize(
    ("options", "scores", "message"),
    [
        ({"k": 0}, [1, 2, 3], "k is 0"),
        ({"k": 4}, [1, 2, 3], "k is 4"),
        ({"k": 2}, [1, 2], "one per comment"),
        ({"k": 2}, [1, np.nan, 3], "score of comment 1 is nan"),
        ({"k": 2}, ["a", 2, 3], "not all numbers"),
        ({"k": 2, "rule": "gredy"}, [1, 2, 3], "Did you mean 'greedy'"),
        ({"k": 2, "prefixes": "some"}, [1, 2, 3], "prefixes is 'some'"),
        ({"k": 2, "prefixes": 1}, [1, 2, 3], "prefixes is 1"),
        ({"k": 2, "prefixes": (3,)}, [1, 2, 3], "expected|Expected"),
        ({"k": 2, "prefixes": "all", "rule": "mes"}, [1, 2, 3], "with rule='mes'"),
        ({"k": 2, "time_limit": 0}, [1, 2, 3], "time limit is 0"),
    ],
)
def test_what_cannot_be_ranked_is_refused(options, scores, message):
    with pytest.raises(InputError, match=message):
        RepresentativeRanker(**options).rank(np.eye(3), scores)
