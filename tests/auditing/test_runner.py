import datetime as dt
import json
import signal
import sys
import threading
import time
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.runner import audit, run_checks
from aboveboard.auditing.subject import make_subject
from aboveboard.auditing.suites import CheckSpec
from aboveboard.core.errors import InputError, ModelError
from aboveboard.core.finding import SUPPRESSED, Column, Finding, Interval, Table

N = 50
X = pd.DataFrame({"a": np.arange(N), "p": np.linspace(0, 1, N), "sex": ["F", "M"] * (N // 2)})
Y = [0, 1] * (N // 2)


def finding(spec="one", id="one/m", **changes):
    return Finding(**({"id": id, "check": spec, "area": "data", "statement": "It is so."} | changes))


@pytest.fixture
def check(monkeypatch):
    """Register a check for this test: check("one", function, **spec) returns its spec."""

    def register(name, function, **spec):
        module = types.ModuleType(f"aboveboard.auditing.checks.{name}")
        module.check = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return CheckSpec(
            **({"name": name, "area": "data", "title": name.title(), "question": "?", "cost": "light"} | spec)
        )

    return register


def subject(**options):
    return make_subject(None, X, Y, **({"predictions": "p", "sensitive_features": "sex"} | options))


def run(*specs, on=None, **options):
    return run_checks(on or subject(), specs, show_progress=False, **options)


def always(*findings):
    return lambda subject, *, random_state, effort: list(findings)


# --- what becomes of a check ------------------------------------------------------------------------------------------


def test_findings_are_gathered_worst_first(check):
    found = [
        finding(id="one/a"), finding(id="one/b", severity="fail"), finding(id="one/c", status="inconclusive"),
        finding(id="one/d", severity="warn"), finding(id="one/e", status="skipped", reason="r"),
    ]  # fmt: skip
    report = run(check("one", always(*found)))
    assert [f.id for f in report.findings] == ["one/b", "one/d", "one/c", "one/a"]
    assert [f.id for f in report.not_run] == ["one/e"]
    assert report.complete


def test_a_check_that_raises_is_an_error_and_the_others_still_run(check, caplog):
    def broken(subject, *, random_state, effort):
        raise ZeroDivisionError("by\nzero")

    report = run(check("one", broken), check("two", always(finding("two", "two/m"))))
    assert [f.id for f in report.findings] == ["two/m"]
    (error,) = report.not_run
    assert (error.status, error.reason) == ("error", "The check raised ZeroDivisionError: by")
    assert "The check one failed." in caplog.text


def test_a_check_that_runs_out_of_memory_is_an_error(check):
    def hungry(subject, *, random_state, effort):
        raise MemoryError

    assert "ran out of memory" in run(check("one", hungry)).not_run[0].reason


def test_a_model_that_fails_in_a_check_stops_the_audit(check):
    def asks(subject, *, random_state, effort):
        raise ModelError("the model ran out of memory")

    with pytest.raises(ModelError, match="memory"):
        run(check("one", asks))


@pytest.mark.parametrize(
    ("findings", "message"),
    [
        ([finding(), finding()], "two findings have the id 'one/m'"),
        ([finding("other")], "names the check 'other'"),
        ([finding(area="model")], "the area 'model'"),
    ],
)
def test_a_check_that_breaks_its_contract_is_an_error(check, findings, message):
    assert message in run(check("one", always(*findings))).not_run[0].reason


@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        ({"needs": frozenset({"sensitive"})}, {"sensitive_features": None}, "--sensitive"),
        ({"needs": frozenset({"score"})}, {"predictions": Y}, "labels"),
        ({"needs": frozenset({"model"})}, {}, "needs the model"),
        ({"needs": frozenset({"train"})}, {}, "--train"),
        ({"tasks": frozenset({"regression"})}, {}, "Not for binary tasks"),
    ],
)
def test_a_check_that_lacks_something_does_not_apply(check, spec, options, reason):
    (silent,) = run(check("one", None, **spec), on=subject(**options)).not_run
    assert silent.status == "not_applicable"
    assert reason in silent.reason


def test_a_row_cap_draws_rows_and_says_so(check):
    seen = []

    def counts(subject, *, random_state, effort):
        seen.append((len(subject), effort))
        return []

    spec = check("one", counts, row_cap=(20, 40, None))
    assert run(spec, effort="quick").notes[-1] == "One: 20 of 50 rows, drawn at random (effort quick)."
    run(spec)
    assert not any("drawn" in note for note in run(spec, effort="full").notes)
    assert seen == [(20, "quick"), (40, "standard"), (50, "full")]


def test_the_seed_of_a_check_depends_on_its_name_and_not_on_its_neighbours(check):
    seeds = {}

    def keeps(name):
        def function(subject, *, random_state, effort):
            seeds.setdefault(name, []).append(random_state)
            return []

        return function

    one, two = check("one", keeps("one")), check("two", keeps("two"))
    run(one, two)
    run(two)
    run(one, random_state=1)
    assert seeds["two"][0] == seeds["two"][1]
    assert len({seeds["one"][0], seeds["one"][1], seeds["two"][0]}) == 3


# --- small cells ------------------------------------------------------------------------------------------------------


def test_figures_on_few_people_are_taken_out_whatever_the_check_lets_through(check):
    table = Table("t", (Column("group", "text"), Column("n", "count"), Column("rate", "percent")),
                  (("a", 9, 0.5), ("b", 10, 0.5), ("c", 0, None)))  # fmt: skip
    found = finding(
        group="sex=F", n=9, value=0.5, interval=Interval(0.1, 0.9), severity="fail", limit=0.1, evidence=(table,)
    )
    (guarded,) = run(check("one", always(found))).findings
    assert (guarded.value, guarded.interval, guarded.n, guarded.severity) == (None, None, None, "note")
    assert guarded.tables[0].rows == (("a", SUPPRESSED, SUPPRESSED), ("b", 10, 0.5), ("c", 0, None))
    (kept,) = run(check("one", always(replace(found, n=10)))).findings
    assert (kept.value, kept.n, kept.severity) == (0.5, 10, "fail")


def test_the_smallest_cell_can_be_set(check):
    found = finding(group="sex=F", n=9, value=0.5)
    assert run(check("one", always(found)), on=subject(min_cell=9)).findings[0].value == 0.5


# --- interrupts and several jobs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupt_keeps_what_was_found_and_says_what_is_missing(check, n_jobs, caplog):
    first_ended, released = threading.Event(), threading.Event()

    def first(subject, *, random_state, effort):
        first_ended.set()
        return [finding()]

    def presses_ctrl_c(subject, *, random_state, effort):
        first_ended.wait(10)
        time.sleep(0.2)  # until the result of the first has been put away
        signal.raise_signal(signal.SIGINT)
        released.wait(10)
        return []

    report = run(check("one", first), check("two", presses_ctrl_c), on=subject(n_jobs=n_jobs))
    released.set()
    assert not report.complete
    assert [f.id for f in report.findings] == ["one/m"]
    assert [(f.id, f.status) for f in report.not_run] == [("two", "skipped")]
    assert "Interrupted after 1 of 2 checks" in caplog.text


def test_several_jobs_give_the_same_report(check):
    specs = [check(name, always(finding(name, name))) for name in ("one", "two", "three")]
    alone, together = (run(*specs, on=subject(n_jobs=n)).to_dict() for n in (None, 3))
    assert alone | {"timing": None} == together | {"timing": None}


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_report_lists_the_limits_of_the_checks_that_ran_only():
    report = audit(None, X, Y, predictions="p", only="group_fairness", sensitive_features="sex", show_progress=False)
    assert report.limits
    assert {limit["name"].partition(".")[0] for limit in report.limits} == {"group_fairness"}


def test_the_same_inputs_give_the_same_bytes_apart_from_times():
    options = {"predictions": "p", "sensitive_features": "sex", "only": "fairness", "show_progress": False}
    first, second = (json.loads(audit(None, X, Y, **options).to_json()) for _ in range(2))
    del first["timing"], second["timing"]
    assert first == second


def test_the_environment_holds_versions_and_no_names():
    report = audit(None, X, Y, predictions="p", only="column_health", show_progress=False)
    assert report.environment["aboveboard"] == aboveboard.__version__
    assert report.environment["pandas"] == pd.__version__
    assert all("/" not in value for value in report.environment.values())


TODAY = dt.datetime.now(dt.UTC).date()


@pytest.mark.parametrize(
    ("expires", "in_force"),
    [
        (None, True),
        (TODAY, True),
        (TODAY - dt.timedelta(days=1), False),
        (str(TODAY - dt.timedelta(days=1)), False),
        (dt.datetime.combine(TODAY, dt.time()), True),
    ],
)
def test_an_acceptance_is_in_force_until_it_expires(expires, in_force):
    entry = {"id": "column_health", "reason": "We know."} | ({} if expires is None else {"expires": expires})
    report = audit(None, X, Y, predictions="p", only="column_health", accept=[entry], show_progress=False)
    assert report.accepted[0]["in_force"] is in_force
    json.dumps(report.accepted)


def test_an_acceptance_of_something_that_was_not_found_is_marked(check):
    accepted = ({"id": "one/m", "in_force": True}, {"id": "zzz", "in_force": True})
    report = run(check("one", always(finding())), accepted=accepted)
    assert [entry["found"] for entry in report.accepted] == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "huge"}, "quick, standard, full"),
        ({"only": "nothing"}, "no check or area"),
        ({"skip": ["nothing"]}, "no check or area"),
        ({"random_state": -1}, "0 or more"),
        ({"random_state": 0.5}, "whole number"),
        ({"random_state": None}, "whole number"),
        ({"accept": [{"id": "a"}]}, "id and reason"),
        ({"accept": [{"id": "", "reason": "r"}]}, "id and reason"),
        ({"accept": [{"id": "a", "reason": "  "}]}, "id and reason"),
        ({"accept": [{"id": "a", "reason": "r", "until": 1}]}, "id, reason, until"),
        ({"accept": [{"id": "a", "reason": "r", "expires": "soon"}]}, "YYYY-MM-DD"),
        ({"accept": [{"id": "a", "reason": "r", "expires": 2027}]}, "YYYY-MM-DD"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        audit(None, X, Y, predictions="p", show_progress=False, **options)
