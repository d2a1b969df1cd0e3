"""Projected gradients: three ways to go downhill in a convex set, none of which forgets the best point it saw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.opinion_interventions._constraints import Projection

__all__ = ["METHODS", "Evaluate", "Point", "Refine", "Trace"]

Floats = NDArray[np.float64]

_FRICTION: Final = 0.95
_GROWTH: Final = 1.5
_LEAST_MOVE: Final = 1e-12


@dataclass(frozen=True)
class Point:
    """Weights, the objective there, and its gradient."""

    x: Floats
    value: float
    gradient: Floats


Evaluate = Callable[[Floats, float], Point | None]
"""From weights, and a value: the point, or None where its value is above that one (its gradient is not needed)."""
Refine = Callable[[Point], Point]
"""The same point, evaluated more exactly: what it is compared with may have looked too good."""


class Trace:
    """The best point so far, the value of every iteration, and whether to go on.

    Parameters
    ----------
    first : Point
    max_iter : int
    tol : float
        Ends the search after two iterations in a row whose value changed by less, relatively.
    """

    def __init__(self, first: Point, max_iter: int, tol: float) -> None:
        self.best = first
        self.values = [first.value]
        self.converged = False
        self._max_iter, self._tol, self._calm = max_iter, tol, 0

    def on(self) -> bool:
        """Return whether there is an iteration left to do."""
        return not self.converged and len(self.values) <= self._max_iter and bool(np.any(self.best.gradient))

    def take(self, point: Point) -> None:
        """Note an iteration's point."""
        before = self.values[-1]
        self.values.append(point.value)
        self._calm = self._calm + 1 if abs(before - point.value) <= self._tol * abs(before) else 0
        self.converged = self._calm >= 2
        if point.value < self.best.value:
            self.best = point

    def refuse(self, refined: Point, move: float) -> None:
        """Note an iteration that led nowhere from a point, and end where it moved weights by hardly anything."""
        self.values.append(refined.value)
        self.best = refined
        self.converged = move <= _LEAST_MOVE * (1.0 + float(np.abs(self.best.x).max()))


def _nesterov(evaluate: Evaluate, refine: Refine, project: Projection, trace: Trace, step: float) -> None:
    """Nesterov's accelerated gradient; where the value would rise, forget the momentum and halve the step."""
    point = trace.best
    rate, landed, k = _rate(point, step), point.x, 0
    while trace.on():
        ahead = project(point.x - rate * point.gradient)
        target = project(ahead + k / (k + 3) * (ahead - landed)) if k else ahead
        found = evaluate(target, point.value)
        if found is not None:
            trace.take(found)
            landed, point, k = ahead, found, k + 1
            rate *= _GROWTH
            continue
        point = refine(point)
        trace.refuse(point, rate * float(np.abs(point.gradient).max()))
        landed, k = point.x, 0
        rate /= 2.0


def _momentum(evaluate: Evaluate, refine: Refine, project: Projection, trace: Trace, step: float) -> None:
    """Polyak's heavy ball; where the value would rise, stand still and halve the step."""
    point = trace.best
    rate, speed = _rate(point, step) * (1.0 - _FRICTION), np.zeros_like(point.x)
    while trace.on():
        speed = _FRICTION * speed + point.gradient
        found = evaluate(project(point.x - rate * speed), point.value)
        if found is not None:
            trace.take(found)
            point = found
            continue
        point = refine(point)
        trace.refuse(point, rate * float(np.abs(speed).max()))
        speed = np.zeros_like(speed)
        rate /= 2.0


def _adagrad(evaluate: Evaluate, refine: Refine, project: Projection, trace: Trace, step: float) -> None:
    """AdaGrad with one rate for all weights, which shrinks with the gradients so far; values may rise in between.

    A rate for each weight would need the projection in another norm: with the nearest point it can end where nothing is
    stationary.
    """
    point = trace.best
    first, squares = _rate(point, step) * float(np.linalg.norm(point.gradient)), 0.0
    while trace.on():
        squares += float(point.gradient @ point.gradient)
        found = evaluate(project(point.x - first / np.sqrt(squares) * point.gradient), np.inf)
        if found is None:  # not a number
            trace.refuse(refine(trace.best), 0.0)
        else:
            trace.take(found)
            point = found


def _rate(point: Point, step: float) -> float:
    return step / max(float(np.abs(point.gradient).max()), np.finfo(np.float64).tiny)


METHODS: Final = {"nesterov": _nesterov, "momentum": _momentum, "adagrad": _adagrad}
