"""The theory applied to data at hand: moments of each group are estimated, and what-if questions answered from them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.fairness.randomized_fair_boc._groups import group_codes
from aboveboard.fairness.ridge_bias._spectra import make_spectra
from aboveboard.fairness.ridge_bias._theory import Amplification, Start, amplified, refuse_penalty, refuse_width

__all__ = ["REFERENCE", "RidgeBiasTheory", "WhatIf"]

Floats = NDArray[np.float64]

REFERENCE: Final = Reference(
    title="An Effective Theory of Bias Amplification",
    authors="A. Subramonian, S. J. Bell, L. Sagun, E. Dohmatob",
    venue="ICLR 2025",
    year=2025,
    url="https://arxiv.org/abs/2410.17263",
)
_GRID: Final = tuple(float(value) for value in np.geomspace(1e-4, 10.0, 26))
_ROWS_PER_COLUMN: Final = 5
_FEWEST_PROJECTIONS: Final = 5
_COARSE: Final = 3
_LEAST: Final = 1e-6
_UNLIMITED: Final = 1e6
_SHRINKAGE_ROWS: Final = 5_000


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One plan, and what it would lead to.

    Attributes
    ----------
    label : str
    rows : float
        Rows of the training data.
    penalty : float
    width_ratio : float or None
    error : ndarray of shape (S,)
        Expected squared error of the joint model in each group, noise included, in units of the outcome's variance.
    result : Amplification
        Of test errors, since groups differ in noise too.
    """

    label: str
    rows: float
    penalty: float
    width_ratio: float | None
    error: Floats
    result: Amplification


class RidgeBiasTheory(BaseEstimator):  # type: ignore[misc]
    """Predict, without training, how far apart the errors of groups will be, and what would close the gap.

    For whoever is about to train one model for people of several groups: will it widen the gap between them, compared
    with a model for each? Would more rows, another penalty or more width help? The answer is that of ridge regression
    on random data with the second moments of the data given here.

    Parameters
    ----------
    train_fraction : float, default=1.0
        Size of the planned training data, as a multiple of the rows given to `fit`; may exceed 1.
    penalty : float, optional
        The planned penalty, on standardised columns and the mean squared error. Default: the one of `penalties` with
        the least predicted error over all rows, which is what cross-validation aims at.
    penalties : array of shape (P,), optional
        The penalties to look at. Default: 26 from 1e-4 to 10.
    width_ratios : sequence of float, default=(0.25, 0.5, 1.0, 2.0, 4.0)
        Widths to look at, by number of columns, for models on random projections; those of fewer than five projections
        are left out.
    n_bootstrap : int, default=100
        Resamples behind the intervals.
    confidence : float, default=0.95
    random_state : int, RandomState or None

    Attributes
    ----------
    groups_ : list
        The groups, in the order of all arrays below.
    covariances_ : ndarray of shape (S, d, d)
        Second moments about the pooled mean, of standardised columns, shrunk as Ledoit and Wolf advise.
    weights_ : ndarray of shape (S, d)
    noise_var_ : ndarray of shape (S,)
        In units of the outcome's variance, like all errors here.
    n_per_group_ : ndarray of shape (S,)
        Rows of the planned training data.
    planned_ : WhatIf
    what_if_ : list of WhatIf
        As planned; ten times the rows and unlimited rows, with the penalty tuned again; the penalty that is kindest to
        the group that is worst off; and each width.
    curve_ : list of WhatIf
        The planned rows without projections, a point for each of `penalties`, from the largest.
    amplification_interval_, gap_interval_ : tuple of float
        Bootstrap percentiles of ``planned_.result.add`` and of the largest gap between errors.
    enough_rows_ : bool
        Whether every group has five rows a column or more; below that the estimated moments say little.
    certificate_ : Certificate
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Raises
    ------
    InputError
        In `fit`, for options out of range, groups that do not line up with the rows, a constant outcome.

    Notes
    -----
    The theory is for centred Gaussian features, linear targets and the squared error. Outcomes of two classes are best
    given as -1 and 1. What real rows have beyond their second moments is ignored; where the number of columns is not
    small and no column dominates, that matters little. Noise in the estimated coefficients would pass for differences
    between groups, so it is taken out of their second moments.

    Cost: O(n d^2) for the moments, O(S d^3) for each of the some hundred points, and both again for each resample at
    the planned point alone.

    References
    ----------
    A. Subramonian, S. J. Bell, L. Sagun, E. Dohmatob, "An Effective Theory of Bias Amplification", ICLR 2025.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.fairness import RidgeBiasTheory
    >>> adult = load_adult(split="train")
    >>> columns = ["age", "education_num", "hours_per_week"]
    >>> theory = RidgeBiasTheory(n_bootstrap=20, random_state=0)
    >>> theory = theory.fit(adult.X[columns], 2 * adult.y_binary - 1, sensitive_features=adult.X["sex"])
    >>> theory.groups_
    ['Female', 'Male']
    >>> bool(theory.planned_.error[1] > theory.planned_.error[0])
    True
    """

    def __init__(
        self,
        train_fraction: float = 1.0,
        *,
        penalty: float | None = None,
        penalties: ArrayLike | None = None,
        width_ratios: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
        n_bootstrap: int = 100,
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.train_fraction = train_fraction
        self.penalty = penalty
        self.penalties = penalties
        self.width_ratios = width_ratios
        self.n_bootstrap = n_bootstrap
        self.confidence = confidence
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, clusters: Any = None
    ) -> Self:
        """Estimate the moments of each group and predict.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Numbers, without missing values.
        y : array-like of shape (n,)
            Numbers; two classes as -1 and 1.
        sensitive_features : array-like of shape (n,) or (n, k), optional
            The groups; several columns make intersections. Default: everybody is one group, and no gap is predicted.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in all moments; the planned rows are multiples of their sums. How much they tell is
            counted as Kish does.
        clusters : array-like of shape (n,), optional
            Rows of one value belong to one person; resamples draw persons.

        Returns
        -------
        self
        """
        grid = self._checked_options()
        index = getattr(X, "index", None)
        X, y = validate_data(self, X, y, dtype="float64", y_numeric=True, ensure_min_samples=2)
        weight = _check_sample_weight(sample_weight, X, dtype="float64", ensure_non_negative=True)
        n = len(X)
        if sensitive_features is None:
            codes, self.groups_ = np.zeros(n, dtype=np.intp), ["everybody"]
        else:
            codes, self.groups_ = group_codes(sensitive_features, n, index=index)
        units = np.arange(n) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
        if len(units) != n:
            raise InputError(f"clusters has {len(units):,} values", expected=f"{n:,}, one for each row")
        spread = np.sqrt(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))
        if not spread > 0:
            raise InputError("the outcome is constant", expected="two values or more; there is nothing to predict")
        data = _Data(X, y, codes, weight, len(self.groups_))
        shrinkage = data.shrinkage()
        moments = data.moments(weight, shrinkage)
        self.covariances_, self.weights_ = moments.covariances, moments.weights
        self.noise_var_, self.n_per_group_ = moments.noise, moments.n * self.train_fraction
        rows = data.rows(weight)
        self.enough_rows_ = bool(rows.min() >= _ROWS_PER_COLUMN * X.shape[1])
        if not self.enough_rows_:
            small = self.groups_[int(rows.argmin())]
            warnings.warn(
                f"group {small!r} has {int(rows.min()):,} rows for {X.shape[1]} columns, fewer than {_ROWS_PER_COLUMN} "
                "a column: its moments are guesses, and so is what follows from them",
                UserWarning,
                stacklevel=2,
            )
        self.curve_ = moments.sweep(self.n_per_group_, grid, None)
        self.planned_, self.what_if_ = self._answers(moments, grid)
        self._resample(data, weight, units, shrinkage)
        self.certificate_ = self._certificate()
        return self

    def _checked_options(self) -> list[float]:
        if not (np.isfinite(self.train_fraction) and self.train_fraction > 0):
            raise InputError(f"train_fraction is {self.train_fraction!r}", expected="a number above 0")
        grid = _GRID if self.penalties is None else tuple(np.asarray(self.penalties, dtype="float64").ravel().tolist())
        if not grid:
            raise InputError("penalties is empty", expected="one penalty or more")
        for value in (*grid, *(() if self.penalty is None else (self.penalty,))):
            refuse_penalty(value, "penalty")
        for width in self.width_ratios:
            refuse_width(width)
        if isinstance(self.n_bootstrap, bool) or not self.n_bootstrap >= 2:
            raise InputError(f"n_bootstrap is {self.n_bootstrap!r}", expected="2 or more")
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence is {self.confidence!r}", expected="a number between 0 and 1")
        return sorted(grid, reverse=True)

    def _answers(self, moments: "_Moments", grid: list[float]) -> tuple[WhatIf, list[WhatIf]]:
        n = self.n_per_group_
        tuned = min(self.curve_, key=lambda point: float(n @ point.error))
        planned = tuned if self.penalty is None else moments.sweep(n, [self.penalty], None)[0]
        kindest = min(self.curve_, key=lambda point: float(point.error.max()))
        answers = [replace(planned, label="as planned")]
        for label, factor in (("ten times the rows", 10.0), ("unlimited rows", _UNLIMITED)):
            points = moments.sweep(n * factor, [*grid, min(grid) / factor], None)
            answers.append(replace(min(points, key=lambda point: float(n @ point.error)), label=label))
        answers.append(replace(kindest, label="the penalty kindest to the worst-off group"))
        for width in (width for width in self.width_ratios if width * self.n_features_in_ >= _FEWEST_PROJECTIONS):
            points = moments.sweep(n, grid[::_COARSE], float(width))
            best = min(points, key=lambda point: float(n @ point.error))
            answers.append(replace(best, label=f"random projections, {width:g} a column"))
        return answers[0], answers

    def _resample(self, data: "_Data", weight: Floats, units: NDArray[np.intp], shrinkage: Floats) -> None:
        rng = check_random_state(self.random_state)
        n_units = int(units.max()) + 1
        amplifications, gaps = [], []
        for _ in range(self.n_bootstrap):
            drawn = rng.multinomial(n_units, np.full(n_units, 1 / n_units))[units] * weight
            if (data.rows(drawn) < 2).any():
                continue  # a group was not drawn: nothing to compare
            again = data.moments(drawn, shrinkage)
            point = again.sweep(self.n_per_group_, [self.planned_.penalty], None)[0]
            amplifications.append(point.result.add)
            gaps.append(float(np.ptp(point.error)))
        tail = (1 - self.confidence) / 2
        ends = (tail, 1 - tail)
        if not gaps:
            amplifications, gaps = [0.0, np.inf], [0.0, np.inf]
        # an order statistic, not between two: an infinite amplification stays one
        self.amplification_interval_ = tuple(
            float(value) for value in np.quantile(amplifications, ends, method="inverted_cdf")
        )
        self.gap_interval_ = tuple(float(value) for value in np.quantile(gaps, ends, method="inverted_cdf"))

    def _certificate(self) -> Certificate:
        d = self.n_features_in_
        return Certificate(
            kind="predicted group errors",
            guarantee=(
                "As rows and columns grow in proportion, the squared error of ridge regression in each group tends to "
                "the values in planned_ and what_if_."
            ),
            parameters={
                "columns": d,
                "rows": {str(group): float(n) for group, n in zip(self.groups_, self.n_per_group_, strict=True)},
                "penalty": self.planned_.penalty,
                "amplification": self.planned_.result.add if np.isfinite(self.planned_.result.add) else None,
            },
            assumptions=(
                Assumption("Features behave like Gaussian ones with these second moments, about the pooled mean."),
                Assumption("The outcome is linear in the features within each group, with noise of constant variance."),
                Assumption(
                    "Moments are estimated from enough rows.",
                    basis="checked",
                    test=f"rows of the smallest group by columns, at least {_ROWS_PER_COLUMN}",
                    limit=float(_ROWS_PER_COLUMN),
                    passed=self.enough_rows_,
                ),
            ),
            does_not_cover=(
                "A single training set: there the errors stray by about one over the square root of the rows.",
                "Models that are not linear in fixed features, and losses other than the squared error.",
                "Rows that come from another population than these.",
            ),
            library_version=aboveboard.__version__,
            reference=REFERENCE,
        )


class _Data:
    """The rows of each group, standardised over everybody once and for all, and their moments under any weights."""

    def __init__(self, X: Floats, y: Floats, codes: NDArray[np.intp], weight: Floats, S: int) -> None:
        Z = X - np.average(X, axis=0, weights=weight)
        spread = np.sqrt(np.average(Z**2, axis=0, weights=weight))
        Z /= np.where(spread > 0, spread, 1.0)
        y = y - np.average(y, weights=weight)
        y = y / np.sqrt(np.average(y**2, weights=weight))
        self._rows = [np.flatnonzero(codes == s) for s in range(S)]
        self._Z = [Z[rows] for rows in self._rows]
        self._y = [y[rows] for rows in self._rows]

    def shrinkage(self) -> Floats:
        """Return the share of the identity in each group's second moments."""
        shares = [
            ledoit_wolf_shrinkage(Z[:: max(1, len(Z) // _SHRINKAGE_ROWS)], assume_centered=True) if len(Z) > 1 else 1.0
            for Z in self._Z
        ]
        return np.array(shares, dtype="float64")

    def rows(self, weight: Floats) -> NDArray[np.intp]:
        """Return how many rows of each group have a weight."""
        return np.array([np.count_nonzero(weight[rows]) for rows in self._rows])

    def moments(self, weight: Floats, shrinkage: Floats) -> "_Moments":
        covariances, weights, noise, errors, sums = [], [], [], [], []
        for Z, y, rows, alpha in zip(self._Z, self._y, self._rows, shrinkage, strict=True):
            own = weight[rows]
            n, d = own.sum(), Z.shape[1]
            share = own / n
            scaled = Z.T * share
            second = scaled @ Z
            # the least that keeps the algebra going where columns determine each other, or a group's rows are all alike
            least = (_LEAST * np.trace(second) / d + 1e-12) * np.eye(d)
            shrunk = (1 - alpha) * second + (alpha * np.trace(second) / d) * np.eye(d) + least
            inverse = np.linalg.inv(second + least)  # shrinking would make coefficients of groups differ
            w = inverse @ (scaled @ y)
            residual = float(share @ (y - Z @ w) ** 2)
            used = float(np.sum(inverse * second))  # degrees of freedom
            effective = n**2 / float(own @ own)
            noise.append(residual * effective / max(effective - used, 1.0))
            errors.append(noise[-1] / effective * inverse @ second @ inverse)
            covariances.append(shrunk)
            weights.append(w)
            sums.append(n)
        return _Moments(np.array(covariances), np.array(weights), np.array(noise), np.array(sums), np.array(errors))


class _Moments:
    """Second moments, coefficients, noise and the coefficients' own covariance, by group."""

    def __init__(self, covariances: Floats, weights: Floats, noise: Floats, n: Floats, errors: Floats) -> None:
        self.covariances, self.weights, self.noise, self.n = covariances, weights, noise, n
        products = np.einsum("ja,kb->jkab", weights, weights)
        for s, error in enumerate(errors):
            products[s, s] -= error
        self._spectra = make_spectra(covariances, products)

    def sweep(self, n: Floats, penalties: list[float], width_ratio: float | None) -> list[WhatIf]:
        start = Start(self._spectra)
        points = []
        for penalty in penalties:
            alone = np.full(len(n), penalty)
            result = amplified(
                self._spectra, self.noise, n, penalty, width_ratio, alone, start, of="test_error", warn=False
            )
            points.append(WhatIf("", float(n.sum()), penalty, width_ratio, result.joint.test_error, result))
        return points
