"""Uncertainty: how sure is the model, does it mean what it says, and when should it not be trusted?"""

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

__all__ = [
    "CalibrationResult",
    "CertaintyCalibrator",
    "PhraseVocabulary",
    "choose_phrases",
    "extract_phrase",
    "parse_answer",
    "phrase_audit",
    "phrase_calibration",
    "truthfulqa_phrases",
    "verbal_confidence_prompt",
]

_MODULES = {
    "CalibrationResult": "certainty_phrases",
    "CertaintyCalibrator": "certainty_phrases",
    "PhraseVocabulary": "certainty_phrases",
    "choose_phrases": "certainty_phrases",
    "extract_phrase": "certainty_phrases",
    "parse_answer": "certainty_phrases",
    "phrase_audit": "certainty_phrases",
    "phrase_calibration": "certainty_phrases",
    "truthfulqa_phrases": "certainty_phrases",
    "verbal_confidence_prompt": "certainty_phrases",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.uncertainty.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.uncertainty' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
