"""Edge lists are read as they are meant, and what is none is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.auditing.suite_audit import suite_subject
from aboveboard.auditing.suites import find_suite
from aboveboard.core import InputError
from aboveboard.core.report import renderers

SUITE = find_suite("network")
ENDS = {"source": "who", "target": "whom"}
FULL = {**ENDS, "weight": "times", "opinion": "side", "target_opinion": "other"}


def read(frame, columns=ENDS, **settings):
    return suite_subject(SUITE, frame, columns=columns, settings=settings)


def edges():
    return pd.DataFrame(
        {
            "who": ["ann", "bob", "bob", "eve"],
            "whom": ["bob", "ann", "cem", None],
            "times": [3.0, 1.0, 0.5, np.nan],
            "side": [1, 1, 1, 0],
            "other": [1, 1, -1, None],
        }
    )


def circle(n=30):
    return pd.DataFrame({"who": range(n), "whom": [(i + 1) % n for i in range(n)], "side": [i % 2 for i in range(n)]})


def test_edges_weights_and_opinions_are_read():
    subject = read(edges(), FULL)
    assert subject.accounts == ("ann", "bob", "cem", "eve")
    assert subject.weights.toarray().tolist() == [[0, 3, 0, 0], [1, 0, 0.5, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert subject.opinion.tolist() == [1, 1, -1, 0]
    assert subject.summary == "a network of 4 accounts and 3 edges"
    assert dict(subject.facts())["Accounts that listen to nobody"] == 2


def test_the_direction_can_be_said_and_else_is_noted():
    assert read(edges(), direction="influences").weights.toarray()[1].tolist() == [1, 0, 0, 0]
    assert read(edges(), direction="mutual").weights.toarray()[2].tolist() == [0, 1, 0, 0]
    assert any("source listens" in note for note in read(edges()).notes)
    assert not any("source listens" in note for note in read(edges(), direction="listens").notes)


def test_without_opinions_the_network_alone_is_audited():
    subject = read(edges())
    assert subject.opinion is None
    report = aboveboard.audit(None, circle(), suite="network", columns=ENDS, effort="quick")
    ran = {finding.id for finding in report.findings if finding.status == "ran"}
    assert ran == {"opinions/influence", "opinions/contrast"}


def test_opinions_of_sources_are_enough_where_all_are_sources():
    subject = read(circle(), {**ENDS, "opinion": "side"})
    assert subject.opinion.sum() == 15


def test_two_words_are_two_sides():
    frame = edges().assign(side=["left", "left", "left", "right"], other=["left", "left", "right", None])
    subject = read(frame, FULL)
    assert subject.opinion.tolist() == [-1, -1, 1, 1]
    assert any("left counts as -1, right as 1" in note for note in subject.notes)


@pytest.mark.parametrize("make", [pl.from_pandas, lambda frame: frame.convert_dtypes()])
def test_every_container_gives_the_same_network(make):
    one, two = read(edges(), FULL), read(make(edges()), FULL)
    assert one.data_sha256 == two.data_sha256
    assert (one.weights != two.weights).nnz == 0


def test_the_fingerprint_follows_edges_and_opinions():
    first = read(edges(), FULL).data_sha256
    assert read(edges().assign(times=1.0), FULL).data_sha256 != first
    assert read(edges().assign(side=[1, 1, 1, 0.5]), FULL).data_sha256 != first


def test_what_is_left_out_or_added_up_is_noted():
    frame = pd.DataFrame({"who": ["a", "a", "b"], "whom": ["b", "b", "a"]})
    assert any("1 edges occur more than once" in note for note in read(frame).notes)
    frame = pd.DataFrame({"who": ["a", "a"], "whom": ["a", "b"]})
    assert any("from an account to itself" in note for note in read(frame).notes)


@pytest.mark.parametrize(
    ("make", "columns", "settings", "message"),
    [
        (edges, {"source": "who"}, {}, "no column was named as target"),
        (edges, {"target": "whom"}, {}, "no column was named as source"),
        (lambda: edges().assign(who=[None, "a", "b", "c"]), ENDS, {}, "source is missing in 1 rows"),
        (lambda: edges().assign(times=[-1.0, 1, 1, 1]), FULL, {}, "below 0"),
        (lambda: edges().assign(times=[np.nan, 1, 1, 1]), FULL, {}, "missing, infinite or below 0"),
        (lambda: edges().assign(times=[np.inf, 1, 1, 1]), FULL, {}, "missing, infinite or below 0"),
        (lambda: edges().assign(times=list("abcd")), FULL, {}, "no number"),
        (lambda: edges().assign(side=[1, 1, 2, 0]), FULL, {}, "'bob' has more than one opinion"),
        (lambda: edges().assign(other=[2, 1, -1, None]), FULL, {}, "'bob' has more than one opinion"),
        (edges, {**ENDS, "opinion": "side"}, {}, "1 accounts have no opinion, 'cem' among them"),
        (lambda: edges().assign(side=np.nan), FULL, {}, "no opinion"),
        (lambda: edges().assign(side=[np.inf, 1, 1, 0]), FULL, {}, "infinite"),
        (lambda: edges().assign(side=list("abcd")), FULL, {}, "different words"),
        (edges, ENDS, {"radius": 0}, "radius"),
        (edges, ENDS, {"direction": "both"}, "listens, influences, mutual"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused(make, columns, settings, message):
    with pytest.raises(InputError, match=message):
        read(make(), columns, **settings)


def test_the_example_is_real_and_has_something_to_say():
    report = aboveboard.audit(None, None, suite="network", effort="quick")
    assert {finding.data for finding in report.findings} == {"real"}
    found = {finding.id: finding for finding in report.findings}
    assert found["opinions/disagreement"].severity == "warn"
    assert "the club decides" in found["opinions/repair"].reason
    assert "Audit of a network of 34 accounts and 156 edges" in report.to_html()


def test_no_account_is_named_unless_asked_for():
    frame = circle().assign(who=[f"person{i}" for i in range(30)], whom=[f"person{(i + 1) % 30}" for i in range(30)])
    columns = {**ENDS, "opinion": "side"}
    texts = [
        aboveboard.audit(None, frame, suite="network", columns=columns, settings=settings, effort="quick").to_json()
        for settings in ({}, {"accounts": "named"})
    ]
    assert ["person" in text for text in texts] == [False, True]


def test_hostile_names_go_through_every_output(hostile_names):
    names = [name for name in dict.fromkeys(hostile_names.values()) if name]
    following = pd.Series([*names[1:], names[0]], dtype=object)
    table = pd.DataFrame({"who": pd.Series(names, dtype=object), "whom": following, "side": range(len(names))})
    for decided_by in (names[0], *names[-3:]):
        report = aboveboard.audit(
            None, table, suite="network", columns={**ENDS, "opinion": "side"}, effort="quick", min_cell=1,
            settings={"accounts": "named", "decided_by": decided_by},
        )  # fmt: skip
        assert "<script>alert" not in report.to_html()
        assert aboveboard.Report.from_json(report.to_json()).to_dict()["findings"]
        for render in (
            render_text,
            *(renderers[name] for name in ("markdown", "github", "junit", "sarif", "notebook")),
        ):
            assert "\x1b" not in render(report)
        assert "<script>alert" not in renderers["notebook"](report)
