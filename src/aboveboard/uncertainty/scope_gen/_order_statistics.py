"""Thresholds from ranked scores, and how far the coverage of one calibration may fall below its average."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["conformal_threshold", "coverage_quantile", "fewest_scores", "marginal_rank", "reliable_rank"]

_ROUNDING: Final = 1e-9
_DRAWS: Final = 200_000


def marginal_rank(m: int, alpha: float) -> int:
    """Return the rank k whose k-th smallest of m scores is passed by a new one with probability alpha at most.

    It may be m + 1, which no finite threshold reaches.
    """
    return math.ceil((m + 1) * (1 - alpha) - _ROUNDING)


def reliable_rank(m: int, alpha: float, failure: float) -> int:
    """Return the least rank whose threshold covers 1 - alpha of new scores, but for a share `failure` of calibrations.

    The coverage of the k-th smallest is at least stochastically Beta(k, m + 1 - k), which falls below 1 - alpha as
    often as k or more of m trials of probability 1 - alpha succeed. It may be m + 1.
    """
    ranks = np.arange(1, m + 1)
    enough = stats.binom.sf(ranks - 1, m, 1 - alpha) <= failure
    return int(ranks[enough][0]) if enough.any() else m + 1


def fewest_scores(alpha: float, failure: float | None = None) -> int:
    """Return from how many scores on the rank lies within them."""
    if failure is None:
        return max(math.ceil(1 / alpha - _ROUNDING) - 1, 1)
    return math.ceil(math.log(failure) / math.log1p(-alpha) - _ROUNDING)


def conformal_threshold(scores: ArrayLike, rank: int) -> float:
    """Return the score of that rank from below, and infinity where there are fewer."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    return float(ordered[rank - 1]) if rank <= len(ordered) else math.inf


def coverage_quantile(ranks: NDArray[np.intp], sizes: NDArray[np.intp], share: float = 0.05) -> float:
    """Return the coverage below which that share of calibrations falls, for scores without ties.

    Each stage covers Beta(k, m + 1 - k) given its calibration, and stages multiply; taken from 200,000 draws.
    """
    rng = np.random.default_rng(0)
    covered = np.ones(_DRAWS)
    for rank, size in zip(ranks.tolist(), sizes.tolist(), strict=True):
        if rank <= size:
            covered *= rng.beta(rank, size + 1 - rank, _DRAWS)
    return float(np.quantile(covered, share))
