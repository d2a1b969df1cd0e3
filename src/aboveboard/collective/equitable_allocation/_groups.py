"""Who is in which group, what each group should get, and the best that anybody can do for the group with least."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard._optimize.linear import integer_program, linear_program
from aboveboard.collective.equitable_allocation._demands import Floats, Ints
from aboveboard.core.errors import InputError

__all__ = ["Groups", "best_counts", "clairvoyant_milp", "expected_optimum", "read_groups", "whole_reserves"]

_SHARES: Final = 1e-6
_DUAL: Final = 1e-7
_KEPT: Final = 1e-9
_ROUNDING: Final = 1e-6


@dataclass(frozen=True)
class Groups:
    """Types of arrivals, the groups that each belongs to, and the groups' shares of the population.

    Attributes
    ----------
    member : ndarray of bool, shape (types, groups)
    shares : ndarray of shape (groups,)
    attribute : ndarray of int, shape (groups,)
        Which attribute a group is a value of; the shares of an attribute sum to 1.
    names : tuple of str
    supply : int
    """

    member: NDArray[np.bool_]
    shares: Floats
    attribute: Ints
    names: tuple[str, ...]
    supply: int

    @property
    def due(self) -> Floats:
        """What each group's share of the stock is."""
        return self.shares * self.supply


def read_groups(membership: Any, shares: ArrayLike, supply: Any, attributes: Sequence[Any] | None) -> Groups:
    """Return the groups.

    Parameters
    ----------
    membership : array-like of 0 and 1, shape (types, groups)
        The columns of a data frame name the groups.
    shares : array-like of shape (groups,)
    supply : int
    attributes : sequence of length groups, optional
        The attribute of each group; without it all groups are values of one.

    Raises
    ------
    InputError
        For a supply that is no positive whole number, shares of an attribute that do not sum to 1, a type that is not
        in exactly one group of an attribute, or an empty group.
    """
    names = [str(name) for name in getattr(membership, "columns", ())]
    try:
        member, share = np.asarray(membership, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("membership or shares hold something that is no number", expected="numbers") from error
    if member.ndim != 2 or not member.size or not np.isin(member, (0.0, 1.0)).all():
        raise InputError(f"membership has shape {member.shape}", expected="0 and 1, types x groups")
    if share.shape != (member.shape[1],):
        raise InputError(f"shares have shape {share.shape}", expected=f"one for each of {member.shape[1]} groups")
    if not (np.isfinite(share).all() and (share > 0).all()):
        raise InputError("a share is not positive", expected="positive shares", remedy="Leave that group out")
    labels = [0] * len(share) if attributes is None else list(attributes)
    if len(labels) != len(share):
        raise InputError(f"{len(labels)} attributes were given", expected=f"one for each of {len(share)} groups")
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1].reshape(-1)
    names = names or [str(g) for g in range(len(share))]
    _refuse_groups(member, share, codes, names, [str(label) for label in labels])
    return Groups(member.astype(bool), share, codes, tuple(names), _whole(supply))


def _refuse_groups(member: Floats, shares: Floats, codes: Ints, names: list[str], labels: list[str]) -> None:
    empty = np.flatnonzero(member.sum(axis=0) == 0)
    if len(empty):
        raise InputError(f"no type is in the group {names[empty[0]]!r}", expected="a type in every group")
    for code in np.unique(codes):
        inside = codes == code
        label = labels[int(inside.argmax())]
        if abs(shares[inside].sum() - 1.0) > _SHARES:
            raise InputError(
                f"the shares of the attribute {label!r} sum to {shares[inside].sum():.6g}",
                expected="shares that sum to 1 for each attribute",
                remedy="Where groups overlap, say with attributes which of them go together",
            )
        belongs = member[:, inside].sum(axis=1)
        if (belongs != 1).any():
            raise InputError(
                f"type {int((belongs != 1).argmax())} is in {int(belongs[belongs != 1][0])} groups of the attribute "
                f"{label!r}",
                expected="exactly one",
                remedy="Give those who are in none a group of their own",
            )


def _whole(supply: Any) -> int:
    if isinstance(supply, bool) or not isinstance(supply, int | float | np.number) or not float(supply).is_integer():
        raise InputError(f"the supply is {supply!r}", expected="a whole number of units")
    if supply < 1:
        raise InputError(f"the supply is {supply!r}", expected="1 or more")
    return int(supply)


def expected_optimum(most: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """Return the best ``sum x / (share b)`` of each group, the least first, and x: of each type, how many to serve.

    Parameters
    ----------
    most : ndarray of shape (types,)
        How many of each type can be served.
    groups : Groups

    Returns
    -------
    levels : ndarray of shape (groups,)
        The leximin optimum: the least level is as high as can be, then the next.
    x : ndarray of shape (types,)
        Of all x with these levels one in which the largest ``x / most`` is least, so that nobody is passed over who
        counts for the same groups as another.

    Notes
    -----
    One linear program for each distinct level, and one for x.
    """
    types, size = groups.member.shape
    total = sparse.csr_array(np.ones((1, types)))
    served = sparse.vstack([sparse.csr_array(groups.member.T.astype(np.float64)), total])
    high = np.append(np.full(size, np.inf), float(groups.supply))
    levels, fixed = np.zeros(size), np.zeros(size, dtype=bool)
    while not fixed.all():
        due = np.append(np.where(fixed, 0.0, groups.due), 0.0)
        found = linear_program(
            np.append(np.zeros(types), -1.0),
            sparse.hstack([served, sparse.csr_array(-due[:, None])]),
            _floor(levels, groups),
            high,
            high=np.append(most, np.inf),
        )
        binding = ~fixed & (found.duals[:size] > _DUAL / groups.supply)
        if not binding.any():
            binding = ~fixed
        levels[binding] = max(-found.objective, 0.0)
        fixed |= binding
    spread = linear_program(
        np.append(np.zeros(types), 1.0),
        sparse.vstack(
            [
                sparse.hstack([served, sparse.csr_array((size + 1, 1))]),
                sparse.hstack([sparse.eye_array(types), sparse.csr_array(-most[:, None])]),
            ]
        ),
        np.append(_floor(levels, groups), np.full(types, -np.inf)),
        np.append(high, np.zeros(types)),
        high=np.append(most, 1.0),
    )
    return levels, np.asarray(np.clip(spread.x[:-1], 0.0, most))


def _floor(levels: Floats, groups: Groups) -> Floats:
    """Return the least that each group must keep, a hair below its level, and no bound for the sum of all."""
    return np.append(levels * (1.0 - _KEPT) * groups.due, -np.inf)


def clairvoyant_milp(
    path: ArrayLike,
    membership: Any,
    shares: ArrayLike,
    supply: int,
    *,
    attributes: Sequence[Any] | None = None,
    time_limit: float | None = None,
) -> float:
    """Return the best least share of a group, over all ways to serve those who came, known in advance.

    Parameters
    ----------
    path : array-like of int
        The type of each arrival.
    membership, shares, supply, attributes
        As for `InternalEquityAllocator.fit`.
    time_limit : float, optional
        In seconds.

    Returns
    -------
    float
        The greatest ``min_g X_g / (share_g b)`` with whole X.

    Raises
    ------
    aboveboard.core.InputError
        For types that do not exist, or groups that cannot be used.
    aboveboard._optimize.linear.TimeLimitError
        When the limit passed before there was any solution.

    Notes
    -----
    An integer program with one unknown for each type. It is what no rule can exceed on this path.

    Examples
    --------
    >>> from aboveboard.collective import clairvoyant_milp
    >>> clairvoyant_milp([0, 0, 0, 1], [[1, 0], [0, 1]], [0.5, 0.5], supply=4)
    0.5
    """
    groups = read_groups(membership, shares, supply, attributes)
    types = np.asarray(path)
    if types.ndim != 1 or (types.size and types.dtype.kind not in "iu"):
        raise InputError(f"the path has shape {types.shape} and type {types.dtype}", expected="positions of types")
    if types.size and (types.min() < 0 or types.max() >= len(groups.member)):
        raise InputError(f"the path holds the type {types.max()}", expected=f"0 to {len(groups.member) - 1}")
    return best_counts(np.bincount(types.astype(np.intp), minlength=len(groups.member)), groups, time_limit)


def best_counts(arrived: Ints, groups: Groups, time_limit: float | None = None) -> float:
    """Return the best least share where so many of each type came."""
    types, size = groups.member.shape
    rows = np.zeros((size + 1, types + 1))
    rows[:size, :types] = groups.member.T
    rows[:size, types] = -groups.due
    rows[size, :types] = 1.0
    found = integer_program(
        np.append(np.zeros(types), -1.0),
        rows,
        np.append(np.zeros(size), -np.inf),
        np.append(np.full(size, np.inf), float(groups.supply)),
        np.append(np.ones(types, dtype=bool), False),
        high=np.append(arrived.astype(np.float64), 1.0),
        time_limit=time_limit,
    )
    served = groups.member.T @ found.x[:types]
    return float((served / groups.due).min())


def whole_reserves(x: Floats, most: Ints, groups: Groups, time_limit: float = 10.0) -> Ints:
    """Return the whole numbers nearest to `x`, at most `most`, that leave the group with least as well off as any can.

    Notes
    -----
    Two integer programs: for the least share, and for the sum of distances from `x`.
    """
    types, size = groups.member.shape
    least = best_counts(most, groups, time_limit)
    one = sparse.eye_array(types)
    served = sparse.csr_array(np.vstack([groups.member.T, np.ones((1, types))]).astype(np.float64))
    found = integer_program(
        np.append(np.zeros(types), np.ones(types)),
        sparse.vstack(
            [
                sparse.hstack([served, sparse.csr_array((size + 1, types))]),
                sparse.hstack([one, -one]),
                sparse.hstack([one, one]),
            ]
        ),
        np.concatenate([least * groups.due - _ROUNDING, [np.floor(x.sum() + _ROUNDING)], np.full(types, -np.inf), x]),
        np.concatenate([np.full(size, np.inf), [float(groups.supply)], x, np.full(types, np.inf)]),
        np.append(np.ones(types, dtype=bool), np.zeros(types, dtype=bool)),
        high=np.append(most.astype(np.float64), np.full(types, np.inf)),
        time_limit=time_limit,
    )
    return found.x[:types].astype(np.intp)
