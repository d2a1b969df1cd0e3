"""The classifier: what it learns against scikit-learn, the noise it adds, and what it promises."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import aboveboard
from aboveboard.core import Certificate, InputError
from aboveboard.privacy import HiddenStateAccountant, NoisySGDClassifier
from aboveboard.privacy._noise import CRYPTOGRAPHIC
from aboveboard.privacy.noisy_sgd._classifier import _residuals

HARDLY_ANY = {"epsilon": 1e7, "delta": 1e-9, "random_state": 0}
SAMPLINGS = {
    "full": {},
    "cyclic": {"sampling": "cyclic", "batch_size": 50},
    "shuffled": {"sampling": "shuffled", "batch_size": 50},
    "without_replacement": {"sampling": "without_replacement", "batch_size": 50},
}


def rows(n=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    scores = 4 * X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@parametrize_with_checks([NoisySGDClassifier(**HARDLY_ANY, ridge=1e-3, data_norm=5.0, n_steps=400)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_with_hardly_any_noise_it_is_penalised_logistic_regression(n_classes):
    X, y = rows(n_classes=n_classes)
    ours = NoisySGDClassifier(**HARDLY_ANY, ridge=0.02, n_steps=2000).fit(X, y)
    padded = np.column_stack([X, np.ones(len(X))])
    theirs = LogisticRegression(C=1 / (0.02 * len(X)), fit_intercept=False, tol=1e-10, max_iter=5000).fit(padded, y)
    assert np.column_stack([ours.coef_, ours.intercept_]) == pytest.approx(theirs.coef_, abs=2e-3)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(padded), abs=2e-3)
    assert (ours.predict(X) == theirs.predict(padded)).mean() > 0.995
    assert ours.coef_.shape == theirs.coef_[:, :-1].shape


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_loss_and_no_longer_than_the_bound(n_classes):
    X, y = rows(40, n_classes)
    model = NoisySGDClassifier()
    accountant = model.accountant(40, n_classes)
    padded = np.column_stack([X, np.ones(40)])
    outputs = 1 if n_classes == 2 else n_classes
    targets = y[:, None] if n_classes == 2 else np.eye(n_classes)[y]
    weights = np.random.default_rng(1).normal(size=(4, outputs)) * 3

    def loss(flat, row):
        scores = padded[row] @ flat.reshape(4, outputs)
        scores = np.array([0.0, scores[0]]) if n_classes == 2 else scores
        return np.log(np.exp(scores).sum()) - scores[y[row]]

    for row in range(5):
        one = slice(row, row + 1)
        gradient = np.outer(padded[row], _residuals(padded[one] @ weights, targets[one])).ravel()
        assert gradient == pytest.approx(approx_fprime(weights.ravel(), loss, 1e-7, row), abs=1e-5)
        assert np.linalg.norm(gradient) <= accountant.grad_bound
    worst = np.outer([1, 0, 0, 1], _residuals(np.array([[30.0]]), np.zeros((1, 1))))
    if n_classes == 2:
        assert np.linalg.norm(worst) == pytest.approx(accountant.grad_bound)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_promise_is_kept_and_proved(sampling):
    X, y = rows()
    model = NoisySGDClassifier(2.0, n_steps=30, random_state=0, **SAMPLINGS[sampling]).fit(X, y)
    assert 1.98 <= model.epsilon_ <= 2.0
    certificate = model.certificate_
    assert isinstance(certificate, Certificate)
    assert certificate.holds
    assert certificate.parameters["epsilon"] == model.epsilon_
    assert certificate.parameters["adjacency"] == "replace_one"
    assert certificate.parameters["sampling"] == sampling
    run = HiddenStateAccountant(
        loss=model.accountant(600).loss, lr=model.lr_, grad_bound=np.sqrt(2), n=600, sampling=sampling,
        batch_size=SAMPLINGS[sampling].get("batch_size"),
    )  # fmt: skip
    assert run.last_iterate(30, model.noise_std_).epsilon(1e-5) == pytest.approx(model.epsilon_)
    assert any("encoding" in text for text in certificate.does_not_cover)
    assert "PCG64" in certificate.numerics["noise_source"]
    assert "data" not in certificate.subject, "a hash of private rows would tell of them"


def test_the_noise_has_the_standard_deviation_that_was_accounted_for():
    """One step from zero: the coefficients are the mean gradient and one draw of noise."""
    X, y = rows(100)
    model = NoisySGDClassifier(0.5, n_steps=1)
    found = [model.set_params(random_state=seed).fit(X, y) and np.append(model.coef_, model.intercept_)
             for seed in range(400)]  # fmt: skip
    mean = -model.lr_ * np.column_stack([X, np.ones(100)]).T @ (0.5 - y) / 100
    deviation = model.lr_ * model.noise_std_
    assert np.mean(found, axis=0) == pytest.approx(mean, abs=4.5 * deviation / 20)
    assert np.std(found, axis=0) == pytest.approx(np.full(4, deviation), rel=0.18)


def test_longer_training_needs_no_more_noise_in_the_end():
    model = NoisySGDClassifier(1.0)
    accountant = model.accountant(1000)
    noise = [accountant.calibrate(steps, 1.0, 1e-5) for steps in (10, 1000, 100_000)]
    assert noise[1] == pytest.approx(noise[2], rel=1e-3)
    assert noise[2] < 100 * noise[0]


def test_a_seed_repeats_the_model_and_without_one_none_is_alike():
    X, y = rows()
    first, again, other, release = (
        NoisySGDClassifier(n_steps=5, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1, None)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    model = NoisySGDClassifier(n_steps=5).fit(X, y)
    assert not np.array_equal(model.coef_, release)
    assert model.certificate_.numerics["noise_source"] == CRYPTOGRAPHIC
    generator = NoisySGDClassifier(n_steps=5, random_state=np.random.RandomState(0)).fit(X, y)
    assert "PCG64" in generator.certificate_.numerics["noise_source"]


def test_the_radius_holds_and_stands_in_for_the_ridge():
    X, y = rows()
    model = NoisySGDClassifier(1e4, ridge=0.0, radius=0.7, random_state=0).fit(X, y)
    assert np.linalg.norm(np.append(model.coef_, model.intercept_)) <= 0.7 * (1 + 1e-12)
    assert model.certificate_.parameters["diameter"] == 1.4
    assert model.n_iter_ == 300


def test_public_bounds_map_features_and_rows_are_scaled_alike_in_training_and_prediction():
    X, y = rows()
    raw = pd.DataFrame(X * [10, 1000, 1] + [5, 0, -3], columns=["a", "b", "c"])
    bounds = ([-5, -1000, -4], [15, 1000, -2])
    model = NoisySGDClassifier(**HARDLY_ANY, bounds=bounds).fit(raw, y)
    plain = NoisySGDClassifier(**HARDLY_ANY).fit(X, y)
    assert model.coef_ == pytest.approx(plain.coef_, abs=1e-9)
    assert model.predict_proba(raw) == pytest.approx(plain.predict_proba(X), abs=1e-9)
    far = raw.iloc[:1].assign(a=1e6)
    cut = raw.iloc[:1].assign(a=15.0)
    assert model.predict_proba(far) == pytest.approx(model.predict_proba(cut))
    with pytest.warns(UserWarning, match="data_norm"):
        long = NoisySGDClassifier(**HARDLY_ANY).fit(5 * np.sign(X), y)
    assert long.predict_proba(5 * np.sign(X)) == pytest.approx(long.predict_proba(9 * np.sign(X)))


def test_without_an_intercept_there_is_none():
    X, y = rows()
    model = NoisySGDClassifier(fit_intercept=False, random_state=0).fit(X, y)
    assert model.intercept_ == [0.0]
    assert model.accountant(600).grad_bound == 1.0


def test_it_can_be_kept_and_its_certificate_with_it():
    X, y = rows()
    model = NoisySGDClassifier(n_steps=3, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_ == model.certificate_
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_an_audit_attacks_it_and_holds_what_it_finds_against_the_certificate():
    X, y = rows(4000)
    model = NoisySGDClassifier(0.5, random_state=0).fit(X[:2000], y[:2000])
    report = aboveboard.audit(model, X[2000:], y[2000:], train=(X[:2000], y[:2000]), effort="quick", skip="data")
    assert [finding.reason for finding in report.not_run if finding.status == "error"] == []
    told = [finding for finding in report.findings if finding.check == "membership"]
    assert told
    assert {finding.severity for finding in told} <= {"ok", "note"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"ridge": 0.0}, "neither ridge nor radius"),
        ({"ridge": -1.0}, "ridge"),
        ({"radius": 0.0}, "radius"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"n_steps": 0}, "n_steps"),
        ({"lr": 10.0}, "at most 2 / L"),
        ({"sampling": "poisson"}, "sampling"),
        ({"sampling": "cyclic", "batch_size": 7}, "does not divide"),
        ({"sampling": "shuffled"}, "batch_size"),
        ({"bounds": ([0], [1])}, "bounds"),
        ({"bounds": ([0, 0, 0], [1, 1, 0])}, "bounds"),
    ],
)
def test_bad_options_are_refused(options, match):
    X, y = rows(100)
    with pytest.raises(InputError, match=match):
        NoisySGDClassifier(**options).fit(X, y)


def test_a_delta_that_would_allow_publishing_a_row_is_warned_of():
    X, y = rows(100)
    with pytest.warns(UserWarning, match="below 1 / 100"):
        NoisySGDClassifier(delta=0.02, n_steps=3).fit(X, y)
    with pytest.raises(NotFittedError):
        _ = NoisySGDClassifier().certificate_
