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
    from aboveboard.collective.opinion_interventions import (
        AdministratorPath,
        Box,
        BudgetSimplex,
        ConvexSet,
        Disagreement,
        FriedkinJohnsen,
        FrobeniusBall,
        Intersection,
        InterventionReport,
        MeanOpinion,
        OpinionInterventionOptimizer,
        Polarization,
        RowSimplex,
        ShareOutside,
        WeightedSum,
        add_influencer,
        administrator_dynamics,
        insert_edges,
        load_edge_list,
        network_from_edges,
        opinion_audit,
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
    "AdministratorPath",
    "ApprovalImputer",
    "Box",
    "BudgetSimplex",
    "ConvexSet",
    "Disagreement",
    "EJRReport",
    "FriedkinJohnsen",
    "FrobeniusBall",
    "Intersection",
    "InterventionReport",
    "JRReport",
    "MeanOpinion",
    "OpinionInterventionOptimizer",
    "Polarization",
    "Ranking",
    "RankingPath",
    "RepresentativeRanker",
    "RowSimplex",
    "SelectiveRanker",
    "ShareOutside",
    "StabilityReport",
    "TierCheck",
    "WeightedSum",
    "add_influencer",
    "administrator_dynamics",
    "check_tiers",
    "extended_justified_representation",
    "feed_audit",
    "insert_edges",
    "justified_representation",
    "load_edge_list",
    "network_from_edges",
    "opinion_audit",
    "rank_audit",
    "ranks_from_orders",
    "stability_audit",
]

_MODULES = {
    "AdministratorPath": "opinion_interventions",
    "ApprovalImputer": "justified_comments",
    "Box": "opinion_interventions",
    "BudgetSimplex": "opinion_interventions",
    "ConvexSet": "opinion_interventions",
    "Disagreement": "opinion_interventions",
    "EJRReport": "justified_comments",
    "FriedkinJohnsen": "opinion_interventions",
    "FrobeniusBall": "opinion_interventions",
    "Intersection": "opinion_interventions",
    "InterventionReport": "opinion_interventions",
    "JRReport": "justified_comments",
    "MeanOpinion": "opinion_interventions",
    "OpinionInterventionOptimizer": "opinion_interventions",
    "Polarization": "opinion_interventions",
    "Ranking": "justified_comments",
    "RankingPath": "selective_ranking",
    "RepresentativeRanker": "justified_comments",
    "RowSimplex": "opinion_interventions",
    "SelectiveRanker": "selective_ranking",
    "ShareOutside": "opinion_interventions",
    "StabilityReport": "selective_ranking",
    "TierCheck": "selective_ranking",
    "WeightedSum": "opinion_interventions",
    "add_influencer": "opinion_interventions",
    "administrator_dynamics": "opinion_interventions",
    "check_tiers": "selective_ranking",
    "extended_justified_representation": "justified_comments",
    "feed_audit": "justified_comments",
    "insert_edges": "opinion_interventions",
    "justified_representation": "justified_comments",
    "load_edge_list": "opinion_interventions",
    "network_from_edges": "opinion_interventions",
    "opinion_audit": "opinion_interventions",
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
