"""What the numbers mean, in sentences, tables and figures."""

from typing import Any, Final

import numpy as np

from aboveboard.auditing.checks.performance.measures import Measured, Metric, Skill
from aboveboard.auditing.checks.performance.sums import PerformanceSums
from aboveboard.auditing.estimates import interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import effective_rows
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Series, Severity, Table

__all__ = ["COMMON", "absent_classes", "metrics_finding", "shown", "shown_pair", "skill_findings", "too_few"]

COMMON: Final[dict[str, Any]] = {"check": "performance", "area": "performance"}


def metrics_finding(subject: Subject, sums: PerformanceSums, measured: Measured) -> Finding:
    metrics = measured.metrics
    head = metrics[0]
    limit = subject.limits["performance.min_rows"]
    rows = tuple(_metric_row(metric, subject.min_cell) for metric in metrics)
    table = Table(
        "Metrics",
        (
            Column("metric", "text"),
            Column("n", "count", "rows that it rests on"),
            Column("value"),
            Column("95 % interval", "interval"),
            Column("method", "text"),
            Column("meaning", "text"),
        ),
        rows,
        note=_design_note(sums),
    )
    second = next((metric for metric in metrics if metric.name in ("accuracy", "MAE") and metric is not head), None)
    told = [metric for metric in (head, second) if metric is not None and np.isfinite(metric.value)]
    said = ", ".join(f"{metric.name} is {metric.value:.3f}{interval_text(metric.interval)}" for metric in told)
    few = effective_rows(sums.cells) < limit.value
    statement = f"On {len(subject):,} rows the model's {said}." if told else "No metric exists for these rows."
    return Finding(
        id="performance/metrics",
        statement=statement,
        status="inconclusive" if few or not told else "ran",
        reason=f"There are fewer than {limit.value:.0f} rows." if few else "Shown, not judged: see the comparisons.",
        value=head.value if np.isfinite(head.value) else None,
        interval=head.interval,
        n=len(subject),
        evidence=(table, *_metrics_figure(subject, metrics)),
        **COMMON,
    )


def _metric_row(metric: Metric, min_cell: int) -> tuple[Cell, ...]:
    if metric.withheld:
        return (metric.name, SUPPRESSED, SUPPRESSED, SUPPRESSED, "", metric.help)
    interval = metric.interval
    return (
        metric.name,
        metric.n,
        shown(metric.value, metric.n, min_cell),
        None if interval is None else shown_pair(interval, metric.n, min_cell),
        "" if interval is None else interval.method,
        metric.help,
    )


def too_few(subject: Subject) -> Finding:
    return Finding(
        id="performance/metrics",
        statement=f"There are fewer than {subject.min_cell:,} rows, so nothing is shown.",
        status="inconclusive",
        reason="No figure may describe so few people.",
        **COMMON,
    )


def _metrics_figure(subject: Subject, metrics: list[Metric]) -> tuple[Figure, ...]:
    unit = {"AUC", "average precision", "accuracy", "balanced accuracy", "precision", "recall", "specificity", "F1"}
    unit |= {"macro F1", "one-vs-rest AUC"}
    drawn = [m for m in metrics if m.name in unit and m.interval and not m.withheld and m.n >= subject.min_cell]
    if subject.task == "regression" or len(drawn) < 2:
        return ()
    series = Series(
        "model",
        tuple(m.name for m in drawn),
        tuple(m.value for m in drawn),
        tuple(m.interval.low for m in drawn if m.interval),
        tuple(m.interval.high for m in drawn if m.interval),
    )
    best = f"{drawn[0].name} is {drawn[0].value:.3f}"
    return (Figure("intervals", "Metrics with 95 % intervals", "metric", "value", (series,), alt=f"{best}."),)


def skill_findings(subject: Subject, sums: PerformanceSums, measured: Measured) -> list[Finding]:
    limit = subject.limits["performance.skill"]
    verdicts = [skill.verdict(limit.value) for skill in measured.skills]
    informed = measured.informative is not None and measured.informative.low > measured.chance
    informed = informed or "better" in verdicts
    few = effective_rows(sums.cells) < subject.limits["performance.min_rows"].value
    findings = []
    for skill, verdict in zip(measured.skills, verdicts, strict=True):
        if measured.withheld:  # the trivial answer's figure would tell how many rows the rarer class has
            findings.append(
                Finding(
                    id=f"performance/{skill.id}",
                    statement=f"Whether the model beats {skill.trivial} cannot be told.",
                    status="inconclusive",
                    reason=f"One class has fewer than {subject.min_cell:,} rows.",
                    n=len(subject),
                    **COMMON,
                )
            )
            continue
        verdict = "inconclusive" if few else verdict
        severity: Severity = "ok"
        if verdict == "no better":
            severity = "warn" if informed else "fail"
        compared = f"{skill.measure} {skill.model:.3f} against {skill.baseline:.3f}{_skill_text(skill)}"
        statement = {
            "better": f"The model beats {skill.trivial}: {compared}.",
            "no better": f"The model is no better than {skill.trivial}: {compared}.",
            "inconclusive": f"Whether the model beats {skill.trivial} cannot be told: {compared}.",
        }[verdict]
        reason = {
            "better": "The whole interval lies above the limit.",
            "no better": "The whole interval lies at or below the limit"
            + (
                "; the model does tell rows apart, so its threshold or its probabilities are at fault."
                if informed
                else "."
            ),
            "inconclusive": "There are too few rows." if few else "The interval includes the limit.",
        }[verdict]
        findings.append(
            Finding(
                id=f"performance/{skill.id}",
                statement=statement,
                severity=severity,
                status="inconclusive" if verdict == "inconclusive" else "ran",
                reason=reason,
                value=skill.value if np.isfinite(skill.value) else None,
                interval=skill.interval,
                limit=limit.value,
                limit_source=limit.source,
                n=len(subject),
                **COMMON,
            )
        )
    return findings


def _skill_text(skill: Skill) -> str:
    if not np.isfinite(skill.value):
        return ""
    what = "errors" if skill.measure == "accuracy" else "loss"
    return f", {percent(skill.value)} of its {what} taken away{interval_text(skill.interval, as_percent=True)}"


def absent_classes(subject: Subject, sums: PerformanceSums) -> Finding | None:
    if subject.task == "regression":
        return None
    absent = np.flatnonzero(sums.table.sum(axis=1) == 0)
    if not len(absent):
        return None
    names = ", ".join(repr(subject.class_names[code]) for code in absent[:10])
    return Finding(
        id="performance/absent_class",
        statement=f"The data have no row of {'class' if len(absent) == 1 else 'classes'} {names}.",
        severity="note",
        reason="Nothing measured here speaks of rows of such a class.",
        value=float(len(absent)),
        n=len(subject),
        **COMMON,
    )


def shown(value: float, n: int, min_cell: int) -> Cell:
    if 0 < n < min_cell:
        return SUPPRESSED
    return float(value) if np.isfinite(value) else None


def shown_pair(interval: Interval, n: int, min_cell: int) -> Cell:
    return SUPPRESSED if 0 < n < min_cell else (interval.low, interval.high)


def _design_note(sums: PerformanceSums) -> str:
    parts = []
    if not np.array_equal(sums.cells.count, sums.cells.weight):
        parts.append("rows count by weight")
    if sums.cells.clusters is not None:
        parts.append(f"intervals treat {sums.cells.clusters.n_clusters:,} clusters as the units that were drawn")
    return ("; ".join(parts).capitalize() + ".") if parts else ""
