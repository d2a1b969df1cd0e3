"""Where to look: candidate subgroups, learned on the training half alone.

A subgroup of the covariate family maximises the decay that the new mix of rows brings about. For a fixed ratio
``omega = P_0(A) / P_1(A)`` that is a linear programme over sets with one constraint, so the best set is
``{(z - lam) (omega w - g) > tau g}``, and its multiplier ``lam`` minimises a convex piecewise linear function, which
sorting solves exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Region", "Threshold", "lagrange_multiplier", "nested_thresholds", "scan_regions"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

OMEGAS: Final = np.geomspace(0.05, 20.0, 60)
_ALIKE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Region:
    """``{(z - multiplier) (omega w - g) > tolerance g}``: z are risks, w density ratios, g those of what may shift.

    Parameters
    ----------
    omega, multiplier, tolerance : float
    """

    omega: float
    multiplier: float
    tolerance: float

    def __call__(self, z: Floats, w: Floats, g: Floats | float) -> Mask:
        return np.asarray((z - self.multiplier) * (self.omega * w - g) - self.tolerance * g > 0)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rows whose predicted decay is above a value."""

    value: float

    def __call__(self, decay: Floats) -> Mask:
        return np.asarray(decay > self.value)


def lagrange_multiplier(z: Floats, gain: Floats, price: Floats | float, tolerance: float) -> float:
    """Return the `lam` that minimises ``sum(max((z - lam) (gain - price) - tolerance price, 0))``.

    Notes
    -----
    With ``a = gain - price`` the summands bend at ``b = z - tolerance price / a``, and the slope of the sum rises there
    by |a|, from ``-sum(max(a, 0))``: the minimum is a weighted quantile of the bends. O(n log n) time.
    """
    a = gain - price
    bends = np.flatnonzero(a)
    if not len(bends):
        return 0.0
    b = (z - tolerance * price / np.where(a == 0, 1.0, a))[bends]
    order = np.argsort(b)
    rise = np.cumsum(np.abs(a[bends])[order])
    at = min(int(np.searchsorted(rise, np.maximum(a, 0.0).sum())), len(order) - 1)
    return float(b[order[at]])


def scan_regions(
    source: tuple[Floats, Floats, Floats],
    target: tuple[Floats, Floats, Floats],
    *,
    tolerance: float,
    min_prevalence: float,
    n_keep: int,
) -> list[Region]:
    """Return the most promising regions on a grid of omega.

    Parameters
    ----------
    source, target : tuple of three ndarrays
        Risk z, density ratio w, and ratio g of what may shift (ones: nothing may) of the training rows.
    tolerance, min_prevalence : float
        In both domains a region must hold the share `min_prevalence` of the rows.
    n_keep : int

    Notes
    -----
    Ranked by the decay above the tolerance over its rough standard error, which is what the test will look at. One that
    shares nine tenths with a better one is left out. O(60 n log n) time.
    """
    z, w, g = source
    z1, w1, g1 = target
    found: list[tuple[float, Region, Mask]] = []
    for omega in OMEGAS:
        region = Region(float(omega), lagrange_multiplier(z, omega * w, g, tolerance), tolerance)
        in_source, in_target = region(z, w, g), region(z1, w1, g1)
        shares = np.array([in_source.mean(), in_target.mean()])
        if shares.min() < min_prevalence:
            continue
        expected = float(np.average(z[in_source], weights=g[in_source]))
        decay = float(z1[in_target].mean()) - expected - tolerance
        spread = np.sqrt(1.0 / in_source.sum() + 1.0 / in_target.sum())
        if decay > 0:
            found.append((decay / spread, region, in_target))
    return _distinct(found, n_keep)


def nested_thresholds(decay: Floats, *, min_prevalence: float, n_keep: int) -> list[Threshold]:
    """Return thresholds of a predicted decay, from all rows where it is positive down to the smallest share allowed."""
    positive = float((decay > 0).mean())
    if positive < min_prevalence:
        return []
    shares = np.geomspace(positive, min_prevalence, n_keep) if n_keep > 1 else np.array([positive])
    values = np.maximum(np.quantile(decay, 1.0 - shares[1:], method="inverted_cdf"), 0.0)
    return [Threshold(float(value)) for value in dict.fromkeys([0.0, *values]) if (decay > value).any()]


def _distinct(found: Sequence[tuple[float, Any, Mask]], n_keep: int) -> list[Any]:
    kept: list[tuple[Any, Mask]] = []
    for _, region, mask in sorted(found, key=lambda entry: -entry[0]):
        if len(kept) == n_keep:
            break
        if all((mask & other).sum() < _ALIKE * (mask | other).sum() for _, other in kept):
            kept.append((region, mask))
    return [region for region, _ in kept]
