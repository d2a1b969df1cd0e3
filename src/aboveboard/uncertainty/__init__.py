"""Uncertainty: when is an answer not to be relied upon, and what can be promised all the same?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aboveboard.uncertainty.reconcile import (
        ActionNet,
        Patch,
        Reconcile,
        ReDCal,
        best_response,
        decision_calibration_error,
        delta_net,
        disagreement,
    )

_MODULES: Final = {
    "ActionNet": "reconcile",
    "Patch": "reconcile",
    "ReDCal": "reconcile",
    "Reconcile": "reconcile",
    "best_response": "reconcile",
    "decision_calibration_error": "reconcile",
    "delta_net": "reconcile",
    "disagreement": "reconcile",
}

__all__ = [
    "ActionNet",
    "Patch",
    "ReDCal",
    "Reconcile",
    "best_response",
    "decision_calibration_error",
    "delta_net",
    "disagreement",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.uncertainty.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.uncertainty' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
