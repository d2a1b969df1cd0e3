"""The subject of a streamed audit: what was decided about the data, and sums and samples of their rows.

What can be decided from the values that occur (the task, the classes, the groups, what the predictions are) is decided
by `make_subject`, as it is for data in memory, on a *digest*: the rows that were drawn at random, and for each value
that is not among them one more row that holds it. So the same data are read, and refused, in the same way.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.answers import OutsideError, PredictionType, Task
from aboveboard.auditing.columns import value_hashes
from aboveboard.auditing.frames import (
    MAX_NUMERIC_GROUPS,
    cut_representatives,
    missing_column,
    numbers,
    quartile_note,
    rounded_quartiles,
)
from aboveboard.auditing.given_columns import named_columns
from aboveboard.auditing.parquet import ParquetSource
from aboveboard.auditing.reading import ReadTable
from aboveboard.auditing.streaming.passes import PartSums, Reader, Roles, SumTask, SurveyTask, run_tasks
from aboveboard.auditing.streaming.survey import MOST_DISTINCT, ColumnSurvey, Survey
from aboveboard.auditing.subject import Subject, make_subject
from aboveboard.auditing.summaries import Units, drawn_positions, sample_positions
from aboveboard.core.errors import InputError

__all__ = ["StreamedSubject", "StreamedTable", "stream_subject"]

_SUMMED: Final = ("y", "prediction", "score", "weight", "cluster")


@dataclass(frozen=True)
class StreamedTable:
    """A table in files that are to be streamed.

    Parameters
    ----------
    source : ParquetSource
    types : mapping of column to kind
        The user's own types.
    like : ReadTable, optional
        The training data, whose types are applied.
    """

    source: ParquetSource
    types: Mapping[str, Any] = field(default_factory=dict)
    like: ReadTable | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the files."""
        return self.source.notes

    def without_rows(self) -> ReadTable:
        """Return what is known of the columns, for tables that are to be read like this one."""
        kinds: dict[str, Any] = {name: kind for name, kind in self.source.kinds.items() if kind != "null"}
        return ReadTable(pd.DataFrame(columns=list(kinds)), kinds | dict(self.types))

    def first_rows(self, column: str | None) -> pd.DataFrame:
        """Return the first rows of a column, some 260,000 at most; no column where there is none of that name."""
        columns = [column] if column in self.source.kinds else []
        parts = self.source.parts()
        if not parts or not columns:
            return pd.DataFrame()
        return next(iter(Reader(dict(self.types), self.like).batches(parts[0], columns)))[1]


@dataclass(frozen=True)
class StreamedSubject(Subject):
    """A subject whose rows are in files.

    It has no rows of its own: its arrays are empty, and say by being None what there is not. Checks make their findings
    of `sums`, or look at a sample that was drawn for them.

    Attributes
    ----------
    source : ParquetSource
    reader : Reader
    roles : Roles
    drawn : Subject
        At most 200,000 rows, drawn at random whatever the seed.
    drawn_from : Units
    gathered : PartSums or None
        What the second pass gave.
    requests : dict of (rows, seed) to str
        The samples that it drew, and the check that each was drawn for.
    show_progress : bool or None
    """

    source: ParquetSource = field(kw_only=True)
    reader: Reader = field(kw_only=True)
    roles: Roles = field(kw_only=True)
    drawn: Subject = field(kw_only=True)
    drawn_from: Units = field(kw_only=True)
    gathered: PartSums | None = field(default=None, kw_only=True)
    requests: Mapping[tuple[int, int], str] = field(default_factory=dict, kw_only=True)
    show_progress: bool | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.drawn_from.rows

    @property
    def row_sample(self) -> Subject:
        return self.drawn

    @property
    def units(self) -> Units:
        return self.drawn_from

    @property
    def kinds(self) -> dict[str, str]:
        """What each feature column holds, as the files say."""
        return {str(name): self.source.kinds[str(name)].replace("null", "number") for name in self.X.columns}

    @property
    def group_rows(self) -> dict[str, NDArray[Any]]:
        return {} if self.gathered is None else dict(self.gathered.group_rows)

    def take(self, rows: np.ndarray) -> Subject:  # noqa: ARG002
        raise TypeError("rows of a streamed subject cannot be taken; ask for a sample that was drawn")

    def sample(self, n: int, random_state: int) -> Subject:
        """Return the rows that the second pass drew for this very request."""
        assert self.gathered is not None
        parts = self.gathered.samples[self.requests[n, random_state]]
        reference = None if self.reference is None else self.reference.sample(n, random_state)
        return replace(_joined(parts), model=self.model, train=self.train, reference=reference, notes=self.notes)

    def sums(self, check: str) -> Any:
        """Return what a check is to judge."""
        assert self.gathered is not None
        return self.gathered.sums[check]

    def gather(
        self, layouts: Mapping[str, Any], samples: Mapping[str, tuple[int, int, bool]], features: frozenset[str]
    ) -> "StreamedSubject":
        """Go through all rows once, and return the subject with sums and samples.

        Parameters
        ----------
        layouts : mapping of check to layout
            What is summed up.
        samples : mapping of check to (rows, seed, whether it looks at features)
        features : frozenset of str
            The checks among those summed up that look at features.

        Raises
        ------
        InputError
            When a file is damaged, or has changed since it was looked at first.
        """
        whole = replace(self._template(), train=None, reference=None)
        positions = {
            name: (drawn_positions(len(self), rows, seed), wants) for name, (rows, seed, wants) in samples.items()
        }
        tasks = []
        for part in self.source.parts():
            ends = part.start, part.start + part.rows
            own = {
                name: (rows[slice(*np.searchsorted(rows, ends))], wants) for name, (rows, wants) in positions.items()
            }
            tasks.append(SumTask(part, self.reader, self.roles, whole, dict(layouts), own, features))
        gathered = run_tasks(
            tasks,
            n_jobs=self.n_jobs,
            what="Summing up",
            show_progress=self.show_progress,
            here=self.model is not None,
        )
        return replace(
            self,
            gathered=gathered,
            requests={(rows, seed): name for name, (rows, seed, _) in samples.items()},
        )

    def describe(self) -> dict[str, Any]:
        clusters = self.drawn_from.clusters
        return super().describe() | {"clusters": clusters}

    def _template(self) -> Subject:
        """Return a plain subject without rows."""
        plain = {name: getattr(self, name) for name in Subject.__dataclass_fields__}
        return Subject(**plain)

    def _fingerprint(self) -> str:
        """Return a digest of target, predictions and groups, the same however the rows are split into files."""
        lanes = () if self.gathered is None else self.gathered.fingerprint
        return hashlib.sha256(repr((len(self), self.target, list(self.roles.sensitive), lanes)).encode()).hexdigest()


def stream_subject(
    model: Any,
    table: StreamedTable,
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
    show_progress: bool | None = None,
) -> StreamedSubject:
    """Look at all rows once, and decide about them; parameters as for `aboveboard.audit`.

    Parameters
    ----------
    table : StreamedTable
    y, predictions, sample_weight, clusters, ids : str (predictions: or list of str)
        Names of columns only.

    Raises
    ------
    InputError
        When something cannot be used as given; where rows of one file are at fault, the message names it.
    ModelError
        When the model fails on the rows that were drawn.

    Notes
    -----
    O(n) time; memory for one batch of rows per worker, and for what is kept of each column.
    """
    source = table.source
    names = list(source.kinds)
    if source.rows < 2:
        raise InputError(
            "the data have no rows" if not source.rows else "the data have one row", expected="two rows or more"
        )
    roles = _roles(y, predictions, sensitive_features, sample_weight, clusters, ids, drop, names)
    like = None if table.like is None else replace(table.like, frame=table.like.frame.iloc[:0])
    reader = Reader(dict(table.types), like)
    if reference is not None and roles.cluster is not None:
        raise InputError(
            "clusters and a reference were given, and the data are streamed",
            expected="one of the two",
            remedy="Audit a random sample of the clusters in memory, or leave out one of the two",
        )
    survey = _survey(source, reader, roles, n_jobs, show_progress, features=model is not None or reference is not None)
    _refuse_amiss(survey, roles)
    edges, edge_notes = _edges(survey, roles)
    roles = replace(roles, sensitive=edges)
    digest, sampled = _digest(survey, roles, names)
    try:
        decided = make_subject(
            model,
            digest,
            roles.target,
            sensitive_features=edges or None,
            train=train,
            reference=reference,
            predictions=list(roles.predictions) if isinstance(roles.predictions, tuple) else roles.predictions,
            prediction_type=prediction_type,
            task=task,
            positive=positive,
            threshold=threshold,
            sample_weight=roles.weight,
            ids=ids,
            drop=[*([drop] if isinstance(drop, str) else drop), *([] if roles.cluster is None else [roles.cluster])],
            reference_group=reference_group,
            limits=limits,
            min_cell=min_cell,
            n_jobs=n_jobs,
        )
    except OutsideError as error:
        raise _located(error, survey, roles) from error
    cluster = None if roles.cluster is None else value_hashes(digest[roles.cluster])
    drawn = replace(decided, cluster=cluster, ids=None).take(np.arange(sampled)).without_features()
    notes = (
        *survey.notes,
        *edge_notes,
        *_whole_counts(decided.notes, digest[roles.target], survey.columns[roles.target, "target"]),
        f"The data were streamed: their {source.rows:,} rows were read in parts and never held at once (stream, "
        "--stream).",
    )
    empty: dict[str, Any] = {name: getattr(decided, name) for name in Subject.__dataclass_fields__}
    empty |= {name: None if empty[name] is None else empty[name][:0] for name in _SUMMED if name != "cluster"}
    empty |= {"X": decided.X.iloc[:0], "sensitive": decided.sensitive.iloc[:0], "ids": None, "notes": notes}
    empty["cluster"] = None if cluster is None else cluster[:0]
    return StreamedSubject(
        **empty,
        source=source,
        reader=reader,
        roles=replace(roles, features=tuple(map(str, decided.X.columns))),
        drawn=drawn,
        drawn_from=Units.of(source.rows, survey.clusters),
        show_progress=show_progress,
    )


# --- what was asked for -----------------------------------------------------------------------------------------------


def _roles(
    y: Any, predictions: Any, sensitive: Any, weight: Any, cluster: Any, ids: Any, drop: Any, names: list[str]
) -> Roles:
    """Return which columns play which part; all of them by name."""
    if y is None:
        raise InputError("no target was given", expected="the name of a column")
    given = {"target": y, "weights": weight, "cluster": cluster, "id": ids}
    for role, name in given.items():
        if name is None:
            continue
        if not isinstance(name, str):
            raise InputError(
                f"the {role} is a {type(name).__name__}, and the data are in files", expected="the name of a column"
            )
        if name not in names:
            raise missing_column(name, names, role)
        if role != "target" and name == y:
            raise InputError(f"{name!r} is the target and cannot be the {role} too")
    if isinstance(predictions, str) or predictions is None:
        columns: str | tuple[str, ...] | None = predictions
    elif isinstance(predictions, Sequence) and predictions and all(isinstance(name, str) for name in predictions):
        columns = tuple(predictions) if len(predictions) > 1 else predictions[0]
    else:
        raise InputError(
            f"the predictions are a {type(predictions).__name__}, and the data are in files",
            expected="the name of a column, or a list of names",
        )
    for name in (columns,) if isinstance(columns, str) else columns or ():
        if name not in names:
            raise missing_column(name, names, "predictions")
        if name == y:
            raise InputError(f"{name!r} is the target and cannot be the predictions too")
    cuts = named_columns(sensitive, names)
    if y in cuts:
        raise InputError(f"{y!r} is the target and cannot be the sensitive column too")
    used = {y, weight, cluster, ids, *((columns,) if isinstance(columns, str) else columns or ())}
    used |= {drop} if isinstance(drop, str) else set(drop)
    return Roles(y, columns, cuts, weight, cluster, tuple(name for name in names if name not in used))


def _survey(
    source: ParquetSource,
    reader: Reader,
    roles: Roles,
    n_jobs: int | None,
    show_progress: bool | None,
    *,
    features: bool,
) -> Survey:
    positions = sample_positions(source.rows)
    tasks = []
    for part in source.parts():
        first, last = np.searchsorted(positions, [part.start, part.start + part.rows])
        tasks.append(SurveyTask(part, reader, roles, features, positions[first:last]))
    found = run_tasks(tasks, n_jobs=n_jobs, what="Looking at the data", show_progress=show_progress)
    assert isinstance(found, Survey)
    return found


def _refuse_amiss(survey: Survey, roles: Roles) -> None:
    """Refuse what `make_subject` refuses, with the number of rows in the first file that has such rows."""
    for (name, role), column in survey.columns.items():
        missing, negative = column.missing, column.negative
        if role == "target" and missing is not None:
            raise InputError(
                f"{missing.file}: the target {name!r} is missing in {missing.rows:,} rows",
                expected="a value in every row",
                remedy="Leave those rows out, and say so where you publish the audit",
            )
        if role in ("predictions", "weights") and missing is not None:
            what = "predictions" if role == "predictions" else "weights"
            raise InputError(
                f"{missing.file}: the {what} {name!r} have {missing.rows:,} missing or infinite values",
                expected="a value in every row",
            )
        if role == "cluster" and missing is not None:
            raise InputError(
                f"{missing.file}: the cluster column {name!r} has {missing.rows:,} missing values",
                expected="a value in every row",
                remedy="Give rows that belong to nobody else a value of their own",
            )
        if role == "weights":
            if negative is not None:
                raise InputError(
                    f"{negative.file}: {negative.rows:,} weights are negative", expected="weights at or above 0"
                )
            if column.high == 0:
                raise InputError("all weights are zero")
    if survey.clusters is not None and len(survey.clusters) < 2:
        raise InputError(f"the cluster column {roles.cluster!r} has one value only", expected="two clusters or more")


def _located(error: OutsideError, survey: Survey, roles: Roles) -> InputError:
    """Return the error about scores outside [0, 1] with the first file that has some."""
    names = (roles.predictions,) if isinstance(roles.predictions, str) else roles.predictions or ()
    for name in names:
        column = survey.columns[name, "predictions"]
        if column.outside is not None:
            return InputError(
                f"{column.outside.file}: {column.outside.rows:,} scores {name!r} lie outside [0, 1] (in all files they "
                f"go from {column.low:.4g} to {column.high:.4g})",
                expected=error.expected,
                remedy=error.remedy,
            )
    return error


def _edges(survey: Survey, roles: Roles) -> tuple[dict[str, list[float] | None], list[str]]:
    """Return the cut points of the sensitive columns: those given, and the quartiles of numbers with many values."""
    edges, notes = {}, []
    for name, given in roles.sensitive.items():
        edges[name] = given
        column = survey.columns[name, "sensitive"]
        is_number = bool(np.isfinite(column.low))
        if given or not is_number:
            if not is_number and column.counts is None:
                raise InputError(
                    f"the sensitive column {name!r} has more than {MOST_DISTINCT:,} groups",
                    expected="at most 100",
                    remedy="Name another column, or join small groups first",
                )
            continue
        if column.counts is not None and len(column.counts) <= MAX_NUMERIC_GROUPS:
            continue
        if column.counts is not None:
            edges[name] = rounded_quartiles(_quartiles(column.counts))
            distinct = f"{len(column.counts):,}"
        else:
            drawn = np.concatenate([numbers(frame[name]) for frame in survey.sample])
            edges[name] = rounded_quartiles(np.quantile(drawn[np.isfinite(drawn)], [0.25, 0.5, 0.75]))
            distinct = f"more than {MOST_DISTINCT:,}"
        notes.append(quartile_note(name, distinct, edges[name] or []))
    return edges, notes


def _quartiles(counts: Mapping[Any, int]) -> list[float]:
    """Return the quartiles of numbers that occur so often, as `numpy.quantile` has them."""
    values = np.array([float(value) for value in counts], dtype=np.float64)
    times = np.array(list(counts.values()), dtype=np.int64)
    known = np.isfinite(values)
    order = np.argsort(values[known])
    values, upto = values[known][order], np.cumsum(times[known][order])
    quartiles = []
    for level in (0.25, 0.5, 0.75):
        at = (upto[-1] - 1) * level
        low, high = (values[np.searchsorted(upto, rank, side="right")] for rank in (np.floor(at), np.ceil(at)))
        quartiles.append(float(low + (high - low) * (at - np.floor(at))))
    return quartiles


# --- the digest -------------------------------------------------------------------------------------------------------


def _digest(survey: Survey, roles: Roles, names: list[str]) -> tuple[pd.DataFrame, int]:
    """Return the digest, and how many of its rows, the first, are those that were drawn."""
    drawn = _concatenated(survey.sample)
    pieces = [drawn]
    for (name, role), column in survey.columns.items():
        lacking = _unseen(drawn[name], column, role, roles.sensitive.get(name))
        if lacking and not (role == "predictions" and isinstance(roles.predictions, tuple)):  # their sum must be 1
            piece = drawn.iloc[np.zeros(len(lacking), dtype=np.intp)].copy()
            piece[name] = pd.Series(lacking, index=piece.index, dtype=None if None not in lacking else object)
            pieces.append(piece)
    digest = _concatenated(pieces)
    unread = {name: np.zeros(len(digest), dtype=np.int8) for name in names if name not in digest.columns}
    whole = pd.concat([digest, pd.DataFrame(unread, index=digest.index)], axis=1)
    return whole.loc[:, names], len(drawn)


def _unseen(drawn: "pd.Series[Any]", column: ColumnSurvey, role: str, edges: Sequence[float] | None) -> list[Any]:
    """Return the values of a column that are not among the rows drawn, and a missing one where there are some."""
    if role == "cluster":
        return []
    if role == "weights":
        return [column.high]
    if role == "sensitive" and edges:
        lacking: list[Any] = cut_representatives(edges) if column.counts is None else _without(column.counts, drawn)
    else:
        lacking = [] if column.counts is None else _without(column.counts, drawn)
    if role == "sensitive" and column.missing is not None and drawn.notna().all():
        lacking = [*lacking, None]
    return lacking


def _without(counts: Mapping[Any, int], drawn: "pd.Series[Any]") -> list[Any]:
    seen = {value.item() if isinstance(value, np.generic) else value for value in drawn.dropna().unique()}
    return [value for value in counts if value not in seen]


def _whole_counts(notes: Sequence[str], target: "pd.Series[Any]", column: ColumnSurvey) -> list[str]:
    """Return the notes about the digest as they are true of all rows, whose target may have more values."""
    if column.counts is not None:
        return list(notes)
    before, after = (
        f"The target has {target.nunique():,} distinct",
        f"The target has more than {MOST_DISTINCT:,} distinct",
    )
    return [note.replace(before, after) for note in notes]


def _joined(parts: Sequence[Subject]) -> Subject:
    """Return the rows of parts, one after the other."""
    first = parts[0]
    arrays: dict[str, Any] = {
        name: None if getattr(first, name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in _SUMMED
    }
    sensitive = pd.concat([part.sensitive for part in parts], ignore_index=True)
    return replace(first, **arrays, X=_concatenated([part.X for part in parts]), sensitive=sensitive, offset=0)


def _concatenated(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put tables below each other; categories stay categories."""
    if len(frames) == 1:
        return frames[0].reset_index(drop=True)
    columns = {}
    for name in frames[0].columns:
        series = [frame[name] for frame in frames]
        if all(isinstance(own.dtype, pd.CategoricalDtype) for own in series):
            columns[name] = pd.Series(pd.api.types.union_categoricals([own.array for own in series]))
        else:
            columns[name] = pd.concat(series, ignore_index=True)
    rows = sum(len(frame) for frame in frames)
    return pd.DataFrame(columns, index=pd.RangeIndex(rows), columns=list(frames[0].columns))
