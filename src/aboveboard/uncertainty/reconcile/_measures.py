"""How far two models are from acting alike, and each from knowing what its own decisions cost."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError
from aboveboard.uncertainty.reconcile._input import read_classes, read_outcomes, read_probabilities, read_weights
from aboveboard.uncertainty.reconcile._losses import LossSet, read_losses
from aboveboard.uncertainty.reconcile._patches import Board

__all__ = [
    "Measures",
    "best_response",
    "calibration_sums",
    "decision_calibration_error",
    "disagreement",
    "event_masses",
    "measured",
]

Floats = NDArray[np.float64]


def best_response(p: ArrayLike, loss: Any = None) -> NDArray[Any]:
    """Return the action that probabilities make cheapest, row by row.

    Parameters
    ----------
    p : array-like of shape (n, d)
        Probabilities; shape (n,) for those of the second of two classes.
    loss : array-like of shape (d, actions), or DataFrame, optional
        What each action costs when the class is true. Default: 1 for a wrong class.

    Returns
    -------
    ndarray of shape (n,)
        Positions of the actions, or their labels where `loss` is a DataFrame; the first of those that cost the same.

    Notes
    -----
    O(n d actions) time.

    Examples
    --------
    >>> import pandas as pd
    >>> from aboveboard.uncertainty import best_response
    >>> loss = pd.DataFrame({"grant": [5.0, 0.0], "deny": [0.0, 1.0], "review": [0.3, 0.3]}, index=["bad", "good"])
    >>> best_response([0.2, 0.8, 0.99], loss).tolist()
    ['deny', 'review', 'grant']
    """
    probabilities = read_probabilities([p, p])[0]
    losses = read_losses(loss, list(range(probabilities.shape[1])) if not _labelled(loss) else list(loss.index))
    best: NDArray[Any] = losses.expected(probabilities)[:, 0].argmin(axis=1)
    return np.asarray(losses.actions[0], dtype=object)[best] if isinstance(loss, pd.DataFrame) else best


def disagreement(
    p1: ArrayLike, p2: ArrayLike, loss: Any = None, *, alpha: float = 0.0, sample_weight: ArrayLike | None = None
) -> pd.DataFrame:
    """Return how often two models would act differently, for each two actions.

    Parameters
    ----------
    p1, p2 : array-like of shape (n, d), or (n,)
        Probabilities, as `best_response` takes them.
    loss : array-like of shape (d, actions), or DataFrame, optional
    alpha : float
        Only where the models differ by at least this much on what it is worth to act as the one and not as the other.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    DataFrame
        ``action`` (of the first model), ``other_action`` (of the second), ``rows``, ``mass`` (their share) and ``gap``
        (the mean difference); one line for each pair of actions that occurs, the most frequent first.

    Examples
    --------
    >>> from aboveboard.uncertainty import disagreement
    >>> int(disagreement([0.49, 0.9, 0.2], [0.51, 0.8, 0.3])["rows"].sum())
    1
    >>> int(disagreement([0.49, 0.9, 0.2], [0.51, 0.8, 0.3], alpha=0.1)["rows"].sum())
    0
    """
    if not (np.isfinite(alpha) and alpha >= 0):
        raise InputError(f"alpha is {alpha!r}", expected="a finite number, 0 or more")
    probabilities = read_probabilities([p1, p2])
    n, d = probabilities[0].shape
    losses = read_losses(loss, list(loss.index) if _labelled(loss) else list(range(d)))
    weights = read_weights(sample_weight, n)
    board = Board(probabilities, losses)
    rows = np.flatnonzero(board.best[0][0] != board.best[1][0])
    gap = board.gaps((0, 1), 0, rows)
    rows, gap = rows[gap >= alpha], gap[gap >= alpha]
    actions = losses.actions[0] if isinstance(loss, pd.DataFrame) else range(len(losses.actions[0]))
    found = pd.DataFrame(
        {
            "action": [actions[a] for a in board.best[0][0][rows]],
            "other_action": [actions[a] for a in board.best[1][0][rows]],
            "mass": weights[rows],
            "gap": gap,
        }
    )
    table = found.groupby(["action", "other_action"], as_index=False, sort=False).agg(
        rows=("mass", "size"), mass=("mass", "sum"), gap=("gap", "mean")
    )
    return table.sort_values("mass", ascending=False, kind="stable", ignore_index=True)


def decision_calibration_error(
    p: ArrayLike, y: ArrayLike, losses: Any = None, *, sample_weight: ArrayLike | None = None
) -> pd.DataFrame:
    """Return how wrong a model is on the rows for which it takes each action, and what it expects that to cost.

    Parameters
    ----------
    p : array-like of shape (n, d), or (n,)
    y : array-like of shape (n,) or (n, d)
        Classes, or rows of the simplex.
    losses : as for `ReDCal`
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    DataFrame
        One line for each loss and action: ``loss``, ``action``, ``mass``, ``error`` (the norm of E[(y - p) 1{action}],
        which `ReDCal` brings down to beta), ``forecast`` and ``realised`` (what the model expects these decisions to
        cost, and what they cost, per row of all).

    Examples
    --------
    >>> from aboveboard.uncertainty import decision_calibration_error
    >>> errors = decision_calibration_error([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0])
    >>> errors["error"].round(3).tolist()
    [0.035, 0.247]
    """
    probabilities = read_probabilities([p, p])[0]
    n, d = probabilities.shape
    classes = read_classes(None, y, d, from_models=False)
    found = read_losses(losses, classes)
    outcomes, weights = read_outcomes(y, classes, n), read_weights(sample_weight, n)
    best = found.expected(probabilities).argmin(axis=2).T
    residual = calibration_sums(best, (outcomes - probabilities) * weights[:, None], found)
    forecast = calibration_sums(best, probabilities * weights[:, None], found)
    mass = calibration_sums(best, weights[:, None], found)[..., 0]
    lines = [
        (
            name,
            action,
            float(mass[place, a]),
            float(np.linalg.norm(residual[place, a])),
            float(forecast[place, a] @ found.matrix[:, place, a]),
            float((forecast[place, a] + residual[place, a]) @ found.matrix[:, place, a]),
        )
        for place, name in enumerate(found.names)
        for a, action in enumerate(found.actions[place])
    ]
    return pd.DataFrame(lines, columns=["loss", "action", "mass", "error", "forecast", "realised"])


def calibration_sums(best: NDArray[np.intp], columns: Floats, losses: LossSet) -> Floats:
    """Return sums of `columns`, shape (n, c), over the rows for which each action is best: (losses, actions, c)."""
    from scipy import sparse

    count, most = losses.padding.shape
    n = best.shape[1]
    cells = (best + most * np.arange(count)[:, None]).T.ravel().astype(np.int32)
    starts = np.arange(0, n * count + 1, count, dtype=np.int32 if n * count < 2**31 else np.int64)
    chosen = sparse.csc_matrix((np.ones(n * count), cells, starts), shape=(count * most, n))
    return np.asarray(chosen @ columns).reshape(count, most, -1)


def event_masses(board: Board, weights: Floats, alpha: float) -> dict[tuple[int, int], tuple[Floats, Floats]]:
    """Return for each two models the mass of every event, and its rows: (losses, actions of one, of the other) each."""
    count, most = board.losses.padding.shape
    found = {}
    for i in range(len(board.best)):
        for j in range(i + 1, len(board.best)):
            tables = np.zeros((2, count, most * most))
            for loss in range(count):
                rows = np.flatnonzero(board.best[i][loss] != board.best[j][loss])
                rows = rows[board.gaps((i, j), loss, rows) >= alpha]
                cells = board.best[i][loss][rows] * most + board.best[j][loss][rows]
                tables[0, loss] = np.bincount(cells, weights=weights[rows], minlength=most * most)
                tables[1, loss] = np.bincount(cells, minlength=most * most)
            mass, rows_of = tables.reshape(2, count, most, most)
            found[i, j] = (mass, rows_of)
    return found


@dataclass(frozen=True)
class Measures:
    """What models do on some rows with known answers.

    Attributes
    ----------
    brier : ndarray of shape (models,)
        Mean squared distance of the probabilities to the outcomes.
    realised, forecast : ndarray of shape (models, losses)
        The mean loss of each model's decisions, and what the model itself expects it to be.
    regret : ndarray of shape (models, losses)
        By how much the best renaming of actions would lower the realised loss.
    event : dict of (int, int) to ndarray of shape (losses,)
        For each two models, the mass of the largest event: two actions, and a margin of alpha.
    margin, total : dict of (int, int) to ndarray of shape (losses,)
        The share of rows on which they act differently, by that margin and at all.
    """

    brier: Floats
    realised: Floats
    forecast: Floats
    regret: Floats
    event: dict[tuple[int, int], Floats]
    margin: dict[tuple[int, int], Floats]
    total: dict[tuple[int, int], Floats]


def measured(board: Board, outcomes: Floats, weights: Floats, alpha: float) -> Measures:
    """Return what the models of a board do, on rows with weights that sum to 1."""
    costs = board.losses.matrix.transpose(1, 2, 0)  # losses, actions, classes
    realised, forecast, regret = [], [], []
    for probabilities, best in zip(board.probabilities, board.best, strict=True):
        truth = calibration_sums(best, outcomes * weights[:, None], board.losses)
        said = calibration_sums(best, probabilities * weights[:, None], board.losses)
        paid = (truth * costs).sum(axis=2)
        instead = np.einsum("lad,lbd->lab", truth, costs) + board.losses.padding[:, None, :]
        realised.append(paid.sum(axis=1))
        forecast.append((said * costs).sum(axis=(1, 2)))
        regret.append((paid - instead.min(axis=2)).sum(axis=1))
    apart = {pair: mass for pair, (mass, _) in event_masses(board, weights, alpha).items()}
    total = {pair: mass for pair, (mass, _) in event_masses(board, weights, 0.0).items()}
    return Measures(
        brier=np.array([weights @ ((part - outcomes) ** 2).sum(axis=1) for part in board.probabilities]),
        realised=np.array(realised),
        forecast=np.array(forecast),
        regret=np.array(regret),
        event={pair: mass.max(axis=(1, 2)) for pair, mass in apart.items()},
        margin={pair: mass.sum(axis=(1, 2)) for pair, mass in apart.items()},
        total={pair: mass.sum(axis=(1, 2)) for pair, mass in total.items()},
    )


def _labelled(loss: Any) -> bool:
    return isinstance(loss, pd.DataFrame) and not isinstance(loss.index, pd.RangeIndex)
