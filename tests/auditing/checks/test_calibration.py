from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logit

from aboveboard._stats.score_histogram import score_edges
from aboveboard.auditing.checks.calibration import OddsCells, check, recalibration
from aboveboard.auditing.subject import make_subject
from aboveboard.auditing.summaries import Units


def subject_of(score, y, **options):
    return make_subject(
        None, pd.DataFrame({"x": np.arange(len(y))}), y, predictions=score, prediction_type="score", **options
    )


def findings(subject, effort="quick", seed=0):
    return {finding.id: finding for finding in check(subject, random_state=seed, effort=effort)}


def draw(n, seed=0, stretch=1.0, shift=0.0):
    """Scores whose log odds are `stretch` times the true ones, plus `shift`."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n)
    return expit(stretch * truth + shift), (rng.random(n) < expit(truth)).astype(int)


def fitted_to(score, y, weight=None, bins=1000):
    return recalibration(OddsCells.from_arrays(score, y, weight, score_edges(score, bins), Units(len(y))))


def naive_ece(score, y, weight, bins=15):
    edges = np.linspace(0, 1, bins + 1)
    total = 0.0
    for low, high in pairwise(edges):
        among = (score > low) & (score <= high) if low > 0 else score <= high
        if weight[among].sum():
            gap = np.average(y[among], weights=weight[among]) - np.average(score[among], weights=weight[among])
            total += weight[among].sum() * abs(gap)
    return total / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_calibration_error_is_that_of_a_loop_over_bins(weighted):
    score, y = draw(900)
    weight = np.random.default_rng(1).uniform(0.2, 3, 900) if weighted else np.ones(900)
    got = findings(subject_of(score, y, sample_weight=weight))["calibration/ece"]
    assert got.value == pytest.approx(naive_ece(score, y, weight))
    assert got.interval.low <= got.value <= got.interval.high


def test_a_calibrated_model_is_fine_given_enough_rows():
    found = findings(subject_of(*draw(20_000)))
    assert {finding.severity for finding in found.values()} == {"ok"}
    assert {finding.status for finding in found.values()} == {"ran"}


def test_few_rows_of_a_calibrated_model_give_no_verdict():
    assert findings(subject_of(*draw(150)))["calibration/ece"].status == "inconclusive"


def test_scores_that_are_too_extreme_are_found_and_said_to_be():
    found = findings(subject_of(*draw(8000, stretch=3.0)))
    assert found["calibration/ece"].severity in ("warn", "fail")
    assert found["calibration/slope"].severity == "note"
    assert "too extreme" in found["calibration/slope"].statement
    assert found["calibration/slope"].value == pytest.approx(1 / 3 - 1, abs=0.03)


def test_scores_that_are_too_high_are_found_and_said_to_be():
    score, y = draw(8000, shift=1.0)
    gap = findings(subject_of(score, y))["calibration/gap"]
    assert gap.severity == "warn"
    assert gap.value == pytest.approx(score.mean() - y.mean())
    assert "more positives" in gap.statement


@pytest.mark.parametrize(("n", "draws"), [(300, 100), pytest.param(3000, 1000, marks=pytest.mark.slow)])
def test_calibrated_models_are_hardly_ever_warned_of(n, draws):
    alarms = 0
    for seed in range(draws):
        found = findings(subject_of(*draw(n, seed=seed)), seed=seed)
        alarms += any(finding.severity != "ok" for finding in found.values())
    assert alarms <= 0.05 * draws


def test_a_calibrated_model_in_clusters_is_hardly_ever_warned_of():
    alarms = 0
    for seed in range(100):
        score, y = draw(150, seed=seed)
        clusters = np.repeat(np.arange(150), 6)
        subject = subject_of(np.repeat(score, 6), np.repeat(y, 6), clusters=clusters)
        alarms += findings(subject, seed=seed)["calibration/ece"].severity != "ok"
    assert alarms <= 12  # 99.9 % of draws from Binomial(100, 0.05) are


def test_slope_and_intercept_maximise_the_likelihood():
    score, y = draw(500, stretch=2.0, shift=0.5)
    weight = np.random.default_rng(0).uniform(0.5, 2, 500)
    x = logit(score)

    def loss(b):
        return (weight * (np.logaddexp(0, b[0] + b[1] * x) - y * (b[0] + b[1] * x))).sum()

    expected = minimize(loss, [0, 1], tol=1e-10).x
    fitted, _ = fitted_to(score, y, weight)
    np.testing.assert_allclose(fitted, expected, atol=1e-4)


def test_bins_of_scores_hardly_move_slope_intercept_and_their_errors():
    for seed, stretch in enumerate((0.3, 1.0, 4.0)):
        score, y = draw(20_000, seed=seed, stretch=stretch)
        exact, binned = fitted_to(score, y, bins=20_000), fitted_to(score, y)
        np.testing.assert_allclose(binned[0], exact[0], rtol=0, atol=2e-5)
        np.testing.assert_allclose(binned[1], exact[1], rtol=2e-4)


def test_the_interval_of_the_slope_covers_one_as_often_as_it_claims():
    hits = 0
    for seed in range(2000):
        score, y = draw(300, seed=seed)
        (_, slope), (_, error) = fitted_to(score, y)
        hits += abs(slope - 1) <= 1.96 * error
    assert 0.925 <= hits / 2000 <= 0.98


def test_the_slope_does_not_exist_for_constant_or_separating_scores():
    y = np.repeat([0, 1], 50)
    for score in (np.full(100, 0.3), np.where(y == 1, 0.9, 0.1)):
        assert fitted_to(score, y) is None
        assert findings(subject_of(score, y))["calibration/slope"].status == "inconclusive"


def test_the_reliability_curve_has_wilson_intervals():
    score, y = draw(2000)
    table = findings(subject_of(score, y))["calibration/ece"].tables[0]
    for (label, n, mean, observed, interval), b in zip(table.rows, range(10), strict=True):
        among = (score > b / 10) & (score <= (b + 1) / 10)
        expected = stats.binomtest(int(y[among].sum()), int(among.sum())).proportion_ci(method="wilson")
        assert n == among.sum(), label
        assert mean == pytest.approx(score[among].mean())
        assert observed == pytest.approx(y[among].mean())
        assert interval == pytest.approx((expected.low, expected.high))


def test_bins_of_few_rows_are_in_no_figure():
    rng = np.random.default_rng(0)
    score = np.concatenate([np.full(500, 0.25), np.full(100, 0.55), np.full(3, 0.95)])
    y = np.concatenate([rng.random(500) < 0.25, rng.random(100) < 0.55, [1, 1, 1]]).astype(int)
    finding = findings(subject_of(score, y))["calibration/ece"]
    assert finding.figures[0].series[0].x == (0.25,)
    # the middle bin goes too: with it and the total, the last one could be worked out
    assert [row[1] for row in finding.tables[0].rows] == [500, "suppressed", "suppressed"]


def test_a_class_of_few_rows_gives_no_verdict():
    score, y = np.full(300, 0.02), np.repeat([0, 1], [295, 5])
    found = findings(subject_of(score, y))
    assert {finding.status for finding in found.values()} == {"inconclusive"}
    assert {finding.value for finding in found.values()} == {None}


def test_the_parts_of_the_brier_score_add_up_to_it():
    score, y = draw(700)
    parts = {row[0]: row[1] for row in findings(subject_of(score, y))["calibration/ece"].tables[1].rows}
    brier = np.mean((score - y) ** 2)
    assert parts["Brier score"] == pytest.approx(brier)
    total = parts["miscalibration"] - parts["resolution"] + parts["uncertainty"] + parts["within bins"]
    assert total == pytest.approx(brier)
    assert parts["uncertainty"] == pytest.approx(y.mean() * (1 - y.mean()))


def test_several_classes_are_checked_by_highest_score_and_class_by_class():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([2, 2, 2], 12_000)
    y = (truth.cumsum(axis=1) < rng.random((12_000, 1))).sum(axis=1)
    X = pd.DataFrame({"x": range(12_000)})
    fine = findings(make_subject(None, X, y, predictions=truth, task="multiclass"))
    assert {finding.severity for finding in fine.values()} == {"ok"}
    sharp = truth**4 / (truth**4).sum(axis=1, keepdims=True)
    bad = findings(make_subject(None, X, y, predictions=sharp, task="multiclass"))
    assert bad["calibration/top_label"].severity == "fail"
    assert bad["calibration/classes"].severity == "warn"
    top, right = sharp.max(axis=1), (sharp.argmax(axis=1) == y).astype(int)
    assert bad["calibration/top_label"].value == pytest.approx(naive_ece(top, right, np.ones(12_000)))
