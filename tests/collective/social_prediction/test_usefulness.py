"""The worth of forecasts: Brier scores by hand, and a best policy that is found from a simulator and from a log."""

import numpy as np
import pytest

from aboveboard.collective import ResponseModel, usefulness
from aboveboard.collective.social_prediction._usefulness import brier_parts
from aboveboard.core import InputError


def against(X, p):
    return np.where(p <= 0.5, p + 0.1, p - 0.1)


def test_the_map_of_theorem_5_1_is_found_out():
    """By algebra the Brier score of publishing q is g (1 - g) + eta^2: 1/4 at a half, eta at 0 and 1."""
    respond = ResponseModel(against, random_state=0)
    X = np.zeros((20_000, 0))
    p = np.full(20_000, 0.5)
    report = usefulness(p, respond(X, p), X=X, response=respond.mean)
    assert report.brier == pytest.approx(0.25, abs=0.005)
    assert report.policy.brier == pytest.approx(0.1)
    assert report.policy.cells["publish"][0] in (0.0, 1.0)
    assert report.gap == pytest.approx(0.15, abs=0.005)
    assert "not worth publishing" in report.statement


def test_a_log_with_random_forecasts_finds_it_too():
    rng = np.random.default_rng(1)
    respond = ResponseModel(against, random_state=0)
    n = 60_000
    explored = rng.random(n) < 0.5
    p = np.where(explored, rng.random(n), 0.5)
    report = usefulness(p, respond(np.zeros((n, 0)), p), explored=explored)
    assert report.n == int((~explored).sum())
    assert report.policy.brier == pytest.approx(0.1375, abs=0.02)  # tenths are coarse: 0.05 has 0.1375
    assert report.gap == pytest.approx(report.brier - report.policy.brier)


def test_cells_may_need_different_forecasts():
    kind = np.arange(2000) % 2
    respond = ResponseModel(lambda X, p: np.where(X[:, 0] > 0, 0.9, 0.2), random_state=0)
    X = kind[:, None].astype(float)
    p = np.full(2000, 0.55)
    report = usefulness(p, respond(X, p), X=X, response=respond.mean, cells=kind)
    assert report.policy.cells["publish"].tolist() == [0.2, 0.9]
    assert report.policy.brier == pytest.approx((0.16 + 0.09) / 2)


def test_skill_and_resolution_by_hand():
    p = np.repeat([0.2, 0.8], 500)
    y = np.concatenate([np.repeat([1.0, 0.0], [100, 400]), np.repeat([1.0, 0.0], [400, 100])])
    report = usefulness(p, y)
    assert (report.brier, report.constant_brier) == (pytest.approx(0.16), pytest.approx(0.25))
    assert report.skill == pytest.approx(0.36)
    assert report.resolution == pytest.approx(0.09, abs=1e-3)
    assert (report.policy, report.gap, report.gap_interval) == (None, None, None)
    assert "skill of 0.36" in report.statement


def test_forecasts_that_say_nothing_are_said_to():
    rng = np.random.default_rng(0)
    report = usefulness(rng.uniform(0.4, 0.6, 3000), rng.random(3000) < 0.5)
    assert "no better than a constant" in report.statement


def test_the_interval_of_the_skill_covers():
    """Of 400 samples of 500, the true skill 0.36 lies in 95 %; fewer than 365 have a chance below 1 in 1,000."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(400):
        p = rng.choice([0.2, 0.8], 500)
        low, high = usefulness(p, rng.random(500) < p).skill_interval
        inside += low <= 0.36 <= high
    assert inside >= 365


def test_parts_of_the_score_have_no_bias():
    """Calibrated forecasts without information: both parts vanish on average."""
    rng = np.random.default_rng(2)
    parts = [brier_parts(rng.uniform(0.45, 0.55, 200), (rng.random(200) < 0.5).astype(float)) for _ in range(500)]
    assert np.mean([resolution for _, resolution in parts]) == pytest.approx(0.0, abs=0.002)
    assert np.mean([reliability for reliability, _ in parts]) == pytest.approx(0.0008, abs=0.002)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": np.zeros((4, 1))}, "X and response go together"),
        ({"X": np.zeros((4, 1)), "response": against, "explored": [True] * 4}, "one of the two"),
        ({"X": np.zeros((3, 1)), "response": against}, "X has 3 rows"),
        ({"explored": [1, 0, 0, 0]}, "explored holds int"),
        ({"explored": [True]}, "explored has shape"),
        ({"explored": [True] * 4}, "0 people got a published"),
        ({"cells": [1]}, "cells has shape"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        usefulness([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], **options)


def test_a_kind_of_people_that_was_hardly_explored_has_no_best_forecast():
    explored = np.array([True] * 5 + [False] * 95)
    assert usefulness(np.full(100, 0.5), np.arange(100) % 2, explored=explored).policy is None
