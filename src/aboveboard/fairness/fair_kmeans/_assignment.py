"""The cheapest fair assignment of points to given centres, by its dual and a small linear program.

The program has n x k unknowns; its dual has one price per demand and centre. Smoothed, the dual is a concave function
that costs O(nk) to evaluate and that L-BFGS climbs. At prices near the best ones nearly every point has one centre that
is cheapest by far; only for the others is there anything to decide, and a linear program over those decides it. Its own
prices are then held against all n x k pairs: pairs that would pay enter the program, and when there are none left the
dual value at these prices proves that the assignment is optimal.
"""

import time
import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from aboveboard._optimize.linear import Solution, TimeLimitError, linear_program, seconds_left
from aboveboard.core import InputError
from aboveboard.fairness.fair_kmeans._groups import Fairness, Floats, Indices

__all__ = ["Assignment", "fair_assignment", "squared_distances"]

_GAP: Final = 1e-7
_TEMPERATURES: Final = (0.1, 0.01, 0.001)  # relative to the mean cost of a point
_FEW_TIES: Final = 2_000
_TIES_SHARE: Final = 0.02  # of the points
_TIES_PER_MASS: Final = 5  # for each cell and centre
_BATCH: Final = 20_000
_EASE: Final = 1e-3  # climbing ends when a step gains less than this part of the gap
_NOTHING: Final = 1e-9
_MISSED: Final = 1e-7  # points
_BLOCK: Final = 2**22  # distances computed at a time

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A fractional assignment of points to centres.

    Attributes
    ----------
    mass : csr_array of shape (n, k)
        How much of each point goes where.
    cost : float
    bound : float
        No fair assignment to these centres costs less.
    prices : ndarray of shape (demands, k)
        What a unit of slack in each demand would save.
    """

    mass: sparse.csr_array
    cost: float
    bound: float
    prices: Floats

    @property
    def gap(self) -> float:
        """How far from optimal the assignment may be, relative to its cost."""
        return max(self.cost - self.bound, 0.0) / self.cost if self.cost > 0 else 0.0


def squared_distances(X: Floats, centers: Floats) -> Floats:
    """Return the squared distances, shape (n, k), without the cancellation of the expanded square.

    Differences are taken block by block: centres in standardised data lie close, and outliers far.
    """
    found = np.empty((len(X), len(centers)))
    step = max(1, _BLOCK // max(1, centers.size))
    for start in range(0, len(X), step):
        difference = X[start : start + step, None, :] - centers[None, :, :]
        found[start : start + step] = np.einsum("nkd,nkd->nk", difference, difference)
    return found


def fair_assignment(
    cost: Floats,
    weight: Floats,
    cell: Indices,
    fairness: Fairness,
    *,
    prices: Floats | None = None,
    gap: float = _GAP,
    time_limit: float = 120.0,
) -> Assignment:
    """Return the cheapest fair fractional assignment.

    Parameters
    ----------
    cost : ndarray of shape (n, k)
        Squared distances, at least 0.
    weight : ndarray of shape (n,)
        Mass of each point, above 0.
    cell : ndarray of int, shape (n,)
    fairness : Fairness
        Met by the whole data, so that some assignment is fair.
    prices : ndarray of shape (demands, k), optional
        To start from, where a like problem was solved.
    gap : float, default 1e-7
        How far from the optimum, relative to it, is near enough.
    time_limit : float
        In seconds.

    Returns
    -------
    Assignment
        Within `gap` of the optimum, or as near as the time allowed, with a warning.

    Raises
    ------
    InputError
        When the time limit passed before there was a fair assignment.
    """
    deadline = time.monotonic() + time_limit
    n, k = cost.shape
    if not len(fairness.rows):
        nearest = np.argmin(cost, axis=1)
        value = float(weight @ cost[np.arange(n), nearest])
        mass = sparse.csr_array((weight, (np.arange(n), nearest)), shape=(n, k))
        return Assignment(mass, value, value, np.zeros((0, k)))
    size = float(weight.mean())
    scale = float(weight @ cost.mean(axis=1)) / (size * n) or 1.0
    problem = _Problem(cost / scale, weight / size, cell, fairness)
    start = np.zeros((len(fairness.rows), k)) if prices is None else prices / scale
    for temperature in _TEMPERATURES if prices is None else _TEMPERATURES[-1:]:
        dual = problem.dual(start) / n
        start = problem.climbed(start, temperature * (dual if dual > 0 else 1.0), _EASE * gap, deadline)
    found = problem.polished(start, gap, deadline)
    if found is None:
        raise InputError(
            f"no fair assignment of {n:,} points to {k} centres was found within {time_limit:g} seconds",
            remedy="Raise time_limit, or ask for fewer clusters, candidates or groups",
        )
    mass, value, bound, best = found
    if value - bound > 2 * gap * max(value, _NOTHING):
        warnings.warn(
            f"the assignment is fair, and may cost up to {(value - bound) / value:.1%} more than the cheapest: "
            f"the time limit of {time_limit:g} seconds passed",
            UserWarning,
            stacklevel=2,
        )
    return Assignment(size * mass, scale * size * value, scale * size * bound, scale * best)


@dataclass(frozen=True)
class _Problem:
    """Weights and costs are scaled to a mean of 1."""

    cost: Floats
    weight: Floats
    cell: Indices
    fairness: Fairness

    def reduced(self, prices: Floats) -> Floats:
        """Return the cost of each pair, with what it does to the demands."""
        return self.cost + (self.fairness.rows.T @ prices)[self.cell]

    def dual(self, prices: Floats) -> float:
        """Return a bound on the cost of every fair assignment."""
        return float(self.weight @ self.reduced(prices).min(axis=1))

    def climbed(self, start: Floats, temperature: float, tolerance: float, deadline: float) -> Floats:
        """Return prices that nearly maximise the dual, smoothed by a soft minimum."""
        scale, n = self.fairness.scale[:, None], len(self.cell)
        indicator = sparse.csr_array(
            (self.weight, (self.cell, np.arange(len(self.cell)))),
            shape=(self.fairness.rows.shape[1], len(self.cell)),
        )

        class _OutOfTime(Exception):
            pass

        def negative(flat: Floats) -> tuple[float, Floats]:
            if time.monotonic() > deadline:
                raise _OutOfTime
            share = self.reduced(flat.reshape(start.shape) / scale)
            least = share.min(axis=1, keepdims=True)
            np.subtract(least, share, out=share)
            share /= temperature
            np.exp(share, out=share)
            norm = share.sum(axis=1, keepdims=True)
            share /= norm
            value = self.weight @ (least - temperature * np.log(norm))[:, 0]
            slope = self.fairness.rows @ (indicator @ share) / scale
            return -float(value) / n, -slope.ravel() / n

        bounds = [(None if equal else 0.0, None) for equal in np.repeat(self.fairness.equal, start.shape[1])]
        latest = start * scale

        def remember(flat: Floats) -> None:
            nonlocal latest
            latest = flat.reshape(start.shape).copy()

        try:
            found = minimize(
                negative,
                latest.ravel(),
                jac=True,
                bounds=bounds,
                method="L-BFGS-B",
                callback=remember,
                options={"maxiter": 200, "maxcor": 20, "ftol": tolerance, "gtol": 1e-9},
            )
            latest = found.x.reshape(start.shape)
        except _OutOfTime:
            pass
        return latest / scale

    def polished(
        self, prices: Floats, gap: float, deadline: float
    ) -> tuple[sparse.csr_array, float, float, Floats] | None:
        """Return mass, cost, bound and prices of the best assignment, by linear programs over near-ties."""
        reduced = self.reduced(prices)
        bound = float(self.weight @ reduced.min(axis=1))
        chosen = _near_ties(reduced, self.fairness.rows.shape[1])
        penalty = 10.0 * float(1 + np.abs(prices).max() + np.ptp(self.cost))
        best: tuple[sparse.csr_array, float, Floats] | None = None
        while True:
            try:
                program = _Restricted(self, chosen, penalty)
                solution = program.solve(seconds_left(deadline))
            except TimeLimitError:
                break
            found = program.prices(solution)
            missed = program.missed(solution)
            if missed <= _MISSED and (best is None or solution.objective < best[1]):
                best = (program.mass(solution), solution.objective, found)
            reduced = self.reduced(found)
            least = reduced.min(axis=1)
            bound = max(bound, float(self.weight @ least))
            if solution.objective - bound <= gap * max(solution.objective, _NOTHING):
                if missed <= _MISSED:
                    break
                penalty *= 100.0  # it was worth missing demands at this one
                continue
            within = np.where(chosen, reduced, np.inf).min(axis=1)
            pays = ~chosen & (reduced < within[:, None] - 1e-12)
            if not pays.any():
                break
            rows, columns = np.nonzero(pays)
            if len(rows) > _BATCH:
                gain = (self.weight * within)[rows] - self.weight[rows] * reduced[rows, columns]
                top = np.argpartition(gain, -_BATCH)[-_BATCH:]
                rows, columns = rows[top], columns[top]
            chosen[rows, columns] = True
        return None if best is None else (best[0], best[1], min(bound, best[1]), best[2])


def _near_ties(reduced: Floats, cells: int) -> Mask:
    """Return for each point its cheapest centre, and the pairs that come nearest to a tie."""
    n, k = reduced.shape
    chosen = np.zeros((n, k), dtype=bool)
    chosen[np.arange(n), reduced.argmin(axis=1)] = True
    gap = np.where(chosen, np.inf, reduced - reduced.min(axis=1, keepdims=True)).ravel()
    many = min(int(max(_FEW_TIES, _TIES_SHARE * n, _TIES_PER_MASS * cells * k)), n * (k - 1))
    if many:
        chosen.ravel()[np.argpartition(gap, many - 1)[:many]] = True
    return chosen


class _Restricted:
    """The program over chosen pairs: points with one pair are fixed, the others are decided.

    Unknowns: the mass of each free pair, the mass of each cell at each centre, and by how much demands are missed, at
    a penalty, so that there is always a solution.
    """

    def __init__(self, problem: _Problem, chosen: Mask, penalty: float) -> None:
        self.problem, self.chosen = problem, chosen
        k = chosen.shape[1]
        demands, cells = problem.fairness.rows.shape
        several = chosen.sum(axis=1) > 1
        self.free = np.flatnonzero(several)
        self.fixed = np.flatnonzero(~several)
        self.fixed_at = chosen[self.fixed].argmax(axis=1)
        point, self.pair_at = np.nonzero(chosen[self.free])
        self.pair_row = self.free[point]
        base = np.zeros((cells, k))
        np.add.at(base, (problem.cell[self.fixed], self.fixed_at), problem.weight[self.fixed])
        pairs, masses, misses = len(point), cells * k, demands * k
        self.slices = (slice(0, pairs), slice(pairs, pairs + masses), slice(pairs + masses, None))

        at_cell = problem.cell[self.pair_row] * k + self.pair_at
        ones = np.ones(pairs)
        per_point = sparse.csr_array((ones, (point, np.arange(pairs))), shape=(len(self.free), pairs))
        per_cell = sparse.csr_array((ones, (at_cell, np.arange(pairs))), shape=(masses, pairs))
        demand = sparse.kron(sparse.csr_array(problem.fairness.rows), sparse.eye_array(k))
        equal = np.repeat(problem.fairness.equal, k)
        over = -sparse.eye_array(misses)
        under = sparse.eye_array(misses).tocsc()[:, equal]
        self.rows = sparse.block_array(
            [
                [per_point, None, None, None],
                [per_cell, -sparse.eye_array(masses), None, None],
                [None, demand, over, under],
            ]
        ).tocsr()
        self.low = np.r_[problem.weight[self.free], -base.ravel(), np.where(equal, 0.0, -np.inf)]
        self.high = np.r_[problem.weight[self.free], -base.ravel(), np.zeros(misses)]
        self.constant = float(problem.weight[self.fixed] @ problem.cost[self.fixed, self.fixed_at])
        self.cost = np.r_[
            problem.cost[self.pair_row, self.pair_at],
            np.zeros(masses),
            np.full(misses + int(equal.sum()), penalty),
        ]

    def solve(self, time_limit: float) -> Solution:
        found = linear_program(self.cost, self.rows, self.low, self.high, time_limit=time_limit)
        return Solution(
            found.x, found.objective + self.constant, found.bound + self.constant, found.duals, found.optimal
        )

    def missed(self, solution: Solution) -> float:
        return float(solution.x[self.slices[2]].sum())

    def prices(self, solution: Solution) -> Floats:
        demands = len(self.problem.fairness.rows)
        k = self.chosen.shape[1]
        duals = -solution.duals[-demands * k :].reshape(demands, k)
        return np.where(self.problem.fairness.equal[:, None], duals, np.maximum(duals, 0.0))

    def mass(self, solution: Solution) -> sparse.csr_array:
        share = np.maximum(solution.x[self.slices[0]], 0.0)
        total = np.bincount(self.pair_row, weights=share, minlength=len(self.chosen))
        share *= (self.problem.weight / np.where(total > 0, total, 1.0))[self.pair_row]
        data = np.r_[self.problem.weight[self.fixed], share]
        rows, columns = np.r_[self.fixed, self.pair_row], np.r_[self.fixed_at, self.pair_at]
        keep = data > 0
        return sparse.csr_array((data[keep], (rows[keep], columns[keep])), shape=self.chosen.shape)
