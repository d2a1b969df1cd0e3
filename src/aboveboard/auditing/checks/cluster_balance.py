"""Is any group rare in some cluster, or crowded into it?"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.disclosure import crossed_margins, few, withhold_crossed
from aboveboard.auditing.subjects.clustering import ClusteringSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_MOST_CELLS: Final = 400  # beyond this, finding out which cells give a small one away takes too long


def check(subject: ClusteringSubject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001
    """Hold the share of every group in every cluster against a band around its share in the data.

    Parameters
    ----------
    subject : ClusteringSubject

    Returns
    -------
    list of Finding
        ``cluster_balance/<column>`` for every sensitive column.

    Notes
    -----
    O(rows); nothing is drawn at random.
    """
    from aboveboard.fairness import cluster_balance_audit

    people = subject.limits["cluster_balance.people"]
    return cluster_balance_audit(
        subject.cluster,
        subject.sensitive,
        slack=subject.limits["cluster_balance.slack"].value,
        tolerated=people.value,
        limit_source=people.source,
        withhold=lambda counts: _withheld(counts, subject.min_cell),
    )


def _withheld(counts: NDArray[np.float64], min_cell: int) -> NDArray[np.bool_]:
    """Return which counts, clusters x groups, are small or would give a small one away."""
    small = few(counts.ravel(), min_cell).reshape(counts.shape)
    if not small.any():
        return small
    if counts.size > _MOST_CELLS:
        return np.ones(counts.shape, dtype=bool)
    cluster, group = np.nonzero(counts)
    _, place = np.unique(group, return_inverse=True)
    withheld = withhold_crossed(counts[cluster, group], crossed_margins([cluster, place]), min_cell)
    hidden = np.zeros(counts.shape, dtype=bool)
    hidden[cluster, group] = withheld.all
    return hidden
