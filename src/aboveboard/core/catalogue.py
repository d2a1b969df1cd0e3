"""The catalogue: one ``.toml`` per method beside its experiment, read without importing the method."""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["Method", "catalogue", "find_method"]

Role = Literal["audit", "repair", "learner", "guarantee", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One entry of the catalogue.

    Parameters
    ----------
    name : str
        What users type; the public name of the class or function.
    slug, area : str
        File name and folder of the module, its tests, its page and its experiment.
    import_path : str
        ``"aboveboard.fairness.randomized_fair_boc:RandomizedFairClassifier"``.
    summary : str
        What it does for whom, in one sentence.
    role : tuple of {"audit", "repair", "learner", "guarantee", "model"}
    tier : {"stable", "experimental"}
    paper : Reference
    extras : tuple of str
        Extras it needs beyond the base installation.
    remedy : str
        A snippet of Python that a report shows where this method is the remedy; run by a test.
    """

    name: str
    slug: str
    area: str
    import_path: str
    summary: str
    role: tuple[Role, ...]
    tier: Literal["stable", "experimental"]
    paper: Reference
    extras: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def evidence(self) -> dict[str, Any] | None:
        """The recorded evidence, or None where nothing has been recorded."""
        file = _root() / self.area / f"{self.slug}.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def catalogue() -> tuple[Method, ...]:
    """Return every method, sorted by area and slug."""
    return _read()


def find_method(name: str) -> Method:
    """Return the method called `name`: its public name or its slug, in any case, with or without its area.

    Raises
    ------
    InputError
        When there is none; the message names the nearest.
    """
    from difflib import get_close_matches

    wanted = name.casefold().rpartition("/")[2]
    names = {alias.casefold(): m for m in catalogue() for alias in (m.name, m.slug)}
    if wanted in names:
        return names[wanted]
    near = get_close_matches(wanted, names, n=1, cutoff=0.5)
    hint = f"Did you mean {names[near[0]].name!r}? " if near else ""
    raise InputError(f"no method is called {name!r}", remedy=f"{hint}List them with: aboveboard methods")


@cache
def _read() -> tuple[Method, ...]:
    methods = []
    for area in _root().iterdir():
        if area.is_dir():
            methods += [_entry(area.name, file) for file in area.iterdir() if file.name.endswith(".toml")]
    return tuple(sorted(methods, key=lambda method: (method.area, method.slug)))


def _entry(area: str, file: Traversable) -> Method:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    data["paper"] = Reference.from_dict(data["paper"])
    for name in ("role", "extras"):
        data[name] = tuple(data.get(name, ()))
    return Method(slug=file.name.removesuffix(".toml"), area=area, **data)


def _root() -> Traversable:
    return resources.files("aboveboard") / "reproduce"
