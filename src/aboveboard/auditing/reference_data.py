"""The reference of an audit: older rows that those audited are compared with, read like them and lined up with them.

It may have labels and predictions or lack them; what it lacks is told, and the checks that need it do not run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from aboveboard._stats.blocks import scrambled
from aboveboard.auditing.columns import value_hashes
from aboveboard.auditing.frames import column_kind, group_codes, numbers, plain_label, to_frame, to_series
from aboveboard.auditing.model import Answers, FittedModel, class_codes
from aboveboard.core.errors import InputError, ModelError, QueriesSpent

__all__ = ["ReferenceData", "Roles", "grouped_alike", "lined_up", "read_reference"]

_WHAT: Final = "the reference data"


@dataclass(frozen=True)
class ReferenceData:
    """Older rows.

    Attributes
    ----------
    X : DataFrame of shape (m, d)
        The features that both tables have, in the order of the audited ones.
    absent : tuple of str
        Features that the reference lacks.
    extra : tuple of str
        Columns that the reference has and the audited data lack.
    y : ndarray of shape (m,) or None
        Class codes, -1 for a class that the audited data do not know; float64 for regression.
    prediction, score : ndarray or None
        As in `Subject`; a predicted label that the audited data do not know is -1.
    sensitive : DataFrame of shape (m, s)
        The sensitive columns that both have, with the groups of the audited data first, then those that are gone.
    weight, cluster : ndarray of shape (m,) or None
        A cluster has one number in both tables.
    """

    X: pd.DataFrame
    absent: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    y: np.ndarray | None = None
    prediction: np.ndarray | None = None
    score: np.ndarray | None = None
    sensitive: pd.DataFrame = field(default_factory=pd.DataFrame)
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: np.ndarray) -> "ReferenceData":
        """Return only `rows` (positions)."""
        arrays: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("y", "prediction", "score", "weight", "cluster")
        }
        return replace(self, X=self.X.iloc[rows], sensitive=self.sensitive.iloc[rows], **arrays)

    def sample(self, n: int, random_state: int) -> "ReferenceData":
        """Return `n` rows drawn without replacement, in their old order; all of them where there are no more."""
        if n >= len(self):
            return self
        rows = np.random.default_rng([random_state, 1]).choice(len(self), size=n, replace=False)
        return self.take(np.sort(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What was made of the audited data, as far as the reference must follow.

    Parameters
    ----------
    names : dict of str to str or list of str or None
        Columns that the user named as target, predictions, weights, cluster and id; None for values and for nothing.
    columns : tuple of str
        All columns of the audited table.
    features : DataFrame
    drop : tuple of str
    sensitive : DataFrame
    cuts : dict of str to list of float or None
        Where each sensitive column was cut.
    task, classes, threshold, scored
        `scored`: the audited predictions are scores.
    read_predictions : callable
        Turns scores, or numbers for regression, into (prediction, score), or refuses.
    model : FittedModel or None
    """

    names: Mapping[str, str | list[str] | None]
    columns: tuple[str, ...]
    features: pd.DataFrame
    drop: tuple[str, ...]
    sensitive: pd.DataFrame
    cuts: Mapping[str, Sequence[float] | None]
    task: str
    classes: tuple[Any, ...]
    scored: bool
    read_predictions: Callable[[Any], tuple[np.ndarray, np.ndarray | None]]
    model: FittedModel | None


def read_reference(given: Any, roles: Roles, notes: list[str]) -> ReferenceData:
    """Read the reference.

    Parameters
    ----------
    given : data frame, or tuple (X_old, y_old) or (X_old, y_old, predictions_old)
        Parts of a tuple may be None. Of a frame, the columns are found under the names that the audited ones have.
    roles : Roles
    notes : list of str
        Grows by what the reader should know.

    Raises
    ------
    InputError
        When it has fewer than two rows or no column in common with the features, or a column cannot be read like the
        audited one.
    ModelError
        When the model fails on it.
    """
    frame, labels, predicted = _parts(given)
    if len(frame) < 2:
        raise InputError(
            f"{_WHAT} have {len(frame):,} row{'s' if len(frame) != 1 else ''}",
            expected="two or more, and better some hundreds",
        )
    spoken = {name for names in roles.names.values() for name in ([names] if isinstance(names, str) else names or [])}
    shared = [name for name in roles.features.columns if name in frame.columns]
    absent = tuple(str(name) for name in roles.features.columns if name not in frame.columns)
    if absent and not shared:
        raise InputError(
            f"{_WHAT} have none of the {len(absent)} features",
            expected=", ".join(map(repr, absent[:12])) + (f" and {len(absent) - 12} more" if len(absent) > 12 else ""),
            remedy="Give a table with the same columns",
        )
    known = spoken | set(roles.columns) | set(roles.drop)
    labels = labels if labels is not None else _column(frame, roles.names["target"], "labels", "target", notes)
    weight = _column(frame, roles.names["weight"], "weights (its rows count alike)", "weight", notes)
    cluster = _column(frame, roles.names["cluster"], "clusters (its rows stand alone)", "cluster", notes)
    prediction, score = _predictions(frame, predicted, shared, absent, roles, notes)
    return ReferenceData(
        X=frame.loc[:, shared],
        absent=absent,
        extra=tuple(str(name) for name in frame.columns if name not in known),
        y=None if labels is None else _labels(labels, roles, notes),
        prediction=prediction,
        score=score,
        sensitive=_sensitive(frame, roles, notes),
        weight=None if weight is None else _weights(weight),
        cluster=None if cluster is None else _filled(cluster).to_numpy(),
    )


def lined_up(
    cluster: "pd.Series[Any] | None", reference: ReferenceData | None
) -> tuple[np.ndarray | None, ReferenceData | None]:
    """Number the clusters of both tables, so that a cluster that occurs in both has one number.

    Returns
    -------
    codes : ndarray or None
        Of the audited rows, as hashes of their names.
    reference : ReferenceData or None
    """
    if cluster is None or reference is None:
        return (None if cluster is None else value_hashes(cluster)), reference
    if reference.cluster is None:  # each row by itself, under numbers that nobody else has
        alone = scrambled(np.arange(len(reference), dtype=np.uint64) + np.uint64(2**63))
        return value_hashes(cluster), replace(reference, cluster=alone)
    older = pd.Series(reference.cluster)
    if "category" in (cluster.dtype, older.dtype) or (column_kind(cluster) == "number") != (
        column_kind(older) == "number"
    ):
        cluster, older = (part.astype(object).map(plain_label) for part in (cluster, older))
    return value_hashes(cluster), replace(reference, cluster=value_hashes(older))


def _parts(given: Any) -> tuple[pd.DataFrame, Any, Any]:
    if not isinstance(given, tuple):
        return to_frame(given, "the reference"), None, None
    if len(given) not in (2, 3):
        raise InputError(
            f"reference is a tuple of {len(given)}",
            expected="a table, (X_old, y_old) or (X_old, y_old, predictions_old)",
        )
    frame = to_frame(given[0], "the reference")
    parts = [
        None if part is None else _values(part, what, frame) for part, what in zip(given[1:], _KINDS, strict=False)
    ]
    return frame, parts[0], parts[1] if len(parts) > 1 else None


_KINDS: Final = ("the target of the reference", "the predictions of the reference")


def _values(part: Any, what: str, frame: pd.DataFrame) -> Any:
    if isinstance(part, str):
        raise InputError(f"{what} is a name", expected="one value per row, or reference=table")
    if np.ndim(part) == 2 and np.shape(part)[1] > 1:
        table = to_frame(part, what)
        if len(table) != len(frame):
            raise InputError(f"{what} have {len(table):,} rows and the reference has {len(frame):,}")
        return table
    return to_series(part, what, index=frame.index)


def _column(frame: pd.DataFrame, name: Any, what: str, role: str, notes: list[str]) -> "pd.Series[Any] | None":
    if name is None:
        return None
    if name not in frame.columns:
        notes.append(f"The reference data have no {what}: there is no column {name!r} for the {role}.")
        return None
    column = frame[name]
    if not column.notna().any():
        notes.append(f"The reference data have no {what}: the column {name!r} holds nothing.")
        return None
    return column


def _numbers(series: "pd.Series[Any]", what: str) -> np.ndarray:
    try:
        values = numbers(series)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} holds values that are not numbers ({str(error)[:80]})", expected="numbers") from error
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise InputError(f"{what} has {bad:,} missing or infinite values", expected="a finite number in every row")
    return values


def _labels(series: "pd.Series[Any]", roles: Roles, notes: list[str]) -> np.ndarray:
    what = "the target of the reference"
    if series.isna().any():
        raise InputError(
            f"{what} is missing in {int(series.isna().sum()):,} of {len(series):,} rows",
            expected="a value in every row, or no target at all",
            remedy="Leave those rows out, or the column",
        )
    if roles.task == "regression":
        return _numbers(series, what)
    codes = class_codes(series, roles.classes)
    unknown = series[codes < 0].unique()
    if len(unknown) == series.nunique():
        raise InputError(
            f"{what} has only values that the audited data do not know, such as {plain_label(unknown[0])!r}",
            expected=f"some of {', '.join(repr(plain_label(value)) for value in roles.classes)}",
        )
    if len(unknown):
        shown = ", ".join(repr(plain_label(value)) for value in unknown[:5]) + (" and more" if len(unknown) > 5 else "")
        notes.append(f"The reference has labels that the audited data do not know: {shown}.")
    return codes


def _weights(series: "pd.Series[Any]") -> np.ndarray:
    values = _numbers(series, "the weight column of the reference")
    if (values < 0).any() or not values.any():
        raise InputError(
            "the weights of the reference are negative or all zero", expected="weights at or above 0, some above"
        )
    return values


def _filled(series: "pd.Series[Any]") -> "pd.Series[Any]":
    if series.isna().any():
        raise InputError(
            f"the cluster column of the reference has {int(series.isna().sum()):,} missing values",
            expected="a value in every row",
        )
    return series


def _predictions(
    frame: pd.DataFrame,
    given: Any,
    shared: list[str],
    absent: tuple[str, ...],
    roles: Roles,
    notes: list[str],
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if roles.model is not None:
        if absent:
            shown = ", ".join(map(repr, absent[:5])) + (" and more" if len(absent) > 5 else "")
            notes.append(f"The model cannot be asked about the reference data, which lack {shown}.")
            return None, None
        try:
            answers = _asked(roles.model, frame.loc[:, shared])
        except QueriesSpent as stop:
            notes.append(f"The model was not asked about the reference data. {stop}")
            return None, None
        return answers.prediction, answers.score
    if given is None:
        names = roles.names["predictions"]
        if names is None:
            notes.append("The reference data have no predictions.")
            return None, None
        wanted = [names] if isinstance(names, str) else names
        lacking = [name for name in wanted if name not in frame.columns]
        if lacking:
            notes.append(f"The reference data have no predictions: there is no column {lacking[0]!r}.")
            return None, None
        if not frame[wanted[0]].notna().any():
            notes.append(f"The reference data have no predictions: the column {wanted[0]!r} holds nothing.")
            return None, None
        given = frame[wanted[0]] if len(wanted) == 1 else frame.loc[:, wanted]
    if roles.task != "regression" and not roles.scored:
        if isinstance(given, pd.DataFrame):
            raise InputError(
                f"{given.shape[1]} prediction columns of the reference were given", expected="one of labels"
            )
        if given.isna().any():
            raise InputError(f"the predictions of the reference are missing in {int(given.isna().sum()):,} rows")
        return class_codes(given, roles.classes), None
    try:
        return roles.read_predictions(given)
    except InputError as error:
        raise InputError(f"{_WHAT}: {error.got}", expected=error.expected, remedy=error.remedy) from error


def _asked(model: FittedModel, frame: pd.DataFrame) -> Answers:
    try:
        return model.answer(frame)
    except ModelError as error:
        raise ModelError(f"on the reference data, {error}") from error


def _sensitive(frame: pd.DataFrame, roles: Roles, notes: list[str]) -> pd.DataFrame:
    columns: dict[str, pd.Series[Any]] = {}
    for name in map(str, roles.sensitive.columns):
        if name not in frame.columns:
            notes.append(f"The reference data have no column {name!r}, so its groups cannot be compared with.")
            continue
        edges = roles.cuts.get(name)
        if edges is not None and column_kind(frame[name]) != "number":
            raise InputError(
                f"the sensitive column {name!r} of the reference holds {column_kind(frame[name])}",
                expected="numbers, as the audited data have there",
            )
        columns[name] = grouped_alike(frame[name], roles.sensitive[name].cat.categories, edges)
    return pd.DataFrame(columns, index=frame.index) if columns else pd.DataFrame(index=frame.index)


def grouped_alike(column: "pd.Series[Any]", groups: pd.Index, edges: Sequence[float] | None) -> "pd.Series[Any]":
    """Return a sensitive column of another table in the groups of the audited one, and after them those it lacks.

    Parameters
    ----------
    column : Series
    groups : Index
        The groups of the audited column.
    edges : sequence of float, optional
        Where that was cut.
    """
    if edges is None and column_kind(column) == "number":  # the audited numbers were groups as they are
        column = column.astype(object).map(plain_label, na_action="ignore")
    grouped, _ = group_codes(column, edges=edges)
    own = [str(group) for group in groups]
    more = [str(group) for group in grouped.cat.categories if group not in own]
    return grouped.cat.set_categories(pd.Index([*own, *more], dtype=object))
