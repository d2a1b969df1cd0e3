"""The report on a terminal, and as plain text."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aboveboard.auditing.report.view import (
    MARKS,
    VERDICTS,
    Family,
    Verdict,
    amount,
    clean,
    count_words,
    counts,
    family_counts,
    headline,
    sections,
    shorten,
    unit,
    verdict,
)
from aboveboard.core.report import Report

__all__ = ["Page", "print_report", "render_text"]

_STYLES: dict[Verdict, str] = {
    "fail": "bold red",
    "error": "bold red",
    "warn": "bold yellow",
    "inconclusive": "magenta",
    "note": "blue",
    "ok": "green",
    "skipped": "dim",
    "not_applicable": "dim",
}
_WIDE = 96
_LONG = 20
_STAND_INS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "…": "...", "≥": ">=", "≤": "<=", "×": "x", "·": "-", "“": '"', "”": '"',
        "‘": "'", "’": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "±": "+/-", "→": "->", "∩": "and", "≈": "~",
    }
)  # fmt: skip


def print_report(report: Report, console: Console, *, files: Mapping[str, str] | None = None) -> None:
    """Print the findings of `report` by area, what did not run, where the files are, and the answer.

    Parameters
    ----------
    report : Report
    console : rich.console.Console
        Its width, colours and encoding are respected: below UTF-8, signs become ASCII and letters that it lacks are
        spelled out.
    files : mapping of str to str, optional
        What was written, as ``{"report": "aboveboard-report/index.html"}``.
    """
    page = Page(console)
    for section in sections(report):
        numbers = family_counts(section.findings)
        page.line(section.title, "bold", f"  {count_words(numbers)}", "dim")
        console.print(page.findings(section.families, report))
    if report.not_run:
        page.line("Not run", "bold", f"  {count_words(counts(report.not_run))}", "dim")
        console.print(page.not_run(report))
    for name, place in (files or {}).items():
        page.line(f"{name}: ", "dim", place)
    answer = headline(report)
    page.line(f"{page.symbol(answer.verdict)} {answer.title}.", _STYLES[answer.verdict], f" {answer.sentence}")


def render_text(report: Report) -> str:
    """Return what `print_report` prints, as plain text 100 columns wide."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=100, color_system=None, force_terminal=False, legacy_windows=False)
    print_report(report, console)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _is_plain_pass(family: Family, report: Report) -> bool:
    """Return whether a finding says no more than that all is well: one line is enough for all of those."""
    finding = family.head
    shown_not_judged = finding.limit is None and finding.interval is not None
    return verdict(finding) == "ok" and not shown_not_judged and finding.id not in report.accepted_ids


class Page:
    """Writes for one console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.unicode = not console.options.ascii_only

    def text(self, content: str, style: str = "", *, keep_lines: bool = False) -> Text:
        """Return `content` as text without markup, in letters that the console has."""
        shown = clean(content, keep_lines=keep_lines)
        if not self.unicode:
            shown = shown.translate(_STAND_INS).encode("ascii", "backslashreplace").decode("ascii")
        return Text(shown, style=style, overflow="fold")

    def symbol(self, name: Verdict) -> str:
        return MARKS[name].symbol if self.unicode else MARKS[name].ascii

    def style(self, name: Verdict) -> str:
        return _STYLES[name]

    def line(self, first: str, first_style: str = "", second: str = "", second_style: str = "") -> None:
        self.console.print(
            Text.assemble(self.text(first, first_style), self.text(second, second_style)), soft_wrap=False
        )

    def findings(self, families: list[Family], report: Report) -> Table:
        """Return a table of findings; on a narrow terminal the figures stand below the sentence."""
        wide = self.console.width >= _WIDE
        table = self._table()
        table.add_column("Verdict", no_wrap=True, min_width=14)
        table.add_column("Finding", ratio=1, overflow="fold")
        if wide:
            table.add_column("Value", justify="right", overflow="fold", min_width=12, max_width=20)
            table.add_column("Limit", justify="right", overflow="fold", min_width=6, max_width=10)
            table.add_column(unit(report)[1].capitalize(), justify="right", overflow="fold", min_width=6)
        passed = [family.head for family in families if _is_plain_pass(family, report)]
        for family in families:
            finding = family.head
            if finding in passed:
                continue
            mark = self._mark(verdict(finding), accepted=finding.id in report.accepted_ids)
            says = self.text(shorten(clean(finding.statement), 400))
            figures = amount(finding, report)
            if wide:
                value = [self.text(figures.value)] if figures.value else []
                value += [self.text(f"[{figures.interval}]")] if figures.interval else []
                table.add_row(mark, says, Text("\n").join(value), self.text(figures.limit), self.text(figures.n))
            else:
                below = figures.value + (f" [{figures.interval}]" if figures.interval else "")
                below += f", limit {figures.limit}" if figures.limit else ""
                below += f", {figures.n} {unit(report)[1]}" if figures.n else ""
                below = below.removeprefix(", ").strip()
                table.add_row(mark, Text("\n").join([says, self.text(below, "dim")]) if below else says)
        if passed:
            names = ", ".join(finding.id for finding in passed)
            table.add_row(self._mark("ok"), self.text(shorten(f"{len(passed):,} passed: {names}", 1000), "dim"))
        return table

    def not_run(self, report: Report) -> Table:
        table = self._table()
        table.add_column("Status", no_wrap=True)
        table.add_column("Check", overflow="fold", max_width=24)
        table.add_column("Why", ratio=1, overflow="fold")
        for finding in sorted(report.not_run, key=lambda finding: VERDICTS.index(verdict(finding))):
            table.add_row(
                self._mark(verdict(finding)),
                self.text(shorten(clean(finding.id), 80)),
                self.text(shorten(clean(finding.reason or finding.statement), 400)),
            )
        return table

    def listing(self, head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> Table:
        """Return a table of texts: the longest column gets the room that is left, intervals lines of their own."""
        table = self._table()
        kept = [[shorten(clean(cell), 400) for cell in row] for row in rows]
        widest = [max((len(row[at]) for row in kept), default=0) for at in range(len(head))]
        for at, name in enumerate(head):
            if at in numeric:
                table.add_column(name, justify="right", max_width=22, overflow="fold")
            elif widest[at] == max(widest[other] for other in range(len(head)) if other not in numeric):
                table.add_column(name, ratio=1, overflow="fold")
            else:
                table.add_column(name, max_width=_LONG, overflow="fold")
        for row in kept:
            table.add_row(
                *(self.text(cell.replace(" [", "\n[", at in numeric), keep_lines=True) for at, cell in enumerate(row))
            )
        return table

    def _mark(self, name: Verdict, *, accepted: bool = False) -> Text:
        mark = self.text(f"{self.symbol(name)} {MARKS[name].word}", _STYLES[name])
        return Text("\n").join([mark, self.text("  accepted", "dim")]) if accepted else mark

    def _table(self) -> Table:
        options: dict[str, Any] = {"header_style": "dim", "pad_edge": False, "expand": True}
        return Table(box=box.SIMPLE_HEAD if self.unicode else box.ASCII2, **options)
