"""What is known about each data set, read from the manifest: no data, no NumPy, no pandas.

The prose (title, licence, caveats) is in ``manifest.toml``, the checksums of the bundled files are in ``bundle.toml``.
"""

import difflib
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["DatasetInfo", "FileInfo", "info", "list_datasets"]

PACKAGE = Path(__file__).parent
Task = Literal["binary", "multiclass", "regression", "ranking", "votes", "network"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One file that a loader reads, or that a public source publishes.

    Parameters
    ----------
    name : str
    sha256 : str
        Hexadecimal. Empty for a published file whose checksum is not known; then only what is made of it is checked.
    url : str
        Where it can be downloaded; empty for bundled and for prepared files.
    bytes : int
        Size where known, else 0.
    rows, columns : int
        Of a bundled table, target included; else 0.
    """

    name: str
    sha256: str = ""
    url: str = ""
    bytes: int = 0
    rows: int = 0
    columns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """What is known about a data set without reading it.

    Parameters
    ----------
    name, title, summary : str
        `summary` is one line.
    task : {"binary", "multiclass", "regression", "ranking", "votes", "network"}
    target : str
        Name of the target; empty for rankings, votes and networks.
    positive : str
        Label that counts as 1; empty unless the task is binary.
    sensitive : tuple of str
    rows, columns : int
        Of what the loader returns by default, without the target.
    published_rows : int
        Rows that the source publishes.
    bundled : bool
        Whether it ships with the package; else it is looked for in ``ABOVEBOARD_DATA``, then in the cache.
    licence : str
    licence_path : Path or None
        Text of the licence, or the notice that takes its place, where it ships with the package.
    provenance, url : str
    reference : Reference
    caveats : tuple of str
    files : tuple of FileInfo
        What the loader reads.
    originals : tuple of FileInfo
        What the source publishes, where that has to be converted into `files`.
    checked : {"bytes", "gunzipped", "arrays"}
        What a checksum in `files` covers: the file, its decompressed content, or the arrays in it.
    debian_package, system_folder : str
        A Debian package that installs the files, and where; or empty.
    prompts : mapping of str to str
        Names and wordings of the questions, for votes; else empty.
    """

    name: str
    title: str
    summary: str
    task: Task
    target: str
    positive: str
    sensitive: tuple[str, ...]
    rows: int
    columns: int
    published_rows: int
    bundled: bool
    licence: str
    licence_path: Path | None
    provenance: str
    url: str
    reference: Reference
    caveats: tuple[str, ...]
    files: tuple[FileInfo, ...]
    originals: tuple[FileInfo, ...] = ()
    checked: Literal["bytes", "gunzipped", "arrays"] = "bytes"
    debian_package: str = ""
    system_folder: str = ""
    prompts: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def published(self) -> tuple[FileInfo, ...]:
        """The files as the source publishes them."""
        return self.originals or self.files

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: text, numbers, lists and dicts; of a path only the file's name."""
        plain: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if name in ("files", "originals"):
                value = [{key: getattr(file, key) for key in FileInfo.__slots__} for file in value]
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Reference):
                value = value.to_dict()
            elif isinstance(value, MappingProxyType):
                value = dict(value)
            elif isinstance(value, Path):
                value = value.name
            plain[name] = value
        return plain


def list_datasets() -> tuple[DatasetInfo, ...]:
    """List every data set, bundled ones first.

    Returns
    -------
    tuple of DatasetInfo

    Examples
    --------
    >>> from aboveboard.data import list_datasets
    >>> [record.name for record in list_datasets() if record.bundled]
    ['adult', 'german_credit', 'credit_default', 'communities_crime', 'acs_employment', 'karate', 'les_miserables']
    """
    return tuple(_records().values())


def info(name: str) -> DatasetInfo:
    """Return what is known about a data set without reading it.

    Parameters
    ----------
    name : str
        A name from `list_datasets`; hyphens and capitals are accepted.

    Raises
    ------
    aboveboard.core.InputError
        When there is no such data set; names the nearest.

    Examples
    --------
    >>> from aboveboard.data import info
    >>> record = info("adult")
    >>> record.rows, record.licence, record.sensitive
    (48842, 'CC BY 4.0', ('sex', 'race', 'age'))
    """
    records = _records()
    wanted = name.strip().lower().replace("-", "_").removeprefix("load_")
    if wanted in records:
        return records[wanted]
    near = difflib.get_close_matches(wanted, records, n=1, cutoff=0.5)
    raise InputError(
        f"There is no data set named {name!r}",
        expected=f"one of {', '.join(records)}",
        remedy=f"The nearest is {near[0]!r}" if near else "'aboveboard data list' describes each",
    )


@cache
def _records() -> dict[str, DatasetInfo]:
    manifest = tomllib.loads((PACKAGE / "manifest.toml").read_text(encoding="utf-8"))
    bundle = tomllib.loads((PACKAGE / "bundle.toml").read_text(encoding="utf-8"))
    keys = ("name", "sha256", "bytes", "rows", "columns")
    bundled = [FileInfo(**{key: entry[key] for key in keys}) for entry in bundle["files"]]
    return {name: _record(name, entry, bundled) for name, entry in manifest.items()}


def _record(name: str, entry: dict[str, Any], bundled: list[FileInfo]) -> DatasetInfo:
    fields = dict(entry)
    if fields["bundled"]:
        files = tuple(file for file in bundled if file.name.startswith(name))
        fields |= {"rows": files[-1].rows, "columns": files[-1].columns - bool(fields["target"])}
    else:
        files = tuple(FileInfo(**file) for file in fields["files"])
    licence_file = fields.pop("licence_file")
    return DatasetInfo(
        **fields
        | {
            "name": name,
            "sensitive": tuple(fields["sensitive"]),
            "caveats": tuple(fields["caveats"]),
            "reference": Reference(**fields["reference"]),
            "licence_path": PACKAGE / "licences" / licence_file if licence_file else None,
            "files": files,
            "originals": tuple(FileInfo(**file) for file in fields.get("originals", ())),
            "prompts": MappingProxyType(fields.get("prompts", {})),
        }
    )
