"""Patches, and the models' probabilities while they are patched: on the rows of the fit, and replayed on new ones."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.uncertainty.reconcile._losses import LossSet

__all__ = ["Board", "Patch", "project_simplex", "replayed"]

_ROWS_AT_ONCE: Final = 65_536

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Patch:
    """One correction of one model on the rows of one event.

    Parameters
    ----------
    kind : {"reconcile", "calibrate"}
        The event: two models would act differently and their probabilities make it matter; or one model takes `action`.
    model : int
        The model that is corrected.
    loss : int
        Position of the loss by which is acted.
    pair : (int, int)
        Reconcile: the models that would take `action` and `other_action`. Calibrate: `model` twice.
    action, other_action : int
        Positions of the actions; -1 for no other.
    margin : float
        Reconcile: the least difference that counts.
    shift : tuple of float
        What is added to the probabilities, before they are projected onto the simplex.
    """

    kind: Literal["reconcile", "calibrate"]
    model: int
    loss: int
    pair: tuple[int, int]
    action: int
    other_action: int
    margin: float
    shift: tuple[float, ...]


class Board:
    """The probabilities of all models on some rows, what they make each action cost, and which is cheapest.

    Attributes
    ----------
    probabilities : list of ndarray of shape (n, d)
    costs : list of ndarray of shape (n, losses, actions)
    best : list of ndarray of shape (losses, n)
        Positions of the cheapest actions; the first of those that cost the same.
    """

    def __init__(self, probabilities: Sequence[Floats], losses: LossSet) -> None:
        self.losses = losses
        self.probabilities = [np.array(matrix, dtype=np.float64) for matrix in probabilities]
        self.costs = [losses.expected(matrix) for matrix in self.probabilities]
        self.best = [np.ascontiguousarray(cost.argmin(axis=2).T.astype(np.int32)) for cost in self.costs]

    def __len__(self) -> int:
        return len(self.probabilities[0])

    def rows(self, patch: Patch) -> Rows:
        """Return the rows of a patch's event."""
        first, second = patch.pair
        if patch.kind == "calibrate":
            return np.flatnonzero(self.best[first][patch.loss] == patch.action)
        acting = (self.best[first][patch.loss] == patch.action) & (self.best[second][patch.loss] == patch.other_action)
        rows = np.flatnonzero(acting)
        gap = self.gaps(patch.pair, patch.loss, rows)
        return rows[gap >= patch.margin]

    def gaps(self, pair: tuple[int, int], loss: int, rows: Rows) -> Floats:
        """Return by how much two models differ on what it is worth to act as the one and not as the other does.

        That is what the first expects to lose by the second's action, and the second by the first's, summed.
        """
        first, second = pair
        a, b = self.best[first][loss][rows], self.best[second][loss][rows]
        mine, theirs = self.costs[first][rows, loss], self.costs[second][rows, loss]
        at = np.arange(len(rows))
        gap: Floats = (mine[at, b] - mine[at, a]) + (theirs[at, a] - theirs[at, b])
        return gap

    def shift(self, model: int, rows: Rows, shift: Sequence[float] | Floats) -> None:
        """Add `shift` to the probabilities of `model` in `rows`, and project them onto the simplex."""
        moved = project_simplex(self.probabilities[model][rows] + np.asarray(shift))
        self.probabilities[model][rows] = moved
        self.costs[model][rows] = costs = self.losses.expected(moved)
        self.best[model][:, rows] = costs.argmin(axis=2).T

    def replay(self, patches: Iterable[Patch]) -> "Board":
        """Apply `patches` in order."""
        for patch in patches:
            self.shift(patch.model, self.rows(patch), patch.shift)
        return self


def replayed(probabilities: Sequence[Floats], losses: LossSet, patches: Sequence[Patch]) -> Iterator[Board]:
    """Yield boards of at most 65,536 rows each, with all patches applied; a row does not depend on its neighbours."""
    for start in range(0, len(probabilities[0]), _ROWS_AT_ONCE):
        yield Board([part[start : start + _ROWS_AT_ONCE] for part in probabilities], losses).replay(patches)


def project_simplex(points: Floats) -> Floats:
    """Return the nearest points of the probability simplex to rows that sum to 1.

    Rows without a negative entry stay as they are.

    Notes
    -----
    Sorting finds how many entries stay above zero: O(n d log d).

    References
    ----------
    M. Held, P. Wolfe, H. P. Crowder, "Validation of subgradient optimization", Mathematical Programming 6, 1974.
    """
    outside = np.flatnonzero((points < 0).any(axis=1))
    if not len(outside):
        return points
    moved = points[outside]
    falling = -np.sort(-moved, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    result = points.copy()
    result[outside] = np.maximum(moved - excess[np.arange(len(moved)), last][:, None], 0.0)
    return result
