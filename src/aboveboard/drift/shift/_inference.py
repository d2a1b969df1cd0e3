"""One test for several subgroups at once: the largest studentised decay, against its multiplier bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.drift.shift._estimates import Estimate

__all__ = ["Family", "MaxTest", "max_test"]

Floats = NDArray[np.float64]
Family = Literal["covariate", "outcome"]


@dataclass(frozen=True, slots=True)
class MaxTest:
    """The largest studentised decay.

    Parameters
    ----------
    best : int
        Which estimate it is; -1 where there is none.
    statistic, p_value, critical_value : float
    two_sided : float
        Critical value of intervals that hold for all estimates at once.
    """

    best: int
    statistic: float
    p_value: float
    critical_value: float
    two_sided: float


def max_test(estimates: Sequence[Estimate], *, alpha: float, n_bootstrap: int, rng: np.random.Generator) -> MaxTest:
    """Test whether any decay is above zero.

    Notes
    -----
    With normal multipliers that all estimates share, the bootstrap of the estimates given the data *is* a normal
    distribution, with the covariance of the influences. It is drawn from directly: O(n J^2 + B J) time, where the
    multipliers themselves would take O(n B J), and the same law.
    """
    values = np.array([estimate.value for estimate in estimates])
    covariance = sum(
        (np.cov(np.array(parts), bias=True) / len(parts[0]) for parts in _by_domain(estimates)),
        start=np.zeros((len(values), len(values))),
    )
    errors = np.sqrt(np.diag(covariance)) if len(values) else np.zeros(0)
    known = np.flatnonzero(errors > 1e-12)
    if not len(known):
        return MaxTest(-1, -np.inf, 1.0, np.nan, np.nan)
    studentised = values[known] / errors[known]
    correlation = covariance[np.ix_(known, known)] / np.outer(errors[known], errors[known])
    roots, vectors = np.linalg.eigh(correlation)
    draws = rng.standard_normal((n_bootstrap, len(known))) @ (vectors * np.sqrt(np.maximum(roots, 0.0))).T
    largest = draws.max(axis=1)
    statistic = float(studentised.max())
    return MaxTest(
        int(known[studentised.argmax()]),
        statistic,
        (1.0 + np.count_nonzero(largest >= statistic)) / (1.0 + n_bootstrap),
        float(np.quantile(largest, 1.0 - alpha)),
        float(np.quantile(np.abs(draws).max(axis=1), 1.0 - alpha)),
    )


def _by_domain(estimates: Sequence[Estimate]) -> list[list[Floats]]:
    if not estimates:
        return []
    return [[estimate.source for estimate in estimates], [estimate.target for estimate in estimates]]
