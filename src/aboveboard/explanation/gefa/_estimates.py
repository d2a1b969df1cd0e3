"""Shapley values from the answers about drawn coalitions, for many games that share the coalitions.

With a linear surrogate ``g(z) = g_0 + c . z``, whose Shapley values are ``c``,

    phi = c + ((v(1) - g(1)) - (v(0) - g(0))) / n + E[(v - g)(z) W(z)],      W_i = on z_i - off (1 - z_i),

the expectation being over coalitions that are neither full nor empty. The surrogate is fitted on one fold of what was
drawn, and on all that is listed, and the other fold corrects it, so that it only saves variance and never biases. ``W``
is not formed: its products are those of the coalitions with the weights.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy import linalg

from aboveboard.explanation.gefa._coalitions import Draw, Floats

__all__ = ["Control", "Estimates", "estimate", "estimate_as_published", "exact_values"]

Control = Literal["linear", "size"] | None

_PENALTIES: Final = (0.0, *(10.0**power for power in range(-6, 4)))
"""Of the surrogate, in units of the mean squared singular value of its design."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Shapley values of several games, with standard errors; both of shape (games, n)."""

    values: Floats
    stderr: Floats


def estimate(draw: Draw, answers: Floats, base: Floats, full: Floats, control: Control) -> Estimates:
    """Estimate the Shapley values of several games.

    Parameters
    ----------
    draw : Draw
        Its weights must have mean zero against every function of the coalition's size.
    answers : ndarray of shape (N, games)
    base, full : ndarray of shape (games,)
        With no feature, and with all.
    control : {"linear", "size", None}
        The surrogate: linear in the coalition, linear in its size, or a constant.

    Notes
    -----
    O(N n games) time, and two singular value decompositions of matrices with at most N rows and n columns.
    """
    n, m = draw.present.shape[1], len(draw.on)
    first = draw.first.astype(np.float64)
    target = (answers[:m] - answers[m:]) / 2.0 if draw.paired else answers
    design = _design(first, control)
    values, variance = np.zeros((target.shape[1], n)), np.zeros((target.shape[1], n))
    for fold in (0, 1):
        fits = draw.fold != fold
        slope, intercept = _surrogate(design[fits], target[fits], centred=not draw.paired)
        residual = target - intercept - design @ slope
        shapley = _spread(slope, n, control)
        values += (shapley - shapley.mean(axis=1, keepdims=True)) / 2.0
        for part in (-1, fold):
            own = draw.fold == part
            total, error = _weighted_sum(first[own], draw.on[own], draw.off[own], residual[own])
            values += total / 2.0
            if part == fold:
                variance += error / 4.0
    values += ((full - base) / n)[:, None]
    values += (full - base - values.sum(axis=1))[:, None] / n  # what rounding left
    return Estimates(values, np.sqrt(variance))


def estimate_as_published(draw: Draw, answers: Floats) -> Estimates:
    """Return what Algorithm 1 of the paper returns, as its code does: the slope of its control is fitted in sample.

    The full and the empty coalition do not take part, so that these are Shapley values less ``(v(1) - v(0)) / n``,
    times ``(n + 1) / (n - 1)``, but for the bias of the grid.
    """
    n, m = draw.present.shape[1], len(draw.on)
    first = draw.first.astype(np.float64)
    odd = (answers[:m] - answers[m:]) / 2.0
    control = first.sum(axis=1) / n - 0.5
    square = control @ control
    residual = odd - np.outer(control, control @ odd / square) if square > 0 else odd
    total, variance = _weighted_sum(first, draw.on / 2.0, draw.off / 2.0, residual)
    return Estimates(total, np.sqrt(variance))


def exact_values(answers: Floats, n: int) -> Floats:
    """Return the Shapley values of several games from all their values.

    Parameters
    ----------
    answers : ndarray of shape (2^n, games)
        In the order of `every_coalition`.
    n : int

    Returns
    -------
    ndarray of shape (games, n)
    """
    size = np.zeros(1 << n, dtype=np.intp)
    for i in range(n):
        size[1 << i : 1 << (i + 1)] = size[: 1 << i] + 1
    weight = np.ones(n)  # of a coalition of each size without the feature: 1 / (n binomial(n - 1, size))
    for s in range(1, n):
        weight[s] = weight[s - 1] * s / (n - s)
    weight /= n
    values = np.empty((answers.shape[1], n))
    for i in range(n):
        halves = answers.reshape(-1, 2, 1 << i, answers.shape[1])
        without = size.reshape(-1, 2, 1 << i)[:, 0].ravel()
        gain = (halves[:, 1] - halves[:, 0]).reshape(len(without), -1)
        values[:, i] = weight[without] @ gain
    values += (answers[-1] - answers[0] - values.sum(axis=1))[:, None] / n  # what rounding left
    return values


def _weighted_sum(first: Floats, on: Floats, off: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the sum of ``residual W`` over the rows and the variance of that sum, both of shape (games, n)."""
    m = len(residual)
    total = ((on + off)[:, None] * residual).T @ first - (off @ residual)[:, None]
    square = ((on**2 - off**2)[:, None] * residual**2).T @ first + (off**2 @ residual**2)[:, None]
    return total, np.maximum(square - total**2 / m, 0.0) * m / (m - 1) if m > 1 else np.zeros_like(total)


# --- the surrogate ----------------------------------------------------------------------------------------------------


def _design(first: Floats, control: Control) -> Floats:
    if control == "linear":
        return first - 0.5
    if control == "size":
        return np.asarray(first.mean(axis=1, keepdims=True) - 0.5)
    return np.empty((len(first), 0))


def _spread(slope: Floats, n: int, control: Control) -> Floats:
    """Return the Shapley values of the surrogate, shape (games, n)."""
    return slope.T if control == "linear" else np.repeat(slope.sum(axis=0)[:, None] / n, n, axis=1)


def _surrogate(design: Floats, target: Floats, *, centred: bool) -> tuple[Floats, Floats]:
    """Fit the surrogate by least squares with a penalty.

    Returns
    -------
    slope : ndarray of shape (columns, games)
    intercept : ndarray of shape (games,)
    """
    x_mean = design.mean(axis=0) if centred else np.zeros(design.shape[1])
    y_mean = target.mean(axis=0) if centred else np.zeros(target.shape[1])
    slope = _ridge(design - x_mean, target - y_mean)
    return slope, y_mean - x_mean @ slope


def _ridge(A: Floats, B: Floats) -> Floats:
    """Return ridge regressions of the columns of `B` on `A`, each with the penalty of least leave-one-out error."""
    m, p = A.shape
    if not p:
        return np.zeros((0, B.shape[1]))
    U, spectrum = _left_vectors(A)
    unit = float(spectrum.sum()) / min(m, p)
    onto = U.T @ B
    leverage = U**2
    penalties = [penalty * unit for penalty in _PENALTIES if penalty > 0 or m > len(spectrum)]
    losses = np.empty((len(penalties), B.shape[1]))
    for k, penalty in enumerate(penalties):
        shrunk = spectrum / (spectrum + penalty)
        left = np.maximum(1.0 - leverage @ shrunk, 1e-12)
        losses[k] = np.square((B - U @ (shrunk[:, None] * onto)) / left[:, None]).sum(axis=0)
    chosen = np.asarray(penalties)[np.argmin(losses, axis=0)]
    return np.asarray(A.T @ (U @ (onto / (spectrum[:, None] + chosen))))


def _left_vectors(A: Floats) -> tuple[Floats, Floats]:
    """Return the left singular vectors of `A` and the squares of its singular values, but for those that are zero."""
    if A.shape[1] > A.shape[0]:
        spectrum, U = linalg.eigh(A @ A.T)
        tiny = spectrum.max() * len(spectrum) * np.finfo(np.float64).eps
    else:
        U, singular, _ = linalg.svd(A, full_matrices=False)
        spectrum = singular**2
        tiny = spectrum.max() * (max(A.shape) * np.finfo(np.float64).eps) ** 2
    real = spectrum > max(tiny, 0.0)
    return U[:, real], spectrum[real]
