"""The test of independence: dependence of any shape is seen, and its level is exact."""

import numpy as np
import pytest
from scipy import stats

from aboveboard.drift.dataset_classification._tables import Features
from aboveboard.drift.shift._independence import _binned, _centred, dependence_p_values, dependent_columns


def features(*columns, words=()):
    values = np.column_stack(columns)
    return Features(values, tuple(f"x{j}" for j in range(values.shape[1])), np.isin(np.arange(values.shape[1]), words))


def test_it_sees_a_dependence_without_any_correlation():
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 1000))
    loss = (rng.random(1000) < np.where(np.abs(x) < 0.5, 0.6, 0.1)).astype(float)
    found = dependence_p_values(features(x, other), loss, [0, 1], rng)
    assert found[0] == pytest.approx(1 / 200)
    assert found[1] > 0.05


def test_words_and_gaps_can_depend_on_the_loss():
    rng = np.random.default_rng(1)
    word = rng.integers(0, 3, 600).astype(float)
    gap = np.where(rng.random(600) < 0.3, np.nan, rng.normal(size=600))
    by_word = features(word, gap, words=[0])
    assert dependence_p_values(by_word, (word == 1) * 1.0, [0], rng)[0] < 0.01
    assert dependence_p_values(by_word, np.isnan(gap) * 1.0, [1], rng)[1] < 0.01


def test_a_constant_depends_on_nothing():
    rng = np.random.default_rng(0)
    assert dependence_p_values(features(np.ones(300)), rng.random(300), [0], rng)[0] == 1.0


def test_the_statistic_is_the_sample_distance_covariance_of_the_bins():
    """Against the definition: the mean over pairs of rows of products of doubly centred distances."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 80))
    (a, da), (b, db) = _binned(x, words=False), _binned(y, words=False)
    A, B = da[np.ix_(a, a)], db[np.ix_(b, b)]
    A, B = (M - M.mean(0) - M.mean(1)[:, None] + M.mean() for M in (A, B))
    table = np.zeros((len(da), len(db)))
    np.add.at(table, (a, b), 1.0)
    left, right = _centred(da, table.sum(1)), _centred(db, table.sum(0))
    assert np.einsum("ij,ik,jl,kl", table, left, right, table) == pytest.approx((A * B).sum(), rel=1e-9)


def test_columns_are_kept_only_if_the_loss_depends_on_them():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 6))
    loss = (rng.random(2000) < 1 / (1 + np.exp(-2 * X[:, 4]))).astype(float)
    assert dependent_columns(features(*X.T), loss, range(6), 0.05, rng) == (4,)


@pytest.mark.slow
def test_the_level_is_exact():
    rng = np.random.default_rng(4)
    found = [
        dependence_p_values(features(rng.normal(size=60)), (rng.random(60) < 0.3) * 1.0, [0], rng)[0]
        for _ in range(2000)
    ]
    low, high = stats.binom.ppf([0.005, 0.995], 2000, 0.05)
    assert np.count_nonzero(np.array(found) <= 0.05) <= high
    assert low * 0.7 <= np.count_nonzero(np.array(found) <= 0.05)  # ties make it a little conservative
