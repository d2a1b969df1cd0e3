"""Is a sizeable group of readers that agrees on a comment left without one it approves?"""

from typing import Any, Final

from aboveboard.auditing.subjects.feed import FeedSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_DRAWS: Final[dict[Effort, int]] = {"quick": 20, "standard": 100, "full": 1000}
_SECONDS: Final[dict[Effort, float]] = {"quick": 1.0, "standard": 5.0, "full": 60.0}


def check(subject: FeedSubject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Hold the feed against the approvals of its readers.

    Returns
    -------
    list of Finding
        ``feed/top<k>``, ``feed/repair``, ``feed/groups/<column>`` and, with imputed approvals, ``feed/imputed``.

    Notes
    -----
    O(votes) per length, a time limit per repair; with imputed approvals readers x comments for each draw.
    """
    from aboveboard.collective import ApprovalImputer, feed_audit

    approvals: Any = (
        ApprovalImputer(random_state=random_state).fit(subject.votes) if subject.imputed else subject.votes > 0
    )
    limit = subject.limits["feed.excluded"]
    return feed_audit(
        subject.order,
        approvals,
        k=subject.lengths,
        groups=subject.groups,
        weights=subject.weights,
        labels=subject.comments,
        readers=subject.readers,
        limit=limit.value,
        limit_source=limit.source,
        min_readers=subject.min_cell,
        called=subject.called,
        n_draws=_DRAWS[effort],
        time_limit=_SECONDS[effort],
        random_state=random_state,
    )
