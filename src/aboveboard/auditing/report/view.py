"""What every output says in the same words: verdicts, headlines, figures, and names made safe to show."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from aboveboard.auditing.suites import AREAS, SUITES
from aboveboard.core.finding import SEVERITIES, SUPPRESSED, Cell, Column, Finding
from aboveboard.core.report import Report

__all__ = [
    "MARKS",
    "VERDICTS",
    "Amount",
    "Family",
    "Mark",
    "Section",
    "amount",
    "attention",
    "cell_text",
    "clean",
    "count_words",
    "counts",
    "families",
    "family_counts",
    "headline",
    "number",
    "sections",
    "shorten",
    "table_rows",
    "unit",
    "verdict",
    "with_unit",
    "writing",
]

Verdict = Literal["fail", "warn", "inconclusive", "note", "ok", "error", "skipped", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Mark:
    """How a verdict is shown where there are no pictures.

    Parameters
    ----------
    word, plural : str
        The verdict, and how several findings of it are called.
    symbol, ascii : str
        One sign, and its stand-in on terminals without Unicode.
    """

    word: str
    plural: str
    symbol: str
    ascii: str


MARKS: Final[dict[Verdict, Mark]] = {
    "fail": Mark("Fail", "failures", "✖", "x"),
    "warn": Mark("Warning", "warnings", "▲", "!"),
    "inconclusive": Mark("Inconclusive", "inconclusive", "?", "?"),
    "note": Mark("Note", "notes", "●", "*"),
    "ok": Mark("OK", "OK", "✔", "+"),
    "error": Mark("Error", "errors", "✖", "E"),
    "skipped": Mark("Skipped", "skipped", "–", "-"),
    "not_applicable": Mark("Not applicable", "not applicable", "–", "-"),
}
VERDICTS: Final[tuple[Verdict, ...]] = tuple(MARKS)
"""From what needs attention first to what did not run."""

_SINGULAR: Final[dict[Verdict, str]] = {"fail": "failure", "warn": "warning", "note": "note", "error": "error"}

# Controls, line and paragraph separators, direction overrides and isolates, lone surrogates, the byte-order mark and
# the code points that are no characters: none of them has a shape, and all of them can mislead a reader or a parser.
_UNSHOWABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff"
    + "".join(chr((plane << 16) | 0xFFFE) + chr((plane << 16) | 0xFFFF) for plane in range(1, 17))
    + "]"
)


def clean(text: object, *, keep_lines: bool = False) -> str:
    """Return `text` with everything that has no shape of its own spelled out, such as ``\\x1b`` or ``\\u202e``.

    Parameters
    ----------
    text : object
        Text from anywhere: names of columns and groups are the user's data.
    keep_lines : bool
        Leave newlines alone, for code.
    """

    def spelled(match: re.Match[str]) -> str:
        code = ord(match[0])
        if keep_lines and code == 10:
            return match[0]
        if code in _SPELLED:
            return _SPELLED[code]
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _UNSHOWABLE.sub(spelled, str(text))


_SPELLED: Final = {9: "\\t", 10: "\\n", 13: "\\r"}


def shorten(text: str, width: int) -> str:
    """Return `text`, cut to `width` characters with an ellipsis where it is longer."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def verdict(finding: Finding) -> Verdict:
    """Return the severity of a finding that ran, else its status."""
    return finding.severity if finding.status == "ran" else finding.status


def counts(findings: Iterable[Finding]) -> dict[Verdict, int]:
    """Return how many findings there are of each verdict, those that do not occur left out."""
    found = [verdict(finding) for finding in findings]
    return {name: found.count(name) for name in VERDICTS if name in found}


def family_counts(findings: Iterable[Finding]) -> dict[Verdict, int]:
    """Return how many findings there are of each verdict; those on single groups count with their family."""
    return counts(family.head for family in families(findings))


def count_words(numbers: dict[Verdict, int]) -> str:
    """Return ``"2 failures, 1 warning, 9 OK"``."""
    return ", ".join(
        f"{n:,} {_SINGULAR.get(name, MARKS[name].plural) if n == 1 else MARKS[name].plural}"
        for name, n in numbers.items()
    )


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one line, the counts behind it in another, and what a reader must be told first."""

    verdict: Verdict
    title: str
    sentence: str
    warning: str


def headline(report: Report) -> Headline:
    """Return what the report comes to; accepted findings do not count, and single groups count with their family."""
    open_ = [finding for finding in report.findings if finding.id not in report.accepted_ids]
    numbers = family_counts(open_)
    errors = sum(finding.status == "error" for finding in report.not_run)
    main: Verdict
    fail, warn, unsure = (numbers.get(name, 0) for name in ("fail", "warn", "inconclusive"))
    if fail:
        main, title = "fail", f"{_things(fail, 'finding fails', 'findings fail')}"
    elif warn:
        main, title = "warn", f"No failures, {_things(warn, 'warning', 'warnings')}"
    elif unsure:
        main, title = "inconclusive", f"No failures, {_things(unsure, 'question', 'questions')} left open"
    elif not report.findings:
        main, title = "inconclusive", "Nothing was found out"
    else:
        main, title = ("note" if numbers.get("note") else "ok"), "No failures and no warnings"
    parts = [count_words(numbers)] if numbers else []
    accepted = len(report.findings) - len(open_)
    if accepted:
        parts.append(f"{accepted:,} accepted")
    if report.not_run:
        parts.append(
            f"{len(report.not_run):,} not run" + (f" ({_things(errors, 'error', 'errors')})" if errors else "")
        )
    sentence = "; ".join(parts) + "." if parts else "No check ran."
    warning = "" if report.complete else "The audit was interrupted, so this is only part of the answer."
    return Headline(main, title, f"{warning} {sentence}".strip(), warning)


def _things(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


@dataclass(frozen=True, slots=True)
class Family:
    """A finding, and the findings on single groups that bear it out."""

    head: Finding
    groups: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """An area of the report: its findings in order of attention."""

    name: str
    title: str
    findings: tuple[Finding, ...]

    @property
    def families(self) -> list[Family]:
        return families(self.findings)


def families(findings: Iterable[Finding]) -> list[Family]:
    """Put the findings on single groups under the finding on all of them.

    A check gives ``check/metric/column`` for all groups of a column and, right after it and with the same verdict,
    ``check/metric/column=group`` for those that stand out.
    """
    heads: list[tuple[Finding, list[Finding]]] = []
    for finding in findings:
        last = heads[-1][0] if heads else None
        if last is not None and finding.group and not last.group and _stands_under(finding, last):
            heads[-1][1].append(finding)
        else:
            heads.append((finding, []))
    return [Family(head, tuple(groups)) for head, groups in heads]


def _stands_under(finding: Finding, head: Finding) -> bool:
    stem = finding.id.removesuffix(finding.group)
    same = finding.check == head.check and verdict(finding) == verdict(head)
    return same and stem != finding.id and head.id.startswith(stem)


def attention(report: Report) -> list[Family]:
    """Return what somebody should look at: failures and warnings that nobody accepted, worst first.

    One of each check comes before a second of any, so that the first lines tell of everything that is wrong.
    """
    wanted = [f for f in report.findings if verdict(f) in ("fail", "warn") and f.id not in report.accepted_ids]
    found = families(sorted(wanted, key=lambda finding: -SEVERITIES.index(finding.severity)))
    seen: dict[tuple[str, str], int] = {}
    ranks = []
    for family in found:
        key = (family.head.severity, family.head.check)
        seen[key] = seen.get(key, 0) + 1
        ranks.append((-SEVERITIES.index(family.head.severity), seen[key]))
    return [family for _, family in sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0])]


def sections(report: Report) -> list[Section]:
    """Return the areas that have findings, in the order of the suite table; areas it does not know come last."""
    names = [*AREAS, *sorted({finding.area for finding in report.findings} - set(AREAS))]
    found = []
    for name in names:
        own = [finding for finding in report.findings if finding.area == name]
        if own:
            own.sort(key=lambda finding: VERDICTS.index(verdict(finding)))
            found.append(Section(name, AREAS.get(name, name), tuple(own)))
    return found


def number(value: float, writing: str = "number") -> str:
    """Write a figure for people: three significant digits, thousands separated, fractions as per cent if asked."""
    if writing == "percent":
        digits = 1 if abs(value) >= 0.001 or value == 0 else 2
        return f"{_signless(f'{100 * value:.{digits}f}')}\u00a0%"
    if writing == "points":
        return _signless(f"{100 * value:.1f}")
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 0.001:
        return f"{value:.3g}"
    return f"{value:.2g}"


def _signless(text: str) -> str:
    """Drop the sign of a zero."""
    return text.lstrip("-") if not text.strip("-0.") else text


@dataclass(frozen=True, slots=True)
class Amount:
    """The figures of a finding as text; empty where it has none."""

    value: str
    interval: str
    limit: str
    n: str
    sureness: str


_WRITINGS: Final = {"points": "points", "share": "percent"}


def writing(finding: Finding, report: Report) -> str:
    """Return how the figures of a finding are written: the unit of the limit that it was judged against decides."""
    styles = {
        _WRITINGS.get(str(entry.get("unit")).partition(" ")[0], "number")
        for entry in report.limits
        if str(entry.get("name")).startswith(f"{finding.check}.") and entry.get("value") == finding.limit
    }
    return styles.pop() if len(styles) == 1 else "number"


def unit(report: Report) -> tuple[str, str]:
    """Return what is counted in the findings, one and many, such as ``("row", "rows")``."""
    name = report.subject.get("suite")
    return next((suite.unit for suite in SUITES if suite.name == name), ("row", "rows"))


def amount(finding: Finding, report: Report) -> Amount:
    """Return the value, interval, limit and number of rows of a finding as text, and how sure they are in words."""
    style = writing(finding, report)
    interval = finding.interval
    span = f"{number(interval.low, style)} to {number(interval.high, style)}" if interval else ""
    sure = []
    if interval:
        kind = "simultaneous interval" if interval.simultaneous else "interval"
        method = f" ({interval.method})" if interval.method else ""
        sure.append(f"{100 * interval.level:g}\u00a0% {kind} {with_unit(span, style)}{method}")
    if finding.n is not None:
        one, many = unit(report)
        sure.append(f"{finding.n:,} {one if finding.n == 1 else many}")
    limit = "" if finding.limit is None else number(finding.limit, style)
    limit = limit.replace(".0\u00a0", "\u00a0").removesuffix(".0")
    return Amount(
        value="" if finding.value is None else with_unit(number(finding.value, style), style),
        interval=span,
        limit=with_unit(limit, style) if limit else "",
        n="" if finding.n is None else f"{finding.n:,}",
        sureness=", ".join(sure),
    )


def with_unit(text: str, style: str) -> str:
    """Return a written figure with the word for points, where it is one of these."""
    if style != "points":
        return text
    return f"{text} {'point' if text in ('1', '-1') else 'points'}"


def cell_text(cell: Cell, kind: str, interval_writing: str = "number") -> str:
    """Write one cell of a table.

    Parameters
    ----------
    cell : str, int, float, bool, None or pair
    kind : {"text", "count", "number", "percent", "interval"}
    interval_writing : {"number", "percent"}
        How the ends of an interval are written.
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple | list):
        low, high = cell
        if low is None or high is None:
            return ""
        return f"{number(low, interval_writing)} to {number(high, interval_writing)}"
    if isinstance(cell, str):
        return SUPPRESSED if cell == SUPPRESSED else clean(cell)
    return number(cell, "percent" if kind == "percent" else "number")


def table_rows(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> list[list[str]]:
    """Write the rows of a table; an interval is written like the percent or number column before it."""
    writings = []
    latest = "number"
    for column in columns:
        latest = column.kind if column.kind in ("percent", "number") else latest
        writings.append(latest)
    return [
        [cell_text(cell, column.kind, style) for cell, column, style in zip(row, columns, writings, strict=True)]
        for row in rows
    ]
