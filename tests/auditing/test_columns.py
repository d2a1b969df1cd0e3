from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from aboveboard.auditing.columns import chance_of_match, coded, numbers, row_hashes, value_hashes
from aboveboard.auditing.frames import to_frame

SAME_NUMBERS = {
    "int64": pd.Series([1, 0, 7]),
    "int8": pd.Series([1, 0, 7], dtype="int8"),
    "float": pd.Series([1.0, -0.0, 7.0]),
    "nullable": pd.Series([1, 0, 7], dtype="Int64"),
    "arrow": pd.Series([1, 0, 7], dtype="int64[pyarrow]"),
    "object": pd.Series([1, 0.0, np.int32(7)], dtype=object),
    "category": pd.Series([1, 0, 7]).astype("category"),
}
SAME_TEXT = {
    "object": pd.Series(["a", None, "ü"], dtype=object),
    "nan": pd.Series(["a", np.nan, "ü"], dtype=object),
    "string": pd.Series(["a", None, "ü"], dtype="string"),
    "arrow": pd.Series(["a", None, "ü"], dtype="string[pyarrow]"),
    "category": pd.Series(["a", None, "ü"]).astype(pd.CategoricalDtype(["ü", "unused", "a"])),
    "polars": to_frame(pl.DataFrame({"t": ["a", None, "ü"]}), "X")["t"],
}
SAME_BOOLEANS = {
    "bool": pd.Series([True, False]),
    "nullable": pd.Series([True, False], dtype="boolean"),
    "arrow": pd.Series([True, False], dtype="bool[pyarrow]"),
    "object": pd.Series([True, False], dtype=object),
    "number": pd.Series([1, 0]),
}
SAME_DATES = {
    "ns": pd.Series(pd.to_datetime(["2020-01-02", None])).astype("datetime64[ns]"),
    "s": pd.Series(pd.to_datetime(["2020-01-02", None])).astype("datetime64[s]"),
    "utc": pd.Series(pd.to_datetime(["2020-01-02", None], utc=True)),
    "arrow": pd.Series(pd.to_datetime(["2020-01-02", None])).astype("timestamp[us][pyarrow]"),
    "object": pd.Series([date(2020, 1, 2), None], dtype=object),
}


@pytest.mark.parametrize("family", [SAME_NUMBERS, SAME_TEXT, SAME_BOOLEANS, SAME_DATES])
def test_equal_values_have_equal_hashes_in_every_container(family):
    first, *others = [value_hashes(series) for series in family.values()]
    for name, other in zip(list(family)[1:], others, strict=True):
        np.testing.assert_array_equal(other, first, err_msg=name)


def test_different_values_have_different_hashes():
    values = pd.Series(["1", "1 ", "", "nan", "None"], dtype=object)
    hashes = [
        *value_hashes(values),
        *value_hashes(pd.Series([1, np.nan, 2**53 + 1, 2**53, 2.0**53 + 2, np.inf], dtype=object)),
    ]
    assert len(set(hashes)) == len(hashes) - 1  # as an object, 2**53 + 1 is read as a float


def test_whole_numbers_beyond_the_precision_of_floats_are_told_apart():
    values = pd.Series([2**60, 2**60 + 1, 2**63 - 1, 2**63 - 2])
    assert len(set(value_hashes(values))) == 4
    assert value_hashes(pd.Series([2.0**60]))[0] == value_hashes(values)[0]
    assert len(set(value_hashes(pd.Series([2**64 - 1, 2**64 - 2], dtype="uint64")))) == 2


def test_half_of_a_surrogate_pair_is_hashed_like_any_text():
    series = pd.Series(["\ud800", "\ud801", "a"], dtype=object)
    # pandas before 3 takes any two such halves for one
    assert len(set(value_hashes(series))) == series.nunique() >= 2


def test_numbers_compared_in_single_precision_agree_with_their_rounded_selves():
    exact = pd.Series([0.1, 1 / 3])
    rounded = exact.astype("float32")
    assert (value_hashes(exact) != value_hashes(rounded)).all()
    np.testing.assert_array_equal(value_hashes(exact, single=True), value_hashes(rounded, single=True))


def test_rows_are_equal_exactly_when_all_their_values_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 4, 500), "b": rng.choice(["x", "y", None], 500), "c": rng.integers(0, 4, 500)}
    )
    hashes = row_hashes(frame)
    keys = list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))
    assert len(set(hashes)) == len(set(keys))
    assert len(set(zip(hashes, keys, strict=True))) == len(set(keys))


def test_swapping_values_between_columns_changes_a_row():
    assert row_hashes(pd.DataFrame({"a": [1], "b": [2]}))[0] != row_hashes(pd.DataFrame({"a": [2], "b": [1]}))[0]


def test_the_chance_that_rows_match_is_bounded_by_the_column_that_repeats_least():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"coin": rng.integers(0, 2, 4000), "die": rng.integers(0, 6, 4000)})
    bound = chance_of_match(frame, np.arange(4000), rng)
    assert bound == pytest.approx(1 / 6, abs=0.01)
    frame["name"] = np.arange(4000)
    assert chance_of_match(frame, np.arange(4000), rng) == pytest.approx(3 / (4000 * 3999 / 2))


def test_numbers_with_few_values_keep_a_level_each_and_missing_has_the_last():
    column = coded(pd.Series([3.0, np.nan, 1.0, np.inf, -np.inf, 3.0], name="x"))
    assert column.codes.tolist() == [1, 3, 0, 2, 0, 1]
    assert column.levels == 4
    assert column.missing.tolist() == [False, True, False, False, False, False]


def test_many_numbers_are_cut_into_bins_of_about_equal_size():
    values = pd.Series(np.random.default_rng(0).lognormal(size=6400), name="x")
    sizes = np.bincount(coded(values).codes)
    assert sizes[:64].min() >= 99
    assert sizes[:64].max() <= 101


def test_dates_and_booleans_become_numbers():
    assert numbers(pd.Series([True, None], dtype=object))[0] == 1
    assert numbers(pd.Series(pd.to_timedelta([1, None], unit="s")))[0] == 1e6
    assert numbers(pd.Series(pd.to_datetime(["1970-01-01T00:00:01", None]))).tolist()[0] == 1e6
