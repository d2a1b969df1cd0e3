import json

import numpy as np
import pytest

from aboveboard.core.finding import SUPPRESSED, Column, Figure, Finding, Interval, Line, Series, Table, plain

TABLE = Table("Rates", (Column("group", "text"), Column("rate", "percent"), Column("95 %", "interval")),
              (("a", 0.5, (0.4, 0.6)), ("b", SUPPRESSED, None)))  # fmt: skip
FIGURE = Figure("lines", "Curve", "x", "y", (Series("s", (0.0, 1.0), (0.1, None), (0.0, None), (0.2, None)),),
                (Line("limit", 0.5), Line("ideal", diagonal=True)), "A line.", True)  # fmt: skip


def finding(**changes):
    return Finding(**({"id": "c/m", "check": "c", "area": "a", "statement": "It is so."} | changes))


def test_a_finding_round_trips_through_json():
    full = finding(
        severity="fail", value=0.1, interval=Interval(0.0, 0.2, 0.9, "Wilson", True), limit=0.05, limit_source="us",
        group="sex=F", n=12, evidence=(TABLE, FIGURE), remedies=("M",), reason="why", data="simulated",
    )  # fmt: skip
    data = json.loads(json.dumps(full.to_dict(), allow_nan=False))
    assert Finding.from_dict(data) == full


def test_numpy_numbers_become_plain_ones():
    data = finding(value=np.float64(0.5), n=np.int64(3)).to_dict()
    assert type(data["value"]) is float
    assert type(data["n"]) is int


@pytest.mark.parametrize("status", ["inconclusive", "not_applicable", "skipped", "error"])
@pytest.mark.parametrize("severity", ["warn", "fail"])
def test_only_what_ran_can_warn_or_fail(status, severity):
    with pytest.raises(ValueError, match="cannot"):
        finding(status=status, severity=severity)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"severity": "bad"}, ValueError),
        ({"status": "bad"}, ValueError),
        ({"value": float("nan")}, ValueError),
        ({"limit": float("inf")}, ValueError),
        ({"n": 10**20}, ValueError),
        ({"n": -1}, ValueError),
        ({"n": 1.5}, ValueError),
        ({"remedies": (1,)}, TypeError),
        ({"id": ["list"]}, TypeError),
        ({"statement": None}, TypeError),
    ],
)
def test_a_malformed_finding_is_refused(changes, error):
    with pytest.raises(error):
        finding(**changes)


def test_an_interval_is_not_turned_around():
    with pytest.raises(ValueError, match="low <= high"):
        Interval(1.0, 0.0)
    with pytest.raises(ValueError, match="low <= high"):
        Interval(float("nan"), 1.0)


def test_an_interval_is_made_of_numbers():
    with pytest.raises(TypeError, match="needs numbers"):
        Interval("a", "b")


def test_a_table_has_as_many_cells_as_columns():
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table("t", (Column("a"),), ((1, 2),))


def test_a_series_has_equal_lengths():
    with pytest.raises(ValueError, match="equal lengths"):
        Series("s", (1.0, 2.0), (1.0,))


def test_numbers_that_json_lacks_become_null():
    assert plain((np.nan, float("inf"), np.float32(0.5), np.bool_(True), "x", None)) == [
        None,
        None,
        0.5,
        True,
        "x",
        None,
    ]
