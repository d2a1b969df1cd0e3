"""Which figures may be shown: none on fewer people than the smallest cell, and none from which such a one follows.

A figure on few people is withheld (*small*). Where the published totals would give it away by subtraction, others are
withheld too (*complementary*), the smallest first: every published total keeps at least two unknown parts that
together describe enough people, and no small figure is a combination of published ones.

What is protected are exact figures: that a number is small, or lies in some range, can still be seen.

References
----------
A. Hundepool et al., "Statistical Disclosure Control", Wiley, 2012, chapter 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Withheld", "crossed_margins", "few", "withhold_crossed", "withhold_parts"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Withheld:
    """Which figures are withheld; arrays of bool, one entry per figure.

    Attributes
    ----------
    small : ndarray
        They describe fewer people than the smallest cell.
    complementary : ndarray
        They would give a small one away.
    """

    small: Mask
    complementary: Mask

    @property
    def all(self) -> Mask:
        return np.asarray(self.small | self.complementary)


def few(people: ArrayLike, min_cell: int) -> Mask:
    """Return which figures describe at least one person and fewer than `min_cell`.

    Parameters
    ----------
    people : array-like of shape (figures,) or (figures, kinds)
        People that each figure rests on; several kinds where it can be turned into rates with several denominators.
    """
    counts = _by_kind(people)
    return np.asarray(((counts > 0) & (counts < min_cell)).any(axis=1))


def withhold_parts(people: ArrayLike, min_cell: int, *, also: Mask | None = None) -> Withheld:
    """Return which parts of a published total are withheld: groups beside the figure of everybody.

    Parameters
    ----------
    people : array-like of shape (groups,) or (groups, kinds)
    min_cell : int
    also : ndarray of bool, shape (groups,), optional
        Groups that are small for another reason.

    Notes
    -----
    O(groups^2) time.
    """
    counts = _by_kind(people)
    return withhold_crossed(counts, np.ones((1, len(counts)), dtype=bool), min_cell, also=also)


def withhold_crossed(
    people: ArrayLike,
    margins: ArrayLike,
    min_cell: int,
    *,
    also: Mask | None = None,
    withheld_margins: Withheld | None = None,
) -> Withheld:
    """Return which cells of a cross table are withheld, where its margins and its total are published.

    Parameters
    ----------
    people : array-like of shape (cells,) or (cells, kinds)
        The cells that hold people; empty ones are left out.
    margins : array-like of bool, shape (margins, cells)
        Which cells add up to each margin. The grand total is always taken to be published.
    min_cell : int
    also : ndarray of bool, shape (cells,), optional
        Cells that are small for another reason.
    withheld_margins : Withheld, optional
        Which margins are themselves withheld.

    Notes
    -----
    A small figure follows from published ones exactly when it lies in the span of their rows, restricted to the cells
    withheld; that is one singular value decomposition per cell added, O(cells^3) at worst.
    """
    counts = _by_kind(people)
    cells = len(counts)
    sums = np.asarray(margins, dtype=bool).reshape(-1, cells)
    small = few(counts, min_cell)
    if also is not None:
        small = small | also
    hidden_margins = np.zeros(len(sums), dtype=bool) if withheld_margins is None else withheld_margins.all
    small_margins = np.zeros(len(sums), dtype=bool) if withheld_margins is None else withheld_margins.small
    published = np.vstack([sums[~hidden_margins], np.ones((1, cells), dtype=bool)])
    targets = np.vstack([np.eye(cells, dtype=bool)[small], sums[small_margins]])
    hidden = small.copy()
    size = counts.sum(axis=1)
    while not hidden.all():
        exposed = _exposed(hidden, published, targets, counts, min_cell)
        if exposed is None:
            break
        candidates = np.flatnonzero(exposed & ~hidden)
        if not len(candidates):
            candidates = np.flatnonzero(~hidden)
        hidden[candidates[np.argmin(size[candidates])]] = True
    return Withheld(small=small, complementary=hidden & ~small)


def _exposed(hidden: Mask, published: Mask, targets: Mask, counts: Floats, min_cell: int) -> Mask | None:
    """Return the cells among which one more must be withheld; None when nothing can be recovered."""
    for line in published:
        rest = counts[hidden & line].sum(axis=0)
        # a line of which nothing is left to withhold is no total that anybody could subtract from
        if ((rest > 0) & (rest < min_cell)).any() and (line & ~hidden).any():
            return line
    if not len(targets):
        return None
    free = _null_space(published[:, hidden].astype(np.float64))
    fixed = np.abs(targets[:, hidden].astype(np.float64) @ free).max(axis=1, initial=0.0) < 1e-9
    for target in targets[fixed]:
        if not (target & hidden).any():
            # all cells of a small margin are shown: one of them must go
            return target
        touching = published[(published & target).any(axis=1)].any(axis=0)
        nearest = published[:-1][(published[:-1] & target).any(axis=1)].any(axis=0)
        pool = nearest if (nearest & ~hidden).any() else touching
        if (pool & ~hidden).any():
            return pool
        return ~hidden
    return None


def _null_space(matrix: Floats) -> Floats:
    """Return an orthonormal basis of what the rows of `matrix` leave free, shape (columns, dimension)."""
    if not matrix.shape[1]:
        return np.zeros((0, 0))
    _, values, vectors = np.linalg.svd(matrix, full_matrices=True)
    rank = int((values > 1e-9 * max(values.max(initial=0.0), 1.0)).sum())
    return np.asarray(vectors[rank:].T)


def _by_kind(people: ArrayLike) -> Floats:
    counts = np.asarray(people, dtype=np.float64)
    return counts[:, None] if counts.ndim == 1 else counts


def crossed_margins(parts: Sequence[NDArray[np.intp]]) -> Mask:
    """Return the margins of a cross table as rows over its cells, column after column.

    Parameters
    ----------
    parts : sequence of ndarray of int, shape (cells,)
        For each column, the group in which each cell lies (codes from 0 to the column's last).
    """
    rows = [codes == g for codes in parts for g in range(int(codes.max(initial=-1)) + 1)]
    return np.array(rows, dtype=bool).reshape(len(rows), len(parts[0]) if len(parts) else 0)
