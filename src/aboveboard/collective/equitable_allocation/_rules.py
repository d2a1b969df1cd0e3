"""The numbers that the announced rules need in advance: how much of the benchmark can be promised, and at what rate."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import norm, rankdata

from aboveboard.collective.equitable_allocation._demands import Demands, Floats

__all__ = ["Dependence", "Proportional", "attenuated_rates", "dependence", "largest_attenuated_factor"]

_STEPS: Final = 40
_SLACK: Final = 1e-12
_FEWEST_DAYS: Final = 30
_LEVEL: Final = 0.01


class Proportional:
    """What the proportional rule hands out at a factor: at most all that is left, at most what is asked for.

    Parameters
    ----------
    demands : Demands
    fractions : ndarray of shape (K,)
        Of the benchmark.
    supply : float

    Notes
    -----
    With ``y = x d`` and ``Y_t = E[y_t]`` the stock left is ``rho_t = b - alpha (Y_1 + ... + Y_{t-1})`` in expectation,
    and slot t gets ``R_t y_t alpha / rho_t``. That is never more than R_t where ``alpha y_t <= rho_t``, and never more
    than the demand where ``alpha x_t R_t <= rho_t``; R_t is at most what the smallest demands before t leave.
    """

    def __init__(self, demands: Demands, fractions: Floats, supply: float) -> None:
        requested = fractions * demands.values
        mean = demands.sums(demands.chances * requested)
        self._supply = supply
        self._mean = mean
        self._before = np.cumsum(mean) - mean
        self._largest = np.maximum.reduceat(requested, demands.starts[:-1])
        self._fraction = np.maximum.reduceat(fractions, demands.starts[:-1])
        certain = demands.asks > 1.0 - _SLACK
        self._smallest = np.where(certain, np.minimum.reduceat(requested, demands.starts[:-1]), 0.0)

    def expected_stock(self, factor: float) -> Floats:
        """Return rho_t, the expected stock before each slot."""
        return np.maximum(self._supply - factor * self._before, 0.0)

    def rates(self, factor: float) -> Floats:
        """Return what a slot gets of the stock left, per unit of its request y."""
        rho = self.expected_stock(factor)
        return np.divide(factor, rho, out=np.zeros_like(rho), where=rho > _SLACK * self._supply)

    def largest_factor(self) -> float:
        """Return the largest factor, from one half to 1, at which no path of demands breaks the rule."""
        if self._holds(1.0):
            return 1.0
        low, high = 0.5, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._holds(middle) else (low, middle)
        return low

    def _holds(self, factor: float) -> bool:
        rho = self.expected_stock(factor)
        kept = 1.0 - self._smallest * self.rates(factor)
        most = self._supply * np.append(1.0, np.cumprod(np.maximum(kept, 0.0))[:-1])
        bound = rho + _SLACK * self._supply
        enough = factor * self._largest <= bound
        asked = factor * self._fraction * most <= bound
        return bool((enough & asked).all())


def attenuated_rates(
    demands: Demands, requested: Floats, supply: float, factor: float, n_particles: int, seed: int
) -> tuple[Floats, Floats]:
    """Return by how much min(R_t, y) is scaled down for each entry, and the expected stock, by forward simulation.

    Where a rate comes out above 1, the factor is too large.
    """
    rng = np.random.default_rng(seed)
    left = np.full(n_particles, supply)
    rates = np.zeros_like(requested)
    stock = np.empty(demands.n_slots)
    for t, demand in enumerate(demands.draw(n_particles, rng)):
        inside = slice(demands.starts[t], demands.starts[t + 1])
        y = requested[inside]
        ordered = np.sort(left)
        sums = np.append(0.0, np.cumsum(ordered))
        below = np.searchsorted(ordered, y)
        mean = (sums[below] + y * (n_particles - below)) / n_particles
        rates[inside] = np.divide(factor * y, mean, out=np.zeros_like(y), where=mean > 0)
        stock[t] = sums[-1] / n_particles
        entry = demands.find(t, demand)
        given = np.where(demand > 0, np.minimum(rates[entry], 1.0) * np.minimum(left, requested[entry]), 0.0)
        left = left - given
    return rates, stock


def largest_attenuated_factor(
    demands: Demands, requested: Floats, supply: float, n_particles: int, seed: int, floor: float
) -> float:
    """Return the largest factor, from `floor` to 1, at which no rate is above 1, with the same draws throughout."""

    def holds(factor: float) -> bool:
        return bool(attenuated_rates(demands, requested, supply, factor, n_particles, seed)[0].max() <= 1.0)

    if holds(1.0):
        return 1.0
    low, high = floor, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Dependence:
    """Whether demands of one day tell something about each other, from past days.

    Attributes
    ----------
    n_days : int
    statistic : float
        The rank correlation that is furthest from 0, of those that chance does not explain; 0 where it explains all.
    limit : float
    """

    n_days: int
    statistic: float
    limit: float = 0.1

    @property
    def passed(self) -> bool:
        return abs(self.statistic) <= self.limit


def dependence(days: Floats, left: Floats) -> Dependence | None:
    """Hold each slot's demand against that of the slot before, and against the stock left before it.

    Parameters
    ----------
    days : ndarray of shape (n_days, T)
    left : ndarray of shape (n_days, T)
        The stock left before each slot, where the rule runs on these days.

    Returns
    -------
    Dependence or None
        None with fewer than 30 days, or where no slot can depend on another.

    Notes
    -----
    Spearman's correlations and their means over slots, each at the level 0.01 / (number of them): independent demands
    are called dependent in at most about one of a hundred logs. O(n_days T log n_days) time.
    """
    n, slots = days.shape
    if n < _FEWEST_DAYS or slots < 2:
        return None
    now = _standard_ranks(days)
    found = []
    for other in (now[:, :-1], _standard_ranks(left)[:, 1:]):
        single = (now[:, 1:] * other).sum(axis=0)
        varies = (np.abs(now[:, 1:]).sum(axis=0) > 0) & (np.abs(other).sum(axis=0) > 0)
        if varies.any():
            found += [(rho, n - 1) for rho in single[varies].tolist()]
            found.append((float(single[varies].mean()), (n - 1) * int(varies.sum())))
    if not found:
        return None
    rho, size = np.asarray(found).T
    significant = np.abs(rho) * np.sqrt(size) > norm.isf(_LEVEL / len(rho) / 2.0)
    strongest = np.where(significant, np.abs(rho), -1.0).argmax()
    return Dependence(n, float(rho[strongest]) if significant.any() else 0.0)


def _standard_ranks(values: Floats) -> Floats:
    """Return the ranks of each column, centred and of length 1; zeros for a constant column."""
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    return np.asarray(np.divide(ranks, length, out=np.zeros_like(ranks), where=length > 1e-9))
