"""Whether rows occur more than once, and with different answers.

Where columns take few values, different people have the same row by chance, and no harm is done. The check therefore
asks how often rows could agree by chance at most, and whether equal rows have different targets: no model can be right
on all of those.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.columns import chance_of_match, row_hashes, value_hashes
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import count_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import SUPPRESSED, Column, Finding, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "duplicates", "area": "data"}


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Count repeated rows, repeated rows with different targets, and repeated ids.

    Returns
    -------
    list of Finding
        ``duplicates/rows``, ``duplicates/labels``, and ``duplicates/ids`` where ids are given.

    Notes
    -----
    O(d n + n log n) time, O(n) memory for the hashes.
    """
    hashes = row_hashes(subject.X)
    _, first, group, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    chance = chance_of_match(subject.X, first, np.random.default_rng(random_state))
    by_chance = min((len(subject) - 1) * chance, 1.0)
    findings = [
        _rows_finding(subject, counts, by_chance),
        _labels_finding(subject, group.ravel(), counts, by_chance),
    ]
    if subject.ids is not None:
        findings.append(_ids_finding(subject))
    return findings


def _rows_finding(subject: Subject, counts: NDArray[np.intp], by_chance: float) -> Finding:
    limit = subject.limits["duplicates.share"]
    n = len(subject)
    repeats = n - len(counts)
    share = repeats / n
    hidden = 0 < repeats < subject.min_cell
    likely = by_chance >= limit.value
    severity: Severity = "ok"
    if share > limit.value:
        severity = "note" if likely or subject.cluster is not None else "warn"
    if not repeats:
        statement = f"No row of the {n:,} repeats another."
    elif hidden:
        statement = f"{count_text(repeats, subject.min_cell).capitalize()} repeat another in every feature."
    else:
        statement = f"{repeats:,} of {n:,} rows ({percent(share, 2)}) repeat another in every feature."
    if severity == "warn":
        reason = "Some column has too many values for rows to agree by chance."
    elif severity == "note" and subject.cluster is not None:
        reason = "Rows of one cluster may well repeat each other."
    elif severity == "note":
        reason = "The columns take few values, so different people may well have the same row."
    else:
        reason = "No more than the limit."
    evidence: tuple[Table, ...] = ()
    if repeats and not hidden:
        entries = []
        for times, label in ((2, "twice"), (3, "three times"), (4, "four times or more")):
            rows = int(counts[counts == times].sum() if times < 4 else counts[counts >= times].sum())
            entries.append((label, rows))
        withheld = withhold_parts([rows for _, rows in entries], subject.min_cell).all
        evidence = (
            Table(
                "How often rows occur",
                (Column("occurs", "text"), Column("n", "count", "rows"), Column("share", "percent")),
                tuple(
                    (label, *((SUPPRESSED, SUPPRESSED) if hide else (rows, rows / n)))
                    for (label, rows), hide in zip(entries, withheld, strict=True)
                ),
            ),
        )
    return Finding(
        id="duplicates/rows",
        statement=statement,
        severity=severity,
        reason=reason,
        value=None if hidden else share,
        limit=limit.value,
        limit_source=limit.source,
        n=n,
        evidence=evidence,
        **_COMMON,
    )


def _labels_finding(subject: Subject, group: NDArray[np.intp], counts: NDArray[np.intp], by_chance: float) -> Finding:
    """Count rows whose like has another target; for classes also the accuracy that no model can exceed."""
    limit = subject.limits["duplicates.conflicts"]
    n = len(subject)
    repeated = counts[group] > 1
    rows, y = group[repeated], subject.y[repeated]
    order = np.lexsort((y, rows))
    rows, y = rows[order], y[order]
    clash = (rows[1:] == rows[:-1]) & (y[1:] != y[:-1])
    mixed = np.zeros(len(counts), dtype=bool)
    mixed[rows[1:][clash]] = True
    count = int(counts[mixed].sum())
    share = count / n
    hidden = 0 < count < subject.min_cell
    severity: Severity = "ok"
    if share > limit.value:
        severity = "note" if by_chance >= limit.value or subject.task == "regression" else "warn"
    if not count:
        statement = "No two equal rows have different targets."
    elif hidden:
        statement = f"{count_text(count, subject.min_cell).capitalize()} have an equal row with a different target."
    else:
        statement = f"{count:,} of {n:,} rows ({percent(share, 2)}) have an equal row with a different target."
        if subject.task != "regression":
            best = _best_accuracy(rows, y, n, n - len(rows))
            statement += (
                f" No model that sees these features alone can be right on more than {percent(best, 2)} of the rows."
            )
    return Finding(
        id="duplicates/labels",
        statement=statement,
        severity=severity,
        reason={
            "ok": "No more than the limit.",
            "note": "Different people may have equal rows and different outcomes.",
            "warn": "Rows that agree beyond chance should have one target: some of the targets may be wrong.",
        }[severity],
        value=None if hidden else share,
        limit=limit.value,
        limit_source=limit.source,
        n=n,
        **_COMMON,
    )


def _best_accuracy(rows: NDArray[np.intp], y: NDArray[Any], n: int, single: int) -> float:
    """Return the accuracy of saying the most common target of each row; `rows` and `y` are sorted."""
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (y[1:] != y[:-1])])
    sizes = np.diff(np.r_[starts, len(rows)])
    owner = rows[starts]
    most = np.maximum.reduceat(sizes, np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]))
    return float((most.sum() + single) / n)


def _ids_finding(subject: Subject) -> Finding:
    assert subject.ids is not None
    missing = int(subject.ids.isna().sum())
    present = subject.ids[subject.ids.notna().to_numpy()]
    _, counts = np.unique(value_hashes(present), return_counts=True)
    repeated = int(counts[counts > 1].sum())
    n = len(subject)
    if not repeated and not missing:
        statement = f"Each of the {n:,} rows has an id of its own."
    else:
        parts = []
        if repeated:
            parts.append(f"{count_text(repeated, subject.min_cell)} share their id with another row")
        if missing:
            parts.append(f"{count_text(missing, subject.min_cell)} have no id")
        statement = f"{', and '.join(parts)}."
        statement = statement[0].upper() + statement[1:]
    severity: Severity = "ok"
    reason = ""
    if repeated:
        severity = "note" if subject.cluster is not None else "warn"
        reason = (
            "Clusters are named, so intervals allow for it."
            if subject.cluster is not None
            else "Rows of one person depend on each other, so intervals are too narrow: name the column as clusters."
        )
    elif missing:
        severity, reason = "note", "Rows without an id cannot be told apart."
    hidden = 0 < repeated < subject.min_cell
    return Finding(
        id="duplicates/ids",
        statement=statement,
        severity=severity,
        reason=reason,
        value=None if hidden else repeated / n,
        n=n,
        **_COMMON,
    )
