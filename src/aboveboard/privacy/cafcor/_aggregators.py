"""One vector from the vectors of many clients, some of which may be lies: CAF, and the rules it is held against."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from aboveboard.core import InputError

__all__ = [
    "AGGREGATORS",
    "LARGEST",
    "Filtered",
    "caf",
    "coordinate_median",
    "geometric_median",
    "multi_krum",
    "trimmed_mean",
]

Floats = NDArray[np.float64]

LARGEST: Final = 1e100
"""The square of a larger entry, summed, leaves no room in float64."""


class Filtered(NamedTuple):
    """What `caf` returns.

    Attributes
    ----------
    mean : ndarray or tensor of shape (d,)
        The weighted mean, of the type of the input.
    weights : ndarray of shape (n,)
        What each row counts, float64; they sum to 1.
    top_eigenvalue : float
        The largest eigenvalue of the weighted covariance: the variance along the direction that is left most spread.
    """

    mean: Any
    weights: Floats
    top_eigenvalue: float


def caf(x: Any, f: int) -> Filtered:
    """Return the mean of the rows of `x` after those that stretch their covariance most have been weighed down.

    The covariance-bound-agnostic filter: it needs no bound on how far apart honest rows may lie.

    Parameters
    ----------
    x : array or PyTorch tensor of shape (n, d)
        One row per client, finite.
    f : int
        How many rows may be arbitrary, fewer than n / 2.

    Returns
    -------
    Filtered
        Mean (of the type, precision and device of `x`), weights and top eigenvalue.

    Raises
    ------
    aboveboard.core.InputError
        When `x` is no matrix of finite numbers up to 1e100 in size, or `f` is not below n / 2.

    Notes
    -----
    Each step takes the top eigenvector v of the weighted covariance, and multiplies the weight of row i by
    ``1 - tau_i / max(tau)``, with ``tau_i = <v, x_i - mean>^2``; at least one weight becomes 0. It ends when the
    weights sum to n - 2 f or less, and keeps the mean with the smallest top eigenvalue that was seen.

    The covariance has the eigenvalues of an n x n matrix made from the products of rows, so that nothing of size d x d
    is formed and eigenvectors are exact. Rows are taken relative to one in their middle: a common offset costs no
    digits. Cost: O(n^2 d) for the products, twice, and O(n^3) for each of at most 2 f steps.

    Guarantee: for any n - f rows, the squared distance from their mean is at most ``kappa`` times the top eigenvalue of
    their covariance, with ``kappa`` of the order of f / n. It is the top eigenvalue and not the trace, which saves a
    factor d against coordinate-wise rules.

    References
    ----------
    Y. Allouah, R. Guerraoui, J. Stephan, "Towards Trustworthy Federated Learning with Untrusted Participants",
    ICML 2025, arXiv:2505.01874.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import caf
    >>> x = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1e6, -1e6]])
    >>> caf(x, f=1).mean
    array([1., 2.])
    """
    rows = _rows(x, f)
    products = rows @ rows.T
    middle = rows[_middle(products, f)]
    rows = rows - middle
    weights, eigenvalue = _filtered(rows @ rows.T, f)
    return Filtered(_like(middle + weights @ rows, x), weights, eigenvalue)


def trimmed_mean(x: ArrayLike, f: int) -> Floats:
    """Return the mean of each coordinate without its `f` largest and `f` smallest values.

    Parameters
    ----------
    x : array of shape (n, d)
    f : int
        Below n / 2.
    """
    rows = _rows(x, f)
    kept: Floats = np.sort(rows, axis=0)[f : len(rows) - f]
    return np.asarray(kept.mean(axis=0))


def coordinate_median(x: ArrayLike, f: int) -> Floats:
    """Return the median of each coordinate; `f` is checked, and plays no part.

    Parameters
    ----------
    x : array of shape (n, d)
    f : int
        Below n / 2.
    """
    return np.asarray(np.median(_rows(x, f), axis=0))


def geometric_median(x: ArrayLike, f: int) -> Floats:
    """Return the point with the smallest sum of distances to the rows; `f` is checked, and plays no part.

    Parameters
    ----------
    x : array of shape (n, d)
    f : int
        Below n / 2.

    Notes
    -----
    Weiszfeld's iteration, with distances below 1e-9 of the median one counted as that; it ends when a step is shorter
    than 1e-10 of the median distance, or after 1,000 steps.
    """
    rows = _rows(x, f)
    point = np.median(rows, axis=0)
    unit = float(np.median(np.linalg.norm(rows - point, axis=1)))
    if unit == 0.0:  # more than half of the rows are one point
        return np.asarray(point)
    for _ in range(1000):
        weights = 1.0 / np.maximum(np.linalg.norm(rows - point, axis=1), 1e-9 * unit)
        following = weights @ rows / weights.sum()
        step = float(np.linalg.norm(following - point))
        point = following
        if step <= 1e-10 * unit:
            break
    return np.asarray(point)


def multi_krum(x: ArrayLike, f: int) -> Floats:
    """Return the mean of the n - f rows that lie closest to their n - f - 2 nearest neighbours.

    Parameters
    ----------
    x : array of shape (n, d)
    f : int
        Below n / 2, and at most n - 3.
    """
    rows = _rows(x, f)
    n = len(rows)
    if f > n - 3:
        raise InputError(f"f is {f} with {n} rows", expected="f of n - 3 at most: each row needs a neighbour")
    near = rows - rows[_middle(rows @ rows.T, f)]
    nearest = np.sort(_squared_distances(near @ near.T), axis=1)[:, 1 : n - f - 1]
    chosen = np.argsort(nearest.sum(axis=1), kind="stable")[: n - f]
    return np.asarray(rows[chosen].mean(axis=0))


def _caf_mean(x: ArrayLike, f: int) -> Floats:
    return np.asarray(caf(np.asarray(x, dtype=np.float64), f).mean)


def _mean(x: ArrayLike, f: int) -> Floats:  # noqa: ARG001
    return np.asarray(np.asarray(x, dtype=np.float64).mean(axis=0))


AGGREGATORS: Final[dict[str, Callable[[Any, int], Floats]]] = {
    "caf": _caf_mean,
    "mean": _mean,
    "trimmed_mean": trimmed_mean,
    "median": coordinate_median,
    "geometric_median": geometric_median,
    "multi_krum": multi_krum,
}


# --- the filter -------------------------------------------------------------------------------------------------------


def _filtered(products: Floats, f: int) -> tuple[Floats, float]:
    """Return weights and top eigenvalue from the products of all pairs of rows."""
    n = len(products)
    counts = np.ones(n)
    best, kept = np.inf, counts / n
    while True:
        weights = counts / counts.sum()
        eigenvalue, scores = _top_direction(products, weights)
        if eigenvalue < best:
            best, kept = eigenvalue, weights
        largest = np.abs(scores[counts > 0]).max()
        if f == 0 or largest == 0.0:
            break
        counts = counts * (1.0 - np.minimum(np.abs(scores) / largest, 1.0) ** 2)
        if counts.sum() <= n - 2 * f:
            break
    return kept, best


def _top_direction(products: Floats, weights: Floats) -> tuple[float, Floats]:
    """Return the largest variance in any direction, and the rows' positions along it but for a common factor."""
    along = products @ weights
    centred = products - along[:, None] - along + weights @ along
    roots = np.sqrt(weights)
    values, vectors = eigh(roots[:, None] * centred * roots, subset_by_index=[len(roots) - 1, len(roots) - 1])
    return max(float(values[0]), 0.0), centred @ (roots * vectors[:, 0])


def _middle(products: Floats, f: int) -> int:
    """Return a row that n - f rows lie close to."""
    return int(np.argmin(np.sort(_squared_distances(products), axis=1)[:, len(products) - f - 1]))


def _squared_distances(products: Floats) -> Floats:
    sizes = np.diag(products)
    return np.asarray(np.maximum(sizes[:, None] + sizes - 2.0 * products, 0.0))


# --- input and output -------------------------------------------------------------------------------------------------


def _rows(x: Any, f: int) -> Floats:
    rows = np.asarray(x.detach().double().cpu().numpy() if _is_tensor(x) else x, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"the vectors have the shape {rows.shape}", expected="a matrix with one row per client")
    if not (np.abs(rows) <= LARGEST).all():
        raise InputError(
            "some entries are missing, infinite or above 1e100 in size",
            expected="finite numbers",
            remedy="Leave such clients out; CafCorServer does",
        )
    if not (isinstance(f, int | np.integer) and 0 <= 2 * f < len(rows)):
        raise InputError(
            f"f is {f!r} with {len(rows)} rows",
            expected="a whole number from 0 to below half of the rows",
            remedy="With half of the clients against it, no rule can tell who is honest",
        )
    return rows


def _is_tensor(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


def _like(mean: Floats, x: Any) -> Any:
    if _is_tensor(x):
        return x.new_tensor(mean) if x.is_floating_point() else mean
    dtype = np.asarray(x).dtype
    return mean.astype(dtype) if np.issubdtype(dtype, np.floating) else mean
