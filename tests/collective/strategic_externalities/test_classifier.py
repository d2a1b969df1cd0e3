"""The learner: what it must equal, what it must beat, scikit-learn's rules, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.collective import ManipulationGame, StrategicEquilibriumClassifier, performance_at_equilibrium
from aboveboard.core import Certificate, InputError
from aboveboard.data import load_german_credit

BOX = (-2.0, 2.0)


def task(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, d)), *BOX)
    y = (X @ np.array([2.0, -1.0, 0.5, 0.0])[:d] + rng.logistic(size=n) > 0.3).astype(int)
    return X, y


@parametrize_with_checks(
    [StrategicEquilibriumClassifier(ManipulationGame(cost="squared_l2", alpha=1e3), n_agents=2, n_shuffles=1)],
)
def test_it_follows_scikit_learn(estimator, check):
    check(estimator)


# --- what it must equal -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"cost": "squared_l2", "alpha": 0.2, "externality": "congestion", "beta": 0.02},
        {"cost": "squared_l2", "alpha": 0.2, "externality": "proportional", "beta": 0.1},
        {"cost": "squared_l2", "alpha": 0.2, "externality": None},
        {"cost": "l2", "alpha": 0.1, "externality": "congestion", "beta": 0.05},
    ],
    ids=["congestion", "proportional", "alone", "l2"],
)
def test_without_bounds_it_is_logistic_regression_with_a_lower_intercept(options):
    """Everybody is moved by the same amount, which the intercept takes back: w is that of clean data."""
    X, y = task()
    game = ManipulationGame(**options)
    aware = StrategicEquilibriumClassifier(game, n_agents=8, reg=0.02, tol=1e-9, random_state=0).fit(X, y)
    plain = LogisticRegression(C=1 / (2 * 0.02 * len(X)), tol=1e-10, max_iter=10_000).fit(X, y)
    moved = game.equilibrium(X[:8], plain.coef_[0]).displacement[0] * np.linalg.norm(plain.coef_)
    assert moved > 0.1
    assert aware.coef_ == pytest.approx(plain.coef_, abs=2e-4)
    assert aware.intercept_ == pytest.approx(plain.intercept_ - moved, abs=2e-4)
    assert (aware.decision_function(X) < plain.decision_function(X)).all()


def test_the_gradient_is_that_of_central_differences():
    X, y = task(80)
    model = StrategicEquilibriumClassifier(ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX), random_state=0)
    model.fit(X, y)
    from aboveboard.collective.strategic_externalities._rounds import shuffled_rounds

    rounds = {n: shuffled_rounds(80, n, 2, np.random.default_rng(n))[n] for n in (8, 7)}
    point = np.array([1.5, -0.8, 0.4, 0.1, -0.6])

    def value(p):
        return model._loss(X, y * 1.0, rounds, p[:-1], p[-1])[0]

    _, by_w, by_b = model._loss(X, y * 1.0, rounds, point[:-1], point[-1])
    h = 1e-6
    differences = [(value(point + s) - value(point - s)) / (2 * h) for s in h * np.eye(5)]
    assert np.append(by_w, by_b) == pytest.approx(differences, rel=1e-4, abs=1e-7)


def test_no_search_nearby_finds_a_better_score():
    X, y = task(160)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX)
    model = StrategicEquilibriumClassifier(game, n_shuffles=1, random_state=0).fit(X, y)
    from aboveboard.collective.strategic_externalities._rounds import shuffled_rounds

    rounds = shuffled_rounds(160, 8, 1, np.random.default_rng(0))
    found = np.append(model.coef_[0], model.intercept_)

    def value(p):
        return model._loss(X, y * 1.0, rounds, p[:-1], p[-1])[0]

    searched = minimize(value, found, method="Nelder-Mead", options={"maxfev": 400, "xatol": 1e-6, "fatol": 1e-9})
    assert searched.fun >= value(found) - 1e-4


def test_it_beats_the_naive_score_and_the_one_that_knows_of_costs_alone_in_equilibrium():
    X, y = task(1200)
    train, test = slice(0, 800), slice(800, None)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX)
    options = {"game": game, "n_agents": 8, "n_rounds": 300, "random_state": 1}
    aware = StrategicEquilibriumClassifier(game, random_state=0).fit(X[train], y[train])
    alone = StrategicEquilibriumClassifier(ManipulationGame(alpha=0.1, externality=None, bounds=BOX), random_state=0)
    naive = LogisticRegression().fit(X[train], y[train])
    found = [
        performance_at_equilibrium(model.coef_[0], model.intercept_[0], X[test], y[test], **options)
        for model in (aware, naive, alone.fit(X[train], y[train]))
    ]
    assert found[0].log_loss < 0.9 * min(found[1].log_loss, found[2].log_loss)
    assert found[0].accuracy > found[1].clean_accuracy - 0.03
    assert max(each.nash_gap for each in found) < 1e-9
    same = aware.performance_at_equilibrium(X[test], y[test], n_rounds=300, random_state=1)
    assert same == found[0]
    assert aware.score_at_equilibrium(X[test], y[test], n_rounds=300, random_state=1) == same.accuracy


def test_it_learns_from_rounds_of_random_size():
    X, y = task(120)
    game = ManipulationGame(cost="squared_l2", alpha=0.1, beta=0.02, bounds=BOX)
    sizes = stats.poisson(6)
    model = StrategicEquilibriumClassifier(game, n_agents=sizes, n_shuffles=1, random_state=0).fit(X, y)
    assert model.performance_at_equilibrium(X, y, n_rounds=50, random_state=0).nash_gap < 1e-9
    again = StrategicEquilibriumClassifier(game, n_agents=sizes, n_shuffles=1, random_state=0).fit(X, y)
    assert (again.coef_ == model.coef_).all()


def test_it_learns_with_an_externality_of_one_s_own():
    def crowded(x_i, r_i, x_j, r_j):
        both = (r_i - x_i) + (r_j - x_j)
        return 0.05 * (both**2).sum(-1), 0.1 * both

    X, y = task(24, 2)
    game = ManipulationGame(cost="squared_l2", alpha=0.2, externality=crowded, bounds=BOX)
    model = StrategicEquilibriumClassifier(game, n_agents=4, n_shuffles=1, max_iter=5, random_state=0).fit(X, y)
    assert model.history_[-1] <= model.history_[0]
    assert model.certificate_.parameters["deviation"] is None


def test_categories_of_text_and_data_frames_of_any_kind_are_taken():
    credit = load_german_credit()
    X = credit.X[["duration", "amount"]].astype("float64")
    X = (X - X.mean()) / X.std()
    game = ManipulationGame(cost="squared_l2", alpha=0.3, beta=0.01)
    model = StrategicEquilibriumClassifier(game, random_state=0).fit(X, credit.y)
    assert set(model.predict(X)) == {"bad", "good"}
    assert model.feature_names_in_.tolist() == ["duration", "amount"]
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    other = clone(model).fit(pl.DataFrame(X.to_dict("list")), credit.y.astype(str).to_numpy())
    assert other.coef_ == pytest.approx(model.coef_)
    nullable = clone(model).fit(X.astype("Float64"), credit.y)
    assert nullable.coef_ == pytest.approx(model.coef_)


# --- what is known of it ----------------------------------------------------------------------------------------------


def test_the_objective_falls_and_the_certificate_tells_how_many_rounds_are_needed():
    X, y = task()
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX)
    model = StrategicEquilibriumClassifier(game, random_state=0).fit(X, y)
    assert (np.diff(model.history_) <= 1e-9).all()
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.parameters["rounds"] == 50
    assert certificate.parameters["rounds_needed"] > 50
    assert any("reconstructed" in assumption.text for assumption in certificate.assumptions)
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    unknown = StrategicEquilibriumClassifier(ManipulationGame(alpha=0.1, externality=None, bounds=BOX)).fit(X, y)
    assert "No bound" in unknown.certificate_.guarantee


def test_a_constant_feature_has_no_weight():
    X, y = task()
    X[:, 3] = 1.5
    model = StrategicEquilibriumClassifier(ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX), random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "l2"}, "game is a str"),
        ({"reg": 0.0}, "reg is 0.0"),
        ({"tol": float("inf")}, "tol is inf"),
        ({"n_shuffles": 0}, "n_shuffles is 0"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"n_agents": 0}, "rounds of 0 applicants"),
        ({"n_agents": 2.5}, "n_agents is 2.5"),
        ({"n_agents": 1000}, "1,000 applicants"),
        ({"n_agents": stats.norm(8, 1)}, "whole numbers"),
        ({"n_agents": 2}, "no single equilibrium"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    X, y = task(60)
    with pytest.raises(InputError, match=message):
        StrategicEquilibriumClassifier(**options).fit(X, y)


def test_data_that_cannot_be_used_are_refused():
    X, y = task(60)
    with pytest.raises(InputError, match="outside the bounds"):
        StrategicEquilibriumClassifier(ManipulationGame(bounds=(-0.1, 0.1))).fit(X, y)
    with pytest.raises(InputError, match="one class"):
        StrategicEquilibriumClassifier().fit(X, np.ones(60))
    with pytest.raises(InputError, match="Only binary"):
        StrategicEquilibriumClassifier().fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="NaN"):
        StrategicEquilibriumClassifier().fit(np.where(X > 1.5, np.nan, X), y)
    model = StrategicEquilibriumClassifier(random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(InputError, match="labels that the classifier does not know"):
        model.performance_at_equilibrium(pd.DataFrame(X, columns=list("abcd")), y + 5)
