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

__all__ = [
    "Barycenter",
    "RandomizedFairClassifier",
    "RelaxMergeFairKMeans",
    "cluster_balance_audit",
    "deterministic_fair_bayes_optimal",
    "fair_bayes_optimal",
    "poison",
    "price_of_parity",
    "robustness_constant",
    "sparse_wasserstein_barycenter",
]

_MODULE: Final = {
    "Barycenter": "fair_kmeans",
    "RandomizedFairClassifier": "randomized_fair_boc",
    "RelaxMergeFairKMeans": "fair_kmeans",
    "cluster_balance_audit": "fair_kmeans",
    "deterministic_fair_bayes_optimal": "randomized_fair_boc",
    "fair_bayes_optimal": "randomized_fair_boc",
    "poison": "randomized_fair_boc",
    "price_of_parity": "randomized_fair_boc",
    "robustness_constant": "randomized_fair_boc",
    "sparse_wasserstein_barycenter": "fair_kmeans",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"aboveboard.fairness.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'aboveboard.fairness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
