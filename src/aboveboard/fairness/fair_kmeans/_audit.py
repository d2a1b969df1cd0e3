"""Does every cluster hold every group between its bounds? Counts, which have no sampling error, against bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats import intervals
from aboveboard.core import SUPPRESSED, Column, Figure, Finding, InputError, Line, Series, Table
from aboveboard.core.finding import Cell
from aboveboard.fairness.fair_kmeans._groups import Floats, Groups, Indices, read_groups, shares_allowed

__all__ = ["cluster_balance_audit"]

_LEVEL: Final = 0.95
_SHOWN_ROWS: Final = 200
_SHOWN_CLUSTERS: Final = 20
_SHOWN_GROUPS: Final = 6
_REMEDY: Final = "RelaxMergeFairKMeans"
_TOLERATED: Final = 2.0

Mask = NDArray[np.bool_]
Withhold = Callable[[Floats], Mask]


def cluster_balance_audit(
    labels: ArrayLike,
    sensitive_features: Any,
    bounds: Any = None,
    *,
    slack: float = 0.2,
    tolerated: float = _TOLERATED,
    limit_source: str = "",
    withhold: Withhold | None = None,
) -> list[Finding]:
    """Hold the share of every group in every cluster against its bounds.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The cluster of each row; any values without missing ones.
    sensitive_features : array, Series or data frame of shape (n,) or (n, n_columns)
    bounds, slack
        As for `RelaxMergeFairKMeans`; the default slack is the four-fifths rule: in each cluster a share of at least
        four fifths, and at most five quarters, of that in the data.
    tolerated : float, default 2
        People. A share in a small cluster cannot be met by whole people; a bound is broken when more are missing, or
        too many, than this.
    limit_source : str
        Who says so, for the finding.
    withhold : callable, optional
        Gets the counts of one sensitive column, shape (clusters, groups), and returns which may not be shown.

    Returns
    -------
    list of Finding
        ``cluster_balance/<column>`` for each sensitive column: its value is the largest number of people, in any
        cluster, by which a bound is broken.

    Raises
    ------
    InputError
        For a missing label, sensitive features that are missing or do not line up, or bounds that no clustering meets.

    Notes
    -----
    The counts describe these rows exactly. The intervals are for new people of the same kind, put into the same
    clusters: Clopper-Pearson, jointly at 95 % for all groups and clusters of a column (Bonferroni).

    Examples
    --------
    >>> from aboveboard.fairness import cluster_balance_audit
    >>> clusters, sex = [0] * 40 + [1] * 40, ["F"] * 40 + ["M"] * 40
    >>> [finding.severity for finding in cluster_balance_audit(clusters, sex)]
    ['fail']
    """
    code, names = _codes(labels)
    groups = read_groups(sensitive_features, len(code))
    if not groups.groups:
        raise InputError("sensitive_features is None", expected="the group of each row")
    allowed = shares_allowed(groups, slack, bounds)
    return [
        _finding(_Balance.of(code, names, groups, allowed, attribute), tolerated, limit_source, withhold)
        for attribute in groups.attributes
    ]


@dataclass(frozen=True)
class _Balance:
    """Counts of one sensitive column, clusters x groups, and what the bounds allow."""

    attribute: str
    clusters: list[str]
    groups: list[str]
    counts: Floats
    allowed: Floats

    @classmethod
    def of(cls, code: Indices, names: list[str], groups: Groups, allowed: Floats, attribute: str) -> "_Balance":
        rows = np.flatnonzero(groups.attribute_of == attribute)
        by_cell = np.zeros((len(names), groups.n_cells))
        np.add.at(by_cell, (code, groups.cell), 1.0)
        labels = [str(groups.groups[row].value) for row in rows]
        return cls(attribute, names, labels, by_cell @ groups.member[rows].T, allowed[rows])

    @property
    def sizes(self) -> Floats:
        return np.asarray(self.counts.sum(axis=1, keepdims=True))

    @property
    def shares(self) -> Floats:
        return self.counts / self.sizes

    @property
    def excess(self) -> Floats:
        """By how many people each bound is broken; negative where people are missing."""
        over = np.maximum(self.counts - self.allowed[:, 1] * self.sizes, 0.0)
        under = np.maximum(self.allowed[:, 0] * self.sizes - self.counts, 0.0)
        return over - under

    def interval(self) -> tuple[Floats, Floats]:
        level = 1 - (1 - _LEVEL) / self.counts.size
        return intervals.clopper_pearson(self.counts, np.broadcast_to(self.sizes, self.counts.shape), level=level)


def _codes(labels: ArrayLike) -> tuple[Indices, list[str]]:
    """Return the cluster of each row as a code, and the names of the clusters in order."""
    import pandas as pd

    column = pd.Series(labels)
    if not len(column):
        raise InputError("labels is empty", expected="the cluster of each row")
    missing = int(column.isna().sum())
    if missing:
        raise InputError(f"the cluster is missing in {missing:,} rows", expected="a cluster for every row")
    code, values = pd.factorize(column)
    order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, values[i]))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[code], [str(values[i]) for i in order]


def _finding(balance: _Balance, tolerated: float, source: str, withhold: Withhold | None) -> Finding:
    hidden = np.zeros(balance.counts.shape, dtype=bool) if withhold is None else withhold(balance.counts)
    excess = balance.excess
    broken = np.abs(excess) >= tolerated
    worst = np.unravel_index(int(np.abs(excess).argmax()), excess.shape)
    value = float(abs(excess[worst]))
    shown = not hidden[worst]
    name = balance.attribute
    if broken.any():
        statement = f"{int(broken.sum())} of {broken.size} shares of {name} in clusters lie beyond their bounds."
        if shown:
            statement += " The worst: " + _worst(balance, worst, value)
    else:
        statement = f"Every cluster holds every group of {name} between its bounds, to fewer than {tolerated:g} people."
    return Finding(
        id=f"cluster_balance/{name}",
        check="cluster_balance",
        area="fairness",
        statement=statement,
        severity="fail" if broken.any() else "ok",
        reason=_reason(balance, broken),
        value=value if shown else None,
        limit=float(tolerated),
        limit_source=source,
        n=int(balance.counts.sum()),
        evidence=(_table(balance, hidden, broken), *_figure(balance, hidden)),
        remedies=(_REMEDY,) if broken.any() else (),
    )


def _worst(balance: _Balance, worst: tuple[Any, ...], value: float) -> str:
    cluster, group = worst
    few = balance.excess[worst] < 0
    bound = balance.allowed[group, 0 if few else 1]
    least, missing = ("at least", "few") if few else ("at most", "many")
    return (
        f"{balance.groups[group]} is {balance.shares[worst]:.1%} of cluster {balance.clusters[cluster]}, where "
        f"{least} {bound:.1%} is allowed: {value:,.1f} people too {missing}."
    )


def _reason(balance: _Balance, broken: Mask) -> str:
    text = "These are counts of the rows at hand, which have no sampling error."
    if not broken.any():
        return f"{text} For new people the shares have the intervals shown."
    low, high = balance.interval()
    beyond = int((broken & ((low > balance.allowed[:, 1]) | (high < balance.allowed[:, 0]))).sum())
    if beyond == broken.sum():
        return f"{text} The whole interval for new people of the same kind lies beyond the bounds, too."
    return (
        f"{text} For new people of the same kind, {beyond} of the {int(broken.sum())} lie beyond their bounds with "
        "their whole interval; for the others that may be chance."
    )


def _table(balance: _Balance, hidden: Mask, broken: Mask) -> Table:
    low, high = balance.interval()
    shares, excess = balance.shares, balance.excess
    order = [tuple(pair) for pair in np.argwhere(np.ones_like(hidden))]
    order.sort(key=lambda at: -abs(excess[at]))
    rows: list[tuple[Cell, ...]] = []
    for at in order[:_SHOWN_ROWS]:
        figures: tuple[Cell, ...] = (
            int(balance.counts[at]),
            float(shares[at]),
            (float(low[at]), float(high[at])),
            float(excess[at]),
            bool(broken[at]),
        )
        if hidden[at]:
            figures = (SUPPRESSED,) * len(figures)
        cluster, group = at
        allowed = (float(balance.allowed[group, 0]), float(balance.allowed[group, 1]))
        rows.append((balance.clusters[cluster], balance.groups[group], *figures[:3], allowed, *figures[3:]))
    left = len(order) - len(rows)
    return Table(
        f"Shares of {balance.attribute} by cluster",
        (
            Column("cluster", "text"),
            Column("group", "text"),
            Column("n", "count", "people of the group in the cluster"),
            Column("share", "percent", "of the cluster"),
            Column("95 % interval, jointly", "interval", "for new people of the same kind"),
            Column("allowed", "interval"),
            Column("people beyond", "number", "negative: too few"),
            Column("broken", "text"),
        ),
        tuple(rows),
        note="The worst come first." + (f" {left:,} more are not shown." if left else ""),
    )


def _figure(balance: _Balance, hidden: Mask) -> tuple[Figure, ...]:
    if len(balance.clusters) > _SHOWN_CLUSTERS or len(balance.groups) > _SHOWN_GROUPS:
        return ()
    shares = balance.shares
    overall = balance.counts.sum(axis=0) / balance.counts.sum()
    series = tuple(
        Series(
            label,
            tuple(balance.clusters),
            tuple(None if hidden[c, g] else float(shares[c, g]) for c in range(len(balance.clusters))),
        )
        for g, label in enumerate(balance.groups)
    )
    lines = tuple(Line(f"{label} in all", float(share)) for label, share in zip(balance.groups, overall, strict=True))
    return (
        Figure(
            "bars",
            f"Shares of {balance.attribute} by cluster",
            "cluster",
            "share of the cluster",
            series,
            lines,
            alt=f"Bars: the share of each group of {balance.attribute} in each cluster, beside its share of all rows.",
            percent=True,
        ),
    )
