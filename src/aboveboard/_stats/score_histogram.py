"""What AUC, calibration error, Brier score and log loss need to know of a million scores, in a thousand bins.

A `ScoreHistogram` counts rows (and sums weights, scores and losses) by group, score bin and label. It is built in one
pass, histograms of partitions add up to the histogram of the whole, and the price of a bootstrap replicate is the
number of bins.

How to use it::

    h = ScoreHistogram.from_arrays(score, y, weights=None, group=None)          # y in {0, 1}, score in [0, 1]
    h.auc(), h.ece(n_bins=15), h.brier(), h.log_loss()                          # a float; shape (groups,) with group=
    table = h.reliability(10)                                                   # mean score and observed rate per bin
    draws = h.bootstrap(["auc", "ece"], 1000, np.random.default_rng(0))         # (replicates, statistics[, groups])
    low, high = percentile_interval(draws[:, 0])                                # from aboveboard._stats.bootstrap
    low, high = basic_interval(h.ece(), draws[:, 1])                            # ece is biased upwards: reflect it
    null = h.ece_if_calibrated(1000, rng)                                       # what a calibrated model would show
    whole = part_1 + part_2                # same edges: pass edges=score_grid() or edges=part_1.edges to from_arrays

Give ``clusters=`` where several rows belong to one person: whole persons are resampled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from aboveboard._stats.bootstrap import CellMoments, ClusterCells, resampled_weights

__all__ = ["STATISTICS", "Reliability", "ScoreHistogram", "score_edges", "score_grid"]

Floats = NDArray[np.float64]

_CALIBRATION_BINS: Final = (10, 15, 20)  # calibration errors in so many bins (or a divisor) are exact


class Reliability(NamedTuple):
    """A reliability curve: one entry per equal-width bin that holds rows, shapes (bins,)."""

    low: Floats
    high: Floats
    n: Floats
    weight: Floats
    mean_score: Floats
    observed_rate: Floats
    effective_n: Floats


def score_grid(bins: int = 2000) -> Floats:
    """Return upper edges that do not depend on data, for histograms that are to be merged.

    Half of them are evenly spaced, half evenly spaced in log odds, so that scores near 0 and near 1 are told apart.
    """
    even = np.linspace(0.0, 1.0, bins // 2 + 1)[1:]
    odds = expit(np.linspace(-18.0, 18.0, bins // 2))
    return _with_calibration_edges(np.concatenate([[0.0], even, odds]))


def score_edges(score: ArrayLike, bins: int = 1000) -> Floats:
    """Return upper edges that suit the scores of a sample, for histograms of scores like them.

    Each distinct score has its own bin where there are no more than `bins`. Else bins hold equal numbers of the sample,
    and end at multiples of 1/10, 1/15 and 1/20 and at 500 places evenly spaced in log odds besides, so that no bin is
    wide in log odds either.
    """
    s = np.asarray(score, dtype=np.float64)
    edges = _edges(s, bins)
    if len(edges) <= bins:
        return edges
    odds = expit(np.linspace(-14.0, 14.0, 500))
    return np.unique(np.concatenate([edges, odds[(odds > s.min()) & (odds < s.max())]]))


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts and sums by group, score bin and label; make one with `from_arrays`.

    Attributes
    ----------
    edges : ndarray, shape (bins,)
        Upper edges, increasing, the last one 1; bin b holds scores in (edges[b-1], edges[b]].
    count, weight, square : ndarray, shape (groups, bins, 2)
        Rows, sum of weights, sum of squared weights; the last axis is the label.
    score, score_square : ndarray, shape (groups, bins, 2)
        Sums of weight x score and weight x score^2.
    loss, loss_square, loss_weight : ndarray, shape (groups, bins, 2)
        With l the log loss of a row and w its weight: sums of w l, (w l)^2 and w^2 l.
    grouped : bool
        Whether results have an axis for groups.
    clusters : ClusterCells or None
    """

    edges: Floats
    count: Floats
    weight: Floats
    square: Floats
    score: Floats
    score_square: Floats
    loss: Floats
    loss_square: Floats
    loss_weight: Floats
    grouped: bool = False
    clusters: ClusterCells | None = None

    @classmethod
    def from_arrays(
        cls,
        score: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        bins: int = 1000,
        group: ArrayLike | None = None,
        *,
        n_groups: int | None = None,
        edges: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> "ScoreHistogram":
        """Build the histogram.

        Parameters
        ----------
        score : array-like of float in [0, 1], shape (n,)
        y : array-like of {0, 1}, shape (n,)
        weights : array-like of float >= 0, shape (n,), optional
        bins : int
            Where there are more distinct scores than that, bins hold equal numbers of rows (and end at multiples of
            1/10, 1/15 and 1/20); otherwise each distinct score has its own bin and every statistic is exact.
        group : array-like of int in [0, n_groups), shape (n,), optional
        n_groups : int, optional
            Default: the largest group + 1.
        edges : array-like, optional
            Upper edges to use instead, for histograms that are to be added.
        clusters : array-like, shape (n,), optional
            Which rows belong together.

        Raises
        ------
        ValueError
            Unequal lengths, scores outside [0, 1], labels other than 0 and 1.

        Notes
        -----
        O(n log n) time, O(n) working memory, O(groups x bins) kept.
        """
        s = np.ascontiguousarray(score, dtype=np.float64)
        label = np.asarray(y)
        if s.ndim != 1 or label.shape != s.shape:
            raise ValueError(f"score and y must be one-dimensional and equally long; got {s.shape} and {label.shape}")
        if len(s) and not (s.min() >= 0.0 and s.max() <= 1.0):
            raise ValueError(f"scores must lie in [0, 1]; got values from {s.min()} to {s.max()}")
        positive = label.astype(np.intp)
        if len(s) and (positive.min() < 0 or positive.max() > 1 or not np.array_equal(positive, label)):
            raise ValueError("labels must be 0 or 1")
        upper = _edges(s, bins) if edges is None else np.asarray(edges, dtype=np.float64)
        n_bins = len(upper)
        cell = 2 * np.searchsorted(upper, s, side="left") + positive
        if group is not None:
            codes = np.asarray(group, dtype=np.intp)
            n_groups = int(codes.max(initial=-1)) + 1 if n_groups is None else n_groups
            cell += 2 * n_bins * codes
        shape = (1 if group is None else int(n_groups or 0), n_bins, 2)
        size = int(np.prod(shape))

        def total(values: Floats | None) -> Floats:
            return np.bincount(cell, weights=values, minlength=size).astype(np.float64).reshape(shape)

        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        loss = -np.log(np.maximum(np.where(positive == 1, s, 1.0 - s), np.finfo(np.float64).eps))
        count = total(None)
        ws = s if w is None else w * s
        wl = loss if w is None else w * loss
        return cls(
            edges=upper,
            count=count,
            weight=count if w is None else total(w),
            square=count if w is None else total(w * w),
            score=total(ws),
            score_square=total(ws * s),
            loss=(sum_loss := total(wl)),
            loss_square=total(wl * wl),
            loss_weight=sum_loss if w is None else total(w * wl),
            grouped=group is not None,
            clusters=None if clusters is None else ClusterCells.from_arrays(clusters, cell, w, size),
        )

    def __add__(self, other: "ScoreHistogram") -> "ScoreHistogram":
        """Return the histogram of the rows of both; they must have the same edges and groups."""
        if not np.array_equal(self.edges, other.edges) or self.count.shape != other.count.shape:
            raise ValueError("only histograms with the same edges and groups add up: pass edges= and n_groups=")
        if (self.clusters is None) != (other.clusters is None):
            raise ValueError("one of the histograms knows clusters and the other does not")
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        clusters = None if self.clusters is None or other.clusters is None else self.clusters + other.clusters
        return replace(self, **sums, clusters=clusters)

    def pooled(self) -> "ScoreHistogram":
        """Return the histogram of all groups together."""
        sums = {name: getattr(self, name).sum(axis=0, keepdims=True) for name in _SUMS}
        clusters = self.clusters
        if clusters is not None:
            groups, bins, _ = self.count.shape
            folded = sum(clusters.matrix[:, g * 2 * bins : (g + 1) * 2 * bins] for g in range(groups))
            clusters = ClusterCells(folded.tocsr(), clusters.ids)
        return replace(self, **sums, clusters=clusters, grouped=False)

    @property
    def n(self) -> Floats | int:
        """Number of rows, per group where grouped."""
        rows = self.count.sum(axis=(1, 2))
        return np.asarray(rows, dtype=np.float64) if self.grouped else int(rows[0])

    def statistic(self, name: str, **options: int) -> Floats | float:
        """Return one of `STATISTICS` by name; NaN where it does not exist (one label, no rows)."""
        value = STATISTICS[name](self, self.weight, self.loss, **options)
        return value if self.grouped else float(value[0])

    def auc(self) -> Floats | float:
        """Area under the ROC curve, ties counted as half; see `auc_resolution` for what binning can change."""
        return self.statistic("auc")

    def auc_resolution(self) -> Floats | float:
        """Return the most by which binning can have moved the AUC; 0 where each distinct score has its own bin."""
        share = self.weight / np.maximum(self.weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        cells = self.count.sum(axis=2)
        mean = self.score.sum(axis=2) / np.maximum(self.weight.sum(axis=2), np.finfo(float).tiny)
        spread = self.score_square.sum(axis=2) - mean * self.score.sum(axis=2)
        mixed = (cells > 1) & (spread > 1e-12 * np.maximum(self.score_square.sum(axis=2), np.finfo(float).tiny))
        bound = 0.5 * (share[..., 0] * share[..., 1] * mixed).sum(axis=1)
        return bound if self.grouped else float(bound[0])

    def average_precision(self) -> Floats | float:
        """Area under the precision-recall curve as a sum over score bins, from the top."""
        return self.statistic("average_precision")

    def ece(self, n_bins: int = 15) -> Floats | float:
        """Expected calibration error: mean over equal-width bins of abs(observed rate - mean score), by weight.

        Exact where `n_bins` divides 10, 15 or 20, or each distinct score has its own bin; else score bins across a
        border count where they end. Biased upwards in small samples: compare with `ece_if_calibrated`.
        """
        return self.statistic("ece", n_bins=n_bins)

    def brier(self) -> Floats | float:
        """Mean squared difference of score and label."""
        return self.statistic("brier")

    def log_loss(self) -> Floats | float:
        """Mean negative log likelihood in nats; scores are kept 2.2e-16 away from the wrong certainty."""
        return self.statistic("log_loss")

    def base_rate(self) -> Floats | float:
        """Share of positive labels."""
        return self.statistic("base_rate")

    def calibration_gap(self) -> Floats | float:
        """Mean score minus observed rate: above 0 where scores promise more positives than there are."""
        return self.statistic("calibration_gap")

    def reliability(self, n_bins: int = 15) -> Reliability:
        """Return the reliability curve of all rows in equal-width bins."""
        place = self._calibration_bins(n_bins)
        pooled = self.pooled()

        def by_bin(cells: Floats) -> Floats:
            return np.bincount(place, weights=cells, minlength=n_bins).astype(np.float64)

        count, weight, square = (by_bin(a[0].sum(axis=1)) for a in (pooled.count, pooled.weight, pooled.square))
        keep = weight > 0
        borders = np.linspace(0.0, 1.0, n_bins + 1)
        return Reliability(
            low=borders[:-1][keep],
            high=borders[1:][keep],
            n=count[keep],
            weight=weight[keep],
            mean_score=by_bin(pooled.score[0].sum(axis=1))[keep] / weight[keep],
            observed_rate=by_bin(pooled.weight[0, :, 1])[keep] / weight[keep],
            effective_n=weight[keep] ** 2 / square[keep],
        )

    def bootstrap(
        self,
        statistics: Sequence[str],
        n_replicates: int,
        rng: np.random.Generator,
        *,
        n_bins: int = 15,
    ) -> Floats:
        """Recompute statistics on resampled rows (each group by itself) or resampled clusters.

        Parameters
        ----------
        statistics : sequence of str
            Names in `STATISTICS`.
        n_replicates : int
        rng : numpy.random.Generator
        n_bins : int
            For ``"ece"``.

        Returns
        -------
        ndarray, shape (replicates, statistics), or (replicates, statistics, groups) where grouped

        Notes
        -----
        O(groups x bins) time per replicate; with clusters O(nonempty cluster x bin cells).
        """
        groups = self.count.shape[0]
        draws = np.empty((n_replicates, len(statistics), groups))
        if self.clusters is not None:
            mean_loss = self.loss / np.maximum(self.weight, np.finfo(float).tiny)
            start = 0
            for cells in self.clusters.resampled(n_replicates, rng):
                weight = cells.reshape(-1, *self.count.shape)
                stop = start + len(weight)
                self._fill(draws[start:stop], statistics, weight, weight * mean_loss, n_bins)
                start = stop
            return draws if self.grouped else draws[:, :, 0]
        for g in range(groups):
            one = self._group(g)
            start = 0
            moments = CellMoments(one.count.ravel(), one.weight.ravel(), one.square.ravel())
            for counts, sums in resampled_weights(moments, n_replicates, rng):
                weight = sums.reshape(-1, *one.count.shape)
                stop = start + len(weight)
                loss = one._resampled_loss(counts, sums, rng) if "log_loss" in statistics else weight
                one._fill(draws[start:stop, :, g : g + 1], statistics, weight, loss, n_bins)
                start = stop
        return draws if self.grouped else draws[:, :, 0]

    def ece_if_calibrated(self, n_replicates: int, rng: np.random.Generator, *, n_bins: int = 15) -> Floats:
        """Draw what the expected calibration error of so many rows would be if every score were true.

        Returns
        -------
        ndarray, shape (replicates,), or (replicates, groups) where grouped
        """
        count, weight = self.count.sum(axis=2), self.weight.sum(axis=2)
        mean = np.clip(self.score.sum(axis=2) / np.maximum(weight, np.finfo(float).tiny), 0.0, 1.0)
        # the noise of a weighted bin: that many rows of equal weight which give the same effective sample size
        effective = np.maximum(np.rint(weight**2 / np.maximum(self.square.sum(axis=2), np.finfo(float).tiny)), 0)
        trials = np.where(count > 0, np.maximum(effective, 1), 0).astype(np.int64)
        rate = rng.binomial(trials, mean, size=(n_replicates, *mean.shape)) / np.maximum(trials, 1)
        member = np.eye(n_bins)[self._calibration_bins(n_bins)]
        gap = np.abs(((rate - mean) * weight) @ member).sum(axis=-1)
        value: Floats = gap / np.maximum(weight.sum(axis=1), np.finfo(float).tiny)
        return value if self.grouped else value[:, 0]

    def _fill(self, out: Floats, statistics: Sequence[str], weight: Floats, loss: Floats, n_bins: int) -> None:
        for i, name in enumerate(statistics):
            options = {"n_bins": n_bins} if name == "ece" else {}
            out[:, i] = STATISTICS[name](self, weight, loss, **options)

    def _group(self, g: int) -> "ScoreHistogram":
        return replace(self, **{name: getattr(self, name)[g : g + 1] for name in _SUMS}, grouped=False)

    def _resampled_loss(self, counts: Floats, sums: Floats, rng: np.random.Generator) -> Floats:
        """Draw the loss of each cell given its resampled rows; losses in the outermost bins differ widely."""
        n = np.maximum(self.count.ravel(), 1)
        mean_w, mean_l = self.weight.ravel() / n, self.loss.ravel() / n
        var_w = np.maximum(self.square.ravel() / n - mean_w**2, 0.0)
        var_l = np.maximum(self.loss_square.ravel() / n - mean_l**2, 0.0)
        cov = self.loss_weight.ravel() / n - mean_w * mean_l
        slope = np.where(var_w > 1e-12 * mean_w**2, cov / np.maximum(var_w, np.finfo(float).tiny), 0.0)
        rest = np.sqrt(np.maximum(var_l - slope**2 * var_w, 0.0))
        loss = counts * mean_l + slope * (sums - counts * mean_w)
        loss += np.sqrt(counts) * rest * rng.standard_normal(counts.shape)
        return np.asarray(np.maximum(loss, 0.0).reshape(-1, *self.count.shape))

    def _calibration_bins(self, n_bins: int) -> NDArray[np.intp]:
        return np.searchsorted(np.linspace(0.0, 1.0, n_bins + 1)[1:-1], self.edges, side="left")

    @property
    def _mean_score(self) -> Floats:
        return self.score / np.maximum(self.weight, np.finfo(float).tiny)


_SUMS: Final = ("count", "weight", "square", "score", "score_square", "loss", "loss_square", "loss_weight")


def _edges(score: Floats, bins: int) -> Floats:
    ordered = np.sort(score)
    n = len(ordered)
    distinct = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if n else ordered
    if len(distinct) <= bins:
        return distinct if n and distinct[-1] == 1.0 else np.append(distinct, 1.0)
    last = np.ceil(n * np.arange(1, bins + 1) / bins).astype(np.intp) - 1
    return _with_calibration_edges(ordered[last])


def _with_calibration_edges(edges: Floats) -> Floats:
    return np.unique(np.concatenate([edges, *(np.linspace(0.0, 1.0, k + 1)[1:] for k in _CALIBRATION_BINS)]))


# --- statistics of cell weights (..., groups, bins, 2) and losses of the same shape; results (..., groups) ------------


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def _auc(_: ScoreHistogram, weight: Floats, _loss: Floats) -> Floats:
    negative, positive = weight[..., 0], weight[..., 1]
    below = np.cumsum(negative, axis=-1)
    total = below[..., -1] * positive.sum(axis=-1)
    return _ratio(np.einsum("...b,...b->...", positive, below - 0.5 * negative), total)


def _average_precision(_: ScoreHistogram, weight: Floats, _loss: Floats) -> Floats:
    positive = weight[..., ::-1, 1]
    hits, taken = np.cumsum(positive, axis=-1), np.cumsum(weight.sum(axis=-1)[..., ::-1], axis=-1)
    precision = np.divide(hits, taken, out=np.zeros_like(hits), where=taken > 0)
    return _ratio(np.einsum("...b,...b->...", positive, precision), hits[..., -1])


def _ece(h: ScoreHistogram, weight: Floats, _loss: Floats, n_bins: int = 15) -> Floats:
    mean = h._mean_score
    gap = weight[..., 1] * (1.0 - mean[..., 1]) - weight[..., 0] * mean[..., 0]
    member = np.eye(n_bins)[h._calibration_bins(n_bins)]
    return _ratio(np.abs(gap @ member).sum(axis=-1), weight.sum(axis=(-2, -1)))


def _brier(h: ScoreHistogram, weight: Floats, _loss: Floats) -> Floats:
    scale = np.maximum(h.weight, np.finfo(float).tiny)
    label = np.array([0.0, 1.0])
    square = h.score_square / scale - 2.0 * label * h._mean_score + label
    return _ratio(np.einsum("...bl,...bl->...", weight, square), weight.sum(axis=(-2, -1)))


def _log_loss(_: ScoreHistogram, weight: Floats, loss: Floats) -> Floats:
    return _ratio(loss.sum(axis=(-2, -1)), weight.sum(axis=(-2, -1)))


def _base_rate(_: ScoreHistogram, weight: Floats, _loss: Floats) -> Floats:
    return _ratio(weight[..., 1].sum(axis=-1), weight.sum(axis=(-2, -1)))


def _mean_score(h: ScoreHistogram, weight: Floats, _loss: Floats) -> Floats:
    return _ratio(np.einsum("...bl,...bl->...", weight, h._mean_score), weight.sum(axis=(-2, -1)))


def _calibration_gap(h: ScoreHistogram, weight: Floats, loss: Floats) -> Floats:
    return _mean_score(h, weight, loss) - _base_rate(h, weight, loss)


STATISTICS: Final[dict[str, Callable[..., Floats]]] = {
    "auc": _auc,
    "average_precision": _average_precision,
    "ece": _ece,
    "brier": _brier,
    "log_loss": _log_loss,
    "base_rate": _base_rate,
    "mean_score": _mean_score,
    "calibration_gap": _calibration_gap,
}
"""Statistics of a score histogram, by name."""
