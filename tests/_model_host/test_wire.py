import io
import struct

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from aboveboard._model_host.wire import (
    HEAD_LIMIT,
    Malformed,
    Unsendable,
    pack_numbers,
    pack_rows,
    plain_scalar,
    read_message,
    read_numbers,
    read_rows,
    read_scalar,
    written_message,
)


def there_and_back(rows):
    head, body = pack_rows(rows)
    stream = io.BytesIO(b"".join(bytes(piece) for piece in written_message(head, body)))
    head, body = read_message(lambda length: bytearray(stream.read(length)), most=len(body))
    return read_rows(head, body)


HALF = pd.Index(["a\ud800", "b"], dtype=object)

COLUMNS = {
    "float64": np.array([1.5, np.nan, -np.inf]),
    "float32": np.array([1.5, np.nan, 2], dtype="float32"),
    "int8": np.array([1, -2, 3], dtype="int8"),
    "uint64": np.array([1, 2**64 - 1, 3], dtype="uint64"),
    "bool": np.array([True, False, True]),
    "datetime": pd.to_datetime(["2026-01-01", None, "2026-01-03"]),
    "zoned": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]).tz_localize("Europe/Paris"),
    "nullable": pd.array([1, None, 3], dtype="Int64"),
    "nullable bool": pd.array([True, None, False], dtype="boolean"),
    "string": pd.array(["a", None, "b"], dtype="string"),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "with None": np.array(["a", None, "c"], dtype=object),
    "with nan": np.array(["a", np.nan, "c"], dtype=object),
    "with NA": np.array(["a", pd.NA, "c"], dtype=object),
    "mixed": np.array(["a", 1, 1.0], dtype=object),
    "flags and nan": np.array([True, np.nan, False], dtype=object),
    "whole objects": np.array([1, None, 3], dtype=object),
    "all missing": np.array([None, None, None], dtype=object),
    "half a surrogate": np.array(["a\ud800", "b", None], dtype=object),
    "category": pd.Categorical(["u", None, "w"], categories=["w", "v", "u"]),
    "ordered": pd.Categorical(["u", "v", "u"], categories=["v", "u"], ordered=True),
    "whole category": pd.Categorical([3, 1, None], categories=[1, 3, 5]),
    "decimal category": pd.Categorical([0.5, 1.5, None]),
    "flag category": pd.Categorical([True, False, True]),
    "no category": pd.Categorical([None, None, None]),
    "category of half a surrogate": pd.Categorical.from_codes([0, 1, 1], HALF),
    "dates category": pd.Categorical(pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-01"])),
}


@pytest.mark.parametrize("kind", list(COLUMNS))
def test_a_column_arrives_as_it_was_sent(kind):
    sent = COLUMNS[kind]
    objects = isinstance(sent, np.ndarray) and sent.dtype.kind == "O"
    frame = pd.DataFrame({kind: pd.Series(sent, dtype=object) if objects else sent, "beside": [1, 2, 3]})
    arrived = there_and_back(frame)
    assert_frame_equal(arrived, frame, check_exact=True)
    if frame[kind].dtype == object:
        for got, sent in zip(arrived[kind], frame[kind], strict=True):
            assert type(got) is type(sent)


def test_the_rows_of_a_slice_arrive_without_their_index():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=[7, 8, 9])
    assert_frame_equal(there_and_back(frame.iloc[1:]), frame.iloc[1:].reset_index(drop=True))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "object"])
def test_an_array_arrives_as_it_was_sent(dtype):
    array = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    arrived = there_and_back(array)
    assert arrived.dtype == array.dtype
    assert np.array_equal(arrived, array)


def test_no_rows_and_no_columns_arrive_too():
    assert there_and_back(pd.DataFrame({"a": []})).shape == (0, 1)
    assert there_and_back(pd.DataFrame(index=range(3))).shape == (3, 0)


def test_a_name_of_a_column_can_be_anything(hostile_name):
    if "\ud800" in hostile_name:
        pytest.skip("a table with such a name is refused before")
    frame = pd.DataFrame({hostile_name: [1], "other" + hostile_name: ["x"]})
    assert list(there_and_back(frame).columns) == list(frame.columns)


def test_a_value_can_be_any_text(hostile_name):
    values = np.array([hostile_name, "b"], dtype=object)
    category = pd.Categorical.from_codes([0, 1], pd.Index(values, dtype=object))
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "c": category})
    assert_frame_equal(there_and_back(frame), frame)


def test_what_cannot_be_sent_is_refused_by_the_name_of_its_column():
    with pytest.raises(Unsendable, match="'odd' holds"):
        pack_rows(pd.DataFrame({"fine": [1], "odd": np.array([object()], dtype=object)}))


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()))
def test_a_value_is_read_as_it_was_written_with_its_type(value):
    read = read_scalar(plain_scalar(value))
    assert type(read) is type(value)
    assert read == value


@pytest.mark.parametrize(
    "value", [None, 3, [], ["int"], ["int", True], ["int", "3"], ["float", "x"], ["str", 1], ["object", "x"], {"a": 1}]
)
def test_a_value_of_no_known_type_is_malformed(value):
    with pytest.raises(Malformed):
        read_scalar(value)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "dtype"),
    [
        (np.array([0.5, 0.25]), "float64"),
        (np.array([[1, 2], [3, 4]], dtype="int8"), "int64"),
        (np.array([0.5, 0.25], dtype=">f4"), "float64"),
        (np.array([True, False]), "bool"),
        ([1, 2.5], "float64"),
        (pd.Series([1.0, 2.0]), "float64"),
        (pd.DataFrame({"a": [1.0, 2.0]}), "float64"),
        (np.array(["1", "2.5"], dtype=object), "float64"),
        (np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), "float64"),
        (np.array([2**63 + 1, 1], dtype="uint64"), "float64"),
    ],
)
def test_an_answer_arrives_as_plain_numbers(answer, dtype):
    read = read_numbers(bytearray(pack_numbers(answer)), rows=2, widest=2)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, np.asarray(answer).astype(dtype))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(3), r"shape \(3\) for 2 rows"),
        (np.zeros((2, 3)), r"shape \(2, 3\) for 2 rows"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.float64(1), "shape"),
    ],
)
def test_an_answer_of_another_shape_is_malformed(answer, message):
    with pytest.raises(Malformed, match=message):
        read_numbers(bytearray(pack_numbers(answer)), rows=2, widest=2)


NEGATIVE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }  "


def npy(array, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return bytearray(out.getvalue())


@pytest.mark.parametrize(
    "body",
    [
        bytearray(),
        bytearray(b"\x93NUMPY\x01\x00"),
        npy(np.array([object(), 1], dtype=object)),
        npy(np.zeros(2), version=(2, 0)),
        npy(np.zeros(2, dtype="complex128")),
        npy(np.zeros(2, dtype=[("a", "f8")])),
        npy(np.zeros(2))[:-1],
        npy(np.zeros(2)) + b"\x00",
        bytearray(b"\x93NUMPY\x01\x00\x10\x00" + b"{'descr':1}     "),
        bytearray(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(NEGATIVE)) + NEGATIVE),
    ],
)  # fmt: skip
def test_what_is_no_npy_of_numbers_is_malformed_and_nothing_is_unpickled(body):
    with pytest.raises(Malformed):
        read_numbers(body, rows=2, widest=2)


@given(st.binary(max_size=200))
def test_any_bytes_are_numbers_or_malformed(body):
    for whole in (body, b"\x93NUMPY\x01\x00" + body):
        try:
            assert len(read_numbers(bytearray(whole), rows=2, widest=2)) == 2
        except Malformed:
            continue


def message(head, body=b"", head_length=None, body_length=None):
    lengths = struct.pack(">IQ", head_length or len(head), len(body) if body_length is None else body_length)
    stream = io.BytesIO(lengths + head + body)
    return lambda length: bytearray(stream.read(length))


@pytest.mark.parametrize(
    "read",
    [
        message(b"[1]"),
        message(b"{"),
        message(b"\xff\xff"),
        message(b"[" * 100_000),
        message(b"{}", body_length=101),
        message(b"{}", head_length=HEAD_LIMIT + 1),
        message(b"{}", body_length=2**64 - 1),
    ],
)
def test_a_message_that_is_none_or_too_long_is_malformed_before_it_is_read(read):
    with pytest.raises(Malformed):
        read_message(read, most=100)
