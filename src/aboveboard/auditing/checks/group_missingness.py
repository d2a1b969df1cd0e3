"""Whether values are missing more often for some groups than for the others.

Each group is compared with all other rows (or with the reference group), feature by feature, with Newcombe's intervals
at a level that allows for all comparisons of the attribute at once (Šidák).

References
----------
Z. Šidák, "Rectangular confidence regions for the means of multivariate normal distributions", JASA 62, 1967.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aboveboard._stats.bootstrap import ClusterCells
from aboveboard._stats.cells import GroupCells
from aboveboard._stats.intervals import critical_z, newcombe
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import Rate, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.auditing.summaries import cell_rate
from aboveboard.core.finding import Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["MissingnessSums", "check", "judge", "layout", "summarise"]

_COMMON: Final[dict[str, Any]] = {"check": "group_missingness", "area": "data"}
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class _Comparison:
    column: str
    group: str
    mine: Rate
    other: Rate
    difference: float
    interval: Interval

    def verdict(self, limit: float) -> str:
        if self.interval.low > limit or self.interval.high < -limit:
            return "beyond"
        return "within" if -limit <= self.interval.low and self.interval.high <= limit else "open"


@dataclass(frozen=True)
class MissingnessSums:
    """Sums over rows.

    Attributes
    ----------
    groups : dict of str to GroupCells
        For each sensitive column, its groups (one cell each).
    missing : dict of (str, str) to GroupCells
        For each sensitive column and feature, the same of the rows where the feature is missing, if there are any.
    """

    groups: dict[str, GroupCells]
    missing: dict[tuple[str, str], GroupCells]

    def __add__(self, other: "MissingnessSums") -> "MissingnessSums":
        """Return the sums of the rows of both."""
        missing = dict(self.missing)
        for key, cells in other.missing.items():
            missing[key] = missing[key] + cells if key in missing else cells
        return MissingnessSums({name: cells + other.groups[name] for name, cells in self.groups.items()}, missing)


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Compare how often each feature is missing between groups.

    Returns
    -------
    list of Finding
        ``group_missingness/<attribute>``, one for each sensitive column.

    Notes
    -----
    O(n) time for each feature with missing values and each attribute.
    """
    return judge(subject, summarise(subject, layout(subject)), random_state=random_state, effort=effort)


def layout(subject: Subject) -> tuple[str, ...]:
    """Return the sensitive columns, by whose groups all parts are counted."""
    return tuple(map(str, subject.sensitive.columns))


def summarise(part: Subject, layout: tuple[str, ...]) -> MissingnessSums:
    """Sum over the rows of a part. O(n) time for each feature with missing values and each attribute."""
    masks = {str(name): part.X[name].isna().to_numpy() for name in part.X.columns}
    rows = {name: np.flatnonzero(mask) for name, mask in masks.items() if mask.any()}
    groups, missing = {}, {}
    for attribute in layout:
        groups[attribute] = _group_cells(part, attribute, slice(None))
        for feature, picked in rows.items():
            missing[attribute, feature] = _group_cells(part, attribute, picked)
    return MissingnessSums(groups, missing)


def judge(
    subject: Subject,
    sums: MissingnessSums,
    *,
    random_state: int,  # noqa: ARG001
    effort: Effort,  # noqa: ARG001
) -> list[Finding]:
    """Make findings of sums over all rows; `subject` tells what they are about, and no row of it is looked at."""
    return [_attribute_finding(subject, name, sums) for name in map(str, subject.sensitive.columns)]


def _group_cells(part: Subject, attribute: str, rows: slice | NDArray[np.intp]) -> GroupCells:
    column = part.sensitive[attribute]
    codes = column.cat.codes.to_numpy()[rows].astype(np.intp)
    nothing = np.zeros(len(codes), dtype=np.intp)
    weight, cluster = (None if values is None else values[rows] for values in (part.weight, part.cluster))
    return GroupCells.from_arrays(
        codes, nothing, nothing, weight, n_groups=len(column.cat.categories), n_labels=1, clusters=cluster
    )


def _told_apart(groups: GroupCells, missing: GroupCells) -> GroupCells:
    """Return the groups with a label of each row: 1 where the feature is missing."""
    return _labelled(groups, 0, 1.0) + _labelled(missing, 0, -1.0) + _labelled(missing, 1, 1.0)


def _labelled(cells: GroupCells, label: int, factor: float) -> GroupCells:
    n = len(cells.count)
    sums = []
    for own in (cells.count, cells.weight, cells.square):
        placed = np.zeros((n, 2, 1))
        placed[:, label] = factor * own[:, 0]
        sums.append(placed)
    clusters = None
    if cells.clusters is not None:
        place = sparse.csr_matrix((np.full(n, factor), (np.arange(n), 2 * np.arange(n) + label)), shape=(n, 2 * n))
        clusters = ClusterCells((cells.clusters.matrix @ place).tocsr(), cells.clusters.ids)
    return GroupCells(sums[0], sums[1], sums[2], clusters)


def _attribute_finding(subject: Subject, attribute: str, sums: MissingnessSums) -> Finding:
    finding_id = f"group_missingness/{attribute}"
    groups = [str(group) for group in subject.sensitive[attribute].cat.categories]
    features = {
        feature: cells for (name, feature), cells in sums.missing.items() if name == attribute and feature != attribute
    }
    features = {str(name): features[str(name)] for name in subject.X.columns if str(name) in features}
    if not features:
        return Finding(
            id=finding_id, statement=f"{attribute}: no feature has missing values.", n=len(subject), **_COMMON
        )
    comparisons = _comparisons(subject, attribute, groups, sums.groups[attribute], features)
    if not comparisons:
        return Finding(
            id=finding_id,
            statement=f"{attribute}: there are no two groups with {subject.min_cell} rows to compare.",
            status="inconclusive",
            n=len(subject),
            **_COMMON,
        )
    limit = subject.limits["group_missingness.difference"]
    order = {"beyond": 0, "open": 1, "within": 2}
    comparisons.sort(key=lambda c: (order[c.verdict(limit.value)], -abs(c.difference)))
    worst = comparisons[0]
    verdict = worst.verdict(limit.value)
    severity: Severity = "warn" if verdict == "beyond" else "ok"
    more = "more" if worst.difference >= 0 else "less"
    against = subject.reference_groups.get(attribute)
    whom = f"in {against}" if against is not None else "elsewhere"
    low, high = 100 * worst.interval.low, 100 * worst.interval.high
    statement = (
        f"{attribute}: {worst.column!r} is missing {more} often for {worst.group}, {percent(worst.mine.value)} against "
        f"{percent(worst.other.value)} {whom}: a difference of {100 * worst.difference:.1f} points "
        f"(simultaneous 95 % interval {low:.1f} to {high:.1f})."
    )
    affected = len({c.column for c in comparisons if c.verdict(limit.value) == "beyond"})
    if affected > 1:
        statement += f" So it is, for one group or another, with {affected - 1} more of {len(features)} columns."
    return Finding(
        id=finding_id,
        statement=statement,
        severity=severity,
        status="inconclusive" if verdict == "open" else "ran",
        reason={
            "beyond": "The whole interval lies beyond the limit.",
            "open": "The rows are too few to tell whether all differences are within the limit.",
            "within": "All intervals lie within the limit.",
        }[verdict],
        value=worst.difference,
        interval=worst.interval,
        limit=limit.value,
        limit_source=limit.source,
        group=f"{attribute}={worst.group}",
        n=worst.mine.n,
        evidence=(
            _table(subject, attribute, comparisons),
            _figure(attribute, comparisons, limit.value),
        ),
        **_COMMON,
    )


def _comparisons(
    subject: Subject,
    attribute: str,
    groups: list[str],
    cells: GroupCells,
    features: dict[str, GroupCells],
) -> list[_Comparison]:
    reference = subject.reference_groups.get(attribute)
    counts = cells.count[:, 0, 0]
    withheld = withhold_parts(counts, subject.min_cell).all
    pairs = []
    for code, group in enumerate(groups):
        mine = np.arange(len(groups)) == code
        other = ~mine if reference is None else np.arange(len(groups)) == groups.index(reference)
        if group == reference or withheld[code] or min(counts[mine].sum(), counts[other].sum()) < subject.min_cell:
            continue
        pairs.append((group, mine[:, None, None], other[:, None, None]))
    if reference is None and len(pairs) == 2 and len(groups) == 2:
        pairs = pairs[:1]  # the two say the same
    family = max(len(pairs) * len(features), 1)
    z = critical_z(0.95 ** (1 / family))
    is_missing = np.array([False, True])[:, None]
    out = []
    for name, missing in features.items():
        labelled = _told_apart(cells, missing)
        for group, mine, other in pairs:
            first, second = cell_rate(labelled, is_missing, mine), cell_rate(labelled, is_missing, other)
            if not (np.isfinite(first.value) and np.isfinite(second.value)):
                continue
            low, high = newcombe(first.value, first.effective_n, second.value, second.effective_n, z=z)
            difference = first.value - second.value
            interval = Interval(
                min(float(low), difference), max(float(high), difference), method="Newcombe, Šidák", simultaneous=True
            )
            out.append(_Comparison(name, group, first, second, difference, interval))
    return out


def _table(subject: Subject, attribute: str, comparisons: list[_Comparison]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (c.column, c.group, c.mine.n, c.mine.value, c.other.value, c.difference, (c.interval.low, c.interval.high))
        for c in comparisons[:_SHOWN]
    )
    against = subject.reference_groups.get(attribute, "all others")
    columns = (
        Column("column", "text"),
        Column("group", "text"),
        Column("n", "count", "rows of the group"),
        Column("missing", "percent"),
        Column(f"missing in {against}", "percent"),
        Column("difference", "percent"),
        Column("simultaneous 95 % interval", "interval"),
    )
    left = len(comparisons) - len(rows)
    note = f"{left} comparisons with smaller differences are left out." if left > 0 else ""
    return Table(f"Missing values by {attribute}", columns, rows, note=note)


def _figure(attribute: str, comparisons: list[_Comparison], limit: float) -> Figure:
    shown = comparisons[:_SHOWN]
    series = Series(
        "difference",
        tuple(f"{c.column}: {c.group}" for c in shown),
        tuple(c.difference for c in shown),
        tuple(c.interval.low for c in shown),
        tuple(c.interval.high for c in shown),
    )
    first = shown[0]
    return Figure(
        "intervals",
        f"Missing values by {attribute}: difference from the others",
        "column and group",
        "difference of shares missing",
        (series,),
        (Line("no difference", 0.0), Line("limit", limit), Line("limit", -limit)),
        alt=f"The largest is {first.column} for {first.group}: {100 * first.difference:.1f} points.",
        percent=True,
    )
