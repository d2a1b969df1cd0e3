"""The report as GitHub workflow commands: annotations on the run, worst first."""

from typing import Final

from aboveboard.auditing.report.view import VERDICTS, Verdict, amount, clean, families, headline, shorten, verdict
from aboveboard.auditing.suites import AREAS
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report

__all__ = ["render_annotations"]

_COMMANDS: Final[dict[Verdict, str]] = {
    "fail": "error",
    "error": "error",
    "warn": "warning",
    "inconclusive": "notice",
    "note": "notice",
}


def render_annotations(report: Report) -> str:
    """Return one workflow command with the answer, and one per finding that says something, worst first.

    GitHub shows ten annotations of each level per step, so that single groups come after all other findings.

    Failures and checks that raised are errors, warnings are warnings; notes, inconclusive and accepted findings are
    notices. Findings that are OK and checks that did not run give none.
    """
    findings = [f for f in (*report.findings, *report.not_run) if verdict(f) in _COMMANDS]
    groups = {finding.id for family in families(report.findings) for finding in family.groups}
    findings.sort(key=lambda finding: (VERDICTS.index(verdict(finding)), finding.id in groups))
    answer = headline(report)
    lines = [_command("notice", "aboveboard audit", f"{answer.title}. {answer.sentence}")]
    lines += [_annotation(finding, report) for finding in findings]
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding, report: Report) -> str:
    accepted = finding.id in report.accepted_ids
    parts = [finding.reason if finding.status == "error" else finding.statement]
    sureness = amount(finding, report).sureness
    if sureness:
        parts.append(f"({sureness})")
    if accepted:
        parts.append("Accepted.")
    command = "notice" if accepted else _COMMANDS[verdict(finding)]
    return _command(command, AREAS.get(finding.area, finding.area), shorten(clean(" ".join(parts)), 1000))


def _command(command: str, title: str, message: str) -> str:
    """Return ``::command title=...::message``; the runner reads what is percent-encoded back."""
    data = clean(message).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = clean(title).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{command} title={name.replace(':', '%3A').replace(',', '%2C')}::{data}"
