"""Run one of the suites that take a natural file of their own: rankings, votes, networks and the like."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from aboveboard.auditing.frames import to_frame
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.runner import run_checks
from aboveboard.auditing.subject import refuse_cell_and_jobs
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, read_settings
from aboveboard.auditing.suites import CheckSpec, Effort, Suite, find_suite
from aboveboard.core.errors import InputError
from aboveboard.core.report import Report

__all__ = ["audit_suite", "refuse_tabular", "suite_subject"]


def audit_suite(
    suite: str,
    data: Any,
    *,
    checks: Sequence[CheckSpec],
    columns: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    effort: Effort = "standard",
    limits: Mapping[str, float] | None = None,
    accepted: tuple[dict[str, Any], ...] = (),
    min_cell: int = 10,
    n_jobs: int | None = None,
    random_state: int = 0,
    show_progress: bool | None = None,
) -> Report:
    """Audit `data` with `checks`, which belong to `suite`; parameters as for `aboveboard.audit`.

    Parameters
    ----------
    suite : str
    data : data frame, array or None
        None: the suite's bundled example.
    checks : sequence of CheckSpec
    accepted : tuple of dict
        Findings that somebody accepted, read already.

    Raises
    ------
    InputError
        Before any work, when something cannot be used as given.
    """
    refuse_cell_and_jobs(min_cell, n_jobs)
    begun = datetime.now(UTC)
    subject = suite_subject(
        find_suite(suite),
        data,
        columns=columns or {},
        settings=settings or {},
        random_state=random_state,
        limits=Limits(limits),
        min_cell=min_cell,
        n_jobs=n_jobs,
    )
    report = run_checks(
        subject,
        checks,
        effort=effort,
        random_state=random_state,
        accepted=accepted,
        begun=begun,
        show_progress=show_progress,
    )
    if subject.data == "real":
        return report
    return replace(
        report,
        findings=tuple(replace(finding, data=subject.data) for finding in report.findings),
        not_run=tuple(replace(finding, data=subject.data) for finding in report.not_run),
    )


def suite_subject(
    suite: Suite,
    data: Any,
    *,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
    random_state: int = 0,
    **common: Any,
) -> SuiteSubject:
    """Read `data`, or the suite's example where it is None, into the suite's subject."""
    module = import_module(f"aboveboard.auditing.subjects.{suite.name}")
    origin: dict[str, Any] = {}
    if data is None:
        if columns:
            raise InputError(
                "columns were named and no data were given",
                expected="data, or no columns for the bundled example",
            )
        example: Example = module.example(random_state=random_state)
        frame, columns = example.frame, example.columns
        settings = {**example.settings, **settings}
        origin = {"data": example.data, "notes": (example.note,)}
    else:
        frame = to_frame(data, "the data")
    if not len(frame):
        raise InputError("the data have no rows")
    table = RoleColumns(frame.reset_index(drop=True), suite, columns)
    subject: SuiteSubject = module.read(table, read_settings(suite, settings), suite=suite.name, **common)
    if origin:
        subject = replace(subject, data=origin["data"], notes=(*origin["notes"], *subject.notes))
    return replace(subject, columns=table.pairs())


def refuse_tabular(suite: str, **given: Any) -> None:
    """Refuse what only the tabular suite takes.

    Parameters
    ----------
    suite : str
    **given : object
        By name; None where the user left it alone.
    """
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} was given and the suite is {suite}",
                expected="columns={role: name} and settings={name: value} to say what the data hold",
                remedy="See: aboveboard audit --list-checks",
            )
