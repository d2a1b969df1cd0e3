"""Fairlets: small groups of matched people with every group in its proportion, which stay together.

Where all groups are equally large, or each a whole number of times the smallest, everybody is matched with one person
of a pivot group, at the least total squared distance. Clusters of whole fairlets have the proportions of the data
exactly.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from aboveboard.core import InputError
from aboveboard.fairness.fair_kmeans._assignment import squared_distances
from aboveboard.fairness.fair_kmeans._groups import Floats, Groups, Indices
from aboveboard.fairness.fair_kmeans._rounding import matching_flow

__all__ = ["Fairlets", "fairlets", "refuse_uneven"]

_DENSE: Final = 3_000
_NEIGHBOURS: Final = 30


@dataclass(frozen=True, slots=True)
class Fairlets:
    """Who belongs together.

    Attributes
    ----------
    of : ndarray of int, shape (n,)
        Fairlet of each point.
    centers : ndarray of shape (fairlets, d)
    size : int
        People in a fairlet.
    matching_cost : float
        Sum of squared distances to the pivot.
    n_pivots : int
        How many cells were tried as pivot.
    exact : bool
        Whether the matchings are the cheapest of all, and not only among near neighbours.
    """

    of: Indices
    centers: Floats
    size: int
    matching_cost: float
    n_pivots: int
    exact: bool


def refuse_uneven(groups: Groups, k: int) -> None:
    """Refuse groups whose sizes are no whole multiples of the smallest, and more clusters than fairlets."""
    counts = groups.cell_counts()
    smallest = int(counts.min())
    if np.any(counts % smallest):
        sizes = ", ".join(f"{count:,}" for count in counts)
        raise InputError(
            f"strict=True, and the groups (combinations of sensitive columns) have {sizes} rows",
            expected="equal sizes, or whole multiples of the smallest",
            remedy="Leave rows out until they are, or use strict=False with slack=0",
        )
    if k > smallest:
        raise InputError(
            f"strict=True asks for {k} clusters, and the smallest group has {smallest:,} rows",
            expected="a member of every group in each cluster",
        )


def fairlets(X: Floats, groups: Groups) -> Fairlets:
    """Return fairlets about the pivot group with the cheapest matchings.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    groups : Groups
        Cells whose sizes are whole multiples of the smallest.

    Notes
    -----
    ``linear_sum_assignment``, O(n^3) for each pair of cells, up to 3,000 rows in a cell; beyond that a flow over the
    30 nearest neighbours and one matching that always exists, which may miss the cheapest matching.
    """
    counts = groups.cell_counts()
    smallest = int(counts.min())
    members = [np.flatnonzero(groups.cell == cell) for cell in range(groups.n_cells)]
    pivots = np.flatnonzero(counts == smallest)
    known: dict[tuple[int, int], tuple[Indices, float]] = {}

    def matched(pivot: int, other: int) -> tuple[Indices, float]:
        """Return the place in the pivot of each member of the other cell, and the cost."""
        if (other, pivot) in known:  # the same matching, seen from the other side
            partner, cost = known[other, pivot]
            return np.argsort(partner), cost
        if (pivot, other) not in known:
            known[pivot, other] = _matching(X[members[pivot]], X[members[other]])
        return known[pivot, other]

    others = {int(p): [c for c in range(groups.n_cells) if c != p] for p in pivots}
    cost = {p: sum(matched(p, other)[1] for other in cells) for p, cells in others.items()}
    best = min(cost, key=lambda p: cost[p])
    of = np.empty(len(X), dtype=np.intp)
    of[members[best]] = np.arange(smallest)
    for other in others[best]:
        of[members[other]] = matched(best, other)[0]
    size = len(X) // smallest
    centers = np.column_stack([np.bincount(of, weights=column, minlength=smallest) for column in X.T]) / size
    return Fairlets(of, centers, size, cost[best], len(pivots), exact=bool(counts.max() <= _DENSE))


def _matching(pivot: Floats, other: Floats) -> tuple[Indices, float]:
    each = len(other) // len(pivot)
    if len(other) <= _DENSE:
        cost = squared_distances(pivot, other)
        rows, columns = linear_sum_assignment(np.repeat(cost, each, axis=0))
        partner = np.empty(len(other), dtype=np.intp)
        partner[columns] = rows // each
        return partner, float(cost[partner, np.arange(len(other))].sum())
    partner = _sparse_matching(pivot, other, each)
    return partner, float(((other - pivot[partner]) ** 2).sum())


def _sparse_matching(pivot: Floats, other: Floats, each: int) -> Indices:
    """Match over the nearest neighbours of both sides, and the matching along the main direction of the data."""
    few = min(_NEIGHBOURS, len(pivot))
    of_other = NearestNeighbors(n_neighbors=few).fit(pivot).kneighbors(other, return_distance=False)
    of_pivot = NearestNeighbors(n_neighbors=few).fit(other).kneighbors(pivot, return_distance=False)
    line = PCA(1, svd_solver="full").fit(np.vstack([pivot, other]))
    order, other_order = (np.argsort(line.transform(part)[:, 0], kind="stable") for part in (pivot, other))
    tail = np.concatenate([of_other.ravel(), np.repeat(np.arange(len(pivot)), few), np.repeat(order, each)])
    head = np.concatenate([np.repeat(np.arange(len(other)), few), of_pivot.ravel(), other_order])
    arcs = np.unique(tail.astype(np.int64) * len(other) + head)
    tail, head = arcs // len(other), arcs % len(other)
    cost = ((pivot[tail] - other[head]) ** 2).sum(axis=1)
    return matching_flow(tail, head, cost, len(pivot), len(other), each)
