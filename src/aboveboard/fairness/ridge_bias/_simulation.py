"""The check that comes with the theory: ridge regressions on drawn data, one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from aboveboard.fairness.ridge_bias._spectra import checked_covariances
from aboveboard.fairness.ridge_bias._theory import checked_amounts, refuse_penalty, refuse_width

__all__ = ["Simulated", "simulate_group_risk"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What drawn data gave.

    Attributes
    ----------
    risk : ndarray of shape (S,)
        Mean excess risk in each group over the repeats.
    standard_error : ndarray of shape (S,)
    repeats : ndarray of shape (n_repeats, S)
    """

    risk: Floats
    standard_error: Floats
    repeats: Floats


def simulate_group_risk(
    covariances: Sequence[ArrayLike] | ArrayLike,
    weights: ArrayLike,
    noise_var: ArrayLike,
    n_per_group: ArrayLike,
    *,
    penalty: float,
    width_ratio: float | None = None,
    n_repeats: int = 20,
    random_state: Any = None,
) -> Simulated:
    """Fit ridge regressions to Gaussian data and measure their exact risk in each group.

    Parameters
    ----------
    covariances, weights, noise_var, n_per_group, penalty, width_ratio :
        As for `group_risk`; weights of shape (S, d), whole rows, and a penalty above 0.
    n_repeats : int, default=20
        Independent data sets (and projections), 2 or more.
    random_state : int, RandomState or None

    Returns
    -------
    Simulated

    Notes
    -----
    O(n d min(n, d)) for each repeat, and O(d^3) once for each covariance that is no diagonal.
    """
    sigma = checked_covariances(covariances)
    S, d = sigma.shape[:2]
    w = np.asarray(weights, dtype="float64")
    if w.shape != (S, d):
        raise ValueError(f"the weights have shape {w.shape}; a simulation needs one vector a group: ({S}, {d})")
    noise, n = checked_amounts(S, noise_var, n_per_group)
    if (n != np.round(n)).any():
        raise ValueError(f"n_per_group is {n.tolist()}; a simulation needs whole numbers of rows")
    refuse_penalty(penalty, "penalty")
    refuse_width(width_ratio)
    if penalty == 0:
        raise ValueError("the penalty is 0; a simulation needs one above 0")
    if n_repeats < 2:
        raise ValueError(f"n_repeats is {n_repeats}; two or more are needed for a standard error")
    rng = check_random_state(random_state)
    roots = [np.sqrt(part) if part.ndim == 1 else _root(part) for part in sigma]
    repeats = np.empty((n_repeats, S))
    for repeat in range(n_repeats):
        X = np.vstack([_rows(rng, int(n[s]), roots[s]) for s in range(S)])
        y = np.concatenate(
            [X[_span(n, s)] @ w[s] + np.sqrt(noise[s]) * rng.standard_normal(int(n[s])) for s in range(S)]
        )
        W = None if width_ratio is None else rng.standard_normal((d, max(1, round(width_ratio * d)))) / np.sqrt(d)
        learned = _ridge(X if W is None else X @ W, y, penalty)
        if W is not None:
            learned = W @ learned
        for s in range(S):
            gap = learned - w[s]
            repeats[repeat, s] = gap @ (sigma[s] * gap if sigma[s].ndim == 1 else sigma[s] @ gap)
    return Simulated(repeats.mean(axis=0), repeats.std(axis=0, ddof=1) / np.sqrt(n_repeats), repeats)


def _root(sigma: Floats) -> Floats:
    values, vectors = np.linalg.eigh(sigma)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _rows(rng: Any, n: int, root: Floats) -> Floats:
    drawn: Floats = rng.standard_normal((n, len(root)))
    return drawn * root if root.ndim == 1 else drawn @ root.T


def _span(n: Floats, s: int) -> slice:
    ends = np.concatenate([[0], np.cumsum(n)]).astype(int)
    return slice(ends[s], ends[s + 1])


def _ridge(V: Floats, y: Floats, penalty: float) -> Floats:
    """Minimise ``|Vw - y|^2 / n + penalty |w|^2``, by the smaller of the two systems."""
    n, m = V.shape
    if m <= n:
        gram = V.T @ V / n
        gram.flat[:: m + 1] += penalty
        primal: Floats = scipy.linalg.solve(gram, V.T @ y / n, assume_a="pos")
        return primal
    gram = V @ V.T / n
    gram.flat[:: n + 1] += penalty
    dual: Floats = V.T @ scipy.linalg.solve(gram, y / n, assume_a="pos")
    return dual
