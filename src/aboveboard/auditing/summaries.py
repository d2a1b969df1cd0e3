"""What a check needs to know of the rows, as sums that add up: of all rows at once, or of one part after another.

A check that can be streamed has three steps. ``layout(subject)`` settles, from at most 200,000 rows drawn at random,
what all parts must agree on (such as the borders of the score bins); ``summarise(part, layout)`` turns rows into sums,
and sums of parts are added with ``+``; ``judge(subject, sums, ...)`` makes findings of the sums, without any row. Its
``check`` does the same with all rows as the one part, so that both ways give the same figures.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.blocks import BLOCKS, row_blocks, scrambled
from aboveboard._stats.cells import GroupCells
from aboveboard._stats.intervals import cluster_effective_n, rate_interval, weighted_n, wilson
from aboveboard.auditing.estimates import Rate
from aboveboard.core.finding import Interval

if TYPE_CHECKING:
    from aboveboard.auditing.subject import Subject

__all__ = ["SAMPLE", "Units", "cell_rate", "drawn_positions", "effective_rows", "sample_positions"]

SAMPLE: Final = 200_000
"""How many rows are drawn at random for what cannot be told from sums: borders of bins, medians, pairs of classes."""

_SEED: Final = 20_240_601


def sample_positions(rows: int) -> NDArray[np.intp]:
    """Return the positions of the rows that are drawn, ascending: all of them where there are no more than `SAMPLE`.

    They depend on the number of rows alone.
    """
    return drawn_positions(rows, SAMPLE, _SEED)


def drawn_positions(rows: int, n: int, seed: int) -> NDArray[np.intp]:
    """Return `n` of the positions 0 to rows - 1, drawn without replacement, ascending; all where there are no more."""
    if n >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, size=n, replace=False))


@dataclass(frozen=True)
class Units:
    """What was drawn from the population, and is resampled: rows, or clusters of rows.

    Parameters
    ----------
    rows : int
    clusters : int or None
        How many clusters there are; None without any.
    ids : ndarray of int or None
        The sorted numbers of the clusters, where there are no more than `BLOCKS`: then each is a block of its own.
    """

    rows: int
    clusters: int | None = None
    ids: NDArray[Any] | None = None

    @classmethod
    def of(cls, rows: int, cluster: NDArray[Any] | None) -> "Units":
        """Return the units of all rows; `cluster` holds the number of each row's cluster (or each number once)."""
        if cluster is None:
            return cls(rows)
        ids = np.unique(cluster)
        return cls(rows, len(ids), ids if len(ids) <= BLOCKS else None)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return min(self.rows if self.clusters is None else self.clusters, BLOCKS)

    def block(self, part: "Subject") -> NDArray[np.intp]:
        """Return the block of each row of a part of the rows."""
        if part.cluster is None:
            return row_blocks(part.offset, len(part), self.rows)
        if self.ids is not None:
            return np.searchsorted(self.ids, part.cluster)
        keys = np.asarray(part.cluster).astype(np.uint64)
        return np.asarray(scrambled(keys) % np.uint64(BLOCKS), dtype=np.intp)


def cell_rate(
    cells: GroupCells, hit: NDArray[np.bool_], among: NDArray[np.bool_] | None = None, *, z: float | None = None
) -> Rate:
    """Return the share of the rows in the cells `hit` among those in the cells `among`, with its Wilson interval.

    Parameters
    ----------
    cells : GroupCells
    hit, among : boolean ndarray, broadcast to the shape of ``cells.count``
        Default of `among`: all. Cells outside `among` are no hits.
    z : float, optional
        Critical value; default that of 95 %.

    Notes
    -----
    Weights and clusters enter through the effective sample size. O(cells) time; with clusters O(clusters x cells).
    """
    shape = cells.count.shape
    inside = np.ones(shape, dtype=bool) if among is None else np.broadcast_to(among, shape)
    yes_cells = np.broadcast_to(hit, shape) & inside
    size = int(cells.count[inside].sum())
    yes, whole = float(cells.weight[yes_cells].sum()), float(cells.weight[inside].sum())
    value = yes / whole if whole > 0 else np.nan
    method = "Wilson"
    effective = float(size)
    weighted = not (np.array_equal(cells.count, cells.weight) and np.array_equal(cells.count, cells.square))
    if weighted or cells.clusters is not None:
        squares, square = float(cells.square[yes_cells].sum()), float(cells.square[inside].sum())
        effective = float(weighted_n(yes, whole - yes, squares, max(square - squares, 0.0)))
        method = "Wilson, effective sample size"
        if cells.clusters is not None and whole > 0:
            of_yes, of_all = (
                np.asarray(cells.clusters.matrix @ mask.ravel().astype(np.float64)) for mask in (yes_cells, inside)
            )
            units = int(np.count_nonzero(of_all > 0))
            variance = units / max(units - 1, 1) * float(((of_yes - value * of_all) ** 2).sum()) / whole**2
            effective = float(cluster_effective_n([value], [variance], [units], [effective])[0])
    if not size or not np.isfinite(value) or effective <= 0:
        return Rate(np.nan, size, 0.0, Interval(0.0, 1.0, method=method))
    count = min(value, 1.0) * effective
    low, high = rate_interval(count, effective) if z is None else wilson(count, effective, z=z)
    return Rate(value, size, effective, Interval(min(float(low), value), max(float(high), value), method=method))


def effective_rows(cells: GroupCells) -> float:
    """Return the number of independent, unweighted rows (or clusters) that know as much as the rows in the cells."""
    if cells.clusters is None:
        square = float(cells.square.sum())
    else:
        square = float((np.asarray(cells.clusters.matrix.sum(axis=1)) ** 2).sum())
    return float(cells.weight.sum()) ** 2 / square
