"""The subject of an audit: a model or its predictions, with the data, read once and refused early.

Everything a check may look at is here, as arrays with codes; nothing that a user passed in reaches a check unread.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from aboveboard.auditing.answers import (
    Observed,
    PredictionType,
    Task,
    finite_numbers,
    given_answers,
    refuse_unfit,
    settled_target,
    settled_task,
)
from aboveboard.auditing.columns import value_hashes
from aboveboard.auditing.estimates import count_text
from aboveboard.auditing.frames import (
    MISSING,
    column_kind,
    missing_column,
    numbers,
    plain_label,
    recoded_groups,
    to_frame,
    to_series,
)
from aboveboard.auditing.given_columns import (
    GivenColumns,
    given_predictions,
    is_number,
    named_in,
    sensitive_columns,
)
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.model import FittedModel, class_codes, model_columns, source_of
from aboveboard.auditing.other_model import OtherModel, ask_other, read_other, refuse_both, refuse_same_column
from aboveboard.auditing.reference_data import ReferenceData, Roles, grouped_alike, lined_up, read_reference
from aboveboard.auditing.suites import CheckSpec
from aboveboard.auditing.summaries import SAMPLE, Units, drawn_positions, sample_positions
from aboveboard.core.errors import InputError

__all__ = [
    "Subject",
    "Training",
    "make_subject",
    "part_subject",
    "refuse_cell_and_jobs",
]


_LACKING: Final = {
    "sensitive": "No sensitive column was named (sensitive_features, --sensitive).",
    "score": "The predictions are labels, and this needs scores.",
    "model": "Predictions were given, and this needs the model itself.",
    "train": "No training data were given (train, --train).",
    "reference": "No older data to compare with were given (reference, --reference).",
    "reference predictions": "The reference data have no predictions.",
    "reference labels": "The reference data have no labels.",
    "other model": "No other model was given to compare with (compare, --compare; compare_predictions).",
}


@dataclass(frozen=True, slots=True)
class Training:
    """The rows that the model was trained on: the same feature columns, and the target's codes.

    Parameters
    ----------
    X : DataFrame of shape (m, d)
    y : ndarray of shape (m,)
    sensitive : DataFrame of shape (m, s)
        The sensitive columns that the training table has under the same names, with the groups of the audited rows
        first, then those that these lack.
    """

    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes
    ----------
    X : DataFrame of shape (n, d)
        The features only, in the order in which the model gets them.
    y : ndarray of shape (n,)
        Class codes (binary: 1 is the positive class), or float64 for regression. Never missing.
    task : {"binary", "multiclass", "regression"}
    classes : tuple
        The labels in the order of their codes; empty for regression.
    target : str
    prediction : ndarray of shape (n,)
        Class codes, or float64 for regression.
    score : ndarray or None
        Probabilities in [0, 1]: of the positive class, shape (n,); multiclass: shape (n, n_classes).
    sensitive : DataFrame of shape (n, s)
        Categorical columns of group names; missing values are the group "(missing)". May have no columns.
    weight : ndarray of shape (n,) or None
        Not negative, not all zero.
    cluster : ndarray of shape (n,) or None
        Whole numbers; rows of one number belong together, and intervals resample clusters. A hash of the cluster's
        name, so that a cluster has the same number in every part of the data.
    ids : Series or None
        Record ids; never shown.
    model : FittedModel or None
        None where predictions were given.
    train : Training or None
    reference : ReferenceData or None
        Older rows to compare with.
    other : OtherModel or None
        What another model says of these rows, for the same decisions.
    threshold : float or None
    reference_groups : dict of str to str
        Sensitive column to the name of the group that the others are compared with.
    limits : Limits
    min_cell : int
        No figure may be shown that describes fewer people than this.
    n_jobs : int or None
    notes : tuple of str
        What the reader should know about how the data were read.
    offset : int
        Position of the first row, where the subject is a part of a larger one.
    """

    X: pd.DataFrame
    y: np.ndarray
    task: Task
    classes: tuple[Any, ...]
    target: str
    prediction: np.ndarray
    score: np.ndarray | None
    sensitive: pd.DataFrame
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None
    ids: "pd.Series[Any] | None" = None
    model: FittedModel | None = None
    train: Training | None = None
    reference: ReferenceData | None = None
    other: OtherModel | None = None
    threshold: float | None = None
    reference_groups: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    min_cell: int = 10
    n_jobs: int | None = None
    notes: tuple[str, ...] = ()
    offset: int = 0

    def __len__(self) -> int:
        return len(self.y)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(plain_label(label) for label in self.classes)

    @property
    def positive(self) -> str:
        """The positive label as text; empty where the task is not binary."""
        return self.class_names[1] if self.task == "binary" else ""

    @property
    def weights(self) -> np.ndarray:
        """The weights, all one where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What each feature column holds: number, boolean, category, datetime or text."""
        return {str(name): column_kind(self.X[name]) for name in self.X.columns}

    @cached_property
    def row_sample(self) -> "Subject":
        """At most 200,000 rows, drawn at random whatever the seed; all of them where there are no more."""
        return self.take(sample_positions(len(self))) if len(self) > SAMPLE else self

    @cached_property
    def units(self) -> Units:
        """What was drawn from the population: rows, or clusters of rows."""
        return Units.of(len(self), self.cluster)

    @cached_property
    def group_rows(self) -> dict[str, np.ndarray]:
        """How many rows each group of each sensitive column has."""
        return {
            str(name): np.bincount(self.sensitive[name].cat.codes, minlength=len(self.sensitive[name].cat.categories))
            for name in self.sensitive.columns
        }

    def group_notes(self) -> list[str]:
        """Say what the reader should know about the groups; counts below `min_cell` are not told."""
        notes = []
        for name, rows in self.group_rows.items():
            counts = {str(g): int(n) for g, n in zip(self.sensitive[name].cat.categories, rows, strict=True) if n}
            missing = [group for group in counts if group.startswith(MISSING)]
            if missing:
                shown = count_text(counts[missing[-1]], self.min_cell)
                notes.append(f"{name} is missing in {shown}, which are a group of their own: {missing[-1]}.")
            small = [group for group, count in counts.items() if count < self.min_cell]
            if small:
                shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
                notes.append(f"{name}: too few rows (fewer than {self.min_cell}) to say anything about {shown}.")
            if len(counts) == 1:
                notes.append(f"{name} has a single group, {next(iter(counts))}, so nothing can be compared by it.")
        return notes

    def take(self, rows: np.ndarray) -> "Subject":
        """Return the subject with only `rows` (positions)."""
        picked: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("y", "prediction", "score", "weight", "cluster")
        }
        frames = {name: getattr(self, name).iloc[rows] for name in ("X", "sensitive")}
        ids = None if self.ids is None else self.ids.iloc[rows]
        other = None if self.other is None else self.other.take(rows)
        return replace(self, ids=ids, other=other, **picked, **frames)

    def without_features(self) -> "Subject":
        """Return the subject with no feature column."""
        return replace(self, X=self.X.iloc[:, :0])

    def unmodelled(self) -> "Subject":
        """Return the subject without the model and the other tables, which are not its rows."""
        return replace(self, model=None, train=None, reference=None)

    def sample(self, n: int, random_state: int) -> "Subject":
        """Return `n` rows drawn without replacement, in their old order; all of them where there are no more.

        Of the reference, as many are drawn.
        """
        reference = None if self.reference is None else self.reference.sample(n, random_state)
        if n >= len(self):
            return self if reference is self.reference else replace(self, reference=reference)
        return replace(self.take(drawn_positions(len(self), n, random_state)), reference=reference)

    def sizes(self, spec: CheckSpec) -> dict[str, int]:
        """Return how many rows a row cap of this check applies to, by what they are."""
        if self.reference is not None and "reference" in spec.needs:
            return {"rows": len(self), "rows of the reference": len(self.reference)}
        return {"rows": len(self)}

    def lacking(self, spec: CheckSpec) -> str:
        """Return why a check does not apply, or an empty text."""
        if self.task not in spec.tasks:
            return f"Not for {self.task} tasks."
        have = {
            "sensitive": self.sensitive.shape[1] > 0,
            "score": self.score is not None,
            "model": self.model is not None,
            "train": self.train is not None,
            "reference": self.reference is not None,
            "reference predictions": self.reference is not None and self.reference.prediction is not None,
            "reference labels": self.reference is not None and self.reference.y is not None,
            "other model": self.other is not None,
        }
        return next((text for need, text in _LACKING.items() if need in spec.needs and not have[need]), "")

    def describe(self) -> dict[str, Any]:
        """Return what was audited, for the report: shapes, names and a fingerprint, never rows."""
        source = None if self.model is None else source_of(self.model.model)
        return {
            "suite": "tabular",
            "task": self.task,
            "target": self.target,
            "classes": list(self.class_names),
            "positive": self.positive,
            "rows": len(self),
            "training_rows": None if self.train is None else len(self.train.y),
            "reference_rows": None if self.reference is None else len(self.reference),
            "model": self._model_name(),
            "model_source": None if source is None else source.to_dict(),
            "other_model": None if self.other is None else self.other.describe(),
            "prediction_type": "value" if self.task == "regression" else "label" if self.score is None else "score",
            "threshold": self.threshold,
            "features": [{"name": name, "kind": kind} for name, kind in self.kinds.items()],
            "sensitive": [
                {"name": str(name), "groups": [str(group) for group in self.sensitive[name].cat.categories]}
                for name in self.sensitive.columns
            ],
            "reference_groups": dict(self.reference_groups),
            "weighted": self.weight is not None,
            "clusters": None if self.cluster is None else len(np.unique(self.cluster)),
            "min_cell": self.min_cell,
            "data_sha256": self._fingerprint(),
        }

    def _model_name(self) -> str:
        if self.model is None:
            return "predictions given"
        source = source_of(self.model.model)
        return type(self.model.model).__name__ if source is None else source.model

    def _fingerprint(self) -> str:
        """Return the sha256 of features, target, predictions and groups, whatever container they came in."""
        digest = hashlib.sha256()
        for frame in (self.X, self.sensitive):
            for name in frame.columns:
                digest.update(str(name).encode("utf-8", "surrogatepass") + b"\x00" + _column_hash(frame[name]))
        for values in (self.y, self.prediction, self.score):
            if values is not None:
                digest.update(np.ascontiguousarray(values, dtype="float64").tobytes())
        return digest.hexdigest()


def make_subject(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    train: Any = None,
    reference: Any = None,
    predictions: Any = None,
    compare: Any = None,
    compare_predictions: Any = None,
    prediction_type: PredictionType | None = None,
    task: Literal["auto"] | Task = "auto",
    positive: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
    clusters: Any = None,
    ids: Any = None,
    drop: Sequence[str] = (),
    reference_group: Mapping[str, str] | None = None,
    limits: Mapping[str, float] | None = None,
    min_cell: int = 10,
    n_jobs: int | None = None,
) -> Subject:
    """Read a model and its data into a `Subject`; parameters as for `aboveboard.audit`.

    Raises
    ------
    InputError
        Before any work, when something cannot be used as given.
    ModelError
        When the model fails on the data.
    """
    if (model is None) == (predictions is None):
        got = "neither a model nor predictions were" if model is None else "both a model and predictions were"
        raise InputError(f"{got} given", expected="one of the two")
    refuse_both(compare, compare_predictions)
    _refuse_options(task, prediction_type, threshold, min_cell, n_jobs)
    in_force = Limits(limits)
    frame = to_frame(X, "X")
    _refuse_few_rows(frame)
    notes: list[str] = []
    refuse_same_column(named_in(predictions, frame), named_in(compare_predictions, frame))
    table = GivenColumns(frame, notes)

    target = table.series(y, "target")
    weight = _weights(table.series(sample_weight, "weights"))
    cluster_column = table.series(clusters, "cluster")
    id_column = table.series(ids, "id")
    predicted = given_predictions(predictions, table)
    predicted_by_other = given_predictions(compare_predictions, table, "predictions to compare with")
    sensitive = sensitive_columns(sensitive_features, table)
    dropped = [drop] if isinstance(drop, str) else list(drop)
    for name in dropped:
        table.use(name, "drop")
    train_frame, train_target = _training_tables(train, y)

    observed = Observed(target, train_target, predicted, prediction_type)
    kind = settled_task(task, observed, model, notes)
    classes, codes = settled_target(observed, kind, model, positive, notes)
    if threshold is not None and kind != "binary":
        raise InputError(f"a threshold was given and the task is {kind}", expected="a binary task")
    asked_threshold = threshold
    columns, as_array = model_columns(model, table.left())
    features = frame.loc[:, list(columns)]
    if not columns:
        notes.append("No column is left as a feature, so checks that look at features have nothing to look at.")
    references = _references(reference_group or {}, sensitive)
    training = _training(train_frame, train_target, columns, kind, classes)
    if training is not None and train_frame is not None:
        training = replace(training, sensitive=_training_groups(train_frame, sensitive, table.cuts))
    if model is None:
        fitted = None
        prediction, score, threshold = given_answers(predicted, prediction_type, kind, classes, threshold, notes)
    else:
        refuse_unfit(model, kind)
        source = source_of(model)
        notes.extend(() if source is None else source.notes)
        fitted = FittedModel(model, columns, as_array, kind, classes, threshold)
        answers = fitted.answer(features)
        prediction, score = answers.prediction, answers.score
        if threshold is not None and score is None:
            raise InputError("a threshold was given and the model gives no probabilities")
    other = None
    if compare is not None:
        other = ask_other(compare, frame, table.left(), kind, classes, asked_threshold, notes)
    elif predicted_by_other is not None:
        other = read_other(predicted_by_other, prediction_type, kind, classes, asked_threshold, notes)
    older = None
    if reference is not None:
        roles = Roles(
            names={
                role: named_in(given, frame)
                for role, given in {
                    "target": y, "predictions": predictions, "weight": sample_weight, "cluster": clusters, "id": ids,
                }.items()
            },
            columns=tuple(map(str, frame.columns)),
            features=features,
            drop=tuple(dropped),
            sensitive=sensitive,
            cuts=table.cuts,
            task=kind,
            classes=classes,
            scored=score is not None,
            read_predictions=lambda given: given_answers(given, "score", kind, classes, threshold, [])[:2],
            model=fitted,
        )  # fmt: skip
        older = read_reference(reference, roles, notes)
    cluster, older = lined_up(None if cluster_column is None else _whole_clusters(cluster_column), older)
    return Subject(
        X=features,
        y=codes,
        task=kind,
        classes=classes,
        target=str(target.name) if target.name is not None else "y",
        prediction=prediction,
        score=score,
        sensitive=sensitive,
        weight=weight,
        cluster=cluster,
        ids=id_column,
        model=fitted,
        train=training,
        reference=older,
        other=other,
        threshold=threshold,
        reference_groups=references,
        limits=in_force,
        min_cell=min_cell,
        n_jobs=n_jobs,
        notes=tuple(notes),
    )


def part_subject(
    whole: Subject,
    frame: pd.DataFrame,
    *,
    offset: int,
    predictions: str | Sequence[str] | None,
    edges: Mapping[str, Sequence[float] | None],
    weight: str | None,
    cluster: str | None,
) -> Subject:
    """Return the subject of some rows of a larger table, with everything that was decided about the whole.

    Parameters
    ----------
    whole : Subject
        Its rows are not looked at.
    frame : DataFrame
        With the columns named, and those of the features that are wanted.
    offset : int
        Position of the first row in the whole.
    predictions, weight, cluster : str, or list of str
        Names of columns; predictions are None where the model is asked.
    edges : mapping
        The cut points of the sensitive columns; None where there are none.
    """
    target = frame[whole.target]
    if whole.task == "regression":
        y = finite_numbers(target, f"the target {whole.target!r}")
    else:
        y = class_codes(target, whole.classes)
    features = frame.loc[:, [name for name in whole.X.columns if name in frame.columns]]
    if predictions is None:
        assert whole.model is not None
        answers = whole.model.answer(features)
        prediction, score = answers.prediction, answers.score
    else:
        given = frame[predictions] if isinstance(predictions, str) else frame.loc[:, list(predictions)]
        kind = None if whole.task == "regression" else "label" if whole.score is None else "score"
        prediction, score, _ = given_answers(given, kind, whole.task, whole.classes, whole.threshold, [])
    sensitive = {
        name: recoded_groups(frame[name], whole.sensitive[name].cat.categories, cuts) for name, cuts in edges.items()
    }
    return replace(
        whole,
        X=features,
        y=y,
        prediction=prediction,
        score=score,
        sensitive=pd.DataFrame(sensitive, index=frame.index),
        weight=None if weight is None else finite_numbers(frame[weight], "the weights"),
        cluster=None if cluster is None else value_hashes(frame[cluster]),
        ids=None,
        offset=offset,
    )


def _refuse_options(task: Any, prediction_type: Any, threshold: Any, min_cell: Any, n_jobs: Any) -> None:
    if task not in ("auto", *get_args(Task)):
        raise InputError(f"the task is {task!r}", expected=f"auto, {', '.join(get_args(Task))}")
    if prediction_type not in (None, *get_args(PredictionType)):
        raise InputError(f"the prediction type is {prediction_type!r}", expected="score or label")
    if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
        raise InputError(f"the threshold is {threshold!r}", expected="a number in [0, 1]")
    refuse_cell_and_jobs(min_cell, n_jobs)


def refuse_cell_and_jobs(min_cell: Any, n_jobs: Any) -> None:
    """Refuse a smallest cell or a number of jobs that is none; the options that all suites share."""
    if not _is_whole(min_cell) or min_cell < 1:
        raise InputError(f"the smallest cell is {min_cell!r}", expected="a whole number, 1 or more")
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise InputError(f"the number of jobs is {n_jobs!r}", expected="a whole number other than 0")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _refuse_few_rows(frame: pd.DataFrame) -> None:
    if len(frame) == 0:
        raise InputError("the data have no rows")
    if len(frame) == 1:
        raise InputError("the data have one row", expected="two or more: a rate cannot be told from one row")


def _weights(series: "pd.Series[Any] | None") -> np.ndarray | None:
    if series is None:
        return None
    values = finite_numbers(series, "the weights")
    if (values < 0).any():
        raise InputError(f"{int((values < 0).sum()):,} weights are negative", expected="weights at or above 0")
    if not values.any():
        raise InputError("all weights are zero")
    return values


def _whole_clusters(series: "pd.Series[Any]") -> "pd.Series[Any]":
    if series.isna().any():
        raise InputError(
            f"the cluster column has {int(series.isna().sum()):,} missing values",
            expected="a value in every row",
            remedy="Give rows that belong to nobody else a value of their own",
        )
    if series.nunique() < 2:
        raise InputError("the cluster column has one value only", expected="two clusters or more")
    return series


def _references(given: Mapping[str, str], sensitive: pd.DataFrame) -> dict[str, str]:
    references = {}
    for column, group in given.items():
        if column not in sensitive.columns:
            raise missing_column(column, [str(name) for name in sensitive.columns], "reference group")
        groups = [str(name) for name in sensitive[column].cat.categories]
        name = plain_label(group)
        if name not in groups:
            raise InputError(f"{column!r} has no group {name!r}", expected=", ".join(map(repr, groups)))
        references[column] = name
    return references


def _training_tables(train: Any, y: Any) -> tuple[pd.DataFrame | None, "pd.Series[Any] | None"]:
    """Return the training rows with all their columns, and their target."""
    if train is None:
        return None, None
    if isinstance(train, tuple):
        if len(train) != 2:
            raise InputError(f"train is a tuple of {len(train)}", expected="(X_train, y_train)")
        frame = to_frame(train[0], "the training data")
        if isinstance(train[1], str):
            raise InputError("the training target is a name", expected="one value per row, or train=table")
        target = to_series(train[1], "the training target", index=frame.index)
    else:
        frame = to_frame(train, "the training data")
        if not isinstance(y, str):
            raise InputError("train is a table and y is no column name", expected="train=(X_train, y_train)")
        if y not in frame.columns:
            raise missing_column(y, list(frame.columns), "target of the training data")
        target = frame[y]
    if len(frame) == 0:
        raise InputError("the training data have no rows")
    if target.isna().any():
        raise InputError(f"the training target is missing in {int(target.isna().sum()):,} rows")
    return frame, target


def _training(
    frame: pd.DataFrame | None,
    target: "pd.Series[Any] | None",
    columns: tuple[str, ...],
    task: Task,
    classes: tuple[Any, ...],
) -> Training | None:
    if frame is None or target is None:
        return None
    for name in columns:
        if name not in frame.columns:
            raise missing_column(name, list(frame.columns), "training data (a feature of the model)")
    if task == "regression":
        return Training(frame.loc[:, list(columns)], finite_numbers(target, "the training target"))
    codes = class_codes(target, classes)
    if (codes < 0).any():
        unknown = plain_label(target.iloc[int(np.flatnonzero(codes < 0)[0])])
        raise InputError(
            f"the training target has the value {unknown!r}",
            expected=f"the model's classes: {', '.join(repr(plain_label(v)) for v in classes)}",
        )
    return Training(frame.loc[:, list(columns)], codes)


def _training_groups(
    frame: pd.DataFrame, sensitive: pd.DataFrame, cuts: Mapping[str, Sequence[float] | None]
) -> pd.DataFrame:
    columns: dict[str, pd.Series[Any]] = {}
    for name in map(str, sensitive.columns):
        if name in frame.columns and (cuts.get(name) is None or column_kind(frame[name]) == "number"):
            columns[name] = grouped_alike(frame[name], sensitive[name].cat.categories, cuts.get(name))
    return pd.DataFrame(columns, index=frame.index)


def _column_hash(series: "pd.Series[Any]") -> bytes:
    """Return a digest of a column's values that does not depend on its container."""
    kind = column_kind(series)
    if kind == "number":
        values = numbers(series) + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan  # one NaN among the many there are
        return hashlib.sha256(values.tobytes()).digest()
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    labels = [plain_label(value) for value in uniques]
    order = np.argsort(np.array(labels, dtype=object), kind="stable") if labels else np.array([], dtype=int)
    rank = np.empty(len(labels) + 1, dtype=np.int64)
    rank[order] = np.arange(len(labels))
    rank[-1] = -1
    names = "\x00".join(labels[i] for i in order)
    return hashlib.sha256(names.encode("utf-8", "surrogatepass") + rank[codes].tobytes()).digest()
