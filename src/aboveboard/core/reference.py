"""Where a method, a limit or a data set comes from."""

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Reference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One work that is relied upon.

    Parameters
    ----------
    title, authors, venue : str
        Authors as ``"A. First, B. Second"``.
    year : int
    url, doi : str
        Empty when there is none.
    """

    title: str
    authors: str = ""
    venue: str = ""
    year: int | None = None
    url: str = ""
    doi: str = ""

    def __str__(self) -> str:
        parts = [self.authors, f'"{self.title}"', self.venue, str(self.year or "")]
        text = ", ".join(part for part in parts if part) + "."
        if self.doi:
            return f"{text} https://doi.org/{self.doi}"
        return f"{text} {self.url}" if self.url else text

    def bibtex(self, key: str | None = None) -> str:
        """Return a BibTeX entry; `key` defaults to first author, year and first long word of the title."""
        fields = {
            "title": f"{{{_escaped(self.title)}}}",
            "author": " and ".join(_escaped(name.strip()) for name in self.authors.split(",") if name.strip()),
            "booktitle": _escaped(self.venue),
            "year": str(self.year or ""),
            "doi": self.doi,
            "url": self.url,
        }
        body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
        return f"@inproceedings{{{key or self._key()},\n{body}\n}}"

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("title", "authors", "venue", "year", "url", "doi")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Reference":
        return cls(**data)

    def _key(self) -> str:
        surname = self.authors.split(",")[0].split()[-1:] or ["anonymous"]
        word = next((w for w in re.findall(r"[A-Za-z]+", self.title) if len(w) > 3), "untitled")
        return re.sub(r"[^a-z0-9]", "", f"{surname[0]}{self.year or ''}{word}".lower())


def _escaped(text: str) -> str:
    """Return text with the characters that TeX reads as commands escaped."""
    return re.sub(r"(?<!\\)([&%#_])", r"\\\1", text)
