"""What the check needs to know of the rows, as sums that add up over parts of them."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.cells import GroupCells, GroupMeans, value_edges
from aboveboard.auditing.checks.group_fairness.partitions import MOST_CELLS, candidates, present_keys
from aboveboard.auditing.subject import Subject

__all__ = ["FairnessLayout", "FairnessSums", "SplitSums", "layout", "summarise"]

_NO_EDGES: Final = np.array([])


@dataclass(frozen=True)
class SplitSums:
    """Sums by group of one partition.

    Attributes
    ----------
    keys : ndarray of int, shape (groups,)
        Which groups occur, ascending.
    cells : GroupCells or None
        By group, label and prediction (regression: by group). None where there are more than `MOST_CELLS` groups.
    means : dict of str to GroupMeans
        ``"score"``, by group and label; for regression ``"error"`` and ``"absolute"``, by group.
    """

    keys: NDArray[np.int64]
    cells: GroupCells | None
    means: dict[str, GroupMeans] = field(default_factory=dict)

    def __add__(self, other: "SplitSums") -> "SplitSums":
        """Return the sums of the rows of both."""
        keys = np.union1d(self.keys, other.keys)
        if self.cells is None or other.cells is None or len(keys) > MOST_CELLS:
            return SplitSums(keys, None)
        mine, others = self._among(keys), other._among(keys)
        assert mine.cells is not None
        assert others.cells is not None
        means = {name: mine.means[name] + others.means[name] for name in mine.means}
        return SplitSums(keys, mine.cells + others.cells, means)

    def _among(self, keys: NDArray[np.int64]) -> "SplitSums":
        """Return the same sums with a group for each of `keys`."""
        assert self.cells is not None
        place, means = np.searchsorted(keys, self.keys), {}
        for name, sums in self.means.items():
            each = len(sums.count) // max(len(self.keys), 1)  # one sum per group, or one per group and label
            spots = (each * place[:, None] + np.arange(each)).ravel()
            means[name] = sums.regroup(spots, each * len(keys))
        return SplitSums(keys, self.cells.regroup(place, len(keys)), means)


@dataclass(frozen=True)
class FairnessLayout:
    """What all parts agree on (regression): borders of bins of errors, and a number near the mean of the target."""

    error_edges: NDArray[np.float64] = field(default_factory=lambda: _NO_EDGES)
    absolute_edges: NDArray[np.float64] = field(default_factory=lambda: _NO_EDGES)
    centre: float = 0.0


@dataclass(frozen=True)
class FairnessSums:
    """Sums over rows.

    Attributes
    ----------
    splits : dict of tuple of str to SplitSums
        By the columns that are crossed.
    target : GroupMeans or None
        Regression: the target minus the centre of the layout, one group.
    """

    splits: dict[tuple[str, ...], SplitSums]
    target: GroupMeans | None = None

    def __add__(self, other: "FairnessSums") -> "FairnessSums":
        """Return the sums of the rows of both."""
        splits = {columns: sums + other.splits[columns] for columns, sums in self.splits.items()}
        target = None if self.target is None or other.target is None else self.target + other.target
        return FairnessSums(splits, target)


def layout(subject: Subject) -> FairnessLayout:
    """Settle the borders of bins, from the rows drawn at random."""
    if subject.task != "regression":
        return FairnessLayout()
    sample = subject.row_sample
    error = sample.prediction - sample.y
    return FairnessLayout(value_edges(error), value_edges(np.abs(error)), float(np.mean(sample.y)))


def summarise(part: Subject, layout: FairnessLayout) -> FairnessSums:
    """Sum over the rows of a part. O(n) time and 8 bytes a row per partition."""
    splits = {}
    for columns in candidates(part.sensitive):
        keys, codes = present_keys(part.sensitive, columns)
        splits[columns] = SplitSums(keys, None) if len(keys) > MOST_CELLS else _split(part, keys, codes, layout)
    target = None
    if part.task == "regression":
        nothing = np.zeros(len(part), dtype=np.intp)
        target = GroupMeans.from_arrays(nothing, part.y - layout.centre, part.weight, n_groups=1, edges=_NO_EDGES)
    return FairnessSums(splits, target)


def _split(part: Subject, keys: NDArray[np.int64], codes: NDArray[np.intp], layout: FairnessLayout) -> SplitSums:
    n_groups = len(keys)
    if part.task == "regression":
        nothing = np.zeros(len(part), dtype=np.intp)
        cells = GroupCells.from_arrays(codes, nothing, nothing, n_groups=n_groups, n_labels=1, clusters=part.cluster)
        error = part.prediction - part.y
        means = {
            name: GroupMeans.from_arrays(
                codes, values, part.weight, n_groups=n_groups, edges=edges, clusters=part.cluster
            )
            for name, values, edges in (
                ("error", error, layout.error_edges),
                ("absolute", np.abs(error), layout.absolute_edges),
            )
        }
        return SplitSums(keys, cells, means)
    cells = GroupCells.from_arrays(
        codes,
        part.y,
        part.prediction,
        part.weight,
        n_groups=n_groups,
        n_labels=len(part.classes),
        clusters=part.cluster,
    )
    if part.task != "binary" or part.score is None:
        return SplitSums(keys, cells)
    scores = GroupMeans.from_arrays(
        2 * codes + part.y, part.score, part.weight, n_groups=2 * n_groups, edges=_NO_EDGES, clusters=part.cluster
    )
    return SplitSums(keys, cells, {"score": scores})
