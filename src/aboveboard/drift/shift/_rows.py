"""The rows of one domain as every step sees them, and the losses that a fixed model has on them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._tables import Features

__all__ = ["LOSSES", "Predictor", "Rows", "binary_labels", "loss_table"]

Floats = NDArray[np.float64]
Predictor = Callable[[Any], Floats]
"""From rows as the user gave them to probabilities of class 1 (or labels)."""

LOSSES: Final = ("zero_one", "brier", "class_weighted", "ppv")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one domain.

    Parameters
    ----------
    features : Features
    losses : ndarray, shape (n, 2)
        The loss that each row has if its label is 0, and if it is 1.
    y : ndarray of int, shape (n,)
        Labels; zeros where they are unknown.
    """

    features: Features
    losses: Floats
    y: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def loss(self) -> Floats:
        return self.losses[np.arange(len(self.y)), self.y]

    @property
    def stake(self) -> Floats:
        """How much more a row loses with label 1 than with label 0."""
        return self.losses[:, 1] - self.losses[:, 0]

    def risk(self, mu: Floats) -> Floats:
        """Return the expected loss where `mu` is the probability of class 1."""
        return np.asarray(self.losses[:, 0] + self.stake * mu)

    def take(self, rows: NDArray[Any]) -> "Rows":
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, features=self.features.take(chosen), losses=self.losses[chosen], y=self.y[chosen])


def binary_labels(y: Any, n: int, what: str) -> NDArray[np.intp]:
    """Return labels as 0 and 1; `what` names the domain in errors."""
    labels = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y).ravel())
    if len(labels) != n:
        raise InputError(f"{what} has {n} rows and {len(labels)} labels", expected="one label per row")
    if labels.isna().any():
        raise InputError(f"{what} has {int(labels.isna().sum())} missing labels", expected="0 or 1 for every row")
    found = pd.unique(labels)
    if not all(isinstance(value, int | float | np.number | np.bool_) and value in (0, 1) for value in found):
        shown = ", ".join(repr(str(value)) for value in list(found)[:4])
        raise InputError(f"the labels of {what} are {shown}", expected="0 and 1", remedy="Code the positive class as 1")
    codes = labels.to_numpy(dtype=np.float64).astype(np.intp)
    if len(found) < 2:
        raise InputError(f"all labels of {what} are {int(codes[0]) if n else 'absent'}", expected="both classes")
    return codes


def loss_table(
    loss: str, predictions: Floats | None, threshold: float, class_share: float, loss_fn: Any, X: Any, n: int
) -> Floats:
    """Return the losses of each row under both labels, shape (n, 2).

    Parameters
    ----------
    loss : str
        One of `LOSSES`; not looked at where `loss_fn` is given.
    predictions : ndarray or None
        Probabilities of class 1, or labels.
    threshold : float
        From which probability on class 1 is predicted.
    class_share : float
        Share of class 1 in the source, for "class_weighted".
    loss_fn : callable or None
        ``loss_fn(X, y) -> (n,)``.
    """
    if loss_fn is not None:
        sides = [np.asarray(loss_fn(X, np.full(n, label)), dtype=np.float64) for label in (0, 1)]
        if any(side.shape != (n,) or not np.isfinite(side).all() for side in sides):
            raise InputError(
                f"loss_fn gave values of shape {sides[0].shape} for {n} rows, or values that are not finite",
                expected="one finite loss per row",
            )
        return np.column_stack(sides)
    if predictions is None:
        raise InputError(
            "neither model, predictions nor loss_fn was given", expected="one of them: it tells what is lost on a row"
        )
    if loss == "brier":
        return np.column_stack([predictions**2, (1.0 - predictions) ** 2])
    wrong = np.column_stack([predictions >= threshold, predictions < threshold]).astype(np.float64)
    if loss == "class_weighted":
        return wrong / (2.0 * np.array([1.0 - class_share, class_share]))
    return wrong
