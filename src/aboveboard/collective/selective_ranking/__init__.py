"""Rankings that order two items only where enough judges agree: which comparisons are safe to act on, and which are
disputed? For those who publish a leaderboard, a panel's list or a poll.

References
----------
S. Kadekodi, H. McTavish, B. Ustun, "Selective Preference Aggregation", ICML 2025.
"""

from aboveboard.collective.selective_ranking._audit import rank_audit, stability_audit
from aboveboard.collective.selective_ranking._path import RankingPath, TierCheck, check_tiers
from aboveboard.collective.selective_ranking._ranker import SelectiveRanker, StabilityReport
from aboveboard.collective.selective_ranking._votes import ranks_from_orders

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
