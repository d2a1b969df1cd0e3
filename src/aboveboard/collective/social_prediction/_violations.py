"""How far outcomes stray from forecasts, test by test, with intervals that hold for all tests at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.bootstrap import max_t_critical
from aboveboard._stats.intervals import critical_z

__all__ = ["Residuals", "residuals_on"]

Floats = NDArray[np.float64]

_DRAWS = 4000


@dataclass(frozen=True)
class Residuals:
    """Means over people of c(x, p) (y - p), for each test c.

    Attributes
    ----------
    mean, error : ndarray of shape (tests,)
        The violation of each test, and its standard error.
    weight : ndarray
        Mean of |c(x, p)|: mean / weight is the residual among those whom the test looks at.
    people : ndarray
        How many people the test looks at: (sum |c|)^2 / sum c^2.
    critical : float
        So many standard errors to each side hold for all tests at once.
    """

    mean: Floats
    error: Floats
    weight: Floats
    people: Floats
    critical: float

    @property
    def interval(self) -> tuple[Floats, Floats]:
        half = self.critical * self.error
        return np.maximum(self.mean - half, -1.0), np.minimum(self.mean + half, 1.0)


def residuals_on(
    values: Floats, p: Floats, y: Floats, *, level: float = 0.95, judged: NDArray[np.bool_] | None = None
) -> Residuals:
    """Average the residuals over people, weighted by each test.

    Parameters
    ----------
    values : ndarray of shape (n, tests)
        c(x, p).
    p, y : ndarray of shape (n,)
    level : float
    judged : ndarray of bool, shape (tests,), optional
        The tests that the intervals must hold for at once; default all.

    Notes
    -----
    Where outcomes hardly vary among those whom a test looks at, their own spread says too little (ten people without
    the outcome have none): no standard error is below that of calibrated forecasts, of variance p (1 - p), where
    outcomes are 0 or 1. O(n tests^2) time, O(n tests) memory.
    """
    n, size = values.shape
    each = values * (y - p)[:, None]
    mean = each.mean(axis=0) if n else np.zeros(size)
    centred = each - mean
    covariance = centred.T @ centred / max(n - 1, 1) / max(n, 1)
    variance = np.diag(covariance)
    if np.isin(y, (0.0, 1.0)).all():
        variance = np.maximum(variance, (values**2).T @ (p * (1.0 - p)) / max(n, 1) ** 2)
    absolute = np.abs(values)
    squares = (values**2).sum(axis=0)
    return Residuals(
        mean=mean,
        error=np.sqrt(variance),
        weight=absolute.mean(axis=0) if n else np.zeros(size),
        people=absolute.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0),
        critical=_critical(covariance if judged is None else covariance[np.ix_(judged, judged)], level),
    )


def _critical(covariance: Floats, level: float) -> float:
    """Return the quantile of the largest of the tests' normal deviations, in standard errors."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = spread > 0
    if known.sum() < 2:
        return critical_z(level)
    scaled = covariance[np.ix_(known, known)] / np.outer(spread[known], spread[known])
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2.0)
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(scaled)))
    return max_t_critical(draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T, level)
