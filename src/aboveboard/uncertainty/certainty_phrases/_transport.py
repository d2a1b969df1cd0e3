"""Which phrase to say instead of which: plans of transport between two uses of phrases."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax

from aboveboard._optimize.linear import linear_program

__all__ = ["entropic_plan", "exact_plan", "joint_plan"]

Floats = NDArray[np.float64]

_ITERATIONS: Final = 20_000
_TOLERANCE: Final = 1e-10
_TANGENTS: Final = np.geomspace(1e-6, 1.0, 60)


def entropic_plan(cost: Floats, a: Floats, b: Floats, *, eps: float, tau: float) -> tuple[Floats, str]:
    """Minimise ``<cost, T> + tau KL(T'1 || b) + eps KL(T || ab')`` where the rows of T sum to `a`.

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
        The second at eps = 0, and where the iterations did not converge: the plan is then that of eps = 0.

    Notes
    -----
    Scaling iterations on the logarithms of the two scalings, O(K L) each: rows sum to `a` after every one, and small
    `eps` neither overflows nor underflows. Without a wish for the columns, each row is a softmax.
    """
    if eps == 0:
        return exact_plan(cost, a, b, tau=tau), "linear program"
    if tau == 0:
        return a[:, None] * softmax(-cost / eps, axis=1), "sinkhorn"
    open_ = b > 0
    plan = np.zeros_like(cost)
    plan[:, open_], converged = _sinkhorn(cost[:, open_], a, b[open_], eps, tau)
    if converged:
        return plan, "sinkhorn"
    warnings.warn(
        f"Sinkhorn's iterations did not converge at eps = {eps:g}: the plan is that of eps = 0, by a linear program.",
        UserWarning,
        stacklevel=4,
    )
    return exact_plan(cost, a, b, tau=tau), "linear program"


def _sinkhorn(cost: Floats, a: Floats, b: Floats, eps: float, tau: float) -> tuple[Floats, bool]:
    """Return ``T = ab' exp((f + g - cost) / eps)``, whose potentials f and g make the gradient vanish."""
    kernel, log_a, log_b = -cost / eps, np.log(a), np.log(b)
    damping = 1.0 if np.isinf(tau) else tau / (tau + eps)
    g = np.zeros(len(b))  # potentials over eps
    for _ in range(_ITERATIONS):
        f = -logsumexp(kernel + g + log_b, axis=1)
        before, g = g, -damping * logsumexp(kernel + f[:, None] + log_a[:, None], axis=0)
        if np.abs(g - before).max() < _TOLERANCE:
            break
    f = -logsumexp(kernel + g + log_b, axis=1)
    plan: Floats = np.exp(kernel + f[:, None] + g + log_a[:, None] + log_b)
    return plan, bool(np.abs(g - before).max() < _TOLERANCE)


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
        q = np.repeat(_TANGENTS, L)  # where q log(q / b) - q + b is touched: a row for each tangent and column
        wish, each = np.tile(b, len(_TANGENTS)), np.ones((len(_TANGENTS), 1))
        slope = sparse.diags(tau * np.log(q / np.where(wish > 0, wish, 1.0)))
        on_divergence = -sparse.kron(each, sparse.identity(L))
        blocks.append((slope @ sparse.kron(each, into_columns), on_divergence, None, -np.inf, tau * (q - wish)))
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
