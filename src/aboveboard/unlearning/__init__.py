"""Models that forget: a training row is taken out as if it had never been there, and it can be shown."""

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

__all__ = [
    "DynFrsClassifier",
    "DynFrsRegressor",
    "Erasure",
    "ErasureLog",
    "RememberedWarning",
    "UnlearningPipeline",
]

_HOMES: Final = {
    "DynFrsClassifier": "aboveboard.unlearning.dynfrs",
    "DynFrsRegressor": "aboveboard.unlearning.dynfrs",
    "Erasure": "aboveboard.unlearning.dynfrs",
    "ErasureLog": "aboveboard.unlearning.dynfrs",
    "RememberedWarning": "aboveboard.unlearning.dynfrs",
    "UnlearningPipeline": "aboveboard.unlearning.dynfrs",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'aboveboard.unlearning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
