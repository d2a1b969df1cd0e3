"""The side of whoever collects: the distribution function that makes the answers likeliest, and how sure it is."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.integrate import trapezoid
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard._stats.intervals import critical_z
from aboveboard.core import Certificate, InputError
from aboveboard.privacy.ldp_cdf._certificate import local_certificate, shuffled_certificate
from aboveboard.privacy.ldp_cdf._chernoff import chernoff_quantile
from aboveboard.privacy.ldp_cdf._input import (
    Floats,
    checked_bounds,
    checked_epsilon,
    checked_grid,
    lie_probability,
)
from aboveboard.privacy.ldp_cdf._randomizer import CurrentStatusRandomizer

__all__ = ["GoodnessOfFit", "LDPCurrentStatusCDF"]


class GoodnessOfFit(NamedTuple):
    """Whether a distribution function is the true one.

    Attributes
    ----------
    statistic : float
        Sum over the grid of squared errors by their variances.
    dof : int
        Number of thresholds.
    pvalue : float
    """

    statistic: float
    dof: int
    pvalue: float


class LDPCurrentStatusCDF(BaseEstimator):  # type: ignore[misc]
    """Estimate a distribution function from privatised answers to "is it at most this threshold?".

    Takes the reports of `CurrentStatusRandomizer`, a threshold and a bit for each person, and finds the distribution
    function under which they are likeliest. There is nothing to tune.

    Parameters
    ----------
    epsilon : float, at least 1e-6, default=1.0
        At which the answers were privatised; infinite for answers that are all true.
    bounds : pair of float, default=(0.0, 1.0)
        The least and the largest value there can be.
    grid : array-like of shape (k,), optional
        The thresholds, where they were drawn from a few. Bands, tests and `partial_fit` need it.
    interpolation : {"step", "linear"}, default="step"
        Between thresholds: that of the threshold below, or a straight line.

    Attributes
    ----------
    t_ : ndarray of shape (m,)
        Distinct thresholds that were asked, ascending.
    cdf_ : ndarray of shape (m,)
        The estimate there, within [0, 1] and non-decreasing. It need not reach 1: no threshold may lie above the
        largest value.
    cdf_star_ : ndarray of shape (m,)
        Probability of the answer 1 under the estimate.
    counts_ : ndarray of shape (m,)
        Reports on each threshold.
    n_reports_ : float
    certificate_ : Certificate

    Raises
    ------
    InputError
        For options out of range, answers other than 0 and 1, thresholds beyond the bounds or off the grid, fewer than
        two reports.

    Guarantee
    ---------
    What is estimated is as private as the reports. Where the thresholds' distribution has a positive density, the
    error is of order 1 / (r n^(1/3)) in mean square and, where the values' has too, times log n at the worst point;
    on a fixed grid of order 1 / (r sqrt(n)), where r = tanh(epsilon / 2). Intervals hold for many reports (see
    `interval` and `band`); those at few reports and small epsilon reach beyond [0, 1], and are shown as they are.

    Notes
    -----
    With probability q = (1 - r) / 2 the answer is a lie, so that it is 1 with probability F* = r F + q at each
    threshold: the answers are truthful ones about F*, and the non-parametric maximum of their likelihood is the
    isotonic regression of the answers on the thresholds. Clipping (F* - q) / r to [0, 1] afterwards gives the maximum
    under the bounds too; clipping before would not.

    Cost: O(n log n) for sorting, or O(n log k) on a grid and O(k) memory with `partial_fit`; then linear.

    References
    ----------
    Y. Liu, Q. Hu, L. Kong, "Tuning-free Estimation and Inference of Cumulative Distribution Function under Local
    Differential Privacy", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import CurrentStatusRandomizer, LDPCurrentStatusCDF
    >>> ages = load_adult(split="train").X["age"]
    >>> brackets = [25, 35, 45, 55, 65]
    >>> device = CurrentStatusRandomizer(1.0, bounds=(0, 120), grid=brackets, random_state=0)
    >>> t, delta = device.report(ages)  # all that is ever collected
    >>> estimate = LDPCurrentStatusCDF(1.0, bounds=(0, 120), grid=brackets).fit(t, delta)
    >>> low, high = estimate.band(0.95)
    >>> truth = np.array([np.mean(ages <= bracket) for bracket in brackets])
    >>> bool(np.all((low <= truth) & (truth <= high)))
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Sequence[float] = (0.0, 1.0),
        grid: ArrayLike | None = None,
        interpolation: Literal["step", "linear"] = "step",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.grid = grid
        self.interpolation = interpolation

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, t: ArrayLike, delta: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate from reports.

        Parameters
        ----------
        t : array-like of shape (n,)
            Thresholds, in the unit of the values.
        delta : array-like of shape (n,)
            Answers: 1 for "at most the threshold", 0 for "above it".
        sample_weight : array-like of shape (n,), optional
            How many such reports there are, for counts that were added up elsewhere.

        Returns
        -------
        self
        """
        grid = self._checked_options()
        thresholds, yes, count = self._checked_reports(t, delta, sample_weight)
        self._tally = None if grid is None else _Tally.of(grid, thresholds, yes, count)
        self._estimate(*(_by_threshold(thresholds, yes, count) if self._tally is None else self._tally.asked()))
        return self

    def partial_fit(self, t: ArrayLike, delta: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add reports to those seen before, and estimate again; needs a grid, and remembers 2 k numbers.

        Parameters and result as for `fit`.
        """
        grid = self._checked_options()
        if grid is None:
            raise InputError(
                "there is no grid", expected="a grid of thresholds, on which reports can be added up", remedy="Use fit"
            )
        thresholds, yes, count = self._checked_reports(t, delta, sample_weight, fewest=1)
        tally = _Tally.of(grid, thresholds, yes, count)
        seen = getattr(self, "_tally", None)
        self._tally = tally if seen is None else seen.plus(tally)
        self._estimate(*self._tally.asked())
        return self

    def fit_private(self, x: ArrayLike, *, random_state: int | np.random.Generator | None = None) -> Self:
        """Privatise values and estimate from the reports: both sides at once, for values that are already in one place.

        Parameters
        ----------
        x : array-like of shape (n,)
            Values within the bounds, one for each person. They are not kept.
        random_state : int, numpy.random.Generator or None
            As for `CurrentStatusRandomizer`.

        Returns
        -------
        self
        """
        device = CurrentStatusRandomizer(self.epsilon, bounds=self.bounds, grid=self.grid, random_state=random_state)
        t, delta = device.report(np.atleast_1d(np.asarray(x, dtype=np.float64)))
        self.fit(t, delta)
        self.certificate_ = device.certificate()
        return self

    # --- what was estimated -------------------------------------------------------------------------------------------

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the estimated probability of a value of at most x.

        Parameters
        ----------
        x : array-like of any shape

        Returns
        -------
        ndarray of float within [0, 1], of that shape
            0 below the first threshold with "step", and below the lower bound with "linear"; above the last threshold,
            the estimate there.
        """
        check_is_fitted(self)
        at = _finite(x, "x")
        points, values = self._nodes()
        if self.interpolation == "linear":
            return np.asarray(np.interp(at, points, values, left=0.0))
        values_below: Floats = np.concatenate([[0.0], values])[np.searchsorted(points, at, side="right")]
        return values_below

    def ppf(self, q: ArrayLike) -> Floats:
        """Return estimated quantiles: the least x at which `cdf` reaches q.

        Parameters
        ----------
        q : array-like of any shape, within [0, 1]

        Returns
        -------
        ndarray of float, of that shape
            The upper bound, where the estimate does not reach q.
        """
        check_is_fitted(self)
        levels = _checked_levels(q)
        points, values = self._nodes()
        ends = np.append(points, checked_bounds(self.bounds)[1])
        place = np.searchsorted(values, levels, side="left")
        right = ends[place]
        if self.interpolation == "step":
            return np.where(levels == 0, checked_bounds(self.bounds)[0], right)
        inside = (place > 0) & (place < len(points))
        before = np.where(inside, place - 1, 0)
        upper = values[np.minimum(place, len(points) - 1)]
        rise = np.where(inside, upper - values[before], 1.0)
        along = (levels - values[before]) / rise
        return np.where(inside, points[before] + along * (right - points[before]), right)

    def mean(self) -> float:
        """Return the estimated mean: the integral of 1 - F over the bounds.

        On a grid F is known at the thresholds alone, and the mean is that of the interpolation.
        """
        check_is_fitted(self)
        low, high = checked_bounds(self.bounds)
        points, values = self._nodes()
        ends = np.concatenate([[low], points, [high]])
        if self.interpolation == "linear":
            over = np.concatenate([[values[0] if points[0] == low else 0.0], values, values[-1:]])
            return float(low + trapezoid(1.0 - over, ends))
        return float(low + (1.0 - np.concatenate([[0.0], values])) @ np.diff(ends))

    # --- how sure it is -----------------------------------------------------------------------------------------------

    def interval(self, x: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals of the distribution function, each of them alone at the given level.

        Parameters
        ----------
        x : array-like of any shape
            Points strictly within the bounds; with a grid, thresholds of it.
        level : float within (0, 1)

        Returns
        -------
        low, high : ndarray of float
            Not cut to [0, 1]. NaN where the estimate is flat around x, so that its density, and with it the error,
            cannot be told.

        Notes
        -----
        On a grid: normal approximation, variance F* (1 - F*) / (r^2 n_j) for n_j reports on the threshold. Without one,
        approximate: (r^2 g n / (4 F* (1 - F*) f))^(1/3) times the error tends to Chernoff's distribution, where the
        densities f of the values and g of the thresholds are taken from a window of (r^2 n)^(-1/5) of the range to
        either side of x.
        """
        check_is_fitted(self)
        at = _finite(x, "x")
        critical_z(level)
        if self.grid is None:
            return self._chernoff_interval(at, level)
        place = np.minimum(np.searchsorted(self.t_, at), len(self.t_) - 1)
        if not (self.t_[place] == at).all():
            raise InputError("a point is no threshold that was asked", expected="thresholds of the grid, as in t_")
        half = critical_z(level) * self._standard_errors()[place]
        return self.cdf_[place] - half, self.cdf_[place] + half

    def band(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals that hold at all thresholds of the grid at once.

        Parameters
        ----------
        level : float within (0, 1)

        Returns
        -------
        low, high : ndarray of float, shape (m,)
            At `t_`; not cut to [0, 1].

        Notes
        -----
        Estimates at different thresholds rest on different people, so that Sidak's level, the m-th root, is exact for
        many reports.
        """
        self._refuse_without_grid("A band")
        critical_z(level)
        half = critical_z(level ** (1 / len(self.t_))) * self._standard_errors()
        return self.cdf_ - half, self.cdf_ + half

    def ppf_interval(self, q: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals of quantiles that hold for all of them at once, from `band`.

        Parameters
        ----------
        q : array-like of any shape, within [0, 1]
        level : float within (0, 1)

        Returns
        -------
        low, high : ndarray of float
            Thresholds of the grid, or bounds: the quantile lies above `low`, unless that is the lower bound, and is at
            most `high`.
        """
        lower, upper = self.band(level)
        levels = _checked_levels(q)
        least, most = checked_bounds(self.bounds)
        sure_below = np.searchsorted(np.minimum.accumulate(upper[::-1])[::-1], levels, side="left")
        sure_reached = np.searchsorted(np.maximum.accumulate(lower), levels, side="left")
        return np.append(least, self.t_)[sure_below], np.append(self.t_, most)[sure_reached]

    def goodness_of_fit(self, cdf: Callable[[Floats], Any]) -> GoodnessOfFit:
        """Test whether a distribution function is the true one, at the thresholds of the grid.

        Parameters
        ----------
        cdf : callable
            Takes thresholds, gives probabilities.

        Returns
        -------
        GoodnessOfFit

        Notes
        -----
        The paper's weighted squared error, n sum p_j r^2 (F - F_0)^2 / (F_0* (1 - F_0*)) with the numbers of reports
        for n p_j, is chi-squared with m degrees of freedom for many reports; less where F_0 is flat, which makes the
        test careful.
        """
        self._refuse_without_grid("The test")
        supposed = np.asarray(cdf(self.t_), dtype=np.float64)
        if supposed.shape != self.t_.shape or not ((supposed >= 0) & (supposed <= 1)).all():
            raise InputError("cdf gave something else than a probability for each threshold")
        lie = lie_probability(self.epsilon)
        truth = 1 - 2 * lie
        yes = lie + truth * supposed
        if not ((yes > 0) & (yes < 1)).all():
            raise InputError("cdf is 0 or 1 at a threshold where all answers are true: no error has a variance there")
        statistic = float(np.sum(self.counts_ * (truth * (self.cdf_ - supposed)) ** 2 / (yes * (1 - yes))))
        dof = len(self.t_)
        return GoodnessOfFit(statistic, dof, float(stats.chi2.sf(statistic, dof)))

    def shuffle_certificate(self, delta: float = 1e-6) -> Certificate:
        """Return what holds when a trusted shuffler takes names and order off the reports, as the estimate allows.

        Parameters
        ----------
        delta : float within (0, 1)
            Well below one over the number of reports.
        """
        check_is_fitted(self)
        return shuffled_certificate(float(self.epsilon), int(self.n_reports_), delta)

    # --- steps --------------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cdf_")

    def _checked_options(self) -> Floats | None:
        checked_epsilon(self.epsilon)
        bounds = checked_bounds(self.bounds)
        if self.interpolation not in ("step", "linear"):
            raise InputError(f"interpolation is {self.interpolation!r}", expected="'step' or 'linear'")
        return None if self.grid is None else checked_grid(self.grid, bounds)

    def _checked_reports(
        self, t: ArrayLike, delta: ArrayLike, sample_weight: ArrayLike | None, fewest: int = 2
    ) -> tuple[Floats, Floats, Floats]:
        """Return thresholds, and for each the number of answers 1 and of all answers."""
        thresholds, answers = np.asarray(t, dtype=np.float64), np.asarray(delta)
        if thresholds.ndim != 1 or thresholds.shape != answers.shape:
            raise InputError(
                f"there are thresholds of shape {thresholds.shape} and answers of shape {answers.shape}",
                expected="as many numbers of each, in one dimension",
            )
        low, high = checked_bounds(self.bounds)
        if not ((thresholds >= low) & (thresholds <= high)).all():
            raise InputError(
                "a threshold is missing or beyond the bounds", expected=f"numbers from {low:g} to {high:g}"
            )
        yes = answers == 1
        if not (yes | (answers == 0)).all():
            raise InputError("an answer is neither 0 nor 1")
        if sample_weight is None:
            count = np.ones(len(thresholds))
        else:
            count = np.asarray(sample_weight, dtype=np.float64)
            if count.shape != thresholds.shape or not (np.isfinite(count) & (count >= 0)).all():
                raise InputError("sample_weight is not a number of reports for each row", expected="0 or more of each")
        if not count.sum() >= fewest:
            raise InputError(f"there are {count.sum():g} reports", expected=f"{fewest} or more")
        return thresholds, yes * count, count

    def _estimate(self, t: Floats, yes: Floats, count: Floats) -> None:
        lie = lie_probability(self.epsilon)
        truth = 1 - 2 * lie
        likeliest = isotonic_regression(yes / count, weights=count).x
        self.t_, self.counts_ = t, count
        self.cdf_ = np.clip((likeliest - lie) / truth, 0.0, 1.0)
        self.cdf_star_ = lie + truth * self.cdf_
        self.n_reports_ = float(count.sum())
        self.certificate_ = local_certificate(
            float(self.epsilon), lie, "where the answers were given", randomised_elsewhere=True
        )

    def _nodes(self) -> tuple[Floats, Floats]:
        """Return the points between which `cdf` is interpolated, and its values."""
        low = checked_bounds(self.bounds)[0]
        if self.interpolation == "linear" and self.t_[0] > low:
            return np.append(low, self.t_), np.append(0.0, self.cdf_)
        return self.t_, self.cdf_

    def _standard_errors(self) -> Floats:
        truth = 1 - 2 * lie_probability(self.epsilon)
        errors: Floats = np.sqrt(self.cdf_star_ * (1 - self.cdf_star_) / self.counts_) / truth
        return errors

    def _chernoff_interval(self, x: Floats, level: float) -> tuple[Floats, Floats]:
        low, high = checked_bounds(self.bounds)
        if not ((x > low) & (x < high)).all():
            raise InputError("a point lies at or beyond the bounds", expected=f"points between {low:g} and {high:g}")
        lie = lie_probability(self.epsilon)
        truth = 1 - 2 * lie
        informative = truth**2 * self.n_reports_
        reach = (high - low) * min(informative**-0.2, 0.5)
        left, right = np.maximum(x - reach, low), np.minimum(x + reach, high)
        reports = np.append(0.0, np.cumsum(self.counts_))
        asked = np.subtract(*(reports[np.searchsorted(self.t_, end, side="right")] for end in (right, left)))
        estimate = self.cdf(x)
        slope = (self.cdf(right) - self.cdf(left)) / (right - left)
        star = lie + truth * estimate
        per_unit = truth**2 * asked / (right - left)  # r^2 g n
        with np.errstate(divide="ignore", invalid="ignore"):
            half = chernoff_quantile(0.5 + level / 2) * np.cbrt(4 * star * (1 - star) * slope / per_unit)
        half = np.where((asked > 0) & (half > 0), half, np.nan)
        return estimate - half, estimate + half

    def _refuse_without_grid(self, what: str) -> None:
        check_is_fitted(self)
        if self.grid is None:
            raise InputError(
                f"{what} needs a grid, and thresholds were drawn from the whole range",
                expected="an estimator with a grid",
                remedy="Draw thresholds from a few of interest, and pass them as grid on both sides",
            )


# --- reports by threshold ---------------------------------------------------------------------------------------------


def _by_threshold(t: Floats, yes: Floats, count: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distinct thresholds with reports, ascending, and the answers 1 and all answers to each."""
    if not count.all():
        t, yes, count = t[count > 0], yes[count > 0], count[count > 0]
    order = np.argsort(t)
    t, yes, count = t[order], yes[order], count[order]
    starts = np.flatnonzero(np.concatenate([[True], t[1:] > t[:-1]]))
    if len(starts) == len(t):
        return t, yes, count
    return t[starts], np.add.reduceat(yes, starts), np.add.reduceat(count, starts)


class _Tally(NamedTuple):
    """Reports added up on a grid: all that is remembered of them."""

    grid: Floats
    yes: Floats
    reports: Floats

    @classmethod
    def of(cls, grid: Floats, t: Floats, yes: Floats, count: Floats) -> "_Tally":
        place = np.minimum(np.searchsorted(grid, t), len(grid) - 1)
        if not (grid[place] == t).all():
            raise InputError("a threshold is not on the grid", expected="thresholds of the grid, to the last bit")
        added = (np.bincount(place, each, len(grid)).astype(np.float64) for each in (yes, count))
        return cls(grid, *added)

    def plus(self, other: "_Tally") -> "_Tally":
        if not np.array_equal(self.grid, other.grid):
            raise InputError("the grid has changed since the first reports", remedy="Start again with fit")
        return _Tally(self.grid, self.yes + other.yes, self.reports + other.reports)

    def asked(self) -> tuple[Floats, Floats, Floats]:
        """Return the thresholds with reports, and the answers 1 and all answers to each."""
        asked = self.reports > 0
        return self.grid[asked], self.yes[asked], self.reports[asked]


def _finite(x: ArrayLike, name: str) -> Floats:
    values: Floats = np.asarray(x, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{name} is missing or infinite somewhere")
    return values


def _checked_levels(q: ArrayLike) -> Floats:
    levels = _finite(q, "q")
    if not ((levels >= 0) & (levels <= 1)).all():
        raise InputError("a level of quantiles lies outside [0, 1]")
    return levels
