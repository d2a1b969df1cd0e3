"""Covariances that share an eigenbasis are vectors there, all others matrices: one algebra for both.

Everything that the theory needs is a trace or a bilinear form of products of the group covariances with one resolvent.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

__all__ = ["Spectra", "checked_covariances", "make_spectra"]

Floats = NDArray[np.float64]

_COMMUTE: Final = 1e-10
_NEGATIVE: Final = 1e-8


class Spectra(Protocol):
    """The covariances and targets of S groups in d dimensions.

    Q stands for the resolvent ``(sum_j c_j Sigma_j + kappa I)^-1`` in whatever form the class keeps it.
    """

    n_groups: int
    d: int

    def resolvent(self, coefficients: Floats, kappa: float) -> Any: ...

    def traces(self, Q: Any) -> Floats:
        """Return ``tr(Sigma_j Q)``, shape (S,), and ``tr(Q)`` as the last entry: shape (S + 1,)."""

    def second_traces(self, Q: Any) -> Floats:
        """Return ``tr(M_j Q M_k Q)`` with M the covariances and the identity: shape (S + 1, S + 1)."""

    def forms(self, Q: Any) -> tuple[Floats, Floats, Floats]:
        """Return the bilinear forms in the targets.

        ``w_j' Sigma_s w_k`` of shape (S, S, S) indexed [s, j, k]; ``w_s' Sigma_s Q Sigma_j w_j`` and its like as
        ``w_l' Sigma_s Q Sigma_j w_j`` of shape (S, S, S) indexed [s, l, j]; and ``w_j' Sigma_j Q M Q Sigma_k w_k`` of
        shape (S + 1, S, S), M as in `second_traces`.
        """

    def of_group(self, group: int) -> "Spectra":
        """Return the same for one group alone."""


class _Common:
    """Covariances that commute: eigenvalues of shape (S, d), and second moments of the targets of shape (S, S, d)."""

    def __init__(self, eigenvalues: Floats, moments: Floats) -> None:
        self.n_groups, self.d = eigenvalues.shape
        self._lam = eigenvalues
        self._moments = moments
        self._with_identity = np.vstack([eigenvalues, np.ones(self.d)])

    def resolvent(self, coefficients: Floats, kappa: float) -> Floats:
        return 1.0 / (coefficients @ self._lam + kappa)

    def traces(self, Q: Floats) -> Floats:
        return self._with_identity @ Q

    def second_traces(self, Q: Floats) -> Floats:
        scaled = self._with_identity * Q
        return scaled @ scaled.T

    def forms(self, Q: Floats) -> tuple[Floats, Floats, Floats]:
        lam, C = self._lam, self._moments
        plain = np.einsum("si,jki->sjk", lam, C)
        once = np.einsum("si,i,ji,lji->slj", lam, Q, lam, C)
        pairs = np.einsum("ji,ki,i,jki->jki", lam, lam, Q**2, C)
        return plain, once, np.einsum("mi,jki->mjk", self._with_identity, pairs)

    def of_group(self, group: int) -> "_Common":
        pick = slice(group, group + 1)
        return _Common(self._lam[pick], self._moments[pick, pick])


class _Dense:
    """Covariances of shape (S, d, d), and vectors of shape (S, d, R) whose signed products sum to second moments."""

    def __init__(self, covariances: Floats, vectors: Floats, signs: Floats) -> None:
        self.n_groups, self.d = covariances.shape[:2]
        self._sigma = covariances
        self._w = vectors
        self._signs = signs
        self._sw = covariances @ vectors

    def resolvent(self, coefficients: Floats, kappa: float) -> Floats:
        total = np.tensordot(coefficients, self._sigma, axes=1)
        total.flat[:: self.d + 1] += kappa
        factor = scipy.linalg.cholesky(total, lower=True, check_finite=False)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        whole: Floats = inverse + np.tril(inverse, -1).T  # what lies above the diagonal is zero
        return whole

    def traces(self, Q: Floats) -> Floats:
        return np.append(np.einsum("jab,ab->j", self._sigma, Q), np.trace(Q))

    def second_traces(self, Q: Floats) -> Floats:
        products = [*(sigma @ Q for sigma in self._sigma), Q]
        return np.array([[np.sum(a * b.T) for b in products] for a in products])

    def forms(self, Q: Floats) -> tuple[Floats, Floats, Floats]:
        signed = self._w * self._signs
        qsw = Q @ self._sw
        left = np.einsum("sab,lbr->slar", self._sigma, signed, optimize=True)
        plain = np.einsum("sjar,kar->sjk", left, self._w, optimize=True)
        once = np.einsum("slar,jar->slj", left, qsw, optimize=True)
        middle = [*(sigma @ qsw for sigma in self._sigma), qsw]
        return plain, once, np.array([np.einsum("jar,kar->jk", qsw * self._signs, m, optimize=True) for m in middle])

    def of_group(self, group: int) -> _Common:
        eigenvalues, basis = np.linalg.eigh(self._sigma[group])  # one covariance always has a basis of its own
        moments = (basis.T @ self._w[group]) ** 2 @ self._signs
        return _Common(np.maximum(eigenvalues, 0.0)[None], moments[None, None])


def make_spectra(covariances: Sequence[ArrayLike] | ArrayLike, weights: ArrayLike) -> Spectra:
    """Read covariances and targets, checked, in the cheapest form that holds them.

    Raises
    ------
    ValueError
        Covariances of different or wrong shapes, not symmetric, not finite or not positive semidefinite; targets of
        the wrong shape.
    """
    sigma = checked_covariances(covariances)
    S, d = sigma.shape[:2]
    targets = np.asarray(weights, dtype="float64")
    if not np.isfinite(targets).all():
        raise ValueError("the weights hold values that are not finite; a finite number is needed in every place")
    shapes = ((S, d), (S, S, d), (S, S, d, d))
    if targets.shape not in shapes:
        raise ValueError(
            f"the weights have shape {targets.shape}; for {S} groups in {d} dimensions it must be {shapes[0]} (one "
            f"vector a group), {shapes[1]} or {shapes[2]} (second moments E[w_j w_k'], their diagonals or in full)"
        )
    if sigma.ndim == 2:
        return _Common(sigma, _diagonal_moments(targets))
    basis = _common_basis(sigma)
    if basis is not None:
        eigenvalues = np.maximum(np.einsum("ai,sab,bi->si", basis, sigma, basis), 0.0)
        return _Common(eigenvalues, _rotated_moments(targets, basis))
    return _Dense(sigma, *_signed_vectors(targets))


def checked_covariances(covariances: Sequence[ArrayLike] | ArrayLike) -> Floats:
    parts = [np.asarray(part, dtype="float64") for part in covariances]  # type: ignore[union-attr]
    if not parts:
        raise ValueError("no covariance was given; one for each group is needed")
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ValueError(f"the covariances have shapes {sorted(shapes)}; all groups must have the same")
    sigma = np.array(parts)
    if sigma.ndim not in (2, 3) or sigma.shape[-1] == 0 or (sigma.ndim == 3 and sigma.shape[1] != sigma.shape[2]):
        raise ValueError(
            f"each covariance has shape {sigma.shape[1:]}; expected (d,), its diagonal, or (d, d), with d at least 1"
        )
    if not np.isfinite(sigma).all():
        raise ValueError("a covariance holds values that are not finite")
    if sigma.ndim == 2:
        lowest = sigma.min(axis=1)
    else:
        scale = np.abs(sigma).max()
        if np.abs(sigma - sigma.transpose(0, 2, 1)).max() > _NEGATIVE * max(scale, 1.0):
            raise ValueError("a covariance is not symmetric")
        sigma = (sigma + sigma.transpose(0, 2, 1)) / 2
        lowest = np.linalg.eigvalsh(sigma)[:, 0]
    if (lowest < -_NEGATIVE).any():
        group = int(lowest.argmin())
        raise ValueError(
            f"the covariance of group {group} is not positive semidefinite: its least eigenvalue is {lowest[group]:.3g}"
        )
    if not (np.abs(sigma).reshape(len(sigma), -1).max(axis=1) > 0).all():
        raise ValueError("a covariance is zero: that group has no features")
    return np.maximum(sigma, 0.0) if sigma.ndim == 2 else sigma


def _common_basis(sigma: Floats) -> Floats | None:
    """Return an orthogonal basis in which all covariances are diagonal, or None where there is none."""
    mix = np.tensordot(1.0 + 0.1 * np.sqrt(np.arange(2.0, 2.0 + len(sigma))), sigma, axes=1)
    basis = np.linalg.eigh(mix)[1]
    rotated = basis.T @ sigma @ basis
    rotated[:, np.arange(sigma.shape[1]), np.arange(sigma.shape[1])] = 0.0
    return basis if np.abs(rotated).max() <= _COMMUTE * np.abs(sigma).max() else None


def _diagonal_moments(targets: Floats) -> Floats:
    if targets.ndim == 2:
        return targets[:, None, :] * targets[None, :, :]
    return targets if targets.ndim == 3 else np.einsum("jkii->jki", targets)


def _rotated_moments(targets: Floats, basis: Floats) -> Floats:
    if targets.ndim == 2:
        return _diagonal_moments(targets @ basis)
    if targets.ndim == 3:
        targets = np.einsum("jka,ab->jkab", targets, np.eye(len(basis)))
    rotated: Floats = np.einsum("ai,jkab,bi->jki", basis, targets, basis, optimize=True)
    return rotated


def _signed_vectors(targets: Floats) -> tuple[Floats, Floats]:
    """Return vectors, shape (S, d, R), and signs, shape (R,), whose outer products sum to the second moments."""
    if targets.ndim == 2:
        return targets[:, :, None], np.ones(1)
    S, d = targets.shape[0], targets.shape[2]
    full = targets if targets.ndim == 4 else np.einsum("jka,ab->jkab", targets, np.eye(d))
    joint = full.transpose(0, 2, 1, 3).reshape(S * d, S * d)
    values, vectors = np.linalg.eigh((joint + joint.T) / 2)
    kept = np.abs(values) > 1e-14 * max(np.abs(values).max(), 1e-300)
    scaled = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
    return scaled.reshape(S, d, -1), np.sign(values[kept])
