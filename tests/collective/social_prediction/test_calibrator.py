"""Published forecasts match outcomes that react to them; live use alternates; the draw can be repeated."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression

from aboveboard.collective import BumpTests, GroupTests, PerformativeCalibrator, PolynomialTests, ResponseModel
from aboveboard.collective.social_prediction._memory import forecast
from aboveboard.core import Certificate, InputError

BUMPS = [PolynomialTests(1), BumpTests()]


def nobody(n):
    return np.zeros((n, 0))


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.normal(40, 10, n), "sex": rng.choice(["f", "m"], n)})


def risk(X):
    return np.clip(0.3 + 0.01 * (X["age"].to_numpy() - 40) + 0.2 * (X["sex"] == "f").to_numpy(), 0, 1)


@pytest.fixture(scope="module")
def fitted():
    respond = ResponseModel("threshold", 0.3, base_rate=risk, random_state=0)
    return PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(people(800), respond)


# --- the mathematics --------------------------------------------------------------------------------------------------


def test_where_nobody_reacts_forecasts_reach_the_rate():
    """Bernoulli(0.3): over the second half of 2,000 rounds the mean forecast is 0.3 to 0.04."""
    seen = []

    def respond(X, p):
        seen.append(p[0])
        return rng.random(1) < 0.3

    rng = np.random.default_rng(0)
    PerformativeCalibrator(BUMPS, random_state=0).fit_online(nobody(2000), respond)
    assert abs(np.mean(seen[1000:]) - 0.3) < 0.04


def test_against_self_negation_forecasts_reach_a_half():
    respond = ResponseModel("self_negating", 1.0, random_state=0)  # g(p) = 1 - p
    calibrator = PerformativeCalibrator(BUMPS, random_state=0).fit_online(nobody(1500), respond)
    assert calibrator.deterministic_at(1499).predict(nobody(1))[0] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    "kind",
    [
        "self_fulfilling",
        "self_negating",
        "threshold",
        lambda X, p: np.where(p <= 0.5, p + 0.1, p - 0.1),
        lambda X, p: np.where(p <= 0.5, 0.8, 0.2),
        lambda X, p: 0.5 + 0.5 * np.sin(40 * p),
    ],
)
def test_new_people_are_within_the_certificate_whatever_the_reaction(kind):
    for seed in range(2):
        respond = ResponseModel(kind, 0.6, base_rate=0.6, random_state=seed)
        calibrator = PerformativeCalibrator(BUMPS, random_state=seed).fit_online(nobody(200), respond)
        X = nobody(2000)
        p = calibrator.predict(X, random_state=seed)
        off = calibrator.violations(X, p, respond.mean(X, p))["mean"].abs().max()
        assert off <= calibrator.certificate_.parameters["bound"]


@pytest.mark.slow
def test_the_guarantee_holds_as_often_as_it_says():
    """2,000 fits: the bound may fail in 5 %; more than 125 failures have a chance below 1 in 1,000 at that rate."""
    failures = 0
    for seed in range(2000):
        respond = ResponseModel("self_negating", 1.0, random_state=seed)
        tests = [PolynomialTests(1), BumpTests(2, 0.3)]
        calibrator = PerformativeCalibrator(tests, random_state=seed).fit_online(nobody(30), respond)
        every = np.arange(30)
        p = forecast(calibrator._memory, nobody(30), np.full(30, 0.5), every)
        off = calibrator.violations(nobody(30), p, respond.mean(nobody(30), p))["mean"].abs().max()
        failures += off > calibrator.certificate_.parameters["bound"]
    assert failures <= 125


def test_groups_are_calibrated_after_publication(fitted):
    respond = ResponseModel("threshold", 0.3, base_rate=risk, random_state=1)
    X = people(5000, seed=1)
    p = fitted.predict(X, random_state=0)
    found = fitted.violations(X, p, respond(X, p)).set_index("test")
    assert found["mean"].abs().max() < 0.04
    assert {"sex=f", "sex=m x p", "age", "p near 0.438"} <= set(found.index)
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()


def test_a_base_model_is_not_beaten_on_the_outcomes_that_come_about():
    """Theorem 4.2: the Brier score exceeds h's by at most 2 (|violation of h| + |violation of p|)."""
    X = people(800)
    respond = ResponseModel("self_negating", 0.8, base_rate=risk, random_state=0)
    base = LogisticRegression().fit(X[["age"]], respond(X, np.full(len(X), 0.5)))
    h = lambda X: base.predict_proba(X[["age"]])[:, 1]  # noqa: E731
    calibrator = PerformativeCalibrator(groups=["sex"], base_estimator=h, random_state=0).fit_online(X, respond)
    new = people(5000, seed=2)
    p = calibrator.predict(new, random_state=0)
    y = respond(new, p)
    off = calibrator.violations(new, p, y).set_index("test")["mean"]
    excess = np.mean((y - p) ** 2) - np.mean((y - h(new)) ** 2)
    assert excess <= 2 * (abs(off["base score"]) + abs(off["p"])) + 1e-12
    assert excess < 0.02


def test_the_first_forecasts_are_the_base_models():
    calibrator = PerformativeCalibrator([PolynomialTests(0)], groups=["sex"], base_estimator=risk).prepare(people(10))
    first = people(1, seed=5)
    assert calibrator.predict_one(first) == pytest.approx(risk(first)[0])


def test_batches_share_a_version_and_say_what_that_costs():
    respond = ResponseModel("self_negating", 1.0, random_state=0)
    calibrator = PerformativeCalibrator(BUMPS, random_state=0).fit_online(nobody(505), respond, batch_size=10)
    facts = calibrator.certificate_.parameters
    assert (calibrator.batch_size_, facts["observed_at_most"]) == (10, pytest.approx(np.sqrt(10 * 10 / 505)))
    assert "51 versions" in calibrator.certificate_.guarantee
    assert facts["observed"] <= facts["observed_at_most"]


def test_with_a_kernel_the_norm_of_all_tests_is_promised():
    """The brief's figures for g(p) = 1 - p: 0.032 at T = 250, against a bound of 0.063."""
    respond = ResponseModel("self_negating", 1.0, random_state=1)
    calibrator = PerformativeCalibrator(RBF(0.05), random_state=0).fit_online(nobody(250), respond)
    facts = calibrator.certificate_.parameters
    assert facts["observed"] == pytest.approx(0.032, abs=0.004)
    assert facts["observed_at_most"] == pytest.approx(0.0632, abs=1e-4)
    assert calibrator.predict(nobody(5), random_state=0).shape == (5,)
    with pytest.raises(InputError, match="tests are those of a kernel"):
        calibrator.violations(nobody(2), [0.5, 0.5], [0, 1])


def test_the_certificate_is_checked_and_travels(fitted):
    certificate = fitted.certificate_
    assert certificate.holds
    assert certificate.confidence == 0.95
    assert certificate.parameters["bound"] == pytest.approx(
        certificate.parameters["observed"] + np.sqrt(2 * np.log(2 * 15 / 0.05) / 800)
    )
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert any("worth publishing" in text for text in certificate.does_not_cover)


# --- repeatable -------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_forecasts():
    X = people(200)
    fits = [
        PerformativeCalibrator(groups=["sex"], random_state=3).fit_online(
            X, ResponseModel("threshold", 0.3, base_rate=risk, random_state=0)
        )
        for _ in range(2)
    ]
    assert np.array_equal(fits[0].predict(X), fits[1].predict(X))


def test_the_order_of_columns_does_not_matter():
    X = people(300).assign(height=np.arange(300.0))
    found = []
    for columns in (["age", "sex", "height"], ["height", "sex", "age"]):
        respond = ResponseModel("threshold", 0.3, base_rate=risk, random_state=0)
        calibrator = PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(X[columns], respond)
        found.append(calibrator.predict(X[columns], random_state=0))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_the_draw_follows_the_record_id(fitted):
    X, key = people(50, seed=3), b"0123456789abcdef"
    ids = [f"pupil {i}" for i in range(50)]
    first = fitted.predict(X, record_ids=ids, key=key)
    again = fitted.predict(X.iloc[::-1], record_ids=ids[::-1], key=key)[::-1]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, fitted.predict(X, record_ids=ids, key=b"another key 0123"))
    with pytest.raises(InputError, match="go together"):
        fitted.predict(X, record_ids=ids)
    with pytest.raises(InputError, match="49 record ids"):
        fitted.predict(X, record_ids=ids[1:], key=key)


def test_versions_are_deterministic_and_the_draw_is_among_them(fitted):
    x = people(1, seed=4)
    versions = {round(float(fitted.deterministic_at(t).predict(x)[0]), 9) for t in range(fitted.n_rounds_)}
    drawn = fitted.predict(pd.concat([x] * 100), random_state=0)
    assert {round(float(p), 9) for p in drawn} <= versions
    with pytest.raises(InputError, match="t is 800"):
        fitted.deterministic_at(800)


def test_probabilities_of_both_outcomes(fitted):
    X = people(5)
    both = fitted.predict_proba(X, random_state=0)
    assert both[:, 1] == pytest.approx(fitted.predict(X, random_state=0))
    assert both.sum(axis=1) == pytest.approx(np.ones(5))


def test_copies(fitted):
    copy = clone(PerformativeCalibrator(BUMPS, groups=["sex"], delta=0.1, random_state=2))
    assert (copy.groups, copy.delta, copy.random_state) == (["sex"], 0.1, 2)
    X = people(20)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X, random_state=0), fitted.predict(X, random_state=0))


# --- live -------------------------------------------------------------------------------------------------------------


def test_live_use_is_fit_online_one_by_one():
    X = people(60)
    outcomes = np.random.default_rng(0).random(60)
    order = np.random.RandomState(0).permutation(60)
    given = iter(outcomes)
    whole = PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(X, lambda X, p: next(given))
    live = PerformativeCalibrator(groups=["sex"], random_state=0).prepare(X)
    for i, y in zip(order, outcomes, strict=True):
        assert 0 <= live.predict_one(X.iloc[i]) <= 1
        live.update(y)
    assert np.array_equal(whole.predict(X), live.predict(X))
    assert live.n_rounds_ == 60
    p = whole.predict_one({"age": 30, "sex": "f"})  # and it goes on after fit_online
    assert whole.update(0.5).n_rounds_ == 61
    assert 0 <= p <= 1


def test_tables_of_other_libraries_stay_what_they_are():
    import pyarrow as pa

    X = people(40)
    seen = []

    def respond(rows, p):
        seen.append(rows)
        return np.full(len(p), 0.5)

    plain = PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(X, respond, batch_size=8)
    arrow = PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(
        pa.Table.from_pandas(X), respond, batch_size=8
    )
    assert isinstance(seen[-1], pa.Table)
    assert np.array_equal(plain.predict(X), arrow.predict(X))
    polars = pytest.importorskip("polars")
    PerformativeCalibrator(groups=["sex"], random_state=0).fit_online(polars.from_pandas(X), respond, batch_size=8)
    assert isinstance(seen[-1], polars.DataFrame)


def test_forecast_and_outcome_must_alternate():
    calibrator = PerformativeCalibrator(BUMPS)
    for call in (
        lambda: calibrator.predict_one([1.0]),
        lambda: calibrator.update(1),
        lambda: calibrator.predict([[1]]),
    ):
        with pytest.raises(NotFittedError, match="prepare"):
            call()
    calibrator.prepare(np.zeros((3, 1)))
    with pytest.raises(NotFittedError, match="No outcome"):
        calibrator.predict(np.zeros((3, 1)))
    with pytest.raises(RuntimeError, match="before predict_one"):
        calibrator.update(1)
    calibrator.predict_one([1.0])
    with pytest.raises(RuntimeError, match="called twice"):
        calibrator.predict_one([1.0])
    with pytest.raises(InputError, match="outside"):
        calibrator.update(1.5)
    assert calibrator.update(1).n_rounds_ == 1  # a refused outcome leaves the forecast waiting


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"tests": "all"}, np.zeros((3, 1)), "tests is 'all'"),
        ({"tests": []}, np.zeros((3, 1)), "no test"),
        ({"tests": [3]}, np.zeros((3, 1)), "a test is a int"),
        ({"tests": 3}, np.zeros((3, 1)), "tests is a int"),
        ({"tests": ConstantKernel(4.0)}, np.zeros((3, 1)), "kernel reaches 4"),
        ({"tests": RBF(1e-3)}, np.zeros((3, 1)), "kernel jump by up to"),
        ({"tests": [GroupTests(["sex"])]}, np.zeros((3, 1)), "no column 'sex'"),
        ({"groups": ["sex"]}, np.zeros((3, 1)), "no column 'sex'"),
        ({"delta": 0}, np.zeros((3, 1)), "delta is 0"),
        ({"delta": "5 %"}, np.zeros((3, 1)), "delta is '5 %'"),
        ({"base_estimator": 3}, np.zeros((3, 1)), "base_estimator is a int"),
        ({"base_estimator": lambda X: np.full(len(X), 2.0)}, np.zeros((3, 1)), "base model.*outside"),
        ({}, np.zeros((0, 1)), "no rows"),
        ({}, np.zeros(3), "1 dimension"),
        ({}, [["a"], ["b"]], "expected|holds"),
        ({}, np.array([[np.nan]]), "holds nan"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_published(options, X, message):
    published = []
    with pytest.raises(InputError, match=message):
        PerformativeCalibrator(**options).fit_online(X, lambda X, p: published.append(p))
    assert not published


@pytest.mark.parametrize(
    ("respond", "message"),
    [
        (lambda X, p: 2.0, "outside"),
        (lambda X, p: np.nan, "outside"),
        (lambda X, p: "yes", "no number"),
        (lambda X, p: [0.0, 1.0], "shape"),
        (3, "respond is a int"),
    ],
)
def test_outcomes_that_are_none_are_refused(respond, message):
    with pytest.raises(InputError, match=message):
        PerformativeCalibrator(BUMPS).fit_online(np.zeros((3, 1)), respond)


@pytest.mark.parametrize("size", [0, 1.5, True])
def test_batches_are_whole_people(size):
    with pytest.raises(InputError, match="batch_size"):
        PerformativeCalibrator(BUMPS).fit_online(np.zeros((3, 1)), lambda X, p: p, batch_size=size)


def test_hostile_names_are_names(hostile_names):
    names = [name for name in dict.fromkeys(hostile_names.values()) if name]
    X = pd.DataFrame({"g": pd.Series([names[i % len(names)] for i in range(120)], dtype=object)})
    calibrator = PerformativeCalibrator(groups=["g"], random_state=0)
    calibrator.fit_online(X, ResponseModel("self_negating", 1.0, random_state=0))
    assert len(calibrator.test_names_) == 2 + 2 * len(names) + 8
