"""The bootstrap against closed forms and against multipliers drawn one by one."""

import numpy as np
import pytest
from scipy import stats

from aboveboard.drift.shift._estimates import Estimate
from aboveboard.drift.shift._inference import max_test


def estimate(value, source, target):
    return Estimate(value, source, target, len(source), len(target))


def test_with_one_subgroup_it_is_a_z_test():
    rng = np.random.default_rng(0)
    one = estimate(0.05, rng.normal(size=400), rng.normal(size=500) * 0.5)
    found = max_test([one], alpha=0.05, n_bootstrap=100_000, rng=rng)
    p = stats.norm.sf(0.05 / one.se)
    assert found.p_value == pytest.approx(p, abs=4 * np.sqrt(p / 100_000))
    assert found.critical_value == pytest.approx(1.645, abs=0.02)
    assert found.two_sided == pytest.approx(1.960, abs=0.02)


def test_it_has_the_law_of_multipliers_drawn_one_by_one():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(3, 300))
    parts = [base[0], base[0] + 0.5 * base[1], base[2]]
    estimates = [estimate(0.1, p, p[:200]) for p in parts]
    found = max_test(estimates, alpha=0.05, n_bootstrap=50_000, rng=rng)
    largest = np.full(20_000, -np.inf)
    multipliers = rng.normal(size=(20_000, 300)), rng.normal(size=(20_000, 200))
    for e in estimates:
        drawn = (
            multipliers[0] @ (e.source - e.source.mean()) / 300 + multipliers[1] @ (e.target - e.target.mean()) / 200
        )
        largest = np.maximum(largest, drawn / e.se)
    assert found.critical_value == pytest.approx(np.quantile(largest, 0.95), abs=0.04)


def test_no_subgroup_means_no_evidence():
    found = max_test([], alpha=0.05, n_bootstrap=1000, rng=np.random.default_rng(0))
    assert (found.best, found.p_value) == (-1, 1.0)


def test_a_subgroup_without_any_spread_takes_no_part():
    flat = estimate(-0.02, np.zeros(50), np.zeros(50))
    assert max_test([flat], alpha=0.05, n_bootstrap=1000, rng=np.random.default_rng(0)).best == -1


@pytest.mark.slow
def test_the_level_of_the_max_test_holds():
    """2,000 draws of three dependent estimates without any decay: acceptance region at 99 % of a 5 % test."""
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(2000):
        base = rng.normal(size=(400, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1.0]])
        estimates = [estimate(float(x.mean()), np.zeros(1), x - x.mean()) for x in base.T]
        rejected += max_test(estimates, alpha=0.05, n_bootstrap=2000, rng=rng).p_value <= 0.05
    low, high = stats.binom.ppf([0.005, 0.995], 2000, 0.05)
    assert low <= rejected <= high
