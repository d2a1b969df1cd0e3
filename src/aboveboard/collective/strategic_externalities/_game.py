"""The game: applicants who polish their features at once, and make it dearer for each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.strategic_externalities._crowd import Crowd
from aboveboard.collective.strategic_externalities._pairwise import PairTerm, PairwiseGame
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.core import InputError

__all__ = ["Equilibrium", "ManipulationGame"]

_COSTS: Final = ("l2", "squared_l2")
_EXTERNALITIES: Final = ("congestion", "proportional")


@dataclass(frozen=True)
class Equilibrium:
    """What applicants report when none gains by another report.

    Attributes
    ----------
    X_reported : ndarray of shape (..., n, d)
    displacement : ndarray of shape (..., n)
        How far each applicant moved, in the units of `ManipulationGame.cost_weights`; exactly 0 for whoever stayed.
    nash_gap : ndarray of shape (...)
        The most that any applicant of a game still gains by a report of his own, found by his exact best reply.
    potential : ndarray of shape (...)
        What the equilibrium maximises.
    n_iter : int
    unverified_symmetry : bool
        Whether the externality is the caller's own function, of which only random draws were tested.
    """

    X_reported: Floats
    displacement: Floats
    nash_gap: Floats
    potential: Floats
    n_iter: int
    unverified_symmetry: bool = False


@dataclass(frozen=True, kw_only=True)
class ManipulationGame:
    """Applicants who know a linear score w x + b and raise theirs at a cost, all at once.

    Applicant i reports x'_i instead of x_i, moves by the distance d_i, and gets

        gain (w x'_i + b) - c(d_i) - sum over all others j of t(d_i, d_j).

    Parameters
    ----------
    cost : {"l2", "squared_l2"}
        ``c = alpha d`` or ``c = alpha d^2``.
    alpha : float above 0
    externality : {"congestion", "proportional"}, None or callable
        ``t = beta (d_i + d_j)^2``: polishing by anybody is dear for everybody; ``t = beta d_i d_j``: only for those who
        polish too; None: nobody is in anybody's way. A callable ``t(x_i, r_i, x_j, r_j)`` gets the true and the
        reported features of both, arrays of shape (..., d), and returns its values (...) and their gradient by ``r_i``
        (..., d). It must be symmetric in i and j, and convex together with the costs.
    beta : float at or above 0
        Not used with None or a callable.
    gain : float above 0
        What one unit of score is worth.
    bounds : (low, high), optional
        The reports that are allowed: numbers, or one per feature.
    cost_weights : array-like of shape (d,), optional
        The distance is ``sqrt(sum_k (cost_weights_k (x'_k - x_k))^2)``: 1 / standard deviation makes moves count in
        standard deviations.
    manipulable : array-like of bool, shape (d,), optional
        The features that can be moved; default all.

    Raises
    ------
    InputError
        For values out of range. `equilibrium` also refuses games without a single equilibrium: ``"l2"`` with
        congestion of two applicants, ``"proportional"`` unless the cost is ``"squared_l2"`` and 2 alpha exceeds beta.

    Guarantee
    ---------
    The game has an exact potential: what all gain, less all costs, each pair counted once. Where `is_unique`, this is
    strictly concave, its maximum is the only Nash equilibrium, and it is found up to rounding. Everybody knows the
    score, the costs and all features; nobody can be asked whether he does.

    Notes
    -----
    Costs depend on distances alone, so that every best reply lies on one path: all features grow in proportion to the
    score's weights, each until it meets its bound. An equilibrium is then one length per applicant, and these are tied
    by their sum alone: one root per game, by Newton steps. O(n d log d) time and memory for a game, all games in one
    batch. With a callable: accelerated proximal gradient steps, O(n^2 d) each.

    References
    ----------
    S. Hossain, E. Micha, Y. Chen, A. Procaccia, "Strategic Classification with Externalities", ICLR 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import ManipulationGame
    >>> game = ManipulationGame(cost="squared_l2", alpha=0.5, externality="congestion", beta=0.1)
    >>> found = game.equilibrium(np.zeros((4, 2)), coef=[3.0, 4.0])
    >>> found.displacement.round(6).tolist()  # 5 / (2 alpha + 4 beta (n - 1))
    [2.272727, 2.272727, 2.272727, 2.272727]
    >>> float(found.nash_gap) < 1e-9
    True
    """

    cost: Literal["l2", "squared_l2"] = "l2"
    alpha: float = 0.3
    externality: Literal["congestion", "proportional"] | PairTerm | None = "congestion"
    beta: float = 0.15
    gain: float = 1.0
    bounds: tuple[Any, Any] | None = None
    cost_weights: Sequence[float] | None = None
    manipulable: Sequence[bool] | None = None

    def __post_init__(self) -> None:
        if self.cost not in _COSTS:
            raise InputError(f"cost is {self.cost!r}", expected="'l2' or 'squared_l2'")
        if not (self.externality is None or callable(self.externality) or self.externality in _EXTERNALITIES):
            raise InputError(
                f"externality is {self.externality!r}", expected="'congestion', 'proportional', None or a function"
            )
        for name, low, expected in (
            ("alpha", False, "above 0"),
            ("gain", False, "above 0"),
            ("beta", True, "0 or more"),
        ):
            value = getattr(self, name)
            if not _is_number(value) or not (value > 0 or (low and value == 0)):
                raise InputError(f"{name} is {value!r}", expected=f"a finite number, {expected}")
        object.__setattr__(self, "bounds", _plain_bounds(self.bounds))
        object.__setattr__(self, "cost_weights", _plain_weights(self.cost_weights))
        object.__setattr__(self, "manipulable", _plain_mask(self.manipulable))

    def is_unique(self, n: int) -> tuple[bool, str]:
        """Return whether n applicants have a single equilibrium whatever the score, and why."""
        if callable(self.externality):
            return False, "the externality is a function of your own: only random draws of it can be tested"
        _, curvature, coupling = self._terms(n)
        if curvature > coupling:
            return True, "the potential is strictly concave"
        if coupling == 0:
            return (
                self._bounded,
                "each applicant decides alone, and the best move is single unless the score's pull on the features "
                "that are left equals alpha exactly"
                if self._bounded
                else "costs grow no faster than gains, so that without bounds a steep score has no equilibrium",
            )
        if self.externality == "congestion":
            return False, "two applicants with costs in proportion to the distance can share out their moves at will"
        return False, "what applicants lose by each other's moves outweighs their own costs: 2 alpha must exceed beta"

    def strong_convexity(self, n: int) -> float:
        """Return mu: the costs of n applicants together, less ``mu / 2`` times their squared moves, are still convex.

        0 where they are not strictly convex. In units of X, with the smallest of the cost weights.
        """
        if callable(self.externality):
            raise InputError(
                "the externality is a function of your own", expected="'congestion', 'proportional' or None"
            )
        _, curvature, coupling = self._terms(n)
        weights = np.ones(1) if self.cost_weights is None else np.asarray(self.cost_weights)
        if self.manipulable is not None and len(weights) > 1:
            weights = weights[np.asarray(self.manipulable)]
        return max(curvature - coupling, 0.0) * float(np.min(weights, initial=np.inf)) ** 2

    def lipschitz(self, n: int) -> float:
        """Return L with ``||X'(w) - X'(v)|| <= L ||w - v||`` for the equilibria of n applicants (Frobenius norm).

        ``gain sqrt(n) / mu``; infinite where the costs are not strictly convex.
        """
        mu = self.strong_convexity(n)
        return self.gain * float(np.sqrt(n)) / mu if mu > 0 else float("inf")

    def equilibrium(
        self, X: ArrayLike, coef: ArrayLike, intercept: float = 0.0, *, cost_factor: ArrayLike | None = None
    ) -> Equilibrium:
        """Return what applicants report.

        Parameters
        ----------
        X : array-like of shape (..., n, d)
            True features of the n applicants of a game; the leading axes count games, which are solved in one batch.
        coef : array-like of shape (d,)
        intercept : float
            Of the score; it changes the potential only.
        cost_factor : array-like of shape (..., n), optional
            Above 0: what each applicant pays, in multiples of `alpha`.

        Returns
        -------
        Equilibrium

        Raises
        ------
        InputError
            For values that are not finite, features outside the bounds, or a game without a single equilibrium.

        Notes
        -----
        O(games n d log d). 100,000 games of 8 applicants with 5 features take about a second.
        """
        X, w = self._read(X, coef)
        shape, n = X.shape, X.shape[-2]
        factor = _factors(cost_factor, shape[:-1])
        if callable(self.externality):
            return self._pairwise(X, w, factor).equilibrium(float(intercept))
        crowd, moves, stopped, steps = self._solved(X, w, factor)
        gap = np.concatenate([part.nash_gap(moves[at]) for at, part in crowd.parts()])
        score = X.reshape(-1, n, shape[-1]).sum(axis=1) @ w + n * float(intercept)
        return Equilibrium(
            X_reported=self._reported(X.reshape(moves.shape), moves, stopped).reshape(shape),
            displacement=np.linalg.norm(moves, axis=1).reshape(shape[:-1]),
            nash_gap=gap.reshape(shape[:-2]),
            potential=(crowd.potential(moves) + self.gain * score).reshape(shape[:-2]),
            n_iter=steps,
        )

    def best_response(
        self, X: ArrayLike, X_reported: ArrayLike, coef: ArrayLike, i: int, *, cost_factor: ArrayLike | None = None
    ) -> Floats:
        """Return the best report of applicant `i` of one game to the reports of the others, shape (d,).

        Parameters as in `equilibrium`; `X` and `X_reported` have shape (n, d). O(n d) for all applicants.
        """
        X, w, moves, factor = self._profile(X, X_reported, coef, cost_factor)
        if X.ndim != 2 or not 0 <= i < len(X):
            raise InputError(f"applicant {i!r} of an array of shape {X.shape}", expected="a row of one game")
        if callable(self.externality):
            reports = self._pairwise(X, w, factor).replies(moves)[0]
        else:
            best = self._crowd(X, w, factor).replies(moves)[0]
            reports = self._reported(X, best, np.zeros(best.shape, dtype=bool))
        return np.asarray(reports[i])

    def nash_gap(
        self, X: ArrayLike, X_reported: ArrayLike, coef: ArrayLike, *, cost_factor: ArrayLike | None = None
    ) -> Floats:
        """Return the most that any applicant gains by another report, for any reports: shape (...) as in `equilibrium`.

        0 in equilibrium and nowhere else. Where the best report is infinitely far, it is infinite.
        """
        X, w, moves, factor = self._profile(X, X_reported, coef, cost_factor)
        if callable(self.externality):
            return self._pairwise(X, w, factor).nash_gap(moves)
        crowd = self._crowd(X, w, factor)
        gaps = [part.nash_gap(moves[at]) for at, part in crowd.parts()]
        return np.concatenate(gaps).reshape(X.shape[:-2])

    def potential(
        self,
        X: ArrayLike,
        X_reported: ArrayLike,
        coef: ArrayLike,
        intercept: float = 0.0,
        *,
        cost_factor: ArrayLike | None = None,
    ) -> Floats:
        """Return the potential of any reports, shape (...): all gains, less all costs, each pair counted once.

        When one applicant changes his report, it changes by what he gains.
        """
        X, w, moves, factor = self._profile(X, X_reported, coef, cost_factor)
        score = X.sum(axis=-2) @ w + X.shape[-2] * float(intercept)
        game = self._pairwise(X, w, factor) if callable(self.externality) else self._crowd(X, w, factor)
        return np.asarray(game.potential(moves).reshape(X.shape[:-2]) + self.gain * score)

    # --- used by the learner, the layer and the audit -----------------------------------------------------------------

    def _reports(self, X: Floats, coef: Floats) -> Floats:
        """Return what `equilibrium` reports, without its Nash gap, for arrays that were checked."""
        factor = np.ones(X.shape[:-1])
        if callable(self.externality):
            return self._pairwise(X, coef, factor).equilibrium(0.0).X_reported
        _, moves, stopped, _ = self._solved(X, coef, factor)
        return self._reported(X.reshape(moves.shape), moves, stopped).reshape(X.shape)

    def _pulled_back(
        self, X: Floats, X_reported: Floats, coef: Floats, weight: Floats, *, for_X: bool = True
    ) -> tuple[Floats | None, Floats]:
        """Return the gradients of ``(weight * X_reported).sum()`` by X and by the coefficients, in equilibrium."""
        d = X.shape[-1]
        scale, movable = self._scale(d), self._movable(d)
        if callable(self.externality):
            if for_X:
                raise InputError(
                    "the gradient by the features was asked for, and the externality is a function of your own",
                    expected="'congestion', 'proportional' or None",
                )
            pairwise = self._pairwise(X, coef, np.ones(X.shape[:-1]))
            return None, pairwise.pulled_back((X_reported - X) * scale, weight / scale) * self.gain / scale
        crowd = self._crowd(X, coef, np.ones(X.shape[:-1]))
        low, high = self._limits(d)
        rows, reported, weight = X.reshape(-1, d), X_reported.reshape(-1, d), weight.reshape(-1, d)
        moves = (reported - rows) * scale
        at_bound = ((reported >= high) & (crowd.pull > 0)) | ((reported <= low) & (crowd.pull < 0))
        stopped = at_bound & (moves != 0).any(axis=1, keepdims=True)
        by_pull, by_move = np.empty(moves.shape), np.empty(moves.shape)
        for at, part in crowd.parts():
            by_pull[at], by_move[at] = part.pulled_back(moves[at], stopped[at], weight[at] / scale)
        by_coef = np.where(movable, self.gain / scale * by_pull.sum(axis=0), 0.0)
        by_X = weight - np.where(stopped, scale * by_move, 0.0)
        return by_X.reshape(X.shape), by_coef

    # --- the game in numbers ------------------------------------------------------------------------------------------

    @property
    def _bounded(self) -> bool:
        return self.bounds is not None and bool(np.isfinite(np.concatenate([*map(np.atleast_1d, self.bounds)])).all())

    def _terms(self, n: int) -> tuple[float, float, float]:
        """Return the linear and the quadratic cost of one's own move, and the coupling; see `Crowd`."""
        if not (isinstance(n, int | np.integer) and n >= 1):
            raise InputError(f"n is {n!r}", expected="a number of applicants, 1 or more")
        linear, curvature = (self.alpha, 0.0) if self.cost == "l2" else (0.0, 2 * self.alpha)
        if n == 1 or self.externality is None or callable(self.externality):
            return linear, curvature, 0.0
        if self.externality == "congestion":
            return linear, curvature + 2 * self.beta * (n - 1), 2 * self.beta
        return linear, curvature, self.beta

    def _solved(self, X: Floats, w: Floats, factor: Floats) -> tuple[Crowd, Floats, NDArray[np.bool_], int]:
        """Return the games, the moves in equilibrium, which features were stopped by a bound, and the steps taken."""
        self._refuse_many_equilibria(X.shape[-2], factor)
        crowd = self._crowd(X, w, factor)
        moves, stopped, steps = np.empty(crowd.below.shape), np.empty(crowd.below.shape, dtype=bool), 0
        for at, part in crowd.parts():
            moves[at], stopped[at], taken = part.equilibrium()
            steps = max(steps, taken)
        if not np.isfinite(moves).all():
            raise InputError(
                "nothing stops an applicant from moving ever further: costs in proportion to the distance grow no "
                "faster than the score",
                expected="bounds, a larger alpha, or cost='squared_l2'",
            )
        return crowd, moves, stopped, steps

    def _refuse_many_equilibria(self, n: int, factor: Floats) -> None:
        _, curvature, coupling = self._terms(n)
        own = 2 * self.alpha if self.cost == "squared_l2" else 0.0
        if coupling > 0 and curvature - own + own * factor.min(initial=np.inf) <= coupling:
            raise InputError(
                f"the game of {n} applicants has no single equilibrium: {self.is_unique(n)[1]}",
                expected="three applicants or more, or cost='squared_l2'"
                if self.externality == "congestion"
                else "cost='squared_l2' and beta below 2 alpha (times the smallest cost factor)",
            )

    def _crowd(self, X: Floats, w: Floats, factor: Floats) -> Crowd:
        n, d = X.shape[-2:]
        rows, scale = X.reshape(-1, d), self._scale(d)
        low, high = self._limits(d)
        movable = self._movable(d)
        linear, curvature, coupling = self._terms(n)
        own = 2 * self.alpha if self.cost == "squared_l2" else 0.0
        each = factor.reshape(-1)
        return Crowd(
            pull=np.where(movable, self.gain * w / scale, 0.0)[None, :],
            below=np.where(movable, (rows - low) * scale, 0.0),
            above=np.where(movable, (high - rows) * scale, 0.0),
            linear=linear * each,
            curvature=curvature - own + own * each,
            coupling=coupling,
            n=n,
        )

    def _pairwise(self, X: Floats, w: Floats, factor: Floats) -> PairwiseGame:
        assert callable(self.externality)
        return PairwiseGame(
            X, self._crowd(X, w, factor), self.externality, self._scale(X.shape[-1]), self._limits(X.shape[-1])
        )

    def _reported(self, rows: Floats, moves: Floats, stopped: NDArray[np.bool_]) -> Floats:
        """Return what is reported after `moves` (in units of cost), on its bound exactly where one was met."""
        d = rows.shape[-1]
        low, high = self._limits(d)
        free = np.clip(rows + moves / self._scale(d), low, high)
        return np.where(stopped & (moves != 0), np.where(moves > 0, high, low), free)

    def _scale(self, d: int) -> Floats:
        return _per_feature(self.cost_weights, 1.0, d, "cost_weights")

    def _movable(self, d: int) -> NDArray[np.bool_]:
        return _per_feature(self.manipulable, 1.0, d, "manipulable").astype(bool)

    def _limits(self, d: int) -> tuple[Floats, Floats]:
        low, high = (-np.inf, np.inf) if self.bounds is None else self.bounds
        return _per_feature(low, -np.inf, d, "the lower bound"), _per_feature(high, np.inf, d, "the upper bound")

    def _read(self, X: ArrayLike, coef: ArrayLike) -> tuple[Floats, Floats]:
        rows = _finite(X, "X")
        if rows.ndim < 2 or 0 in rows.shape:
            raise InputError(f"X has shape {rows.shape}", expected="(n applicants, d features), or games of them")
        w = _finite(coef, "coef")
        if w.shape != rows.shape[-1:]:
            raise InputError(f"coef has shape {w.shape}", expected=f"({rows.shape[-1]},), one per feature of X")
        low, high = self._limits(rows.shape[-1])
        outside = ((rows < low) | (rows > high)) & self._movable(rows.shape[-1])
        if outside.any():
            feature = int(np.argwhere(outside)[0][-1])
            raise InputError(
                f"{int(outside.any(axis=-1).sum()):,} applicants lie outside the bounds, one in feature {feature}",
                expected="true features that are allowed reports",
                remedy="Widen the bounds, or clip X to them",
            )
        return rows, w

    def _profile(
        self, X: ArrayLike, X_reported: ArrayLike, coef: ArrayLike, cost_factor: ArrayLike | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        rows, w = self._read(X, coef)
        reported = _finite(X_reported, "X_reported")
        if reported.shape != rows.shape:
            raise InputError(f"X_reported has shape {reported.shape}", expected=f"{rows.shape}, as X")
        d = rows.shape[-1]
        low, high = self._limits(d)
        barred = (reported != rows) & ~(self._movable(d) & (reported >= low) & (reported <= high))
        if barred.any():
            feature = int(np.argwhere(barred)[0][-1])
            raise InputError(f"feature {feature} of X_reported lies outside the bounds, or was moved and cannot be")
        return rows, w, ((reported - rows) * self._scale(d)).reshape(-1, d), _factors(cost_factor, rows.shape[:-1])


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool) and np.isfinite(value)
    )


def _finite(values: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not made of numbers ({error})", expected="an array of numbers") from error
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {int((~np.isfinite(array)).sum()):,} values that are missing or infinite")
    return array


def _per_feature(values: Any, default: float, d: int, name: str) -> Floats:
    array = np.asarray(default if values is None else values, dtype=np.float64)
    if array.ndim and array.shape != (d,):
        raise InputError(f"{name} has {len(array)} values", expected=f"{d}, one per feature of X")
    return np.broadcast_to(array, (d,))


def _factors(cost_factor: ArrayLike | None, shape: tuple[int, ...]) -> Floats:
    if cost_factor is None:
        return np.ones(shape)
    factor = _finite(cost_factor, "cost_factor")
    if factor.shape != shape or not (factor > 0).all():
        raise InputError(f"cost_factor has shape {factor.shape}", expected=f"numbers above 0 of shape {shape}")
    return factor


def _plain_bounds(bounds: Any) -> tuple[Any, Any] | None:
    """Return bounds as two numbers or tuples of numbers, so that games can be compared and copied."""
    if bounds is None:
        return None
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in bounds)
    except (TypeError, ValueError) as error:
        raise InputError(f"bounds is {bounds!r}", expected="(low, high): numbers, or one per feature") from error
    if low.ndim > 1 or high.ndim > 1 or np.isnan(low).any() or np.isnan(high).any():
        raise InputError("bounds are no numbers or lists of numbers", expected="(low, high), one per feature at most")
    if low.ndim and high.ndim and low.shape != high.shape:
        raise InputError(f"{len(low)} lower and {len(high)} upper bounds", expected="as many of both")
    if not (low <= high).all():
        raise InputError("a lower bound lies above its upper bound")
    return _plain(low), _plain(high)


def _plain_weights(weights: Any) -> tuple[float, ...] | None:
    if weights is None:
        return None
    array = _finite(weights, "cost_weights")
    if array.ndim != 1 or not (array > 0).all():
        raise InputError("cost_weights are not all above 0", expected="a number above 0 per feature")
    return tuple(array.tolist())


def _plain_mask(mask: Any) -> tuple[bool, ...] | None:
    if mask is None:
        return None
    array = np.asarray(mask)
    if array.ndim != 1 or array.dtype != bool:
        raise InputError("manipulable is no list of true and false", expected="True or False per feature")
    return tuple(array.tolist())


def _plain(array: Floats) -> Any:
    return tuple(array.tolist()) if array.ndim else float(array)
