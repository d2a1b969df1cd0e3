"""Rates, means and areas under the curve, with intervals that know about weights and clusters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aboveboard._stats.intervals import cluster_effective_n, critical_z, rate_interval, weighted_n, wilson
from aboveboard.core.finding import Interval

if TYPE_CHECKING:
    from aboveboard.auditing.subject import Subject

__all__ = ["Area", "Rate", "Rows", "area_interval", "area_under_curve", "count_text", "interval_text", "percent"]

Floats = NDArray[np.float64]

_BLOCKS: Final = 2000  # the standard error of a bootstrap over so many blocks is known within 2 %


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of rows.

    Parameters
    ----------
    value : float
        NaN where there are no rows.
    n : int
        Rows that it is a share of.
    effective_n : float
        How many unweighted, independent rows would tell as much.
    interval : Interval
    """

    value: float
    n: int
    effective_n: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Area:
    """An area under the ROC curve: `value`, its standard `error`, and its `interval` where there is one."""

    value: float
    error: float
    interval: Interval | None


class Rows:
    """How the rows were drawn: with which weights, in which clusters.

    Parameters
    ----------
    n : int
    weight : ndarray of shape (n,) or None
    cluster : ndarray of int, shape (n,), or None
        Rows with one number belong together.
    """

    def __init__(self, n: int, weight: NDArray[Any] | None = None, cluster: NDArray[Any] | None = None) -> None:
        self.n = n
        self.weight = weight
        self.cluster = None if cluster is None else np.unique(cluster, return_inverse=True)[1]

    @classmethod
    def of(cls, subject: "Subject") -> "Rows":
        return cls(len(subject), subject.weight, subject.cluster)

    @property
    def clusters(self) -> int:
        """The number of clusters; of rows, where there are no clusters."""
        return self.n if self.cluster is None else int(self.cluster.max(initial=-1)) + 1

    def rate(self, hit: NDArray[Any], among: NDArray[np.bool_] | None = None, *, z: float | None = None) -> Rate:
        """Return the share of `hit` rows (among those given) with its Wilson interval.

        Parameters
        ----------
        hit : boolean ndarray of shape (n,)
        among : boolean ndarray of shape (n,), optional
        z : float, optional
            Critical value; default that of 95 %.

        Notes
        -----
        Weights and clusters enter through the effective sample size. O(n) time.
        """
        picked = hit if among is None else hit[among]
        size = len(picked)
        method = "Wilson"
        if self.weight is None and self.cluster is None:
            yes = float(np.count_nonzero(picked))
            total = effective = float(size)
            value = yes / total if size else np.nan
        else:
            weight = np.ones(self.n) if self.weight is None else self.weight
            weight = weight if among is None else weight[among]
            square = weight**2
            mask = picked.astype(bool)
            yes, total = float(weight[mask].sum()), float(weight.sum())
            value = yes / total if total > 0 else np.nan
            squares = float(square[mask].sum())
            effective = float(weighted_n(yes, total - yes, squares, max(float(square.sum()) - squares, 0.0)))
            method = "Wilson, effective sample size"
            if self.cluster is not None and total > 0:
                effective = self._clustered(mask, weight, value, among, effective)
        if not size or not np.isfinite(value) or effective <= 0:
            return Rate(np.nan, size, 0.0, Interval(0.0, 1.0, method=method))
        count = min(value, 1.0) * effective
        low, high = rate_interval(count, effective) if z is None else wilson(count, effective, z=z)
        return Rate(value, size, effective, Interval(min(float(low), value), max(float(high), value), method=method))

    def means(self, columns: NDArray[Any], replicates: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return weighted means of columns, and what they are in resamples of the rows (or clusters).

        Parameters
        ----------
        columns : ndarray of shape (n, k)
        replicates : int
        rng : numpy.random.Generator

        Returns
        -------
        means : ndarray of shape (k,)
        draws : ndarray of shape (replicates, k)

        Notes
        -----
        More than 2,000 rows (clusters) are put into 2,000 blocks at random first, and blocks are resampled: the
        variance has the same expectation and a replicate costs O(2000 k). O(n k) time to form the blocks.
        """
        units = self.clusters
        blocks = min(units, _BLOCKS)
        member = rng.permutation(units) % blocks
        block = member if self.cluster is None else member[self.cluster]
        weight = np.ones(self.n) if self.weight is None else self.weight
        sums = np.column_stack(
            [np.bincount(block, weights=weight, minlength=blocks)]
            + [np.bincount(block, weights=weight * columns[:, j], minlength=blocks) for j in range(columns.shape[1])]
        )
        total = sums.sum(axis=0)
        drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=replicates).astype(np.float64) @ sums
        scale = np.where(drawn[:, :1] > 0, drawn[:, :1], np.nan)
        return total[1:] / total[0], drawn[:, 1:] / scale

    def error(self, influence: NDArray[Any]) -> float:
        """Return the standard error of an estimate whose row-wise influence (weighted mean 0) is given."""
        weight = np.ones(self.n) if self.weight is None else self.weight
        parts = weight * influence
        if self.cluster is not None:
            parts = np.bincount(self.cluster, weights=parts)
        units = len(parts)
        if units < 2:
            return float("nan")
        return float(np.sqrt(units / (units - 1) * (parts**2).sum()) / weight.sum())

    def quantile_of_normal(self, level: float = 0.95) -> float:
        """Return the critical value: Student's for the clusters where there are any."""
        if self.cluster is None:
            return critical_z(level)
        return float(stats.t.ppf(0.5 + level / 2, max(self.clusters - 1, 1)))

    def _clustered(
        self,
        hit: NDArray[np.bool_],
        weight: NDArray[Any],
        value: float,
        among: NDArray[np.bool_] | None,
        size: float,
    ) -> float:
        assert self.cluster is not None
        cluster = self.cluster if among is None else self.cluster[among]
        parts = np.bincount(cluster, weights=weight * (hit - value))
        units = int(np.count_nonzero(np.bincount(cluster)))
        variance = units / max(units - 1, 1) * float((parts**2).sum()) / float(weight.sum()) ** 2
        return float(cluster_effective_n([value], [variance], [units], [size])[0])


def area_under_curve(score: NDArray[Any], codes: NDArray[Any], rows: Rows, classes: NDArray[Any] | None = None) -> Area:
    """Return the area under the ROC curve; for several classes the mean of one class against the rest.

    Parameters
    ----------
    score : ndarray of shape (n,) or (n, k)
    codes : ndarray of int, shape (n,)
        Class of each row; with a 1-d score 1 is the positive class.
    rows : Rows
    classes : ndarray of int, optional
        The columns of `score` to average over; default all whose class occurs.

    Returns
    -------
    Area
        The interval is that of the log odds of the area, from the influence of each row (DeLong's variance, with
        weights and clusters). Where all pairs are ordered alike it is Wilson's, for the rows of the rarer class.

    Notes
    -----
    O(k n log n) time.

    References
    ----------
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
    operating characteristic curves", Biometrics 44, 1988.
    """
    if score.ndim == 1:
        pairs = [(score, codes == 1)]
    else:
        kept = range(score.shape[1]) if classes is None else classes
        pairs = [(score[:, k], codes == k) for k in kept]
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    values, influence, rarest = [], np.zeros(rows.n), np.inf
    for column, positive in pairs:
        one, zero = float(weight[positive].sum()), float(weight[~positive].sum())
        if one <= 0 or zero <= 0:
            continue
        area, part = _placements(column, positive, weight, one, zero)
        values.append(area)
        influence += part
        rarest = min(rarest, float(np.count_nonzero(positive)), float(np.count_nonzero(~positive)))
    if not values:
        return Area(float("nan"), float("nan"), None)
    value = float(np.mean(values))
    error = rows.error(influence / len(values))
    return Area(value, error, area_interval(value, error, rarest, rows.quantile_of_normal()))


def area_interval(value: float, error: float, rarest: float, z: float) -> Interval | None:
    """Return the interval of an area from its error and a critical value; `rarest` is the size of the rarest class."""
    if 1e-9 < value < 1 - 1e-9 and np.isfinite(error) and error > 1e-12:
        half = z * error / (value * (1 - value))
        odds = np.log(value / (1 - value))
        low, high = 1 / (1 + np.exp(-(odds - half))), 1 / (1 + np.exp(-(odds + half)))
        return Interval(float(low), float(high), method="DeLong, log odds")
    if value >= 1 - 1e-9:
        return Interval(float(wilson(rarest, rarest)[0]), 1.0, method="Wilson, rarer class")
    if value <= 1e-9:
        return Interval(0.0, float(wilson(0.0, rarest)[1]), method="Wilson, rarer class")
    return None


def _placements(
    score: NDArray[Any], positive: NDArray[np.bool_], weight: NDArray[Any], one: float, zero: float
) -> tuple[float, Floats]:
    """Return the area and the influence of each row on it."""
    distinct, place = np.unique(score, return_inverse=True)
    place = place.ravel()
    size = len(distinct)
    pos = np.bincount(place, weights=weight * positive, minlength=size)
    neg = np.bincount(place, weights=weight * ~positive, minlength=size)
    below = (np.cumsum(neg) - 0.5 * neg) / zero
    above = (one - np.cumsum(pos) + 0.5 * pos) / one
    area = float((pos * below).sum() / one)
    total = one + zero
    influence = np.where(positive, total / one * (below[place] - area), total / zero * (above[place] - area))
    return area, influence


def percent(value: float, digits: int = 1) -> str:
    """Return a fraction as text: 0.123 is ``"12.3 %"``."""
    return f"{100 * value:.{digits}f} %"


def interval_text(interval: Interval | None, *, as_percent: bool = False, digits: int = 3) -> str:
    """Return ``" (95 % interval a to b)"``, or nothing without an interval."""
    if interval is None:
        return ""
    level = f"{100 * interval.level:.3g} % interval"
    if as_percent:
        return f" ({level} {100 * interval.low:.1f} to {100 * interval.high:.1f} %)"
    return f" ({level} {interval.low:.{digits}f} to {interval.high:.{digits}f})"


def count_text(count: int, min_cell: int, noun: str = "rows") -> str:
    """Return a number of people as text that does not tell a small one."""
    return f"fewer than {min_cell:,} {noun}" if 0 < count < min_cell else f"{count:,} {noun}"
