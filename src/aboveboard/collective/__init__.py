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
    from aboveboard.collective.strategic_externalities import (
        Equilibrium,
        EquilibriumLayer,
        EquilibriumPerformance,
        ManipulationGame,
        StrategicEquilibriumClassifier,
        manipulation_audit,
        performance_at_equilibrium,
    )

__all__ = [
    "ApprovalImputer",
    "EJRReport",
    "Equilibrium",
    "EquilibriumLayer",
    "EquilibriumPerformance",
    "JRReport",
    "ManipulationGame",
    "Ranking",
    "RankingPath",
    "RepresentativeRanker",
    "SelectiveRanker",
    "StabilityReport",
    "StrategicEquilibriumClassifier",
    "TierCheck",
    "check_tiers",
    "extended_justified_representation",
    "feed_audit",
    "justified_representation",
    "manipulation_audit",
    "performance_at_equilibrium",
    "rank_audit",
    "ranks_from_orders",
    "stability_audit",
]

_MODULES = {
    "ApprovalImputer": "justified_comments",
    "EJRReport": "justified_comments",
    "Equilibrium": "strategic_externalities",
    "EquilibriumLayer": "strategic_externalities",
    "EquilibriumPerformance": "strategic_externalities",
    "JRReport": "justified_comments",
    "ManipulationGame": "strategic_externalities",
    "Ranking": "justified_comments",
    "RankingPath": "selective_ranking",
    "RepresentativeRanker": "justified_comments",
    "SelectiveRanker": "selective_ranking",
    "StabilityReport": "selective_ranking",
    "StrategicEquilibriumClassifier": "strategic_externalities",
    "TierCheck": "selective_ranking",
    "check_tiers": "selective_ranking",
    "extended_justified_representation": "justified_comments",
    "feed_audit": "justified_comments",
    "justified_representation": "justified_comments",
    "manipulation_audit": "strategic_externalities",
    "performance_at_equilibrium": "strategic_externalities",
    "rank_audit": "selective_ranking",
    "ranks_from_orders": "selective_ranking",
    "stability_audit": "selective_ranking",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.collective.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.collective' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
