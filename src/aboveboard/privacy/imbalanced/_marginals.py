"""Contingency tables of few columns, measured with noise, and what measuring them costs."""

import itertools
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.privacy._noise import NoiseSource

__all__ = ["counts", "exponential_choice", "gaussian_scale", "workload"]

L1_SENSITIVITY: Final = 2.0
"""Replacing a row moves one count from a cell to another."""
L2_SENSITIVITY: Final = math.sqrt(2)

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Query = tuple[int, ...]


def workload(n_features: int) -> list[Query]:
    """Return all pairs of columns, and all triples that hold the label, which is the last column."""
    label = n_features
    pairs = list(itertools.combinations(range(n_features + 1), 2))
    return pairs + [(j, k, label) for j, k in itertools.combinations(range(n_features), 2)]


def counts(codes: Codes, sizes: tuple[int, ...], query: Query) -> Floats:
    """Return how many rows lie in each cell of the table of the columns in `query`."""
    shape = tuple(sizes[j] for j in query)
    cell = np.ravel_multi_index(tuple(codes[:, j] for j in query), shape)
    return np.bincount(cell, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def gaussian_scale(rho: float) -> float:
    """Return the noise with which measuring one table, in counts, is rho-zCDP."""
    return L2_SENSITIVITY / math.sqrt(2 * rho)


def exponential_choice(scores: Floats, rho: float, source: NoiseSource) -> int:
    """Return which score is largest, by the exponential mechanism, which is rho-zCDP for an epsilon of sqrt(8 rho).

    Scores that change by at most `L1_SENSITIVITY` when a row is replaced; drawn as the largest after Gumbel noise.
    """
    epsilon = math.sqrt(8 * rho)
    gumbel = -np.log(-np.log(source.uniform(len(scores))))
    return int(np.argmax(epsilon * scores / (2 * L1_SENSITIVITY) + gumbel))
