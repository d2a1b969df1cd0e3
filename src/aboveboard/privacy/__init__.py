"""Privacy: what does a model or a release tell about one person, and how little can it be made to tell?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.privacy._rdp import (
        EpsilonLowerBound,
        RDPCurve,
        epsilon_lower_bound,
        gaussian_delta,
        gaussian_epsilon,
        gaussian_rdp,
        gaussian_sigma,
        laplace_rdp,
        poisson_gaussian_rdp,
        without_replacement_gaussian_rdp,
    )
    from aboveboard.privacy.imbalanced import (
        EffectivePrivacy,
        GEMSynthesizer,
        IndependentSynthesizer,
        PrivateSyntheticBalancer,
        PrivateWeightedLogisticRegression,
        PrivateWeightedSGDClassifier,
        bootstrap_delta,
        effective_epsilon,
        kissing_number_bound,
        nominal_epsilon,
        resampling_privacy_audit,
        smote,
        smote_canary_audit,
    )

__all__ = [
    "EffectivePrivacy",
    "EpsilonLowerBound",
    "GEMSynthesizer",
    "IndependentSynthesizer",
    "PrivateSyntheticBalancer",
    "PrivateWeightedLogisticRegression",
    "PrivateWeightedSGDClassifier",
    "RDPCurve",
    "bootstrap_delta",
    "effective_epsilon",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_rdp",
    "gaussian_sigma",
    "kissing_number_bound",
    "laplace_rdp",
    "nominal_epsilon",
    "poisson_gaussian_rdp",
    "resampling_privacy_audit",
    "smote",
    "smote_canary_audit",
    "without_replacement_gaussian_rdp",
]

_MODULES = {
    "EffectivePrivacy": "imbalanced",
    "EpsilonLowerBound": "_rdp",
    "GEMSynthesizer": "imbalanced",
    "IndependentSynthesizer": "imbalanced",
    "PrivateSyntheticBalancer": "imbalanced",
    "PrivateWeightedLogisticRegression": "imbalanced",
    "PrivateWeightedSGDClassifier": "imbalanced",
    "RDPCurve": "_rdp",
    "bootstrap_delta": "imbalanced",
    "effective_epsilon": "imbalanced",
    "epsilon_lower_bound": "_rdp",
    "gaussian_delta": "_rdp",
    "gaussian_epsilon": "_rdp",
    "gaussian_rdp": "_rdp",
    "gaussian_sigma": "_rdp",
    "kissing_number_bound": "imbalanced",
    "laplace_rdp": "_rdp",
    "nominal_epsilon": "imbalanced",
    "poisson_gaussian_rdp": "_rdp",
    "resampling_privacy_audit": "imbalanced",
    "smote": "imbalanced",
    "smote_canary_audit": "imbalanced",
    "without_replacement_gaussian_rdp": "_rdp",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
