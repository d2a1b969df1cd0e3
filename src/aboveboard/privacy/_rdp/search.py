"""The smallest noise that keeps a promise."""

import math
from collections.abc import Callable

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_positive

__all__ = ["smallest_noise"]


def smallest_noise(
    epsilon_of: Callable[[float], float],
    epsilon: float,
    *,
    start: float = 1.0,
    most: float = 1e12,
    relative: float = 1e-6,
) -> float:
    """Return the least noise whose epsilon is at most `epsilon`, by bisection of its logarithm.

    Parameters
    ----------
    epsilon_of : callable
        Takes the noise, in any unit, and returns an epsilon that does not grow with it.
    epsilon : float > 0
    start : float > 0
        Where the search begins.
    most : float
        Beyond which there is none.
    relative : float
        How far the result may be above the least noise; its own epsilon is always at most `epsilon`.

    Raises
    ------
    InputError
        When not even noise of `most` is enough.
    """
    epsilon = checked_positive(epsilon, "epsilon")
    low = high = checked_positive(start, "start")
    while epsilon_of(high) > epsilon:
        low, high = high, 2 * high
        if high > most:
            raise InputError(
                f"no noise up to {most:g} gives epsilon {epsilon:g}",
                remedy="Ask for a larger epsilon or delta, or release less",
            )
    while low == high or epsilon_of(low) <= epsilon:
        low, high = low / 2, low
        if low < 1 / most:
            return high
    while high > low * (1 + relative):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_of(middle) <= epsilon else (middle, high)
    return high
