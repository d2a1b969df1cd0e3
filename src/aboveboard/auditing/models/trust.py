"""Which types in a skops file may be made into objects: those that somebody reviewed, or that the user names."""

import shlex
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from aboveboard.core.errors import InputError

__all__ = ["known_types", "untrusted_message"]

_FILE: Final = Path(__file__).parent.parent / "trusted_types.toml"
_MOST_SHOWN: Final = 40


@cache
def known_types() -> frozenset[str]:
    """Return the types of the reviewed list, auditing/trusted_types.toml."""
    groups = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return frozenset(name for group in groups.values() for name in group["types"])


def untrusted_message(file: str, types: Sequence[str]) -> InputError:
    """Return the refusal of a file that holds `types`, with the flag that would trust each."""
    shown = [
        f"{name!r} (--trust known)" if name in known_types() else f"{name!r} (--trust-type {shlex.quote(name)})"
        for name in types[:_MOST_SHOWN]
    ]
    if len(types) > _MOST_SHOWN:
        shown.append(f"and {len(types) - _MOST_SHOWN} more")
    count = f"{len(types)} types that are not trusted" if len(types) > 1 else "a type that is not trusted"
    return InputError(
        f"{file!r} holds {count}: {', '.join(shown)}",
        expected="types that skops trusts by itself, or that you vouch for",
        remedy="Trust only what you know: a type is code that runs when the file is read. In Python: trust='known', "
        "trust_types=[...]",
    )
