"""How well one column by itself predicts something, out of fold, whatever the column holds.

Each column is cut into levels (categories as they are, numbers in quantile bins), and each row is predicted from the
rows of its level in the other folds. A column in which every row has a value of its own, such as an id, therefore
predicts nothing.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.columns import CodedColumn
from aboveboard.auditing.estimates import Area, Rows, area_under_curve
from aboveboard.core.finding import Interval

__all__ = ["assign_folds", "class_power", "indicator_power", "number_power"]

FOLDS: Final = 5
_PRIOR_ROWS: Final = 1.0  # each level starts with this many rows that look like all rows
_MOST_CLASSES: Final = 20


def assign_folds(
    codes: NDArray[Any] | None, rows: Rows, rng: np.random.Generator, n_folds: int = FOLDS
) -> NDArray[np.int8]:
    """Return a fold per row: alike in class shares where `codes` are given; clusters stay whole."""
    if rows.cluster is not None:
        return (rng.permutation(rows.clusters) % n_folds).astype(np.int8)[rows.cluster]
    order = rng.permutation(rows.n)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(rows.n, dtype=np.int8)
    fold[order] = np.arange(rows.n) % n_folds
    return fold


def class_power(column: CodedColumn, y: NDArray[Any], n_classes: int, fold: NDArray[np.int8], rows: Rows) -> Area:
    """Return the out-of-fold AUC with which a column predicts a class, one against the rest, averaged over classes.

    Parameters
    ----------
    column : CodedColumn
    y : ndarray of int, shape (n,)
    n_classes : int
        With two, the AUC is that of class 1. Of more than 20 classes the 20 most common are averaged over.
    fold : ndarray of int, shape (n,)
    rows : Rows

    Notes
    -----
    O(k n log n) time for k classes.
    """
    n_folds = int(fold.max()) + 1
    cell = column.codes.astype(np.int64) * n_folds + fold
    size = column.levels * n_folds
    count = np.bincount(cell, minlength=size).reshape(-1, n_folds)
    other = count.sum(axis=1, keepdims=True) - count
    chosen = [1] if n_classes == 2 else _common(y, n_classes)
    score = np.empty((rows.n, len(chosen)))
    for j, code in enumerate(chosen):
        hits = np.bincount(cell, weights=y == code, minlength=size).reshape(-1, n_folds)
        rest = hits.sum(axis=1, keepdims=True) - hits
        prior = rest.sum(axis=0) / np.maximum(other.sum(axis=0), 1)
        # a level that the other folds lack gives exactly 0: rows of it are tied
        table = (rest - other * prior) / (other + _PRIOR_ROWS)
        score[:, j] = table.ravel()[cell]
    if n_classes == 2:
        return area_under_curve(score[:, 0], y, rows)
    recoded = np.full(n_classes, -1)
    recoded[chosen] = np.arange(len(chosen))
    return area_under_curve(score, recoded[y], rows)


def number_power(column: CodedColumn, y: NDArray[Any], fold: NDArray[np.int8], rows: Rows) -> Area:
    """Return the out-of-fold R² with which a column predicts a number.

    The better of a constant per level and, for columns of numbers, a line per level, so that a copy of the target is
    found however it is spread.

    Notes
    -----
    O(n) time.
    """
    n_folds = int(fold.max()) + 1
    cell = column.codes.astype(np.int64) * n_folds + fold
    size = column.levels * n_folds

    def others(values: NDArray[Any] | None) -> NDArray[np.float64]:
        sums = np.bincount(cell, weights=values, minlength=size).reshape(-1, n_folds)
        return np.asarray(sums.sum(axis=1, keepdims=True) - sums, dtype="float64")

    n, total = others(None), others(y)
    centre = total.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    constant = centre + (total - n * centre) / (n + _PRIOR_ROWS)
    best = _r2(y, constant.ravel()[cell], rows)
    if column.values is None:
        return best
    finite = np.isfinite(column.values)
    x = np.where(finite, column.values, 0.0)
    spread = float(x.std())
    if spread == 0:
        return best
    level_mean = np.bincount(column.codes, weights=x) / np.maximum(np.bincount(column.codes), 1)
    x = np.where(finite, (x - level_mean[column.codes]) / spread, 0.0)
    safe = np.maximum(n, 1)
    x_mean, y_mean = others(x) / safe, total / safe
    xx, xy = others(x * x) / safe - x_mean**2, others(x * y) / safe - x_mean * y_mean
    slope = np.where((n >= 3) & (xx > 1e-18), xy / np.maximum(xx, 1e-18), 0.0)
    line = constant.ravel()[cell] + slope.ravel()[cell] * (x - x_mean.ravel()[cell])
    # at the ends of the data a line can run away
    better = _r2(y, np.clip(line, y.min(), y.max()), rows)
    return better if better.value > best.value else best


def indicator_power(indicator: NDArray[np.bool_], y: NDArray[Any], n_classes: int, rows: Rows) -> Area:
    """Return the AUC (squared correlation where `n_classes` is 0) with which yes or no predicts the target."""
    if n_classes == 0:
        flag = indicator.astype(np.float64)
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        mean = float(np.average(flag, weights=weight))
        if not 0 < mean < 1:
            return Area(0.0, 0.0, None)
        fitted = np.where(
            indicator,
            np.average(y[indicator], weights=weight[indicator]) if weight[indicator].sum() > 0 else 0.0,
            np.average(y[~indicator], weights=weight[~indicator]) if weight[~indicator].sum() > 0 else 0.0,
        )
        return _r2(y, fitted, rows)
    flag = indicator.astype(np.float64)
    if n_classes == 2:
        area = area_under_curve(flag, y, rows)
        return area if area.value >= 0.5 or not np.isfinite(area.value) else area_under_curve(-flag, y, rows)
    best = Area(0.5, 0.0, None)
    for code in _common(y, n_classes):
        for score in (flag, -flag):
            area = area_under_curve(score, (y == code).astype(np.int64), rows)
            best = area if area.value > best.value else best
    return best


def _common(y: NDArray[Any], n_classes: int) -> list[int]:
    """Return the most common classes, those with two rows or more."""
    counts = np.bincount(y, minlength=n_classes)
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    return [int(code) for code in order if counts[code] >= 2]


def _r2(y: NDArray[Any], fitted: NDArray[Any], rows: Rows) -> Area:
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    square, deviation = (y - fitted) ** 2, (y - np.average(y, weights=weight)) ** 2
    variance = float(np.average(deviation, weights=weight))
    if variance <= 0:
        return Area(0.0, 0.0, None)
    left = float(np.average(square, weights=weight)) / variance
    error = rows.error((square - left * deviation) / variance)
    half = rows.quantile_of_normal() * error
    interval = Interval(1 - left - half, min(1 - left + half, 1.0), method="delta") if np.isfinite(half) else None
    return Area(1 - left, error, interval)
