"""What weights may become: convex sets, and the nearest point of each."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import splu
from sklearn.exceptions import ConvergenceWarning

from aboveboard.collective.opinion_interventions._network import Edges
from aboveboard.core.errors import InputError

__all__ = [
    "Box",
    "BudgetSimplex",
    "Constraint",
    "ConvexSet",
    "FrobeniusBall",
    "Intersection",
    "Projection",
    "RowSimplex",
    "least_linear",
]

Floats = NDArray[np.float64]
Projection = Callable[[Floats], Floats]

_EXACT: Final = 1e-13
_NEWTON: Final = 100
_RIDGE: Final = 1e-10
_INSIDE: Final = 1e-10
_FAR: Final = 1e3


class Constraint(Protocol):
    """A closed convex set of weights, none below 0."""

    def projection(self, edges: Edges) -> Projection:
        """Return the function that maps any vector of variables to the nearest one in the set."""
        ...


@dataclass(frozen=True)
class Box:
    """Each weight between two bounds.

    Parameters
    ----------
    lower, upper : float, or array-like of shape (m,)
        One pair for all, or one per mutable edge in the order of the rows, then of the columns.
    """

    lower: ArrayLike = 0.0
    upper: ArrayLike = np.inf

    def projection(self, edges: Edges) -> Projection:
        bounds = []
        for name, given in (("lower", self.lower), ("upper", self.upper)):
            bound = np.asarray(given, dtype=np.float64)
            if bound.shape not in ((), edges.start.shape):
                raise InputError(f"{name} has shape {bound.shape}", expected=f"a number, or {edges.start.shape}")
            bounds.append(bound)
        lower, upper = bounds
        if not ((lower >= 0) & (lower <= upper)).all():  # NaN too
            raise InputError("the bounds of the box are not in order", expected="0 <= lower <= upper for every edge")
        return lambda z: np.clip(z, lower, upper)


@dataclass(frozen=True)
class BudgetSimplex:
    """No more than a budget in all: {w >= 0, sum of w <= budget}.

    Parameters
    ----------
    budget : float
        For the mutable weights together; both directions of a pair count.
    """

    budget: float

    def projection(self, edges: Edges) -> Projection:
        if not 0 <= self.budget < np.inf:
            raise InputError(f"budget is {self.budget!r}", expected="a finite number, 0 or more")
        budget = np.array([self.budget / len(edges.positions)])
        one = np.zeros(len(edges.start), dtype=np.intp)

        def project(z: Floats) -> Floats:
            plain = np.maximum(z, 0.0)
            return plain if plain.sum() <= budget[0] else _onto_simplices(z, one, budget)

        return project


@dataclass(frozen=True)
class RowSimplex:
    """Each account listens as much as before, to others: {w >= 0, the mutable weights of a row sum to its total}.

    Parameters
    ----------
    totals : array-like of shape (n,), optional
        The total of each account's mutable weights; what they sum to now without.
    """

    totals: ArrayLike | None = None

    def projection(self, edges: Edges) -> Projection:
        ends = (edges.rows, edges.cols) if edges.paired else (edges.rows,)
        everyone = np.concatenate(ends)
        now = np.bincount(everyone, weights=np.tile(edges.start, len(ends)), minlength=edges.n)
        totals = np.asarray(now if self.totals is None else self.totals, dtype=np.float64)
        if totals.shape != (edges.n,) or not (np.isfinite(totals) & (totals >= 0)).all():
            raise InputError(
                f"the totals have shape {totals.shape}",
                expected=f"one finite number per account, 0 or more: ({edges.n},)",
            )
        without = totals[np.setdiff1d(np.arange(edges.n), everyone)]
        if (without > 0).any():
            raise InputError(
                f"{int((without > 0).sum()):,} accounts have a total above 0 and no mutable edge",
                expected="a total of 0 where nothing can be changed",
            )
        if edges.paired:
            return _PairedTotals(edges, totals)
        return lambda z: _onto_simplices(z, edges.rows, totals)


@dataclass(frozen=True)
class FrobeniusBall:
    """Not far from the weights before: {w >= 0, ||w - w0|| <= radius ||w0||}, over the mutable weights.

    Parameters
    ----------
    radius : float
        0.2 lets the weights change by a fifth, in the Euclidean norm.
    """

    radius: float = 0.2

    def projection(self, edges: Edges) -> Projection:
        return self.within(edges, lambda z: np.maximum(z, 0.0))

    def within(self, edges: Edges, inner: Projection) -> Projection:
        """Return the projection onto the ball and another set that holds its centre.

        The nearest point is what the other projection makes of some point on the way from the centre to z: how far on
        the way is the multiplier of the ball, and found as a root.
        """
        if not 0 < self.radius < np.inf:
            raise InputError(f"radius is {self.radius!r}", expected="a number above 0")
        centre = edges.start
        radius = self.radius * float(np.linalg.norm(centre))
        if not radius > 0:
            raise InputError(
                "all mutable weights are 0, so a ball around them holds nothing else",
                expected="weights above 0",
                remedy="Use BudgetSimplex for edges that are new",
            )

        def project(z: Floats) -> Floats:
            def at(share: float) -> Floats:
                return inner(centre + share * (z - centre))

            def excess(share: float) -> float:
                return float(np.linalg.norm(at(share) - centre)) - radius

            far = radius / max(float(np.linalg.norm(z - centre)), radius)  # no projection lengthens the way
            while excess(far) <= _INSIDE * radius and far < 1.0:
                far = min(1.0, 2.0 * far)
            if excess(far) > _INSIDE * radius:
                far = brentq(excess, 0.0, far, xtol=1e-300, rtol=1e-14)
            off = at(far) - centre  # the last digits: back along the way to the centre, which both sets hold
            return centre + off * min(1.0, radius / max(float(np.linalg.norm(off)), radius))

        return project


@dataclass(frozen=True, init=False)
class Intersection:
    """Several sets at once.

    Parameters
    ----------
    *sets : constraints
    rounds : int
        Of Dykstra's algorithm, at most. One set beside a ball around feasible weights needs none: see `FrobeniusBall`.

    Warns
    -----
    ConvergenceWarning
        When the rounds do not suffice; the point is then not the nearest, and may not be in all sets.
    """

    sets: tuple[Constraint, ...]
    rounds: int

    def __init__(self, *sets: Constraint, rounds: int = 1000) -> None:
        if not sets or rounds < 1:
            raise InputError(f"{len(sets)} sets and {rounds} rounds were given", expected="one of each at least")
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "rounds", rounds)

    def projection(self, edges: Edges) -> Projection:
        balls = [part for part in self.sets if isinstance(part, FrobeniusBall)]
        others = [part.projection(edges) for part in self.sets if not isinstance(part, FrobeniusBall)]
        if len(balls) == 1 and others:
            inner = others[0] if len(others) == 1 else _dykstra(others, self.rounds)
            if np.linalg.norm(inner(edges.start) - edges.start) <= _INSIDE * np.linalg.norm(edges.start):
                return balls[0].within(edges, inner)
        every = [part.projection(edges) for part in self.sets]
        return every[0] if len(every) == 1 else _dykstra(every, self.rounds)


@dataclass(frozen=True)
class ConvexSet:
    """Any convex set that CVXPY can describe, with w >= 0. Needs the package cvxpy, which no extra installs.

    Parameters
    ----------
    build : callable
        From a ``cvxpy.Variable`` of shape (m,) to a list of CVXPY constraints.
    """

    build: Callable[[Any], list[Any]]

    def projection(self, edges: Edges) -> Projection:
        try:
            cvxpy = import_module("cvxpy")
        except ModuleNotFoundError as error:
            raise InputError(
                "a ConvexSet needs the package cvxpy",
                remedy="pip install cvxpy; or use Box, BudgetSimplex, RowSimplex, FrobeniusBall and Intersection",
            ) from error
        w, z = cvxpy.Variable(len(edges.start), nonneg=True), cvxpy.Parameter(len(edges.start))
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w - z)), self.build(w))

        def project(point: Floats) -> Floats:
            z.value = point
            problem.solve()
            if w.value is None:
                raise InputError(
                    f"the convex set has no nearest point: {problem.status}", expected="a set with a point"
                )
            return np.maximum(np.asarray(w.value, dtype=np.float64), 0.0)

        return project


def least_linear(project: Projection, centre: Floats, slope: Floats) -> Floats:
    """Return where a linear function is least in a set: the projection of a point far down its slope."""
    far = _FAR * (1.0 + float(np.linalg.norm(centre))) / float(np.linalg.norm(slope))
    return project(centre - far * slope)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _onto_simplices(z: Floats, group: NDArray[Any], totals: Floats) -> Floats:
    """Return the nearest w >= 0 whose sum over each group is its total (Michelot's finite algorithm, all at once)."""
    n = len(totals)
    positive = totals[group] > 0
    left = np.flatnonzero(positive)
    while True:
        where = group[left]
        size = np.bincount(where, minlength=n)
        shift = (np.bincount(where, weights=z[left], minlength=n) - totals) / np.maximum(size, 1)
        keep = z[left] > shift[where]
        if keep.all():
            break
        left = left[keep]
    nearest = np.zeros(len(z))
    nearest[left] = z[left] - shift[group[left]]
    return nearest


class _PairedTotals:
    """The nearest weights of pairs, none below 0, that keep a total for each account: Newton's method on the dual.

    The nearest point is max(0, z - B^T u), where B sums over the pairs of each account, and u is where the convex dual
    function has its minimum; its generalised Hessian is as sparse as the network.
    """

    def __init__(self, edges: Edges, totals: Floats) -> None:
        m, everyone = len(edges.start), np.concatenate([edges.rows, edges.cols])
        self._used = np.unique(everyone)
        at = np.searchsorted(self._used, everyone)
        self._sums = sparse.csr_array((np.ones(2 * m), (at, np.tile(np.arange(m), 2))), shape=(len(self._used), m))
        self._back = sparse.csr_array(self._sums.T)
        self._totals = totals[self._used]
        self._last = np.zeros(len(self._used))
        self._free = np.zeros(m, dtype=bool)
        self._solve: Projection = lambda excess: excess

    def __call__(self, z: Floats) -> Floats:
        u = self._last
        enough = _EXACT * (1.0 + float(np.abs(self._totals).max()) + float(np.abs(z).max()))
        nearest: Floats = np.maximum(z - self._back @ u, 0.0)
        for _ in range(_NEWTON):
            excess = self._sums @ nearest - self._totals
            if np.abs(excess).max() <= enough:
                break
            self._factorise(nearest > 0)
            u, nearest = self._descend(z, u, self._solve(excess), excess)
        excess = self._sums @ nearest - self._totals
        if np.abs(excess).max() > 1e3 * enough:
            raise InputError(
                "no weights keep the total of every account", expected="totals that the mutable pairs can add up to"
            )
        self._last = u
        return nearest

    def _factorise(self, free: NDArray[np.bool_]) -> None:
        if not np.array_equal(free, self._free):
            kept = sparse.csr_array(self._sums[:, free])
            hessian = kept @ kept.T + _RIDGE * sparse.eye_array(len(self._used))
            self._free, self._solve = free, splu(sparse.csc_matrix(hessian)).solve

    def _descend(self, z: Floats, u: Floats, step: Floats, excess: Floats) -> tuple[Floats, Floats]:
        """Return where the dual function 1/2 |max(0, z - B^T u)|^2 + totals u is lower along the step."""

        def dual(v: Floats, x: Floats) -> float:
            return 0.5 * float(x @ x) + float(self._totals @ v)

        before = dual(u, np.maximum(z - self._back @ u, 0.0))
        slope = float(excess @ step)
        share = 1.0
        while True:
            v = u + share * step
            x = np.maximum(z - self._back @ v, 0.0)
            if dual(v, x) <= before - 1e-4 * share * slope + 1e-14 * (1.0 + abs(before)) or share < 1e-8:
                return np.asarray(v), np.asarray(x)
            share /= 2.0


def _dykstra(parts: list[Projection], rounds: int) -> Projection:
    def project(z: Floats) -> Floats:
        x, memory = z, [np.zeros(len(z)) for _ in parts]
        enough = _EXACT * (1.0 + float(np.linalg.norm(z)))
        for _ in range(rounds):
            change = 0.0  # of what is remembered: the point itself can stand still for many rounds, and then move on
            for k, part in enumerate(parts):
                moved = x + memory[k]
                x = part(moved)
                change += float(np.linalg.norm(moved - x - memory[k]))
                memory[k] = moved - x
            if change <= enough:
                return x
        warnings.warn(
            f"the nearest point of an intersection was not found in {rounds:,} rounds; give it more (rounds=)",
            ConvergenceWarning,
            stacklevel=2,
        )
        return x

    return project
