"""The level of the lower bound, summed over all outcomes of an attack on randomised response."""

import math

import numpy as np
import pytest
from scipy import stats

from aboveboard.core import InputError
from aboveboard.privacy import epsilon_lower_bound


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_release_that_keeps_its_promise_is_refuted_no_more_often_than_the_level_says(epsilon, delta):
    n = 25
    truth = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))  # the best attack that (epsilon, delta) allows
    refuted = 0.0
    for hits in range(n + 1):
        for alarms in range(n + 1):
            if epsilon_lower_bound(hits, n, alarms, n, delta=delta, level=0.9).epsilon > epsilon + 1e-12:
                refuted += stats.binom.pmf(hits, n, truth) * stats.binom.pmf(alarms, n, 1 - truth)
    assert refuted <= 0.1


def test_either_error_can_prove_it():
    few_alarms = epsilon_lower_bound(100, 1000, 0, 1000)
    few_misses = epsilon_lower_bound(1000, 1000, 900, 1000)
    assert few_alarms.epsilon == pytest.approx(few_misses.epsilon)
    low = stats.beta.ppf(0.025, 100, 901)
    assert few_alarms.epsilon == pytest.approx(math.log(low / (1 - 0.025 ** (1 / 1000))))


def test_guesses_prove_nothing_and_the_intervals_are_told():
    bound = epsilon_lower_bound(50, 100, 50, 100, delta=1e-5)
    assert bound.epsilon == 0
    assert bound.true_positive_rate.low < 0.5 < bound.true_positive_rate.high
    assert bound.level == 0.95


def test_more_trials_prove_more():
    found = [epsilon_lower_bound(9 * n, 10 * n, n, 10 * n).epsilon for n in (1, 10, 100, 10_000)]
    assert (np.diff(found) > 0).all()
    assert found[-1] == pytest.approx(math.log(9), abs=0.05)


@pytest.mark.parametrize("counts", [(11, 10, 0, 10), (1, 0, 0, 10), (-1, 10, 0, 10), (1.5, 10, 0, 10)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(InputError):
        epsilon_lower_bound(*counts)
