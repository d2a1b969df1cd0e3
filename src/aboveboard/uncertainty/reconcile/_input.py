"""Probabilities and outcomes as they are given, checked before any work."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = ["is_real", "read_classes", "read_outcomes", "read_probabilities", "read_weights"]

_ROUNDING: Final = 1e-5

Floats = NDArray[np.float64]


def is_real(value: Any) -> bool:
    """Return whether a setting is a real number, and not true or false."""
    return isinstance(value, Real) and not isinstance(value, bool)


def read_probabilities(models: Any, X: Any = None, *, expected: int | None = None) -> list[Floats]:
    """Return each model's probabilities, shape (n, d), from matrices or from fitted classifiers and their rows.

    Raises
    ------
    InputError
        For fewer than two models, shapes that differ, values that are no probabilities, or rows that do not sum to 1.
    """
    if isinstance(models, np.ndarray) and models.ndim == 3:
        models = list(models)
    if not isinstance(models, Sequence) or isinstance(models, str) or len(models) < 2:
        raise InputError(
            f"the models are a {type(models).__name__}" if not isinstance(models, Sequence) else "too few models",
            expected="a list of two or more: probabilities of shape (n, classes), or with X fitted classifiers",
        )
    if expected is not None and len(models) != expected:
        raise InputError(
            f"{len(models)} models were given", expected=f"the {expected} that were fitted, in their order"
        )
    if X is not None:
        lacking = next((model for model in models if not hasattr(model, "predict_proba")), None)
        if lacking is not None:
            raise InputError(
                f"X was given and a model is a {type(lacking).__name__} without predict_proba",
                expected="fitted classifiers",
            )
        models = [model.predict_proba(X) for model in models]
    found = [_probabilities(matrix, f"model {place}") for place, matrix in enumerate(models)]
    for place, matrix in enumerate(found[1:], start=1):
        if matrix.shape != found[0].shape:
            raise InputError(
                f"the probabilities of model {place} have the shape {matrix.shape}",
                expected=f"that of model 0, {found[0].shape}",
            )
    return found


def _probabilities(given: Any, what: str) -> Floats:
    try:
        matrix = np.asarray(given, dtype="float64")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the probabilities of {what} are not numbers ({str(error)[:80]})", expected="shape (n, classes)"
        ) from error
    if matrix.ndim == 1:
        matrix = np.column_stack([1.0 - matrix, matrix])
    if matrix.ndim != 2 or matrix.shape[1] < 2 or len(matrix) == 0:
        raise InputError(
            f"the probabilities of {what} have the shape {matrix.shape}",
            expected="(n, classes), or (n,) for the second of two classes",
        )
    bad = int((~np.isfinite(matrix)).any(axis=1).sum())
    if bad:
        raise InputError(
            f"the probabilities of {what} are missing or infinite in {bad:,} rows", expected="numbers in [0, 1]"
        )
    if matrix.min() < 0 or matrix.max() > 1:
        raise InputError(
            f"the probabilities of {what} run from {matrix.min():.4g} to {matrix.max():.4g}",
            expected="numbers in [0, 1]",
            remedy="Turn log-odds into probabilities first",
        )
    sums = matrix.sum(axis=1)
    off = int((np.abs(sums - 1.0) > _ROUNDING).sum())
    if off:
        raise InputError(
            f"the probabilities of {what} do not sum to 1 in {off:,} rows", expected="a probability for every class"
        )
    scaled: Floats = matrix / sums[:, None]
    return scaled


def read_classes(models: Any, y: Any, d: int, *, from_models: bool) -> list[Any]:
    """Return the labels of the columns: of the classifiers, else of the outcomes, in their natural order.

    Raises
    ------
    InputError
        When the classifiers disagree on them, or there are others than `d`.
    """
    if from_models:
        orders = [list(model.classes_) for model in models]
        if any(order != orders[0] for order in orders[1:]):
            raise InputError("the models know different classes, or in another order", expected="the same in each")
        return orders[0]
    if np.ndim(y) == 2:
        return list(range(d))
    labels = pd.Series(y)
    if labels.isna().any():
        raise InputError(
            f"the outcome is missing in {int(labels.isna().sum()):,} rows", expected="a class in every row"
        )
    found = sorted(labels.unique().tolist())
    if len(found) == d:
        return found
    whole = all(isinstance(label, int) and 0 <= label < d for label in found)
    if whole and len(found) < d:
        return list(range(d))
    raise InputError(
        f"the outcome has {len(found)} classes and the models have {d}",
        expected="the same, or the numbers of the columns (0, 1, ...) where a class does not occur",
    )


def read_outcomes(y: Any, classes: Sequence[Any], n: int) -> Floats:
    """Return outcomes as rows of the simplex: one-hot from labels, or as they are given.

    Raises
    ------
    InputError
        For another number of rows, unknown classes, or rows that do not sum to 1.
    """
    if np.ndim(y) == 2:
        outcomes = _probabilities(y, "the outcome")
        if outcomes.shape != (n, len(classes)):
            raise InputError(f"the outcomes have the shape {outcomes.shape}", expected=str((n, len(classes))))
        return outcomes
    labels = pd.Series(y)
    if len(labels) != n:
        raise InputError(f"there are {len(labels):,} outcomes", expected=f"one for each of the {n:,} rows")
    codes = pd.Index(list(classes)).get_indexer(pd.Index(labels))
    if (codes < 0).any():
        strange = labels.iloc[int(np.flatnonzero(codes < 0)[0])]
        raise InputError(f"the outcome has the value {strange!r}", expected=f"one of {list(classes)[:10]}")
    chosen: Floats = np.eye(len(classes))[codes]
    return chosen


def read_weights(given: Any, n: int) -> Floats:
    """Return weights that sum to 1; equal ones where none were given."""
    if given is None:
        return np.full(n, 1.0 / n)
    try:
        weights = np.asarray(given, dtype="float64")
    except (TypeError, ValueError) as error:
        raise InputError("the weights are not numbers", expected="one number per row") from error
    if weights.shape != (n,) or not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() <= 0:
        raise InputError(
            f"the weights have the shape {weights.shape}", expected=f"{n:,} finite numbers, none negative, not all 0"
        )
    found: Floats = weights / weights.sum()
    return found
