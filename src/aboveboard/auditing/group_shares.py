"""Whether something befalls some group more often than everybody: a share by group, with simultaneous intervals.

Only more is judged: a group that is spared is named by the table, and is no finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.cells import GroupCells, RateSpec
from aboveboard._stats.deviations import Deviations, rate_deviations
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.limits import Limit
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["GroupShare", "group_share_finding"]

_SPEC = RateSpec("share", np.array([[False], [True]]), np.ones((2, 1), dtype=bool))
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class GroupShare:
    """What befalls rows, and how to say it.

    Parameters
    ----------
    hit : ndarray of bool, shape (n,)
    is_so : str
        What a row is that it befalls, after "are": "left without an answer".
    title : str
        Of the table and the figure: "Rows left without an answer".
    limit : Limit
    beside : mapping of str to ndarray of shape (n,)
        Further outcomes (0 or 1, NaN where a row does not count) whose mean by group stands beside it.
    """

    hit: NDArray[np.bool_]
    is_so: str
    title: str
    limit: Limit
    beside: Mapping[str, NDArray[np.float64]]


def group_share_finding(
    subject: Subject, attribute: str, share: GroupShare, rng: np.random.Generator, **common: Any
) -> Finding:
    """Return the finding for one sensitive column: a warning where the whole interval of a group lies beyond the limit.

    Parameters
    ----------
    subject : Subject
    attribute : str
        A sensitive column.
    share : GroupShare
    rng : numpy.random.Generator
    **common
        ``id``, ``check`` and ``area`` of the finding.

    Notes
    -----
    O(n) time. Groups on fewer people than the smallest cell, or with which such a one could be told, are withheld.
    """
    column = subject.sensitive[attribute].cat
    codes = column.codes.to_numpy().astype(np.intp)
    names = [str(group) for group in column.categories]
    cells = GroupCells.from_arrays(
        codes, share.hit, np.zeros_like(codes), subject.weight,
        n_groups=len(names), n_labels=2, n_predictions=1, clusters=subject.cluster,
    )  # fmt: skip
    counts = cells.count[:, :, 0]
    shown = (counts.sum(axis=1) > 0) & ~withhold_parts(counts.sum(axis=1), subject.min_cell).all
    reference = subject.reference_groups.get(attribute)
    at = None if reference is None else names.index(reference)
    if shown.sum() < 2:
        return Finding(
            statement=f"{attribute}: there are no two groups with {subject.min_cell} rows to compare.",
            status="inconclusive",
            **common,
        )
    found = rate_deviations(cells.rate(_SPEC), rng=rng, reference=at)
    compared = np.flatnonzero(shown & np.isfinite(found.low))
    return _finding(subject, attribute, share, names, found, shown, compared, counts, codes, common)


def _finding(
    subject: Subject,
    attribute: str,
    share: GroupShare,
    names: list[str],
    found: Deviations,
    shown: NDArray[np.bool_],
    compared: NDArray[np.intp],
    counts: NDArray[np.float64],
    codes: NDArray[np.intp],
    common: Mapping[str, Any],
) -> Finding:
    limit = share.limit.value
    if not len(compared):
        return Finding(
            statement=f"{attribute}: nothing can be compared with {subject.reference_groups.get(attribute, 'others')}.",
            status="inconclusive",
            **common,
        )
    worst = int(max(compared, key=lambda g: (found.low[g] > limit, found.high[g] > limit, found.deviation[g])))
    beyond, open_ = found.low[worst] > limit, found.low[worst] <= limit < found.high[worst]
    severity: Severity = "warn" if beyond else "note" if open_ else "ok"
    n = int(counts[worst].sum())
    low, high = float(found.low[worst]), float(found.high[worst])
    whom = subject.reference_groups.get(attribute, "everybody")
    statement = (
        f"{attribute}: {percent(found.value[worst])} of the rows of {names[worst]} are {share.is_so}, against "
        f"{percent(found.centre)} of {whom}: a difference of {100 * found.deviation[worst]:+.1f} points (simultaneous "
        f"95 % interval {100 * low:+.1f} to {100 * high:+.1f})."
    )
    return Finding(
        statement=statement,
        severity=severity,
        status="inconclusive" if open_ else "ran",
        reason=(
            "The whole interval lies beyond the limit."
            if beyond
            else "The rows are too few to tell whether it happens to no group more often than that."
            if open_
            else "No interval reaches the limit."
        ),
        value=float(found.deviation[worst]),
        interval=Interval(low, high, method="max-|t|, MOVER", simultaneous=True),
        limit=limit,
        limit_source=share.limit.source,
        group=f"{attribute}={names[worst]}",
        n=n,
        evidence=(
            _table(attribute, share, names, found, shown, counts, codes, subject),
            _figure(attribute, share, names, found, compared, whom),
        ),
        **common,
    )


def _table(
    attribute: str,
    share: GroupShare,
    names: list[str],
    found: Deviations,
    shown: NDArray[np.bool_],
    counts: NDArray[np.float64],
    codes: NDArray[np.intp],
    subject: Subject,
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for g in np.argsort(-counts.sum(axis=1), kind="stable"):
        if counts[g].sum() == 0:
            continue
        if not shown[g]:
            rows.append((names[g], *[SUPPRESSED] * (4 + len(share.beside))))
            continue
        means = (_mean(values, codes == g, subject) for values in share.beside.values())
        exists = np.isfinite(found.low[g])
        rows.append(
            (
                names[g],
                int(counts[g].sum()),
                float(found.value[g]),
                float(found.deviation[g]),
                (float(found.low[g]), float(found.high[g])) if exists else None,
                *means,
            )
        )
    columns = (
        Column("group", "text"),
        Column("n", "count", "rows of the group"),
        Column("share", "percent"),
        Column("difference", "percent"),
        Column("simultaneous 95 % interval", "interval"),
        *(Column(name, "percent") for name in share.beside),
    )
    left = len(rows) - _SHOWN
    note = f"{left} smaller groups are left out." if left > 0 else ""
    return Table(f"{share.title} by {attribute}", columns, tuple(rows[:_SHOWN]), note=note)


def _mean(values: NDArray[np.float64], of_group: NDArray[np.bool_], subject: Subject) -> Cell:
    """Return a group's mean of an outcome; withheld where it rests on fewer rows than the smallest cell."""
    counted = of_group & np.isfinite(values)
    weight = subject.weights[counted]
    if not weight.sum() > 0:
        return None
    if np.count_nonzero(counted) < subject.min_cell:
        return SUPPRESSED
    return float(np.average(values[counted], weights=weight))


def _figure(
    attribute: str, share: GroupShare, names: list[str], found: Deviations, compared: NDArray[np.intp], whom: str
) -> Figure:
    order = compared[np.argsort(-np.abs(found.deviation[compared]), kind="stable")][:_SHOWN]
    series = Series(
        "difference",
        tuple(names[g] for g in order),
        *(tuple(float(values[g]) for g in order) for values in (found.deviation, found.low, found.high)),
    )
    limit = share.limit.value
    return Figure(
        "intervals",
        f"{share.title}: difference from {whom}",
        attribute,
        "difference of shares",
        (series,),
        (Line("no difference", 0.0), Line("limit", limit)),
        alt=f"The largest difference is that of {names[order[0]]}: {100 * found.deviation[order[0]]:+.1f} points.",
        percent=True,
    )
