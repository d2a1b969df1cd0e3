"""Nearest points of the sets that honest answers lie in, and of their intersections."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from aboveboard.core import InputError

__all__ = [
    "Floats",
    "alternate",
    "dykstra",
    "project_elliptope",
    "project_psd",
    "project_simplex_ball",
    "unit_diagonal",
    "with_unit_diagonal",
]

Floats = NDArray[np.float64]
Projection = Callable[[Floats], Floats]


def project_simplex_ball(a: ArrayLike, radius: float) -> Floats:
    """Return the nearest vector without negative entries and with a sum of at most `radius`.

    Parameters
    ----------
    a : array-like of shape (m,)
    radius : float, 0 or more

    Returns
    -------
    ndarray of shape (m,)

    Notes
    -----
    Cost: O(m log m), for sorting.
    """
    vector = np.asarray(a, dtype=np.float64)
    if vector.ndim != 1 or not radius >= 0:
        raise InputError(
            f"shape {vector.shape} and radius {radius!r} are given", expected="a vector, a radius of 0 or more"
        )
    positive: Floats = np.maximum(vector, 0.0)
    if positive.sum() <= radius:
        return positive
    descending = np.sort(vector)[::-1]
    shifts = (np.cumsum(descending) - radius) / np.arange(1, len(vector) + 1)
    nearest: Floats = np.maximum(vector - shifts[np.flatnonzero(descending >= shifts)[-1]], 0.0)
    return nearest


def project_psd(matrix: ArrayLike, *, max_trace: float | None = None) -> Floats:
    """Return the nearest positive semidefinite matrix, with a trace of at most `max_trace` where that is given.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        Symmetric.
    max_trace : float, optional

    Returns
    -------
    ndarray of shape (n, n)

    Notes
    -----
    Cost: O(n^3), one eigendecomposition.
    """
    values, vectors = eigh(_symmetric(matrix))
    kept = np.maximum(values, 0.0) if max_trace is None else project_simplex_ball(values, max_trace)
    nearest: Floats = (vectors * kept) @ vectors.T
    return (nearest + nearest.T) / 2


def project_elliptope(matrix: ArrayLike, *, max_iter: int = 200, tol: float = 1e-7) -> Floats:
    """Return the nearest correlation matrix: positive semidefinite, with ones on the diagonal.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        Symmetric.
    max_iter, tol : as for `dykstra`

    Returns
    -------
    ndarray of shape (n, n)
        Exactly feasible: what Dykstra's algorithm leaves at the diagonal is taken off by rescaling.

    Notes
    -----
    N. J. Higham, "Computing the nearest correlation matrix", IMA Journal of Numerical Analysis 22, 2002. Cost: O(n^3)
    for each of the iterations.
    """
    found = dykstra(_symmetric(matrix), [unit_diagonal, project_psd], max_iter=max_iter, tol=tol)
    return with_unit_diagonal(found)


def dykstra(point: ArrayLike, projections: Sequence[Projection], *, max_iter: int = 200, tol: float = 1e-7) -> Floats:
    """Return the nearest point of the intersection of convex sets, by Dykstra's algorithm.

    Parameters
    ----------
    point : array-like
    projections : sequence of callable
        Each gives the nearest point of one set.
    max_iter : int
        Rounds through all sets, at most.
    tol : float
        Stop when a round moves the corrections by less than this times the norm of the point.

    Returns
    -------
    ndarray
        In the last set exactly, in the others nearly.
    """
    x = np.asarray(point, dtype=np.float64)
    corrections = [np.zeros_like(x) for _ in projections]
    small = (tol * max(1.0, float(np.linalg.norm(x)))) ** 2
    for _ in range(max_iter):
        moved = 0.0
        for i, project in enumerate(projections):
            wanted = x + corrections[i]
            x = project(wanted)
            moved += float(np.sum((wanted - x - corrections[i]) ** 2))
            corrections[i] = wanted - x
        if moved <= small:
            break
    return x


def alternate(point: ArrayLike, projections: Sequence[Projection], *, max_iter: int = 5) -> Floats:
    """Project onto one set after the other, round by round.

    Not the nearest point of the intersection, but each step brings the point nearer to *every* point of it: whatever
    the number of rounds, an answer that lies in all sets is not further off than before.

    Parameters
    ----------
    point : array-like
    projections : sequence of callable
    max_iter : int
        Rounds.

    Returns
    -------
    ndarray
        In the last set exactly.
    """
    x = np.asarray(point, dtype=np.float64)
    for _ in range(max_iter):
        for project in projections:
            x = project(x)
    return x


def unit_diagonal(matrix: Floats) -> Floats:
    """Return the nearest matrix with ones on the diagonal."""
    nearest = matrix.copy()
    np.fill_diagonal(nearest, 1.0)
    return nearest


def with_unit_diagonal(matrix: Floats) -> Floats:
    """Return a positive semidefinite matrix scaled to ones on the diagonal; rows of zeros get nothing else."""
    diagonal = np.diag(matrix)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    return unit_diagonal(matrix * np.outer(scale, scale))


def _symmetric(matrix: ArrayLike) -> Floats:
    square: Floats = np.asarray(matrix, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or not np.isfinite(square).all():
        raise InputError(f"a matrix of shape {square.shape} is given", expected="a square one of finite numbers")
    if np.abs(square - square.T).max(initial=0.0) > 1e-8 * max(1.0, np.abs(square).max(initial=0.0)):
        raise InputError("the matrix is not symmetric", remedy="Average it with its transpose, if rounding is to blame")
    return (square + square.T) / 2
