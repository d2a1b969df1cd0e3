"""Which columns the loss depends on: distance covariance of binned values, with a permutation test."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import random_table

from aboveboard.drift.dataset_classification._tables import Features

__all__ = ["dependence_p_values", "dependent_columns"]

Floats = NDArray[np.float64]

_BINS: Final = 16
_LEAST_PERMUTATIONS: Final = 199


def dependent_columns(
    features: Features, loss: Floats, columns: Sequence[int], alpha: float, rng: np.random.Generator
) -> tuple[int, ...]:
    """Return the columns on which the loss depends; none of the others is among them with probability 1 - alpha."""
    level = alpha / len(columns)
    p_values = dependence_p_values(features, loss, columns, rng, permutations=int(np.ceil(4.0 / level)))
    return tuple(j for j in columns if p_values[j] <= level)


def dependence_p_values(
    features: Features,
    loss: Floats,
    columns: Sequence[int],
    rng: np.random.Generator,
    *,
    permutations: int = _LEAST_PERMUTATIONS,
) -> dict[int, float]:
    """Return, per column, the p-value of the hypothesis that it and the loss are independent.

    Parameters
    ----------
    features : Features
    loss : ndarray, shape (n,)
    columns : sequence of int
        Positions of the columns to test.
    rng : numpy.random.Generator
    permutations : int

    Notes
    -----
    Distance covariance is zero for independent variables and for no others, so that it sees any dependence of the
    binned values, unlike a comparison of two distributions. Numbers and losses fall into 16 bins of equal size, whose
    distances are those of their mean ranks; words are equal or not, and what is missing is a word. The level is exact:
    given its margins, the table of a permutation is a random table, whatever the number of rows. O(n log n) time per
    column, and O(16^2) per permutation.

    References
    ----------
    G. J. Szekely, M. L. Rizzo, N. K. Bakirov, "Measuring and testing dependence by correlation of distances", Annals of
    Statistics 35, 2007.
    """
    loss_codes, loss_distances = _binned(loss, words=False)
    found = {}
    for j in columns:
        words = features.categorical is not None and bool(features.categorical[j])
        codes, distances = _binned(features.values[:, j], words=words)
        table = np.zeros((len(distances), len(loss_distances)))
        np.add.at(table, (codes, loss_codes), 1.0)
        found[j] = _p_value(table, distances, loss_distances, permutations, rng)
    return found


def _p_value(table: Floats, rows: Floats, columns: Floats, permutations: int, rng: np.random.Generator) -> float:
    """Return the share of tables with the same margins that show as much dependence."""
    if min(table.shape) < 2:
        return 1.0
    margins = table.sum(axis=1), table.sum(axis=0)
    left, right = (_centred(d, margin) for d, margin in zip((rows, columns), margins, strict=True))
    drawn = random_table(margins[0].astype(int), margins[1].astype(int), seed=rng).rvs(size=permutations)
    tables = np.concatenate([table[None], drawn])
    covariance = np.einsum("tij,ik,jl,tkl->t", tables, left, right, tables, optimize=True)
    as_large = np.count_nonzero(covariance[1:] >= covariance[0] * (1.0 - 1e-12))
    return float((1.0 + as_large) / (1.0 + permutations))


def _binned(values: Floats, *, words: bool) -> tuple[NDArray[np.intp], Floats]:
    """Return the bin of each value, and the distances between bins."""
    missing = np.isnan(values)
    codes = np.zeros(len(values), dtype=np.intp)
    known = values[~missing]
    if words:
        levels, codes[~missing] = np.unique(known, return_inverse=True)
        places = np.eye(max(len(levels), 1))
    else:
        cuts = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])) if len(known) else np.zeros(0)
        full, codes[~missing] = np.unique(np.searchsorted(cuts, known, side="left"), return_inverse=True)
        sizes = np.bincount(codes[~missing], minlength=max(len(full), 1))
        places = ((np.cumsum(sizes) - sizes / 2.0) / max(sizes.sum(), 1))[:, None]
    distances = np.abs(places[:, None] - places[None]).max(axis=2)
    if missing.any():
        codes[missing] = len(distances)
        distances = np.pad(distances, (0, 1), constant_values=0.5)
        distances[-1, -1] = 0.0
    return codes, distances


def _centred(distances: Floats, margin: Floats) -> Floats:
    """Return distances less their means over rows, which the margin counts."""
    weights = margin / margin.sum()
    means = distances @ weights
    return np.asarray(distances - means[:, None] - means[None] + weights @ means)
