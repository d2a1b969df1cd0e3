"""When not to trust an answer: accuracy against the share of rows left to a person, and whom that falls on.

Any classifier with probabilities has a doubt of its own: one minus the probability of the class that it predicts. An
ensemble has a whole family of measures. The best of them for this model is chosen on one half of the rows and shown on
the other, so that the choice does not flatter it.

References
----------
N. Kotelevskii et al., "From Risk to Uncertainty", ICLR 2025. E. Jones, S. Sagawa, P. W. Koh, A. Kumar, P. Liang,
"Selective Classification Can Magnify Disparities Across Groups", ICLR 2021.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.auditing.estimates import Rate, Rows, count_text, percent
from aboveboard.auditing.group_shares import GroupShare, group_share_finding
from aboveboard.auditing.model import source_of
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Column, Figure, Finding, Line, Series, Severity, Table
from aboveboard.uncertainty import RiskDecomposition, abstention_audit, rank_measures
from aboveboard.uncertainty.risk_decomposition import measure_name

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "abstention", "area": "uncertainty"}
_SHARES: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_JUDGED: Final = 0.2
_LEAST_ERRORS: Final = 10
_FLOOR: Final = 1e-6
_OWN: Final = "the model's own doubt"

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A measure of uncertainty, as the share of rows that are surer, and the rows on which it may be judged."""

    name: str
    place: Floats
    judged: Mask


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Abstain where the model is least certain, and see what is gained and who is left out.

    Parameters
    ----------
    subject : Subject
        Binary or multiclass, with scores. Where the model is a fitted ensemble of scikit-learn, its members are asked.
    random_state : int
        Of the halves, and of ties.

    Returns
    -------
    list of Finding
        ``abstention/accuracy``; for an ensemble ``abstention/misclassification``; and ``abstention/<column>`` for each
        sensitive column.

    Notes
    -----
    One pass of an ensemble's members over the rows, O(members x rows x classes) for the measures, and O(rows log rows)
    for each of the 65 that are compared.
    """
    rng = np.random.default_rng(random_state)
    wrong = subject.prediction != subject.y
    if not _enough(subject, wrong, np.ones(len(subject), dtype=bool)):
        place = _placed(subject, _own_doubt(subject), rng)
        return [_too_few(subject, wrong), *_by_group(subject, place, wrong, rng)]
    doubts, chosen, why = _doubts(subject, wrong, rng, random_state)
    return [_accuracy(subject, doubts, wrong, why), *chosen, *_by_group(subject, doubts[0].place, wrong, rng)]


# --- measures ---------------------------------------------------------------------------------------------------------


def _doubts(
    subject: Subject, wrong: Mask, rng: np.random.Generator, random_state: int
) -> tuple[list[_Doubt], list[Finding], str]:
    """Return the measures to abstain by, the best first; the finding on their choice; and a sentence about it."""
    own = _own_doubt(subject)
    alone = _Doubt(_OWN, _placed(subject, own, rng), np.ones(len(subject), dtype=bool))
    family, why = _family(subject)
    if family is None:
        return [alone], [], why
    chooses = _half(subject, rng)
    if not all(_enough(subject, wrong, half) for half in (chooses, ~chooses)):
        return [alone], [], "There are too few errors to choose among the measures of the ensemble."
    measured = pd.concat([family, pd.DataFrame({_OWN: own})], axis=1)
    findings = _best_measure(subject, measured, wrong, chooses, random_state)
    best = _best(subject, measured.loc[chooses], wrong[chooses], chooses)
    other_half = replace(alone, judged=~chooses)
    if best == _OWN:
        return [other_half], findings, "On one half of the rows no measure of the ensemble told errors better."
    first = _Doubt(measure_name(best), _placed(subject, measured[best].to_numpy(), rng), ~chooses)
    return [first, other_half], findings, "The measure was chosen on one half of the rows and is shown on the other."


def _own_doubt(subject: Subject) -> Floats:
    """Return one minus the probability of the class that is predicted."""
    assert subject.score is not None
    if subject.score.ndim == 1:
        return np.asarray(np.where(subject.prediction == 1, 1.0 - subject.score, subject.score))
    return np.asarray(1.0 - subject.score[np.arange(len(subject)), subject.prediction])


def _family(subject: Subject) -> tuple[pd.DataFrame | None, str]:
    """Return the measures of an ensemble's members, or why there are none."""
    if subject.model is None:
        return None, "Predictions were given, so that the members of an ensemble could not be asked."
    if source_of(subject.model.model) is not None:
        return None, (
            "A model from a file or an address shows its answers and not its members; give the model itself to "
            "aboveboard.audit, and the measures of an ensemble are compared."
        )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "In .* rows a member gives", UserWarning)  # said in the note of the table
            family = RiskDecomposition(subject.model.model, eps=_FLOOR).measures(subject.model.given(subject.X))
    except InputError as error:
        return None, f"Only its own probabilities can be used: {error.got}."
    return family.reset_index(drop=True), ""


def _half(subject: Subject, rng: np.random.Generator) -> Mask:
    """Return a random half of the rows, or of the clusters."""
    if subject.cluster is None:
        return np.asarray(rng.permutation(len(subject)) % 2 == 0)
    code = np.unique(subject.cluster, return_inverse=True)[1].ravel()
    return np.asarray((rng.permutation(code.max() + 1) % 2 == 0)[code])


def _enough(subject: Subject, wrong: Mask, rows: Mask) -> bool:
    counted = rows & (subject.weights > 0)
    n, errors = int(counted.sum()), int((wrong & counted).sum())
    return min(errors, n - errors) >= max(_LEAST_ERRORS, subject.min_cell) and n * _JUDGED >= 2 * subject.min_cell


def _best(subject: Subject, measured: pd.DataFrame, wrong: Mask, rows: Mask) -> Any:
    weight = None if subject.weight is None else subject.weight[rows]
    return rank_measures(measured, wrong, sample_weight=weight).index[0]


def _best_measure(
    subject: Subject, measured: pd.DataFrame, wrong: Mask, chooses: Mask, random_state: int
) -> list[Finding]:
    limit = subject.limits["abstention.auroc"]
    return abstention_audit(
        measured,
        wrong,
        chooses=chooses,
        sample_weight=subject.weight,
        clusters=subject.cluster,
        least_auroc=limit.value,
        limit_source=limit.source,
        random_state=random_state,
    )


def _placed(subject: Subject, doubt: Floats, rng: np.random.Generator) -> Floats:
    """Return which share of the rows (by weight) is surer than each; those of equal doubt are ordered by lot."""
    order = np.lexsort((rng.random(len(doubt)), doubt))
    weight = subject.weights[order]
    place = np.empty(len(doubt))
    place[order] = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    return place


# --- accuracy against the share abstained -----------------------------------------------------------------------------


def _accuracy(subject: Subject, doubts: Sequence[_Doubt], wrong: Mask, why: str) -> Finding:
    best = doubts[0]
    rows, right = Rows.of(subject), ~wrong
    limit = subject.limits["abstention.caught"]
    left = [int(np.count_nonzero(best.judged & (best.place > 1 - share))) for share in _SHARES]
    shares = [share for share, n in zip(_SHARES, left, strict=True) if n == 0 or n >= subject.min_cell]
    z = critical_z(0.95 ** (1 / (len(shares) * len(doubts))))
    curves = {
        doubt.name: [rows.rate(right, doubt.judged & (doubt.place <= 1 - share), z=z) for share in shares]
        for doubt in doubts
    }
    caught = rows.rate(best.place > 1 - _JUDGED, wrong & best.judged)
    severity: Severity = (
        "ok" if caught.interval.low > limit.value else "warn" if caught.interval.high < limit.value else "note"
    )
    before, after = curves[best.name][0], curves[best.name][shares.index(_JUDGED)]
    return Finding(
        id="abstention/accuracy",
        statement=(
            f"Left to a person, the {100 * _JUDGED:.0f} % of the rows that are least certain by {_quoted(best.name)} "
            f"hold {percent(caught.value)} of the errors (95 % interval {100 * caught.interval.low:.1f} to "
            f"{100 * caught.interval.high:.1f}): accuracy is {percent(before.value)} on all rows and "
            f"{percent(after.value)} on those kept."
        ),
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason=" ".join(
            (
                {
                    "ok": "The model knows where it errs: rows chosen by lot would hold 20 % of the errors.",
                    "warn": "The model hardly knows where it errs: rows chosen by lot would hold 20 % of the errors.",
                    "note": "There are too few errors to tell whether the model knows where it errs.",
                }[severity],
                why,
            )
        ),
        value=caught.value,
        interval=caught.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=int(np.count_nonzero(best.judged)),
        evidence=(_curve(shares, curves), _table(subject, doubts, wrong, shares, curves)),
        remedies=("RiskDecomposition",) if severity == "warn" and len(doubts) == 1 and best.name == _OWN else (),
        **_COMMON,
    )


def _quoted(name: str) -> str:
    return name if name == _OWN else f"'{name}'"


def _curve(shares: list[float], curves: dict[str, list[Rate]]) -> Figure:
    series = tuple(
        Series(
            name,
            tuple(shares),
            tuple(rate.value for rate in rates),
            tuple(rate.interval.low for rate in rates),
            tuple(rate.interval.high for rate in rates),
        )
        for name, rates in curves.items()
    )
    name, rates = next(iter(curves.items()))
    return Figure(
        "lines",
        "Accuracy of the rows that are kept",
        "share of the rows left to a person",
        "accuracy",
        series,
        (Line("all rows", rates[0].value),),
        alt=f"By {_quoted(name)}, accuracy goes from {percent(rates[0].value)} with no row left out to "
        f"{percent(rates[-1].value)} with {100 * shares[-1]:.0f} % left out.",
        percent=True,
    )


def _table(
    subject: Subject, doubts: Sequence[_Doubt], wrong: Mask, shares: list[float], curves: dict[str, list[Rate]]
) -> Table:
    best, rows = doubts[0], Rows.of(subject)
    caught = [rows.rate(best.place > 1 - share, wrong & best.judged).value for share in shares]
    others = [doubt.name for doubt in doubts[1:]]
    columns = (
        Column("left to a person", "percent"),
        Column("n", "count", "rows kept"),
        Column("accuracy of those kept", "percent"),
        Column("simultaneous 95 % interval", "interval"),
        Column("errors among those left", "percent", "Of all errors, how many are left to a person."),
        *(Column(f"accuracy by {name}", "percent") for name in others),
    )
    body = tuple(
        (share, rate.n, rate.value, (rate.interval.low, rate.interval.high), found, *rest)
        for share, rate, found, *rest in zip(
            shares,
            curves[best.name],
            caught,
            *([rate.value for rate in curves[name]] for name in others),
            strict=True,
        )
    )
    return Table(
        f"Abstaining by {best.name}",
        columns,
        body,
        note="Rows of equal doubt are left out by lot. For the log score of an ensemble, probabilities below "
        f"{_FLOOR:g} are raised to that.",
    )


def _too_few(subject: Subject, wrong: Mask) -> Finding:
    errors = int(np.count_nonzero(wrong))
    return Finding(
        id="abstention/accuracy",
        statement=f"There are too few errors, or right answers, to tell whether the model knows where it errs: "
        f"{count_text(errors, subject.min_cell, 'errors')} in {len(subject):,} rows.",
        severity="note",
        status="inconclusive",
        reason=f"It takes {max(_LEAST_ERRORS, subject.min_cell)} of each.",
        n=len(subject),
        **_COMMON,
    )


# --- groups -----------------------------------------------------------------------------------------------------------


def _by_group(subject: Subject, place: Floats, wrong: Mask, rng: np.random.Generator) -> list[Finding]:
    left = place > 1 - _JUDGED
    right = (~wrong).astype(np.float64)
    share = GroupShare(
        hit=left,
        is_so=f"among the {100 * _JUDGED:.0f} % least certain",
        title="Rows left without an answer",
        limit=subject.limits["abstention.group"],
        beside={"accuracy": right, "accuracy of those kept": np.where(left, np.nan, right)},
    )
    return [
        group_share_finding(subject, name, share, rng, id=f"abstention/{name}", **_COMMON)
        for name in map(str, subject.sensitive.columns)
    ]
