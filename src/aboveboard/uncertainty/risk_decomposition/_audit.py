"""The best measure for a task as a finding of an audit: chosen on one half of the rows, shown on the other."""

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Severity, Status, Table
from aboveboard.uncertainty.risk_decomposition._ranking import LEAST_EVENTS, Areas, areas_under_curve, column_text
from aboveboard.uncertainty.risk_decomposition._risks import NAMES

__all__ = ["abstention_audit", "measure_name"]

_COMMON: Final[dict[str, Any]] = {"check": "abstention", "area": "uncertainty"}
_SHOWN: Final = 15
_EVENTS: Final = {"misclassification": "errors", "out_of_distribution": "foreign rows"}
_BASELINE: Final = ("zero_one", "total", "inner", "inner")


def abstention_audit(
    measures: pd.DataFrame,
    event: ArrayLike,
    *,
    task: str = "misclassification",
    chooses: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    least_auroc: float = 0.6,
    limit_source: str = "",
    confidence: float = 0.95,
    random_state: int = 0,
) -> list[Finding]:
    """Choose the measure that tells the rows with an event best, and say how well it does on other rows.

    Parameters
    ----------
    measures : DataFrame of shape (n, k)
        Higher is less certain.
    event, sample_weight, clusters, confidence, random_state :
        As for `rank_measures`.
    task : str, default="misclassification"
        What the event is: "misclassification", "out_of_distribution", or a name of your own.
    chooses : array-like of bool, shape (n,), optional
        The rows on which the measure is chosen; default a random half (of the clusters).
    least_auroc : float, default=0.6
        The limit: a measure below it hardly tells the rows apart.
    limit_source : str

    Returns
    -------
    list of Finding
        One, ``abstention/<task>``: ``ok`` where the whole interval of the chosen measure's area lies above the limit,
        ``warn`` where it lies below, else inconclusive; so it is with fewer than 10 rows of either kind in a half.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import abstention_audit, uncertainty_measures
    >>> rng = np.random.default_rng(0)
    >>> members = rng.dirichlet([2, 1, 1], size=(5, 2000))
    >>> wrong = members.mean(axis=0).max(axis=1) < rng.uniform(0.3, 0.8, 2000)
    >>> (finding,) = abstention_audit(uncertainty_measures(members), wrong)
    >>> finding.severity
    'ok'
    """
    happened = np.asarray(event).astype(bool)
    first = _halves(happened, chooses, clusters, random_state)
    finding_id, noun = f"abstention/{task}", _EVENTS.get(task, task)

    def part(rows: NDArray[np.bool_]) -> Areas | None:
        if happened[rows].all() or not happened[rows].any():
            return None
        weight, cluster = (None if a is None else np.asarray(a)[rows] for a in (sample_weight, clusters))
        return areas_under_curve(measures.to_numpy(dtype=np.float64)[rows], happened[rows], weight, cluster)

    choosing, showing = part(first), part(~first)
    if choosing is None or showing is None or not (choosing.enough and showing.enough):
        return [
            Finding(
                id=finding_id,
                statement=f"There are too few {noun} to tell which measure finds them.",
                severity="note",
                status="inconclusive",
                reason=f"Both halves of the rows need {LEAST_EVENTS} rows with them and {LEAST_EVENTS} without.",
                **_COMMON,
            )
        ]
    best = int(np.argmax(choosing.value))
    low, high = showing.intervals(confidence, random_state)
    difference = _beside_baseline(measures, showing, best, confidence)
    severity: Severity = "ok" if low[best] > least_auroc else "warn" if high[best] < least_auroc else "note"
    status: Status = "inconclusive" if severity == "note" else "ran"
    name = measure_name(measures.columns[best])
    return [
        Finding(
            id=finding_id,
            statement=(
                f"Of {measures.shape[1]} measures of uncertainty, {name} was the best at telling {noun} on one half of "
                f"the rows; on the other half its AUROC is {showing.value[best]:.3f} (simultaneous "
                f"{100 * confidence:.3g} % interval {low[best]:.3f} to {high[best]:.3f}).{difference}"
            ),
            severity=severity,
            status=status,
            reason={
                "ok": "The whole interval lies above the limit: abstaining where it is highest avoids many of them.",
                "warn": "The whole interval lies below the limit: no measure knows where they are.",
                "note": "There are too few rows to tell whether it lies above the limit.",
            }[severity],
            value=float(showing.value[best]),
            interval=Interval(float(low[best]), float(high[best]), confidence, "DeLong, multiplier bootstrap", True),
            limit=least_auroc,
            limit_source=limit_source,
            n=showing.n,
            evidence=_evidence(measures, showing, best, low, high, noun, least_auroc),
            **_COMMON,
        )
    ]


def measure_name(label: Any) -> str:
    """Return a measure's place in the family as text, with the name that it is known by where it has one."""
    for name, place in NAMES.items():
        if label in (name, (place["score"], place["kind"], place["truth"], place.get("prediction", ""))):
            return name.replace("_", " ")
    return column_text(label)


def _halves(
    happened: NDArray[np.bool_], chooses: ArrayLike | None, clusters: ArrayLike | None, random_state: int
) -> NDArray[np.bool_]:
    """Return which rows choose: half of those with the event and of those without, or half of the clusters."""
    if chooses is not None:
        first = np.asarray(chooses)
        if first.shape != happened.shape or first.dtype != bool:
            raise InputError(f"chooses has shape {first.shape}, {first.dtype}", expected=f"{len(happened)} booleans")
        return first
    rng = np.random.default_rng(random_state)
    if clusters is not None:
        code = np.unique(np.asarray(clusters), return_inverse=True)[1].ravel()
        return np.asarray((rng.permutation(code.max() + 1) % 2 == 0)[code])
    order = rng.permutation(len(happened))
    order = order[np.argsort(happened[order], kind="stable")]
    first = np.zeros(len(happened), dtype=bool)
    first[order[::2]] = True
    return first


def _beside_baseline(measures: pd.DataFrame, showing: Areas, best: int, confidence: float) -> str:
    labels = list(measures.columns)
    baseline = next((labels.index(label) for label in (_BASELINE, "least_confidence") if label in labels), best)
    if baseline == best:
        return ""
    gain, low, high = showing.difference(best, baseline, confidence)
    return (
        f" That is {gain:+.3f} beside the least confidence, 1 minus the largest probability ({100 * confidence:.3g} % "
        f"interval {low:+.3f} to {high:+.3f})."
    )


def _evidence(
    measures: pd.DataFrame, showing: Areas, best: int, low: Any, high: Any, noun: str, limit: float
) -> tuple[Table, Figure]:
    order = [best, *(i for i in np.argsort(-showing.value, kind="stable") if i != best)][:_SHOWN]
    names = [measure_name(measures.columns[i]) for i in order]
    table = Table(
        f"How well measures of uncertainty tell {noun}",
        (
            Column("measure", "text"),
            Column("place in the family", "text", "Score, kind of risk, what stands for the truth and the prediction."),
            Column("AUROC"),
            Column("simultaneous interval", "interval"),
        ),
        tuple(
            (name, column_text(measures.columns[i]), float(showing.value[i]), (float(low[i]), float(high[i])))
            for name, i in zip(names, order, strict=True)
        ),
        note=f"The chosen one first, then the others by AUROC. {showing.n:,} rows, {showing.events:,} with the event, "
        "none of which took part in the choice. 0.5 is a coin.",
    )
    figure = Figure(
        "intervals",
        f"Which measure tells {noun}?",
        "measure",
        "AUROC",
        (
            Series(
                "rows that did not choose",
                tuple(names),
                tuple(float(showing.value[i]) for i in order),
                tuple(float(low[i]) for i in order),
                tuple(float(high[i]) for i in order),
            ),
        ),
        (Line("a coin", 0.5), Line("limit", limit)),
        alt=f"The chosen measure, {names[0]}, has an area of {showing.value[best]:.3f}; the best of the others "
        f"{max((float(showing.value[i]) for i in order[1:]), default=float('nan')):.3f}.",
    )
    return table, figure
