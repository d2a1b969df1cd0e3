"""Bootstrap of sums over cells: the price of a replicate is the number of cells, whatever the number of rows.

Rows that fall in one cell are interchangeable for every statistic that is a function of cell sums, so resampling rows
is the same as drawing the cell counts from a multinomial. Weighted rows: the resampled weight of a cell is the sum of
that many draws from the weights in it, drawn from the normal distribution of that mean and variance. Rows that belong
to clusters (several rows of one person): whole clusters are drawn.

How to use it::

    for counts, weights in resampled_weights(moments, 1000, rng):    # batches: (batch, cells) each
        replicates.append(statistic(weights))
    low, high = percentile_interval(np.concatenate(replicates))

References
----------
B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", Chapman and Hall, 1993.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

__all__ = [
    "CellMoments",
    "ClusterCells",
    "basic_interval",
    "max_t_critical",
    "percentile_interval",
    "resampled_weights",
    "studentised_interval",
]

Floats = NDArray[np.float64]

_BLOCKS = 2000
_BATCH = 2_000_000  # numbers held at once by a batch of replicates: 16 MB an array


@dataclass(frozen=True)
class CellMoments:
    """What the bootstrap needs to know of the rows in each cell.

    Parameters
    ----------
    count, weight, square : ndarray of float, shape (cells,)
        Number of rows, sum of their weights, sum of their squared weights.
    """

    count: Floats
    weight: Floats
    square: Floats

    @property
    def weighted(self) -> bool:
        """Whether rows have weights other than one."""
        return not (np.array_equal(self.count, self.weight) and np.array_equal(self.count, self.square))

    @property
    def mean(self) -> Floats:
        """Mean weight of the rows in each cell; 0 for an empty one."""
        return self.weight / np.maximum(self.count, 1)

    @property
    def variance(self) -> Floats:
        """Variance of the weights in each cell (divided by the count, as resampling sees it)."""
        square = self.square / np.maximum(self.count, 1)
        variance = square - self.mean**2
        return np.where(variance > 1e-13 * square, variance, 0.0)  # less is rounding


class ClusterCells:
    """The weight that each cluster has in each cell, as a sparse matrix: what a cluster bootstrap resamples.

    Parameters
    ----------
    matrix : scipy.sparse.csr_matrix, shape (clusters, cells)
    ids : ndarray, shape (clusters,)
        Sorted names of the clusters, by which partitions are merged.
    """

    def __init__(self, matrix: sparse.csr_matrix, ids: NDArray[Any]) -> None:
        self.matrix = matrix
        self.ids = ids

    @classmethod
    def from_arrays(
        cls, clusters: ArrayLike, cells: NDArray[np.intp], weights: Floats | None, n_cells: int
    ) -> "ClusterCells":
        """Sum weights (ones when None) by cluster and cell. O(n log n) time, O(n) memory."""
        ids, codes = np.unique(np.asarray(clusters), return_inverse=True)
        ones = np.ones(len(cells)) if weights is None else weights
        matrix = sparse.coo_matrix((ones, (codes.ravel(), cells)), shape=(len(ids), n_cells)).tocsr()
        return cls(matrix, ids)

    def __add__(self, other: "ClusterCells") -> "ClusterCells":
        ids = np.union1d(self.ids, other.ids)
        parts = []
        for part in (self, other):
            place = sparse.csr_matrix(
                (np.ones(len(part.ids)), (np.searchsorted(ids, part.ids), np.arange(len(part.ids)))),
                shape=(len(ids), len(part.ids)),
            )
            parts.append(place @ part.matrix)
        return ClusterCells((parts[0] + parts[1]).tocsr(), ids)

    @property
    def n_clusters(self) -> int:
        return len(self.ids)

    def resampled(self, n_replicates: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield batches of cell weights, shape (batch, cells), each row of one resample of the clusters.

        More than 2,000 clusters are first put at random into 2,000 blocks of equal numbers, and blocks are resampled:
        the variance of a sum has the same expectation, and standard errors are known to 1.6 %.

        Notes
        -----
        O(nonempty entries) time once, then O(min(clusters, 2000) x cells) per replicate.
        """
        n, cells = self.matrix.shape
        blocks = min(n, _BLOCKS)
        units = self.matrix
        if blocks < n:
            block = rng.permutation(n) % blocks
            units = sparse.csr_matrix((np.ones(n), (block, np.arange(n))), shape=(blocks, n)) @ units
        sums = units.toarray() if blocks * cells <= _BATCH else units.tocsr()
        batch = max(1, _BATCH // max(blocks, cells))
        for start in range(0, n_replicates, batch):
            size = min(batch, n_replicates - start)
            drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=size).astype(np.float64)
            yield np.asarray(drawn @ sums)


def resampled_weights(
    moments: CellMoments, n_replicates: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Yield batches ``(counts, weights)``, each of shape (batch, cells), of resampled rows.

    Exactly the row bootstrap where all weights are one. With weights, the sum of the weights of the rows drawn from a
    cell is drawn from the normal distribution of the same mean and variance, and never below zero.

    Notes
    -----
    O(nonempty cells) time per replicate; 16 MB or so of memory per array of a batch.
    """
    full = np.flatnonzero(moments.count)
    n = int(moments.count.sum())
    cells = len(moments.count)
    mean, deviation = moments.mean[full], np.sqrt(moments.variance[full])
    weighted = moments.weighted
    batch = max(1, _BATCH // max(cells, 1))
    for start in range(0, n_replicates, batch):
        size = min(batch, n_replicates - start)
        counts = np.zeros((size, cells))
        if n:
            counts[:, full] = rng.multinomial(n, moments.count[full] / n, size=size)
        if not weighted:
            yield counts, counts
            continue
        weights = np.zeros((size, cells))
        drawn = counts[:, full]
        noise = rng.standard_normal(drawn.shape)
        weights[:, full] = np.maximum(drawn * mean + np.sqrt(drawn) * deviation * noise, 0.0)
        yield counts, weights


def percentile_interval(replicates: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the central `level` of the replicates, along the first axis; those that do not exist (NaN) are left out.

    Returns
    -------
    low, high : ndarray, shape of one replicate; NaN where no replicate exists
    """
    return _quantiles(np.asarray(replicates, dtype=np.float64), level)


def basic_interval(estimate: ArrayLike, replicates: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the interval that reflects the replicates at the estimate.

    It corrects a bias that the replicates repeat (an expected calibration error is too large in a sample, and larger
    still in a resample); the percentile interval doubles it. May leave the range of the statistic: clip it there.
    """
    low, high = _quantiles(np.asarray(replicates, dtype=np.float64), level)
    twice = 2.0 * np.asarray(estimate, dtype=np.float64)
    return twice - high, twice - low


def studentised_interval(
    estimate: ArrayLike, error: ArrayLike, t_replicates: ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the bootstrap-t interval.

    Parameters
    ----------
    estimate, error : array-like
        The statistic and its standard error.
    t_replicates : array-like, shape (replicates, ...)
        ``(replicate - estimate) / standard error of that replicate``.
    """
    low, high = _quantiles(np.asarray(t_replicates, dtype=np.float64), level)
    centre, spread = np.asarray(estimate, dtype=np.float64), np.asarray(error, dtype=np.float64)
    return centre - high * spread, centre - low * spread


def max_t_critical(t_replicates: ArrayLike, level: float = 0.95) -> float:
    """Return the critical value that makes a whole family of intervals hold at once.

    Parameters
    ----------
    t_replicates : array-like, shape (replicates, family)
        Studentised deviations; members that do not exist in a replicate (NaN) do not count there.
    level : float

    Returns
    -------
    float
        The `level` quantile of the largest absolute deviation; never below that of a single normal.
    """
    from scipy.stats import norm

    largest = np.abs(np.asarray(t_replicates, dtype=np.float64))
    largest = np.where(np.isfinite(largest), largest, 0.0).max(axis=1, initial=0.0)
    floor = float(norm.ppf(0.5 + level / 2))
    return max(float(np.quantile(largest, level, method="higher")), floor) if len(largest) else floor


def _quantiles(replicates: Floats, level: float) -> tuple[Floats, Floats]:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}")
    tail = (1.0 - level) / 2.0
    exists = np.isfinite(replicates).any(axis=0)
    filled = np.where(np.isfinite(replicates) | exists, replicates, 0.0)
    low, high = np.nanquantile(np.where(np.isfinite(filled), filled, np.nan), [tail, 1.0 - tail], axis=0)
    return np.where(exists, low, np.nan), np.where(exists, high, np.nan)
