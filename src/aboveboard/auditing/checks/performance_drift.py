"""Whether the model has become worse since the reference, where the truth is known of both.

Accuracy and AUC are compared as differences, and the size of a regressor's errors as a ratio. Only what is worse is
judged. Which part of a loss comes from other people and which from another relation of features and truth is another
question.

References
----------
E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more correlated receiver operating
characteristic curves", Biometrics 44, 1988.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aboveboard.auditing.changes import bounds, judged
from aboveboard.auditing.estimates import Rows, area_under_curve, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.auditing.two_samples import TwoSamples
from aboveboard.core.finding import Column, Finding, Interval, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "performance_drift", "area": "drift"}
_TAIL: Final = 0.025
_AREA_CELLS: Final = 20_000_000  # rows x classes that the one-vs-rest AUC sorts at most


@dataclass(frozen=True, slots=True)
class _Change:
    """A metric then and now; `worse` is how much worse it has become, with its interval."""

    key: str
    title: str
    then: float
    now: float
    worse: float
    interval: Interval
    as_percent: bool = True


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Compare the model's performance with that on the reference.

    Returns
    -------
    list of Finding
        ``performance_drift/accuracy`` and, where there are scores, ``performance_drift/auc``; for numbers
        ``performance_drift/error``.

    Notes
    -----
    O(k n log n) time for k classes.
    """
    reference = subject.reference
    assert reference is not None
    assert reference.y is not None
    assert reference.prediction is not None
    known = reference.y >= 0 if subject.task != "regression" else np.ones(len(reference), dtype=bool)
    older = reference.take(np.flatnonzero(known))
    samples = TwoSamples.of(subject).among(np.ones(len(subject), dtype=bool), known)
    least = subject.limits["performance.min_rows"]
    if not samples.usable or samples.smaller < least.value:
        return [
            Finding(
                id="performance_drift/error" if subject.task == "regression" else "performance_drift/accuracy",
                statement="There are too few rows, now or then, to tell whether the model has become worse.",
                status="inconclusive",
                reason=f"Below {least.value:g} independent rows nothing is judged.",
                limit=least.value,
                limit_source=least.source,
                **_COMMON,
            )
        ]
    assert older.y is not None
    assert older.prediction is not None
    if subject.task == "regression":
        return [_finding(subject, _error(subject, samples, np.abs(older.prediction - older.y)))]
    scored = subject.score is not None and older.score is not None
    family = 2 if scored else 1
    changes = [_accuracy(samples, subject.prediction == subject.y, older.prediction == older.y, family)]
    if scored:
        area = _area(subject, older.score, older.y, samples, family)
        changes += [] if area is None else [area]
    return [_finding(subject, change) for change in changes]


def _accuracy(samples: TwoSamples, new: NDArray[np.bool_], old: NDArray[np.bool_], family: int) -> _Change:
    change = samples.rate(new, old, family=family)
    interval = Interval(-change.interval.high, -change.interval.low, method=change.interval.method)
    return _Change("accuracy", "accuracy", change.old, change.new, -change.value, interval)


def _area(subject: Subject, score: Any, y: NDArray[Any], samples: TwoSamples, family: int) -> _Change | None:
    """Return how the area under the curve changed; None where one of the two has a single class."""
    assert subject.score is not None
    sides = []
    for part, own_score, own_y in ((samples.new, subject.score, subject.y), (samples.old, score, y)):
        rows = Rows(part.n, part.weight, part.cluster)
        size = 1 if own_score.ndim == 1 else own_score.shape[1]
        if part.n * size > _AREA_CELLS:  # evenly from all
            picked = np.arange(0, part.n, -(-part.n * size // _AREA_CELLS))
            rows = Rows(
                len(picked),
                None if part.weight is None else part.weight[picked],
                None if part.cluster is None else part.cluster[picked],
            )
            own_score, own_y = own_score[picked], own_y[picked]
        sides.append((area_under_curve(own_score, own_y, rows), rows))
    (now, new_rows), (then, old_rows) = sides
    if not all(np.isfinite(part.value) and part.interval is not None for part in (now, then)):
        return None
    tail = _TAIL / family
    errors = [
        part.error * rows.quantile_of_normal() / float(stats.norm.isf(_TAIL))
        for part, rows in ((now, new_rows), (then, old_rows))
    ]
    worse = then.value - now.value
    half = float(stats.norm.isf(tail) * np.hypot(errors[0], errors[1]))
    return _Change(
        "auc", "AUC", then.value, now.value, worse, Interval(worse - half, worse + half, method="DeLong"), False
    )


def _error(subject: Subject, samples: TwoSamples, then: NDArray[np.float64]) -> _Change:
    """Return by what share the mean absolute error has grown, with the interval of the ratio's logarithm."""
    now = np.abs(subject.prediction - subject.y)
    logs, variances, means = [], [], []
    for side, values in ((samples.new, now), (samples.old, then)):
        rows = Rows(side.n, side.weight, side.cluster)
        mean = float(np.average(values, weights=side.weight))
        means.append(mean)
        logs.append(np.log(mean) if mean > 0 else -np.inf)
        inflation = rows.quantile_of_normal() / float(stats.norm.isf(_TAIL))
        variances.append((rows.error(values - mean) * inflation / mean) ** 2 if mean > 0 else np.inf)
    if not np.isfinite(logs).all():  # a model without any error, then or now
        grown = 0.0 if means[0] == means[1] else 1.0 if means[0] > means[1] else -1.0
        return _Change(
            "error", "mean absolute error", means[1], means[0], grown, Interval(-1.0, 1.0, method="none"), False
        )
    half = float(stats.norm.isf(_TAIL) * np.sqrt(sum(variances)))
    ratio = logs[0] - logs[1]
    interval = Interval(float(np.expm1(ratio - half)), float(np.expm1(ratio + half)), method="delta, logarithm")
    return _Change("error", "mean absolute error", means[1], means[0], float(np.expm1(ratio)), interval, False)


def _finding(subject: Subject, change: _Change) -> Finding:
    def text(value: float) -> str:
        return percent(value) if change.as_percent else f"{value:.3g}" if change.key == "error" else f"{value:.3f}"

    went = "fell" if change.now < change.then else "rose"
    by = abs(change.worse)
    if change.key == "error":
        size = f"{percent(by)} {'more' if change.worse > 0 else 'less'} {bounds(change.interval)}"
    else:
        ends = Interval(-change.interval.high, -change.interval.low)
        size = f"{100 * (change.now - change.then):.1f} points {bounds(ends, '')}"
    table = Table(
        "Then and now",
        (Column("", "text"), Column(change.title, "percent" if change.as_percent else "number")),
        (("then", change.then), ("now", change.now)),
    )
    verdict = judged(subject, change.interval, f"performance_drift.{change.key}", above_only=True)
    if verdict["severity"] == "ok" and verdict["status"] == "ran":
        verdict["reason"] = "It is not worse than before by more than the limit."
    return Finding(
        id=f"performance_drift/{change.key}",
        statement=f"The model's {change.title} {went} from {text(change.then)} to {text(change.now)}: {size}.",
        value=change.worse,
        n=len(subject),
        evidence=(table,),
        **verdict,
        **_COMMON,
    )
