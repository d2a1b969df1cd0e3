"""Collective decisions: what can be said in the name of many people, and to whom is it fair?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "RankingPath",
    "SelectiveRanker",
    "StabilityReport",
    "TierCheck",
    "check_tiers",
    "rank_audit",
    "ranks_from_orders",
    "stability_audit",
]

_MODULES = {"selective_ranking": __all__}
"""Which method's module holds which names."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"aboveboard.collective.{module}"), name)
    raise AttributeError(f"module 'aboveboard.collective' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
