"""The logistic regression of outcomes on the log odds of the scores, from sums over narrow bins of scores."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit

from aboveboard._stats.bootstrap import ClusterCells
from aboveboard._stats.intervals import critical_z
from aboveboard.auditing.summaries import Units

__all__ = ["OddsCells", "recalibration"]

_CERTAIN: Final = 1e-6  # scores are kept this far from 0 and 1 where their log odds are taken

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OddsCells:
    """Sums of the log odds x of scores by bin and outcome; make one with `from_arrays`.

    Attributes
    ----------
    units : Units
    sums : ndarray, shape (6, bins, 2)
        With w the weight: sums of w, w x, w x^2, w^2, w^2 x and w^2 x^2; the last axis is the outcome.
    rows : int
    blocks : ClusterCells or None
        Weights by block of clusters and cell, where rows come in clusters.
    """

    units: Units
    sums: Floats
    rows: int
    blocks: ClusterCells | None = None

    @classmethod
    def from_arrays(
        cls,
        score: NDArray[Any],
        y: NDArray[Any],
        weight: NDArray[Any] | None,
        edges: Floats,
        units: Units,
        block: NDArray[np.intp] | None = None,
    ) -> "OddsCells":
        """Sum over rows; scores in [0, 1] are kept 1e-6 away from 0 and 1. O(n) time."""
        x = logit(np.clip(score, _CERTAIN, 1 - _CERTAIN))
        cell = 2 * np.searchsorted(edges, score, side="left") + y.astype(np.intp)
        size = 2 * len(edges)
        w = np.ones(len(x)) if weight is None else weight
        columns = (w, w * x, w * x * x, w * w, w * w * x, w * w * x * x)
        sums = np.stack([np.bincount(cell, weights=column, minlength=size) for column in columns])
        blocks = None if block is None else ClusterCells.from_arrays(block, cell, weight, size)
        return cls(units, sums.astype(np.float64).reshape(6, -1, 2), len(x), blocks)

    def __add__(self, other: "OddsCells") -> "OddsCells":
        """Return the sums of the rows of both."""
        blocks = None if self.blocks is None or other.blocks is None else self.blocks + other.blocks
        return replace(self, sums=self.sums + other.sums, rows=self.rows + other.rows, blocks=blocks)

    @property
    def critical(self) -> float:
        """Critical value of a 95 % interval: Student's for the clusters where there are any."""
        if self.units.clusters is None:
            return critical_z()
        return float(stats.t.ppf(0.975, max(self.units.clusters - 1, 1)))


def recalibration(cells: OddsCells) -> tuple[Floats, Floats] | None:
    """Fit the logistic regression of outcomes on the log odds of the scores.

    Parameters
    ----------
    cells : OddsCells

    Returns
    -------
    (intercept, slope), (their standard errors), or None
        None where it does not exist: scores all alike, one class, or classes that the scores separate. Errors are
        robust (sandwich) and know about weights and clusters.

    Notes
    -----
    Within a bin the likelihood is expanded to second order about the mean of the log odds, which is exact where each
    distinct score has a bin of its own and else leaves an error of third order in the width of the bins (0.06 at most).
    Newton's method; O(bins) time per step, ten steps or so.
    """
    full = cells.sums[0] > 0
    label = np.broadcast_to([0.0, 1.0], full.shape)[full]
    w, wx, wxx, ww, wwx, wwxx = (column[full] for column in cells.sums)
    if not w.size:
        return None
    scale = cells.rows / float(w.sum())
    w, wx, wxx = scale * w, scale * wx, scale * wxx
    x = wx / w
    within = np.maximum(wxx / w - x * x, 0.0)
    mean = float((w * x).sum() / w.sum())
    spread = float((w * ((x - mean) ** 2 + within)).sum() / w.sum())
    if spread < 1e-12 or label.min() == label.max():
        return None
    beta = np.array([0.0, 1.0])

    def loss(b: Floats) -> float:
        eta = b[0] + b[1] * x
        p = expit(eta)
        return float((w * (np.logaddexp(0.0, eta) - label * eta + 0.5 * b[1] ** 2 * within * p * (1 - p))).sum())

    current = loss(beta)
    for _ in range(100):
        gradient, hessian = _derivatives(beta, x, within, label, w)
        if np.linalg.cond(hessian) > 1e12:
            return None
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while loss(beta + size * step) > current + 1e-9 * abs(current) and size > 1e-6:
            size /= 2
        beta = beta + size * step
        current = loss(beta)
        if np.abs(beta).max() > 1e3:
            return None
        if np.abs(size * step).max() < 1e-9:
            break
    else:
        return None
    _, hessian = _derivatives(beta, x, within, label, w)
    if np.linalg.cond(hessian) > 1e12 or current < 1e-6 * cells.rows:
        return None
    bread = np.linalg.inv(hessian) * float(w.sum())
    residual = label - expit(beta[0] + beta[1] * x)
    if cells.blocks is None:
        units = cells.rows
        squares = [
            float((residual**2 * (b[0] ** 2 * ww + 2 * b[0] * b[1] * wwx + b[1] ** 2 * wwxx)).sum()) for b in bread.T
        ]
    else:
        units = cells.blocks.n_clusters
        influence = np.zeros((full.size, 2))
        influence[full.ravel()] = np.column_stack([residual, residual * x]) @ bread
        squares = list((np.asarray(cells.blocks.matrix @ influence) ** 2).sum(axis=0))
    if units < 2:
        return beta, np.full(2, np.nan)
    return beta, np.sqrt(units / (units - 1) * np.array(squares)) * scale / cells.rows


def _derivatives(beta: Floats, x: Floats, within: Floats, label: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the gradient of the log likelihood, and minus its second derivative (without terms of third order)."""
    p = expit(beta[0] + beta[1] * x)
    variance = p * (1 - p)
    bend = 0.5 * beta[1] ** 2 * within * variance * (1 - 2 * p)
    slope = label - p - bend
    gradient = np.array([(w * slope).sum(), (w * (slope * x - beta[1] * within * variance)).sum()])
    cross = float((w * variance * x).sum())
    return gradient, np.array(
        [[float((w * variance).sum()), cross], [cross, float((w * variance * (x * x + within)).sum())]]
    )
