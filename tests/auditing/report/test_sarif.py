"""SARIF 2.1.0: what the standard asks of a log, a run, a rule and a result."""

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import jsonschema

from aboveboard.auditing.report.view import clean
from aboveboard.core.report import renderers

# The schema as it is shipped, under the MIT licence, with Microsoft's SARIF Multitool 5.7.0.
_SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text(encoding="utf-8"))
_VALIDATOR = jsonschema.Draft202012Validator(_SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def _run(report):
    log = json.loads(renderers["sarif"](report).encode("utf-8"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    return run


def test_every_result_names_its_rule_by_id_and_place(report):
    run = _run(report)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]


def test_levels_and_kinds_go_together_as_the_standard_says(report):
    found = {
        r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: (r["kind"], r["level"])
        for r in _run(report)["results"]
    }
    assert found == {
        "group_fairness/selection_rate/sex=Female": ("fail", "error"),
        "sensitive_proxies/sex": ("fail", "warning"),
        "group_fairness/tpr/race=Other": ("open", "none"),
        "calibration/ece": ("fail", "note"),
        "duplicates/rows": ("fail", "warning"),
    }
    assert all(kind == "fail" or level == "none" for kind, level in found.values())


def test_a_check_that_raised_is_a_notification_of_an_unsuccessful_run(report):
    (invocation,) = _run(report)["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [(n["level"], n["associatedRule"]["id"]) for n in invocation["toolExecutionNotifications"]] == [
        ("error", "model_inputs"),
        ("note", "model_outputs"),
    ]


def test_accepted_findings_are_suppressed_with_the_reason(report):
    suppressed = [r for r in _run(report)["results"] if "suppressions" in r]
    assert [r["ruleId"] for r in suppressed] == ["duplicates"]
    assert suppressed[0]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "Known: Female"}
    ]


def test_fingerprints_are_hashes_of_the_stable_ids(report):
    result = _run(report)["results"][0]
    wanted = hashlib.sha256(b"group_fairness/selection_rate/sex=Female").hexdigest()
    assert result["partialFingerprints"] == {
        "findingId/v1": wanted,
        "primaryLocationLineHash": f"{wanted[:16]}:1",
    }


def test_every_result_stands_at_the_line_of_report_json_where_its_finding_begins(make_report, hostile_name):
    report = make_report(hostile_name)
    lines = report.to_json().split("\n")
    for result in _run(report)["results"]:
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "report.json"}
        found = json.loads("{" + lines[place["region"]["startLine"] - 1].rstrip(",") + "}")["id"]
        assert clean(found) == location["logicalLocations"][0]["fullyQualifiedName"]


def test_every_rule_describes_itself_and_offers_help(report):
    unknown = dataclasses.replace(report.findings[0], id="other", check="other", area="other")
    for rule in _run(dataclasses.replace(report, findings=(unknown, *report.findings)))["tool"]["driver"]["rules"]:
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))


def test_it_is_valid_by_the_schema_of_the_standard(make_report, hostile_name):
    log = json.loads(renderers["sarif"](make_report(hostile_name)))
    assert [error.message for error in _VALIDATOR.iter_errors(log)] == []


def test_the_validator_finds_fault(report):
    log = json.loads(renderers["sarif"](report))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert [error.message for error in _VALIDATOR.iter_errors(log)]


def test_a_hostile_name_is_no_link_and_no_placeholder(make_report, hostile_name):
    run = _run(make_report(hostile_name))
    for result in run["results"]:
        text = result["message"]["text"]
        assert text
        assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", text)
        assert not re.search(r"(?<!\{)\{\d+\}(?!\})", text)
    place = run["results"][0]["locations"][0]["logicalLocations"][0]
    assert place["name"] == f"sex={clean(hostile_name)}"
