import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import aboveboard
from aboveboard.auditing.parquet import is_parquet, open_source
from aboveboard.core.errors import InputError

COLUMNS = {"y": [0, 1, 0, 1], "p": [0.1, 0.9, 0.4, 0.6], "g": ["a", "b", "a", "b"]}


def put(folder, name, columns=COLUMNS, **options):
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / name, **options)
    return folder / name


def read(source, columns=None):
    columns = columns or list(source.kinds)
    return pd.concat([frame for part in source.parts() for _, frame in part.batches(columns)], ignore_index=True)


def refused(data, message):
    with pytest.raises(InputError, match=message) as caught:
        aboveboard.audit(None, data, "y", predictions="p", only="performance", stream=True)
    assert "/" not in str(caught.value)


def test_parts_hold_all_rows_in_the_order_of_the_files_with_their_positions(tmp_path, monkeypatch):
    monkeypatch.setattr("aboveboard.auditing.parquet._PART_ROWS", 30)
    monkeypatch.setattr("aboveboard.auditing.parquet.BATCH", 7)
    for number in range(3):
        start = 100 * number
        put(tmp_path, f"{number}.parquet", {"i": np.arange(start, start + 100)}, row_group_size=12)
    source = open_source(tmp_path)
    assert source.rows == 300
    parts = source.parts()
    assert [part.rows for part in parts] == [36, 36, 28] * 3
    for part in parts:
        for start, frame in part.batches(["i"]):
            np.testing.assert_array_equal(frame["i"], np.arange(start, start + len(frame)))
            assert len(frame) <= 7
    assert pickle.loads(pickle.dumps(parts[4])) == parts[4]


def test_empty_files_and_empty_row_groups_are_no_obstacle(tmp_path):
    empty = {name: pa.array([], pa.array(values).type) for name, values in COLUMNS.items()}
    put(tmp_path, "0.parquet", empty)
    with pq.ParquetWriter(tmp_path / "1.parquet", pa.table(COLUMNS).schema) as writer:
        for table in (pa.table(COLUMNS), pa.table(empty), pa.table(COLUMNS)):
            writer.write_table(table)
    source = open_source(tmp_path)
    assert source.rows == 8
    assert read(source)["g"].tolist() == ["a", "b"] * 4


def test_only_the_columns_that_are_named_are_read(tmp_path):
    put(tmp_path, "0.parquet", COLUMNS | {"p.q": [1, 2, 3, 4], "other": [5, 6, 7, 8]})
    source = open_source(tmp_path / "0.parquet")
    (part,) = source.parts()
    ((_, frame),) = part.batches(["p", "y"])
    assert list(frame.columns) == ["p", "y"]
    assert read(source, ["p.q"])["p.q"].tolist() == [1, 2, 3, 4]


def test_columns_may_stand_in_another_order_and_hold_whole_numbers_here_and_fractions_there(tmp_path):
    put(tmp_path, "0.parquet")
    put(tmp_path, "1.parquet", {"g": COLUMNS["g"], "p": [0, 1, 0, 1], "y": COLUMNS["y"]})
    source = open_source(tmp_path)
    assert list(source.kinds.items()) == [("y", "number"), ("p", "number"), ("g", "text")]
    assert read(source)["p"].tolist() == [0.1, 0.9, 0.4, 0.6, 0.0, 1.0, 0.0, 1.0]


def test_files_without_a_value_in_a_column_go_with_those_that_have_some(tmp_path):
    put(tmp_path, "0.parquet", COLUMNS | {"g": pa.nulls(4)})
    put(tmp_path, "1.parquet")
    source = open_source(tmp_path)
    assert source.kinds["g"] == "text"
    assert read(source)["g"].isna().sum() == 4
    assert source.table().column("g").null_count == 4


def test_hidden_files_are_left_out_silently_and_others_with_a_note(tmp_path):
    put(tmp_path, "0.parquet")
    put(tmp_path / "_temporary", "1.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".crc").write_text("x")
    (tmp_path / "README.txt").write_text("x")
    source = open_source(tmp_path)
    assert [file.name for file in source.files] == ["0.parquet"]
    assert source.notes == ("1 files in the folder are no Parquet files and were left out.",)


def test_names_of_folders_give_columns(tmp_path):
    for year, place in ((2023, "a%20b"), (2024, "__HIVE_DEFAULT_PARTITION__")):
        put(tmp_path / f"year={year}" / f"place={place}", "0.parquet")
    source = open_source(tmp_path)
    frame = read(source)
    assert frame["year"].tolist() == [2023] * 4 + [2024] * 4
    assert frame["place"].tolist()[:4] == ["a b"] * 4
    assert frame["place"].isna().tolist() == [False] * 4 + [True] * 4
    assert source.table().column("year").to_pylist() == frame["year"].tolist()
    assert read(source, ["year"])["year"].tolist() == frame["year"].tolist()


def test_the_nameless_index_of_pandas_is_no_column(tmp_path):
    pd.DataFrame(COLUMNS, index=[3, 1, 2, 0]).to_parquet(tmp_path / "0.parquet")
    assert list(open_source(tmp_path).kinds) == ["y", "p", "g"]


def test_data_sets_that_are_not_made_of_parquet_files_are_refused(tmp_path):
    refused(ds.dataset(pa.table(COLUMNS)), "not made of Parquet files")
    put(tmp_path, "0.parquet")
    assert open_source(ds.dataset(tmp_path, format="parquet")).rows == 4


def test_what_is_no_parquet_is_told_by_its_name(tmp_path):
    assert is_parquet(tmp_path)
    assert is_parquet(put(tmp_path, "A.PARQUET"))
    assert not is_parquet(tmp_path / "none.parquet")
    assert not is_parquet("x\x00y")
    (tmp_path / "t.csv").write_text("y,p\n0,0.1\n1,0.9\n")
    assert not is_parquet(tmp_path / "t.csv")


# --- refusals -------------------------------------------------------------------------------------------------------


def test_a_folder_without_parquet_files_is_refused(tmp_path):
    refused(tmp_path, "holds no Parquet file")
    (tmp_path / "notes.csv").write_text("y\n1\n")
    refused(tmp_path, "holds no Parquet file")


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "footer"])
def test_a_damaged_file_is_named(damage, tmp_path):
    put(tmp_path, "good.parquet", {name: values * 500 for name, values in COLUMNS.items()})
    whole = put(tmp_path, "later.parquet", {name: values * 500 for name, values in COLUMNS.items()})
    content = whole.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    changed = {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "other": b"y,p,g\n0,0.1,a\n",
        "footer": content[:-footer] + b"\xff" * 40 + content[40 - footer :],
    }
    whole.write_bytes(changed[damage])
    refused(tmp_path, r"later\.parquet")


def test_damaged_pages_are_found_while_reading_and_the_file_is_named(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"y": rng.integers(0, 2, 50_000), "p": rng.random(50_000)}
    put(tmp_path, "good.parquet", columns)
    file = put(tmp_path, "later.parquet", columns)
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    file.write_bytes(bytes(content))
    refused(tmp_path, r"later\.parquet")


def test_files_that_do_not_make_one_table_are_refused_by_name(tmp_path):
    put(tmp_path / "lacks", "0.parquet")
    put(tmp_path / "lacks", "1.parquet", {"y": [0, 1], "p": [0.5, 0.5]})
    refused(tmp_path / "lacks", r"the file '1\.parquet' has no column 'g', which '0\.parquet' has")
    put(tmp_path / "more", "0.parquet")
    put(tmp_path / "more", "1.parquet", COLUMNS | {"z": [1, 2, 3, 4]})
    refused(tmp_path / "more", r"'1\.parquet' has a column 'z', which '0\.parquet' has not")
    put(tmp_path / "kinds", "0.parquet")
    put(tmp_path / "kinds", "1.parquet", COLUMNS | {"p": ["a", "b", "c", "d"]})
    refused(tmp_path / "kinds", r"'p' holds text in '1\.parquet' and numbers in '0\.parquet'")


def test_lists_are_refused(tmp_path):
    put(tmp_path, "0.parquet", COLUMNS | {"l": [[1], [2], [3], [4]]})
    refused(tmp_path, r"the column 'l' of '0\.parquet' holds values of the type list")


def test_a_file_that_loses_rows_between_two_looks_is_refused(tmp_path):
    put(tmp_path, "0.parquet", {name: values * 100 for name, values in COLUMNS.items()})
    source = open_source(tmp_path)
    put(tmp_path, "0.parquet")
    with pytest.raises(InputError, match=r"'0\.parquet' has 4 rows where its footer says 400"):
        read(source)
