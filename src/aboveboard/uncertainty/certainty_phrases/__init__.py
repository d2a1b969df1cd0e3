"""Are "likely" and "maybe" used honestly, and which phrase should replace which? For whoever is sure in words.

Radiologists, forecasters and language models say how sure they are in words. A phrase is taken here for a distribution
of probability instead of one number; `phrase_calibration` tells how far the phrases are from what comes true, and
`CertaintyCalibrator` which to say instead.

References
----------
P. Wang, B. D. Lam, Y. Liu, A. Asgari-Targhi, R. Panda, W. M. Wells, T. Kapur, P. Golland, "Calibrating Expressions of
Certainty", ICLR 2025, arXiv:2410.04315.
"""

from aboveboard.uncertainty.certainty_phrases._audit import phrase_audit
from aboveboard.uncertainty.certainty_phrases._calibration import CalibrationResult, phrase_calibration
from aboveboard.uncertainty.certainty_phrases._calibrator import CertaintyCalibrator
from aboveboard.uncertainty.certainty_phrases._published import truthfulqa_phrases
from aboveboard.uncertainty.certainty_phrases._text import (
    choose_phrases,
    extract_phrase,
    parse_answer,
    verbal_confidence_prompt,
)
from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary

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
