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

__all__ = ["MOST_CELLS", "Partition", "partitions", "people", "withhold"]

MOST_CELLS: Final = 100
"""An intersection with more groups than that is not looked at."""

_MOST_PAIRS: Final = 6

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
    codes : ndarray of int, shape (n,)
    parts : tuple of ndarray of int, shape (groups,)
        For each column, in which of its own groups each group lies.
    reference : int or None
        The group that the others are compared with; None for everybody.
    """

    name: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    codes: Codes
    parts: tuple[Codes, ...]
    reference: int | None


def partitions(sensitive: pd.DataFrame, references: Mapping[str, str]) -> tuple[list[Partition], list[str]]:
    """Return the partitions, columns first, and what was left out, as sentences.

    Up to three columns are crossed all together; more, or where that makes too many groups, in pairs.
    """
    single = [_single(str(name), sensitive[name], references) for name in sensitive.columns]
    left_out: list[str] = []
    if len(single) < 2:
        return single, left_out
    wanted = [tuple(range(len(single)))] if len(single) <= 3 else list(combinations(range(len(single)), 2))
    crossed: list[Partition] = []
    while wanted:
        chosen = wanted.pop(0)
        name = " & ".join(single[i].name for i in chosen)
        if len(chosen) == 2 and len(crossed) == _MOST_PAIRS:
            left_out.append(f"The intersection {name} was not looked at: at most {_MOST_PAIRS} pairs are.")
            continue
        partition = _crossed([single[i] for i in chosen])
        if len(partition.labels) <= MOST_CELLS:
            crossed.append(partition)
            continue
        left_out.append(
            f"The intersection {name} was not looked at: it has {len(partition.labels):,} groups, and at most "
            f"{MOST_CELLS} are. Give coarser groups."
        )
        if len(chosen) == 3:
            wanted += list(combinations(chosen, 2))
    return single + crossed, left_out


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


def _single(name: str, column: "pd.Series[str]", references: Mapping[str, str]) -> Partition:
    codes = column.cat.codes.to_numpy().astype(np.intp)
    present = np.flatnonzero(np.bincount(codes, minlength=len(column.cat.categories)))
    place = np.zeros(len(column.cat.categories), dtype=np.intp)
    place[present] = np.arange(len(present))
    groups = [str(group) for group in column.cat.categories[present]]
    chosen = references.get(name)
    return Partition(
        name=name,
        columns=(name,),
        labels=tuple(f"{name}={group}" for group in groups),
        codes=place[codes],
        parts=(np.arange(len(groups)),),
        reference=groups.index(chosen) if chosen in groups else None,
    )


def _crossed(columns: list[Partition]) -> Partition:
    sizes = tuple(len(column.labels) for column in columns)
    flat = np.ravel_multi_index(tuple(column.codes for column in columns), sizes)
    present, codes = np.unique(flat, return_inverse=True)
    parts = tuple(part.astype(np.intp) for part in np.unravel_index(present, sizes))
    labels = [
        " & ".join(column.labels[part[g]] for column, part in zip(columns, parts, strict=True))
        for g in range(len(present))
    ]
    reference = None
    if all(column.reference is not None for column in columns):
        at = np.ravel_multi_index(tuple(np.array(column.reference) for column in columns), sizes)
        found = np.flatnonzero(present == at)
        reference = int(found[0]) if len(found) else None
    return Partition(
        name=" & ".join(column.name for column in columns),
        columns=tuple(column.name for column in columns),
        labels=tuple(labels),
        codes=codes.ravel().astype(np.intp),
        parts=parts,
        reference=reference,
    )
