"""Tables from several sources as one matrix, whatever their containers and types."""

import datetime
import decimal
import numbers
import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = ["Features", "TableEncoder", "as_frame", "encodable", "joined", "named_frame"]

_LEVELS: Final = 250
_LISTED: Final = 5
_ID_NAME: Final = re.compile(r"(^|[_\W])(id|ids|idx|index|key|uuid|guid|rowid|unnamed: 0)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Features:
    """Rows as a classifier sees them.

    Parameters
    ----------
    values : ndarray, shape (n, d) for tables, (n,) for text, (n, height, width, channels) for images
        In tables, categories are whole-number codes, and what is missing is NaN.
    names : tuple of str
        Column names; empty for text and images.
    categorical : ndarray of bool, shape (d,)
    """

    values: NDArray[Any]
    names: tuple[str, ...] = ()
    categorical: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.intp]) -> "Features":
        return replace(self, values=self.values[rows])

    def without(self, column: str) -> "Features":
        kept = [j for j, name in enumerate(self.names) if name != column]
        return self.keep(kept)

    def keep(self, columns: list[int]) -> "Features":
        mask = None if self.categorical is None else self.categorical[columns]
        return Features(self.values[:, columns], tuple(self.names[j] for j in columns), mask)


def as_frame(X: Any, what: str) -> pd.DataFrame:
    """Return a data frame whose column names are distinct text; `what` names the table in errors."""
    if not isinstance(X, pd.DataFrame):
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            import narwhals.stable.v1 as nw

            X = nw.from_native(X, eager_only=True).to_pandas()
        else:
            array = np.asarray(X)
            if array.ndim != 2:
                raise InputError(
                    f"{what} has {array.ndim} dimensions",
                    expected="a table: one row per record, one column per feature",
                )
            X = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
            X = X.infer_objects() if array.dtype == object else X
    names = [str(name) for name in X.columns]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InputError(f"{what} has columns with the same name: {_listed(repeated)}", expected="distinct names")
    # text of any kind: pandas would refuse half of a surrogate pair in an index of strings
    named: pd.DataFrame = X.set_axis(pd.Index(names, dtype=object), axis=1)
    return named


def named_frame(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return a data frame whose text is kept as Python's, since it may hold users' names of any kind."""
    parts = {}
    for j, column in enumerate(columns):
        values = [row[j] for row in rows]
        parts[column] = pd.Series(values, dtype=object if any(isinstance(v, str) for v in values) else None)
    return pd.DataFrame(parts)


def joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all rows in one frame, with the types made alike.

    Raises
    ------
    InputError
        When columns or the kinds of their values differ between sources.
    """
    (first_name, first), *others = frames.items()
    for name, frame in others:
        missing, extra = first.columns.difference(frame.columns), frame.columns.difference(first.columns)
        if len(missing) or len(extra):
            parts = [f"{name} lacks {_listed(missing)}"] * bool(len(missing))
            parts += [f"{name} has {_listed(extra)}, which {first_name} has not"] * bool(len(extra))
            raise InputError(
                f"the columns differ: {'; '.join(parts)}",
                expected="the same columns in every source",
                remedy="Keep the columns that all sources share: a column that only one has gives the source away",
            )
    if not len(first.columns):
        raise InputError("the tables have no columns", expected="at least one")
    columns = [_joined_column(column, {n: f[column] for n, f in frames.items()}) for column in first.columns]
    return pd.concat(columns, axis=1, ignore_index=True).set_axis(first.columns, axis=1)


def encodable(
    frame: pd.DataFrame, codes: NDArray[np.intp], sources: tuple[str, ...], keep: Collection[str]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Leave out the columns that would tell sources apart for no interesting reason; say which and why.

    Left out are row identifiers, dates and times, and columns that are wholly missing in a source, but for those among
    `keep`.
    """
    unknown = sorted(set(keep) - set(frame.columns))
    if unknown:
        raise InputError(f"keep names columns that there are not: {_listed(unknown)}", expected="names of columns")
    reasons = {}
    for column in frame.columns:
        if column not in keep and (reason := _reason(frame[column], codes, sources)):
            reasons[column] = reason
    if reasons:
        told = "; ".join(f"{name!r} ({reason})" for name, reason in list(reasons.items())[:_LISTED])
        more = f" and {len(reasons) - _LISTED} more" if len(reasons) > _LISTED else ""
        warnings.warn(
            f"Columns left out, because they give the source away or say nothing: {told}{more}. "
            "Name them in keep=(...) to use them all the same.",
            UserWarning,
            stacklevel=4,
        )
    kept = frame.drop(columns=list(reasons))
    if not len(kept.columns):
        raise InputError(
            "no column is left: " + "; ".join(f"{name!r} is left out ({why})" for name, why in reasons.items()),
            expected="at least one column that is neither an identifier nor wholly missing in a source",
            remedy="Name columns in keep=(...) to use them all the same",
        )
    return kept, reasons


class TableEncoder:
    """Numbers as they are; words as codes, the commonest first; at most 250 words per column, the others as one."""

    def fit(self, frame: pd.DataFrame) -> Self:
        """Learn which words there are. Sources play no part in it."""
        self.columns_ = tuple(frame.columns)
        self.kinds_ = {column: _kind(frame[column]) for column in frame.columns}
        self.words_: dict[str, dict[str, int]] = {}
        for column, kind in self.kinds_.items():
            if kind == "category":
                counts = Counter(word for word in _words(frame[column]) if word is not None)
                ordered = sorted(counts, key=lambda word: (-counts[word], word))
                self.words_[column] = {word: code for code, word in enumerate(ordered[:_LEVELS])}
        return self

    def transform(self, frame: pd.DataFrame) -> Features:
        """Return the matrix; a word that was not there in `fit` is counted among the rare ones."""
        values = np.empty((len(frame), len(self.columns_)))
        for j, column in enumerate(self.columns_):
            if column in self.words_:
                known = self.words_[column]
                codes, words = _coded_words(frame[column])
                table = np.array([*(known.get(word, len(known)) for word in words), np.nan], dtype=np.float64)
                values[:, j] = table[codes]
            else:
                values[:, j] = _numbers(frame[column])
        return Features(values, self.columns_, np.array([c in self.words_ for c in self.columns_], dtype=bool))

    def read(self, X: Any, what: str = "X") -> Features:
        """Return the matrix of a new table, whose columns are checked first."""
        frame = as_frame(X, what)
        missing = [column for column in self.columns_ if column not in frame.columns]
        if missing:
            raise InputError(f"{what} lacks the columns {_listed(missing)}", expected="the columns that were fitted")
        for column in self.columns_:
            kind = _kind(frame[column])
            if kind not in ("empty", self.kinds_[column]) and self.kinds_[column] != "empty":
                if self.kinds_[column] == "category":
                    continue
                raise InputError(
                    f"the column {column!r} of {what} holds {_plural(kind)}", expected=_plural(self.kinds_[column])
                )
        return self.transform(frame[list(self.columns_)])


def _joined_column(column: str, parts: dict[str, "pd.Series[Any]"]) -> "pd.Series[Any]":
    kinds = {name: _kind(part) for name, part in parts.items()}
    found = {kind for kind in kinds.values() if kind != "empty"}
    if len(found) > 1:
        told = ", ".join(f"{_plural(kind)} in {name}" for name, kind in kinds.items())
        raise InputError(
            f"the column {column!r} holds {told}",
            expected="values of one kind in every source",
            remedy="Convert them first: a difference of types gives the source away",
        )
    kind = found.pop() if found else "empty"
    if kind == "category":
        merged = np.concatenate([_words(part) for part in parts.values()])
        return pd.Series(merged, dtype=object)
    if kind == "datetime":
        return pd.concat([_moments(part) for part in parts.values()], ignore_index=True)
    widths = {
        part.dtype.itemsize for part in parts.values() if isinstance(part.dtype, np.dtype) and part.dtype.kind == "f"
    }
    values = [_numbers(part) for part in parts.values()]
    if len(widths) > 1:
        # a double rounded to single precision differs from one that was not
        values = [value.astype(np.float32).astype(np.float64) for value in values]
    merged = np.concatenate(values)
    whole = kind == "number" and all(_whole(part) for part in parts.values())
    return pd.Series(merged, dtype="float64").astype("Int64") if whole and _exact(merged) else pd.Series(merged)


def _exact(values: NDArray[np.float64]) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.isnan(values) | (np.abs(values) < 2.0**53)))


def _whole(part: "pd.Series[Any]") -> bool:
    return bool(pd.api.types.is_integer_dtype(part.dtype)) or bool(part.isna().all())


def _reason(values: "pd.Series[Any]", codes: NDArray[np.intp], sources: tuple[str, ...]) -> str:
    known = values.notna().to_numpy()
    counts = np.bincount(codes[known], minlength=len(sources))
    if not counts.any():
        return "missing in every row"
    if (counts == 0).any():
        return f"missing in every row of {sources[int(np.argmin(counts))]}"
    kind = _kind(values)
    if kind == "datetime":
        return "dates or times"
    if kind == "number" and not pd.api.types.is_integer_dtype(values.dtype):
        return ""
    return "an identifier of rows" if _identifies_rows(values, codes, kind) else ""


def _identifies_rows(values: "pd.Series[Any]", codes: NDArray[np.intp], kind: str) -> bool:
    """Tell whether values are distinct within every source and, for numbers, also look like a count of rows."""
    if kind == "boolean":
        return False
    ids = True
    for code in range(int(codes.max()) + 1):
        part = values[codes == code].dropna()
        if part.nunique() < len(part):
            return False
        if kind == "number":
            number = part.to_numpy(dtype=np.float64)
            steps = np.diff(number)
            counts_rows = np.ptp(number) < 4 * len(number) or bool((steps > 0).all()) or bool((steps < 0).all())
            ids &= counts_rows
    return ids or bool(_ID_NAME.search(str(values.name)))


def _kind(series: "pd.Series[Any]") -> str:
    """Return ``"number"``, ``"category"``, ``"datetime"`` or, where all is missing, ``"empty"``."""
    dtype = series.dtype
    if not len(series) or series.isna().all():
        return "empty"
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "number"
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError(f"the column {series.name!r} holds complex numbers", expected="numbers, words or dates")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "datetime"
    if pd.api.types.is_object_dtype(dtype):
        known = series.dropna()
        if all(isinstance(value, numbers.Real | decimal.Decimal | np.bool_) for value in known):
            return "number"
        if all(isinstance(value, datetime.date | np.datetime64) for value in known):
            return "datetime"
    return "category"


def _numbers(series: "pd.Series[Any]") -> NDArray[np.float64]:
    if pd.api.types.is_datetime64_any_dtype(series.dtype) or (series.dtype == object and _kind(series) == "datetime"):
        moments = _moments(series).to_numpy(dtype="datetime64[us]")
        values = moments.astype(np.int64).astype(np.float64)
        values[np.isnat(moments)] = np.nan
        return values
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return np.asarray(series.dt.total_seconds(), dtype=np.float64)
    if series.dtype == object:
        series = pd.Series([np.nan if pd.isna(value) else float(value) for value in series], dtype="float64")
    try:
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {series.name!r} does not hold numbers", expected="numbers") from error


def _moments(series: "pd.Series[Any]") -> "pd.Series[Any]":
    moments = pd.to_datetime(series, errors="coerce", utc=True)
    return moments.dt.tz_localize(None).astype("datetime64[us]")


def _words(series: "pd.Series[Any]") -> NDArray[Any]:
    """Return each value as text, None where it is missing; 1 and 1.0 are the same word."""
    codes, words = _coded_words(series)
    table = np.array([*words, None], dtype=object)
    return np.asarray(table[codes])


def _coded_words(series: "pd.Series[Any]") -> tuple[NDArray[np.intp], list[str]]:
    """Return a code per row, -1 where missing, and the words."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy().astype(np.intp), [_word(value) for value in series.cat.categories]
    try:
        codes, uniques = pd.factorize(series, use_na_sentinel=True)
    except TypeError:  # lists and the like have no hash
        words = np.array([None if value is None else _word(value) for value in series], dtype=object)
        codes, uniques = pd.factorize(pd.Series(words, dtype=object), use_na_sentinel=True)
    return codes, [_word(value) for value in uniques]


def _word(value: Any) -> str:
    if isinstance(value, float) and np.isfinite(value) and value == int(value):
        value = int(value)
    return str(value)


def _plural(kind: str) -> str:
    return {"number": "numbers", "category": "words", "datetime": "dates or times", "empty": "nothing"}[kind]


def _listed(names: Any) -> str:
    shown = [repr(str(name)) for name in names]
    return ", ".join(shown[:_LISTED]) + (f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else "")
