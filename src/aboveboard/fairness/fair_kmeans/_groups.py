"""Sensitive features as cells, and the bounds that each cluster must keep, as rows of a small matrix."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core import InputError
from aboveboard.fairness.randomized_fair_boc._groups import group_codes

__all__ = ["Fairness", "Group", "Groups", "read_groups", "shares_allowed"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_SAME: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Group:
    """One value of one sensitive column."""

    attribute: str
    value: Any

    @property
    def label(self) -> str:
        return f"{self.attribute}={self.value}"


@dataclass(frozen=True, slots=True)
class Groups:
    """Who belongs to what.

    Attributes
    ----------
    cell : ndarray of int, shape (n,)
        Rows that agree in all sensitive columns share a cell.
    groups : list of Group
        The values of each column in turn.
    member : ndarray of bool, shape (groups, cells)
    attributes : list of str
        Names of the sensitive columns.
    """

    cell: Indices
    groups: list[Group]
    member: NDArray[np.bool_]
    attributes: list[str]

    @property
    def n_cells(self) -> int:
        return int(self.member.shape[1])

    @property
    def attribute_of(self) -> NDArray[np.object_]:
        return np.array([group.attribute for group in self.groups], dtype=object)

    def cell_counts(self) -> Indices:
        return np.bincount(self.cell, minlength=self.n_cells)


def read_groups(sensitive_features: Any, n: int, *, index: Any = None) -> Groups:
    """Return the cells and groups of sensitive columns; one cell and no group where there are none.

    Raises
    ------
    InputError
        For another number of rows, another index, missing values, or two columns of one name.
    """
    if sensitive_features is None:
        return Groups(np.zeros(n, dtype=np.intp), [], np.zeros((0, 1), dtype=bool), [])
    names = _names(sensitive_features)
    if isinstance(sensitive_features, pd.Series):
        sensitive_features = sensitive_features.to_frame(0).set_axis(pd.Index(names, dtype=object), axis=1)
    cell, labels = group_codes(sensitive_features, n, index=index)
    values = [label if len(names) > 1 else (label,) for label in labels]
    if len(set(names)) < len(names):
        raise InputError(
            f"sensitive_features has columns of one name: {', '.join(map(repr, names))}", expected="a name for each"
        )
    groups: list[Group] = []
    member: list[list[bool]] = []
    for position, name in enumerate(names):
        for value in dict.fromkeys(sorted((v[position] for v in values), key=lambda v: (type(v).__name__, v))):
            groups.append(Group(name, value))
            member.append([v[position] == value for v in values])
    return Groups(cell, groups, np.array(member, dtype=bool), names)


def _names(given: Any) -> list[str]:
    """Return the names of the sensitive columns."""
    columns = getattr(given, "column_names", None) or getattr(given, "columns", None)  # PyArrow, then pandas and Polars
    if columns is not None:
        return [str(name) for name in columns]
    if np.ndim(given) == 2:
        return [f"column {position}" for position in range(np.shape(given)[1])]
    name = getattr(given, "name", None)
    return [str(name) if name not in (None, "") else "group"]


def shares_allowed(groups: Groups, slack: float, bounds: Any) -> Floats:
    """Return the least and the largest share of each group in a cluster, shape (groups, 2).

    Raises
    ------
    InputError
        For bounds that are malformed, name nobody, cross, or cannot be met whatever the clusters are.
    """
    counts = groups.cell_counts()
    share = groups.member @ counts / max(counts.sum(), 1)
    if bounds is None:
        if not isinstance(slack, int | float | np.number) or not 0 <= slack < 1:
            raise InputError(f"slack is {slack!r}", expected="a number of at least 0 and below 1")
        return np.column_stack([share * (1 - slack), np.minimum(1.0, share / (1 - slack))])
    allowed = np.tile([0.0, 1.0], (len(groups.groups), 1))
    place = {(group.attribute, group.value): row for row, group in enumerate(groups.groups)}
    for attribute, value, pair in _listed(groups, bounds):
        if (attribute, value) not in place:
            known = ", ".join(repr(g.value) for g in groups.groups if g.attribute == attribute)
            raise InputError(f"bounds name the group {value!r}, which is absent from {attribute!r}", expected=known)
        allowed[place[attribute, value]] = _pair(pair, f"{attribute}={value}")
    _refuse_impossible(groups, share, allowed)
    return allowed


def _listed(groups: Groups, bounds: Any) -> list[tuple[str, Any, Any]]:
    """Return (column, group, pair) for bounds by group, or by column and group."""
    if not isinstance(bounds, Mapping) or not bounds:
        raise InputError(
            f"bounds is {bounds!r}",
            expected="a mapping such as {'Female': (0.3, 0.6)}, or {'sex': {'Female': (0.3, 0.6)}} by column",
        )
    if not groups.groups:
        raise InputError("bounds were given without sensitive_features", expected="the group of each row")
    if all(isinstance(inner, Mapping) for inner in bounds.values()):
        unknown = [name for name in bounds if str(name) not in groups.attributes]
        if unknown:
            raise InputError(
                f"bounds name the sensitive column {unknown[0]!r}",
                expected="one of " + ", ".join(map(repr, groups.attributes)),
            )
        return [(str(name), value, pair) for name, inner in bounds.items() for value, pair in inner.items()]
    if len(groups.attributes) > 1:
        raise InputError(
            f"there are {len(groups.attributes)} sensitive columns, and bounds do not say which they are about",
            expected="bounds by column and group, such as {'sex': {'Female': (0.3, 0.6)}}",
        )
    return [(groups.attributes[0], value, pair) for value, pair in bounds.items()]


def _pair(pair: Any, label: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError) as error:
        raise InputError(f"the bounds of {label} are {pair!r}", expected="two shares, (least, largest)") from error
    if not 0 <= low <= high <= 1:
        raise InputError(
            f"the bounds of {label} are ({low:g}, {high:g})", expected="0 <= least share <= largest share <= 1"
        )
    return low, high


def _refuse_impossible(groups: Groups, share: Floats, allowed: Floats) -> None:
    """Refuse bounds that no clustering meets: those that the whole data does not."""
    for attribute in groups.attributes:
        rows = groups.attribute_of == attribute
        least, most = allowed[rows].sum(axis=0)
        if least > 1 + _SAME:
            raise InputError(
                f"the least shares of the groups of {attribute!r} add up to {least:g}", expected="at most 1"
            )
        if most < 1 - _SAME:
            raise InputError(
                f"the largest shares of the groups of {attribute!r} add up to {most:g}", expected="at least 1"
            )
    outside = (share < allowed[:, 0] - _SAME) | (share > allowed[:, 1] + _SAME)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{groups.groups[row].label} is {share[row]:.4g} of the data, and its bounds are "
            f"({allowed[row, 0]:g}, {allowed[row, 1]:g})",
            expected="bounds around the share in the data: the clusters together are the data",
        )


@dataclass(frozen=True)
class Fairness:
    """The demands on the masses m (cells x clusters): ``rows @ m <= 0``, with equality where `equal`.

    Attributes
    ----------
    rows : ndarray of shape (demands, cells)
    equal : ndarray of bool, shape (demands,)
    """

    rows: Floats
    equal: NDArray[np.bool_]

    @classmethod
    def of(cls, groups: Groups, allowed: Floats) -> "Fairness":
        """Write bounds as demands; those that always hold are left out."""
        rows, equal = [], []
        for member, (low, high) in zip(groups.member.astype(np.float64), allowed, strict=True):
            if high - low <= _SAME:
                rows.append(member - high)
                equal.append(True)
                continue
            if high < 1:
                rows.append(member - high)
                equal.append(False)
            if low > 0:
                rows.append(low - member)
                equal.append(False)
        matrix = np.array(rows, dtype=np.float64).reshape(len(rows), groups.n_cells)
        binds = np.any(matrix > _SAME, axis=1) | (np.array(equal, dtype=bool) & np.any(matrix < -_SAME, axis=1))
        return cls(matrix[binds], np.array(equal, dtype=bool)[binds])

    @cached_property
    def scale(self) -> Floats:
        """Size of each demand, to bring their prices to one scale."""
        return np.asarray(np.sqrt((self.rows**2).mean(axis=1)))

    def violation(self, mass: Floats) -> Floats:
        """Return by how many points each demand is missed in each cluster, shape (demands, clusters)."""
        excess = self.rows @ mass
        return np.asarray(np.where(self.equal[:, None], np.abs(excess), np.maximum(excess, 0.0)))
