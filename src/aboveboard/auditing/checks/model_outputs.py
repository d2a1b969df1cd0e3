"""Whether answers are what they claim to be: probabilities that are probabilities, and labels that follow from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.estimates import count_text, percent
from aboveboard.auditing.model import FittedModel, not_asked
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import Finding, Severity

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "model_outputs", "area": "model"}
_EXTREME: Final = 1e-6


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Look at the answers about all rows.

    Returns
    -------
    list of Finding
        ``model_outputs/probabilities`` and ``/labels`` (models), ``/saturated`` and ``/distinct`` (scores),
        ``/constant``, ``/unused_class`` (several classes) and ``/range`` (regression).

    Notes
    -----
    Two passes of the model over the rows (none where it remembers its answers); O(n log n) time besides.
    """
    findings: list[Finding] = []
    if subject.task != "regression" and subject.model is not None and subject.model.gives_scores:
        findings.append(_probabilities(subject, subject.model))
        if subject.model.gives_labels:
            findings.append(_labels(subject, subject.model))
    if subject.score is not None:
        findings += [_saturated(subject, subject.score), _distinct(subject, subject.score)]
    findings.append(_constant(subject))
    if subject.task == "multiclass":
        findings.append(_unused_classes(subject))
    if subject.task == "regression":
        findings.append(_range(subject))
    return findings


def _probabilities(subject: Subject, model: FittedModel) -> Finding:
    """Judge the probabilities as they come from the model, before anything is put right."""
    limit = subject.limits["model_outputs.sum"]
    common: dict[str, Any] = {"id": "model_outputs/probabilities", "n": len(subject), **_COMMON}
    try:
        raw = model.raw_probabilities(subject.X)
    except QueriesSpent as stop:
        return not_asked(stop, **common)
    except (ModelError, TypeError, ValueError):
        return Finding(
            statement="The model's probabilities could not be read a second time.", severity="fail", **common
        )
    problems: list[str] = []
    infinite = int(np.count_nonzero(~np.isfinite(raw)))
    if infinite:
        problems.append(f"{count_text(infinite, subject.min_cell, 'numbers')} are not finite")
    known = raw[np.isfinite(raw)]
    excess = max(0.0, float(known.max(initial=0.0)) - 1.0, -float(known.min(initial=0.0)))
    if excess > limit.value:
        outside = int(np.count_nonzero((known < -limit.value) | (known > 1 + limit.value)))
        problems.append(f"{count_text(outside, subject.min_cell, 'numbers')} lie outside [0, 1] by up to {excess:.2g}")
    gap = 0.0
    columns = 1 if raw.ndim == 1 else raw.shape[1]
    if columns > 1:
        gaps = np.abs(np.nansum(raw, axis=1) - 1.0)
        gap = float(gaps.max(initial=0.0))
        if gap > limit.value:
            off = int(np.count_nonzero(gaps > limit.value))
            problems.append(
                f"those of {count_text(off, subject.min_cell)} do not sum to 1 but miss it by up to {gap:.2g}"
            )
    value = max(excess, gap)
    sums = " and sum to 1" if columns > 1 else ""
    return Finding(
        statement=f"Of the model's probabilities {', and '.join(problems)}."
        if problems
        else f"The model's probabilities lie in [0, 1]{sums}.",
        severity="fail" if problems else "ok",
        reason="They are no probabilities; all figures that rest on them are in doubt."
        if problems
        else f"The largest departure is {value:.1e}.",
        value=value,
        limit=limit.value,
        limit_source=limit.source,
        **common,
    )


def _labels(subject: Subject, model: FittedModel) -> Finding:
    """Compare the model's labels with the class it gives the highest probability."""
    common: dict[str, Any] = {"id": "model_outputs/labels", "n": len(subject), **_COMMON}
    own = replace(model, threshold=None)
    try:
        answers = own.answer(subject.X)
    except QueriesSpent as stop:
        return not_asked(stop, **common)
    except ModelError:
        return Finding(statement="The model's labels could not be read a second time.", severity="fail", **common)
    assert answers.score is not None
    limit = subject.limits["model_outputs.disagreement"]
    if model.task == "binary":
        return _binary_labels(subject, answers.score, answers.prediction == 1, limit, common)
    best = answers.score.max(axis=1)
    chosen = answers.score[np.arange(len(best)), answers.prediction]
    off = chosen < best - _EXTREME  # a tie may go either way
    return _disagreement(subject, off, limit, "the class of highest probability", common)


def _binary_labels(
    subject: Subject, score: NDArray[Any], positive: NDArray[np.bool_], limit: Any, common: dict[str, Any]
) -> Finding:
    near = np.abs(score - 0.5) <= _EXTREME
    off = (positive != (score >= 0.5)) & ~near
    if not off.any():
        return _disagreement(subject, off, limit, "the probability at a threshold of 0.5", common)
    if positive.any() and not positive.all():
        low, high = float(score[~positive].max()), float(score[positive].min())
        if high > low - 1e-12:
            return Finding(
                statement="The model's labels follow from its probabilities at a threshold near "
                f"{(low + high) / 2:.3f}, not 0.5.",
                severity="note",
                reason="A threshold that was tuned is fine; whoever cuts the probabilities at 0.5 gets other labels.",
                value=float(off.mean()) if off.sum() >= subject.min_cell else None,
                limit=limit.value,
                limit_source=limit.source,
                **common,
            )
        if float(score[positive].mean()) < float(score[~positive].mean()):
            return Finding(
                statement="The model's labels run against its probabilities: rows called positive have the lower ones.",
                severity="fail",
                reason="The columns of its probabilities are most likely in another order than its classes.",
                value=float(off.mean()) if off.sum() >= subject.min_cell else None,
                limit=limit.value,
                limit_source=limit.source,
                **common,
            )
    elif not positive.any():
        return Finding(
            statement="The model labels no row positive, though some have a probability above 0.5.",
            severity="warn",
            reason="Its labels follow from something else than its probabilities, or from a high threshold.",
            value=float(off.mean()) if off.sum() >= subject.min_cell else None,
            limit=limit.value,
            limit_source=limit.source,
            **common,
        )
    return _disagreement(subject, off, limit, "its probabilities at any one threshold", common)


def _disagreement(subject: Subject, off: NDArray[np.bool_], limit: Any, what: str, common: dict[str, Any]) -> Finding:
    count, share = int(off.sum()), float(off.mean())
    severity: Severity = "ok"
    if share > limit.value:
        severity = "warn"
    elif count:
        severity = "note"
    hidden = 0 < count < subject.min_cell
    of = count_text(count, subject.min_cell) + ("" if hidden else f" ({percent(share, 2)})")
    return Finding(
        statement=f"The labels of {of} do not follow from {what}."
        if count
        else f"All of the model's labels follow from {what}.",
        severity=severity,
        reason="Labels and probabilities come from different rules, so they cannot both be relied on." if count else "",
        value=None if hidden else share,
        limit=limit.value,
        limit_source=limit.source,
        **common,
    )


def _saturated(subject: Subject, score: NDArray[Any]) -> Finding:
    """Share of rows whose highest probability is (almost) 1."""
    top = np.maximum(score, 1 - score) if score.ndim == 1 else score.max(axis=1)
    certain = top >= 1 - _EXTREME
    count, share = int(certain.sum()), float(certain.mean())
    limit = subject.limits["model_outputs.saturated"]
    hidden = 0 < count < subject.min_cell
    far = share > limit.value
    of = count_text(count, subject.min_cell) + ("" if hidden else f" ({percent(share)})")
    return Finding(
        id="model_outputs/saturated",
        statement=f"{of[0].upper()}{of[1:]} have a score of 0 or 1, as if certain.",
        severity="note" if far else "ok",
        reason="Scores so sure are seldom true, and leave nothing to rank by." if far else "No more than the limit.",
        value=None if hidden else share,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        **_COMMON,
    )


def _distinct(subject: Subject, score: NDArray[Any]) -> Finding:
    """Count distinct scores: one is no score, two are labels."""
    flat = score if score.ndim == 1 else score.max(axis=1)
    values = np.unique(flat)
    common: dict[str, Any] = {"id": "model_outputs/distinct", "value": float(len(values)), "n": len(subject), **_COMMON}
    if len(values) == 1:
        return Finding(
            statement="Every row has the same score.", severity="warn", reason="It tells no rows apart.", **common
        )
    if len(values) == 2:
        return Finding(
            statement="There are only two different scores.",
            severity="note",
            reason="They seem to be labels; figures that need scores say little.",
            **common,
        )
    return Finding(statement=f"There are {len(values):,} different scores.", **common)


def _constant(subject: Subject) -> Finding:
    values = np.unique(subject.prediction)
    kind = "number" if subject.task == "regression" else "class"
    common: dict[str, Any] = {"id": "model_outputs/constant", "value": float(len(values)), "n": len(subject), **_COMMON}
    if len(values) == 1:
        which = "" if subject.task == "regression" else f" ({subject.class_names[int(values[0])]!r})"
        return Finding(
            statement=f"The model predicts the same {kind} for every row{which}.",
            severity="warn",
            reason="It tells no rows apart.",
            **common,
        )
    plural = "numbers" if kind == "number" else "classes"
    return Finding(statement=f"The model predicts {len(values):,} different {plural}.", **common)


def _unused_classes(subject: Subject) -> Finding:
    never = np.setdiff1d(np.unique(subject.y), subject.prediction)
    names = _listed([subject.class_names[code] for code in never])
    rows = int(np.isin(subject.y, never).sum())
    return Finding(
        id="model_outputs/unused_class",
        statement=f"The model never predicts {names}, the class of {count_text(rows, subject.min_cell)}."
        if len(never)
        else "Each class of the data is predicted for some row.",
        severity="note" if len(never) else "ok",
        reason="Its rows are all missed." if len(never) else "",
        value=float(len(never)),
        n=len(subject),
        **_COMMON,
    )


def _range(subject: Subject) -> Finding:
    """Count predictions that lie farther outside the observed target than the target is wide."""
    known = subject.y if subject.train is None else np.concatenate([subject.y, subject.train.y])
    low, high = float(known.min()), float(known.max())
    width = high - low
    limit = subject.limits["model_outputs.outside"]
    off = (subject.prediction < low - width) | (subject.prediction > high + width)
    count, share = int(off.sum()), float(off.mean())
    hidden = 0 < count < subject.min_cell
    of = count_text(count, subject.min_cell) + ("" if hidden else f" ({percent(share, 2)})")
    return Finding(
        id="model_outputs/range",
        statement=f"The predictions for {of} lie farther outside the range of the target than that range is wide."
        if count
        else "All predictions lie within or near the range of the target.",
        severity="warn" if share > limit.value else "ok",
        reason="The model extrapolates wildly there." if count else "",
        value=None if hidden else share,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        **_COMMON,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
