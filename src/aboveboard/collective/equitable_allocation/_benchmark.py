"""What nobody can beat: the best fill rates of a planner who knows all demands, and the best expected least fill."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aboveboard.collective.equitable_allocation._demands import Demands, Floats, Ints, check_supply, read_demands
from aboveboard.core.errors import InputError

__all__ = ["Benchmark", "clairvoyant_lp", "ex_post_bounds", "leximin"]


@dataclass(frozen=True)
class Benchmark:
    """The optimum of the benchmark program.

    Attributes
    ----------
    value : float
        The least expected fill rate over slots; no plan has a greater one, even one that knows all demands in advance.
    fills : ndarray of shape (T,)
        The expected fill rate of each slot. Slots that can have more than the least, do: as much as the poorest of
        those that can have more still (the leximin optimum).
    fractions : list of T ndarrays
        Which share of each demand is met, in the order of the values, ascending.
    """

    value: float
    fills: Floats
    fractions: list[Floats]


def clairvoyant_lp(demands: Any, supply: float) -> Benchmark:
    """Return the best least fill rate of a planner who knows all demands in advance, or more.

    Parameters
    ----------
    demands : sequence of (values, chances), or array-like of shape (n_days, T)
        For each arrival what it may ask for and how likely that is; or what was asked for on past days. A demand of 0
        is no request: a slot's fill rate is that of its requests.
    supply : float
        The stock b of a day, positive.

    Returns
    -------
    Benchmark

    Raises
    ------
    aboveboard.core.InputError
        For demands or a supply that cannot be used.

    Notes
    -----
    The program is max s subject to ``sum_d q_t(d) x_t(d) >= s P(D_t > 0)`` for every slot t,
    ``sum_t sum_d q_t(d) d x_t(d) <= b``, and ``0 <= x_t(d) <= min(1, b/d)``. Within a slot small demands are the
    cheapest to fill, so the stock that a slot takes is a convex function of its fill rate, with a corner after each of
    its values; where those of all slots sum to b is found by bisection over the K corners. O(K log K) time, O(K)
    memory, and no solver.

    Examples
    --------
    >>> from aboveboard.collective import clairvoyant_lp
    >>> found = clairvoyant_lp([([4.0], [1.0]), ([1.0, 4.0], [0.5, 0.5])], supply=4.0)
    >>> round(found.value, 3), [part.round(3).tolist() for part in found.fractions]
    (0.688, [[0.688], [1.0, 0.375]])
    """
    asked, stock = read_demands(demands), check_supply(supply)
    fractions, fills = benchmark_of(asked, stock)
    return Benchmark(float(fills.min()), fills, asked.split(fractions))


def benchmark_of(demands: Demands, supply: float) -> tuple[Floats, Floats]:
    """Return the fraction of each entry that is met, and the fill rate of each slot."""
    weight = demands.chances / demands.asks[demands.slot]
    most = np.minimum(1.0, supply / demands.values)
    return leximin(weight, demands.chances * demands.values, most, demands.starts, supply)


def leximin(weight: Floats, cost: Floats, most: Floats, starts: Ints, supply: float) -> tuple[Floats, Floats]:
    """Return fractions x that raise the least ``sum weight x`` over slots, then the next, while ``sum cost x`` allows.

    Parameters
    ----------
    weight, cost, most : ndarray of shape (K,)
        Of each entry: what it adds to its slot's fill rate and what it takes from the stock if it is met whole, and the
        largest fraction of it that can be met. Slot after slot, ascending in ``cost / weight`` within a slot.
    starts : ndarray of int, shape (T + 1,)
    supply : float

    Returns
    -------
    fractions : ndarray of shape (K,)
    fills : ndarray of shape (T,)
    """
    gain = weight * most
    before = _running_sums(gain, starts)
    fills = np.add.reduceat(gain, starts[:-1])

    def fractions(level: float) -> Floats:
        return np.asarray(most * np.clip((level - before) / gain, 0.0, 1.0))

    corners = np.unique(np.append(before, fills))
    low, high = 0, len(corners) - 1
    if float(cost @ fractions(corners[-1])) <= supply:
        return most.copy(), fills
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(cost @ fractions(corners[middle])) <= supply else (low, middle)
    spent, more = (float(cost @ fractions(corners[end])) for end in (low, high))
    level = corners[low] + (corners[high] - corners[low]) * (supply - spent) / (more - spent)
    return fractions(level), np.minimum(fills, level)


def _running_sums(values: Floats, starts: Ints) -> Floats:
    """Return for each entry the sum of the entries before it in its slot."""
    sums = np.cumsum(values) - values
    return np.maximum(sums - np.repeat(sums[starts[:-1]], np.diff(starts)), 0.0)


def ex_post_bounds(demands: Any, supply: float, *, grid: int = 200) -> tuple[float, float]:
    """Return bounds on the best expected least fill rate that any rule can have which does not know the future.

    Parameters
    ----------
    demands : sequence of (values, chances), or array-like of shape (n_days, T)
        Independent across slots.
    supply : float
    grid : int, default 200
        Steps of the stock and of the fill rate.

    Returns
    -------
    low, high : float
        A rule on the grid has an expected least fill rate of `low`; none at all has more than `high`.

    Raises
    ------
    aboveboard.core.InputError
        For demands or a supply that cannot be used, or a grid below 1.

    Notes
    -----
    Dynamic programming backwards over slots, stock and least fill so far; grants are rounded up to the grid for the
    lower bound, down for the upper one. O(K grid^2) time, O(grid^2) memory.

    Examples
    --------
    >>> from aboveboard.collective import ex_post_bounds
    >>> low, high = ex_post_bounds([([4.0], [1.0]), ([4.0], [1.0])], supply=4.0)
    >>> low <= 0.5 <= high and high - low < 0.02
    True
    """
    asked, stock = read_demands(demands), check_supply(supply)
    if isinstance(grid, bool) or not isinstance(grid, int | np.integer) or grid < 1:
        raise InputError(f"grid is {grid!r}", expected="a whole number, 1 or more")
    return _best_least_fill(asked, stock, int(grid), up=True), _best_least_fill(asked, stock, int(grid), up=False)


def _best_least_fill(demands: Demands, supply: float, grid: int, *, up: bool) -> float:
    """Return the optimum over least fills k/grid and stocks r b/grid; of the upper bound, k stands for (k, k + 1]."""
    fill = np.arange(grid + 1) / grid
    worth = fill if up else np.minimum(fill + 1.0 / grid, 1.0)
    ahead = np.tile(worth, (grid + 1, 1))  # stock x least fill so far
    silent = 1.0 - demands.asks
    stock = np.arange(grid + 1)
    for t in reversed(range(demands.n_slots)):
        now = silent[t] * ahead
        for entry in range(demands.starts[t], demands.starts[t + 1]):
            steps = fill * demands.values[entry] / supply * grid
            taken = np.ceil(steps - 1e-9) if up else np.floor(steps + 1e-9)
            left = stock[:, None] - np.minimum(taken, grid + 1).astype(np.intp)[None, :]
            then = np.where(left >= 0, ahead[np.maximum(left, 0), np.arange(grid + 1)[None, :]], 0.0)
            now = now + demands.chances[entry] * np.maximum.accumulate(then, axis=1)
        ahead = now
    return float(ahead[grid, grid])
