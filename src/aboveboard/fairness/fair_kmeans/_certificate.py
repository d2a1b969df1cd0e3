"""What is proven about a fair clustering, and what each part of the proof rests on."""

import hashlib
import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import Assumption, Certificate, Reference
from aboveboard.fairness.fair_kmeans._fairlets import Fairlets
from aboveboard.fairness.fair_kmeans._groups import Floats, Groups
from aboveboard.fairness.fair_kmeans._relax_merge import Merged

__all__ = ["PAPER", "clustering_certificate", "data_sha256", "merging_ratio", "rounding_limit", "strict_certificate"]

PAPER: Final = Reference(
    title="Relax and Merge: A Simple Yet Effective Framework for Solving Fair k-Means and k-sparse Wasserstein "
    "Barycenter Problems",
    authors="S. Song, G. Mo, Q. Yang, H. Ding",
    venue="ICLR 2025",
    year=2025,
    url="https://arxiv.org/abs/2411.01115",
)

_FAIR: Final = 1e-6  # points


def data_sha256(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()


def merging_ratio(relaxed: float, *, recentred: bool = True) -> tuple[float, float]:
    """Return a and b such that the clusters cost at most (a + b rho) OPT.

    Parameters
    ----------
    relaxed : float
        The relaxation costs at most so many times OPT, the cost of the best k fair clusters.
    recentred : bool
        Whether each candidate stands at the mean of what it was assigned.

    Notes
    -----
    With candidates at means, clusters about merged centres cost L + KM, where L is the cost of the relaxation and KM
    that of merging, at most rho (2 L + 2 OPT). Elsewhere they cost at most 2 L + 2 KM.
    """
    once = 1.0 if recentred else 2.0
    return once * relaxed, once * (2 * relaxed + 2)


def rounding_limit(groups: Groups, allowed: Floats) -> float:
    """Return what the excess of any group in any cluster stays below when every cell is rounded, in points."""
    bounded = (allowed[:, 0] > 0) | (allowed[:, 1] < 1)
    if not bounded.any():
        return 0.0
    cells = groups.member.sum(axis=1)
    alone = len(groups.attributes) == 1
    return float((np.ones_like(cells) if alone else cells)[bounded].max() + allowed[bounded, 1].max())


def clustering_certificate(
    merged: Merged,
    *,
    candidates: str,
    recentred: bool,
    n: int,
    k: int,
    fractional_violation: float,
    max_violation: float,
    limit: float,
    rounding: str | None,
    subject: str,
) -> Certificate:
    """Return the certificate of a fractional fair clustering and of its labels."""
    from aboveboard import __version__

    assignment = merged.assignment
    gap = merged.relaxed_before / merged.relaxed_bound - 1 if merged.relaxed_bound > 0 else 0.0
    parameters: dict[str, Any] = {
        "n_clusters": len(merged.centers),
        "candidates": candidates,
        "fractional_cost": assignment.cost,
        "assignment_bound": assignment.bound,
        "relaxed_bound": merged.relaxed_bound,
        "max_violation": max_violation,
    }
    guarantee = (
        f"The fractional assignment keeps every bound, and no fair assignment to these {len(merged.centers)} centres "
        f"costs less than {assignment.bound:.6g}; it costs {assignment.cost:.6g}"
    )
    assumptions = [
        Assumption(
            "The fractional assignment keeps every bound.",
            "checked",
            "largest excess of any group in any cluster, in points",
            fractional_violation,
            _FAIR,
            fractional_violation <= _FAIR,
        )
    ]
    whole = merged.n_sampled == n and merged.n_candidates > 0
    if candidates == "points" and whole and merged.all_points:
        a, b = merging_ratio(2 * (1 + gap), recentred=recentred)
        guarantee += f", and at most ({a:.4g} + {b:.4g} rho) times the best fair clustering into {k} clusters"
        parameters |= _ratio(a, b, k)
        if merged.relaxed_bound > 0:
            parameters["proven_ratio"] = 2 * assignment.cost / merged.relaxed_bound
        assumptions.append(_merging(k))
    elif candidates == "array" and whole:
        a, b = merging_ratio(1 + gap, recentred=recentred)
        guarantee += (
            f", and at most ({a:.4g} + {b:.4g} rho)(1 + eps) times the best fair clustering of whole points into {k} "
            "clusters"
        )
        parameters |= _ratio(a, b, k)
        assumptions += [
            Assumption(
                "The candidates are an eps-approximate centroid set: each set of points has a candidate within a third "
                "of eps times the root mean square distance of the set from its centroid."
            ),
            _merging(k),
        ]
    if rounding is not None and limit:
        guarantee += f"; the labels exceed a bound by fewer than {limit:.4g} points in any cluster"
        assumptions.append(
            Assumption(
                "The labels stay within what rounding can cost.",
                "checked",
                "largest excess of any group in any cluster, in points",
                max_violation,
                limit,
                max_violation < limit,
            )
        )
    return Certificate(
        kind="fair clustering",
        guarantee=guarantee + ".",
        parameters=parameters,
        assumptions=tuple(assumptions),
        does_not_cover=(
            "new people: the shares hold for the rows that were clustered",
            *(() if "ratio" in parameters else ("how far the centres are from the best ones",)),
            *(() if rounding is not None else ("the labels, which are each point's largest share",)),
            "whether groups should be in proportion for the purpose at hand",
        ),
        subject={"data": subject},
        library_version=__version__,
        reference=PAPER,
    )


def strict_certificate(fair: Fairlets, cost: float, k: int, subject: str) -> Certificate:
    """Return the certificate of clusters made of whole fairlets.

    The best matchings about the pivot cost at most 1 + size / pivots times the best strictly fair clustering: match at
    random within its clusters, and average over the pivots.
    """
    from aboveboard import __version__

    relaxed = 1 + fair.size / fair.n_pivots
    parameters: dict[str, Any] = {"n_clusters": k, "cost": cost, "fairlet_size": fair.size}
    guarantee = "Every cluster holds every group in exactly the proportion of the data"
    if fair.exact:
        a, b = merging_ratio(relaxed)
        guarantee += f", and costs at most ({a:.4g} + {b:.4g} rho) times the best clustering that does so"
        parameters |= _ratio(a, b, k)
        if fair.matching_cost > 0:
            parameters["proven_ratio"] = cost * relaxed / fair.matching_cost
    return Certificate(
        kind="strictly fair clustering",
        guarantee=guarantee + ".",
        parameters=parameters,
        assumptions=(_merging(k),) if fair.exact else (),
        does_not_cover=(
            "new people: the shares hold for the rows that were clustered",
            *(() if fair.exact else ("how far from the best it is: groups were matched among near neighbours only",)),
            "whether groups should be in proportion for the purpose at hand",
        ),
        subject={"data": subject},
        library_version=__version__,
        reference=PAPER,
    )


def _merging(k: int) -> Assumption:
    return Assumption(
        f"Merging by k-means costs at most rho times the best merging; k-means++ gives rho <= {_rho(k):.3g} in "
        "expectation."
    )


def _ratio(a: float, b: float, k: int) -> dict[str, Any]:
    return {"ratio": f"{a:.6g} + {b:.6g} rho", "ratio_if_merging_is_optimal": a + b, "rho_expected": _rho(k)}


def _rho(k: int) -> float:
    """Return the factor of k-means++ in expectation (Arthur and Vassilvitskii, 2007)."""
    return 8 * (math.log(k) + 2)
