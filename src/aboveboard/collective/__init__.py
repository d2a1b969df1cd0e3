"""Collective decisions: what can be said in the name of many people, and to whom is it fair?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.collective.equitable_allocation import (
        Benchmark,
        EquityReport,
        ExternalEquityAllocator,
        InternalEquityAllocator,
        allocation_audit,
        clairvoyant_lp,
        clairvoyant_milp,
        ex_post_bounds,
        simulate,
    )
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
    from aboveboard.collective.social_prediction import (
        BumpTests,
        GroupTests,
        LinearTests,
        PerformativeCalibrator,
        PolynomialTests,
        ProductTests,
        PublishedForecaster,
        ResponseModel,
        UsefulnessReport,
        performativity_audit,
        usefulness,
    )

__all__ = [
    "ApprovalImputer",
    "Benchmark",
    "BumpTests",
    "EJRReport",
    "EquityReport",
    "ExternalEquityAllocator",
    "GroupTests",
    "InternalEquityAllocator",
    "JRReport",
    "LinearTests",
    "PerformativeCalibrator",
    "PolynomialTests",
    "ProductTests",
    "PublishedForecaster",
    "Ranking",
    "RankingPath",
    "RepresentativeRanker",
    "ResponseModel",
    "SelectiveRanker",
    "StabilityReport",
    "TierCheck",
    "UsefulnessReport",
    "allocation_audit",
    "check_tiers",
    "clairvoyant_lp",
    "clairvoyant_milp",
    "ex_post_bounds",
    "extended_justified_representation",
    "feed_audit",
    "justified_representation",
    "performativity_audit",
    "rank_audit",
    "ranks_from_orders",
    "simulate",
    "stability_audit",
    "usefulness",
]

_MODULES = {
    "ApprovalImputer": "justified_comments",
    "Benchmark": "equitable_allocation",
    "BumpTests": "social_prediction",
    "EJRReport": "justified_comments",
    "EquityReport": "equitable_allocation",
    "ExternalEquityAllocator": "equitable_allocation",
    "GroupTests": "social_prediction",
    "InternalEquityAllocator": "equitable_allocation",
    "JRReport": "justified_comments",
    "LinearTests": "social_prediction",
    "PerformativeCalibrator": "social_prediction",
    "PolynomialTests": "social_prediction",
    "ProductTests": "social_prediction",
    "PublishedForecaster": "social_prediction",
    "Ranking": "justified_comments",
    "RankingPath": "selective_ranking",
    "RepresentativeRanker": "justified_comments",
    "ResponseModel": "social_prediction",
    "SelectiveRanker": "selective_ranking",
    "StabilityReport": "selective_ranking",
    "TierCheck": "selective_ranking",
    "UsefulnessReport": "social_prediction",
    "allocation_audit": "equitable_allocation",
    "check_tiers": "selective_ranking",
    "clairvoyant_lp": "equitable_allocation",
    "clairvoyant_milp": "equitable_allocation",
    "ex_post_bounds": "equitable_allocation",
    "extended_justified_representation": "justified_comments",
    "feed_audit": "justified_comments",
    "justified_representation": "justified_comments",
    "performativity_audit": "social_prediction",
    "rank_audit": "selective_ranking",
    "ranks_from_orders": "selective_ranking",
    "simulate": "equitable_allocation",
    "stability_audit": "selective_ranking",
    "usefulness": "social_prediction",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.collective.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.collective' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
