"""Exact p-values and bounds, against SciPy, brute force and simulation."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core.errors import InputError
from aboveboard.drift import binomial_p_value, permutation_p_value, tv_lower_bound
from aboveboard.drift.dataset_classification._statistics import mean_recall_interval


@given(st.integers(1, 400), st.integers(2, 9), st.data())
def test_the_binomial_p_value_is_that_of_scipy(n, m, data):
    k = data.draw(st.integers(0, n))
    assert binomial_p_value(k, n, m) == pytest.approx(
        stats.binomtest(k, n, 1 / m, alternative="greater").pvalue, rel=1e-9
    )


def test_the_binomial_p_value_is_a_sum_that_can_be_done_by_hand():
    assert binomial_p_value(8, 10) == pytest.approx(sum(comb(10, k) for k in (8, 9, 10)) / 2**10)
    assert binomial_p_value(0, 10) == 1.0


def test_the_binomial_p_value_is_too_small_where_each_source_has_a_fixed_number_of_rows():
    """With 50 + 50 rows and a rule that names each source 50 times, a p-value of 2.8 % comes up in 3.6 %."""
    right = 2 * np.arange(51)  # of 50 named first, j are first, and as many of the others are second
    chance = stats.hypergeom.pmf(np.arange(51), 100, 50, 50)
    p_values = np.array([binomial_p_value(int(k), 100) for k in right])
    assert p_values[30] == pytest.approx(0.0284, abs=1e-4)
    assert chance[p_values <= p_values[30]].sum() == pytest.approx(0.0357, abs=1e-4)


@pytest.mark.parametrize("bad", [(-1, 10, 2), (11, 10, 2), (0, 0, 2), (1, 10, 1), (1.0, 10, 2), (True, 10, 2)])
def test_counts_that_are_impossible_are_refused(bad):
    with pytest.raises(InputError):
        binomial_p_value(*bad)


@given(st.integers(1, 300), st.data())
def test_the_total_variation_bound_is_clopper_pearson_s(n, data):
    k = data.draw(st.integers(0, n))
    low = stats.binomtest(k, n, alternative="greater").proportion_ci(0.95, method="exact").low
    assert tv_lower_bound(k, n) == pytest.approx(max(0.0, 2 * low - 1), abs=1e-9)


def test_the_total_variation_bound_is_below_the_distance_as_often_as_it_says():
    """Two normal samples one standard deviation apart, told apart by the best rule; 4,000 draws."""
    best = stats.norm.cdf(0.5)
    right = np.random.default_rng(0).binomial(300, best, size=4000)
    too_high = np.mean([tv_lower_bound(int(k), 300, 0.05) > 2 * best - 1 for k in right])
    assert too_high <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


@pytest.mark.parametrize("alpha", [0.0, 0.5, -1, 2])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(InputError, match="alpha"):
        tv_lower_bound(5, 10, alpha)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 12), st.data())
def test_for_two_sources_the_permutation_p_value_is_that_of_all_permutations(a, b, named, data):
    named = min(named, a + b)
    first = data.draw(st.integers(max(0, named - b), min(a, named)))
    table = np.array([[first, a - first], [named - first, b - named + first]])
    guesses = np.array([0] * named + [1] * (a + b - named))

    def recall(truth):
        return np.mean([(guesses[truth == j] == j).mean() for j in (0, 1)])

    observed = np.mean(np.diag(table) / table.sum(axis=1))
    hits = []
    for chosen in itertools.combinations(range(a + b), a):
        truth = np.ones(a + b, dtype=int)
        truth[list(chosen)] = 0
        hits.append(recall(truth) >= observed - 1e-12)
    assert permutation_p_value(table) == pytest.approx(np.mean(hits), abs=1e-9)


def test_for_three_sources_the_permutation_p_value_is_that_of_shuffled_labels():
    table = np.array([[9, 3, 2], [4, 8, 6], [5, 4, 12]])
    truth = np.repeat([0, 1, 2], table.sum(axis=1))
    guesses = np.concatenate([np.repeat([0, 1, 2], row) for row in table])
    rng = np.random.default_rng(0)
    observed = np.mean(np.diag(table) / table.sum(axis=1))
    hits = 0
    for _ in range(4000):
        shuffled = rng.permutation(truth)
        hits += np.mean([(guesses[shuffled == j] == j).mean() for j in range(3)]) >= observed - 1e-12
    p_value = permutation_p_value(table, random_state=1, draws=4000)
    assert p_value == pytest.approx(hits / 4000, abs=4 * np.sqrt(0.02 / 4000))


@pytest.mark.parametrize("table", [[[1, 2]], [[1.0, 2.0], [3.0, 4.0]], [[0, 0], [1, 2]], [[-1, 2], [1, 2]], [[3]]])
def test_a_confusion_matrix_that_is_none_is_refused(table):
    with pytest.raises(InputError):
        permutation_p_value(table)


def test_the_interval_of_the_mean_recall_covers_it():
    rng, sizes, recalls = np.random.default_rng(0), np.array([400, 60, 150]), np.array([0.9, 0.5, 0.3])
    covered = 0
    for _ in range(2000):
        right = rng.binomial(sizes, recalls)
        confusion = np.zeros((3, 3), dtype=int)
        confusion[np.arange(3), np.arange(3)] = right
        confusion[np.arange(3), [1, 2, 0]] = sizes - right
        low, high = mean_recall_interval(confusion)
        covered += low <= recalls.mean() <= high
    assert 0.93 <= covered / 2000 <= 0.98
