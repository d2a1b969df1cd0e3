"""The bound: its formula by hand, and what no simulation may break."""

import numpy as np
import pytest

from aboveboard.collective import ManipulationGame
from aboveboard.collective.strategic_externalities._certificate import deviation, rounds_needed
from aboveboard.core import InputError

BOUND = {"dimension": 4, "ball": 3.0, "steepness": 10.0, "largest": 2.0}


def test_the_bound_is_that_of_a_cover_and_hoeffding_s_inequality():
    m, delta = 500, 0.05
    centres = 4 * np.log(1 + 2 * 3.0 * m)
    expected = 2 * 10.0 / m + 2.0 * np.sqrt((centres + np.log(2 / delta)) / (2 * m))
    assert deviation(m, delta=delta, **BOUND) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_the_rounds_needed_are_the_fewest(epsilon):
    m = rounds_needed(epsilon, delta=0.05, **BOUND)
    assert deviation(m, delta=0.05, **BOUND) <= epsilon < deviation(m - 1, delta=0.05, **BOUND)


def test_four_times_the_precision_takes_about_sixteen_times_the_rounds():
    few, many = (rounds_needed(epsilon, delta=0.05, **BOUND) for epsilon in (0.04, 0.01))
    assert 16 < many / few < 25


def test_a_level_or_precision_that_is_none_is_refused():
    for wrong in ({"epsilon": 0.0, "delta": 0.1}, {"epsilon": 0.1, "delta": 1.0}):
        with pytest.raises(InputError, match="epsilon"):
            rounds_needed(wrong["epsilon"], delta=wrong["delta"], **BOUND)


def test_the_loss_of_a_round_changes_no_faster_than_the_certificate_takes_it_to():
    """The slope in the bound: |score change| <= |(w, b) change| |(x', 1)| + |w| g / mu |w change|, on average."""
    rng = np.random.default_rng(0)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=(-2, 2))
    X, label = np.clip(rng.normal(size=(8, 3)), -2, 2), rng.integers(0, 2, 8)

    def loss(w, b):
        score = game.equilibrium(X, w).X_reported @ w + b
        return np.mean(np.logaddexp(0, score) - label * score)

    mu, reach = game.strong_convexity(8), np.sqrt(3 * 4)
    for _ in range(60):
        w, v = rng.normal(size=(2, 3))
        b, c = rng.normal(size=2)
        longest = max(np.linalg.norm(w), np.linalg.norm(v))
        steepness = np.hypot(reach, 1) + longest / mu
        assert abs(loss(w, b) - loss(v, c)) <= steepness * np.hypot(np.linalg.norm(w - v), b - c)
