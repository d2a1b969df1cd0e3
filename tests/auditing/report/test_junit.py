"""JUnit: a test case per finding."""

from xml.etree import ElementTree

from aboveboard.auditing.report.view import clean
from aboveboard.core.report import renderers


def _suite(report):
    root = ElementTree.fromstring(renderers["junit"](report).encode("utf-8"))
    return root, root.find("testsuite")


def test_it_counts_what_it_holds(report):
    root, suite = _suite(report)
    wanted = {"tests": "10", "failures": "1", "errors": "1"}
    assert {name: root.get(name) for name in set(root.keys()) - {"name"}} == wanted
    assert {name: suite.get(name) for name in (*wanted, "skipped")} == {**wanted, "skipped": "3"}


def test_each_finding_is_a_test_case_with_its_outcome(report):
    cases = {case.get("name"): case for case in _suite(report)[1].findall("testcase")}
    outcomes = {name: next(child.tag for child in case) for name, case in cases.items()}
    assert outcomes == {
        "group_fairness/selection_rate/sex=Female": "failure",
        "group_fairness/selection_rate/sex=Male": "system-out",
        "sensitive_proxies/sex": "system-out",
        "group_fairness/tpr/race=Other": "skipped",
        "calibration/ece": "system-out",
        "performance/auc": "system-out",
        "duplicates/rows": "system-out",
        "shared_rows": "skipped",
        "model_inputs": "error",
        "model_outputs": "skipped",
    }
    failing = cases["group_fairness/selection_rate/sex=Female"]
    assert failing.get("classname") == "aboveboard.fairness.group_fairness"
    assert "95\u00a0% simultaneous interval" in failing.find("failure").text


def test_an_accepted_failure_is_skipped(report):
    import dataclasses

    entry = {"id": report.findings[0].id, "reason": "known", "expires": None, "in_force": True}
    suite = _suite(dataclasses.replace(report, accepted=(entry,)))[1]
    assert suite.get("failures") == "0"
    assert suite.find("testcase/skipped").get("message").startswith("accepted: ")


def test_a_hostile_name_leaves_the_file_well_formed_and_is_read_back(make_report, hostile_name):
    suite = _suite(make_report(hostile_name))[1]
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names[0] == f"group_fairness/selection_rate/sex={clean(hostile_name)}"
