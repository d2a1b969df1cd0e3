"""How the audit talks to a model: whatever it is, it gets its own columns and its answers come back checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import column_kind, missing_column, numbers, plain_label
from aboveboard.core.errors import InputError, ModelError, QueriesSpent
from aboveboard.core.finding import Finding

__all__ = [
    "Answers",
    "FittedModel",
    "ModelSource",
    "Told",
    "class_codes",
    "model_columns",
    "not_asked",
    "sorted_labels",
    "source_of",
]

Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model said about some rows.

    Parameters
    ----------
    prediction : ndarray of shape (n,)
        Class codes, or numbers for regression.
    score : ndarray or None
        Probability of the positive class, shape (n,), for binary tasks; of every class, shape (n, n_classes), for
        multiclass ones; None where the model gives none.
    """

    prediction: np.ndarray
    score: np.ndarray | None


@dataclass(frozen=True, slots=True)
class Told:
    """All that a model which answers at once, such as an endpoint, said about some rows.

    Such a model has ``answers_about(frame, *, task, classes, afresh) -> Told``, and, once it was asked,
    ``gives_scores`` and ``gives_labels``.

    Parameters
    ----------
    labels : ndarray of shape (n,) or None
        Class codes, or finite numbers for regression.
    probabilities : ndarray or None
        As they came: of the positive class, shape (n,), or of every class in the order of their codes, shape
        (n, n_classes).
    """

    labels: np.ndarray | None
    probabilities: np.ndarray | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Where a model that was no Python object comes from: what the report says of it.

    Such a model has it as its attribute ``source_``.

    Parameters
    ----------
    format : str
        ``"skops"``, ``"onnx"``, ``"xgboost"``, ``"endpoint"`` and so on.
    model : str
        The model's own class or kind, such as ``"Pipeline"``.
    name : str
        What was read, without its folder: ``"model.skops"``, ``"scoring:predict"``.
    sha256 : str or None
        Of the file.
    trusted_types : tuple of str
        Types in the file that somebody vouched for.
    versions : dict of str to str
        Packages that ran it, with their versions.
    notes : tuple of str
        What the reader of the report should know, in sentences.
    """

    format: str
    model: str
    name: str
    sha256: str | None = None
    trusted_types: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what stands in the report under ``subject.model_source``."""
        return {
            "format": self.format,
            "name": self.name,
            "sha256": self.sha256,
            "trusted_types": list(self.trusted_types),
            "versions": dict(self.versions),
        }


@dataclass(frozen=True)
class FittedModel:
    """A fitted model and the columns it is given.

    Parameters
    ----------
    model : object
        With ``predict`` and perhaps ``predict_proba``, or a callable that takes a data frame and returns probabilities
        (or numbers, for regression).
    columns : tuple of str
        The columns it is given, in order.
    as_array : bool
        Whether it was fitted on an array without column names.
    task : {"binary", "multiclass", "regression"}
    classes : tuple
        Labels in the order of their codes; for binary tasks (negative, positive).
    threshold : float or None
        Binary tasks: the positive class is predicted where its probability reaches this. None: the model decides.
    afresh : bool
        Whether a model that remembers its answers (an endpoint) is asked again about rows that it knows.
    """

    model: Any
    columns: tuple[str, ...]
    as_array: bool
    task: Task
    classes: tuple[Any, ...]
    threshold: float | None = None
    afresh: bool = False

    @property
    def gives_scores(self) -> bool:
        if self._tells:
            return bool(self.model.gives_scores)
        return hasattr(self.model, "predict_proba") or not hasattr(self.model, "predict")

    @property
    def gives_labels(self) -> bool:
        """Whether the model says itself which class it predicts."""
        return bool(self.model.gives_labels) if self._tells else hasattr(self.model, "predict")

    @property
    def _tells(self) -> bool:
        return hasattr(self.model, "answers_about")

    def answer(self, X: pd.DataFrame) -> Answers:
        """Ask the model about the rows of `X`.

        Raises
        ------
        ModelError
            When it raises, or when its answer has the wrong shape, is not finite, or names an unknown class.
        QueriesSpent
            When it may not be asked any more.
        """
        given = self.given(X)
        if self._tells:
            return self._told(given)
        if self.task == "regression":
            asked = self.model.predict if hasattr(self.model, "predict") else self.model
            return Answers(self._column(self._ask(asked, given), len(X)), None)
        score = self._probabilities(given, len(X)) if self.gives_scores else None
        if self.task == "binary" and score is not None and self.threshold is not None:
            return Answers((score >= self.threshold).astype(np.int64), score)
        if not hasattr(self.model, "predict"):
            return Answers(self._most_likely(score), score)
        labels = np.asarray(self._ask(self.model.predict, given))
        if labels.shape == (len(X), 1):
            labels = labels[:, 0]
        if labels.shape != (len(X),):
            raise ModelError(f"the model gave labels of shape {labels.shape} for {len(X)} rows")
        codes = class_codes(labels, self.classes)
        if (codes < 0).any():
            unknown = plain_label(labels[np.flatnonzero(codes < 0)[0]])
            raise ModelError(f"the model predicted the class {unknown!r}, which is not among its classes")
        return Answers(codes, score)

    def scores(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the scores that `answer` gives, without asking for labels too.

        Raises
        ------
        ModelError, QueriesSpent
            As for `answer`.
        """
        if self.task == "regression" or not self.gives_scores:
            return None
        return self.answer(X).score if self._tells else self._probabilities(self.given(X), len(X))

    def raw_probabilities(self, X: pd.DataFrame) -> np.ndarray:
        """Return the model's probabilities as they come, shape (n, n_classes), columns in the order of its classes_."""
        if self._tells:
            return np.asarray(self._tell(self.given(X)).probabilities, dtype="float64")
        asked = self.model.predict_proba if hasattr(self.model, "predict_proba") else self.model
        return np.asarray(self._ask(asked, self.given(X)), dtype="float64")

    def _tell(self, given: Any) -> Told:
        told: Told = self.model.answers_about(given, task=self.task, classes=self.classes, afresh=self.afresh)
        return told

    def _told(self, given: Any) -> Answers:
        told = self._tell(given)
        if told.probabilities is None:
            assert told.labels is not None
            return Answers(told.labels, None)
        score = np.clip(told.probabilities, 0.0, 1.0)
        if self.task == "binary":
            score = score[:, 1] if score.ndim == 2 else score
            if self.threshold is not None:
                return Answers((score >= self.threshold).astype(np.int64), score)
        return Answers(self._most_likely(score) if told.labels is None else told.labels, score)

    def given(self, X: pd.DataFrame) -> Any:
        """Return the rows as the model takes them: its columns, as a frame or as an array."""
        frame = X.loc[:, list(self.columns)]
        if not self.as_array:
            return frame
        plain = all(isinstance(dtype, np.dtype) for dtype in frame.dtypes)
        if plain or any(column_kind(frame[name]) not in ("number", "boolean") for name in frame.columns):
            return frame.to_numpy()
        return np.column_stack([numbers(frame[name]) for name in frame.columns])

    def _ask(self, question: Any, given: Any) -> Any:
        try:
            return question(given)
        except (ModelError, InputError):  # a model in another process, or behind an address, says itself what failed
            raise
        except MemoryError as error:
            raise ModelError("the model ran out of memory") from error
        except Exception as error:
            raise ModelError(f"the model raised {type(error).__name__}: {_first_line(error)}") from error

    def _column(self, answer: Any, n: int) -> np.ndarray:
        try:
            values = np.asarray(answer, dtype="float64")
        except (TypeError, ValueError) as error:
            raise ModelError(f"the model's answer is not made of numbers: {_first_line(error)}") from error
        if values.shape == (n, 1):
            values = values[:, 0]
        if values.shape != (n,):
            raise ModelError(f"the model gave an answer of shape {values.shape} for {n} rows")
        return _finite(values)

    def _probabilities(self, given: Any, n: int) -> np.ndarray:
        asked = self.model.predict_proba if hasattr(self.model, "predict_proba") else self.model
        try:
            raw = np.asarray(self._ask(asked, given), dtype="float64")
        except (TypeError, ValueError) as error:
            raise ModelError(f"the model's probabilities are not numbers: {_first_line(error)}") from error
        if self.task == "binary" and raw.shape in ((n,), (n, 1)):
            return np.clip(_finite(raw.reshape(n)), 0.0, 1.0)
        if raw.shape != (n, len(self.classes)):
            raise ModelError(
                f"the model gave probabilities of shape {raw.shape} for {n} rows and {len(self.classes)} classes"
            )
        own = getattr(self.model, "classes_", None)
        columns = sorted_labels(self.classes) if own is None else own
        raw = raw[:, np.argsort(class_codes(columns, self.classes))]
        clipped: np.ndarray = np.clip(_finite(raw), 0.0, 1.0)
        return clipped[:, 1] if self.task == "binary" else clipped

    def _most_likely(self, score: np.ndarray | None) -> np.ndarray:
        if score is None:
            raise ModelError("the model gives neither labels nor probabilities")
        return (score >= 0.5).astype(np.int64) if self.task == "binary" else score.argmax(axis=1)


def source_of(model: Any) -> ModelSource | None:
    """Return where a model comes from, None for an object that was given as it is."""
    source = getattr(model, "source_", None)
    return source if isinstance(source, ModelSource) else None


def class_codes(labels: Any, classes: Sequence[Any]) -> np.ndarray:
    """Return the position of each label among `classes`, -1 where it is none of them; 1, 1.0 and True are one label."""
    position = {_native(label): i for i, label in enumerate(classes)}
    series = labels if isinstance(labels, pd.Series) else pd.Series(np.asarray(labels, dtype=_dtype_of(labels)))
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    table = np.array([*(position.get(_native(value), -1) for value in uniques), -1], dtype=np.int64)
    return table[codes]


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Return labels in their natural order; labels of different types by type, then text."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda value: (type(value).__name__, str(value)))


def model_columns(model: Any, candidates: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the columns to give to `model`, and whether it wants them as an array without names.

    Raises
    ------
    InputError
        When it was fitted on columns that are not there, or on another number of them.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        wanted = [str(name) for name in names]
        for name in wanted:
            if name not in candidates:
                raise missing_column(name, list(candidates), "model, which was fitted on it")
        return tuple(wanted), False
    expected = getattr(model, "n_features_in_", None)
    if expected is not None and expected != len(candidates):
        raise InputError(
            f"the model was fitted on {expected} columns without names and the data have {len(candidates)} left for it",
            expected="as many",
            remedy="Leave out the columns that are no features with drop (--drop)",
        )
    return tuple(candidates), expected is not None


def not_asked(stop: QueriesSpent, *, left: Sequence[str] = (), **common: Any) -> Finding:
    """Return what stands in the report instead of findings for which the model could not be asked any more.

    Parameters
    ----------
    left : sequence of str
        What was left out, where it is not the whole check.
    """
    out = f" Left out: {'; '.join(left)}." if left else ""
    return Finding(statement="The model was not asked.", status="skipped", reason=f"{stop}{out}", **common)


def _finite(values: np.ndarray) -> np.ndarray:
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise ModelError(f"the model gave {bad:,} answers that are not finite")
    return values


def _dtype_of(labels: Any) -> Any:
    """Return object for a Python sequence: NumPy would turn mixed labels (1, "a") into text."""
    return object if isinstance(labels, list | tuple) else None


def _native(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:300]
