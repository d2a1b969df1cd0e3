import numpy as np
import pytest
from scipy import stats

from aboveboard._stats.bootstrap import (
    CellMoments,
    ClusterCells,
    basic_interval,
    max_t_critical,
    percentile_interval,
    resampled_weights,
    studentised_interval,
)


def _all(batches):
    return np.concatenate(list(batches))


def test_counts_of_resampled_cells_are_multinomial():
    counts = np.array([3.0, 0.0, 10.0, 87.0])
    moments = CellMoments(counts, counts, counts)
    draws = _all(w for _, w in resampled_weights(moments, 20_000, np.random.default_rng(0)))
    p = counts / 100
    assert (draws.sum(axis=1) == 100).all()
    assert (draws[:, 1] == 0).all()
    np.testing.assert_allclose(draws.mean(axis=0), counts, atol=5 * np.sqrt(25 / 20_000))
    expected = 100 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.6)


def test_weighted_cells_have_the_mean_and_variance_of_resampled_rows():
    rng = np.random.default_rng(1)
    cell, w = rng.integers(0, 3, 60), rng.exponential(size=60)
    sums = [np.bincount(cell, weights=w**k, minlength=3) for k in (0, 1, 2)]
    draws = _all(v for _, v in resampled_weights(CellMoments(*sums), 20_000, rng))
    rows = rng.integers(0, 60, (20_000, 60))
    direct = np.stack([(w[rows] * (cell[rows] == c)).sum(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(draws.mean(axis=0), direct.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(direct.T), atol=0.05 * np.cov(direct.T).max())


@pytest.mark.parametrize("n", [50, 5000])
def test_resampled_clusters_have_the_variance_between_clusters(n):
    rng = np.random.default_rng(2)
    size = rng.integers(1, 6, n)
    cluster = np.repeat(np.arange(n), size)
    cell = np.repeat(rng.integers(0, 2, n), size)
    units = ClusterCells.from_arrays(cluster, cell, None, 2)
    draws = _all(units.resampled(4000, rng))
    table = np.zeros((n, 2))
    np.add.at(table, (cluster, cell), 1)
    expected = n * np.cov(table.T, bias=True)
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.15 * expected.max())
    np.testing.assert_allclose(draws.mean(axis=0), table.sum(axis=0), rtol=0.02)


def test_clusters_of_partitions_are_merged_by_name():
    a = ClusterCells.from_arrays(["x", "y", "x"], np.array([0, 1, 1]), None, 2)
    b = ClusterCells.from_arrays(["y", "z"], np.array([1, 0]), np.array([2.0, 5.0]), 2)
    both = a + b
    assert both.ids.tolist() == ["x", "y", "z"]
    assert both.matrix.toarray().tolist() == [[1, 1], [0, 3], [5, 0]]


def test_percentile_intervals_are_quantiles_and_leave_out_what_does_not_exist():
    draws = np.column_stack([np.arange(1001.0), np.full(1001, np.nan)])
    draws[500, 0] = np.nan
    low, high = percentile_interval(draws, 0.9)
    np.testing.assert_allclose(low[0], np.nanquantile(draws[:, 0], 0.05))
    np.testing.assert_allclose(high[0], np.nanquantile(draws[:, 0], 0.95))
    assert np.isnan(low[1])
    assert np.isnan(high[1])


def test_basic_and_studentised_intervals_reflect_the_draws():
    draws = np.linspace(0, 2, 2001)
    low, high = basic_interval(0.5, draws, 0.95)
    assert (low, high) == pytest.approx((1 - 1.95, 1 - 0.05))
    low, high = studentised_interval(10.0, 2.0, draws, 0.95)
    assert (low, high) == pytest.approx((10 - 2 * 1.95, 10 - 2 * 0.05))


def test_the_critical_value_of_independent_normals_is_sidaks():
    t = np.random.default_rng(0).standard_normal((100_000, 8))
    assert max_t_critical(t) == pytest.approx(stats.norm.ppf((1 + 0.95 ** (1 / 8)) / 2), abs=0.02)
    assert max_t_critical(np.zeros((100, 3))) == pytest.approx(1.96, abs=0.001)
    assert max_t_critical(np.full((100, 3), np.nan)) == pytest.approx(1.96, abs=0.001)


def test_a_level_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="level"):
        percentile_interval([1.0, 2.0], 95)
