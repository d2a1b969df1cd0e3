"""Which phrase to say instead of which: plans of transport between two uses of phrases."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from aboveboard._optimize.linear import linear_program
from aboveboard.core.errors import MissingExtra
from aboveboard.core.extras import require

__all__ = ["entropic_plan", "exact_plan", "joint_plan"]

Floats = NDArray[np.float64]

_MARGIN: Final = 1e-6
_TANGENTS: Final = np.geomspace(1e-6, 1.0, 60)


def entropic_plan(cost: Floats, a: Floats, b: Floats, *, eps: float, tau: float) -> tuple[Floats, str]:
    """Minimise ``<cost, T> + tau KL(T'1 || b)``, less `eps` times the entropy of T, where the rows of T sum to `a`.

    Parameters
    ----------
    cost : ndarray of shape (K, L)
    a, b : ndarray of shape (K,), (L,)
        Positive rows; columns that b leaves at 0 stay empty unless `tau` is 0.
    eps, tau : float
        `tau` may be infinite: the columns then sum to `b`.

    Returns
    -------
    plan : ndarray of shape (K, L)
    solver : {"sinkhorn", "linear program"}
        The second where POT is not installed or did not converge: the plan is then that of eps = 0.

    Notes
    -----
    Stabilised unbalanced Sinkhorn iterations of POT, O(K L) each, checked by the sums of the rows. Without a wish for
    the columns, each row is a softmax.
    """
    if eps == 0:
        return exact_plan(cost, a, b, tau=tau), "linear program"
    if tau == 0:
        return a[:, None] * softmax(-cost / eps, axis=1), "sinkhorn"
    try:
        ot = require("ot", extra="ot", feature="CertaintyCalibrator with eps above 0")
    except MissingExtra as error:
        warnings.warn(f"{error}. The plan is the one of eps = 0, by a linear program.", UserWarning, stacklevel=4)
        return exact_plan(cost, a, b, tau=tau), "linear program"
    open_ = b > 0
    plan = np.zeros_like(cost)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of convergence, which is checked below
        plan[:, open_] = ot.unbalanced.sinkhorn_stabilized_unbalanced(
            a, b[open_], cost[:, open_], eps, (np.inf, tau), numItermax=20_000, stopThr=1e-12
        )
    wished = np.abs(plan.sum(axis=0) - b).max() if np.isinf(tau) else 0.0
    if not max(np.abs(plan.sum(axis=1) - a).max(), wished) < _MARGIN:
        warnings.warn(
            f"Sinkhorn's iterations did not converge at eps = {eps:g}. The plan is the one of eps = 0, by a linear "
            "program.",
            UserWarning,
            stacklevel=4,
        )
        return exact_plan(cost, a, b, tau=tau), "linear program"
    return plan, "sinkhorn"


def exact_plan(cost: Floats, a: Floats, b: Floats, *, tau: float) -> Floats:
    """Minimise ``<cost, T> + tau KL(T'1 || b)`` where the rows of T sum to `a`: a linear program.

    The divergence is replaced by sixty of its tangents in each column, which leaves less than 1 % of `tau`.
    """
    return _program(a, b, tau, cost=cost)


def joint_plan(residuals: Floats, a: Floats, b: Floats, *, tau: float) -> Floats:
    """Minimise ``|sum_kl T_kl residuals_kl|_1 + tau KL(T'1 || b)`` where the rows of T sum to `a`: all moves at once.

    Parameters
    ----------
    residuals : ndarray of shape (K, L, bins)
        Successes less confidence in each bin, of one use of phrase k restated as phrase l.
    """
    return _program(a, b, tau, residuals=residuals)


def _program(
    a: Floats, b: Floats, tau: float, *, cost: Floats | None = None, residuals: Floats | None = None
) -> Floats:
    """Solve over the plan T, one epigraph variable per column for the divergence, and one per bin for the error."""
    K, L, bins = len(a), len(b), 0 if residuals is None else residuals.shape[2]
    wished = 0 < tau < np.inf
    from_rows = sparse.kron(sparse.identity(K), np.ones((1, L)))
    into_columns = sparse.kron(np.ones((1, K)), sparse.identity(L))
    price = np.zeros(K * L) if cost is None else cost.ravel()
    blocks: list[tuple[Any, ...]] = [(from_rows, None, None, a, a)]
    if np.isinf(tau):
        blocks.append((into_columns, None, None, b, b))
    if wished:
        for q in _TANGENTS:  # of q log(q / b) - q + b, each below it
            slope = sparse.diags(tau * np.log(q / np.where(b > 0, b, 1.0)))
            blocks.append((slope @ into_columns, -sparse.identity(L), None, -np.inf, tau * (q - b)))
    if residuals is not None:
        moved = sparse.csr_matrix(residuals.reshape(K * L, bins).T)
        blocks += [(sign * moved, None, -sparse.identity(bins), -np.inf, 0.0) for sign in (1, -1)]
    rows, low, high = [], [], []
    for on_plan, on_divergence, on_error, least, most in blocks:
        m = on_plan.shape[0]
        parts = [on_plan, on_divergence, on_error]
        widths = (K * L, L, bins)
        rows.append(sparse.hstack([p if p is not None else sparse.csr_matrix((m, w)) for p, w in zip(parts, widths)]))
        low.append(np.broadcast_to(least, m))
        high.append(np.broadcast_to(most, m))
    closed = np.tile((b <= 0) & (tau > 0), K)
    solved = linear_program(
        np.concatenate([price, np.full(L, float(wished)), np.ones(bins)]),
        sparse.vstack(rows),
        np.concatenate(low),
        np.concatenate(high),
        high=np.concatenate([np.where(closed, 0.0, np.inf), np.full(L + bins, np.inf)]),
    )
    return np.maximum(solved.x[: K * L].reshape(K, L), 0.0)
