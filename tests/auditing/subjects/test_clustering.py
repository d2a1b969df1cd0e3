"""Clusters and groups in every container are the same, and what cannot be audited is refused."""

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

SUITE = find_suite("clustering")
COLUMNS = {"cluster": "segment", "sensitive": ["sex", "race"]}


def people():
    return pd.DataFrame(
        {"segment": [0, 0, 1, 1, 1, 0], "sex": list("FMFMFM"), "race": ["a", "b", "a", None, "b", "a"], "age": 30}
    )


def read(frame, columns=COLUMNS):
    return suite_subject(SUITE, frame, columns=columns, settings={})


@pytest.mark.parametrize(
    "container", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_every_container_gives_the_same_subject(container):
    subject = read(container(people()))
    assert list(subject.cluster) == ["0", "0", "1", "1", "1", "0"]
    assert list(subject.sensitive.columns) == ["sex", "race"]
    assert subject.data_sha256 == read(people()).data_sha256
    assert subject.summary == "2 clusters of 6 people"
    assert dict(subject.facts()) == {"Clusters": 2, "Groups of sex": 2, "Groups of race": 3}


def test_missing_groups_are_a_group_of_their_own_and_a_note_says_so():
    subject = read(people())
    assert list(subject.sensitive["race"])[3] == "(missing)"
    assert any("race" in note for note in subject.notes)


def test_the_fingerprint_follows_clusters_and_groups():
    other = people()
    other.loc[0, "segment"] = 1
    assert read(other).data_sha256 != read(people()).data_sha256


@pytest.mark.parametrize(
    ("change", "columns", "message"),
    [
        ({}, {"sensitive": "sex"}, "no column was named as cluster"),
        ({}, {"cluster": "segment"}, "no column was named as sensitive"),
        ({"segment": [0, 0, 1, None, 1, 0]}, COLUMNS, "the cluster is missing in 1 rows"),
        ({}, {"cluster": "segmnt", "sensitive": "sex"}, "segment"),
    ],
)
def test_tables_that_cannot_be_audited_are_refused(change, columns, message):
    with pytest.raises(InputError, match=message):
        read(people().assign(**change), columns)


def test_identifiers_and_raw_numbers_are_refused():
    many = pd.DataFrame({"segment": np.arange(1500), "sex": "F", "age": np.arange(1500) % 70})
    with pytest.raises(InputError, match="1,500 values"):
        read(many, {"cluster": "segment", "sensitive": "sex"})
    with pytest.raises(InputError, match=r"has 70 values.*bands"):
        read(many.assign(segment=0), {"cluster": "segment", "sensitive": "age"})


def test_the_example_is_real_data():
    subject = suite_subject(SUITE, None, columns={}, settings={})
    assert subject.data == "real"
    assert len(subject) == 16_281  # the published size of the test set
    assert subject.cluster.nunique() == 6


def test_nasty_names_reach_every_output_as_text(hostile_name):
    column = "sex" if "\ud800" in hostile_name else hostile_name  # what is no valid text names no column
    values = np.array([[hostile_name, "x"], ["other", hostile_name]] * 30, dtype=object)
    frame = pd.DataFrame(values, columns=pd.Index(["segment", column], dtype=object), dtype=object)
    report = aboveboard.audit(
        None, frame, suite="clustering", columns={"cluster": "segment", "sensitive": column}, effort="quick"
    )
    assert report.worst == "fail"
    for output in (report.to_html(), render_text(report), *(render(report) for render in renderers.values())):
        assert output
    assert "<script>alert" not in report.to_html()
