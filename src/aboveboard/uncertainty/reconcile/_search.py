"""What to patch next: the largest event in which models act differently, else the worst calibrated decision."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard.uncertainty.reconcile._measures import calibration_sums, event_masses
from aboveboard.uncertainty.reconcile._patches import Board, Patch

__all__ = ["Search", "Step", "brier_scores"]

Floats = NDArray[np.float64]


class Step(NamedTuple):
    """A patch that is called for.

    Attributes
    ----------
    patch : Patch
    rows : ndarray of int
        Its event.
    mass : float
    promised : (float, float)
        By how much the Brier score falls at least: the mass times the squared shift, and what theory says.
    """

    patch: Patch
    rows: NDArray[np.intp]
    mass: float
    promised: tuple[float, float]


class Search:
    """The state of a fit, and the next patch for it."""

    def __init__(
        self,
        board: Board,
        outcomes: Floats,
        weights: Floats,
        *,
        mode: str,
        alpha: float,
        eta: float,
        beta: float,
        least: int,
    ) -> None:
        self.board, self.outcomes, self.weights = board, outcomes, weights
        self.alpha, self.eta, self.beta, self.least = alpha, eta, beta, least
        finders = {"reconcile": self._reconciling, "decision_calibration": self._calibrating}
        self._finders = [find for kind, find in finders.items() if mode in ("redcal", kind)]
        self._residuals: dict[int, tuple[Floats, NDArray[np.bool_]]] = {}

    def next(self) -> Step | None:
        """Return the next patch; None when no event is large enough.

        One kind of patch is made until none is called for, then the other.
        """
        for _ in range(len(self._finders)):
            step = self._finders[0]()
            if step is not None:
                return step
            self._finders.append(self._finders.pop(0))
        return None

    def apply(self, step: Step) -> float:
        """Apply a patch, and return by how much the model's Brier score fell."""
        model, rows = step.patch.model, step.rows
        before = self._errors(model, rows)
        self.board.shift(model, rows, step.patch.shift)
        self._residuals.pop(model, None)
        return float(self.weights[rows] @ (before - self._errors(model, rows)))

    def _errors(self, model: int, rows: NDArray[np.intp]) -> Floats:
        errors: Floats = ((self.board.probabilities[model][rows] - self.outcomes[rows]) ** 2).sum(axis=1)
        return errors

    def _reconciling(self) -> Step | None:
        found: tuple[tuple[int, int], int] | None = None
        largest = self.eta
        for pair, (mass, count) in event_masses(self.board, self.weights, self.alpha).items():
            allowed = np.where(count >= self.least, mass, 0.0)
            at = int(allowed.argmax())
            if allowed.flat[at] > largest:
                largest, found = float(allowed.flat[at]), (pair, at)
        if found is None:
            return None
        pair, at = found
        loss, a, b = _place(at, self.board.losses.padding.shape[1], 2)
        rows = self.board.rows(Patch("reconcile", pair[0], loss, pair, a, b, self.alpha, ()))
        shifts = {model: self._shift(model, rows) for model in pair}
        model = max(pair, key=lambda i: float(shifts[i] @ shifts[i]))
        patch = Patch("reconcile", model, loss, pair, a, b, self.alpha, tuple(shifts[model].tolist()))
        least = self.eta * self.alpha**2 / (4 * self.board.losses.diameter**2)
        return self._step(patch, rows, shifts[model], least)

    def _calibrating(self) -> Step | None:
        found: tuple[int, int] | None = None
        worst = self.beta
        for model in range(len(self.board.probabilities)):
            sums, enough = self._sums(model)
            norms = np.where(enough, np.linalg.norm(sums, axis=2), 0.0)
            at = int(norms.argmax())
            if norms.flat[at] > worst:
                worst, found = float(norms.flat[at]), (model, at)
        if found is None:
            return None
        model, at = found
        loss, action = _place(at, self.board.losses.padding.shape[1], 1)
        rows = np.flatnonzero(self.board.best[model][loss] == action)
        shift = self._shift(model, rows)
        patch = Patch("calibrate", model, loss, (model, model), action, -1, 0.0, tuple(shift.tolist()))
        return self._step(patch, rows, shift, self.beta**2)

    def _sums(self, model: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return sums of residuals for each loss and action of a model, and whether they rest on enough rows."""
        if model not in self._residuals:
            residuals = (self.outcomes - self.board.probabilities[model]) * self.weights[:, None]
            columns = np.column_stack([residuals, np.ones(len(residuals))])
            sums = calibration_sums(self.board.best[model], columns, self.board.losses)
            self._residuals[model] = (sums[..., :-1], sums[..., -1] >= self.least)
        return self._residuals[model]

    def _shift(self, model: int, rows: NDArray[np.intp]) -> Floats:
        weights = self.weights[rows]
        shift: Floats = weights @ (self.outcomes[rows] - self.board.probabilities[model][rows]) / weights.sum()
        return shift

    def _step(self, patch: Patch, rows: NDArray[np.intp], shift: Floats, least: float) -> Step:
        mass = float(self.weights[rows].sum())
        return Step(patch, rows, mass, (mass * float(shift @ shift), least))


def _place(at: int, actions: int, dimensions: int) -> tuple[int, ...]:
    """Return the loss and the actions of a cell that is counted through (losses, actions, ...)."""
    place: list[int] = []
    for _ in range(dimensions):
        at, rest = divmod(at, actions)
        place.insert(0, rest)
    return (at, *place)


def brier_scores(board: Board, outcomes: Floats) -> Floats:
    """Return the mean squared distance to the outcomes of each model."""
    return np.array([((part - outcomes) ** 2).sum(axis=1).mean() for part in board.probabilities])
