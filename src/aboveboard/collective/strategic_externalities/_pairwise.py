"""Games with an externality of the caller's own: proximal gradient steps, and a random test of what must hold.

Moves count in units of cost. The costs of one's own move are those of a `Crowd` without coupling; the externality
comes on top, for every pair.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from aboveboard.collective.strategic_externalities._crowd import Crowd
from aboveboard.collective.strategic_externalities._replies import Floats, Paths, Replies
from aboveboard.core import InputError

if TYPE_CHECKING:
    from aboveboard.collective.strategic_externalities._game import Equilibrium

__all__ = ["PairTerm", "PairwiseGame"]

_STILL = 1e-8
_STEEPEST = 1e12
_MOST_STEPS = 5_000
_REPLY_STEPS = 500
_DRAWS = 32
_STEP = 1e-5
Smooth = Callable[[Floats], tuple[float, Floats]]


class PairTerm(Protocol):
    """What applicant i loses by j: values of shape (...) and their gradient by `r_i`, of shape (..., d)."""

    def __call__(self, x_i: Floats, r_i: Floats, x_j: Floats, r_j: Floats) -> tuple[Any, Any]: ...


@dataclass(frozen=True)
class PairwiseGame:
    """Games (..., n, d) with the externality `term`.

    Parameters
    ----------
    X : ndarray of shape (..., n, d)
    crowd : Crowd
        Without coupling.
    term : callable
    scale : ndarray of shape (d,)
        Units of cost per unit of X.
    limits : (low, high), ndarrays of shape (d,)
    """

    X: Floats
    crowd: Crowd
    term: PairTerm
    scale: Floats
    limits: tuple[Floats, Floats]

    def equilibrium(self, intercept: float) -> "Equilibrium":
        """Return the equilibrium of each game, after the externality has passed a random test."""
        from aboveboard.collective.strategic_externalities._game import Equilibrium

        single = list(self._games())
        if single:
            single[0]._refuse_unfit()
        solved = [game._settled() for game in single]
        moves = np.concatenate([found[0] for found in solved])
        shape = self.X.shape
        coef = self.crowd.pull[0] * self.scale
        score = self.X.reshape(-1, *shape[-2:]).sum(axis=1) @ coef + shape[-2] * intercept
        low, high = self.limits
        potential = [game.potential(found[0]) for game, found in zip(single, solved, strict=True)]
        return Equilibrium(
            X_reported=np.clip(self.X.reshape(moves.shape) + moves / self.scale, low, high).reshape(shape),
            displacement=np.linalg.norm(moves, axis=1).reshape(shape[:-1]),
            nash_gap=np.array([found[1] for found in solved]).reshape(shape[:-2]),
            potential=(np.array(potential) + score).reshape(shape[:-2]),
            n_iter=max((found[2] for found in solved), default=0),
            unverified_symmetry=True,
        )

    def replies(self, moves: Floats) -> tuple[Floats, Floats]:
        """Return each one's best report to the others' moves, shape (games * n, d), and what it gains, (games * n,)."""
        reports, gains = [], []
        for game, own in zip(self._games(), self._split(moves), strict=True):
            best, gain = game._best(own)
            reports.append(np.clip(game.X + best / self.scale, *self.limits))
            gains.append(gain)
        return np.concatenate(reports), np.concatenate(gains)

    def nash_gap(self, moves: Floats) -> Floats:
        return np.asarray(self.replies(moves)[1].reshape(*self.X.shape[:-1]).max(axis=-1))

    def potential(self, moves: Floats) -> Floats:
        """Return gains from moving less all costs, each pair counted once."""
        totals = [
            -game._costs(own)[0] + float((game.crowd.pull * own).sum() - game.crowd.linear @ _length(own))
            for game, own in zip(self._games(), self._split(moves), strict=True)
        ]
        return np.array(totals).reshape(self.X.shape[:-2])

    def pulled_back(self, moves: Floats, weight: Floats) -> Floats:
        """Return the gradient of ``(weight * moves).sum()`` by the pull, summed over all applicants, shape (d,).

        The implicit function theorem; conjugate gradients on the features that are free, with Hessian times vector by
        central differences of the externality's gradient.
        """
        parts = zip(self._games(), self._split(moves), self._split(weight), strict=True)
        return np.asarray(np.sum([game._pulled_back(own, w) for game, own, w in parts], axis=0))

    # --- one game ---------------------------------------------------------------------------------------------------

    def _games(self) -> Any:
        shape = self.X.shape
        each = replace(self.crowd, n=shape[-2])
        for k, rows in enumerate(self.X.reshape(-1, *shape[-2:])):
            at = slice(k * shape[-2], (k + 1) * shape[-2])
            own = {name: getattr(each, name)[at] for name in ("below", "above", "linear", "curvature")}
            yield replace(self, X=rows, crowd=replace(each, **own))

    def _split(self, moves: Floats) -> Floats:
        return moves.reshape(-1, *self.X.shape[-2:])

    def _pairs(self, moves: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Return the externality of each ordered pair, (n, n), and its gradient by the first one's move, (n, n, d)."""
        X = self.X
        own, theirs = X + moves / self.scale, X + others / self.scale
        every = np.broadcast_to
        shape = (len(X), *X.shape)
        arguments = (every(X[:, None], shape), every(own[:, None], shape), every(X, shape), every(theirs, shape))
        value, gradient = self.term(*arguments)
        value, gradient = np.asarray(value, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
        if value.shape != shape[:2] or gradient.shape != shape:
            raise InputError(
                f"the externality gave shapes {value.shape} and {gradient.shape}", expected=f"{shape[:2]} and {shape}"
            )
        pair = ~np.eye(len(X), dtype=bool)
        return np.where(pair, value, 0.0), np.where(pair[:, :, None], gradient, 0.0) / self.scale

    def _costs(self, moves: Floats) -> tuple[float, Floats]:
        """Return the smooth costs of all, each pair once, and their gradient by the moves."""
        value, gradient = self._pairs(moves, moves)
        curvature = self.crowd.curvature
        total = value.sum() / 2 + (curvature * _length(moves) ** 2).sum() / 2
        return float(total), gradient.sum(axis=1) + curvature[:, None] * moves

    def _settled(self) -> tuple[Floats, float, int]:
        """Return the moves in equilibrium, the Nash gap, and the number of steps."""

        def smooth(moves: Floats) -> tuple[float, Floats]:
            value, gradient = self._costs(moves)
            return value - float((self.crowd.pull * moves).sum()), gradient - self.crowd.pull

        moves, steps = self._minimised(smooth, np.zeros(self.X.shape), _MOST_STEPS)
        left = float(self._best(moves)[1].max())
        if left > 1e-5:
            warnings.warn(
                f"an applicant still gains {left:.1e} after {steps:,} steps: the externality may not be convex",
                ConvergenceWarning,
                stacklevel=4,
            )
        return moves, left, steps

    def _best(self, moves: Floats) -> tuple[Floats, Floats]:
        """Return each one's best move while the others keep theirs, and what it gains."""

        def each(own: Floats) -> tuple[Floats, Floats]:
            value, gradient = self._pairs(own, moves)
            curvature = self.crowd.curvature
            cost = value.sum(axis=1) + curvature * _length(own) ** 2 / 2 - (self.crowd.pull * own).sum(axis=1)
            return cost, gradient.sum(axis=1) + curvature[:, None] * own - self.crowd.pull

        def smooth(own: Floats) -> tuple[float, Floats]:
            cost, gradient = each(own)
            return float(cost.sum()), gradient

        best, _ = self._minimised(smooth, moves, _REPLY_STEPS)
        linear = self.crowd.linear
        before, after = (each(own)[0] + linear * _length(own) for own in (moves, best))
        return np.where((after < before)[:, None], best, moves), np.maximum(before - after, 0.0)

    def _minimised(self, smooth: Smooth, start: Floats, most: int) -> tuple[Floats, int]:
        """Minimise `smooth` plus the linear costs within the bounds: accelerated, with restarts and line search."""
        moves, ahead, momentum, steepness = start, start, 1.0, 1.0
        small = _STILL * (1.0 + float(np.abs(self.crowd.pull).max()))
        step = 0
        while True:
            step += 1
            value, gradient = smooth(ahead)
            while True:
                following = self._shrunk(ahead - gradient / steepness, steepness)
                change = following - ahead
                bound = value + float((gradient * change).sum()) + steepness / 2 * float((change**2).sum())
                if smooth(following)[0] <= bound + 1e-13 * (1.0 + abs(value)) or steepness > _STEEPEST:
                    break
                steepness *= 2.0
            if float(((ahead - following) * (following - moves)).sum()) > 0:
                momentum = 1.0
            grown = (1.0 + float(np.sqrt(1.0 + 4.0 * momentum**2))) / 2.0
            ahead = following + (momentum - 1.0) / grown * (following - moves)
            moves, momentum = following, grown
            if step == most or steepness * float(np.abs(change).max()) <= small:
                return moves, step

    def _shrunk(self, wanted: Floats, steepness: float) -> Floats:
        """Return the moves closest to those wanted, for linear costs and within the bounds."""
        crowd = self.crowd
        paths = Paths.of(steepness * wanted, crowd.below, crowd.above)
        lam, _, _ = Replies.of(paths, np.full(len(wanted), steepness)).at(crowd.linear)
        return paths.moves(lam)

    def _pulled_back(self, moves: Floats, weight: Floats) -> Floats:
        length = _length(moves)
        movable = (self.crowd.below > 0) | (self.crowd.above > 0)
        low, high = self.limits
        reported = np.clip(self.X + moves / self.scale, low, high)
        pull = np.broadcast_to(self.crowd.pull, moves.shape)
        at_bound = ((reported >= high) & (pull > 0)) | ((reported <= low) & (pull < 0))
        stays = (length == 0) & (self.crowd.linear > 0)
        free = movable & ~at_bound & ~stays[:, None]
        index = np.flatnonzero(free)
        if not len(index):
            return np.zeros(moves.shape[1])

        def gradient(at: Floats) -> Floats:
            r = _length(at)[:, None]
            kink = np.divide(self.crowd.linear[:, None] * at, r, out=np.zeros(at.shape), where=r > 0)
            return self._costs(at)[1] + kink

        def times(vector: Floats) -> Floats:
            direction = np.zeros(moves.size)
            direction[index] = np.ravel(vector)
            size = float(np.linalg.norm(direction))
            if size == 0:
                return np.zeros(len(index))
            step = _STEP / size * direction.reshape(moves.shape)
            slope = (gradient(moves + step) - gradient(moves - step)) * (size / (2 * _STEP))
            return slope.reshape(-1)[index]

        operator = LinearOperator((len(index), len(index)), matvec=times, dtype=np.float64)
        solution, _ = cg(operator, weight.reshape(-1)[index], rtol=1e-8, maxiter=10 * len(index))
        by_pull = np.zeros(moves.size)
        by_pull[index] = solution
        return np.asarray(by_pull.reshape(moves.shape).sum(axis=0))

    def _refuse_unfit(self) -> None:
        """Test on random draws that the externality is symmetric, has its gradient, and keeps the costs convex."""
        rng = np.random.default_rng(0)
        for _ in range(_DRAWS):
            one, other = (self._drawn(rng) for _ in range(2))
            value, gradient = self._pairs(one, one)
            if not np.allclose(value, value.T, rtol=1e-8, atol=1e-10):
                raise InputError(
                    "the externality is not symmetric: what i loses by j is not what j loses by i",
                    expected="t(x_i, r_i, x_j, r_j) == t(x_j, r_j, x_i, r_i), or the game has no potential",
                )
            step = _STEP * rng.normal(size=one.shape)
            slope = (self._pairs(one + step, one)[0] - self._pairs(one - step, one)[0]) / 2
            claimed = np.einsum("ijk,ik->ij", gradient, step)
            if not np.allclose(slope, claimed, rtol=1e-3, atol=1e-8):
                raise InputError("the externality's gradient is not that of its values", expected="its gradient by r_i")
            ends = [self._costs(at)[0] + self.crowd.linear @ _length(at) for at in (one, other, (one + other) / 2)]
            if ends[2] > (ends[0] + ends[1]) / 2 + 1e-9 * (1.0 + abs(ends[0]) + abs(ends[1])):
                raise InputError(
                    "costs and externality together are not convex",
                    expected="a convex sum, or there may be several equilibria",
                )

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Return random moves within the bounds."""
        crowd = self.crowd
        size = np.minimum(np.where(rng.random(self.X.shape) < 0.5, crowd.below, crowd.above), rng.exponential())
        low, high = np.minimum(crowd.below, size), np.minimum(crowd.above, size)
        return rng.uniform(-low, high)


def _length(moves: Floats) -> Floats:
    length: Floats = np.sqrt(np.einsum("ij,ij->i", moves, moves))
    return length
