"""The search for subgroups against brute force over all sets of a finite world."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from aboveboard.drift.shift._detectors import lagrange_multiplier, nested_thresholds, scan_regions


def dual(lam, z, gain, price, tolerance):
    return np.maximum((z - lam) * (gain - price) - tolerance * price, 0.0).sum()


@given(seed=st.integers(0, 100_000), tolerance=st.sampled_from([0.0, 0.02, 0.1]), n=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_the_multiplier_minimises_the_dual(seed, tolerance, n):
    rng = np.random.default_rng(seed)
    z, gain, price = rng.random(n), rng.gamma(2.0, 0.5, n), rng.gamma(2.0, 0.5, n)
    lam = lagrange_multiplier(z, gain, price, tolerance)
    a = gain - price
    bends = z - tolerance * price / a
    best = min(dual(b, z, gain, price, tolerance) for b in bends)  # a convex piecewise linear function ends at a bend
    assert dual(lam, z, gain, price, tolerance) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_is_the_optimum_over_subgroups(seed):
    """Strong duality with the linear programme over fractional sets, solved by SciPy."""
    rng = np.random.default_rng(seed)
    p0, p1, z, omega = rng.dirichlet(np.ones(12) * 3), rng.dirichlet(np.ones(12) * 3), rng.random(12), 1.3
    w = p1 / p0
    objective, balance = p0 * (omega * w * z - z - 0.02), p0 * (omega * w - 1.0)
    primal = linprog(-objective, A_eq=balance[None], b_eq=[0.0], bounds=(0, 1))
    repeated = np.repeat(np.arange(12), np.rint(p0 * 200_000).astype(int))
    lam = lagrange_multiplier(z[repeated], omega * w[repeated], 1.0, 0.02)
    value = (p0 * np.maximum((z - lam) * (omega * w - 1.0) - 0.02, 0.0)).sum()
    assert value == pytest.approx(-primal.fun, abs=1e-3)


def test_the_scan_comes_near_the_best_of_all_subgroups():
    rng = np.random.default_rng(3)
    p0, p1, z = rng.dirichlet(np.ones(12) * 5), rng.dirichlet(np.ones(12) * 5), rng.random(12)
    c0, c1 = (np.repeat(np.arange(12), np.rint(p * 20_000).astype(int)) for p in (p0, p1))
    ones = np.ones(12)
    w = p1 / p0
    regions = scan_regions(
        (z[c0], w[c0], ones[c0]), (z[c1], w[c1], ones[c1]), tolerance=0.0, min_prevalence=0.2, n_keep=20
    )

    def decay(inside):
        return (p1 @ (inside * z)) / (p1 @ inside) - (p0 @ (inside * z)) / (p0 @ inside)

    found = max(decay(region(z, w, ones)) for region in regions)
    sets = (np.array(bits) for bits in itertools.product([0.0, 1.0], repeat=12))
    best = max(decay(A) for A in sets if min(p0 @ A, p1 @ A) >= 0.2)
    assert found <= best + 1e-9
    assert found >= 0.8 * best


def test_regions_below_the_smallest_prevalence_are_left_out():
    rng = np.random.default_rng(0)
    z, w = rng.random(1000), np.exp(rng.normal(size=1000))
    parts = (z, w, np.ones(1000))
    for region in scan_regions(parts, parts, tolerance=0.0, min_prevalence=0.3, n_keep=5):
        assert region(*parts).mean() >= 0.3


def test_thresholds_are_nested_from_all_that_is_positive_to_the_smallest_share():
    decay = np.linspace(-1.0, 1.0, 1001)
    thresholds = nested_thresholds(decay, min_prevalence=0.05, n_keep=5)
    shares = [t(decay).mean() for t in thresholds]
    assert shares[0] == pytest.approx(0.5, abs=0.01)
    assert shares[-1] == pytest.approx(0.05, abs=0.01)
    assert shares == sorted(shares, reverse=True)


def test_where_nothing_is_positive_there_is_no_threshold():
    assert nested_thresholds(np.full(100, -0.1), min_prevalence=0.05, n_keep=5) == []


def test_one_threshold_is_the_paper_s_subgroup():
    (threshold,) = nested_thresholds(np.array([-1.0, 0.5, 2.0]), min_prevalence=0.05, n_keep=1)
    assert threshold.value == 0.0


def test_equal_ratios_give_no_region():
    z = np.random.default_rng(0).random(500)
    assert lagrange_multiplier(z, np.ones(500), np.ones(500), 0.02) == 0.0
