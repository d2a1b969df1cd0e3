"""How much more private reports are once names and order are gone: amplification by shuffling, as exact as it gets.

By Feldman, McMillan and Talwar, every report of another person is, with probability e^-epsilon, as good as a report of
either of the two values that an adversary wants to tell apart, with even odds. Such clones hide the person: what is
left to see is how many of them, and of the person's own report, went either way. The divergence of these counts is a
sum of binomial tails, and no approximation of it is needed.
"""

from typing import Final

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from aboveboard.privacy.ldp_cdf._input import Floats

__all__ = ["clones_delta", "shuffled_epsilon"]

_LEFT_OUT: Final = 1e-3  # of delta: numbers of clones that are too rare to look at, and count in full
_MARGIN: Final = 1e-9  # over the error of the root


def shuffled_epsilon(local: float, n: int, delta: float) -> float:
    """Return an epsilon at which n shuffled reports, each of them `local`-private, are (epsilon, delta)-private."""

    def excess(epsilon: float) -> float:
        return clones_delta(local, n, epsilon, left_out=_LEFT_OUT * delta) - delta

    if excess(0.0) <= 0:
        return 0.0
    return min(float(brentq(excess, 0.0, local)) + _MARGIN, local)


def clones_delta(local: float, n: int, epsilon: float, *, left_out: float = 1e-18) -> float:
    """Return the delta at `epsilon`, for epsilon from 0 to `local`.

    Notes
    -----
    Of c clones A go one way, A ~ Bin(c, 1/2); the person's own report goes that way with probability s under the one
    value and 1 - s under the other, s = e^local / (1 + e^local). The likelihood ratio of a = A + own grows with a, so
    that the divergence is attained by the tail a >= k. Cost: O(sqrt(n)).
    """
    share = np.exp(-local)
    fewest = int(stats.binom.ppf(left_out / 2, n - 1, share))
    most = int(stats.binom.isf(left_out / 2, n - 1, share))
    clones = np.arange(fewest, most + 1, dtype=np.float64)
    rare = stats.binom.cdf(fewest - 1, n - 1, share) + stats.binom.sf(most, n - 1, share)
    return float(stats.binom.pmf(clones, n - 1, share) @ _given(clones, local, epsilon) + rare)


def _given(clones: Floats, local: float, epsilon: float) -> Floats:
    """Return the divergence for each number of clones."""
    own = expit(local)
    odds = np.exp(epsilon)
    k = np.ceil((clones + 1) * (odds - np.exp(-local)) / (-np.expm1(-local) * (1 + odds)))
    others, all_others = stats.binom.sf(k - 2, clones, 0.5), stats.binom.sf(k - 1, clones, 0.5)
    one = own * others + (1 - own) * all_others
    other = (1 - own) * others + own * all_others
    divergence: Floats = np.maximum(one - odds * other, 0.0)
    return divergence
