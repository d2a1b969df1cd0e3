"""The check hands statements, meanings and the limits in force to the audit of phrases."""

import numpy as np
import pandas as pd

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.core.report import renderers


def audited(rate=0.8, n=4000, **options):
    y = (np.arange(n) < rate * n).astype(int)
    frame = pd.DataFrame({"said": ["often"] * n, "true": y, "mean": 0.8, "who": np.arange(n) % 2})
    columns = {"phrase": "said", "outcome": "true", "mean": "mean"} | options.pop("columns", {})
    return aboveboard.audit(None, frame, suite="phrases", columns=columns, effort="quick", **options)


def by_id(report):
    return {finding.id.partition("/")[2]: finding for finding in report.findings}


def test_the_limits_in_force_decide():
    assert by_id(audited(rate=0.75))["phrases"].severity == "ok"
    strict = by_id(audited(rate=0.75, limits={"phrase_calibration.gap": 0.01, "phrase_calibration.error": 0.01}))
    assert (strict["phrases"].severity, strict["error"].severity) == ("fail", "fail")
    assert (strict["phrases"].limit, strict["phrases"].limit_source) == (0.01, "the user")


def test_groups_get_a_finding_each_column():
    assert by_id(audited(columns={"group": "who"}))["by who"].severity == "ok"


def test_the_smallest_cell_counts_statements():
    assert by_id(audited(n=50))["phrases"].value is not None
    assert by_id(audited(n=50, min_cell=60))["phrases"].value is None


def test_rare_phrases_are_not_shown():
    n = 200
    said = ["often"] * (n - 4) + ["seldom"] * 4
    frame = pd.DataFrame({"said": said, "true": [1] * (n - 4) + [0, 0, 1, 1], "mean": [0.9] * (n - 4) + [0.1] * 4})
    report = aboveboard.audit(
        None, frame, suite="phrases", columns={"phrase": "said", "outcome": "true", "mean": "mean"}, effort="quick"
    )
    (table,) = by_id(report)["phrases"].tables
    row = next(row for row in table.rows if row[0] == "seldom")
    assert all(cell == "suppressed" for cell in row[1:])
    assert "seldom" not in str([series.x for figure in by_id(report)["phrases"].figures for series in figure.series])


def test_findings_count_statements_in_every_output():
    report = audited()
    assert "4,000 statements" in report.to_html()
    assert "| Statements |" in renderers["markdown"](report)
    assert "Statements" in render_text(report)


def test_the_same_seed_gives_the_same_findings():
    assert audited(rate=0.7).findings == audited(rate=0.7).findings
