"""Gaussian noise: its Rényi curve, and the exact trade-off between its size, epsilon and delta.

References
----------
B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and Optimal
Denoising", ICML 2018. https://arxiv.org/abs/1805.06530
"""

import math
from collections.abc import Callable
from typing import Final

from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erf, erfcx, log_ndtr

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_delta, checked_epsilon, checked_positive
from aboveboard.privacy._rdp.curve import DEFAULT_ORDERS, Adjacency, RDPCurve

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_rdp", "gaussian_sigma"]

_ROUNDING: Final = 1e-15


def gaussian_rdp(
    sigma: float, *, adjacency: Adjacency, sensitivity: float = 1.0, orders: ArrayLike = DEFAULT_ORDERS
) -> RDPCurve:
    """Return the exact curve of the Gaussian mechanism.

    Parameters
    ----------
    sigma : float > 0
        Standard deviation of the noise in each coordinate.
    adjacency : {"add_remove", "replace_one"}
        For which `sensitivity` holds. Replacing a record can move a sum twice as far as adding one.
    sensitivity : float > 0, default 1
        How far, in Euclidean distance, neighbours can move what is released.
    orders : array-like of float

    Returns
    -------
    RDPCurve
        With ``rho = sensitivity**2 / (2 sigma**2)``.
    """
    ratio = checked_positive(sensitivity, "sensitivity") / checked_positive(sigma, "sigma")
    mechanism = f"Gaussian noise of standard deviation {sigma:g}"
    return RDPCurve.concentrated(ratio**2 / 2, adjacency=adjacency, mechanism=mechanism, orders=orders)


def gaussian_delta(epsilon: float, sigma: float, *, sensitivity: float = 1.0) -> float:
    """Return the exact delta of one Gaussian release at a given epsilon.

    Parameters
    ----------
    epsilon : float >= 0
    sigma : float > 0
        Standard deviation of the noise.
    sensitivity : float > 0, default 1
    """
    shift = checked_positive(sensitivity, "sensitivity") / checked_positive(sigma, "sigma")
    return min(math.exp(_log_delta(checked_epsilon(epsilon), shift)), 1.0)


def gaussian_epsilon(delta: float, sigma: float, *, sensitivity: float = 1.0) -> float:
    """Return the exact epsilon of one Gaussian release at a given delta.

    Parameters
    ----------
    delta : float in (0, 1)
    sigma : float > 0
        Standard deviation of the noise.
    sensitivity : float > 0, default 1
    """
    target = math.log(_positive_delta(delta))
    shift = checked_positive(sensitivity, "sensitivity") / checked_positive(sigma, "sigma")
    if _log_delta(0.0, shift) <= target:
        return 0.0
    highest = shift**2 / 2 + shift * math.sqrt(-2 * target)  # where the tail bound of the normal gives delta
    found = brentq(lambda epsilon: _log_delta(epsilon, shift) - target, 0.0, highest, xtol=1e-14 * highest)
    return _pushed(float(found), lambda epsilon: _log_delta(epsilon, shift) <= target)


def gaussian_sigma(epsilon: float, delta: float, *, sensitivity: float = 1.0) -> float:
    """Return the smallest noise that makes one Gaussian release (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float >= 0
    delta : float in (0, 1)
    sensitivity : float > 0, default 1
        How far, in Euclidean distance, neighbours can move what is released; for the adjacency that is meant.

    Returns
    -------
    float
        Standard deviation of the noise in each coordinate.

    Examples
    --------
    >>> from aboveboard.privacy import gaussian_sigma
    >>> round(gaussian_sigma(1.0, 1e-5), 3)
    3.731
    """
    epsilon, target = checked_epsilon(epsilon), math.log(_positive_delta(delta))
    low, high = 1.0, 1.0
    while _log_delta(epsilon, 1 / high) > target:
        high *= 2
        if high > 1 / _ROUNDING and epsilon > 0:
            raise InputError(
                f"epsilon {epsilon:g} with delta {delta:g} needs noise beyond what float64 can tell apart",
                remedy="Ask for a larger epsilon or delta",
            )
    while _log_delta(epsilon, 1 / low) <= target:
        low /= 2
    found = brentq(lambda sigma: _log_delta(epsilon, 1 / sigma) - target, low, high, xtol=1e-14 * low)
    ratio = _pushed(float(found), lambda sigma: _log_delta(epsilon, 1 / sigma) <= target)
    return ratio * checked_positive(sensitivity, "sensitivity")


def _log_delta(epsilon: float, shift: float) -> float:
    """Return log(Phi(a) - exp(epsilon) Phi(b)) for a, b = shift / 2 -+ epsilon / shift.

    The density at `a` is exp(epsilon) times that at `b`, so that the difference is one of Mills ratios; what it may
    lose to rounding is added.
    """
    if epsilon == 0:
        return math.log(erf(shift / math.sqrt(8)))
    a, b = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    if a > 1:
        first = float(log_ndtr(a))
        return first + math.log(-math.expm1(epsilon + float(log_ndtr(b)) - first))
    larger, smaller = erfcx(-a / math.sqrt(2)), erfcx(-b / math.sqrt(2))
    return -a * a / 2 + math.log((larger - smaller + _ROUNDING * larger) / 2)


def _pushed(value: float, enough: Callable[[float], bool]) -> float:
    """Return the value, raised by the rounding that is needed for it to be enough."""
    step = 1e-15
    while not enough(value):
        value *= 1 + step
        step *= 2
    return value


def _positive_delta(delta: float) -> float:
    if checked_delta(delta) == 0:
        raise InputError("delta is 0", expected="a number in (0, 1): Gaussian noise never gives pure privacy")
    return float(delta)
