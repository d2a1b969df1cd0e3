"""The subject of an audit: a model or its predictions, with the data, read once and refused early.

Everything a check may look at is here, as arrays with codes; nothing that a user passed in reaches a check unread.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from aboveboard.auditing.columns import value_hashes
from aboveboard.auditing.estimates import count_text
from aboveboard.auditing.frames import (
    MISSING,
    column_kind,
    group_codes,
    missing_column,
    numbers,
    plain_label,
    quartile_edges,
    recoded_groups,
    to_frame,
    to_series,
)
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.model import FittedModel, class_codes, model_columns, sorted_labels, source_of
from aboveboard.auditing.reference_data import ReferenceData, Roles, lined_up, read_reference
from aboveboard.auditing.suites import CheckSpec
from aboveboard.auditing.summaries import SAMPLE, Units, drawn_positions, sample_positions
from aboveboard.core.errors import InputError

__all__ = [
    "OutsideError",
    "PredictionType",
    "Subject",
    "Task",
    "Training",
    "make_subject",
    "named_columns",
    "part_subject",
    "refuse_cell_and_jobs",
]

Task = Literal["binary", "multiclass", "regression"]
PredictionType = Literal["score", "label"]

_POSITIVE_NAMES: Final = frozenset({"1", "true", "yes", "y", "positive", "pos", ">50k", "good", "approved", "success"})
_MAX_CLASSES: Final = 100
_MAX_WHOLE_CLASSES: Final = 20
_SUM_TOLERANCE: Final = 1e-3
_LACKING: Final = {
    "sensitive": "No sensitive column was named (sensitive_features, --sensitive).",
    "score": "The predictions are labels, and this needs scores.",
    "model": "Predictions were given, and this needs the model itself.",
    "train": "No training data were given (train, --train).",
    "reference": "No older data to compare with were given (reference, --reference).",
    "reference predictions": "The reference data have no predictions.",
    "reference labels": "The reference data have no labels.",
}


class OutsideError(InputError):
    """Scores lie outside [0, 1]."""


@dataclass(frozen=True, slots=True)
class Training:
    """The rows that the model was trained on: the same feature columns, and the target's codes."""

    X: pd.DataFrame
    y: np.ndarray


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
        return replace(self, ids=None if self.ids is None else self.ids.iloc[rows], **picked, **frames)

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
    _refuse_options(task, prediction_type, threshold, min_cell, n_jobs)
    in_force = Limits(limits)
    frame = to_frame(X, "X")
    _refuse_few_rows(frame)
    notes: list[str] = []
    table = _Columns(frame, notes)

    target = table.series(y, "target")
    weight = _weights(table.series(sample_weight, "weights"))
    cluster_column = table.series(clusters, "cluster")
    id_column = table.series(ids, "id")
    predicted = _predictions(predictions, table)
    sensitive = _sensitive(sensitive_features, table)
    dropped = [drop] if isinstance(drop, str) else list(drop)
    for name in dropped:
        table.use(name, "drop")
    train_frame, train_target = _training_tables(train, y)

    observed = _Observed(target, train_target, predicted, prediction_type)
    kind = _task(task, observed, model, notes)
    classes, codes = _target(observed, kind, model, positive, notes)
    if threshold is not None and kind != "binary":
        raise InputError(f"a threshold was given and the task is {kind}", expected="a binary task")
    columns, as_array = model_columns(model, table.left())
    features = frame.loc[:, list(columns)]
    if not columns:
        notes.append("No column is left as a feature, so checks that look at features have nothing to look at.")
    references = _references(reference_group or {}, sensitive)
    training = _training(train_frame, train_target, columns, kind, classes)
    if model is None:
        fitted = None
        prediction, score, threshold = _given(predicted, prediction_type, kind, classes, threshold, notes)
    else:
        _refuse_unfit(model, kind)
        source = source_of(model)
        notes.extend(() if source is None else source.notes)
        fitted = FittedModel(model, columns, as_array, kind, classes, threshold)
        answers = fitted.answer(features)
        prediction, score = answers.prediction, answers.score
        if threshold is not None and score is None:
            raise InputError("a threshold was given and the model gives no probabilities")
    older = None
    if reference is not None:
        roles = Roles(
            names={
                role: _names(given, frame)
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
            read_predictions=lambda given: _given(given, "score", kind, classes, threshold, [])[:2],
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
        threshold=threshold,
        reference_groups=references,
        limits=in_force,
        min_cell=min_cell,
        n_jobs=n_jobs,
        notes=tuple(notes),
    )


def named_columns(given: Any, columns: Sequence[str]) -> dict[str, list[float] | None]:
    """Return the sensitive columns that `given` names, as `make_subject` reads it, with their cut points.

    Raises
    ------
    InputError
        When it does not name columns, or some that are not among `columns`.
    """
    if given is None:
        return {}
    table = _Columns(pd.DataFrame(columns=list(columns)), [])
    if isinstance(given, Mapping):
        pairs = [_with_edges(str(name), edges, table) for name, edges in given.items()]
    else:
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"the sensitive features are a {type(given).__name__}, and the data are in files",
                expected="names of their columns, such as ['sex', 'age:25,40,60']",
            )
        pairs = [_named(name, table) for name in names]
    repeated = [name for name, count in Counter(str(series.name) for series, _ in pairs).items() if count > 1]
    if repeated:
        raise InputError(f"the sensitive column {repeated[0]!r} was named twice")
    return {str(series.name): edges for series, edges in pairs}


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
        y = _numbers(target, f"the target {whole.target!r}")
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
        prediction, score, _ = _given(given, kind, whole.task, whole.classes, whole.threshold, [])
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
        weight=None if weight is None else _numbers(frame[weight], "the weights"),
        cluster=None if cluster is None else value_hashes(frame[cluster]),
        ids=None,
        offset=offset,
    )


class _Columns:
    """The columns of X, and which of them are spoken for."""

    def __init__(self, frame: pd.DataFrame, notes: list[str]) -> None:
        self.frame = frame
        self.notes = notes
        self.cuts: dict[str, list[float] | None] = {}
        self._used: dict[str, str] = {}

    def use(self, name: str, role: str) -> "pd.Series[Any]":
        """Return a column that is no feature from now on."""
        column = self.look(name, role)
        self._used.setdefault(name, role)
        return column

    def look(self, name: str, role: str) -> "pd.Series[Any]":
        if name not in self.frame.columns:
            raise missing_column(name, list(self.frame.columns), role)
        if self._used.get(name) == "target":
            raise InputError(f"{name!r} is the target and cannot be the {role} too")
        return self.frame[name]

    def series(self, given: Any, role: str) -> Any:
        """Return a column by name, which is no feature any more, or the given values lined up with the rows."""
        if given is None:
            if role == "target":
                raise InputError("no target was given", expected="the name of a column, or one value per row")
            return None
        if isinstance(given, str):
            return self.use(given, role)
        return to_series(given, f"the {role}", index=self.frame.index)

    def left(self) -> list[str]:
        return [str(name) for name in self.frame.columns if name not in self._used]


def _refuse_options(task: Any, prediction_type: Any, threshold: Any, min_cell: Any, n_jobs: Any) -> None:
    if task not in ("auto", *get_args(Task)):
        raise InputError(f"the task is {task!r}", expected=f"auto, {', '.join(get_args(Task))}")
    if prediction_type not in (None, *get_args(PredictionType)):
        raise InputError(f"the prediction type is {prediction_type!r}", expected="score or label")
    if threshold is not None and not (_is_number(threshold) and 0 <= threshold <= 1):
        raise InputError(f"the threshold is {threshold!r}", expected="a number in [0, 1]")
    refuse_cell_and_jobs(min_cell, n_jobs)


def refuse_cell_and_jobs(min_cell: Any, n_jobs: Any) -> None:
    """Refuse a smallest cell or a number of jobs that is none; the options that all suites share."""
    if not _is_whole(min_cell) or min_cell < 1:
        raise InputError(f"the smallest cell is {min_cell!r}", expected="a whole number, 1 or more")
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise InputError(f"the number of jobs is {n_jobs!r}", expected="a whole number other than 0")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


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
    values = _numbers(series, "the weights")
    if (values < 0).any():
        raise InputError(f"{int((values < 0).sum()):,} weights are negative", expected="weights at or above 0")
    if not values.any():
        raise InputError("all weights are zero")
    return values


def _numbers(series: "pd.Series[Any]", what: str) -> np.ndarray:
    try:
        values = numbers(series)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} hold values that are not numbers ({str(error)[:80]})", expected="numbers") from error
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise InputError(f"{what} have {bad:,} missing or infinite values", expected="a finite number in every row")
    return values


def _names(given: Any, frame: pd.DataFrame) -> str | list[str] | None:
    """Return the columns that were named; None where values were given."""
    if given is None or isinstance(given, str):
        return given
    named = isinstance(given, Sequence) and all(isinstance(name, str) for name in given) and len(given) < len(frame)
    return [str(name) for name in given] if named and given else None


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


def _sensitive(given: Any, table: _Columns) -> pd.DataFrame:
    """Return the sensitive columns as categoricals; names may carry cut points ("age:25,40")."""
    columns: dict[str, pd.Series[Any]] = {}
    empty = pd.DataFrame(index=table.frame.index)
    if given is None:
        return empty
    pairs: list[tuple[Any, Sequence[float] | None]] = []
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping) and any(name in table.frame.columns for name in given):
        pairs = [_with_edges(str(name), edges, table) for name, edges in given.items()]
    elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given) and len(given) < len(table.frame):
        pairs = [_named(name, table) for name in given]
    elif isinstance(given, pd.Series) or np.ndim(given) == 1:
        series = to_series(given, "the sensitive feature", index=table.frame.index)
        pairs = [(series.rename("group" if series.name is None else str(series.name)), None)]
    else:
        frame = to_frame(given, "sensitive_features")
        pairs = [
            (to_series(frame[name], f"the sensitive column {name!r}", index=table.frame.index), None)
            if isinstance(given, pd.DataFrame)
            else (to_series(frame[name].to_numpy(), f"the sensitive column {name!r}", index=table.frame.index), None)
            for name in frame.columns
        ]
        pairs = [(series.rename(name), edges) for (series, edges), name in zip(pairs, frame.columns, strict=True)]
    for series, edges in pairs:
        name = str(series.name)
        if name in columns:
            raise InputError(f"the sensitive column {name!r} was named twice")
        table.cuts[name] = list(edges) if edges else quartile_edges(series)
        columns[name], note = group_codes(series, edges=edges)
        if note:
            table.notes.append(note)
    return pd.DataFrame(columns, index=table.frame.index) if columns else empty


def _with_edges(name: str, edges: Any, table: _Columns) -> tuple["pd.Series[Any]", list[float] | None]:
    column = table.look(name, "sensitive column")
    if edges is None or isinstance(edges, str) or not np.iterable(edges) or not all(map(_is_number, edges)):
        if edges is None:
            return column, None
        raise InputError(f"the cut points of {name!r} are {edges!r}", expected="a list of numbers, or None")
    return column, [float(edge) for edge in edges]


def _named(name: str, table: _Columns) -> tuple["pd.Series[Any]", list[float] | None]:
    """Read ``column`` or ``column:edge,edge``."""
    column, colon, cuts = name.rpartition(":")
    if name in table.frame.columns or not colon:
        return table.look(name, "sensitive column"), None
    try:
        edges = [float(cut) for cut in cuts.split(",")]
    except ValueError as error:
        raise InputError(
            f"the cut points in {name!r} are not numbers", expected="something like age:25,40,60"
        ) from error
    return table.look(column, "sensitive column"), edges


def _predictions(given: Any, table: _Columns) -> Any:
    """Return the given predictions as a Series, or as a data frame with one column per class; None without any."""
    if given is None:
        return None
    if isinstance(given, str):
        return table.use(given, "predictions")
    if isinstance(given, Sequence) and given and all(isinstance(name, str) for name in given):
        if len(given) < len(table.frame) and all(name in table.frame.columns for name in given):
            if len(set(given)) < len(given):
                raise InputError("a column of predictions was named twice")
            return table.frame.loc[:, [str(table.use(name, "predictions").name) for name in given]]
        if len(given) < len(table.frame):
            unknown = next(name for name in given if name not in table.frame.columns)
            raise missing_column(unknown, list(table.frame.columns), "predictions")
    if np.ndim(given) == 2 and np.shape(given)[1] > 1:
        frame = to_frame(np.asarray(given) if isinstance(given, Sequence) else given, "predictions")
        if len(frame) != len(table.frame):
            raise InputError(f"the predictions have {len(frame):,} rows and X has {len(table.frame):,}")
        if isinstance(given, pd.DataFrame) and not frame.index.equals(table.frame.index):
            raise InputError("the index of the predictions is not that of X")
        return frame.set_axis(table.frame.index)
    return to_series(given, "the predictions", index=table.frame.index)


class _Observed:
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


def _task(task: str, observed: _Observed, model: Any, notes: list[str]) -> Task:
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


def _guessed_task(observed: _Observed, model: Any) -> Task:
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


def _refuse_unfit(model: Any, task: Task) -> None:
    if not hasattr(model, "predict") and not hasattr(model, "answers_about") and not callable(model):
        raise InputError(
            f"the model is a {type(model).__name__} without predict", expected="a fitted estimator or a callable"
        )
    if task != "regression" and _tagged_regressor(model):
        raise InputError(f"the model is a regressor and the task is {task}", expected="a classifier")


def _target(
    observed: _Observed, task: Task, model: Any, positive: Any, notes: list[str]
) -> tuple[tuple[Any, ...], np.ndarray]:
    """Return the classes in the order of their codes, and the target as codes (or numbers)."""
    target = observed.target
    if task == "regression":
        if positive is not None:
            raise InputError("a positive label was given for a regression task")
        return (), _numbers(target, f"the target {observed.name}")
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


def _given(
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
        return _numbers(predicted, "the predictions"), None, None
    if isinstance(predicted, pd.DataFrame):
        if prediction_type == "label":
            raise InputError(f"{predicted.shape[1]} columns of labels were given", expected="one")
        scores = _class_scores(predicted, classes, notes)
        if task == "multiclass":
            return scores.argmax(axis=1), scores, None
        return _cut_scores(scores[:, 1], threshold, notes)
    if predicted.isna().any():
        raise InputError(f"the predictions are missing in {int(predicted.isna().sum()):,} rows")
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
    return _cut_scores(_unit_interval(_numbers(predicted, "the scores")), threshold, notes)


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
    scores = np.column_stack([_unit_interval(_numbers(frame.iloc[:, i], "the scores")) for i in order])
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
        return Training(frame.loc[:, list(columns)], _numbers(target, "the training target"))
    codes = class_codes(target, classes)
    if (codes < 0).any():
        unknown = plain_label(target.iloc[int(np.flatnonzero(codes < 0)[0])])
        raise InputError(
            f"the training target has the value {unknown!r}",
            expected=f"the model's classes: {', '.join(repr(plain_label(v)) for v in classes)}",
        )
    return Training(frame.loc[:, list(columns)], codes)


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
