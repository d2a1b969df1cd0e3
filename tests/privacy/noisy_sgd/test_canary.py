"""Attacks: they find what leaks, and never more than is promised."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from aboveboard.core import InputError
from aboveboard.privacy import NoisySGDClassifier, canary_lower_bound

# others pull the coefficients along the first axis, so that the loss of the canary is large
X = np.tile([[1.0, 0.0], [-1.0, 0.0]], (100, 1))
Y = np.tile([1, 0], 100)
X[0] = [-0.5, 0.866]
CANARY = (np.array([-0.5, -0.866]), 1)


class Mean(BaseEstimator):
    """Publishes the mean of the rows with noise that is not what it promises, or next to none."""

    def __init__(self, noise=1e-6, delta=0.0, random_state=None):
        self.noise = noise
        self.delta = delta
        self.random_state = random_state

    def fit(self, X, y):
        noise = np.random.default_rng(self.random_state).normal(scale=self.noise, size=X.shape[1])
        self.coef_, self.intercept_ = X.mean(axis=0) + noise, [0.0]
        return self


def test_what_hardly_hides_anything_is_found_out():
    bound = canary_lower_bound(Mean(), X, Y, CANARY, trials=100, random_state=0)
    assert bound.epsilon > np.log(100 / 8)
    nothing = canary_lower_bound(Mean(noise=100.0), X, Y, CANARY, trials=100, random_state=0)
    assert nothing.epsilon < 0.5


@pytest.mark.parametrize("options", [{}, {"sampling": "cyclic", "batch_size": 50}, {"ridge": 0.0, "radius": 1.0}])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_classifier_is_never_caught_leaking_more_than_it_promises(epsilon, options):
    model = NoisySGDClassifier(epsilon, n_steps=15, **{"ridge": 0.1} | options)
    bound = canary_lower_bound(model, X, Y, CANARY, trials=120, random_state=1)
    assert bound.epsilon <= epsilon
    assert bound.delta == 1e-5


def test_the_attack_is_strong_enough_to_see_the_canary():
    model = NoisySGDClassifier(15.0, ridge=0.05, n_steps=40, fit_intercept=False)
    assert canary_lower_bound(model, X, Y, CANARY, trials=200, random_state=1).epsilon > 0.3


def test_what_the_attacker_looks_at_can_be_chosen():
    model = NoisySGDClassifier(1.0, n_steps=5)
    bound = canary_lower_bound(
        model, X, Y, CANARY, trials=20, random_state=0, statistic=lambda fitted: fitted.predict_proba(X[:1])
    )
    assert 0 <= bound.epsilon <= 1
    with pytest.raises(InputError, match="trials"):
        canary_lower_bound(model, X, Y, CANARY, trials=5)


def test_an_estimator_that_promises_nothing_is_held_against_pure_privacy():
    bound = canary_lower_bound(LogisticRegression(), X, Y, CANARY, trials=40, random_state=0)
    assert bound.delta == 0
    assert bound.epsilon > 1
    assert canary_lower_bound(Mean(), X, Y, CANARY, trials=20, delta=0.5, random_state=0).delta == 0.5
