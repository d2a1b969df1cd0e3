"""Whether scores mean what they say: of the rows with a score of 70 %, are seven in ten positive?

The expected calibration error (ECE) is above zero in any sample, so it is compared with what a perfectly calibrated
model would show on as many rows. For several classes the highest score is checked (top label), and each class too.

References
----------
D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45, 1958 (slope and intercept).
D. B. Stephenson, C. A. S. Coelho, I. T. Jolliffe, "Two extra components in the Brier score decomposition", Weather and
Forecasting 23, 2008.
J. Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019 (comparison with a calibrated
model).
"""

from typing import Final

import numpy as np

from aboveboard.auditing.checks.calibration.findings import (
    classwise_finding,
    ece_finding,
    gap_finding,
    slope_finding,
    too_few,
)
from aboveboard.auditing.checks.calibration.slope import OddsCells, recalibration
from aboveboard.auditing.checks.calibration.sums import CalibrationLayout, CalibrationSums, layout, summarise
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = [
    "CalibrationLayout",
    "CalibrationSums",
    "OddsCells",
    "check",
    "judge",
    "layout",
    "recalibration",
    "summarise",
]

_REPLICATES: Final[dict[str, int]] = {"quick": 200, "standard": 1000, "full": 2000}


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Compare scores with outcomes.

    Returns
    -------
    list of Finding
        ``calibration/ece`` (with the reliability curve), ``calibration/gap`` and ``calibration/slope``; for several
        classes ``calibration/top_label`` and ``calibration/classes``.

    Notes
    -----
    O(n log n) time in the rows for each class; bootstraps over score bins.
    """
    return judge(subject, summarise(subject, layout(subject)), random_state=random_state, effort=effort)


def judge(subject: Subject, sums: CalibrationSums, *, random_state: int, effort: Effort) -> list[Finding]:
    """Make findings of sums over all rows; `subject` tells what they are about, and no row of it is looked at."""
    rng = np.random.default_rng(random_state)
    replicates = _REPLICATES[effort]
    by_label = sums.scored.bins.count.sum(axis=(0, 2))
    rarest = by_label.min() if subject.task == "binary" else by_label.sum()
    if rarest < subject.min_cell:
        return [too_few(subject)]
    if subject.task == "binary":
        assert sums.odds is not None
        name = f"positive ({subject.positive})"
        return [
            ece_finding(subject, "ece", sums.scored, name, replicates, rng),
            gap_finding(subject, sums.scored, replicates, rng),
            slope_finding(subject, sums.odds),
        ]
    return [
        ece_finding(subject, "top_label", sums.scored, "right", replicates, rng),
        classwise_finding(subject, sums.classes, replicates, rng),
    ]
