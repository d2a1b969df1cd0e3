"""Which comments must be shown so that no sizeable group of readers is left without one it approves?

Justified representation says which readers a feed may not leave out: of every group that is a k-th of all and shares an
approved comment, somebody must approve one of the k comments that are shown. `RepresentativeRanker` keeps any quality
score as far as that allows, `justified_representation` checks any selection, `ApprovalImputer` fills in what readers
who did not vote would approve, and `feed_audit` judges a published feed.

References
----------
M. Revel, S. Milli, T. Lu, J. Watson-Daniels, M. Nickel, "Representative Ranking for Deliberation in the Public Sphere",
ICML 2025, arXiv:2503.18962.
"""

from aboveboard.collective.justified_comments._audit import feed_audit
from aboveboard.collective.justified_comments._imputer import ApprovalImputer
from aboveboard.collective.justified_comments._properties import (
    EJRReport,
    JRReport,
    extended_justified_representation,
    justified_representation,
)
from aboveboard.collective.justified_comments._ranker import Ranking, RepresentativeRanker

__all__ = [
    "ApprovalImputer",
    "EJRReport",
    "JRReport",
    "Ranking",
    "RepresentativeRanker",
    "extended_justified_representation",
    "feed_audit",
    "justified_representation",
]
