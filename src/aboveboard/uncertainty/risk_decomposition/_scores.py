"""Proper scores: the loss of each class given a prediction, and the prediction in the middle of many."""

from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = ["SCORES", "Loss", "ProperScore", "loss_of", "score_name"]

Floats = NDArray[np.float64]


@runtime_checkable
class ProperScore(Protocol):
    """A proper score of your own, given by a convex function of the probabilities.

    The loss of predicting ``q`` when class ``k`` occurs is ``-G(q) + <grad G(q), q - e_k>``; it is strictly proper
    where ``G`` is strictly convex. Two more attributes are used where an object has them: ``name`` (text), and
    ``central(members)``, which maps members of shape (M, n, K) to the (n, K) points ``argmin_z mean_m D_G(z || p_m)``;
    without it they are searched for numerically, row by row, at some milliseconds each.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import ProperScore, pointwise_risk
    >>> class Cubic:
    ...     name = "cubic"
    ...     def G(self, p):
    ...         return (p**3).sum(axis=-1)
    ...     def grad(self, p):
    ...         return 3 * p**2
    >>> isinstance(Cubic(), ProperScore)
    True
    >>> members = np.array([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> round(float(pointwise_risk(members, score=Cubic())[0]), 4)
    0.12
    """

    def G(self, p: Floats) -> Floats:  # noqa: N802 - the letter of the literature
        """Return the convex function, shape (...), of probabilities of shape (..., K)."""

    def grad(self, p: Floats) -> Floats:
        """Return its gradient (or a subgradient), shape (..., K)."""


class Loss(Protocol):
    """What the decomposition needs of a score."""

    floor: bool
    """Whether probabilities of zero must be raised first."""

    def losses(self, q: Floats) -> Floats:
        """Return the loss of each class, shape (..., K), of predictions of shape (..., K)."""

    def central(self, members: Floats) -> Floats:
        """Return ``argmin_z mean_m D(z || p_m)``, shape (n, K), of members of shape (M, n, K)."""


class _Log:
    floor = True

    def losses(self, q: Floats) -> Floats:
        return np.asarray(-np.log(q))

    def central(self, members: Floats) -> Floats:
        mean = np.log(members).mean(axis=0)
        weight = np.exp(mean - mean.max(axis=-1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


class _Brier:
    floor = False

    def losses(self, q: Floats) -> Floats:
        return np.asarray(1.0 + np.einsum("...k,...k->...", q, q)[..., None] - 2.0 * q)

    def central(self, members: Floats) -> Floats:
        return np.asarray(members.mean(axis=0))


class _Spherical:
    floor = False

    def losses(self, q: Floats) -> Floats:
        return np.asarray(1.0 - q / _norm(q))

    def central(self, members: Floats) -> Floats:
        """Return the point whose direction is the mean direction, moved along the ones until it has length one.

        It has no negative entry: the mean direction is at most 1 long, so that what is added is at least its mean.
        """
        direction = (members / _norm(members)).mean(axis=0)
        v = direction - direction.mean(axis=-1, keepdims=True)
        K = members.shape[-1]
        c = 1.0 / K + v / np.sqrt(K * (1.0 - np.einsum("nk,nk->n", v, v)))[:, None]
        return np.asarray(np.maximum(c, 0.0))  # below zero only by rounding


class _ZeroOne:
    floor = False

    def losses(self, q: Floats) -> Floats:
        lost = np.ones_like(q)
        np.put_along_axis(lost, q.argmax(axis=-1)[..., None], 0.0, axis=-1)
        return lost

    def central(self, members: Floats) -> Floats:
        """Return the mean: the minimum is not unique."""
        return np.asarray(members.mean(axis=0))


class _FromConvex:
    """The score that a convex function makes."""

    floor = False

    def __init__(self, score: ProperScore) -> None:
        self._score = score

    def losses(self, q: Floats) -> Floats:
        G, grad = np.asarray(self._score.G(q), dtype=np.float64), np.asarray(self._score.grad(q), dtype=np.float64)
        if G.shape != q.shape[:-1] or grad.shape != q.shape:
            raise InputError(
                f"the score {score_name(self._score)} gave shapes {G.shape} and {grad.shape} for G and grad",
                expected=f"{q.shape[:-1]} and {q.shape}, for probabilities of shape {q.shape}",
            )
        if not (np.isfinite(G).all() and np.isfinite(grad).all()):
            raise InputError(
                f"the score {score_name(self._score)} is not finite for some probabilities",
                expected="a finite G and grad wherever a member's probabilities lie, zeros included",
            )
        return np.asarray(np.einsum("...k,...k->...", grad, q)[..., None] - G[..., None] - grad)

    def central(self, members: Floats) -> Floats:
        own = getattr(self._score, "central", None)
        if own is not None:
            return np.asarray(own(members), dtype=np.float64)
        slope = np.asarray(self._score.grad(members), dtype=np.float64).mean(axis=0)
        return np.stack([self._nearest(row, start) for row, start in zip(slope, members.mean(axis=0), strict=True)])

    def _nearest(self, slope: Floats, start: Floats) -> Floats:
        """Minimise ``G(z) - <slope, z>`` over the simplex."""
        from scipy.optimize import minimize

        with np.errstate(divide="ignore", invalid="ignore"):  # at the edge, where the search may step
            found = minimize(
                lambda z: float(self._score.G(z)) - float(slope @ z),
                start,
                jac=lambda z: np.asarray(self._score.grad(z), dtype=np.float64) - slope,
                method="SLSQP",
                bounds=[(0.0, 1.0)] * len(start),
                constraints={"type": "eq", "fun": lambda z: z.sum() - 1.0, "jac": np.ones_like},
                options={"ftol": 1e-14, "maxiter": 500},
            ).x
        return np.asarray(found / found.sum())


SCORES: Final[dict[str, Callable[[], Loss]]] = {
    "log": _Log,
    "brier": _Brier,
    "spherical": _Spherical,
    "zero_one": _ZeroOne,
}
"""The scores that have a name."""


def loss_of(score: Any) -> Loss:
    """Return a score by its name, or of an object with ``G`` and ``grad``.

    Raises
    ------
    InputError
        When it is neither.
    """
    if isinstance(score, str) and score in SCORES:
        return SCORES[score]()
    if not isinstance(score, str) and isinstance(score, ProperScore):
        return _FromConvex(score)
    raise InputError(f"the score is {score!r}", expected=f"{', '.join(SCORES)}, or an object with G(p) and grad(p)")


def score_name(score: Any) -> str:
    """Return what a score is called in a table."""
    return score if isinstance(score, str) else str(getattr(score, "name", type(score).__name__))


def _norm(p: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("...k,...k->...", p, p))[..., None])
