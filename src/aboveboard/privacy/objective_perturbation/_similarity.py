"""Cosine similarities: between given vectors, or between items that users have in common."""

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy._rdp.checked import checked_positive, checked_whole
from aboveboard.privacy.objective_perturbation._gaussian import Gaussian, NoiseKind, RandomState, calibrated_sigma
from aboveboard.privacy.objective_perturbation._mechanism import error_bound, gaussian_certificate
from aboveboard.privacy.objective_perturbation._projections import (
    Floats,
    alternate,
    project_elliptope,
    project_psd,
    unit_diagonal,
    with_unit_diagonal,
)

__all__ = ["Similarity", "private_cosine_similarity", "private_item_similarity"]

_UNIT: Final = 1e-6  # how far the norm of a unit vector may be from 1
_NORM: Final = 1e-12  # how far norms may exceed 1 by rounding: the rounded row's square is a multiple of 2^-32, so 1
_FRACTION: Final = 2.0**16  # users' values become multiples of its inverse, so that sums of products are exact
_MOST_USERS: Final = 2**21  # beyond, float64 no longer holds such sums exactly
_TRACE_QUANTILE: Final = 2.326  # the noisy trace plus this many standard deviations exceeds the true one in 99 %


@dataclass(frozen=True)
class Similarity:
    """Similarities to be published.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Positive semidefinite, with ones on the diagonal: cosines of some vectors.
    sigma : float
        Standard deviation of the noise on an entry off the diagonal, before projecting.
    error_bound : float or None
        Of the mean squared error of an entry, in expectation: of `matrix`, or of `gram` where that is given.
    gram : ndarray of shape (n, n), or None
        Of `private_item_similarity`: sums over users of products, before they are normalised.
    """

    matrix: Floats
    sigma: float
    error_bound: float | None
    gram: Floats | None
    _certificate: Certificate = field(repr=False)

    def certificate(self) -> Certificate:
        """Return what the release promises."""
        return self._certificate


def private_cosine_similarity(
    V: ArrayLike,
    *,
    shift: float | None = None,
    sensitivity: float | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    solver: Literal["dykstra", "alternating"] = "dykstra",
    max_iter: int = 200,
    force: bool = False,
    noise: NoiseKind = "auto",
    random_state: RandomState = None,
) -> Similarity:
    """Release the cosine similarities of n vectors, of which one may differ a little.

    Parameters
    ----------
    V : array-like of shape (n, d)
        Rows of norm 1. Normalise each by itself, before: what is protected are the normalised rows.
    shift : float in (0, 2], optional
        Neighbours differ in one row, by at most this in Euclidean distance.
    sensitivity : float, optional
        Instead of `shift`, where neighbours are something else: how far the similarities above the diagonal can move,
        in Euclidean distance, all of them together.
    epsilon, delta : float, default 1.0 and 1e-6
    solver : {"dykstra", "alternating"}
        Nearest correlation matrix, or alternating projections, whose error bound is the same.
    max_iter : int
        Rounds, one eigendecomposition each. 1 with "alternating" for thousands of vectors.
    force : bool, default=False
        Release although the noise drowns everything.
    noise, random_state : as for `perturb_and_project`

    Returns
    -------
    Similarity

    Raises
    ------
    InputError
        For rows whose norm is not 1, neither or both of `shift` and `sensitivity`, a bound of the error of 1 or more
        (the epsilon would be spent for nothing).

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for neighbours as above. The mean squared error is at most 2 sigma / sqrt(n)
    in expectation, against sigma^2 without projecting.

    Notes
    -----
    A row that moves by `shift` moves its n - 1 similarities by at most ``shift sqrt(n - 1)``, whatever the vectors.
    That is a lot: 2 sqrt(n - 1) for a row replaced by any other. The bound: <W, X> is at most n times the largest
    eigenvalue of W over correlation matrices X, and that eigenvalue is 2 sigma sqrt(n) at most in expectation. Cost:
    O(n^2 d), and O(n^3) for each round.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import private_cosine_similarity
    >>> V = np.random.default_rng(0).normal(size=(60, 5))
    >>> V /= np.linalg.norm(V, axis=1, keepdims=True)
    >>> release = private_cosine_similarity(V, shift=0.01, epsilon=2.0, random_state=0)
    >>> bool(np.mean((release.matrix - V @ V.T) ** 2) < release.error_bound)
    True
    """
    vectors = _checked_matrix(V)
    n, d = vectors.shape
    if n < 2:
        raise InputError("there is one vector", expected="two or more, to be alike")
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=0, atol=_UNIT):
        raise InputError("a row has a norm other than 1", remedy="Divide each row by its norm")
    if solver not in ("dykstra", "alternating"):
        raise InputError(f"solver is {solver!r}", expected="'dykstra' or 'alternating'")
    checked_whole(max_iter, "max_iter")
    sensitivity, neighbours = _sensitivity(shift, sensitivity, n)
    sensitivity += 2 * d * n * 2.0**-52  # sums of d products, in float64
    gaussian = Gaussian.choose(noise, random_state)
    sigma = calibrated_sigma(epsilon, delta, sensitivity)
    bound = error_bound(sigma, 2 * n**1.5, n**2)
    if bound >= 1 and not force:
        raise InputError(
            f"the noise has a standard deviation of {sigma:.3g}, and the error is only known to be below {bound:.3g}",
            expected="a bound below 1, which saying 'nothing is alike' reaches without any data",
            remedy="Protect a smaller shift, raise epsilon, or pass force=True to release noise",
        )
    above = np.triu_indices(n, 1)
    noisy = np.eye(n)
    noisy[above] = gaussian.add((vectors @ vectors.T)[above], sigma, sensitivity)
    noisy.T[above] = noisy[above]
    if solver == "dykstra":
        matrix = project_elliptope(noisy, max_iter=max_iter)
    else:
        steps = [unit_diagonal, lambda X: project_psd(X, max_trace=n)]
        matrix = with_unit_diagonal(alternate(noisy, steps, max_iter=max_iter))
    certificate = gaussian_certificate(
        "the released similarities",
        gaussian,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        mechanism=(
            f"Gaussian noise of standard deviation {sigma:.6g} on each entry above the diagonal, mirrored, then "
            "projection onto correlation matrices"
        ),
        parameters={"sensitivity": sensitivity, "sigma": sigma, "error_bound": bound},
        assumptions=[
            Assumption("The number of vectors is public."),
            Assumption("Each row was divided by its norm without looking at the others."),
            *([] if shift else [Assumption("No neighbours' similarities are further apart than the sensitivity.")]),
        ],
    )
    return Similarity(matrix, sigma, bound, None, certificate)


def private_item_similarity(
    X: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    clip: bool = False,
    max_users: int | None = None,
    floor: float | None = None,
    noise: NoiseKind = "auto",
    random_state: RandomState = None,
) -> Similarity:
    """Release which items go together: cosine similarities of the columns of a table with a row for each user.

    Parameters
    ----------
    X : array-like of shape (n_users, n)
        What each user has to do with each item; every row has a norm of at most 1.
    epsilon, delta : float, default 1.0 and 1e-6
    clip : bool, default=False
        Scale longer rows down to a norm of 1, each by itself, instead of refusing.
    max_users : int, optional
        A public upper bound of the number of users. With it `error_bound` is known; without it the trace of the matrix
        is bounded from the noisy one.
    floor : float, optional
        Least squared norm of a column by which similarities are divided; default three standard deviations of its
        noise. Similarities of items that hardly occur shrink towards 0.
    noise, random_state : as for `perturb_and_project`

    Returns
    -------
    Similarity

    Raises
    ------
    InputError
        For rows longer than 1, more than 2,097,152 rows, a floor that is not positive.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for tables of which one has one user more. Sums are exact: values are rounded
    towards 0 to multiples of 2^-16. With `max_users`, the mean squared error of `gram` is at most ``2 sigma max_users /
    n^(3/2)`` in expectation.

    Notes
    -----
    What is perturbed is the matrix of sums of products, not the cosines, whose sensitivity has no bound: a column may
    be nearly empty. One user adds x x', of Frobenius norm ``|x|^2``. Noise that is even in that norm has a
    standard deviation of sigma off the diagonal and sqrt(2) sigma on it; even over one triangle, it would have to be
    sqrt(2) sigma everywhere. The projection is onto positive semidefinite matrices of bounded trace, by one
    eigendecomposition. Cost: O(n_users n^2 + n^3).

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import private_item_similarity
    >>> X = load_adult(split="train").X[["workclass", "education", "sex"]]
    >>> import pandas as pd
    >>> items = pd.get_dummies(X)  # three ones in each row, at most
    >>> release = private_item_similarity(items / np.sqrt(3), epsilon=1.0, random_state=0)
    >>> release.matrix.shape == (items.shape[1], items.shape[1])
    True
    """
    rows = _checked_rows(_checked_matrix(X), clip)
    n = rows.shape[1]
    gaussian = Gaussian.choose(noise, random_state)
    whole = calibrated_sigma(epsilon, delta, 1.0)
    sigma = whole / np.sqrt(2)
    if floor is not None:
        checked_positive(floor, "floor")
    if max_users is not None:
        checked_positive(max_users, "max_users")
    exact = np.trunc(rows * _FRACTION)
    gram = exact.T @ exact / _FRACTION**2
    above = np.triu_indices(n, 1)
    noisy = np.diag(gaussian.add(np.diag(gram), whole, 1.0))
    if n > 1:
        noisy[above] = gaussian.add(gram[above], sigma, np.sqrt(0.5))
        noisy.T[above] = noisy[above]
    if max_users is None:
        trace, bound = max(float(np.trace(noisy)) + _TRACE_QUANTILE * whole * np.sqrt(n), 0.0), None
    else:
        trace, bound = float(max_users), error_bound(whole, max_users * np.sqrt(2 * n), n**2)
    nearest = project_psd(noisy, max_trace=trace)
    scale = 1 / np.sqrt(np.maximum(np.diag(nearest), 3 * whole if floor is None else floor))
    certificate = gaussian_certificate(
        "the released similarities and sums",
        gaussian,
        epsilon=epsilon,
        delta=delta,
        neighbours="two tables of which one has one user more",
        mechanism=(
            f"Gaussian noise of standard deviation {whole:.6g} on the diagonal of the sums of products and {sigma:.6g} "
            "above it, mirrored, then projection onto positive semidefinite matrices, then normalisation"
        ),
        parameters={"sensitivity": 1.0, "sigma": sigma, "error_bound": bound},
        assumptions=[
            Assumption("Each user is one row."),
            Assumption("The items are public."),
            *_about_users(max_users),
        ],
    )
    return Similarity(unit_diagonal(nearest * np.outer(scale, scale)), float(sigma), bound, nearest, certificate)


def _about_users(max_users: int | None) -> list[Assumption]:
    return [] if max_users is None else [Assumption("The bound of the number of users is public.")]


def _sensitivity(shift: float | None, sensitivity: float | None, n: int) -> tuple[float, str]:
    """Return how far similarities above the diagonal can move, and for which neighbours."""
    if (shift is None) == (sensitivity is None):
        raise InputError("neither or both of shift and sensitivity are given", expected="one of them")
    if sensitivity is not None:
        return checked_positive(sensitivity, "sensitivity"), "two data sets that are neighbours for this sensitivity"
    moved = checked_positive(shift, "shift")
    if moved > 2:
        raise InputError(f"shift is {shift!r}", expected="2 at most: unit vectors are never further apart")
    return moved * float(np.sqrt(n - 1)), f"two sets of unit vectors of which one vector differs, by at most {moved:g}"


def _checked_matrix(V: ArrayLike) -> Floats:
    matrix: Floats = np.asarray(V, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InputError(f"a table of shape {matrix.shape} is given", expected="rows and columns of finite numbers")
    return matrix


def _checked_rows(rows: Floats, clip: bool) -> Floats:
    if len(rows) > _MOST_USERS:
        raise InputError(
            f"there are {len(rows):,} rows", expected=f"{_MOST_USERS:,} at most; beyond, sums are not exact"
        )
    norms = np.linalg.norm(rows, axis=1)
    if clip:
        # a little shorter than 1, so that rounding does not make it longer
        shortened: Floats = rows / np.maximum(norms * (1 + _NORM), 1.0)[:, None]
        return shortened
    if not (norms <= 1 + _NORM).all():
        raise InputError(
            "a row has a norm above 1",
            remedy="Divide all rows by a public bound of their norms, or pass clip=True to shorten longer ones",
        )
    return rows
