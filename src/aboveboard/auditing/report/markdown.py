"""The report as GitHub-flavoured Markdown, for a comment on a pull request or a job summary."""

import re
from typing import Final

from aboveboard.auditing.report.view import (
    MARKS,
    Section,
    amount,
    clean,
    count_words,
    family_counts,
    headline,
    sections,
    shorten,
    unit,
    verdict,
)
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report

__all__ = ["markdown_cell", "markdown_text", "render_markdown"]

_MOST: Final = 100
_BREAK: Final = "\u200b"
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render_markdown(report: Report) -> str:
    """Return `report` as Markdown: the answer, what needs attention, and the rest folded away."""
    answer = headline(report)
    lines = [
        f"## {MARKS[answer.verdict].symbol} {markdown_text(answer.title)}",
        "",
        markdown_text(answer.sentence),
    ]
    for section in sections(report):
        heads = [family.head for family in section.families]
        urgent = [f for f in heads if verdict(f) != "ok"]
        fine = [f for f in heads if verdict(f) == "ok"]
        groups = [f for family in section.families for f in family.groups]
        lines += ["", f"### {markdown_text(section.title)}", "", markdown_text(_tally(section)) + "."]
        if urgent:
            lines += ["", *_table(urgent, report)]
        for title, folded in (("on single groups", groups), ("within limits", fine)):
            if folded:
                lines += ["", f"<details><summary>{len(folded):,} {title}</summary>", ""]
                lines += [*_table(folded, report), "", "</details>"]
    if report.not_run:
        lines += ["", "### Not run", "", "| Check | Status | Why |", "| --- | --- | --- |"]
        lines += [
            f"| {markdown_cell(f.id, 80)} | {MARKS[verdict(f)].word} | {markdown_cell(f.reason or f.statement, 300)} |"
            for f in report.not_run[:_MOST]
        ]
    return "\n".join(lines) + "\n"


def markdown_text(text: str) -> str:
    """Return `text` so that Markdown shows it letter by letter: no markup, HTML, link, mention or reference.

    An invisible zero-width space keeps GitHub from seeing mentions, issue numbers and addresses.
    """
    safe = clean(text)
    safe = re.sub(r"(https?|ftp)://", rf"\1:{_BREAK}//", safe, flags=re.IGNORECASE)
    safe = re.sub(r"\b(www)\.", rf"\1{_BREAK}.", safe, flags=re.IGNORECASE)
    safe = re.sub(r"\b(GH)-(?=\d)", rf"\1{_BREAK}-", safe, flags=re.IGNORECASE)
    safe = re.sub(r"([@#])", rf"\1{_BREAK}", safe)
    safe = re.sub(r"[\\`*_{}\[\]|~$#!]", lambda found: "\\" + found[0], safe)
    safe = re.sub(r"[&<>]", lambda found: _ENTITIES[found[0]], safe)
    return re.sub(r"^(\s*)([-+=]|\d+(?=[.)]))", lambda found: found[1] + _at_start(found[2]), safe)


def _at_start(mark: str) -> str:
    return f"\\{mark}" if len(mark) == 1 and not mark.isdigit() else f"{mark}{_BREAK}"


def _tally(section: Section) -> str:
    return count_words(family_counts(section.findings))


def markdown_cell(text: str, width: int) -> str:
    """Return `text` for a cell of a table, cut to `width` characters."""
    return markdown_text(shorten(clean(text), width))


def _table(findings: list[Finding], report: Report) -> list[str]:
    counted = unit(report)[1].capitalize()
    lines = [
        f"| Verdict | Finding | Value | Interval | Limit | {counted} |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for finding in findings[:_MOST]:
        mark = MARKS[verdict(finding)]
        accepted = ", accepted" if finding.id in report.accepted_ids else ""
        figures = amount(finding, report)
        cells = (figures.value, figures.interval, figures.limit, figures.n)
        lines.append(
            f"| {mark.symbol} {mark.word}{accepted} | {markdown_cell(finding.statement, 300)} | "
            + " | ".join(text.replace("-", "−") for text in cells)
            + " |"
        )
    if len(findings) > _MOST:
        lines += ["", f"{len(findings) - _MOST:,} more in report.json."]
    return lines
