"""The move that is best for an applicant, in one number: how far he goes along a bent line.

With costs that depend on the length r of a move alone, the best move of every length lies on one path: all features
grow in proportion to their pull, and each stops at its bound. Along it the gain W is concave in r, and

    W'(r) = lam,    where the move is min(pull / lam, room), feature by feature.

So a best reply to costs A r + B r^2 / 2 solves lam (r) = A + B r, and an equilibrium is one such number per applicant.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Paths", "Replies", "settled"]

Floats = NDArray[np.float64]

_MOST_STEPS = 100
_ROUNDING = 4 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Paths:
    """The paths of N applicants, in segments between the lengths at which a feature meets its bound.

    Parameters
    ----------
    pull : ndarray of shape (N, d) or (1, d)
        Gain per unit of each feature; its sign says where the applicant wants to go.
    room : ndarray of shape (N, d)
        How far he can go that way: at or above 0, infinite without a bound.
    stop : ndarray of shape (N, d)
        Sorted values of 1 / lam at which a feature meets its bound.
    fixed, free : ndarray of shape (N, d + 1)
        In each segment, the squared length of the part that has stopped, and the squared pull of the rest.
    """

    pull: Floats
    room: Floats
    stop: Floats
    fixed: Floats
    free: Floats

    @classmethod
    def of(cls, pull: Floats, below: Floats, above: Floats) -> "Paths":
        """Return the paths where an applicant can go down by `below` and up by `above`; O(N d log d)."""
        size = np.abs(pull)
        room = np.where(pull > 0, above, np.where(pull < 0, below, 0.0))
        size, room = np.broadcast_arrays(size, room)
        stop = np.divide(room, size, out=np.zeros(room.shape), where=size > 0)
        order = np.argsort(stop, axis=1, kind="stable")
        stop = np.take_along_axis(stop, order, axis=1)
        squared_room = np.take_along_axis(room, order, axis=1) ** 2
        squared_pull = np.take_along_axis(size, order, axis=1) ** 2
        none = np.zeros((len(stop), 1))
        fixed = np.concatenate([none, np.cumsum(squared_room, axis=1)], axis=1)
        left = np.cumsum(squared_pull[:, ::-1], axis=1)[:, ::-1]
        return cls(pull, room, stop, fixed, np.concatenate([left, none], axis=1))

    def moves(self, lam: Floats) -> Floats:
        """Return the move of each applicant at `lam` (shape (N,)), shape (N, d); no move where it is infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = np.abs(self.pull) / lam[:, None]  # a feature without pull has no room
        return np.sign(self.pull) * np.fmin(wanted, self.room)


@dataclass(frozen=True)
class Replies:
    """Best replies along `paths` to costs A r + B r^2 / 2, for fixed B and any A.

    Parameters
    ----------
    paths : Paths
    curvature : ndarray of shape (N,)
        B, at or above 0.
    excess : ndarray of shape (N, d)
        W' - B r at the end of each segment: where it is above A, the applicant goes on.
    """

    paths: Paths
    curvature: Floats
    excess: Floats

    @classmethod
    def of(cls, paths: Paths, curvature: Floats) -> "Replies":
        stop, fixed, free = paths.stop, paths.fixed[:, :-1], paths.free[:, :-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(stop > 0, 1.0 / stop, 0.0)
            length = np.where(stop > 0, np.sqrt(fixed + stop**2 * free), 0.0)
            slope = np.sqrt(fixed * inverse**2 + free)
            drag = np.where(curvature[:, None] > 0, curvature[:, None] * length, 0.0)
        return cls(paths, curvature, np.where(stop > 0, slope - drag, np.inf))

    def at(self, linear: Floats) -> tuple[Floats, Floats, Floats]:
        """Return lam at the best reply to costs with A = `linear`, its length r, and dr / dA; each of shape (N,).

        Where it is best to stay, lam is infinite; where nothing stops the applicant, lam is 0 and r infinite. O(N d).
        """
        segment = (self.excess > linear[:, None]).sum(axis=1)
        rows = np.arange(len(linear))
        fixed, free = self.paths.fixed[rows, segment], self.paths.free[rows, segment]
        endless = np.isinf(fixed)
        moves = ~endless & ((fixed > 0) | (np.sqrt(free) > linear))
        lam, r, slope = np.where(endless, 0.0, np.inf), np.where(endless, np.inf, 0.0), np.zeros(len(linear))
        A, B, C, P = (part[moves] for part in (linear, self.curvature, fixed, free))
        with np.errstate(divide="ignore"):
            begun = 1.0 / self.paths.stop[rows[moves], np.maximum(segment[moves] - 1, 0)]
        start = np.where((C > 0) & (P > 0), begun, 1.0 + A + B)  # a line, solved by one step, where C or P is 0
        known = _largest_root(A, B, C, P, start)
        weight = C * known**2 + P
        lam[moves], r[moves] = known, np.sqrt(weight) / known
        slope[moves] = -P / (known * (weight - A * P / np.sqrt(weight)))
        return lam, r, slope


def _largest_root(A: Floats, B: Floats, C: Floats, P: Floats, start: Floats) -> Floats:
    """Return the largest root of lam - B - A lam / sqrt(C lam^2 + P), which is convex, by Newton steps from above."""
    lam = start.copy()
    left = np.arange(len(lam))
    for _ in range(_MOST_STEPS):
        at, a, c, p = lam[left], A[left], C[left], P[left]
        weight = c * at**2 + p
        root = np.sqrt(weight)
        step = (at - B[left] - a * at / root) / (1.0 - a * p / (weight * root))
        lam[left] = at - step
        left = left[step > _ROUNDING * at]  # from the first step on, a step upwards is rounding
        if not len(left):
            break
    return lam


def settled(replies: Replies, linear: Floats, coupling: float, n: int) -> tuple[Floats, Floats, int]:
    """Return lam of every applicant, shape (games * n,), the total S of each game, and the number of steps.

    In each game the costs are (linear + coupling S) r + B r^2 / 2 with S the sum of all r: one number per game, the
    root of a decreasing function, found by Newton steps kept between bounds. O(N d) a step.
    """
    games = len(linear) // n
    if coupling == 0 or n == 1:
        lam, r, _ = replies.at(linear)
        return lam, r.reshape(games, n).sum(axis=1), 1
    low = np.zeros(games)
    high = replies.at(linear)[1].reshape(games, n).sum(axis=1)
    total, before, step = low.copy(), np.full(games, np.inf), 0
    while True:
        step += 1
        lam, r, slope = replies.at(linear + coupling * np.repeat(total, n))
        short = r.reshape(games, n).sum(axis=1) - total
        low, high = np.where(short >= 0, total, low), np.where(short <= 0, total, high)
        done = (np.abs(short) <= 1e-12 * total) | (high - low <= _ROUNDING * high)
        if step == _MOST_STEPS or done.all():
            return lam, total, step
        following = total - short / (coupling * slope.reshape(games, n).sum(axis=1) - 1.0)
        newton = (following > low) & (following < high) & (np.abs(short) < before / 2)
        total = np.where(done, total, np.where(newton, following, (low + high) / 2))
        before = np.abs(short)
