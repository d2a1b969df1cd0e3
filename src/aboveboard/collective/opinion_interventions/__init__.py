"""How far can polarization or disagreement be lowered by who is shown to whom, and who pays for it?

`FriedkinJohnsen` says what people end up saying when they listen to each other, `OpinionInterventionOptimizer` finds
weights within a convex set that lower an objective of these opinions, in networks of millions of accounts, and
`opinion_audit` judges a network as it is. All of it is for analysis: whoever decides on the weights answers for them.

References
----------
M. Kühne, P. D. Grontas, G. De Pasquale, G. Belgioioso, F. Dörfler, J. Lygeros, "Optimizing Social Network Interventions
via Hypergradient-Based Recommender System Design", ICML 2025, arXiv:2502.12973.
"""

from aboveboard.collective.opinion_interventions._audit import opinion_audit
from aboveboard.collective.opinion_interventions._constraints import (
    Box,
    BudgetSimplex,
    ConvexSet,
    FrobeniusBall,
    Intersection,
    RowSimplex,
)
from aboveboard.collective.opinion_interventions._dynamics import AdministratorPath, administrator_dynamics
from aboveboard.collective.opinion_interventions._equilibrium import FriedkinJohnsen
from aboveboard.collective.opinion_interventions._network import (
    add_influencer,
    insert_edges,
    load_edge_list,
    network_from_edges,
)
from aboveboard.collective.opinion_interventions._objectives import (
    Disagreement,
    MeanOpinion,
    Polarization,
    ShareOutside,
    WeightedSum,
)
from aboveboard.collective.opinion_interventions._optimizer import InterventionReport, OpinionInterventionOptimizer

__all__ = [
    "AdministratorPath",
    "Box",
    "BudgetSimplex",
    "ConvexSet",
    "Disagreement",
    "FriedkinJohnsen",
    "FrobeniusBall",
    "Intersection",
    "InterventionReport",
    "MeanOpinion",
    "OpinionInterventionOptimizer",
    "Polarization",
    "RowSimplex",
    "ShareOutside",
    "WeightedSum",
    "add_influencer",
    "administrator_dynamics",
    "insert_edges",
    "load_edge_list",
    "network_from_edges",
    "opinion_audit",
]
