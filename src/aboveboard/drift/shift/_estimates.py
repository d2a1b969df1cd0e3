"""One-step (doubly robust) estimates of the decay in a fixed subgroup, with the influence of every row.

Symbols: A the subgroup; l the observed loss; z its expectation under the old outcome law; w the density ratio of the
whole row; g that of the variables that may shift, within A; m the expected loss given those variables, within A; P0 and
P1 the shares of A. Source rows have the subscript 0, target rows 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "covariate_decay", "outcome_decay", "residual_outcome_decay"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A decay beyond the tolerance.

    Parameters
    ----------
    value : float
    source, target : ndarray
        Influence of each test row: `value` varies like the sum of their two means.
    n_source, n_target : int
        Test rows in the subgroup.
    """

    value: float
    source: Floats
    target: Floats
    n_source: int
    n_target: int

    @property
    def se(self) -> float:
        return float(np.sqrt(self.source.var() / len(self.source) + self.target.var() / len(self.target)))


def covariate_decay(
    in0: Mask,
    loss0: Floats,
    z0: Floats,
    w0: Floats,
    in1: Mask,
    z1: Floats,
    *,
    tolerance: float,
    g0: Floats | float = 1.0,
    m0: Floats | float = 0.0,
    m1: Floats | float = 0.0,
) -> Estimate:
    """Estimate ``E_1[z | A] - E_0[z g | A] - tolerance``.

    With ``g = 1`` and ``m = 0`` nothing may shift: the aggregate decay. The error is second order: products of the
    errors of z and w, and of g and m.
    """
    p0, p1 = in0.mean(), in1.mean()
    moved = np.where(in1, z1 - m1, 0.0)
    kept = np.where(in0, (loss0 - m0) * g0, 0.0)
    correction = np.where(in0, (loss0 - z0) * w0, 0.0)
    now = (moved.mean() + correction.mean()) / p1
    before = kept.mean() / p0
    return Estimate(
        float(now - before - tolerance),
        (correction - correction.mean()) / p1 - (kept - in0 * before) / p0,
        (moved - in1 * now) / p1,
        int(in0.sum()),
        int(in1.sum()),
    )


def outcome_decay(
    in0: Mask,
    loss0: Floats,
    z0: Floats,
    w0: Floats,
    in1: Mask,
    loss1: Floats,
    z1: Floats,
    *,
    tolerance: float,
) -> Estimate:
    """Estimate ``E_1[l - z | A] - tolerance``; the error is a product of those of z and w."""
    p1 = in1.mean()
    grown = np.where(in1, loss1 - z1 - tolerance, 0.0)
    correction = np.where(in0, w0 * (loss0 - z0), 0.0)
    value = (grown.mean() - correction.mean()) / p1
    return Estimate(
        float(value),
        -(correction - correction.mean()) / p1,
        (grown - in1 * value) / p1,
        int(in0.sum()),
        int(in1.sum()),
    )


def residual_outcome_decay(
    in0: Mask,
    surprise0: Floats,
    bet0: Floats,
    w0: Floats,
    in1: Mask,
    surprise1: Floats,
    bet1: Floats,
    explained1: Floats,
    *,
    tolerance: float,
) -> Estimate:
    """Estimate the decay that is left once the outcome law may change with the variables V alone, less the tolerance.

    Parameters
    ----------
    surprise0, surprise1 : ndarray
        Label minus its old probability, of source and target rows.
    bet0, bet1 : ndarray
        ``1_A (l(x, 1) - l(x, 0)) - E_1[1_A (l(x, 1) - l(x, 0)) | V]``.
    explained1 : ndarray
        ``E_1[mu_1(X) - mu_0(X) | V]``: the change of the probability of class 1 that V explains.

    Notes
    -----
    The error is a product of those of the old law and w, and of the two conditional expectations.
    """
    p1 = in1.mean()
    left = bet1 * (surprise1 - explained1) - in1 * tolerance
    correction = w0 * bet0 * surprise0
    value = (left.mean() - correction.mean()) / p1
    return Estimate(
        float(value),
        -(correction - correction.mean()) / p1,
        (left - in1 * value) / p1,
        int(in0.sum()),
        int(in1.sum()),
    )
