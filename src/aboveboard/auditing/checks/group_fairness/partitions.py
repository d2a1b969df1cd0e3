"""Into which groups the rows are split: each sensitive column, and their intersections."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from aboveboard._stats.cells import GroupCells
from aboveboard.auditing.disclosure import Withheld, crossed_margins, withhold_crossed, withhold_parts

__all__ = [
    "MOST_CELLS",
    "Partition",
    "candidates",
    "crossed_codes",
    "partitions",
    "partitions_of_rows",
    "people",
    "present_keys",
    "withhold",
]

MOST_CELLS: Final = 100
"""An intersection with more groups than that is not looked at."""

_MOST_PAIRS: Final = 6
_MOST_COUNTED: Final = 2**20  # possible groups that are counted in a table, rather than sorted

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Partition:
    """One way to split the rows into groups, all of which hold rows.

    Attributes
    ----------
    name : str
        ``"sex"``, or ``"sex & race"``.
    columns : tuple of str
    labels : tuple of str
        ``"sex=Female & race=Black"``, one per group.
    keys : ndarray of int, shape (groups,)
        The `crossed_codes` of the groups, ascending.
    parts : tuple of ndarray of int, shape (groups,)
        For each column, in which of its own groups each group lies.
    reference : int or None
        The group that the others are compared with; None for everybody.
    """

    name: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    keys: NDArray[np.int64]
    parts: tuple[Codes, ...]
    reference: int | None

    def codes(self, sensitive: pd.DataFrame) -> Codes:
        """Return the group of each row."""
        return np.searchsorted(self.keys, crossed_codes(sensitive, self.columns)).astype(np.intp)


def candidates(sensitive: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return every partition that may be looked at, as the columns that it crosses; columns first.

    Up to three columns are crossed all together; more, or where that may make too many groups, in pairs.
    """
    names = [str(name) for name in sensitive.columns]
    crossed = [tuple(names)] if len(names) in (2, 3) else []
    if len(names) > 3 or (len(names) == 3 and np.prod(_sizes(sensitive, tuple(names))) > MOST_CELLS):
        crossed += list(combinations(names, 2))
    return [(name,) for name in names] + crossed


def crossed_codes(sensitive: pd.DataFrame, columns: tuple[str, ...]) -> NDArray[np.int64]:
    """Return a number for each row that tells the groups of all the columns, from the codes of their categories."""
    codes = tuple(sensitive[name].cat.codes.to_numpy().astype(np.int64) for name in columns)
    return np.asarray(np.ravel_multi_index(codes, _sizes(sensitive, columns)), dtype=np.int64)


def present_keys(sensitive: pd.DataFrame, columns: tuple[str, ...]) -> tuple[NDArray[np.int64], Codes]:
    """Return which of the `crossed_codes` occur, and for each row the place of its own among them."""
    flat = crossed_codes(sensitive, columns)
    size = int(np.prod(_sizes(sensitive, columns)))
    if size > _MOST_COUNTED:
        keys, codes = np.unique(flat, return_inverse=True)
        return keys, codes.ravel().astype(np.intp)
    keys = np.flatnonzero(np.bincount(flat, minlength=size)).astype(np.int64)
    place = np.zeros(size, dtype=np.intp)
    place[keys] = np.arange(len(keys))
    return keys, place[flat]


def partitions(
    sensitive: pd.DataFrame, references: Mapping[str, str], keys: Mapping[tuple[str, ...], NDArray[np.int64]]
) -> tuple[list[Partition], list[str]]:
    """Return the partitions, columns first, and what was left out, as sentences.

    Parameters
    ----------
    sensitive : DataFrame
        Of categorical columns, whose categories are all that is looked at.
    references : mapping of column to group
    keys : mapping of the `candidates` to the keys that occur
    """
    names = [str(name) for name in sensitive.columns]
    single = [_single(name, sensitive[name], references, keys[(name,)]) for name in names]
    left_out: list[str] = []
    if len(single) < 2:
        return single, left_out
    wanted = [tuple(range(len(single)))] if len(single) <= 3 else list(combinations(range(len(single)), 2))
    crossed: list[Partition] = []
    while wanted:
        chosen = wanted.pop(0)
        columns = [single[i] for i in chosen]
        name = " & ".join(column.name for column in columns)
        found = keys[tuple(column.name for column in columns)]
        if len(chosen) == 2 and len(crossed) == _MOST_PAIRS:
            left_out.append(f"The intersection {name} was not looked at: at most {_MOST_PAIRS} pairs are.")
            continue
        if len(found) <= MOST_CELLS:
            crossed.append(_crossed(columns, sensitive, found))
            continue
        left_out.append(
            f"The intersection {name} was not looked at: it has {len(found):,} groups, and at most "
            f"{MOST_CELLS} are. Give coarser groups."
        )
        if len(chosen) == 3:
            wanted += list(combinations(chosen, 2))
    return single + crossed, left_out


def partitions_of_rows(sensitive: pd.DataFrame, references: Mapping[str, str]) -> tuple[list[Partition], list[str]]:
    """Return the partitions of rows that are at hand, and what was left out."""
    keys = {columns: present_keys(sensitive, columns)[0] for columns in candidates(sensitive)}
    return partitions(sensitive, references, keys)


def people(cells: GroupCells, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the number of people per group in the cells marked: of clusters, where rows come in clusters."""
    if cells.clusters is None:
        return cells.rows(among)
    members = sparse.kron(sparse.identity(len(cells.count)), sparse.csr_matrix(among.reshape(-1, 1).astype(np.float64)))
    return np.asarray(((cells.clusters.matrix @ members) > 0).sum(axis=0), dtype=np.float64).ravel()


def withhold(
    partition: Partition,
    counts: NDArray[np.float64],
    min_cell: int,
    also: NDArray[np.bool_] | None,
    singles: Mapping[str, Withheld],
) -> Withheld:
    """Return which groups are withheld; `singles` holds what was decided for the columns of an intersection."""
    if len(partition.columns) == 1:
        return withhold_parts(counts, min_cell, also=also)
    own = [singles[name] for name in partition.columns]
    margins = Withheld(np.concatenate([w.small for w in own]), np.concatenate([w.complementary for w in own]))
    return withhold_crossed(
        counts, crossed_margins(list(partition.parts)), min_cell, also=also, withheld_margins=margins
    )


def _sizes(sensitive: pd.DataFrame, columns: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(len(sensitive[name].cat.categories) for name in columns)


def _single(
    name: str, column: "pd.Series[str]", references: Mapping[str, str], present: NDArray[np.int64]
) -> Partition:
    groups = [str(group) for group in column.cat.categories[present]]
    chosen = references.get(name)
    return Partition(
        name=name,
        columns=(name,),
        labels=tuple(f"{name}={group}" for group in groups),
        keys=present,
        parts=(np.arange(len(groups)),),
        reference=groups.index(chosen) if chosen in groups else None,
    )


def _crossed(columns: list[Partition], sensitive: pd.DataFrame, present: NDArray[np.int64]) -> Partition:
    names = tuple(column.name for column in columns)
    codes = np.unravel_index(present, _sizes(sensitive, names))
    parts = tuple(np.searchsorted(column.keys, code) for column, code in zip(columns, codes, strict=True))
    labels = [
        " & ".join(column.labels[part[g]] for column, part in zip(columns, parts, strict=True))
        for g in range(len(present))
    ]
    reference = None
    if all(column.reference is not None for column in columns):
        at = [part == column.reference for column, part in zip(columns, parts, strict=True)]
        found = np.flatnonzero(np.logical_and.reduce(at))
        reference = int(found[0]) if len(found) else None
    return Partition(" & ".join(names), names, tuple(labels), present, parts, reference)
