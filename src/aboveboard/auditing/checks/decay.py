"""Who suffers from a loss of performance since the reference, whether it is real, and what explains it.

A loss for everybody is one thing; a loss for some that the average hides is another. The check looks for subgroups of
rows in which the model errs more than it did, separately where other rows came (the mix changed) and where outcomes are
others for the same rows, tests what it found on rows held out, and tries which columns alone would explain it. What was
found is then repaired, and the repair held against rows that it did not learn from.

References
----------
H. Singh, F. Xia, A. Gossmann, A. Chuang, J. C. Hong, J. Feng, "Who experiences large model decay and why? A
Hierarchical Framework for Diagnosing Heterogeneous Performance Drift", ICML 2025.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import comparable_columns
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Column, Finding, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "decay", "area": "drift"}
_FEWEST: Final = 200
_SENSITIVE: Final = "all sensitive columns"
_NAMED: Final = 5
_HOW: Final = {
    "outcome": "Within the subgroup, answers learned from half of the new rows: from the model's score and {}.",
    "covariate": "Within the subgroup, answers of a model trained anew on half of the old rows, weighted to the new "
    "mix of {}.",
}

Rows = NDArray[np.intp]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Look for subgroups in which the model errs more than on the reference.

    Returns
    -------
    list of Finding
        ``decay/outcome`` (other outcomes for the same rows) and ``decay/covariate`` (another mix of rows); where one is
        found, with who suffers, what explains it, and what a repair is worth.

    Notes
    -----
    Half of the rows teach, half test. Fits a few classifiers for each table, and for each column where a subgroup was
    found.
    """
    from aboveboard.drift import SHIFT

    reference = subject.reference
    assert reference is not None
    assert reference.y is not None
    assert reference.prediction is not None
    names = comparable_columns(subject.X, reference.X)
    sensitive = [name for name in reference.sensitive.columns if name not in names]
    new, old = _independent(subject)
    old = old[reference.y[old] >= 0]
    if min(len(new), len(old)) < _FEWEST or not names:
        return [_open(f"It takes {_FEWEST} independent rows, now and then, and a column that both tables have.")]
    tables = [
        pd.concat([part.X[names], part.sensitive[sensitive]], axis=1).iloc[rows].reset_index(drop=True)
        for part, rows in ((reference, old), (subject, new))
    ]
    then, now = (
        np.asarray(part.prediction if part.score is None else part.score, dtype=np.float64)[rows]
        for part, rows in ((reference, old), (subject, new))
    )
    shift = SHIFT(
        tolerance=subject.limits["decay.tolerance"].value,
        min_prevalence=float(np.clip(2 * subject.min_cell / min(len(new), len(old)), 0.05, 0.45)),
        threshold=0.5 if subject.threshold is None else subject.threshold,
        random_state=random_state,
        n_jobs=subject.n_jobs,
    )
    try:
        shift.fit(
            tables[0],
            reference.y[old],
            tables[1],
            subject.y[new],
            predictions=(then, now),
            candidates=_candidates(subject, list(tables[0].columns)),
        )
    except InputError as error:
        return [_open(f"{error.got[:1].upper()}{error.got[1:]}.")]
    return [_judged(subject, shift, finding) for finding in shift.findings(**_COMMON)]


def _independent(subject: Subject) -> tuple[Rows, Rows]:
    """Return rows of both tables, one of each cluster where there are clusters."""
    reference = subject.reference
    assert reference is not None
    new, old = np.arange(len(subject)), np.arange(len(reference))
    if subject.cluster is None or reference.cluster is None:
        return new, old
    together = np.concatenate([reference.cluster, subject.cluster])
    order = np.random.default_rng(0).permutation(len(together))
    _, first = np.unique(together[order], return_index=True)
    kept = np.sort(order[first])
    return kept[kept >= len(old)] - len(old), kept[kept < len(old)]


def _candidates(subject: Subject, columns: list[str]) -> dict[str, list[str]]:
    """Return what may explain a loss: each column, and the sensitive ones together."""
    groups = {name: [name] for name in columns}
    sensitive = [name for name in columns if name in subject.sensitive.columns]
    return groups | ({_SENSITIVE: sensitive} if 1 < len(sensitive) < len(columns) else {})


def _open(reason: str) -> Finding:
    return Finding(
        id="decay/outcome",
        statement="It cannot be told who has suffered since the reference.",
        status="inconclusive",
        reason=reason,
        **_COMMON,
    )


def _judged(subject: Subject, shift: Any, finding: Finding) -> Finding:
    """Hold a finding against the limits, and add what a repair is worth."""
    kind = finding.id.rpartition("/")[2]
    limit, severe = subject.limits["decay.tolerance"], subject.limits["decay.tolerance_severe"]
    notes = _notes(subject, shift)
    finding = replace(finding, limit=limit.value, limit_source=limit.source)
    if not shift.aggregate_[kind].reject:
        return replace(finding, reason=f"{finding.reason}.{notes}")
    failed = finding.interval is not None and finding.interval.low > severe.value
    if failed:
        finding = replace(finding, limit=severe.value, limit_source=severe.source)
    return replace(
        finding,
        severity="fail" if failed else "warn",
        reason=f"{finding.reason}.{notes}",
        evidence=(*finding.evidence, _repair(shift, kind)),
        remedies=("SHIFT",),
    )


def _notes(subject: Subject, shift: Any) -> str:
    clipped = float(shift.diagnostics_["clipped_share"])
    notes = []
    if clipped > 0:
        notes.append(f"{100 * clipped:.1f} % of the rows tell their table almost surely, so their weight was bounded")
    if subject.weight is not None:
        notes.append("weights play no part in this check")
    if subject.cluster is not None:
        notes.append("one row of each cluster was looked at")
    text = "; ".join(notes)
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def _repair(shift: Any, kind: str) -> Table:
    """Return the table of the repair that was tried."""
    repaired = shift.repair(kind)
    trial = repaired.trial_
    columns = ", ".join(map(repr, repaired.columns[:_NAMED]))
    low, high = (-100 * end for end in reversed(trial.interval))
    worth = f"{-100 * trial.gain:+.2f} points (95 % interval {low:+.2f} to {high:+.2f})"
    return Table(
        "The repair that was tried, on rows that it did not learn from",
        (
            Column("rows", "text"),
            Column("n", "count"),
            Column("errors before", "percent"),
            Column("errors after", "percent"),
        ),
        (
            ("all", trial.n, trial.before, trial.after),
            ("in the subgroup", trial.n_inside, trial.before_inside, trial.after_inside),
        ),
        note=f"{_HOW[kind].format(columns)} Errors change by {worth}: "
        + ("it helps." if trial.interval[0] > 0 else "it is not shown to help."),
    )
