"""Does a ranking put anything above something else although too many of its judges do not agree?"""

from aboveboard.auditing.subjects.ranking import RankingSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]


def check(subject: RankingSubject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001
    """Hold the published order, or that of the Borda count, against the votes.

    Returns
    -------
    list of Finding
        ``rank_audit/order``, ``rank_audit/winner`` and ``rank_audit/tiers``.

    Notes
    -----
    O(judges x items^2); nothing is drawn at random.
    """
    from aboveboard.collective import rank_audit

    limit = subject.limits["rank_audit.dissent"]
    return rank_audit(
        subject.order,
        subject.ranker,
        limit=limit.value,
        limit_source=limit.source,
        tolerated=subject.limits["rank_audit.tolerated"].value,
        min_judges=subject.min_cell,
        called="order by Borda count" if subject.published is None else "published order",
    )
