"""The estimate is the maximum of the likelihood; its intervals have the level they claim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from sklearn.isotonic import isotonic_regression

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import CurrentStatusRandomizer, LDPCurrentStatusCDF

GRID = np.arange(1, 11) / 11


def _reports(n, epsilon=1.0, seed=0, **options):
    x = np.random.default_rng([seed, 1]).random(n)  # another stream than the thresholds'
    return CurrentStatusRandomizer(epsilon, random_state=seed, **options).report(x)


def _log_likelihood(F, epsilon, yes, count):
    r = np.tanh(epsilon / 2)
    p = r * F + (1 - r) / 2
    return np.sum(yes * np.log(p) + (count - yes) * np.log1p(-p))


@given(
    hnp.arrays(np.int64, st.integers(2, 6), elements=st.integers(0, 5)),
    st.floats(0.2, 4.0),
    st.integers(0, 2**16),
)
@settings(max_examples=30, deadline=None)
def test_no_monotone_function_within_the_unit_interval_is_likelier(places, epsilon, seed):
    t = places / 5
    delta = np.random.default_rng(seed).integers(0, 2, len(t))
    estimate = LDPCurrentStatusCDF(epsilon).fit(t, delta)
    yes = np.array([delta[t == point].sum() for point in estimate.t_])
    m = len(estimate.t_)
    steps = {"type": "ineq", "fun": np.diff, "jac": lambda F: np.diff(np.eye(m), axis=0)} if m > 1 else ()
    other = minimize(
        lambda F: -_log_likelihood(np.clip(F, 0, 1), epsilon, yes, estimate.counts_),
        np.linspace(0.3, 0.7, m),
        bounds=[(0, 1)] * m,
        constraints=steps,
        method="SLSQP",
    )
    rival = np.maximum.accumulate(np.clip(other.x, 0, 1))
    own = _log_likelihood(estimate.cdf_, epsilon, yes, estimate.counts_)
    assert _log_likelihood(rival, epsilon, yes, estimate.counts_) <= own + 1e-9


def test_truthful_answers_give_isotonic_regression_as_scikit_learn_does_it():
    t, delta = _reports(400, 30.0)
    t = np.round(t, 2)
    weight = np.random.default_rng(1).integers(0, 4, len(t))
    estimate = LDPCurrentStatusCDF(np.inf).fit(t, delta, weight)
    points = np.unique(t[weight > 0])
    count = np.array([weight[t == point].sum() for point in points])
    mean = np.array([(weight * delta)[t == point].sum() for point in points]) / count
    assert np.array_equal(estimate.t_, points)
    assert estimate.counts_.tolist() == count.tolist()
    assert estimate.cdf_ == pytest.approx(isotonic_regression(mean, sample_weight=count), abs=1e-12)


def test_the_estimate_is_the_slope_of_the_greatest_convex_minorant():
    epsilon = 1.0
    t, delta = _reports(50, epsilon)
    order = np.argsort(t)
    cumulated = np.column_stack([np.arange(51), np.append(0, np.cumsum(delta[order]))]).astype(float)
    below = np.vstack([cumulated, [25.0, 1e3]])  # a point far above, so that the hull below is the minorant
    corners = np.sort([v for v in ConvexHull(below).vertices if v < 51])
    minorant = np.interp(np.arange(51), corners, cumulated[corners, 1])
    r = np.tanh(epsilon / 2)
    expected = np.clip((np.diff(minorant) - (1 - r) / 2) / r, 0, 1)
    assert LDPCurrentStatusCDF(epsilon).fit(t, delta).cdf_ == pytest.approx(expected, abs=1e-12)


reports = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=st.integers(0, 20).map(lambda k: k / 20)),
        hnp.arrays(np.uint8, n, elements=st.integers(0, 1)),
    )
)


@given(reports, st.floats(1e-3, 20.0))
@settings(max_examples=50, deadline=None)
def test_it_is_a_distribution_function_whatever_was_answered(report, epsilon):
    t, delta = report
    estimate = LDPCurrentStatusCDF(epsilon).fit(t, delta)
    assert (np.diff(estimate.cdf_) >= 0).all()
    assert estimate.cdf_.min() >= 0
    assert estimate.cdf_.max() <= 1
    twice = LDPCurrentStatusCDF(epsilon).fit(np.tile(t, 2), np.tile(delta, 2))
    assert twice.cdf_ == pytest.approx(estimate.cdf_, abs=1e-9)
    backwards = LDPCurrentStatusCDF(epsilon).fit(t[::-1], delta[::-1])
    assert backwards.cdf_ == pytest.approx(estimate.cdf_, abs=1e-9)
    weighted = LDPCurrentStatusCDF(epsilon).fit(t, delta, np.full(len(t), 2))
    assert weighted.cdf_ == pytest.approx(estimate.cdf_, abs=1e-9)
    assert weighted.n_reports_ == twice.n_reports_ == 2 * len(t)


@given(reports, st.sampled_from(["step", "linear"]), hnp.arrays(np.float64, 5, elements=st.floats(0, 1)))
@settings(max_examples=50, deadline=None)
def test_quantiles_are_the_least_points_at_which_the_estimate_is_reached(report, interpolation, q):
    estimate = LDPCurrentStatusCDF(3.0, interpolation=interpolation).fit(*report)
    x = estimate.ppf(q)
    reached = q <= estimate.cdf_[-1]
    assert (estimate.cdf(x[reached]) >= q[reached] - 1e-9).all()
    assert (x[~reached] == 1).all()
    before = x - 1e-6
    less = estimate.cdf(np.maximum(before, 0)) <= q + 1e-9
    assert less[before >= 0].all()


def test_another_unit_of_the_values_changes_the_unit_of_the_answers_alone():
    t, delta = _reports(500)
    plain = LDPCurrentStatusCDF(1.0).fit(t, delta)
    scaled = LDPCurrentStatusCDF(1.0, bounds=(-100, 300)).fit(400 * t - 100, delta)
    q = np.linspace(0.1, 0.9, 9)
    assert scaled.cdf_ == pytest.approx(plain.cdf_)
    assert scaled.ppf(q) == pytest.approx(400 * plain.ppf(q) - 100)
    assert scaled.mean() == pytest.approx(400 * plain.mean() - 100)
    assert scaled.interval([100.0]) == pytest.approx(np.array(plain.interval([0.5])))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_the_mean_is_the_integral_of_the_quantiles(interpolation):
    t, delta = _reports(300, 2.0)
    estimate = LDPCurrentStatusCDF(2.0, bounds=(10, 20), interpolation=interpolation).fit(10 + 10 * t, delta)
    q = (np.arange(200_000) + 0.5) / 200_000
    assert estimate.mean() == pytest.approx(estimate.ppf(q).mean(), abs=1e-3)


def test_before_the_first_threshold_the_estimate_is_zero_and_the_end_is_not_forced_to_one():
    estimate = LDPCurrentStatusCDF(2.0).fit([0.2, 0.4, 0.6], [0, 1, 0], [10, 10, 10])
    assert estimate.cdf([0.0, 0.1]).tolist() == [0, 0]
    assert estimate.cdf(1.0) == estimate.cdf_[-1] < 1
    linear = LDPCurrentStatusCDF(2.0, interpolation="linear").fit([0.2, 0.4, 0.6], [0, 1, 0], [10, 10, 10])
    assert linear.cdf([0.0, 0.3]).tolist() == pytest.approx([0, (linear.cdf_[0] + linear.cdf_[1]) / 2])


# --- grids ------------------------------------------------------------------------------------------------------------


def test_streams_give_what_all_reports_give_at_once():
    t, delta = _reports(3000, grid=GRID)
    whole = LDPCurrentStatusCDF(1.0, grid=GRID).fit(t, delta)
    streamed = LDPCurrentStatusCDF(1.0, grid=GRID)
    for part in np.array_split(np.arange(3000), 7):
        streamed.partial_fit(t[part], delta[part])
    assert np.array_equal(streamed.cdf_, whole.cdf_)
    assert np.array_equal(streamed.counts_, whole.counts_)
    counts = np.array([[((t == point) & (delta == answer)).sum() for point in GRID] for answer in (0, 1)])
    added = LDPCurrentStatusCDF(1.0, grid=GRID).fit(np.tile(GRID, 2), np.repeat([0, 1], 10), counts.ravel())
    assert np.array_equal(added.cdf_, whole.cdf_)
    density = LDPCurrentStatusCDF(1.0).fit(t, delta)
    assert density.cdf_ == pytest.approx(whole.cdf_, abs=1e-12)


def test_thresholds_that_nobody_was_asked_are_left_out():
    estimate = LDPCurrentStatusCDF(1.0, grid=[0.2, 0.5, 0.8]).fit([0.2, 0.8, 0.8], [0, 1, 1])
    assert estimate.t_.tolist() == [0.2, 0.8]
    assert estimate.band()[0].shape == (2,)


def _draws(F, n, epsilon, repeats, seed):
    """Fit to reports on the grid, simulated as counts."""
    rng = np.random.default_rng(seed)
    r = np.tanh(epsilon / 2)
    count = rng.multinomial(n, np.full(len(F), 1 / len(F)), size=repeats)
    yes = rng.binomial(count, r * F + (1 - r) / 2)
    for c, y in zip(count, yes, strict=True):
        weight = np.concatenate([c - y, y])
        yield LDPCurrentStatusCDF(epsilon, grid=GRID).fit(np.tile(GRID, 2), np.repeat([0, 1], len(F)), weight)


def test_errors_on_a_grid_are_independent_and_of_the_variance_of_the_theorem():
    n, epsilon = 100_000, 2 * np.arctanh(0.5)
    errors = np.array([estimate.cdf_ - GRID for estimate in _draws(GRID, n, epsilon, 2000, 0)]) * np.sqrt(n)
    star = 0.5 * GRID + 0.25
    variance = 10 * star * (1 - star) / 0.25
    assert errors.var(axis=0) == pytest.approx(variance, rel=0.15)  # 4.5 standard errors of a variance
    correlation = np.corrcoef(errors.T)[np.triu_indices(10, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)


def test_intervals_bands_and_the_test_have_their_level():
    covered, whole, pvalues, quantiles = [], [], [], []
    q = np.array([0.05, 0.37, 0.5, 0.77])
    truth = np.searchsorted(GRID, q)
    for estimate in _draws(GRID, 100_000, 1.0, 2000, 1):
        low, high = estimate.interval(GRID)
        covered.append((low <= GRID) & (high >= GRID))
        low, high = estimate.band()
        whole.append(((low <= GRID) & (high >= GRID)).all())
        pvalues.append(estimate.goodness_of_fit(lambda x: x).pvalue)
        low, high = estimate.ppf_interval(q)
        quantiles.append(((low <= GRID[truth]) & (GRID[truth] <= high)).all())
    se = np.sqrt(0.95 * 0.05 / 2000)
    assert np.abs(np.mean(covered, axis=0) - 0.95).max() < 4 * se
    assert np.mean(whole) == pytest.approx(0.95, abs=4 * se)
    assert np.mean(quantiles) >= 0.95 - 4 * se
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-4


def test_the_test_finds_another_distribution():
    t, delta = _reports(100_000, grid=GRID)
    estimate = LDPCurrentStatusCDF(1.0, grid=GRID).fit(t, delta)
    assert estimate.goodness_of_fit(lambda x: x).pvalue > 1e-3
    found = estimate.goodness_of_fit(np.square)
    assert found.pvalue < 1e-9
    assert found.dof == 10


def test_a_band_is_wider_than_intervals_and_wide_ones_are_not_cut():
    estimate = LDPCurrentStatusCDF(0.1, grid=GRID).fit(*_reports(200, 0.1, grid=GRID))
    low, high = estimate.interval(GRID)
    wide_low, wide_high = estimate.band()
    assert (wide_low < low).all()
    assert (wide_high > high).all()
    assert low.min() < 0
    assert high.max() > 1


# --- thresholds from the whole range ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_scaled_error_is_chernoffs():
    n, r, x0 = 100_000, 0.5, 0.5
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(2000):
        t = rng.random(n)
        delta = rng.random(n) < r * t + (1 - r) / 2  # of uniform values
        near = np.abs(t - x0) < 0.25  # the minorant looks no further
        errors.append(LDPCurrentStatusCDF(2 * np.arctanh(r)).fit(t[near], delta[near]).cdf(x0) - x0)
    scaled = (r**2 * n) ** (1 / 3) * np.array(errors) / (4 * 0.25) ** (1 / 3)
    assert scaled.var() == pytest.approx(0.26356, rel=0.10)
    assert np.quantile(np.abs(scaled), 0.95) == pytest.approx(0.998, rel=0.05)


def test_intervals_without_a_grid_cover_about_as_often_as_they_say():
    covered = []
    for seed in range(200):
        estimate = LDPCurrentStatusCDF(2.0).fit(*_reports(10_000, 2.0, seed))
        low, high = estimate.interval([0.3, 0.5, 0.7])
        covered.append((low <= [0.3, 0.5, 0.7]) & (high >= [0.3, 0.5, 0.7]))
    assert 0.88 < np.mean(covered) < 0.99


def test_where_the_estimate_is_flat_the_interval_is_not_known():
    t = np.linspace(0, 1, 1001)
    estimate = LDPCurrentStatusCDF(np.inf).fit(t, (t > 0.5) & (np.arange(1001) % 2 == 0))
    low, high = estimate.interval([0.1, 0.52])
    assert np.isnan([low[0], high[0]]).all()
    assert 0 < low[1] < estimate.cdf(0.52) < high[1]


# --- what is promised -------------------------------------------------------------------------------------------------


def test_both_sides_at_once():
    ages = np.random.default_rng(0).integers(17, 91, 5000)
    estimate = LDPCurrentStatusCDF(2.0, bounds=(0, 120)).fit_private(ages, random_state=0)
    assert estimate.cdf(53.5) == pytest.approx(0.5, abs=0.15)
    assert "PCG64" in estimate.certificate_.numerics["noise_source"]
    with pytest.raises(InputError, match="beyond the bounds"):
        LDPCurrentStatusCDF(2.0).fit_private(ages)


def test_the_certificate_of_the_collector_assumes_that_answers_were_privatised():
    certificate = LDPCurrentStatusCDF(1.0).fit(*_reports(100)).certificate_
    assert certificate.parameters["epsilon"] == 1.0
    assert certificate.parameters["delta"] == 0.0
    assert any("CurrentStatusRandomizer" in assumption.text for assumption in certificate.assumptions)
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_shuffling_makes_a_stronger_promise_of_more_reports():
    few, many = (LDPCurrentStatusCDF(1.0).fit(*_reports(n)).shuffle_certificate(1e-6) for n in (100, 10_000))
    assert 0 < many.parameters["epsilon"] < few.parameters["epsilon"] <= 1.0
    assert many.parameters["epsilon_local"] == 1.0
    assert many.parameters["reports"] == 10_000
    assert any("shuffler" in assumption.text for assumption in many.assumptions)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "delta", "message"),
    [
        ([0.1, 0.2], [0, 2], "neither 0 nor 1"),
        ([0.1, 0.2], [0, np.nan], "neither 0 nor 1"),
        ([0.1, 1.2], [0, 1], "beyond the bounds"),
        ([0.1, np.nan], [0, 1], "missing"),
        ([0.1, 0.2], [0], "shape"),
        ([[0.1, 0.2]], [[0, 1]], "one dimension"),
        ([0.1], [1], "1 reports"),
        ([], [], "0 reports"),
    ],
)
def test_reports_that_make_no_sense_are_refused(t, delta, message):
    with pytest.raises(InputError, match=message):
        LDPCurrentStatusCDF(1.0).fit(t, delta)


def test_weights_are_numbers_of_reports():
    for weight in ([1, -1], [1, np.nan], [1]):
        with pytest.raises(InputError, match="sample_weight"):
            LDPCurrentStatusCDF(1.0).fit([0.1, 0.2], [0, 1], weight)


@pytest.mark.parametrize(
    "options", [{"epsilon": -1}, {"epsilon": True}, {"bounds": (1, 0)}, {"interpolation": "cubic"}, {"grid": [2.0]}]
)
def test_options_that_make_no_sense_are_refused_in_fit(options):
    with pytest.raises(InputError):
        LDPCurrentStatusCDF(**options).fit([0.1, 0.2], [0, 1])


def test_what_needs_a_grid_says_so():
    estimate = LDPCurrentStatusCDF(1.0).fit(*_reports(100))
    for ask in (estimate.band, lambda: estimate.ppf_interval(0.5), lambda: estimate.goodness_of_fit(np.square)):
        with pytest.raises(InputError, match="needs a grid"):
            ask()
    with pytest.raises(InputError, match="no grid"):
        LDPCurrentStatusCDF(1.0).partial_fit([0.1], [1])
    on_grid = LDPCurrentStatusCDF(1.0, grid=GRID)
    with pytest.raises(InputError, match="not on the grid"):
        on_grid.fit([0.1, 0.2], [0, 1])
    on_grid.fit(*_reports(100, grid=GRID))
    with pytest.raises(InputError, match="no threshold that was asked"):
        on_grid.interval([0.33])
    with pytest.raises(InputError, match="grid has changed"):
        on_grid.set_params(grid=[0.5]).partial_fit([0.5], [1])


def test_questions_that_make_no_sense_are_refused():
    estimate = LDPCurrentStatusCDF(1.0).fit(*_reports(100))
    with pytest.raises(InputError, match="level of quantiles"):
        estimate.ppf(1.5)
    with pytest.raises(InputError, match="x is missing"):
        estimate.cdf(np.nan)
    with pytest.raises(InputError, match="at or beyond the bounds"):
        estimate.interval(1.0)
    with pytest.raises(ValueError, match="level"):
        estimate.interval(0.5, level=95)
    with pytest.raises(InputError, match="delta is 0"):
        estimate.shuffle_certificate(0)
    with pytest.raises(InputError, match="infinite"):
        LDPCurrentStatusCDF(np.inf).fit(*_reports(100)).shuffle_certificate()
    grid = LDPCurrentStatusCDF(np.inf, grid=GRID).fit(*_reports(100, grid=GRID))
    with pytest.raises(InputError, match="something else than a probability"):
        grid.goodness_of_fit(lambda x: 2 * x)
    with pytest.raises(InputError, match="0 or 1 at a threshold"):
        grid.goodness_of_fit(np.round)
