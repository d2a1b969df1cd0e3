"""Which rows train the classifier and which judge it.

The source of each judged row is drawn by a fair die, so that the number of right guesses is exactly binomial where the
sources do not differ. Rows of one group (a person, a household) never stand on both sides, and at most one of them is
judged, so that judged rows are independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = [
    "FEWEST_HELD_OUT",
    "FEWEST_ROWS",
    "MOST_HELD_OUT",
    "MOST_TRAIN",
    "Split",
    "balanced_split",
    "needed",
    "read_groups",
    "whole_split",
]

FEWEST_ROWS: Final = 200
FEWEST_HELD_OUT: Final = 100
_HELD_OUT_SHARE: Final = 1 / 3
_HELD_OUT_GROUPS: Final = 0.4
MOST_TRAIN: Final = 20_000
MOST_HELD_OUT: Final = 10_000
_SLACK: Final = 4.0  # standard errors of the number of judged rows that a source may have beyond its share


@dataclass(frozen=True, slots=True)
class Split:
    """Positions of training and held-out rows.

    Parameters
    ----------
    train, held_out : ndarray of int
    spare : ndarray of int
        Rows that were kept in reserve and not drawn: neither trained on nor counted among the guesses.
    balanced : bool
        Whether training rows are equally many per source, and the sources of held-out rows were drawn by a fair die.
    """

    train: NDArray[np.intp]
    held_out: NDArray[np.intp]
    spare: NDArray[np.intp]
    balanced: bool


def balanced_split(
    codes: NDArray[np.intp],
    names: Sequence[str],
    groups: NDArray[np.intp] | None,
    n_train: int | None,
    n_val: int | None,
    rng: np.random.Generator,
) -> Split:
    """Return as many training rows from each source, and held-out rows whose sources are drawn by a fair die.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Source of each row.
    names : sequence of str
        Of the sources.
    groups : ndarray of int, shape (n,), optional
    n_train, n_val : int or None
        Rows per source; those held out on average.
    rng : Generator

    Raises
    ------
    InputError
        When there are too few rows.

    Notes
    -----
    Each source keeps rows in reserve for a draw of 4 standard errors above its share. A draw beyond it (at most 1 in
    30,000 per source) is repeated, which moves the level by that much at most.
    """
    m = len(names)
    _refuse_few(codes, names, n_train)
    pools = _pools(codes, m, groups, n_train, n_val, rng)
    reserve = min(len(pool) for pool in pools.reserve)
    if n_val is None:
        n_val = min(_within(reserve, m), MOST_HELD_OUT)
    elif needed(n_val, m) > reserve:
        scarce = int(np.argmin([len(pool) for pool in pools.reserve]))
        raise InputError(
            f"n_val = {n_val} needs {needed(n_val, m)} rows of each source apart from those that train; "
            f"{names[scarce]} has {reserve}",
            expected=f"n_val at most {_within(reserve, m)} here",
            remedy="Choose smaller n_val or n_train",
        )
    if m * n_val < FEWEST_HELD_OUT:
        raise InputError(
            f"n_val = {n_val} holds out {m * n_val} rows of {m} sources",
            expected=f"at least {FEWEST_HELD_OUT} held-out rows in all",
            remedy="Bring more rows, or lower n_train",
        )
    available = min(len(pool) for pool in pools.train)
    if n_train is None:
        n_train = min(available, MOST_TRAIN)
    elif n_train > available:
        scarce = int(np.argmin([len(pool) for pool in pools.train]))
        raise InputError(
            f"n_train = {n_train} is more than the {available} rows of {names[scarce]} that are not held out",
            expected=f"n_train at most {available} here",
        )
    train = np.concatenate([rng.permutation(pool)[:n_train] for pool in pools.train])
    while True:
        counts = np.bincount(rng.integers(m, size=m * n_val), minlength=m)
        if (counts <= [len(pool) for pool in pools.reserve]).all():
            break
    held_out = np.concatenate([pool[:count] for pool, count in zip(pools.reserve, counts, strict=True)])
    spare = np.concatenate([pool[count:] for pool, count in zip(pools.reserve, counts, strict=True)])
    return Split(rng.permutation(train), rng.permutation(held_out), spare[:MOST_HELD_OUT], balanced=True)


def whole_split(
    codes: NDArray[np.intp],
    names: Sequence[str],
    groups: NDArray[np.intp] | None,
    n_train: int | None,
    n_val: int | None,
    rng: np.random.Generator,
) -> Split:
    """Return a share of every source for training, and the rest to judge, however many rows each has.

    Here `n_train` and `n_val` are the most rows per source. Parameters and errors as for `balanced_split`.
    """
    m = len(names)
    pools = _pools(codes, m, groups, None, None, rng)
    train = [rng.permutation(pool)[: n_train or MOST_TRAIN] for pool in pools.train]
    held_out = [pool[: n_val or MOST_HELD_OUT] for pool in pools.reserve]
    total = sum(map(len, held_out))
    if total < FEWEST_HELD_OUT:
        raise InputError(
            f"{total} rows would be held out", expected=f"at least {FEWEST_HELD_OUT}", remedy="Raise n_val"
        )
    together = rng.permutation(np.concatenate(held_out))
    return Split(rng.permutation(np.concatenate(train)), together, together[:0], balanced=False)


def needed(n_val: int, m: int) -> int:
    """Return how many rows a source must have in reserve for an average of `n_val` held-out rows."""
    return int(np.ceil(n_val + _SLACK * np.sqrt(n_val * (1.0 - 1.0 / m))))


def _refuse_few(codes: NDArray[np.intp], names: Sequence[str], n_train: int | None) -> None:
    sizes = np.bincount(codes, minlength=len(names))
    smallest = int(sizes.argmin())
    if n_train is not None and n_train >= sizes[smallest]:
        raise InputError(
            f"n_train = {n_train}, and {names[smallest]} has {sizes[smallest]} rows",
            expected="fewer training rows than the smallest source has, since others must be held out",
        )


@dataclass(frozen=True, slots=True)
class _Pools:
    train: list[NDArray[np.intp]]
    reserve: list[NDArray[np.intp]]


def _within(reserve: int, m: int) -> int:
    """Return the largest n_val whose need the reserve meets."""
    spread = _SLACK * np.sqrt(1.0 - 1.0 / m)
    n_val = int(((np.sqrt(spread**2 + 4.0 * reserve) - spread) / 2.0) ** 2) + 1
    while n_val > 0 and needed(n_val, m) > reserve:
        n_val -= 1
    return n_val


def _pools(
    codes: NDArray[np.intp],
    m: int,
    groups: NDArray[np.intp] | None,
    n_train: int | None,
    n_val: int | None,
    rng: np.random.Generator,
) -> _Pools:
    """Return, per source, rows that may train and rows that may be judged, shuffled."""
    smallest = int(np.bincount(codes, minlength=m).min())
    if n_val is not None:
        held = needed(n_val, m)
    elif n_train is not None:
        held = smallest - n_train
    else:
        enough = needed(-(-FEWEST_HELD_OUT // m), m)
        held = int(_HELD_OUT_GROUPS * smallest) if groups is not None else max(int(_HELD_OUT_SHARE * smallest), enough)
    share = min(max(held / smallest, 0.0), 1.0)
    if groups is not None:
        return _group_pools(codes, m, groups, share, rng)
    train, reserve = [], []
    for code in range(m):
        rows = rng.permutation(np.flatnonzero(codes == code))
        cut = min(max(held, round(share * len(rows))), len(rows))
        reserve.append(rows[:cut])
        train.append(rows[cut:])
    return _Pools(train, reserve)


def _group_pools(
    codes: NDArray[np.intp], m: int, groups: NDArray[np.intp], share: float, rng: np.random.Generator
) -> _Pools:
    """Return pools that share no group; of a group held out, one row of one of its sources may be judged."""
    _, group = np.unique(groups, return_inverse=True)
    order = rng.permutation(len(codes))
    # the first row of each group in random order
    _, first = np.unique(group[order], return_index=True)
    judged = order[first]
    held = rng.permutation(len(judged)) < round(share * len(judged))
    train = np.flatnonzero(~held[group])
    chosen = rng.permutation(judged[held])
    return _Pools([train[codes[train] == j] for j in range(m)], [chosen[codes[chosen] == j] for j in range(m)])


def read_groups(groups: Any, sizes: dict[str, int]) -> NDArray[np.intp]:
    """Return one code per row from arrays per source; the same value is the same group in every source."""
    import pandas as pd

    if not hasattr(groups, "keys") or set(groups) != set(sizes):
        raise InputError(
            "groups does not name the same sources as the data", expected="a dict with an array per source"
        )
    parts = []
    for name, size in sizes.items():
        part = pd.Series(np.asarray(groups[name], dtype=object))
        if len(part) != size:
            raise InputError(f"groups has {len(part)} values for the {size} rows of {name}", expected="one per row")
        if part.isna().any():
            raise InputError(f"groups has missing values in {name}", expected="a value per row")
        parts.append(part)
    codes, _ = pd.factorize(pd.concat(parts, ignore_index=True))
    return np.asarray(codes, dtype=np.intp)
