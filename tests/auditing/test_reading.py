import codecs
import csv
import datetime as dt
import gzip
import io
import os
import string
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.auditing import reading
from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.reading import MISSING_TEXTS, read_table
from aboveboard.auditing.subject import make_subject
from aboveboard.core.errors import InputError


@pytest.fixture
def read(tmp_path):
    def read(content, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return read


def columns(table):
    return {name: table.frame[name].tolist() for name in table.frame.columns}


# --- CSV: delimiter, quotes, lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_each_delimiter_and_line_ending_is_found(read, delimiter, newline):
    rows = [["a", "b"], ["1", "x y"], ["2", "z"]]
    table = read(newline.join(delimiter.join(row) for row in rows) + newline)
    assert columns(table) == {"a": [1, 2], "b": ["x y", "z"]}
    assert table.notes == ()


def test_the_delimiter_that_splits_all_rows_alike_wins_over_one_that_occurs_in_values(read):
    assert columns(read("a;b\n1,5;x\n2,25;y\n")) == {"a": [1.5, 2.25], "b": ["x", "y"]}
    assert columns(read('a,b\n"x;y;z",1\n"u;v;w",2\n'))["b"] == [1, 2]


def test_quotes_keep_delimiters_quotes_and_lines_together(read):
    table = read('a,b\n"x, ""y""\nz",1\n5" pipe,2\n')
    assert columns(table) == {"a": ['x, "y"\nz', '5" pipe'], "b": [1, 2]}


def test_empty_lines_are_no_rows(read):
    assert columns(read("\n\na,b\n\n1,2\n\n3,4\n\n")) == {"a": [1, 3], "b": [2, 4]}


def test_one_column_is_a_table(read):
    assert columns(read("home town\nNew York\nSan Diego\n")) == {"home town": ["New York", "San Diego"]}


def test_a_first_column_without_a_name_that_counts_the_rows_is_left_out(read):
    frame = pd.DataFrame({"a": [5, 6], "b": ["x", "y"]})
    table = read(frame.to_csv())
    assert columns(table) == {"a": [5, 6], "b": ["x", "y"]}
    assert "counts the rows" in table.notes[0]
    assert list(read(",a\n7,1\n9,2\n").frame.columns) == ["Unnamed: 0", "a"]


@pytest.mark.parametrize("name", ["data.csv", "data.CSV", "data.tsv", "data.txt", "data.csv.gz"])
def test_the_ending_may_be_any_that_csv_files_have(read, name):
    content = b"a,b\n1,2\n3,4\n"
    assert columns(read(gzip.compress(content) if name.endswith("gz") else content, name)) == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \r\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"a,b\n", "a header and no rows"),
        (b"a,a\n1,2\n", "more than one column called 'a'"),
        (b",\n1,2\n", "names no column"),
        (b"a,b\n1,2\n1,2,3\n4,5\n", "line 3 has 3 values and the header 2"),
        (b'a,b\n1,"x\ny"\n\n1\n', "line 5 has 1 values and the header 2"),
        (b"a,b\n1,2,\n3,4,\n", "line 2 has 3 values"),
        (b'a,b\n1,"x\n2,y\n3,z\n', "quotation mark in line 2 is not closed"),
        (b"a:b\n1:2\n3:4\n", "seem to be split by ':'"),
        (b"a,b\n1,\x00\n", "byte 6 is NUL"),
        ("a,b\n1,2\n".encode("utf-16-le"), "UTF-16 without its mark"),
        (b"a,b\n" + b"x" * (2**20 + 1) + b",1\n", "line 2 is longer than 1,048,576 characters"),
        (b"a,b\n" + b"x" * (2**25) + b",1\n", "line 2 is longer than 1,048,576 characters"),
    ],
)
def test_a_csv_file_that_makes_no_table_is_refused_by_line_or_byte(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content)


def test_the_limit_of_the_csv_module_is_left_as_it_was(read):
    before = csv.field_size_limit()
    with pytest.raises(InputError):
        read("a,b\n1\n")
    assert csv.field_size_limit() == before


# --- CSV: encoding ----------------------------------------------------------------------------------------------------

WORDS = "name,n\nJosé,1\nBjörk,2\n"


@pytest.mark.parametrize(
    "content",
    [
        WORDS.encode(), WORDS.encode("utf-8-sig"), WORDS.encode("utf-16"),
        codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"),
    ],
)  # fmt: skip
def test_unicode_is_read_with_and_without_a_mark(read, content):
    table = read(content)
    assert columns(table) == {"name": ["José", "Björk"], "n": [1, 2]}
    assert table.notes == ()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_western_european_text_is_read_and_said_so(read, encoding):
    table = read(WORDS.encode(encoding))
    assert table.frame["name"].tolist() == ["José", "Björk"]
    assert "Windows-1252" in table.notes[0]
    assert read("name,n\n€5 “x”,1\n£3,2\n".encode("cp1252")).frame["name"].tolist() == ["€5 “x”", "£3"]


@pytest.mark.parametrize(
    "content",
    [
        "name,n\nПривет,1\nмир,2\n".encode("cp1251"),
        "name,n\nこんにちは,1\n世界,2\n".encode("shift-jis"),
        "name,n\n你好,1\n世界,2\n".encode("gb18030"),
        b"name,n\ncaf\x81,1\nx,2\n",  # a byte that Windows-1252 lacks
        "name,n\nJosé,1\n".encode() + b"Bj\xf6rk,2\n",  # UTF-8 and Latin-1 mixed
        b"name,n\nx\xa4y,1\nz,2\n",  # a mark that is no letter
    ],
)
def test_an_encoding_that_cannot_be_told_safely_is_refused_with_the_byte(read, content):
    at = next(i for i in range(len(content)) if _stops_being_utf8(content, i))
    with pytest.raises(InputError, match=f"byte {at:,} "):
        read(content)


def _stops_being_utf8(content, at):
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start == at
    return False


@pytest.mark.parametrize("chunk", range(1, 12))
def test_a_bad_byte_is_found_wherever_the_chunks_are_cut(read, chunk, monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK", chunk)
    content = b"a,b\n" + "é,1\n".encode() * 400
    assert len(read(content).frame) == 400
    with pytest.raises(InputError, match="byte 2,004 "):
        read(content + b"\xff\xff\xff,1\n")


def test_broken_utf_16_is_refused(read):
    with pytest.raises(InputError, match="not UTF-16"):
        read(codecs.BOM_UTF16_LE + b"\x00\xd8a\x00")


# --- CSV: types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2"], "number", [1, -2]),
        (["1", ""], "number", [1.0, np.nan]),
        (["1.5", "+2", "3e2", "NA"], "number", [1.5, 2.0, 300.0, np.nan]),
        ([" 1", "2 "], "number", [1, 2]),
        (["0", "0.5"], "number", [0.0, 0.5]),
        (["true", "False"], "boolean", [True, False]),
        (["TRUE", "", "FALSE"], "boolean", [True, np.nan, False]),
        (["yes", "no"], "text", ["yes", "no"]),
        (["2020-01-02", "2020-03-04"], "datetime", [pd.Timestamp(2020, 1, 2), pd.Timestamp(2020, 3, 4)]),
        (["2020-01-02 03:04", "2020-01-02T03:04:05.5"], "datetime",
         [pd.Timestamp(2020, 1, 2, 3, 4), pd.Timestamp(2020, 1, 2, 3, 4, 5, 500_000)]),
        (["2020-01-02", "2020-13-02"], "text", ["2020-01-02", "2020-13-02"]),
        (["01/02/2020", "03/04/2020"], "text", ["01/02/2020", "03/04/2020"]),
        (["2020", "2021"], "number", [2020, 2021]),
        (["02139", "10001"], "text", ["02139", "10001"]),
        (["0x1F", "0x2F"], "text", ["0x1F", "0x2F"]),
        (["12345678901234567890", "1"], "text", ["12345678901234567890", "1"]),
        (["1234567890123456", "2"], "number", [1234567890123456, 2]),
        (["12", "x"], "text", ["12", "x"]),
    ],
)  # fmt: skip
def test_the_values_of_a_column_tell_its_type(read, cells, kind, values):
    table = read("v,n\n" + "".join(f"{cell},1\n" for cell in cells))
    assert table.kinds["v"] == kind
    assert list(map(str, table.frame["v"])) == list(map(str, values))


@pytest.mark.parametrize("text", [text for text in MISSING_TEXTS if text])
def test_what_pandas_reads_as_missing_is_missing(read, text):
    content = f"v,n\nx,1\n{text},2\n"
    assert read(content).frame["v"].isna().tolist() == [False, True]
    assert pd.read_csv(io.StringIO(content))["v"].isna().tolist() == [False, True]


def test_numbers_and_words_of_a_csv_file_are_those_that_pandas_reads(read):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(-(10**9), 10**9, 200),
            "broken": rng.normal(size=200) * 10.0 ** rng.integers(-200, 200, 200),
            "words": rng.choice(["a", "b", "ü"], 200),
            "truth": rng.random(200) < 0.5,
        }
    )
    frame.loc[rng.random(200) < 0.1, ["broken", "words"]] = np.nan
    content = frame.to_csv(index=False)
    pd.testing.assert_frame_equal(read(content).frame, pd.read_csv(io.StringIO(content)), check_exact=False, rtol=1e-14)


def test_codes_and_columns_with_stray_words_are_said_to_be_text(read):
    notes = " ".join(read("zip,age,n\n02139,12,1\n10001,?,2\n10002,30,3\n").notes)
    assert "zip has whole numbers with leading zeros" in notes
    assert "age has 2 numbers and other values such as '?'" in notes


def test_a_decimal_comma_is_read_where_it_can_mean_nothing_else(read):
    table = read("a;b\n1,5;1,234\n2;2,345\n")
    assert columns(table) == {"a": [1.5, 2.0], "b": ["1,234", "2,345"]}
    assert any("a has decimal commas" in note for note in table.notes)


def test_a_column_without_values_has_no_type_yet(read):
    table = read("a,b\n,1\n,2\n")
    assert table.kinds == {"b": "number"}
    assert table.frame["a"].dtype == "float64"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("number", [1, 0]),
        ("boolean", [True, False]),
        ("text", ["1", "0"]),
        ("category", ["1", "0"]),
    ],
)
def test_the_user_can_say_what_a_column_holds(read, kind, values):
    table = read("a,b\n1,x\n0,y\n", types={"a": kind})
    assert table.kinds["a"] == kind
    assert table.frame["a"].tolist() == values


def test_leading_zeros_are_numbers_where_the_user_says_so(read):
    assert read("a,b\n007,x\n010,y\n", types={"a": "number"}).frame["a"].tolist() == [7, 10]


@pytest.mark.parametrize(
    ("kind", "value"), [("number", "many"), ("boolean", "maybe"), ("datetime", "03/04/2020"), ("number", "1,5")]
)
def test_a_value_that_is_not_what_the_user_says_is_named(read, kind, value):
    with pytest.raises(InputError, match=f"column 'a' has the value '{value}'.*says the .types. table"):
        read(f'a,b\n"{value}",x\n,y\n', types={"a": kind})


# --- types from the training data -------------------------------------------------------------------------------------


def test_the_types_of_the_training_data_are_applied_to_the_test_data(read):
    train = read("zip,n,d,t\n02139,1,2020-01-01,True\n10001,2,2020-01-02,False\n", "train.csv")
    test = read("zip,n,d,t\n10001,3,2021-01-01,1\n10002,4.5,2021-01-02,0\n", like=train)
    assert test.kinds == train.kinds
    assert test.frame["zip"].tolist() == ["10001", "10002"]
    assert test.frame["t"].tolist() == [True, False]


def test_text_where_the_training_data_have_numbers_is_refused(read):
    train = read("a,b\n1,x\n2,y\n", "train.csv")
    with pytest.raises(InputError, match=r"column 'a' has the value 'three'.*says the training data"):
        read("a,b\nthree,x\n4,y\n", like=train)


def test_a_level_that_training_lacks_stays_a_value(read):
    train = read("a,b\nx,1\ny,2\n", "train.csv", types={"a": "category"})
    test = read("a,b\nz,1\ny,2\n", types={"a": "category"}, like=train)
    assert test.frame["a"].tolist() == ["z", "y"]
    assert list(test.frame["a"].cat.categories) == ["x", "y", "z"]


def test_the_user_wins_over_the_training_data(read):
    train = read("a,b\n1,x\n2,y\n", "train.csv")
    assert read("a,b\n1,x\n2,y\n", like=train, types={"a": "text"}).frame["a"].tolist() == ["1", "2"]


def test_a_column_of_a_typed_file_follows_the_training_data_and_it_is_said(tmp_path, read):
    train = read("a,b,c\n1,02,2020-01-01\n2,03,2020-01-02\n", "train.csv")
    pd.DataFrame({"a": ["3", "4"], "b": [2, 3], "c": ["2020-01-01", None]}).to_parquet(tmp_path / "test.parquet")
    test = read_table(tmp_path / "test.parquet", like=train)
    assert test.kinds == train.kinds
    assert test.frame["a"].tolist() == [3, 4]
    assert test.frame["b"].tolist() == ["2", "3"]
    assert any("a holds text values in the file and is read as number" in note for note in test.notes)
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"])}).to_parquet(tmp_path / "dates.parquet")
    with pytest.raises(InputError, match=r"'a' holds datetime values\. Expected number, says the training data"):
        read_table(tmp_path / "dates.parquet", like=train)


def test_numbers_written_as_text_in_a_typed_file_are_told(tmp_path):
    pd.DataFrame({"a": ["1.5", "2"], "b": ["x", "1"]}).to_parquet(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet")
    assert table.kinds == {"a": "text", "b": "text"}
    assert [note for note in table.notes if "numbers written as text" in note] == [
        "a holds numbers written as text, and is read as text; its type can be set in the [types] table."
    ]


# --- Parquet, Feather, Arrow ------------------------------------------------------------------------------------------

TYPED = pd.DataFrame(
    {
        "i": [1, 2, 3],
        "f": [1.5, np.nan, 3.0],
        "s": ["a", None, "c"],
        "c": pd.Categorical(["x", "y", None], ["y", "x"], ordered=True),
        "b": [True, False, True],
        "n": pd.array([1, None, 3], dtype="Int64"),
        "t": pd.to_datetime(["2020-01-02", None, "2020-01-03"]),
    }
)


def write(frame, path):
    table = pa.Table.from_pandas(frame)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, str(path))
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".feather", ".arrow"])
def test_typed_files_keep_their_types(tmp_path, suffix):
    write(TYPED, tmp_path / f"data{'.parquet' if suffix == '.pq' else suffix}")
    if suffix == ".pq":
        (tmp_path / "data.parquet").rename(tmp_path / "data.pq")
    table = read_table(tmp_path / f"data{suffix}")
    pd.testing.assert_frame_equal(table.frame, TYPED)
    assert table.kinds == {
        "i": "number", "f": "number", "s": "text", "c": "category", "b": "boolean", "n": "number", "t": "datetime",
    }  # fmt: skip
    assert table.levels == {"c": ("y", "x")}


def test_an_arrow_stream_is_read_like_an_arrow_file(tmp_path):
    write(TYPED, tmp_path / "stream")
    (tmp_path / "stream").rename(tmp_path / "data.arrow")
    pd.testing.assert_frame_equal(read_table(tmp_path / "data.arrow").frame, TYPED)


def test_a_named_index_becomes_a_column_and_an_unnamed_one_is_left_out(tmp_path):
    TYPED.set_index("i").to_parquet(tmp_path / "named.parquet")
    named = read_table(tmp_path / "named.parquet")
    assert list(named.frame.columns) == list(TYPED.columns)
    assert "'i'" in named.notes[0]
    TYPED.set_axis([7, 5, 6]).to_parquet(tmp_path / "unnamed.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "unnamed.parquet").frame, TYPED)


def test_columns_of_lists_or_bytes_and_repeated_names_are_refused(tmp_path):
    for column, message in (
        ([[1], [2]], "type list"),
        ([b"x", b"y"], "type binary"),
        ([{"a": 1}, None], "type struct"),
    ):
        pa.parquet.write_table(pa.table({"a": column, "b": [1, 2]}), tmp_path / "data.parquet")
        with pytest.raises(InputError, match=f"column 'a' holds values of the {message}"):
            read_table(tmp_path / "data.parquet")
    pa.parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), tmp_path / "data.parquet")
    with pytest.raises(InputError, match="more than one column called 'a'"):
        read_table(tmp_path / "data.parquet")


def test_decimals_are_numbers(tmp_path):
    pa.parquet.write_table(pa.table({"a": [Decimal("1.50"), None]}), tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").kinds == {"a": "number"}


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
def test_a_file_that_is_cut_short_empty_or_something_else_is_refused(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write(TYPED, path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-1], b"", b"a,b\n1,2\n", b"PAR1", whole[:8]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot be read as|is empty"):
            read_table(path)


def test_a_damaged_file_is_refused_before_it_can_crash_the_process(tmp_path):
    """Found by fuzzing: the offsets of the texts lead out of the file."""
    path = tmp_path / "data.arrow"
    write(pd.DataFrame({"s": ["one", "two", "three"]}), path)
    content = path.read_bytes()
    offsets = np.array([0, 3, 6, 11], dtype="int32").tobytes()
    wide = np.dtype("int64")
    offsets = offsets if offsets in content else np.array([0, 3, 6, 11], dtype=wide).tobytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, offsets[:-2] + b"\xff\x7f"))
    with pytest.raises(InputError, match="cannot be read as Arrow"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_typed_file_without_rows_or_columns_is_refused(tmp_path, suffix):
    write(TYPED[:0], tmp_path / f"data{suffix}")
    with pytest.raises(InputError, match="no rows"):
        read_table(tmp_path / f"data{suffix}")
    write(pd.DataFrame(index=range(3)), tmp_path / f"data{suffix}")
    with pytest.raises(InputError, match="no columns"):
        read_table(tmp_path / f"data{suffix}")


# --- what is no file --------------------------------------------------------------------------------------------------


def test_what_is_no_readable_file_is_refused(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "data.xlsx").write_text("x", encoding="utf-8")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "gone.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name, message in {
        "dta.csv": "there is no file 'dta.csv'.*Did you mean 'data.csv'",
        "zzzzzz.csv": "Check the path",
        "none/data.csv": "there is no file",
        "": "is a folder",
        "data.xlsx": "ending of 'data.xlsx' says nothing",
        "loop.csv": "cannot be opened|leads nowhere",
        "dangling.csv": "leads nowhere",
        "pipe.csv": "no regular file",
        "n" * 300 + ".csv": "cannot be opened",
        "a\0b.csv": "cannot be opened|there is no file",
    }.items():
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / name)


def test_a_compressed_file_that_is_cut_short_is_refused(read):
    content = gzip.compress(b"a,b\n1,2\n")
    for part in (content[:-4], content[:12], b"\x1f\x8bxx"):
        with pytest.raises(InputError, match="cannot be read"):
            read(part, "data.csv.gz")


def test_a_file_that_may_not_be_read_is_refused(read, monkeypatch, tmp_path):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", denied)
    with pytest.raises(InputError, match="Permission denied"):
        read("a,b\n1,2\n")


def test_no_message_names_a_folder(read, tmp_path):
    for content in ("", "a,b\n", "a,b\n1\n"):
        with pytest.raises(InputError) as caught:
            read(content)
        assert str(tmp_path) not in str(caught.value)


# --- any table comes back ---------------------------------------------------------------------------------------------

letters = st.text(string.ascii_letters + " '\"ü,;|\t\n€", min_size=1, max_size=8).filter(
    lambda text: (
        text.strip() and text not in MISSING_TEXTS and text.casefold() not in ("true", "false", "inf", "infinity")
    )
)
cells = {
    "whole": st.integers(-(2**53), 2**53),
    "broken": st.floats(allow_nan=False, allow_infinity=False, width=64),
    "words": letters.map(lambda text: "w" + text),
    "truth": st.booleans(),
    "days": st.dates(dt.date(1950, 1, 1), dt.date(2050, 1, 1)).map(pd.Timestamp),
}
tables = st.integers(2, 12).flatmap(
    lambda n: st.fixed_dictionaries(
        {name: st.lists(cell if name in ("whole", "truth") else cell | st.none(), min_size=n, max_size=n)
         for name, cell in cells.items()}
    )
)  # fmt: skip


@settings(max_examples=60)
@given(tables, st.sampled_from([".csv", ";csv", "\tcsv", "|csv", ".csv.gz", ".parquet", ".feather", ".arrow"]))
def test_any_table_comes_back_from_any_file_as_the_same_subject(tmp_path_factory, table, kind):
    frame = pd.DataFrame(
        {
            "whole": pd.Series(table["whole"], dtype="int64"),
            "broken": pd.Series(table["broken"], dtype="float64"),
            "words": pd.Series(table["words"], dtype=object),
            "truth": pd.Series(table["truth"], dtype="bool"),
            "days": pd.Series(table["days"], dtype="datetime64[ns]"),
        }
    )
    folder = tmp_path_factory.mktemp("any")
    if "csv" in kind:
        delimiter, suffix = (",", kind) if kind[0] == "." else (kind[0], "." + kind[1:])
        path = folder / f"data{suffix}"
        frame.to_csv(path, index=False, sep=delimiter, date_format="%Y-%m-%d")
    else:
        path = folder / f"data{kind}"
        write(frame, path)
    read = read_table(path)
    y, p = [0, 1] * 6, [0.1, 0.9] * 6
    expected, got = (
        make_subject(None, data, y[: len(frame)], predictions=p[: len(frame)], sensitive_features=["truth"])
        for data in (frame, read.frame)
    )
    filled = [name for name in frame.columns if frame[name].notna().any()]
    assert {name: read.kinds[name] for name in filled} == {name: expected.kinds[name] for name in filled}
    for name in frame.columns:
        old, new = expected.X[name], got.X[name]
        assert old.isna().tolist() == new.isna().tolist()
        assert list(map(plain_label, old.dropna())) == list(map(plain_label, new.dropna()))
    pd.testing.assert_frame_equal(got.sensitive, expected.sensitive)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("data.csv", "data.parquet", "data.feather", "data.arrow", "data.csv.gz"):
        (folder / name).write_bytes(content)
        try:
            table = read_table(folder / name)
        except InputError:
            continue
        assert len(table.frame)


@given(st.text("ab1.,;|\t\"'\n\r ?é-:0T", max_size=80))
def test_any_text_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("text") / "data.csv"
    path.write_text(content, encoding="utf-8", newline="")
    try:
        table = read_table(path)
    except InputError:
        return
    assert len(table.frame)
    assert len(set(table.frame.columns)) == table.frame.shape[1]
