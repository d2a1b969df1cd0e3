"""What both sides must agree on: epsilon, the bounds and the grid of thresholds."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from aboveboard.core import InputError

__all__ = ["Floats", "checked_bounds", "checked_epsilon", "checked_grid", "lie_probability"]

Floats = NDArray[np.float64]

_LEAST_EPSILON: Final = 1e-6
_UNITS: Final = 2**52  # the noise source draws from this many equally likely numbers


def lie_probability(epsilon: float) -> float:
    """Return the probability of the opposite answer, 1 / (1 + e^epsilon).

    It is rounded up to a multiple of 2^-52, with one to spare for the rounding of the exponential: that is the
    resolution of the noise source, so that the odds of the two answers are exactly as certified and never above
    e^epsilon.
    """
    if epsilon == math.inf:
        return 0.0
    return min(math.ceil(_UNITS * float(expit(-epsilon))) + 1, _UNITS // 2) / _UNITS


def checked_epsilon(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not epsilon >= _LEAST_EPSILON:
        raise InputError(
            f"epsilon is {epsilon!r}",
            expected=f"a number of at least {_LEAST_EPSILON:g}; below that answers are all but coin flips",
        )
    return float(epsilon)


def checked_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    ends = np.asarray(bounds, dtype=np.float64)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise InputError(
            f"bounds is {bounds!r}",
            expected="two finite numbers, the lower one first",
            remedy="Take them from public knowledge, never from the values: bounds are published",
        )
    return float(ends[0]), float(ends[1])


def checked_grid(grid: Any, bounds: tuple[float, float]) -> Floats:
    points: Floats = np.asarray(grid, dtype=np.float64)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or not (np.diff(points) > 0).all():
        raise InputError(f"grid is {grid!r}", expected="one or more finite thresholds in ascending order, none twice")
    if points[0] < bounds[0] or points[-1] > bounds[1]:
        raise InputError(
            f"the grid runs from {points[0]:g} to {points[-1]:g}",
            expected=f"thresholds within the bounds, {bounds[0]:g} to {bounds[1]:g}",
        )
    return points
