"""Uncertainty: how sure is an answer, and when is it better not to give one?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.uncertainty.certainty_phrases import (
        CalibrationResult,
        CertaintyCalibrator,
        PhraseVocabulary,
        choose_phrases,
        extract_phrase,
        parse_answer,
        phrase_audit,
        phrase_calibration,
        truthfulqa_phrases,
        verbal_confidence_prompt,
    )
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
    "CalibrationResult",
    "CertaintyCalibrator",
    "Patch",
    "PhraseVocabulary",
    "ProperScore",
    "ReDCal",
    "Reconcile",
    "RiskDecomposition",
    "abstention_audit",
    "best_response",
    "central_prediction",
    "choose_phrases",
    "decision_calibration_error",
    "delta_net",
    "disagreement",
    "extract_phrase",
    "named_measure",
    "parse_answer",
    "phrase_audit",
    "phrase_calibration",
    "pointwise_risk",
    "rank_measures",
    "truthfulqa_phrases",
    "uncertainty_measures",
    "verbal_confidence_prompt",
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
    "CalibrationResult": "certainty_phrases",
    "CertaintyCalibrator": "certainty_phrases",
    "PhraseVocabulary": "certainty_phrases",
    "ProperScore": "risk_decomposition",
    "RiskDecomposition": "risk_decomposition",
    "abstention_audit": "risk_decomposition",
    "central_prediction": "risk_decomposition",
    "choose_phrases": "certainty_phrases",
    "extract_phrase": "certainty_phrases",
    "named_measure": "risk_decomposition",
    "parse_answer": "certainty_phrases",
    "phrase_audit": "certainty_phrases",
    "phrase_calibration": "certainty_phrases",
    "pointwise_risk": "risk_decomposition",
    "rank_measures": "risk_decomposition",
    "truthfulqa_phrases": "certainty_phrases",
    "uncertainty_measures": "risk_decomposition",
    "verbal_confidence_prompt": "certainty_phrases",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.uncertainty.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.uncertainty' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
