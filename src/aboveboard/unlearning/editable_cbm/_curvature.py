"""Inverse-Hessian products: a Cholesky factor, conjugate gradients, or eigenvalue-corrected Kronecker factors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aboveboard.core import InputError

__all__ = ["EXACT_LIMIT", "Floats", "KroneckerLayer", "Solver", "conjugate_gradient", "solve_exactly"]

Floats = NDArray[np.float64]
Solver = Literal["exact", "cg", "ekfac"]

EXACT_LIMIT: Final = 5_000
_CG_TOLERANCE: Final = 1e-6
_CG_STEPS: Final = 1_000


def solve_exactly(hessian: Floats, vector: Floats) -> Floats:
    """Return H^{-1} v for a symmetric positive definite H of shape (p, p); O(p^3) time.

    Raises
    ------
    InputError
        When H is not positive definite: the loss is not convex where the model stands.
    """
    try:
        return np.asarray(cho_solve(cho_factor(hessian, lower=True, check_finite=False), vector, check_finite=False))
    except LinAlgError as error:
        raise _not_convex() from error


def conjugate_gradient(product: Callable[[Floats], Floats], vector: Floats) -> Floats:
    """Return H^{-1} v from products with H alone, to a relative residual of 1e-6.

    Parameters
    ----------
    product : callable
        v -> H v, H symmetric positive definite; called once per step, at most 1,000 times.
    vector : ndarray of shape (p,)

    Raises
    ------
    InputError
        When a direction of negative curvature is met, or when 1,000 steps were not enough.
    """
    solution = np.zeros_like(vector)
    residual = vector.copy()
    direction = residual.copy()
    squared = float(residual @ residual)
    enough = _CG_TOLERANCE**2 * squared
    for _ in range(_CG_STEPS):
        if squared <= enough:
            return solution
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:
            raise _not_convex()
        length = squared / curvature
        solution += length * direction
        residual -= length * image
        previous, squared = squared, float(residual @ residual)
        direction = residual + (squared / previous) * direction
    if squared <= enough:
        return solution
    raise InputError(
        f"conjugate gradients did not converge in {_CG_STEPS} steps",
        remedy="Scale the inputs to unit variance, raise l2 or damping, or choose solver='exact'",
    )


@dataclass(frozen=True, slots=True)
class KroneckerLayer:
    """The curvature of one linear map as EK-FAC sees it.

    Parameters
    ----------
    inputs : ndarray of shape (a, a)
        Eigenvectors U_A of the sum of a a', the layer's inputs with a one appended.
    outputs : ndarray of shape (s, s)
        Eigenvectors U_S of the expected sum of s s', the gradients at the layer's output.
    curvature : ndarray of shape (s, a)
        Lambda: expected sum over rows of (U_S' s a' U_A) squared, element by element.
    """

    inputs: Floats
    outputs: Floats
    curvature: Floats

    def solve(self, vector: Floats, shift: float) -> Floats:
        """Return (H + shift)^{-1} V for V of shape (s, a)."""
        rotated = self.outputs.T @ vector @ self.inputs
        solved: Floats = self.outputs @ (rotated / (self.curvature + shift)) @ self.inputs.T
        return solved


def _not_convex() -> InputError:
    return InputError(
        "the loss is not convex around the model's parameters, so an influence step is meaningless there",
        remedy="Raise l2 (or damping, with solver='cg'), freeze the trunk and edit the last layer only, or retrain",
    )
