"""The report as SARIF 2.1.0, the exchange format of static analysis tools.

References
----------
OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import hashlib
import json
import re
from typing import Any, Final

from aboveboard.auditing.report.view import Verdict, amount, clean, verdict
from aboveboard.auditing.suites import AREAS, all_checks
from aboveboard.core.finding import Finding, plain
from aboveboard.core.report import Report

__all__ = ["render_sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HELP: Final = (
    "The report (index.html and report.json, at the line of this result) shows the evidence, how sure it is, and "
    "methods that can mend it; 'aboveboard audit --list-checks' names the limits."
)
_SPECS: Final = {spec.name: spec for spec in all_checks()}
_KINDS: Final[dict[Verdict, tuple[str, str]]] = {
    "fail": ("fail", "error"),
    "warn": ("fail", "warning"),
    "note": ("fail", "note"),
    "inconclusive": ("open", "none"),
}


def render_sarif(report: Report) -> str:
    """Return `report` as SARIF: a rule per check, a result per finding, and a notification where a check did not run.

    Findings that are OK give no result, for code-scanning services show every result as a problem, whatever its kind.
    No source file is to blame, and such services refuse a result without one, so that each stands at its line of
    ``report.json``, and at a logical place (the group, or the check). Accepted findings are suppressed, with their
    reasons.
    """
    given = [*report.findings, *report.not_run]
    lines = _lines(report)
    names = [name for name in _SPECS if any(f.check == name for f in given)]
    names += sorted({f.check for f in given} - set(names))
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "aboveboard",
                        "version": clean(report.environment.get("aboveboard", "0")),
                        "rules": [_rule(name, given) for name in names],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": report.complete and not any(f.status == "error" for f in report.not_run),
                        "toolExecutionNotifications": [
                            _notification(f, names) for f in report.not_run if f.status in ("error", "skipped")
                        ],
                    }
                ],
                "results": [
                    _result(f, report, names, line)
                    for f, line in zip(given, lines, strict=True)
                    if verdict(f) in _KINDS
                ],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rule(name: str, given: list[Finding]) -> dict[str, Any]:
    spec = _SPECS.get(name)
    area = spec.area if spec else next(f.area for f in given if f.check == name)
    title, question = (spec.title, spec.question) if spec else (_message(name) or "Check", _message(name) or "Check")
    return {
        "id": clean(name),
        "shortDescription": {"text": title},
        "fullDescription": {"text": question},
        "help": {"text": f"{question} {_HELP}"},
        "properties": {"tags": [clean(AREAS.get(area, area))]},
    }


def _lines(report: Report) -> list[int]:
    """Return the line of ``report.json`` at which each finding begins, those that did not run at the end."""
    begins = [at for at, line in enumerate(report.to_json().split("\n"), 1) if line.startswith('   "id": ')]
    return begins[: len(report.findings) + len(report.not_run)]


def _result(finding: Finding, report: Report, names: list[str], line: int) -> dict[str, Any]:
    kind, level = _KINDS[verdict(finding)]
    fingerprint = hashlib.sha256(finding.id.encode("utf-8", "surrogatepass")).hexdigest()
    text = " ".join(filter(None, (finding.statement, amount(finding, report).sureness)))
    result: dict[str, Any] = {
        "ruleId": clean(finding.check),
        "ruleIndex": names.index(finding.check),
        "kind": kind,
        "level": level,
        "message": {"text": _message(text) or _message(finding.id)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "report.json"}, "region": {"startLine": line}},
                "logicalLocations": [
                    {"fullyQualifiedName": clean(finding.id), "name": clean(finding.group or finding.check)}
                ],
            }
        ],
        # Services tell one alert from another by the second, which would else be made of a line in a file.
        "partialFingerprints": {"findingId/v1": fingerprint, "primaryLocationLineHash": f"{fingerprint[:16]}:1"},
        "properties": {
            "status": finding.status,
            "reason": clean(finding.reason),
            "value": plain(finding.value),
            "limit": plain(finding.limit),
            "n": plain(finding.n),
            "remedies": [clean(name) for name in finding.remedies],
        },
    }
    suppressions = [
        {
            "kind": "external",
            "status": "accepted" if entry.get("in_force", True) else "rejected",
            "justification": clean(entry["reason"]),
        }
        for entry in report.accepted
        if entry["id"] == finding.id
    ]
    return result | ({"suppressions": suppressions} if suppressions else {})


def _notification(finding: Finding, names: list[str]) -> dict[str, Any]:
    return {
        "level": "error" if finding.status == "error" else "note",
        "message": {"text": _message(finding.reason or finding.statement)},
        "associatedRule": {"id": clean(finding.check), "index": names.index(finding.check)},
    }


def _message(text: str) -> str:
    """Return `text` without what SARIF reads as an embedded link or a placeholder (sections 3.11.5, 3.11.6)."""
    safe = re.sub(r"\[(?=[^\]]*\]\()", r"\\[", clean(text))
    return re.sub(r"\{(?=\d+\})", "{{", re.sub(r"(?<=\{)(\d+)\}", r"\1}}", safe))
