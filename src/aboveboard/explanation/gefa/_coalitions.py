"""Which coalitions of features are asked about, and with what weight each answer counts.

A coalition is a row of booleans: which features are present. An answer ``v(z)`` counts ``on`` for each feature that is
present, and ``-off`` for each that is absent.
"""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Draw:
    """Coalitions with something and without everything.

    Attributes
    ----------
    present : ndarray of bool, shape (N, n)
        In pairs, row i and row N/2 + i are complements.
    on, off : ndarray, shape (N,), or (N/2,) in pairs
        The weights; those of a complement are the negatives, exchanged.
    paired : bool
    """

    present: Bools
    on: Floats
    off: Floats
    paired: bool

    @property
    def first(self) -> Bools:
        """The coalitions that `on` and `off` belong to."""
        return self.present[: len(self.on)]

    @property
    def fold(self) -> NDArray[np.intp]:
        """Which of the two folds each of `first` belongs to."""
        return np.arange(len(self.on)) % 2


def draw_by_size(n: int, n_queries: int, rng: np.random.Generator, *, paired: bool, noise: Noise | None = None) -> Draw:
    """Draw coalitions whose size is uniform on 1 to n - 1, and which are uniform given their size.

    Sizes are stratified in each fold by itself: each occurs equally often, the remainder is drawn without replacement.
    The weights are the conditional expectation, given the coalition, of those of `draw_by_path`.
    """
    m = n_queries // 2 if paired else n_queries
    size = np.empty(m, dtype=np.int64)
    for fold in (0, 1):
        size[fold::2] = _stratified_sizes(n, len(size[fold::2]), rng)
    present = _smallest(n, size, rng, noise or _white(n))
    return _finished(present, (n - 1.0) / size, (n - 1.0) / (n - size), paired)


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
    kept_share = (n - 1.0) / (n + 1.0) if nodes is None else 1.0
    return _finished(np.concatenate(kept), kept_share / t, kept_share / (1.0 - t), paired)


def every_coalition(n: int) -> Bools:
    """Return all 2^n coalitions; bit i of a row's number says whether feature i is present."""
    return (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1


def _finished(first: Bools, on: Floats, off: Floats, paired: bool) -> Draw:
    return Draw(np.concatenate([first, ~first]) if paired else first, on, off, paired)


def _white(n: int) -> Noise:
    return lambda rng, m: rng.random((m, n))


def _stratified_sizes(n: int, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    whole, rest = divmod(m, n - 1)
    sizes = np.arange(1, n)
    return rng.permutation(np.concatenate([np.tile(sizes, whole), rng.permutation(sizes)[:rest]]))


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
