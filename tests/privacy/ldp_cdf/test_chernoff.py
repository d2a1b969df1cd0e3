"""Chernoff's distribution, against the published table."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from aboveboard.privacy.ldp_cdf._chernoff import _upper_half, chernoff_quantile


@pytest.mark.parametrize(
    ("p", "quantile"), [(0.5, 0.0), (0.95, 0.845081), (0.975, 0.998181), (0.99, 1.171534), (0.995, 1.286659)]
)
def test_quantiles_are_those_of_groeneboom_and_wellner(p, quantile):
    assert chernoff_quantile(p) == pytest.approx(quantile, abs=2e-6)


def test_mass_and_variance_are_those_of_the_distribution():
    at, mass = _upper_half()
    assert mass[-1] == pytest.approx(0.5, abs=1e-9)
    assert (np.diff(mass) >= 0).all()
    # by parts: E Z^2 = 4 times the integral of z P(Z > z)
    assert 4 * trapezoid(at * (0.5 - mass), at) == pytest.approx(0.26355964, abs=1e-6)
