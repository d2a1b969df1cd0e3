"""Tables of any container become the same matrix; what would give a source away for free is left out or refused."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._tables import TableEncoder, as_frame, encodable, joined

FRAME = pd.DataFrame(
    {
        "n": [1, 2, 3, 4],
        "f": [0.5, np.nan, 2.5, 1.0],
        "b": [True, False, True, True],
        "w": ["x", "y", None, "x"],
    }
)


def encoded(frame):
    return TableEncoder().fit(frame).transform(frame)


@pytest.mark.parametrize(
    "convert",
    [
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
        lambda frame: frame.astype({"w": "category"}),
        lambda frame: frame.astype(object),
    ],
    ids=["polars", "arrow", "nullable", "arrow dtypes", "category", "object"],
)
def test_every_container_gives_the_same_matrix(convert):
    other = encoded(joined({"a": as_frame(convert(FRAME), "a"), "b": as_frame(FRAME, "b")}))
    same = encoded(joined({"a": as_frame(FRAME, "a"), "b": as_frame(FRAME, "b")}))
    np.testing.assert_array_equal(other.values, same.values)
    assert other.names == ("n", "f", "b", "w")
    assert other.categorical.tolist() == [False, False, False, True]


def test_missing_stays_missing_and_words_are_counted_by_how_common_they_are():
    values = encoded(FRAME).values
    assert np.isnan(values[1, 1])
    assert np.isnan(values[2, 3])
    assert values[:, 3][[0, 1, 3]].tolist() == [0.0, 1.0, 0.0]


@given(st.lists(st.one_of(st.none(), st.text(), st.integers(-5, 5), st.booleans()), min_size=1, max_size=30))
def test_any_column_of_objects_is_read(values):
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    assert encoded(frame).values.shape == (len(values), 1)


def test_a_word_that_was_not_there_is_a_rare_one():
    encoder = TableEncoder().fit(pd.DataFrame({"w": ["x", "x", "y"]}))
    assert encoder.transform(pd.DataFrame({"w": ["z", None, "y"]})).values[[0, 2], 0].tolist() == [2.0, 1.0]


def test_numbers_in_single_and_double_precision_are_made_alike():
    third = pd.DataFrame({"x": [1 / 3, 2 / 3]})
    both = joined({"a": third, "b": third.astype("float32")})
    assert both["x"][0] == both["x"][2]


def test_dates_are_numbers_when_they_are_wanted():
    days = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None, "2020-01-03"])})
    values = encoded(joined({"a": days, "b": days})).values[:, 0]
    assert values[2] - values[0] == 2 * 86_400e6
    assert np.isnan(values[1])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (FRAME.drop(columns="n"), "lacks 'n'"),
        (FRAME.assign(extra=1), "has 'extra'"),
        (FRAME.assign(n=["1", "2", "3", "four"]), "numbers in first, words in second"),
        (FRAME.assign(f=pd.Timestamp("2020-01-01")), "dates"),
    ],
)
def test_columns_or_types_that_differ_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        joined({"first": FRAME, "second": other})


def test_tables_that_are_none_are_refused():
    for data, message in [
        (np.zeros(3), "dimensions"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "same name"),
    ]:
        with pytest.raises(InputError, match=message):
            as_frame(data, "left")
    with pytest.raises(InputError, match="no columns"):
        joined({"a": pd.DataFrame(index=[0]), "b": pd.DataFrame(index=[0])})
    with pytest.raises(InputError, match="complex"):
        joined({"a": pd.DataFrame({"z": [1j]}), "b": pd.DataFrame({"z": [1j]})})


def left_out(**columns):
    frame = pd.DataFrame({"fine": np.random.default_rng(0).normal(size=400), **columns})
    codes = np.repeat([0, 1], 200)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kept, reasons = encodable(frame, codes, ("old", "new"), ())
    assert bool(told) == bool(reasons)
    assert list(kept.columns) == [name for name in frame.columns if name not in reasons]
    return reasons


def test_identifiers_dates_and_columns_missing_in_a_source_are_left_out():
    n = np.arange(400)
    reasons = left_out(
        row=n,
        customer_id=np.random.default_rng(0).permutation(10**6)[:400],
        token=[f"t{i}" for i in n],
        day=pd.Timestamp("2020-01-01") + pd.to_timedelta(n % 7, unit="D"),
        old_only=np.where(n < 200, 1.0, np.nan),
        nothing=np.full(400, np.nan),
    )
    assert reasons == {
        "row": "an identifier of rows",
        "customer_id": "an identifier of rows",
        "token": "an identifier of rows",
        "day": "dates or times",
        "old_only": "missing in every row of new",
        "nothing": "missing in every row",
    }


def test_amounts_and_words_that_repeat_are_no_identifiers():
    rng = np.random.default_rng(0)
    assert not left_out(
        euros=rng.permutation(10**6)[:400],  # distinct, and neither dense nor in order
        id=rng.integers(50, size=400),
        word=rng.choice(["a", "b"], size=400),
        height=rng.normal(size=400),
    )


def test_columns_that_are_forced_stay():
    frame = pd.DataFrame({"row": np.arange(400)})
    codes = np.repeat([0, 1], 200)
    assert list(encodable(frame, codes, ("a", "b"), ("row",))[0].columns) == ["row"]
    with pytest.warns(UserWarning, match="row"), pytest.raises(InputError, match="no column is left"):
        encodable(frame, codes, ("a", "b"), ())
    with pytest.raises(InputError, match="keep"):
        encodable(frame, codes, ("a", "b"), ("nope",))


def test_new_rows_are_checked_against_those_that_were_fitted():
    encoder = TableEncoder().fit(FRAME)
    np.testing.assert_array_equal(encoder.read(FRAME[["w", "b", "f", "n"]]).values, encoded(FRAME).values)
    with pytest.raises(InputError, match="lacks the columns 'n'"):
        encoder.read(FRAME.drop(columns="n"))
    with pytest.raises(InputError, match="holds words"):
        encoder.read(FRAME.assign(n="a"))


def test_hostile_names_and_words_survive(hostile_names):
    names = pd.Index(list(dict.fromkeys(hostile_names.values())), dtype=object)
    words = pd.Series(list(hostile_names.values()), dtype=object)
    frame = pd.concat([words] * len(names), axis=1).set_axis(names, axis=1)
    features = encoded(joined({"a": as_frame(frame, "a"), "b": as_frame(frame, "b")}))
    assert features.values.shape == (2 * len(words), len(names))
