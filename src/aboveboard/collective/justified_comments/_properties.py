"""Is a selection of comments representative? Checks that know nothing of how the selection was made."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.justified_comments._profile import Profile, check_k, check_selected, read_profile

__all__ = ["EJRReport", "JRReport", "extended_justified_representation", "justified_representation"]


@dataclass(frozen=True)
class JRReport:
    """Whether a selection satisfies justified representation, and who is left out if not.

    Attributes
    ----------
    satisfied : bool
    worst_ratio : float
        Weight of the largest excluded group that shares an approved comment, in units of n/k: 1 or more is a violation.
    witness_comment : int or None
        The comment that this group shares; None where no reader is left out.
    excluded_readers : ndarray of int
        Positions of the readers in this group.
    coverage : float
        Weighted share of the readers who approve a selected comment.
    without_approvals : int
        How many readers approve no comment at all. They count in n, and no feed can serve them.
    """

    satisfied: bool
    worst_ratio: float
    witness_comment: int | None
    excluded_readers: NDArray[np.intp]
    coverage: float
    without_approvals: int


@dataclass(frozen=True)
class EJRReport:
    """Whether a selection satisfies EJR+.

    Attributes
    ----------
    satisfied : bool
    worst_ratio : float
        The largest, over comments left out and levels l, of the weight of its approvers who approve fewer than l
        selected comments, in units of l n/k: 1 or more is a violation.
    witness_comment : int or None
    level : int
        The l of the witness; 0 where every comment is selected.
    """

    satisfied: bool
    worst_ratio: float
    witness_comment: int | None
    level: int


def justified_representation(
    approvals: Any, selected: ArrayLike, k: int, *, weights: ArrayLike | None = None
) -> JRReport:
    """Check justified representation: no comment has a k-th of the readers as approvers none of whom is served.

    Parameters
    ----------
    approvals : array, sparse matrix or data frame of shape (n_readers, n_comments)
        0 and 1, or booleans.
    selected : array-like of int
        Positions of the comments that are shown, at most k.
    k : int
        How many are shown.
    weights : array-like of shape (n_readers,), optional
        What each reader counts; 1 by default. Weights with up to six decimals count exactly, others are rounded to a
        2^-52 n-th of the greatest.

    Returns
    -------
    JRReport

    Raises
    ------
    aboveboard.core.InputError
        For approvals that are not 0 or 1, positions that are no comments, k below 1 or above the number of comments.

    Notes
    -----
    A selection W violates it where some comment c has ``k |{i : A_ic, A_i and W share nothing}| >= n``, which is the
    same as a group of n/k readers who share a comment and approve nothing in W. Compared in whole numbers. O(nnz).

    References
    ----------
    H. Aziz, M. Brill, V. Conitzer, E. Elkind, R. Freeman, T. Walsh, "Justified representation in approval-based
    committee voting", Social Choice and Welfare 48, 2017.

    Examples
    --------
    >>> from aboveboard.collective import justified_representation
    >>> approvals = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> report = justified_representation(approvals, [0, 1], k=2)
    >>> report.satisfied, report.worst_ratio, report.witness_comment, report.coverage
    (False, 1.0, 2, 0.5)
    """
    profile = read_profile(approvals, weights)
    k = check_k(k, profile.m)
    return jr_report(profile, check_selected(selected, k, profile.m), k)


def jr_report(profile: Profile, selected: NDArray[np.intp], k: int) -> JRReport:
    unserved = profile.hits(selected) == 0
    left_out = profile.support_among(unserved)
    witness = int(left_out.argmax())
    largest = int(left_out[witness])
    readers = profile.approvers(witness)
    return JRReport(
        satisfied=largest * k < profile.total,
        worst_ratio=largest * k / profile.total,
        witness_comment=witness if largest else None,
        excluded_readers=readers[unserved[readers]] if largest else np.empty(0, dtype=np.intp),
        coverage=1.0 - int(profile.weights[unserved].sum()) / profile.total,
        without_approvals=int((np.diff(profile.matrix.indptr) == 0).sum()),
    )


def extended_justified_representation(
    approvals: Any, selected: ArrayLike, k: int, *, weights: ArrayLike | None = None
) -> EJRReport:
    """Check EJR+: a group of l n/k readers who share a comment left out has a member who approves l comments shown.

    Parameters
    ----------
    approvals, selected, k, weights
        As for `justified_representation`.

    Returns
    -------
    EJRReport

    Raises
    ------
    aboveboard.core.InputError
        As for `justified_representation`.

    Notes
    -----
    EJR+ implies EJR, PJR and, at l = 1, justified representation. For each comment left out and each l, the approvers
    with fewer than l selected comments are counted: O(nnz + m k).

    References
    ----------
    M. Brill, J. Peters, "Robust and Verifiable Proportionality Axioms for Multiwinner Voting", EC 2023.

    Examples
    --------
    >>> from aboveboard.collective import extended_justified_representation
    >>> approvals = [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    >>> extended_justified_representation(approvals, [0, 1, 3], k=4).satisfied  # three of four readers, two comments
    False
    >>> extended_justified_representation(approvals, [0, 1, 2, 3], k=4).satisfied
    True
    """
    profile = read_profile(approvals, weights)
    k = check_k(k, profile.m)
    return ejr_report(profile, check_selected(selected, k, profile.m), k)


def ejr_report(profile: Profile, selected: NDArray[np.intp], k: int) -> EJRReport:
    outside = np.ones(profile.m, dtype=bool)
    outside[selected] = False
    if not outside.any():
        return EJRReport(satisfied=True, worst_ratio=0.0, witness_comment=None, level=0)
    hits = profile.hits(selected)
    counted = np.zeros(profile.m, dtype=np.int64)
    worst = (-1.0, 0, 0)
    satisfied = True
    for level in range(1, k + 1):
        new = hits == level - 1
        if new.any():
            counted += profile.support_among(new)
        behind = np.where(outside, counted, -1)
        comment = int(behind.argmax())
        largest = int(behind[comment])
        satisfied &= largest * k < level * profile.total
        worst = max(worst, (largest * k / (level * profile.total), -level, comment))
    ratio, level, comment = worst
    return EJRReport(satisfied, ratio, comment if ratio else None, -level)
