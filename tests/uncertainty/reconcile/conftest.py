import numpy as np
import pytest


def softmax(logits):
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def two_views(n=1500, seed=0, d=4, losses=3, actions=3, models=2):
    """Return models that each see some of what decides the class, the classes, and random losses."""
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(7)
    weights = fixed.standard_normal((6, d))
    X = rng.standard_normal((n, 6))
    y = (softmax(X @ weights).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    views = [softmax(np.roll(X, k, axis=1)[:, :4] @ np.roll(weights, k, axis=0)[:4] * 1.3) for k in range(models)]
    return views, y, fixed.standard_normal((losses, d, actions))


@pytest.fixture(name="two_views")
def _two_views():
    return two_views
