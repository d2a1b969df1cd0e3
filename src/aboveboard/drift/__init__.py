"""Drift: do two data sets come from the same place, and where do they differ?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

__all__ = [
    "DatasetClassification",
    "SequentialTwoSample",
    "SourceTest",
    "TargetLink",
    "binomial_p_value",
    "near_duplicates",
    "permutation_p_value",
    "tv_lower_bound",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("aboveboard.drift.dataset_classification"), name)
    raise AttributeError(f"module 'aboveboard.drift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
