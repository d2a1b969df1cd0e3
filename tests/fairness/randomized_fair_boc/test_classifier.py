"""The estimator: parity on the calibration sample, one keyed coin, honest accuracy, clear refusals."""

import hashlib
import hmac
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.core import Certificate, InputError, keyed_uniform
from aboveboard.data import load_adult
from aboveboard.fairness import RandomizedFairClassifier, fair_bayes_optimal

CONSTRAINTS = ("demographic_parity", "equal_opportunity", "predictive_equality")
KEY = b"sixteen bytes or more"


class GivenScore(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose first feature is the score."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        score = np.asarray(X)[:, 0].astype(float)
        return np.column_stack([1 - score, score])


def scored(n=4000, n_groups=2, seed=0, coarse=False):
    """Scores that are true probabilities, higher in later groups; shape (n, 1)."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    score = rng.beta(2 + group, 4, n)
    if coarse:
        score = np.round(score * 8) / 8
    return score[:, None], (rng.random(n) < score).astype(int), group


def prefit(X, y, group, **options):
    options = {"cv": "prefit", "key": KEY, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return RandomizedFairClassifier(GivenScore().fit(X, y), **options).fit(X, y, sensitive_features=group)


def observed_rates(accept, y, group, constraint):
    counted = {"demographic_parity": y >= 0, "equal_opportunity": y == 1, "predictive_equality": y == 0}[constraint]
    return np.array([accept[counted & (group == g)].mean() for g in np.unique(group)])


# scikit-learn 1.6 turns three classes into two differently for its two fits, so that their labels cannot agree
_LABELS_DIFFER = "scikit-learn 1.6 gives the two fits that it compares different labels"
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": _LABELS_DIFFER
    for kind in ("dense", "sparse")
    if sklearn.__version__.startswith("1.6.")
}


@parametrize_with_checks(
    [RandomizedFairClassifier(cv=3, random_state=0)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("coarse", [False, True])
def test_observed_rates_of_the_calibration_sample_are_equal_in_expectation_over_the_coin(constraint, n_groups, coarse):
    X, y, group = scored(n_groups=n_groups, coarse=coarse)
    fair = prefit(X, y, group, constraint=constraint)
    accept = fair.acceptance_probability(X, sensitive_features=group)
    # isotonic calibration keeps the number of positives of each of its blocks; a rate that ends inside one is plug-in
    expected = fair.rates_[0]
    assert list(fair.rates_.values()) == pytest.approx([expected] * n_groups, abs=1e-11)
    observed = observed_rates(accept, y, group, constraint)
    if constraint == "demographic_parity":
        assert observed == pytest.approx([expected] * n_groups, abs=1e-11)
    assert np.ptp(observed) < 0.02
    assert len(np.unique(accept[(accept > 0) & (accept < 1)])) <= n_groups - 1


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_without_calibration_it_is_the_optimum_over_the_distinct_scores(constraint):
    X, y, group = scored(coarse=True, n=600)
    fair = prefit(X, y, group, constraint=constraint, calibration=None)
    atoms, counts = np.unique(np.column_stack([group, X[:, 0]]), axis=0, return_counts=True)
    best = fair_bayes_optimal(counts / 600, atoms[:, 1], atoms[:, 0], constraint)
    assert fair.plugin_accuracy_ == pytest.approx(best.accuracy, abs=1e-12)
    assert fair.common_rate_ == pytest.approx(best.rate, abs=1e-12)
    accept = fair.acceptance_probability(atoms[:, 1:], sensitive_features=atoms[:, 0])
    assert accept[best.f == np.round(best.f)].tolist() == best.f[best.f == np.round(best.f)].tolist()
    assert accept == pytest.approx(best.f, abs=1e-9)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_on_continuous_scores_a_coin_is_flipped_for_one_person_at_most(constraint):
    X, y, group = scored()
    fair = prefit(X, y, group, constraint=constraint)
    assert fair.randomized_mass_ <= 1 / len(y) + 1e-15


def test_slack_is_kept_and_buys_accuracy():
    X, y, group = scored()
    strict, loose = (prefit(X, y, group, slack=slack) for slack in (0.0, 0.05))
    assert strict.parity_gap_ <= 1e-11
    assert loose.parity_gap_ <= 0.05 + 1e-11
    assert loose.plugin_accuracy_ > strict.plugin_accuracy_


def test_new_scores_between_calibration_scores_are_decided_by_the_threshold():
    X, y, group = scored(n=400)
    fair = prefit(X, y, group)
    for g, (threshold, tie) in fair.thresholds_.items():
        new = np.array([threshold - 1e-6, threshold, threshold + 1e-6])[:, None]
        accept = fair.acceptance_probability(new, sensitive_features=np.full(3, g))
        assert accept.tolist() == [0.0, tie, 1.0]


def test_scores_that_differ_in_the_last_bits_are_one_score():
    rng = np.random.default_rng(0)
    X, y, group = scored(coarse=True)
    jitter = X * (1 + 1e-15 * rng.integers(-2, 3, X.shape))
    exact, jittered = prefit(X, y, group), prefit(jitter, y, group)
    assert jittered.randomized_mass_ == pytest.approx(exact.randomized_mass_)
    accept = jittered.acceptance_probability(X, sensitive_features=group)
    assert accept == pytest.approx(exact.acceptance_probability(X, sensitive_features=group), abs=1e-9)


def test_the_coin_follows_the_record_and_can_be_derived_by_an_auditor():
    X, y, group = scored(coarse=True)
    fair = prefit(X, y, group)
    probability = fair.acceptance_probability(X, sensitive_features=group)
    ids = [f"applicant-{i}" for i in range(len(y))]
    decision = fair.predict(X, sensitive_features=group, record_ids=ids)
    coin = np.array(keyed_uniform(KEY, ids, purpose="aboveboard/randomized_fair_boc"))
    assert decision.tolist() == (coin < probability).astype(int).tolist()
    tied = np.flatnonzero((probability > 0) & (probability < 1))
    assert len(tied) > 100
    message = b"aboveboard/randomized_fair_boc\x00s" + ids[tied[0]].encode()
    first = int.from_bytes(hmac.new(KEY, message, hashlib.sha256).digest()[:8], "big") / 2**64
    assert decision[tied[0]] == int(first < probability[tied[0]])
    # accepted as often as the tie probability says: within four standard errors
    share, q = decision[tied].mean(), probability[tied[0]]
    assert abs(share - q) < 4 * np.sqrt(q * (1 - q) / len(tied))
    reordered = fair.predict(X[::-1], sensitive_features=group[::-1], record_ids=ids[::-1])
    assert reordered[::-1].tolist() == decision.tolist()


def test_a_coin_without_record_ids_is_refused_and_a_rounded_one_needs_none():
    X, y, group = scored(coarse=True)
    with pytest.raises(InputError, match="record_ids"):
        prefit(X, y, group).predict(X, sensitive_features=group)
    rounded = prefit(X, y, group, derandomize=True)
    assert set(rounded.predict(X, sensitive_features=group)) == {0, 1}


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_rounding_costs_no_accuracy_and_at_most_the_weight_of_the_atom_in_parity(constraint):
    X, y, group = scored(coarse=True)
    coin = prefit(X, y, group, constraint=constraint)
    rounded = prefit(X, y, group, constraint=constraint, derandomize=True)
    probability = coin.acceptance_probability(X, sensitive_features=group)
    tied = (probability > 0) & (probability < 1)
    (g,) = np.unique(group[tied])
    calibrated = y[tied].mean()
    counted = {"demographic_parity": 1.0, "equal_opportunity": calibrated, "predictive_equality": 1 - calibrated}
    in_group = {"demographic_parity": y >= 0, "equal_opportunity": y == 1, "predictive_equality": y == 0}[constraint]
    largest = tied.sum() * counted[constraint] / (in_group & (group == g)).sum()
    assert 0 < rounded.parity_gap_ <= largest + 1e-9
    assert rounded.rounding_loss_ <= 1e-12
    assert rounded.randomized_mass_ == 0
    assert rounded.plugin_accuracy_ == coin.plugin_accuracy_


def test_reported_accuracy_is_cross_fitted_and_predicts_that_on_new_people():
    gaps = []
    for seed in range(20):
        X, y, group = scored(n=800, n_groups=4, seed=seed)
        fair = prefit(X, y, group, random_state=seed)
        X_new, y_new, group_new = scored(n=20_000, n_groups=4, seed=1000 + seed)
        new = fair.score(X_new, y_new, sensitive_features=group_new)
        gaps.append((fair.expected_accuracy_ - new, fair.plugin_accuracy_ - new))
    honest, flattering = np.mean(gaps, axis=0)
    assert abs(honest) < 0.006
    assert flattering > 0.006


def test_its_accuracy_interval_and_calibration_error_are_those_of_the_held_out_folds():
    X, y, group = scored(n=20_000, n_groups=4)
    fair = prefit(X, y, group)
    assert fair.expected_accuracy_interval_.low < fair.expected_accuracy_ < fair.expected_accuracy_interval_.high
    assert fair.expected_accuracy_ < fair.unconstrained_accuracy_
    assert 0 < fair.calibration_error_ < 0.05


def test_whole_number_weights_are_repeated_rows():
    X, y, group = scored(n=300)
    weight = np.random.default_rng(0).integers(0, 4, 300)
    model = GivenScore().fit(X, y)
    options = {"cv": "prefit", "key": KEY, "random_state": 0}
    weighted = RandomizedFairClassifier(model, **options).fit(X, y, sensitive_features=group, sample_weight=weight)
    rows = np.repeat(np.arange(300), weight)
    repeated = RandomizedFairClassifier(model, **options).fit(X[rows], y[rows], sensitive_features=group[rows])
    assert weighted.plugin_accuracy_ == pytest.approx(repeated.plugin_accuracy_, abs=1e-12)
    assert weighted.common_rate_ == pytest.approx(repeated.common_rate_, abs=1e-12)
    for g in (0, 1):
        assert weighted.thresholds_[g] == pytest.approx(repeated.thresholds_[g], abs=1e-9)


def test_thresholding_the_fair_representation_at_any_level_gives_equal_rates():
    X, y, group = scored(coarse=True)
    for constraint in CONSTRAINTS:
        fair = prefit(X, y, group, constraint=constraint)
        z = fair.fair_representation(X, sensitive_features=group, record_ids=range(len(y)))
        assert z.min() >= 0
        assert z.max() <= 1
        for rate in (0.1, 0.35, 0.8):
            rates = observed_rates(z > 1 - rate, y, group, constraint)
            assert rates == pytest.approx([rate, rate], abs=0.05)
    continuous, y, group = scored()
    fair = prefit(continuous, y, group)
    z = fair.fair_representation(continuous, sensitive_features=group)
    for rate in (0.1, 0.35, 0.8):
        assert observed_rates(z > 1 - rate, y, group, "demographic_parity") == pytest.approx([rate] * 2, abs=1e-3)
    order = np.argsort(continuous[group == 0, 0])
    assert np.all(np.diff(z[group == 0][order]) > 0)


@pytest.mark.parametrize(
    "container",
    [
        lambda a, b: pd.DataFrame({"a": a, "b": b}),
        lambda a, b: pd.DataFrame({"a": a, "b": b}).astype("category"),
        lambda a, b: pd.DataFrame({"a": a, "b": b}).convert_dtypes(),
        lambda a, b: pl.DataFrame({"a": a, "b": b}),
        lambda a, b: pa.table({"a": a, "b": b}),
        lambda a, b: np.column_stack([np.array(a, dtype=object), np.array(b, dtype=object)]),
    ],
    ids=["pandas", "categorical", "nullable", "polars", "arrow", "numpy"],
)
def test_intersections_are_the_same_from_every_container(container):
    X, y, group = scored(n=800)
    a, b = np.where(group == 1, "x", "y").tolist(), (np.arange(800) % 2).tolist()
    fair = prefit(X, y, container(a, b))
    assert fair.groups_ == [("x", 0), ("x", 1), ("y", 0), ("y", 1)]
    expected = prefit(X, y, pd.DataFrame({"a": a, "b": b}))
    assert fair.thresholds_ == expected.thresholds_
    other = pl.DataFrame({"a": a, "b": b})
    assert fair.acceptance_probability(X, sensitive_features=other).tolist() == (
        expected.acceptance_probability(X, sensitive_features=container(a, b)).tolist()
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None, "b", "a"]),
        pd.Series([1.0, np.nan, 2.0, 1.0]),
        pd.Series([1, pd.NA, 2, 1], dtype="Int64"),
        pl.Series(["a", None, "b", "a"]),
        np.array(["a", None, "b", "a"], dtype=object),
        ["a", float("nan"), "b", "a"],
    ],
    ids=["None", "NaN", "NA", "polars", "object", "list"],
)
def test_missing_groups_are_refused_and_never_filled_in(column):
    X = np.array([[0.1], [0.2], [0.3], [0.4]])
    with pytest.raises(InputError, match="missing in 1 rows"):
        RandomizedFairClassifier(GivenScore().fit(X, [0, 1, 0, 1]), cv="prefit").fit(
            X, [0, 1, 0, 1], sensitive_features=column
        )


def test_groups_of_another_index_another_length_or_unseen_are_refused():
    X, y, group = scored(n=200)
    frame, series = pd.DataFrame(X), pd.Series(group)
    fair = prefit(frame, y, series)
    with pytest.raises(InputError, match="index"):
        fair.acceptance_probability(frame, sensitive_features=series[::-1])
    with pytest.raises(InputError, match="199 rows"):
        fair.acceptance_probability(X, sensitive_features=group[1:])
    with pytest.raises(InputError, match="group 7 was not seen"):
        fair.acceptance_probability(X, sensitive_features=np.where(group == 0, 7, 1))
    with pytest.raises(InputError, match="sensitive_features is missing"):
        fair.predict(X)
    with pytest.raises(InputError, match="fitted without"):
        prefit(X, y, None).predict(X, sensitive_features=group)
    with pytest.raises(InputError, match="record_ids has 3 entries"):
        fair.predict(X, sensitive_features=group, record_ids=[1, 2, 3])


def test_a_group_without_positives_is_named():
    X, y, group = scored(n=200)
    y = np.where(group == 0, 0, y)
    with pytest.raises(InputError, match="group 0 has no positives"):
        prefit(X, y, group, constraint="equal_opportunity")
    assert prefit(X, y, group, constraint="predictive_equality").kappa_ >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "parity"}, "constraint is 'parity'"),
        ({"slack": -0.1}, "slack is"),
        ({"calibration": "platt"}, "calibration is 'platt'"),
        ({"cv": "loo"}, "cv is 'loo'"),
        ({"key": b"short"}, "at least 16 bytes"),
    ],
)
def test_unusable_options_are_refused_before_any_work(options, message):
    X, y, group = scored(n=100)
    with pytest.raises(ValueError, match=message):
        prefit(X, y, group, **options)


def test_estimators_without_probabilities_and_outcomes_that_are_not_binary_are_refused():
    X, y, group = scored(n=100)
    with pytest.raises(InputError, match="LinearSVC has no predict_proba"):
        RandomizedFairClassifier(LinearSVC()).fit(X, y, sensitive_features=group)
    with pytest.raises(InputError, match="Only binary classification"):
        RandomizedFairClassifier().fit(X, np.arange(100) % 3, sensitive_features=group)
    with pytest.raises(InputError, match="one class"):
        RandomizedFairClassifier().fit(X, np.zeros(100), sensitive_features=group)
    other = GivenScore().fit(X, np.where(y, "yes", "no"))
    with pytest.raises(InputError, match="knows the classes"):
        RandomizedFairClassifier(other, cv="prefit").fit(X, y, sensitive_features=group)
    with pytest.raises(NotFittedError):
        RandomizedFairClassifier().predict(X)


def test_a_vacuous_certificate_is_warned_about():
    X, y, group = scored(n=2000)
    group[:] = 0
    group[np.flatnonzero(y == 1)[:5]] = 1
    model = GivenScore().fit(X, y)
    with pytest.warns(UserWarning, match="kappa is"):
        fair = RandomizedFairClassifier(model, cv="prefit", constraint="equal_opportunity", random_state=0).fit(
            X, y, sensitive_features=group
        )
    assert fair.kappa_ == pytest.approx((y.sum() - 5) / 5)


def test_a_group_of_one_gets_a_threshold_and_no_cross_fitted_accuracy():
    X, y, group = scored(n=100)
    group[0] = 2
    with pytest.warns(UserWarning, match="single row"):
        fair = RandomizedFairClassifier(GivenScore().fit(X, y), cv="prefit", random_state=0).fit(
            X, y, sensitive_features=group
        )
    assert np.isnan(fair.expected_accuracy_)
    assert fair.parity_gap_ <= 1e-11


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_certificate_states_its_constant_and_what_it_does_not_cover(constraint):
    X, y, group = scored()
    fair = prefit(X, y, group, constraint=constraint)
    certificate = fair.certificate_
    p = np.array(
        [{"equal_opportunity": y, "predictive_equality": 1 - y}.get(constraint, y)[group == g].sum() for g in (0, 1)]
    )
    p = p / len(y)
    expected = 3.0 if constraint == "demographic_parity" else 1 + 2 * (p.max() + 0.01) / (p.min() - 0.01)
    assert certificate.parameters["constant"] == pytest.approx(expected, rel=1e-9)
    assert certificate.parameters["bound"] == pytest.approx(0.01 * expected, rel=1e-9)
    assert certificate.holds
    assert any("sampling error" in text for text in certificate.does_not_cover)
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert fair.certificate(tv=0.0).parameters["bound"] == 0.0
    with pytest.raises(InputError, match="tv is 2"):
        fair.certificate(tv=2)


def test_weights_reach_the_last_step_of_a_pipeline_and_their_loss_is_said():
    X, y, group = scored(n=200)
    weight = np.where(y == 1, 5.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    fair = RandomizedFairClassifier(pipeline, random_state=0).fit(X, y, sensitive_features=group, sample_weight=weight)
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y, logisticregression__sample_weight=weight)
    assert fair.estimator_.predict_proba(X) == pytest.approx(alone.predict_proba(X))
    with pytest.warns(UserWarning, match="GivenScore takes no sample_weight"):
        RandomizedFairClassifier(GivenScore(), random_state=0).fit(X, y, sensitive_features=group, sample_weight=weight)


def test_text_labels_and_data_frames_pass_through_to_the_estimator():
    adult = load_adult()
    rows = slice(0, 3000)
    X, y, sex = adult.X.iloc[rows], adult.y.iloc[rows], adult.X["sex"].iloc[rows]
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype", random_state=0)
    fair = RandomizedFairClassifier(model, constraint="equal_opportunity", cv=3, random_state=0)
    fair.fit(X, y, sensitive_features=sex)
    decision = fair.predict(X, sensitive_features=sex, record_ids=X.index)
    assert set(decision) == {"<=50K", ">50K"}
    assert fair.feature_names_in_.tolist() == list(X.columns)
    assert fair.parity_gap_ <= 1e-11
    again = RandomizedFairClassifier(model, constraint="equal_opportunity", cv=3, random_state=0)
    assert again.fit(X, y, sensitive_features=sex).thresholds_ == fair.thresholds_
