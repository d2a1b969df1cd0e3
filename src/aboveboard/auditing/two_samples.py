"""Old rows against new ones: how far two samples of one column lie apart, with bounds that hold whatever they are.

One scale for columns of every kind, the *share of rows that moved*:

- numbers: the largest change in the share of rows at or below any value (Kolmogorov and Smirnov's distance);
- categories: the least share of the rows that must change level (the total variation distance).

Both are the largest change in the probability of a set, over all half lines and over all sets of levels. The lower
bound subtracts what chance may add to that largest change at the level asked for: the inequality of Dvoretzky, Kiefer
and Wolfowitz for half lines; the expected distance of two samples of one population, plus McDiarmid's inequality, for
levels. The upper bound adds what chance may take from the one set that changed most, less what chance adds at least in
the case of levels. So the lower bound errs on the side of saying nothing, and a verdict against a limit depends on how
much changed, not on how many rows there are.

Where many things are compared, the ends towards no change must hold for all at once: an alarm should come by chance
nowhere. The other ends need not, because *ok* asks for everything to lie within (an intersection-union test: R. L.
Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, 1982).

Weights and clusters enter through the variance of the difference; a cluster that has rows in both samples ties them.

References
----------
F. Wei, R. M. Dudley, "Two-sample Dvoretzky-Kiefer-Wolfowitz inequalities", Statistics and Probability Letters 82, 2012.
C. McDiarmid, "On the method of bounded differences", Surveys in Combinatorics, 1989.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, stats

from aboveboard._stats.intervals import mover, wilson
from aboveboard.auditing.estimates import Rows
from aboveboard.core.finding import Interval

if TYPE_CHECKING:
    from aboveboard.auditing.subject import Subject

__all__ = ["LevelShift", "NumberShift", "RateChange", "TwoSamples"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TAIL: Final = 0.025
_NOTHING: Final = 1e-15
_GRID: Final = 32  # places at which the variance of a distribution function is looked up


@dataclass(frozen=True, slots=True)
class RateChange:
    """A share of the new rows minus that of the old, with its interval."""

    new: float
    old: float
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class NumberShift:
    """The largest change in the share of rows at or below a value.

    Parameters
    ----------
    value : float
        The distance.
    interval : Interval
    at : float
        Where it is largest.
    new_below, old_below : float
        Shares of rows at or below that value.
    """

    value: float
    interval: Interval
    at: float
    new_below: float
    old_below: float


@dataclass(frozen=True, slots=True)
class LevelShift:
    """The least share of rows that must change level.

    Parameters
    ----------
    value : float
        The distance, less what chance adds to it.
    interval : Interval
    new, old : ndarray of shape (levels,)
        Shares.
    """

    value: float
    interval: Interval
    new: Floats
    old: Floats


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the samples."""

    n: int
    weight: Floats | None
    cluster: NDArray[Any] | None

    def part(self, rows: Mask) -> "_Side":
        return _Side(
            int(np.count_nonzero(rows)),
            None if self.weight is None else self.weight[rows],
            None if self.cluster is None else self.cluster[rows],
        )

    @property
    def total(self) -> float:
        return float(self.n if self.weight is None else self.weight.sum())

    def sums(self, codes: NDArray[Any], levels: int, power: int = 1) -> Floats:
        weight = None if self.weight is None else self.weight**power
        return np.bincount(codes, weights=weight, minlength=levels).astype(np.float64)


class TwoSamples:
    """New rows and old rows.

    Parameters
    ----------
    new, old : int
        How many.
    new_weight, old_weight : ndarray, optional
    new_cluster, old_cluster : ndarray of int, optional
        Both or neither; rows with one number belong together, also across the two.
    """

    def __init__(
        self,
        new: int,
        old: int,
        *,
        new_weight: Floats | None = None,
        old_weight: Floats | None = None,
        new_cluster: NDArray[Any] | None = None,
        old_cluster: NDArray[Any] | None = None,
    ) -> None:
        self.new = _Side(new, new_weight, new_cluster)
        self.old = _Side(old, old_weight, old_cluster)

    @classmethod
    def of(cls, subject: "Subject") -> "TwoSamples":
        reference = subject.reference
        assert reference is not None
        return cls(
            len(subject),
            len(reference),
            new_weight=subject.weight,
            old_weight=reference.weight,
            new_cluster=subject.cluster,
            old_cluster=reference.cluster,
        )

    def among(self, new: Mask, old: Mask) -> "TwoSamples":
        """Return the samples of the rows that are True."""
        part = TwoSamples.__new__(TwoSamples)
        part.new, part.old = self.new.part(new), self.old.part(old)
        return part

    @property
    def usable(self) -> bool:
        """Whether both have rows that count."""
        return all(side.n > 0 and side.total > 0 for side in (self.new, self.old))

    @property
    def smaller(self) -> float:
        """How many independent rows, or clusters, the smaller of the two has."""
        sizes = []
        for side in (self.new, self.old):
            size = (
                float(side.n)
                if side.weight is None
                else float(Rows(side.n, side.weight).rate(np.ones(side.n)).effective_n)
            )
            sizes.append(size if side.cluster is None else min(size, float(len(np.unique(side.cluster)))))
        return min(sizes)

    def shares(self, new: NDArray[Any], old: NDArray[Any], levels: int) -> tuple[Floats, Floats]:
        """Return the shares of the levels among the new and the old rows."""
        return self.new.sums(new, levels) / self.new.total, self.old.sums(old, levels) / self.old.total

    def means(self, new: Floats, old: Floats) -> tuple[float, float]:
        """Return the means of the new and the old values."""
        return tuple(  # type: ignore[return-value]
            float(np.average(part, weights=side.weight)) for side, part in ((self.new, new), (self.old, old))
        )

    def rate(self, new: Mask, old: Mask, *, family: int = 1) -> RateChange:
        """Return how a share changed, with Newcombe's interval of 95 %.

        Parameters
        ----------
        new, old : ndarray of bool
            Which rows count.
        family : int
            How many comparisons the end towards no change must hold for at once.

        Notes
        -----
        O(n) time.
        """
        interval = self._newcombe(new, old, _TAIL / family)
        new_rate, old_rate = (Rows(side.n, side.weight).rate(hit) for side, hit in ((self.new, new), (self.old, old)))
        value = new_rate.value - old_rate.value
        method = "Newcombe"
        if family > 1:
            method += ", end towards 0 for all at once"
            by_itself = self._newcombe(new, old, _TAIL)
            interval = (interval[0], by_itself[1]) if value >= 0 else (by_itself[0], interval[1])
        low, high = max(min(interval[0], value), -1.0), min(max(interval[1], value), 1.0)
        return RateChange(new_rate.value, old_rate.value, value, Interval(low, high, method=method))

    def numbers(self, new: Floats, old: Floats, *, family: int = 1) -> NumberShift:
        """Return how far the distributions of a number lie apart, with an interval of 95 %.

        Parameters
        ----------
        new, old : ndarray of float
            Infinite values are values like others; none may be NaN.
        family : int
            How many comparisons the lower end must hold for at once.

        Notes
        -----
        O((n + m) log(n + m)) time.
        """
        x, new_below, old_below = self._distributions(new, old)
        gap = new_below - old_below
        at = int(np.argmax(np.abs(gap)))
        value = float(abs(gap[at]))
        scale = self._scale(new, old)
        tail = _TAIL / family
        low = value - self._inflated(scale, tail) * np.sqrt(0.5 * np.log(2 / tail))
        high = value + self._inflated(scale, _TAIL) / 2 * float(stats.norm.isf(_TAIL))
        interval = _interval(low, value, high, "DKW", family)
        return NumberShift(value, interval, float(x[at]), float(new_below[at]), float(old_below[at]))

    def levels(self, new: NDArray[Any], old: NDArray[Any], levels: int, *, family: int = 1) -> LevelShift:
        """Return how far the shares of levels lie apart, with an interval of 95 %.

        Parameters
        ----------
        new, old : ndarray of int
            In ``range(levels)``.
        levels : int
        family : int
            How many comparisons the lower end must hold for at once.

        Notes
        -----
        O(n + m + levels^2) time. What chance adds grows with the levels: join rare ones first.
        """
        p, q = self.shares(new, old, levels)
        covariance = self._covariance(new, old, levels)
        variance = np.maximum(np.diag(covariance), 0.0)
        gap = p - q
        distance = 0.5 * float(np.abs(gap).sum())
        value = 0.5 * float(np.sqrt(np.maximum(gap**2 - variance, 0.0)).sum())
        by_chance = 0.5 * float(np.sqrt(2 / np.pi) * np.sqrt(variance).sum())
        grew = gap > 0
        plain = 1 / self.new.n + 1 / self.old.n
        alone = float((p * (1 - p) / self.new.n + q * (1 - q) / self.old.n).sum())
        ratio = float(variance.sum()) / alone if alone > 0 else 1.0
        largest = 4 * float(covariance[np.ix_(grew, grew)].sum())
        scale = np.sqrt(max(plain * (1.0 if self._plain else ratio), largest))
        tail = _TAIL / family
        low = distance - self._inflated(by_chance, tail) - self._inflated(scale, tail) * np.sqrt(0.5 * np.log(1 / tail))
        highest = distance + self._inflated(scale, _TAIL) / 2 * float(stats.norm.isf(_TAIL))
        high = _largest_distance(highest, float(np.sqrt(variance).sum()))
        value = min(max(value, low, 0.0), 1.0)
        return LevelShift(value, _interval(low, value, high, "McDiarmid", family), p, q)

    def _newcombe(self, new: Mask, old: Mask, tail: float) -> tuple[float, float]:
        """Return the interval of the difference of two shares, with `tail` outside on either side."""
        z = float(stats.norm.isf(tail))
        parts = [Rows(s.n, s.weight, s.cluster).rate(hit, z=z) for s, hit in ((self.new, new), (self.old, old))]
        ends = [wilson(min(part.value, 1.0) * part.effective_n, part.effective_n, z=z) for part in parts]
        shares = [np.asarray(part.value) for part in parts]
        rho = np.asarray(self._correlation(new, old))
        low, high = mover(shares[0], ends[0], shares[1], ends[1], correlation=rho)
        return float(low), float(high)

    # --- how sure -------------------------------------------------------------------------------------------------

    @property
    def _plain(self) -> bool:
        return all(side.weight is None and side.cluster is None for side in (self.new, self.old))

    @property
    def _units(self) -> float:
        if self.new.cluster is None or self.old.cluster is None:
            return np.inf
        return float(min(len(np.unique(self.new.cluster)), len(np.unique(self.old.cluster))))

    def _inflated(self, error: float, tail: float) -> float:
        """Return an error as large as few clusters ask for: by the ratio of Student's quantile to the normal one."""
        units = self._units
        if not np.isfinite(units):
            return float(error)
        return float(error * stats.t.isf(tail, max(units - 1, 1)) / stats.norm.isf(tail))

    def _scale(self, new: Floats, old: Floats) -> float:
        """Return twice the largest standard error of the difference of two distribution functions."""
        if self._plain:
            return float(np.sqrt(1 / self.new.n + 1 / self.old.n))
        both = np.concatenate([_thinned(new), _thinned(old)])
        edges = np.unique(np.quantile(both, np.arange(1, _GRID) / _GRID, method="lower"))
        covariance = self._covariance(
            np.searchsorted(edges, new, side="left"), np.searchsorted(edges, old, side="left"), len(edges) + 1
        )
        below = np.tril(np.ones(covariance.shape))
        largest = float(np.einsum("ij,jk,ik->i", below, covariance, below).max())
        if largest < _NOTHING:  # no row differs: what few clusters, or rows, could hide
            return float(np.sqrt(2 / min(self._units, self.new.n, self.old.n)))
        return 2.0 * float(np.sqrt(largest))

    def _covariance(self, new: NDArray[Any], old: NDArray[Any], levels: int) -> Floats:
        """Return the covariance of the differences of the levels' shares, shape (levels, levels)."""
        if self.new.cluster is not None and self.old.cluster is not None:
            return self._clustered(new, old, levels)
        total = np.zeros((levels, levels))
        for side, codes in ((self.new, new), (self.old, old)):
            share, square = side.sums(codes, levels) / side.total, side.sums(codes, levels, power=2)
            cross = np.outer(square, share)
            spread = np.diag(square) - cross - cross.T + square.sum() * np.outer(share, share)
            total += spread / side.total**2 * side.n / max(side.n - 1, 1)
        return total

    def _clustered(self, new: NDArray[Any], old: NDArray[Any], levels: int) -> Floats:
        assert self.new.cluster is not None
        assert self.old.cluster is not None
        ids, codes = np.unique(np.concatenate([self.new.cluster, self.old.cluster]), return_inverse=True)
        codes, units = codes.ravel(), len(ids)
        cells, rest = [], []
        for side, level, cluster in (
            (self.new, new, codes[: self.new.n]),
            (self.old, old, codes[self.new.n :]),
        ):
            weight = (np.ones(side.n) if side.weight is None else side.weight) / side.total
            cells.append(sparse.coo_matrix((weight, (cluster, level)), shape=(units, levels)).tocsr())
            rest.append(np.bincount(cluster, weights=weight, minlength=units))
        p, q = (np.asarray(cell.sum(axis=0)).ravel() for cell in cells)
        # each cluster's part is its cells less its weight times the shares, new minus old
        main, (r, s) = (cells[0] - cells[1]).tocsr(), rest
        shares = np.vstack([-p, q])  # parts = main + outer(r, -p) + outer(s, q)
        loads = np.column_stack([r, s])
        cross = np.asarray(main.T @ loads) @ shares
        inner = np.asarray((main.T @ main).todense()) + cross + cross.T + shares.T @ (loads.T @ loads) @ shares
        return np.asarray(inner * units / max(units - 1, 1))

    def _correlation(self, new: Mask, old: Mask) -> float:
        """Return the correlation of the two shares, which clusters with rows in both bring about."""
        if self.new.cluster is None or self.old.cluster is None:
            return 0.0
        codes = new.astype(np.int64), old.astype(np.int64)
        together = self._covariance(*codes, 2)[1, 1]
        parts = []
        for side, hit in ((self.new, new), (self.old, old)):
            rows = Rows(side.n, side.weight, side.cluster)
            error = rows.error(hit - float(np.average(hit, weights=side.weight)))
            parts.append(error)
        if not all(np.isfinite(parts)) or min(parts) <= 0:
            return 0.0
        return float(np.clip((parts[0] ** 2 + parts[1] ** 2 - together) / (2 * parts[0] * parts[1]), -0.95, 0.95))

    def _distributions(self, new: Floats, old: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the distinct values, and the shares of rows at or below each."""
        sides: list[tuple[Floats, Floats | None]] = []
        for side, values in ((self.new, new), (self.old, old)):
            if side.weight is None:
                sides.append((np.sort(values), None))
                continue
            order = np.argsort(values, kind="stable")
            sides.append((values[order], np.concatenate([[0.0], np.cumsum(side.weight[order])]) / side.total))
        x = np.union1d(_distinct(sides[0][0]), _distinct(sides[1][0]))
        shares = []
        for ordered, running in sides:
            place = np.searchsorted(ordered, x, side="right")
            shares.append(place / len(ordered) if running is None else running[place])
        return x, shares[0], shares[1]


def _largest_distance(expected: float, spread: float) -> float:
    """Return the largest distance whose expectation in samples is no more than `expected`.

    Parameters
    ----------
    expected : float
    spread : float
        Sum of the standard errors of the levels.

    Notes
    -----
    A level that moved by t standard errors adds h(t) = E|t + N(0, 1)| - t of them in expectation. As h is convex, the
    levels add least where all moved by equally many; for a distance D that is 2 D / spread, and so D + spread / 2 *
    h(2 D / spread) is the least expectation, which grows with D.
    """
    if spread <= 0:
        return expected

    def least(distance: float) -> float:
        t = 2 * distance / spread
        return float(distance + spread * (stats.norm.pdf(t) - t * stats.norm.sf(t)))

    if least(0.0) >= expected:
        return 0.0
    return float(optimize.brentq(lambda distance: least(distance) - expected, 0.0, max(expected, 1e-12)))


def _interval(low: float, value: float, high: float, method: str, family: int) -> Interval:
    method += ", lower end for all at once" if family > 1 else ""
    return Interval(float(np.clip(low, 0.0, value)), float(np.clip(high, value, 1.0)), method=method)


def _distinct(ordered: Floats) -> Floats:
    keep = np.ones(len(ordered), dtype=bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


def _thinned(values: Floats, most: int = 20_000) -> Floats:
    """Return enough values to find quantiles by, evenly from all."""
    return values[:: max(len(values) // most, 1)]
