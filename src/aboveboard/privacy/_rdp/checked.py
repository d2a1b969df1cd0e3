"""Arguments that many functions of this area share, refused where they make no sense."""

import math
import numbers
from collections.abc import Callable
from typing import Any

from aboveboard.core import InputError

__all__ = ["checked_delta", "checked_epsilon", "checked_fraction", "checked_positive", "checked_whole"]


def checked_positive(value: Any, name: str) -> float:
    """Return a finite number above 0."""
    return _checked(value, name, "a finite number above 0", lambda number: 0 < number < math.inf)


def checked_epsilon(value: Any) -> float:
    return _checked(value, "epsilon", "a finite number of at least 0", lambda number: 0 <= number < math.inf)


def checked_delta(value: Any) -> float:
    return _checked(value, "delta", "a number in [0, 1)", lambda number: 0 <= number < 1)


def checked_fraction(value: Any, name: str) -> float:
    return _checked(value, name, "a number in [0, 1]", lambda number: 0 <= number <= 1)


def checked_whole(value: Any, name: str, at_least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < at_least:
        raise InputError(f"{name} is {value!r}", expected=f"a whole number of at least {at_least}")
    return int(value)


def _checked(value: Any, name: str, expected: str, fits: Callable[[float], bool]) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not fits(float(value)):
        raise InputError(f"{name} is {value!r}", expected=expected)
    return float(value)
