"""What group metrics need to know of the rows: sums by group, label and prediction, which add up over partitions.

`GroupCells` counts rows by group, label and prediction; every rate of a classifier is a ratio of its sums.
`GroupMeans` sums a number per row (an error, a score) by group, in bins of that number, so that means can be
resampled without the rows. Both are plain arrays: they pickle, and those of partitions add up to that of the whole.

How to use it::

    cells = GroupCells.from_arrays(group, y, prediction, weights, n_groups=3, n_labels=2)
    cells.rate(BINARY_RATES["true_positive_rate"]).rate              # shape (groups,)
    draws = cells.bootstrap(list(BINARY_RATES.values()), 1000, rng)  # (replicates, rates, groups + 1); last: everybody
    whole = cells_of_part_1 + cells_of_part_2
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard._stats.bootstrap import CellMoments, ClusterCells, resampled_weights
from aboveboard._stats.deviations import RateSums, ratio

__all__ = ["BINARY_RATES", "GroupCells", "GroupMeans", "RateSpec", "accuracy", "one_vs_rest", "value_edges"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateSpec:
    """A rate as a ratio of cells.

    Parameters
    ----------
    name : str
    numerator, denominator : ndarray of bool, shape (labels, predictions)
        Which cells count; the numerator lies within the denominator.
    """

    name: str
    numerator: NDArray[np.bool_]
    denominator: NDArray[np.bool_]


def one_vs_rest(k: int, n_classes: int) -> dict[str, RateSpec]:
    """Return the rates of class `k` against all others."""
    label = (np.arange(n_classes) == k)[:, None] & np.ones(n_classes, dtype=bool)
    predicted = label.T
    everything = np.ones((n_classes, n_classes), dtype=bool)
    return {
        "selection_rate": RateSpec("selection_rate", predicted, everything),
        "true_positive_rate": RateSpec("true_positive_rate", label & predicted, label),
        "false_positive_rate": RateSpec("false_positive_rate", ~label & predicted, ~label),
        "precision": RateSpec("precision", label & predicted, predicted),
    }


def accuracy(n_classes: int) -> RateSpec:
    """Return the rate of rows whose prediction is their label."""
    return RateSpec("accuracy", np.eye(n_classes, dtype=bool), np.ones((n_classes, n_classes), dtype=bool))


BINARY_RATES: Final[dict[str, RateSpec]] = one_vs_rest(1, 2) | {"accuracy": accuracy(2)}
"""The rates of a binary classifier, by name."""


@dataclass(frozen=True)
class GroupCells:
    """Rows by group, label and prediction; make one with `from_arrays`.

    Attributes
    ----------
    count, weight, square : ndarray of float, shape (groups, labels, predictions)
        Number of rows, sum of weights, sum of squared weights.
    clusters : ClusterCells or None
        Weights by cluster and cell, where rows come in clusters.
    """

    count: Floats
    weight: Floats
    square: Floats
    clusters: ClusterCells | None = None

    @classmethod
    def from_arrays(
        cls,
        group: ArrayLike,
        label: ArrayLike,
        prediction: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_groups: int,
        n_labels: int,
        n_predictions: int | None = None,
        clusters: ArrayLike | None = None,
    ) -> "GroupCells":
        """Count rows; one pass.

        Parameters
        ----------
        group, label, prediction : array-like of int, shape (n,)
            Codes from 0.
        weights : array-like of float >= 0, shape (n,), optional
        n_groups, n_labels, n_predictions : int
            `n_predictions` defaults to `n_labels`.
        clusters : array-like, shape (n,), optional
            Which rows belong together.

        Raises
        ------
        ValueError
            Unequal lengths, or codes out of range.

        Notes
        -----
        O(n) time (O(n log n) with clusters), 8 bytes a row of working memory.
        """
        shape = (n_groups, n_labels, n_predictions or n_labels)
        cell = np.zeros(np.shape(np.asarray(group)), dtype=np.intp)
        for codes, size in zip((group, label, prediction), shape, strict=True):
            code = np.asarray(codes)
            if code.shape != cell.shape:
                raise ValueError(f"group, label and prediction must be equally long; got {cell.shape} and {code.shape}")
            if code.size and not (code.min() >= 0 and code.max() < size):
                raise ValueError(f"codes must lie in [0, {size}); got {code.min()} to {code.max()}")
            cell *= size
            cell += code.astype(np.intp, copy=False)
        cells = int(np.prod(shape))
        w = None if weights is None else np.asarray(weights, dtype=np.float64)

        def total(values: Floats | None) -> Floats:
            return np.bincount(cell, weights=values, minlength=cells).astype(np.float64).reshape(shape)

        count = total(None)
        return cls(
            count=count,
            weight=count if w is None else total(w),
            square=count if w is None else total(w * w),
            clusters=None if clusters is None else ClusterCells.from_arrays(clusters, cell, w, cells),
        )

    def __add__(self, other: "GroupCells") -> "GroupCells":
        """Return the cells of the rows of both."""
        if self.count.shape != other.count.shape:
            raise ValueError(f"cells of shapes {self.count.shape} and {other.count.shape} do not add up")
        if (self.clusters is None) != (other.clusters is None):
            raise ValueError("one of the two knows clusters and the other does not")
        clusters = None if self.clusters is None or other.clusters is None else self.clusters + other.clusters
        return GroupCells(self.count + other.count, self.weight + other.weight, self.square + other.square, clusters)

    def regroup(self, groups: ArrayLike, n_groups: int) -> "GroupCells":
        """Return the cells of coarser groups: old group g becomes part of ``groups[g]``."""
        codes = np.asarray(groups, dtype=np.intp)
        sums = {name: _placed(getattr(self, name), codes, n_groups) for name in ("count", "weight", "square")}
        clusters = self.clusters
        if clusters is not None:
            inner = int(np.prod(self.count.shape[1:]))
            member = sparse.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)), (len(codes), n_groups))
            place = sparse.kron(member, sparse.identity(inner, format="csr"))
            clusters = ClusterCells((clusters.matrix @ place).tocsr(), clusters.ids)
        return replace(self, **sums, clusters=clusters)

    def pooled(self) -> "GroupCells":
        """Return the cells of everybody as one group."""
        return self.regroup(np.zeros(len(self.count), dtype=np.intp), 1)

    def rows(self, cells: NDArray[np.bool_]) -> Floats:
        """Return the number of rows per group in the cells marked, shape (groups,)."""
        return np.asarray(self.count[:, cells].sum(axis=1))

    def rate(self, spec: RateSpec) -> RateSums:
        """Return what a rate rests on, per group."""
        rest = spec.denominator & ~spec.numerator
        yes, no, yes_square, no_square = (
            sums[:, cells].sum(axis=1) for sums in (self.weight, self.square) for cells in (spec.numerator, rest)
        )
        if self.clusters is None:
            return RateSums(yes, no, yes_square, no_square)
        identity = sparse.identity(len(self.count), format="csr")
        by_group = []
        for cells in (spec.numerator, spec.denominator):
            column = sparse.csr_matrix(cells.reshape(-1, 1).astype(np.float64))
            by_group.append((self.clusters.matrix @ sparse.kron(identity, column)).tocsr())
        return RateSums(yes, no, yes_square, no_square, *by_group)

    def bootstrap(self, specs: Sequence[RateSpec], n_replicates: int, rng: np.random.Generator) -> Floats:
        """Recompute rates on resampled rows (or clusters), all groups together.

        Returns
        -------
        ndarray, shape (replicates, rates, groups + 1)
            The last group is everybody; NaN where a rate does not exist in a replicate.

        Notes
        -----
        O(cells) time per replicate, whatever the number of rows; with clusters O(nonempty cluster x cell sums).
        """
        shape = self.count.shape
        cells = int(np.prod(shape[1:]))
        masks = np.stack([m.ravel().astype(np.float64) for s in specs for m in (s.numerator, s.denominator)], axis=1)
        out = np.empty((n_replicates, len(specs), shape[0] + 1))
        start = 0
        if self.clusters is not None:
            batches = self.clusters.resampled(n_replicates, rng)
        else:
            moments = CellMoments(self.count.ravel(), self.weight.ravel(), self.square.ravel())
            batches = (weights for _, weights in resampled_weights(moments, n_replicates, rng))
        for weights in batches:
            sums = weights.reshape(-1, shape[0], cells) @ masks  # (batch, groups, 2 x rates)
            sums = np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)
            stop = start + len(sums)
            out[start:stop] = ratio(sums[..., 0::2], sums[..., 1::2]).transpose(0, 2, 1)
            start = stop
        return out


def value_edges(values: ArrayLike, bins: int = 64) -> Floats:
    """Return upper edges for `GroupMeans`: equal numbers of rows in the middle, single rows far out in both tails.

    Every distinct value has its own bin where there are no more than that.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    distinct = np.unique(ordered)
    if len(distinct) <= bins:
        return distinct
    ranks = np.ceil(n * np.arange(1, bins + 1) / bins).astype(np.intp) - 1
    tail = 2 ** np.arange(int(np.log2(max(n // bins, 1))) + 1) - 1
    return np.unique(ordered[np.concatenate([ranks, tail, n - 1 - tail])])


@dataclass(frozen=True)
class GroupMeans:
    """A number per row, summed by group and by bin of that number; make one with `from_arrays`.

    Attributes
    ----------
    edges : ndarray, shape (bins,)
        Upper edges of all bins but the last, which takes what lies above.
    count, weight, square : ndarray, shape (groups, bins + 1)
        Rows, sum of weights w, sum of w^2.
    value, value_square : ndarray
        Sums of w v and w v^2.
    square_value, square_value_square : ndarray
        Sums of w^2 v and w^2 v^2.
    cluster_weight, cluster_value : ClusterCells or None
        Sums of w and of w v by cluster and group.
    """

    edges: Floats
    count: Floats
    weight: Floats
    square: Floats
    value: Floats
    value_square: Floats
    square_value: Floats
    square_value_square: Floats
    cluster_weight: ClusterCells | None = None
    cluster_value: ClusterCells | None = None

    @classmethod
    def from_arrays(
        cls,
        group: ArrayLike,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_groups: int,
        edges: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> "GroupMeans":
        """Sum `values` by group.

        Parameters
        ----------
        group : array-like of int in [0, n_groups), shape (n,)
        values : array-like of float, shape (n,)
            Finite.
        weights, clusters : array-like, shape (n,), optional
        n_groups : int
        edges : array-like, optional
            Default: `value_edges` of the values. Give the same ones where parts are to be added.

        Notes
        -----
        O(n log n) time, O(n) working memory.
        """
        code, v = np.asarray(group, dtype=np.intp), np.asarray(values, dtype=np.float64)
        if code.shape != v.shape or v.ndim != 1:
            raise ValueError(f"group and values must be equally long; got {code.shape} and {v.shape}")
        if not np.isfinite(v).all():
            raise ValueError("values must be finite")
        upper = value_edges(v) if edges is None else np.asarray(edges, dtype=np.float64)
        shape = (n_groups, len(upper) + 1)
        cell = code * shape[1] + np.searchsorted(upper, v, side="left")
        w = np.ones(len(v)) if weights is None else np.asarray(weights, dtype=np.float64)

        def total(numbers: Floats | None) -> Floats:
            flat = np.bincount(cell, weights=numbers, minlength=shape[0] * shape[1])
            return flat.astype(np.float64).reshape(shape)

        wv = w * v
        return cls(
            edges=upper,
            count=total(None),
            weight=total(w),
            square=total(w * w),
            value=total(wv),
            value_square=total(wv * v),
            square_value=total(w * wv),
            square_value_square=total(wv * wv),
            cluster_weight=None if clusters is None else ClusterCells.from_arrays(clusters, code, w, n_groups),
            cluster_value=None if clusters is None else ClusterCells.from_arrays(clusters, code, wv, n_groups),
        )

    def __add__(self, other: "GroupMeans") -> "GroupMeans":
        """Return the sums of the rows of both."""
        if not np.array_equal(self.edges, other.edges) or self.count.shape != other.count.shape:
            raise ValueError("only sums with the same edges and groups add up: pass edges=")
        if (self.cluster_weight is None) != (other.cluster_weight is None):
            raise ValueError("one of the two knows clusters and the other does not")
        added = {name: getattr(self, name) + getattr(other, name) for name in _MEAN_SUMS}
        if self.cluster_weight is not None:
            for name in ("cluster_weight", "cluster_value"):
                added[name] = getattr(self, name) + getattr(other, name)
        return replace(self, **added)

    def regroup(self, groups: ArrayLike, n_groups: int) -> "GroupMeans":
        """Return the sums of other groups: old group g becomes part of ``groups[g]``."""
        codes = np.asarray(groups, dtype=np.intp)
        changed: dict[str, object] = {name: _placed(getattr(self, name), codes, n_groups) for name in _MEAN_SUMS}
        for name in ("cluster_weight", "cluster_value"):
            own = getattr(self, name)
            if own is not None:
                place = sparse.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)), (len(codes), n_groups))
                changed[name] = ClusterCells((own.matrix @ place).tocsr(), own.ids)
        return replace(self, **changed)  # type: ignore[arg-type]

    def scaled(self, factor: float) -> "GroupMeans":
        """Return the sums of the values times `factor` > 0."""
        powers = {"edges": 1, "value": 1, "value_square": 2, "square_value": 1, "square_value_square": 2}
        changed: dict[str, object] = {name: getattr(self, name) * factor**power for name, power in powers.items()}
        if self.cluster_value is not None:
            changed["cluster_value"] = ClusterCells(self.cluster_value.matrix * factor, self.cluster_value.ids)
        return replace(self, **changed)  # type: ignore[arg-type]

    @property
    def rows(self) -> Floats:
        """Number of rows per group."""
        return np.asarray(self.count.sum(axis=1))

    @property
    def mean(self) -> Floats:
        """Weighted mean per group; NaN where there is no row."""
        return ratio(self.value.sum(axis=1), self.weight.sum(axis=1))


def _placed(sums: Floats, groups: NDArray[np.intp], n_groups: int) -> Floats:
    """Add the rows of `sums` (one per old group) up by new group."""
    placed = np.zeros((n_groups, *sums.shape[1:]))
    np.add.at(placed, groups, sums)
    return placed


_MEAN_SUMS: Final = ("count", "weight", "square", "value", "value_square", "square_value", "square_value_square")
