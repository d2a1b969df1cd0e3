"""Votes in every form give the same approvals, and what is no vote is refused."""

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.report.terminal import render_text
from aboveboard.auditing.suite_audit import suite_subject
from aboveboard.auditing.suites import find_suite
from aboveboard.core import InputError
from aboveboard.core.report import renderers

NAN = float("nan")
COMMENTS = ["cats", "dogs", "fish"]
VOTES = np.array([[1, -1, NAN], [1, 1, -1], [-1, 1, 1], [NAN, -1, 1]])  # 4 readers
SUITE = find_suite("feed")


def read(frame, columns=None, **settings):
    return suite_subject(SUITE, frame, columns=columns or {}, settings=settings)


def readers_by_comments():
    return pd.DataFrame(VOTES.copy(), columns=COMMENTS)


def comments_by_readers():
    table = pd.DataFrame(VOTES.T, columns=["ann", "bob", "cem", "dee"])
    table.insert(0, "text", COMMENTS)
    return table.assign(place=[2, 1, 3])


def single_votes():
    rows = [(f"r{i}", COMMENTS[c], VOTES[i, c]) for i in range(4) for c in range(3) if not np.isnan(VOTES[i, c])]
    table = pd.DataFrame(rows, columns=["who", "what", "said"])
    table["place"] = table["what"].map({"cats": 2, "dogs": 1, "fish": 3})
    table["home"] = table["who"].map({"r0": "north", "r1": "north", "r2": "south", "r3": "south"})
    return table.assign(counts=table["who"].map({"r0": 1.0, "r1": 2.0, "r2": 1.0, "r3": 0.5}))


LONG = {"reader": "who", "comment": "what", "vote": "said"}
FORMS = {
    "readers x comments": (readers_by_comments, {}),
    "comments x readers": (comments_by_readers, {"comment": "text", "published": "place"}),
    "single votes": (single_votes, {**LONG, "published": "place", "group": "home", "weight": "counts"}),
}
each_form = pytest.mark.parametrize("form", FORMS)


@each_form
def test_every_form_gives_the_same_votes(form):
    make, columns = FORMS[form]
    subject = read(make(), columns)
    at = [subject.comments.index(name) for name in COMMENTS] if form != "comments x readers" else [0, 1, 2]
    assert (subject.votes.toarray()[:, at] == np.nan_to_num(VOTES)).all()
    assert subject.kind == form
    assert subject.summary == "a feed of 3 comments for 4 readers"
    assert subject.order.tolist() == ([0, 1, 2] if form == "readers x comments" else [at[1], at[0], at[2]])


@each_form
def test_every_form_is_audited_from_end_to_end(form):
    make, columns = FORMS[form]
    report = aboveboard.audit(None, make(), suite="feed", columns=columns, min_cell=1, effort="quick")
    assert {finding.check for finding in report.findings} == {"feed"}
    assert "Audit of a feed of 3 comments for 4 readers" in report.to_html()


def test_groups_and_weights_follow_the_readers():
    subject = read(single_votes(), FORMS["single votes"][1])
    assert subject.groups["home"].tolist() == ["north", "north", "south", "south"]
    assert subject.weights.tolist() == [1.0, 2.0, 1.0, 0.5]


def test_a_score_sorts_the_feed_and_the_file_can():
    table = comments_by_readers().drop(columns="place").assign(likes=[5, 9, 7])
    assert read(table, {"comment": "text", "score": "likes"}).order.tolist() == [1, 2, 0]
    assert read(readers_by_comments()[["fish", "cats"]], order="file").comments == ("fish", "cats")
    assert any("most approved" in note for note in read(readers_by_comments()).notes)


@pytest.mark.parametrize(
    "values",
    [
        ["agree", "Disagree ", "pass"],
        ["yes", "no", None],
        pd.array([True, False, None], dtype="boolean"),
        [5, 1, NAN],
    ],
)
def test_votes_are_numbers_truths_or_words(values):
    table = pd.DataFrame({"who": list("abc"), "what": "x", "said": values})
    subject = read(table, LONG, approve=2 if isinstance(values, list) and 5 in values else 0)
    assert subject.votes.toarray().ravel().tolist() == [1, -1, 0]


def test_zero_is_a_vote_against_only_where_nothing_lies_below():
    table = pd.DataFrame({"a": [1, 0, 0], "b": [0, 1, 1]})
    assert read(table).votes.toarray().tolist() == [[1, -1], [-1, 1], [-1, 1]]
    table.loc[0, "b"] = -1
    assert read(table).votes.toarray().tolist() == [[1, -1], [0, 1], [0, 1]]


def test_the_fingerprint_follows_the_votes():
    first = read(readers_by_comments()).data_sha256
    assert read(readers_by_comments().convert_dtypes()).data_sha256 == first
    other = readers_by_comments()
    other.iloc[0, 0] = -1
    assert read(other).data_sha256 != first


def test_the_example_is_simulated_and_says_so():
    report = aboveboard.audit(None, None, suite="feed", effort="quick")
    assert {finding.data for finding in report.findings} == {"simulated"}
    assert any(finding.severity == "fail" for finding in report.findings)


@pytest.mark.parametrize(
    ("make", "columns", "settings", "message"),
    [
        (readers_by_comments, {"published": "cats"}, {}, "one row per comment for a published"),
        (readers_by_comments, {"weight": "cats"}, {}, "weights are not usable|no number|finite"),
        (comments_by_readers, {}, {}, "holds the vote 'cats'.*--column reader=NAME"),
        (comments_by_readers, {"comment": "text", "reader": "ann"}, {}, "comment and reader.*none as vote"),
        (comments_by_readers, {"comment": "text", "published": "place", "score": "cem"}, {}, "as score"),
        (comments_by_readers, {"comment": "text", "published": "place"}, {"order": "file"}, "both by a column"),
        (comments_by_readers, {"comment": "text", "published": "ann"}, {}, "finite numbers"),
        (single_votes, {"reader": "who", "vote": "said"}, {}, "no column was named as comment"),
        (single_votes, {"comment": "what", "vote": "said"}, {}, "no column was named as reader"),
        (lambda: pd.concat([single_votes()] * 2), LONG, {}, "voted twice on"),
        (lambda: single_votes().assign(place=range(10)), {**LONG, "published": "place"}, {}, "more than one published"),
        (lambda: single_votes().assign(home=range(10)), {**LONG, "group": "home"}, {}, "more than one group"),
        (lambda: single_votes().assign(counts=-1), {**LONG, "weight": "counts"}, {}, "none below 0"),
        (single_votes, {**LONG, "weight": "counts"}, {"readers": "sample"}, "one of the two"),
        (lambda: single_votes().assign(said="maybe"), LONG, {}, "holds the vote 'maybe'"),
        (lambda: single_votes().assign(said=np.inf), LONG, {}, "holds inf"),
        (lambda: single_votes().assign(said=NAN), LONG, {}, "no vote for or against"),
        (lambda: single_votes().assign(who=None), LONG, {}, "reader is missing"),
        (readers_by_comments, {}, {"lengths": "5,x"}, "setting lengths"),
        (readers_by_comments, {}, {"lengths": "0"}, "setting lengths"),
        (readers_by_comments, {}, {"missing": "predict"}, "five votes for"),
        (lambda: readers_by_comments()[["cats"]], {"reader": "cats"}, {}, "missing|no column is left"),
    ],
)  # fmt: skip
def test_what_is_no_vote_is_refused(make, columns, settings, message):
    with pytest.raises(InputError, match=message):
        read(make(), columns, **settings)


def test_hostile_names_go_through_every_output(hostile_names):
    names = [name for name in dict.fromkeys(hostile_names.values()) if name]
    rng = np.random.default_rng(0)
    n, m = 40, len(names)
    reader, comment = np.divmod(np.arange(n * m), m)
    table = pd.DataFrame({"who": reader, "what": pd.Series([names[c] for c in comment], dtype=object)})
    table["said"] = np.where(rng.random(n * m) < 0.3, 1, -1)
    table["camp"] = pd.Series([names[i % m] for i in reader], dtype=object)
    report = aboveboard.audit(
        None, table, suite="feed", columns={**LONG, "group": "camp"}, effort="quick", min_cell=1,
        settings={"lengths": "1,3"},
    )  # fmt: skip
    assert "<script>alert" not in report.to_html()
    assert aboveboard.Report.from_json(report.to_json()).to_dict()["findings"]
    for render in (render_text, *(renderers[name] for name in ("markdown", "github", "junit", "sarif", "notebook"))):
        assert "\x1b" not in render(report)
    assert "<script>alert" not in renderers["notebook"](report)
