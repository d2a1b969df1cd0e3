"""Rows unlike the training data: how many, whether the model is right there, and whose they are.

A row's novelty is its mean distance to its nearest neighbours among one half of the training rows. The other half says
what distances are usual: the share of it that lies as far out is a conformal p-value, so that a row from the same
source is flagged with probability 5 % at most, whatever the distribution. What is judged is the share of flags beyond
that.

References
----------
V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", Springer, 2005. S. Bates, E. Candès, L. Lei,
Y. Romano, M. Sesia, "Testing for outliers with conformal p-values", Annals of Statistics 51, 2023.
"""

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.intervals import newcombe
from aboveboard.auditing.columns import coded, comparable_columns
from aboveboard.auditing.estimates import Rate, Rows, percent
from aboveboard.auditing.group_shares import GroupShare, group_share_finding
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Column, Finding, Interval, Severity, Table

__all__ = ["check", "conformal_p_values"]

_COMMON: Final[dict[str, Any]] = {"check": "novel_rows", "area": "uncertainty"}
_TRAIN_ROWS: Final[dict[str, int]] = {"quick": 2_000, "standard": 10_000, "full": 50_000}
_ALPHA: Final = 0.05
_NEIGHBOURS: Final = 5
_LEAST: Final = 100
"""Training rows in each half below which nothing is said."""
_MOST_LEVELS: Final = 30
_FAR: Final = 10.0

Floats = NDArray[np.float64]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Flag rows that lie farther from the training rows than 95 % of training rows lie from each other.

    Returns
    -------
    list of Finding
        ``novel_rows/share``, and ``novel_rows/<column>`` for each sensitive column.

    Notes
    -----
    At most 2,000, 10,000 or 50,000 training rows are used (effort quick, standard, full). Numbers count in standard
    deviations from the median, up to ten; words by whether they are equal, up to 30 for each column; missing is a value
    of its own. O(rows x training rows x columns) time by products of matrices, with memory for a part of the rows.
    """
    assert subject.train is not None
    rng = np.random.default_rng(random_state)
    columns = comparable_columns(subject.X, subject.train.X)
    halves = _halves(len(subject.train.y), _TRAIN_ROWS[effort], rng)
    if min(map(len, halves)) < _LEAST or not columns:
        reason = (
            f"It takes {2 * _LEAST} training rows." if columns else "No column holds the same kind of value in both."
        )
        return [
            Finding(
                id="novel_rows/share",
                statement="It cannot be told which rows are unlike the training data.",
                severity="note",
                status="inconclusive",
                reason=reason,
                **_COMMON,
            )
        ]
    nearest, usual = (subject.train.X[columns].iloc[half] for half in halves)
    at_nearest, at_usual, at_rows = _encoded(nearest, usual, subject.X[columns])
    calibration = _novelty(at_nearest, at_usual, subject.n_jobs)
    p = conformal_p_values(calibration, _novelty(at_nearest, at_rows, subject.n_jobs))
    flagged = p <= _ALPHA
    return [_share(subject, flagged, len(calibration), len(columns)), *_by_group(subject, flagged, rng)]


def conformal_p_values(calibration: Floats, scores: Floats) -> Floats:
    """Return for each score the share of calibration scores, itself counted, that are as large.

    Parameters
    ----------
    calibration : ndarray of shape (m,)
    scores : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
        For a score exchangeable with the calibration scores, at most a with probability a at most.
    """
    ordered = np.sort(calibration)
    as_large = len(ordered) - np.searchsorted(ordered, scores, side="left")
    return np.asarray((1.0 + as_large) / (len(ordered) + 1.0))


def _halves(n: int, most: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    drawn = rng.permutation(n)[:most]
    return drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]


def _encoded(*frames: pd.DataFrame) -> list[Floats]:
    """Return tables as points; scales, and the words that have a place, are those of the first."""
    first, whole = frames[0], pd.concat(frames, ignore_index=True)
    parts: list[Floats] = []
    for name in first.columns:
        column = coded(whole[name])
        if column.values is None or column.kind == "boolean":
            parts += _word_columns(column.codes, column.levels, len(first))
        else:
            parts += _number_columns(column.values, len(first))
    points = np.column_stack(parts).astype(np.float32)
    ends = np.cumsum([len(frame) for frame in frames])
    return np.split(points, ends[:-1])


def _number_columns(values: Floats, first: int) -> list[Floats]:
    known = np.isfinite(values)
    own = values[:first][known[:first]]
    if not len(own):
        return [known.astype(np.float64)]
    centre, spread = float(np.median(own)), float(np.std(own))
    with np.errstate(invalid="ignore", over="ignore"):
        placed = (values - centre) / (spread or 1.0)
    placed = np.clip(np.where(np.isnan(values), 0.0, placed), -_FAR, _FAR)
    missing = np.isnan(values)
    return [placed, missing.astype(np.float64)] if missing.any() else [placed]


def _word_columns(codes: NDArray[np.int32], levels: int, first: int) -> list[Floats]:
    """Return a column for each of the most frequent words, so that two different ones are one apart."""
    counts = np.bincount(codes[:first], minlength=levels)
    kept = [level for level in np.argsort(-counts, kind="stable")[:_MOST_LEVELS] if counts[level] > 0]
    others = ~np.isin(codes, kept)
    return [(codes == level) * 0.5**0.5 for level in kept] + [others * 0.5**0.5]


def _novelty(reference: Floats, points: Floats, n_jobs: int | None) -> Floats:
    """Return the mean distance of each point to its nearest neighbours in the reference."""
    from sklearn.neighbors import NearestNeighbors

    k = min(_NEIGHBOURS, len(reference))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(reference)
    parts = [search.kneighbors(points[at : at + 10_000])[0].mean(axis=1) for at in range(0, len(points), 10_000)]
    # distances of equal points differ in the last digits; equal must be equal
    return np.asarray(np.round(np.concatenate(parts), 5), dtype=np.float64)


def _share(subject: Subject, flagged: NDArray[np.bool_], m: int, columns: int) -> Finding:
    limit = subject.limits["novel_rows.excess"]
    rate = Rows.of(subject).rate(flagged)
    promised = np.floor(_ALPHA * (m + 1)) / (m + 1)
    low, high = (float(end) for end in newcombe(rate.value, rate.effective_n, promised, m))
    excess = float(rate.value - promised)
    interval = Interval(min(low, excess), max(high, excess), method="Newcombe")
    severity: Severity = "warn" if interval.low > limit.value else "ok" if interval.high <= limit.value else "note"
    hidden = 0 < np.count_nonzero(flagged) < subject.min_cell
    told = (
        f"Fewer than {subject.min_cell} rows are unlike the training data."
        if hidden
        else f"{percent(rate.value)} of the rows are unlike the training data, and {percent(promised)} would be by "
        f"false alarm: {100 * excess:+.1f} points (95 % interval {100 * interval.low:+.1f} to "
        f"{100 * interval.high:+.1f}).{_right(subject, flagged)}"
    )
    return Finding(
        id="novel_rows/share",
        statement=told,
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason={
            "warn": "The whole interval lies beyond the limit: the model works on rows that it did not learn from.",
            "ok": "The whole interval lies within the limit.",
            "note": "The rows are too few to tell whether that is within the limit.",
        }[severity],
        value=None if hidden else excess,
        interval=None if hidden else interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=() if hidden else (_table(subject, flagged, m, columns),),
        **_COMMON,
    )


def _right(subject: Subject, flagged: NDArray[np.bool_]) -> str:
    """Say how often the model is right on both kinds of rows."""
    if subject.task == "regression" or min(flagged.sum(), (~flagged).sum()) < subject.min_cell:
        return ""
    there, elsewhere = _accuracies(subject, flagged)
    low, high = newcombe(there.value, there.effective_n, elsewhere.value, elsewhere.effective_n)
    return (
        f" There the model is right in {percent(there.value)} of cases, elsewhere in {percent(elsewhere.value)} "
        f"(difference {100 * (there.value - elsewhere.value):+.1f} points, 95 % interval {100 * float(low):+.1f} to "
        f"{100 * float(high):+.1f})."
    )


def _accuracies(subject: Subject, flagged: NDArray[np.bool_]) -> tuple[Rate, Rate]:
    rows, right = Rows.of(subject), subject.prediction == subject.y
    return rows.rate(right, flagged), rows.rate(right, ~flagged)


def _table(subject: Subject, flagged: NDArray[np.bool_], m: int, columns: int) -> Table:
    kinds = (("unlike the training data", flagged), ("like them", ~flagged))
    if subject.task == "regression":
        heads: tuple[Column, ...] = (Column("mean absolute error"),)
        error = np.abs(subject.prediction - subject.y)
        figures: list[tuple[Any, ...]] = [
            (
                float(np.average(error[rows], weights=subject.weights[rows]))
                if subject.weights[rows].sum() > 0
                else None,
            )
            for _, rows in kinds
        ]
    else:
        heads = (Column("accuracy", "percent"), Column("95 % interval", "interval"))
        figures = [
            (rate.value, (rate.interval.low, rate.interval.high)) if rate.n else (None, None)
            for rate in _accuracies(subject, flagged)
        ]
    return Table(
        "Rows unlike the training data",
        (Column("rows", "text"), Column("n", "count"), *heads),
        tuple((name, int(rows.sum()), *figure) for (name, rows), figure in zip(kinds, figures, strict=True)),
        note=f"Mean distance to the {_NEIGHBOURS} nearest of {m:,} training rows in {columns} columns, held against "
        f"that of {m:,} others. A row of the same source is flagged with probability {100 * _ALPHA:.0f} % at most.",
    )


def _by_group(subject: Subject, flagged: NDArray[np.bool_], rng: np.random.Generator) -> list[Finding]:
    beside = {}
    if subject.task != "regression":
        right = (subject.prediction == subject.y).astype(np.float64)
        beside = {"accuracy there": np.where(flagged, right, np.nan)}
    share = GroupShare(
        hit=flagged,
        is_so="unlike the training data",
        title="Rows unlike the training data",
        limit=subject.limits["novel_rows.group"],
        beside=beside,
    )
    return [
        group_share_finding(subject, name, share, rng, id=f"novel_rows/{name}", **_COMMON)
        for name in map(str, subject.sensitive.columns)
    ]
