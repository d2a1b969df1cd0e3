"""The Wasserstein barycenter with few atoms: fair k-means in which every measure is a group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.fairness.fair_kmeans._certificate import PAPER, data_sha256, merging_ratio
from aboveboard.fairness.fair_kmeans._groups import Fairness, Floats
from aboveboard.fairness.fair_kmeans._relax_merge import Merged, relax_merge

__all__ = ["Barycenter", "checked_candidates", "sparse_wasserstein_barycenter"]

_ONE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Barycenter:
    """A measure with few atoms that lies amid several others.

    Attributes
    ----------
    atoms : ndarray of shape (k, d)
    masses : ndarray of shape (k,)
        They add up to 1.
    couplings : list of csr_array of shape (atoms of the measure, k)
        For each measure, how its mass is carried to the atoms.
    cost : float
        Sum over the measures of weight times squared Wasserstein distance, as the couplings have it.
    bound : float
        No measure on these atoms costs less.
    """

    atoms: Floats
    masses: Floats
    couplings: list[sparse.csr_array]
    cost: float
    bound: float
    _merged: Merged = field(repr=False)
    _candidates: str = field(repr=False)
    _recentred: bool = field(repr=False)
    _n: int = field(repr=False)
    _sha256: str = field(repr=False)

    def certificate(self) -> Certificate:
        """Return what is proven about the barycenter."""
        from aboveboard import __version__

        merged, k = self._merged, len(self.atoms)
        guarantee = (
            f"No measure on these {k} atoms costs less than {self.bound:.6g}; the barycenter costs {self.cost:.6g}"
        )
        assumptions: tuple[Assumption, ...] = ()
        parameters: dict[str, Any] = {"n_atoms": k, "cost": self.cost, "bound": self.bound}
        gap = merged.relaxed_before / merged.relaxed_bound - 1 if merged.relaxed_bound > 0 else 0.0
        whole = merged.n_sampled == self._n > 0
        ratio = None
        if whole and merged.all_points:
            ratio = merging_ratio(2 * (1 + gap), recentred=self._recentred)
        elif whole and self._candidates == "array":
            ratio = merging_ratio(1 + gap, recentred=self._recentred)
            assumptions = (Assumption("The candidates are an eps-approximate centroid set, for a small eps."),)
        if ratio is not None:
            guarantee += f", at most ({ratio[0]:.4g} + {ratio[1]:.4g} rho) times the best measure with {k} atoms"
            parameters["ratio"] = f"{ratio[0]:.6g} + {ratio[1]:.6g} rho"
            assumptions += (Assumption("Merging by k-means costs at most rho times the best merging."),)
        return Certificate(
            kind="sparse Wasserstein barycenter",
            guarantee=guarantee + ".",
            parameters=parameters,
            assumptions=assumptions,
            does_not_cover=() if ratio is not None else ("how far the atoms are from the best ones",),
            subject={"data": self._sha256},
            library_version=__version__,
            reference=PAPER,
        )


def sparse_wasserstein_barycenter(
    supports: Sequence[ArrayLike],
    masses: Sequence[ArrayLike],
    n_atoms: int,
    *,
    weights: ArrayLike | None = None,
    candidates: Literal["points", "kmeans"] | ArrayLike = "kmeans",
    n_candidates: int | None = None,
    recenter: bool = True,
    refine: int = 5,
    kmeans_n_init: int = 10,
    time_limit: float = 120.0,
    random_state: Any = None,
) -> Barycenter:
    """Return a measure with at most `n_atoms` atoms that is near to all the given measures.

    It minimises the sum over measures of weight times squared 2-Wasserstein distance, over atoms and their masses.

    Parameters
    ----------
    supports : sequence of array-like of shape (n_i, d)
        The atoms of each measure.
    masses : sequence of array-like of shape (n_i,)
        Their masses, at least 0, which add up to 1 in each measure.
    n_atoms : int
        At least 1.
    weights : array-like of shape (measures,), optional
        Above 0, adding up to 1; default: equal.
    candidates, n_candidates, recenter, refine, kmeans_n_init, time_limit, random_state
        As for `RelaxMergeFairKMeans`.

    Returns
    -------
    Barycenter

    Raises
    ------
    InputError
        For shapes that do not match, masses or weights that are negative or do not add up to 1, NaN.

    Guarantee
    ---------
    With ``candidates="points"`` (no more than some 1,200 atoms in all) at most (2 + 6 rho) times the least cost of any
    measure with so many atoms, where merging by k-means costs at most rho times the best merging.

    Notes
    -----
    Give each point of measure i the mass lambda_i p_a. Atoms that receive lambda_i of their mass from measure i, for
    every i, are clusters in which every measure has exactly its share: fair k-means with no slack.

    References
    ----------
    S. Song, G. Mo, Q. Yang, H. Ding, "Relax and Merge", ICLR 2025.

    Examples
    --------
    >>> from aboveboard.fairness import sparse_wasserstein_barycenter
    >>> middle = sparse_wasserstein_barycenter([[[0.0]], [[1.0]]], [[1.0], [1.0]], 1, random_state=0)
    >>> middle.atoms.tolist(), middle.cost
    ([[0.5]], 0.25)
    """
    points, mass = _checked_measures(supports, masses)
    share = _checked_weights(weights, len(points))
    k = _checked_count(n_atoms)
    chosen = checked_candidates(candidates, points[0].shape[1])
    present = [p > 0 for p in mass]
    X = np.vstack([x[keep] for x, keep in zip(points, present, strict=True)])
    weight = np.concatenate([part * p[keep] for part, p, keep in zip(share, mass, present, strict=True)])
    cell = np.repeat(np.arange(len(points)), [int(keep.sum()) for keep in present])
    if len(points) > 1:
        fairness = Fairness(np.eye(len(points)) - share[:, None], np.ones(len(points), dtype=bool))
    else:
        fairness = Fairness(np.zeros((0, 1)), np.zeros(0, dtype=bool))
    merged = relax_merge(
        X,
        weight,
        cell,
        fairness,
        k,
        candidates=chosen,
        n_candidates=n_candidates,
        recenter=recenter,
        refine=refine,
        n_init=kmeans_n_init,
        time_limit=time_limit,
        random_state=random_state,
    )
    couplings = []
    for measure, (keep, part) in enumerate(zip(present, share, strict=True)):
        own = (merged.assignment.mass[cell == measure] / part).tocoo()
        rows = np.flatnonzero(keep)[own.row]
        couplings.append(
            sparse.csr_array((own.data, (rows, own.col)), shape=(len(keep), own.shape[1])),
        )
    total = np.asarray(merged.assignment.mass.sum(axis=0)).ravel()
    kind = chosen if isinstance(chosen, str) else "array"
    return Barycenter(
        merged.centers,
        total / total.sum(),
        couplings,
        merged.assignment.cost,
        merged.assignment.bound,
        merged,
        kind,
        recenter,
        len(X),
        data_sha256(X, weight, cell),
    )


def checked_candidates(candidates: Any, d: int) -> Any:
    """Return "points", "kmeans", or an array of shape (candidates, d)."""
    if isinstance(candidates, str):
        if candidates not in ("points", "kmeans"):
            raise InputError(f"candidates is {candidates!r}", expected="'points', 'kmeans' or an array of centres")
        return candidates
    try:
        array = np.asarray(candidates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("candidates are no array of numbers", expected="shape (candidates, features)") from error
    if array.ndim != 2 or array.shape[1] != d or not len(array):
        raise InputError(f"candidates has shape {array.shape}", expected=f"one row per candidate and {d} columns")
    if not np.isfinite(array).all():
        raise InputError("candidates holds NaN or infinite values", expected="finite numbers")
    return array


def _checked_count(n_atoms: Any) -> int:
    if isinstance(n_atoms, bool) or not isinstance(n_atoms, int | np.integer) or n_atoms < 1:
        raise InputError(f"n_atoms is {n_atoms!r}", expected="a whole number of at least 1")
    return int(n_atoms)


def _checked_measures(supports: Any, masses: Any) -> tuple[list[Floats], list[Floats]]:
    if len(supports) != len(masses) or not len(supports):
        raise InputError(
            f"there are {len(supports)} supports and {len(masses)} masses", expected="one of each per measure"
        )
    points = [np.asarray(x, dtype=np.float64) for x in supports]
    mass = [np.asarray(p, dtype=np.float64) for p in masses]
    for position, (x, p) in enumerate(zip(points, mass, strict=True)):
        if x.ndim != 2 or p.shape != (len(x),) or x.shape[1] != points[0].shape[-1]:
            raise InputError(
                f"measure {position} has a support of shape {x.shape} and masses of shape {p.shape}",
                expected="(atoms, dimensions) and (atoms,), with the same dimensions in all measures",
            )
        if not (np.isfinite(x).all() and np.isfinite(p).all()):
            raise InputError(f"measure {position} holds NaN or infinite values", expected="finite numbers")
        if (p < 0).any() or abs(p.sum() - 1) > _ONE:
            raise InputError(
                f"the masses of measure {position} add up to {p.sum():.6g}"
                + (", and some are negative" if (p < 0).any() else ""),
                expected="masses of at least 0 that add up to 1",
            )
    return points, [p / p.sum() for p in mass]


def _checked_weights(weights: Any, count: int) -> NDArray[np.float64]:
    if weights is None:
        return np.full(count, 1 / count)
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (count,) or not np.all(share > 0) or abs(share.sum() - 1) > _ONE:
        raise InputError(f"weights is {weights!r}", expected=f"{count} numbers above 0 that add up to 1")
    return np.asarray(share / share.sum())
