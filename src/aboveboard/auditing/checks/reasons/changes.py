"""Whether the reasons of an answer stay when the row's numbers change a little."""

import numpy as np

from aboveboard.auditing.checks.reasons.effects import COMMON, Effects, bonferroni
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Finding, Severity

__all__ = ["small_changes_finding"]


def small_changes_finding(subject: Subject, effects: Effects) -> list[Finding]:
    """Return by how much a small change of a row's numbers changes its reasons; nothing where there are no numbers.

    The distance between two explanations of a row is the sum of the sizes by which effects differ, as a share of the
    sizes of both together. Coalitions and rows to compare with are the same, so that sampling plays no part in it.
    """
    if not len(effects.changed):
        return []
    before, after = effects.values[: len(effects.changed)], effects.changed
    moved, size = np.abs(before - after).sum(axis=1), (np.abs(before) + np.abs(after)).sum(axis=1)
    distance = np.divide(moved, size, out=np.zeros_like(moved), where=size > 0)
    (value,), (low,), (high,) = effects.mean_interval(distance[:, None])
    low, high = float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    first = float(np.mean(np.abs(before).argmax(axis=1) != np.abs(after).argmax(axis=1)))
    limit = subject.limits["reasons.small_changes"]
    severity: Severity = "warn" if low > limit.value else "ok" if high < limit.value else "note"
    return [
        Finding(
            id="reasons/small_changes",
            statement=(
                f"When a row's numbers change by a hundredth of their standard deviation (whole numbers by one), "
                f"{percent(value)} of its reasons change on average (95 % interval {100 * low:.1f} to "
                f"{100 * high:.1f}), and another column comes first in {percent(first)} of {len(before):,} rows."
            ),
            severity=severity,
            status="inconclusive" if severity == "note" else "ran",
            reason={
                "ok": "Rows that are almost alike are answered for almost the same reasons.",
                "warn": "Rows that are almost alike are answered for different reasons: a reason that is given to one "
                "person says little.",
                "note": "It cannot be told whether the reasons are stable.",
            }[severity],
            value=float(value),
            interval=bonferroni(low, high, 1),
            limit=limit.value,
            limit_source=limit.source,
            n=len(before),
            **COMMON,
        )
    ]
