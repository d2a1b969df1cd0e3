import numpy as np
import pytest
from scipy import sparse, stats

from aboveboard._stats.deviations import WIDER, RateSums, max_t_normal, rate_deviations
from aboveboard._stats.intervals import newcombe


def _sums(yes, n):
    yes, n = np.asarray(yes, dtype=float), np.asarray(n, dtype=float)
    return RateSums(yes, n - yes, yes, n - yes)


def _clustered(group, y, cluster, groups):
    """Return the sums of unweighted rows with clusters."""
    shape = (int(cluster.max()) + 1, groups)
    total = sparse.coo_matrix((np.ones(len(y)), (cluster, group)), shape=shape).tocsr()
    yes = sparse.coo_matrix((y.astype(float), (cluster, group)), shape=shape).tocsr()
    k, n = np.asarray(yes.sum(axis=0)).ravel(), np.asarray(total.sum(axis=0)).ravel()
    return RateSums(k, n - k, k, n - k, yes, total)


def test_deviations_are_rates_minus_the_pooled_rate():
    d = rate_deviations(_sums([10, 40, 90], [100, 100, 200]), rng=np.random.default_rng(0))
    assert d.centre == pytest.approx(140 / 400)
    np.testing.assert_allclose(d.deviation, np.array([0.1, 0.4, 0.45]) - 0.35)
    assert ((d.low < d.deviation) & (d.deviation < d.high)).all()


def test_two_groups_have_no_price_of_simultaneity_and_the_interval_of_newcombe():
    d = rate_deviations(_sums([50, 50], [100, 100]), rng=np.random.default_rng(0))
    z = 1.959964 * WIDER
    assert d.critical == pytest.approx(z, rel=0.02)
    # equal rates: nothing is added for the uncertain share
    low, high = newcombe(0.5, 100, 0.5, 100, z=d.critical)
    assert d.low[0] == pytest.approx(0.5 * low, rel=0.01)
    assert d.high[0] == pytest.approx(0.5 * high, rel=0.01)
    assert d.low[0] <= 0.5 * low + 1e-12


def test_compared_with_a_reference_group_the_interval_is_newcombes():
    d = rate_deviations(_sums([10, 40, 90], [100, 100, 200]), rng=np.random.default_rng(0), reference=1)
    low, high = newcombe(0.1, 100, 0.4, 100, z=d.critical)
    assert d.deviation.tolist() == pytest.approx([-0.3, 0.0, 0.05])
    # each end rests on the wider of Wilson's and Jeffreys' intervals
    assert (d.low[0], d.high[0]) == pytest.approx((low, high), rel=0.1)
    assert d.low[0] <= low + 1e-12
    assert d.high[0] >= high - 1e-12
    assert np.isnan(d.low[1])
    assert d.centre == pytest.approx(0.4)


def test_the_critical_value_is_dunnetts_against_a_reference_and_near_sidaks_for_many_groups():
    # Dunnett 1955 table II b, two-sided 5 %, infinite degrees of freedom: 4 groups against a control of equal size
    total = np.full(5, 100.0)
    compared = np.array([False, True, True, True, True])
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((400_000, 5))
    z = max_t_normal(np.ones(5), total, compared, level=0.95, rng=rng, reference=0, normals=draws)
    assert z == pytest.approx(2.44, abs=0.015)
    many = np.ones(40)
    z = max_t_normal(many, many, many > 0, level=0.95, rng=rng)
    assert z == pytest.approx(stats.norm.ppf((1 + 0.95 ** (1 / 40)) / 2), abs=0.03)


def test_an_interval_is_never_of_width_zero_and_stays_within_one_point():
    for yes in ([0, 0, 0], [5, 5, 5], [0, 5, 5], [0, 0, 1]):
        d = rate_deviations(_sums(yes, [5, 5, 5]), rng=np.random.default_rng(0))
        assert (d.low < d.high).all()
        assert (d.value_low < d.value_high).all()
        assert (d.low >= -1).all()
        assert (d.high <= 1).all()


def test_a_group_without_rows_does_not_exist_and_changes_nothing():
    with_empty = rate_deviations(_sums([10, 0, 40], [100, 0, 100]), rng=np.random.default_rng(0))
    without = rate_deviations(_sums([10, 40], [100, 100]), rng=np.random.default_rng(0))
    for name in ("value", "deviation", "low", "high", "value_low"):
        assert np.isnan(getattr(with_empty, name)[1])
    np.testing.assert_allclose(with_empty.deviation[[0, 2]], without.deviation)
    np.testing.assert_allclose(with_empty.low[[0, 2]], without.low, rtol=0.02)


def test_a_single_group_has_nothing_to_deviate_from():
    d = rate_deviations(_sums([10], [100]), rng=np.random.default_rng(0))
    assert np.isnan(d.deviation[0])
    assert d.value[0] == pytest.approx(0.1)


def test_rows_that_come_four_times_as_clusters_have_the_interval_of_single_rows():
    rng = np.random.default_rng(1)
    group, y = rng.integers(0, 3, 900), rng.random(900) < 0.3
    single = rate_deviations(_sums(np.bincount(group, weights=y), np.bincount(group)), rng=np.random.default_rng(0))
    clustered = _clustered(np.repeat(group, 4), np.repeat(y, 4), np.repeat(np.arange(900), 4), 3)
    d = rate_deviations(clustered, rng=np.random.default_rng(0))
    np.testing.assert_allclose(d.low, single.low, rtol=0.03)
    np.testing.assert_allclose(d.effective_n, single.effective_n, rtol=0.03)


def test_clusters_that_span_groups_narrow_their_difference_as_pairs_do():
    rng = np.random.default_rng(2)
    both = rng.random(2000) < 0.5  # a person has the same outcome in both groups, but for one in twenty
    flip = rng.random(2000) < 0.05
    y = np.concatenate([both, both ^ flip])
    group, person = np.repeat([0, 1], 2000), np.tile(np.arange(2000), 2)
    d = rate_deviations(_clustered(group, y, person, 2), rng=np.random.default_rng(0))
    difference = both.astype(float) - (both ^ flip)
    half = 1.96 * difference.std() / np.sqrt(2000) / 2  # the deviation is half the difference
    assert (d.high - d.low)[0] / 2 == pytest.approx(half, rel=0.15)


def test_the_variance_of_the_share_is_part_of_the_interval():
    # a multinomial sample of two groups with rates 0 and 1: only the share of a group is uncertain
    rng = np.random.default_rng(0)
    n1 = rng.binomial(100_000, 0.3, 4000)
    spread = (n1 / 100_000).std()  # p_1 - pooled = 1 - share
    d = rate_deviations(_sums([30_000, 0], [30_000, 70_000]), rng=rng)
    assert (d.high - d.low)[0] / 2 == pytest.approx(1.96 * WIDER * spread, rel=0.05)


def _simulated(groups, n, p, draws, rng):
    normals = rng.standard_normal((10_000, groups))
    wrong = single = 0
    for _ in range(draws):
        d = rate_deviations(_sums(rng.binomial(n, p, groups), np.full(groups, n)), rng=rng, normals=normals)
        wrong += bool(((d.low > 0) | (d.high < 0)).any())
        single += ((d.value_low <= p) & (p <= d.value_high)).mean()
    return wrong / draws, single / draws


def test_equal_groups_are_rarely_found_to_differ():
    wrong, single = _simulated(8, 200, 0.3, 400, np.random.default_rng(0))
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert 0.925 <= single <= 0.98


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("groups", "n"), [(8, 200), (10, 500)])
@pytest.mark.parametrize("p", [0.005, 0.02, 0.05, 0.1, 0.3, 0.5, 0.9])
def test_at_most_5_percent_of_samples_of_equal_groups_are_failed_at_limit_0(groups, n, p):
    # 4,000 draws: the share is known to 0.34 points; fourteen settings, so 3 standard errors are allowed
    wrong, single = _simulated(groups, n, p, 4000, np.random.default_rng(groups))
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert wrong >= 0.01
    if n * p >= 5:
        assert 0.925 <= single <= 0.98


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["weighted", "clustered"])
def test_weights_and_clusters_keep_the_level(kind):
    rng = np.random.default_rng(5)
    groups, n, draws, wrong = 5, 300, 2000, 0
    group = np.repeat(np.arange(groups), n)
    normals = rng.standard_normal((5000, groups))
    for _ in range(draws):
        if kind == "weighted":
            y, w = rng.random(groups * n) < 0.3, rng.exponential(size=groups * n)
            parts = [np.bincount(group, weights=a) for a in (w * y, w * ~y, w * w * y, w * w * ~y)]
            sums = RateSums(*parts)
        else:
            person = np.arange(groups * n) // 5
            rate = rng.beta(3, 7, groups * n // 5)  # rows of a person share a rate
            sums = _clustered(group, rng.random(groups * n) < rate[person], person, groups)
        d = rate_deviations(sums, rng=rng, normals=normals)
        wrong += bool(((d.low > 0) | (d.high < 0)).any())
    assert 0.015 <= wrong / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)
