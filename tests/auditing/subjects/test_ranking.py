"""Votes in every form that they come in give the same counts, and what is no vote is refused."""

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
ITEMS = ["coffee", "tea", "water"]
RANKS = np.array([[2, 1, 3], [1, 2, 3], [3, 1, NAN], [2, 1, 2]])  # 4 judges
SUITE = find_suite("ranking")


def read(frame, columns=None, **settings):
    return suite_subject(SUITE, frame, columns=columns or {}, settings=settings)


def judges_by_items():
    return pd.DataFrame(RANKS, columns=ITEMS)


def items_by_judges():
    table = pd.DataFrame(RANKS.T, columns=["ann", "bob", "cem", "dee"])
    table.insert(0, "drink", ITEMS)
    return table.assign(sold=[2, 1, 3])


def renamed(*items):
    return items_by_judges().assign(drink=items)


def single_votes():
    rows = [(f"j{k}", ITEMS[i], RANKS[k, i]) for k in range(4) for i in range(3) if not np.isnan(RANKS[k, i])]
    return pd.DataFrame(rows, columns=["who", "what", "place"])


def comparisons():
    rows = []
    for k in range(4):
        for i in range(3):
            for j in range(i + 1, 3):
                a, b = RANKS[k, i], RANKS[k, j]
                if not np.isnan(a + b):
                    rows.append((k, ITEMS[i if a <= b else j], ITEMS[j if a <= b else i], a == b))
    return pd.DataFrame(rows, columns=["who", "better", "worse", "same"])


FORMS = {
    "judges x items": (judges_by_items, {}, {"votes": "rank"}),
    "items x judges": (items_by_judges, {"item": "drink", "published": "sold"}, {"votes": "rank"}),
    "single votes": (single_votes, {"judge": "who", "item": "what", "vote": "place"}, {"votes": "rank"}),
    "comparisons": (comparisons, {"judge": "who", "winner": "better", "loser": "worse", "tie": "same"}, {}),
}
each_form = pytest.mark.parametrize("form", FORMS)


@each_form
def test_every_form_gives_the_same_counts(form):
    make, columns, settings = FORMS[form]
    subject = read(make(), columns, **settings)
    order = [subject.ranker.items_.index(name) for name in ITEMS]
    counted = np.array([[(RANKS[:, i] < RANKS[:, j]).sum() for j in range(3)] for i in range(3)])
    assert (subject.ranker.support_[np.ix_(order, order)] == counted).all()
    assert len(subject) == 4
    assert subject.summary == "a ranking of 3 items by 4 judges"
    assert subject.kind.startswith(form)


@each_form
def test_every_form_is_audited_from_end_to_end(form):
    make, columns, settings = FORMS[form]
    report = aboveboard.audit(
        None, make(), suite="ranking", columns=columns, settings=settings, min_cell=1, effort="quick"
    )
    assert {finding.check for finding in report.findings} == {"rank_audit", "rank_stability"}
    assert report.subject["columns"] == [{"role": role, "name": name} for role, name in columns.items()]
    assert "Audit of a ranking of 3 items by 4 judges" in report.to_html()


def test_scores_are_ranks_turned_round():
    ranks, scores = read(judges_by_items(), votes="rank"), read(10 - judges_by_items(), votes="score")
    assert (ranks.ranker.weights_ == scores.ranker.weights_).all()


def test_a_published_order_keeps_its_ties():
    table = items_by_judges().assign(sold=[1, 3, 1])
    subject = read(table, {"item": "drink", "published": "sold"}, votes="rank")
    assert subject.order == [["coffee", "water"], ["tea"]]
    assert subject.facts()[-1] == ("Order that is judged", "published")


def test_single_votes_can_carry_the_published_rank():
    votes = single_votes()
    votes["sold"] = votes["what"].map({"coffee": 2, "tea": 3, "water": 1})
    columns = {"judge": "who", "item": "what", "vote": "place", "published": "sold"}
    assert read(votes, columns, votes="rank").order == [["water"], ["coffee"], ["tea"]]


def test_without_a_published_order_that_of_the_borda_count_is_judged():
    subject = read(judges_by_items(), votes="rank")
    assert subject.order == [["tea"], ["coffee"], ["water"]]
    assert any("Borda" in note for note in subject.notes)


def test_the_column_of_the_judges_is_no_item():
    table = judges_by_items().assign(who=list("abcd"))
    assert read(table, {"judge": "who"}, votes="rank").ranker.items_ == tuple(ITEMS)


def test_comparisons_without_judges_stand_alone():
    subject = read(comparisons(), {"winner": "better", "loser": "worse", "tie": "same"}, missing="rescale")
    assert len(subject) == len(comparisons())
    assert any("a judge of its own" in note for note in subject.notes)


def test_the_fingerprint_follows_the_votes_and_not_their_container():
    one = read(judges_by_items(), votes="rank")
    assert one.data_sha256 == read(judges_by_items().convert_dtypes(), votes="rank").data_sha256
    other = judges_by_items()
    other.iloc[0, 0] = 9
    assert one.data_sha256 != read(other, votes="rank").data_sha256


def test_the_example_is_the_award_with_its_published_points():
    subject = suite_subject(SUITE, None, columns={}, settings={})
    assert subject.order[:3] == [["Tom Thibodeau"], ["Monty Williams"], ["Quin Snyder"]]
    assert len(subject) == 100
    assert subject.data == "real"


@pytest.mark.parametrize(
    ("make", "columns", "settings", "message"),
    [
        (judges_by_items, {}, {}, "it was not said what the votes are"),
        (judges_by_items, {"published": "tea"}, {"votes": "rank"}, "one row per item for a published order"),
        (judges_by_items, {"tie": "tea"}, {"votes": "rank"}, "the votes are no comparisons"),
        (items_by_judges, {}, {"votes": "rank"}, "the column 'drink' holds no numbers.*--column judge=drink"),
        (items_by_judges, {"item": "drink", "judge": "ann"}, {"votes": "rank"}, "and none as vote"),
        (single_votes, {"item": "what", "vote": "place"}, {"votes": "rank"}, "no column was named as judge"),
        (single_votes, {"judge": "who", "vote": "place"}, {"votes": "rank"}, "no column was named as item"),
        (comparisons, {"winner": "better"}, {}, "no column was named as loser"),
        (comparisons, {"winner": "better", "loser": "worse", "vote": "same"}, {}, "the votes are comparisons"),
        (comparisons, {"winner": "better", "loser": "worse"}, {"votes": "rank"}, "the setting votes was given"),
        (comparisons, {"winner": "better", "loser": "worse", "tie": "who"}, {}, "true or false"),
        (lambda: pd.DataFrame({"a": [1, 2]}), {}, {"votes": "rank"}, "1 columns are left"),
        (lambda: judges_by_items().assign(tea=np.inf), {}, {"votes": "rank"}, "infinite"),
        (lambda: renamed("tea", "tea", "x"), {"item": "drink"}, {"votes": "rank"}, "several rows"),
        (lambda: renamed("tea", None, "x"), {"item": "drink"}, {"votes": "rank"}, "missing in 1"),
        (
            lambda: items_by_judges().assign(sold=[1, NAN, 2]),
            {"item": "drink", "published": "sold"},
            {"votes": "rank"},
            "no rank for 'tea'",
        ),
        (
            lambda: pd.concat([single_votes()] * 2),
            {"judge": "who", "item": "what", "vote": "place"},
            {"votes": "rank"},
            "a judge voted twice on",
        ),
        (
            lambda: single_votes().assign(sold=range(11)),
            {"judge": "who", "item": "what", "vote": "place", "published": "sold"},
            {"votes": "rank"},
            "several published ranks",
        ),
        (lambda: judges_by_items()[["tea"]].assign(x="a"), {"judge": "x"}, {"votes": "rank"}, "1 columns are left"),
    ],
)  # fmt: skip
def test_what_is_no_vote_is_refused(make, columns, settings, message):
    with pytest.raises(InputError, match=message):
        read(make(), columns, **settings)


def test_hostile_names_of_items_and_judges_go_through_every_output(hostile_names):
    names = [name for name in dict.fromkeys(hostile_names.values()) if name]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(len(names), 12)), columns=[f"j{k}" for k in range(12)])
    table["item"] = pd.Series(names, dtype=object)
    table["published"] = range(len(names))
    report = aboveboard.audit(
        None,
        table,
        suite="ranking",
        columns={"item": "item", "published": "published"},
        settings={"votes": "score"},
        effort="quick",
    )
    html = report.to_html()
    assert "<script>alert" not in html
    assert aboveboard.Report.from_json(report.to_json()).to_dict()["findings"]
    for render in (render_text, *(renderers[name] for name in ("markdown", "github", "junit", "sarif", "notebook"))):
        assert "\x1b" not in render(report)
    assert "<script>alert" not in renderers["notebook"](report)
