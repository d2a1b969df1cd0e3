"""Parquet files and folders of them: what they hold is read from their footers, their rows part by part.

A part is one or more row groups of one file, so that parts can be read by different processes or machines. What a
folder holds must be one table: the same columns in every file, of the same kind.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet

from aboveboard.core.errors import InputError

__all__ = ["ParquetSource", "Part", "SourceFile", "first_line", "is_parquet", "is_source", "open_source"]

SUFFIXES: Final = (".parquet", ".pq")
BATCH: Final = 2**18
"""Rows that are held at once."""

_PART_ROWS: Final = 2**20  # smaller row groups are read together
_BUFFER: Final = 2**20  # bytes read at once, so that a row group need not fit into memory
_WIDTHS: Final = {"number": 8, "datetime": 8, "boolean": 1, "category": 4, "text": 64, "null": 8}
_COPIES: Final = 3  # an audit in memory holds its table about three times over, while it is read and while it is used
_UNNAMED_INDEX: Final = re.compile(r"__index_level_\d+__")
_HIVE_MISSING: Final = "__HIVE_DEFAULT_PARTITION__"
_NO_COLUMN: Final = "__no_column__"
_PLURAL: Final = {"number": "numbers", "datetime": "dates", "boolean": "true or false", "text": "text"}
_FAULTS: Final = (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One Parquet file.

    Parameters
    ----------
    name : str
        Without its folder.
    path : str
    filesystem : pyarrow.fs.FileSystem
    groups : tuple of int
        Number of rows of each row group.
    constants : tuple of (str, value)
        What the folder's name says of all rows (``sex=F/part.parquet``).
    """

    name: str
    path: str
    filesystem: pa.fs.FileSystem
    groups: tuple[int, ...]
    constants: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of one file, which follow on each other.

    Parameters
    ----------
    file : SourceFile
    groups : tuple of int
        Numbers of the row groups.
    start : int
        Position of the first row in the whole table.
    rows : int
    """

    file: SourceFile
    groups: tuple[int, ...]
    start: int
    rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield ``(position of the first row, rows)``, some 260,000 rows at a time, with the columns named.

        Raises
        ------
        InputError
            When the file is damaged, or is not what its footer says.
        """
        start, wanted = self.start, [name for name in columns if name not in dict(self.file.constants)]
        for table in _batches(self.file, self.groups, wanted):
            frame = _frame(table, self.file, columns)
            yield start, frame
            start += len(frame)
        if start != self.start + self.rows:
            raise InputError(
                f"the file {self.file.name!r} has {start - self.start:,} rows where its footer says {self.rows:,}",
                remedy="It may be damaged, or be written to at this moment: write it again",
            )


@dataclass(frozen=True)
class ParquetSource:
    """A table in one or more Parquet files.

    Parameters
    ----------
    files : tuple of SourceFile
    kinds : dict of str to str
        The columns in the order of the first file, and what each holds: number, boolean, category, datetime, text or
        null (nothing).
    notes : tuple of str
    """

    files: tuple[SourceFile, ...]
    kinds: dict[str, str]
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(sum(file.groups) for file in self.files)

    @property
    def bytes_in_memory(self) -> int:
        """About how much memory an audit needs that holds all rows at once."""
        return _COPIES * self.rows * sum(_WIDTHS[kind] for kind in self.kinds.values())

    def parts(self) -> list[Part]:
        """Return the parts, in order: a million rows or more each, where row groups are smaller."""
        found: list[Part] = []
        start = 0
        for file in self.files:
            groups: list[int] = []
            rows = 0
            for number, size in enumerate(file.groups):
                groups.append(number)
                rows += size
                if rows >= _PART_ROWS or number == len(file.groups) - 1:
                    if rows:
                        found.append(Part(file, tuple(groups), start, rows))
                    start += rows
                    groups, rows = [], 0
        return found

    def table(self) -> pa.Table:
        """Return all rows at once.

        Raises
        ------
        InputError
            When a file is damaged, or does not fit into memory.
        """
        tables = []
        for file in self.files:
            wanted = [name for name in self.kinds if name not in dict(file.constants)]
            batches = [
                batch.select(wanted) if wanted else batch
                for batch in _batches(file, range(len(file.groups)), wanted)
                if len(batch)
            ]
            if not batches:
                continue
            table = pa.Table.from_batches(batches)
            for name, value in file.constants:
                table = table.append_column(name, pa.array([value] * len(table)))
            tables.append(table.select(list(self.kinds)))
        if not tables:
            raise InputError("the data have no rows", expected="two rows or more")
        try:
            return pa.concat_tables(_alike(tables), promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(f"the files cannot be put together ({first_line(error)})") from error


def is_source(data: Any) -> bool:
    """Whether `data` names a file or folder, or is a data set of PyArrow, rather than a table."""
    return isinstance(data, str | os.PathLike) or (
        type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "get_fragments")
    )


def is_parquet(data: Any) -> bool:
    """Whether `data` is a folder, a Parquet file or a data set of PyArrow, by its name."""
    if not isinstance(data, str | os.PathLike):
        return is_source(data)
    path = Path(data)
    try:
        return path.is_dir() or (path.is_file() and path.suffix.casefold() in SUFFIXES)
    except (OSError, RuntimeError, ValueError):
        return False


def open_source(data: Any, *, what: str = "the data") -> ParquetSource:
    """Read the footers of a Parquet file, of all in a folder, or of a data set of PyArrow.

    Parameters
    ----------
    data : path or pyarrow.dataset.Dataset
        In a folder, and in the folders in it, files whose name begins with a dot or an underscore are left out, and so
        are those that do not end in ``.parquet`` or ``.pq``; folders called ``column=value`` give a column.
    what : str

    Raises
    ------
    InputError
        When there is no such file, one is damaged, or they do not make one table. Messages name files without folders.
    """
    notes: list[str] = []
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        fragments = _folder(path, what, notes) if path.is_dir() else [(str(path), pa.fs.LocalFileSystem(), ())]
    else:
        fragments = _dataset(data, what)
    files: list[SourceFile] = []
    kinds: dict[str, str] = {}
    types: dict[str, tuple[str, str]] = {}
    for name, filesystem, constants in fragments:
        file, schema = _opened(name, filesystem, constants, what)
        own = _kinds(schema, file, what)
        if not kinds:
            kinds = own
        _refuse_other_columns(own, kinds, file, files, what)
        for column, kind in own.items():
            _refuse_other_kind(column, kind, types, file, what)
            if kinds[column] == "null" or {kinds[column], kind} == {"text", "category"}:
                kinds[column] = kind if kinds[column] == "null" else "text"
        files.append(file)
    return ParquetSource(tuple(files), kinds, tuple(notes))


def first_line(error: BaseException) -> str:
    """Return the first line of an error, or its name."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0][:200]


_Fragment = tuple[str, pa.fs.FileSystem, tuple[tuple[str, Any], ...]]


def _folder(folder: Path, what: str, notes: list[str]) -> list[_Fragment]:
    try:
        found = sorted(
            path
            for path in folder.rglob("*")
            if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        )
    except OSError as error:
        raise InputError(f"{what}: the folder {folder.name!r} cannot be read ({first_line(error)})") from error
    paths = [path for path in found if path.suffix.casefold() in SUFFIXES]
    if not paths:
        raise InputError(
            f"{what}: the folder {folder.name!r} holds no Parquet file", expected="files that end in .parquet or .pq"
        )
    if len(paths) < len(found):
        notes.append(f"{len(found) - len(paths)} files in the folder are no Parquet files and were left out.")
    local = pa.fs.LocalFileSystem()
    named = [_named_values(path.relative_to(folder).parts[:-1]) for path in paths]
    whole = {
        key
        for key in {key for values in named for key in values}
        if all(re.fullmatch(r"-?\d{1,18}", values[key] or "0") for values in named if key in values)
    }
    return [
        (
            str(path),
            local,
            tuple((key, int(value) if value and key in whole else value) for key, value in values.items()),
        )
        for path, values in zip(paths, named, strict=True)
    ]


def _named_values(folders: Sequence[str]) -> dict[str, str | None]:
    """Return what the names of folders, ``column=value``, say of all rows in them; None for a missing value."""
    pairs = (part.split("=", 1) for part in folders if "=" in part)
    return {unquote(key): None if value == _HIVE_MISSING else unquote(value) for key, value in pairs}


def _dataset(data: Any, what: str) -> list[_Fragment]:
    found: list[_Fragment] = []
    for fragment in data.get_fragments():
        if not isinstance(fragment, pa.dataset.ParquetFileFragment):
            raise InputError(
                f"{what} are a data set of PyArrow that is not made of Parquet files",
                expected="pyarrow.dataset.dataset(path, format='parquet')",
            )
        keys = pa.dataset.get_partition_keys(fragment.partition_expression)
        found.append((fragment.path, fragment.filesystem, tuple(keys.items())))
    if not found:
        raise InputError(f"{what}: the data set of PyArrow has no files")
    return found


# --- what a file holds ------------------------------------------------------------------------------------------------


def _opened(
    path: str, filesystem: pa.fs.FileSystem, constants: tuple[tuple[str, Any], ...], what: str
) -> tuple[SourceFile, pa.Schema]:
    name = path.replace("\\", "/").rpartition("/")[2]
    try:
        with filesystem.open_input_file(path) as handle:
            if handle.size() == 0:
                raise InputError(f"{what}: the file {name!r} is empty", expected="a table in Parquet format")
            file = pa.parquet.ParquetFile(handle)
            metadata, schema = file.metadata, file.schema_arrow
            groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    except _FAULTS as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(name, what, error) from error
    return SourceFile(name, path, filesystem, groups, constants), schema


def _damaged(name: str, what: str, error: BaseException) -> InputError:
    return InputError(
        f"{what}: {name!r} cannot be read as Parquet ({first_line(error)})",
        expected="a whole file in Parquet format",
        remedy="It may be cut short, or be another format than its ending says: write it again",
    )


def _kinds(schema: pa.Schema, file: SourceFile, what: str) -> dict[str, str]:
    """Return what each column holds; those that pandas wrote for an index without a name are left out."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{what}: {file.name!r} has more than one column called {repeated[0]!r}",
            expected="every column to have a name of its own",
            remedy="Rename or remove the repeated columns",
        )
    kinds = {column.name: _kind(column.type) for column in schema if not _UNNAMED_INDEX.fullmatch(column.name)}
    for name, value in file.constants:
        kinds[name] = "null" if value is None else "number" if isinstance(value, int | float) else "text"
    if not kinds:
        raise InputError(f"{what}: {file.name!r} has no columns")
    for name, kind in kinds.items():
        if kind not in _WIDTHS:
            raise InputError(
                f"{what}: the column {name!r} of {file.name!r} holds values of the type {kind}",
                expected="one number, text, boolean or date in each row",
                remedy="Leave that column out of the file",
            )
    return kinds


def _kind(kind: pa.DataType) -> str:
    """Return what a type of Arrow holds; its own name where that is nothing that can be audited."""
    if pa.types.is_dictionary(kind):
        inner = _kind(kind.value_type)
        return "category" if inner in ("text", "null") else inner
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "datetime"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    return "null" if pa.types.is_null(kind) else str(kind)


def _refuse_other_columns(
    own: dict[str, str], kinds: dict[str, str], file: SourceFile, before: list[SourceFile], what: str
) -> None:
    if own.keys() == kinds.keys():
        return
    lacking = next((name for name in kinds if name not in own), None)
    extra = next((name for name in own if name not in kinds), None)
    got = (
        f"{what}: the file {file.name!r} has no column {lacking!r}, which {before[0].name!r} has"
        if lacking is not None
        else f"{what}: the file {file.name!r} has a column {extra!r}, which {before[0].name!r} has not"
    )
    raise InputError(got, expected="the same columns in every file", remedy="Write the files alike, or move it away")


def _refuse_other_kind(column: str, kind: str, known: dict[str, tuple[str, str]], file: SourceFile, what: str) -> None:
    """Refuse a column that holds something else in an earlier file; text and categories are alike."""
    alike = "text" if kind == "category" else kind
    if alike == "null":
        return
    before, where = known.setdefault(column, (alike, file.name))
    if before != alike:
        raise InputError(
            f"{what}: the column {column!r} holds {_PLURAL[alike]} in {file.name!r} and {_PLURAL[before]} in {where!r}",
            expected="the same in every file",
            remedy="Write the files alike",
        )


# --- rows -------------------------------------------------------------------------------------------------------------


def _batches(file: SourceFile, groups: Sequence[int], columns: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        with file.filesystem.open_input_file(file.path) as handle:
            reader = pa.parquet.ParquetFile(handle, pre_buffer=False, buffer_size=_BUFFER)
            if not columns:
                for group in groups:
                    yield from _empty_batches(reader.metadata.row_group(group).num_rows)
                return
            for batch in reader.iter_batches(
                batch_size=BATCH, row_groups=list(groups), columns=columns, use_threads=False
            ):
                batch.validate(full=True)  # offsets that lead out of a damaged file would crash the process later
                yield batch
    except MemoryError as error:  # a damaged file may claim any size
        raise InputError(
            f"the file {file.name!r} claims more than the memory can hold",
            remedy="It may be damaged: write it again",
        ) from error
    except _FAULTS as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(file.name, "the data", error) from error


def _empty_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without columns: only folders' names tell what the rows hold."""
    for start in range(0, rows, BATCH):
        nothing = pa.array(np.zeros(min(BATCH, rows - start), dtype=np.int8))
        yield pa.RecordBatch.from_arrays([nothing], [_NO_COLUMN])


def _frame(batch: pa.RecordBatch, file: SourceFile, columns: Sequence[str]) -> pd.DataFrame:
    constants = dict(file.constants)
    stored = {name: batch.column(batch.schema.get_field_index(name)) for name in columns if name not in constants}
    try:
        frame = pa.table(stored).to_pandas(ignore_metadata=True) if stored else pd.DataFrame(index=range(len(batch)))
    except (pa.ArrowException, ValueError, TypeError, KeyError, NotImplementedError, OverflowError) as error:
        raise InputError(f"the columns of {file.name!r} cannot be read ({first_line(error)})") from error
    for name, value in constants.items():
        if name in columns:
            frame[name] = value
    return frame.loc[:, list(columns)]


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Write categories out as text where another file holds them as text: Arrow does not put the two together."""
    for name in tables[0].column_names:
        if len({table.schema.field(name).type for table in tables}) > 1:
            for i, table in enumerate(tables):
                kind = table.schema.field(name).type
                if pa.types.is_dictionary(kind):
                    at = table.column_names.index(name)
                    tables[i] = table.set_column(at, name, table.column(name).cast(kind.value_type))
    return tables
