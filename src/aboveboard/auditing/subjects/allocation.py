"""A log of allocations: who asked for how much of a scarce stock, in what order, and what was granted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.frames import MISSING, column_kind, group_codes, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

__all__ = ["AllocationSubject", "example", "read"]

Floats = NDArray[np.float64]

_SLOTS: Final = 10
_MOST_SLOTS: Final = 1_000
_MOST_GROUPS: Final = 50
_ROUNDED: Final = 1e-3
"""How far rounded shares may sum to more than 1."""


@dataclass(frozen=True, kw_only=True)
class AllocationSubject(SuiteSubject):
    """Requests in order of arrival, and what was granted.

    Attributes
    ----------
    log : dict of name to column
        demand and granted; round and slot where they were named.
    supply : float, ndarray with a value for each row, or None
    groups : dict of column name to labels of the rows
    shares : dict of column name to (dict of label to share of the population)
    slots : int
        Into how many parts a queue is cut whose places have no name.
    """

    log: dict[str, Any]
    supply: float | Floats | None
    groups: dict[str, NDArray[Any]]
    shares: dict[str, dict[str, float]]
    slots: int

    def __len__(self) -> int:
        return int((self.log["demand"] > 0).sum())

    @property
    def rounds(self) -> int:
        """How many stocks were handed out."""
        return len(np.unique(self.log["round"])) if "round" in self.log else 1

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        requests = f"{len(self):,} {'request' if len(self) == 1 else 'requests'}"
        return f"the allocation of a stock to {requests}" + (f" in {self.rounds:,} rounds" if self.rounds > 1 else "")

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts and sums."""
        demand, granted = self.log["demand"], self.log["granted"]
        return (
            ("Rounds with a stock of their own", self.rounds),
            ("Rows without a request", len(demand) - len(self)),
            ("Granted, of all that was asked for", round(float(granted.sum() / max(demand.sum(), 1e-300)), 4)),
            ("Places in the queue", "named" if "slot" in self.log else f"up to {self.slots} parts of each queue"),
            ("Stock", "named" if self.supply is not None else "what was granted"),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> AllocationSubject:
    """Read the log.

    Parameters
    ----------
    table : RoleColumns
        With demand and granted, a row per request.
    settings : mapping
        stock, slots.

    Raises
    ------
    InputError
        When a column or a setting cannot be used, or roles do not go together.
    """
    table.need("demand", "granted", why="what was asked for, and what was granted")
    order = _order(table.get("order"), len(table.frame))
    demand, granted = (_amounts(table[role], role)[order] for role in ("demand", "granted"))
    if (granted[demand == 0] > 0).any():
        raise InputError("something was granted in rows where nothing was asked for", expected="a positive demand")
    if not demand.any():
        raise InputError("nothing is asked for in any row", expected="one positive demand at least")
    log: dict[str, Any] = {"demand": demand, "granted": granted}
    rounds = [_labels(table[role], role)[order] for role in ("round", "site") if role in table]
    if rounds:
        log["round"] = _crossed(rounds)
    if "slot" in table:
        log["slot"] = _slot(table["slot"])[order]
    groups = {str(column.name): _groups(column)[order] for column in table.all("group")}
    shares = _shares(table, groups, order)
    if "site" in table:
        site = table["site"]
        if site.nunique() <= _MOST_GROUPS:
            groups[str(site.name)] = _labels(site, "site")[order]
    supply = _supply(table, settings, order)
    slots = settings.get("slots", float(_SLOTS))
    if not slots.is_integer() or not 1 <= slots <= _MOST_SLOTS:
        raise InputError(f"the setting slots is {slots:g}", expected=f"a whole number from 1 to {_MOST_SLOTS:,}")
    notes = _notes(log, supply, table)
    parts = [demand, granted, *(list(map(str, log[name])) for name in ("round", "slot") if name in log)]
    parts += [list(labels) for labels in groups.values()] + [list(groups)]
    parts += [] if supply is None else [supply]
    parts += [list(map(str, part)) + list(part.values()) for part in shares.values()]
    return AllocationSubject(
        log=log,
        supply=supply,
        groups=groups,
        shares=shares,
        slots=int(slots),
        data_sha256=fingerprint(*parts),
        notes=notes,
        **common,
    )


def example(*, random_state: int) -> Example:
    """Return a simulated log: US communities ask for a share of a daily stock, and are served first come first."""
    from aboveboard.data import load_communities_crime

    rng = np.random.default_rng(random_state)
    data = load_communities_crime()
    people = data.X["population"].to_numpy(dtype=np.float64) + 0.01
    income = data.X["medIncome"].to_numpy(dtype=np.float64)
    groups = {
        "income": np.where(income < np.median(income), "lower half", "upper half"),
        "Black population": np.asarray(data.sensitive["black_population"].astype(str)),
    }
    frame = pd.DataFrame({"community": np.arange(len(people))})
    for name, labels in groups.items():
        total = pd.Series(people).groupby(labels).sum() / people.sum()
        frame[name] = labels
        frame[f"{name}, share"] = total.reindex(labels).round(4).to_numpy()
    frame["asked"] = np.round(people * rng.lognormal(0.0, 0.5, len(people)), 4)
    day = rng.permutation(len(people)) // 50
    frame["day"] = day
    frame["came"] = np.round(rng.normal(-income, 0.15), 4)
    stock = round(float(frame["asked"].sum() / (day.max() + 1) * 0.6), 3)
    frame = frame.sort_values(["day", "came"], ignore_index=True)
    before = frame.groupby("day")["asked"].cumsum() - frame["asked"]
    frame["granted"] = np.minimum(frame["asked"], np.maximum(stock - before, 0.0)).round(6)
    return Example(
        frame=frame,
        columns={
            "demand": "asked", "granted": "granted", "round": "day", "order": "came",
            "group": list(groups), "share": [f"{name}, share" for name in groups],
        },
        settings={"stock": stock},
        data="simulated",
        note=(
            "The example is simulated: 1,994 US communities (UCI Communities and Crime) ask, in proportion to their "
            "population and with noise, for part of a daily stock that meets 60 % of it; richer ones tend to come "
            "earlier, and who comes first is served first. A group's share is that of the people who live there."
        ),
    )  # fmt: skip


# --- columns ----------------------------------------------------------------------------------------------------------


def _amounts(series: "pd.Series[Any]", role: str) -> Floats:
    try:
        values = np.asarray(numbers(series), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {series.name!r} holds something that is no number", expected="numbers") from error
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        raise InputError(
            f"the {role} is missing, infinite or negative in {int(bad.sum()):,} rows",
            expected="numbers from 0 on",
            remedy="Write 0 where nothing was asked for, or granted",
        )
    return values


def _order(series: "pd.Series[Any] | None", n: int) -> NDArray[np.intp]:
    """Return the rows in order of arrival; those that came at the same time stay in the order of the file."""
    if series is None:
        return np.arange(n)
    if series.isna().any():
        raise InputError(
            f"the order is missing in {int(series.isna().sum()):,} rows", expected="a number or a time in every row"
        )
    kind = column_kind(series)
    if kind not in ("number", "datetime"):
        raise InputError(f"the column {series.name!r} holds {kind}", expected="numbers or times of arrival")
    plain = pd.Series(numbers(series)) if kind == "number" else pd.to_datetime(series)
    return np.argsort(plain.to_numpy(), kind="stable")


def _labels(series: "pd.Series[Any]", role: str) -> NDArray[Any]:
    if series.isna().any():
        raise InputError(f"the {role} is missing in {int(series.isna().sum()):,} rows", expected="a value in every row")
    codes, found = pd.factorize(series.astype(object))
    return np.array([plain_label(value) for value in found], dtype=object)[codes]


def _slot(series: "pd.Series[Any]") -> NDArray[Any]:
    """Return the places in the queue: numbers as they are, so that they keep their order, else texts."""
    if column_kind(series) == "number" and not series.isna().any():
        values = np.asarray(numbers(series), dtype=np.float64)
        return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values
    return _labels(series, "slot")


def _groups(series: "pd.Series[Any]") -> NDArray[Any]:
    labels = group_codes(series)[0].astype(object).to_numpy()
    size = len(pd.unique(labels))
    if size > _MOST_GROUPS:
        raise InputError(
            f"the group {series.name!r} has {size:,} values",
            expected=f"at most {_MOST_GROUPS}",
            remedy="Is it an identifier? Put values together first",
        )
    return np.asarray(labels)


def _crossed(columns: list[NDArray[Any]]) -> NDArray[np.intp]:
    """Return a number for each combination, in order of appearance."""
    codes = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        own, found = pd.factorize(column)
        codes = pd.factorize(codes * (len(found) + 1) + own)[0].astype(np.intp)
    return codes


def _shares(
    table: RoleColumns, groups: dict[str, NDArray[Any]], order: NDArray[np.intp]
) -> dict[str, dict[str, float]]:
    columns = table.all("share")
    if not columns:
        return {}
    if len(columns) != len(groups):
        raise InputError(
            f"{len(columns)} columns were named as share, and {len(groups)} as group",
            expected="one share for each group, in the same order",
        )
    found: dict[str, dict[str, float]] = {}
    for column, (name, labels) in zip(columns, groups.items()):
        known = labels != MISSING
        values = _amounts(column.iloc[order][known], "share")
        codes, names = pd.factorize(labels[known])
        stated = np.empty(len(names))
        stated[codes] = values
        if (stated[codes] != values).any() or not (stated > 0).all():
            raise InputError(
                f"a group of {name!r} has no share, or several", expected="the same positive share in all its rows"
            )
        if stated.sum() > 1.0 + _ROUNDED:
            raise InputError(
                f"the shares of {name!r} sum to {stated.sum():.4g}",
                expected="shares of the population, which sum to at most 1",
            )
        stated /= max(1.0, stated.sum())
        found[name] = dict(zip(map(str, names), stated.tolist()))
    return found


def _supply(table: RoleColumns, settings: Mapping[str, Any], order: NDArray[np.intp]) -> float | Floats | None:
    column = table.get("stock")
    if column is None:
        stock = settings.get("stock")
        if stock is not None and stock <= 0:
            raise InputError(f"the setting stock is {stock:g}", expected="a positive number")
        return None if stock is None else float(stock)
    if "stock" in settings:
        raise InputError("the stock was named as a column and as a setting", expected="one of the two")
    values = _amounts(column, "stock")[order]
    if not (values > 0).all():
        raise InputError("the stock is 0 in some rows", expected="the stock of the row's round")
    return values


def _notes(log: dict[str, Any], supply: float | Floats | None, table: RoleColumns) -> tuple[str, ...]:
    notes = []
    if supply is None:
        notes.append("No stock was named, so what was granted in a round counts as its stock.")
    if "round" not in log:
        notes.append("No round was named, so all requests were met from one stock.")
    if "order" not in table and "slot" not in table:
        notes.append("No order was named, so the rows count as being in order of arrival.")
    return tuple(notes)
