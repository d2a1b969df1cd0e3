"""What an attack proves: an epsilon below which no release that can be attacked so well lies.

References
----------
M. Jagielski, J. Ullman, A. Oprea, "Auditing Differentially Private Machine Learning: How Private is Private SGD?",
NeurIPS 2020. https://arxiv.org/abs/2006.07709
"""

import math
from dataclasses import dataclass

from aboveboard._stats.intervals import clopper_pearson
from aboveboard.core import InputError, Interval
from aboveboard.privacy._rdp.checked import checked_delta, checked_whole

__all__ = ["EpsilonLowerBound", "epsilon_lower_bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonLowerBound:
    """What the counts of an attack prove.

    Parameters
    ----------
    epsilon : float
        With confidence `level`, the release has no epsilon below this one at `delta`; 0 where nothing is proved.
    delta : float
    level : float
        Joint: of both rates at once.
    true_positive_rate, false_positive_rate : Interval
        Clopper and Pearson's.
    """

    epsilon: float
    delta: float
    level: float
    true_positive_rate: Interval
    false_positive_rate: Interval


def epsilon_lower_bound(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    *,
    delta: float = 0.0,
    level: float = 0.95,
) -> EpsilonLowerBound:
    """Return the epsilon that an attack refutes, from how often it was right and wrong.

    Parameters
    ----------
    true_positives, positives : int
        How often it said that a record was in the data, of the trials in which it was.
    false_positives, negatives : int
        How often it said so, of the trials in which it was not.
    delta : float in [0, 1), default 0
        Of the promise that is tested.
    level : float in (0, 1), default 0.95
        Confidence of the statement.

    Returns
    -------
    EpsilonLowerBound

    Notes
    -----
    Under (epsilon, delta) both TPR <= exp(epsilon) FPR + delta and 1 - FPR <= exp(epsilon) (1 - TPR) + delta. Each rate
    gets a one-sided exact bound at (1 - level) / 2, and both inequalities use the same two bounds, so that the level is
    joint. Assumed: the trials are independent (each has a release of its own), and the attack was fixed before them.

    Examples
    --------
    >>> from aboveboard.privacy import epsilon_lower_bound
    >>> round(epsilon_lower_bound(900, 1000, 100, 1000).epsilon, 2)
    1.99
    """
    counts = [
        _count(true_positives, "true_positives", positives, "positives"),
        _count(false_positives, "false_positives", negatives, "negatives"),
    ]
    delta = checked_delta(delta)
    low, high = clopper_pearson(*zip(*counts, strict=True), level=level)
    (tpr_low, fpr_low), (tpr_high, fpr_high) = low.tolist(), high.tolist()
    proved = max(_log_ratio(tpr_low - delta, fpr_high), _log_ratio(1 - fpr_high - delta, 1 - tpr_low), 0.0)
    return EpsilonLowerBound(
        epsilon=proved,
        delta=delta,
        level=level,
        true_positive_rate=Interval(tpr_low, tpr_high, level, "Clopper-Pearson"),
        false_positive_rate=Interval(fpr_low, fpr_high, level, "Clopper-Pearson"),
    )


def _count(successes: int, name: str, trials: int, of: str) -> tuple[int, int]:
    n, k = checked_whole(trials, of), checked_whole(successes, name, 0)
    if k > n:
        raise InputError(f"{name} is {k} of {n}", expected=f"at most {of}")
    return k, n


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 else 0.0
