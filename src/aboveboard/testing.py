"""Audits among the tests: assertions that fail with the findings that count, in words, with what can mend them.

Example of a test, for pytest or any other runner::

    from aboveboard.testing import assert_no_findings

    def test_the_model_treats_its_groups_alike(model, X_test, y_test):
        assert_no_findings(model, X_test, y_test, sensitive_features=["sex"], only="fairness")
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from aboveboard.auditing import gate
from aboveboard.auditing.comparison import Change, Comparison, compare
from aboveboard.auditing.report.view import MARKS, amount, clean, families, shorten, verdict
from aboveboard.auditing.suites import select
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report

__all__ = ["assert_no_findings", "assert_no_worse"]

_FailOn = Literal["note", "warn", "fail"]
_MOST: Final = 20  # findings that a message tells


def assert_no_findings(
    report_or_model: Any,
    X: Any = None,
    y: Any = None,
    *,
    fail_on: _FailOn = "fail",
    strict: bool = False,
    only: str | Sequence[str] | None = None,
    skip: str | Sequence[str] | None = None,
    accept: Sequence[Mapping[str, Any]] = (),
    baseline: Report | str | Path | None = None,
    **audit_options: Any,
) -> Report:
    """Assert that an audit finds nothing that counts, and return its report.

    Parameters
    ----------
    report_or_model : Report, path of a report.json, or what `aboveboard.audit` takes as `model`
        With `X`, a model is audited (None where `predictions` are given); without it, this is the report.
    X, y : optional
        The data, as for `aboveboard.audit`.
    fail_on : {"note", "warn", "fail"}
        A finding counts at this severity and above.
    strict : bool
        Findings that are inconclusive, and checks that were skipped, count too.
    only, skip : str or list of str, optional
        Names of checks or areas. Of a report, the others are not looked at.
    accept : list of dict
        Findings that do not count: ``{"id": ..., "reason": ..., "expires": date}``, the date optional.
    baseline : Report or path of a report.json, optional
        Only what is new or worse than there counts.
    **audit_options
        What else `aboveboard.audit` takes, such as ``sensitive_features=["sex"]``.

    Raises
    ------
    AssertionError
        With each finding that counts: what it says, how sure it is, and which methods can mend it. Also when a check
        failed to run, and when the report is of an audit that was interrupted: nobody knows what else there is.
    InputError
        When something cannot be used as given.

    Examples
    --------
    >>> from aboveboard.core import Finding, Report
    >>> about = {"id": "calibration/ece", "check": "calibration", "area": "performance", "statement": "Scores are off."}
    >>> report = Report(subject={"task": "binary"}, findings=(Finding(**about, severity="fail"),))
    >>> from aboveboard.testing import assert_no_findings
    >>> assert_no_findings(report, skip="calibration").worst
    'fail'
    >>> assert_no_findings(report)
    Traceback (most recent call last):
    ...
    AssertionError: 1 finding counts (fail_on="fail"):
    <BLANKLINE>
    ✖ Fail  calibration/ece
        Scores are off.
    <BLANKLINE>
    What somebody decided to live with: accept=[{"id": "calibration/ece", "reason": "..."}]
    """
    __tracebackhide__ = True
    only, skip = _names(only), _names(skip)
    checks = {spec.name for spec in select(only, skip)}
    if X is not None:
        from aboveboard.auditing.runner import audit

        report = audit(report_or_model, X, y, only=only, skip=skip, accept=accept, **audit_options)
        looked_at = report
    else:
        if y is not None or audit_options:
            given = "y" if y is not None else next(iter(audit_options))
            raise InputError(f"{given} was given and no X", expected="a report alone, or a model with X and y")
        report = _report(report_or_model)
        looked_at = _accepting(report, accept)
        if only or skip:
            looked_at = replace(
                looked_at,
                findings=tuple(finding for finding in report.findings if finding.check in checks),
                not_run=tuple(finding for finding in report.not_run if finding.check in checks),
            )
    known = None if baseline is None else _report(baseline)
    result = gate.judge(looked_at, fail_on=fail_on, strict=strict, baseline=known)
    if result.status != gate.PASSED:
        raise AssertionError(_message(looked_at, result, fail_on, strict=strict, baseline=known is not None))
    return report


def assert_no_worse(
    report: Report | str | Path,
    baseline: Report | str | Path,
    *,
    fail_on: _FailOn = "warn",
    strict: bool = False,
) -> Comparison:
    """Assert that nothing in `report` is new or worse since `baseline`, and return the comparison.

    Parameters
    ----------
    report, baseline : Report or path of a report.json
    fail_on : {"note", "warn", "fail"}
        What is new or worse counts at this severity and above.
    strict : bool
        What has become inconclusive, and checks that were skipped, count too.

    Raises
    ------
    AssertionError
        With each finding that is new or worse, then and now. Also when a check failed to run, and when `report` is of
        an audit that was interrupted.
    InputError
        When one of them is no report, or they answer different questions (see `aboveboard.compare`).
    """
    __tracebackhide__ = True
    comparison = compare(_report(baseline), _report(report), fail_on=fail_on, strict=strict)
    if comparison.verdict.status != gate.PASSED:
        before = {change.finding.id: change for top in comparison.changes for change in (top, *top.groups)}
        raise AssertionError(
            _message(comparison.new_report, comparison.verdict, fail_on, strict=strict, baseline=True, before=before)
        )
    return comparison


def _report(given: Any) -> Report:
    if isinstance(given, Report):
        return given
    if isinstance(given, str | Path):
        return Report.from_json(given)
    raise InputError(
        f"{type(given).__name__} was given as the report",
        expected="a Report, the path of a report.json, or a model with X and y",
    )


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _accepting(report: Report, accept: Sequence[Mapping[str, Any]]) -> Report:
    """Return `report` with more findings accepted."""
    if not accept:
        return report
    from aboveboard.auditing.runner import _acceptances

    ids = {finding.id for finding in (*report.findings, *report.not_run)}
    more = tuple(entry | {"found": entry["id"] in ids} for entry in _acceptances(accept))
    replaced = {entry["id"] for entry in more}
    return replace(report, accepted=(*(entry for entry in report.accepted if entry["id"] not in replaced), *more))


# --- the message ------------------------------------------------------------------------------------------------------


def _message(
    report: Report,
    result: gate.Verdict,
    fail_on: str,
    *,
    strict: bool,
    baseline: bool,
    before: Mapping[str, Change] | None = None,
) -> str:
    """Return what counts, plainly: one paragraph for each finding, single groups with the finding on all of them."""
    counted = families(result.counted)
    lines = []
    if counted:
        options = f'fail_on="{fail_on}"' + (", strict=True" if strict else "")
        new = " is new or worse and" if len(counted) == 1 else " are new or worse and"
        lines.append(
            f"{len(counted):,} finding{'' if len(counted) == 1 else 's'}{new if baseline else ''} "
            f"count{'s' if len(counted) == 1 else ''} ({options}):"
        )
    for family in counted[:_MOST]:
        lines += ["", *_paragraph(family.head, family.groups, report, before or {})]
    if len(counted) > _MOST:
        lines += ["", f"{len(counted) - _MOST:,} more: {_listed([family.head.id for family in counted[_MOST:]])}"]
    broken = [finding for finding in report.not_run if finding.status == "error"]
    if broken or not report.complete:
        lines += [""] * bool(lines) + ["Not every check ran, so nobody knows what else there is:"]
        lines += [f"    {_line(f.check)}: {_line(f.reason)}" for f in broken]
        lines += [] if report.complete else ["    The audit was interrupted."]
    told = [note for note in result.notes if not note.startswith("The check ")]
    lines += ["", *(f"Note: {_line(note)}" for note in told)] if told else []
    if counted:
        first = _line(counted[0].head.id).replace("\\", "\\\\").replace('"', '\\"')
        lines += ["", f'What somebody decided to live with: accept=[{{"id": "{first}", "reason": "..."}}]']
    return "\n".join(lines)


def _paragraph(
    finding: Finding, groups: Sequence[Finding], report: Report, before: Mapping[str, Change]
) -> Iterable[str]:
    mark = MARKS[verdict(finding)]
    change = before.get(finding.id)
    then = ""
    if change is not None:
        then = "  (new)" if change.old is None else f"  (was {MARKS[verdict(change.old)].word})"
    yield f"{mark.symbol} {mark.word}  {_line(finding.id)}{then}"
    yield f"    {_line(finding.statement)}"
    figures = amount(finding, report)
    about = [figures.sureness, f"limit {figures.limit}" if figures.limit else ""]
    if any(about):
        yield f"    {'; '.join(filter(None, about))}"
    if finding.reason:
        yield f"    {_line(finding.reason)}"
    if groups:
        yield f"    Groups: {_listed([group.id for group in groups])}"
    for name in finding.remedies:
        yield f"    Remedy: {_line(name)} (aboveboard methods {_line(name)})"


def _line(text: str) -> str:
    """Return the user's text so that it stays on its line."""
    return shorten(clean(text), 500)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(clean(name), 80) for name in names[:_MOST])
    return shown + (f" and {len(names) - _MOST:,} more" if len(names) > _MOST else "")
