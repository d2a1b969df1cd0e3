"""Unlearning: correct or forget what a deployed model learned, without retraining it, and show that it was done."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aboveboard.unlearning.dynfrs import (
        DynFrsClassifier,
        DynFrsRegressor,
        Erasure,
        ErasureLog,
        RememberedWarning,
        UnlearningPipeline,
    )
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
    "DynFrsClassifier": "dynfrs",
    "DynFrsRegressor": "dynfrs",
    "EditReport": "editable_cbm",
    "EditableCBM": "editable_cbm",
    "Erasure": "dynfrs",
    "ErasureLog": "dynfrs",
    "PartChange": "editable_cbm",
    "RememberedWarning": "dynfrs",
    "RetrainComparison": "editable_cbm",
    "UnlearningPipeline": "dynfrs",
    "rmia_scores": "editable_cbm",
}

__all__ = [
    "ConceptBottleneckClassifier",
    "DynFrsClassifier",
    "DynFrsRegressor",
    "EditReport",
    "EditableCBM",
    "Erasure",
    "ErasureLog",
    "PartChange",
    "RememberedWarning",
    "RetrainComparison",
    "UnlearningPipeline",
    "rmia_scores",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.unlearning.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.unlearning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
