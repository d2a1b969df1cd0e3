"""The check draws the judges anew, as often as effort and size allow."""

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.checks import rank_stability


def audited(scores, **options):
    report = aboveboard.audit(
        None, pd.DataFrame(scores), suite="ranking", settings={"votes": "score"}, only="rank_stability", **options
    )
    return {finding.id: finding for finding in report.findings}


def test_a_close_lead_warns_and_a_clear_one_does_not():
    rng = np.random.default_rng(0)
    close = rng.normal(size=(40, 4)) + np.array([0, 0, -3, -4])
    assert audited(close)["rank_stability/borda"].severity == "warn"
    clear = rng.normal(size=(40, 4)) + np.array([9, 0, -3, -6])
    found = audited(clear)
    assert found["rank_stability/borda"].severity == "ok"
    assert found["rank_stability/selective"].value == 0


def test_equal_seeds_give_equal_findings():
    scores = np.random.default_rng(1).normal(size=(30, 5))
    assert audited(scores, random_state=3) == audited(scores, random_state=3)


@pytest.mark.parametrize(("effort", "draws"), [("quick", 200), ("standard", 1000), ("full", 10_000)])
def test_effort_decides_how_many_draws_there_are(effort, draws):
    scores = np.tile([6.0, 5.0, 4.0], (20, 1))
    assert f"{draws:,} draws" in audited(scores, effort=effort)["rank_stability/borda"].interval.method


def test_many_judges_and_items_get_fewer_draws(monkeypatch):
    monkeypatch.setitem(rank_stability._WORK, "standard", 20 * 9 * 70)
    assert "70 draws" in audited(np.tile([6.0, 5.0, 4.0], (20, 1)))["rank_stability/borda"].interval.method
    monkeypatch.setitem(rank_stability._WORK, "standard", 1.0)
    assert "50 draws" in audited(np.tile([6.0, 5.0, 4.0], (20, 1)))["rank_stability/borda"].interval.method
