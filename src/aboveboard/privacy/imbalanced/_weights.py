"""Weights of the two classes, from budget, from public counts or as given."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError
from aboveboard.privacy._noise import NoiseSource
from aboveboard.privacy._rdp import Adjacency
from aboveboard.privacy._rdp.checked import checked_fraction, checked_positive

__all__ = ["ClassWeight", "ClassWeights", "checked_class_weight", "class_weights"]

WEIGHT_SHARE: Final = 0.1
"""Share of epsilon that private class weights cost."""

Floats = NDArray[np.float64]
ClassWeight = Literal["private", "balanced_public"] | Mapping[Any, float] | None


@dataclass(frozen=True, slots=True)
class ClassWeights:
    """What each class weighs, and what it cost to learn that.

    Parameters
    ----------
    values : ndarray, shape (2,)
        Of the classes in sorted order.
    epsilon : float
        Spent on them.
    counts_are_public : bool
        Whether they were computed from the exact counts, which the guarantee then does not protect.
    """

    values: Floats
    epsilon: float = 0.0
    counts_are_public: bool = False

    @property
    def largest(self) -> float:
        return float(self.values.max())

    @property
    def shift(self) -> float:
        """By how much the weights raise the log odds of the second class."""
        return math.log(self.values[1] / self.values[0])


def checked_class_weight(class_weight: ClassWeight, weight_cap: float, balance: float) -> None:
    """Refuse what no class weights can be made from."""
    if not (
        class_weight is None or isinstance(class_weight, Mapping) or class_weight in ("private", "balanced_public")
    ):
        raise InputError(
            f"class_weight is {class_weight!r}",
            expected="'private', 'balanced_public', a dict with a weight for each class, or None",
        )
    if checked_positive(weight_cap, "weight_cap") < 1:
        raise InputError(f"weight_cap is {weight_cap!r}", expected="a number of at least 1")
    checked_fraction(balance, "balance")


def class_weights(
    class_weight: ClassWeight,
    label: Floats,
    classes: NDArray[Any],
    *,
    epsilon: float,
    weight_cap: float,
    balance: float,
    adjacency: Adjacency,
    source: NoiseSource,
) -> ClassWeights:
    """Return the weights; private ones cost `WEIGHT_SHARE` of `epsilon`.

    Laplace noise of scale 1 / epsilon on a count that one record moves by at most 1 is epsilon-DP. Where one row is
    replaced, the number of rows is public and the noisy count of one class gives the other; where one is added or
    removed, it is in one class only, so that both counts together move by 1.
    """
    if class_weight is None:
        return ClassWeights(np.ones(2))
    if isinstance(class_weight, Mapping):
        return ClassWeights(_given(class_weight, classes))
    second = float(label.sum())
    counts = np.array([len(label) - second, second])
    if class_weight == "balanced_public":
        return ClassWeights(_balanced(counts, weight_cap, balance), counts_are_public=True)
    spent = WEIGHT_SHARE * epsilon
    noisy = counts + source.laplace(2, scale=1 / spent)
    if adjacency == "replace_one":
        noisy[0] = len(label) - noisy[1]
    return ClassWeights(_balanced(noisy, weight_cap, balance), epsilon=spent)


def _balanced(counts: Floats, weight_cap: float, balance: float) -> Floats:
    """Return (n / (2 count)) to the power of `balance`, for counts of at least 1."""
    present = np.maximum(counts, 1.0)
    weights: Floats = np.clip((present.sum() / (2 * present)) ** balance, 0.5, weight_cap)
    return weights


def _given(class_weight: Mapping[Any, float], classes: NDArray[Any]) -> Floats:
    labels = classes.tolist()
    if set(class_weight) != set(labels):
        raise InputError(
            f"class_weight has the keys {list(class_weight)}", expected=f"one for each of the classes {labels}"
        )
    return np.array([checked_positive(class_weight[label], f"class_weight[{label!r}]") for label in labels])
