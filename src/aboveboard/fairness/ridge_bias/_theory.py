"""The fixed point and the risks of ridge regression on a mixture of groups, in the limit of many rows and columns."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from aboveboard.fairness.ridge_bias._spectra import Spectra, make_spectra

__all__ = [
    "Amplification",
    "GroupRisk",
    "Measure",
    "Start",
    "amplified",
    "bias_amplification",
    "bias_curve",
    "checked_amounts",
    "group_risk",
    "refuse_penalty",
    "refuse_width",
]

Floats = NDArray[np.float64]
Measure = Literal["risk", "test_error"]

_TOLERANCE: Final = 1e-12
_MOST_STEPS: Final = 200
_NO_PENALTY: Final = 1e-10
_LARGEST_LOG: Final = 600.0


@dataclass(frozen=True, slots=True)
class GroupRisk:
    """The predicted risk of one model in each of S groups.

    Attributes
    ----------
    risk : ndarray of shape (S,)
        Expected excess squared error ``E (f(x) - x . w_s)^2``: `risk_bias` plus `risk_variance`. The test error is
        `test_error`, which adds the noise.
    risk_bias, risk_variance : ndarrays of shape (S,)
        The part that stays without noise, and the part that the noise of the training labels brings. "Bias" is meant as
        statisticians do.
    test_error : ndarray of shape (S,)
    e : ndarray of shape (S,)
        The fixed point: how much leaving out a row of a group changes its own prediction.
    kappa : float
        The penalty that is felt; the penalty itself without random projections.
    u : ndarray of shape (S, S)
    rho : ndarray of shape (S,)
        Second-order quantities, one row for each group whose risk is asked.
    converged : bool
        Whether the fixed point was found to a relative residual of 1e-10.
    """

    risk: Floats
    risk_bias: Floats
    risk_variance: Floats
    test_error: Floats
    e: Floats
    kappa: float
    u: Floats
    rho: Floats
    converged: bool


@dataclass(frozen=True, slots=True)
class Amplification:
    """How far apart the groups' errors are with one model for all, and with a model for each.

    Attributes
    ----------
    odd : float
        Observed disparity: the largest gap between the risks (or test errors) of two groups under the joint model.
    edd : float
        Inherent disparity: the same gap, between the same two groups or others, with a model for each.
    add : float
        Amplification, ``odd / edd``; above 1 the joint model widens the gap. Infinite where `edd` is (almost) zero.
    signed_odd, signed_edd : float
        For the two groups with the widest joint gap: the risk of the first less that of the second.
    pair : tuple of int
        Those two groups.
    pooling : ndarray of shape (S,)
        What a group gains by the joint model: its risk alone less its risk together. Negative: it is harmed.
    joint : GroupRisk
    separate : tuple of GroupRisk
    """

    odd: float
    edd: float
    add: float
    signed_odd: float
    signed_edd: float
    pair: tuple[int, int]
    pooling: Floats
    joint: GroupRisk
    separate: tuple[GroupRisk, ...]


def group_risk(
    covariances: Sequence[ArrayLike] | ArrayLike,
    weights: ArrayLike,
    noise_var: ArrayLike,
    n_per_group: ArrayLike,
    *,
    penalty: float,
    width_ratio: float | None = None,
) -> GroupRisk:
    """Predict the risk of ridge regression in each group, without training.

    A row of group s has features ``x ~ N(0, Sigma_s)`` in d dimensions and the outcome ``y = x . w_s`` plus noise. One
    model is fitted to all rows: ``(1/n) |Xw - y|^2 + penalty |w|^2``, on the features themselves or, with
    `width_ratio`, on random projections of them, a network of that width in its linear regime.

    Parameters
    ----------
    covariances : sequence of S arrays of shape (d,) or (d, d)
        Second moments of the features in each group, or their diagonals.
    weights : array of shape (S, d), (S, S, d) or (S, S, d, d)
        True coefficients of each group; or their second moments ``E[w_j w_k']`` where they are random (diagonals, or in
        full), and the risk is then the mean over them.
    noise_var : float or array of shape (S,)
        Variance of the noise in each group, 0 or more.
    n_per_group : array of shape (S,)
        Rows of each group in the training data, each 1 or more; need not be whole.
    penalty : float
        0 or more, in units of the mean squared error. 0 is the limit of a vanishing penalty (the interpolating solution
        of least norm where there are more columns than rows).
    width_ratio : float, optional
        Number of projections by number of features, above 0. None: no projections.

    Returns
    -------
    GroupRisk

    Raises
    ------
    ValueError
        For shapes that do not fit, covariances that are not positive semidefinite, and values out of range.

    Notes
    -----
    With ``p_j = n_j / n``, ``Q = (sum_j p_j / (1 + e_j) Sigma_j + kappa I)^-1`` and ``e_j = tr(Sigma_j Q) / n``, kappa
    is the penalty, or with projections the root of ``penalty = kappa (width_ratio - 1 + kappa tr(Q) / d)``. What is
    exact in the limit of many rows and columns in proportion has a relative error of about ``n^-1/2`` in one data set.

    Cost: with diagonal or commuting covariances O(S^2 d) a step and some ten steps; else O(S d^3) a step. With
    projections some ten times that.

    References
    ----------
    A. Subramonian, S. J. Bell, L. Sagun, E. Dohmatob, "An Effective Theory of Bias Amplification", ICLR 2025.

    Examples
    --------
    >>> from aboveboard.fairness import group_risk
    >>> d = 300
    >>> result = group_risk([[2.0] * d, [1.0] * d], [[d**-0.5] * d] * 2, 0.25, [200, 200], penalty=0.1)
    >>> result.converged, result.risk.round(2).tolist()
    (True, [0.51, 0.25])
    """
    spectra = make_spectra(covariances, weights)
    noise, n = checked_amounts(spectra.n_groups, noise_var, n_per_group)
    refuse_penalty(penalty, "penalty")
    refuse_width(width_ratio)
    return _risk(spectra, noise, n, penalty, width_ratio, None)


def bias_amplification(
    covariances: Sequence[ArrayLike] | ArrayLike,
    weights: ArrayLike,
    noise_var: ArrayLike,
    n_per_group: ArrayLike,
    *,
    penalty: float,
    width_ratio: float | None = None,
    penalty_separate: ArrayLike | None = None,
    of: Measure = "risk",
) -> Amplification:
    """Compare one model for all groups with a model for each.

    Parameters
    ----------
    covariances, weights, noise_var, n_per_group, penalty, width_ratio :
        As for `group_risk`, for two groups or more.
    penalty_separate : float or array of shape (S,), optional
        The penalties of the separate models. Default: the same.
    of : {"risk", "test_error"}, default="risk"
        Whether disparities are between excess risks, as in the paper's theory, or between test errors, noise included,
        which is what a user observes. With equal noise in all groups they are the same.

    Returns
    -------
    Amplification

    Warns
    -----
    UserWarning
        Where the inherent disparity is all but zero, so that the ratio says nothing; look at the disparities instead.

    Notes
    -----
    The separate models see their own group's rows only and have the same width. Cost: S + 1 times `group_risk`.

    References
    ----------
    S. J. Bell, L. Sagun, "Simplicity Bias Leads to Amplified Performance Disparities", FAccT 2023 (the measures).
    """
    spectra = make_spectra(covariances, weights)
    if spectra.n_groups < 2:
        raise ValueError("one group was given; a disparity needs two or more")
    noise, n = checked_amounts(spectra.n_groups, noise_var, n_per_group)
    refuse_penalty(penalty, "penalty")
    refuse_width(width_ratio)
    alone = np.asarray(penalty if penalty_separate is None else penalty_separate, dtype="float64")
    if alone.shape not in ((), (spectra.n_groups,)):
        raise ValueError(f"penalty_separate has shape {alone.shape}; expected one number, or one for each group")
    alone = np.broadcast_to(alone, spectra.n_groups)
    for value in alone:
        refuse_penalty(float(value), "penalty_separate")
    if of not in get_args(Measure):
        raise ValueError(f"of is {of!r}; expected {' or '.join(get_args(Measure))}")
    return amplified(spectra, noise, n, penalty, width_ratio, alone, Start(spectra), of=of, warn=True)


def bias_curve(
    covariances: Sequence[ArrayLike] | ArrayLike,
    weights: ArrayLike,
    noise_var: ArrayLike,
    n_per_group: ArrayLike,
    *,
    penalties: ArrayLike,
    width_ratios: Sequence[float | None] = (None,),
) -> Any:
    """Sweep penalties and widths; the whole curve costs little more than a point.

    Parameters
    ----------
    covariances, weights, noise_var, n_per_group :
        As for `group_risk`, for two groups or more.
    penalties : array of shape (P,)
        For the joint and the separate models alike.
    width_ratios : sequence of float or None
        None stands for no projections.

    Returns
    -------
    DataFrame
        A row for each pair: ``width_ratio`` (NaN for None), ``penalty``, ``odd``, ``edd``, ``amplification``, and for
        each group s ``risk_s``, ``risk_bias_s``, ``risk_variance_s``, ``separate_risk_s``; ``converged``.

    Notes
    -----
    Training by gradient flow for time t acts much like a penalty of 1/t, which makes the same curve one of training
    time; that is a rule of thumb and no theorem. Cost: each point starts from the solution of the one before.
    """
    import pandas as pd

    spectra = make_spectra(covariances, weights)
    if spectra.n_groups < 2:
        raise ValueError("one group was given; a disparity needs two or more")
    noise, n = checked_amounts(spectra.n_groups, noise_var, n_per_group)
    grid = np.atleast_1d(np.asarray(penalties, dtype="float64"))
    for value in grid.ravel():
        refuse_penalty(float(value), "penalties")
    rows = []
    for width in width_ratios:
        refuse_width(width)
        start = Start(spectra)
        found: dict[float, Amplification] = {}
        for value in sorted(set(grid.ravel().tolist()), reverse=True):
            alone = np.full(spectra.n_groups, value)
            found[value] = amplified(spectra, noise, n, value, width, alone, start, of="risk", warn=False)
        rows += [_row(width, value, found[value]) for value in grid.ravel().tolist()]
    return pd.DataFrame(rows)


def _row(width: float | None, penalty: float, found: Amplification) -> dict[str, float | bool]:
    row: dict[str, float | bool] = {
        "width_ratio": np.nan if width is None else width,
        "penalty": penalty,
        "odd": found.odd,
        "edd": found.edd,
        "amplification": found.add,
    }
    for s, separate in enumerate(found.separate):
        row |= {
            f"risk_{s}": float(found.joint.risk[s]),
            f"risk_bias_{s}": float(found.joint.risk_bias[s]),
            f"risk_variance_{s}": float(found.joint.risk_variance[s]),
            f"separate_risk_{s}": float(separate.risk[0]),
        }
    return row | {"converged": found.joint.converged and all(part.converged for part in found.separate)}


class Start:
    """Where the next point of a sweep starts: the fixed points of the one before, and each group by itself."""

    def __init__(self, spectra: Spectra) -> None:
        self.groups = [spectra.of_group(s) for s in range(spectra.n_groups)]
        self.joint: Floats | None = None
        self.separate: list[Floats | None] = [None] * spectra.n_groups


def amplified(
    spectra: Spectra,
    noise: Floats,
    n: Floats,
    penalty: float,
    width_ratio: float | None,
    alone: Floats,
    start: Start,
    *,
    of: Measure,
    warn: bool,
) -> Amplification:
    joint = _risk(spectra, noise, n, penalty, width_ratio, start.joint)
    start.joint = joint.e
    separate = []
    for s, group in enumerate(start.groups):
        own = slice(s, s + 1)
        part = _risk(group, noise[own], n[own], float(alone[s]), width_ratio, start.separate[s])
        start.separate[s] = part.e
        separate.append(part)
    together: Floats = getattr(joint, of)
    single = np.array([getattr(part, of)[0] for part in separate])
    odd, pair = _widest(together)
    edd, _ = _widest(single)
    largest = float(max(together.max(), single.max()))
    if edd < 1e-12 + 1e-3 * largest:
        add = np.inf
        if warn:
            warnings.warn(
                f"the inherent disparity is {edd:.2g}, all but zero beside risks of {largest:.2g}: the amplification "
                "is given as infinite; look at odd and edd themselves",
                UserWarning,
                stacklevel=3,
            )
    else:
        add = odd / edd
    first, second = pair
    return Amplification(
        odd=odd,
        edd=edd,
        add=add,
        signed_odd=float(together[first] - together[second]),
        signed_edd=float(single[first] - single[second]),
        pair=pair,
        pooling=single - together,
        joint=joint,
        separate=tuple(separate),
    )


def _widest(risk: Floats) -> tuple[float, tuple[int, int]]:
    if len(risk) == 1:
        return 0.0, (0, 0)
    pair = max(combinations(range(len(risk)), 2), key=lambda jk: abs(risk[jk[0]] - risk[jk[1]]))
    return float(abs(risk[pair[0]] - risk[pair[1]])), pair


# --- checked input ----------------------------------------------------------------------------------------------------


def checked_amounts(S: int, noise_var: ArrayLike, n_per_group: ArrayLike) -> tuple[Floats, Floats]:
    noise = np.asarray(noise_var, dtype="float64")
    n = np.asarray(n_per_group, dtype="float64")
    if noise.shape not in ((), (S,)):
        raise ValueError(f"noise_var has shape {noise.shape}; expected one number, or one for each of {S} groups")
    if n.shape != (S,):
        raise ValueError(f"n_per_group has shape {n.shape}; expected one number for each of {S} groups")
    if not np.isfinite(noise).all() or (noise < 0).any():
        raise ValueError("noise_var holds negative or non-finite values; a variance is 0 or more")
    if not np.isfinite(n).all() or (n < 1).any():
        raise ValueError(f"n_per_group is {n.tolist()}; each group needs at least one row")
    return np.broadcast_to(noise, S), n


def refuse_penalty(penalty: float, name: str) -> None:
    if not np.isfinite(penalty) or penalty < 0:
        raise ValueError(f"{name} is {penalty!r}; expected a finite number, 0 or more")


def refuse_width(width_ratio: float | None) -> None:
    if width_ratio is not None and not (np.isfinite(width_ratio) and width_ratio > 0):
        raise ValueError(f"width_ratio is {width_ratio!r}; expected a number above 0, or None for no projections")


# --- first order: the fixed point -------------------------------------------------------------------------------------


def _risk(
    spectra: Spectra, noise: Floats, n: Floats, penalty: float, width_ratio: float | None, start: Floats | None
) -> GroupRisk:
    share = n / n.sum()
    total = n.sum()
    size = float(share @ spectra.traces(spectra.resolvent(np.zeros(len(n)), 1.0))[:-1]) / spectra.d
    lam = penalty or _NO_PENALTY * size
    if width_ratio is None:
        kappa = lam
    else:
        kappa = _felt_penalty(spectra, share, total, lam, width_ratio, start)
    e, residual = _fixed_point(spectra, share, total, kappa, start)
    Q = spectra.resolvent(share / (1 + e), kappa)
    traces = spectra.traces(Q)
    u, rho = _second_order(spectra.second_traces(Q), share, e, total, kappa, traces[-1], width_ratio, spectra.d)
    risk_bias = _bias(spectra.forms(Q), share, e, u, rho)
    risk_variance = (share * u / (1 + e) ** 2) @ noise
    risk_bias = np.maximum(risk_bias, 0.0)
    risk = risk_bias + risk_variance
    return GroupRisk(risk, risk_bias, risk_variance, risk + noise, e, kappa, u, rho, residual <= 1e-10)


def _fixed_point(
    spectra: Spectra, share: Floats, total: float, kappa: float, start: Floats | None
) -> tuple[Floats, float]:
    """Solve ``e_j = tr(Sigma_j Q(e)) / n`` and return e with its relative residual.

    Newton's method in log e, where the map is a contraction whatever the scale of the penalty; a step that does not
    bring the residual down is halved, and the plain iteration, which always converges, is the last resort.
    """

    def mapped(log_e: Floats) -> tuple[Any, Floats]:
        Q = spectra.resolvent(share / (1 + np.exp(log_e)), kappa)
        return Q, np.log(spectra.traces(Q)[:-1] / total)

    if start is None:
        start = spectra.traces(spectra.resolvent(share, kappa))[:-1] / total
    z = np.log(start)
    Q, image = mapped(z)
    for _ in range(_MOST_STEPS):
        gap = float(np.abs(z - image).max())
        if gap <= _TOLERANCE:
            break
        e = np.exp(z)
        second = spectra.second_traces(Q)[:-1, :-1] / total
        jacobian = second * (share * e / (1 + e) ** 2) / np.exp(image)[:, None]
        step = np.linalg.solve(np.eye(len(z)) - jacobian, z - image)
        for size in (1.0, 0.5, 0.25, 0.125):
            trial = z - size * step
            if np.abs(trial).max() < _LARGEST_LOG:
                Q, new = mapped(trial)
                if np.abs(trial - new).max() < gap:
                    break
        else:
            if gap < 1e-10:  # rounding, not distance
                break
            trial = image
            Q, new = mapped(trial)
        z, image = trial, new
    return np.exp(z), float(np.abs(z - image).max())


def _felt_penalty(
    spectra: Spectra, share: Floats, total: float, lam: float, width_ratio: float, start: Floats | None
) -> float:
    """Return kappa, the root of ``lam = kappa (width_ratio - 1 + kappa tr(Q) / d)`` on its increasing branch.

    The bracket in the equation grows with kappa, so that the right side is negative up to some point and increases from
    there on: it meets a positive penalty once.
    """
    warm = {"e": start}

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        e, _ = _fixed_point(spectra, share, total, kappa, warm["e"])
        warm["e"] = e
        trace = spectra.traces(spectra.resolvent(share / (1 + e), kappa))[-1]
        return float((width_ratio - 1 + kappa * trace / spectra.d) * kappa / lam - 1)

    low = high = float(np.log(lam / width_ratio))
    while excess(low) > 0:
        low -= 2.0
    while excess(high) < 0:
        high += 2.0
    if low == high:
        return float(np.exp(low))
    return float(np.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-14)))


# --- second order and the risks ---------------------------------------------------------------------------------------


def _second_order(
    second: Floats,
    share: Floats,
    e: Floats,
    total: float,
    kappa: float,
    trace: float,
    width_ratio: float | None,
    d: int,
) -> tuple[Floats, Floats]:
    """Return u and rho for every covariance as the middle matrix: shapes (S, S) and (S,), one row a middle matrix."""
    S = len(share)
    inner = share / (1 + e) ** 2
    if width_ratio is None:
        weight = np.append(inner, 0.0)
        scale = np.append(np.full(S, 1 / total), 0.0)
    else:
        slope = width_ratio - 1 + 2 * kappa * trace / d  # penalty / kappa + kappa tr(Q) / d
        weight = np.append(inner, 1.0)
        scale = np.append(np.full(S, 1 / total), kappa**2 / d / slope)
    system = np.eye(S + 1) - scale[:, None] * second * weight
    solved = np.linalg.solve(system, scale[:, None] * second[:, :S])
    return solved[:S].T, solved[S]


def _bias(forms: tuple[Floats, Floats, Floats], share: Floats, e: Floats, u: Floats, rho: Floats) -> Floats:
    plain, once, twice = forms
    c = share / (1 + e)
    between = np.einsum("jjk->jk", once)  # w_j' Sigma_j Q Sigma_k w_k
    own = np.einsum("jjj->j", plain)
    inner = share * u / (1 + e) ** 2  # row s: the weights of the covariances in the middle of group s
    middle = twice[:-1] + np.tensordot(inner, twice[:-1], axes=1) + rho[:, None, None] * twice[-1]
    felt = u / (1 + e)
    corrected = middle - (felt[:, :, None] + felt[:, None, :]) * between
    linear = np.einsum("ssk,k->s", once, c)
    quadratic: Floats = np.einsum("sjk,j,k->s", corrected, c, c)
    bias: Floats = own - 2 * linear + inner @ own + quadratic
    return bias
