"""A network of accounts and their opinions: one row per edge, with the opinions of its ends beside it."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from aboveboard.auditing.frames import column_kind, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

__all__ = ["NetworkSubject", "example", "read"]

Floats = NDArray[np.float64]

_DIRECTIONS: Final = {
    "listens": "the source listens to the target",
    "influences": "the target listens to the source",
    "mutual": "both listen to each other",
}


@dataclass(frozen=True, kw_only=True)
class NetworkSubject(SuiteSubject):
    """Who listens to whom, and what each thinks.

    Attributes
    ----------
    weights : csr_array of shape (accounts, accounts)
        Row i holds whom account i listens to.
    opinion : ndarray or None
        Own opinions; None where no column was named.
    accounts : tuple of str
    named : bool
        Whether the report may name accounts.
    direction : str
    radius : float
        By how much weights may change in the repair that is priced.
    decided_by : str
        Who decides on the weights, within a sentence.
    """

    weights: sparse.csr_array
    opinion: Floats | None
    accounts: tuple[str, ...]
    named: bool
    direction: str
    radius: float
    decided_by: str

    def __len__(self) -> int:
        return len(self.accounts)

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        edges = self.weights.nnz
        return f"a network of {len(self):,} accounts and {edges:,} {'edge' if edges == 1 else 'edges'}"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts, and how rows were read."""
        return (
            ("Edges, each way", self.weights.nnz),
            ("A row says that", _DIRECTIONS[self.direction]),
            ("Accounts that listen to nobody", int((np.diff(self.weights.indptr) == 0).sum())),
            ("Opinions", "none" if self.opinion is None else "given"),
            ("Accounts in the report", "named" if self.named else "not named"),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> NetworkSubject:
    """Read edges and opinions.

    Parameters
    ----------
    table : RoleColumns
        source, target; weight, opinion (of the source), target_opinion. A row without a target tells an account.
    settings : mapping
        direction, accounts, radius, decided_by.

    Raises
    ------
    InputError
        Without source and target; for missing sources, weights that are none, an account with two opinions, and, where
        opinions are given, one without.
    """
    from aboveboard.collective import network_from_edges

    table.need("source", "target", why="the two ends of each edge")
    radius = settings.get("radius", 0.2)
    if not radius > 0:
        raise InputError(f"the setting radius is {radius:g}", expected="a number above 0")
    first, second = table["source"], table["target"]
    if first.isna().any():
        raise InputError(
            f"the source is missing in {int(first.isna().sum()):,} rows",
            expected="a source in every row",
            remedy="An account that listens to nobody is a row with a source and no target",
        )
    edge = second.notna().to_numpy()
    codes, names = pd.factorize(np.array([*_labels(first), *_labels(second[edge])], dtype=object), sort=True)
    i, j = codes[: len(first)], codes[len(first) :]
    n = len(names)
    weight = _weights(table.get("weight"), edge)
    direction = settings.get("direction", "listens")
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        weights = network_from_edges(i[edge], j, weight, n=n, direction=direction)
    notes += [f"{str(warning.message).capitalize()}." for warning in told if warning.category is UserWarning]
    if "direction" not in settings:
        notes.append("Each row is read as: the source listens to the target (--setting direction=...).")
    repeated = int(edge.sum()) * (2 if direction == "mutual" else 1) - weights.nnz
    if repeated > 0 and not told:
        notes.append(f"{repeated:,} edges occur more than once; their weights are added up.")
    opinion = _opinions(table, i, j, edge, names, notes)
    return NetworkSubject(
        weights=weights,
        opinion=opinion,
        accounts=tuple(names),
        named=settings.get("accounts") == "named",
        direction=direction,
        radius=radius,
        decided_by=settings.get("decided_by", "whoever sets the weights of this network"),
        data_sha256=fingerprint(
            list(names), weights.indptr, weights.indices, weights.data, np.zeros(0) if opinion is None else opinion
        ),
        notes=tuple(notes),
        **common,
    )


def example(*, random_state: int) -> Example:  # noqa: ARG001 - real data
    """Return Zachary's karate club with the factions that its members joined."""
    from aboveboard.data import load_karate

    return Example(
        frame=load_karate().X.drop(columns="weight"),
        columns={
            "source": "source", "target": "target", "opinion": "source_faction", "target_opinion": "target_faction",
        },
        settings={"direction": "mutual", "decided_by": "the club"},
        note=(
            "The example: Zachary's karate club, 34 people and their 78 ties; opinions are the factions that they "
            "joined when the club split."
        ),
    )  # fmt: skip


# --- columns ----------------------------------------------------------------------------------------------------------


def _labels(series: "pd.Series[Any]") -> list[str]:
    values, found = pd.factorize(series.astype(object))
    texts = [plain_label(value) for value in found]
    return [texts[value] for value in values]


def _weights(series: "pd.Series[Any] | None", edge: NDArray[np.bool_]) -> Floats | None:
    if series is None:
        return None
    weight = _numbers(series)[edge]
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise InputError(
            f"the column {series.name!r} holds weights that are missing, infinite or below 0",
            expected="a finite weight, 0 or more, for every edge",
        )
    return weight


def _opinions(
    table: RoleColumns, i: NDArray[Any], j: NDArray[Any], edge: NDArray[np.bool_], names: Any, notes: list[str]
) -> Floats | None:
    """Return one opinion per account, from both ends of the edges."""
    parts = [(table.get("opinion"), np.ones(len(edge), dtype=bool), i), (table.get("target_opinion"), edge, j)]
    given = [(column[rows], codes) for column, rows, codes in parts if column is not None]
    if not given:
        notes.append("No opinions were named, so only what holds for any opinions is said.")
        return None
    values = _one_scale([column for column, _ in given], notes)
    accounts = np.concatenate([codes for _, codes in given])
    known = ~np.isnan(values)
    accounts, values = accounts[known], values[known]
    if not np.isfinite(values).all():
        raise InputError("an opinion is infinite", expected="finite numbers")
    opinion = np.full(len(names), np.nan)
    opinion[accounts] = values
    differ = opinion[accounts] != values
    if differ.any():
        raise InputError(
            f"the account {names[accounts[differ.argmax()]]!r} has more than one opinion",
            expected="the same opinion in all rows of an account",
        )
    without = np.isnan(opinion)
    if without.any():
        raise InputError(
            f"{int(without.sum()):,} accounts have no opinion, {names[without.argmax()]!r} among them",
            expected="an opinion for every account",
            remedy="Name the column of the target's opinion too (target_opinion), or add rows with a source, its "
            "opinion and no target",
        )
    return opinion


def _one_scale(columns: list["pd.Series[Any]"], notes: list[str]) -> Floats:
    """Return opinions as numbers, NaN where missing; two words become -1 and 1."""
    if all(column_kind(column) in ("number", "boolean") for column in columns):
        return np.concatenate([_numbers(column) for column in columns])
    every = pd.concat([column.astype(object) for column in columns], ignore_index=True)
    words = sorted({plain_label(value) for value in every.dropna().unique()})
    if len(words) != 2:
        raise InputError(
            f"the opinions are {len(words)} different words or numbers mixed with words",
            expected="numbers, or two words for two sides",
        )
    notes.append(f"Opinions are words: {words[0]} counts as -1, {words[1]} as 1.")
    sides = {words[0]: -1.0, words[1]: 1.0}
    return np.array([np.nan if missing else sides[plain_label(v)] for v, missing in zip(every, every.isna())])


def _numbers(series: "pd.Series[Any]") -> Floats:
    if column_kind(series) not in ("number", "boolean"):
        raise InputError(f"the column {series.name!r} holds something that is no number", expected="numbers")
    return np.asarray(numbers(series), dtype=np.float64)
