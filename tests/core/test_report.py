import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding, Interval
from aboveboard.core.report import SCHEMA_VERSION, Report

FAIL = Finding(id="c/a", check="c", area="x", statement="Bad.", severity="fail", value=0.5,
               interval=Interval(0.4, 0.6), limit=0.1, n=100, group="sex=F", remedies=("M", "N"))  # fmt: skip
OK = Finding(id="c/b", check="c", area="x", statement="Good.")
SKIPPED = Finding(id="d", check="d", area="x", statement="Did not run.", status="skipped", reason="No train.")
REPORT = Report(subject={"task": "binary"}, findings=(FAIL, OK), not_run=(SKIPPED,), notes=("A note.",), seed=3)


def test_it_round_trips_through_json_text_and_a_file(tmp_path):
    assert Report.from_json(REPORT.to_json()) == REPORT
    REPORT.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json") == REPORT
    assert Report.from_json(str(tmp_path / "report.json")) == REPORT


def test_the_worst_finding_is_the_worst_that_nobody_accepted():
    assert REPORT.worst == "fail"
    accepted = {"id": "c/a", "reason": "r", "expires": None, "in_force": True}
    assert replace(REPORT, accepted=(accepted,)).worst == "ok"
    assert replace(REPORT, accepted=(accepted | {"in_force": False},)).worst == "fail"
    assert replace(REPORT, findings=()).worst == "ok"


def test_the_data_frame_has_one_row_per_finding_with_typed_columns():
    frame = REPORT.to_frame()
    assert frame["id"].tolist() == ["c/a", "c/b", "d"]
    assert frame.loc[0, ["value", "low", "high", "limit", "n"]].tolist() == [0.5, 0.4, 0.6, 0.1, 100]
    assert frame["remedies"].tolist() == ["M, N", "", ""]
    assert frame["value"].dtype == "float64"
    assert frame["n"].dtype == "Int64"
    empty = replace(REPORT, findings=(), not_run=()).to_frame()
    assert isinstance(empty, pd.DataFrame)
    assert list(empty.columns) == list(frame.columns)


def test_its_name_tells_the_counts():
    assert repr(REPORT) == "<Report: 1 fail, 0 warn, 0 note, 1 ok, 0 inconclusive, 1 not run>"


def test_another_schema_version_is_refused_by_number():
    data = json.loads(REPORT.to_json()) | {"schema_version": SCHEMA_VERSION + 1}
    with pytest.raises(InputError, match=f"schema version {SCHEMA_VERSION + 1}"):
        Report.from_json(json.dumps(data))


def test_names_with_lone_surrogates_are_written_as_json_escapes(tmp_path):
    report = replace(REPORT, notes=("a\ud800b",))
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").notes == ("a\ud800b",)


@pytest.mark.parametrize(
    "text",
    [
        "{", "{}", '{"a": NaN}', '{"a": -Infinity}', '{"schema_version": 1}', '{"a": ' * 100_000,
        '{"schema_version": 1e999}',
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused_as_bad_input(text):
    with pytest.raises(InputError):
        Report.from_json(text)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"{", b"null"])
def test_a_file_that_is_no_report_is_refused_as_bad_input(tmp_path, content):
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(InputError, match="not an aboveboard report"):
        Report.from_json(tmp_path / "report.json")


def test_a_file_that_is_not_there_is_refused_as_bad_input(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Report.from_json(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read"):
        Report.from_json(tmp_path)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_a_report_with_anything_in_any_place_is_read_or_refused(data):
    document = json.loads(REPORT.to_json())
    place = document
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(anything)
        break
    try:
        report = Report.from_json(json.dumps(document))
    except InputError:
        return
    assert report.worst in ("ok", "note", "warn", "fail")
    assert Report.from_json(report.to_json()).to_json() == report.to_json()
