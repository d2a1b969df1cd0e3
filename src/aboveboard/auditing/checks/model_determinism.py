"""Whether the model gives the same row the same answer: asked twice, in another order, in other company.

Sums of floating-point numbers depend on the order in which they are taken, so differences at the size of rounding are
reported as such and not held against the model.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.estimates import count_text
from aboveboard.auditing.model import Answers, FittedModel, not_asked
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import Finding, Severity

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "model_determinism", "area": "model"}
_SINGLE_ROWS: Final[dict[str, int]] = {"quick": 10, "standard": 30, "full": 200}
_BATCH: Final = 64
_ROUNDED_FLIPS: Final = 0.01  # scores so close to the threshold that rounding decides are rarer than that


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Ask the model about the same rows in several ways.

    Returns
    -------
    list of Finding
        ``model_determinism/repeat``, ``/order``, ``/batches`` and ``/single``.

    Notes
    -----
    Four passes over the rows, and 10, 30 or 200 questions about one row by itself (effort quick, standard, full).
    """
    assert subject.model is not None
    model, X = replace(subject.model, afresh=True), subject.X
    rng = np.random.default_rng(random_state)
    n = len(X)
    order = rng.permutation(n)
    alone = np.sort(rng.choice(n, size=min(n, _SINGLE_ROWS[effort]), replace=False))

    def shuffled() -> Answers:
        return _placed(model.answer(X.iloc[order]), order)

    def batched() -> Answers:
        return _joined([model.answer(X.iloc[start : start + _BATCH]) for start in range(0, n, _BATCH)])

    def single() -> Answers:
        return _joined([model.answer(X.iloc[[row]]) for row in alone])

    everything = np.arange(n)
    ways: list[tuple[str, str, Callable[[], Answers], NDArray[np.intp]]] = [
        ("repeat", "asked about the same rows again", lambda: model.answer(X), everything),
        ("order", "asked about the same rows in another order", shuffled, everything),
        ("batches", f"asked about the same rows {_BATCH} at a time", batched, everything),
        ("single", "asked about one row at a time", single, alone),
    ]
    findings: list[Finding] = []
    try:
        first = model.answer(X)
        scale = _scale(model, first)
        for key, way, ask, rows in ways:
            findings.append(_finding(subject, key, way, ask, rows, first, scale))
    except QueriesSpent as stop:
        left = [way for _, way, *_ in ways[len(findings) :]] if findings else []
        findings.append(not_asked(stop, id="model_determinism", left=left, **_COMMON))
    return findings


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of each question that `check` asks."""
    n = len(X)
    batches = [_BATCH] * (n // _BATCH) + [n % _BATCH] * (n % _BATCH > 0)
    return [n, n, n, *batches, *[1] * min(n, _SINGLE_ROWS[effort])]


def _finding(
    subject: Subject,
    key: str,
    way: str,
    ask: Callable[[], Answers],
    rows: NDArray[np.intp],
    first: Answers,
    scale: float,
) -> Finding:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    try:
        # so few rows need no threads, and where cores are shared threads wait for each other a hundred times longer
        with threadpool_limits(1, user_api="openmp"):
            again = ask()
    except ModelError as error:
        kind = error.kind or "a malformed answer"
        return Finding(
            id=f"model_determinism/{key}",
            statement=f"The model fails when it is {way} ({kind}).",
            severity="fail",
            reason="It has answered about these rows before.",
            n=len(rows),
            **_COMMON,
        )
    exact, noise = subject.limits["model_determinism.exact"], subject.limits["model_determinism.noise"]
    flips = 0
    if subject.task == "regression":
        difference = float(np.abs(again.prediction - first.prediction[rows]).max()) / scale
    else:
        flips = int(np.count_nonzero(again.prediction != first.prediction[rows]))
        difference = 0.0
        if again.score is not None and first.score is not None:
            difference = float(np.abs(again.score - first.score[rows]).max())
    severity: Severity = "ok"
    unit = "of the spread of its answers" if subject.task == "regression" else "in a score"
    if difference > noise.value or (flips and (difference <= 0 or flips > _ROUNDED_FLIPS * len(rows))):
        severity = "fail" if flips or subject.task == "regression" else "warn"
    elif difference > exact.value or flips:
        severity = "note"
    if severity == "ok":
        statement = f"The model gives the same answers when it is {way}."
        reason = "Differences, if any, are below the precision of the numbers."
    elif severity == "note":
        statement = (
            f"The model gives the same answers up to rounding when it is {way}: at most {difference:.1e} {unit}."
        )
        reason = "Sums in another order round differently, in single precision visibly so."
    else:
        changed = f"; {count_text(flips, subject.min_cell)} of {len(rows):,} get another label" if flips else ""
        statement = f"The model gives other answers when it is {way}: up to {difference:.2g} {unit}{changed}."
        reason = "The same row should get the same answer, whoever stands beside it and whenever it is asked."
    return Finding(
        id=f"model_determinism/{key}",
        statement=statement,
        severity=severity,
        reason=reason,
        value=difference,
        limit=noise.value,
        limit_source=noise.source,
        n=len(rows),
        **_COMMON,
    )


def _scale(model: FittedModel, first: Answers) -> float:
    """Return what differences of answers are measured in: 1 for probabilities, the answers' spread for numbers."""
    if model.task != "regression":
        return 1.0
    spread = float(np.std(first.prediction))
    largest = float(np.abs(first.prediction).max(initial=0.0))
    return spread or largest or 1.0


def _placed(answers: Answers, order: NDArray[np.intp]) -> Answers:
    """Return answers about rows in `order` back in the first order."""
    back = np.argsort(order, kind="stable")
    return Answers(answers.prediction[back], None if answers.score is None else answers.score[back])


def _joined(parts: list[Answers]) -> Answers:
    scores = [part.score for part in parts if part.score is not None]
    return Answers(np.concatenate([part.prediction for part in parts]), np.concatenate(scores) if scores else None)
