"""Files become data frames here: CSV, Parquet, Feather and Arrow.

The types of the columns are settled once, from the training data where there are some, and then applied to the data
that is audited; the user's own types win over both. PyArrow splits and converts; what a text means is decided here.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from aboveboard.auditing.frames import ColumnKind, column_kind, plain_label
from aboveboard.auditing.parquet import ParquetSource, first_line
from aboveboard.core.errors import InputError

__all__ = ["MISSING_TEXTS", "SUFFIXES", "ReadTable", "read_source", "read_table", "with_types"]

SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow")
"""Endings of the files that can be read, in any case."""

MISSING_TEXTS: Final = (
    "", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>", "#N/A", "#NA",
)  # fmt: skip
"""Cells of a CSV file that count as missing."""

_DELIMITERS: Final = (",", "\t", ";", "|")
_DELIMITER_NAMES: Final = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
_SAMPLE_ROWS: Final = 50
_CHUNK: Final = 2**24
_LARGEST_FIELD: Final = 2**20
_BLOCK: Final = 2**24
_INT64: Final = pa.int64()

_NUMBER: Final = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_CODE: Final = r"^\s*[+-]?0(\d+|[xX].*)\s*$"
_LONG_CODE: Final = r"^\s*[+-]?(\d{16,}|0(\d+|[xX].*))\s*$"
_DECIMAL_COMMA: Final = r"^[+-]?\d+(,\d+)?$"
_THOUSANDS: Final = r"^[+-]?\d{1,3},\d{3}$"
_DATE: Final = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?$"
_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")
_WESTERN_MARKS: Final = frozenset("€£§°©®«»¡¿·‘’“”–—…•µ²³½¼¾×ª º\u00a0")


@dataclass(frozen=True)
class ReadTable:
    """A table that was read from a file.

    Parameters
    ----------
    frame : DataFrame
        With a RangeIndex and unique column names.
    kinds : dict of str to {"number", "category", "text", "boolean", "datetime"}
        What each column holds; a column without any value is left out, since nothing is known about it.
    levels : dict of str to tuple
        The levels of the category columns.
    notes : tuple of str
        What the reader should know about how the file was read.
    """

    frame: pd.DataFrame
    kinds: dict[str, ColumnKind]
    levels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_table(
    path: str | Path,
    *,
    what: str = "the data",
    types: Mapping[str, ColumnKind] | None = None,
    like: ReadTable | None = None,
    like_what: str = "the training data",
) -> ReadTable:
    """Read a file.

    Parameters
    ----------
    path : path
        ``.csv`` (also ``.tsv``, ``.txt``, ``.csv.gz``), ``.parquet``, ``.feather`` or ``.arrow``.
    what : str
        What it is, for the messages.
    types : mapping of column to kind, optional
        The user's own types.
    like : ReadTable, optional
        A table whose types are applied to columns of the same name. A category level that it does not have stays a
        value.
    like_what : str
        What `like` is, for the messages.

    Raises
    ------
    InputError
        When there is no such file, it cannot be read, or a column does not hold what it should.

    Notes
    -----
    O(rows x columns) time; a CSV file is held as text once while its columns are converted one by one.
    """
    path = Path(path)
    suffix = _suffix(path, what)
    notes: list[str] = []
    if suffix in (".parquet", ".pq", ".feather", ".arrow"):
        frame = _binary(path, suffix, what, notes)
        columns = _Converter(what, types or {}, like, "", notes, like_what)
    else:
        table, delimiter = _csv(_text(_bytes(path, suffix, what), what, notes), what)
        frame = _unnamed(table, notes)
        del table
        columns = _Converter(what, types or {}, like, delimiter, notes, like_what)
    if not len(frame):
        raise InputError(
            f"{what} have a header and no rows" if suffix not in (".parquet", ".pq") else f"{what} have no rows",
            expected="two rows or more",
        )
    return columns.convert(frame)


def read_source(
    source: ParquetSource,
    *,
    what: str = "the data",
    types: Mapping[str, ColumnKind] | None = None,
    like: ReadTable | None = None,
) -> ReadTable:
    """Read all rows of Parquet files into memory; parameters and errors as `read_table`."""
    table = source.table()
    try:
        frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, ValueError, TypeError, KeyError, NotImplementedError, OverflowError) as error:
        raise InputError(f"{what}: the columns cannot be read ({first_line(error)})") from error
    read = with_types(frame, what=what, types=types, like=like)
    return replace(read, notes=(*source.notes, *read.notes))


def with_types(
    frame: pd.DataFrame,
    *,
    what: str = "the data",
    types: Mapping[str, ColumnKind] | None = None,
    like: ReadTable | None = None,
    like_what: str = "the training data",
) -> ReadTable:
    """Give the columns of a table the types that the user, or the training data, ask for; parameters as `read_table`.

    Raises
    ------
    InputError
        When a column does not hold what it should.
    """
    notes: list[str] = []
    return _Converter(what, types or {}, like, "", notes, like_what).convert(frame)


# --- the file ---------------------------------------------------------------------------------------------------------


def _suffix(path: Path, what: str) -> str:
    shown = repr(path.name)
    try:
        if path.is_dir():
            raise InputError(f"{what}: {shown} is a folder", expected=f"a file ({', '.join(SUFFIXES)})")
        exists = path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{what}: {shown} cannot be opened ({first_line(error)})", expected="a file") from error
    if not exists:
        if path.is_symlink():
            raise InputError(f"{what}: {shown} is a link that leads nowhere", expected="a file")
        raise InputError(f"{what}: there is no file {shown}", remedy=_nearest_file(path))
    if not path.is_file():
        raise InputError(f"{what}: {shown} is no regular file", expected="a file")
    name = path.name.casefold()
    suffix = next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), None)
    if suffix is None:
        raise InputError(
            f"{what}: the ending of {shown} says nothing about its format",
            expected=", ".join(SUFFIXES),
            remedy="Save the table in one of these formats",
        )
    return suffix


def _nearest_file(path: Path) -> str:
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return "Check the path"
    near = get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else "Check the path"


def _bytes(path: Path, suffix: str, what: str) -> bytes:
    try:
        content = path.read_bytes()
        if suffix == ".csv.gz" or content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{what}: {path.name!r} cannot be read ({first_line(error)})") from error
    if not content.strip(b" \t\r\n\xef\xbb\xbf"):
        raise InputError(f"{what}: the file is empty", expected="a header and two rows or more")
    return content


def _binary(path: Path, suffix: str, what: str, notes: list[str]) -> pd.DataFrame:
    """Read Parquet, Feather or Arrow with the types that the file carries."""
    kind = "Parquet" if suffix in (".parquet", ".pq") else "Feather" if suffix == ".feather" else "Arrow"
    if path.stat().st_size == 0:
        raise InputError(f"{what}: the file is empty", expected=f"a table in {kind} format")
    try:
        if kind == "Parquet":
            with path.open("rb") as file:
                table = pa.parquet.ParquetFile(file).read()
        elif kind == "Feather":
            table = pa.feather.read_table(str(path), memory_map=False)
        else:
            table = _arrow(path)
        table.validate(full=True)  # offsets that lead out of a damaged file would crash the process later
    except MemoryError as error:  # a damaged file may claim any size
        raise InputError(
            f"{what}: {path.name!r} claims more than the memory can hold",
            expected=f"a whole {kind} file that fits into memory",
            remedy="It may be damaged: write it again, or leave out columns and rows",
        ) from error
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError) as error:
        raise InputError(
            f"{what}: {path.name!r} cannot be read as {kind} ({first_line(error)})",
            expected=f"a whole file in {kind} format",
            remedy="It may be cut short, or be another format than its ending says: write it again",
        ) from error
    names = table.column_names
    _refuse_repeated(names, what)
    _refuse_unusable(table, what)
    try:
        frame = table.to_pandas()
    except (pa.ArrowException, ValueError, TypeError, KeyError, NotImplementedError, OverflowError) as error:
        raise InputError(f"{what}: the columns cannot be read ({first_line(error)})") from error
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        kept = [str(name) for name in frame.index.names if name is not None and name not in frame.columns]
        frame = frame.reset_index()[[*kept, *frame.columns]]
        if kept:
            notes.append(f"The index {', '.join(map(repr, kept))} that the file carries is a column here.")
    frame = frame.reset_index(drop=True).set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.shape[1]:
        raise InputError(f"{what} have no columns")
    return frame


def _arrow(path: Path) -> pa.Table:
    with path.open("rb") as file:
        try:
            return pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file).read_all()


def _refuse_repeated(names: list[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{what} have more than one column called {repeated[0]!r}",
            expected="every column to have a name of its own",
            remedy="Rename or remove the repeated columns",
        )


def _refuse_unusable(table: pa.Table, what: str) -> None:
    for column in table.schema:
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise InputError(
                f"{what}: the column {column.name!r} holds values of the type {kind}",
                expected="one number, text, boolean or date in each row",
                remedy="Leave that column out of the file",
            )


# --- encoding ---------------------------------------------------------------------------------------------------------


def _text(content: bytes, what: str, notes: list[str]) -> bytes:
    """Return the content as UTF-8 without a byte order mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode("utf-8")
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            raise InputError(f"{what}: byte {at:,} is not UTF-16, which the file says it is") from error
    content = content.removeprefix(codecs.BOM_UTF8)
    nul = content.find(b"\x00")
    if nul >= 0:
        remedy = "It looks like UTF-16 without its mark: save it as UTF-8" if nul < 4 else "Save it as UTF-8 text"
        raise InputError(f"{what}: byte {nul:,} is NUL, so this is no text file", expected="text", remedy=remedy)
    at = _first_invalid(content)
    if at is None:
        return content
    western = _western(content)
    if western is None:
        raise InputError(
            f"{what}: byte {at:,} (0x{content[at]:02x}) is not UTF-8, and the encoding cannot be told safely",
            expected="UTF-8, or UTF-16 with a byte order mark",
            remedy="Save the file as UTF-8",
        )
    notes.append("The file is not UTF-8 and was read as Windows-1252 (Western European); save it as UTF-8 to be sure.")
    return western.encode("utf-8")


def _first_invalid(content: bytes) -> int | None:
    """Return where the content stops being UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(content)
    for start in range(0, len(content), _CHUNK):
        chunk = view[start : start + _CHUNK]
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None


def _western(content: bytes) -> str | None:
    """Return the content as Windows-1252 where nothing speaks against it, else None.

    Bytes above 127 must stand alone or in pairs, as accented letters do in Western European text, each must be a
    letter or a common mark, and no pair may be valid UTF-8: else another encoding is as likely.
    """
    runs = re.findall(rb"[\x80-\xff]+", content)
    if max(map(len, runs)) > 2:
        return None
    distinct = set(runs)
    try:
        text = content.decode("cp1252")
        marks = {char for run in distinct for char in run.decode("cp1252")}
    except UnicodeDecodeError:
        return None
    if not all(mark.isalpha() or mark in _WESTERN_MARKS for mark in marks):
        return None
    for run in distinct:
        if len(run) == 2:
            try:
                run.decode("utf-8")
            except UnicodeDecodeError:
                continue
            return None
    return text


# --- CSV --------------------------------------------------------------------------------------------------------------


def _csv(content: bytes, what: str) -> tuple[pa.Table, str]:
    """Split CSV text into columns of text; a note's worth of rows tells the delimiter."""
    delimiter = _delimiter(content, what)
    names = _header(content, delimiter, what)
    _refuse_repeated([name for name in names if name], what)
    numbered = [f"c{i}" for i in range(len(names))]
    try:
        table = pa.csv.read_csv(
            io.BytesIO(content),
            # On one thread: with OMP_NUM_THREADS=1 the threaded reader can wait for itself when a line is malformed.
            read_options=pa.csv.ReadOptions(column_names=numbered, block_size=_BLOCK, use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(numbered, pa.string()),
                null_values=list(MISSING_TEXTS),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _faulty_row(content, delimiter, len(names), what) or InputError(
            f"{what}: the rows cannot be split ({first_line(error)})", expected="CSV text"
        ) from error
    _refuse_unclosed(content, delimiter, len(names), what)
    if any((pc.max(pc.binary_length(column)).as_py() or 0) > _LARGEST_FIELD for column in table.columns):
        raise _faulty_row(content, delimiter, len(names), what) or InputError(
            f"{what}: a value is longer than {_LARGEST_FIELD:,} bytes", expected="shorter values"
        )
    return table.slice(1).rename_columns(names), delimiter


def _lines(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")


def _header(content: bytes, delimiter: str, what: str) -> list[str]:
    try:
        names = next((row for row in csv.reader(_lines(content), delimiter=delimiter) if row), [])
    except csv.Error as error:
        raise InputError(f"{what}: the header cannot be split ({error})") from error
    if all(not name.strip() for name in names):
        raise InputError(f"{what}: the first line names no column", expected="a header with the names of the columns")
    return names


def _delimiter(content: bytes, what: str) -> str:
    """Return the delimiter that splits the first rows into equally many columns, and most of them."""
    sample = _sample(content)
    best, columns = "", 1
    header_best, header_columns = "", 1
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not widths:
            continue
        if len(set(widths)) == 1 and widths[0] > columns:
            best, columns = delimiter, widths[0]
        if widths[0] > header_columns:
            header_best, header_columns = delimiter, widths[0]
    if best or header_best:
        return best or header_best
    foreign = _foreign_delimiter(sample)
    if foreign:
        raise InputError(
            f"{what}: the columns seem to be split by {foreign!r}",
            expected="comma, semicolon, tab or vertical bar",
            remedy="Save the table with one of these",
        )
    return ","


def _sample(content: bytes) -> list[str]:
    """Return the first lines; where the last is cut, without it."""
    head = content[: 2**18]
    lines = list(io.StringIO(head.decode("utf-8", "ignore"), newline=""))
    if len(head) < len(content) and len(lines) > 1:
        lines = lines[:-1]
    return lines[:_SAMPLE_ROWS]


def _foreign_delimiter(lines: list[str]) -> str:
    full = [line.strip() for line in lines if line.strip()]
    if len(full) < 2:
        return ""
    for mark in (":", "^", "~", "\x01", "\x1f"):
        counts = {line.count(mark) for line in full}
        if len(counts) == 1 and counts != {0}:
            return mark
    return ""


def _faulty_row(content: bytes, delimiter: str, width: int, what: str) -> InputError | None:
    """Return the error that names the first line that is at fault; slow, so only asked when something is."""
    reader = csv.reader(_lines(content), delimiter=delimiter)
    before = csv.field_size_limit(_LARGEST_FIELD)
    start = 1
    try:
        for row in reader:
            if row and len(row) != width:
                return InputError(
                    f"{what}: line {start:,} has {len(row)} values and the header {width}",
                    expected=f"as many, split by {_DELIMITER_NAMES[delimiter]}",
                    remedy="Quote values that hold the delimiter",
                )
            start = reader.line_num + 1
    except csv.Error as error:
        if "field larger" in str(error):
            return InputError(
                f"{what}: a value that begins in line {start:,} is longer than {_LARGEST_FIELD:,} characters",
                expected="shorter values",
                remedy="Perhaps a quotation mark is not closed there",
            )
        return InputError(f"{what}: line {start:,} cannot be split ({error})")
    finally:
        csv.field_size_limit(before)
    return None


def _refuse_unclosed(content: bytes, delimiter: str, width: int, what: str) -> None:
    """Refuse a quotation mark that is opened and never closed: it swallows the rest of the file without a word."""
    if content.count(b'"') % 2 == 0:
        return
    reader = csv.reader(_lines(content), delimiter=delimiter, strict=True)
    start = 1
    try:
        for _ in reader:
            start = reader.line_num + 1
    except csv.Error as error:
        raise _faulty_row(content, delimiter, width, what) or InputError(
            f"{what}: a quotation mark in line {start:,} is not closed ({error})",
            expected="quotation marks in pairs; one inside a value is written twice",
        ) from error


def _unnamed(table: pa.Table, notes: list[str]) -> pd.DataFrame:
    """Return the columns of text as a data frame; a first column without a name that counts the rows is left out."""
    names = [name or f"Unnamed: {i}" for i, name in enumerate(table.column_names)]
    frame = pd.DataFrame(
        {i: pd.Series(table.column(i), dtype=pd.ArrowDtype(pa.string())) for i in range(table.num_columns)}
    ).set_axis(names, axis=1)
    if table.column_names[0] == "" and len(names) > 1 and _counts_rows(frame.iloc[:, 0]):
        notes.append("The first column has no name and counts the rows, so it was left out.")
        return frame.iloc[:, 1:]
    return frame


def _counts_rows(series: "pd.Series[Any]") -> bool:
    values = pd.to_numeric(series, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
    count = np.arange(len(values), dtype="float64")
    return bool(np.array_equal(values, count) or np.array_equal(values, count + 1))


# --- types ------------------------------------------------------------------------------------------------------------


class _Converter:
    """Gives every column the type that the user, the training data or its own values call for."""

    def __init__(
        self,
        what: str,
        types: Mapping[str, ColumnKind],
        like: ReadTable | None,
        delimiter: str,
        notes: list[str],
        like_what: str,
    ) -> None:
        self.what = what
        self.types = types
        self.like = like
        self.like_what = like_what
        self.from_text = bool(delimiter)
        self.decimal_comma = delimiter not in ("", ",")
        self.notes = notes

    def convert(self, frame: pd.DataFrame) -> ReadTable:
        columns = {}
        names = list(frame.columns)
        for name in names:  # text is let go as soon as it is converted, so that it is not held twice
            columns[name] = self._from_text(frame.pop(name)) if self.from_text else self._typed(frame[name])
        converted = pd.DataFrame(columns, columns=names)
        kinds = {name: column_kind(converted[name]) for name in columns if converted[name].notna().any()}
        levels = {name: tuple(converted[name].cat.categories) for name, kind in kinds.items() if kind == "category"}
        return ReadTable(converted, kinds, levels, tuple(self.notes))

    def _wanted(self, name: str) -> tuple[ColumnKind | None, str]:
        """Return the type that a column must have, and who says so."""
        if name in self.types:
            return self.types[name], "the [types] table"
        if self.like is not None and name in self.like.kinds:
            return self.like.kinds[name], self.like_what
        return None, ""

    def _typed(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Convert a column that has a type of its own already."""
        name = str(column.name)
        wanted, says = self._wanted(name)
        if not column.notna().any():
            return column
        if wanted is None:
            self._note_written_numbers(column, name)
            return column
        kind = column_kind(column)
        if kind != wanted:
            if kind in ("text", "category"):
                texts = pd.Series(pa.array(column.map(plain_label, na_action="ignore").astype(object), pa.string()))
                column = self._as(texts.astype(pd.ArrowDtype(pa.string())), name, wanted, says)
            elif wanted in ("text", "category"):
                column = column.map(plain_label, na_action="ignore").astype(object)
                column = self._levels(column, name) if wanted == "category" else column
            elif wanted == "number" and kind == "boolean":
                column = column.astype("float64" if column.isna().any() else "int64")
            elif wanted == "boolean" and kind == "number" and set(column.dropna()) <= {0, 1}:
                column = column.astype("boolean" if column.isna().any() else "bool")
            else:
                raise InputError(
                    f"{self.what}: the column {name!r} holds {kind} values", expected=f"{wanted}, says {says}"
                )
            self.notes.append(f"{name} holds {kind} values in the file and is read as {wanted}, as {says} says.")
        elif wanted == "category":
            column = self._levels(column, name)
        return column

    def _from_text(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Convert a column of a CSV file."""
        wanted, says = self._wanted(str(column.name))
        if wanted is not None and column.notna().any():
            return self._as(column, str(column.name), wanted, says)
        return self._inferred(column)

    def _as(self, column: "pd.Series[Any]", name: str, wanted: ColumnKind, says: str) -> "pd.Series[Any]":
        texts = _chunked(column)
        if wanted == "text":
            return _words(texts).rename(name)
        if wanted == "category":
            return self._levels(_words(texts), name).rename(name)
        if wanted == "number":
            found = _numbers(texts)
            if found is None and self.decimal_comma:
                found = _comma_numbers(texts)
            wrong = _first_not(texts, _NUMBER)
        elif wanted == "boolean":
            found = _booleans(texts, loose=True)
            wrong = _first_not(texts, r"(?i)^(true|false|1|0|1\.0|0\.0)$")
        else:
            found = _dates(texts)
            wrong = _first_not(texts, _DATE)
        if found is None:
            raise InputError(
                f"{self.what}: the column {name!r} has the value {wrong[:60]!r}",
                expected=f"{_DESCRIBED[wanted]}, says {says}",
                remedy="Leave cells without a value empty, or set another type in the [types] table of the config",
            )
        return found.rename(name)

    def _inferred(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        name = str(column.name)
        texts = _chunked(column)
        if texts.null_count == len(texts):
            return pd.Series(np.full(len(column), np.nan), name=name)
        for read in (_numbers, _booleans, _dates):
            found = read(texts)
            if found is None:
                continue
            if read is _numbers and _any_match(texts, _CODE if found.dtype.kind == "i" else _LONG_CODE):
                self.notes.append(
                    f"{name} has whole numbers with leading zeros or more than 15 digits, as codes have, and is read "
                    "as text; its type can be set in the [types] table."
                )
                break
            return found.rename(name)
        if self.decimal_comma:
            found = _comma_numbers(texts)
            if found is not None:
                self.notes.append(f"{name} has decimal commas, and is read as numbers.")
                return found.rename(name)
        self._note_mixed(texts, name)
        return _words(texts).rename(name)

    def _note_written_numbers(self, column: "pd.Series[Any]", name: str) -> None:
        """Say so where a column that has a type of its own holds numbers written as text."""
        if column_kind(column) == "text":
            first = column.dropna().iloc[:1000].map(plain_label)
            if first.str.fullmatch(_NUMBER.strip("^$")).all():
                self.notes.append(
                    f"{name} holds numbers written as text, and is read as text; its type can be set in the [types] "
                    "table."
                )

    def _note_mixed(self, texts: pa.ChunkedArray, name: str) -> None:
        """Say so where a column is all but made of numbers: a stray text makes words of all of them."""
        is_number = pc.match_substring_regex(texts, _NUMBER)
        count = pc.sum(is_number).as_py() or 0
        valid = len(texts) - texts.null_count
        if valid > count >= 0.5 * valid:
            others = pc.unique(texts.filter(pc.invert(is_number).fill_null(False))).slice(0, 3).to_pylist()
            shown = ", ".join(repr(text[:40]) for text in others)
            self.notes.append(f"{name} has {count:,} numbers and other values such as {shown}, and is read as text.")

    def _levels(self, column: "pd.Series[Any]", name: str) -> "pd.Series[Any]":
        """Return a categorical: levels of the training data first, then those that are new here."""
        values = column.astype(object) if not isinstance(column.dtype, pd.CategoricalDtype) else column
        seen = () if self.like is None else self.like.levels.get(name, ())
        own = values.cat.categories if isinstance(values.dtype, pd.CategoricalDtype) else sorted(set(values.dropna()))
        new = [level for level in own if level not in set(seen)]
        ordered = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.cat.ordered) and not new
        return values.astype(object).astype(pd.CategoricalDtype([*seen, *new], ordered=ordered))


_DESCRIBED: Final[dict[str, str]] = {
    "number": "numbers",
    "boolean": "true or false",
    "datetime": "dates as YYYY-MM-DD, perhaps with hh:mm:ss",
}


def _chunked(column: "pd.Series[Any]") -> pa.ChunkedArray:
    array = pa.array(column, type=pa.string())
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _words(texts: pa.ChunkedArray) -> "pd.Series[Any]":
    """Return text as pandas holds it when it reads a CSV file: missing values are NaN."""
    words: pd.Series[Any] = texts.to_pandas()
    return words.where(words.notna(), np.nan) if words.dtype == object else words


def _numbers(texts: pa.ChunkedArray) -> "pd.Series[Any] | None":
    """Return int64 where all are whole and none is missing, else float64, else None."""
    stripped = pc.utf8_trim_whitespace(texts)
    if pc.any(pc.starts_with(stripped, "+")).as_py():
        stripped = pc.replace_substring_regex(stripped, r"^\+([0-9.])", r"\1")
    try:
        if texts.null_count == 0:
            return pc.cast(stripped, _INT64).to_pandas()
    except pa.ArrowInvalid:
        pass
    try:
        values: pd.Series[Any] = pc.cast(stripped, pa.float64()).to_pandas()
    except pa.ArrowInvalid:
        return None
    return values


def _comma_numbers(texts: pa.ChunkedArray) -> "pd.Series[Any] | None":
    """Return numbers with decimal commas; None where they may as well be thousands."""
    valid = texts.drop_null()
    if not pc.all(pc.match_substring_regex(valid, _DECIMAL_COMMA)).as_py():
        return None
    with_comma = valid.filter(pc.match_substring(valid, ","))
    if pc.all(pc.match_substring_regex(with_comma, _THOUSANDS)).as_py():
        return None
    return _numbers(pc.replace_substring(texts, ",", "."))


def _booleans(texts: pa.ChunkedArray, *, loose: bool = False) -> "pd.Series[Any] | None":
    true, false = _TRUE, _FALSE
    if loose:
        texts = pc.utf8_lower(texts)
        true, false = ("true", "1", "1.0"), ("false", "0", "0.0")
    is_true = pc.is_in(texts, value_set=pa.array(true, pa.string()))
    is_false = pc.is_in(texts, value_set=pa.array(false, pa.string()))
    if not pc.all(pc.or_(pc.or_(is_true, is_false), pc.is_null(texts))).as_py():
        return None
    values = is_true.to_pandas()
    if texts.null_count:
        values = values.astype(object).mask(texts.is_null().to_pandas().astype(bool), np.nan)
    return pd.Series(values)


def _dates(texts: pa.ChunkedArray) -> "pd.Series[Any] | None":
    """Return timestamps where every value is an ISO date, with or without a time of day; else None."""
    if not pc.all(pc.match_substring_regex(texts.drop_null(), _DATE)).as_py():
        return None
    try:
        found: pd.Series[Any] = pc.cast(texts, pa.timestamp("us")).to_pandas()
    except pa.ArrowInvalid:
        return None
    return found


def _any_match(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _first_not(texts: pa.ChunkedArray, pattern: str) -> str:
    """Return the first value that does not match."""
    valid = texts.drop_null()
    wrong = valid.filter(pc.invert(pc.match_substring_regex(valid, pattern)))
    return str((wrong if len(wrong) else valid)[0])
