"""Intervals of the violations hold for all tests at once."""

import numpy as np
import pytest

from aboveboard.collective.social_prediction._violations import residuals_on


def test_means_and_weights_are_plain():
    values = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.5], [1.0, 0.0]])
    found = residuals_on(values, np.array([0.2, 0.4, 0.5, 0.1]), np.array([0.0, 1.0, 1.0, 0.0]))
    assert found.mean == pytest.approx([(-0.2 + 0.6 + 0.5 - 0.1) / 4, (0.6 + 0.25) / 4])
    assert found.weight == pytest.approx([1.0, 0.375])
    assert found.people == pytest.approx([4.0, 1.5**2 / 1.25])


def test_people_without_the_outcome_still_leave_doubt():
    found = residuals_on(np.ones((10, 1)), np.full(10, 0.05), np.zeros(10))
    assert found.error[0] == pytest.approx(np.sqrt(0.05 * 0.95 / 10))


@pytest.mark.slow
def test_all_intervals_hold_at_once_in_95_of_100_samples():
    """2,000 samples of calibrated forecasts and 12 tests: between 93.5 and 97.5 % hold all true violations, zero."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        p = rng.uniform(0.1, 0.9, 200)
        values = np.column_stack([np.exp(-0.5 * ((p - c) / 0.15) ** 2) for c in np.linspace(0.1, 0.9, 12)])
        low, high = residuals_on(values, p, (rng.random(200) < p).astype(float)).interval
        held += bool(((low <= 0) & (high >= 0)).all())
    assert 0.935 * 2000 <= held <= 0.975 * 2000
