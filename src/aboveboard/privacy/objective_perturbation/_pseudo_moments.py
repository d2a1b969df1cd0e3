"""Vectors of parities that a sum-of-squares proof of low degree cannot tell from those of real data."""

import math
from itertools import chain, combinations

import numpy as np
from numpy.typing import ArrayLike

from aboveboard.core import InputError
from aboveboard.privacy.objective_perturbation._projections import Floats, project_psd

__all__ = ["PseudoMoments", "project_pseudo_moments", "subsets"]

_LARGEST = 2_000  # rows of a moment matrix: 32 MB each, and seconds for each eigendecomposition


def subsets(n: int, k: int, *, empty: bool = False) -> list[tuple[int, ...]]:
    """Return the subsets of 0 .. n-1 of size 1 (or 0) to k, by size and then in lexicographic order."""
    return list(chain.from_iterable(combinations(range(n), size) for size in range(0 if empty else 1, k + 1)))


def project_pseudo_moments(
    parities: ArrayLike,
    n: int,
    k: int,
    *,
    half_degree: int | None = None,
    max_iter: int = 500,
    tol: float = 1e-5,
) -> Floats:
    """Return the nearest parities that extend to pseudo-moments of degree 2 `half_degree`.

    Parameters
    ----------
    parities : array-like of shape (C(n, 1) + ... + C(n, k),)
        Means of products of signs over each subset of 1 to k of n columns, by size and then in lexicographic order.
    n, k : int
        1 <= k <= n.
    half_degree : int, optional
        Default: k / 2, rounded up. With n the set is that of real data, exactly.
    max_iter : int
    tol : float
        Stop when matrix and moments differ by less than this, per row of the matrix.

    Returns
    -------
    ndarray, of the same shape
        Feasible to rounding: what is missing after the last iteration is made up by a step towards independent fair
        coins, for which all parities are 0.

    Raises
    ------
    InputError
        For sizes that do not fit, or a moment matrix of more than 2,000 rows.

    Notes
    -----
    Alternating direction method of multipliers between moments and their matrix ``[p(S xor T)]``, for S and T of at
    most `half_degree` columns. Each of the iterations costs O(D^3), D = 1 + n + ... + C(n, half_degree).
    """
    if not 1 <= k <= n:
        raise InputError(f"k is {k!r} and n is {n!r}", expected="1 <= k <= n")
    observed = np.asarray(parities, dtype=np.float64)
    expected = sum(math.comb(n, size) for size in range(1, k + 1))
    if observed.shape != (expected,) or not np.isfinite(observed).all():
        raise InputError(f"parities have shape {observed.shape}", expected=f"{expected:,} finite numbers")
    return PseudoMoments(n, k, half_degree).project(observed, max_iter=max_iter, tol=tol)


class PseudoMoments:
    """The moment matrix of n signs: which moment stands where.

    Parameters
    ----------
    n, k : int
        Parities of up to k of n signs are observed.
    half_degree : int, optional
    """

    def __init__(self, n: int, k: int, half_degree: int | None = None) -> None:
        degree = (k + 1) // 2 if half_degree is None else half_degree
        rows = sum(math.comb(n, size) for size in range(degree + 1))
        if not 2 * degree >= k:
            raise InputError(f"half_degree is {degree!r}", expected=f"at least half of k = {k}")
        if rows > _LARGEST:
            raise InputError(
                f"the moment matrix of {n} columns has {rows:,} rows and takes {8 * rows**2 / 1e6:,.0f} MB",
                expected=f"{_LARGEST:,} rows at most",
                remedy="Use fewer columns, a smaller k, or another relaxation",
            )
        # a random code for each sign: products of signs are exclusive ors of codes, and signs that meet twice vanish
        codes = np.random.default_rng(0).integers(2**62, size=n)
        corner = np.array([_code(codes, subset) for subset in subsets(n, degree, empty=True)])
        found, self._place = np.unique(corner[:, None] ^ corner, return_inverse=True)
        self._place = self._place.reshape(rows, rows)
        self._counts = np.bincount(self._place.ravel()).astype(np.float64)
        self._observed = np.searchsorted(found, [_code(codes, subset) for subset in subsets(n, k)])
        self._one = int(np.searchsorted(found, 0))

    def matrix(self, moments: Floats) -> Floats:
        return moments[self._place]

    def project(self, observed: Floats, *, max_iter: int, tol: float) -> Floats:
        moments, negative = self._nearest(observed, max_iter, tol)
        # (1 - t) M + t I has no negative eigenvalue
        return moments[self._observed] / (1 + negative)

    def _nearest(self, observed: Floats, max_iter: int, tol: float) -> tuple[Floats, float]:
        """Return all moments, and how far below 0 the least eigenvalue of their matrix is."""
        weight, target = np.zeros_like(self._counts), np.zeros_like(self._counts)
        weight[self._observed], target[self._observed] = 2.0, observed
        rows = len(self._place)
        Z, U, rho = np.eye(rows), np.zeros((rows, rows)), 0.5
        for _ in range(max_iter):
            pulled = np.bincount(self._place.ravel(), (Z - U).ravel())
            moments: Floats = (weight * target + rho * pulled) / (weight + rho * self._counts)
            moments[self._one] = 1.0
            P = self.matrix(moments)
            previous, Z = Z, project_psd(P + U)
            U = U + P - Z
            primal, dual = float(np.linalg.norm(P - Z)), rho * float(np.linalg.norm(Z - previous))
            if max(primal, dual) <= tol * rows:
                break
            if primal > 10 * dual:
                rho, U = 2 * rho, U / 2
            elif dual > 10 * primal:
                rho, U = rho / 2, 2 * U
        return moments, max(0.0, -float(np.linalg.eigvalsh(P)[0]))


def _code(codes: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]", subset: tuple[int, ...]) -> int:
    return int(np.bitwise_xor.reduce(codes[list(subset)])) if subset else 0
