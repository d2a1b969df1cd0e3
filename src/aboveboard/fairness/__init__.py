"""Fairness: is the model unfair, and which is the most accurate one that is fair?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aboveboard.fairness.fair_kmeans import (
        Barycenter,
        RelaxMergeFairKMeans,
        cluster_balance_audit,
        sparse_wasserstein_barycenter,
    )
    from aboveboard.fairness.randomized_fair_boc import (
        RandomizedFairClassifier,
        deterministic_fair_bayes_optimal,
        fair_bayes_optimal,
        poison,
        price_of_parity,
        robustness_constant,
    )
    from aboveboard.fairness.ridge_bias import (
        RidgeBiasTheory,
        bias_amplification,
        bias_curve,
        group_risk,
        ridge_bias_audit,
        simulate_group_risk,
    )

_MODULES: Final = {
    "Barycenter": "fair_kmeans",
    "RandomizedFairClassifier": "randomized_fair_boc",
    "RelaxMergeFairKMeans": "fair_kmeans",
    "RidgeBiasTheory": "ridge_bias",
    "bias_amplification": "ridge_bias",
    "bias_curve": "ridge_bias",
    "cluster_balance_audit": "fair_kmeans",
    "deterministic_fair_bayes_optimal": "randomized_fair_boc",
    "fair_bayes_optimal": "randomized_fair_boc",
    "group_risk": "ridge_bias",
    "poison": "randomized_fair_boc",
    "price_of_parity": "randomized_fair_boc",
    "ridge_bias_audit": "ridge_bias",
    "robustness_constant": "randomized_fair_boc",
    "simulate_group_risk": "ridge_bias",
    "sparse_wasserstein_barycenter": "fair_kmeans",
}

__all__ = [
    "Barycenter",
    "RandomizedFairClassifier",
    "RelaxMergeFairKMeans",
    "RidgeBiasTheory",
    "bias_amplification",
    "bias_curve",
    "cluster_balance_audit",
    "deterministic_fair_bayes_optimal",
    "fair_bayes_optimal",
    "group_risk",
    "poison",
    "price_of_parity",
    "ridge_bias_audit",
    "robustness_constant",
    "simulate_group_risk",
    "sparse_wasserstein_barycenter",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.fairness.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.fairness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
