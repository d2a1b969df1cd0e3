"""The columns that a user names, or the values that are given instead, lined up with the rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import group_codes, missing_column, quartile_edges, to_frame, to_series
from aboveboard.core.errors import InputError

__all__ = ["GivenColumns", "given_predictions", "is_number", "named_columns", "named_in", "sensitive_columns"]


class GivenColumns:
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


def named_columns(given: Any, columns: Sequence[str]) -> dict[str, list[float] | None]:
    """Return the sensitive columns that `given` names, as `make_subject` reads it, with their cut points.

    Raises
    ------
    InputError
        When it does not name columns, or some that are not among `columns`.
    """
    if given is None:
        return {}
    table = GivenColumns(pd.DataFrame(columns=list(columns)), [])
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


def sensitive_columns(given: Any, table: GivenColumns) -> pd.DataFrame:
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


def _with_edges(name: str, edges: Any, table: GivenColumns) -> tuple["pd.Series[Any]", list[float] | None]:
    column = table.look(name, "sensitive column")
    if edges is None or isinstance(edges, str) or not np.iterable(edges) or not all(map(is_number, edges)):
        if edges is None:
            return column, None
        raise InputError(f"the cut points of {name!r} are {edges!r}", expected="a list of numbers, or None")
    return column, [float(edge) for edge in edges]


def _named(name: str, table: GivenColumns) -> tuple["pd.Series[Any]", list[float] | None]:
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


def given_predictions(given: Any, table: GivenColumns, role: str = "predictions") -> Any:
    """Return the given predictions as a Series, or as a data frame with one column per class; None without any."""
    if given is None:
        return None
    if isinstance(given, str):
        return table.use(given, role)
    if isinstance(given, Sequence) and given and all(isinstance(name, str) for name in given):
        if len(given) < len(table.frame) and all(name in table.frame.columns for name in given):
            if len(set(given)) < len(given):
                raise InputError(f"a column of {role} was named twice")
            return table.frame.loc[:, [str(table.use(name, role).name) for name in given]]
        if len(given) < len(table.frame):
            unknown = next(name for name in given if name not in table.frame.columns)
            raise missing_column(unknown, list(table.frame.columns), role)
    if np.ndim(given) == 2 and np.shape(given)[1] > 1:
        frame = to_frame(np.asarray(given) if isinstance(given, Sequence) else given, role)
        if len(frame) != len(table.frame):
            raise InputError(f"the {role} have {len(frame):,} rows and X has {len(table.frame):,}")
        if isinstance(given, pd.DataFrame) and not frame.index.equals(table.frame.index):
            raise InputError(f"the index of the {role} is not that of X")
        return frame.set_axis(table.frame.index)
    return to_series(given, f"the {role}", index=table.frame.index)


def named_in(given: Any, frame: pd.DataFrame) -> str | list[str] | None:
    """Return the columns that were named; None where values were given."""
    if given is None or isinstance(given, str):
        return given
    named = isinstance(given, Sequence) and all(isinstance(name, str) for name in given) and len(given) < len(frame)
    return [str(name) for name in given] if named and given else None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
