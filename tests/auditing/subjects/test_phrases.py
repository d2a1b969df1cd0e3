"""Phrases and outcomes in every form are the same statements, and what cannot be audited is refused."""

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

SUITE = find_suite("phrases")
COLUMNS = {"phrase": "said", "outcome": "true"}


def statements():
    return pd.DataFrame({"said": ["Likely", "maybe"] * 20, "true": [1, 0, 0, 0] * 10, "who": list("aabb") * 10})


def read(frame, columns=COLUMNS, **settings):
    return suite_subject(SUITE, frame, columns=columns, settings=settings)


@pytest.mark.parametrize(
    "container", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_every_container_gives_the_same_subject(container):
    subject = read(container(statements()), COLUMNS | {"group": "who"})
    assert subject.phrases[:2] == ["Likely", "Maybe"]
    assert subject.outcomes.sum() == 10
    assert list(subject.groups["who"][:3]) == ["a", "a", "b"]
    assert subject.data_sha256 == read(statements()).data_sha256
    assert subject.summary == "40 statements with 2 phrases of certainty"
    facts = dict(subject.facts())
    assert (facts["Phrases in use"], facts["Came true, of all"], facts["Values of who"]) == (2, 0.25, 2)


def test_counts_stand_for_as_many_rows():
    counted = statements().groupby(["said", "true", "who"], as_index=False).size()
    subject = read(counted, COLUMNS | {"count": "size", "group": "who"})
    each = read(statements(), COLUMNS | {"group": "who"})
    assert len(subject) == 40
    assert sorted(zip(subject.phrases, subject.outcomes, subject.groups["who"])) == sorted(
        zip(each.phrases, each.outcomes, each.groups["who"])
    )


@pytest.mark.parametrize("words", [["yes", "no"], ["TRUE", "false"], [True, False], ["1", "0"]])
def test_outcomes_may_be_words(words):
    frame = statements().assign(true=[words[0] if value else words[1] for value in statements()["true"]])
    assert read(frame).outcomes.tolist() == read(statements()).outcomes.tolist()


def test_outcomes_may_be_probabilities():
    assert read(statements().assign(true=0.25)).outcomes.mean() == 0.25


def test_meanings_come_from_columns():
    frame = statements().assign(a=[8, 2] * 20, b=[2, 8] * 20, p=[0.7, 0.2] * 20)
    subject = read(frame, COLUMNS | {"alpha": "a", "beta": "b"})
    assert subject.vocabulary.mean.tolist() == [0.8, 0.2]
    assert subject.vocabulary.phrases == ("Likely", "maybe")
    points = read(frame, COLUMNS | {"mean": "p"})
    assert points.vocabulary.mean.tolist() == [0.7, 0.2]
    assert np.isinf(points.vocabulary.concentration).all()


def test_phrases_are_found_in_texts_and_texts_without_one_can_be_left_out():
    frame = pd.DataFrame(
        {"report": ["Effusion, likely.", "It is not likely.", "Maybe edema."] * 20, "true": [1, 0, 0] * 20}
    )
    columns = {"text": "report", "outcome": "true"}
    with pytest.raises(InputError, match="20 of 60 texts hold no phrase"):
        read(frame, columns)
    subject = read(frame, columns, unknown="leave out")
    assert subject.phrases[:2] == ["Likely", "Maybe"]
    assert len(subject) == 40
    assert any("20 of 60" in note for note in subject.notes)


def test_unknown_phrases_are_named_or_left_out(hostile_name):
    frame = statements()
    odd = pd.Series([hostile_name.strip() or "blank", *frame["said"][1:]], dtype=object)
    frame = pd.DataFrame({"said": odd, "true": frame["true"]})
    with pytest.raises(InputError, match="not in the vocabulary"):
        read(frame)
    assert len(read(frame, unknown="leave out")) == 39


@pytest.mark.parametrize(
    ("change", "columns", "message"),
    [
        ({}, {"phrase": "said"}, "no column was named as outcome"),
        ({}, {"outcome": "true"}, "no column was named as phrase or text"),
        ({}, COLUMNS | {"text": "who"}, "no column was named as phrase or text, or both were"),
        ({"said": ["Likely", None] * 20}, COLUMNS, "the phrase is missing in 20 rows"),
        ({"true": [1, None] * 20}, COLUMNS, "the outcome is missing in 20 rows"),
        ({"true": [1, 2] * 20}, COLUMNS, "outside 0 to 1"),
        ({"true": ["yes", "perhaps"] * 20}, COLUMNS, "the outcome 'perhaps'"),
        ({"n": [1.5] * 40}, COLUMNS | {"count": "n"}, "does not hold counts"),
        ({"n": [-1] * 40}, COLUMNS | {"count": "n"}, "does not hold counts"),
        ({"n": [1e9] * 40}, COLUMNS | {"count": "n"}, "does not hold counts"),
        ({"n": [None, 1] * 20}, COLUMNS | {"count": "n"}, "lacks values"),
        ({"n": ["a"] * 40}, COLUMNS | {"count": "n"}, "no number"),
        ({"a": 1}, COLUMNS | {"alpha": "a"}, "no column was named as beta"),
        ({"a": 1, "b": 1, "p": 0.5}, COLUMNS | {"alpha": "a", "beta": "b", "mean": "p"}, "mean, or alpha and beta"),
        ({"p": [0.1, 0.2, 0.3, 0.4] * 10}, COLUMNS | {"mean": "p"}, "several values"),
        ({"p": 1.5}, COLUMNS | {"mean": "p"}, "a mean between 0 and 1"),
        ({"p": 0.5}, {"text": "said", "outcome": "true", "mean": "p"}, "beside texts"),
        ({}, COLUMNS | {"count": "true"}, "the column 'true' is named twice"),
        ({"n": [0, 1] * 20}, COLUMNS | {"count": "n"}, "20 statements are left"),
    ],
)
def test_tables_that_cannot_be_audited_are_refused(change, columns, message):
    with pytest.raises(InputError, match=message):
        read(statements().assign(**change), columns)


def test_identifiers_are_no_groups_and_few_statements_are_refused():
    frame = pd.concat([statements()] * 2, ignore_index=True).assign(row=range(80))
    with pytest.raises(InputError, match="has 80 values"):
        read(frame, COLUMNS | {"group": "row"})
    with pytest.raises(InputError, match=r"20 statements are left.*at least 30"):
        read(statements().head(20))


def test_the_example_is_the_published_counts():
    subject = suite_subject(SUITE, None, columns={}, settings={})
    assert subject.data == "real"
    assert (len(subject), subject.outcomes.sum()) == (817, 258)
    assert subject.vocabulary.mean[0] == pytest.approx(0.9)


def test_hostile_phrases_and_groups_go_through_every_output(hostile_name):
    phrase = " ".join(hostile_name.split()) or "blank"
    said, group = (pd.Series(texts, dtype=object) for texts in ([phrase, "maybe"] * 40, [hostile_name] * 80))
    frame = pd.DataFrame({0: said, 1: [0, 1] * 40, 2: [0.9, 0.1] * 40, 3: group})
    frame.columns = ["said", "true", "p", "who"]
    columns = COLUMNS | {"mean": "p", "group": "who"}
    report = aboveboard.audit(None, frame, suite="phrases", columns=columns, effort="quick")
    assert "<script>alert(1)" not in report.to_html()
    assert render_text(report)
    assert all(renderers[name](report) for name in ("markdown", "sarif", "junit") if name in renderers)
    assert report.to_json()
