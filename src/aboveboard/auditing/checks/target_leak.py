"""Whether a single column gives the answer away.

A column that predicts the target almost perfectly by itself, while the next best is far behind, was most likely written
down after the outcome was known, or from it. The same is asked of missingness, of the order of the rows and of the ids.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import CodedColumn, coded
from aboveboard.auditing.estimates import Area, Rows, interval_text
from aboveboard.auditing.single_column import assign_folds, class_power, indicator_power, number_power
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Column, Finding, Interval, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "target_leak", "area": "leaks"}
_SHOWN: Final = 15
_ORDER_BINS: Final = 20


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: str
    power: Area
    missing: Area
    missing_share: float


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Measure what each column tells about the target by itself.

    Returns
    -------
    list of Finding
        ``target_leak/<column>`` for each suspect, ``target_leak/<column>/missing`` where missingness tells it, else
        ``target_leak/columns``; ``target_leak/row_order`` and ``target_leak/ids`` where these tell it.

    Notes
    -----
    O(d k n log n) time for d columns and k classes.
    """
    rng = np.random.default_rng(random_state)
    rows = Rows.of(subject)
    k = 0 if subject.task == "regression" else len(subject.classes)
    y = subject.y if k == 0 else subject.y.astype(np.int64)
    if k and int(np.sort(np.bincount(y, minlength=k))[-2]) < 10:
        return [
            Finding(
                id="target_leak/columns",
                statement="All classes but one have fewer than 10 rows, so no column can be judged.",
                status="inconclusive",
                n=len(subject),
                **_COMMON,
            )
        ]
    fold = assign_folds(y if k else None, rows, rng)

    def power(column: CodedColumn) -> Area:
        return class_power(column, y, k, fold, rows) if k else number_power(column, y, fold, rows)

    entries = []
    for name in subject.X.columns:
        column = coded(subject.X[name])
        missing = column.missing
        share = float(np.mean(missing))
        told = indicator_power(missing, y, k, rows) if 0 < share < 1 else Area(0.0, 0.0, None)
        entries.append(_Entry(str(name), column.kind, power(column), told, share))
    findings = _column_findings(subject, entries)
    findings += [finding for entry in entries if (finding := _missing_finding(subject, entry, k)) is not None]
    if not findings:
        findings.append(_clear(subject, entries))
    findings += _order_findings(subject, power)
    return findings


def _column_findings(subject: Subject, entries: list[_Entry]) -> list[Finding]:
    measure, limit, suspect = _limits(subject)
    ratio = subject.limits["target_leak.ratio"].value
    known = [entry for entry in entries if np.isfinite(entry.power.value)]
    chance = 0.5 if measure == "AUC" else 0.0
    findings: list[Finding] = []
    for entry in sorted(known, key=lambda item: -item.power.value):
        value, interval = entry.power.value, entry.power.interval
        if value < suspect.value:
            break
        rest = [other.power.value for other in known if other is not entry and other.power.value < limit.value]
        following = max([*rest, chance])
        low = interval.low if interval is not None else value
        far = (1 - following) >= ratio * (1 - value)
        severity: Severity
        if low >= limit.value:
            severity, judged = ("fail" if far else "warn"), limit
            reason = (
                "It predicts the target almost perfectly, far beyond the other columns."
                if far
                else "It predicts the target almost perfectly; other columns come close, so the task may be that easy."
            )
        elif value >= limit.value:
            severity, judged = "note", limit
            reason = "It looks almost perfect, and the rows are too few to be sure."
        elif low >= suspect.value and far:
            severity, judged, reason = "warn", suspect, "It predicts the target far better than any other column."
        else:
            continue
        findings.append(
            Finding(
                id=f"target_leak/{entry.name}",
                statement=f"The column {entry.name!r} alone predicts the target with {measure} "
                f"{value:.4f}{interval_text(interval, digits=4)}; the next below {limit.value:g} has {following:.3f}. "
                "Was it known when the model has to answer?",
                severity=severity,
                status="inconclusive" if severity == "note" else "ran",
                reason=reason,
                value=value,
                interval=interval,
                limit=judged.value,
                limit_source=judged.source,
                n=len(subject),
                evidence=(_table(subject, entries),) if not findings else (),
                **_COMMON,
            )
        )
    return findings


def _missing_finding(subject: Subject, entry: _Entry, k: int) -> Finding | None:
    limit = subject.limits["target_leak.missing_auc" if k else "target_leak.missing_r2"]
    interval = entry.missing.interval
    if interval is None or interval.low < limit.value:
        return None
    measure = "AUC" if k else "R²"
    return Finding(
        id=f"target_leak/{entry.name}/missing",
        statement=f"Whether {entry.name!r} is missing predicts the target with {measure} "
        f"{entry.missing.value:.3f}{interval_text(interval)}. Was it filled in after the outcome was known?",
        severity="warn",
        reason="A value that is missing for one outcome only gives the outcome away.",
        value=entry.missing.value,
        interval=interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        **_COMMON,
    )


def _clear(subject: Subject, entries: list[_Entry]) -> Finding:
    measure, limit, _ = _limits(subject)
    known = [entry for entry in entries if np.isfinite(entry.power.value)]
    if not known:
        return Finding(
            id="target_leak/columns",
            statement="No column could be judged.",
            status="inconclusive",
            n=len(subject),
            **_COMMON,
        )
    best = max(known, key=lambda entry: entry.power.value)
    return Finding(
        id="target_leak/columns",
        statement=f"No single column gives the target away; the best, {best.name!r}, has {measure} "
        f"{best.power.value:.3f}{interval_text(best.power.interval)}.",
        value=best.power.value,
        interval=best.power.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(_table(subject, entries),),
        **_COMMON,
    )


def _order_findings(subject: Subject, power: Any) -> list[Finding]:
    """Ask the same of the order of the rows and of numbered ids: they are no features, but shuffle before you split."""
    places: list[tuple[str, str, NDArray[np.float64]]] = [
        ("row_order", "the order of the rows", np.arange(len(subject), dtype=np.float64))
    ]
    if subject.ids is not None:
        given = pd.to_numeric(subject.ids, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
        if np.isfinite(given).mean() > 0.99:
            places.append(("ids", "the record ids", given))
    limit = subject.limits["target_leak.order_auc" if subject.task != "regression" else "target_leak.order_r2"]
    measure = "AUC" if subject.task != "regression" else "R²"
    findings = []
    for key, what, values in places:
        area: Area = power(coded(pd.Series(values, name=key), bins=_ORDER_BINS))
        interval: Interval | None = area.interval
        if interval is None or interval.low < limit.value:
            continue
        verb = "predicts" if key == "row_order" else "predict"
        findings.append(
            Finding(
                id=f"target_leak/{key}",
                statement=f"{what[0].upper()}{what[1:]} {verb} the target with {measure} "
                f"{area.value:.3f}{interval_text(interval)}.",
                severity="note",
                reason="Shuffle the rows before they are split, and never give the model an id.",
                value=area.value,
                interval=interval,
                limit=limit.value,
                limit_source=limit.source,
                n=len(subject),
                **_COMMON,
            )
        )
    return findings


def _limits(subject: Subject) -> tuple[str, Any, Any]:
    if subject.task == "regression":
        return "R²", subject.limits["target_leak.r2"], subject.limits["target_leak.suspect_r2"]
    return "AUC", subject.limits["target_leak.auc"], subject.limits["target_leak.suspect_auc"]


def _table(subject: Subject, entries: list[_Entry]) -> Table:
    measure, _, _ = _limits(subject)
    best = sorted(entries, key=lambda entry: -np.nan_to_num(entry.power.value, nan=-1.0))[:_SHOWN]
    rows = tuple(
        (
            entry.name,
            entry.kind,
            entry.power.value if np.isfinite(entry.power.value) else None,
            None if entry.power.interval is None else (entry.power.interval.low, entry.power.interval.high),
        )
        for entry in best
    )
    left = len(entries) - len(best)
    return Table(
        f"What each column tells by itself (out-of-fold {measure})",
        (Column("column", "text"), Column("holds", "text"), Column(measure), Column("95 % interval", "interval")),
        rows,
        note=f"The best {len(best)} of {len(entries)} columns." if left else "",
    )
