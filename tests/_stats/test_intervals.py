import numpy as np
import pytest
from scipy import stats

from aboveboard._stats.intervals import (
    clopper_pearson,
    cluster_effective_n,
    critical_z,
    kish,
    mover,
    newcombe,
    outer_interval,
    rate_interval,
    weighted_n,
    wilson,
)

COUNTS = [(0, 1), (0, 10), (1, 10), (5, 10), (10, 10), (3, 17), (263, 1000), (81, 263)]


def _coverage(interval, n):
    """Return the exact coverage at rates on a grid and on both sides of every end, with n p and n (1 - p) >= 5."""
    k = np.arange(n + 1)
    low, high = interval(k, n)
    ends = np.concatenate([low, high])
    rates = np.unique(np.concatenate([np.linspace(5 / n, 1 - 5 / n, 101), ends - 1e-10, ends + 1e-10]))
    rates = rates[(n * rates >= 5 - 1e-9) & (n * (1 - rates) >= 5 - 1e-9)]
    mass = stats.binom.pmf(k[:, None], n, rates)
    return (mass * ((low[:, None] <= rates) & (rates <= high[:, None]))).sum(axis=0)


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_wilson_and_clopper_pearson_are_those_of_scipy(k, n, level):
    test = stats.binomtest(k, n)
    for ours, name in ((wilson, "wilson"), (clopper_pearson, "exact")):
        expected = test.proportion_ci(level, name)
        np.testing.assert_allclose(np.array(ours(k, n, level=level)), expected, atol=1e-12)


def test_wilson_is_the_published_interval_of_newcombes_first_table():
    # Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3
    expected = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
    for k, n, low, high in expected:
        np.testing.assert_allclose(np.array(wilson(k, n)), [low, high], atol=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_gives_the_intervals_published_for_method_10(first, second, low, high):
    # Newcombe, Statistics in Medicine 17 (1998) 873-890, table II
    (k1, n1), (k2, n2) = first, second
    np.testing.assert_allclose(np.array(newcombe(k1 / n1, n1, k2 / n2, n2)), [low, high], atol=5e-5)


def test_a_difference_of_fully_correlated_estimates_has_no_more_spread_than_their_intervals_differ():
    point, interval = np.array([0.4]), (np.array([0.3]), np.array([0.5]))
    low, high = mover(point, interval, point, interval, correlation=1.0)
    assert low == pytest.approx(0.0)
    assert high == pytest.approx(0.0)


def test_coverage_of_the_interval_shown_lies_between_92_5_and_98_percent_but_for_12_rows():
    sizes = [*range(10, 151), *range(160, 401, 40), 500, 700, 1000]
    covers = {n: _coverage(rate_interval, n) for n in sizes}
    assert min(c.min() for n, c in covers.items() if n != 12) >= 0.925
    assert max(c.max() for c in covers.values()) <= 0.98
    assert covers[12].min() == pytest.approx(0.9221, abs=5e-4)


def test_wilson_itself_covers_as_little_as_91_2_percent_below_35_rows_and_92_5_above():
    low = {n: _coverage(wilson, n).min() for n in range(10, 151)}
    assert min(low, key=low.get) == 13
    assert low[13] == pytest.approx(0.9120, abs=5e-4)
    assert min(value for n, value in low.items() if n >= 35) >= 0.925


def test_the_outer_interval_holds_wilsons_and_jeffreys():
    k, n = np.array([c[0] for c in COUNTS]), np.array([c[1] for c in COUNTS])
    low, high = outer_interval(k, n, z=2.7)
    tail = stats.norm.sf(2.7)
    inner = [wilson(k, n, z=2.7), stats.beta.ppf(np.array([[tail], [1 - tail]]), k + 0.5, n - k + 0.5)]
    np.testing.assert_allclose(low, np.where(k == 0, 0, np.minimum(inner[0][0], inner[1][0])), atol=1e-12)
    np.testing.assert_allclose(high, np.where(k == n, 1, np.maximum(inner[0][1], inner[1][1])), atol=1e-12)


def test_no_interval_has_width_zero_not_even_where_nothing_was_observed():
    n = np.arange(1, 2000)
    for interval in (wilson, rate_interval, clopper_pearson):
        low, high = interval(np.zeros_like(n), n)
        assert (low == 0).all()
        assert (high > 0).all()
        low, high = interval(n, n)
        assert (low < 1).all()
        assert (high == 1).all()
    low, high = newcombe(0.0, n, 0.0, n)
    assert (low < 0).all()
    assert (high > 0).all()


def test_without_rows_everything_is_possible():
    assert np.array(wilson(0, 0)).tolist() == [0.0, 1.0]


def test_effective_sizes_are_the_number_of_rows_where_weights_are_equal():
    assert kish(20 * 0.5, 20 * 0.25) == pytest.approx(20)
    assert weighted_n(6, 14, 6, 14) == pytest.approx(20)
    assert weighted_n(0, 14, 0, 14) == pytest.approx(14)
    assert weighted_n(0, 0, 0, 0) == 0


def test_the_effective_size_gives_the_linearised_variance_of_a_weighted_rate():
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.1
    w = rng.exponential(size=400) * (1 + 2 * y)  # the outcome has the larger weights
    p = np.average(y, weights=w)
    variance = (w**2 * (y - p) ** 2).sum() / w.sum() ** 2
    n = weighted_n(w[y].sum(), w[~y].sum(), (w[y] ** 2).sum(), (w[~y] ** 2).sum())
    assert p * (1 - p) / n == pytest.approx(variance)
    assert n < kish(w.sum(), (w**2).sum())


def test_few_clusters_and_no_spread_between_them_leave_the_number_of_clusters():
    assert cluster_effective_n(0.0, 0.0, 7, 100) == 7
    assert cluster_effective_n(0.3, 0.0, 7, 100) == 7
    shrink = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 6)) ** 2
    assert cluster_effective_n(0.3, 0.01, 7, 100) == pytest.approx(21 * shrink)
    assert cluster_effective_n(0.3, 0.0001, 7, 100) == 100


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="NaN"):
        clopper_pearson(np.nan, 2)
    with pytest.raises(ValueError, match="level"):
        critical_z(1.0)
