"""Unlearning: correct or forget what a deployed model learned, without retraining it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aboveboard.unlearning.editable_cbm import (
        ConceptBottleneckClassifier,
        EditableCBM,
        EditReport,
        PartChange,
        RetrainComparison,
        rmia_scores,
    )

_MODULES: Final = {
    "ConceptBottleneckClassifier": "editable_cbm",
    "EditReport": "editable_cbm",
    "EditableCBM": "editable_cbm",
    "PartChange": "editable_cbm",
    "RetrainComparison": "editable_cbm",
    "rmia_scores": "editable_cbm",
}

__all__ = [
    "ConceptBottleneckClassifier",
    "EditReport",
    "EditableCBM",
    "PartChange",
    "RetrainComparison",
    "rmia_scores",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.unlearning.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.unlearning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
