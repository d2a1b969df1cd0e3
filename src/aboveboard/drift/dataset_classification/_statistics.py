"""What a count of right guesses proves: p-values, intervals, and how far apart two distributions must be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aboveboard._stats.intervals import clopper_pearson, wilson
from aboveboard.core.errors import InputError

__all__ = ["binomial_p_value", "mean_recall_interval", "permutation_p_value", "tv_lower_bound"]


def binomial_p_value(k: int, n: int, m: int = 2) -> float:
    """Return the probability that pure guessing among `m` sources is right at least `k` times out of `n`.

    Parameters
    ----------
    k : int
        Held-out rows whose source was guessed right, 0 <= k <= n.
    n : int
        Held-out rows, at least 1.
    m : int
        Sources, at least 2.

    Returns
    -------
    float
        P(Bin(n, 1/m) >= k).

    Raises
    ------
    InputError
        For counts that are impossible.

    Notes
    -----
    Exact where the source of each held-out row was drawn on its own, each with probability 1/m, and the classifier saw
    none of them. With equal *fixed* numbers per source it is not: with 50 rows of either of two sources, and a rule
    that names each of them 50 times, a p-value of 2.8 % or less comes up in 3.6 % of all cases, since the count then
    moves in steps of two. `permutation_p_value` is exact there.

    Examples
    --------
    >>> from aboveboard.drift import binomial_p_value
    >>> round(binomial_p_value(60, 100), 4)
    0.0284
    """
    k, n, m = _whole(k, "k"), _whole(n, "n"), _whole(m, "m")
    if n < 1 or not 0 <= k <= n or m < 2:
        raise InputError(f"k = {k}, n = {n}, m = {m}", expected="0 <= k <= n, n >= 1 and m >= 2")
    return float(stats.binom.sf(k - 1, n, 1.0 / m))


def tv_lower_bound(k: int, n: int, alpha: float = 0.05) -> float:
    """Return a lower bound of the total-variation distance between two sources, right with confidence 1 - alpha.

    Parameters
    ----------
    k : int
        Held-out rows whose source was guessed right.
    n : int
        Held-out rows; the source of each was drawn by a fair coin.
    alpha : float in (0, 0.5)
        Probability of a bound that is too high.

    Returns
    -------
    float in [0, 1]
        max(0, 2 a - 1), where a is the exact one-sided lower confidence bound of the accuracy.

    Raises
    ------
    InputError
        For counts or a level that are impossible.

    Notes
    -----
    The best accuracy that any rule can have is (1 + TV) / 2, so an accuracy of a proves TV >= 2 a - 1.

    Examples
    --------
    >>> from aboveboard.drift import tv_lower_bound
    >>> round(tv_lower_bound(900, 1000), 3)
    0.766
    """
    k, n = _whole(k, "k"), _whole(n, "n")
    if n < 1 or not 0 <= k <= n:
        raise InputError(f"k = {k} and n = {n}", expected="0 <= k <= n and n >= 1")
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha is {alpha}", expected="a number between 0 and 0.5")
    low, _ = clopper_pearson(k, n, level=1.0 - 2.0 * alpha)
    return max(0.0, 2.0 * float(low) - 1.0)


def permutation_p_value(confusion: Any, *, random_state: Any = None, draws: int = 9_999) -> float:
    """Return the probability of guesses at least this good when the true sources are shuffled among the held-out rows.

    Parameters
    ----------
    confusion : array of int, shape (m, m)
        Rows are true sources, columns guesses.
    random_state : int, Generator or None
        Used for three sources or more only.
    draws : int
        Shuffles, for three sources or more.

    Returns
    -------
    float
        For two sources exact (hypergeometric); else (1 + hits) / (1 + draws), whose level is exact as well.

    Raises
    ------
    InputError
        For a matrix that is not square, holds negative counts, or has a source without rows.

    Notes
    -----
    The statistic is the mean recall of the sources, which is not moved by how many rows each has. Row and column sums
    stay as they are, so that nothing is assumed about either.
    """
    table = np.asarray(confusion)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2 or table.dtype.kind not in "iu":
        raise InputError(
            f"the confusion matrix has shape {table.shape} and type {table.dtype}", expected="m x m counts"
        )
    sizes, named = table.sum(axis=1), table.sum(axis=0)
    if (table < 0).any() or (sizes == 0).any():
        raise InputError("the confusion matrix has a source without rows, or negative counts", expected="counts")
    if len(table) == 2:
        # with fixed margins both recalls rise with the first diagonal cell
        return float(stats.hypergeom.sf(table[0, 0] - 1, sizes.sum(), sizes[0], named[0]))
    rng = np.random.default_rng(random_state)
    observed = _mean_recall(np.diag(table), sizes)
    left = np.tile(sizes, (draws, 1))
    diagonal = np.empty((draws, len(table)))
    for j, count in enumerate(named[:-1]):
        cells = np.array([rng.multivariate_hypergeometric(row, count) for row in left])
        diagonal[:, j] = cells[:, j]
        left -= cells
    diagonal[:, -1] = left[:, -1]
    hits = np.count_nonzero(_mean_recall(diagonal, sizes) >= observed - 1e-12)
    return (1 + hits) / (1 + draws)


def mean_recall_interval(confusion: NDArray[np.int64], *, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of the mean recall of sources of unequal size: Wilson's for each, joined as variances are."""
    sizes, right = confusion.sum(axis=1), np.diag(confusion)
    low, high = wilson(right, sizes, level=level)
    recall, m = right / sizes, len(sizes)
    centre = float(recall.mean())
    down = float(np.sqrt(((recall - low) ** 2).sum())) / m
    up = float(np.sqrt(((high - recall) ** 2).sum())) / m
    return max(centre - down, 0.0), min(centre + up, 1.0)


def _mean_recall(diagonal: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray((diagonal / sizes).mean(axis=-1))


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise InputError(f"{name} is {value!r}", expected="a whole number")
    return int(value)
