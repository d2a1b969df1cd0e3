"""A log is read by roles or by the names of its columns, and what is no log is refused."""

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.auditing.suite_audit import suite_subject
from aboveboard.auditing.suites import find_suite
from aboveboard.core import InputError
from aboveboard.core.report import renderers

SUITE = find_suite("forecasts")


def log(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "forecast": rng.random(n).round(3),
            "outcome": rng.integers(0, 2, n),
            "version": np.where(np.arange(n) < n // 2, "v1", "v2"),
            "time": pd.date_range("2026-01-01", periods=n, freq="D"),
            "arm": rng.choice(["model", "random"], n),
            "age": rng.normal(40, 10, n),
            "school": rng.choice(["north", "south"], n),
        }
    )


def read(frame, columns=None, **settings):
    return suite_subject(SUITE, frame, columns=columns or {}, settings=settings)


def test_columns_that_are_called_like_roles_have_them():
    subject = read(log(), explored="random")
    assert dict(subject.columns) == {role: role for role in ("forecast", "outcome", "version", "time", "arm")}
    assert set(subject.contexts) == {"age", "school"}
    assert len(set(subject.contexts["age"])) == 4  # quartiles
    assert subject.explored == "random"
    assert subject.summary == "60 forecasts and their outcomes"
    assert any("taken as what they are called" in note for note in subject.notes)


def test_other_names_are_named():
    frame = log().rename(columns={"forecast": "risk", "outcome": "dropped out"})
    subject = read(frame, {"forecast": "risk", "outcome": "dropped out", "context": ["school"]})
    assert list(subject.contexts) == ["school"]
    assert subject.forecast.tolist() == log()["forecast"].tolist()


@pytest.mark.parametrize(
    "outcome",
    [
        [1, 0, 1, 0],
        [True, False, True, False],
        ["yes", "no", "Yes", "NO"],
        pd.array([1, 0, 1, 0], dtype="Int64"),
        pd.array([True, False, True, False], dtype="boolean"),
        pd.Categorical([1.0, 0.0, 1.0, 0.0]),
    ],
)
def test_outcomes_are_numbers_truths_or_words(outcome):
    subject = read(pd.DataFrame({"forecast": [0.1, 0.2, 0.3, 0.4], "outcome": outcome}))
    assert subject.outcome.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_polars_tables_are_read():
    polars = pytest.importorskip("polars")
    frame = log()[["forecast", "outcome", "school"]]
    assert read(polars.from_pandas(frame)).data_sha256 == read(frame).data_sha256


def test_forecasts_without_an_outcome_are_left_out():
    frame = log().astype({"outcome": "float64"})
    frame.loc[:9, "outcome"] = np.nan
    subject = read(frame)
    assert len(subject) == len(subject.contexts["school"]) == len(subject.time) == 50
    assert any("10 forecasts have no outcome yet" in note for note in subject.notes)


def test_columns_that_only_identify_are_no_contexts():
    subject = read(log().assign(id=range(60), name=[f"pupil {i}" for i in range(60)]))
    assert set(subject.contexts) == {"age", "school"}
    assert sum("too much that is different" in note for note in subject.notes) == 2


def test_the_fingerprint_follows_the_log():
    first = read(log()).data_sha256
    assert read(log().convert_dtypes()).data_sha256 == first
    assert read(log().assign(outcome=1)).data_sha256 != first


def test_the_example_is_simulated_and_shows_every_part():
    report = aboveboard.audit(None, None, suite="forecasts", effort="quick")
    assert {finding.data for finding in report.findings} == {"simulated"}
    found = {finding.id.removeprefix("performativity/"): finding for finding in report.findings}
    assert set(found) == {
        "level", "forecast", "context/absences", "context/school", "drift", "reaction", "usefulness",
    }  # fmt: skip
    assert found["forecast"].severity == "fail"
    assert "self-negating" in found["reaction"].statement


@pytest.mark.parametrize(
    ("frame", "columns", "settings", "message"),
    [
        (log().drop(columns="outcome"), {}, {}, "no column was named as outcome"),
        (log().drop(columns="forecast"), {}, {}, "no column was named as forecast"),
        (log().assign(forecast=50.0), {}, {}, "forecast 50 lies outside .*percent"),
        (log().assign(forecast=-0.1), {}, {}, "outside"),
        (log().assign(forecast=np.nan), {}, {}, "forecast is missing in 60 rows"),
        (log().assign(forecast="high"), {}, {}, "no forecast"),
        (log().assign(outcome="maybe"), {}, {}, "no outcome.*yes and no"),
        (log().assign(outcome=2), {}, {}, "outcome 2 lies outside"),
        (log().assign(outcome=None), {}, {}, "no forecast has an outcome"),
        (log(), {}, {"explored": "control"}, "explored is 'control', and nobody"),
        (log().drop(columns="arm"), {}, {"explored": "random"}, "no column was named as arm"),
        (log(), {"context": "home"}, {}, "home"),
    ],
)
def test_what_is_no_log_is_refused(frame, columns, settings, message):
    with pytest.raises(InputError, match=message):
        read(frame, columns, **settings)


def test_hostile_names_go_through_every_output(hostile_names):
    names = [name for name in dict.fromkeys(hostile_names.values()) if name]
    n = 40 * len(names)
    rng = np.random.default_rng(0)
    kinds = pd.Series([names[i % len(names)] for i in range(n)], dtype=object)
    few = pd.Series([names[i % 15] for i in range(n)], dtype=object)
    frame = pd.DataFrame({"forecast": rng.random(n), "outcome": 1, "version": few, "arm": few, "<b>kind</b>": kinds})
    report = aboveboard.audit(
        None, frame, suite="forecasts", columns={"context": "<b>kind</b>"}, settings={"explored": names[0]},
        effort="quick", min_cell=1,
    )  # fmt: skip
    assert "<script>alert" not in report.to_html()
    assert aboveboard.Report.from_json(report.to_json()).to_dict()["findings"]
    for render in (render_text, *(renderers[name] for name in ("markdown", "github", "junit", "sarif", "notebook"))):
        assert "\x1b" not in render(report)
    assert "<script>alert" not in renderers["notebook"](report)
