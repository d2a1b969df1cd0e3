"""Opinions when everybody has listened: the equilibrium of Friedkin and Johnsen's model, and its adjoint."""

import warnings
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, bicgstab, cg
from sklearn.exceptions import ConvergenceWarning

from aboveboard.collective.opinion_interventions._network import read_opinions, read_weights
from aboveboard.core.errors import InputError

__all__ = ["FriedkinJohnsen"]

Floats = NDArray[np.float64]
Solver = Literal["auto", "jacobi", "krylov"]

_FAST_FACTOR: Final = 0.9
_MOST_SWEEPS: Final = 10_000
_ROUNDS: Final = 20


class FriedkinJohnsen:
    """Opinions of people who listen to each other and keep to their own.

    Everybody has an own opinion s, and says the mean of it and of what those whom they listen to say.

    Parameters
    ----------
    W : sparse matrix, array or data frame of shape (n, n)
        Row i holds whom account i listens to, and how much against a weight of 1 for its own opinion: finite, 0 or
        more, nothing on the diagonal. Stored zeros stay stored.
    s : array-like of shape (n,)
        Own opinions, finite.

    Attributes
    ----------
    W : csr_array of shape (n, n)
    s : ndarray of shape (n,)
    degrees : ndarray of shape (n,)
        How much each listens to others: the sums of the rows.
    n_products : int
        Products with W or its transpose so far.

    Raises
    ------
    aboveboard.core.InputError
        For anything else.

    Notes
    -----
    With A = I + diag(W 1) - W, the opinions that are said solve A y = s. A is strictly diagonally dominant and its
    inverse is nonnegative with rows that sum to 1, so y exists, is unique, and is a mean of own opinions. Hence the
    error of y is at most its residual: ``max |y - y*| <= max |A y - s|``.

    Jacobi sweeps shrink the error by the largest d / (1 + d); where that is above 0.9, conjugate gradients (symmetric
    weights) or stabilised bi-conjugate gradients take over. O(edges) time per sweep; memory: W, and ten vectors.

    References
    ----------
    N. Friedkin, E. Johnsen, "Social influence and opinions", Journal of Mathematical Sociology 15, 1990.

    Examples
    --------
    Two people of opinions 1 and 0, who listen to each other as much as to themselves:

    >>> from aboveboard.collective import FriedkinJohnsen
    >>> model = FriedkinJohnsen([[0, 1], [1, 0]], [1, 0])
    >>> model.equilibrium().round(6).tolist(), round(model.disagreement(), 6)
    ([0.666667, 0.333333], 0.111111)
    """

    def __init__(self, W: Any, s: ArrayLike) -> None:
        self.W = read_weights(W)
        self.s = read_opinions(s, self.W.shape[0])
        self.n_products = 0
        self.degrees = np.asarray(self.W.sum(axis=1), dtype=np.float64).ravel()
        self._mutual: bool | None = None

    @property
    def n(self) -> int:
        return len(self.s)

    @property
    def mutual(self) -> bool:
        """Whether everybody is listened to as much as they listen: w_ij = w_ji."""
        if self._mutual is None:
            difference = sparse.csr_array(self.W - self.W.T)
            self._mutual = not difference.nnz or float(np.abs(difference.data).max()) == 0.0
        return self._mutual

    def reweighted(self) -> None:
        """Take note that the weights in ``W.data`` have been changed in place."""
        self.degrees = np.asarray(self.W.sum(axis=1), dtype=np.float64).ravel()
        self._mutual = None

    def equilibrium(self, tol: float = 1e-8, method: Solver = "auto", start: ArrayLike | None = None) -> Floats:
        """Return what everybody says in the end.

        Parameters
        ----------
        tol : float
            No opinion is further off than this.
        method : {"auto", "jacobi", "krylov"}
        start : array-like of shape (n,), optional
            A guess, such as the opinions under similar weights.

        Warns
        -----
        ConvergenceWarning
            When `tol` is not reached: the weights are then so large that A is all but singular in float64.
        """
        guess = self.s if start is None else read_opinions(start, self.n, name="start")
        return self._solve(self.s, guess, tol, method, transposed=False)

    def adjoint(
        self, rhs: ArrayLike, tol: float = 1e-8, method: Solver = "auto", start: ArrayLike | None = None
    ) -> Floats:
        """Return v with A^T v = rhs: what a change of each own opinion is worth.

        The error of v, summed over all accounts, is at most `tol`.
        """
        right = read_opinions(rhs, self.n, name="rhs")
        guess = right / (1.0 + self.degrees) if start is None else read_opinions(start, self.n, name="start")
        return self._solve(right, guess, tol, method, transposed=True)

    def residual(self, y: ArrayLike) -> float:
        """Return ``max |A y - s|``, which bounds how far any opinion in `y` is off."""
        opinions = np.asarray(y, dtype=np.float64)
        return float(np.abs(self._defect(opinions, self.s, transposed=False)).max())

    def polarization(self, y: ArrayLike | None = None, *, center: float | None = 0.0) -> float:
        """Return the mean square of the opinions around `center`; around their mean where it is None."""
        opinions = self.equilibrium() if y is None else np.asarray(y, dtype=np.float64)
        return float(np.mean((opinions - (opinions.mean() if center is None else center)) ** 2))

    def disagreement(self, y: ArrayLike | None = None) -> float:
        """Return half the sum over all edges of w_ij (y_i - y_j)^2: for mutual edges, the sum over pairs."""
        opinions = self.equilibrium() if y is None else np.asarray(y, dtype=np.float64)
        around = opinions - opinions.mean()
        heard = np.bincount(self.W.indices, weights=self.W.data, minlength=self.n)
        return float(0.5 * np.dot(self.degrees + heard, around**2) - np.dot(around, self.W @ around))

    def influence(self, tol: float = 1e-8) -> Floats:
        """Return each account's say in the mean opinion: the mean is the sum of influence times own opinion.

        The entries are above 0 and sum to 1; with mutual weights all are 1/n.
        """
        return self.adjoint(np.full(self.n, 1.0 / self.n), tol)

    # --- solving ------------------------------------------------------------------------------------------------------

    def _solve(self, right: Floats, guess: Floats, tol: float, method: Solver, *, transposed: bool) -> Floats:
        if method not in ("auto", "jacobi", "krylov"):
            raise InputError(f"method is {method!r}", expected="auto, jacobi or krylov")
        if not tol > 0:
            raise InputError(f"tol is {tol!r}", expected="a number above 0")
        factor = float((self.degrees / (1.0 + self.degrees)).max())
        if method == "jacobi" or (method == "auto" and factor < _FAST_FACTOR):
            found, defect = self._sweep(right, guess, tol, transposed)
        else:
            found, defect = self._krylov(right, guess, tol, transposed)
        if _size(defect, transposed) > tol:
            warnings.warn(
                f"the opinions are only exact to {_size(defect, transposed):.2g}, not to {tol:.2g}: weights as large "
                f"as {self.degrees.max():.2g} leave hardly anything of people's own opinions",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def _sweep(self, right: Floats, guess: Floats, tol: float, transposed: bool) -> tuple[Floats, Floats]:
        scale = 1.0 / (1.0 + self.degrees)
        found = guess.copy()
        for _ in range(_MOST_SWEEPS):
            defect = self._defect(found, right, transposed=transposed)
            if _size(defect, transposed) <= tol:
                break
            found += scale * defect
        return found, defect

    def _krylov(self, right: Floats, guess: Floats, tol: float, transposed: bool) -> tuple[Floats, Floats]:
        shape = (self.n, self.n)
        zero = np.zeros(self.n)
        scale = 1.0 / (1.0 + self.degrees)
        system = LinearOperator(
            shape, dtype=np.float64, matvec=lambda u: -self._defect(np.ravel(u), zero, transposed=transposed)
        )
        diagonal = LinearOperator(shape, dtype=np.float64, matvec=lambda u: scale * np.ravel(u))
        solver = cg if self.mutual else bicgstab
        found = guess.copy()
        defect = self._defect(found, right, transposed=transposed)
        for _ in range(_ROUNDS):  # refinement: solve for what is still missing
            if _size(defect, transposed) <= tol:
                break
            enough = 0.5 * tol / (np.sqrt(self.n) if transposed else 1.0)
            step, _ = solver(system, defect, rtol=0.0, atol=enough, maxiter=1000, M=diagonal)
            trial = found + step
            left = self._defect(trial, right, transposed=transposed)
            if not _size(left, transposed) < _size(defect, transposed):
                return self._sweep(right, found, tol, transposed)
            found, defect = trial, left
        return found, defect

    def _defect(self, u: Floats, right: Floats, *, transposed: bool) -> Floats:
        self.n_products += 1
        product = self.W.T @ u if transposed else self.W @ u
        return np.asarray(right - (1.0 + self.degrees) * u + product)


def _size(defect: Floats, transposed: bool) -> float:
    """Return the norm in which the inverse of A (or of its transpose) is at most 1."""
    return float(np.abs(defect).sum() if transposed else np.abs(defect).max())
