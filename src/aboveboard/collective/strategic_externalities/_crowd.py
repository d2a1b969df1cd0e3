"""Games of one size, side by side: what every applicant wants, may do and pays, and the equilibrium of all at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.strategic_externalities._replies import Floats, Paths, Replies, settled

__all__ = ["Crowd"]

_NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Crowd:
    """Games of n applicants each, who pay A r + B r^2 / 2 for a move of length r, with

        A = linear + coupling * (sum of the others' lengths) and B = curvature.

    Parameters
    ----------
    pull : ndarray of shape (games * n, d) or (1, d)
        Gain per unit of move in each feature; moves are in units of cost.
    below, above : ndarray of shape (games * n, d)
        How far an applicant can go down and up.
    linear, curvature : ndarray of shape (games * n,)
    coupling : float
    n : int
    """

    pull: Floats
    below: Floats
    above: Floats
    linear: Floats
    curvature: Floats
    coupling: float
    n: int

    def __len__(self) -> int:
        return len(self.linear) // self.n

    def parts(self) -> Iterator[tuple[slice, "Crowd"]]:
        """Yield the applicants of some games at a time, so that what is in use stays small."""
        rows = self.n * max(1, _NUMBERS_AT_ONCE // (self.n * self.below.shape[1]))
        for start in range(0, len(self.linear), rows):
            at = slice(start, start + rows)
            own = {name: getattr(self, name)[at] for name in ("below", "above", "linear", "curvature")}
            yield at, replace(self, pull=self.pull if len(self.pull) == 1 else self.pull[at], **own)

    def equilibrium(self) -> tuple[Floats, NDArray[np.bool_], int]:
        """Return the moves in equilibrium, whether a feature was stopped by its bound, and the number of steps.

        Needs the costs to be strictly convex in all moves together: `curvature` above `coupling`. Moves are infinite
        where nothing stops an applicant.
        """
        paths = Paths.of(self.pull, self.below, self.above)
        curvature = self.curvature - (self.coupling if self.n > 1 else 0.0)
        lam, _, steps = settled(Replies.of(paths, curvature), self.linear, self.coupling, self.n)
        moves = paths.moves(lam)
        return moves, (moves != 0) & (np.abs(moves) == paths.room) | (self.pull != 0) & (paths.room == 0), steps

    def replies(self, moves: Floats) -> tuple[Floats, Floats]:
        """Return the best reply of each applicant to the others' moves, and what it gains over his own move."""
        others = self.others(moves)
        paths = Paths.of(self.pull, self.below, self.above)
        lam, _, _ = Replies.of(paths, self.curvature).at(self.linear + self.coupling * others)
        best = paths.moves(lam)
        endless = lam == 0
        best[endless] = 0.0
        gain = self._payoff(best, others) - self._payoff(moves, others)
        gain[endless] = np.inf
        return best, np.maximum(gain, 0.0)

    def nash_gap(self, moves: Floats) -> Floats:
        """Return the most that any applicant of a game gains by a move of his own, shape (games,)."""
        return np.asarray(self.replies(moves)[1].reshape(-1, self.n).max(axis=1))

    def others(self, moves: Floats) -> Floats:
        """Return the sum of the lengths of the others' moves, shape (games * n,)."""
        length = _length(moves).reshape(-1, self.n)
        return np.asarray(length.sum(axis=1, keepdims=True) - length).reshape(-1)

    def potential(self, moves: Floats) -> Floats:
        """Return what all gain less all costs, each pair of applicants counted once, shape (games,)."""
        own = self._payoff(moves, self.others(moves) / 2)
        return np.asarray(own.reshape(-1, self.n).sum(axis=1))

    def _payoff(self, moves: Floats, others: Floats) -> Floats:
        """Return each one's gain less costs, without what the others' moves cost him whatever he does."""
        length = _length(moves)
        costs = (self.linear + self.coupling * others) * length + self.curvature * length**2 / 2
        return np.asarray((self.pull * moves).sum(axis=1) - costs)

    def pulled_back(self, moves: Floats, stopped: NDArray[np.bool_], weight: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of ``(weight * moves).sum()`` by the pull of each applicant, and by his moves that are
        stopped by a bound: each of shape (games * n, d).

        The implicit function theorem at the equilibrium, on the features that are not stopped. The Hessian of the
        potential there is a block per applicant plus a rank-one term that couples their lengths, so that the linear
        system is solved exactly in O(N d). Whoever stays put has gradient 0.
        """
        r = _length(moves)
        moved = r > 0
        r = np.where(moved, r, 1.0)
        coupling = self.coupling if self.n > 1 else 0.0
        A = self.linear + coupling * self._total(np.where(moved, r, 0.0))
        lam = A / r + self.curvature - coupling
        free, held = np.where(stopped, 0.0, moves), np.where(stopped, moves, 0.0)
        free_weight = np.where(stopped, 0.0, weight) * moved[:, None]
        inward = (free_weight * free).sum(axis=1) / lam
        share = (free**2).sum(axis=1) / (lam * r)
        stiffness = np.where(moved, r - share * A / r, 1.0)
        by_length = inward * A / r**2
        coupled = self._total((inward / r + by_length * share / stiffness) * moved)
        by_total = coupling * coupled / (1.0 + coupling * self._total(share / stiffness * moved))
        scale = np.where(moved, (by_length - by_total) / stiffness, 0.0)[:, None]
        by_pull = (free_weight + scale * free) / np.where(moved, lam, 1.0)[:, None]
        return by_pull, np.where(stopped, weight, 0.0) + scale * held

    def _total(self, values: Floats) -> Floats:
        """Return the sum over an applicant's game, for every applicant."""
        return np.repeat(values.reshape(-1, self.n).sum(axis=1), self.n)


def _length(moves: Floats) -> Any:
    return np.sqrt(np.einsum("ij,ij->i", moves, moves))
