"""Each one-step estimate against the truth of a finite world: no first-order error when a nuisance is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.drift.shift._estimates import covariate_decay, outcome_decay, residual_outcome_decay

ERRORS = (0.04, 0.02, 0.01)
COPIES = 20_000


class World:
    """Twelve kinds of rows, three values of the variables that may shift, and exact probabilities."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.p0, self.p1 = rng.dirichlet(np.full(12, 4.0)), rng.dirichlet(np.full(12, 4.0))
        self.mu0, self.mu1 = rng.uniform(0.2, 0.8, 12), rng.uniform(0.2, 0.8, 12)
        self.losses = rng.uniform(0.0, 1.0, (12, 2))
        self.stake = self.losses[:, 1] - self.losses[:, 0]
        self.inside = np.arange(12) % 4 != 0
        self.s = np.arange(12) % 3
        self.w = self.p1 / self.p0
        self.z0 = self.losses[:, 0] + self.stake * self.mu0
        self.z1 = self.losses[:, 0] + self.stake * self.mu1
        self.wrong = rng.normal(size=(6, 12))

    def mean(self, d, values, given=None):
        """Expectation under domain d, or per cell that of its value of the variables that may shift."""
        p = (self.p0, self.p1)[d]
        if given is None:
            return float(p @ values)
        p = p * given
        totals, sums = np.bincount(self.s, p), np.bincount(self.s, p * values)
        return (sums / totals)[self.s]

    def rows(self, d):
        """Rows, with labels, in exactly their expected numbers: weights instead of copies."""
        p, mu = ((self.p0, self.mu0), (self.p1, self.mu1))[d]
        cells, y = np.repeat(np.arange(12), 2), np.tile([0, 1], 12)
        return cells, y, np.where(y == 1, p[cells] * mu[cells], p[cells] * (1 - mu[cells]))


def repeated(world, d):
    """Cells and labels of a sample whose shares are the probabilities, to one part in COPIES."""
    cells, y, weight = world.rows(d)
    counts = np.rint(weight * COPIES).astype(int)
    return np.repeat(cells, counts), np.repeat(y, counts)


def slopes(world, truth, estimate):
    """Return errors over e and over e squared, for nuisances that are wrong by e."""
    base = estimate(0.0)
    errors = np.array([estimate(e) - base for e in ERRORS])
    assert base == pytest.approx(truth, abs=2e-3)  # counts are rounded
    return errors / np.array(ERRORS), errors / np.square(ERRORS)


def assert_second_order(world, truth, estimate):
    first, second = slopes(world, truth, estimate)
    assert abs(first[-1]) < 0.5 * abs(first[0]) + 2e-3
    assert np.ptp(second) < 0.35 * np.abs(second).max() + 0.2


@pytest.fixture(params=[0, 1, 2])
def world(request):
    return World(request.param)


def test_the_covariate_decay_has_no_first_order_error(world):
    (c0, y0), (c1, _) = repeated(world, 0), repeated(world, 1)
    A = world.inside
    truth = world.mean(1, A * world.z0) / world.mean(1, A) - world.mean(0, A * world.z0) / world.mean(0, A)

    def estimate(e):
        z, w = world.z0 + e * world.wrong[0], world.w + e * world.wrong[1]
        return covariate_decay(A[c0], world.losses[c0, y0], z[c0], w[c0], A[c1], z[c1], tolerance=0.0).value

    assert_second_order(world, truth, estimate)


def test_the_outcome_decay_has_no_first_order_error(world):
    (c0, y0), (c1, y1) = repeated(world, 0), repeated(world, 1)
    A = world.inside
    truth = world.mean(1, A * (world.z1 - world.z0)) / world.mean(1, A) - 0.02

    def estimate(e):
        z, w = world.z0 + e * world.wrong[0], world.w + e * world.wrong[1]
        loss0, loss1 = world.losses[c0, y0], world.losses[c1, y1]
        return outcome_decay(A[c0], loss0, z[c0], w[c0], A[c1], loss1, z[c1], tolerance=0.02).value

    assert_second_order(world, truth, estimate)


def test_the_covariate_decay_that_is_left_has_no_first_order_error(world):
    (c0, y0), (c1, _) = repeated(world, 0), repeated(world, 1)
    A = world.inside.astype(float)
    shares = [np.bincount(world.s, p * A) / (p @ A) for p in (world.p0, world.p1)]
    g = (shares[1] / shares[0])[world.s]
    m = world.mean(0, world.z0, given=A)
    truth = world.mean(1, A * world.z0) / world.mean(1, A) - world.mean(0, A * world.z0 * g) / world.mean(0, A)
    in0, in1 = world.inside[c0], world.inside[c1]

    def estimate(e):
        z, w = world.z0 + e * world.wrong[0], world.w + e * world.wrong[1]
        gh, mh = g + e * world.wrong[2][world.s], m + e * world.wrong[3][world.s]
        extra = {"g0": gh[c0], "m0": mh[c0], "m1": mh[c1]}
        return covariate_decay(in0, world.losses[c0, y0], z[c0], w[c0], in1, z[c1], tolerance=0.0, **extra).value

    assert_second_order(world, truth, estimate)


def test_the_outcome_decay_that_is_left_has_no_first_order_error(world):
    (c0, y0), (c1, y1) = repeated(world, 0), repeated(world, 1)
    A = world.inside.astype(float)
    ones = np.ones(12)
    expected = world.mean(1, A * world.stake, given=ones)
    explained = world.mean(1, world.mu1 - world.mu0, given=ones)
    left = A * world.stake * (world.mu1 - world.mu0 - explained)
    truth = world.mean(1, left) / world.mean(1, A)
    in0, in1 = world.inside[c0], world.inside[c1]

    def estimate(e):
        mu, w = world.mu0 + e * world.wrong[0], world.w + e * world.wrong[1]
        q, delta = expected + e * world.wrong[2][world.s], explained + e * world.wrong[3][world.s]
        bet = A * world.stake - q
        return residual_outcome_decay(
            in0, y0 - mu[c0], bet[c0], w[c0], in1, y1 - mu[c1], bet[c1], delta[c1], tolerance=0.0
        ).value

    assert_second_order(world, truth, estimate)


def test_a_plug_in_has_a_first_order_error_where_the_one_step_estimate_has_none(world):
    def plug_in(e):
        z = world.z0 + e * world.wrong[0]
        A = world.inside
        return world.mean(1, A * (world.z1 - z)) / world.mean(1, A)

    first = [(plug_in(e) - plug_in(0.0)) / e for e in ERRORS]
    assert np.ptp(first) < 1e-9
    assert abs(first[0]) > 1e-3


def test_where_the_old_risk_is_known_the_residual_is_that_of_a_shifted_outcome_law(world):
    """mu_s = mu_0 + E[mu_1 - mu_0 | V] is the law that the paper lets shift, when V holds the old risk itself."""
    A, v = world.inside.astype(float), np.arange(12)  # V tells the cell: nothing is left
    (c0, y0), (c1, y1) = repeated(world, 0), repeated(world, 1)
    bet = np.zeros(12)
    found = residual_outcome_decay(
        A[c0] > 0, y0 - world.mu0[c0], bet[c0], world.w[c0], A[c1] > 0, y1 - world.mu0[c1], bet[c1], v[c1] * 0.0,
        tolerance=0.0,
    )  # fmt: skip
    assert found.value == 0.0


def test_standard_errors_are_those_of_repeated_samples():
    world, rng, values, errors = World(5), np.random.default_rng(0), [], []
    for _ in range(2000):
        c0, c1 = rng.choice(12, 500, p=world.p0), rng.choice(12, 500, p=world.p1)
        y0, y1 = (rng.random(500) < mu[c] for mu, c in ((world.mu0, c0), (world.mu1, c1)))
        A = world.inside
        loss0, loss1 = world.losses[c0, y0.astype(int)], world.losses[c1, y1.astype(int)]
        found = outcome_decay(A[c0], loss0, world.z0[c0], world.w[c0], A[c1], loss1, world.z0[c1], tolerance=0.0)
        values.append(found.value)
        errors.append(found.se)
    # the standard deviation of 2,000 draws is known to 1.6 %; three times that
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.048)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_equal_domains_have_no_covariate_decay(seed):
    rng = np.random.default_rng(seed)
    z, inside = rng.random(60), rng.random(60) < 0.5
    if not inside.any():
        return
    found = covariate_decay(inside, z, z, np.ones(60), inside, z, tolerance=0.0)
    assert found.value == pytest.approx(0.0, abs=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(80)
    loss, z, w, inside = rng.random(80), rng.random(80), rng.random(80) * 2, rng.random(80) < 0.6
    if not inside.any():
        return
    one = outcome_decay(inside, loss, z, w, inside, loss, z, tolerance=0.01)
    other = outcome_decay(*(a[order] for a in (inside, loss, z, w, inside, loss, z)), tolerance=0.01)
    assert one.value == pytest.approx(other.value, abs=1e-12)
    assert one.se == pytest.approx(other.se, rel=1e-9)


def test_all_variables_explain_all_of_a_covariate_decay(world):
    (c0, y0), (c1, _) = repeated(world, 0), repeated(world, 1)
    A, scale = world.inside, world.mean(0, world.inside) / world.mean(1, world.inside)
    loss0 = world.losses[c0, y0]
    found = covariate_decay(
        A[c0], loss0, world.z0[c0], world.w[c0], A[c1], world.z0[c1], tolerance=0.03,
        g0=world.w[c0] * scale, m0=world.z0[c0], m1=world.z0[c1],
    )  # fmt: skip
    assert found.value == pytest.approx(-0.03, abs=2e-4)
