"""The gate: what a report means for the exit status, so that a pipeline can stop on it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from aboveboard.core.finding import SEVERITIES, Finding, Severity
from aboveboard.core.report import Report

__all__ = ["ERROR", "FAILED", "INTERRUPTED", "MODEL", "PASSED", "USAGE", "Verdict", "judge", "rank"]

PASSED: Final = 0
FAILED: Final = 1
USAGE: Final = 2
MODEL: Final = 3
ERROR: Final = 4
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a report.

    Parameters
    ----------
    status : int
        The exit status: 130 interrupted, else 4 a check failed to run, else 1 something counts, else 0.
    counted : tuple of Finding
        Why the status is 1.
    notes : tuple of str
        What the user should be told on standard error.
    """

    status: int
    counted: tuple[Finding, ...]
    notes: tuple[str, ...]


def judge(
    report: Report,
    *,
    fail_on: Literal["note", "warn", "fail"] = "fail",
    strict: bool = False,
    baseline: Report | None = None,
) -> Verdict:
    """Return the exit status that a report calls for.

    Parameters
    ----------
    report : Report
    fail_on : {"note", "warn", "fail"}
        A finding counts at this severity and above.
    strict : bool
        Findings that are inconclusive, and checks that were skipped, count too.
    baseline : Report, optional
        An earlier report: what it had already, at the same severity or a worse one, does not count.

    Notes
    -----
    A finding whose acceptance is in force never counts. A check that failed to run (status 4) cannot be excused by a
    baseline: nobody knows what it would have found.
    """
    counted = [finding for finding in _candidates(report, fail_on, strict) if finding.id not in report.accepted_ids]
    notes = list(_acceptance_notes(report))
    if baseline is not None:
        notes += _baseline_notes(report, baseline)
        known = _known(baseline)
        new = [finding for finding in counted if rank(finding) > known.get(finding.id, -1.0)]
        if len(new) < len(counted):
            notes.append(f"{_count(len(counted) - len(new), 'finding')} stood in the baseline already.")
        counted = new
    broken = [finding for finding in report.not_run if finding.status == "error"]
    notes += [f"The check {finding.check} failed to run: {finding.reason}" for finding in broken]
    if not report.complete:
        return Verdict(INTERRUPTED, tuple(counted), tuple(notes))
    status = ERROR if broken else FAILED if counted else PASSED
    return Verdict(status, tuple(counted), tuple(notes))


def _candidates(report: Report, fail_on: Severity, strict: bool) -> Iterable[Finding]:
    least = SEVERITIES.index(fail_on)
    for finding in report.findings:
        if SEVERITIES.index(finding.severity) >= least or (strict and finding.status == "inconclusive"):
            yield finding
    if strict:
        yield from (finding for finding in report.not_run if finding.status == "skipped")


def _known(baseline: Report) -> dict[str, float]:
    return {finding.id: rank(finding) for finding in (*baseline.findings, *baseline.not_run)}


def rank(finding: Finding) -> float:
    """Return how bad a finding is; not to know lies between a note and a warning."""
    if finding.status in ("inconclusive", "skipped"):
        return 1.5
    return float(SEVERITIES.index(finding.severity))


def _acceptance_notes(report: Report) -> Iterable[str]:
    for entry in report.accepted:
        if not entry.get("found", True):
            yield f"The accepted finding {entry['id']!r} was not found: remove it from the config."
        elif not entry.get("in_force", True):
            yield f"The acceptance of {entry['id']!r} expired on {entry.get('expires')}, so it counts again."


def _baseline_notes(report: Report, baseline: Report) -> Iterable[str]:
    for name in ("suite", "task", "target"):
        default = "tabular" if name == "suite" else None  # what reports said nothing of before there were suites
        old, new = baseline.subject.get(name, default), report.subject.get(name, default)
        if old != new:
            yield f"The baseline has another {name}: {old!r}, and this audit {new!r}."
    if not baseline.complete:
        yield "The baseline was interrupted, so it lacks checks."
    old_limits = {limit.get("name"): limit.get("value") for limit in baseline.limits}
    changed = [
        str(limit["name"])
        for limit in report.limits
        if limit["name"] in old_limits and old_limits[limit["name"]] != limit["value"]
    ]
    if changed:
        yield f"The baseline was judged by other limits: {', '.join(changed)}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
