import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.auditing.frames import (
    MISSING,
    column_kind,
    group_codes,
    missing_column,
    numbers,
    plain_label,
    to_frame,
    to_series,
)
from aboveboard.core.errors import InputError


def arrow_series(values, kind):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, kind)])), name="s")


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: pd.DataFrame(columns),
        lambda columns: columns,
        lambda columns: pl.DataFrame(columns),
        lambda columns: pa.table(columns),
        lambda columns: np.column_stack(list(columns.values())),
    ],
    ids=["pandas", "mapping", "polars", "pyarrow", "numpy"],
)
def test_every_container_becomes_the_same_table(make):
    frame = to_frame(make({"x0": [1.0, 2.0], "x1": [3.0, 4.0]}), "X")
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"x0": [1.0, 2.0], "x1": [3.0, 4.0]}))


def test_column_names_become_text():
    assert list(to_frame(pd.DataFrame({1: [0], ("a", 2): [0]}), "X").columns) == ["1", "('a', 2)"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column called 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "more than one column called '1'"),
        (pd.DataFrame(index=[0, 1]), "no columns"),
        (np.zeros(3), "1 dimension"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        ([1, 2], "is a list"),
        (pl.LazyFrame({"a": [1]}), "LazyFrame"),
        ({"a": [1], "b": [1, 2]}, "do not make a table"),
        (pd.DataFrame({"a": [[1], [2]]}), "the column 'a' of X holds values of the type list"),
        (pd.DataFrame({"a": [{}, None]}), "dict"),
        (pa.table({"a": [[1], [2]]}).to_pandas(types_mapper=pd.ArrowDtype), "list<"),
        (pd.DataFrame({"a": [1j, 2j]}), "complex"),
        (pd.DataFrame([[1]], columns=pd.Index(["a\ud800"], dtype=object)), "no valid text"),
    ],
)
def test_what_is_no_table_is_refused(data, message):
    with pytest.raises(InputError, match=message):
        to_frame(data, "X")


def test_the_table_that_was_given_is_left_alone():
    given = pd.DataFrame({1: [1, 2]})
    to_frame(given, "X")
    assert list(given.columns) == [1]


# --- one value per row ------------------------------------------------------------------------------------------------

INDEX = pd.Index([10, 11, 12])


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3], (1, 2, 3), range(1, 4), np.array([1, 2, 3]), np.array([[1], [2], [3]]), pl.Series([1, 2, 3]),
        pa.array([1, 2, 3]), pa.chunked_array([[1, 2], [3]]), pd.Index([1, 2, 3]), pd.Categorical([1, 2, 3]),
        pd.Series([1, 2, 3], index=INDEX), pd.DataFrame({"a": [1, 2, 3]}, index=INDEX), pl.DataFrame({"a": [1, 2, 3]}),
        pa.table({"a": [1, 2, 3]}),
    ],
    ids=lambda values: type(values).__name__,
)  # fmt: skip
def test_every_container_of_values_is_lined_up_with_the_rows(values):
    series = to_series(values, "y", index=INDEX)
    assert series.index.equals(INDEX)
    assert series.astype(int).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2], "2 values and X has 3 rows"),
        (pd.Series([1, 2, 3]), "the index of y is not that of X"),
        (pd.Series([1, 2, 3], index=[12, 11, 10]), "the index of y is not that of X"),
        (np.zeros((3, 2)), "2 dimensions"),
        (np.float64(1.0), "float64"),
        ({1, 2, 3}, "set"),
        ("abc", "str"),
        (pd.DataFrame({"a": [1] * 3, "b": [1] * 3}), "2 columns"),
        ([[1], [2, 3], []], "type list"),
    ],
)
def test_values_that_do_not_line_up_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        to_series(values, "y", index=INDEX)


def test_a_reversed_range_index_is_not_taken_for_the_same_rows():
    table = pd.DataFrame({"a": [1, 2, 3]})[::-1]
    with pytest.raises(InputError, match="index"):
        to_series(pd.Series([1, 2, 3]), "y", index=table.index)


# --- what a column holds ----------------------------------------------------------------------------------------------

DAY = dt.date(2020, 1, 2)
MOMENT = dt.datetime(2020, 1, 2)


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pd.Series([1, 2]), "number"),
        (pd.Series([1, None], dtype="Int64"), "number"),
        (pd.Series([1.5, 2], dtype=object), "number"),
        (pd.Series([Decimal("1.5"), None]), "number"),
        (arrow_series([Decimal("1.5"), None], pa.decimal128(5, 2)), "number"),
        (arrow_series([1, None], pa.int8()), "number"),
        (pd.Series([None, None], dtype=object), "number"),
        (pd.Series([np.nan, np.nan]), "number"),
        (arrow_series([None, None], pa.string()), "number"),
        (pd.Series([True, False]), "boolean"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series([True, None], dtype=object), "boolean"),
        (arrow_series([True, None], pa.bool_()), "boolean"),
        (pd.Series(["a", None]), "text"),
        (pd.Series(["a", None], dtype="string"), "text"),
        (pd.Series(["1", "2"], dtype=object), "text"),
        (pd.Series([1, "a"], dtype=object), "text"),
        (arrow_series(["a", None], pa.string()), "text"),
        (pd.Series(["a", "b"], dtype="category"), "category"),
        (pd.Series([1, 2], dtype="category"), "category"),
        (arrow_series(pa.array(["a", "b"]).dictionary_encode(), None), "category"),
        (pd.Series([MOMENT]), "datetime"),
        (pd.Series([MOMENT]).dt.tz_localize("UTC"), "datetime"),
        (pd.Series([DAY, None], dtype=object), "datetime"),
        (arrow_series([DAY, None], pa.date32()), "datetime"),
        (arrow_series([MOMENT], pa.timestamp("ms")), "datetime"),
        (pd.Series([pd.Timedelta(1, "D")]), "datetime"),
        (pd.Series(pd.period_range("2020-01", periods=2, freq="M")), "datetime"),
    ],
)
def test_the_kind_of_a_column_does_not_depend_on_its_container(series, kind):
    assert column_kind(series) == kind


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1, "1"), (1.0, "1"), (np.int8(1), "1"), (np.float32(1), "1"), (Decimal("1.00"), "1"), (0.5, "0.5"),
        (-0.0, "0"), (1e300, "1e+300"), (float("inf"), "inf"), (True, "True"), (np.bool_(True), "True"), ("1.0", "1.0"),
        (pd.Timestamp("2020-01-02"), "2020-01-02"), (np.datetime64("2020-01-02", "ns"), "2020-01-02"),
        (DAY, "2020-01-02"), (pd.Timestamp("2020-01-02 03:04"), "2020-01-02 03:04:00"), (Decimal("NaN"), "NaN"),
    ],
)  # fmt: skip
def test_a_value_reads_alike_whatever_its_type(value, label):
    assert plain_label(value) == label


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1.5, None, 3.0]),
        pd.Series([1.5, None, 3.0], dtype="Float64"),
        pd.Series([Decimal("1.5"), None, Decimal("3")]),
        arrow_series([Decimal("1.5"), None, Decimal("3")], pa.decimal128(5, 2)),
        arrow_series([1.5, float("nan"), 3.0], pa.float64()),
        pd.Series(["1.5", None, "3"], dtype=object),
        pd.Series([1.5, None, 3.0], dtype="category"),
    ],
)
def test_numbers_come_out_of_every_container(series):
    np.testing.assert_array_equal(numbers(series), [1.5, np.nan, 3.0])


def test_dates_and_words_are_no_numbers():
    with pytest.raises(TypeError, match="dates"):
        numbers(pd.Series([MOMENT]))
    with pytest.raises(ValueError, match="a"):
        numbers(pd.Series(["a", "1"]))


# --- groups -----------------------------------------------------------------------------------------------------------


def groups(series, **options):
    coded, _ = group_codes(series.rename("g"), **options)
    return coded.astype(str).tolist()


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", np.nan, "a", "b"], dtype=object),
        pd.Series(["b", pd.NA, "a", "b"], dtype=object),
        pd.Series(["b", pd.NA, "a", "b"], dtype="string"),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pl.Series(["b", None, "a", "b"]).to_pandas(),
        arrow_series(["b", None, "a", "b"], pa.string()),
        arrow_series(pa.array(["b", None, "a", "b"]).dictionary_encode(), None),
    ],
)
def test_missing_values_of_every_kind_are_one_group_of_their_own(series):
    coded, note = group_codes(series.rename("g"))
    assert coded.astype(str).tolist() == ["b", MISSING, "a", "b"]
    assert list(coded.cat.categories) == ["a", "b", MISSING]
    assert note == ""


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([2.0, np.nan, 1.0]),
        pd.Series([2, None, 1], dtype="Int64"),
        pd.Series([2, None, 1], dtype="Int8"),
        arrow_series([2, None, 1], pa.int32()),
        arrow_series([2.0, float("nan"), 1.0], pa.float64()),
        pd.Series([2, None, 1], dtype=object),
        pd.Series([2, None, 1], dtype="category"),
    ],
)
def test_whole_numbers_are_named_alike_in_every_container(series):
    assert groups(series) == ["2", MISSING, "1"]


def test_a_nullable_float_that_holds_nan_beside_missing_has_one_missing_group():
    values = pd.Series(pd.arrays.FloatingArray(np.array([1.0, np.nan, 2.0]), np.array([False, False, True])))
    assert groups(values) == ["1", MISSING, MISSING]


def test_groups_are_in_natural_order():
    coded, _ = group_codes(pd.Series(["10", "9", "a10", "a9", "100"], name="g"))
    assert list(coded.cat.categories) == ["9", "10", "100", "a9", "a10"]


def test_a_group_called_missing_is_not_confused_with_missing_values():
    assert groups(pd.Series([MISSING, None], dtype=object)) == [MISSING, MISSING + "*"]


def test_cut_points_make_half_open_bands():
    ages = pd.Series([24.9, 25, 39, 40, 60, None])
    assert groups(ages, edges=[25, 40]) == [
        "under 25", "25 to under 40", "25 to under 40", "40 and over", "40 and over", MISSING,
    ]  # fmt: skip


def test_a_column_of_many_numbers_is_cut_at_its_quartiles_and_says_so():
    coded, note = group_codes(pd.Series(range(101), name="age"))
    assert list(coded.cat.categories) == ["under 25", "25 to under 50", "50 to under 75", "75 and over"]
    assert coded.value_counts(sort=False).tolist() == [25, 25, 25, 26]
    assert "101 distinct numbers" in note
    assert "25, 50, 75" in note


def test_quartiles_pay_no_attention_to_infinities():
    _, note = group_codes(pd.Series([*map(float, range(101)), np.inf, -np.inf], name="age"))
    assert "25, 50, 75" in note


@pytest.mark.parametrize(
    ("series", "edges", "message"),
    [
        (pd.Series(["a", "b"]), [1], "holds text"),
        (pd.Series([MOMENT]), None, "holds dates"),
        (pd.Series([1, 2]), [2, 1], "ascending"),
        (pd.Series([1, 2]), [1, 1], "ascending"),
        (pd.Series([1, 2]), [float("inf")], "finite"),
        (pd.Series([f"g{i}" for i in range(101)]), None, "101 groups"),
    ],
)
def test_a_column_that_makes_no_groups_is_refused(series, edges, message):
    with pytest.raises(InputError, match=message):
        group_codes(series.rename("g"), edges=edges)


def test_no_cut_points_are_no_cut():
    assert groups(pd.Series([1, 2]), edges=[]) == ["1", "2"]


@given(st.lists(st.floats(0, 100) | st.none(), min_size=1, max_size=30), st.sets(st.integers(1, 99), min_size=1))
def test_bands_agree_with_a_count_of_the_edges_at_or_below(values, edges):
    edges = sorted(edges)
    coded, _ = group_codes(pd.Series(values, dtype="float64", name="g"), edges=edges)
    names = [f"under {edges[0]}", *(f"{a} to under {b}" for a, b in itertools.pairwise(edges)), f"{edges[-1]} and over"]
    expected = [MISSING if v is None else names[sum(edge <= v for edge in edges)] for v in values]
    assert coded.astype(str).tolist() == expected


def test_any_name_can_be_a_group(hostile_name):
    coded, _ = group_codes(pd.Series([hostile_name, "other"], dtype=object, name=hostile_name))
    assert set(coded.astype(object)) == {hostile_name, "other"}


# --- a name that is not there -----------------------------------------------------------------------------------------


def test_a_missing_column_names_the_nearest_and_shows_some():
    text = str(missing_column("incme", ["age", "income"], "target"))
    assert "no column 'incme' for the target" in text
    assert "Did you mean 'income'?" in text
    assert "Did you mean 'AGE'?" in str(missing_column("age", ["AGE", "b"], "target"))
    assert "and 3 more" in str(missing_column("zzz", [f"c{i}" for i in range(15)], "target"))
