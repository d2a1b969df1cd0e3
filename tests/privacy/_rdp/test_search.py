"""Noise that is searched, against noise that is calculated."""

import math

import pytest

from aboveboard.core import InputError
from aboveboard.privacy import gaussian_epsilon, gaussian_sigma, poisson_gaussian_rdp
from aboveboard.privacy._rdp import smallest_noise


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e4])
def test_the_search_finds_the_exact_calibration_from_above(start):
    found = smallest_noise(lambda sigma: gaussian_epsilon(1e-6, sigma), 0.7, start=start)
    assert gaussian_epsilon(1e-6, found) <= 0.7
    assert found == pytest.approx(gaussian_sigma(0.7, 1e-6), rel=2e-6)


def test_a_sampled_mechanism_is_calibrated():
    noise = smallest_noise(lambda sigma: poisson_gaussian_rdp(sigma, 0.01).repeated(1000).epsilon(1e-5), 2.0,
                           relative=1e-3)  # fmt: skip
    assert 0.995 * 2 <= poisson_gaussian_rdp(noise, 0.01).repeated(1000).epsilon(1e-5) <= 2.0


def test_what_no_noise_gives_is_refused():
    with pytest.raises(InputError, match="no noise"):
        smallest_noise(lambda _: math.inf, 1.0)
    with pytest.raises(InputError, match="epsilon"):
        smallest_noise(lambda sigma: 1 / sigma, 0.0)


def test_where_the_least_noise_is_enough_it_is_returned():
    assert smallest_noise(lambda _: 0.5, 1.0, most=1e6) < 1e-5
