from dataclasses import replace

import pytest

from aboveboard.auditing.gate import judge
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report


def finding(name, severity="ok", status="ran"):
    return Finding(id=name, check="c", area="a", statement=".", severity=severity, status=status, reason="r")


def report(*findings, **options):
    ran = [f for f in findings if f.status in ("ran", "inconclusive")]
    rest = [f for f in findings if f.status not in ("ran", "inconclusive")]
    return Report(subject={"task": "binary", "target": "y"}, findings=tuple(ran), not_run=tuple(rest), **options)


FAIL, WARN, NOTE, OK = (finding(name, name) for name in ("fail", "warn", "note", "ok"))
UNSURE = finding("unsure", "ok", "inconclusive")
SKIPPED = finding("skipped", "ok", "skipped")
NOT_APPLICABLE = finding("inapplicable", "ok", "not_applicable")
BROKEN = finding("broken", "ok", "error")


@pytest.mark.parametrize(
    ("findings", "fail_on", "status"),
    [
        ([OK, NOTE, WARN], "fail", 0),
        ([FAIL], "fail", 1),
        ([WARN], "warn", 1),
        ([FAIL], "note", 1),
        ([NOTE], "note", 1),
        ([NOTE], "warn", 0),
        ([OK], "note", 0),
        ([], "note", 0),
        ([UNSURE, SKIPPED, NOT_APPLICABLE], "fail", 0),
        ([BROKEN], "fail", 4),
        ([BROKEN, FAIL], "fail", 4),
    ],
)
def test_the_worst_finding_at_or_above_the_bar_decides(findings, fail_on, status):
    assert judge(report(*findings), fail_on=fail_on).status == status


def test_strict_counts_what_is_inconclusive_or_was_skipped_and_not_what_does_not_apply():
    assert judge(report(UNSURE), strict=True).status == 1
    assert judge(report(SKIPPED), strict=True).status == 1
    assert judge(report(NOT_APPLICABLE, OK), strict=True).status == 0


def test_an_interrupted_audit_is_interrupted_whatever_it_found():
    assert judge(report(FAIL, BROKEN, complete=False)).status == 130


def accepted(name, **changes):
    return {"id": name, "reason": "r", "expires": "2020-01-01", "in_force": True, "found": True} | changes


def test_an_accepted_finding_does_not_count_until_its_acceptance_expires():
    assert judge(report(FAIL, accepted=(accepted("fail"),))).status == 0
    verdict = judge(report(FAIL, accepted=(accepted("fail", in_force=False),)))
    assert verdict.status == 1
    assert verdict.notes == ("The acceptance of 'fail' expired on 2020-01-01, so it counts again.",)


def test_an_acceptance_of_nothing_is_told():
    verdict = judge(report(OK, accepted=(accepted("gone", found=False),)))
    assert verdict.status == 0
    assert "'gone' was not found" in verdict.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("fail", "fail", 0),
        ("warn", "fail", 1),
        ("ok", "fail", 1),
        (None, "fail", 1),
        ("fail", "ok", 0),
    ],
)
def test_with_a_baseline_only_what_is_new_or_worse_counts(old, new, status):
    baseline = report() if old is None else report(finding("x", old))
    assert judge(report(finding("x", new)), baseline=baseline).status == status


def test_a_baseline_forgives_a_warning_of_its_own_under_a_lower_bar_only():
    baseline = report(WARN)
    assert judge(report(WARN), fail_on="warn", baseline=baseline).status == 0
    assert judge(report(replace(WARN, severity="fail")), fail_on="warn", baseline=baseline).status == 1


def test_with_a_baseline_what_was_inconclusive_before_is_not_new():
    assert judge(report(UNSURE), strict=True, baseline=report(UNSURE)).status == 0
    assert judge(report(UNSURE), strict=True, baseline=report(finding("unsure"))).status == 1
    assert judge(report(UNSURE), strict=True, baseline=report(finding("unsure", "fail"))).status == 0
    assert judge(report(finding("unsure", "fail")), baseline=report(UNSURE)).status == 1


def test_a_baseline_excuses_no_check_that_failed_to_run():
    assert judge(report(BROKEN), baseline=report(BROKEN)).status == 4


def test_what_the_baseline_forgave_is_told():
    verdict = judge(report(FAIL, finding("new", "fail")), baseline=report(FAIL))
    assert [f.id for f in verdict.counted] == ["new"]
    assert "1 finding stood in the baseline already." in verdict.notes


def test_a_baseline_of_something_else_is_told():
    other = Report(subject={"task": "regression", "target": "z"}, findings=(), complete=False,
                   limits=({"name": "a.b", "value": 1.0},))  # fmt: skip
    notes = judge(report(limits=({"name": "a.b", "value": 2.0}, {"name": "c.d", "value": 1})), baseline=other).notes
    assert any("another task: 'regression'" in note for note in notes)
    assert not any("another suite" in note for note in notes)
    assert any("another target: 'z'" in note for note in notes)
    assert any("was interrupted" in note for note in notes)
    assert any("other limits: a.b." in note for note in notes)


def test_a_baseline_of_another_suite_is_told_and_one_that_names_none_is_tabular():
    bare = Report(subject={}, findings=())
    tabular, ranking = (Report(subject={"suite": name}, findings=()) for name in ("tabular", "ranking"))
    assert judge(tabular, baseline=bare).notes == ()
    assert any("another suite: 'tabular', and this audit 'ranking'" in n for n in judge(ranking, baseline=bare).notes)
