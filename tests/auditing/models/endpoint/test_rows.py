import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.auditing.models.endpoint.rows import request_body, row_texts
from aboveboard.core.errors import InputError


def sent(series):
    """What a server reads from a column."""
    texts = row_texts(pd.DataFrame({"x": series}), "rows")
    return [row["x"] for row in json.loads(request_body(texts, ["x"], "rows"), parse_constant=pytest.fail)["rows"]]


# --- what each type becomes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1, -2], dtype="int8"), [1, -2]),
        (pd.Series([2**53 + 1, -(2**63)]), [2**53 + 1, -(2**63)]),
        (pd.Series([2**64 - 1], dtype="uint64"), [2**64 - 1]),
        (pd.Series([2**53 + 1, None], dtype="Int64"), [2**53 + 1, None]),
        (pd.Series([2**53 + 1, None], dtype="int64[pyarrow]"), [2**53 + 1, None]),
        (pd.Series([10**30, None], dtype=object), [10**30, None]),
        (pd.Series([0.1, np.nan, -0.0, 5e-324]), [0.1, None, -0.0, 5e-324]),
        (pd.Series([0.1], dtype="float32"), [0.10000000149011612]),
        (pd.Series([0.5, None], dtype="Float64"), [0.5, None]),
        (pd.Series([0.5, None], dtype="double[pyarrow]"), [0.5, None]),
        (pd.Series([Decimal("0.10"), Decimal("NaN"), Decimal("1E+3")], dtype=object), [0.1, None, 1000]),
        (pd.Series([True, False]), [True, False]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series([True, None], dtype="bool[pyarrow]"), [True, None]),
        (pd.Series([True, None, np.bool_(False), np.int64(3)], dtype=object), [True, None, False, 3]),
        (pd.Series(["a", None, "é\u2028\x00"], dtype=object), ["a", None, "é\u2028\x00"]),
        (pd.Series(["a", None], dtype="string"), ["a", None]),
        (pd.Series(["b", None, "b"], dtype="category"), ["b", None, "b"]),
        (pd.Series([3, None, 1], dtype=pd.CategoricalDtype([1, 3])), [3, None, 1]),
        (pd.cut(pd.Series([1.0, 9.0]), [0, 5]), ["(0, 5]", None]),
        (pd.Series(pd.to_datetime(["2026-01-31", None])), ["2026-01-31T00:00:00", None]),
        (pd.Series(pd.to_datetime(["2026-01-31 12:30:00.000000001"])), ["2026-01-31T12:30:00.000000001"]),
        (pd.Series(pd.to_datetime(["2026-01-31 12:30:00+02:00"])), ["2026-01-31T12:30:00+02:00"]),
        (pd.Series([datetime.date(2026, 1, 31), datetime.time(12, 30)], dtype=object), ["2026-01-31", "12:30:00"]),
        (pd.Series([np.datetime64("2026-01-31"), np.datetime64("NaT")], dtype=object), ["2026-01-31T00:00:00", None]),
        (pd.Series(pd.to_timedelta(["1 days 02:00:00", None])), ["P1DT2H0M0S", None]),
        (pd.Series(pd.period_range("2026-01", periods=1, freq="M")), ["2026-01"]),
        (pd.Series([None, None], dtype=object), [None, None]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value.dtype),
)
def test_a_value_arrives_as_the_page_on_endpoints_says(column, expected):
    got = sent(column)
    assert got == expected
    assert list(map(type, got)) == list(map(type, expected))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1.0, np.inf]),
        pd.Series([1.0, -np.inf], dtype="Float64"),
        pd.Series([1.0, np.inf], dtype=object),
        pd.Series([Decimal("Infinity")], dtype=object),
    ],
)
def test_an_infinite_number_is_refused_by_the_name_of_its_column(column):
    with pytest.raises(InputError, match=r"column 'x' has 1 infinite value.*Expected finite numbers"):
        sent(column)


def test_a_value_that_json_has_no_form_for_is_refused():
    with pytest.raises(InputError, match=r"'x' holds values of the type bytes.*--drop"):
        sent(pd.Series([b"a"], dtype=object))


# --- the three formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("rows", {"rows": [{"age": 39, "job": "a"}, {"age": 40, "job": None}]}),
        ("mlflow", {"dataframe_split": {"columns": ["age", "job"], "data": [[39, "a"], [40, None]]}}),
        ("kserve", {"instances": [[39, "a"], [40, None]]}),
    ],
)
def test_each_format_is_that_of_its_servers(form, expected):
    frame = pd.DataFrame({"age": [39, 40], "job": ["a", None]})
    assert json.loads(request_body(row_texts(frame, form), list(frame.columns), form)) == expected


def test_a_column_name_that_is_no_text_is_sent_as_text():
    assert row_texts(pd.DataFrame({7: [1]}), "rows") == ['{"7":1}']


def test_a_nasty_name_arrives_as_it_is(hostile_name):
    columns = pd.Index([hostile_name], dtype=object)
    frame = pd.DataFrame([[hostile_name]], columns=columns, dtype=object)
    for form in ("rows", "mlflow"):
        body = request_body(row_texts(frame, form), list(frame.columns), form)
        assert body.isascii()
        read = json.loads(body)
        assert read == (
            {"rows": [{hostile_name: hostile_name}]}
            if form == "rows"
            else {"dataframe_split": {"columns": [hostile_name], "data": [[hostile_name]]}}
        )


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), min_size=1, max_size=6)
    )
)
def test_rows_come_back_from_json_as_they_were(rows):
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})
    body = request_body(row_texts(frame, "rows"), list(frame.columns), "rows")
    read = json.loads(body, parse_constant=pytest.fail)["rows"]
    assert read == rows
    for got, given_row in zip(read, rows, strict=True):
        assert all(type(got[name]) is type(value) for name, value in given_row.items())


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_a_number_comes_back_as_the_same_double_and_nan_as_null(values):
    column = pd.Series(values, dtype="float64")
    if np.isinf(column).any():
        with pytest.raises(InputError):
            sent(column)
    else:
        assert sent(column) == [None if np.isnan(v) else v for v in values]


@given(st.lists(VALUES, min_size=2, max_size=8))
def test_equal_rows_and_only_those_have_equal_texts(values):
    texts = row_texts(pd.DataFrame({"x": pd.Series(values, dtype=object)}), "rows")
    for a, first in zip(values, texts, strict=True):
        for b, second in zip(values, texts, strict=True):
            same = type(a) is type(b) and repr(a) == repr(b)
            assert (first == second) == same
