"""Whether test rows were already seen in training.

Rows are compared by a hash that does not depend on the container. Where columns take few values, rows agree by chance;
how often is read off the training rows themselves: a fresh row finds its like among them as often as they do.
"""

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.intervals import newcombe
from aboveboard.auditing.columns import chance_of_match, row_hashes
from aboveboard.auditing.estimates import Rows, count_text, interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Column, Finding, Interval, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "shared_rows", "area": "leaks"}


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Count the test rows that occur among the training rows.

    Returns
    -------
    list of Finding
        ``shared_rows/features``.

    Notes
    -----
    O(d n log n) time, O(n) memory for the hashes.
    """
    assert subject.train is not None
    train = subject.train
    single = _single_precision(subject.X, train.X)
    mine, theirs = row_hashes(subject.X, single=single), row_hashes(train.X, single=single)
    distinct, first, counts = np.unique(theirs, return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(distinct, mine), len(distinct) - 1)
    shared = distinct[place] == mine
    known = np.asarray(distinct[np.searchsorted(distinct, theirs)] == theirs)
    twins = counts[np.searchsorted(distinct, theirs)] > 1
    assert known.all()
    chance = chance_of_match(train.X, first, np.random.default_rng(random_state))
    return [
        _finding(subject, mine, shared, twins, min(len(theirs) * chance, 1.0), _labels_agree(subject, mine, theirs))
    ]


def _single_precision(mine: pd.DataFrame, theirs: pd.DataFrame) -> frozenset[str]:
    """Return the columns that one of the tables stores in single precision."""
    half = {"float32", "Float32", "float[pyarrow]", "float16", "halffloat[pyarrow]"}
    return frozenset(
        str(name) for name in mine.columns if (str(mine[name].dtype) in half) != (str(theirs[name].dtype) in half)
    )


def _labels_agree(subject: Subject, mine: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which test rows occur in training with the same target."""
    assert subject.train is not None
    with_target = [
        row_hashes(pd.DataFrame({"row": hashes.view(np.int64), "target": y}))
        for hashes, y in ((mine, subject.y), (theirs, subject.train.y))
    ]
    return np.isin(with_target[0], with_target[1])


def _finding(
    subject: Subject,
    mine: NDArray[np.uint64],
    shared: NDArray[np.bool_],
    twins: NDArray[np.bool_],
    by_chance: float,
    with_target: NDArray[np.bool_],
) -> Finding:
    limit, severe = subject.limits["shared_rows.share"], subject.limits["shared_rows.share_severe"]
    count, n = int(shared.sum()), len(shared)
    share, usual = count / n, float(twins.mean())
    rows = Rows(n, cluster=subject.cluster)
    rate, reference = rows.rate(shared), Rows(len(twins)).rate(twins)
    likely = by_chance >= limit.value  # rows of these columns may agree by chance
    interval = None
    judged = share
    if likely:
        low, high = newcombe(share, max(rate.effective_n, 1.0), usual, reference.effective_n)
        judged = share - usual
        interval = Interval(min(float(low), judged), max(float(high), judged), method="Newcombe")
    lowest = judged if interval is None else interval.low
    severity: Severity = "ok"
    if lowest > severe.value:
        severity = "fail"
    elif lowest > limit.value:
        severity = "warn"
    hidden = 0 < count < subject.min_cell
    named = severe if severity == "fail" else limit
    distinct = len(np.unique(mine))
    share_distinct = len(np.unique(mine[shared])) / distinct
    said = count_text(count, subject.min_cell) if hidden else f"{count:,} of {n:,} test rows ({percent(share, 2)})"
    statement = f"{said[0].upper()}{said[1:]} occur among the training rows."
    if count == 0:
        statement = f"None of the {n:,} test rows occurs among the {len(twins):,} training rows."
    elif likely and not hidden:
        statement += (
            f" Of the training rows {percent(usual, 2)} have their like among the others, so chance explains about as "
            f"much; the excess is {percent(judged, 2)}{interval_text(interval, as_percent=True)}."
        )
    evidence: tuple[Table, ...] = ()
    if count and not hidden:
        evidence = (
            Table(
                "Rows in common",
                (Column("what", "text"), Column("share", "percent")),
                (
                    ("test rows that occur in training", share),
                    ("the same, with the same target", float(with_target.mean())),
                    ("distinct test rows that occur in training", share_distinct),
                    ("training rows that occur more than once", usual),
                ),
            ),
        )
    reasons = {
        "ok": "No more than the limit." if not likely else "No more than chance explains.",
        "warn": "Figures on rows that the model has seen are too good.",
        "fail": "Figures on rows that the model has seen are too good.",
    }
    return Finding(
        id="shared_rows/features",
        statement=statement,
        severity=severity,
        reason=reasons[severity] + (" Too few values differ between rows to exclude chance." if likely else ""),
        value=None if hidden else judged,
        interval=None if hidden else interval,
        limit=named.value,
        limit_source=named.source,
        n=n,
        evidence=evidence,
        **_COMMON,
    )
