"""Which coalitions of features are asked about, and with what weight each answer counts.

A coalition is a row of booleans: which features are present. An answer ``v(z)`` counts ``on`` for each feature that is
present, and ``-off`` for each that is absent; what the answers of one fold and those of all listed coalitions count,
summed up, estimates the Shapley value but for what nothing and everything contribute.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Draw", "Floats", "Noise", "draw_by_path", "draw_by_size", "every_coalition"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
"""Scores of shape (coalitions, features), each uniform on (0, 1): the features of the lowest scores are present."""

_CELLS: Final = 1 << 22
"""Scores that are held at once: 32 MB."""
_FEWEST_DRAWN: Final = 16


@dataclass(frozen=True, slots=True)
class Draw:
    """Coalitions with something and without everything.

    Attributes
    ----------
    present : ndarray of bool, shape (N, n)
        In pairs, row i and row N/2 + i are complements.
    on, off : ndarray, shape (N,), or (N/2,) in pairs
        The weights; those of a complement are the negatives, exchanged.
    fold : ndarray of int, shape of `on`
        0 or 1 for those that were drawn, -1 for those of a size of which all are listed.
    paired : bool
    """

    present: Bools
    on: Floats
    off: Floats
    fold: NDArray[np.intp]
    paired: bool

    @property
    def first(self) -> Bools:
        """The coalitions that `on` and `off` belong to."""
        return self.present[: len(self.on)]


def draw_by_size(n: int, n_queries: int, rng: np.random.Generator, *, paired: bool, noise: Noise | None = None) -> Draw:
    """Draw coalitions by their sizes; given its size, each is equally likely.

    The smallest and the largest coalitions count most and are fewest: where the queries, shared out as KernelSHAP does,
    are enough for all coalitions of a size, they are listed. The other sizes are equally likely, and are drawn
    systematically, each fold by itself.
    """
    m = n_queries // 2 if paired else n_queries
    sizes = np.arange(1, n // 2 + 1 if paired else n)  # in pairs, that of the smaller one
    chance = np.where(2 * sizes == n, 1.0, 2.0) / (n - 1.0) if paired else np.full(n - 1, 1.0 / (n - 1.0))
    listed = np.zeros(len(sizes), dtype=bool) if noise else _listed_sizes(n, m, sizes, chance, paired)
    parts = [_coalitions_of_size(n, int(size), paired) for size in sizes[listed]]
    weight = [np.full(len(part), c / len(part)) for part, c in zip(parts, chance[listed], strict=True)]
    fold = [np.full(sum(map(len, parts)), -1, dtype=np.intp)]
    left = m - len(fold[0])
    share = chance[~listed] / chance[~listed].sum()
    for which, rows in enumerate((left - left // 2, left // 2)):
        picked = np.minimum(np.searchsorted(np.cumsum(share), (rng.random() + np.arange(rows)) / rows), len(share) - 1)
        parts.append(_smallest(n, sizes[~listed][picked], rng, noise or _white(n)))
        weight.append(chance[~listed][picked] / (share[picked] * rows))
        fold.append(np.full(rows, which, dtype=np.intp))
    first = np.concatenate(parts)
    size, factor = first.sum(axis=1), np.concatenate(weight) * (n - 1.0)
    return Draw(_asked(first, paired), factor / size, factor / (n - size), np.concatenate(fold), paired)


def draw_by_path(
    n: int,
    n_queries: int,
    rng: np.random.Generator,
    *,
    paired: bool,
    noise: Noise | None = None,
    nodes: int | None = None,
) -> Draw:
    """Draw coalitions that each feature joins with probability t, all but the full and the empty one.

    The path values t are uniform on (0, 1), or lie on `nodes` inner points of a grid, each equally often before the
    full and the empty coalition are refused. The weights are those of the score function, 1/t and 1/(1 - t); without a
    grid, times the chance (n - 1)/(n + 1) that a coalition is not refused.
    """
    m = n_queries // 2 if paired else n_queries
    scores = noise or _white(n)
    kept: list[Bools] = []
    values: list[Floats] = []
    while (missing := m - sum(map(len, values))) > 0:
        tried = missing + missing // 4 + 8
        if nodes is None:
            t = rng.uniform(size=tried)
        else:
            t = rng.permutation(np.resize(np.arange(1, nodes + 1) / (nodes + 1.0), tried))
        present = np.asarray(scores(rng, tried) < t[:, None])
        inner = present.any(axis=1) & ~present.all(axis=1)
        kept.append(present[inner][:missing])
        values.append(t[inner][:missing])
    t = np.concatenate(values)
    fold = np.arange(m) % 2
    factor = ((n - 1.0) / (n + 1.0) if nodes is None else 1.0) / np.bincount(fold)[fold]
    return Draw(_asked(np.concatenate(kept), paired), factor / t, factor / (1.0 - t), fold, paired)


def every_coalition(n: int) -> Bools:
    """Return all 2^n coalitions; bit i of a row's number says whether feature i is present."""
    return np.asarray((np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1)


def _asked(first: Bools, paired: bool) -> Bools:
    return np.concatenate([first, ~first]) if paired else first


def _white(n: int) -> Noise:
    return lambda rng, m: rng.random((m, n))


def _listed_sizes(n: int, m: int, sizes: NDArray[np.int64], chance: Floats, paired: bool) -> Bools:
    """Return the sizes of which all coalitions are asked about, leaving enough queries to draw others."""
    share = chance / (sizes * (n - sizes))
    listed = np.zeros(len(sizes), dtype=bool)
    left = m
    for k in np.lexsort((sizes, np.minimum(sizes, n - sizes))):
        count = math.comb(n, int(sizes[k])) // (2 if paired and 2 * sizes[k] == n else 1)
        if count > left * share[k] / share[~listed].sum() or left - count < _FEWEST_DRAWN:
            break
        listed[k] = True
        left -= count
    return listed


def _coalitions_of_size(n: int, size: int, paired: bool) -> Bools:
    """Return all coalitions of a size; of those that are each other's complements, one."""
    members = np.array(list(combinations(range(n), size)))
    if paired and 2 * size == n:
        members = members[members[:, 0] == 0]
    present = np.zeros((len(members), n), dtype=bool)
    present[np.arange(len(members))[:, None], members] = True
    return present


def _smallest(n: int, size: NDArray[np.int64], rng: np.random.Generator, noise: Noise) -> Bools:
    """Return coalitions of the given sizes: the features of the smallest scores."""
    present = np.empty((len(size), n), dtype=bool)
    step = max(1, _CELLS // n)
    for start in range(0, len(size), step):
        rows = slice(start, start + step)
        scores = noise(rng, len(size[rows]))
        largest = np.sort(scores, axis=1)[np.arange(len(scores)), size[rows] - 1]
        present[rows] = scores <= largest[:, None]
    return present
