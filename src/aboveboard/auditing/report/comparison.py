"""A comparison of two reports in every form: a table for the terminal, Markdown, an HTML page, a piece for notebooks.

All forms show the same listings, which are made once.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from aboveboard.auditing.comparison import KINDS, Chance, Change, Comparison, Difference, Kind, Measure
from aboveboard.auditing.report.view import (
    MARKS,
    Verdict,
    amount,
    clean,
    families,
    number,
    shorten,
    verdict,
    with_unit,
)
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report

__all__ = ["print_comparison", "render_html", "render_markdown", "render_notebook", "render_text"]

_MOST: Final = 60
_LONGEST_COMMENT: Final = 60_000  # characters; GitHub takes 65,536
_WORDS: Final[dict[Kind, tuple[str, str]]] = {
    "new": ("new", "New"),
    "worse": ("worse", "Worse"),
    "better": ("better", "Better"),
    "gone": ("gone", "Gone"),
    "unchecked": ("no longer looked at", "No longer looked at"),
    "unchanged": ("unchanged", "Unchanged"),
}
_CHANCES: Final[dict[Chance, str]] = {
    "beyond": "beyond chance",
    "separate": "beyond chance on separate rows",
    "within": "may be chance",
    "unknown": "no interval",
    "same_data": "not the rows",
    "equal": "equal",
}
_EXPLAINED: Final[dict[Chance, str]] = {
    "beyond": "“Beyond chance” holds whatever rows the two reports share.",
    "separate": "“Beyond chance on separate rows” holds where they share none, and as a rule where they share some: "
    "unless the two estimates err in opposite directions.",
    "within": "“May be chance” means that these reports cannot tell, not that nothing changed: on shared rows a paired "
    "comparison of the predictions could be sharper.",
    "same_data": "“Not the rows”: both reports are about the same rows, answers and predictions, so that the cause is "
    "elsewhere: see what else differs.",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of the comparison: cells are text, an empty head makes a list.

    Parameters
    ----------
    title : str
    head : tuple of str
    rows : list of tuple of str
    numeric : tuple of int
        Which columns hold figures.
    folded : bool
        Whether it is folded away where that is possible.
    notes : tuple of str
    most : int
        How many rows are shown; a page has room for more.
    """

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numeric: tuple[int, ...] = ()
    folded: bool = False
    notes: tuple[str, ...] = ()
    most: int = _MOST


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print `comparison`: its listings, what to know first, and the answer last, where a terminal leaves the eye."""
    from aboveboard.auditing.report.terminal import Page

    page = Page(console)
    for listing in _listings(comparison):
        if listing.folded:
            page.line(f"{listing.title}: {len(listing.rows):,}", "dim")
            continue
        page.line(listing.title, "bold")
        console.print(page.listing(listing.head, listing.rows[: listing.most], listing.numeric))
        for note in _notes(listing, listing.most):
            page.line(note, "dim")
    for warning in comparison.warnings:
        page.line("Note: ", "bold", warning)
    mark, title = _title(comparison)
    page.line(f"{page.symbol(mark)} {title}.", page.style(mark), f" {_sentence(comparison)}")


def render_text(comparison: Comparison) -> str:
    """Return what `print_comparison` prints, as plain text 100 columns wide."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=100, color_system=None, force_terminal=False, legacy_windows=False)
    print_comparison(comparison, console)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def render_markdown(comparison: Comparison) -> str:
    """Return `comparison` as Markdown: the answer, what to know first, what changed, and the rest folded away.

    Lists are shortened until it is no longer than a comment on GitHub may be.
    """
    return next(
        text for most in (_MOST, 15, 3) if len(text := _markdown(comparison, most)) <= _LONGEST_COMMENT or most == 3
    )


def _markdown(comparison: Comparison, most: int) -> str:
    from aboveboard.auditing.report.markdown import markdown_cell, markdown_text

    mark, title = _title(comparison)
    lines = [f"## {MARKS[mark].symbol} {markdown_text(title)}", "", markdown_text(_sentence(comparison))]
    if comparison.warnings:
        lines += ["", *(f"- {markdown_text(shorten(clean(warning), 500))}" for warning in comparison.warnings[:most])]
    for listing in _listings(comparison):
        rows = listing.rows[: min(most, listing.most)]
        heading = f"{markdown_text(listing.title)}"
        if listing.folded:
            lines += ["", f"<details><summary>{heading}: {len(listing.rows):,}</summary>"]
        else:
            lines += ["", f"### {heading}"]
        lines += ["", "| " + " | ".join(listing.head) + " |"]
        lines += [
            "| " + " | ".join("---:" if at in listing.numeric else "---" for at in range(len(listing.head))) + " |"
        ]
        for row in rows:
            cells = (cell if at in listing.numeric else markdown_cell(cell, 300) for at, cell in enumerate(row))
            lines.append("| " + " | ".join(cells) + " |")
        for note in _notes(listing, len(rows)):
            lines += ["", markdown_text(note)]
        if listing.folded:
            lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def render_html(comparison: Comparison) -> str:
    """Return `comparison` as one self-contained HTML page, with the same policy as a report's."""
    from aboveboard.auditing.report.html import page

    return page("comparison.html.jinja", _view(comparison, whole=True))


def render_notebook(comparison: Comparison) -> str:
    """Return `comparison` as a piece of HTML for a notebook."""
    from aboveboard.auditing.report.html import fragment

    return fragment("comparison-notebook.html.jinja", _view(comparison, whole=False))


def _view(comparison: Comparison, *, whole: bool) -> dict[str, Any]:
    mark, title = _title(comparison)

    def most(listing: Listing) -> int:
        return _MOST if whole else listing.most

    return {
        "version": comparison.new_report.environment.get("aboveboard", ""),
        "verdict": mark,
        "title": title,
        "sentence": _sentence(comparison),
        "warnings": comparison.warnings[:_MOST],
        "listings": [
            {
                "title": listing.title,
                "head": listing.head,
                "rows": [[shorten(clean(cell), 300) for cell in row] for row in listing.rows[: most(listing)]],
                "count": len(listing.rows),
                "numeric": listing.numeric,
                "folded": listing.folded,
                "notes": _notes(listing, most(listing)),
            }
            for listing in _listings(comparison)
        ],
        "sides": [
            {
                "word": word,
                "facts": [(name, shorten(clean(text), 80)) for name, text in _facts(report) if text],
            }
            for word, report in (("Older report", comparison.old_report), ("Newer report", comparison.new_report))
        ],
    }


def _facts(report: Report) -> list[tuple[str, str]]:
    subject = report.subject
    return [
        ("Begun", str(report.timing.get("begun", "")).replace("T", " ").replace("+00:00", " UTC")),
        ("Model", str(subject.get("model") or "")),
        ("Target", str(subject.get("target") or "")),
        ("Rows", f"{subject['rows']:,}" if isinstance(subject.get("rows"), int) else ""),
        ("Data", str(subject.get("data_sha256") or "")[:12]),
        ("aboveboard", report.environment.get("aboveboard", "")),
    ]


def _title(comparison: Comparison) -> tuple[Verdict, str]:
    heads = [family.head for family in families(comparison.verdict.counted)]
    broken = [finding for finding in comparison.new_report.not_run if finding.status == "error"]
    if heads:
        worst = min((verdict(head) for head in heads), key=list(MARKS).index)
        return worst, f"{len(heads):,} {'finding is' if len(heads) == 1 else 'findings are'} new or worse"
    if broken or not comparison.new_report.complete:
        return "error", "The newer report is not complete"
    return "ok", f"Nothing that counts is new or worse (--fail-on {comparison.fail_on})"


def _sentence(comparison: Comparison) -> str:
    parts = [f"{n:,} {_WORDS[kind][0]}" for kind, n in comparison.counts.items()]
    moved = len(comparison.moved)
    known = sum(measure.chance != "unknown" for measure in comparison.measures)
    says = ", ".join(parts) + "." if parts else "No findings."
    if comparison.same_data:
        return f"{says} Both are about the same rows, answers and predictions."
    if known:
        says += f" {moved:,} of {known:,} figures with intervals moved beyond chance."
    return says


def _notes(listing: Listing, most: int) -> list[str]:
    more = [f"{len(listing.rows) - most:,} more in the comparison as JSON."] if len(listing.rows) > most else []
    return [*more, *listing.notes]


def _listings(comparison: Comparison) -> list[Listing]:
    """Return everything that differs as tables, empty ones left out."""
    found = []
    for kind in KINDS[:-1]:
        own = [change for change in comparison.changes if change.kind == kind]
        said = [change for change in own if not _harmless(change)]
        for title, changes, folded in (
            (_WORDS[kind][1], said, False),
            (f"{_WORDS[kind][1]}, within limits", [change for change in own if _harmless(change)], True),
        ):
            found.append(Listing(title, _HEAD, [_row(c, comparison) for c in changes], (3, 4), folded))
    moved = [_measure_row(measure) for measure in comparison.moved]
    rest = [measure for measure in comparison.measures if measure.chance in ("within", "same_data")]
    moved_kinds = {measure.chance for measure in comparison.moved}
    found += [
        Listing("Figures that moved beyond chance", _MEASURES, moved, (1, 2, 3), False, _explained(moved_kinds), 15),
        Listing(
            "Figures that differ",
            _MEASURES,
            [_measure_row(measure) for measure in rest],
            (1, 2, 3),
            True,
            _explained({measure.chance for measure in rest}),
            15,
        ),
        Listing(
            "Checks that ran in one of the two",
            ("Check", "Before", "Now", "Why"),
            [(c.check, c.old.replace("_", " "), c.new.replace("_", " "), c.reason) for c in comparison.checks],
        ),
        *(
            Listing(title, ("What", "Before", "Now"), _difference_rows(differences))
            for title, differences in (
                ("Limits that differ", comparison.limits),
                ("Guarantees that differ", comparison.certificates),
                ("Accepted findings that differ", comparison.accepted),
                ("What else differs in what was audited", comparison.subject),
                ("Versions and settings that differ", comparison.setting),
            )
        ),
        Listing(
            "Unchanged",
            _HEAD,
            [_row(change, comparison) for change in comparison.changes if change.kind == "unchanged"],
            (3, 4),
            True,
        ),
    ]
    return [listing for listing in found if listing.rows]


_HEAD: Final = ("Before", "Now", "Finding", "Was", "Is")
_MEASURES: Final = ("Figure", "Before", "Now", "Change", "Chance")


def _harmless(change: Change) -> bool:
    return all(verdict(f) not in ("fail", "warn", "inconclusive", "note", "error") for f in _sides(change))


def _sides(change: Change) -> list[Finding]:
    return [finding for finding in (change.old, change.new) if finding is not None]


def _row(change: Change, comparison: Comparison) -> tuple[str, ...]:
    finding = change.finding
    if change.kind == "unchecked" and change.old is not None:
        finding = change.old
    says = [finding.statement or finding.id]
    for words, kinds in (("New groups", ("new",)), ("Worse", ("worse",)), ("No longer", ("gone", "unchecked"))):
        names = [group.finding.group for group in change.groups if group.kind in kinds]
        if names and change.kind in ("worse", "better", "unchanged"):
            says.append(f"{words}: {', '.join(shorten(clean(name), 60) for name in names)}.")
    if change.other_limit:
        says.append("Judged by another limit.")
    if change.accepted:
        says.append("Accepted.")
    return (
        _mark(change.old),
        _mark(change.new),
        " ".join(says),
        _figure(change.old, comparison.old_report),
        _figure(change.new, comparison.new_report),
    )


def _mark(finding: Finding | None) -> str:
    if finding is None:
        return ""
    mark = MARKS[verdict(finding)]
    return f"{mark.symbol}\u00a0{mark.word}"


def _figure(finding: Finding | None, report: Report) -> str:
    if finding is None:
        return ""
    figures = amount(finding, report)
    return _minus(figures.value + (f" [{figures.interval}]" if figures.interval else ""))


def _measure_row(measure: Measure) -> tuple[str, ...]:
    change = measure.new - measure.old
    style = "points" if measure.kind == "percent" else measure.kind
    sign = "+" if change > 0 else ""
    return (
        f"{measure.id}: {measure.name}" if measure.name else measure.id,
        _estimate(measure.old, measure.old_interval, measure.kind),
        _estimate(measure.new, measure.new_interval, measure.kind),
        _minus(sign + with_unit(number(change, style), style)),
        _CHANCES[measure.chance],
    )


def _estimate(value: float, interval: tuple[float, float] | None, style: str) -> str:
    text = with_unit(number(value, style), style)
    if interval is not None:
        text += f" [{number(interval[0], style)} to {number(interval[1], style)}]"
    return _minus(text)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _explained(chances: Iterable[Chance]) -> tuple[str, ...]:
    return tuple(_EXPLAINED[chance] for chance in _EXPLAINED if chance in set(chances))


def _difference_rows(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for item in differences:
        if item.name == "data_sha256":
            rows.append(("fingerprint of the data", str(item.old or "")[:12], str(item.new or "")[:12]))
        else:
            rows.append((item.name.replace("_", " "), _value(item.old), _value(item.new)))
    return rows


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _minus(number(value))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
