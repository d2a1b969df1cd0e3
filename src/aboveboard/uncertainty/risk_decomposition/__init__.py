"""All the uncertainty measures of an ensemble from one formula, and which of them to trust for what.

For whoever has several models of one thing (a forest, a deep ensemble, passes with dropout) and must say on which rows
not to rely. Mutual information, entropy, pairwise divergence, largest probability: each is the risk of a proper score,
or a part of it, with the unknown truth and the prediction replaced by the members, their mean, or their centre.
`uncertainty_measures` gives the whole family, `named_measure` one by the name it is known by, `RiskDecomposition` asks
any ensemble of scikit-learn or PyTorch for them, and `rank_measures` says which tells errors, or foreign rows, best.

References
----------
N. Kotelevskii, V. Kondratyev, M. Takac, E. Moulines, M. Panov, "From Risk to Uncertainty: Generating Predictive
Uncertainty Measures via Bayesian Estimation", ICLR 2025. https://arxiv.org/abs/2402.10727
"""

from aboveboard.uncertainty.risk_decomposition._audit import abstention_audit, measure_name
from aboveboard.uncertainty.risk_decomposition._estimator import RiskDecomposition
from aboveboard.uncertainty.risk_decomposition._ranking import rank_measures
from aboveboard.uncertainty.risk_decomposition._risks import (
    NAMES,
    central_prediction,
    named_measure,
    pointwise_risk,
    uncertainty_measures,
)
from aboveboard.uncertainty.risk_decomposition._scores import ProperScore

__all__ = [
    "NAMES",
    "ProperScore",
    "RiskDecomposition",
    "abstention_audit",
    "central_prediction",
    "measure_name",
    "named_measure",
    "pointwise_risk",
    "rank_measures",
    "uncertainty_measures",
]
