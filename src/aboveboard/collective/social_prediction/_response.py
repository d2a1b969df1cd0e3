"""Simulators of people who react to forecasts, for tests, demonstrations and planning."""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.social_prediction._people import check_forecasts, count_people
from aboveboard.core.errors import InputError

__all__ = ["ResponseModel"]

Floats = NDArray[np.float64]
Mean = Callable[[Any, Floats], ArrayLike]

_KINDS: Final = ("self_fulfilling", "self_negating", "threshold")


class ResponseModel:
    """Outcomes that depend on the forecast: y is 1 with probability g(x, p), else 0.

    Parameters
    ----------
    kind : {"self_fulfilling", "self_negating", "threshold"} or callable, default "self_negating"
        With base rate b(x) and strength k, g is ``b + k (p - 1/2)``, ``b - k (p - 1/2)``, or ``b - k`` where p > 1/2
        and b elsewhere; clipped to [0, 1]. A callable ``g(X, p)`` gives the probabilities itself.
    strength : float, default 0.5
    base_rate : float, or callable from X to one number per person, default 0.5
        What would happen at a forecast of 1/2 (or below the threshold).
    random_state : int or None
        Of the outcomes; they go on from call to call.

    Notes
    -----
    O(n) per call. Self-negating with strength 1 and base rate 1/2 is g(p) = 1 - p.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import ResponseModel
    >>> response = ResponseModel("self_negating", 1.0)
    >>> response.mean(np.zeros((3, 1)), [0.1, 0.5, 0.8]).round(2).tolist()
    [0.9, 0.5, 0.2]
    >>> response(np.zeros((3, 1)), [0.0, 1.0, 0.0]).tolist()
    [1.0, 0.0, 1.0]
    """

    def __init__(
        self,
        kind: Literal["self_fulfilling", "self_negating", "threshold"] | Mean = "self_negating",
        strength: float = 0.5,
        *,
        base_rate: float | Callable[[Any], ArrayLike] = 0.5,
        random_state: int | None = None,
    ) -> None:
        if not callable(kind) and kind not in _KINDS:
            raise InputError(f"kind is {kind!r}", expected=f"{', '.join(map(repr, _KINDS))}, or a function g(X, p)")
        if not np.isfinite(strength):
            raise InputError(f"strength is {strength!r}", expected="a finite number")
        if not callable(base_rate) and not 0 <= base_rate <= 1:
            raise InputError(f"base_rate is {base_rate!r}", expected="a rate between 0 and 1, or a function of X")
        self.kind = kind
        self.strength = float(strength)
        self.base_rate = base_rate
        self._rng = np.random.default_rng(random_state)

    def mean(self, X: Any, p: ArrayLike) -> Floats:
        """Return g(x, p), shape (n,).

        Parameters
        ----------
        X : table of n people
        p : array-like of shape (n,), in [0, 1]

        Raises
        ------
        aboveboard.core.InputError
            When p does not fit, or a function of the user's gives something outside [0, 1].
        """
        forecast = check_forecasts(p, count_people(X))
        if callable(self.kind):
            return _rates(self.kind(X, forecast), len(forecast), "response")
        base = self.base_rate(X) if callable(self.base_rate) else np.full(len(forecast), self.base_rate)
        sign = 1.0 if self.kind == "self_fulfilling" else -1.0
        moved = (forecast > 0.5).astype(np.float64) if self.kind == "threshold" else forecast - 0.5
        return np.clip(_rates(base, len(forecast), "base rate") + sign * self.strength * moved, 0.0, 1.0)

    def __call__(self, X: Any, p: ArrayLike) -> Floats:
        """Return outcomes, 0 or 1, of people to whom p was published; shape (n,)."""
        rate = self.mean(X, p)
        return (self._rng.random(len(rate)) < rate).astype(np.float64)


def _rates(given: ArrayLike, n: int, what: str) -> Floats:
    rates = np.asarray(given, dtype=np.float64)
    if rates.shape != (n,):
        raise InputError(f"the {what} has shape {rates.shape}", expected=f"({n},): one number per person")
    if not ((rates >= 0) & (rates <= 1)).all():
        raise InputError(f"a {what} lies outside [0, 1]", expected="probabilities")
    return rates
