"""What would equality cost? The cross-fitted accuracy of the most accurate fair classifier, from scores alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import cluster_effective_n, critical_z, kish, wilson
from aboveboard.core import Column, Figure, InputError, Series, Table
from aboveboard.fairness.randomized_fair_boc._atoms import SortedScores, accepted, all_present
from aboveboard.fairness.randomized_fair_boc._groups import group_codes
from aboveboard.fairness.randomized_fair_boc._optimum import (
    Constraint,
    Floats,
    Indices,
    best_rates,
    checked_constraint,
    checked_slack,
)

__all__ = ["SLACKS", "CrossFit", "PriceOfParity", "counted_rows", "cross_fit", "price_of_parity"]

SLACKS: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOfParity:
    """Held-out accuracy of the most accurate fair classifier, for each slack, beside that without constraint.

    Attributes
    ----------
    constraint : str
    slack : ndarray, shape (n_slacks,)
        How far apart the group rates were allowed to be.
    accuracy, accuracy_low, accuracy_high : ndarray, shape (n_slacks,)
        Cross-fitted accuracy and its interval.
    price, price_low, price_high : ndarray, shape (n_slacks,)
        Unconstrained less fair accuracy on the same rows, with its paired interval. It can be negative.
    gap : ndarray, shape (n_slacks,)
        Largest less smallest group rate among the people held out: the slack, and their sampling error.
    unconstrained_accuracy, unconstrained_low, unconstrained_high, unconstrained_gap : float
        The same for the best threshold in each group.
    groups : tuple
    n : int
    n_effective : float
        Kish's effective number of rows, or what the clusters are worth.
    cv : int
    level : float
        Of each interval on its own.
    """

    constraint: Constraint
    slack: Floats
    accuracy: Floats
    accuracy_low: Floats
    accuracy_high: Floats
    price: Floats
    price_low: Floats
    price_high: Floats
    gap: Floats
    unconstrained_accuracy: float
    unconstrained_low: float
    unconstrained_high: float
    unconstrained_gap: float
    groups: tuple[Any, ...]
    n: int
    n_effective: float
    cv: int
    level: float

    def table(self) -> Table:
        """Return one row per slack, and one for no constraint."""
        columns = (
            Column("rates may differ by", "text"),
            Column("accuracy", "percent"),
            Column("interval", "interval"),
            Column("price", "percent", "accuracy without constraint, less this"),
            Column("interval of the price", "interval"),
            Column("held-out gap", "percent", "largest less smallest group rate among people held out"),
        )
        rows = [
            (
                f"{self.slack[i]:.1%}",
                float(self.accuracy[i]),
                (float(self.accuracy_low[i]), float(self.accuracy_high[i])),
                float(self.price[i]),
                (float(self.price_low[i]), float(self.price_high[i])),
                float(self.gap[i]),
            )
            for i in range(len(self.slack))
        ]
        free = (self.unconstrained_low, self.unconstrained_high)
        rows.append(("no constraint", self.unconstrained_accuracy, free, 0.0, None, self.unconstrained_gap))  # type: ignore[arg-type]
        return Table(
            title=f"Price of {self.constraint.replace('_', ' ')}",
            columns=columns,
            rows=tuple(rows),
            note=f"Cross-fitted in {self.cv} folds of {self.n:,} rows; intervals at {self.level:.0%}.",
        )

    def figure(self) -> Figure:
        """Return accuracy against slack."""
        name = self.constraint.replace("_", " ")
        series = Series(
            "most accurate fair classifier",
            tuple(self.slack.tolist()),
            tuple(self.accuracy.tolist()),
            tuple(self.accuracy_low.tolist()),
            tuple(self.accuracy_high.tolist()),
        )
        ends = (float(self.slack[0]), float(self.slack[-1]))
        free = Series("no constraint", ends, (self.unconstrained_accuracy,) * 2)
        return Figure(
            kind="lines",
            title=f"What {name} costs",
            x_label="largest difference between group rates that is allowed",
            y_label="held-out accuracy",
            series=(series, free),
            alt=(
                f"Accuracy is {self.accuracy[0]:.1%} when group rates may differ by {self.slack[0]:.1%}, and "
                f"{self.unconstrained_accuracy:.1%} without constraint."
            ),
            percent=True,
        )


def price_of_parity(
    score: ArrayLike,
    y: ArrayLike,
    group: Any,
    constraint: Constraint = "demographic_parity",
    *,
    cv: int = 5,
    slack: Sequence[float] = SLACKS,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    random_state: int | None = None,
) -> PriceOfParity:
    """Return what group parity would cost in accuracy, as a function of the slack, from scores alone.

    On all folds but one, scores are calibrated in each group (isotonic) and turned into the thresholds of the most
    accurate classifier whose group rates differ by at most the slack; accuracy is measured on the fold left out. The
    same figure measured in sample is flattering.

    Parameters
    ----------
    score : array-like of float, shape (n,)
        Anything that rises with the probability of a positive outcome; scores closer than 1e-12 count as equal.
    y : array-like of {0, 1}, shape (n,)
    group : array, Series or data frame of shape (n,) or (n, n_columns)
        Several columns make intersections. No missing values.
    constraint : {"demographic_parity", "equal_opportunity", "predictive_equality"}
    cv : int, default 5
        Number of folds, at least 2; stratified by group and outcome, or made of whole clusters.
    slack : sequence of float in [0, 1], default (0, 0.01, 0.02, 0.05, 0.1, 0.2)
        Ascending.
    sample_weight : array-like of float, shape (n,), optional
        Non-negative; rows of weight 0 are left out.
    cluster : array-like of int, shape (n,), optional
        Rows of one number belong to one person: they stay together, and intervals take them as one.
    level : float, default 0.95
    random_state : int, optional
        Seed of the folds.

    Returns
    -------
    PriceOfParity

    Raises
    ------
    InputError
        For bad values, and for a group with fewer than two rows that count (equal opportunity: positives; predictive
        equality: negatives), since one fold would then have none to learn from.

    Notes
    -----
    Accuracy has Wilson's interval. The price, a difference of paired rates, has that of Agresti and Min, which does not
    shrink to a point when no decision changes, widened as Nadeau and Bengio advise for rules that were learned from
    overlapping folds (variance times 1 + cv / (cv - 1)); without that it covers the truth in 83 to 93 of 100 samples
    instead of 95. O(n log n) time for one sort, then O(n) per fold and slack;
    O(n x n_slacks) memory.

    References
    ----------
    A. Agresti, Y. Min, "Simple improved confidence intervals for comparing matched proportions", Statistics in
    Medicine 24, 2005.
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 4000)
    >>> score = np.clip(rng.normal(0.4 + 0.2 * group, 0.2), 0, 1)
    >>> y = rng.random(4000) < score
    >>> price = price_of_parity(score, y, group, slack=(0, 0.1, 1), random_state=0)
    >>> bool(price.accuracy[0] < price.accuracy[1] < price.unconstrained_accuracy)
    True
    """
    checked_constraint(constraint)
    slacks = np.array([checked_slack(value) for value in slack])
    if not len(slacks) or np.any(np.diff(slacks) <= 0):
        raise InputError(f"slack is {tuple(slack)}", expected="at least one number, in ascending order")
    scores, outcome, weight = _checked_rows(score, y, sample_weight)
    code, groups = group_codes(group, len(scores))
    clusters = None
    if cluster is not None:
        clusters = np.unique(np.asarray(cluster), return_inverse=True)[1]
        if clusters.shape != scores.shape:
            raise InputError(f"cluster has shape {clusters.shape}", expected=f"{scores.shape}, as score has")
    present = weight > 0
    if not present.all():
        scores, outcome, weight, code = scores[present], outcome[present], weight[present], code[present]
        clusters = None if clusters is None else clusters[present]
    rows = SortedScores.build(scores, outcome, weight, code, len(groups))
    clusters = None if clusters is None else clusters[rows.order]
    fitted = cross_fit(rows, groups, constraint, slacks, cv=cv, cluster=clusters, random_state=random_state)
    return fitted.price(level)


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Held-out decisions, row by row, sorted by group and score.

    Parameters
    ----------
    rows : SortedScores
    fair : ndarray, shape (n_slacks, n)
        Probability of acceptance under each slack, by rules learned on the other folds.
    free : ndarray, shape (n,)
        The same without constraint.
    eta : ndarray, shape (n,)
        Calibrated probability, learned on the other folds.
    """

    rows: SortedScores
    groups: tuple[Any, ...]
    constraint: Constraint
    slack: Floats
    fair: Floats
    free: Floats
    eta: Floats
    cluster: Indices | None
    cv: int

    def price(self, level: float) -> PriceOfParity:
        free = self._correct(self.free)
        fair = [self._correct(accept) for accept in self.fair]
        free_accuracy, free_interval = self._accuracy(free, level)
        accuracies = [self._accuracy(value, level) for value in fair]
        prices = [self._price(free - correct, level) for correct in fair]
        return PriceOfParity(
            constraint=self.constraint,
            slack=self.slack,
            accuracy=np.array([value for value, _ in accuracies]),
            accuracy_low=np.array([interval[0] for _, interval in accuracies]),
            accuracy_high=np.array([interval[1] for _, interval in accuracies]),
            price=np.array([value for value, _, _ in prices]),
            price_low=np.array([low for _, low, _ in prices]),
            price_high=np.array([high for _, _, high in prices]),
            gap=np.array([self._gap(accept) for accept in self.fair]),
            unconstrained_accuracy=free_accuracy,
            unconstrained_low=free_interval[0],
            unconstrained_high=free_interval[1],
            unconstrained_gap=self._gap(self.free),
            groups=self.groups,
            n=len(self.rows.y),
            n_effective=self._effective_n(free, free_accuracy, level),
            cv=self.cv,
            level=level,
        )

    def accuracy(self, accept: Floats, level: float = 0.95) -> tuple[float, tuple[float, float]]:
        """Return the held-out accuracy of decisions as they are, and its Wilson interval."""
        return self._accuracy(self._correct(accept), level)

    def calibration_error(self, n_bins: int = 15) -> float:
        """Return the largest held-out calibration error of any group, in up to `n_bins` bins of equal mass."""
        errors = []
        for places in self.rows.slices():
            eta, y, weight = self.eta[places], self.rows.y[places], self.rows.weight[places]
            order = np.argsort(eta, kind="stable")
            share = np.cumsum(weight[order]) / weight.sum()
            bins = np.minimum((share * n_bins).astype(int), n_bins - 1)
            # the same probability must not be split over bins
            first = np.flatnonzero(np.diff(eta[order], prepend=-1.0))
            bins = np.repeat(bins[first], np.diff(np.append(first, len(eta))))
            signed = np.bincount(bins, weights=(weight * (y - eta))[order])
            errors.append(np.abs(signed).sum() / weight.sum())
        return float(max(errors))

    def _correct(self, accept: Floats) -> Floats:
        return np.where(self.rows.y == 1, accept, 1 - accept)

    def _gap(self, accept: Floats) -> float:
        counts = self.rows.weight * _counted(self.rows.y, self.constraint)
        starts = self.rows.bounds[:-1]
        rates = np.add.reduceat(counts * accept, starts) / np.add.reduceat(counts, starts)
        return float(np.ptp(rates))

    def _variance(self, values: Floats) -> float:
        """Return the variance of the weighted mean of values, which are independent between clusters."""
        deviation = self.rows.weight * (values - self.rows.weight @ values)
        sums = deviation if self.cluster is None else np.bincount(self.cluster, weights=deviation)
        return float(sums @ sums)

    def _effective_n(self, values: Floats, mean: float, level: float) -> float:
        """Return how many independent rows, each right or wrong, would know their accuracy as well."""
        size = float(kish(1.0, self.rows.weight @ self.rows.weight))
        variance = self._variance(values)
        if self.cluster is not None:
            shape = [np.array([number]) for number in (mean, variance, len(np.unique(self.cluster)), size)]
            return float(cluster_effective_n(*shape, level=level)[0])
        return min(size, mean * (1 - mean) / variance) if 0 < mean < 1 and variance > 0 else size

    def _accuracy(self, value: Floats, level: float) -> tuple[float, tuple[float, float]]:
        accuracy = float(np.clip(self.rows.weight @ value, 0.0, 1.0))
        size = self._effective_n(value, accuracy, level)
        low, high = wilson(accuracy * size, size, level=level)
        return accuracy, (float(low), float(high))

    def _price(self, change: Floats, level: float) -> tuple[float, float, float]:
        """Return unconstrained less fair accuracy, and its interval."""
        weight = self.rows.weight
        lost, won = float(weight @ np.maximum(change, 0)), float(weight @ np.maximum(-change, 0))
        price = lost - won
        size = float(kish(1.0, weight @ weight))
        variance = self._variance(change)
        if self.cluster is not None and variance > 0:
            size = min(size, (lost + won - price**2) / variance)
        size /= 1 + self.cv / (self.cv - 1)
        more = size + 2
        b, c = lost * size + 0.5, won * size + 0.5
        centre = (b - c) / more
        half = critical_z(level) * np.sqrt(b + c - (b - c) ** 2 / more) / more
        return price, float(np.minimum(centre - half, price)), float(np.maximum(centre + half, price))


def cross_fit(
    rows: SortedScores,
    groups: Sequence[Any],
    constraint: Constraint,
    slack: Floats,
    *,
    cv: int,
    calibrate: bool = True,
    cluster: Indices | None = None,
    random_state: Any = None,
) -> CrossFit:
    """Learn rules on all folds but one, and apply them to that one; clusters stand in the order of the rows."""
    if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2:
        raise InputError(f"cv is {cv!r}", expected="a whole number of folds, at least 2")
    _refuse_few(rows, groups, constraint)
    fold = _folds(rows, int(cv), cluster, random_state)
    n = len(rows.y)
    fair, free, eta = np.empty((len(slack), n)), np.empty(n), np.empty(n)
    for k in range(int(cv)):
        out = fold == k
        atoms = all_present(rows.atoms(constraint, calibrate=calibrate, keep=~out), groups, constraint)
        held_out = [np.flatnonzero(out[places]) + places.start for places in rows.slices()]
        for group, places in zip(atoms, held_out, strict=True):
            free[places] = accepted(rows.score[places], *group.best_rule())
            eta[places] = np.interp(rows.score[places], group.score[::-1], group.eta[::-1])
        curves = [group.curve for group in atoms]
        for j, allowed in enumerate(slack):
            rates = best_rates(curves, float(allowed))
            for group, places, rate in zip(atoms, held_out, rates, strict=True):
                fair[j, places] = accepted(rows.score[places], *group.rule(rate))
    return CrossFit(rows, tuple(groups), constraint, slack, fair, free, eta, cluster, int(cv))


def counted_rows(rows: SortedScores, constraint: Constraint) -> Floats:
    """Return how many rows of each group its rate is a mean over."""
    return np.add.reduceat(_counted(rows.y, constraint), rows.bounds[:-1])


def _folds(rows: SortedScores, cv: int, cluster: Indices | None, random_state: Any) -> Indices:
    """Return the fold of each row: strata of group and outcome, or whole clusters, dealt out in random order."""
    rng = np.random.default_rng(random_state)
    if cluster is not None:
        return (rng.permutation(int(cluster.max()) + 1) % cv)[cluster]
    n = len(rows.y)
    order = rng.permutation(n)
    stratum = 2 * rows.codes + (rows.y == 1)
    small = stratum.astype(np.int16) if len(rows.bounds) < 2**14 else stratum
    order = order[np.argsort(small[order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % cv
    return fold


def _refuse_few(rows: SortedScores, groups: Sequence[Any], constraint: Constraint) -> None:
    counts = counted_rows(rows, constraint)
    if counts.min() < 2:
        what = {"equal_opportunity": "positives", "predictive_equality": "negatives"}.get(constraint, "rows")
        raise InputError(
            f"group {groups[int(counts.argmin())]!r} has {int(counts.min())} {what}",
            expected="at least 2, so that every fold leaves one to learn from",
            remedy="Leave the group out, or merge it with another",
        )


def _counted(y: Floats, constraint: Constraint) -> Floats:
    """Return 1 for the rows that a group's rate is a mean over, 0 for the others."""
    if constraint == "demographic_parity":
        return np.ones(len(y))
    return y.copy() if constraint == "equal_opportunity" else 1 - y


def _checked_rows(score: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    scores, labels = np.asarray(score, dtype=np.float64), np.asarray(y)
    if scores.ndim != 1 or scores.shape != labels.shape or not len(scores):
        raise InputError(f"score and y have shapes {scores.shape} and {labels.shape}", expected="equal ones, not empty")
    if not np.isfinite(scores).all():
        raise InputError(f"{int((~np.isfinite(scores)).sum()):,} scores are missing or infinite")
    if not _is_zero_one(labels):
        raise InputError("y holds other values than 0 and 1", expected="1 for the positive outcome, 0 for the other")
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != scores.shape or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError("sample_weight is not usable", expected="one finite, non-negative number per row, not all 0")
    return scores, labels.astype(np.float64), weight


def _is_zero_one(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())
