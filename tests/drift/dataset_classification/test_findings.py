"""Findings and certificates: how bad, how sure, and what they rest on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from aboveboard.core.certificate import Certificate
from aboveboard.core.finding import Finding
from aboveboard.drift import DatasetClassification


def fitted(sources, **settings):
    settings = {"estimator": LogisticRegression(), "n_pseudo": 2, "random_state": 0} | settings
    return DatasetClassification(**settings).fit(sources)


@pytest.mark.parametrize(
    ("delta", "purpose", "name", "severity"),
    [
        (0.0, "bias", "source_identifiable", "ok"),
        (0.25, "drift", "drift_detected", "note"),
        (0.25, "leak", "leak_suspected", "warn"),
        (1.0, "drift", "drift_detected", "warn"),
        (3.5, "bias", "source_identifiable", "fail"),
    ],
)
def test_the_severity_follows_the_size_of_the_difference(gaussians, delta, purpose, name, severity):
    (finding,) = fitted(gaussians(delta, 4000)).findings(purpose)
    assert finding.id == f"dataset_classification/{name}"
    assert finding.severity == severity
    assert finding.area == "drift"
    assert Finding.from_dict(finding.to_dict()) == finding


def test_a_finding_carries_accuracy_interval_controls_and_what_tells_most(gaussians):
    test = fitted(gaussians(1.0, 600), ladder=["ranks", "leave_one_out"])
    (finding,) = test.findings("drift")
    assert finding.value == test.result_.accuracy
    assert (finding.interval.low, finding.interval.high) == test.result_.ci
    assert finding.limit == 0.5
    accuracy, rungs, columns = finding.tables
    assert [row[0] for row in accuracy.rows] == ["sources", "random parts", "random parts", "guessing"]
    assert len(rungs.rows) == 3
    assert columns.rows[0][0] == "x0"
    assert finding.figures[0].series[0].y[0] == test.result_.accuracy


def test_random_parts_that_are_told_apart_make_it_inconclusive():
    """Rows that come in nearly equal pairs are not independent, which the control notices."""
    rng = np.random.default_rng(0)
    frames = {}
    for name in ("one", "two"):
        # many copies of few rows, so that random parts differ in how often each occurs
        centres = rng.normal(size=(25, 30))
        frames[name] = pd.DataFrame(centres[rng.integers(25, size=400)] + 1e-3 * rng.normal(size=(400, 30)))
    test = DatasetClassification(n_pseudo=3, controls=("pseudo",), random_state=0).fit(frames)
    failed = test.pseudo_.assign(p_value=1e-9)
    test.pseudo_ = failed
    (finding,) = test.findings("bias")
    assert finding.status == "inconclusive"
    assert "groups" in finding.reason


def test_the_certificate_says_what_it_rests_on(gaussians):
    test = fitted(gaussians(1.0, 400), controls=("pseudo",))
    certificate = test.certificate_
    assert certificate.holds
    assert certificate.parameters["p_value"] == test.result_.p_value
    assert [a.basis for a in certificate.assumptions] == ["assumed", "assumed", "checked"]
    assert f"{test.result_.tv_lower_bound:.4f}" in certificate.guarantee
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    other = fitted(gaussians(1.0, 400, seed=1), controls=())
    assert other.certificate_.subject["data"] != certificate.subject["data"]
    shuffled = fitted(gaussians(1.0, 400), controls=(), sampling="all").certificate_
    assert "shuffled" in shuffled.guarantee


def test_the_summary_reports_every_accuracy_next_to_chance_and_control(gaussians):
    text = fitted(gaussians(1.0, 400), ladder=["ranks"]).summary()
    assert "chance 50.0 %" in text
    assert "Random parts instead of sources" in text
    assert "Without ranks" in text
