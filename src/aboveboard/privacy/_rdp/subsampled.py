"""Gaussian noise added to what is computed from a random part of the records.

References
----------
I. Mironov, K. Talwar, L. Zhang, "Rényi Differential Privacy of the Sampled Gaussian Mechanism", 2019.
https://arxiv.org/abs/1908.10530
Y.-X. Wang, B. Balle, S. P. Kasiviswanathan, "Subsampled Rényi Differential Privacy and Analytical Moments Accountant",
AISTATS 2019, Theorem 27. https://arxiv.org/abs/1808.00087
"""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, gammasgn, log_ndtr, logsumexp

from aboveboard.privacy._rdp.checked import checked_fraction, checked_positive
from aboveboard.privacy._rdp.curve import DEFAULT_ORDERS, RDPCurve, checked_orders

__all__ = ["poisson_gaussian_rdp", "without_replacement_gaussian_rdp"]

Floats = NDArray[np.float64]

_MOST_TERMS: Final = 2**17
_NEGLIGIBLE: Final = -36.0  # a logarithm: below the rounding of the sum
_ROUNDING: Final = 1e-14  # of a sum whose terms nearly cancel
_STEP: Final = 0.1  # of the trapezoidal rule, whose error for Gaussians of width one is then below 1e-800


def poisson_gaussian_rdp(
    noise_multiplier: float, sampling_rate: float, *, orders: ArrayLike = DEFAULT_ORDERS
) -> RDPCurve:
    """Return the curve of the sampled Gaussian mechanism, for neighbours of which one has a record more.

    Parameters
    ----------
    noise_multiplier : float > 0
        Standard deviation of the noise over how far one record can move the sum.
    sampling_rate : float in [0, 1]
        With which probability each record takes part, independently of the others.
    orders : array-like of float
        Whole orders take a finite sum; others a series, split where the two densities meet.

    Returns
    -------
    RDPCurve
        Exact in every order, for the neighbours that differ most; of one release.

    Notes
    -----
    Cost: O(alpha) for a whole order, up to 1e5 terms for a broken one; about 0.1 s for the default orders.
    """
    sigma, q = checked_positive(noise_multiplier, "noise_multiplier"), checked_fraction(sampling_rate, "sampling_rate")
    mechanism = f"Gaussian noise of multiplier {sigma:g} on a Poisson sample of rate {q:g}"
    if q in (0.0, 1.0):
        rho = q / (2 * sigma**2)
        return RDPCurve.concentrated(rho, adjacency="add_remove", mechanism=mechanism, orders=orders)
    alphas = checked_orders(orders)
    values = np.array([_poisson(sigma, q, alpha) for alpha in alphas.tolist()])
    return RDPCurve(orders=alphas, values=values, adjacency="add_remove", mechanism=mechanism)


def without_replacement_gaussian_rdp(
    noise_multiplier: float, sampling_rate: float, *, orders: ArrayLike = DEFAULT_ORDERS
) -> RDPCurve:
    """Return a curve of Gaussian noise on a sample of fixed size, for neighbours of which one record is another.

    Parameters
    ----------
    noise_multiplier : float > 0
        Standard deviation of the noise over how far *replacing* one record of the sample can move what is computed
        (for a sum, twice the largest norm of a record's share).
    sampling_rate : float in [0, 1]
        Size of the sample, drawn without replacement, over the number of records.
    orders : array-like of float
        Between whole orders, the bound is interpolated.

    Returns
    -------
    RDPCurve
        An upper bound, of one release.
    """
    sigma, q = checked_positive(noise_multiplier, "noise_multiplier"), checked_fraction(sampling_rate, "sampling_rate")
    mechanism = f"Gaussian noise of multiplier {sigma:g} on a sample without replacement of rate {q:g}"
    if q in (0.0, 1.0):
        rho = q / (2 * sigma**2)
        return RDPCurve.concentrated(rho, adjacency="replace_one", mechanism=mechanism, orders=orders)
    alphas = checked_orders(orders)
    values = _without_replacement(sigma, q, alphas)
    return RDPCurve(orders=alphas, values=values, adjacency="replace_one", mechanism=mechanism)


# --- Poisson ----------------------------------------------------------------------------------------------------------


def _poisson(sigma: float, q: float, alpha: float) -> float:
    if math.isinf(alpha):
        return math.inf
    if alpha.is_integer():
        return _poisson_whole(sigma, q, int(alpha)) / (alpha - 1)
    return max(_poisson_broken(sigma, q, alpha) / (alpha - 1), 0.0)


def _poisson_whole(sigma: float, q: float, alpha: int) -> float:
    """Return log E[(1 - q + q L)^alpha] for the likelihood ratio L; the binomial sums to one, less terms 0 and 1."""
    k = np.arange(2, alpha + 1, dtype=np.float64)
    exponent = k * (k - 1) / (2 * sigma**2)
    logs = _log_binomial(alpha, k) + k * math.log(q) + (alpha - k) * math.log1p(-q)
    return float(np.logaddexp(0.0, logsumexp(logs + exponent + np.log1p(-np.exp(-exponent)))))


def _poisson_broken(sigma: float, q: float, alpha: float) -> float:
    """Return the same for an order that is not whole: on each side of where both densities meet, a binomial series."""
    middle = sigma**2 * math.log(1 / q - 1) + 0.5
    terms = 256
    while True:
        i = np.arange(terms, dtype=np.float64)
        j = alpha - i
        below = i * math.log(q) + j * math.log1p(-q) + i * (i - 1) / (2 * sigma**2) + log_ndtr((middle - i) / sigma)
        above = j * math.log(q) + i * math.log1p(-q) + j * (j - 1) / (2 * sigma**2) + log_ndtr((j - middle) / sigma)
        coefficient = gammaln(alpha + 1) - gammaln(i + 1) - gammaln(j + 1)
        logs = coefficient + np.logaddexp(below, above)
        total = float(logsumexp(logs, b=gammasgn(j + 1)))
        if logs[-1] < total + _NEGLIGIBLE or terms == _MOST_TERMS:
            # the signs alternate and the terms shrink: what is left out is less than the first of it
            return float(np.logaddexp(total, logs[-1])) + _ROUNDING
        terms *= 4


# --- without replacement ----------------------------------------------------------------------------------------------


def _without_replacement(sigma: float, q: float, alphas: Floats) -> Floats:
    finite = alphas[np.isfinite(alphas)]
    whole = np.unique(np.concatenate([[1.0, 2.0], np.floor(finite), np.ceil(finite)]))
    j = np.arange(2.0, whole[-1] + 1)
    binomial = np.full((len(whole), len(j)), -np.inf)
    inside = j <= whole[:, None]
    row, column = np.nonzero(inside)
    binomial[inside] = _log_binomial(whole[row], j[column])
    logs = binomial + j * math.log(q) + _log_swaps(sigma, int(whole[-1]))
    cumulants = np.logaddexp(0.0, logsumexp(logs, axis=1))  # (alpha - 1) times the divergence, convex in alpha
    values = np.full(alphas.shape, np.inf)
    values[: finite.size] = np.interp(finite, whole, cumulants) / (finite - 1)
    return values


def _log_swaps(sigma: float, highest: int) -> Floats:
    """Return log bounds of E_r[(abs(p - q) / r)^j] over three laws in turn at distance 1, for j = 2, ..., highest."""
    j = np.arange(2, highest + 1, dtype=np.float64)
    bound = math.log(2) + j * (j - 1) / (2 * sigma**2)
    exact = _log_moments(sigma, highest + 1)
    halves = np.arange(2, highest + 1) // 2 - 1, (np.arange(2, highest + 1) + 1) // 2 - 1
    return np.minimum(bound, math.log(4) + (exact[halves[0]] + exact[halves[1]]) / 2)


def _log_moments(sigma: float, highest: int) -> Floats:
    """Return log E_q[(p / q - 1)^j] for j = 2, 4, ... up to `highest`; infinite where it would not be used.

    The law p is N(1 / sigma, 1), q is N(0, 1). Far from the means, where p / q is either huge or next to nothing, the
    moment is that of p / q itself, and the simpler bound is the smaller one.
    """
    j = np.arange(2, highest + 1, 2, dtype=np.float64)
    useful = j / sigma <= 12 + 2 * sigma * np.log(j + 1)
    moments = np.full(j.shape, np.inf)
    if useful.any():
        x = np.arange(-40.0, j[useful].max() / sigma + 40.0, _STEP)
        with np.errstate(divide="ignore", over="ignore"):
            exponent = x / sigma - 1 / (2 * sigma**2)
            log_distance = np.where(exponent > 30, exponent, np.log(np.abs(np.expm1(np.minimum(exponent, 30)))))
        density = -(x**2) / 2 + math.log(_STEP / math.sqrt(2 * math.pi))
        moments[useful] = logsumexp(j[useful, None] * log_distance + density, axis=1)
    return moments


def _log_binomial(n: float | Floats, k: Floats) -> Floats:
    found: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found
