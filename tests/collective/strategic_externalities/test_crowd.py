"""Derivatives of the equilibrium: exact ones against differences, against conjugate gradients, and by hand."""

import numpy as np
import pytest

from aboveboard.collective import ManipulationGame
from aboveboard.core import InputError

KINDS = {
    "l2-congestion": {"cost": "l2", "externality": "congestion", "alpha": 0.1, "beta": 0.05},
    "squared-congestion": {"cost": "squared_l2", "externality": "congestion", "alpha": 0.3, "beta": 0.05},
    "squared-proportional": {"cost": "squared_l2", "externality": "proportional", "alpha": 0.3, "beta": 0.2},
    "squared-alone": {"cost": "squared_l2", "externality": None, "alpha": 0.3},
}


def setting(bounded, seed=0):
    rng = np.random.default_rng(seed)
    X, w = np.clip(rng.normal(size=(2, 5, 4)), -1.9, 1.9), rng.normal(size=4)
    return X, w, rng.normal(size=X.shape), (-2.0, 2.0) if bounded else None


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 1.0]])
def test_gradients_by_weights_and_features_are_those_of_central_differences(kind, bounded, weights):
    X, w, weight, bounds = setting(bounded)
    game = ManipulationGame(**KINDS[kind], bounds=bounds, cost_weights=weights, gain=1.4)

    def value(X, w):
        return float((weight * game.equilibrium(X, w).X_reported).sum())

    reported = game.equilibrium(X, w).X_reported
    if bounded:
        assert 0.05 < (np.abs(reported) == 2.0).mean() < 0.95
    by_X, by_w = game._pulled_back(X, reported, w, weight)
    h = 1e-6
    steps = h * np.eye(4)
    assert by_w == pytest.approx([(value(X, w + s) - value(X, w - s)) / (2 * h) for s in steps], rel=1e-4, abs=1e-6)
    differences = np.empty(X.shape)
    for at in np.ndindex(X.shape):
        step = np.zeros(X.shape)
        step[at] = h
        differences[at] = (value(X + step, w) - value(X - step, w)) / (2 * h)
    assert by_X == pytest.approx(differences, rel=1e-4, abs=1e-6)


def test_without_bounds_the_gradient_is_that_of_the_closed_form():
    """X' = X + r w / |w| with r = g |w| / (2 alpha + 4 beta (n - 1)), which is linear in w."""
    X, w, weight, _ = setting(False)
    game = ManipulationGame(cost="squared_l2", alpha=0.3, beta=0.05, gain=1.4)
    by_X, by_w = game._pulled_back(X, game.equilibrium(X, w).X_reported, w, weight)
    assert by_X == pytest.approx(weight)
    assert by_w == pytest.approx(1.4 / (0.6 + 0.2 * 4) * weight.sum(axis=(0, 1)))


def test_what_cannot_be_moved_and_whoever_stays_has_no_part_in_it():
    X, w, weight, bounds = setting(True)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=bounds, manipulable=[True, False, True, True])
    _, by_w = game._pulled_back(X, game.equilibrium(X, w).X_reported, w, weight)
    assert by_w[1] == 0
    still = ManipulationGame(alpha=100.0, bounds=bounds)
    by_X, by_w = still._pulled_back(X, X, w, weight)
    assert by_X == pytest.approx(weight)
    assert (by_w == 0).all()


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("cost", ["l2", "squared_l2"])
def test_conjugate_gradients_agree_with_the_exact_solution(cost, bounded):
    def congestion(x_i, r_i, x_j, r_j):
        own, theirs = (np.sqrt(((r - x) ** 2).sum(-1) + 1e-12) for r, x in ((r_i, x_i), (r_j, x_j)))
        return 0.05 * (own + theirs) ** 2, (0.1 * (own + theirs) / own)[..., None] * (r_i - x_i)

    X, w, weight, bounds = setting(bounded)
    exact = ManipulationGame(cost=cost, alpha=0.1, beta=0.05, bounds=bounds)
    own = ManipulationGame(cost=cost, alpha=0.1, externality=congestion, bounds=bounds)
    reported = exact.equilibrium(X, w).X_reported
    _, expected = exact._pulled_back(X, reported, w, weight, for_X=False)
    by_X, by_w = own._pulled_back(X, reported, w, weight, for_X=False)
    assert by_X is None
    assert by_w == pytest.approx(expected, rel=1e-4, abs=1e-6)
    with pytest.raises(InputError, match="gradient by the features"):
        own._pulled_back(X, reported, w, weight)
