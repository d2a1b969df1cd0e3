"""Uncertainty: how sure is an answer, and when is it better not to give one?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from aboveboard.uncertainty.risk_decomposition import (
        NAMES,
        ProperScore,
        RiskDecomposition,
        abstention_audit,
        central_prediction,
        named_measure,
        pointwise_risk,
        rank_measures,
        uncertainty_measures,
    )

__all__ = [
    "NAMES",
    "ActionNet",
    "Patch",
    "ProperScore",
    "ReDCal",
    "Reconcile",
    "RiskDecomposition",
    "abstention_audit",
    "best_response",
    "central_prediction",
    "decision_calibration_error",
    "delta_net",
    "disagreement",
    "named_measure",
    "pointwise_risk",
    "rank_measures",
    "uncertainty_measures",
]

_MODULES = {
    "ActionNet": "reconcile",
    "Patch": "reconcile",
    "ReDCal": "reconcile",
    "Reconcile": "reconcile",
    "best_response": "reconcile",
    "decision_calibration_error": "reconcile",
    "delta_net": "reconcile",
    "disagreement": "reconcile",
    "NAMES": "risk_decomposition",
    "ProperScore": "risk_decomposition",
    "RiskDecomposition": "risk_decomposition",
    "abstention_audit": "risk_decomposition",
    "central_prediction": "risk_decomposition",
    "named_measure": "risk_decomposition",
    "pointwise_risk": "risk_decomposition",
    "rank_measures": "risk_decomposition",
    "uncertainty_measures": "risk_decomposition",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.uncertainty.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.uncertainty' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
