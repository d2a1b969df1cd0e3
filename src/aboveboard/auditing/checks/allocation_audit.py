"""Does the place in the queue, or a group, decide how much of a scarce stock somebody gets?"""

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.subjects.allocation import AllocationSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]


def check(subject: AllocationSubject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001
    """Hold what was granted against the best that was possible for all, and against the groups' shares.

    Returns
    -------
    list of Finding
        ``allocation_audit/slots``, ``/fill/<column>``, ``/share/<column>``, ``/stock`` and ``/rule``.

    Notes
    -----
    O(requests log requests); for ``/rule`` a few thousand days are simulated.
    """
    from aboveboard.collective import allocation_audit

    slot, group, share = (subject.limits[f"allocation_audit.{name}"] for name in ("slots", "groups", "shares"))
    return allocation_audit(
        subject.log,
        subject.supply,
        subject.groups,
        shares=subject.shares,
        slots=subject.slots,
        limit=slot.value,
        limit_source=slot.source,
        group_limit=group.value,
        group_source=group.source,
        share_limit=share.value,
        share_source=share.source,
        min_requests=subject.min_cell,
        withhold=lambda counts: _withheld(counts, subject.min_cell),
        random_state=random_state,
    )


def _withheld(counts: NDArray[np.intp], min_cell: int) -> NDArray[np.bool_]:
    """Return which groups are small, or would give a small one away beside the figure of everybody."""
    return withhold_parts(counts, min_cell).all
