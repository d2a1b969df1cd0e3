"""Which columns the loss depends on: distance covariance with a permutation test."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from aboveboard.drift.dataset_classification._learners import Design
from aboveboard.drift.dataset_classification._tables import Features

__all__ = ["dependence_p_values"]

Floats = NDArray[np.float64]

_MOST: Final = 500
_PERMUTATIONS: Final = 199


def dependence_p_values(
    features: Features, loss: Floats, columns: Sequence[int], rng: np.random.Generator
) -> dict[int, float]:
    """Return, per column, the p-value of the hypothesis that it and the loss are independent.

    Parameters
    ----------
    features : Features
    loss : ndarray, shape (n,)
    columns : sequence of int
        Positions of the columns to test; words count as far apart or equal.
    rng : numpy.random.Generator

    Notes
    -----
    Distance covariance is zero for independent variables and for no others, so that it sees any dependence, unlike a
    comparison of the two distributions. Exact level, by 199 permutations of the loss; at most 500 rows, drawn at
    random, take part. O(p n^2) time and memory.

    References
    ----------
    G. J. Szekely, M. L. Rizzo, N. K. Bakirov, "Measuring and testing dependence by correlation of distances", Annals of
    Statistics 35, 2007.
    """
    rows = rng.permutation(len(loss))[:_MOST]
    sample = features.take(rows)
    distances = np.array([_centred(Design().fit(f).transform(f)).ravel() for f in (sample.keep([j]) for j in columns)])
    of_loss = _centred(loss[rows][:, None])
    observed = distances @ of_loss.ravel()
    as_large = np.zeros(len(columns))
    for _ in range(_PERMUTATIONS):
        order = rng.permutation(len(rows))
        as_large += distances @ of_loss[np.ix_(order, order)].ravel() >= observed * (1.0 - 1e-12)
    p_values = (1.0 + as_large) / (1.0 + _PERMUTATIONS)
    return dict(zip(columns, p_values.tolist(), strict=True))


def _centred(values: Floats) -> Floats:
    distance = squareform(pdist(values))
    return np.asarray(distance - distance.mean(axis=0) - distance.mean(axis=1)[:, None] + distance.mean())
