"""What goes over the socket between the audit and a model's process: a JSON head, and perhaps numbers or a table.

A message is the length of its head (4 bytes) and of its body (8 bytes), then both. Tables go as an Arrow stream,
numbers as .npy. Nothing is pickled, and whoever reads says first how much it is ready to take.
"""

import io
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

__all__ = [
    "HEAD_LIMIT",
    "Malformed",
    "Unsendable",
    "pack_numbers",
    "pack_rows",
    "plain_scalar",
    "read_message",
    "read_numbers",
    "read_rows",
    "read_scalar",
    "written_message",
]

HEAD_LIMIT: Final = 64 << 20
_LENGTHS: Final = struct.Struct(">IQ")
_NUMBERS: Final = {"<f8": 8, "<i8": 8, "|b1": 1}
_LARGEST_HEADER: Final = 10_000
_SPELLED: Final = frozenset(
    {"boolean", "integer", "floating", "mixed-integer", "mixed-integer-float", "mixed", "empty"}
)
_PLAIN: Final = (str, bool, int, float)


class Malformed(ValueError):
    """What came over the socket is no message of this kind."""


class Unsendable(ValueError):
    """A column holds something that cannot be sent."""


# --- messages ---------------------------------------------------------------------------------------------------------


def written_message(head: Mapping[str, Any], body: bytes | memoryview = b"") -> list[bytes | memoryview]:
    """Return a message as pieces that are sent one after the other."""
    text = json.dumps(head).encode("ascii")
    return [_LENGTHS.pack(len(text), len(body)) + text, body]


def read_message(read: Callable[[int], bytearray], *, most: int) -> tuple[dict[str, Any], bytearray]:
    """Read a message with `read`, which returns as many bytes as it is told, and a body of at most `most` bytes.

    Raises
    ------
    Malformed
        When head or body are longer than allowed, or the head is no JSON object.
    """
    head_length, body_length = _LENGTHS.unpack(read(_LENGTHS.size))
    if head_length > HEAD_LIMIT or body_length > most:
        raise Malformed(f"a message of {head_length + body_length:,} bytes, where at most {most:,} were expected")
    try:
        head = json.loads(bytes(read(head_length)))
    except (ValueError, RecursionError) as error:
        raise Malformed("a message whose head is no JSON") from error
    if not isinstance(head, dict):
        raise Malformed("a message whose head is no JSON object")
    return head, read(body_length)


# --- single values ----------------------------------------------------------------------------------------------------


def plain_scalar(value: Any) -> list[Any]:
    """Return a value with its type, such as ``["int", 3]``.

    Raises
    ------
    Unsendable
        When it is neither text nor number, true, false or missing.
    """
    if value is None:
        return ["none"]
    if value is pd.NA or value is pd.NaT:
        return ["na" if value is pd.NA else "nat"]
    if isinstance(value, np.generic):
        value = value.item()
    for kind in _PLAIN:
        if type(value) is kind:
            return [kind.__name__, value.hex() if isinstance(value, float) else value]
    if isinstance(value, str):  # a kind of text of somebody's own
        return ["str", str(value)]
    raise Unsendable(f"a {type(value).__name__}")


def read_scalar(value: Any) -> Any:
    """Return the value that `plain_scalar` wrote.

    Raises
    ------
    Malformed
    """
    match value:
        case ["none"]:
            return None
        case ["na"]:
            return pd.NA
        case ["nat"]:
            return pd.NaT
        case ["str", str(text)]:
            return text
        case ["bool", bool(flag)]:
            return flag
        case ["int", int(number)] if not isinstance(number, bool):
            return number
        case ["float", str(text)]:
            try:
                return float.fromhex(text)
            except (ValueError, OverflowError) as error:
                raise Malformed("a number that is none") from error
        case _:
            raise Malformed("a value of no known type")


# --- rows: from the audit to the model --------------------------------------------------------------------------------


def pack_rows(rows: pd.DataFrame | np.ndarray) -> tuple[dict[str, Any], memoryview]:
    """Return a data frame or an array as the head and the body of a message; dtypes and categories survive.

    Raises
    ------
    Unsendable
        When a column holds something that is neither plain nor known to Arrow.
    """
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind in "biuf":
            out = io.BytesIO()
            np.lib.format.write_array(out, np.ascontiguousarray(rows), allow_pickle=False)
            return {"rows": "array", "n": len(rows)}, out.getbuffer()
        head, body = pack_rows(pd.DataFrame(rows, dtype=object))
        return head | {"rows": "objects"}, body
    arrays, columns = {}, []
    for i, name in enumerate(rows.columns):
        series = rows.iloc[:, i].reset_index(drop=True)
        try:
            column, arrays[str(i)] = _packed_column(series)
        except (Unsendable, pa.ArrowException, TypeError, OverflowError, UnicodeError, ValueError) as error:
            held = str(error) if isinstance(error, Unsendable) else f"values of the type {series.dtype}"
            raise Unsendable(f"the column {name!r} holds {held}, which cannot be sent to a model's process") from error
        columns.append({"name": str(name), **column})
    # an own frame for what Arrow must know of pandas
    table = pa.Table.from_pandas(pd.DataFrame(arrays, index=pd.RangeIndex(len(rows))), preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return {"rows": "table", "columns": columns, "n": len(rows)}, memoryview(sink.getvalue())


def _packed_column(series: "pd.Series[Any]") -> tuple[dict[str, Any], "pd.Series[Any]"]:
    """Return how a column is sent, and what Arrow gets: the column itself, or codes of its values."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        try:
            values = [plain_scalar(value) for value in dtype.categories]
        except Unsendable:  # dates, spans of numbers
            pa.array(series, from_pandas=True)
            return {}, series
        spelled = {"values": values, "dtype": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}
        return {"category": spelled}, pd.Series(series.cat.codes.to_numpy("int32"))
    if not pd.api.types.is_object_dtype(dtype):
        pa.array(series, from_pandas=True)
        return {}, series
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "string":
        missing = series.isna()
        try:
            pa.array(series, from_pandas=True)
            first = plain_scalar(series[missing].iloc[0]) if missing.any() else ["none"]
            return {"missing": first}, series
        except UnicodeError:  # half of a pair of surrogates, which UTF-8 does not have
            kind = "mixed"
    if kind in _SPELLED:
        values, codes = _spelled(series)
        return {"values": values}, pd.Series(codes)
    pa.array(series, from_pandas=True)
    return {}, series


def _spelled(series: "pd.Series[Any]") -> tuple[list[list[Any]], np.ndarray]:
    """Return the distinct values with their types (1, 1.0 and True are three), and the position of each row's."""
    position: dict[tuple[Any, ...], int] = {}
    codes = [position.setdefault(tuple(plain_scalar(value)), len(position)) for value in series]
    return [list(key) for key in position], np.array(codes, dtype=np.int64)


def read_rows(head: Mapping[str, Any], body: bytearray) -> pd.DataFrame | np.ndarray:
    """Return the rows that `pack_rows` wrote; called by the model's process, which trusts the audit."""
    if head["rows"] == "array":
        return np.lib.format.read_array(io.BytesIO(body), allow_pickle=False)
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        frame = stream.read_all().to_pandas()
    columns = [_read_column(column, frame[str(i)]) for i, column in enumerate(head["columns"])]
    rows = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(head["n"]))
    rows.columns = pd.Index([column["name"] for column in head["columns"]])
    if head["rows"] == "objects":
        return rows.to_numpy(dtype=object)
    return rows


def _read_column(column: Mapping[str, Any], sent: "pd.Series[Any]") -> "pd.Series[Any]":
    if "category" in column:
        spelled = column["category"]
        categories = pd.Index([read_scalar(value) for value in spelled["values"]], dtype=spelled["dtype"])
        return pd.Series(pd.Categorical.from_codes(sent.to_numpy(), categories=categories, ordered=spelled["ordered"]))
    if "values" in column:
        values = np.empty(len(column["values"]), dtype=object)
        values[:] = [read_scalar(value) for value in column["values"]]
        return pd.Series(values[sent.to_numpy()], dtype=object)
    if "missing" in column:
        sent = sent.astype(object)
        missing = sent.isna()
        if missing.any():
            sent[missing] = read_scalar(column["missing"])
    return sent


# --- numbers: from the model to the audit -----------------------------------------------------------------------------


def pack_numbers(answer: Any) -> memoryview:
    """Return an answer as .npy: float64, int64 or bool, in rows.

    Raises
    ------
    TypeError
        When it is not made of numbers.
    """
    values = np.asarray(answer)
    if values.dtype.kind not in "biuf":
        values = values.astype("float64")
    if values.dtype.kind in "iu" and values.dtype != np.uint64:
        values = values.astype("<i8")
    elif values.dtype.kind != "b":
        values = values.astype("<f8")
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(values, order="C"), version=(1, 0), allow_pickle=False)
    return out.getbuffer()


def read_numbers(body: bytearray, *, rows: int, widest: int) -> np.ndarray:
    """Return the answer about `rows` rows that `pack_numbers` wrote, of at most `widest` columns.

    Raises
    ------
    Malformed
        When it is no .npy file of such numbers, has another number of rows, or more columns or bytes than that.
    """
    stream = io.BytesIO(body)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise Malformed("an answer in another version of .npy")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_LARGEST_HEADER)
    except Malformed:
        raise
    except Exception as error:  # whatever a damaged head makes of NumPy's reader
        raise Malformed("an answer that is no .npy") from error
    size = _NUMBERS.get(dtype.str)
    if size is None:
        raise Malformed("an answer that is not made of numbers")
    if not (1 <= len(shape) <= 2) or shape[0] != rows or (len(shape) == 2 and shape[1] > widest):
        raise Malformed(f"an answer of shape {_shown_shape(shape)} for {rows:,} rows")
    if len(body) - stream.tell() != size * math.prod(shape):
        raise Malformed(f"an answer of {len(body):,} bytes that says it has the shape {_shown_shape(shape)}")
    values = np.frombuffer(body, dtype=dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if fortran else "C")


def _shown_shape(shape: Sequence[int]) -> str:
    return f"({', '.join(str(length) for length in shape[:5])}{', ...' if len(shape) > 5 else ''})"
