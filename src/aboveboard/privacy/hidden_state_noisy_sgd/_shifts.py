"""The cheapest way to make two runs meet: how much of the distance between them each step's noise pays for.

Two runs on neighbouring data, coupled by the same noise, are at distance D_tau or less after tau steps. From there on,
step t lets the noise pay for a shift a_t, which costs a_t^2: z_t = h(z_{t-1}) + s_{t-1} - a_t, from z_tau = D_tau to
z_T = 0 without ever falling below 0. Any such plan gives a valid bound; these functions search for the cheapest one.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

__all__ = ["GridPlanner", "LinearPlanner", "Plan", "Uses"]

Floats = NDArray[np.float64]
Modulus = Callable[[Floats], Floats]

_REACH: Final = 340.0  # exp(-340) is the least weight that is looked at
_CANDIDATES: Final = 120
_PATIENCE: Final = 50
_NO_BETTER: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Uses:
    """When the record in which the data differ takes part: the last time `offset` steps before the last, then periodic.

    Parameters
    ----------
    steps : int
    sensitivity : float
        How far apart a step that uses the record can take two runs at the same point.
    period : int
        1 for full batches.
    offset : int in [0, period)
    """

    steps: int
    sensitivity: float
    period: int = 1
    offset: int = 0

    @property
    def count(self) -> int:
        return self.within(self.steps)

    def within(self, last: int) -> int:
        """Return how many of the last steps use it."""
        return max(0, -(-(last - self.offset) // self.period))

    def at(self, back: int) -> float:
        """Return how far apart the step that is `back` steps before the last takes two runs."""
        return self.sensitivity if back % self.period == self.offset else 0.0

    def at_once(self) -> "Plan":
        """Return the plan that pays for each use when it happens: plain composition."""
        back = np.arange(self.steps)[::-1]
        shifts = np.where(back % self.period == self.offset, self.sensitivity, 0.0)
        return Plan(self.count * self.sensitivity**2, 0, shifts)


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan.

    Parameters
    ----------
    cost : float
        Sum of the squared shifts.
    start : int
        The number of steps tau before the first shift.
    shifts : ndarray of shape (steps - start,)
    """

    cost: float
    start: int
    shifts: Floats


@dataclass(frozen=True, slots=True)
class LinearPlanner:
    """Plans where h(z) = c z: exact.

    With j counted from the end, c^j a_j are the increments of a path that starts at (0, 0), stays above the points
    (S2(m), S(m)) with S2(m) = sum_{j<m} c^(2j) and S(m) = sum_{j<m} c^j s_j, and ends c^k D_tau above the last one, k
    being the number of shifts. Its cost is least where it is the least concave majorant of these points: an isotonic
    regression.
    """

    factor: float
    diameter: float

    def distance(self, uses: Uses, tau: int) -> float:
        """Return D_tau, how far apart the coupled runs can be after tau steps."""
        first = (uses.steps - 1 - uses.offset) % uses.period
        if tau <= first:
            return 0.0
        count = (tau - 1 - first) // uses.period + 1
        since = tau - 1 - first - (count - 1) * uses.period
        if self.factor > 1 and tau * math.log(self.factor) > _REACH:
            return self.diameter
        uncut = uses.sensitivity * (1.0 if count == 1 else float(_geometric(self.factor**uses.period, count)))
        after_use = min(self.diameter, uncut)
        return min(self.diameter, self.factor**since * after_use)

    def plan(self, uses: Uses) -> Plan:
        """Return the cheapest plan; over all its lengths where they are few, else over those that a search visits."""
        reach = uses.steps if self.factor == 1 else int(_REACH / abs(math.log(self.factor)) / 2) + 1
        longest = min(uses.steps, reach)
        k = _cheapest(lambda length: self._cost(uses, length), longest, uses)
        found = Plan(self._cost(uses, k), uses.steps - k, self._shifts(uses, k))
        return min(uses.at_once(), found, key=lambda plan: plan.cost)

    def costs_without_uses(self, uses: Uses) -> tuple[Floats, Floats]:
        """Return lengths k of plans, and what they cost if the record is not used in the last k steps."""
        lengths = np.array(sorted(_spread(uses.steps)), dtype=np.float64)
        distances = np.array([self.distance(uses, uses.steps - int(k)) for k in lengths])
        if self.factor > 1:  # c^(2k) / S2(k), without overflow
            return lengths, distances**2 / _geometric(1 / self.factor**2, lengths) / self.factor**-2
        return lengths, distances**2 * self.factor ** (2 * lengths) / _geometric(self.factor**2, lengths)

    def _cost(self, uses: Uses, k: int) -> float:
        weights, slopes = self._majorant(uses, k)
        return float(weights @ slopes**2)

    def _shifts(self, uses: Uses, k: int) -> Floats:
        _, slopes = self._majorant(uses, k)
        sizes = self._block_sizes(uses, k)
        back = np.arange(k)
        shifts = self.factor ** (back - self._scale(k)) * np.repeat(slopes, sizes)
        return np.asarray(shifts[::-1])

    def _majorant(self, uses: Uses, k: int) -> tuple[Floats, Floats]:
        """Return widths and slopes of the pieces, one from each use of the record to the one before it."""
        c, scale, s = self.factor, self._scale(k), uses.sensitivity
        d = self.distance(uses, uses.steps - k)
        if uses.period == 1 and c <= 1:  # a straight line
            width = _geometric(c**2, k)
            return np.array([width]), np.array([(c**k * d + s * _geometric(c, k)) / width])
        sizes = self._block_sizes(uses, k)
        ends = np.cumsum(sizes)
        widths = c ** (2.0 * (ends - sizes - scale)) * _geometric(c**2, sizes)
        heights = np.zeros(len(sizes))
        used = uses.within(k)
        heights[:used] = s * c ** (ends[:used] - 1.0 - scale)
        heights[-1] += c ** float(k - scale) * d
        slopes = isotonic_regression(heights / widths, weights=widths, increasing=False).x
        return widths, np.asarray(slopes)

    def _block_sizes(self, uses: Uses, k: int) -> NDArray[np.int64]:
        """Return the numbers of steps of the pieces: each ends, seen from the end of the run, with a use or at k."""
        if uses.period == 1 and self.factor <= 1:
            return np.array([k])
        ends = uses.offset + 1 + uses.period * np.arange(uses.within(k))
        if not len(ends) or ends[-1] < k:
            ends = np.append(ends, k)
        return np.diff(ends, prepend=0)

    def _scale(self, k: int) -> int:
        """Return the power of c that weights are counted from, so that none overflows."""
        return k if self.factor > 1 else 0


@dataclass(frozen=True, slots=True)
class GridPlanner:
    """Plans for any modulus, by dynamic programming over distances on a grid; never below the cheapest one.

    Distances after a shift are those of the grid, exactly; only D_tau is rounded, upwards.
    """

    modulus: Modulus
    diameter: float
    points: int

    def plan(self, uses: Uses) -> Plan:
        distances = self.distances(uses)
        grid = self._grid(distances)
        after = self.modulus(grid)
        best = Plan(math.inf, 0, np.empty(0))
        choices: list[NDArray[np.int16]] = []
        costs: list[float] = []
        length = 0
        for k, value, choice in self._values(grid, after, uses):
            choices.append(choice)
            start = uses.steps - k
            cell = int(np.searchsorted(grid, distances[start] * (1 - 1e-15)))
            if value[cell] < best.cost:
                best, length = Plan(float(value[cell]), start, np.empty(0)), k
            costs.append(float(value[-1]))
            patience = _PATIENCE * uses.period
            if k > patience and costs[-1 - patience] <= min(costs[-patience:]) * _NO_BETTER:
                break
        cell = int(np.searchsorted(grid, distances[best.start] * (1 - 1e-15)))
        shifts = np.empty(length)
        for place, k in enumerate(range(length, 0, -1)):
            chosen = int(choices[k - 1][cell])
            shifts[place] = after[cell] + uses.at(k - 1) - grid[chosen]
            cell = chosen
        return min(uses.at_once(), Plan(best.cost, best.start, shifts), key=lambda plan: plan.cost)

    def costs_without_uses(self, uses: Uses) -> tuple[Floats, Floats]:
        """Return lengths k of plans, and what they cost if the record is not used in the last k steps."""
        distances = self.distances(uses)
        grid = self._grid(distances)
        unused = Uses(uses.steps, 0.0)
        costs, ends = [], []
        for k, value, _ in self._values(grid, self.modulus(grid), unused):
            costs.append(value[int(np.searchsorted(grid, distances[uses.steps - k] * (1 - 1e-15)))])
            ends.append(value[-1])
            if k > _PATIENCE and ends[-1 - _PATIENCE] <= min(ends[-_PATIENCE:]) * _NO_BETTER:
                break
        return np.arange(1.0, len(costs) + 1), np.array(costs)

    def _values(self, grid: Floats, after: Floats, uses: Uses) -> Iterable[tuple[int, Floats, NDArray[np.int16]]]:
        """Yield k, the cost of the last k steps from each distance of the grid, and where each goes first."""
        matrices = {s: _shift_costs(after + s, grid) for s in {uses.at(back) for back in range(uses.period)}}
        value = np.full(len(grid), np.inf)
        value[0] = 0.0
        rows = np.arange(len(grid))
        for k in range(1, uses.steps + 1):
            total = matrices[uses.at(k - 1)] + value
            choice = total.argmin(axis=1)
            value = total[rows, choice]
            yield k, value, choice.astype(np.int16)

    def _grid(self, distances: Floats) -> Floats:
        return np.linspace(0.0, distances.max(), self.points)

    def distances(self, uses: Uses) -> Floats:
        """Return D_tau for tau = 0, ..., steps - 1, and at least one that is not 0."""
        found = np.full(max(uses.steps, 2), self.diameter)
        distance = np.zeros(1)
        for tau in range(len(found)):
            found[tau] = distance[0]
            if distance[0] >= self.diameter and self.modulus(distance)[0] >= self.diameter:
                break
            distance = np.minimum(self.diameter, self.modulus(distance) + uses.at(uses.steps - 1 - tau))
        return found


def _shift_costs(reached: Floats, grid: Floats) -> Floats:
    """Return what it costs to come from each distance reached to each of the grid; one cannot move away for free."""
    shift = reached[:, None] - grid
    costs: Floats = np.where(shift >= 0, shift**2, np.inf)
    return costs


def _geometric(ratio: float, count: Any) -> Any:
    """Return 1 + ratio + ... + ratio^(count - 1)."""
    if ratio in (0.0, 1.0):
        return count * 1.0 if ratio else np.minimum(count, 1.0)
    logarithm = math.log(ratio)
    return np.expm1(np.asarray(count) * logarithm) / math.expm1(logarithm)


def _cheapest(cost: Callable[[int], float], longest: int, uses: Uses) -> int:
    """Return a length of least cost: on a logarithmic grid, then ever closer around the best one."""
    costs: dict[int, float] = {}
    candidates = {length for length in _spread(longest) for length in _snapped(length, longest, uses)}
    while candidates:
        costs |= {length: cost(length) for length in candidates}
        lengths = sorted(costs)
        place = lengths.index(min(lengths, key=lambda length: costs[length]))
        low, high = lengths[max(place - 1, 0)], lengths[min(place + 1, len(lengths) - 1)]
        candidates = set(np.linspace(low, high, 24).round().astype(int).tolist()) - costs.keys()
    return min(lengths, key=lambda length: costs[length])


def _spread(longest: int) -> set[int]:
    return set(np.geomspace(1, longest, _CANDIDATES).round().astype(int).tolist()) | {longest}


def _snapped(length: int, longest: int, uses: Uses) -> set[int]:
    """Return the length, and those next to it that begin just before or just after a use of the record."""
    before = (length - uses.offset - 1) // uses.period * uses.period + uses.offset
    return {k for k in (length, before, before + 1) if 1 <= k <= longest}
