"""Collective decisions: what can be said in the name of many people, and to whom is it fair?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.collective.justified_comments import (
        ApprovalImputer,
        EJRReport,
        JRReport,
        Ranking,
        RepresentativeRanker,
        extended_justified_representation,
        feed_audit,
        justified_representation,
    )
    from aboveboard.collective.selective_ranking import (
        RankingPath,
        SelectiveRanker,
        StabilityReport,
        TierCheck,
        check_tiers,
        rank_audit,
        ranks_from_orders,
        stability_audit,
    )

__all__ = [
    "ApprovalImputer",
    "EJRReport",
    "JRReport",
    "Ranking",
    "RankingPath",
    "RepresentativeRanker",
    "SelectiveRanker",
    "StabilityReport",
    "TierCheck",
    "check_tiers",
    "extended_justified_representation",
    "feed_audit",
    "justified_representation",
    "rank_audit",
    "ranks_from_orders",
    "stability_audit",
]

_MODULES = {
    "justified_comments": (
        "ApprovalImputer",
        "EJRReport",
        "JRReport",
        "Ranking",
        "RepresentativeRanker",
        "extended_justified_representation",
        "feed_audit",
        "justified_representation",
    ),
    "selective_ranking": (
        "RankingPath",
        "SelectiveRanker",
        "StabilityReport",
        "TierCheck",
        "check_tiers",
        "rank_audit",
        "ranks_from_orders",
        "stability_audit",
    ),
}
"""Which method's module holds which names."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"aboveboard.collective.{module}"), name)
    raise AttributeError(f"module 'aboveboard.collective' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
