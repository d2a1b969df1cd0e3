"""Forecasts that stay calibrated although people react to them, and a warning where that makes them no use: for those
whose forecast of an outcome changes the outcome.

References
----------
J. C. Perdomo, "Revisiting the Predictability of Performative, Social Events", ICML 2025.
"""

from aboveboard.collective.social_prediction._audit import performativity_audit
from aboveboard.collective.social_prediction._calibrator import PerformativeCalibrator, PublishedForecaster
from aboveboard.collective.social_prediction._families import (
    BumpTests,
    GroupTests,
    LinearTests,
    PolynomialTests,
    ProductTests,
)
from aboveboard.collective.social_prediction._response import ResponseModel
from aboveboard.collective.social_prediction._usefulness import UsefulnessReport, usefulness

__all__ = [
    "BumpTests",
    "GroupTests",
    "LinearTests",
    "PerformativeCalibrator",
    "PolynomialTests",
    "ProductTests",
    "PublishedForecaster",
    "ResponseModel",
    "UsefulnessReport",
    "performativity_audit",
    "usefulness",
]
