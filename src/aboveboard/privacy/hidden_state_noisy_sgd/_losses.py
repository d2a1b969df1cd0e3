"""What is known of a loss, and how far apart one gradient step can take two points because of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_positive

__all__ = ["ConvexSmoothLoss", "HolderLoss", "LossClass", "SmoothLoss", "StronglyConvexLoss"]

Floats = NDArray[np.float64]


class LossClass(Protocol):
    """What the accountant must know of the loss of every single record, its penalty included."""

    def contraction(self, lr: float) -> float | None:
        """Return c, where a step takes points at distance z to at most c z; None where the modulus is not linear."""

    def modulus(self, lr: float) -> Callable[[Floats], Floats]:
        """Return h: a step of the same batch takes points at distance z to a distance of at most h(z)."""

    @property
    def assumption(self) -> str:
        """What is assumed, as the words after "the loss of every record"."""


class _Linear:
    def contraction(self, lr: float) -> float:
        raise NotImplementedError

    def modulus(self, lr: float) -> Callable[[Floats], Floats]:
        factor = self.contraction(lr)
        return lambda distance: factor * distance


@dataclass(frozen=True)
class StronglyConvexLoss(_Linear):
    """An m-strongly convex loss whose gradient is L-Lipschitz: a step with ``lr <= 2 / (L + m)`` contracts by 1 - lr m.

    Parameters
    ----------
    L, m : float, 0 < m <= L
        Of the loss of every record, its ridge penalty included. Logistic loss on rows of norm 1 with penalty
        ``m / 2 * |w|**2`` has ``L = 0.25 + m``.

    Examples
    --------
    >>> from aboveboard.privacy import StronglyConvexLoss
    >>> StronglyConvexLoss(L=0.35, m=0.1).contraction(lr=0.5)
    0.95
    """

    L: float
    m: float

    def __post_init__(self) -> None:
        if checked_positive(self.m, "m") > checked_positive(self.L, "L"):
            raise InputError(f"m is {self.m:g} and L is {self.L:g}", expected="m of at most L")

    def contraction(self, lr: float) -> float:
        _within(lr, self.L, "strongly convex")
        return max(1 - lr * self.m, lr * self.L - 1)

    @property
    def assumption(self) -> str:
        return f"is {self.m:g}-strongly convex, and its gradient is {self.L:g}-Lipschitz"


@dataclass(frozen=True)
class ConvexSmoothLoss(_Linear):
    """A convex loss whose gradient is L-Lipschitz: a step with ``lr <= 2 / L`` takes no two points further apart.

    Parameters
    ----------
    L : float > 0
    """

    L: float

    def __post_init__(self) -> None:
        checked_positive(self.L, "L")

    def contraction(self, lr: float) -> float:
        _within(lr, self.L, "convex")
        return 1.0

    @property
    def assumption(self) -> str:
        return f"is convex, and its gradient is {self.L:g}-Lipschitz"


@dataclass(frozen=True)
class SmoothLoss(_Linear):
    """Any loss whose gradient is L-Lipschitz: a step takes points apart by the factor 1 + lr L at most.

    Parameters
    ----------
    L : float > 0
    """

    L: float

    def __post_init__(self) -> None:
        checked_positive(self.L, "L")

    def contraction(self, lr: float) -> float:
        return 1 + checked_positive(lr, "lr") * self.L

    @property
    def assumption(self) -> str:
        return f"has a {self.L:g}-Lipschitz gradient"


@dataclass(frozen=True)
class HolderLoss:
    """A loss whose gradient is Hölder continuous: gradients at distance z differ by at most L z**lam.

    Parameters
    ----------
    L : float > 0
    lam : float in (0, 1], default 1
        1 is `SmoothLoss`. Towards 0, with L twice the largest gradient, it says that the loss is Lipschitz.
    """

    L: float
    lam: float = 1.0

    def __post_init__(self) -> None:
        checked_positive(self.L, "L")
        if checked_positive(self.lam, "lam") > 1:
            raise InputError(f"lam is {self.lam:g}", expected="a number above 0 and at most 1")

    def contraction(self, lr: float) -> float | None:
        return SmoothLoss(self.L).contraction(lr) if self.lam == 1 else None

    def modulus(self, lr: float) -> Callable[[Floats], Floats]:
        slope = checked_positive(lr, "lr") * self.L
        return lambda distance: distance + slope * distance**self.lam

    @property
    def assumption(self) -> str:
        return f"has a gradient that is Hölder continuous with constant {self.L:g} and exponent {self.lam:g}"


def _within(lr: float, smoothness: float, kind: str) -> None:
    if checked_positive(lr, "lr") > 2 / smoothness * (1 + 1e-12):
        raise InputError(
            f"lr is {lr:g}",
            expected=f"at most 2 / L = {2 / smoothness:g}, or a step on a {kind} loss can take points apart",
            remedy="Use a smaller step, or SmoothLoss, which allows any",
        )
