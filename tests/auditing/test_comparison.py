"""Two reports side by side: every finding once, the gate's verdict, chance told from change at the claimed level."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import aboveboard
from aboveboard.auditing.comparison import compare
from aboveboard.auditing.gate import judge
from aboveboard.core import Assumption, Certificate, Column, Finding, InputError, Interval, Report, Table

Z = norm.ppf(0.975)


def finding(name, severity="ok", status="ran", **more):
    check = name.partition("/")[0]
    return Finding(
        id=name,
        check=check,
        area="performance",
        statement="Says.",
        severity=severity,
        status=status,
        reason="r",
        **more,
    )


def report(*findings, subject=None, **options):
    ran = [f for f in findings if f.status in ("ran", "inconclusive")]
    rest = [f for f in findings if f.status not in ("ran", "inconclusive")]
    about = {"task": "binary", "target": "y", "classes": ["0", "1"], "positive": "1", **(subject or {})}
    return Report(subject=about, findings=tuple(ran), not_run=tuple(rest), **options)


def kinds(comparison):
    return {c.finding.id: c.kind for change in comparison.changes for c in (change, *change.groups)}


@pytest.mark.parametrize(
    ("then", "now", "kind"),
    [
        (None, finding("c/x", "fail"), "new"),
        (finding("c/x", "warn"), finding("c/x", "fail"), "worse"),
        (finding("c/x", "fail"), finding("c/x"), "better"),
        (finding("c/x", "note"), finding("c/x", status="inconclusive"), "worse"),
        (finding("c/x", "fail"), finding("c/x", status="inconclusive"), "better"),
        (finding("c/x", "fail"), finding("c/x", "fail"), "unchanged"),
        (finding("c/x", "fail"), None, "unchecked"),
        (finding("c/x", "fail"), finding("c/other"), "gone"),
        (finding("c/x", "fail"), finding("c", status="error"), "unchecked"),
        (finding("c/x", "fail"), finding("c/x", status="not_applicable"), "unchecked"),
    ],
)
def test_a_finding_is_what_its_severity_then_and_now_make_it(then, now, kind):
    old, new = (report(*([f] if f else [])) for f in (then, now))
    assert kinds(compare(old, new))[(now or then).id if kind == "new" else "c/x"] == kind


def group(name, severity="fail"):
    return finding(f"g/rate/sex={name}", severity, group=f"sex={name}")


def test_groups_are_told_with_the_finding_on_all_of_them():
    head = finding("g/rate/sex", "fail")
    old, new = report(head, group("a"), group("b")), report(head, group("b"), group("c"))
    comparison = compare(old, new)
    (change,) = comparison.changes
    assert change.kind == "worse"
    assert {c.finding.group: c.kind for c in change.groups} == {"sex=a": "gone", "sex=b": "unchanged", "sex=c": "new"}
    assert comparison.counts == {"worse": 1}
    assert compare(new, report(head, group("b"))).counts == {"better": 1}
    assert [f.id for f in comparison.verdict.counted] == ["g/rate/sex=c"]


_names = st.sampled_from(["a", "b/x", "b/y", "g/rate/sex", "g/rate/sex=p", "g/rate/sex=q", "h"])
_severities = st.sampled_from(["ok", "note", "warn", "fail"])
_statuses = st.sampled_from(["ran", "inconclusive", "not_applicable", "skipped", "error"])


@st.composite
def reports(draw):
    found = []
    for name in sorted(draw(st.sets(_names))):
        status = draw(_statuses)
        severity = draw(_severities) if status == "ran" else "ok"
        found.append(finding(name, severity, status, group="sex=" + name[-1] if "=" in name else ""))
    return report(*found)


@settings(max_examples=60)
@given(reports(), reports(), st.sampled_from(["note", "warn", "fail"]), st.booleans())
def test_every_finding_is_told_once_and_the_gate_decides(old, new, fail_on, strict):
    comparison = compare(old, new, fail_on=fail_on, strict=strict)
    told = [c for change in comparison.changes for c in (change, *change.groups)]
    ids = [c.finding.id for c in told]
    assert len(ids) == len(set(ids))
    assert set(ids) == {f.id for f in (*old.findings, *new.findings)}
    verdict = judge(new, fail_on=fail_on, strict=strict, baseline=old)
    assert (comparison.verdict.status, comparison.verdict.counted) == (verdict.status, verdict.counted)
    counted = {f.id for f in verdict.counted} - {f.id for f in new.not_run}
    assert counted <= {c.finding.id for c in told if c.kind in ("new", "worse")}
    assert json.loads(comparison.to_json())["counts"] == comparison.counts


@given(reports())
def test_a_report_is_unchanged_since_itself(one):
    comparison = compare(one, one)
    assert set(comparison.counts) <= {"unchanged"}
    assert comparison.verdict.status in (0, 4)
    assert (comparison.checks, comparison.limits, comparison.subject, comparison.moved) == ((), (), (), ())


# --- chance -----------------------------------------------------------------------------------------------------------


def wilson(k, n):
    p, centre = k / n, (k / n + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(k / n * (1 - k / n) / n + Z**2 / (4 * n * n))
    return p, (max(centre - half, 0.0), min(centre + half, 1.0))


def rates(counts, n, **options):
    columns = (Column("Group", "text"), Column("Rate", "percent"), Column("95 % interval", "interval"))
    rows = tuple((f"g{at}", *wilson(int(k), n)) for at, k in enumerate(counts))
    return report(finding("g/rate", evidence=(Table("Rates", columns, rows),)), **options)


def chances(old, new):
    return [measure.chance for measure in compare(old, new).measures]


@given(st.integers(5, 400), st.integers(5, 400), st.data())
def test_one_rate_on_separate_rows_is_told_apart_where_newcombe_s_interval_leaves_zero_out(n1, n2, data):
    k1, k2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    (p1, (l1, u1)), (p2, (l2, u2)) = wilson(k1, n1), wilson(k2, n2)
    low, high = (p2 - p1 - math.hypot(p2 - l2, u1 - p1)), (p2 - p1 + math.hypot(u2 - p2, p1 - l1))
    if min(abs(low), abs(high)) < 1e-9:  # on the edge
        return
    (measure,) = compare(rates([k1], n1), rates([k2], n2)).measures
    assert (measure.chance in ("beyond", "separate")) == (low > 0 or high < 0)
    if measure.chance == "beyond":
        assert u1 < l2 or u2 < l1
    assert (measure.chance == "equal") == ((p1, l1, u1) == (p2, l2, u2))


@pytest.mark.parametrize(("n_old", "n_new", "p"), [(1000, 1000, 0.5), (200, 5000, 0.05)])
def test_one_false_alarm_among_all_figures_is_as_rare_as_claimed(n_old, n_new, p):
    """2,000 pairs of reports on separate rows of one world, 20 rates each: 5 % alarm at most, and 3 standard errors."""
    rng = np.random.default_rng(0)
    alarms = sum(
        any(chance in ("beyond", "separate") for chance in chances(rates(a, n_old), rates(b, n_new)))
        for a, b in zip(rng.binomial(n_old, p, (2000, 20)), rng.binomial(n_new, p, (2000, 20)), strict=True)
    )
    assert alarms / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_beyond_chance_holds_even_where_estimates_err_in_opposite_directions():
    """The newer rate is the mirror image of the older: the worst dependence that there is."""
    rng, n = np.random.default_rng(0), 400
    beyond = separate = 0
    for k in rng.binomial(n, 0.5, 2000):
        found = chances(rates([k], n), rates([n - k], n))
        beyond += found == ["beyond"]
        separate += found in (["beyond"], ["separate"])
    assert beyond / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
    assert separate / 2000 > 0.1  # which is why the two are told apart


def test_on_the_same_data_no_difference_is_put_down_to_chance_or_change():
    subject = {"data_sha256": "ab" * 32}
    comparison = compare(rates([10, 50], 100, subject=subject), rates([10, 90], 100, subject=subject))
    assert comparison.same_data
    assert sorted(m.chance for m in comparison.measures) == ["equal", "same_data"]


def test_the_figure_of_the_farthest_group_is_not_compared_with_that_of_another_group():
    columns = (Column("Group", "text"), Column("Difference", "percent"), Column("95 % interval", "interval"))

    def farthest(at, *rows):
        interval = Interval(*rows[at][2])
        return report(finding("g/r", value=rows[at][1], interval=interval, evidence=(Table("T", columns, rows),)))

    a, b = ("a", 0.1, (0.09, 0.11)), ("b", -0.1, (-0.11, -0.09))
    assert {m.name: m.chance for m in compare(farthest(0, a, b), farthest(1, a, b)).measures} == {
        "a, Difference": "equal",
        "b, Difference": "equal",
    }


def test_figures_without_an_interval_are_shown_and_not_judged():
    (measure,) = compare(report(finding("c/x", value=1.0)), report(finding("c/x", value=2.0))).measures
    assert (measure.old, measure.new, measure.chance) == (1.0, 2.0, "unknown")


def test_an_interval_that_misses_its_estimate_counts_as_no_less_wide():
    def one(value, low, high):
        return report(finding("c/x", value=value, interval=Interval(low, high)))

    assert chances(one(0.5, 0.1, 0.4), one(0.55, 0.5, 0.6)) == ["within"]


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_an_interval_of_no_level_is_not_used(level):
    def one(value):
        return report(finding("c/x", value=value, interval=Interval(value, value, level)))

    assert chances(one(0.0), one(1.0)) == ["unknown"]


def test_rows_that_bear_the_same_name_are_not_mixed_up():
    columns = (Column("Group", "text"), Column("Rate", "percent"), Column("95 % interval", "interval"))
    row = ("a", 0.1, (0.0, 0.2))
    one = report(finding("c/x", evidence=(Table("T", columns, (row, row, ("b", *row[1:]))),)))
    assert [m.name for m in compare(one, one).measures] == ["b, Rate"]


# --- what else differs ------------------------------------------------------------------------------------------------


def test_reports_on_different_questions_are_refused():
    with pytest.raises(InputError, match="a binary task and the newer about a regression one"):
        compare(report(), report(subject={"task": "regression"}))
    with pytest.raises(InputError, match="the positive class is '1' in the older report and '0'"):
        compare(report(), report(subject={"positive": "0"}))


def test_what_is_no_report_is_refused_by_name(tmp_path):
    path = tmp_path / "r.json"
    report().to_json(path)
    assert compare(path, str(path)).counts == {}
    with pytest.raises(InputError, match="the newer report: the report cannot be read"):
        compare(path, tmp_path / "none.json")
    with pytest.raises(InputError, match="two findings with the id 'c/x'"):
        compare(report(finding("c/x"), finding("c/x")), report())


def test_what_a_reader_must_know_first_is_said():
    sensitive = [{"name": name, "groups": ["a"]} for name in ("sex", "race")]
    limit = {"name": "c.x", "unit": "points", "reason": "", "source": "", "by_user": True}
    old = report(
        finding("c/x", "fail", limit=0.05),
        subject={"sensitive": sensitive},
        complete=False,
        limits=({**limit, "value": 0.05},),
        timing={"effort": "quick"},
        environment={"aboveboard": "0.1.0", "numpy": "1"},
    )
    new = report(
        finding("c/x", limit=0.5),
        finding("d", status="error"),
        subject={"sensitive": sensitive[:1], "target": "z", "classes": ["no", "yes"], "positive": "yes", "rows": 7},
        limits=({**limit, "value": 0.5},),
        timing={"effort": "full"},
        environment={"aboveboard": "0.2.0", "numpy": "1"},
        seed=1,
    )
    comparison = compare(old, new)
    for words in (
        "older report was interrupted", "check d failed to run", "'y' in the older report and 'z'", "other labels",
        "Nobody looked at race", "other limits", "versions of aboveboard", "different efforts",
    ):  # fmt: skip
        assert any(words in warning for warning in comparison.warnings), words
    assert comparison.changes[0].other_limit
    assert [(d.name, d.old, d.new) for d in comparison.limits] == [("c.x", 0.05, 0.5)]
    assert {d.name for d in comparison.setting} == {"aboveboard", "seed", "effort"}
    assert {d.name for d in comparison.subject} == {"target", "classes", "positive", "rows", "sensitive: race"}
    assert [(c.check, c.old, c.new) for c in comparison.checks] == [("d", "not asked for", "error")]
    assert comparison.verdict.status == 4


def test_a_newer_report_that_is_not_complete_is_status_4_and_an_older_one_a_warning():
    assert compare(report(), report(complete=False)).verdict.status == 4
    assert compare(report(complete=False), report()).verdict.status == 0


def test_guarantees_that_came_went_or_broke_are_told():
    def guarantee(text, passed):
        return Certificate(kind="k", guarantee=text, assumptions=(Assumption("a", "checked", "t", 1.0, 2.0, passed),))

    old = report(certificates=(guarantee("kept", True), guarantee("broken", True), guarantee("gone", True)))
    new = report(certificates=(guarantee("kept", True), guarantee("broken", False)))
    assert [(d.name, d.old, d.new) for d in compare(old, new).certificates] == [
        ("broken", "holds", "does not hold"),
        ("gone", "holds", None),
    ]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "id", "value"]), inner),
    max_leaves=5,
)


_PARTS = ("subject", "limits", "accepted", "environment", "timing", "certificates")
_FACTS = ("features", "sensitive", "rows", "classes", "reference_groups")


@given(st.dictionaries(st.sampled_from(_PARTS), _json), st.dictionaries(st.sampled_from(_FACTS), _json))
def test_a_file_that_somebody_broke_is_refused_or_compared(broken, subject):
    whole = report(finding("c/x", "fail"), subject={"sensitive": [{"name": "sex", "groups": ["a"]}]}).to_dict()
    data = {**whole, "subject": {**whole["subject"], **subject}, **broken}
    try:
        comparison = compare(report(), Report.from_json(json.dumps(data)))
    except InputError:
        return
    comparison.to_markdown()
    comparison.to_html()


def test_acceptances_that_came_and_went_are_told():
    def accepted(name, **more):
        return {"id": name, "reason": f"why {name}", "expires": None, "in_force": True, "found": True, **more}

    old = report(finding("c/x", "fail"), accepted=(accepted("c/x"), accepted("c/z", in_force=False)))
    new = report(finding("c/x", "fail"), finding("c/y", "fail"), accepted=(accepted("c/y"),))
    comparison = compare(old, new)
    assert [(d.name, d.old, d.new) for d in comparison.accepted] == [
        ("c/x", "why c/x", None),
        ("c/y", None, "why c/y"),
    ]
    assert {c.finding.id: c.accepted for c in comparison.changes} == {"c/x": False, "c/y": True}
    assert comparison.verdict.status == 0


def test_real_audits_compare():
    rng = np.random.default_rng(0)
    score, sex = rng.random(300).round(3), rng.choice(["f", "m"], 300)
    y = (rng.random(300) < score).astype(int)
    X = {"x": score, "sex": sex, "y": y, "p": score}

    def audit(frame):
        return aboveboard.audit(
            None, frame, "y", predictions="p", sensitive_features=["sex"], only=["performance", "group_fairness"],
            effort="quick", show_progress=False,
        )  # fmt: skip

    import pandas as pd

    old = audit(pd.DataFrame(X))
    new = audit(pd.DataFrame({**X, "p": np.where(sex == "f", score / 4, score)}))
    comparison = aboveboard.compare(old, new)
    assert kinds(comparison)["group_fairness/selection_rate/sex"] in ("worse", "better", "unchanged")
    assert {m.name for m in comparison.measures} >= {"AUC", "sex=f, Selection rate"}
    again = aboveboard.compare(Report.from_json(old.to_json()), Report.from_json(new.to_json()))
    assert again.to_json() == comparison.to_json()


def test_reports_of_different_suites_are_not_compared():
    with pytest.raises(InputError, match="of the suite tabular and the newer of the suite ranking"):
        compare(report(), report(subject={"suite": "ranking"}))


def test_facts_of_a_suite_that_changed_are_told():
    old, new = (
        Report(subject={"suite": "ranking", "facts": [{"name": "Items", "value": n}]}, findings=()) for n in (7, 8)
    )
    (difference,) = compare(old, new).subject
    assert (difference.name, difference.old, difference.new) == ("Items", 7, 8)
