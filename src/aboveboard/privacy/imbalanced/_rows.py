"""Rows, labels and options, checked before any budget is spent."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from aboveboard.core import InputError

__all__ = ["binary_labels", "within_ball"]

_ROUNDING: Final = 1e-9  # a row that was scaled to the bound may exceed it in the last bits

Floats = NDArray[np.float64]


def binary_labels(y: Any) -> tuple[Floats, NDArray[Any]]:
    """Return labels as 0.0 and 1.0, and the two classes."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    check_classification_targets(y)
    values = column_or_1d(y, warn=True)
    classes, code = np.unique(values, return_inverse=True)
    if len(classes) == 1:
        raise InputError(
            "y has one class only",
            expected="two classes",
            remedy="Nothing can be learned about a class that does not occur",
        )
    if len(classes) != 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
            f"{len(classes)} classes",
            expected="two classes",
        )
    return code.astype(np.float64), classes


def within_ball(X: Floats, radius: float, *, clip: bool) -> Floats:
    """Return rows of Euclidean norm at most `radius`, or refuse those that are longer."""
    norms = np.linalg.norm(X, axis=1)
    beyond = norms > radius * (1 + _ROUNDING)
    if not beyond.any():
        return X
    if not clip:
        raise InputError(
            f"{int(beyond.sum()):,} rows have a Euclidean norm above data_norm={radius:g}",
            expected="rows scaled by bounds that do not come from the data",
            remedy="Scale them, raise data_norm, or pass clip=True to shorten them",
        )
    shortened: Floats = X * (radius / np.maximum(norms, radius))[:, None]
    return shortened
