"""Relax, re-centre, merge, assign, refine: from candidate centres to k fair clusters, fractionally."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from aboveboard.fairness.fair_kmeans._assignment import Assignment, fair_assignment, squared_distances
from aboveboard.fairness.fair_kmeans._groups import Fairness, Floats, Indices

__all__ = ["Candidates", "Merged", "fractional_means", "refined", "relax_merge", "weighted_kmeans"]

Candidates = Literal["points", "kmeans"]

_PAIRS: Final = 1_500_000  # beyond this many unknowns, the relaxation looks at a sample of the points
_FEWEST_POINTS: Final = 1_000
_RELAXED_GAP: Final = 5e-3
_SMALL_FALL: Final = 1e-4
_NO_MASS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Merged:
    """What came out.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
        Fewer than asked for, where some would have been empty.
    assignment : Assignment
        Of all points to the centres.
    relaxed_cost, relaxed_before, relaxed_bound : float
        Of the relaxation: its cost after and before re-centring, and what no fair assignment to the candidates goes
        below.
    n_candidates, n_sampled : int
        How many candidates and points the relaxation had.
    all_points : bool
        Whether the candidates were all the points.
    merged_cost : float
        Of the cheapest fair assignment to the merged centres.
    costs : list of float
        Of the start that ended cheapest: at first, and after each refinement.
    """

    centers: Floats
    assignment: Assignment
    relaxed_cost: float
    relaxed_before: float
    relaxed_bound: float
    n_candidates: int
    n_sampled: int
    all_points: bool
    merged_cost: float
    costs: list[float]


def relax_merge(
    X: Floats,
    weight: Floats,
    cell: Indices,
    fairness: Fairness,
    k: int,
    *,
    candidates: Candidates | NDArray[Any] = "kmeans",
    n_candidates: int | None = None,
    recenter: bool = True,
    refine: int = 5,
    n_init: int = 10,
    time_limit: float = 120.0,
    random_state: Any = None,
) -> Merged:
    """Return k centres and the cheapest fair assignment to them; for the arguments see `RelaxMergeFairKMeans`."""
    random = check_random_state(random_state)
    plain = weighted_kmeans(X, weight, k, n_init, random)
    if not len(fairness.rows):
        assignment = fair_assignment(squared_distances(X, plain), weight, cell, fairness)
        cost = assignment.cost
        return Merged(plain, assignment, 0.0, 0.0, 0.0, 0, 0, False, cost, [cost])
    found, rows = _candidates(X, weight, cell, k, candidates, n_candidates, random)
    # the candidates may each take a part of every point: no limit on how many are used
    free = fair_assignment(
        squared_distances(X[rows], found),
        _scaled(weight, cell, rows),
        cell[rows],
        fairness,
        gap=_RELAXED_GAP,
        time_limit=time_limit,
    )
    mass = np.asarray(free.mass.sum(axis=0)).ravel()
    used = mass > _NO_MASS * mass.sum()
    places, saved = fractional_means(X[rows], found, free) if recenter else (found, 0.0)
    merged = weighted_kmeans(places[used], mass[used], k, n_init, random)

    # plain k-means, refined, is sometimes the better start; the cheaper end is kept
    ends = [
        refined(X, weight, cell, fairness, centers, refine=refine, time_limit=time_limit) for centers in (merged, plain)
    ]
    centers, assignment, costs = min(ends, key=lambda end: end[1].cost)
    return Merged(
        centers,
        assignment,
        relaxed_cost=free.cost - saved,
        relaxed_before=free.cost,
        relaxed_bound=free.bound,
        n_candidates=len(found),
        n_sampled=len(rows),
        all_points=isinstance(candidates, str) and candidates == "points" and len(found) == len(np.unique(X, axis=0)),
        merged_cost=ends[0][2][0],
        costs=costs,
    )


def refined(
    X: Floats,
    weight: Floats,
    cell: Indices,
    fairness: Fairness,
    centers: Floats,
    *,
    refine: int,
    time_limit: float,
) -> tuple[Floats, Assignment, list[float]]:
    """Assign points fairly, move centres to the means of what they were assigned, and again while it pays.

    Returns
    -------
    centers, assignment, costs
        Costs at first and after each round.
    """
    assignment = fair_assignment(squared_distances(X, centers), weight, cell, fairness, time_limit=time_limit)
    centers, assignment = _without_empty(centers, assignment)
    costs = [assignment.cost]
    for _ in range(refine):
        moved, _ = fractional_means(X, centers, assignment)
        again = fair_assignment(
            squared_distances(X, moved), weight, cell, fairness, prices=assignment.prices, time_limit=time_limit
        )
        if again.cost >= costs[-1]:
            break
        centers, assignment = _without_empty(moved, again)
        costs.append(assignment.cost)
        if costs[-2] - costs[-1] < _SMALL_FALL * costs[-2]:
            break
    return centers, assignment, costs


def weighted_kmeans(X: Floats, weight: Floats, k: int, n_init: int, random: Any) -> Floats:
    """Return the centres of k-means on weighted points, all of them where there are no more than k."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    if len(distinct) <= k:
        return distinct
    total = np.bincount(place.ravel(), weights=weight, minlength=len(distinct))
    model = KMeans(k, n_init=n_init, random_state=random.randint(2**31 - 1))
    return np.asarray(model.fit(distinct, sample_weight=total / total.mean()).cluster_centers_, dtype=np.float64)


def fractional_means(X: Floats, centers: Floats, assignment: Assignment) -> tuple[Floats, float]:
    """Return the mean of what each centre was assigned, and what moving there saves; empty centres stay."""
    mass = np.asarray(assignment.mass.sum(axis=0)).ravel()
    full = mass > _NO_MASS * mass.sum()
    means = centers.copy()
    means[full] = (assignment.mass.T @ X)[full] / mass[full, None]
    return means, float(mass @ ((means - centers) ** 2).sum(axis=1))


def _without_empty(centers: Floats, assignment: Assignment) -> tuple[Floats, Assignment]:
    mass = np.asarray(assignment.mass.sum(axis=0)).ravel()
    full = mass > _NO_MASS * mass.sum()
    if full.all():
        return centers, assignment
    kept = assignment.mass.tocsc()[:, full].tocsr()
    return centers[full], Assignment(kept, assignment.cost, assignment.bound, assignment.prices[:, full])


def _candidates(
    X: Floats,
    weight: Floats,
    cell: Indices,
    k: int,
    candidates: Candidates | NDArray[Any],
    n_candidates: int | None,
    random: Any,
) -> tuple[Floats, Indices]:
    """Return candidate centres, and the points that the relaxation looks at."""
    n = len(X)
    if isinstance(candidates, str) and candidates == "points":
        wanted = min(n, n_candidates or int(_PAIRS**0.5))
        rows = _sample(cell, _points_for(wanted, n), random)
        chosen = rows if len(rows) == wanted else np.sort(random.choice(n, wanted, replace=False))
        return np.unique(X[chosen], axis=0), rows
    if not isinstance(candidates, str):
        return np.asarray(candidates, dtype=np.float64), _sample(cell, _points_for(len(candidates), n), random)
    wanted = min(n, n_candidates or max(100, 15 * k))
    cells = np.unique(cell)
    rows = _sample(cell, _points_for(wanted + k * len(cells), n), random)
    parts = [weighted_kmeans(X[rows], weight[rows], wanted, 1, random)]
    if len(cells) > 1:
        for one in cells:
            of = rows[cell[rows] == one]
            parts.append(weighted_kmeans(X[of], weight[of], min(k, len(of)), 1, random))
    return np.unique(np.vstack(parts), axis=0), rows


def _points_for(n_candidates: int, n: int) -> int:
    return min(n, max(_FEWEST_POINTS, _PAIRS // n_candidates))


def _sample(cell: Indices, size: int, random: Any) -> Indices:
    """Return about `size` rows, from each cell its share and at least one."""
    if size >= len(cell):
        return np.arange(len(cell))
    order = random.permutation(len(cell))
    order = order[np.argsort(cell[order], kind="stable")]
    counts = np.bincount(cell)
    take = np.minimum(counts, np.maximum(1, np.round(counts * (size / len(cell)))).astype(int))
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[np.arange(len(cell)) - starts < np.repeat(take, counts)])


def _scaled(weight: Floats, cell: Indices, rows: Indices) -> Floats:
    """Return weights of the sampled rows that give each cell the mass it has."""
    if len(rows) == len(cell):
        return weight
    whole = np.bincount(cell, weights=weight)
    part = np.bincount(cell[rows], weights=weight[rows], minlength=len(whole))
    return weight[rows] * (whole / np.where(part > 0, part, 1.0))[cell[rows]]
