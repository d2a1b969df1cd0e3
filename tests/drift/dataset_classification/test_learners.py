"""The candidates, their choice and their calibration."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._learners import (
    Design,
    LogisticLearner,
    TreesLearner,
    estimator_learner,
    tempered,
    train,
)
from aboveboard.drift.dataset_classification._tables import Features

BOTH = {"trees": TreesLearner, "logistic": LogisticLearner}


def table(values, categorical=()):
    values = np.asarray(values, dtype=float)
    mask = np.isin(np.arange(values.shape[1]), list(categorical))
    return Features(values, tuple(f"x{j}" for j in range(values.shape[1])), mask)


def test_the_better_of_the_two_is_picked():
    rng, codes = np.random.default_rng(0), np.repeat([0, 1], 400)
    linear = rng.normal(size=(800, 4)) + 0.4 * codes[:, None]
    assert train(table(linear), codes, 2, BOTH, 0).name == "logistic"
    checkers = rng.uniform(-1, 1, size=(800, 2))
    checkers[:, 1] = np.abs(checkers[:, 1]) * np.sign(checkers[:, 0]) * np.where(codes == 1, 1, -1)
    assert train(table(checkers), codes, 2, BOTH, 0).name == "trees"


def test_probabilities_are_calibrated():
    """For normal samples delta apart the true log-odds are delta x - delta^2 / 2."""
    rng, codes, delta = np.random.default_rng(0), np.repeat([0, 1], 600), 1.0
    x = rng.normal(size=1200) + delta * codes
    noise = rng.normal(size=(1200, 5))
    trained = train(table(np.column_stack([x, noise])), codes, 2, {"trees": TreesLearner}, 0)
    assert trained.sharpness < 1  # trees are too sure of themselves
    new = rng.normal(size=4000) + delta * np.repeat([0, 1], 2000)
    rows = table(np.column_stack([new, rng.normal(size=(4000, 5))]))
    proba, raw = trained.proba(rows)[:, 1], trained.learner.predict_proba(rows)[:, 1]
    truth = 1 / (1 + np.exp(-(delta * new - delta**2 / 2)))
    assert np.abs(proba - truth).mean() < 0.1
    assert log_loss(np.repeat([0, 1], 2000), proba) < log_loss(np.repeat([0, 1], 2000), raw)


def test_unequal_numbers_of_rows_do_not_move_the_probabilities():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [3000, 300])
    x = rng.normal(size=3300) + codes
    proba = train(table(x[:, None]), codes, 2, {"logistic": LogisticLearner}, 0).proba(table([[0.5]]))
    assert proba[0, 1] == pytest.approx(0.5, abs=0.06)


def test_tempering_keeps_the_order_and_one_leaves_all_as_it_is():
    proba = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)
    np.testing.assert_allclose(tempered(proba, 1.0), proba, atol=1e-12)
    assert (np.argsort(tempered(proba, 0.3), axis=1) == np.argsort(proba, axis=1)).all()
    np.testing.assert_allclose(tempered(proba, 1e-9), 1 / 3, atol=1e-6)


def test_the_design_is_finite_whatever_comes():
    values = np.array([[1.0, np.nan, 0.0, np.inf], [1e308, 2.0, 1.0, -np.inf], [-1e308, 3.0, np.nan, 5.0]])
    design = Design().fit(table(values, categorical=[2]))
    out = design.transform(table(np.vstack([values, [[np.inf, -np.inf, 7.0, np.nan]]]), categorical=[2]))
    assert np.isfinite(out).all()
    assert np.abs(out).max() <= 8


def test_trees_take_infinity_and_columns_without_values_without_a_warning():
    rng, codes = np.random.default_rng(0), np.repeat([0, 1], 100)
    values = np.column_stack([rng.normal(size=200), np.full(200, np.nan), np.where(rng.random(200) < 0.3, np.inf, 1.0)])
    with np.errstate(all="raise"):
        assert TreesLearner().fit(table(values), codes, 2, 0).predict_proba(table(values)).shape == (200, 2)


def test_a_user_s_estimator_gets_finite_numbers_and_is_not_changed():
    rng, codes = np.random.default_rng(0), np.repeat([0, 1], 200)
    values = np.column_stack([rng.normal(size=400) + codes, np.where(rng.random(400) < 0.5, np.nan, 1.0)])
    mine = LogisticRegression(C=3.0)
    learner = estimator_learner(mine)().fit(table(values), codes, 2, 0)
    assert learner.model_.C == 3.0
    assert not hasattr(mine, "coef_")
    assert (learner.predict_proba(table(values)).argmax(axis=1) == codes).mean() > 0.6
    with pytest.raises(InputError, match="predict_proba"):
        estimator_learner("forest")
