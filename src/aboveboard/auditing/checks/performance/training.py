"""How much better the model does on its training rows than on the test rows."""

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.blocks import BlockSums, row_blocks
from aboveboard._stats.bootstrap import percentile_interval
from aboveboard._stats.intervals import newcombe
from aboveboard.auditing.checks.performance.findings import COMMON
from aboveboard.auditing.checks.performance.measures import accuracy
from aboveboard.auditing.checks.performance.sums import PerformanceSums
from aboveboard.auditing.estimates import Rows, interval_text, percent
from aboveboard.auditing.model import not_asked
from aboveboard.auditing.subject import Subject, Training
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import Finding, Interval, Severity

__all__ = ["questions", "train_gap"]

_TRAIN_ROWS: Final[dict[str, int]] = {"quick": 2_000, "standard": 20_000, "full": 200_000}


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of each question that the check asks the model: one about training rows, where there are any."""
    return [min(training_rows, _TRAIN_ROWS[effort])] if training_rows else []


def train_gap(
    subject: Subject, train: Training, sums: PerformanceSums, effort: Effort, rng: np.random.Generator
) -> Finding:
    """Compare accuracy (R²) on the training rows with that on the test rows."""
    assert subject.model is not None
    usable = np.arange(len(train.y)) if subject.task == "regression" else np.flatnonzero(train.y >= 0)
    cap = _TRAIN_ROWS[effort]
    if len(usable) > cap:
        usable = np.sort(rng.choice(usable, size=cap, replace=False))
    common: dict[str, Any] = {"id": "performance/train_gap", **COMMON}
    if len(usable) < 2:
        return Finding(statement="There are no usable training rows.", status="inconclusive", **common)
    try:
        answers = subject.model.answer(train.X.iloc[usable])
    except QueriesSpent as stop:
        return not_asked(stop, **common)
    except ModelError as error:
        cause = error.kind or "a malformed answer"
        return Finding(
            statement="The model failed on its training rows, so they cannot be compared with the test rows.",
            status="inconclusive",
            reason=f"What went wrong: {cause}.",
            **common,
        )
    limit = subject.limits["performance.train_gap"]
    known = train.y[usable]
    if subject.task == "regression":
        value, interval, text = _r2_gap(sums, answers.prediction, known, rng)
        measure = "R²"
    else:
        seen = Rows(len(usable)).rate(answers.prediction == known)
        test = accuracy(sums)
        value = seen.value - test.value
        low, high = newcombe(seen.value, seen.effective_n, test.value, test.effective_n)
        interval = Interval(float(low), float(high), method="Newcombe")
        measure, text = "accuracy", f"{percent(seen.value)} against {percent(test.value)}"
    severity: Severity = "ok"
    status: Any = "ran"
    if interval.low > limit.value:
        severity = "warn"
    elif interval.high >= limit.value:
        status = "inconclusive"
    said = "higher" if value >= 0 else "lower"
    return Finding(
        statement=f"On {len(usable):,} training rows {measure} is {abs(value):.3f} {said} than on the test rows: {text}"
        f"{interval_text(interval)}.",
        severity=severity,
        status=status,
        reason="A wide gap means that the model remembers rows, so its training figures say little. Trees grown to the "
        "end always show one, and it is no harm by itself."
        if severity == "warn"
        else "The interval includes the limit."
        if status == "inconclusive"
        else "The gap is within the limit.",
        value=value,
        interval=interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(usable),
        **common,
    )


def _r2_gap(
    sums: PerformanceSums, prediction: NDArray[Any], known: NDArray[Any], rng: np.random.Generator
) -> tuple[float, Interval, str]:
    assert sums.losses is not None
    n, distance = len(known), known - float(np.mean(known))
    block = row_blocks(0, n, n)
    seen = BlockSums.from_arrays(block, int(block.max()) + 1, None, [(prediction - known) ** 2, distance, distance**2])
    test = BlockSums(sums.losses.sums[:, [0, 2, 4, 5]])  # weight, squared error, distance from the centre, its square
    values, draws = [], []
    for part in (seen, test):
        means, drawn = part.means(1000, rng)
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(float(1 - means[0] / (means[2] - means[1] ** 2)))
            draws.append(1 - drawn[:, 0] / (drawn[:, 2] - drawn[:, 1] ** 2))
    value = values[0] - values[1]
    if not np.isfinite(value):
        return 0.0, Interval(-1.0, 1.0, method="none: the training target does not vary"), "not comparable"
    low, high = percentile_interval(draws[0] - draws[1])
    ends = min(float(low), value), max(float(high), value)
    return value, Interval(*ends, method="percentile bootstrap"), f"{values[0]:.3f} against {values[1]:.3f}"
