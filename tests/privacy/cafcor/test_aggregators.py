"""CAF against the algorithm written out in d x d matrices, and what no rule may lose: symmetries, and bounded harm."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import trim_mean

from aboveboard.core import InputError
from aboveboard.privacy import caf, coordinate_median, geometric_median, multi_krum, trimmed_mean
from aboveboard.privacy.cafcor._aggregators import AGGREGATORS

RULES = [caf, coordinate_median, geometric_median, multi_krum, trimmed_mean]


def vector(rule, x, f):
    found = rule(x, f)
    return found.mean if rule is caf else found


def written_out(x, f):
    """The filter as in the paper's Algorithm 2, with the covariance itself."""
    n = len(x)
    c, best, kept = np.ones(n), np.inf, x.mean(axis=0)
    while c.sum() > n - 2 * f:
        mean = c @ x / c.sum()
        covariance = (c[:, None] * (x - mean)).T @ (x - mean) / c.sum()
        values, vectors = np.linalg.eigh(covariance)
        if values[-1] < best:
            best, kept = values[-1], mean
        tau = ((x - mean) @ vectors[:, -1]) ** 2
        tau[c == 0] = 0
        if tau.max() == 0:
            break
        c = c * (1 - tau / tau.max())
    return kept, best


def attacked(seed, n=15, f=3, d=8, size=3.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.2, 2.0, d))
    x[:f] += size * rng.normal(size=d)
    return rng.permutation(x)


@pytest.mark.parametrize("seed", range(30))
def test_the_filter_is_that_of_the_covariance_written_out(seed):
    rng = np.random.default_rng(1000 + seed)
    n = int(rng.integers(3, 25))
    f, d = int(rng.integers(1, (n - 1) // 2 + 1)), int(rng.integers(1, 20))
    x = attacked(seed, n, f, d, float(10 ** rng.uniform(-1, 4)))
    mean, eigenvalue = written_out(x, f)
    found = caf(x, f)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-7, atol=1e-7 * np.abs(x).max())
    assert found.top_eigenvalue == pytest.approx(eigenvalue, rel=1e-6, abs=1e-9)
    assert found.weights.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(found.weights @ x, found.mean, rtol=0, atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize("rule", [caf, trimmed_mean])
def test_without_liars_the_mean_is_returned(rule):
    x = attacked(0)
    np.testing.assert_allclose(vector(rule, x, 0), x.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("rule", [caf, geometric_median, multi_krum])
@pytest.mark.parametrize("seed", range(5))
def test_rotating_shifting_and_scaling_the_rows_does_so_to_the_result(rule, seed):
    rng = np.random.default_rng(seed)
    x = attacked(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    shift, scale = 1e6 * rng.normal(size=8), 10.0 ** rng.uniform(-6, 6)
    expected = scale * vector(rule, x, 3) @ rotation + shift * scale
    found = vector(rule, (x @ rotation + shift) * scale, 3)
    np.testing.assert_allclose(found / scale - shift, expected / scale - shift, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_the_clients_does_not_matter(rule):
    x = attacked(4)
    np.testing.assert_allclose(vector(rule, x[::-1], 3), vector(rule, x, 3), rtol=0, atol=1e-9)


@given(st.integers(1, 6), st.integers(0, 2**31), st.floats(-3, 99))
def test_honest_rows_that_agree_are_returned_exactly(f, seed, magnitude):
    rng = np.random.default_rng(seed)
    honest = rng.normal(size=5)
    x = np.tile(honest, (3 * f, 1))
    x[:f] = 10.0**magnitude * rng.normal(size=(f, 5)) / 10
    assert np.array_equal(caf(rng.permutation(x), f).mean, honest)


@pytest.mark.parametrize("rule", RULES)
def test_no_size_of_a_lie_moves_the_result_further_and_further(rule):
    rng = np.random.default_rng(5)
    honest, direction = rng.normal(size=(12, 6)), rng.normal(size=(3, 6))
    for size in (1e3, 1e6, 1e12, 1e50):
        found = vector(rule, np.vstack([honest, size * direction]), 3)
        assert np.linalg.norm(found - honest.mean(axis=0)) < 3


def test_the_error_stays_within_a_multiple_of_f_over_n_times_the_honest_top_eigenvalue():
    """The largest multiple found over these configurations, 1.32, must not grow."""
    worst = 0.0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 40))
        f, d = int(rng.integers(1, n // 4 + 1)), int(rng.integers(1, 30))
        honest = rng.normal(size=(n - f, d)) * rng.uniform(0.1, 3.0, d)
        lie = 10 ** rng.uniform(-1, 3) * rng.normal(size=d) + rng.choice([0, 1]) * rng.normal(size=(f, d))
        found = caf(np.vstack([honest, np.broadcast_to(lie, (f, d))]), f).mean
        top = np.linalg.eigvalsh(np.atleast_2d(np.cov(honest.T, bias=True)))[-1]
        worst = max(worst, float(((found - honest.mean(axis=0)) ** 2).sum() / (f / n * top)))
    assert 1.0 < worst <= 1.33


def test_the_memory_does_not_grow_with_the_square_of_the_dimension():
    x = np.random.default_rng(0).normal(size=(10, 20_000))
    tracemalloc.start()
    caf(x, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * x.nbytes  # a d x d matrix alone would be 2,000 times as large


def test_the_type_of_the_input_is_kept():
    x = attacked(2)
    assert caf(x.astype(np.float32), 3).mean.dtype == np.float32
    assert caf(np.rint(10 * x).astype(int), 3).mean.dtype == np.float64


def test_the_trimmed_mean_is_scipy_s_and_the_median_numpy_s():
    x = attacked(3, n=20, f=4)
    np.testing.assert_allclose(trimmed_mean(x, 4), trim_mean(x, 0.2), rtol=1e-12)
    assert np.array_equal(coordinate_median(x, 4), np.median(x, axis=0))


def test_the_geometric_median_minimises_the_sum_of_distances():
    x = attacked(6)

    def total(point):
        return np.linalg.norm(x - point, axis=1).sum()

    best = minimize(total, x.mean(axis=0), method="BFGS", options={"gtol": 1e-10}).fun
    assert total(geometric_median(x, 3)) <= best * (1 + 1e-9)


def test_multi_krum_leaves_the_far_rows_out():
    x = np.vstack([np.random.default_rng(0).normal(size=(9, 4)), 50 + np.zeros((2, 4))])
    np.testing.assert_allclose(multi_krum(x, 2), x[:9].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("rule", [*RULES, AGGREGATORS["caf"]])
@pytest.mark.parametrize(
    ("x", "f"),
    [
        (np.zeros(5), 1),
        (np.zeros((0, 3)), 0),
        (np.full((5, 2), np.nan), 1),
        (np.full((5, 2), np.inf), 1),
        (np.full((5, 2), 1e101), 1),
        (np.zeros((4, 2)), 2),
        (np.zeros((4, 2)), -1),
        (np.zeros((4, 2)), 1.0),
    ],
)
def test_what_cannot_be_aggregated_is_refused(rule, x, f):
    with pytest.raises(InputError):
        rule(x, f)


def test_multi_krum_needs_a_neighbour_for_each_row():
    with pytest.raises(InputError, match="n - 3"):
        multi_krum(np.zeros((3, 2)), 1)
