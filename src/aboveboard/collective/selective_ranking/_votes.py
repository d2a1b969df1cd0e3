"""Votes as counts: how many judges prefer i to j, and how many compared the two."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError

__all__ = ["Ballots", "Missing", "PairBallots", "RankBallots", "Tally", "Ties", "ranks_from_orders"]

Missing = Literal["dissent", "ignore", "rescale"]
Ties = Literal["dissent", "half"]
Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

_ONE_BLOCK: Final = 2**24
"""Cells of a temporary array."""
_FLAT: Final = 2**25
"""Most cells of the votes on all pairs, kept for resampling."""


@dataclass(frozen=True)
class Tally:
    """What the judges said about each pair.

    Attributes
    ----------
    support : ndarray of shape (n, n)
        Entry i, j: how many judges place i above j.
    compared : ndarray of shape (n, n)
        How many placed both; the diagonal has no meaning.
    n_judges : int
    """

    support: Ints
    compared: Ints
    n_judges: int

    def ties(self) -> Ints:
        """Return how many judges placed both items and neither above the other."""
        return self.compared - self.support - self.support.T

    def dissent(self, missing: Missing, ties: Ties) -> NDArray[Any]:
        """Return how many judges do not support that i stands above j, at i, j; the diagonal is 0.

        Whole numbers where that is what comes out, else float64.
        """
        everybody = self.n_judges if missing == "dissent" else self.compared
        against: NDArray[Any] = everybody - self.support
        if ties == "half":
            against = against - self.ties() / 2
        if missing == "rescale":
            seen = np.maximum(self.compared, 1)
            # where nobody compared the two, nobody supports either order
            against = np.where(self.compared > 0, against * (self.n_judges / seen), float(self.n_judges))
        np.fill_diagonal(against, 0)
        return against


class RankBallots:
    """Judges who each rank the items, perhaps with ties and gaps.

    Parameters
    ----------
    scores : ndarray of shape (p, n)
        Higher is better; NaN where the judge did not place the item.
    """

    def __init__(self, scores: Floats) -> None:
        self.n_judges, self.n_items = scores.shape
        missing = np.isnan(scores)
        self.gaps = bool(missing.any())
        codes = _dense_codes(scores)
        # a missing vote is above nothing and below nothing
        self.above = np.where(missing, -1, codes).astype(codes.dtype)
        self.below = np.where(missing, np.iinfo(codes.dtype).max, codes).astype(codes.dtype)
        self.placed = ~missing

    def tally(self, multiplicity: Ints | None = None) -> Tally:
        """Count the votes, each judge as often as `multiplicity` says (once by default)."""
        if multiplicity is None:
            return self._count(self.above, self.below, self.placed)
        if self.n_judges * self.n_items**2 <= _FLAT:
            return self._weighted(multiplicity)
        rows = np.repeat(np.arange(self.n_judges), multiplicity)
        return self._count(self.above[rows], self.below[rows], self.placed[rows])

    def overruled(self, tier: Ints) -> tuple[Ints, Ints]:
        """Return for each judge how many strict preferences the tiers reverse, and how many there are."""
        worse = tier[:, None] > tier[None, :]
        reversed_, strict = np.zeros(self.n_judges, dtype=np.int64), np.zeros(self.n_judges, dtype=np.int64)
        for k in range(self.n_judges):
            prefers = self.above[k][:, None] > self.below[k][None, :]
            strict[k] = np.count_nonzero(prefers)
            reversed_[k] = np.count_nonzero(prefers & worse)
        return reversed_, strict

    def _count(self, above: Ints, below: Ints, placed: NDArray[np.bool_]) -> Tally:
        p, n = above.shape
        support = _support_by_judge(above, below) if p <= n else _support_by_item(above, below)
        if not self.gaps:
            return Tally(support, np.full((n, n), p, dtype=np.int32), p)
        compared = np.zeros((n, n), dtype=np.int32)
        for start in range(0, p, 65_536):
            part = placed[start : start + 65_536].astype(np.float32)
            compared += (part.T @ part).astype(np.int32)
        return Tally(support, compared, p)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """The votes of each judge on all pairs, and which pairs each compared (None: all)."""
        flat = (self.above[:, :, None] > self.below[:, None, :]).reshape(self.n_judges, -1).astype(np.float32)
        if not self.gaps:
            return flat, None
        both = (self.placed[:, :, None] & self.placed[:, None, :]).reshape(self.n_judges, -1)
        return flat, both.astype(np.float32)

    def _weighted(self, multiplicity: Ints) -> Tally:
        flat, both = self._pairs
        shape = (self.n_items, self.n_items)
        times = multiplicity.astype(np.float32)
        support = (times @ flat).reshape(shape).astype(np.int32)
        p = int(multiplicity.sum())
        if both is None:
            return Tally(support, np.full(shape, p, dtype=np.int32), p)
        return Tally(support, (times @ both).reshape(shape).astype(np.int32), p)


class PairBallots:
    """Judges who each compared some pairs of items.

    Parameters
    ----------
    judge, first, second : ndarray of int, one entry per judge and pair
        Codes; no judge has a pair twice.
    vote : ndarray of int
        1: the judge prefers the first, -1: the second, 0: neither.
    """

    def __init__(self, judge: Ints, first: Ints, second: Ints, vote: Ints, *, n_judges: int, n_items: int) -> None:
        self.judge, self.first, self.second, self.vote = judge, first, second, vote
        self.n_judges, self.n_items = n_judges, n_items

    @classmethod
    def from_rows(
        cls, judge: Ints | None, winner: Ints, loser: Ints, tie: NDArray[np.bool_], *, n_items: int
    ) -> "PairBallots":
        """Read rows of comparisons; what a judge said of one pair several times counts once, by its majority."""
        low, high = np.minimum(winner, loser), np.maximum(winner, loser)
        sign = np.where(tie, 0, np.where(winner < loser, 1, -1))
        if judge is None:
            return cls(np.arange(len(low)), low, high, sign, n_judges=len(low), n_items=n_items)
        n_judges = int(judge.max()) + 1
        pair = low.astype(np.int64) * n_items + high
        keys, where = np.unique(np.column_stack([judge.astype(np.int64), pair]), axis=0, return_inverse=True)
        total = np.bincount(where.reshape(-1), weights=sign, minlength=len(keys))
        return cls(
            keys[:, 0],
            keys[:, 1] // n_items,
            keys[:, 1] % n_items,
            np.sign(total).astype(np.int64),
            n_judges=n_judges,
            n_items=n_items,
        )

    def tally(self, multiplicity: Ints | None = None) -> Tally:
        """Count the votes, each judge as often as `multiplicity` says (once by default)."""
        n = self.n_items
        times = np.ones(len(self.judge)) if multiplicity is None else multiplicity[self.judge].astype(np.float64)
        support = np.zeros(n * n)
        for upper, lower, sign in ((self.first, self.second, 1), (self.second, self.first, -1)):
            chosen = self.vote == sign
            support += np.bincount(upper[chosen] * n + lower[chosen], weights=times[chosen], minlength=n * n)
        seen = np.bincount(self.first * n + self.second, weights=times, minlength=n * n).reshape(n, n)
        p = self.n_judges if multiplicity is None else int(multiplicity.sum())
        return Tally(support.reshape(n, n).astype(np.int32), (seen + seen.T).astype(np.int32), p)

    def overruled(self, tier: Ints) -> tuple[Ints, Ints]:
        """Return for each judge how many strict preferences the tiers reverse, and how many there are."""
        step = np.sign(tier[self.second] - tier[self.first])  # 1 where the ranking prefers the first
        wrong = (self.vote != 0) & (step == -self.vote)
        return (
            np.bincount(self.judge[wrong], minlength=self.n_judges),
            np.bincount(self.judge[self.vote != 0], minlength=self.n_judges),
        )


Ballots = RankBallots | PairBallots


def ranks_from_orders(
    orders: ArrayLike, *, items: Sequence[Any] | None = None, unlisted: Literal["last", "missing"] = "last"
) -> pd.DataFrame:
    """Turn lists of items, best first, into ranks.

    Parameters
    ----------
    orders : array-like of shape (n_judges, places)
        Each row names items from the first place down; None or NaN where a judge named no more.
    items : sequence, optional
        All items; default those that were named, in the order in which they occur.
    unlisted : {"last", "missing"}
        What a judge did not name: tied behind all that the judge named, or no vote.

    Returns
    -------
    DataFrame of shape (n_judges, n_items)
        Ranks, 1 is best; columns are the items.

    Raises
    ------
    aboveboard.core.InputError
        When an item is named twice by one judge, or is not among `items`.

    Notes
    -----
    Files of rankings come in two forms that are easily mistaken for each other: the ranks of items 1, 2, 3, ..., and
    the items at places 1, 2, 3, ... This function is for the second.

    Examples
    --------
    >>> from aboveboard.collective import ranks_from_orders
    >>> ranks_from_orders([["b", "a"], ["a", None]], items=["a", "b", "c"])
         a    b    c
    0  2.0  1.0  3.0
    1  1.0  2.0  2.0
    """
    table = pd.DataFrame(np.asarray(orders, dtype=object))
    named = [value for value in table.to_numpy().ravel() if not pd.isna(value)]
    labels = list(dict.fromkeys(named)) if items is None else list(items)
    position = {label: i for i, label in enumerate(labels)}
    if len(position) != len(labels):
        raise InputError("an item is among the items twice", expected="every item to have a name of its own")
    foreign = next((value for value in named if value not in position), None)
    if foreign is not None:
        raise InputError(f"{foreign!r} was named and is none of the items", expected="one of the items")
    ranks = np.full((len(table), len(labels)), np.nan)
    for k, row in enumerate(table.to_numpy()):
        own = [position[value] for value in row if not pd.isna(value)]
        if len(set(own)) != len(own):
            raise InputError(f"judge {k} named an item twice", expected="every item once at most")
        ranks[k, own] = np.arange(1, len(own) + 1)
        if unlisted == "last":
            ranks[k, np.isnan(ranks[k])] = len(own) + 1
    return pd.DataFrame(ranks, columns=labels)


def _dense_codes(scores: Floats) -> Ints:
    """Return the rank of each score among those of its judge, 0 for the lowest; ties share one."""
    p, n = scores.shape
    dtype = np.int16 if n < np.iinfo(np.int16).max else np.int32
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    steps = np.zeros((p, n), dtype=dtype)
    np.cumsum(ordered[:, 1:] > ordered[:, :-1], axis=1, out=steps[:, 1:], dtype=dtype)
    codes = np.empty((p, n), dtype=dtype)
    np.put_along_axis(codes, order, steps, axis=1)
    return codes


def _support_by_judge(above: Ints, below: Ints) -> Ints:
    """Count judge by judge; bytes hold 255 of them, and are emptied into whole numbers."""
    n = above.shape[1]
    support = np.zeros((n, n), dtype=np.int32)
    some = np.zeros((n, n), dtype=np.uint8)
    prefers = np.empty((n, n), dtype=np.bool_)
    for k, (own, other) in enumerate(zip(above, below, strict=True), 1):
        np.greater(own[:, None], other[None, :], out=prefers)
        some += prefers.view(np.uint8)
        if k % 255 == 0:
            support += some
            some[:] = 0
    return support + some


def _support_by_item(above: Ints, below: Ints) -> Ints:
    """Count item by item, for many judges and few items."""
    p, n = above.shape
    support = np.zeros((n, n), dtype=np.int32)
    step = max(_ONE_BLOCK // n, 1)
    for start in range(0, p, step):
        own, other = (np.ascontiguousarray(part[start : start + step].T) for part in (above, below))
        for i in range(n):
            support[i] += np.count_nonzero(own[i] > other, axis=1)
    return support
