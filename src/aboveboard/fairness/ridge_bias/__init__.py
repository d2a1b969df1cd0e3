"""Predict, without training, how far apart the errors of groups will be with one model for all.

For whoever is about to train on data with a large and a small group: will one joint model widen the gap between their
errors, compared with a model for each? Would more rows, another penalty, or a wider model help? `group_risk` gives the
error of ridge regression in each group from second moments alone, with or without random projections (a network in its
linear regime), `bias_amplification` compares joint and separate models, `bias_curve` sweeps penalty and width, and
`RidgeBiasTheory` does all that for data at hand.

References
----------
A. Subramonian, S. J. Bell, L. Sagun, E. Dohmatob, "An Effective Theory of Bias Amplification", ICLR 2025.
https://arxiv.org/abs/2410.17263
S. J. Bell, L. Sagun, "Simplicity Bias Leads to Amplified Performance Disparities", FAccT 2023.
"""

from aboveboard.fairness.ridge_bias._audit import ridge_bias_audit
from aboveboard.fairness.ridge_bias._estimator import RidgeBiasTheory, WhatIf
from aboveboard.fairness.ridge_bias._simulation import Simulated, simulate_group_risk
from aboveboard.fairness.ridge_bias._theory import Amplification, GroupRisk, bias_amplification, bias_curve, group_risk

__all__ = [
    "Amplification",
    "GroupRisk",
    "RidgeBiasTheory",
    "Simulated",
    "WhatIf",
    "bias_amplification",
    "bias_curve",
    "group_risk",
    "ridge_bias_audit",
    "simulate_group_risk",
]
