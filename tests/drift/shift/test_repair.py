"""A repair is tried on rows that it did not learn from."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from aboveboard.core.errors import InputError
from aboveboard.drift import SHIFT


@pytest.fixture(scope="module")
def reversed_outcomes(sign):
    """Where x1 > 1 nine labels in ten are flipped: predictions there should be reversed."""
    rng = np.random.default_rng(0)
    X0, X1 = rng.normal(size=(2, 4000, 3))
    y0, y1 = ((rng.random(4000) < sign.predict_proba(X)[:, 1]).astype(int) for X in (X0, X1))
    return X0, y0, X1, np.where((X1[:, 1] > 1) & (rng.random(4000) < 0.9), 1 - y1, y1)


@pytest.fixture(scope="module")
def fitted(reversed_outcomes, sign):
    shift = SHIFT(random_state=0, n_bootstrap=2000)
    return shift.fit(*reversed_outcomes, model=sign, candidates={"one": ["x0"], "two": ["x1"]})


def test_an_outcome_repair_takes_back_most_of_what_was_lost(fitted):
    repaired = fitted.repair("outcome")
    trial = repaired.trial_
    assert (repaired.candidate, repaired.columns) == ("two", ("x1",))
    assert trial.interval[0] > 0.02
    assert trial.gain == pytest.approx(trial.before - trial.after)
    assert trial.after_inside < 0.7 * trial.before_inside


def test_outside_the_subgroup_answers_stay_as_they_were(fitted, reversed_outcomes, sign):
    X1 = reversed_outcomes[2]
    inside = fitted.subgroup("outcome").predict(X1)
    new, old = fitted.repair("outcome").predict_proba(X1), sign.predict_proba(X1)
    assert np.allclose(new[~inside], old[~inside])
    assert not np.allclose(new[inside], old[inside])
    everywhere = fitted.repair("outcome", where="everywhere").predict_proba(X1)
    assert not np.allclose(everywhere[~inside], old[~inside])


def test_what_the_trial_says_holds_on_fresh_rows(fitted, sign):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20_000, 3))
    y = (rng.random(20_000) < sign.predict_proba(X)[:, 1]).astype(int)
    y = np.where((X[:, 1] > 1) & (rng.random(20_000) < 0.9), 1 - y, y)
    repaired = fitted.repair("outcome")
    error = (repaired.predict(X) != y).mean()
    assert error == pytest.approx(repaired.trial_.after, abs=0.04)


def test_rows_of_one_s_own_can_be_learned_from_and_then_there_is_no_trial(fitted, reversed_outcomes):
    X1, y1 = reversed_outcomes[2:]
    repaired = fitted.repair("outcome", X1, y1, candidate="one")
    assert repaired.trial_ is None
    assert repaired.columns == ("x0",)


def test_changed_rows_are_repaired_by_training_on_weighted_source_rows(sign):
    rng = np.random.default_rng(1)
    X0, X1 = rng.normal(size=(2, 2000, 3))
    X1[:, 0] *= 0.3
    y0, y1 = ((rng.random(2000) < 1 / (1 + np.exp(-3 * X[:, 0] - X[:, 1]))).astype(int) for X in (X0, X1))
    model = LogisticRegression(C=1e-4).fit(X0, y0)
    shift = SHIFT(0.02, random_state=0, n_bootstrap=2000).fit(X0, y0, X1, y1, model=model, candidates={"one": ["x0"]})
    for estimator in (None, LogisticRegression()):
        repaired = shift.repair("covariate", estimator=estimator)
        assert repaired.predict_proba(X1).shape == (2000, 2)
        assert repaired.trial_.n == 1000
    without = SHIFT(0.02, random_state=0, n_bootstrap=2000)
    scores = tuple(model.predict_proba(X)[:, 1] for X in (X0, X1))
    without.fit(X0, y0, X1, y1, predictions=scores, candidates={"one": ["x0"]})
    assert np.isfinite(without.repair("covariate").trial_.after)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"where": "here"}, "'subgroup' or 'everywhere'"),
        ({"X": np.zeros((5, 3))}, "one of X and y"),
        ({"candidate": "nobody"}, "'nobody'"),
    ],
)
def test_what_cannot_be_repaired_is_refused(fitted, arguments, message):
    with pytest.raises(InputError, match=message):
        fitted.repair("outcome", **arguments)
