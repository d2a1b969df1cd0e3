"""What the suites other than the tabular one share: their subject, the columns with their roles, the example."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, Self

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import missing_column
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.suites import CheckSpec, Suite, find_suite
from aboveboard.core.errors import InputError

__all__ = ["Audited", "Example", "RoleColumns", "SuiteSubject", "fingerprint", "read_settings"]


class Audited(Protocol):
    """What the runner must be able to ask the subject of any suite."""

    @property
    def limits(self) -> Limits: ...
    @property
    def min_cell(self) -> int: ...
    @property
    def n_jobs(self) -> int | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def sample(self, n: int, random_state: int) -> "Audited": ...
    def sizes(self, spec: CheckSpec) -> dict[str, int]: ...
    def lacking(self, spec: CheckSpec) -> str: ...
    def describe(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class SuiteSubject:
    """What a suite audits; a suite's own subject adds its data.

    A subclass has `__len__` (how many of the suite's units there are), `summary` and `facts`. An attribute that bears
    the name of a role and is None says that no column has that role: checks that need it do not apply.

    Attributes
    ----------
    suite : str
    data : {"real", "simulated"}
        Where the data come from; every finding says so.
    data_sha256 : str
        Fingerprint of the data, see `fingerprint`.
    columns : tuple of (str, str)
        Role and name of each column that was named.
    limits : Limits
    min_cell : int
        No figure may be shown that describes fewer people than this.
    n_jobs : int or None
    notes : tuple of str
        What the reader should know about how the data were read.
    """

    suite: str
    data: Literal["real", "simulated"] = "real"
    data_sha256: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    min_cell: int = 10
    n_jobs: int | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """What was audited, in a few words: "100 judges and 7 items"."""
        raise NotImplementedError

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return names and values that tell what was audited: counts, settings; no names of people."""
        raise NotImplementedError

    def sample(self, n: int, random_state: int) -> Self:  # noqa: ARG002 - the signature of the runner
        """Return `n` units drawn at random; for suites with a check that has a row cap."""
        raise TypeError(f"nothing can be drawn from the data of the suite {self.suite}: its checks have no row caps")

    def sizes(self, spec: CheckSpec) -> dict[str, int]:  # noqa: ARG002 - the signature of the runner
        """Return how many units a row cap of a check applies to, by what they are called."""
        return {find_suite(self.suite).unit[1]: len(self)}

    def lacking(self, spec: CheckSpec) -> str:
        """Return why a check does not apply, or an empty text."""
        for need in sorted(spec.needs):
            if getattr(self, need) is None:
                return f"No column was named as {need} (columns, --column {need}=NAME)."
        return ""

    def describe(self) -> dict[str, Any]:
        """Return what was audited, for the report: counts, names of columns and a fingerprint, never rows."""
        return {
            "suite": self.suite,
            "summary": self.summary,
            "data": self.data,
            "rows": len(self),
            "facts": [{"name": name, "value": value} for name, value in self.facts()],
            "columns": [{"role": role, "name": name} for role, name in self.columns],
            "min_cell": self.min_cell,
            "data_sha256": self.data_sha256,
        }


@dataclass(frozen=True, kw_only=True)
class Example:
    """The table that a suite audits where none is given, with all that a user would say about it.

    Parameters
    ----------
    frame : DataFrame
    columns : mapping of role to column name, or to a list of them
    settings : mapping of str to str or float
    data : {"real", "simulated"}
    note : str
        Where it comes from, in one sentence.
    """

    frame: pd.DataFrame
    columns: Mapping[str, str | list[str]] = field(default_factory=dict)
    settings: Mapping[str, str | float] = field(default_factory=dict)
    data: Literal["real", "simulated"] = "real"
    note: str = ""


class RoleColumns:
    """A table, and the roles that its columns have.

    Parameters
    ----------
    frame : DataFrame
        With text column names.
    suite : Suite
    given : mapping of role to column name, or to several where the role allows it

    Raises
    ------
    InputError
        For a role that the suite does not have or a column that is not there (the nearest name is suggested), several
        columns for a role that takes one, and a column with two roles.
    """

    def __init__(self, frame: pd.DataFrame, suite: Suite, given: Mapping[str, Any]) -> None:
        self.frame = frame
        roles = {role.name: role for role in suite.columns}
        columns = [str(name) for name in frame.columns]
        self.named: dict[str, tuple[str, ...]] = {}
        taken: dict[str, str] = {}
        for name, value in given.items():
            if name not in roles:
                raise _unknown(name, list(roles), suite, "column", "role")
            names = tuple(value) if isinstance(value, list | tuple) else (value,)
            if not names or not all(isinstance(column, str) for column in names):
                raise InputError(f"the column with the role {name} is {value!r}", expected="the name of a column")
            if len(names) > 1 and not roles[name].many:
                raise InputError(f"{len(names)} columns were named as {name}", expected="one")
            for column in names:
                if column not in columns:
                    raise missing_column(column, columns, f"role {name}")
                if column in taken:
                    both = name if taken[column] == name else f"{taken[column]} and {name}"
                    raise InputError(f"the column {column!r} is named twice ({both})", expected="one role per column")
                taken[column] = name
            self.named[name] = names

    def __contains__(self, role: str) -> bool:
        return role in self.named

    def __getitem__(self, role: str) -> "pd.Series[Any]":
        """Return the column of a role that takes one."""
        return self.frame[self.named[role][0]]

    def get(self, role: str) -> "pd.Series[Any] | None":
        """Return the column of a role that takes one, or None."""
        names = self.named.get(role)
        return None if names is None else self.frame[names[0]]

    def all(self, role: str) -> list["pd.Series[Any]"]:
        """Return the columns of a role that takes several."""
        return [self.frame[name] for name in self.named.get(role, ())]

    def left(self) -> list[str]:
        """Return the columns without a role."""
        taken = {name for names in self.named.values() for name in names}
        return [str(name) for name in self.frame.columns if name not in taken]

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return role and name of each column that has a role."""
        return tuple((role, name) for role, names in self.named.items() for name in names)

    def need(self, *roles: str, why: str) -> None:
        """Refuse a table in which no column has one of `roles`."""
        for role in roles:
            if role not in self:
                raise InputError(
                    f"no column was named as {role}",
                    expected=f"{why}: {', '.join(roles)}",
                    remedy=f"Say columns={{{role!r}: NAME}} (--column {role}=NAME)",
                )


def read_settings(suite: Suite, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as their specification wants them: texts among the choices, numbers as float.

    Raises
    ------
    InputError
        For a setting that the suite does not have, or a value that it cannot have.
    """
    known = {setting.name: setting for setting in suite.settings}
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise _unknown(name, list(known), suite, "setting", "setting")
        setting = known[name]
        if setting.number:
            try:
                number = float("nan") if isinstance(value, bool) else float(value)
            except (TypeError, ValueError):
                number = float("nan")
            if not np.isfinite(number):
                raise InputError(f"the setting {name} is {value!r}", expected="a number")
            read[name] = number
            continue
        text = str(value)
        if setting.choices and text not in setting.choices:
            raise InputError(f"the setting {name} is {text!r}", expected=", ".join(setting.choices))
        read[name] = text
    return read


_UNKNOWN_ROLE: Final = "the suite {} has no {} called {!r}"


def _unknown(name: str, known: list[str], suite: Suite, option: str, what: str) -> InputError:
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    return InputError(
        _UNKNOWN_ROLE.format(suite.name, what, name),
        expected=", ".join(known) or f"no --{option} at all",
        remedy=f"Did you mean {near[0]!r}?" if near else "",
    )


def fingerprint(*parts: Any) -> str:
    """Return the sha256 of arrays and texts, alike for every container that they came in.

    Parameters
    ----------
    *parts : array of numbers, or sequence of str
        NaN counts as one value; texts keep their order.
    """
    digest = hashlib.sha256()
    for part in parts:
        values = np.asarray(part)
        if values.dtype.kind in "biuf":
            plain = np.ascontiguousarray(values, dtype="float64") + 0.0
            plain[np.isnan(plain)] = np.nan
            digest.update(repr(plain.shape).encode() + plain.tobytes())
        else:
            digest.update("\x00".join(map(str, values.ravel())).encode("utf-8", "surrogatepass") + b"\x01")
    return digest.hexdigest()
