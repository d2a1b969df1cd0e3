"""What a private learner still guarantees when it is given resampled rows."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_X_y

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_delta, checked_epsilon, checked_positive, checked_whole
from aboveboard.privacy.imbalanced._rows import binary_labels

__all__ = [
    "EffectivePrivacy",
    "Resampling",
    "bootstrap_delta",
    "effective_epsilon",
    "kissing_number_bound",
    "nominal_epsilon",
    "smote",
]

Resampling = Literal["oversampling", "smote"]
Floats = NDArray[np.float64]

_KISSING: Final = {1: 2, 2: 6, 3: 12, 4: 24, 8: 240, 24: 196_560}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePrivacy:
    """The guarantee of resampling followed by a private learner.

    Parameters
    ----------
    method : {"oversampling", "smote"}
    nominal_epsilon, nominal_delta : float
        What the learner guarantees for the rows that it is given.
    changed_rows : int
        Of those, so many can change when one row of the rare class is replaced.
    epsilon, delta : float
        What that makes for the rows of people.
    """

    method: Resampling
    nominal_epsilon: float
    nominal_delta: float
    changed_rows: int
    epsilon: float
    delta: float

    @property
    def vacuous(self) -> bool:
        """Whether nothing is guaranteed any more."""
        return self.delta >= 1


def effective_epsilon(
    method: Resampling,
    epsilon: float,
    delta: float = 0.0,
    *,
    n_minority: int,
    n_majority: int,
    per_row: int | None = None,
    k_neighbors: int = 5,
    n_features: int | None = None,
) -> EffectivePrivacy:
    """Return what a learner that is private for its rows guarantees when the rare class was resampled before.

    Parameters
    ----------
    method : {"oversampling", "smote"}
        Copies of each row of the rare class; or SMOTE: points between such a row and one of its nearest neighbours in
        the class.
    epsilon : float >= 0
    delta : float in [0, 1), default 0
        What the learner guarantees when one of *its* rows is replaced.
    n_minority, n_majority : int
        Rows of the two classes before resampling; taken as public.
    per_row : int, optional
        Rows that are added for each row of the rare class; default: as many as balance the classes, rounded up.
    k_neighbors : int, default 5
        Of SMOTE.
    n_features : int, optional
        Of SMOTE, where all distances between rows are known to differ: a row is then among the nearest neighbours of at
        most k times the kissing number of others. Without it nothing is known of ties, and all others may be affected.

    Returns
    -------
    EffectivePrivacy

    Raises
    ------
    InputError
        For numbers out of range.

    Notes
    -----
    Replacing a row of the rare class by another changes g of the learner's rows: with m added per row,

    - oversampling: g = 1 + m;
    - SMOTE: g = 1 + m + m min(2 k tau, n_minority - 1), for tau the kissing number: the row itself, its own m points,
      and those of rows whose lists of neighbours held it before or hold it now.

    By group privacy the whole is (g epsilon, delta (exp(g epsilon) - 1) / (exp(epsilon) - 1))-private. These are upper
    bounds of what is lost: see `smote_canary_audit` for a lower one.

    References
    ----------
    C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 2.2.
    G. Miller, S.-H. Teng, W. Thurston, S. Vavasis, "Separators for sphere-packings and nearest neighbor graphs",
    Journal of the ACM 44, 1997.

    Examples
    --------
    >>> from aboveboard.privacy import effective_epsilon
    >>> effective_epsilon("oversampling", 1.0, n_minority=100, n_majority=1900).epsilon
    19.0
    >>> effective_epsilon("smote", 1.0, n_minority=100, n_majority=1900, n_features=2).epsilon
    1099.0
    """
    epsilon, delta = checked_epsilon(epsilon), checked_delta(delta)
    changed = _changed_rows(method, n_minority, n_majority, per_row, k_neighbors, n_features)
    return EffectivePrivacy(
        method=method,
        nominal_epsilon=epsilon,
        nominal_delta=delta,
        changed_rows=changed,
        epsilon=changed * epsilon,
        delta=_group_delta(epsilon, delta, changed),
    )


def nominal_epsilon(epsilon: float, method: Resampling, **setting: Any) -> float:
    """Return the epsilon that the learner must be run with for resampling and learner together to be epsilon-private.

    Parameters
    ----------
    epsilon : float > 0
        Of the whole, with delta = 0.
    method, **setting
        As for `effective_epsilon`.

    Examples
    --------
    >>> from aboveboard.privacy import nominal_epsilon
    >>> nominal_epsilon(1.0, "oversampling", n_minority=100, n_majority=1900, per_row=9)
    0.1
    """
    return checked_positive(epsilon, "epsilon") / effective_epsilon(method, 1.0, **setting).changed_rows


def bootstrap_delta(n_minority: int, draws: int, n_estimators: int) -> float:
    """Return what a bootstrap ensemble guarantees by its sampling alone: (0, delta)-privacy, with this delta.

    Parameters
    ----------
    n_minority : int
        Rows of the rare class.
    draws : int
        Rows of the rare class that each estimator draws, with replacement.
    n_estimators : int

    Notes
    -----
    Unless a row is drawn at least once, replacing it changes nothing: delta = 1 - (1 - 1 / n)^(draws x n_estimators).
    Deterministic learners give no more than that, and a useful ensemble draws nearly every row.

    Examples
    --------
    >>> from aboveboard.privacy import bootstrap_delta
    >>> round(bootstrap_delta(100, 100, 10), 4)
    1.0
    """
    n = checked_whole(n_minority, "n_minority")
    times = checked_whole(draws, "draws") * checked_whole(n_estimators, "n_estimators")
    return -math.expm1(times * math.log1p(-1 / n)) if n > 1 else 1.0


def kissing_number_bound(n_features: int) -> int:
    """Return how many points can at most have the same nearest neighbour: the kissing number, or a bound on it.

    Parameters
    ----------
    n_features : int

    Notes
    -----
    Known for 1, 2, 3, 4, 8 and 24 dimensions. Else how many disjoint caps of 30 degrees fit on a sphere by their area.
    """
    d = checked_whole(n_features, "n_features")
    if d in _KISSING:
        return _KISSING[d]
    cap = betainc((d - 1) / 2, 0.5, 0.25) / 2
    return int(min(1 / cap, 1e15)) if cap > 0 else 10**15


def smote(
    X: ArrayLike,
    y: ArrayLike,
    *,
    per_row: int,
    k_neighbors: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Floats, NDArray[Any]]:
    """Add points between each row of the rarer class and one of its nearest neighbours in the class.

    This is not private: see `effective_epsilon`. It is here to show what that means, and as a baseline.

    Parameters
    ----------
    X : array-like of float, shape (n, n_features)
    y : array-like, shape (n,)
        Two classes.
    per_row : int
        Points for each row of the rarer class.
    k_neighbors : int, default 5
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray, shape (n + per_row x n_minority, n_features)
        The rows as they were, then the points, row by row.
    y : ndarray

    References
    ----------
    N. Chawla, K. Bowyer, L. Hall, W. Kegelmeyer, "SMOTE: Synthetic Minority Over-sampling Technique", JAIR 16, 2002.
    """
    rows, labels = check_X_y(X, y, dtype=np.float64)
    label, classes = binary_labels(labels)
    rare = int(label.mean() <= 0.5)
    minority = rows[label == rare]
    m, k = checked_whole(per_row, "per_row"), checked_whole(k_neighbors, "k_neighbors")
    if len(minority) <= k:
        raise InputError(
            f"the rarer class has {len(minority)} rows",
            expected=f"more than k_neighbors={k}",
            remedy="Lower k_neighbors",
        )
    rng = np.random.default_rng(random_state)
    neighbours = NearestNeighbors(n_neighbors=k).fit(minority).kneighbors(return_distance=False)
    start = np.repeat(np.arange(len(minority)), m)
    end = neighbours[start, rng.integers(k, size=len(start))]
    points = minority[start] + rng.random((len(start), 1)) * (minority[end] - minority[start])
    return np.vstack([rows, points]), np.concatenate([labels, np.full(len(points), classes[rare])])


def _changed_rows(
    method: Resampling,
    n_minority: int,
    n_majority: int,
    per_row: int | None,
    k_neighbors: int,
    n_features: int | None,
) -> int:
    if method not in get_args(Resampling):
        raise InputError(f"method is {method!r}", expected=f"one of {', '.join(map(repr, get_args(Resampling)))}")
    n_rare, n_other = checked_whole(n_minority, "n_minority"), checked_whole(n_majority, "n_majority")
    if per_row is None:
        m = max(math.ceil(n_other / n_rare) - 1, 0)
    else:
        m = checked_whole(per_row, "per_row", 0)
    if method == "oversampling":
        return 1 + m
    k = checked_whole(k_neighbors, "k_neighbors")
    others = n_rare - 1
    if n_features is not None:
        others = min(2 * k * kissing_number_bound(n_features), others)
    return 1 + m + m * others


def _group_delta(epsilon: float, delta: float, group: int) -> float:
    """Return delta times the sum of exp(i epsilon) for i below `group`, at most 1."""
    if not delta:
        return 0.0
    if not epsilon:
        return min(group * delta, 1.0)
    logarithm = (
        math.log(delta) + group * epsilon + math.log(-math.expm1(-group * epsilon)) - math.log(math.expm1(epsilon))
    )
    return math.exp(min(logarithm, 0.0))
