"""How good the model is, with intervals, and whether it beats two trivial answers.

A classifier is compared with always saying the most common class (on accuracy) and with always giving the base rate (on
the Brier score); a regressor with the mean (on squared error) and the median (on absolute error). The trivial answers
are learned from the training data where they are given.

References
----------
W. J. Conover, "Practical Nonparametric Statistics", Wiley, 1999 (intervals of quantiles).
R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired data",
Statistics in Medicine 17, 1998.
"""

from typing import Final

import numpy as np

from aboveboard.auditing.checks.performance.classes import classes_finding
from aboveboard.auditing.checks.performance.findings import absent_classes, metrics_finding, skill_findings, too_few
from aboveboard.auditing.checks.performance.measures import measure_binary, measure_multiclass, measure_regression
from aboveboard.auditing.checks.performance.sums import (
    PerformanceLayout,
    PerformanceSums,
    layout,
    summarise,
    weighted_quantile,
)
from aboveboard.auditing.checks.performance.training import questions, train_gap
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = [
    "PerformanceLayout",
    "PerformanceSums",
    "check",
    "judge",
    "layout",
    "questions",
    "summarise",
    "weighted_quantile",
]

_REPLICATES: Final[dict[str, int]] = {"quick": 200, "standard": 1000, "full": 2000}


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Measure the model and compare it with trivial answers.

    Returns
    -------
    list of Finding
        ``performance/metrics``, two of ``performance/<trivial answer>``, and where they apply ``performance/classes``,
        ``performance/absent_class`` and ``performance/train_gap``.

    Notes
    -----
    O(n log n) time in the rows, and bootstraps over cells, score bins or blocks whose price does not grow with them.
    """
    return judge(subject, summarise(subject, layout(subject)), random_state=random_state, effort=effort)


def judge(subject: Subject, sums: PerformanceSums, *, random_state: int, effort: Effort) -> list[Finding]:
    """Make findings of sums over all rows; `subject` tells what they are about, and no row of it is looked at."""
    if len(subject) < subject.min_cell:
        return [too_few(subject)]
    rng = np.random.default_rng(random_state)
    measure = {"binary": measure_binary, "multiclass": measure_multiclass, "regression": measure_regression}
    measured = measure[subject.task](subject, sums, _REPLICATES[effort], rng)
    findings = [metrics_finding(subject, sums, measured), *skill_findings(subject, sums, measured)]
    if subject.task == "multiclass":
        findings.append(classes_finding(subject, sums))
    absent = absent_classes(subject, sums)
    if absent is not None:
        findings.append(absent)
    if subject.train is not None and subject.model is not None:
        findings.append(train_gap(subject, subject.train, sums, effort, rng))
    return findings
