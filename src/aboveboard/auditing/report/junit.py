"""The report as JUnit XML: one test case per finding, for the dashboards of CI systems."""

from typing import Final
from xml.etree import ElementTree

from aboveboard.auditing.report.view import MARKS, amount, clean, headline, verdict
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report

__all__ = ["render_junit"]

_SKIPPED: Final = ("inconclusive", "skipped", "not_applicable")


def render_junit(report: Report) -> str:
    """Return `report` as JUnit XML.

    A failure is a failure, a check that raised an error. Inconclusive findings, accepted failures and checks that did
    not run are skipped, each with its reason; a warning passes and says so in its output.
    """
    suites = ElementTree.Element("testsuites", name="aboveboard")
    suite = ElementTree.SubElement(suites, "testsuite", name="aboveboard audit")
    cases = [_case(suite, finding, report) for finding in (*report.findings, *report.not_run)]
    numbers = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    for element in (suites, suite):
        element.attrib.update({name: str(n) for name, n in numbers.items()})
    del suites.attrib["skipped"]  # the schema has it for a suite alone
    if "seconds" in report.timing:
        suite.set("time", f"{report.timing['seconds']:.3f}")
    if "begun" in report.timing:
        suite.set("timestamp", clean(report.timing["begun"])[:19])
    answer = headline(report)
    ElementTree.SubElement(suite, "system-out").text = clean(f"{answer.title}. {answer.sentence}")
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, finding: Finding, report: Report) -> ElementTree.Element:
    case = ElementTree.SubElement(
        suite, "testcase", classname=clean(f"aboveboard.{finding.area}.{finding.check}"), name=clean(finding.id)
    )
    says = clean(finding.statement)
    more = clean("; ".join(filter(None, (amount(finding, report).sureness, finding.reason))))
    name = verdict(finding)
    if finding.id in report.accepted_ids and name == "fail":
        ElementTree.SubElement(case, "skipped", message=f"accepted: {says}")
    elif name == "fail":
        ElementTree.SubElement(case, "failure", message=says, type="fail").text = more
    elif name == "error":
        ElementTree.SubElement(case, "error", message=clean(finding.reason) or says, type="error").text = says
    elif name in _SKIPPED:
        ElementTree.SubElement(case, "skipped", message=f"{MARKS[name].word.lower()}: {says} {more}".strip())
    else:
        ElementTree.SubElement(case, "system-out").text = f"{MARKS[name].word}: {says} {more}".strip()
    return case
