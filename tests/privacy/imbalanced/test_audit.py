"""Findings about resampling before a private learner, and an attack that proves the point."""

import numpy as np
import pytest

from aboveboard.core import Finding, InputError
from aboveboard.privacy import resampling_privacy_audit, smote_canary_audit


def test_smote_before_a_private_learner_fails():
    [finding] = resampling_privacy_audit("smote", 0.5, 1e-6, n_minority=50, n_majority=950)
    assert (finding.severity, finding.limit) == ("fail", 0.5)
    assert finding.value == 0.5 * (1 + 18 + 18 * 49)
    assert "nothing is guaranteed" in finding.statement
    assert finding.remedies == ("PrivateWeightedLogisticRegression",)
    assert Finding.from_dict(finding.to_dict()) == finding


def test_what_adds_no_rows_is_ok_and_a_tolerated_factor_is_tolerated():
    [same] = resampling_privacy_audit("oversampling", 1.0, n_minority=50, n_majority=50)
    [twice] = resampling_privacy_audit("oversampling", 1.0, n_minority=50, n_majority=100, tolerated=2.0)
    assert (same.severity, twice.severity, twice.value) == ("ok", "ok", 2.0)
    assert same.remedies == ()


def test_the_attack_proves_more_than_the_nominal_epsilon():
    [finding] = smote_canary_audit(0.5, runs=300, random_state=0)
    assert finding.severity == "fail"
    assert finding.value > 0.5
    assert finding.data == "simulated"


@pytest.mark.slow
def test_two_thousand_runs_prove_more_than_twice_the_nominal_epsilon_and_no_more_than_group_privacy_allows():
    [finding] = smote_canary_audit(0.5, runs=2000, random_state=0)
    assert 1.0 < finding.value <= 0.5 * (1 + 20 + 20 * 10)


def test_a_learner_that_ignores_its_rows_gives_nothing_away():
    [finding] = smote_canary_audit(0.5, runs=300, fit=lambda X, y, epsilon, rng: rng.normal(), random_state=0)
    assert finding.severity == "ok"
    assert finding.value < 0.5


def test_a_learner_that_says_everything_is_found_out():
    [finding] = smote_canary_audit(
        0.5, runs=200, fit=lambda X, y, epsilon, rng: float(np.sum(X[y == 1])), random_state=0
    )
    assert finding.value > 2


@pytest.mark.parametrize("options", [{"epsilon": 0}, {"runs": 10}, {"per_row": 0}, {"k_neighbors": 0}])
def test_bad_options_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        smote_canary_audit(**options)
    with pytest.raises(InputError, match="tolerated"):
        resampling_privacy_audit("smote", 1.0, n_minority=5, n_majority=50, tolerated=0)
