"""Sensitive features of any container, as codes and labels; missing values are refused, never filled in."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core import InputError

__all__ = ["group_codes", "known_codes"]

Indices = NDArray[np.intp]


def group_codes(sensitive_features: Any, n: int, *, index: Any = None) -> tuple[Indices, list[Any]]:
    """Return the group of each row as a code, and the label of each code.

    Parameters
    ----------
    sensitive_features : Series, array or data frame of shape (n,) or (n, n_columns)
        pandas, Polars, PyArrow, NumPy or a list. Several columns make intersections.
    n : int
        Number of rows expected.
    index : pandas.Index, optional
        That of X; a pandas object with another index is refused, lest rows be mixed up.

    Returns
    -------
    codes : ndarray of int, shape (n,)
    labels : list
        The values of the column, or tuples of values where there are several columns; sorted.

    Raises
    ------
    InputError
        For another number of rows, another index, or a missing value.
    """
    frame = _frame(sensitive_features)
    if frame.shape[0] != n or frame.shape[1] == 0:
        raise InputError(
            f"sensitive_features has {frame.shape[0]:,} rows and {frame.shape[1]} columns",
            expected=f"{n:,} rows, as X has, and at least one column",
        )
    own = getattr(sensitive_features, "index", None)
    if isinstance(own, pd.Index) and isinstance(index, pd.Index) and not own.equals(index):
        raise InputError(
            "the index of sensitive_features is not that of X",
            expected="the same rows in the same order",
            remedy="Take both from one data frame, or pass sensitive_features.to_numpy() if only the labels differ",
        )
    codes = np.zeros(n, dtype=np.intp)
    labels: list[tuple[Any, ...]] = [()]
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        own_codes, values = pd.factorize(column)
        if (own_codes < 0).any():
            raise InputError(
                f"the sensitive feature {frame.columns[position]!r} is missing in {int((own_codes < 0).sum()):,} rows",
                expected="a known group in every row: a guessed one would decide how somebody is treated",
                remedy="Leave those rows out, or give them a group of their own, such as 'unknown'",
            )
        combined = codes * len(values) + own_codes
        present, codes = np.unique(combined, return_inverse=True)
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        labels = [(*labels[code // len(values)], plain[code % len(values)]) for code in present]
    order = sorted(range(len(labels)), key=lambda i: [(type(v).__name__, v) for v in labels[i]])
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    single = frame.shape[1] == 1
    return rank[codes], [labels[i][0] if single else labels[i] for i in order]


def known_codes(sensitive_features: Any, n: int, groups: list[Any], *, index: Any = None) -> Indices:
    """Return the code of each row's group among `groups`, those seen in fit.

    Raises
    ------
    InputError
        As `group_codes`, and for a group that is not among them.
    """
    codes, labels = group_codes(sensitive_features, n, index=index)
    place = {group: position for position, group in enumerate(groups)}
    unknown = [label for label in labels if label not in place]
    if unknown:
        raise InputError(
            f"group {unknown[0]!r} was not seen in fit",
            expected="one of " + ", ".join(map(repr, groups)),
            remedy="Fit with rows of that group, or decide about it outside of this model",
        )
    return np.array([place[label] for label in labels], dtype=np.intp)[codes]


def _frame(given: Any) -> pd.DataFrame:
    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, pd.Series):
        return given.to_frame(given.name if given.name is not None else "sensitive_features")
    import narwhals as nw

    native = nw.from_native(given, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return native.to_pandas()
    if isinstance(native, nw.Series):
        return native.to_pandas().to_frame()
    values = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)  # a list may mix NaN and text
    if values.dtype.kind not in "OUSbiufM":
        raise InputError(f"sensitive_features holds values of type {values.dtype}", expected="group labels")
    if values.ndim not in (1, 2):
        raise InputError(f"sensitive_features has {values.ndim} dimensions", expected="one or two")
    columns = values if values.ndim == 2 else values[:, None]
    return pd.DataFrame({f"column {i}": columns[:, i] for i in range(columns.shape[1])}, index=range(len(columns)))
