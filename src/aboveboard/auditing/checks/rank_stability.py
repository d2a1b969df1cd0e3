"""Would other judges of the same kind have put the items in another order?"""

from typing import Final

from aboveboard.auditing.subjects.ranking import RankingSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_DRAWS: Final[dict[str, int]] = {"quick": 200, "standard": 1_000, "full": 10_000}
_WORK: Final[dict[str, float]] = {"quick": 2e8, "standard": 4e9, "full": 4e11}
"""Most votes on pairs that are counted over all draws."""
_FEWEST: Final = 50


def check(subject: RankingSubject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Draw the judges anew, and see what turns round in the Borda count and in the selective ranking.

    Returns
    -------
    list of Finding
        ``rank_stability/borda`` and ``rank_stability/selective``.

    Notes
    -----
    200, 1,000 or 10,000 draws (effort quick, standard, full), fewer for many judges and items, at least 50.
    """
    from aboveboard.collective import stability_audit

    limit = subject.limits["rank_stability.reversed"]
    votes = float(len(subject)) * len(subject.ranker.items_) ** 2
    return stability_audit(
        subject.ranker,
        limit=limit.value,
        limit_source=limit.source,
        tolerated=subject.limits["rank_audit.tolerated"].value,
        n_bootstrap=int(min(_DRAWS[effort], max(_FEWEST, _WORK[effort] / votes))),
        min_judges=subject.min_cell,
        random_state=random_state,
    )
