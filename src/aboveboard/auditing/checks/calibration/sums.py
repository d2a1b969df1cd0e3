"""What calibration needs to know of the rows, as sums that add up over parts of them."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.bootstrap import ClusterCells
from aboveboard._stats.cells import GroupCells
from aboveboard._stats.score_histogram import ScoreHistogram, score_edges
from aboveboard.auditing.checks.calibration.slope import OddsCells
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import Units

__all__ = ["BINS", "CURVE_BINS", "CalibrationLayout", "CalibrationSums", "Company", "Scored", "layout", "summarise"]

BINS: Final = 15
"""Bins of the calibration error."""

CURVE_BINS: Final = 10
"""Bins of the reliability curve."""

_FINE: Final = 30  # bins of which both are made
_CLASS_BINS: Final = 300
_CERTAIN: Final = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Company:
    """How rows of one cluster keep together.

    Attributes
    ----------
    bins : ClusterCells
        Number of rows by cluster and bin of the calibration error.
    residuals : ClusterCells
        By cluster: sum of the standardised residuals, and of their squares, as if scores were true.
    """

    bins: ClusterCells
    residuals: ClusterCells

    def __add__(self, other: "Company") -> "Company":
        """Return that of the rows of both."""
        return Company(self.bins + other.bins, self.residuals + other.residuals)

    @property
    def correlation(self) -> float:
        """Mean correlation of two residuals of one cluster, in [0, 1]."""
        size = np.asarray(self.bins.matrix.sum(axis=1)).ravel()
        sums, squares = np.asarray(self.residuals.matrix.todense()).T
        pairs, scale = float((size * (size - 1)).sum()), float(squares.sum()) / float(size.sum())
        return float(np.clip((sums**2 - squares).sum() / pairs / scale, 0.0, 1.0)) if pairs > 0 and scale > 0 else 0.0


@dataclass(frozen=True)
class Scored:
    """Scores and outcomes: of the positive class, of the class of highest score, or of one class against the rest.

    Attributes
    ----------
    histogram : ScoreHistogram
    bins : GroupCells
        By equal-width bin of the score (30 of them) and outcome.
    score : ndarray, shape (30,)
        Sum of weight x score in each of these bins.
    company : Company or None
        Where rows come in clusters.
    """

    histogram: ScoreHistogram
    bins: GroupCells
    score: Floats
    company: Company | None = None

    @classmethod
    def from_arrays(
        cls,
        score: NDArray[Any],
        y: NDArray[Any],
        weight: NDArray[Any] | None,
        edges: Floats,
        cluster: NDArray[Any] | None,
        block: NDArray[np.intp] | None,
    ) -> "Scored":
        """Sum over rows. O(n) time."""
        fine = np.searchsorted(np.arange(1, _FINE) / _FINE, score, side="left")
        company = None
        if cluster is not None:
            probability = np.clip(score, _CERTAIN, 1 - _CERTAIN)
            residual = (y - probability) / np.sqrt(probability * (1 - probability))
            column = np.repeat([0, 1], len(y))
            both = np.concatenate([residual, residual**2])
            company = Company(
                ClusterCells.from_arrays(cluster, fine // (_FINE // BINS), None, BINS),
                ClusterCells.from_arrays(np.tile(cluster, 2), column, both, 2),
            )
        return cls(
            ScoreHistogram.from_arrays(score, y, weight, edges=edges, clusters=block),
            GroupCells.from_arrays(
                fine, y, np.zeros(len(y), dtype=np.intp), weight, n_groups=_FINE, n_labels=2, n_predictions=1,
                clusters=cluster,
            ),
            np.bincount(fine, weights=score if weight is None else weight * score, minlength=_FINE).astype(np.float64),
            company,
        )  # fmt: skip

    def __add__(self, other: "Scored") -> "Scored":
        """Return the sums of the rows of both."""
        company = None if self.company is None or other.company is None else self.company + other.company
        return Scored(self.histogram + other.histogram, self.bins + other.bins, self.score + other.score, company)

    def coarser(self, bins: int) -> "Scored":
        """Return the sums with so many equal-width bins, a divisor of 30."""
        place = np.arange(_FINE) // (_FINE // bins)
        score = np.bincount(place, weights=self.score, minlength=bins).astype(np.float64)
        return replace(self, bins=self.bins.regroup(place, bins), score=score)


@dataclass(frozen=True)
class CalibrationLayout:
    """What all parts agree on: the units, and the upper edges of the score bins (of each class, for several)."""

    units: Units
    edges: Floats
    class_edges: tuple[Floats, ...] = ()


@dataclass(frozen=True)
class CalibrationSums:
    """Sums over rows.

    Attributes
    ----------
    scored : Scored
        The score and the label; for several classes the highest score, and whether its class is right.
    odds : OddsCells or None
        Binary tasks.
    classes : tuple of Scored
        For several classes, each against the rest.
    """

    scored: Scored
    odds: OddsCells | None = None
    classes: tuple[Scored, ...] = ()

    def __add__(self, other: "CalibrationSums") -> "CalibrationSums":
        """Return the sums of the rows of both."""
        return CalibrationSums(
            self.scored + other.scored,
            None if self.odds is None or other.odds is None else self.odds + other.odds,
            tuple(mine + others for mine, others in zip(self.classes, other.classes, strict=True)),
        )


def layout(subject: Subject) -> CalibrationLayout:
    """Settle the borders of the score bins, from the rows drawn at random."""
    score = subject.row_sample.score
    assert score is not None
    if score.ndim == 1:
        return CalibrationLayout(subject.units, score_edges(score))
    score = np.clip(score, 0.0, 1.0)
    by_class = tuple(score_edges(score[:, c], _CLASS_BINS) for c in range(score.shape[1]))
    return CalibrationLayout(subject.units, score_edges(score.max(axis=1)), by_class)


def summarise(part: Subject, layout: CalibrationLayout) -> CalibrationSums:
    """Sum over the rows of a part. O(n) time for each class."""
    assert part.score is not None
    block = None if part.cluster is None else layout.units.block(part)
    if part.score.ndim == 1:
        return CalibrationSums(
            Scored.from_arrays(part.score, part.y, part.weight, layout.edges, part.cluster, block),
            OddsCells.from_arrays(part.score, part.y, part.weight, layout.edges, layout.units, block),
        )
    score = np.clip(part.score, 0.0, 1.0)
    right = (part.score.argmax(axis=1) == part.y).astype(np.int64)
    return CalibrationSums(
        Scored.from_arrays(score.max(axis=1), right, part.weight, layout.edges, part.cluster, block),
        classes=tuple(
            Scored.from_arrays(score[:, c], (part.y == c).astype(np.int64), part.weight, edges, part.cluster, block)
            for c, edges in enumerate(layout.class_edges)
        ),
    )
