"""The check hands the order, the votes and the limits in force to the audit of rankings."""

import numpy as np
import pandas as pd

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.core.report import renderers


def audited(scores, **options):
    return aboveboard.audit(
        None, pd.DataFrame(scores), suite="ranking", settings={"votes": "score"}, only="rank_audit", **options
    )


def order_of(report):
    return next(finding for finding in report.findings if finding.id == "rank_audit/order")


def test_the_limits_in_force_decide():
    scores = np.array([[2.0, 1.0]] * 70 + [[1.0, 2.0]] * 30)
    assert order_of(audited(scores)).severity == "ok"
    strict = order_of(audited(scores, limits={"rank_audit.dissent": 0.1}))
    assert (strict.severity, strict.limit, strict.limit_source) == ("fail", 0.1, "the user")


def test_the_tolerated_dissent_decides_what_the_tiers_show():
    scores = np.array([[2.0, 1.0]] * 60 + [[1.0, 2.0]] * 40)
    shown = {}
    for tolerated in (0.3, 0.45):
        found = audited(scores, limits={"rank_audit.tolerated": tolerated}).findings
        shown[tolerated] = next(finding for finding in found if finding.id == "rank_audit/tiers")
    assert "1 tier " in shown[0.3].statement
    assert "2 tiers " in shown[0.45].statement


def test_the_smallest_cell_counts_judges():
    scores = np.array([[2.0, 1.0]] * 12)
    assert order_of(audited(scores)).value is not None
    assert order_of(audited(scores, min_cell=13)).value is None


def test_findings_count_judges_in_every_output():
    report = audited(np.array([[2.0, 1.0]] * 40))
    assert "40 judges" in report.to_html()
    assert "| Judges |" in renderers["markdown"](report)
    assert "Judges" in render_text(report)
