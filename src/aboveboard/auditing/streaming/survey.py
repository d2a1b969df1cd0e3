"""The first look at data that are streamed: which values occur in the columns that play a part, and what is amiss.

It is a sum over parts like any other. Of each column it keeps the distinct values with their counts (or that there are
too many), and of what is refused the first file that has it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import value_hashes
from aboveboard.auditing.frames import column_kind, cut_representatives, numbers
from aboveboard.core.errors import InputError

__all__ = ["MOST_CLUSTERS", "MOST_DISTINCT", "Amiss", "ColumnSurvey", "Role", "Survey", "survey_batch"]

Role = Literal["target", "predictions", "sensitive", "weights", "cluster"]

MOST_DISTINCT: Final = 10_000
"""More distinct values of a column are not kept."""

MOST_CLUSTERS: Final = 2_000_000
"""More clusters are refused: what they sum up to would not fit into memory."""

_LOOK: Final = 50_000


@dataclass(frozen=True, slots=True)
class Amiss:
    """In how many rows something is amiss, in the first file that has such rows."""

    file: str
    rows: int

    def joined(self, other: "Amiss | None") -> "Amiss":
        """Return what is amiss in this part and one that follows on it."""
        if other is None or other.file != self.file:
            return self
        return Amiss(self.file, self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """What was seen of a column.

    Parameters
    ----------
    counts : dict of value to int, or None
        How often each value occurs, in order of appearance; None where there are more than `MOST_DISTINCT`.
    missing, negative, outside : Amiss or None
        Missing or infinite values, numbers below 0, and numbers outside [0, 1].
    low, high : float
        Of the finite numbers.
    """

    counts: dict[Any, int] | None
    missing: Amiss | None = None
    negative: Amiss | None = None
    outside: Amiss | None = None
    low: float = np.inf
    high: float = -np.inf

    def __add__(self, other: "ColumnSurvey") -> "ColumnSurvey":
        """Return what was seen in both parts; `other` follows on this one."""
        return ColumnSurvey(
            _counts_of_both(self.counts, other.counts),
            _amiss_in_both(self.missing, other.missing),
            _amiss_in_both(self.negative, other.negative),
            _amiss_in_both(self.outside, other.outside),
            min(self.low, other.low),
            max(self.high, other.high),
        )


def _counts_of_both(mine: dict[Any, int] | None, others: dict[Any, int] | None) -> dict[Any, int] | None:
    if mine is None or others is None:
        return None
    counts = dict(mine)
    for value, count in others.items():
        counts[value] = counts.get(value, 0) + count
    return counts if len(counts) <= MOST_DISTINCT else None


def _amiss_in_both(mine: Amiss | None, others: Amiss | None) -> Amiss | None:
    return others if mine is None else mine.joined(others)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen of some rows.

    Parameters
    ----------
    columns : dict of (column, role) to ColumnSurvey
    clusters : ndarray of uint64 or None
        The sorted numbers of the clusters.
    sample : tuple of DataFrame
        The rows that were drawn at random, part after part.
    notes : tuple of str
        How the columns were read.
    """

    columns: dict[tuple[str, Role], ColumnSurvey]
    clusters: NDArray[np.uint64] | None = None
    sample: tuple[pd.DataFrame, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __add__(self, other: "Survey") -> "Survey":
        """Return what was seen in both parts; `other` follows on this one."""
        clusters = None
        if self.clusters is not None and other.clusters is not None:
            clusters = np.union1d(self.clusters, other.clusters)
            refuse_many_clusters(len(clusters))
        return Survey(
            {name: column + other.columns[name] for name, column in self.columns.items()},
            clusters,
            (*self.sample, *other.sample),
            tuple(dict.fromkeys((*self.notes, *other.notes))),
        )


def survey_batch(
    frame: pd.DataFrame,
    roles: Sequence[tuple[str, Role]],
    edges: Mapping[str, Sequence[float] | None],
    file: str,
    rows: NDArray[np.intp],
    notes: tuple[str, ...],
) -> Survey:
    """Look at a batch of rows.

    Parameters
    ----------
    frame : DataFrame
    roles : sequence of (column, role)
    edges : mapping
        Cut points of sensitive columns; where there are some, a number of each group stands for its rows.
    file : str
        The name of the file that they are in.
    rows : ndarray of int
        Positions in `frame` of the rows that were drawn at random.
    notes : tuple of str

    Notes
    -----
    O(n) time for each column.
    """
    columns = {
        (name, role): _column(frame[name], role, file, edges.get(name) if role == "sensitive" else None)
        for name, role in roles
    }
    cluster = next((name for name, role in roles if role == "cluster"), None)
    clusters = None
    if cluster is not None:
        clusters = np.unique(value_hashes(frame[cluster]))
        refuse_many_clusters(len(clusters))
    return Survey(columns, clusters, (frame.iloc[rows],) if len(rows) else (), notes)


def refuse_many_clusters(clusters: int) -> None:
    """Refuse more clusters than can be summed up one by one."""
    if clusters > MOST_CLUSTERS:
        raise InputError(
            f"there are more than {MOST_CLUSTERS:,} clusters, and the data are streamed",
            expected="fewer: sums are kept of each",
            remedy="Audit a random sample of the clusters, or leave the cluster column out where clusters are small",
        )


def _column(series: "pd.Series[Any]", role: Role, file: str, edges: Sequence[float] | None) -> ColumnSurvey:
    kind = column_kind(series)
    if kind != "number":
        missing = _amiss(series.isna().to_numpy(), file)
        return ColumnSurvey(None if role == "cluster" else _counts(series), missing)
    values = numbers(series)
    finite = np.isfinite(values)
    known = values if finite.all() else values[finite]
    low, high = (float(known.min()), float(known.max())) if len(known) else (np.inf, -np.inf)
    counts: dict[Any, int] | None = None
    if edges:
        codes = np.searchsorted(np.asarray(edges, dtype=np.float64), values[~np.isnan(values)], side="right")
        rows = np.bincount(codes, minlength=len(edges) + 1)
        counts = {value: int(n) for value, n in zip(cut_representatives(edges), rows, strict=True) if n}
    elif role != "cluster":
        counts = _counts(series)
    return ColumnSurvey(
        counts,
        _amiss(~finite if role in ("predictions", "weights") else np.isnan(values), file),
        _amiss(known < 0, file) if low < 0 else None,
        _amiss((known < 0) | (known > 1), file) if low < 0 or high > 1 else None,
        low,
        high,
    )


def _amiss(mask: NDArray[np.bool_], file: str) -> Amiss | None:
    rows = int(np.count_nonzero(mask))
    return Amiss(file, rows) if rows else None


def _counts(series: "pd.Series[Any]") -> dict[Any, int] | None:
    """Return how often each value occurs; None where the first rows have too many values already."""
    if series.iloc[:_LOOK].nunique() > MOST_DISTINCT:
        return None
    codes, uniques = pd.factorize(series, use_na_sentinel=True)
    if len(uniques) > MOST_DISTINCT:
        return None
    counts = np.bincount(codes[codes >= 0], minlength=len(uniques))
    found: dict[Any, int] = {}
    for value, count in zip(uniques, counts, strict=True):
        plain = value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
        if plain == plain:  # NaN inside nullable columns
            found[plain] = found.get(plain, 0) + int(count)
    return found
