"""Logs in every container are the same, roles mean what they say, and what cannot be audited is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.auditing.suite_audit import suite_subject
from aboveboard.auditing.suites import find_suite
from aboveboard.core import InputError
from aboveboard.core.report import renderers

SUITE = find_suite("allocation")
COLUMNS = {"demand": "asked", "granted": "got", "round": "day", "order": "came", "group": "sex", "share": "part"}


def log():
    return pd.DataFrame(
        {
            "asked": [2.0, 3.0, 0.0, 4.0, 1.0, 5.0],
            "got": [2.0, 1.0, 0.0, 0.5, 1.0, 2.5],
            "day": ["mon", "mon", "mon", "tue", "tue", "tue"],
            "came": [2, 1, 3, 6, 5, 4],
            "sex": list("FMFMFM"),
            "part": [0.6, 0.4, 0.6, 0.4, 0.6, 0.4],
            "place": ["north", "south"] * 3,
        }
    )


def read(frame, columns=COLUMNS, **settings):
    return suite_subject(SUITE, frame, columns=columns, settings=settings)


@pytest.mark.parametrize(
    "container", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_every_container_gives_the_same_subject(container):
    subject = read(container(log()))
    assert subject.log["demand"].tolist() == [3.0, 2.0, 0.0, 5.0, 1.0, 4.0]  # in order of arrival
    assert subject.log["round"].tolist() == [0, 0, 0, 1, 1, 1]
    assert subject.groups["sex"].tolist() == list("MFFMFM")
    assert subject.shares == {"sex": {"F": 0.6, "M": 0.4}}
    assert subject.data_sha256 == read(log()).data_sha256
    assert (len(subject), subject.summary) == (5, "the allocation of a stock to 5 requests in 2 rounds")
    assert dict(subject.facts())["Rows without a request"] == 1


@pytest.mark.parametrize("dtype", ["category", "object", "string"])
def test_other_types_of_columns_give_the_same_subject(dtype):
    other = log().astype({"day": dtype, "sex": dtype})
    other["asked"] = other["asked"].astype("Float64")
    assert read(other).data_sha256 == read(log()).data_sha256


def test_rows_without_a_group_need_no_share():
    frame = log().assign(sex=[None, *"MFMFM"], part=[None, 0.4, 0.6, 0.4, 0.6, 0.4])
    assert read(frame).shares == {"sex": {"F": 0.6, "M": 0.4}}


def test_a_stock_is_a_setting_or_a_column():
    assert read(log(), stock=4.0).supply == 4.0
    by_row = read(log().assign(b=[4.0] * 3 + [6.0] * 3), {**COLUMNS, "stock": "b"})
    assert by_row.supply.tolist() == [4.0] * 3 + [6.0] * 3
    assert read(log()).supply is None
    assert any("No stock" in note for note in read(log()).notes)
    assert not any("No stock" in note for note in read(log(), stock=4.0).notes)


def test_sites_have_stocks_of_their_own_and_are_reported():
    subject = read(log(), {"demand": "asked", "granted": "got", "round": "day", "site": "place"})
    assert subject.rounds == 4
    assert subject.groups["place"].tolist() == ["north", "south"] * 3


def test_slots_keep_their_order():
    numbers = read(log().assign(hour=[10, 9, 11, 9, 10, 11]), {**COLUMNS, "slot": "hour"})
    assert numbers.log["slot"].tolist() == [9, 10, 11, 11, 10, 9]
    texts = read(log().assign(hour=list("abcabc")), {**COLUMNS, "slot": "hour"})
    assert texts.log["slot"].tolist() == ["b", "a", "c", "c", "b", "a"]


def test_the_fingerprint_follows_what_is_judged():
    before = read(log()).data_sha256
    assert read(log().assign(got=0.0)).data_sha256 != before
    assert read(log().assign(sex="F", part=0.6)).data_sha256 != before
    assert read(log(), stock=3.0).data_sha256 != before


@pytest.mark.parametrize(
    ("change", "columns", "settings", "message"),
    [
        ({}, {"granted": "got"}, {}, "no column was named as demand"),
        ({}, {"demand": "asked"}, {}, "no column was named as granted"),
        ({"asked": -1.0}, COLUMNS, {}, "the demand is missing, infinite or negative in 6 rows"),
        ({"got": [None, *[0.0] * 5]}, COLUMNS, {}, "the granted is missing"),
        ({"asked": "much"}, COLUMNS, {}, "no number"),
        ({"asked": 0.0, "got": 0.0}, COLUMNS, {}, "nothing is asked for"),
        ({"asked": 0.0}, COLUMNS, {}, "nothing was asked for"),
        ({"day": None}, COLUMNS, {}, "round is missing"),
        ({"came": None}, COLUMNS, {}, "order is missing"),
        ({"came": "early"}, COLUMNS, {}, "holds text"),
        ({"part": [0.6, 0.4, 0.5, 0.4, 0.6, 0.4]}, COLUMNS, {}, "no share, or several"),
        ({"part": [0.6, 0.6] * 3}, COLUMNS, {}, "sum to 1.2"),
        ({"part": 0.0}, COLUMNS, {}, "no share"),
        ({}, {**COLUMNS, "share": ["part", "came"], "order": "asked"}, {}, "role|share"),
        ({}, {key: name for key, name in COLUMNS.items() if key != "group"}, {}, "1 columns were named as share"),
        ({"b": 0.0}, {**COLUMNS, "stock": "b"}, {}, "stock is 0"),
        ({"b": 1.0}, {**COLUMNS, "stock": "b"}, {"stock": 2.0}, "as a column and as a setting"),
        ({}, COLUMNS, {"stock": -2.0}, "positive"),
        ({}, COLUMNS, {"slots": 2.5}, "whole number"),
        ({}, COLUMNS, {"slots": 0.0}, "whole number"),
        ({}, {**COLUMNS, "demand": "askd"}, {}, "asked"),
    ],
)
def test_what_cannot_be_audited_is_refused(change, columns, settings, message):
    with pytest.raises(InputError, match=message):
        read(log().assign(**change), columns, **settings)


def test_an_identifier_is_no_group():
    many = pd.DataFrame({"asked": 1.0, "got": 1.0, "who": [f"p{i}" for i in range(60)]})
    with pytest.raises(InputError, match="Is it an identifier"):
        read(many, {"demand": "asked", "granted": "got", "group": "who"})


def test_the_example_is_simulated_and_says_so():
    subject = suite_subject(SUITE, None, columns={}, settings={})
    assert subject.data == "simulated"
    assert len(subject) == 1994
    granted = np.bincount(subject.log["round"], subject.log["granted"])
    assert (granted <= subject.supply * (1 + 1e-4)).all()
    assert any("simulated" in note for note in subject.notes)


def test_nasty_names_reach_every_output_as_text(hostile_name):
    column = "sex" if "\ud800" in hostile_name else hostile_name  # what is no valid text names no column
    frame = pd.DataFrame({"asked": 1.0, "got": [1.0] * 300 + [0.0] * 300})
    frame[column] = pd.Series([hostile_name, "x", "x"] * 200, dtype=object)
    frame["slot of it"] = pd.Series([hostile_name] * 300 + ["late"] * 300, dtype=object)
    frame["part"] = [0.3, 0.7, 0.7] * 200
    report = aboveboard.audit(
        None, frame, suite="allocation", settings={"stock": 600.0}, effort="quick",
        columns={"demand": "asked", "granted": "got", "group": column, "share": "part", "slot": "slot of it"},
    )  # fmt: skip
    assert report.worst == "fail"
    for output in (report.to_html(), render_text(report), *(render(report) for render in renderers.values())):
        assert output
    assert "<script>alert" not in report.to_html()
