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
_SPECS: Final = {spec.name: spec for spec in all_checks()}
_KINDS: Final[dict[Verdict, tuple[str, str]]] = {
    "fail": ("fail", "error"),
    "warn": ("fail", "warning"),
    "note": ("fail", "note"),
    "inconclusive": ("open", "none"),
    "ok": ("pass", "none"),
    "not_applicable": ("notApplicable", "none"),
}


def render_sarif(report: Report) -> str:
    """Return `report` as SARIF: a rule per check, a result per finding, and a notification where a check did not run.

    Results stand at a logical place (the group, or the check), since no file is to blame. Accepted findings are
    suppressed, with the reason.
    """
    given = [*report.findings, *report.not_run]
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
                "results": [_result(f, report, names) for f in given if verdict(f) in _KINDS],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rule(name: str, given: list[Finding]) -> dict[str, Any]:
    spec = _SPECS.get(name)
    area = spec.area if spec else next(f.area for f in given if f.check == name)
    rule: dict[str, Any] = {"id": clean(name), "properties": {"tags": [clean(AREAS.get(area, area))]}}
    if spec:
        rule |= {"shortDescription": {"text": spec.title}, "fullDescription": {"text": spec.question}}
    return rule


def _result(finding: Finding, report: Report, names: list[str]) -> dict[str, Any]:
    kind, level = _KINDS[verdict(finding)]
    text = " ".join(filter(None, (finding.statement, amount(finding, report).sureness)))
    result: dict[str, Any] = {
        "ruleId": clean(finding.check),
        "ruleIndex": names.index(finding.check),
        "kind": kind,
        "level": level,
        "message": {"text": _message(text) or _message(finding.id)},
        "locations": [
            {
                "logicalLocations": [
                    {"fullyQualifiedName": clean(finding.id), "name": clean(finding.group or finding.check)}
                ]
            }
        ],
        "partialFingerprints": {
            "findingId/v1": hashlib.sha256(finding.id.encode("utf-8", "surrogatepass")).hexdigest()
        },
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
