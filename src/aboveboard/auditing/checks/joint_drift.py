"""Whether a model can tell new rows from those of the reference.

Columns can each look as before while they no longer go together as they did. A classifier that sees all of them at once
is trained to name the table that a row came from; how often it is right on rows held out says how far the two lie
apart, at least. Random parts of the same rows show what it makes of nothing.

References
----------
Z. Liu, K. He, "A Decade's Battle on Dataset Bias: Are We There Yet?", ICLR 2025.
D. Lopez-Paz, M. Oquab, "Revisiting classifier two-sample tests", ICLR 2017.
"""

import warnings
from typing import Any, Final

from aboveboard.auditing.changes import bounds, judged, listed
from aboveboard.auditing.columns import comparable_columns
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Cell, Column, Finding, Interval, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "joint_drift", "area": "drift"}
_REPEATS: Final[dict[str, int]] = {"quick": 1, "standard": 2, "full": 5}
_LADDER: Final[dict[str, tuple[str, ...] | None]] = {"quick": (), "standard": ("ranks",), "full": None}
_NAMED: Final = 3
_LITTLE: Final = 0.05
_NOTHING_BUT_CHANCE: Final = 0.001
_THEN, _NOW = "then", "now"


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Train a classifier to tell new rows from old ones, and judge it on rows held out.

    Returns
    -------
    list of Finding
        ``joint_drift/told_apart`` and, above effort quick, ``joint_drift/dependence``: what is left to tell them by
        when every column by itself has been made alike.

    Notes
    -----
    One cross-validation of two classifiers for the tables and for each random division (effort full: five), and one fit
    for each thing that is taken away.
    """
    from aboveboard.drift import DatasetClassification

    assert subject.reference is not None
    names = comparable_columns(subject.X, subject.reference.X)
    if not names:
        return [_open(subject, "No column of the two tables can be compared.")]
    ladder = _LADDER[effort]
    test = DatasetClassification(
        controls=("pseudo",) if ladder == () else ("pseudo", "ladder"),
        ladder=ladder or None,
        n_pseudo=_REPEATS[effort],
        random_state=random_state,
    )
    groups = None
    if subject.cluster is not None:
        groups = {_THEN: subject.reference.cluster, _NOW: subject.cluster}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Columns left out")  # the table says which
        try:
            test.fit({_THEN: subject.reference.X[names], _NOW: subject.X[names]}, groups=groups)
        except InputError as error:
            return [_open(subject, f"{error.got[0].upper()}{error.got[1:]}.")]
    found = [_told_apart(subject, test)]
    if hasattr(test, "ladder_") and (test.ladder_["taken_away"] == "ranks").any():
        found.append(_dependence(subject, test))
    return found


def _open(subject: Subject, reason: str) -> Finding:
    return Finding(
        id="joint_drift/told_apart",
        statement="It cannot be told whether new rows can be told from old ones.",
        status="inconclusive",
        reason=reason,
        n=len(subject),
        **_COMMON,
    )


def _apart(accuracy: float) -> float:
    """Return how far accuracy lies from guessing (0) towards certainty (1)."""
    return 2 * accuracy - 1


def _told_apart(subject: Subject, test: Any) -> Finding:
    result = test.result_
    value = _apart(result.accuracy)
    interval = Interval(_apart(result.ci[0]), _apart(result.ci[1]), method="Wilson")
    verdict = judged(subject, interval, "joint_drift.told_apart", above_only=True)
    by_chance = min(1.0, float(test.pseudo_["p_value"].min()) * len(test.pseudo_))
    if by_chance < _NOTHING_BUT_CHANCE:
        verdict |= {
            "severity": "note",
            "status": "inconclusive",
            "reason": "Random parts of the same rows are told apart as well, so rows are not independent: name what "
            "belongs together (clusters, --cluster).",
        }
    beyond = verdict["severity"] in ("warn", "fail")
    carried = f"; what tells most is {listed(_carriers(test))}" if beyond else ""
    return Finding(
        id="joint_drift/told_apart",
        statement=f"A classifier names the table of {percent(result.accuracy)} of held-out rows, new or old, where "
        f"guessing gives 50 %: {percent(max(value, 0.0))} of the way to certainty {bounds(interval)}{carried}.",
        value=value,
        n=result.n_held_out,
        evidence=(_facts(subject, test), *test.findings("drift")[0].evidence),
        remedies=("DatasetClassification",) if beyond else (),
        **verdict,
        **_COMMON,
    )


def _carriers(test: Any) -> list[str]:
    """Return the columns that tell most: three at most, and none that tells little beside the first."""
    told = test.importance_.head(_NAMED)
    least = _LITTLE * float(told["log_loss_increase"].iloc[0])
    return [str(row.column) for row in told.itertuples() if row.log_loss_increase >= least]


def _facts(subject: Subject, test: Any) -> Table:
    result = test.result_
    rows: tuple[tuple[Cell, ...], ...] = (
        ("AUC of old against new", result.auroc),
        ("share of rows that must differ, at least (95 % confidence)", result.tv_lower_bound),
        ("share of rows that give their table away (probability above 0.95)", result.certain_share),
        ("random parts of the same rows: accuracy", float(test.pseudo_["accuracy"].mean())),
        ("training rows, both tables", result.n_train),
    )
    notes = []
    if test.excluded_:
        notes.append("Left out: " + "; ".join(f"{name!r} ({why})" for name, why in list(test.excluded_.items())[:10]))
    if subject.weight is not None:
        notes.append("Weights play no part in this check")
    return Table("How far apart", (Column("what", "text"), Column("value")), rows, note=". ".join(notes))


def _dependence(subject: Subject, test: Any) -> Finding:
    row = test.ladder_[test.ladder_["taken_away"] == "ranks"].iloc[0]
    interval = Interval(_apart(row["low"]), _apart(row["high"]), method="Wilson")
    return Finding(
        id="joint_drift/dependence",
        statement=f"With every column by itself made alike in both tables, {percent(row['accuracy'])} of held-out rows "
        f"are still named rightly: by how columns go together, {percent(max(_apart(row['accuracy']), 0.0))} of the way "
        f"to certainty {bounds(interval)}.",
        value=_apart(float(row["accuracy"])),
        n=test.result_.n_held_out,
        **judged(subject, interval, "joint_drift.told_apart", above_only=True),
        **_COMMON,
    )
