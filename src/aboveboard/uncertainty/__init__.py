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
    from aboveboard.uncertainty.scope_gen import (
        AnswerTakenBack,
        ConformalLanguageModel,
        GeneratedItem,
        PredictionSet,
        SampledItem,
        SCOPEGen,
        TerminalExpert,
        from_sampler,
        read_items,
    )

__all__ = [
    "NAMES",
    "ActionNet",
    "AnswerTakenBack",
    "CalibrationResult",
    "CertaintyCalibrator",
    "ConformalLanguageModel",
    "GeneratedItem",
    "Patch",
    "PhraseVocabulary",
    "PredictionSet",
    "ProperScore",
    "ReDCal",
    "Reconcile",
    "RiskDecomposition",
    "SCOPEGen",
    "SampledItem",
    "TerminalExpert",
    "abstention_audit",
    "best_response",
    "central_prediction",
    "choose_phrases",
    "decision_calibration_error",
    "delta_net",
    "disagreement",
    "extract_phrase",
    "from_sampler",
    "named_measure",
    "parse_answer",
    "phrase_audit",
    "phrase_calibration",
    "pointwise_risk",
    "rank_measures",
    "read_items",
    "truthfulqa_phrases",
    "uncertainty_measures",
    "verbal_confidence_prompt",
]

_MODULES = {
    "NAMES": "risk_decomposition",
    "ActionNet": "reconcile",
    "AnswerTakenBack": "scope_gen",
    "CalibrationResult": "certainty_phrases",
    "CertaintyCalibrator": "certainty_phrases",
    "ConformalLanguageModel": "scope_gen",
    "GeneratedItem": "scope_gen",
    "Patch": "reconcile",
    "PhraseVocabulary": "certainty_phrases",
    "PredictionSet": "scope_gen",
    "ProperScore": "risk_decomposition",
    "ReDCal": "reconcile",
    "Reconcile": "reconcile",
    "RiskDecomposition": "risk_decomposition",
    "SCOPEGen": "scope_gen",
    "SampledItem": "scope_gen",
    "TerminalExpert": "scope_gen",
    "abstention_audit": "risk_decomposition",
    "best_response": "reconcile",
    "central_prediction": "risk_decomposition",
    "choose_phrases": "certainty_phrases",
    "decision_calibration_error": "reconcile",
    "delta_net": "reconcile",
    "disagreement": "reconcile",
    "extract_phrase": "certainty_phrases",
    "from_sampler": "scope_gen",
    "named_measure": "risk_decomposition",
    "parse_answer": "certainty_phrases",
    "phrase_audit": "certainty_phrases",
    "phrase_calibration": "certainty_phrases",
    "pointwise_risk": "risk_decomposition",
    "rank_measures": "risk_decomposition",
    "read_items": "scope_gen",
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
