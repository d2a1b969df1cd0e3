"""Fairness: is the model unfair, and which is the most accurate one that is fair?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.fairness.randomized_fair_boc import (
        RandomizedFairClassifier,
        deterministic_fair_bayes_optimal,
        fair_bayes_optimal,
        poison,
        price_of_parity,
        robustness_constant,
    )

__all__ = [
    "RandomizedFairClassifier",
    "deterministic_fair_bayes_optimal",
    "fair_bayes_optimal",
    "poison",
    "price_of_parity",
    "robustness_constant",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("aboveboard.fairness.randomized_fair_boc"), name)
    raise AttributeError(f"module 'aboveboard.fairness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
