"""The exact trade-off of Gaussian noise, against quadrature of the positive part and simple closed forms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from aboveboard.core import InputError
from aboveboard.privacy import gaussian_delta, gaussian_epsilon, gaussian_rdp, gaussian_sigma


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
def test_delta_is_the_mass_where_one_density_exceeds_the_other(epsilon, sigma):
    start = sigma**2 * epsilon + 0.5
    excess = quad(
        lambda x: stats.norm.pdf(x, 1, sigma) - math.exp(epsilon) * stats.norm.pdf(x, 0, sigma),
        start, start + 40 * sigma, epsabs=0, epsrel=1e-11, limit=200,
    )[0]  # fmt: skip
    assert gaussian_delta(epsilon, sigma) == pytest.approx(excess, rel=1e-8)


@settings(deadline=None)
@given(st.floats(0.01, 50), st.floats(1e-200, 0.5), st.floats(1e-3, 1e3))
def test_calibration_inverts_exactly_and_stays_on_the_safe_side(epsilon, delta, sensitivity):
    sigma = gaussian_sigma(epsilon, delta, sensitivity=sensitivity)
    kept = gaussian_delta(epsilon, sigma, sensitivity=sensitivity)
    assert delta * (1 - 1e-9) <= kept <= delta * (1 + 1e-10), "but for the rounding of the ratio"
    assert gaussian_epsilon(delta, sigma, sensitivity=sensitivity) == pytest.approx(epsilon, rel=1e-9)


def test_the_classical_calibration_is_never_smaller_where_it_holds():
    for epsilon in (0.01, 0.3, 0.99):
        for delta in (1e-10, 1e-5, 1e-2):
            assert gaussian_sigma(epsilon, delta) < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_at_epsilon_zero_delta_is_the_total_variation_distance():
    assert gaussian_delta(0.0, 2.0) == pytest.approx(2 * stats.norm.cdf(0.25) - 1, rel=1e-12)
    assert gaussian_sigma(0.0, 1e-20) == pytest.approx(1e20 / math.sqrt(2 * math.pi), rel=1e-9)
    assert gaussian_epsilon(0.5, 2.0) == 0


def test_the_curve_has_half_the_squared_ratio_as_its_slope():
    assert gaussian_rdp(2.0, sensitivity=6.0, adjacency="replace_one").rho == pytest.approx(4.5)


@pytest.mark.parametrize("call", [
    lambda: gaussian_sigma(1.0, 0.0),
    lambda: gaussian_sigma(-1.0, 1e-5),
    lambda: gaussian_sigma(1.0, 1e-5, sensitivity=0.0),
    lambda: gaussian_sigma(1e-17, 1e-18),
    lambda: gaussian_epsilon(1e-5, 0.0),
    lambda: gaussian_delta(1.0, math.inf),
    lambda: gaussian_delta(math.nan, 1.0),
])  # fmt: skip
def test_bad_input_is_refused(call):
    with pytest.raises(InputError):
        call()
