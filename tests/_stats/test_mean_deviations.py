import numpy as np
import pytest

from aboveboard._stats.cells import GroupMeans
from aboveboard._stats.mean_deviations import gap_deviations, mean_deviations


def _scores(group, score, y, groups, **extra):
    return GroupMeans.from_arrays(2 * group + y, score, n_groups=2 * groups, edges=[], **extra)


def test_deviations_of_means_are_means_minus_the_mean_of_all():
    rng = np.random.default_rng(0)
    group, v, w = rng.integers(0, 4, 1000), rng.normal(size=1000), rng.exponential(size=1000)
    d = mean_deviations(GroupMeans.from_arrays(group, v, w, n_groups=4), rng=rng, n_replicates=300)
    expected = [np.average(v[group == g], weights=w[group == g]) - np.average(v, weights=w) for g in range(4)]
    np.testing.assert_allclose(d.deviation, expected)
    assert d.centre == pytest.approx(np.average(v, weights=w))
    r = mean_deviations(GroupMeans.from_arrays(group, v, w, n_groups=4), rng=rng, reference=2, n_replicates=300)
    np.testing.assert_allclose(r.deviation, np.array(expected) - expected[2], atol=1e-12)
    assert np.isnan(r.low[2])


def test_the_interval_of_a_mean_of_normal_errors_is_near_students():
    rng = np.random.default_rng(1)
    group, v = np.repeat([0, 1], 400), rng.normal(size=800)
    d = mean_deviations(GroupMeans.from_arrays(group, v, n_groups=2), rng=rng, n_replicates=4000)
    halves = [1.966 * v[group == g].std(ddof=1) / 20 for g in range(2)]
    np.testing.assert_allclose((d.value_high - d.value_low) / 2, halves, rtol=0.05)
    apart = 1.963 * np.hypot(halves[0], halves[1]) / 1.966 / 2
    np.testing.assert_allclose((d.high - d.low) / 2, apart, rtol=0.06)


def test_clusters_of_equal_rows_have_the_interval_of_single_rows():
    rng = np.random.default_rng(2)
    group, v = np.repeat([0, 1, 2], 200), rng.normal(size=600)
    single = mean_deviations(GroupMeans.from_arrays(group, v, n_groups=3), rng=rng, n_replicates=4000)
    clusters = np.repeat(np.arange(600), 5)
    repeated = GroupMeans.from_arrays(np.repeat(group, 5), np.repeat(v, 5), n_groups=3, clusters=clusters)
    d = mean_deviations(repeated, rng=rng, n_replicates=4000)
    np.testing.assert_allclose(d.high - d.low, single.high - single.low, rtol=0.08)
    np.testing.assert_allclose(d.value_high - d.value_low, single.value_high - single.value_low, rtol=0.08)


def test_errors_without_spread_and_groups_of_a_few_rows_have_no_interval():
    d = mean_deviations(
        GroupMeans.from_arrays(np.repeat([0, 1, 2], [50, 50, 3]), np.r_[np.zeros(100), 1, 2, 3], n_groups=3),
        rng=np.random.default_rng(0),
        n_replicates=200,
    )
    assert np.isnan(d.low).all()
    assert d.value.tolist() == [0, 0, 2]
    constant = mean_deviations(
        GroupMeans.from_arrays(np.repeat([0, 1], 50), np.full(100, 0.1), n_groups=2),
        rng=np.random.default_rng(0),
        n_replicates=200,
    )
    assert np.isnan(constant.low).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_gaps_are_mean_score_minus_observed_rate(weighted):
    rng = np.random.default_rng(0)
    group, score = rng.integers(0, 3, 900), rng.random(900)
    y = (rng.random(900) < score**2).astype(int)
    w = rng.exponential(size=900) if weighted else np.ones(900)
    d = gap_deviations(_scores(group, score, y, 3, weights=w), rng=rng)
    gaps = [np.average((score - y)[group == g], weights=w[group == g]) for g in range(3)]
    np.testing.assert_allclose(d.value, gaps)
    assert d.centre == pytest.approx(np.average(score - y, weights=w))
    np.testing.assert_allclose(d.deviation, np.array(gaps) - d.centre, atol=1e-12)


def test_the_interval_of_a_gap_is_near_the_normal_one_in_large_groups():
    rng = np.random.default_rng(3)
    group, score = np.repeat([0, 1], 5000), rng.random(10_000)
    y = (rng.random(10_000) < score).astype(int)
    d = gap_deviations(_scores(group, score, y, 2), rng=rng)
    half = 1.96 * (score - y)[group == 0].std() / np.sqrt(5000)
    assert (d.value_high - d.value_low)[0] / 2 == pytest.approx(half, rel=0.03)


def test_a_group_without_positives_has_a_gap_interval_that_reaches_up_to_wilsons():
    score, group = np.full(200, 0.01), np.repeat([0, 1], 100)
    y = np.zeros(200, dtype=int)
    y[150] = 1
    d = gap_deviations(_scores(group, score, y, 2), rng=np.random.default_rng(0))
    # no positive among 100: the rate may be as high as 1.96^2 / (100 + 1.96^2)
    assert d.value_low[0] == pytest.approx(0.01 - 0.037, abs=2e-4)
    assert (d.low < d.high).all()


def test_gaps_of_clusters_of_equal_rows_have_the_interval_of_single_rows():
    rng = np.random.default_rng(4)
    group, score = np.repeat([0, 1, 2], 300), rng.random(900)
    y = (rng.random(900) < score).astype(int)
    single = gap_deviations(_scores(group, score, y, 3), rng=np.random.default_rng(0))
    many = [np.repeat(a, 4) for a in (group, score, y)]
    d = gap_deviations(_scores(*many, 3, clusters=np.repeat(np.arange(900), 4)), rng=np.random.default_rng(0))
    np.testing.assert_allclose(d.high - d.low, single.high - single.low, rtol=0.05)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", ["normal", "exponential", "lognormal"])
def test_means_keep_the_level_over_all_groups(shape):
    rng = np.random.default_rng(7)
    draw = {"normal": rng.normal, "exponential": rng.exponential, "lognormal": rng.lognormal}[shape]
    mean = {"normal": 0.0, "exponential": 1.0, "lognormal": np.exp(0.5)}[shape]
    group, wrong, single = np.repeat(np.arange(8), 200), 0, 0.0
    for _ in range(2000):
        means = GroupMeans.from_arrays(group, draw(size=1600), n_groups=8)
        d = mean_deviations(means, rng=rng, n_replicates=400)
        wrong += bool(((d.low > 0) | (d.high < 0)).any())
        single += ((d.value_low <= mean) & (mean <= d.value_high)).mean()
    assert wrong / 2000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert 0.925 <= single / 2000 <= 0.98


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 9), (5, 5)])
def test_gaps_keep_the_level_over_all_groups(a, b):
    rng = np.random.default_rng(8)
    group, normals, wrong, single = np.repeat(np.arange(8), 200), rng.standard_normal((10_000, 8)), 0, 0.0
    for _ in range(2000):
        score = rng.beta(a, b, 1600)
        y = (rng.random(1600) < score).astype(int)
        d = gap_deviations(_scores(group, score, y, 8), rng=rng, normals=normals)
        wrong += bool(((d.low > 0) | (d.high < 0)).any())
        single += ((d.value_low <= 0) & (d.value_high >= 0)).mean()
    assert wrong / 2000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert 0.925 <= single / 2000 <= 0.98
