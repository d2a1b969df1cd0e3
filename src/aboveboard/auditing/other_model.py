"""Another model for the same decisions, or its predictions: what it says of the audited rows, asked once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from aboveboard.auditing.answers import PredictionType, Task, given_answers, refuse_unfit
from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.model import FittedModel, class_codes, model_columns, source_of
from aboveboard.core.errors import InputError, ModelError

__all__ = ["OtherModel", "ask_other", "of_the_other", "read_other", "refuse_both", "refuse_same_column"]


@dataclass(frozen=True, slots=True)
class OtherModel:
    """What another model says of the audited rows.

    Parameters
    ----------
    name : str
        Its class, or "predictions given".
    source : dict or None
        Where it comes from, as `ModelSource.to_dict` says; None for predictions and for Python objects.
    prediction : ndarray of shape (n,)
        Class codes, or numbers for regression.
    score : ndarray or None
        Probabilities, as those of `Subject`.
    """

    name: str
    source: Mapping[str, Any] | None
    prediction: np.ndarray
    score: np.ndarray | None

    def take(self, rows: np.ndarray) -> "OtherModel":
        """Return it for only `rows` (positions)."""
        score = None if self.score is None else self.score[rows]
        return replace(self, prediction=self.prediction[rows], score=score)

    def describe(self) -> dict[str, Any]:
        """Return what stands in the report under ``subject.other_model``."""
        return {"model": self.name, "source": None if self.source is None else dict(self.source)}


def refuse_both(compare: Any, compare_predictions: Any) -> None:
    """Refuse a model to compare with beside predictions to compare with."""
    if compare is not None and compare_predictions is not None:
        raise InputError(
            "both a model to compare with and predictions to compare with were given",
            expected="one of the two (compare or compare_predictions; --compare or --compare-predictions)",
        )


def refuse_same_column(predictions: str | list[str] | None, compare_predictions: str | list[str] | None) -> None:
    """Refuse a named column that is to be both the predictions and those to compare with."""
    first, second = (
        {named} if isinstance(named, str) else set(named or ()) for named in (predictions, compare_predictions)
    )
    if first & second:
        raise InputError(
            f"the column {sorted(first & second)[0]!r} is given as the predictions and as those to compare with",
            expected="two columns, of two models",
        )


def ask_other(
    model: Any,
    frame: pd.DataFrame,
    candidates: Sequence[str],
    task: Task,
    classes: tuple[Any, ...],
    threshold: float | None,
    notes: list[str],
) -> OtherModel:
    """Ask another model about all rows of `frame`; it gets its own columns of those that are features.

    Raises
    ------
    InputError
        When it does not fit the data or the task; the message says that it is the other model.
    ModelError
        When it fails on the data, likewise.
    """
    with of_the_other():
        refuse_unfit(model, task)
        own = getattr(model, "classes_", None)
        if (
            task != "regression"
            and own is not None
            and (len(own) != len(classes) or (class_codes(list(own), classes) < 0).any())
        ):
            raise InputError(
                f"its classes are {', '.join(repr(plain_label(label)) for label in own)}",
                expected=f"those of the audited one: {', '.join(repr(plain_label(label)) for label in classes)}",
                remedy="If these are codes, name their labels in order: open_model(..., classes=[...])",
            )
        columns, as_array = model_columns(model, candidates)
        fitted = FittedModel(model, columns, as_array, task, classes, threshold)
        answers = fitted.answer(frame.loc[:, list(columns)])
        if threshold is not None and answers.score is None:
            raise InputError("a threshold was given and it gives no probabilities")
    source = source_of(model)
    notes.extend(f"The other model: {note}" for note in (() if source is None else source.notes))
    name = type(model).__name__ if source is None else source.model
    return OtherModel(name, None if source is None else source.to_dict(), answers.prediction, answers.score)


def read_other(
    predicted: Any,
    prediction_type: PredictionType | None,
    task: Task,
    classes: tuple[Any, ...],
    threshold: float | None,
    notes: list[str],
) -> OtherModel:
    """Read predictions of another model, as those of the audited one are read.

    Raises
    ------
    InputError
        When they cannot be used; the message says that they are those of the other model.
    """
    told: list[str] = []
    with of_the_other("compare_predictions, --compare-predictions"):
        prediction, score, _ = given_answers(predicted, prediction_type, task, classes, threshold, told)
    notes.extend(f"The other model: {note}" for note in told)
    return OtherModel("predictions given", None, prediction, score)


@contextmanager
def of_the_other(given_as: str = "compare, --compare") -> Iterator[None]:
    """Let errors say that they are about the other model."""
    about = f"the other model ({given_as})"
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{about}: {error}", kind=error.kind) from error
    except InputError as error:
        raise InputError(f"{about}: {error}") from error
