"""The check hands the log and the limits in force to the audit of forecasts."""

import numpy as np
import pandas as pd

import aboveboard


def table(n=6000, shift=0.0):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, n)
    return pd.DataFrame({"forecast": p, "outcome": rng.random(n) < p + shift})


def audited(frame, **options):
    report = aboveboard.audit(None, frame, suite="forecasts", effort="quick", **options)
    return {finding.id.removeprefix("performativity/"): finding for finding in report.findings}


def test_the_limits_in_force_decide():
    frame = table(20_000, shift=0.1)
    found = audited(frame)["level"]
    assert (found.severity, found.limit, found.limit_source[:12]) == ("fail", 0.05, "a convention")
    lax = audited(frame, limits={"performativity.gap": 0.2})["level"]
    assert (lax.severity, lax.limit_source) == ("ok", "the user")


def test_too_few_forecasts_are_inconclusive():
    assert audited(table(40))["level"].status == "inconclusive"
    assert audited(table(), min_cell=7000)["level"].reason.startswith("Only 6,000")


def test_small_groups_are_not_shown():
    frame = table().assign(kind=np.where(np.arange(6000) < 20, "rare", "common"))
    rows = {row[0]: row for row in audited(frame, min_cell=21)["context/kind"].tables[0].rows}
    assert rows["kind=rare"][1:] == ("suppressed",) * 5
    assert rows["kind=common"][1] == 5980


def test_what_a_log_cannot_answer_did_not_run():
    report = aboveboard.audit(None, table(), suite="forecasts", effort="quick")
    assert {finding.id for finding in report.not_run} == {"performativity/drift", "performativity/reaction"}
