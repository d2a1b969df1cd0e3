"""The check: which columns and groups it uses, what it says, and when it cannot tell."""

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.checks import ridge_bias
from aboveboard.auditing.subject import make_subject
from aboveboard.fairness import RidgeBiasTheory


def _subject(X, y, sensitive, **more):
    task = "regression" if len(np.unique(y)) > 2 else "binary"
    predictions = np.asarray(y, dtype=float)
    return make_subject(
        None, X, y, predictions=predictions, sensitive_features=pd.DataFrame(sensitive), task=task, **more
    )


def _check(subject, effort="quick"):
    findings = ridge_bias.check(subject, random_state=0, effort=effort)
    return {finding.id.partition("/")[2]: finding for finding in findings}


def _opposite(n=(3000, 600), seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b"], n)
    X = pd.DataFrame(rng.standard_normal((sum(n), 5)), columns=list("vwxyz"))
    y = X.to_numpy() @ np.ones(5) * np.where(group == "a", 1, -1) + 0.2 * rng.standard_normal(sum(n))
    return X, y + np.where(group == "b", 0.9, 0) * rng.standard_normal(sum(n)), group


def test_opposite_groups_are_found_and_one_model_for_each_is_the_way_out():
    X, y, group = _opposite()
    finding = _check(_subject(X, y, {"g": group}))["g"]
    assert (finding.severity, finding.status) == ("note", "ran")
    assert "widens the gap" in finding.reason


def test_its_figures_are_those_of_the_theory():
    X, y, group = _opposite()
    finding = _check(_subject(X, y, {"g": group}))["g"]
    X = X.clip(X.quantile(0.001), X.quantile(0.999), axis=1)
    theory = RidgeBiasTheory(n_bootstrap=20, random_state=0).fit(X.to_numpy(), y, sensitive_features=group)
    assert finding.value == pytest.approx(theory.planned_.result.add, rel=1e-6)
    assert (finding.interval.low, finding.interval.high) == pytest.approx(theory.amplification_interval_, rel=1e-6)


def test_categories_missing_values_and_dates_become_numbers():
    X, y, group = _opposite()
    X["kind"] = pd.Categorical(np.where(X["v"] > 0, "high", "low"))
    X["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(X)), unit="D")
    X["flag"] = X["w"] > 0
    X.loc[::7, "x"] = np.nan
    X["empty"] = np.nan
    assert _check(_subject(X, y, {"g": group}))["g"].status == "ran"


def test_the_planned_rows_are_those_of_the_training_data():
    X, y, group = _opposite()
    train = (pd.concat([X] * 3, ignore_index=True), np.tile(y, 3))
    finding = _check(_subject(X, y, {"g": group}, train=train))["g"]
    assert finding.tables[0].rows[0][1] == f"{3 * len(X):,}"


def test_small_groups_are_left_out_and_named():
    X, y, group = _opposite()
    group = np.where(np.arange(len(y)) < 30, "tiny", group)
    finding = _check(_subject(X, y, {"g": group}))["g"]
    assert "tiny" in finding.tables[0].note
    assert "tiny" not in " ".join(series.name for series in finding.figures[0].series)


def test_too_little_data_is_inconclusive():
    X, y, group = _opposite((60, 60))
    assert _check(_subject(X, y, {"g": group}))["g"].status == "inconclusive"
    X, y, group = _opposite((300, 300))
    assert _check(_subject(X[[]].assign(c=1.0), y, {"g": group}))["g"].status == "inconclusive"
    X, y, group = _opposite((600, 60))
    group = np.where(np.arange(660) % 2 == 0, np.where(group == "a", "c", group), group)
    constant = np.where(group == "b", y, 0.5)
    assert _check(_subject(X, constant, {"g": group}))["g"].status == "inconclusive"


def test_weights_and_clusters_are_used():
    X, y, group = _opposite()
    rng = np.random.default_rng(3)
    weight, cluster = rng.uniform(0.5, 2, len(y)), rng.integers(0, 500, len(y))
    plain = _check(_subject(X, y, {"g": group}))["g"]
    both = _check(_subject(X, y, {"g": group}, sample_weight=weight, clusters=cluster))["g"]
    assert both.value != plain.value


def test_it_runs_in_an_audit_of_classes_and_hostile_names_pass(hostile_name):
    X, y, group = _opposite((400, 300))
    if not any("\ud800" <= letter <= "\udfff" for letter in hostile_name):  # else the audit refuses it
        X.columns = pd.Index([hostile_name, *X.columns[1:]], dtype=object)
    report = aboveboard.audit(
        None,
        X,
        (y > 0).astype(int),
        predictions=(y > 0.1).astype(float),
        sensitive_features=pd.DataFrame(
            {"g": pd.Series([hostile_name if g == "a" else "other" for g in group], dtype=object)}
        ),
        only="ridge_bias",
        effort="quick",
    )
    assert [finding.check for finding in report.findings] == ["ridge_bias"]
