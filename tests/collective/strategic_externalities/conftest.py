"""The game as its definition has it: every pair by itself, nothing collapsed."""

import numpy as np
import pytest


def utility(game, X, R, w, i, intercept=0.0, factor=None):
    """What applicant i gets: his gain, less his own cost, less what he loses by each of the others."""
    distance = np.linalg.norm((R - X) * (1.0 if game.cost_weights is None else np.array(game.cost_weights)), axis=1)
    factor = np.ones(len(X)) if factor is None else factor
    own = game.alpha * factor[i] * (distance[i] if game.cost == "l2" else distance[i] ** 2)
    return game.gain * (R[i] @ w + intercept) - own - sum(_pair(game, X, R, distance, i, j) for j in _others(X, i))


def potential(game, X, R, w, intercept=0.0):
    """All gains less all costs, each pair once."""
    distance = np.linalg.norm((R - X) * (1.0 if game.cost_weights is None else np.array(game.cost_weights)), axis=1)
    own = game.alpha * (distance if game.cost == "l2" else distance**2)
    pairs = sum(_pair(game, X, R, distance, i, j) for i in range(len(X)) for j in range(i))
    return game.gain * (R @ w + intercept).sum() - own.sum() - pairs


def _pair(game, X, R, distance, i, j):
    if game.externality is None:
        return 0.0
    if callable(game.externality):
        return float(game.externality(X[i], R[i], X[j], R[j])[0])
    if game.externality == "congestion":
        return game.beta * (distance[i] + distance[j]) ** 2
    return game.beta * distance[i] * distance[j]


def _others(X, i):
    return [j for j in range(len(X)) if j != i]


@pytest.fixture
def definition():
    return utility, potential
