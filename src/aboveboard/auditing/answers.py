"""What the target and the predictions are: the task, the classes, and answers as codes, scores or numbers."""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import column_kind, numbers, plain_label
from aboveboard.auditing.model import class_codes, sorted_labels, source_of
from aboveboard.core.errors import InputError

__all__ = [
    "Observed",
    "OutsideError",
    "PredictionType",
    "Task",
    "finite_numbers",
    "given_answers",
    "refuse_unfit",
    "settled_target",
    "settled_task",
]

Task = Literal["binary", "multiclass", "regression"]
PredictionType = Literal["score", "label"]

_POSITIVE_NAMES: Final = frozenset({"1", "true", "yes", "y", "positive", "pos", ">50k", "good", "approved", "success"})
_MAX_CLASSES: Final = 100
_MAX_WHOLE_CLASSES: Final = 20
_SUM_TOLERANCE: Final = 1e-3


class OutsideError(InputError):
    """Scores lie outside [0, 1]."""


class Observed:
    """What was seen of the target: its values here, in training, and in predictions that are labels."""

    def __init__(
        self, target: "pd.Series[Any]", train: "pd.Series[Any] | None", predicted: Any, prediction_type: str | None
    ) -> None:
        is_missing = np.isnan(numbers(target)) if column_kind(target) == "number" else target.isna().to_numpy()
        missing = int(is_missing.sum())
        if missing:
            raise InputError(
                f"the target {target.name!r} is missing in {missing:,} of {len(target):,} rows",
                expected="a value in every row",
                remedy="Leave those rows out, and say so where you publish the audit",
            )
        if len(target.unique()) == 1:
            only = plain_label(target.iloc[0])
            raise InputError(f"the target {target.name!r} is {only!r} in every row", expected="at least two values")
        self.target = target
        self.train = train
        self.predicted = predicted
        self.prediction_type = prediction_type

    @property
    def name(self) -> str:
        return repr(self.target.name) if self.target.name is not None else ""

    def labels(self) -> dict[Any, None]:
        """Return every label, in order of appearance; 1, 1.0 and True are one."""
        found = _distinct(self.target)
        if self.train is not None:
            found |= _distinct(self.train)
        if self._predicts_labels():
            predicted = _distinct(self.predicted)
            if predicted.keys() & found.keys():  # else they are another kind of answer, refused later
                found |= predicted
        if isinstance(self.predicted, pd.DataFrame) and self.predicted.shape[1] > len(found):
            found |= dict.fromkeys(_labels_of_columns([str(c) for c in self.predicted.columns], list(found)))
        return found

    def _predicts_labels(self) -> bool:
        """Whether the predictions may be labels: words, or whole numbers as the target's are."""
        if not isinstance(self.predicted, pd.Series) or self.prediction_type == "score":
            return False
        if column_kind(self.predicted) != "number":
            return True
        return column_kind(self.target) in ("number", "boolean") and _is_whole_column(self.predicted)

    def may_be_numbers(self) -> bool:
        """Whether predictions are numbers that no class could be, such as 3.7 for a count."""
        return (
            isinstance(self.predicted, pd.Series)
            and self.prediction_type is None
            and column_kind(self.predicted) == "number"
            and not _is_whole_column(self.predicted)
        )


def _distinct(series: "pd.Series[Any]") -> dict[Any, None]:
    values = series.dropna().unique()
    return dict.fromkeys(value.item() if hasattr(value, "item") else value for value in values)


def _is_whole_column(series: "pd.Series[Any]") -> bool:
    values = numbers(series)
    values = values[np.isfinite(values)]
    return bool((values == np.floor(values)).all())


def _labels_of_columns(columns: list[str], labels: list[Any]) -> list[Any]:
    """Return the label that each score column is named for, where the columns of the known labels tell the prefix."""
    names = {plain_label(label): label for label in labels}
    prefixes = {column.removesuffix(name) for column in columns for name in names if column.endswith(name)}
    for prefix in sorted(prefixes, key=len):
        ends = [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]
        if len(ends) == len(columns) and set(names) <= set(ends):
            kind = type(labels[0])
            return [names[end] if end in names else _as_kind(end, kind) for end in ends]
    raise InputError(
        f"{len(columns)} score columns were given and the target has {len(labels)} classes",
        expected="one column per class, named for it where the data lack a class",
        remedy="Call them like p_<class>, for example " + ", ".join(f"p_{name}" for name in list(names)[:3]),
    )


def _as_kind(text: str, kind: type) -> Any:
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def settled_task(task: str, observed: Observed, model: Any, notes: list[str]) -> Task:
    if task == "regression":
        return "regression"
    if task != "auto":
        distinct = len(observed.labels())
        if task == "binary" and distinct > 2:
            raise InputError(f"the target has {distinct} values", expected="two for a binary task")
        if task == "multiclass" and distinct > _MAX_CLASSES:
            raise InputError(f"the target has {distinct:,} values", expected=f"at most {_MAX_CLASSES} classes")
        return task  # type: ignore[return-value]
    found = _guessed_task(observed, model)
    distinct = int(observed.target.nunique())
    notes.append(f"The target has {distinct:,} distinct values and is read as a {found} task (task, --task).")
    return found


def _guessed_task(observed: Observed, model: Any) -> Task:
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return "binary" if len(classes) == 2 else "multiclass"
    if _tagged_regressor(model):
        return "regression"
    target = observed.target
    if column_kind(target) == "number":
        whole = _is_whole_column(target) and (
            observed.train is None or column_kind(observed.train) != "number" or _is_whole_column(observed.train)
        )
        if target.nunique() > _MAX_WHOLE_CLASSES or (observed.may_be_numbers() and target.nunique() > 2):
            return "regression"
        distinct = len(observed.labels())
        if distinct == 2:
            return "binary"
        return "multiclass" if whole and distinct <= _MAX_WHOLE_CLASSES else "regression"
    distinct = len(observed.labels())
    if distinct > _MAX_CLASSES:
        raise InputError(
            f"the target {observed.name} has {distinct:,} different labels",
            expected=f"at most {_MAX_CLASSES} classes, or numbers",
        )
    return "binary" if distinct == 2 else "multiclass"


def _tagged_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return model is not None and bool(is_regressor(model))
    except (AttributeError, TypeError):
        return False


def refuse_unfit(model: Any, task: Task) -> None:
    if not hasattr(model, "predict") and not hasattr(model, "answers_about") and not callable(model):
        raise InputError(
            f"the model is a {type(model).__name__} without predict", expected="a fitted estimator or a callable"
        )
    if task != "regression" and _tagged_regressor(model):
        raise InputError(f"the model is a regressor and the task is {task}", expected="a classifier")


def settled_target(
    observed: Observed, task: Task, model: Any, positive: Any, notes: list[str]
) -> tuple[tuple[Any, ...], np.ndarray]:
    """Return the classes in the order of their codes, and the target as codes (or numbers)."""
    target = observed.target
    if task == "regression":
        if positive is not None:
            raise InputError("a positive label was given for a regression task")
        return (), finite_numbers(target, f"the target {observed.name}")
    own = getattr(model, "classes_", None)
    if own is None:
        classes = sorted_labels(observed.labels())
    else:
        classes = [value.item() if hasattr(value, "item") else value for value in own]
    codes = class_codes(target, classes)
    if (codes < 0).any():
        unknown = plain_label(target.iloc[int(np.flatnonzero(codes < 0)[0])])
        raise InputError(
            f"the target {observed.name} has the value {unknown!r}, which "
            + ("is no label" if own is None else "the model does not know"),
            expected=f"one of {', '.join(repr(plain_label(v)) for v in classes)}",
            remedy="If these are codes, name their labels in order: classes=[...], --model-classes"
            if source_of(model) is not None and classes == list(range(len(classes)))
            else "",
        )
    if task == "binary":
        if len(classes) != 2:
            shown = ", ".join(repr(plain_label(v)) for v in classes)
            raise InputError(f"there are {len(classes)} classes ({shown})", expected="two for a binary task")
        classes = _positive_last(classes, positive, notes)
        codes = class_codes(target, classes)
    elif positive is not None:
        raise InputError("a positive label was given for a multiclass task")
    lacking = [plain_label(label) for i, label in enumerate(classes) if not (codes == i).any()]
    if lacking:
        notes.append(f"The data have no row of the class {', '.join(lacking)}.")
    return tuple(classes), codes


def _positive_last(classes: list[Any], positive: Any, notes: list[str]) -> list[Any]:
    names = [plain_label(value) for value in classes]
    if positive is not None:
        if plain_label(positive) not in names:
            raise InputError(f"the positive label {positive!r} is no class", expected=" or ".join(map(repr, names)))
        chosen = names.index(plain_label(positive))
    else:
        likely = [i for i, name in enumerate(names) if name.strip().rstrip(".").casefold() in _POSITIVE_NAMES]
        chosen = likely[0] if len(likely) == 1 else 1
        notes.append(f"{names[chosen]!r} is read as the positive class (positive, --positive).")
    return [classes[1 - chosen], classes[chosen]]


def given_answers(
    predicted: Any,
    prediction_type: str | None,
    task: Task,
    classes: tuple[Any, ...],
    threshold: float | None,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray | None, float | None]:
    """Return predictions as codes or numbers, scores where there are any, and the threshold in force."""
    if task == "regression":
        if isinstance(predicted, pd.DataFrame):
            raise InputError(
                f"{predicted.shape[1]} prediction columns were given", expected="one for a regression task"
            )
        return finite_numbers(predicted, "the predictions"), None, None
    if isinstance(predicted, pd.DataFrame):
        if prediction_type == "label":
            raise InputError(f"{predicted.shape[1]} columns of labels were given", expected="one")
        scores = _class_scores(predicted, classes, notes)
        if task == "multiclass":
            return scores.argmax(axis=1), scores, None
        return _cut_scores(scores[:, 1], threshold, notes)
    if predicted.isna().any():
        raise InputError(
            f"the predictions are missing in {int(predicted.isna().sum()):,} rows",
            expected="a prediction in every row",
            remedy="Leave those rows out, and say so where you publish the audit",
        )
    kind = prediction_type or _guessed_type(predicted, classes, task, notes)
    if kind == "label":
        codes = class_codes(predicted.to_numpy(), classes)
        if (codes < 0).any():
            unknown = plain_label(predicted.iloc[int(np.flatnonzero(codes < 0)[0])])
            raise InputError(
                f"the predictions have the value {unknown!r}, which is no class of the target",
                expected=", ".join(repr(plain_label(value)) for value in classes),
                remedy="Probabilities need one column per class"
                if task == "multiclass"
                else "If they are probabilities, say prediction_type='score' (--prediction-type score)",
            )
        if threshold is not None:
            raise InputError("a threshold was given with predictions that are labels", expected="scores")
        return codes, None, None
    if task == "multiclass":
        raise InputError("one column of scores was given for several classes", expected="one column per class")
    return _cut_scores(_unit_interval(finite_numbers(predicted, "the scores")), threshold, notes)


def _cut_scores(score: np.ndarray, threshold: float | None, notes: list[str]) -> tuple[np.ndarray, np.ndarray, float]:
    cut = 0.5 if threshold is None else threshold
    if threshold is None:
        notes.append("The positive class is predicted where the score is at least 0.5 (threshold, --threshold).")
    return (score >= cut).astype(np.int64), score, cut


def _class_scores(frame: pd.DataFrame, classes: tuple[Any, ...], notes: list[str]) -> np.ndarray:
    """Return the scores with one column per class, in the order of the classes."""
    names = [plain_label(value) for value in classes]
    if frame.shape[1] != len(names):
        raise InputError(
            f"{frame.shape[1]} score columns were given for {len(names)} classes", expected="one per class"
        )
    order = _column_order([str(column) for column in frame.columns], names)
    if order is None:
        natural = sorted_labels(classes)
        order = [natural.index(label) for label in classes]
        columns = ", ".join(f"{frame.columns[order[i]]} = {name}" for i, name in enumerate(names))
        notes.append(f"The score columns do not name the classes and are read in order: {columns}.")
    scores = np.column_stack([_unit_interval(finite_numbers(frame.iloc[:, i], "the scores")) for i in order])
    off = np.abs(scores.sum(axis=1) - 1.0)
    if off.max() > _SUM_TOLERANCE:
        raise InputError(
            f"the scores of {int((off > _SUM_TOLERANCE).sum()):,} rows do not sum to 1",
            expected="the probabilities of all classes to sum to 1 in every row",
        )
    return scores


def _column_order(columns: list[str], names: list[str]) -> list[int] | None:
    """Return for each class the position of the column that is called like it, or ends in ``_<class>``."""
    matches: list[Callable[[str, str], bool]] = [
        lambda column, name: column == name,
        lambda column, name: column.endswith(f"_{name}"),
    ]
    for match in matches:
        found = [[i for i, column in enumerate(columns) if match(column, name)] for name in names]
        if all(len(hits) == 1 for hits in found):
            return [hits[0] for hits in found]
    return None


def _guessed_type(predicted: "pd.Series[Any]", classes: tuple[Any, ...], task: Task, notes: list[str]) -> str:
    labels = bool((class_codes(predicted.unique(), classes) >= 0).all())
    kind = "label" if labels or task == "multiclass" or column_kind(predicted) != "number" else "score"
    notes.append(f"The predictions are read as {kind}s (prediction_type, --prediction-type).")
    return kind


def _unit_interval(values: np.ndarray) -> np.ndarray:
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise OutsideError(
            f"{int(outside.sum()):,} scores lie outside [0, 1] (from {values.min():.4g} to {values.max():.4g})",
            expected="probabilities",
            remedy="Turn log-odds into probabilities first, or give labels",
        )
    return values


def finite_numbers(series: "pd.Series[Any]", what: str) -> np.ndarray:
    try:
        values = numbers(series)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} hold values that are not numbers ({str(error)[:80]})", expected="numbers") from error
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise InputError(f"{what} have {bad:,} missing or infinite values", expected="a finite number in every row")
    return values
