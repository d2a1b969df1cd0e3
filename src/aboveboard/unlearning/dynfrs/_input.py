"""What the estimators accept, checked before any work: features, record ids and weights."""

import hashlib
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, validate_data

from aboveboard.core import InputError

__all__ = ["categorical_mask", "read_features", "read_ids", "read_weights"]

_LARGEST = float(np.finfo(np.float32).max)
_SHOWN = 5


def categorical_mask(given: Sequence[Any] | None, names: Sequence[str] | None, d: int) -> np.ndarray:
    """Return which of `d` columns are categorical: `given` holds positions, names or one boolean per column."""
    mask = np.zeros(d, dtype=bool)
    if given is None:
        return mask
    items = list(given)
    if len(items) == d and all(isinstance(item, bool | np.bool_) for item in items):
        return np.array(items, dtype=bool)
    for item in items:
        if isinstance(item, str):
            if names is None or item not in names:
                raise InputError(
                    f"categorical_features names {item!r}, which is no column",
                    expected=", ".join(map(repr, names)) if names is not None else "positions: X has no column names",
                )
            mask[list(names).index(item)] = True
        elif isinstance(item, numbers.Integral) and not isinstance(item, bool) and -d <= int(item) < d:
            mask[int(item)] = True
        else:
            raise InputError(f"categorical_features holds {item!r}", expected=f"names or positions among {d} columns")
    return mask


def read_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Return `X` as finite float32, shape (n, d), with categories as whole numbers below 2**24.

    A category is a hash of its value, so that no table of categories is learnt that could remember one of them.

    Raises
    ------
    InputError
        For values that are missing, infinite or beyond single precision, with the name of the column.
    """
    given = getattr(estimator, "categorical_features", None)
    if given is None:
        dtype = [np.float64, np.float32]
        values = validate_data(estimator, X, reset=reset, dtype=dtype, order="C", ensure_all_finite=False)
        mask = np.zeros(values.shape[1], dtype=bool)
    else:
        frame = _to_frame(X)
        validate_data(estimator, frame if _is_frame(X) else np.asarray(X), reset=reset, skip_check_array=True)
        names = getattr(estimator, "feature_names_in_", None)
        mask = categorical_mask(given, None if names is None else list(names), frame.shape[1])
        values = np.empty(frame.shape, dtype=np.float64)
        for j in range(frame.shape[1]):
            values[:, j] = _codes(frame.iloc[:, j]) if mask[j] else _floats(frame.iloc[:, j])
    _refuse_awkward(values, getattr(estimator, "feature_names_in_", None))
    # Adding 0 turns -0.0 into 0.0, so that equal values have equal bits.
    return np.ascontiguousarray(values.astype(np.float32, copy=False) + np.float32(0.0))


def read_ids(sample_id: Any, n: int | None = None) -> np.ndarray:
    """Return record ids as int64, distinct, `n` of them where `n` is given.

    Raises
    ------
    InputError
        For ids that are not whole numbers, are repeated, or are too many or too few.
    """
    ids = np.atleast_1d(np.asarray(sample_id))
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.dtype == object and all(isinstance(i, numbers.Integral) and not isinstance(i, bool) for i in ids.flat):
        if not all(-(2**63) <= int(i) < 2**63 for i in ids.flat):
            raise InputError("a record id does not fit into 64 bits", expected="whole numbers from -2**63 to 2**63 - 1")
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids.dtype == np.uint64 and ids.size and ids.max() >= 2**63):
        raise InputError(
            f"the record ids have type {ids.dtype} and shape {ids.shape}",
            expected="one whole number below 2**63 per row",
            remedy="Number other keys first, and keep that table yourself",
        )
    ids = ids.astype(np.int64)
    if n is not None and len(ids) != n:
        raise InputError(f"{len(ids):,} record ids were given for {n:,} rows", expected="one per row")
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        raise InputError(f"record ids are repeated: {listed(unique[counts > 1].tolist())}", expected="each id once")
    return ids


def read_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return whole weights as int32; None means 1. A row of weight 0 is known, and has no influence.

    Raises
    ------
    InputError
        For weights that are not whole numbers, are negative, are all zero, or sum to 2**31 or more.
    """
    if sample_weight is None:
        return np.ones(n, dtype=np.int32)
    weight = np.asarray(sample_weight)
    if isinstance(sample_weight, numbers.Number):
        weight = np.full(n, sample_weight)
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape} for {n} rows", expected="one weight per row")
    weight = weight.astype(np.float64)
    bad = ~((weight >= 0) & (weight == np.floor(weight)))
    if bad.any():
        raise InputError(
            f"sample_weight holds {weight[bad][0]:g} ({int(bad.sum()):,} such rows)",
            expected="whole numbers at or above 0: a row of weight w counts as w equal rows, and counts are exact",
            remedy="Scale the weights to whole numbers",
        )
    if not weight.any():
        raise InputError("sample_weight is zero for all rows", expected="a weight above 0 somewhere")
    if weight.sum() >= 2**31:
        raise InputError(f"the weights sum to {weight.sum():.4g}", expected="less than 2**31")
    return weight.astype(np.int32)


def listed(items: Sequence[Any]) -> str:
    """Return the first few items as text, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN:,} more"


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") or hasattr(X, "column_names")


def _to_frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    if _is_frame(X):
        import narwhals.stable.v1 as nw

        frame: pd.DataFrame = nw.from_native(X, eager_only=True).to_pandas()
        return frame
    _num_samples(X)
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"X has {array.ndim} dimensions", expected="a table: one row per record, one column per feature"
        )
    return pd.DataFrame(array)


def _floats(column: "pd.Series[Any]") -> np.ndarray:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the column {column.name!r} does not hold numbers", remedy="List it in categorical_features"
        ) from error


def _codes(column: "pd.Series[Any]") -> np.ndarray:
    codes, uniques = pd.factorize(column)
    table = [*(_category(value) for value in uniques), _category(None)]
    return np.array(table, dtype=np.float64)[codes]


def _category(value: Any) -> int:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    text = "missing" if value is None else f"{type(value).__name__}:{value}"
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).digest(), "big")


def _refuse_awkward(values: np.ndarray, names: np.ndarray | None) -> None:
    with np.errstate(invalid="ignore"):
        fine = np.abs(values).max(axis=0, initial=0.0) <= _LARGEST
    for j in np.flatnonzero(~fine):
        column = values[:, j]
        name = repr(str(names[j])) if names is not None else f"{j}"
        if np.isnan(column).any():
            raise InputError(
                f"Input X contains NaN: {int(np.isnan(column).sum()):,} values are missing in column {name}",
                expected="finite numbers",
                remedy="Impute before fitting (a constant leaves no trace of any row), or make the column categorical",
            )
        if np.isinf(column).any():
            raise InputError(
                f"Input X contains infinity in column {name} ({int(np.isinf(column).sum()):,} values)",
                expected="finite numbers",
            )
        raise InputError(
            f"column {name} holds {column[np.abs(column).argmax()]:.4g}",
            expected="values within single precision (3.4e38): beyond it the width of the column's range is infinite",
        )
