"""Tables of people become matrices: numbers as they are, the values of group columns as codes."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError

__all__ = ["Columns", "check_forecasts", "check_outcomes", "count_people", "take_people"]

Floats = NDArray[np.float64]

_MISSING: Final = "(missing)"
_MOST_LEVELS: Final = 100


@dataclass(frozen=True)
class Columns:
    """The columns of a table of people, learned once.

    Attributes
    ----------
    names : tuple of str
    levels : dict of int to tuple
        For each group column its values, in order; a value is coded by its position. Missing values are one.
    """

    names: tuple[str, ...]
    levels: dict[int, tuple[Any, ...]]

    @classmethod
    def learn(cls, X: Any, groups: Iterable[str | int]) -> "Columns":
        """Read names, and the values of the columns in `groups`.

        Raises
        ------
        InputError
            For a group column that is not there or has more than 100 values.
        """
        frame = _frame(X)
        names = tuple(map(str, frame.columns))
        levels: dict[int, tuple[Any, ...]] = {}
        for group in groups:
            at = position(group, names)
            found = sorted(set(_labels(frame.iloc[:, at])), key=lambda label: (label == _MISSING, label))
            if len(found) > _MOST_LEVELS:
                raise InputError(
                    f"the group column {names[at]!r} has {len(found):,} values",
                    expected=f"at most {_MOST_LEVELS} groups",
                    remedy="Put numbers into bands first, such as ages by decade, or join small groups",
                )
            levels[at] = tuple(found)
        return cls(names, levels)

    @property
    def numeric(self) -> tuple[int, ...]:
        """Positions of the columns that hold numbers."""
        return tuple(at for at in range(len(self.names)) if at not in self.levels)

    def encode(self, X: Any) -> Floats:
        """Return a matrix of shape (n, columns); -1 codes a group that was not there when the columns were learned.

        Raises
        ------
        InputError
            When the columns are not those that were learned, or a column that is no group holds something that is no
            finite number.
        """
        frame = _frame(X)
        names = tuple(map(str, frame.columns))
        unnamed = isinstance(X, np.ndarray | list | tuple)
        if len(names) != len(self.names) or (names != self.names and not unnamed):
            raise InputError(f"X has the columns {list(names)}", expected=f"{list(self.names)}, in this order")
        matrix = np.empty(frame.shape)
        for at, name in enumerate(self.names):
            column = frame.iloc[:, at]
            matrix[:, at] = self._codes(column, at) if at in self.levels else _finite(column, name)
        return matrix

    def _codes(self, column: "pd.Series[Any]", at: int) -> Floats:
        code = {label: float(i) for i, label in enumerate(self.levels[at])}
        codes = np.array([code.get(label, -1.0) for label in _labels(column)])
        if (codes < 0).any():
            warnings.warn(
                f"{int((codes < 0).sum()):,} people have a value of {self.names[at]!r} that was not there before: "
                "they are in no group of it.",
                stacklevel=4,
            )
        return codes


def position(column: str | int, names: Sequence[str]) -> int:
    """Return where a column stands, by name or by position."""
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    raise InputError(f"there is no column {column!r}", expected=f"one of {list(names)}, or a position")


def count_people(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_people(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some of the people, in a table of the kind that came in."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True)[rows].to_native()


def check_forecasts(p: ArrayLike, n: int | None = None) -> Floats:
    """Return forecasts as floats between 0 and 1, one per person."""
    return _unit(p, "forecast", n)


def check_outcomes(y: ArrayLike, n: int | None = None) -> Floats:
    """Return outcomes as floats between 0 and 1, one per person."""
    return _unit(y, "outcome", n)


def _unit(given: ArrayLike, what: str, n: int | None) -> Floats:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"an {what} is no number" if what[0] == "o" else f"a {what} is no number") from None
    if values.ndim != 1 or (n is not None and len(values) != n):
        expected = "one number per person" if n is None else f"one number for each of {n:,} people"
        raise InputError(f"the {what}s have shape {values.shape}", expected=expected)
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        raise InputError(
            f"{int(bad.sum()):,} of {len(values):,} {what}s lie outside [0, 1], the first is {values[bad][0]:g}",
            expected=f"{what}s between 0 and 1",
            remedy="Divide by the largest value possible" if what == "outcome" else "",
        )
    return values


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, np.ndarray | list | tuple):
        values = np.asarray(X)
        if values.ndim != 2:
            raise InputError(f"X has {values.ndim} dimension(s)", expected="people x columns")
        names = [f"x{i}" for i in range(values.shape[1])]
        return pd.DataFrame(values, columns=names, dtype=object if values.dtype.kind in "OUS" else None)
    try:
        frame: pd.DataFrame = nw.from_native(X, eager_only=True).to_pandas()
    except TypeError:
        raise InputError(
            f"X is a {type(X).__name__}", expected="a data frame, or an array of people x columns"
        ) from None
    return frame


def _labels(column: "pd.Series[Any]") -> list[str]:
    missing = column.isna().to_numpy()
    return [_MISSING if gone else _label(value) for value, gone in zip(column.tolist(), missing, strict=True)]


def _label(value: Any) -> str:
    """Return a value as text, whole numbers without a decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _finite(column: "pd.Series[Any]", name: str) -> Floats:
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "Mm":
        values = None
    else:
        try:
            values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            values = None
    if values is None:
        raise InputError(
            f"the column {name!r} of X holds {column.dtype}",
            expected="numbers",
            remedy="Name it among the groups, encode it, or leave it out",
        )
    bad = ~np.isfinite(values)
    if bad.any():
        raise InputError(
            f"the column {name!r} of X holds {values[bad][0]:g} in {int(bad.sum()):,} of {len(values):,} rows",
            expected="finite numbers",
            remedy="Impute missing values first",
        )
    return values
