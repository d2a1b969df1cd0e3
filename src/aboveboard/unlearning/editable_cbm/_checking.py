"""Which rows, concepts and labels an edit means, and whether it can be done at all."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._curvature import Floats

__all__ = ["changed_labels", "concept_columns", "row_places"]

Indices = NDArray[np.intp]


def row_places(rows: ArrayLike, ids: Indices, n_rows: int) -> Indices:
    """Return where the rows with these numbers are.

    Parameters
    ----------
    rows : array-like of int
        Each row once.
    ids : ndarray of int, shape (n,)
        Numbers of the rows that are still there, ascending.
    n_rows : int
        How many rows there ever were.
    """
    numbers = _row_numbers(rows, n_rows)
    unique, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"row {unique[counts > 1][0]} is given twice", expected="each row once")
    return _located(numbers, ids)


def concept_columns(concepts: Any, names: list[str], active: NDArray[np.bool_]) -> Indices:
    """Return the numbers of concepts given by number or name, each once."""
    given = [concepts] if isinstance(concepts, str) or np.isscalar(concepts) else list(concepts)
    columns = np.array([_column(concept, names, active) for concept in given], dtype=np.intp)
    if not len(columns):
        raise InputError("no concept is given", expected="at least one concept")
    unique, counts = np.unique(columns, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"concept {names[unique[counts > 1][0]]!r} is given twice", expected="each concept once")
    return columns


def changed_labels(
    rows: ArrayLike,
    concepts: Any,
    new_values: ArrayLike,
    labels: Floats,
    ids: Indices,
    n_rows: int,
    names: list[str],
    active: NDArray[np.bool_],
) -> tuple[Indices, Indices, Floats]:
    """Return places, columns and new values of labels, all of one length.

    Refuses labels that are given twice, and labels that have the new value already.
    """
    numbers = _row_numbers(rows, n_rows)
    given = [concepts] if isinstance(concepts, str) or np.isscalar(concepts) else list(concepts)
    known = {concept: _column(concept, names, active) for concept in dict.fromkeys(given)}
    columns = np.array([known[concept] for concept in given], dtype=np.intp)
    try:
        values = np.atleast_1d(np.asarray(new_values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"new_values are {new_values!r}", expected="0, 1 or NaN") from error
    if not all(array.shape in ((1,), numbers.shape) for array in (columns, values)):
        raise InputError(
            f"there are {len(numbers)} rows, {len(columns)} concepts and {values.size} new values",
            expected="equally many, or one concept or value for all",
        )
    places = _located(numbers, ids)
    columns, values = np.broadcast_to(columns, numbers.shape), np.broadcast_to(values, numbers.shape)
    wrong = ~(np.isnan(values) | (values == 0) | (values == 1))
    if wrong.any():
        raise InputError(f"a new value is {values[wrong][0]:g}", expected="0, 1 or NaN")
    _, first, counts = np.unique(places * len(names) + columns, return_index=True, return_counts=True)
    if (counts > 1).any():
        at = first[counts > 1][0]
        raise InputError(f"{_label(names[columns[at]], numbers[at])} is given twice", expected="each label once")
    old = labels[places, columns]
    same = np.flatnonzero((old == values) | (np.isnan(old) & np.isnan(values)))
    if len(same):
        at = same[0]
        raise InputError(
            f"{_label(names[columns[at]], numbers[at])} is {values[at]:g} already", expected="labels that change"
        )
    return places, columns, values


def _row_numbers(rows: ArrayLike, n_rows: int) -> NDArray[Any]:
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.ndim != 1 or not numbers.size or not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(
            f"rows have shape {numbers.shape} and type {numbers.dtype}", expected="row numbers, at least one"
        )
    outside = (numbers < 0) | (numbers >= n_rows)
    if outside.any():
        raise InputError(f"there is no row {numbers[outside][0]}", expected=f"numbers from 0 to {n_rows - 1}")
    return numbers


def _located(numbers: NDArray[Any], ids: Indices) -> Indices:
    places = np.searchsorted(ids, numbers)
    found = ids[np.minimum(places, len(ids) - 1)] == numbers
    if not found.all():
        raise InputError(f"row {numbers[~found][0]} was forgotten already", expected="rows that are in row_ids")
    return places


def _column(concept: Any, names: list[str], active: NDArray[np.bool_]) -> int:
    if isinstance(concept, str):
        if concept not in names:
            raise InputError(f"no concept is called {concept!r}", expected=f"one of {', '.join(names)}")
        number = names.index(concept)
    elif isinstance(concept, int | np.integer) and not isinstance(concept, bool):
        number = int(concept)
        if not 0 <= number < len(names):
            raise InputError(f"there is no concept {number}", expected=f"numbers from 0 to {len(names) - 1}")
    else:
        raise InputError(f"{concept!r} is no concept", expected="a number or a name")
    if not active[number]:
        raise InputError(f"concept {names[number]!r} was dropped", expected="a concept that the model still has")
    return number


def _label(concept: str, row: int) -> str:
    return f"concept {concept!r} of row {row}"
