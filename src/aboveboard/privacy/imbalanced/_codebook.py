"""Columns as small whole numbers, by public bounds and categories, and back."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core import InputError

__all__ = ["Bounds", "Codebook", "Codes"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Bounds = tuple[float, float] | Mapping[Any, tuple[float, float]] | NDArray[Any] | list[tuple[float, float]] | None


@dataclass(frozen=True, slots=True)
class _Bins:
    """A numeric column; values beyond the ends fall into the outer bins."""

    edges: Floats
    dtype: np.dtype[Any]

    @classmethod
    def build(cls, low: float, high: float, n_bins: int, dtype: np.dtype[Any]) -> "_Bins":
        if np.issubdtype(dtype, np.floating):
            return cls(np.linspace(low, high, n_bins + 1), dtype)
        n_values = int(high) - int(low) + 1
        return cls(np.linspace(low - 0.5, high + 0.5, min(n_bins, n_values) + 1), dtype)

    @property
    def n_codes(self) -> int:
        return len(self.edges) - 1

    def encode(self, values: Any) -> Codes:
        return np.searchsorted(self.edges[1:-1], np.asarray(values, dtype=np.float64), side="right")

    def decode(self, code: Codes, rng: np.random.Generator) -> NDArray[Any]:
        values = rng.uniform(self.edges[code], self.edges[code + 1])
        if np.issubdtype(self.dtype, np.floating):
            return values.astype(self.dtype)
        whole = np.clip(np.rint(values), np.ceil(self.edges[0]), np.floor(self.edges[-1]))
        return whole.astype(self.dtype)


@dataclass(frozen=True, slots=True)
class _Categories:
    """A column whose dtype lists its categories, which are therefore public."""

    dtype: Any
    categories: tuple[Any, ...]

    @property
    def n_codes(self) -> int:
        return len(self.categories)

    def encode(self, values: Any) -> Codes:
        code: Codes = pd.Index(self.categories).get_indexer(pd.Index(values))
        return code

    def decode(self, code: Codes, _: np.random.Generator) -> Any:
        values = pd.Index(self.categories).take(code)
        return np.asarray(values, dtype=bool) if self.dtype == bool else pd.Categorical(values, dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class Codebook:
    """How each column is turned into codes and back.

    Parameters
    ----------
    columns : tuple
        One per column.
    names : pandas.Index or None
        Of a data frame; None for an array.
    """

    columns: tuple[_Bins | _Categories, ...]
    names: pd.Index | None

    @classmethod
    def build(cls, X: Any, bounds: Bounds, n_bins: int) -> "Codebook":
        """Build it from bounds, from the categories of a data frame, and from nothing else of the rows."""
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        if not len(frame) or not frame.shape[1]:
            raise InputError(f"X has shape {frame.shape}", expected="rows and columns")
        missing = [str(name) for name in frame.columns if frame[name].isna().any()]
        if missing:
            raise InputError(
                f"values are missing in {', '.join(missing[:5])}",
                expected="a value in every cell",
                remedy="Make 'missing' a category, or fill them in with values that do not come from these rows",
            )
        numeric = [name for name in frame.columns if _is_numeric(frame[name].dtype)]
        ends = _ends(frame, numeric, bounds)
        columns = [
            _Bins.build(*ends[name], n_bins, frame[name].to_numpy().dtype) if name in ends else _categories(frame[name])
            for name in frame.columns
        ]
        return cls(tuple(columns), frame.columns if isinstance(X, pd.DataFrame) else None)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(column.n_codes for column in self.columns)

    @property
    def has_numbers(self) -> bool:
        return any(isinstance(column, _Bins) for column in self.columns)

    def encode(self, X: Any) -> Codes:
        """Return codes, shape (n, n_columns)."""
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        codes = [column.encode(frame[name]) for column, name in zip(self.columns, frame.columns, strict=True)]
        return np.column_stack(codes)

    def decode(self, codes: Codes, rng: np.random.Generator) -> Any:
        """Return rows of the kind that was encoded: numbers evenly from their bins."""
        values = [column.decode(codes[:, j], rng) for j, column in enumerate(self.columns)]
        if self.names is None:
            return np.column_stack(values)
        return pd.DataFrame(dict(zip(self.names, values, strict=True)))


def _is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _categories(values: pd.Series) -> _Categories:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _Categories(values.dtype, tuple(values.dtype.categories))
    if values.dtype == bool:
        return _Categories(values.dtype, (False, True))
    raise InputError(
        f"column {values.name!r} has the dtype {values.dtype}",
        expected="numbers, truth values or categories",
        remedy="Turn it into a pandas category whose list of categories does not come from the rows",
    )


def _ends(frame: pd.DataFrame, numeric: list[Any], bounds: Bounds) -> dict[Any, tuple[float, float]]:
    """Return the lower and upper bound of each numeric column."""
    if bounds is None:
        if numeric:
            warnings.warn(
                "no bounds were given, so they were taken from the rows: the smallest and largest values of each "
                "column leak, and the guarantee does not hold. Pass bounds that do not come from the rows",
                UserWarning,
                stacklevel=4,
            )
        found = {name: (float(frame[name].min()), float(frame[name].max())) for name in numeric}
        return {name: (low, high if high > low else low + 1) for name, (low, high) in found.items()}
    if isinstance(bounds, Mapping):
        absent = [name for name in numeric if name not in bounds]
        if absent:
            raise InputError(
                f"bounds are missing for {', '.join(map(repr, absent[:5]))}", expected="one for each number"
            )
        pairs = {name: bounds[name] for name in numeric}
    else:
        array = np.asarray(bounds, dtype=np.float64)
        if array.shape not in ((2,), (len(numeric), 2)):
            raise InputError(
                f"bounds have shape {array.shape}",
                expected=f"one pair for all columns, or one for each of the {len(numeric)} columns of numbers",
            )
        pairs = dict(zip(numeric, np.broadcast_to(array, (len(numeric), 2)).tolist(), strict=True))
    for name, (low, high) in pairs.items():
        if not (np.isfinite([low, high]).all() and low < high):
            raise InputError(f"the bounds of {name!r} are {low} and {high}", expected="a smaller and a larger number")
    return {name: (float(low), float(high)) for name, (low, high) in pairs.items()}
