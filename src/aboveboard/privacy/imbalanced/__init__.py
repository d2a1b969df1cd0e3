"""Differentially private learning when one class is rare: fraud, disease, attrition.

Private learners of a rare class tend to predict the frequent one for everybody, and the usual cures, SMOTE and
oversampling, multiply what one person can change, so that the epsilon that is quoted is not the one that people get.
`PrivateSyntheticBalancer` replaces the table by balanced private synthetic rows for any learner;
`PrivateWeightedLogisticRegression` and `PrivateWeightedSGDClassifier` weigh the rare class up within their budget;
`effective_epsilon`, `resampling_privacy_audit` and `smote_canary_audit` say what the shortcuts cost.

References
----------
L. Rosenblatt, Y. Lut, E. Turok, M. Avella-Medina, R. Cummings, "Differential Privacy Under Class Imbalance: Methods and
Empirical Insights", ICML 2025. https://arxiv.org/abs/2411.05733
"""

from aboveboard.privacy.imbalanced._audit import resampling_privacy_audit, smote_canary_audit
from aboveboard.privacy.imbalanced._balancer import PrivateSyntheticBalancer
from aboveboard.privacy.imbalanced._dpsgd import PrivateWeightedSGDClassifier
from aboveboard.privacy.imbalanced._erm import PrivateWeightedLogisticRegression
from aboveboard.privacy.imbalanced._gem import GEMSynthesizer
from aboveboard.privacy.imbalanced._independent import IndependentSynthesizer
from aboveboard.privacy.imbalanced._resampling import (
    EffectivePrivacy,
    bootstrap_delta,
    effective_epsilon,
    kissing_number_bound,
    nominal_epsilon,
    smote,
)

__all__ = [
    "EffectivePrivacy",
    "GEMSynthesizer",
    "IndependentSynthesizer",
    "PrivateSyntheticBalancer",
    "PrivateWeightedLogisticRegression",
    "PrivateWeightedSGDClassifier",
    "bootstrap_delta",
    "effective_epsilon",
    "kissing_number_bound",
    "nominal_epsilon",
    "resampling_privacy_audit",
    "smote",
    "smote_canary_audit",
]
