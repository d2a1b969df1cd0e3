"""A log is judged by calibration, drift, reaction and worth; too little is inconclusive."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.collective import PerformativeCalibrator, ResponseModel, performativity_audit
from aboveboard.core import InputError


def by_id(*args, **options):
    findings = performativity_audit(*args, **options)
    return {finding.id.removeprefix("performativity/"): finding for finding in findings}


def log(g, n=6000, seed=0, p=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if p is None else p
    return p, (rng.random(n) < g(p)).astype(float)


def test_calibrated_forecasts_pass():
    found = by_id(*log(lambda p: p))
    assert found["level"].severity == found["forecast"].severity == "ok"
    assert found["usefulness"].severity == "ok"
    assert found["drift"].status == found["reaction"].status == "not_applicable"


def test_forecasts_that_people_turn_against_fail():
    found = by_id(*log(lambda p: 1 - p))
    finding = found["forecast"]
    assert found["level"].severity == "ok"
    assert (finding.severity, finding.remedies) == ("fail", ("PerformativeCalibrator",))
    low, high = finding.interval.low, finding.interval.high
    near = 0.9375 if finding.value < 0 else 0.0625
    weights = np.exp(-0.5 * ((np.linspace(0, 1, 10_001) - near) * 8) ** 2)
    truth = np.average(1 - 2 * np.linspace(0, 1, 10_001), weights=weights)
    assert low <= truth <= high


def test_a_group_is_named():
    rng = np.random.default_rng(0)
    p, sex = rng.uniform(0.2, 0.8, 8000), rng.choice(["f", "m"], 8000)
    y = rng.random(8000) < p + np.where(sex == "f", 0.15, -0.15)
    found = by_id(p, y.astype(float), contexts={"sex": sex})
    assert found["level"].severity == "ok"
    assert found["context/sex"].severity == "fail"
    assert "sex=" in found["context/sex"].statement
    rows = {row[0]: row for row in found["context/sex"].tables[0].rows}
    assert rows["sex=f"][4] == pytest.approx(0.15, abs=0.02)
    assert rows["sex=f"][1] == (sex == "f").sum()


def test_calibrated_and_useless_is_said():
    """Theorem 5.1 from a log: the calibrator's forecasts, and one person in three with a random one."""
    respond = ResponseModel(lambda X, p: np.where(p <= 0.5, p + 0.1, p - 0.1), random_state=0)
    calibrator = PerformativeCalibrator(random_state=0).fit_online(np.zeros((1000, 0)), respond)
    n = 15_000
    X = np.zeros((n, 0))
    rng = np.random.default_rng(1)
    drawn = rng.random(n) < 1 / 3
    p = np.where(drawn, rng.random(n), calibrator.predict(X, random_state=0))
    found = by_id(p, respond(X, p), arm=np.where(drawn, "random", "ours"), explored="random")
    assert found["level"].severity == "ok"
    finding = found["usefulness"]
    assert (finding.severity, finding.limit) == ("warn", 0.05)
    assert "of little use: their Brier score is 0.2" in finding.statement
    assert finding.interval.low <= 0.25 - 0.1375 <= finding.interval.high  # tenths are coarse: 0.05 has 0.1375


def test_no_better_than_a_constant_is_said():
    found = by_id(*log(lambda p: np.full(len(p), 0.5), p=np.random.default_rng(1).uniform(0.45, 0.55, 6000)))
    assert found["usefulness"].severity == "warn"
    assert "calibrated, and of little use" in found["usefulness"].statement


@pytest.mark.parametrize("slope", [-1.5, -0.5, 0.0, 0.5])
def test_the_slope_of_the_reaction_is_found_from_random_forecasts(slope):
    rng = np.random.default_rng(12)
    n = 20_000
    base = rng.choice([0.3, 0.5, 0.7], n)
    drawn = rng.random(n) < 0.5
    p = np.where(drawn, rng.uniform(0.35, 0.65, n), base)
    y = (rng.random(n) < base + slope * (p - 0.5) * 0.9).astype(float)
    found = by_id(
        p, y, contexts={"base": base}, arm=np.where(drawn, "random", "model"), explored="random"
    )["reaction"]  # fmt: skip
    assert found.interval.low <= 0.9 * slope <= found.interval.high
    assert (
        found.severity == {-1.5: "warn", -0.5: "note", 0.0: "ok", 0.5: "note"}[slope] or found.status == "inconclusive"
    )
    assert found.n == drawn.sum()


def test_arms_alone_tell_the_slope():
    rng = np.random.default_rng(3)
    n = 20_000
    base, second = rng.choice([0.3, 0.5, 0.7], n), rng.random(n) < 0.5
    p = np.where(second, 0.5, base)
    y = (rng.random(n) < base - 0.6 * (p - 0.5)).astype(float)
    finding = by_id(p, y, contexts={"base": base}, arm=np.where(second, "flat", "model"))["reaction"]
    assert finding.interval.low <= -0.6 <= finding.interval.high
    assert "self-negating" in finding.statement
    assert "at random" in finding.reason


def test_the_interval_of_the_slope_covers():
    """Of 1,000 logs the true slope lies in 95 %; fewer than 927 have a chance below 1 in 1,000."""
    from aboveboard.collective.social_prediction._reaction import _moved_by, _slope, _within

    rng = np.random.default_rng(4)
    inside = unbounded = 0
    for _ in range(1000):
        arm, cells = rng.integers(2, size=600).astype(str), rng.integers(3, size=600)
        p = np.clip(0.3 + 0.1 * cells + 0.1 * (arm == "1") + rng.normal(0, 0.05, 600), 0, 1)
        y = (rng.random(600) < 0.2 + 0.1 * cells + 0.5 * (p - 0.3)).astype(float)
        _, interval = _slope(_moved_by(arm, p, cells), _within(p, cells), _within(y, cells))
        unbounded += interval is None
        inside += interval is None or interval.low <= 0.5 <= interval.high
    assert inside >= 927
    assert unbounded < 50


def test_arms_that_hardly_differ_are_inconclusive():
    p, y = log(lambda p: p, n=3000, p=np.full(3000, 0.5))
    finding = by_id(p, y, arm=np.arange(3000) % 2)["reaction"]
    assert finding.status == "inconclusive"


def test_the_meaning_of_a_forecast_can_move():
    p, y = log(lambda p: p)
    again, after = log(lambda p: np.clip(p - 0.3 * (p > 0.5), 0, 1), seed=1)
    versions = np.repeat(["v1", "v2"], 6000)
    found = by_id(np.r_[p, again], np.r_[y, after], version=versions)["drift"]
    assert found.severity == "warn"
    assert "from v1 to v2" in found.statement
    assert found.value == pytest.approx(-0.3, abs=0.06)
    same = by_id(np.r_[p, p], np.r_[y, log(lambda p: p, seed=5, p=p)[1]], version=versions)["drift"]
    assert same.status in ("ran", "inconclusive")
    assert same.severity != "warn"


def test_times_stand_in_for_versions():
    p, y = log(lambda p: p, n=40_000)
    days = pd.date_range("2026-01-01", periods=40_000, freq="min").astype(str)
    finding = by_id(p, y, time=days, drift=0.1)["drift"]
    assert finding.severity == "ok"
    assert [row[0] for row in finding.tables[0].rows][::5] == [f"period {k}" for k in range(1, 5)]


def test_few_people_are_inconclusive_and_not_shown():
    found = by_id([0.5] * 9, [1] * 9)
    assert {finding.status for finding in found.values()} == {"inconclusive"}
    p, y = log(lambda p: p, n=300)
    rare = np.where(np.arange(300) < 4, "rare", "common")
    rows = {row[0]: row for row in by_id(p, y, contexts={"kind": rare})["context/kind"].tables[0].rows}
    assert rows["kind=rare"][1:] == ("suppressed",) * 5
    assert by_id(p, y)["level"].status == "inconclusive"


@pytest.mark.slow
def test_a_verdict_is_seldom_a_false_alarm():
    """Calibrated forecasts fail in 5 % of 400 logs at a limit of 0; more than 35 have a chance below 1 in 500."""
    alarms = 0
    for seed in range(400):
        findings = performativity_audit(*log(lambda p: p, n=400, seed=seed), gap=1e-9)
        alarms += any(finding.severity == "fail" for finding in findings)
    assert alarms <= 35


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (([0.5, 1.5], [0, 1]), {}, "1 of 2 forecasts lie outside"),
        (([0.5, np.nan], [0, 1]), {}, "lie outside"),
        (([0.5, 0.5], [0, 2]), {}, "Divide by the largest"),
        (([0.5], [0, 1]), {}, "outcomes have shape"),
        ((["a"], [0]), {}, "no number"),
        (([0.5], [0]), {"contexts": {"sex": ["f", "m"]}}, "context 'sex' has 2 entries"),
        (([0.5] * 200, [0] * 200), {"contexts": {"id": range(200)}}, "200 values"),
        (([0.5], [0]), {"explored": "random"}, "no arms were given"),
        (([0.5], [0]), {"arm": ["a"], "explored": "random"}, "nobody was in the arm 'random'"),
        (([0.5], [0]), {"arm": ["a"], "explored": "a"}, "everybody was in the arm"),
        (([0.5], [0]), {"time": [None]}, "time is missing"),
        (([0.5], [0]), {"time": ["soon"]}, "'soon' cannot be read"),
        (([0.5] * 30, [0] * 30), {"version": range(30)}, "version has 30 values"),
    ],
)
def test_what_is_no_log_is_refused(args, options, message):
    with pytest.raises(InputError, match=message):
        performativity_audit(*args, **options)
