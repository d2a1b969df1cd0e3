"""Drift: do two data sets come from the same place, where do they differ, and who suffers from it?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aboveboard.drift.dataset_classification import (
        DatasetClassification,
        SequentialTwoSample,
        SourceTest,
        TargetLink,
        binomial_p_value,
        near_duplicates,
        permutation_p_value,
        tv_lower_bound,
    )
    from aboveboard.drift.shift import SHIFT, RepairedClassifier, Subgroup, TestResult, Trial

__all__ = [
    "SHIFT",
    "DatasetClassification",
    "RepairedClassifier",
    "SequentialTwoSample",
    "SourceTest",
    "Subgroup",
    "TargetLink",
    "TestResult",
    "Trial",
    "binomial_p_value",
    "near_duplicates",
    "permutation_p_value",
    "tv_lower_bound",
]

_SHIFT: Final = ("SHIFT", "RepairedClassifier", "Subgroup", "TestResult", "Trial")


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "shift" if name in _SHIFT else "dataset_classification"
        return getattr(import_module(f"aboveboard.drift.{module}"), name)
    raise AttributeError(f"module 'aboveboard.drift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
