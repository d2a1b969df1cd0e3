"""Weighted objective perturbation: the privacy ratio by brute force, the minimiser against scikit-learn, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import PrivateWeightedLogisticRegression
from aboveboard.privacy._noise import CRYPTOGRAPHIC, noise_source
from aboveboard.privacy.imbalanced._erm import Budget, minimiser, perturbation


def imbalanced_rows(n=2000, d=4, rare=0.1, seed=0):
    """Rows of norm at most 1; shape (n, d)."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rare).astype(int)
    X = rng.normal(size=(n, d)) + y[:, None]
    return X / np.linalg.norm(X, axis=1).max(), y


ACCURATE = PrivateWeightedLogisticRegression(epsilon=1000.0, lam=1e-4, data_norm=100.0, clip=True, random_state=0)
POPULATION = PrivateWeightedLogisticRegression(**(ACCURATE.get_params() | {"probabilities": "population"}))
UNDONE = {"check_class_weight_classifiers": "probabilities of the population undo the class weights on purpose"}


@parametrize_with_checks(
    [ACCURATE, POPULATION], expected_failed_checks=lambda estimator: UNDONE if estimator is POPULATION else {}
)
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


def test_without_noise_it_is_scikit_learns_weighted_logistic_regression():
    X, y = imbalanced_rows()
    weight, lam = np.where(y == 1, 5.0, 0.6), 0.02
    found = minimiser(X, 2.0 * y - 1, weight, lam, np.zeros(X.shape[1]))
    reference = LogisticRegression(C=1 / (len(y) * lam), fit_intercept=False, tol=1e-10, max_iter=10_000)
    assert np.allclose(found, reference.fit(X, y, sample_weight=weight).coef_[0], atol=1e-6)


def test_with_a_huge_budget_coefficients_and_intercept_are_those_of_the_rows_as_given():
    X, y = imbalanced_rows()
    private = PrivateWeightedLogisticRegression(
        1e9, class_weight={0: 1.0, 1: 4.0}, lam=0.01, data_norm=3.0, random_state=0
    ).fit(X, y)
    scaled = np.column_stack([X / 3, np.ones(len(X))]) / math.sqrt(2)
    reference = LogisticRegression(C=1 / (0.01 * len(y)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    reference.fit(scaled, y, sample_weight=np.where(y == 1, 4.0, 1.0))
    assert np.allclose(private.decision_function(X), scaled @ reference.coef_[0], atol=1e-5)


def log_density(theta, rows, sign, weight, lam, scale):
    """Log density of the released minimiser at theta, up to a constant: that of the noise there, times |db/dtheta|."""
    n = len(rows)
    signed = sign[:, None] * rows
    b = (weight * expit(-signed @ theta)) @ signed - n * lam * theta
    p = expit(signed @ theta)
    jacobian = (signed * (weight * p * (1 - p))[:, None]).T @ signed + n * lam * np.eye(len(theta))
    return -np.linalg.norm(b) / scale + np.linalg.slogdet(jacobian)[1]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    d=st.integers(1, 3),
    n=st.integers(3, 30),
    epsilon=st.floats(0.05, 5),
    lam=st.floats(1e-4, 1),
    w_max=st.floats(1, 20),
)
def test_replacing_a_row_changes_the_log_density_of_the_release_by_at_most_epsilon(seed, d, n, epsilon, lam, w_max):
    rng = np.random.default_rng(seed)
    budget = Budget.split(epsilon, w_max=w_max, n=n, lam=lam)
    scale = budget.noise_scale(w_max)
    rows = rng.normal(size=(n + 1, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1), rng.random(n + 1))[:, None]  # many of norm one: the worst case
    sign = rng.choice([-1.0, 1.0], size=n + 1)
    weight = np.where(sign > 0, w_max, 0.5)
    here, there = np.arange(n), np.append(np.arange(n - 1), n)
    for theta in rng.normal(size=(20, d)) * rng.exponential(10, size=(20, 1)):
        ratio = log_density(theta, rows[here], sign[here], weight[here], budget.lam, scale) - log_density(
            theta, rows[there], sign[there], weight[there], budget.lam, scale
        )
        assert abs(ratio) <= epsilon + 1e-9


def test_the_worst_pair_comes_close_to_epsilon():
    budget = Budget.split(1.0, w_max=1.0, n=30, lam=1.0)
    rows, sign, weight = np.zeros((31, 1)), np.ones(31), np.ones(31)
    rows[29:] = 1.0
    sign[30] = -1.0
    here, there = np.arange(30), np.append(np.arange(29), 30)
    scale = budget.noise_scale(1.0)
    ratios = [
        log_density(np.array([t]), rows[here], sign[here], weight[here], budget.lam, scale)
        - log_density(np.array([t]), rows[there], sign[there], weight[there], budget.lam, scale)
        for t in np.linspace(-2, 2, 401)
    ]
    assert 0.45 < max(map(abs, ratios)) <= 1.0


def test_scaling_weights_and_penalty_together_changes_nothing():
    X, y = imbalanced_rows(500)
    fits = [
        PrivateWeightedLogisticRegression(
            1.0, class_weight={0: factor, 1: 3 * factor}, lam=0.1 * factor, random_state=7
        ).fit(X, y)
        for factor in (1.0, 2.5)
    ]
    assert np.allclose(fits[0].coef_, fits[1].coef_, atol=1e-6)


def test_equal_weights_are_no_weights():
    X, y = imbalanced_rows(500)
    fits = [
        PrivateWeightedLogisticRegression(1.0, class_weight=w, random_state=7).fit(X, y) for w in (None, {0: 1, 1: 1})
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_noise_has_a_gamma_norm_and_no_preferred_direction():
    source = noise_source(3)
    draws = np.array([perturbation(5, 2.0, source) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norms, stats.gamma(5, scale=2.0).cdf).pvalue > 0.01
    directions = draws / norms[:, None]
    assert np.abs(directions.mean(axis=0)).max() < 4 / math.sqrt(5 * 4000)
    assert np.allclose(directions.T @ directions / 4000, np.eye(5) / 5, atol=0.02)


@given(epsilon=st.floats(0.01, 20), w_max=st.floats(1, 50), n=st.integers(2, 10**6), lam=st.floats(1e-6, 10))
def test_the_budget_is_spent_to_the_last_and_at_least_half_of_it_on_noise(epsilon, w_max, n, lam):
    budget = Budget.split(epsilon, w_max=w_max, n=n, lam=lam)
    assert budget.curvature + budget.noise == pytest.approx(epsilon)
    assert budget.noise >= epsilon / 2 * (1 - 1e-9)
    assert budget.lam >= lam


def test_class_weights_are_scikit_learns_balanced_ones_for_a_huge_budget_and_exactly_those_for_public_counts():
    X, y = imbalanced_rows()
    balanced = compute_class_weight("balanced", classes=np.array([0, 1]), y=y)
    for class_weight, tolerance in (("private", 1e-6), ("balanced_public", 0)):
        model = PrivateWeightedLogisticRegression(1e9, class_weight=class_weight, random_state=0).fit(X, y)
        assert np.allclose(list(model.class_weight_.values()), balanced, rtol=tolerance + 1e-12)


def test_private_class_counts_have_laplace_noise_for_a_tenth_of_epsilon():
    X, y = imbalanced_rows(1000)
    fits = (PrivateWeightedLogisticRegression(2.0, random_state=seed).fit(X, y) for seed in range(300))
    counts = np.array([1000 / (2 * model.class_weight_[1]) for model in fits])
    assert stats.kstest(counts, stats.laplace(y.sum(), scale=1 / 0.2).cdf).pvalue > 0.01


def test_weights_are_capped_and_tempered():
    X, y = imbalanced_rows(2000, rare=0.01)
    options = {"class_weight": "balanced_public", "random_state": 0}
    capped = PrivateWeightedLogisticRegression(1.0, weight_cap=7.0, **options).fit(X, y)
    tempered = PrivateWeightedLogisticRegression(1.0, balance=0.5, weight_cap=100.0, **options).fit(X, y)
    assert capped.class_weight_[1] == 7.0
    assert tempered.class_weight_[1] == pytest.approx(math.sqrt(2000 / (2 * y.sum())))


def test_population_probabilities_undo_the_weights():
    X, y = imbalanced_rows(20_000)
    options = {"lam": 1e-6, "class_weight": "balanced_public", "random_state": 0}
    balanced = PrivateWeightedLogisticRegression(1e6, **options).fit(X, y)
    population = PrivateWeightedLogisticRegression(1e6, probabilities="population", **options).fit(X, y)
    assert population.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)
    assert balanced.predict_proba(X)[:, 1].mean() > 2 * y.mean()


def test_weights_raise_the_recall_of_the_rare_class():
    X, y = imbalanced_rows(5000, rare=0.05)
    recalls = {}
    for class_weight in ("private", None):
        model = PrivateWeightedLogisticRegression(5.0, class_weight=class_weight, random_state=0).fit(X, y)
        recalls[class_weight] = (model.predict(X)[y == 1] == 1).mean()
    assert recalls["private"] > recalls[None] + 0.3


def test_the_certificate_says_what_was_spent_and_where_the_noise_came_from():
    X, y = imbalanced_rows(500)
    certificate = PrivateWeightedLogisticRegression(1.5, random_state=0).fit(X, y).certificate_
    parameters = certificate.parameters
    parts = ("epsilon_class_weights", "epsilon_curvature", "epsilon_noise")
    assert sum(parameters[part] for part in parts) == pytest.approx(1.5)
    assert (parameters["delta"], parameters["adjacency"]) == (0.0, "replace_one")
    assert certificate.holds
    assert "predicted" in certificate.numerics["noise_source"]
    assert Certificate.from_dict(certificate.to_dict()).parameters == parameters
    fresh = PrivateWeightedLogisticRegression(1.5, class_weight="balanced_public").fit(X, y).certificate_
    assert fresh.numerics["noise_source"] == CRYPTOGRAPHIC
    assert any("each class has is public" in assumption.text for assumption in fresh.assumptions)


def test_without_a_seed_no_two_releases_are_alike():
    X, y = imbalanced_rows(300)
    fits = [PrivateWeightedLogisticRegression().fit(X, y).coef_ for _ in range(2)]
    assert not np.allclose(*fits)


def test_longer_rows_are_refused_or_shortened():
    X, y = imbalanced_rows(300)
    with pytest.raises(InputError, match="above data_norm"):
        PrivateWeightedLogisticRegression(data_norm=0.5).fit(X, y)
    model = PrivateWeightedLogisticRegression(1e6, data_norm=0.5, clip=True, random_state=0).fit(X, y)
    far = 10 * X[:1] / np.linalg.norm(X[0])
    assert model.decision_function(far) == pytest.approx(model.decision_function(0.05 * far))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"lam": -1}, "lam"),
        ({"data_norm": 0}, "data_norm"),
        ({"weight_cap": 0.5}, "weight_cap"),
        ({"balance": 2}, "balance"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"class_weight": {0: 1.0}}, "keys"),
        ({"class_weight": {0: 1.0, 1: -2.0}}, r"class_weight\[1\]"),
        ({"probabilities": "true"}, "probabilities"),
    ],
)
def test_bad_options_are_refused(options, said):
    X, y = imbalanced_rows(50)
    with pytest.raises(InputError, match=said):
        PrivateWeightedLogisticRegression(**options).fit(X, y)


def test_one_class_and_three_classes_are_refused():
    X, _ = imbalanced_rows(60)
    with pytest.raises(InputError, match="one class"):
        PrivateWeightedLogisticRegression().fit(X, np.zeros(60))
    with pytest.raises(InputError, match="Only binary"):
        PrivateWeightedLogisticRegression().fit(X, np.arange(60) % 3)


def test_an_ill_conditioned_problem_releases_nothing():
    rows = np.full((40, 2), 0.5)
    with pytest.raises(RuntimeError, match="nothing is released"):
        minimiser(rows, np.ones(40), np.full(40, 1e9), 1e-12, np.array([1e15, -1e15]))
