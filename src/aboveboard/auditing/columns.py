"""Columns of any container as numbers, codes and hashes, alike for the same values.

What two columns have in common must not depend on how they are stored: 1, 1.0 and True are one value, text is the same
in an object column, a string column and a categorical, and everything missing is one value.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.frames import column_kind

__all__ = [
    "CodedColumn",
    "chance_of_match",
    "changed_kind",
    "coded",
    "comparable_columns",
    "has_values",
    "level_codes",
    "numbers",
    "row_hashes",
    "value_hashes",
]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MISSING: Final = np.uint64(0x5DEECE66D1B54A33)
_SAMPLE: Final = 20_000
_WHOLE: Final = 2.0**53  # beyond this a float cannot tell neighbouring whole numbers apart


def numbers(series: "pd.Series[Any]", kind: str | None = None) -> NDArray[np.float64]:
    """Return a column of numbers, booleans, dates or durations as float64, NaN where missing.

    Dates and durations are in microseconds. Text gives NaN where it is no number.
    """
    kind = kind or column_kind(series)
    if kind == "boolean":
        return np.asarray(series.astype("boolean").to_numpy(dtype="float64", na_value=np.nan), dtype="float64")
    if kind == "datetime":
        return _microseconds(series)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        return series.to_numpy(dtype="float64")
    if isinstance(series.dtype, pd.CategoricalDtype):
        table = np.append(numbers(pd.Series(series.cat.categories)), np.nan)
        return np.asarray(table[series.cat.codes.to_numpy()], dtype="float64")
    return np.asarray(pd.to_numeric(series, errors="coerce").to_numpy(dtype="float64", na_value=np.nan))


def has_values(series: "pd.Series[Any]") -> bool:
    """Whether any value of a column is known."""
    return bool(series.notna().any())


def changed_kind(new: "pd.Series[Any]", old: "pd.Series[Any]") -> bool:
    """Whether two columns hold different kinds of value: number and boolean are one, category and text too."""
    if not (has_values(new) and has_values(old)):
        return False
    kinds = {"boolean": "number", "category": "text"}
    first, second = (kinds.get(kind, kind) for kind in (column_kind(new), column_kind(old)))
    return first != second


def comparable_columns(new: pd.DataFrame, old: pd.DataFrame) -> list[str]:
    """Return the columns of `old`, all of which `new` has, that hold the same kind of value in both."""
    return [str(name) for name in old.columns if not changed_kind(new[name], old[name])]


def level_codes(series: "pd.Series[Any]") -> tuple[NDArray[np.int32], list[Any]]:
    """Return a code per row (-1 where missing) and the distinct values that occur, in order of appearance."""
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    return codes.astype(np.int32), list(uniques)


def value_hashes(series: "pd.Series[Any]", *, single: bool = False) -> NDArray[np.uint64]:
    """Return 64-bit hashes under which equal values are equal, whatever the column's container.

    Parameters
    ----------
    series : Series of length n
    single : bool
        Compare numbers in single precision, where the other table stores them so.

    Returns
    -------
    ndarray of uint64, shape (n,)

    Notes
    -----
    O(n) time. Two different values share a hash with probability 2^-64.
    """
    kind = column_kind(series)
    if kind == "datetime":
        values = _microseconds(series)
        hashes = _mix(values.view(np.uint64) ^ _GOLDEN)
        hashes[np.isnan(values)] = _MISSING
        return hashes
    if kind in ("number", "boolean"):
        return _number_hashes(series, kind, single)
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    table = np.append(_label_hashes(np.asarray(uniques, dtype=object), single), _MISSING)
    return table[codes]


def row_hashes(frame: pd.DataFrame, *, single: frozenset[str] = frozenset()) -> NDArray[np.uint64]:
    """Return one 64-bit hash per row; equal rows have equal hashes.

    Parameters
    ----------
    frame : DataFrame of shape (n, d)
    single : frozenset of str
        Columns whose numbers are compared in single precision.

    Notes
    -----
    O(n d) time and O(n) memory. Among a million rows the chance that any two different ones collide is below 1e-7.
    """
    total = np.zeros(len(frame), dtype=np.uint64)
    for position, name in enumerate(frame.columns):
        hashes = value_hashes(frame[name], single=str(name) in single)
        shift = (position + 1) * int(_GOLDEN) % 2**64
        total += _mix(hashes + np.uint64(shift))
    return total


def chance_of_match(frame: pd.DataFrame, rows: NDArray[np.intp], rng: np.random.Generator) -> float:
    """Return an upper bound of the chance that two rows drawn from the same population agree in every column.

    They agree at most as often as in the column that repeats its values least, which needs no assumption on how columns
    depend on each other.

    Parameters
    ----------
    frame : DataFrame
    rows : ndarray of int
        Positions of rows that differ from each other; up to 20,000 of them are looked at.
    rng : numpy.random.Generator

    Returns
    -------
    float in [0, 1]
        With three pairs added, so that it holds with 95 % confidence where no pair was seen.
    """
    picked = rng.choice(rows, size=min(len(rows), _SAMPLE), replace=False)
    pairs = len(picked) * (len(picked) - 1) / 2
    if pairs < 1:
        return 1.0
    least = pairs
    for name in frame.columns:
        _, counts = np.unique(value_hashes(frame[name].iloc[picked]), return_counts=True)
        least = min(least, float((counts * (counts - 1.0) / 2).sum()))
    return min((least + 3.0) / pairs, 1.0)


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column in few enough levels to count over.

    Parameters
    ----------
    name, kind : str
    codes : ndarray of int32, shape (n,)
        In ``range(levels)``; missing values have the last code.
    levels : int
        Including the one for missing values, whether or not it occurs.
    values : ndarray of float64, shape (n,), or None
        The numbers behind the codes; None for text and categories.
    """

    name: str
    kind: str
    codes: NDArray[np.int32]
    levels: int
    values: NDArray[np.float64] | None

    @property
    def missing(self) -> NDArray[np.bool_]:
        return self.codes == self.levels - 1


def coded(series: "pd.Series[Any]", *, bins: int = 64) -> CodedColumn:
    """Return a column in levels: text and categories as they are, numbers in at most `bins` quantile bins.

    Numbers with no more than `bins` distinct values keep a level each.
    """
    kind = column_kind(series)
    name = str(series.name)
    if kind in ("category", "text"):
        codes, uniques = level_codes(series)
        codes[codes < 0] = len(uniques)
        return CodedColumn(name, kind, codes, len(uniques) + 1, None)
    values = numbers(series, kind)
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    if len(distinct) <= bins:
        edges = distinct
    else:
        edges = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="lower"))
    codes = np.searchsorted(edges, values, side="left").astype(
        np.int32
    )  # inf, and numbers past the last edge: one more
    codes[np.isnan(values)] = len(edges) + 1
    return CodedColumn(name, kind, codes, len(edges) + 2, values)


def _number_hashes(series: "pd.Series[Any]", kind: str, single: bool) -> NDArray[np.uint64]:
    values = numbers(series, kind)
    if single:
        values = values.astype(np.float32).astype(np.float64)
    values = values + 0.0  # -0.0 becomes 0.0
    hashes = _mix(values.view(np.uint64))
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" and not single:
        large = np.abs(values) >= _WHOLE
        if large.any():
            whole = series.to_numpy()[large]
            with np.errstate(invalid="ignore"):  # the last few numbers below 2^63 round up to it
                rest = whole - values[large].astype(whole.dtype)
            hashes[large] += _mix(rest.astype(np.int64).view(np.uint64)) * (rest != 0)
    hashes[np.isnan(values)] = _MISSING
    return hashes


def _label_hashes(labels: NDArray[Any], single: bool) -> NDArray[np.uint64]:
    numeric = np.array([isinstance(label, int | float | np.number | np.bool_) for label in labels], dtype=bool)
    hashes = np.empty(len(labels), dtype=np.uint64)
    if numeric.any():
        hashes[numeric] = _number_hashes(pd.Series(labels[numeric].astype(np.float64)), "number", single)
    text = [str(label) for label in labels[~numeric]]
    try:
        hashes[~numeric] = pd.util.hash_array(np.array(text, dtype=object), categorize=False)
    except UnicodeEncodeError:  # half of a surrogate pair is no valid text, and yet it occurs
        encoded = [label.encode("utf-8", "surrogatepass") for label in text]
        hashes[~numeric] = pd.util.hash_array(np.array(encoded, dtype=object), categorize=False)
    return hashes


def _microseconds(series: "pd.Series[Any]") -> NDArray[np.float64]:
    duration = pd.api.types.is_timedelta64_dtype(series.dtype) or (
        isinstance(series.dtype, pd.ArrowDtype) and series.dtype.kind == "m"
    )
    if duration:
        counts = series.astype("timedelta64[ns]").to_numpy().astype("timedelta64[us]").astype(np.int64)
    else:
        moments = pd.to_datetime(series, errors="coerce", utc=True)
        counts = moments.dt.tz_localize(None).to_numpy(dtype="datetime64[us]").astype(np.int64)
    values = counts.astype(np.float64)
    values[counts == np.iinfo(np.int64).min] = np.nan
    return values


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers so that each bit depends on all (the finaliser of SplitMix64)."""
    mixed = bits ^ (bits >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
