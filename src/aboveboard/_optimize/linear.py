"""Sparse linear and mixed-integer programs over HiGHS, with a time limit and answers that say what they prove.

Both take ``low <= A x <= high`` by rows, as HiGHS does, so that nobody splits equalities from inequalities by hand.

How to use it::

    found = linear_program(cost, A, row_low, row_high)             # x >= 0; found.x, .objective, .duals
    found = integer_program(cost, A, row_low, row_high, integer)   # found.bound: no solution can be better
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

__all__ = ["InfeasibleError", "Solution", "TimeLimitError", "integer_program", "linear_program", "seconds_left"]

Floats = NDArray[np.float64]

_TIME, _INFEASIBLE, _UNBOUNDED = 1, 2, 3
_FEASIBILITY = 1e-9


class InfeasibleError(RuntimeError):
    """No x satisfies the constraints."""


class TimeLimitError(RuntimeError):
    """The time limit passed before there was any solution to return."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The solution of a program.

    Attributes
    ----------
    x : ndarray of shape (n,)
    objective : float
    bound : float
        No feasible x has a smaller objective; equal to `objective` where x is optimal.
    duals : ndarray of shape (m,)
        Of the rows, by how much the optimum rises per unit of the bound that binds; NaN for integer programs.
    optimal : bool
        Whether it was solved to the end.
    """

    x: Floats
    objective: float
    bound: float
    duals: Floats
    optimal: bool


def linear_program(
    cost: ArrayLike,
    rows: sparse.spmatrix | sparse.sparray | NDArray[np.float64],
    row_low: ArrayLike,
    row_high: ArrayLike,
    *,
    low: ArrayLike = 0.0,
    high: ArrayLike = np.inf,
    time_limit: float | None = None,
) -> Solution:
    """Minimise ``cost @ x`` subject to ``row_low <= rows @ x <= row_high`` and ``low <= x <= high``.

    Parameters
    ----------
    cost : array-like of shape (n,)
    rows : sparse or dense matrix of shape (m, n)
    row_low, row_high : array-like of shape (m,)
        Minus and plus infinity where there is no bound; equal for an equality.
    low, high : float or array-like of shape (n,)
    time_limit : float, optional
        In seconds.

    Returns
    -------
    Solution
        A vertex: the dual simplex method finds it.

    Raises
    ------
    InfeasibleError
    TimeLimitError
        Linear programs that did not end have no solution worth returning.
    ValueError
        When the objective has no lower bound, or shapes do not match.
    """
    c, matrix, least, most = _checked(cost, rows, row_low, row_high)
    equal = least == most
    above, below = ~equal & np.isfinite(least), ~equal & np.isfinite(most)
    found = linprog(
        c,
        A_ub=sparse.vstack([matrix[below], -matrix[above]]).tocsr(),
        b_ub=np.r_[most[below], -least[above]],
        A_eq=matrix[equal],
        b_eq=least[equal],
        bounds=np.column_stack([np.broadcast_to(low, c.shape), np.broadcast_to(high, c.shape)]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": _FEASIBILITY, "dual_feasibility_tolerance": _FEASIBILITY}
        | _limit(time_limit),
    )
    _refuse(found.status, found.message, time_limit, has_solution=False)
    duals = np.zeros(len(least))
    duals[equal] = found.eqlin.marginals
    duals[below] = found.ineqlin.marginals[: below.sum()]
    duals[above] -= found.ineqlin.marginals[below.sum() :]
    return Solution(found.x, float(found.fun), float(found.fun), duals, optimal=True)


def integer_program(
    cost: ArrayLike,
    rows: sparse.spmatrix | sparse.sparray | NDArray[np.float64],
    row_low: ArrayLike,
    row_high: ArrayLike,
    integer: ArrayLike,
    *,
    low: ArrayLike = 0.0,
    high: ArrayLike = np.inf,
    gap: float = 1e-6,
    time_limit: float | None = None,
) -> Solution:
    """As `linear_program`, where the unknowns marked by `integer` are whole numbers.

    Parameters
    ----------
    cost, rows, row_low, row_high, low, high : as for `linear_program`
    integer : array-like of bool, shape (n,)
    gap : float, default 1e-6
        Relative: the search ends when no solution can be better by more.
    time_limit : float, optional
        In seconds; the best solution found by then is returned, with its `bound`.

    Raises
    ------
    InfeasibleError
    TimeLimitError
        When there was none by then.
    ValueError
        When the objective has no lower bound, or shapes do not match.
    """
    c, matrix, least, most = _checked(cost, rows, row_low, row_high)
    whole = np.asarray(integer, dtype=bool)
    if whole.shape != c.shape:
        raise ValueError(f"integer has shape {whole.shape}; expected {c.shape}")
    found = milp(
        c,
        constraints=LinearConstraint(matrix, least, most),
        bounds=Bounds(np.broadcast_to(low, c.shape), np.broadcast_to(high, c.shape)),
        integrality=whole.astype(int),
        options={"mip_rel_gap": gap} | _limit(time_limit),
    )
    _refuse(found.status, found.message, time_limit, has_solution=found.x is not None)
    x = np.where(whole, np.round(found.x), found.x)
    bound = found.mip_dual_bound if found.mip_dual_bound is not None else found.fun
    duals = np.full(len(least), np.nan)
    return Solution(x, float(c @ x), min(float(bound), float(c @ x)), duals, optimal=found.status == 0)


def seconds_left(deadline: float) -> float:
    """Return the seconds until `deadline` on the monotonic clock, or raise `TimeLimitError` where there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeLimitError("the time limit has passed")
    return left


def _checked(
    cost: ArrayLike, rows: sparse.spmatrix | sparse.sparray | Floats, row_low: ArrayLike, row_high: ArrayLike
) -> tuple[Floats, sparse.csr_array, Floats, Floats]:
    c = np.asarray(cost, dtype=np.float64)
    matrix = sparse.csr_array(rows)
    least, most = (np.asarray(bound, dtype=np.float64) for bound in (row_low, row_high))
    if c.ndim != 1 or matrix.shape != (len(least), len(c)) or least.shape != most.shape:
        raise ValueError(
            f"shapes do not match: cost {c.shape}, rows {matrix.shape}, row_low {least.shape}, row_high {most.shape}"
        )
    if np.any(least > most):
        row = int(np.argmax(least > most))
        raise InfeasibleError(f"row {row} must be at least {least[row]:g} and at most {most[row]:g}")
    return c, matrix, least, most


def _limit(time_limit: float | None) -> dict[str, float]:
    return {} if time_limit is None else {"time_limit": float(time_limit)}


def _refuse(status: int, message: str, time_limit: float | None, *, has_solution: bool) -> None:
    if status == 0 or (status == _TIME and has_solution):
        return
    if status == _TIME:
        raise TimeLimitError(f"no solution within {time_limit:g} seconds" if time_limit is not None else message)
    if status == _INFEASIBLE:
        raise InfeasibleError("no x satisfies the constraints")
    if status == _UNBOUNDED:
        raise ValueError("the objective has no lower bound on the feasible set")
    raise RuntimeError(f"HiGHS ended with status {status}: {message}")
