"""An attack on a private estimator: can one row be seen in what it publishes?"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import clone

from aboveboard.core import InputError
from aboveboard.privacy._rdp import EpsilonLowerBound, epsilon_lower_bound
from aboveboard.privacy._rdp.checked import checked_whole

__all__ = ["canary_lower_bound"]

Floats = NDArray[np.float64]

_FEWEST: Final = 20
_THRESHOLDS: Final = 61


def canary_lower_bound(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    canary: tuple[ArrayLike, Any],
    *,
    row: int = 0,
    trials: int = 200,
    statistic: Callable[[Any], ArrayLike] | None = None,
    delta: float | None = None,
    level: float = 0.95,
    random_state: int | None = None,
) -> EpsilonLowerBound:
    """Return the epsilon that training again and again, with a canary in place of a row and without, refutes.

    Parameters
    ----------
    estimator : estimator with ``random_state``
        Copies of it are fitted. Each gets a seed of its own.
    X, y : array-like of shape (n, n_features) and (n,)
    canary : pair of array-like of shape (n_features,) and label
        What stands in place of the row; the further from it, the easier it is to see.
    row : int, default 0
    trials : int >= 20, default 200
        Trainings with the canary, and as many without. Half of them choose direction and threshold, the others are
        counted: with so few, no more than ``log(trials / 8)`` or so can be proved, however much leaks.
    statistic : callable, optional
        Takes a fitted copy and returns what the attacker looks at, as one array; default its coefficients.
    delta : float, optional
        Of the promise that is tested; default the `delta` of the estimator, or 0 where it has none.
    level : float, default 0.95
        Confidence of the bound.
    random_state : int, optional

    Returns
    -------
    EpsilonLowerBound
        With confidence `level`, it exceeds no epsilon that the estimator keeps.

    Notes
    -----
    The attacker knows all other rows, and says "canary" where the statistic, projected onto the direction that tells
    best on the first half, lies above a threshold that is set there. Cost: ``2 * trials`` trainings.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import NoisySGDClassifier, canary_lower_bound
    >>> X, y = np.tile([[0.5], [-0.5]], (20, 1)), np.tile([1, 0], 20)
    >>> model = NoisySGDClassifier(epsilon=2.0, ridge=0.1, n_steps=20)
    >>> canary_lower_bound(model, X, y, ([-1.0], 1), trials=40, random_state=0).epsilon <= 2.0
    True
    """
    if checked_whole(trials, "trials") < _FEWEST:
        raise InputError(f"trials is {trials}", expected=f"at least {_FEWEST}")
    look = _coefficients if statistic is None else statistic
    promised = float(getattr(estimator, "delta", 0.0)) if delta is None else delta
    without, labels = np.array(X, dtype=np.float64), np.array(y)
    seeds = np.random.default_rng(random_state).integers(2**32, size=(2, trials))

    def published(rows: Floats, targets: NDArray[Any], seed: int) -> Floats:
        fitted = clone(estimator).set_params(random_state=seed).fit(rows, targets)
        return np.ravel(np.asarray(look(fitted), dtype=np.float64))

    absent = np.array([published(without, labels, int(seed)) for seed in seeds[0]])
    inserted, relabelled = without.copy(), labels.copy()
    inserted[row], relabelled[row] = canary
    present = np.array([published(inserted, relabelled, int(seed)) for seed in seeds[1]])
    half = trials // 2
    direction = _best_direction(absent[:half], present[:half])
    scores = absent @ direction, present @ direction
    threshold = _best_threshold(scores[0][:half], scores[1][:half], trials - half, promised, level)
    alarms, hits = (int((part[half:] > threshold).sum()) for part in scores)
    return epsilon_lower_bound(hits, trials - half, alarms, trials - half, delta=promised, level=level)


def _best_threshold(absent: Floats, present: Floats, trials: int, delta: float, level: float) -> float:
    """Return the threshold that would prove most in so many trials, if the scores were normal and of one width."""
    width = float(np.sqrt((absent.var() + present.var()) / 2)) + 1e-300
    low, high = float(absent.mean()), float(present.mean())

    def proved(threshold: float) -> float:
        hits, alarms = (round(trials * float(norm.sf(threshold, centre, width))) for centre in (high, low))
        return epsilon_lower_bound(hits, trials, alarms, trials, delta=delta, level=level).epsilon

    candidates = np.linspace(low - 2 * width, high + 2 * width, _THRESHOLDS).tolist()
    best = max(map(proved, candidates))
    return float(np.median([threshold for threshold in candidates if proved(threshold) == best]))


def _coefficients(fitted: Any) -> Floats:
    return np.concatenate([np.ravel(fitted.coef_), np.ravel(fitted.intercept_)])


def _best_direction(absent: Floats, present: Floats) -> Floats:
    """Return Fisher's discriminant, with the covariance shrunk a little so that it can be inverted."""
    centred = np.vstack([absent - absent.mean(axis=0), present - present.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    covariance += (1e-3 * np.trace(covariance) / len(covariance) + 1e-300) * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, present.mean(axis=0) - absent.mean(axis=0))
    return np.asarray(direction / max(float(np.linalg.norm(direction)), 1e-300))
