"""Why the model answers as it does: which columns move its answers, how stable that is, and whether groups differ.

Some rows are drawn, and the model's answer about each is attributed to its columns by GEFA: absent columns are taken
from other rows. The report holds averages over rows and nothing about any one of them; the reasons of single rows are
printed by ``--show-rows``.

References
----------
Y. Cai, T. Ardoin, G. Wunder, "GEFA", ICML 2025.
"""

import pandas as pd

from aboveboard.auditing.checks.reasons.changes import small_changes_finding
from aboveboard.auditing.checks.reasons.effects import COMMON, explained, rows_asked_about
from aboveboard.auditing.checks.reasons.groups import groups_finding
from aboveboard.auditing.checks.reasons.importance import importance_finding, resampling_finding
from aboveboard.auditing.checks.reasons.sensitive import sensitive_finding
from aboveboard.auditing.model import not_asked
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import Finding

__all__ = ["check", "questions"]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Attribute the answers about some rows to columns, and sum up.

    Parameters
    ----------
    subject : Subject
        With a model. Explained is the probability of the positive class, or of the class that the model predicts, or
        the number; where the model gives labels, whether it gives this one.
    random_state : int
        Of the rows, the rows that absent columns are taken from, the coalitions, and the small changes.
    effort : {"quick", "standard", "full"}
        60, 150 or 1,000 rows, with 6, 8 or 16 coalitions for each column; fewer where there are many columns, or where
        the model is behind an address.

    Returns
    -------
    list of Finding
        ``reasons/importance``, ``reasons/resampling``, ``reasons/small_changes`` where there are numbers to change, and
        for each sensitive column ``reasons/groups/<column>`` and ``reasons/sensitive/<column>``; or one finding that
        says why there are none.

    Notes
    -----
    The model is asked about at most 20,000, 100,000 or 2,000,000 rows or so; an endpoint about 4,000, 10,000 or
    100,000; some more where there are very many columns.
    """
    assert subject.model is not None
    if len(subject.model.columns) < 2:
        return [_silent("The model has a single column: there is nothing to share the answer among.")]
    try:
        effects = explained(subject, effort, random_state)
    except QueriesSpent as stop:
        return [not_asked(stop, id="reasons", **COMMON)]
    except ModelError as error:
        kind = f" ({error.kind})" if error.kind else ""
        return [_silent(f"The model failed on rows that mix the values of two rows{kind}.", failed=True)]
    if effects is None:
        return [_silent("There are fewer than 40 rows, or clusters of rows, to explain.")]
    return [
        importance_finding(subject, effects),
        resampling_finding(effects, random_state),
        *small_changes_finding(subject, effects),
        *(groups_finding(subject, effects, str(name), random_state) for name in subject.sensitive.columns),
        *(sensitive_finding(subject, effects, str(name), random_state) for name in subject.sensitive.columns),
    ]


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of the questions that `check` asks of an endpoint, at most."""
    return rows_asked_about(len(X), X.shape[1], effort)


def _silent(reason: str, *, failed: bool = False) -> Finding:
    return Finding(
        id="reasons",
        statement="Why the model answers as it does was not looked into.",
        status="error" if failed else "not_applicable",
        reason=reason,
        **COMMON,
    )
