"""Whether the model survives what it will meet: missing values, new categories, a single row, other types and orders.

Each probe changes copies of a few rows and asks the model. What it answers is not judged here, only that it answers,
with finite numbers. Of an error only its type is shown: its message may quote data.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import column_kind
from aboveboard.auditing.model import Answers, FittedModel, not_asked
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import Finding, Severity

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "model_inputs", "area": "model"}
_ROWS: Final = 50
_NEW_LEVEL: Final = "a level that no training row had"
_PLURAL: Final = {
    "number": "numbers",
    "boolean": "yes or no",
    "category": "categories",
    "datetime": "dates",
    "text": "text",
}


@dataclass(frozen=True, slots=True)
class _Probe:
    """A change of the input, and what it means when the model fails on it."""

    key: str
    what: str
    severity: Severity
    reason: str
    ask: Callable[[], Answers]
    unchanged: bool = False  # the answers should be those about the unchanged rows


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Ask the model about rows that were changed.

    Returns
    -------
    list of Finding
        ``model_inputs/single_row``, ``/missing/<kind>``, ``/unseen_category``, ``/column_order``, ``/types`` and
        ``/extreme_numbers``, where they apply.

    Notes
    -----
    A dozen questions about 50 rows.
    """
    assert subject.model is not None
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.choice(len(subject), size=min(_ROWS, len(subject)), replace=False))
    X = subject.X.iloc[rows]
    expected = Answers(subject.prediction[rows], None if subject.score is None else subject.score[rows])
    model = replace(subject.model, afresh=True)
    probes = list(_probes(subject, model, X))
    findings: list[Finding] = []
    for probe in probes:
        try:
            findings.append(_finding(subject, probe, expected))
        except QueriesSpent as stop:
            left = [other.what for other in probes[len(findings) :]] if findings else []
            return [*findings, not_asked(stop, id="model_inputs", left=left, **_COMMON)]
    return findings


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of each question that `check` may ask; some of them do not apply to every table."""
    rows = min(_ROWS, len(X))
    kinds = len({column_kind(X[name]) for name in X.columns})
    return [1, *[rows] * (kinds + 4)]


def _probes(subject: Subject, model: FittedModel, X: pd.DataFrame) -> Iterator[_Probe]:
    yield _Probe(
        "single_row",
        "a single row",
        "fail",
        "In use a model is asked about one case at a time.",
        lambda: model.answer(X.iloc[:1]),
    )
    for kind in sorted(set(subject.kinds.values())):
        columns = [name for name, own in subject.kinds.items() if own == kind]
        seen = _has_missing(subject, columns)
        yield _Probe(
            f"missing/{kind}",
            f"missing values in columns of {_PLURAL[kind]}",
            "warn" if seen else "note",
            "Some columns of this kind do have missing values, so others will."
            if seen
            else "The data have none in such columns; if none ever comes, no harm is done.",
            lambda columns=columns: model.answer(_with_missing(X, columns)),  # type: ignore[misc]
        )
    levels = [name for name in X.columns if _takes_text(X[name])]
    if levels:
        yield _Probe(
            "unseen_category",
            "a category that no training row had",
            "warn",
            "New categories turn up in use sooner or later.",
            lambda: model.answer(_with_new_level(X, levels)),
        )
    if len(model.columns) > 1 and not model.as_array:
        yield _Probe(
            "column_order",
            "the same columns in another order",
            "ok",
            "It refuses them, which is safe.",
            lambda: replace(model, columns=model.columns[::-1]).answer(X),
            unchanged=True,
        )
    whole = [name for name in X.columns if isinstance(X[name].dtype, np.dtype) and X[name].dtype.kind in "iu"]
    if whole:
        yield _Probe(
            "types",
            "whole numbers stored as decimal ones",
            "warn",
            "The same numbers come as either type, from one file or another.",
            lambda: model.answer(X.astype(dict.fromkeys(whole, "float64"))),
            unchanged=True,
        )
    numeric = [name for name, kind in subject.kinds.items() if kind == "number"]
    if numeric:
        yield _Probe(
            "extreme_numbers",
            "numbers far beyond any in the data",
            "note",
            "A slip of the keyboard should not stop the service.",
            lambda: model.answer(_with_extremes(X, numeric)),
        )


def _finding(subject: Subject, probe: _Probe, expected: Answers) -> Finding:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    common: dict[str, Any] = {"id": f"model_inputs/{probe.key}", **_COMMON}
    # so few rows need no threads, and where cores are shared threads wait for each other a hundred times longer
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        warnings.simplefilter("ignore")  # a model that warns has answered
        try:
            answers = probe.ask()
        except ModelError as error:
            kind = f"an error ({error.kind})" if error.kind else "a malformed answer"
            return Finding(
                statement=f"The model answers {probe.what} with {kind}.",
                severity=probe.severity,
                reason=probe.reason,
                **common,
            )
    if probe.unchanged and not _alike(subject, answers, expected):
        return Finding(
            statement=f"The model silently gives other answers for {probe.what}.",
            severity="fail",
            reason="The rows are the same, so the answers should be.",
            **common,
        )
    same = ", and the answers are the same" if probe.unchanged else ""
    return Finding(statement=f"The model copes with {probe.what}{same}.", **common)


def _alike(subject: Subject, answers: Answers, expected: Answers) -> bool:
    noise = subject.limits["model_determinism.noise"].value
    if subject.task == "regression":
        spread = float(np.std(subject.prediction)) or float(np.abs(subject.prediction).max(initial=0.0)) or 1.0
        return bool(np.abs(answers.prediction - expected.prediction).max() <= noise * spread)
    if answers.score is not None and expected.score is not None:
        return bool(np.abs(answers.score - expected.score).max() <= noise)
    return bool(np.array_equal(answers.prediction, expected.prediction))


def _has_missing(subject: Subject, columns: list[str]) -> bool:
    frames = [subject.X] if subject.train is None else [subject.X, subject.train.X]
    return any(bool(frame[name].isna().any()) for frame in frames for name in columns)


def _with_missing(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the rows with missing values in the first half of them."""
    changed = X.copy()
    half = np.arange(len(X)) < max(len(X) // 2, 1)
    for name in columns:
        series = X[name]
        if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
            series = series.astype("float64")
        elif isinstance(series.dtype, np.dtype) and series.dtype.kind == "b":
            series = series.astype(object)
        changed[name] = series.mask(half)
    return changed


def _takes_text(series: "pd.Series[Any]") -> bool:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return not pd.api.types.is_datetime64_any_dtype(series.cat.categories.dtype)
    return column_kind(series) == "text" and pd.api.types.is_string_dtype(series.dtype)


def _with_new_level(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    changed = X.copy()
    half = np.arange(len(X)) < max(len(X) // 2, 1)
    for name in columns:
        series = X[name]
        new: Any = _NEW_LEVEL
        if isinstance(series.dtype, pd.CategoricalDtype):
            categories = series.cat.categories
            if pd.api.types.is_numeric_dtype(categories.dtype):
                new = categories.max() + 1 if len(categories) else 0
            series = series.cat.add_categories([new])
        changed[name] = series.mask(half, new)
    return changed


def _with_extremes(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the rows with numbers a million times as large, of both signs."""
    changed = X.copy()
    for name in columns:
        values = pd.to_numeric(X[name], errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
        largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
        sign = np.where(np.arange(len(X)) % 2 == 0, 1.0, -1.0)
        changed[name] = sign * 1e6 * max(largest, 1.0)
    return changed
