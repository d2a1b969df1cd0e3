"""The theory on data at hand: what it estimates, what it foresees, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.core import Certificate, InputError
from aboveboard.fairness import RidgeBiasTheory, group_risk, ridge_bias_audit


def _data(n=(3000, 1500), d=12, seed=0, apart=0.5):
    """Two groups with known covariances, targets and noise."""
    rng = np.random.default_rng(seed)
    scales = [np.linspace(0.5, 2, d), np.linspace(2, 0.5, d)]
    first = rng.standard_normal(d) / np.sqrt(d)
    weights = [first, first + apart * rng.standard_normal(d) / np.sqrt(d)]
    X = np.vstack([rng.standard_normal((k, d)) * np.sqrt(s) for k, s in zip(n, scales, strict=True)])
    group = np.repeat(["a", "b"], n)
    noise = np.where(group == "a", 0.3, 0.6)
    y = np.concatenate([X[group == g] @ w for g, w in zip("ab", weights, strict=True)])
    return X, y + np.sqrt(noise) * rng.standard_normal(len(y)), group


@pytest.mark.filterwarnings("ignore:group 'everybody' has:UserWarning")
@parametrize_with_checks([RidgeBiasTheory(n_bootstrap=2, random_state=0)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_the_planned_errors_are_those_of_fitted_regressions():
    X, y, group = _data()
    theory = RidgeBiasTheory(0.02, penalty=0.1, n_bootstrap=2, random_state=0)
    theory.fit(X, y, sensitive_features=group)
    Z, t = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        drawn = np.concatenate([rng.choice(np.flatnonzero(group == g), k) for g, k in (("a", 60), ("b", 30))])
        learned = np.linalg.solve(Z[drawn].T @ Z[drawn] / 90 + 0.1 * np.eye(12), Z[drawn].T @ t[drawn] / 90)
        errors.append([np.mean((Z[group == g] @ learned - t[group == g]) ** 2) for g in "ab"])
    spread = np.std(errors, axis=0) / np.sqrt(200)
    assert np.all(np.abs(theory.planned_.error - np.mean(errors, axis=0)) < 4 * spread + 0.03 * theory.planned_.error)


def test_noise_in_the_coefficients_does_not_pass_for_a_difference_between_groups():
    # one target for both groups: with unlimited rows the joint model is perfect, though few rows were seen
    X, y, group = _data((150, 150), apart=0.0, seed=3)
    theory = RidgeBiasTheory(n_bootstrap=2, random_state=0).fit(X, y, sensitive_features=group)
    unlimited = theory.what_if_[2]
    assert unlimited.label == "unlimited rows"
    naive = group_risk(theory.covariances_, theory.weights_, theory.noise_var_, [1e8, 1e8], penalty=1e-10)
    assert np.all(unlimited.result.joint.risk < 0.6 * naive.risk)


def test_the_moments_are_those_of_the_data():
    X, y, group = _data((20_000, 10_000))
    theory = RidgeBiasTheory(n_bootstrap=2, random_state=0).fit(X, y, sensitive_features=group)
    for s, (g, noise) in enumerate((("a", 0.3), ("b", 0.6))):
        Z = ((X - X.mean(axis=0)) / X.std(axis=0))[group == g]
        assert np.abs(theory.covariances_[s] - Z.T @ Z / len(Z)).max() < 0.02
        assert theory.noise_var_[s] == pytest.approx(noise / y.var(), rel=0.05)
    assert theory.n_per_group_.tolist() == [20_000, 10_000]
    assert theory.groups_ == ["a", "b"]


def test_a_weight_of_two_is_a_row_twice():
    X, y, group = _data((3000, 2000))
    weight = np.random.default_rng(5).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    common = {"penalty": 0.1, "width_ratios": (), "n_bootstrap": 2, "random_state": 0}
    weighted = RidgeBiasTheory(**common).fit(X, y, sensitive_features=group, sample_weight=weight)
    repeated = RidgeBiasTheory(**common).fit(X[rows], y[rows], sensitive_features=group[rows])
    assert weighted.n_per_group_ == pytest.approx(repeated.n_per_group_)
    assert weighted.weights_ == pytest.approx(repeated.weights_, rel=1e-9)
    # what is left is how many rows the weights are worth
    assert weighted.planned_.error == pytest.approx(repeated.planned_.error, rel=0.01)


@pytest.mark.slow
def test_the_interval_covers_the_truth_that_more_rows_show():
    truth = RidgeBiasTheory(0.01, penalty=0.1, n_bootstrap=2, random_state=0)
    X, y, group = _data((40_000, 20_000))
    truth.fit(X, y, sensitive_features=group)
    hits = 0
    for seed in range(40):
        drawn = np.random.default_rng(seed).choice(len(y), 2000, replace=False)
        part = RidgeBiasTheory(0.3, penalty=0.1, width_ratios=(), n_bootstrap=60, random_state=seed)
        part.fit(X[drawn], y[drawn], sensitive_features=group[drawn])
        low, high = part.gap_interval_
        hits += low <= np.ptp(truth.planned_.error) <= high
    assert hits >= 33  # of 40: a 95 % interval covers fewer with a chance of 0.1 %


def test_rows_of_one_person_make_the_interval_wider():
    X, y, group = _data((400, 300))
    rows = np.repeat(np.arange(len(y)), 4)
    common = {"penalty": 0.1, "width_ratios": (), "n_bootstrap": 100, "random_state": 0}
    alone = RidgeBiasTheory(**common).fit(X[rows], y[rows], sensitive_features=group[rows])
    persons = RidgeBiasTheory(**common).fit(X[rows], y[rows], sensitive_features=group[rows], clusters=rows)
    assert np.ptp(persons.gap_interval_) > 1.5 * np.ptp(alone.gap_interval_)


def test_same_seed_same_answer_and_any_container():
    X, y, group = _data((300, 200))
    common = {"n_bootstrap": 5, "width_ratios": (), "random_state": 3}
    one = RidgeBiasTheory(**common).fit(X, y, sensitive_features=group)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    two = RidgeBiasTheory(**common).fit(frame, pd.Series(y), sensitive_features=pd.Series(group))
    three = RidgeBiasTheory(**common).fit(pl.from_pandas(frame), y, sensitive_features=pl.Series("g", group))
    again = RidgeBiasTheory(**common).fit(X, y, sensitive_features=group)
    assert one.gap_interval_ == again.gap_interval_
    assert one.gap_interval_ == pytest.approx(two.gap_interval_)  # the sums may be taken in another order
    assert one.gap_interval_ == pytest.approx(three.gap_interval_)
    assert list(two.feature_names_in_) == list(frame.columns)


def test_the_certificate_says_what_it_rests_on():
    X, y, group = _data((300, 200))
    certificate = RidgeBiasTheory(n_bootstrap=2).fit(X, y, sensitive_features=group).certificate_
    assert certificate.holds
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    with pytest.warns(UserWarning, match="fewer than 5 a column"):
        few = RidgeBiasTheory(n_bootstrap=2).fit(X[:320], y[:320], sensitive_features=group[:320])
    assert not few.enough_rows_
    assert not few.certificate_.holds


def test_one_group_has_no_gap():
    X, y, _ = _data((300, 200))
    theory = RidgeBiasTheory(n_bootstrap=2, random_state=0).fit(X, y)
    assert theory.planned_.result.odd == 0
    (finding,) = ridge_bias_audit(X, y, np.full(len(y), "a"), n_bootstrap=2)
    assert finding.status == "inconclusive"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_fraction": 0}, "train_fraction"),
        ({"train_fraction": np.inf}, "train_fraction"),
        ({"penalties": []}, "penalties is empty"),
        ({"penalty": -1.0}, "penalty"),
        ({"width_ratios": (-1.0,)}, "width_ratio"),
        ({"n_bootstrap": 1}, "n_bootstrap"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    X, y, group = _data((30, 30))
    with pytest.raises(ValueError, match=message):
        RidgeBiasTheory(**options).fit(X, y, sensitive_features=group)


def test_data_that_cannot_be_used_are_refused():
    X, y, group = _data((100, 80))
    theory = RidgeBiasTheory(n_bootstrap=2)
    with pytest.raises(InputError, match="constant"):
        theory.fit(X, np.ones(len(y)), sensitive_features=group)
    with pytest.raises(InputError, match="missing"):
        theory.fit(X, y, sensitive_features=np.where(group == "a", None, group))
    with pytest.raises(InputError, match="clusters"):
        theory.fit(X, y, sensitive_features=group, clusters=[1, 2])
    with pytest.raises(ValueError, match="NaN"):
        theory.fit(np.where(X > 2, np.nan, X), y, sensitive_features=group)


# --- the finding ------------------------------------------------------------------------------------------------------


def test_a_gap_that_one_model_makes_is_a_note():
    # opposite targets: a model for each is perfect, one for all serves the large group
    X, _, group = _data((4000, 500), apart=0)
    w = np.linspace(-1, 1, X.shape[1])
    noise = np.random.default_rng(0).standard_normal(len(X))
    y = X @ w * np.where(group == "a", 1, -1) + 0.3 * noise * np.where(group == "a", 1, 1.2)
    (finding,) = ridge_bias_audit(X, y, group, name="who", n_bootstrap=40, random_state=0)
    assert (finding.severity, finding.status) == ("note", "ran")
    assert finding.value > 5
    assert finding.interval.low > 1.05
    assert "widens the gap" in finding.reason
    assert finding.tables[0].rows[0][0] == "as planned"
    assert len(finding.figures) == 1


def test_groups_that_are_alike_are_ok():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, 6))
    y = X @ np.ones(6) + rng.standard_normal(20_000)
    (finding,) = ridge_bias_audit(
        X, y, rng.choice(["a", "b"], 20_000), smallest_gap=0.02, n_bootstrap=40, random_state=0
    )
    assert (finding.severity, finding.status) == ("ok", "ran")


def test_hostile_group_names_pass_through(hostile_name):
    X, y, group = _data((100, 80), d=3)
    (finding,) = ridge_bias_audit(
        X,
        y,
        pd.Series([hostile_name if g == "a" else "other" for g in group], dtype=object),
        name=hostile_name,
        n_bootstrap=2,
        random_state=0,
    )
    assert hostile_name in finding.id
