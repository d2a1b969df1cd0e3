"""What the outputs share: cleaned text, figures as words, the headline."""

import dataclasses
import unicodedata

import pytest

from aboveboard.auditing.report.view import (
    amount,
    attention,
    clean,
    families,
    headline,
    number,
    sections,
    shorten,
    table_rows,
    writing,
)
from aboveboard.core import Column, Finding, Report

_BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_cleaned_text_has_no_control_surrogate_separator_or_direction_override(hostile_name):
    for letter in clean(hostile_name):
        assert unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(letter) not in _BIDI
    clean(hostile_name).encode("utf-8")


def test_cleaning_leaves_ordinary_text_of_all_scripts_alone():
    for text in ("Female", "naïve café", "שלום", "日本語", "👩‍👩‍👧", "a − b ≤ 3 %"):
        assert clean(text) == text


def test_what_is_cleaned_is_spelled_out():
    assert clean("a\x1b[31m\n\u202e\ud800") == r"a\x1b[31m\n\u202e\ud800"
    assert clean("one\ntwo\x00", keep_lines=True) == "one\ntwo\\x00"


def test_shortened_text_is_never_longer_than_asked():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (0.25, "percent", "25.0\u00a0%"),
        (0.00031, "percent", "0.03\u00a0%"),
        (0.0, "percent", "0.0\u00a0%"),
        (-0.1189, "points", "-11.9"),
        (-0.0001, "points", "0.0"),
        (16281, "number", "16,281"),
        (16281.0, "number", "16,281"),
        (1234567.8, "number", "1,234,568"),
        (0.92749, "number", "0.927"),
        (0.000012, "number", "1.2e-05"),
        (-3.14159, "number", "-3.14"),
        (0, "number", "0"),
    ],
)
def test_figures_are_written_for_people(value, style, text):
    assert number(value, style) == text


def test_an_interval_is_written_like_the_percent_or_number_column_before_it():
    columns = (Column("a", "percent"), Column("b", "interval"), Column("c"), Column("d", "interval"))
    assert table_rows(columns, [(0.5, (0.4, 0.6), 0.5, (0.4, 0.6))]) == [
        ["50.0\u00a0%", "40.0\u00a0% to 60.0\u00a0%", "0.5", "0.4 to 0.6"]
    ]


def test_a_finding_is_written_in_the_unit_of_the_limit_that_it_was_judged_against(report):
    failing = report.findings[0]
    assert writing(failing, report) == "points"
    figures = amount(failing, report)
    assert (figures.value, figures.interval, figures.limit) == ("-11.9 points", "-12.7 to -11.1", "10 points")
    assert figures.sureness == "95\u00a0% simultaneous interval -12.7 to -11.1 points (max-|t| bootstrap), 5,421 rows"
    assert writing(report.findings[2], report) == "number"


def test_the_headline_counts_what_nobody_accepted(report):
    answer = headline(report)
    assert answer.verdict == "fail"
    assert answer.title == "1 finding fails"
    assert answer.sentence == "1 failure, 1 warning, 1 inconclusive, 1 note, 2 OK; 1 accepted; 3 not run (1 error)."


def test_an_accepted_failure_leaves_the_headline():
    finding = Finding(id="a", check="c", area="data", statement="Bad.", severity="fail")
    plain = Report(subject={}, findings=(finding,))
    accepted = dataclasses.replace(plain, accepted=({"id": "a", "reason": "known", "expires": None, "in_force": True},))
    expired = dataclasses.replace(plain, accepted=({"id": "a", "reason": "known", "expires": None, "in_force": False},))
    assert [headline(r).title for r in (plain, accepted, expired)] == [
        "1 finding fails",
        "No failures and no warnings",
        "1 finding fails",
    ]


def test_too_little_data_is_not_called_good():
    finding = Finding(id="a", check="c", area="data", statement="Unclear.", status="inconclusive")
    assert headline(Report(subject={}, findings=(finding,))).title == "No failures, 1 question left open"
    assert headline(Report(subject={}, findings=())).title == "Nothing was found out"


def test_an_interrupted_audit_says_so_first(report):
    answer = headline(dataclasses.replace(report, complete=False))
    assert answer.warning.startswith("The audit was interrupted")
    assert answer.sentence.startswith(answer.warning)


def test_areas_come_in_the_order_of_the_suite_and_unknown_ones_last(report):
    stray = Finding(id="z", check="z", area="another", statement="Z.")
    found = sections(dataclasses.replace(report, findings=(stray, *report.findings)))
    assert [section.name for section in found] == ["performance", "fairness", "leaks", "data", "another"]


def _group_finding(id_, group="", severity="fail"):
    return Finding(
        id=id_, check=id_.split("/")[0], area="fairness", statement=f"{id_}.", severity=severity, group=group
    )


def test_findings_on_single_groups_stand_under_the_finding_on_all_of_them():
    findings = [
        _group_finding("g/rate/sex & race"),
        _group_finding("g/rate/sex=F & race=a/b", "sex=F & race=a/b"),
        _group_finding("g/rate/sex=M & race==&", "sex=M & race==&"),
        _group_finding("g/accuracy/sex"),
        _group_finding("g/rate/sex=M", "sex=M"),
        _group_finding("h/rate/sex=M", "sex=M", "warn"),
    ]
    found = families(findings)
    assert [len(family.groups) for family in found] == [2, 0, 0, 0]
    assert [f.id for family in found for f in (family.head, *family.groups)] == [f.id for f in findings]


def test_the_first_lines_tell_of_every_check_before_they_repeat_one():
    findings = tuple(
        _group_finding(f"{check}/{i}", severity=severity)
        for check, severity in (("a", "fail"), ("b", "warn"), ("c", "fail"))
        for i in range(2)
    )
    order = [family.head.id for family in attention(Report(subject={}, findings=findings))]
    assert order == ["a/0", "c/0", "a/1", "c/1", "b/0", "b/1"]


def test_a_limit_in_points_of_accuracy_or_a_share_of_rows_is_written_so():
    def written(unit, value):
        finding = Finding(id="a", check="c", area="data", statement="S.", value=value, limit=0.01)
        limits = ({"name": "c.x", "value": 0.01, "unit": unit},)
        return amount(finding, Report(subject={}, findings=(finding,), limits=limits))

    assert written("points of accuracy", 0.0237).value == "2.4 points"
    assert written("points of accuracy", 0.0237).limit == "1 point"
    assert written("share of rows", 0.5).value == "50.0\u00a0%"
    assert written("share of rows", 0.5).limit == "1\u00a0%"
    assert written("AUC", 0.5).value == "0.5"
