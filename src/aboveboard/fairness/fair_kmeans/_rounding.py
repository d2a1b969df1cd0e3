"""From fractional assignments to hard labels: by min-cost flow, or by an integer program that looks at the worst group.

Every cell's mass at every centre, and every centre's mass, is rounded down or up. These bounds are nested, so that the
cheapest flow that keeps them is integral; the fractional assignment is such a flow, so the labels cost no more.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aboveboard._optimize.linear import InfeasibleError, integer_program
from aboveboard.core import require
from aboveboard.fairness.fair_kmeans._assignment import Assignment
from aboveboard.fairness.fair_kmeans._groups import Fairness, Floats, Indices

__all__ = ["by_flow", "by_integer_program", "by_largest_share", "cell_masses", "matching_flow"]

_WHOLE: Final = 1e-7
_DIGITS: Final = 10**12  # costs as whole numbers: twelve digits of the largest
_LARGEST: Final = 2**60  # OR-tools multiplies costs by the number of nodes
_FEWEST_PAIRS: Final = 50_000

Counts = NDArray[np.int64]


def cell_masses(assignment: sparse.csr_array, cell: Indices, n_cells: int) -> Floats:
    """Return the mass of each cell at each centre."""
    n = len(cell)
    indicator = sparse.csr_array((np.ones(n), (cell, np.arange(n))), shape=(n_cells, n))
    return np.asarray((indicator @ assignment).toarray())


def by_largest_share(assignment: Assignment) -> Indices:
    """Return the centre that has most of each point."""
    return np.asarray(assignment.mass.argmax(axis=1)).ravel().astype(np.intp)


def by_flow(cost: Floats, assignment: Assignment, cell: Indices, n_cells: int) -> Indices:
    """Return the cheapest labels whose counts by cell and centre are the fractional masses, rounded down or up.

    Parameters
    ----------
    cost : ndarray of shape (n, k)
        Squared distances to the centres.
    assignment : Assignment
        Of points of mass 1.
    cell : ndarray of int, shape (n,)
    n_cells : int

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    MissingExtra
        Without OR-tools.
    """
    mass = cell_masses(assignment.mass, cell, n_cells)
    for tolerance in (_WHOLE, 0.0):
        labels = _flow(cost, cell, *_around(mass, tolerance), *_around(mass.sum(axis=0), tolerance))
        if labels is not None:
            return labels
    raise RuntimeError("no integral flow between the rounded masses: the fractional assignment is inconsistent")


def _around(mass: Floats, tolerance: float) -> tuple[Counts, Counts]:
    """Return masses rounded down and up; both are the whole number where there is one within `tolerance`."""
    nearest = np.round(mass)
    whole = np.abs(mass - nearest) <= tolerance
    low, high = (np.where(whole, nearest, end(mass)).astype(np.int64) for end in (np.floor, np.ceil))
    return low, high


def _flow(
    cost: Floats, cell: Indices, cell_low: Counts, cell_high: Counts, low: Counts, high: Counts
) -> Indices | None:
    """Points -> cells at centres -> centres -> sink; None where the bounds leave no flow."""
    graph = require("ortools.graph.python.min_cost_flow", extra="solvers", feature="rounding='flow'")
    n, k = cost.shape
    cells = len(cell_low)
    at_cell, at_centre, sink = n, n + cells * k, n + cells * k + k
    solver = graph.SimpleMinCostFlow()
    extra = cost - cost.min(axis=1, keepdims=True)
    pairs = solver.add_arcs_with_capacity_and_unit_cost(
        np.repeat(np.arange(n), k),
        (at_cell + cell[:, None] * k + np.arange(k)).ravel(),
        np.ones(n * k, dtype=np.int64),
        _as_whole(extra.ravel(), sink),
    )
    # what must flow through an arc is sent ahead: its ends have supplies, its capacity is what may be added
    supply = np.zeros(sink + 1, dtype=np.int64)
    supply[:n] = 1
    supply[sink] = -n
    supply[at_cell:at_centre] -= cell_low.ravel()
    supply[at_centre:sink] += cell_low.sum(axis=0) - low
    supply[sink] += low.sum()
    cell_nodes = np.arange(at_cell, at_centre)
    centre_nodes = np.arange(at_centre, sink)
    free = np.zeros(cells * k + k, dtype=np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(
        np.r_[cell_nodes, centre_nodes],
        np.r_[np.tile(centre_nodes, cells), np.full(k, sink)],
        np.r_[(cell_high - cell_low).ravel(), high - low],
        free,
    )
    solver.set_nodes_supplies(np.arange(sink + 1), supply)
    if solver.solve() != solver.OPTIMAL:
        return None
    return np.asarray(np.asarray(solver.flows(pairs)).reshape(n, k).argmax(axis=1))


def by_integer_program(
    cost: Floats, assignment: Assignment, cell: Indices, fairness: Fairness, time_limit: float
) -> tuple[Indices, bool]:
    """Return labels with the smallest largest violation among those of `by_flow`, and of these the cheapest.

    Only the counts by cell and centre are unknown whole numbers: for given counts the cheapest labels are a flow.

    Returns
    -------
    labels : ndarray of int, shape (n,)
    optimal : bool
        Whether both programs were solved to the end within `time_limit` seconds each.
    """
    mass = cell_masses(assignment.mass, cell, fairness.rows.shape[1])
    low, high = _around(mass, _WHOLE)
    least, most = _around(mass.sum(axis=0), _WHOLE)
    worst, settled = _smallest_violation(low, high, least, most, mass.sum(axis=1), fairness, time_limit)
    n, k = cost.shape
    near = _cheapest_pairs(cost, assignment, cell, fairness)
    try:
        counts, solved = _cheapest_counts(cost, near, cell, low, high, least, most, fairness, worst, time_limit)
    except InfeasibleError:
        everything = np.ones((n, k), dtype=bool)
        counts, solved = _cheapest_counts(cost, everything, cell, low, high, least, most, fairness, worst, time_limit)
    labels = _flow(cost, cell, counts, counts, counts.sum(axis=0), counts.sum(axis=0))
    if labels is None:
        raise RuntimeError("the integer program's counts admit no labels")
    return labels, settled and solved


def _counts_rows(fairness: Fairness, k: int, cells: int) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    """Return demands, sizes of centres and sizes of cells, as rows over counts (cells x k)."""
    demands = sparse.csr_array(sparse.kron(sparse.csr_array(fairness.rows), sparse.eye_array(k)))
    centres = sparse.csr_array(sparse.kron(np.ones((1, cells)), sparse.eye_array(k)))
    of_cell = sparse.csr_array(sparse.kron(sparse.eye_array(cells), np.ones((1, k))))
    return demands, centres, of_cell


def _smallest_violation(
    low: Counts, high: Counts, least: Counts, most: Counts, total: Floats, fairness: Fairness, time_limit: float
) -> tuple[float, bool]:
    cells, k = low.shape
    demands, centres, of_cell = _counts_rows(fairness, k, cells)
    ones = sparse.csr_array(np.ones((demands.shape[0], 1)))
    equal = np.repeat(fairness.equal, k)
    rows = sparse.block_array([[demands, -ones], [-demands[equal], -ones[equal]], [centres, None], [of_cell, None]])
    infinite = np.full(demands.shape[0] + int(equal.sum()), -np.inf)
    found = integer_program(
        np.r_[np.zeros(cells * k), 1.0],
        rows.tocsr(),
        np.r_[infinite, least, np.round(total)],
        np.r_[np.zeros(len(infinite)), most, np.round(total)],
        np.r_[np.ones(cells * k, dtype=bool), False],
        low=np.r_[low.ravel(), 0],
        high=np.r_[high.ravel(), np.inf],
        time_limit=time_limit,
    )
    return found.objective, found.optimal


def _cheapest_pairs(cost: Floats, assignment: Assignment, cell: Indices, fairness: Fairness) -> NDArray[np.bool_]:
    """Return the pairs of point and centre worth considering: those used, and the cheapest at the prices."""
    n, k = cost.shape
    reduced = cost + (fairness.rows.T @ assignment.prices)[cell]
    gap = (reduced - reduced.min(axis=1, keepdims=True)).ravel()
    chosen: NDArray[np.bool_] = assignment.mass.toarray() > 0
    many = min(n * k, max(2 * n, _FEWEST_PAIRS))
    chosen.ravel()[np.argpartition(gap, many - 1)[:many]] = True
    return chosen


def _cheapest_counts(
    cost: Floats,
    chosen: NDArray[np.bool_],
    cell: Indices,
    low: Counts,
    high: Counts,
    least: Counts,
    most: Counts,
    fairness: Fairness,
    worst: float,
    time_limit: float,
) -> tuple[Counts, bool]:
    cells, k = low.shape
    demands, centres, _ = _counts_rows(fairness, k, cells)
    point, at = np.nonzero(chosen)
    pairs = len(point)
    ones = np.ones(pairs)
    per_point = sparse.csr_array((ones, (point, np.arange(pairs))), shape=(len(cost), pairs))
    per_cell = sparse.csr_array((ones, (cell[point] * k + at, np.arange(pairs))), shape=(cells * k, pairs))
    equal = np.repeat(fairness.equal, k)
    slack = worst + 1e-7
    found = integer_program(
        np.r_[cost[point, at], np.zeros(cells * k)],
        sparse.block_array(
            [[per_point, None], [per_cell, -sparse.eye_array(cells * k)], [None, demands], [None, centres]]
        ).tocsr(),
        np.r_[np.ones(len(cost)), np.zeros(cells * k), np.where(equal, -slack, -np.inf), least],
        np.r_[np.ones(len(cost)), np.zeros(cells * k), np.full(len(equal), slack), most],
        np.r_[np.zeros(pairs, dtype=bool), np.ones(cells * k, dtype=bool)],
        low=np.r_[np.zeros(pairs), low.ravel()],
        high=np.r_[np.ones(pairs), high.ravel()],
        time_limit=time_limit,
    )
    return found.x[pairs:].astype(np.int64).reshape(cells, k), found.optimal


def matching_flow(tail: Indices, head: Indices, cost: Floats, n_left: int, n_right: int, each: int) -> Indices:
    """Return for each right node the left node it is matched with, at the least cost over the given arcs.

    Parameters
    ----------
    tail, head : ndarray of int, shape (arcs,)
        Left and right ends; the arcs must hold a matching.
    cost : ndarray of shape (arcs,)
    n_left, n_right, each : int
        Every left node is matched with `each` right ones.
    """
    graph = require("ortools.graph.python.min_cost_flow", extra="solvers", feature="strict=True on large groups")
    solver = graph.SimpleMinCostFlow()
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        tail, n_left + head, np.ones(len(tail), dtype=np.int64), _as_whole(cost, n_left + n_right)
    )
    supply = np.r_[np.full(n_left, each, dtype=np.int64), np.full(n_right, -1, dtype=np.int64)]
    solver.set_nodes_supplies(np.arange(n_left + n_right), supply)
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("the arcs hold no perfect matching")
    used = np.asarray(solver.flows(arcs)) > 0
    partner = np.empty(n_right, dtype=np.intp)
    partner[head[used]] = tail[used]
    return partner


def _as_whole(cost: Floats, nodes: int) -> Counts:
    """Return costs as whole numbers, to as many digits as the solver can hold."""
    largest = float(cost.max(initial=0.0))
    return np.round(cost * (min(_DIGITS, _LARGEST // (nodes + 1)) / largest if largest else 0.0)).astype(np.int64)
