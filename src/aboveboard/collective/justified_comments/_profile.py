"""Who approves what, with whole weights, so that every threshold is compared in whole numbers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard.core.errors import InputError

__all__ = ["Profile", "check_k", "check_scores", "check_selected", "read_profile"]

_LARGEST_SUM: Final = 2**52
_DECIMALS: Final = 6

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Profile:
    """Approvals as a sparse matrix, and what each reader weighs.

    Attributes
    ----------
    matrix : csr_array of int64, shape (n, m)
        1 where the reader approves the comment.
    weights : ndarray of int64, shape (n,)
    total : int
        Their sum.
    """

    matrix: sparse.csr_array
    weights: Ints
    total: int

    @property
    def n(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def m(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def _by_comment(self) -> sparse.csc_array:
        return self.matrix.tocsc()

    def quota(self, k: int) -> int:
        """Return the least whole weight that is a k-th of all or more."""
        return -(-self.total // k)

    def approvers(self, comment: int) -> NDArray[np.intp]:
        by_comment = self._by_comment
        return np.asarray(
            by_comment.indices[by_comment.indptr[comment] : by_comment.indptr[comment + 1]], dtype=np.intp
        )

    def support(self) -> Ints:
        """Return the weight of each comment's approvers."""
        return self.support_among(np.ones(self.n, dtype=bool))

    def support_among(self, readers: NDArray[np.bool_]) -> Ints:
        """Return the weight of each comment's approvers among `readers`, a mask of shape (n,)."""
        return np.asarray(self.matrix.T @ np.where(readers, self.weights, 0), dtype=np.int64)

    def support_of(self, rows: NDArray[np.intp]) -> Ints:
        """Return the weight of each comment's approvers among a few readers, given by position."""
        return np.asarray(self.matrix[rows].T @ self.weights[rows], dtype=np.int64)

    def hits(self, selected: NDArray[np.intp]) -> Ints:
        """Return how many of the selected comments each reader approves."""
        marks = np.zeros(self.m, dtype=np.int64)
        marks[selected] = 1
        return np.asarray(self.matrix @ marks, dtype=np.int64)


def read_profile(approvals: Any, weights: ArrayLike | None = None) -> Profile:
    """Read approvals: a table of 0 and 1 (or booleans), dense, sparse or a data frame, readers x comments.

    Raises
    ------
    InputError
        For another shape, no reader or no comment, and anything but 0 and 1; for weights that do not fit.
    """
    if isinstance(approvals, Profile):
        return approvals
    matrix = _sparse(approvals) if sparse.issparse(approvals) else _dense(approvals)
    whole = _weights(weights, matrix.shape[0])
    return Profile(matrix, whole, int(whole.sum()))


def check_k(k: Any, m: int, name: str = "k") -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= m:
        raise InputError(f"{name} is {k!r}", expected=f"a whole number from 1 to the number of comments, {m:,}")
    return int(k)


def check_scores(scores: ArrayLike, m: int) -> NDArray[np.float64]:
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("the scores are not all numbers", expected="one number per comment") from error
    if values.shape != (m,):
        raise InputError(f"the scores have shape {values.shape}", expected=f"one per comment: ({m},)")
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(
            f"the score of comment {at} is {values[at]}",
            expected="finite scores",
            remedy="Score every comment, or leave out those that cannot be shown",
        )
    return values


def check_selected(selected: ArrayLike, k: int, m: int) -> NDArray[np.intp]:
    given = np.asarray(selected)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(
            f"selected has shape {given.shape} and type {given.dtype}", expected="positions of comments, one list"
        )
    if given.min() < 0 or given.max() >= m:
        raise InputError(
            f"selected holds positions from {given.min()} to {given.max()}", expected=f"positions from 0 to {m - 1}"
        )
    if len(np.unique(given)) < len(given):
        raise InputError("selected holds a comment twice", expected="each comment once at most")
    if len(given) > k:
        raise InputError(f"{len(given)} comments are selected", expected=f"at most k = {k}")
    return given.astype(np.intp)


def _sparse(approvals: Any) -> sparse.csr_array:
    _refuse_shape(approvals.shape)
    matrix = sparse.csr_array(approvals)
    if matrix.nnz:
        _refuse_values(matrix.data)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        before = matrix.nnz
        matrix.sum_duplicates()
        if matrix.nnz < before:
            raise InputError("the sparse approvals hold a cell twice", expected="each cell once at most")
    if matrix.nnz and not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return _ones(matrix.indices, matrix.indptr, matrix.shape)


def _dense(approvals: Any) -> sparse.csr_array:
    frame = hasattr(approvals, "to_numpy")
    values = np.asarray(approvals.to_numpy() if frame else approvals)
    _refuse_shape(values.shape)
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("the approvals are not all 0 or 1", expected="0 and 1, or booleans") from error
    _refuse_values(values)
    matrix = sparse.csr_array(values.astype(bool))
    return _ones(matrix.indices, matrix.indptr, matrix.shape)


def _ones(indices: Any, indptr: Any, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=shape)


def _refuse_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"the approvals have shape {shape}", expected="readers x comments, one of each at least")


def _refuse_values(values: NDArray[Any]) -> None:
    if values.dtype.kind == "b":
        return
    if values.dtype.kind not in "iuf":
        raise InputError(f"the approvals have type {values.dtype}", expected="0 and 1, or booleans")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise InputError(
            f"the approvals hold {values[wrong].flat[0]!s}",
            expected="only 0 and 1, or booleans",
            remedy="Votes become approvals with votes > 0; missing ones with ApprovalImputer, or as no approval",
        )


def _weights(weights: ArrayLike | None, n: int) -> Ints:
    if weights is None:
        return np.ones(n, dtype=np.int64)
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("the weights are not all numbers", expected="one number per reader") from error
    if given.shape != (n,):
        raise InputError(f"the weights have shape {given.shape}", expected=f"one per reader: ({n},)")
    if not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise InputError("the weights are not usable", expected="finite ones, none below 0 and some above")
    for decimals in range(_DECIMALS + 1):
        scaled = given * 10.0**decimals
        whole = np.rint(scaled)
        if whole.sum() > _LARGEST_SUM:
            break
        if np.allclose(scaled, whole, rtol=1e-12, atol=0.0):
            return np.asarray(whole, dtype=np.int64)
    return np.asarray(np.rint(given / given.max() * (_LARGEST_SUM // n)), dtype=np.int64)
