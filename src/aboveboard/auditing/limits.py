"""The limits that findings are judged against: defaults with reason and source, and the user's own."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from aboveboard.core.errors import InputError

__all__ = ["Limit", "Limits"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A number that somebody decided, and why.

    Parameters
    ----------
    name : str
        ``"<check>.<what>"``.
    value : float
    unit : str
        ``"points"`` for differences of rates, ``"share"``, ``"AUC"`` and so on.
    reason, source : str
    by_user : bool
    """

    name: str
    value: float
    unit: str
    reason: str
    source: str
    by_user: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "value", "unit", "reason", "source", "by_user")}


class Limits(Mapping[str, Limit]):
    """All limits in force, by name.

    Parameters
    ----------
    overrides : mapping of str to float
        The user's own values. A check's bare name stands for its limit where it has only one.

    Raises
    ------
    InputError
        For a name that no limit has, or a value that is not a finite number at or above 0.
    """

    def __init__(self, overrides: Mapping[str, float] | None = None) -> None:
        self._limits = dict(_defaults())
        for name, value in (overrides or {}).items():
            full = self._full_name(name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise InputError(f"the limit {full} is {value!r}", expected="a number at or above 0")
            self._limits[full] = replace(
                self._limits[full], value=float(value), reason="Set by the user.", source="the user", by_user=True
            )

    def __getitem__(self, name: str) -> Limit:
        return self._limits[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def of(self, check: str) -> tuple[Limit, ...]:
        """Return the limits of one check."""
        return tuple(limit for name, limit in self._limits.items() if name.startswith(f"{check}."))

    def _full_name(self, name: str) -> str:
        if name in self._limits:
            return name
        own = self.of(name)
        if len(own) == 1:
            return own[0].name
        if own:
            raise InputError(
                f"the check {name!r} has {len(own)} limits", expected=", ".join(limit.name for limit in own)
            )
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(self._limits), n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"no limit is called {name!r}", remedy=f"{hint}See: aboveboard audit --list-checks")


@cache
def _defaults() -> dict[str, Limit]:
    text = (resources.files("aboveboard.auditing") / "limits.toml").read_text(encoding="utf-8")
    return {
        f"{check}.{what}": Limit(name=f"{check}.{what}", **entry)
        for check, entries in tomllib.loads(text).items()
        for what, entry in entries.items()
    }
