"""Tables of any kind become pandas data frames here, and columns become groups or numbers."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final, Literal

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from aboveboard.core.errors import InputError

__all__ = [
    "MAX_NUMERIC_GROUPS",
    "MISSING",
    "ColumnKind",
    "column_kind",
    "cut_representatives",
    "group_codes",
    "missing_column",
    "numbers",
    "plain_label",
    "quartile_edges",
    "quartile_note",
    "recoded_groups",
    "rounded_quartiles",
    "to_frame",
    "to_series",
]

ColumnKind = Literal["number", "boolean", "category", "datetime", "text"]

MISSING: Final = "(missing)"
"""The group of the rows whose sensitive value is missing."""

MAX_GROUPS: Final = 100
MAX_NUMERIC_GROUPS: Final = 12
"""Numbers with more distinct values are cut into groups."""

_LARGEST_EXACT: Final = 2.0**53


def to_frame(data: Any, what: str) -> pd.DataFrame:
    """Return `data` as a pandas data frame with text column names.

    Parameters
    ----------
    data : pandas, Polars or Arrow table, mapping of columns, or 2-d NumPy array
        An array's columns are called x0, x1, ...
    what : str
        What it is, for the messages: ``"X"``.

    Raises
    ------
    InputError
        When it is none of these, has no columns, two columns of one name or a name that is no valid text, or a column
        of lists or the like.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InputError(f"{what} is an array with {data.ndim} dimension(s)", expected="a table: rows x columns")
        frame = pd.DataFrame(data, columns=[f"x{i}" for i in range(data.shape[1])])
    elif isinstance(data, Mapping):
        try:
            frame = pd.DataFrame(dict(data))
        except ValueError as error:
            raise InputError(
                f"the columns of {what} do not make a table ({error})", expected="columns of one length"
            ) from error
    else:
        try:
            frame = nw.from_native(data, eager_only=True).to_pandas()
        except TypeError as error:
            raise InputError(
                f"{what} is a {type(data).__name__}",
                expected="a pandas, Polars or PyArrow table, or a 2-d NumPy array",
            ) from error
    names = [str(name) for name in frame.columns]
    if not names:
        raise InputError(f"{what} has no columns")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InputError(
            f"{what} has more than one column called {repeated[0]!r}",
            expected="every column to have a name of its own",
            remedy="Rename or remove the repeated columns",
        )
    broken = next((name for name in names if not _is_unicode(name)), None)
    if broken is not None:
        raise InputError(f"{what} has a column whose name, {broken!r}, is no valid text", remedy="Rename it")
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis=1)
    for name in names:
        _refuse_nested(frame[name], f"the column {name!r} of {what}")
    return frame


def to_series(data: Any, what: str, *, index: pd.Index | None = None) -> "pd.Series[Any]":
    """Return `data` as a pandas Series, lined up with `index`.

    Raises
    ------
    InputError
        When it is not one column, has another length, or is indexed otherwise.
    """
    if isinstance(data, pa.Array):
        data = pa.chunked_array([data])
    if isinstance(data, pd.Series):
        series = data
    elif isinstance(data, np.ndarray | Sequence | pd.Index | pd.api.extensions.ExtensionArray) and not isinstance(
        data, str
    ):
        shape = np.shape(np.asarray(data, dtype=object))
        if len(shape) == 2 and shape[1] == 1:
            data = np.asarray(data).reshape(-1)
        elif len(shape) != 1:
            raise InputError(f"{what} has {len(shape)} dimensions", expected="one value per row")
        return _aligned(pd.Series(data), what, index, index_given=False)
    elif isinstance(data, pd.DataFrame) or hasattr(data, "columns"):
        frame = to_frame(data, what)
        if frame.shape[1] != 1:
            raise InputError(f"{what} has {frame.shape[1]} columns", expected="one")
        return _aligned(frame.iloc[:, 0], what, index, isinstance(data, pd.DataFrame))
    else:
        try:
            native = nw.from_native(data, series_only=True)
        except TypeError as error:
            raise InputError(f"{what} is a {type(data).__name__}", expected="one value per row") from error
        return _aligned(native.to_pandas(), what, index, index_given=False)
    return _aligned(series, what, index, index_given=True)


def _aligned(series: "pd.Series[Any]", what: str, index: pd.Index | None, index_given: bool) -> "pd.Series[Any]":
    _refuse_nested(series, what)
    if index is None:
        return series
    if len(series) != len(index):
        raise InputError(f"{what} has {len(series):,} values and X has {len(index):,} rows", expected="as many")
    if not index_given:
        return series.set_axis(index)
    if not series.index.equals(index):
        raise InputError(
            f"the index of {what} is not that of X",
            expected="the same index in the same order, or none",
            remedy="If row i belongs to row i, reset both with .reset_index(drop=True)",
        )
    return series


def _is_unicode(text: str) -> bool:
    """Whether text can be written to a file: half a surrogate pair cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _refuse_nested(series: "pd.Series[Any]", what: str) -> None:
    """Refuse lists, dicts, arrays and complex numbers: nothing here could count or compare them."""
    dtype = series.dtype
    holds = ""
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_nested(dtype.pyarrow_dtype):
        holds = str(dtype.pyarrow_dtype)
    elif pd.api.types.is_complex_dtype(dtype):
        holds = "complex numbers"
    elif pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(series, skipna=True) == "mixed":
        holds = next((type(value).__name__ for value in series if getattr(value, "__hash__", None) is None), "")
    if holds:
        raise InputError(
            f"{what} holds values of the type {holds}",
            expected="one number, text, boolean or date in each row",
            remedy="Leave that column out, or turn it into plain columns first",
        )


def column_kind(series: "pd.Series[Any]") -> ColumnKind:
    """Return what a column holds, whatever its container: number, boolean, category, datetime or text.

    A column without any value counts as numbers, as pandas reads it from a file.
    """
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "datetime"
    if isinstance(dtype, pd.PeriodDtype):
        return "datetime"
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_temporal(dtype.pyarrow_dtype):
        return "datetime"
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_dictionary(dtype.pyarrow_dtype):
        return "category"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_object_dtype(dtype):
        inferred = pd.api.types.infer_dtype(series, skipna=True)
        if inferred == "boolean":
            return "boolean"
        if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
            return "number"
        if inferred in ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period"):
            return "datetime"
    return "number" if series.first_valid_index() is None else "text"


def plain_label(value: Any) -> str:
    """Return a value as text, alike for every container.

    1, 1.0, Decimal("1.00") and numpy.int64(1) are all ``"1"``; midnight is its date.
    """
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    elif hasattr(value, "item"):
        value = value.item()
    if isinstance(value, Decimal) and value.is_finite():
        value = float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        value = int(value)
    if isinstance(value, datetime):
        text = str(value)
        return text.removesuffix(" 00:00:00") if value.tzinfo is None else text
    return str(value)


def numbers(series: "pd.Series[Any]") -> np.ndarray:
    """Return a column as float64, missing values as NaN.

    Raises
    ------
    ValueError, TypeError
        When a value is no number.
    """
    if column_kind(series) == "datetime":
        raise TypeError("dates are no numbers")
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        series = series.astype(object)
    elif isinstance(dtype, pd.ArrowDtype) and pa.types.is_decimal(dtype.pyarrow_dtype):
        series = series.astype("double[pyarrow]")
    return pd.to_numeric(series).to_numpy(dtype="float64", na_value=np.nan)


def group_codes(series: "pd.Series[Any]", *, edges: Sequence[float] | None = None) -> tuple["pd.Series[Any]", str]:
    """Return a sensitive column as a categorical of group names, and a note on how it was cut (or "").

    Missing values of every kind form the group `MISSING`. Numbers with more than 12 distinct values are cut at
    `edges`, else at their quartiles.

    Parameters
    ----------
    series : Series
    edges : sequence of float, optional
        Ascending cut points a < b < c: the groups are (-inf, a), [a, b), [b, c) and [c, inf).

    Raises
    ------
    InputError
        When there are more than 100 groups, or edges are given for a column that holds no numbers.
    """
    name = str(series.name)
    kind = column_kind(series)
    note = ""
    edges = edges or None
    if edges is not None and kind != "number":
        raise InputError(f"the sensitive column {name!r} holds {kind}, so it cannot be cut at {list(edges)}")
    if kind == "datetime":
        raise InputError(
            f"the sensitive column {name!r} holds dates",
            expected="groups",
            remedy="Turn it into years or periods first",
        )
    if edges is None:
        edges = quartile_edges(series)
        if edges is not None:
            note = quartile_note(name, f"{series.nunique():,}", edges)
    if edges is not None:
        return _cut(series, edges), note
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    is_missing = np.array([value != value for value in uniques], dtype=bool)  # NaN inside nullable columns
    codes = np.where(np.append(is_missing, False)[codes], -1, codes)
    labels = [plain_label(value) for value in uniques]
    if len(labels) > MAX_GROUPS:
        raise InputError(
            f"the sensitive column {name!r} has {len(labels):,} groups",
            expected=f"at most {MAX_GROUPS}",
            remedy="Name another column, or join small groups first",
        )
    distinct = sorted({label for label, missing in zip(labels, is_missing, strict=True) if not missing}, key=_natural)
    position = {label: i for i, label in enumerate(distinct)}
    recoded = np.array([*(position.get(label, len(distinct)) for label in labels), len(distinct)])[codes]
    return _categorical(recoded, distinct, series), note


def rounded_quartiles(quartiles: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    """Return cut points near the quartiles, of four digits."""
    return sorted({float(f"{quartile:.4g}") for quartile in quartiles})


def quartile_note(name: str, distinct: str, edges: Sequence[float]) -> str:
    """Say that a column was cut at its quartiles."""
    return f"{name} has {distinct} distinct numbers and was cut at its quartiles: {_listed(edges)}."


def cut_representatives(edges: Sequence[float]) -> list[float]:
    """Return a number of each group that cut points make, in their order."""
    return [float(np.nextafter(edges[0], -np.inf)), *(float(edge) for edge in edges)]


def recoded_groups(series: "pd.Series[Any]", categories: pd.Index, edges: Sequence[float] | None) -> "pd.Series[Any]":
    """Return part of a sensitive column as a categorical of groups that `group_codes` found in the whole.

    Parameters
    ----------
    series : Series
    categories : Index
        The names of the groups. Missing values go to the last, as `group_codes` has it.
    edges : sequence of float, optional
        The cut points that it used.
    """
    names = [str(name) for name in categories]
    if edges:
        own = _cut(series, edges)
        codes, labels = own.cat.codes.to_numpy(), [str(name) for name in own.cat.categories]
        is_missing = np.array([label.startswith(MISSING) for label in labels], dtype=bool)
    else:
        codes, uniques = pd.factorize(series, use_na_sentinel=True)
        labels = [plain_label(value) for value in uniques]
        is_missing = np.array([value != value for value in uniques], dtype=bool)
    place = {name: i for i, name in enumerate(names)}
    last = len(names) - 1
    table = [last if missing else place[label] for label, missing in zip(labels, is_missing, strict=True)]
    return pd.Series(
        pd.Categorical.from_codes(np.array([*table, last], dtype=np.int64)[codes], categories=categories),
        index=series.index,
        name=series.name,
    )


def quartile_edges(series: "pd.Series[Any]") -> list[float] | None:
    """Return where `group_codes` cuts a column unasked: at the quartiles, where it holds more than 12 numbers."""
    if column_kind(series) != "number" or series.nunique() <= MAX_NUMERIC_GROUPS:
        return None
    values = numbers(series)
    return rounded_quartiles(np.quantile(values[np.isfinite(values)], [0.25, 0.5, 0.75]))


def _cut(series: "pd.Series[Any]", edges: Sequence[float]) -> "pd.Series[Any]":
    if list(edges) != sorted(set(edges)) or not np.isfinite(list(edges)).all():
        raise InputError(f"the cut points of {series.name!r} are {list(edges)}", expected="ascending, finite numbers")
    values = numbers(series)
    codes = np.searchsorted(np.asarray(edges, dtype="float64"), values, side="right")
    codes[np.isnan(values)] = len(edges) + 1
    texts = [plain_label(float(edge)) for edge in edges]
    middle = [f"{low} to under {high}" for low, high in pairwise(texts)]
    return _categorical(codes, [f"under {texts[0]}", *middle, f"{texts[-1]} and over"], series)


def _categorical(
    codes: np.ndarray[Any, np.dtype[np.int64]], labels: list[str], series: "pd.Series[Any]"
) -> "pd.Series[Any]":
    """Make a categorical in which the code len(labels) stands for missing, and only groups with rows remain."""
    missing = MISSING
    while missing in labels:
        missing += "*"
    names = [*labels, missing]
    counts = np.bincount(codes, minlength=len(names))
    kept = np.flatnonzero(counts)
    position = np.cumsum(counts > 0) - 1
    values = pd.Categorical.from_codes(
        np.asarray(position[codes], dtype=np.int64), categories=pd.Index([names[i] for i in kept], dtype=object)
    )
    return pd.Series(values, index=series.index, name=series.name)


def missing_column(name: str, columns: Sequence[str], role: str) -> InputError:
    """Return the error for a column that is not there, with the nearest name."""
    near = get_close_matches(name, list(columns), n=1, cutoff=0.5) or [
        column for column in columns if column.casefold() == name.casefold()
    ]
    shown = ", ".join(map(repr, columns[:12])) + (f" and {len(columns) - 12} more" if len(columns) > 12 else "")
    return InputError(
        f"there is no column {name!r} for the {role}",
        expected=f"one of {shown}",
        remedy=f"Did you mean {near[0]!r}?" if near else "",
    )


def _natural(text: str) -> list[tuple[int, float, str]]:
    """Sort key under which "9" stands before "10"."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(0, float(part), "") if i % 2 else (1, 0.0, part) for i, part in enumerate(parts) if part]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(plain_label(float(value)) for value in values)
