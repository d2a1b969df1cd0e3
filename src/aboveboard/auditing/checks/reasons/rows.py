"""Why the model answered one row as it did, in a sentence: for whoever may see that row, and for no report."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from aboveboard.auditing.checks.reasons.effects import answering, features
from aboveboard.auditing.subject import Subject
from aboveboard.core.errors import InputError
from aboveboard.explanation import GEFA, TabularMasker

__all__ = ["refuse_missing_rows", "row_reasons"]

_BACKGROUND: Final = 20
_PER_COLUMN: Final = 10
_MOST_COALITIONS: Final = 2_000


def row_reasons(subject: Subject, rows: Sequence[int], *, random_state: int) -> list[str]:
    """Return a sentence for each row: what the answer is, which columns moved it most, and how far off that may be.

    Parameters
    ----------
    subject : Subject
        With a model.
    rows : sequence of int
        Counted from 1.
    random_state : int
        Of the coalitions and of the 20 other rows that absent columns are taken from.

    Raises
    ------
    InputError
        For rows that are not there.
    ModelError, QueriesSpent
        As the model does.
    """
    refuse_missing_rows(rows, len(subject))
    X = features(subject)
    if X.shape[1] < 2:
        raise InputError("the model has a single column", expected="two or more to share the answer among")
    rng = np.random.default_rng(random_state)
    others = np.setdiff1d(np.arange(len(X)), np.asarray(rows) - 1)
    background = X.iloc[rng.choice(others, min(_BACKGROUND, len(others)), replace=False)]
    queries = min(_PER_COLUMN * X.shape[1] // 2 * 2, _MOST_COALITIONS)
    explainer = GEFA(answering(subject), TabularMasker(background), n_queries=queries, random_state=random_state)
    said = []
    for row in rows:
        attribution = explainer.explain(X.iloc[[row - 1]])
        said.append(f"Row {row}: {attribution.sentence(_outcome(subject, attribution.target), top=5)}")
    return said


def refuse_missing_rows(rows: Sequence[int], available: int) -> None:
    """Raise where a row is not there, or where no others are left to compare with."""
    for row in rows:
        if not 1 <= row <= available:
            raise InputError(f"row {row} is to be explained", expected=f"1 to {available:,}, the rows of the data")
    if len(set(rows)) >= available:
        raise InputError("all rows are to be explained", expected="fewer, so that there are others to compare with")


def _outcome(subject: Subject, target: int | None) -> str:
    if subject.task == "regression":
        return f"the prediction of {subject.target}"
    label = subject.positive if target is None else subject.class_names[target]
    return f"the answer {label!r} (1) or another (0)" if subject.score is None else f"the probability of {label!r}"
