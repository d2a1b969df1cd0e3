"""Rates of attacks: exact thresholds, honest halves, and intervals that hold as often as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core import InputError
from aboveboard.privacy import Attack, attack_rates
from aboveboard.privacy.membership._rates import _best_threshold, _threshold, halves


def normal(n, shift, seed=0):
    member = np.arange(n) < n // 2
    return Attack("normal", np.random.default_rng(seed).normal(size=n) + shift * member), member


def test_the_largest_difference_of_two_normals_is_known():
    attack, member = normal(40_000, 1.0)
    best = attack_rates([attack], member, false_positive_rates=[])[0]
    assert best.excess == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=0.015)
    assert best.interval.low < best.excess < best.interval.high


@pytest.mark.parametrize("aim", [0.1, 0.01])
def test_at_a_false_positive_rate_the_true_positive_rate_of_two_normals_is_known(aim):
    attack, member = normal(80_000, 1.5)
    _, rate = attack_rates([attack], member, false_positive_rates=[aim])
    power = stats.norm.sf(stats.norm.isf(aim) - 1.5)
    assert rate.false_positive_rate == pytest.approx(aim, rel=0.15)
    assert rate.true_positive_rate == pytest.approx(power, rel=0.08)


def test_a_figure_takes_twenty_over_f_others_and_forty_rows_of_either_kind():
    attack, member = normal(4000, 1.0)
    assert [rate.aim for rate in attack_rates([attack], member)] == [None, 0.1, 0.01]
    fewer = ~np.isin(np.arange(4000), np.flatnonzero(~member)[:1])  # 1,999 others
    assert [r.aim for r in attack_rates([Attack("a", attack.scores[fewer])], member[fewer])] == [None, 0.1]
    assert attack_rates([Attack("a", attack.scores[:2039])], member[:2039]) == []
    assert attack_rates([Attack("a", attack.scores[1961:])], member[1961:]) == []


def test_rates_are_counted_on_rows_that_set_no_threshold():
    attack, member = normal(4000, 1.0)
    for rate in attack_rates([attack], member, random_state=3):
        assert rate.measured.sum() == 2000
        assert not (rate.measured & halves(member, 3)).any()
        assert rate.true_positives == (rate.called & rate.measured & member).sum()
        assert rate.false_positives == (rate.called & rate.measured & ~member).sum()
        assert (rate.members, rate.others) == (1000, 1000)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.sampled_from([0.1, 0.25, 0.5]))
def test_no_more_than_the_aim_of_the_others_exceeds_the_threshold_and_no_lower_one_would_do(scores, aim):
    others = np.array(scores, dtype=float)
    threshold = _threshold(others, aim)
    assert (others > threshold).sum() <= aim * len(others) + 1e-9
    lower = others[others < threshold]
    if len(lower):
        assert (others > lower.max()).sum() > aim * len(others) - 1e-9


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
def test_the_best_threshold_is_that_of_a_search_through_all(pairs):
    scores = np.array([score for score, _ in pairs], dtype=float)
    member = np.array([kind for _, kind in pairs])
    worth = np.where(member, 1 / max(member.sum(), 1), -1 / max((~member).sum(), 1))
    found = worth[scores > _best_threshold(scores, worth)].sum()
    assert found == pytest.approx(max(worth[scores > t].sum() for t in [-np.inf, *scores]))


def test_a_score_with_two_values_reaches_no_low_rate_and_still_tells_its_difference():
    rng = np.random.default_rng(0)
    member = np.arange(8000) < 4000
    right = rng.random(8000) < np.where(member, 0.95, 0.7)
    best, tenth, hundredth = attack_rates([Attack("label", right.astype(float))], member)
    assert best.excess == pytest.approx(0.25, abs=0.03)
    for rate in (tenth, hundredth):
        assert (rate.true_positives, rate.false_positives) == (0, 0)


def test_each_class_gets_its_own_threshold():
    rng = np.random.default_rng(0)
    member = np.arange(8000) < 4000
    kind = rng.integers(0, 2, 8000)
    scores = rng.normal(size=8000) + 10 * kind + 1.5 * member
    plain, by_kind = (
        attack_rates([Attack("a", scores, by)], member, false_positive_rates=[0.01], random_state=9)[1]
        for by in (None, kind)  # another seed than that of the rows, or the halves would know them
    )
    # with one threshold all who are called are of one kind, at twice the rate
    assert plain.true_positive_rate == pytest.approx(stats.norm.sf(stats.norm.isf(0.02) - 1.5) / 2, abs=0.04)
    assert by_kind.true_positive_rate == pytest.approx(stats.norm.sf(stats.norm.isf(0.01) - 1.5), abs=0.04)
    assert by_kind.false_positive_rate == pytest.approx(0.01, abs=0.006)
    for value in (0, 1):
        part = by_kind.among(kind == value, member, 2)
        assert part.false_positive_rate == pytest.approx(0.01, abs=0.01)


def test_a_class_without_others_to_set_its_threshold_accuses_nobody():
    member = np.arange(400) < 200
    kind = np.where(member, 1, 0)
    (_, rate) = attack_rates([Attack("a", np.arange(400.0), kind)], member, false_positive_rates=[0.1])
    assert not rate.called[kind == 1].any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 3))
def test_rates_do_not_depend_on_a_monotone_change_of_the_score(seed, power):
    attack, member = normal(1000, 1.0, seed)
    changed = Attack("normal", np.exp(power * attack.scores))
    counts = [
        [(rate.true_positives, rate.false_positives) for rate in attack_rates([given], member)]
        for given in (attack, changed)
    ]
    assert counts[0] == counts[1]


def test_all_intervals_hold_at_once_as_often_as_they_say():
    """2,000 draws; the share of families with any interval that misses must be 5 % at most, within three errors."""
    rng, missed, draws = np.random.default_rng(0), 0, 2000
    member = np.arange(600) < 300
    for _ in range(draws):
        scores = rng.normal(size=600) + 0.8 * member
        rates = attack_rates([Attack("a", scores)], member, random_state=int(rng.integers(2**31)))
        for rate in rates:
            # the lowest score called and the highest not called enclose the threshold
            threshold = scores[~rate.called].max()
            truth = stats.norm.sf(threshold - 0.8), stats.norm.sf(threshold)
            held = [rate.true_positive_interval, rate.false_positive_interval, rate.interval]
            inside = [i.low <= t <= i.high for i, t in zip(held, (*truth, truth[0] - truth[1]), strict=True)]
            if not all(inside):
                missed += 1
                break
    assert missed / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"member": np.ones(1000)}, "boolean"),
        ({"member": np.ones((1000, 1), dtype=bool)}, "boolean"),
        ({"attacks": []}, "no attack"),
        ({"member": np.ones(900, dtype=bool)}, "900"),
        ({"attacks": [Attack("a", np.zeros(1000))] * 2}, "same name"),
        ({"false_positive_rates": [0.0]}, "above 0"),
        ({"false_positive_rates": [0.6]}, "at most 0.5"),
        ({"level": 1.0}, "level"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    attack, member = normal(1000, 1.0)
    with pytest.raises(InputError, match=message):
        attack_rates(**({"attacks": [attack], "member": member} | change))
