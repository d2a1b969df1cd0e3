"""How should a scarce stock be handed out to people who come one by one, so that a place in the queue or a group does
not decide who gets it? For whoever runs a food bank, a vaccine site or a fund, and must announce the rule in advance.

`ExternalEquityAllocator` promises each place in the queue at least half of the best possible fill rate, on average over
its own demand; `InternalEquityAllocator` hands units out in proportion to the groups' shares of the population;
`simulate` runs either on many days, and `allocation_audit` judges a log of what was handed out.

References
----------
K. A. Sankararaman, A. Srinivasan, P. Xu, "Promoting External and Internal Equities Under Ex-Ante/Ex-Post Metrics in
Online Resource Allocation", ICML 2024. Its text was not at hand: the rules are reconstructions, checked by simulation.
"""

from aboveboard.collective.equitable_allocation._audit import allocation_audit
from aboveboard.collective.equitable_allocation._benchmark import Benchmark, clairvoyant_lp, ex_post_bounds
from aboveboard.collective.equitable_allocation._external import ExternalEquityAllocator, ExternalSession
from aboveboard.collective.equitable_allocation._groups import clairvoyant_milp
from aboveboard.collective.equitable_allocation._internal import InternalEquityAllocator, InternalSession
from aboveboard.collective.equitable_allocation._simulate import EquityReport, simulate

__all__ = [
    "Benchmark",
    "EquityReport",
    "ExternalEquityAllocator",
    "ExternalSession",
    "InternalEquityAllocator",
    "InternalSession",
    "allocation_audit",
    "clairvoyant_lp",
    "clairvoyant_milp",
    "ex_post_bounds",
    "simulate",
]
