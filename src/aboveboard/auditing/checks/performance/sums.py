"""What the metrics need to know of the rows, as sums that add up over parts of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.blocks import BlockSums
from aboveboard._stats.cells import GroupCells
from aboveboard._stats.score_histogram import ScoreHistogram, score_edges
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import Units

__all__ = ["PerformanceLayout", "PerformanceSums", "layout", "summarise", "training_share", "weighted_quantile"]

_TINY = np.finfo(float).eps


@dataclass(frozen=True)
class PerformanceLayout:
    """What all parts agree on.

    Parameters
    ----------
    units : Units
    edges : ndarray or None
        Upper edges of the score bins (binary tasks with scores).
    centre : float
        A number near the mean of the target (regression); from the training data it is that mean.
    median : float
        The median of the target (regression), of the training data where there are some.
    """

    units: Units
    edges: NDArray[np.float64] | None = None
    centre: float = 0.0
    median: float = 0.0


@dataclass(frozen=True)
class PerformanceSums:
    """Sums over rows.

    Attributes
    ----------
    cells : GroupCells
        One group; by label and prediction. Regression: one cell.
    scores : ScoreHistogram or None
        Binary tasks with scores.
    losses : BlockSums or None
        Multiclass tasks with scores: log loss, Brier score. Regression: absolute error, squared error, error, target
        minus centre, its square, and distance of the target from the median.
    classes : ndarray of shape (blocks, classes) or None
        Multiclass tasks with scores: weight of each class.
    centre : float
        That of the layout.
    """

    cells: GroupCells
    scores: ScoreHistogram | None = None
    losses: BlockSums | None = None
    classes: NDArray[np.float64] | None = None
    centre: float = 0.0

    def __add__(self, other: "PerformanceSums") -> "PerformanceSums":
        """Return the sums of the rows of both."""
        return PerformanceSums(
            self.cells + other.cells,
            None if self.scores is None or other.scores is None else self.scores + other.scores,
            None if self.losses is None or other.losses is None else self.losses + other.losses,
            None if self.classes is None or other.classes is None else self.classes + other.classes,
            self.centre,
        )

    @property
    def table(self) -> NDArray[np.int64]:
        """Number of rows by label and prediction."""
        return self.cells.count[0].astype(np.int64)


def layout(subject: Subject) -> PerformanceLayout:
    """Settle what all parts agree on, from the rows drawn at random and the training data."""
    sample = subject.row_sample
    if subject.task == "binary":
        return PerformanceLayout(subject.units, None if sample.score is None else score_edges(sample.score))
    if subject.task == "multiclass":
        return PerformanceLayout(subject.units)
    if subject.train is not None:
        return PerformanceLayout(
            subject.units, centre=float(np.mean(subject.train.y)), median=float(np.median(subject.train.y))
        )
    weight = sample.weights if sample.weights.any() else np.ones(len(sample))
    return PerformanceLayout(
        subject.units,
        centre=float(np.average(sample.y, weights=weight)),
        median=weighted_quantile(sample.y, weight, 0.5),
    )


def summarise(part: Subject, layout: PerformanceLayout) -> PerformanceSums:
    """Sum over the rows of a part. O(n) time (and n classes for several)."""
    if part.task == "regression":
        nothing = np.zeros(len(part), dtype=np.intp)
        cells = GroupCells.from_arrays(
            nothing, nothing, nothing, part.weight, n_groups=1, n_labels=1, clusters=part.cluster
        )
        error, distance = part.prediction - part.y, part.y - layout.centre
        columns = [np.abs(error), error**2, error, distance, distance**2, np.abs(part.y - layout.median)]
        block = layout.units.block(part)
        losses = BlockSums.from_arrays(block, layout.units.blocks, part.weight, columns)
        return PerformanceSums(cells, losses=losses, centre=layout.centre)
    k = len(part.classes)
    cells = GroupCells.from_arrays(
        np.zeros(len(part), dtype=np.intp),
        part.y,
        part.prediction,
        part.weight,
        n_groups=1,
        n_labels=k,
        clusters=part.cluster,
    )
    if part.score is None:
        return PerformanceSums(cells)
    if part.task == "binary":
        clusters = None if part.cluster is None else layout.units.block(part)
        scores = ScoreHistogram.from_arrays(part.score, part.y, part.weight, edges=layout.edges, clusters=clusters)
        return PerformanceSums(cells, scores)
    block, blocks = layout.units.block(part), layout.units.blocks
    own = part.score[np.arange(len(part)), part.y]
    brier = (part.score**2).sum(axis=1) - 2 * own + 1
    losses = BlockSums.from_arrays(block, blocks, part.weight, [-np.log(np.clip(own, _TINY, None)), brier])
    classes = np.bincount(block * k + part.y, weights=part.weight, minlength=blocks * k).astype(np.float64)
    return PerformanceSums(cells, losses=losses, classes=classes.reshape(blocks, k))


def weighted_quantile(values: NDArray[Any], weight: NDArray[Any], level: float) -> float:
    """Return the smallest value at or below which the weights reach `level`; midway where they meet it exactly."""
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weight[order]) / weight.sum()
    at = int(np.searchsorted(running, level - 1e-12))
    at = min(at, len(values) - 1)
    if abs(running[at] - level) < 1e-12 and at + 1 < len(values):
        return float((values[order[at]] + values[order[at + 1]]) / 2)
    return float(values[order[at]])


def training_share(subject: Subject, code: int) -> float | None:
    """Return the share of a class in the training data; None without any."""
    if subject.train is None:
        return None
    known = subject.train.y >= 0
    return float(np.mean(subject.train.y[known] == code)) if known.any() else None
