"""Amplification by shuffling: equal to brute force, above what really leaks, below what was published."""

import numpy as np
import pytest
from scipy import stats

from aboveboard.privacy.ldp_cdf._shuffle import clones_delta, shuffled_epsilon


def _hockey_stick(P, Q, epsilon):
    return np.maximum(P - np.exp(epsilon) * Q, 0).sum()


@pytest.mark.parametrize("n", [1, 2, 12, 60])
@pytest.mark.parametrize("local", [0.25, 1.0, 3.0])
def test_it_is_the_divergence_of_the_two_distributions_of_counts(n, local):
    clones = np.zeros((n + 1, n + 1))  # how many of them go either way
    for total, mass in enumerate(stats.binom.pmf(np.arange(n), n - 1, np.exp(-local))):
        ones = np.arange(total + 1)
        clones[ones, total - ones] += mass * stats.binom.pmf(ones, total, 0.5)
    first, second = np.roll(clones, 1, axis=0), np.roll(clones, 1, axis=1)
    keep = 1 / (1 + np.exp(-local))
    P, Q = keep * first + (1 - keep) * second, keep * second + (1 - keep) * first
    for epsilon in np.linspace(0, local, 9):
        exact = _hockey_stick(P, Q, epsilon)
        assert clones_delta(local, n, epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-14)
        assert exact == pytest.approx(_hockey_stick(Q, P, epsilon), abs=1e-14)


def _counts(n, local, ones):
    """Return how the count of answers 1 is distributed under either value of one person, for one threshold."""
    lie = 1 / (1 + np.exp(local))
    k = np.arange(n)
    others = np.convolve(stats.binom.pmf(k, n - 1 - ones, lie), stats.binom.pmf(k, ones, 1 - lie))[:n]
    return np.convolve(others, [1 - lie, lie]), np.convolve(others, [lie, 1 - lie])


@pytest.mark.parametrize("n", [2, 12, 101, 1001])
@pytest.mark.parametrize("local", [0.25, 1.0, 3.0, 5.0])
def test_what_really_leaks_is_never_more(n, local):
    for ones in (0, (n - 1) // 2, n - 1):
        P, Q = _counts(n, local, ones)
        for epsilon in np.linspace(0, local, 9):
            leak = max(_hockey_stick(P, Q, epsilon), _hockey_stick(Q, P, epsilon))
            assert leak <= clones_delta(local, n, epsilon) + 1e-12


def test_the_gaussian_bound_that_the_paper_quotes_is_exceeded_by_what_really_leaks():
    """That n reports are 2 exp(local / 2) / sqrt(n - 1)-Gaussian private holds for n to infinity, not for this n."""
    n, local, epsilon = 101, 4.0, 3.0
    mu = 2 * np.exp(local / 2) / np.sqrt(n - 1)
    quoted = stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)
    assert _hockey_stick(*_counts(n, local, 0), epsilon) > 2 * quoted


def test_epsilon_and_delta_belong_together():
    for local, n, delta in ((1.0, 10_000, 1e-6), (3.0, 1_000_000, 1e-9), (0.5, 50, 1e-3)):
        epsilon = shuffled_epsilon(local, n, delta)
        assert clones_delta(local, n, epsilon) <= delta
        assert clones_delta(local, n, epsilon - 1e-4) > delta
    assert shuffled_epsilon(1.0, 1, 1e-6) == pytest.approx(1.0, abs=1e-4), "nobody to hide among"
    assert shuffled_epsilon(1.0, 10**6, 0.5) == 0.0


def test_it_comes_near_the_closed_form_of_feldman_mcmillan_talwar_from_below():
    # Theorem 3.1: log(1 + (e^l - 1)/(e^l + 1) (8 sqrt(e^l log(4 / delta)) / sqrt(n) + 8 e^l / n))
    for local, n, delta in ((1.0, 10_000, 1e-6), (2.0, 100_000, 1e-8)):
        e = np.exp(local)
        closed = np.log1p((e - 1) / (e + 1) * (8 * np.sqrt(e * np.log(4 / delta) / n) + 8 * e / n))
        assert closed / 6 < shuffled_epsilon(local, n, delta) < closed
