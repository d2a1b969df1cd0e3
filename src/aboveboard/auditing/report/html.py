"""The report as one HTML page that stands alone, and as a compact piece of HTML for notebooks.

The page asks the network for nothing: its style and its script are inline, and its content security policy allows
exactly these two by their hashes. Every text that reaches a template is cleaned (see `view.clean`) and escaped.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from aboveboard.auditing.report.figures import draw
from aboveboard.auditing.report.view import (
    MARKS,
    VERDICTS,
    amount,
    attention,
    cell_text,
    clean,
    count_words,
    families,
    family_counts,
    headline,
    number,
    sections,
    shorten,
    table_rows,
    unit,
    verdict,
)
from aboveboard.auditing.suites import all_checks
from aboveboard.core.catalogue import Method, catalogue
from aboveboard.core.certificate import Certificate
from aboveboard.core.finding import SUPPRESSED, Column, Figure, Finding, Table
from aboveboard.core.reference import Reference
from aboveboard.core.report import Report

__all__ = ["fragment", "page", "render_html", "render_notebook"]

# The page stays under 2 MB whatever was audited: what does not fit is counted, and is in report.json.
_FINDING_BYTES: Final = 400_000
_EVIDENCE_BYTES: Final = 800_000
_SECTION_BYTES: Final = 60_000
_MOST_ROWS: Final = 60
_MOST_COLUMNS: Final = 20
_MOST_REMEDIES: Final = 40
_MOST_CERTIFICATES: Final = 10
_MOST_TOP: Final = 6
_FAVICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' "
    "rx='4' fill='%231f4fa3'/%3E%3Cpath d='M4 8.500 7 11.500 12.500 5' fill='none' stroke='%23fff' stroke-width='2'/%3E"
    "%3C/svg%3E"
)
_T = TypeVar("_T")
_SPECS: Final = {spec.name: spec for spec in all_checks()}


def render_html(report: Report) -> str:
    """Return `report` as one self-contained HTML page.

    The same report gives the same bytes. The page stays under 2 MB: the evidence of the worst findings comes first,
    and where something is left out, the page says so.
    """
    return page("report.html.jinja", _page(report))


def page(template: str, view: dict[str, Any]) -> str:
    """Return the page that `template` makes of `view`, with our style and script, and a policy for these alone."""
    style, script = _source("report.css"), _source("report.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        _environment()
        .get_template(template)
        .render(
            p=view,
            policy=Markup(policy),  # noqa: S704 - made of constants and base64
            style=Markup(style),  # noqa: S704 - the package's own file
            script=Markup(script),  # noqa: S704 - the package's own file
            favicon=Markup(_FAVICON),  # noqa: S704 - a constant
        )
    )


def fragment(template: str, view: dict[str, Any]) -> str:
    """Return the piece of HTML that `template` makes of `view`."""
    return _environment().get_template(template).render(p=view)


def render_notebook(report: Report) -> str:
    """Return `report` as a piece of HTML for a notebook: the answer, and a table of findings for each area."""
    most = 100
    parts = []
    for section in sections(report):
        heads = [family.head for family in section.families]
        findings = [_finding(finding, "", report, {}) for finding in heads[:most]]
        parts.append(
            {
                "title": section.title,
                "counts": family_counts(section.findings),
                "findings": findings,
                "left": len(section.findings) - len(findings),
                "open": any(f["verdict"] in ("fail", "warn") and not f["accepted"] for f in findings),
            }
        )
    return (
        _environment()
        .get_template("notebook.html.jinja")
        .render(
            headline=headline(report),
            subtitle=_subtitle(report),
            sections=parts,
            not_run=_not_run(report),
            mark=MARKS.get,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("aboveboard.auditing", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else clean(value),
    )
    environment.filters["cut"] = lambda text, width: shorten(clean(text), width)
    environment.filters["minus"] = _minus
    environment.globals["count_words"] = count_words
    environment.globals["word"] = lambda name: "Accepted" if name == "accepted" else MARKS[name].word
    return environment


def _minus(text: str) -> str:
    """Return `text` with true minus signs before its negative numbers."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)


@cache
def _source(name: str) -> str:
    return "\n" + (resources.files("aboveboard.auditing.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _page(report: Report) -> dict[str, Any]:
    """Return everything that the template shows, in its order."""
    anchors = _anchors(report)
    answers = _remedy_anchors(report)
    areas = _Areas(report, anchors, answers)
    top = attention(report)
    unsure = families(finding for finding in report.findings if finding.status == "inconclusive")
    not_run = _not_run(report)
    remedies = _remedies(report, anchors, answers, areas.shown)
    certificates = [_certificate(certificate) for certificate in report.certificates[:_MOST_CERTIFICATES]]
    subject = report.subject
    features = [{"name": shorten(clean(f["name"]), 80), "kind": f["kind"]} for f in subject.get("features", [])]
    shown_features = _within(features)
    shown_not_run = _within(not_run)
    notes = _within([shorten(clean(note), 500) for note in report.notes])
    environment = [(shorten(clean(k), 60), shorten(clean(v), 60)) for k, v in report.environment.items()]
    accepted = _accepted(report)

    def brief(finding: Finding) -> dict[str, Any]:
        return _finding(finding, anchors[id(finding)], report, answers) | {"shown": id(finding) in areas.shown}

    contents = [("summary", "Summary"), *((area["anchor"], area["title"]) for area in areas.sections)]
    contents += [("remedies", "Remedies")] if remedies else []
    contents += [("certificates", "Guarantees")] if certificates else []
    contents += [("method", "How this was judged"), ("limits", "Limits in force")]
    contents += [("accepted", "Accepted findings")] if accepted["rows"] else []
    contents += [("data", "Data"), ("versions", "Versions and seed")]
    return {
        "version": report.environment.get("aboveboard", ""),
        "headline": headline(report),
        "subtitle": _subtitle(report),
        "begun": report.timing.get("begun", ""),
        "begun_words": str(report.timing.get("begun", "")).replace("T", " ").replace("+00:00", " UTC"),
        "contents": contents,
        "counts": family_counts(finding for finding in report.findings if finding.id not in report.accepted_ids),
        "accepted_count": sum(finding.id in report.accepted_ids for finding in report.findings),
        "attention": [brief(family.head) | {"groups": len(family.groups)} for family in top[:_MOST_TOP]],
        "attention_left": max(len(top) - _MOST_TOP, 0),
        "open": [brief(family.head) for family in unsure[:_MOST_TOP]],
        "open_left": max(len(unsure) - _MOST_TOP, 0),
        "not_run": shown_not_run,
        "not_run_count": len(not_run),
        "not_run_left": len(not_run) - len(shown_not_run),
        "areas": areas.sections,
        "remedies": remedies,
        "certificates": certificates,
        "min_cell": subject.get("min_cell"),
        "checks": _checks(report),
        "limits": _limits(report),
        "accepted": accepted,
        "facts": _facts(report),
        "groups": _groups(subject),
        "features": shown_features,
        "features_left": len(features) - len(shown_features),
        "feature_count": len(features),
        "notes": notes,
        "notes_left": len(report.notes) - len(notes),
        "seed": report.seed,
        "environment": _within(environment),
        "schema_version": report.schema_version,
        "timing": _timing(report),
    }


def _within(items: Sequence[_T]) -> list[_T]:
    """Return the first of `items`, as many as one section has room for."""
    kept = []
    left = _SECTION_BYTES
    for item in items:
        left -= 120 + len(str(escape(clean(json.dumps(item, ensure_ascii=False)))).encode())
        if left < 0:
            break
        kept.append(item)
    return kept


def _subtitle(report: Report) -> str:
    subject = report.subject
    if subject.get("summary"):
        return f"Audit of {shorten(clean(subject['summary']), 200)}"
    model = subject.get("model", "")
    who = {"": "Audit", "predictions given": "Audit of predictions"}.get(model, f"Audit of {shorten(clean(model), 60)}")
    what = f" for “{shorten(clean(subject['target']), 60)}”" if subject.get("target") else ""
    rows = f" on {subject['rows']:,} rows" if subject.get("rows") is not None else ""
    return who + what + rows


def _anchors(report: Report) -> dict[int, str]:
    """Return an anchor for each finding, by its place: ids are the user's text, and no good as anchors."""
    return {id(finding): f"finding-{place}" for place, finding in enumerate(report.findings, 1)}


def _finding(finding: Finding, anchor: str, report: Report, answers: dict[str, str]) -> dict[str, Any]:
    figures = amount(finding, report)
    facts = [("How sure" if figures.interval else "Rests on", _minus(figures.sureness)), ("Why", finding.reason)]
    if finding.limit is not None and finding.limit_source:
        facts.append(("Limit from", finding.limit_source))
    return {
        "anchor": anchor,
        "verdict": verdict(finding),
        "accepted": finding.id in report.accepted_ids,
        "simulated": finding.data == "simulated",
        "statement": finding.statement,
        "amount": figures,
        "facts": [(name, text) for name, text in facts if text],
        "limit_source": finding.limit_source,
        "reason": finding.reason,
        "remedies": [{"name": name, "anchor": answers[name]} for name in finding.remedies[:10] if name in answers],
        "id": finding.id,
    }


class _Areas:
    """The sections of the findings, filled worst first until the page is full.

    Attributes
    ----------
    sections : list of dict
    shown : set of int
        Which findings have a place on the page.
    """

    def __init__(self, report: Report, anchors: dict[int, str], answers: dict[str, str]) -> None:
        self.report = report
        self.anchors = anchors
        self.answers = answers
        self.shown: set[int] = set()
        self._parts = _environment().get_template("parts.html.jinja").module
        self._figures = 0
        self._left = {"findings": _FINDING_BYTES, "evidence": _EVIDENCE_BYTES}
        areas = sections(report)
        ranked = sorted(
            (finding for area in areas for finding in area.findings),
            key=lambda finding: VERDICTS.index(verdict(finding)),
        )
        cards = {id(finding): card for finding in ranked if (card := self._fits(finding))}
        self.shown = set(cards)
        evidence = self._evidence([finding for finding in ranked if id(finding) in cards])
        self.sections = [self._section(area, evidence) for area in areas]

    def _fits(self, finding: Finding) -> bool:
        if not self._left["findings"]:
            return False
        return self._spend("findings", len(str(self._card(finding)).encode()))

    def _spend(self, purse: str, size: int) -> bool:
        if size > self._left[purse]:
            self._left[purse] = 0  # what is worse comes first: once something is left out, the rest is too
            return False
        self._left[purse] -= size
        return True

    def _card(
        self, finding: Finding, evidence: Sequence[Markup] = (), *, groups: Sequence[Finding] = (), open_: bool = False
    ) -> Markup:
        view = _finding(finding, self.anchors[id(finding)], self.report, self.answers)
        members = [_finding(group, self.anchors[id(group)], self.report, self.answers) for group in groups]
        card: Markup = self._parts.finding(view, evidence, members, open_)  # type: ignore[attr-defined]
        return card

    def _evidence(self, ranked: Iterable[Finding]) -> dict[int, list[Markup]]:
        """Draw the evidence of the worst findings first; what is already there is linked, not repeated."""
        places: dict[str, Finding] = {}
        drawn: dict[int, list[Markup]] = {}
        for finding in ranked:
            items = drawn.setdefault(id(finding), [])
            evidence: tuple[Table | Figure, ...] = (*finding.figures, *finding.tables)
            for item in evidence:
                if not self._left["evidence"]:
                    items.append(_left_out(item))
                    continue
                key = f"{finding.area}\0{type(item).__name__}\0{json.dumps(item.to_dict(), sort_keys=True)}"
                if key in places:
                    items.append(self._link(item, places[key]))
                    continue
                markup = self._draw(item)
                if self._spend("evidence", len(str(markup).encode())):
                    places[key] = finding
                    items.append(markup)
                else:
                    items.append(_left_out(item))
        return drawn

    def _link(self, item: Table | Figure, holder: Finding) -> Markup:
        link = Markup('<a href="#{}">{}</a>').format(self.anchors[id(holder)], shorten(clean(holder.statement), 160))
        return _paragraph("{} is shown under {}", item.title, link)

    def _draw(self, item: Table | Figure) -> Markup:
        if isinstance(item, Table):
            markup: Markup = self._parts.table(_table(item))  # type: ignore[attr-defined]
            return markup
        self._figures += 1
        view = {
            "title": item.title,
            "svg": Markup(draw(item, prefix=f"figure-{self._figures}")),  # noqa: S704 - escaped by the XML writer
            "notes": _figure_notes(item),
        }
        drawn: Markup = self._parts.figure(view)  # type: ignore[attr-defined]
        return drawn

    def _section(self, area: Any, evidence: dict[int, list[Markup]]) -> dict[str, Any]:
        open_: list[Markup] = []
        fine: list[Markup] = []
        first = True
        shown = 0
        for family in area.families:
            members = [finding for finding in (family.head, *family.groups) if id(finding) in self.shown]
            if not members:
                continue
            shown += len(members)
            own = [item for finding in members for item in evidence[id(finding)]]
            card = self._card(members[0], own, groups=members[1:], open_=first and bool(own))
            first = first and not own
            (fine if verdict(members[0]) == "ok" else open_).append(card)
        place = [section.name for section in sections(self.report)].index(area.name)
        anchor = f"area-{area.name}" if area.name in _AREA_NAMES else f"area-{place}"
        return {
            "anchor": anchor,
            "title": area.title,
            "counts": family_counts(area.findings),
            "open": open_,
            "fine": fine,
            "left": len(area.findings) - shown,
        }


_AREA_NAMES: Final = frozenset(spec.area for spec in all_checks())


def _paragraph(text: str, *parts: str | Markup) -> Markup:
    safe = [part if isinstance(part, Markup) else shorten(clean(part), 160) for part in parts]
    return Markup('<p class="small muted">') + Markup(text).format(*safe) + Markup("</p>")  # noqa: S704 - constants


def _left_out(item: Table | Figure) -> Markup:
    return _paragraph("{}: left out to keep this page small; it is in report.json.", item.title)


def _figure_notes(figure: Figure) -> list[str]:
    categories = len({str(x) for series in figure.series for x in series.x}) if figure.kind != "lines" else 0
    return [f"The first 40 of {categories:,} are drawn; all are in report.json."] if categories > 40 else []


def _table(table: Table, *, cut: int = 120, most_rows: int = _MOST_ROWS) -> dict[str, Any]:
    """Return a table as the template shows it: cells as text, with the number behind them for sorting."""
    columns, rows = table.columns[:_MOST_COLUMNS], [row[:_MOST_COLUMNS] for row in table.rows[:most_rows]]
    texts = table_rows(columns, rows)
    notes = [table.note] if table.note else []
    if len(table.rows) > most_rows:
        notes.append(f"The first {most_rows} of {len(table.rows):,} rows; all are in report.json.")
    if len(table.columns) > _MOST_COLUMNS:
        notes.append(f"The first {_MOST_COLUMNS} of {len(table.columns):,} columns; all are in report.json.")
    return {
        "title": table.title,
        "columns": [{"name": c.name, "help": c.help, "numeric": c.kind != "text"} for c in columns],
        "rows": [
            [_cell(cell, shorten(text, cut), column) for cell, text, column in zip(row, shown, columns, strict=True)]
            for row, shown in zip(rows, texts, strict=True)
        ],
        "notes": notes,
    }


def _cell(cell: Any, text: str, column: Column) -> dict[str, Any]:
    first = cell[0] if isinstance(cell, tuple | list) else cell
    is_number = isinstance(first, int | float) and not isinstance(first, bool)
    kind = "text" if column.kind == "text" else "num"
    return {
        "text": _minus(text) if is_number else text,
        "value": f"{first:.10g}" if is_number else None,
        "gone": cell == SUPPRESSED,
        "kind": kind,
    }


def _not_run(report: Report) -> list[dict[str, Any]]:
    order = sorted(report.not_run, key=lambda finding: VERDICTS.index(verdict(finding)))
    return [
        {
            "title": _SPECS[f.check].title if f.check in _SPECS else f.check,
            "verdict": verdict(f),
            "reason": f.reason or f.statement,
        }
        for f in order
    ]


def _remedy_anchors(report: Report) -> dict[str, str]:
    """Return an anchor for each method that a finding names, those of the worst findings first."""
    ranked = sorted(report.findings, key=lambda finding: VERDICTS.index(verdict(finding)))
    names = list(dict.fromkeys(name for finding in ranked for name in finding.remedies))
    return {name: f"remedy-{place}" for place, name in enumerate(names[:_MOST_REMEDIES], 1)}


def _remedies(
    report: Report, anchors: dict[int, str], answers: dict[str, str], shown: set[int]
) -> list[dict[str, Any]]:
    methods = {method.name: method for method in catalogue()}
    found = []
    for name, anchor in answers.items():
        named = sorted(
            (finding for finding in report.findings if name in finding.remedies),
            key=lambda finding: VERDICTS.index(verdict(finding)),
        )
        answered = [family.head for family in families(named)]
        method = methods.get(name)
        found.append(
            {
                "name": name,
                "anchor": anchor,
                "tier": method.tier if method else "",
                "summary": method.summary if method else "This version of aboveboard has no method of this name.",
                "snippet": escape(clean(method.remedy.strip("\n"), keep_lines=True)) if method else "",
                "extras": f"pip install 'aboveboard[{','.join(method.extras)}]'" if method and method.extras else "",
                "evidence": _evidence_words(method),
                "reference": _reference(method.paper) if method else None,
                "answers": [
                    {"anchor": anchors[id(f)], "statement": f.statement, "shown": id(f) in shown} for f in answered[:5]
                ],
                "answers_left": max(len(answered) - 5, 0),
            }
        )
    return found


def _evidence_words(method: Method | None) -> str:
    evidence = method.evidence if method else None
    if evidence is None:
        return "None recorded."
    criteria = evidence["full"]["criteria"]
    passed = sum(bool(criterion["passed"]) for criterion in criteria)
    share = "All" if passed == len(criteria) else f"{passed} of"
    return (
        f"{share} {len(criteria)} criteria of its experiment came out, at full scale with seed {evidence['seed']}, "
        f"recorded at commit {str(evidence['commit'])[:12]}. Run it yourself: aboveboard reproduce {evidence['method']}"
    )


def _reference(reference: Reference | None) -> dict[str, str] | None:
    """Return a reference with its address, where that is one that a link may have."""
    if reference is None:
        return None
    url = f"https://doi.org/{reference.doi}" if reference.doi else reference.url
    text = str(Reference(title=reference.title, authors=reference.authors, venue=reference.venue, year=reference.year))
    is_web = url.startswith(("https://", "http://"))
    return {"text": text if is_web or not url else f"{text} {url}", "url": url if is_web else ""}


def _certificate(certificate: Certificate) -> dict[str, Any]:
    confidence = certificate.confidence
    columns = (
        Column("Assumption", "text"),
        Column("Basis", "text"),
        Column("Test", "text"),
        Column("Statistic"),
        Column("Limit"),
        Column("Passed", "text"),
    )
    rows = tuple((a.text, a.basis, a.test, a.statistic, a.limit, a.passed) for a in certificate.assumptions)
    facts = [*certificate.parameters.items(), *certificate.numerics.items(), *certificate.subject.items()]
    return {
        "kind": certificate.kind,
        "guarantee": certificate.guarantee,
        "holds": certificate.holds,
        "confidence": "certain, given its assumptions" if confidence is None else f"{100 * confidence:g}\u00a0%",
        "facts": [(name, _words(value)) for name, value in facts[:30]],
        "assumptions": _listing("What it rests on", columns, rows[:20]),
        "does_not_cover": certificate.does_not_cover[:20],
        "reference": _reference(certificate.reference),
    }


def _words(value: Any) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return cell_text(value, "number") or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _checks(report: Report) -> dict[str, Any]:
    """Return which checks ran, what each asks, and how many findings it gave."""
    given = [finding.check for finding in report.findings]
    names = [name for name in _SPECS if name in given] + sorted(set(given) - set(_SPECS))
    rows = tuple(
        (
            _SPECS[name].title if name in _SPECS else name,
            _SPECS[name].question if name in _SPECS else "",
            given.count(name),
        )
        for name in names
    )
    columns = (Column("Check", "text"), Column("What it asks", "text"), Column("Findings", "count"))
    return _listing("Checks that ran", columns, rows)


def _limits(report: Report) -> dict[str, Any]:
    columns = (
        Column("Limit", "text"),
        Column("Value"),
        Column("Unit", "text"),
        Column("Set by", "text"),
        Column("Reason", "text"),
        Column("Source", "text"),
    )
    rows = tuple(
        (
            entry["name"],
            entry["value"],
            entry["unit"],
            "user" if entry["by_user"] else "default",
            entry["reason"],
            entry["source"],
        )
        for entry in report.limits
    )
    return _listing("Limits in force", columns, rows)


def _listing(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the view of a table that is read rather than looked up: long texts, and as many rows as there is room."""
    short = [tuple(shorten(clean(v), 400) if isinstance(v, str) else v for v in row) for row in rows]
    kept = _within(short)
    view = _table(Table(title, columns, tuple(kept)), cut=400, most_rows=len(kept))
    view["notes"] += [f"{len(rows) - len(kept):,} more in report.json."] if len(kept) < len(rows) else []
    return view


def _accepted(report: Report) -> dict[str, Any]:
    columns = (Column("Finding", "text"), Column("Reason", "text"), Column("Expires", "text"), Column("State", "text"))

    def state(entry: dict[str, Any]) -> str:
        if not entry.get("in_force", True):
            return "expired"
        return "in force" if entry.get("found", True) else "in force; nothing found"

    rows = tuple((e["id"], e["reason"], e.get("expires") or "never", state(e)) for e in report.accepted)
    return _listing("Accepted findings", columns, rows)


def _facts(report: Report) -> list[tuple[str, str]]:
    """Return what was audited as pairs of a name and a text."""
    get = report.subject.get
    source = get("model_source") or {}
    facts: list[tuple[str, Any]] = [
        ("Suite", get("suite")),
        *(
            (fact["name"], fact["value"] if isinstance(fact["value"], str) else _figure(fact["value"]))
            for fact in get("facts") or []
        ),
        ("Columns", ", ".join(f"{column['role']}: {column['name']}" for column in get("columns") or [])),
        ("Data", {"real": "real", "simulated": "simulated"}.get(get("data", ""))),
        ("Task", get("task")),
        ("Target", get("target")),
        ("Classes", ", ".join(get("classes") or [])),
        ("Positive class", get("positive")),
        (unit(report)[1].capitalize(), _figure(get("rows"))),
        ("Training rows", _figure(get("training_rows"))),
        ("Reference rows", _figure(get("reference_rows"))),
        ("Model", get("model")),
        ("Model from", f"{source.get('name')} ({source.get('format')})" if source else None),
        ("Model file", f"sha256 {source['sha256']}" if source.get("sha256") else None),
        ("Types that were trusted", ", ".join(source.get("trusted_types") or [])),
        ("Model run by", ", ".join(f"{name} {version}" for name, version in (source.get("versions") or {}).items())),
        ("Other model", _other(get("other_model"))),
        ("Predictions", {"score": "scores", "label": "labels", "value": "values"}.get(get("prediction_type", ""))),
        ("Threshold", _figure(get("threshold"))),
        ("Weighted", {True: "yes", False: "no"}.get(get("weighted", ""))),
        ("Clusters", _figure(get("clusters"))),
        ("Compared with", ", ".join(f"{k}: {v}" for k, v in (get("reference_groups") or {}).items())),
        ("Fingerprint", f"sha256 {get('data_sha256')}" if get("data_sha256") else None),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _other(model: dict[str, Any] | None) -> str | None:
    """Return what the audited model was compared with."""
    if model is None:
        return None
    source = model.get("source") or {}
    return f"{model['model']}, {source['name']} ({source['format']})" if source else str(model["model"])


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _groups(subject: dict[str, Any]) -> dict[str, Any]:
    columns = (Column("Sensitive column", "text"), Column("Groups", "text"))
    rows = tuple((entry["name"], ", ".join(entry["groups"])) for entry in subject.get("sensitive", []))
    return _listing("Sensitive columns", columns, rows)


def _timing(report: Report) -> list[tuple[str, str]]:
    timing = report.timing
    lines = []
    if "effort" in timing:
        lines.append(("Effort", str(timing["effort"])))
    if "begun" in timing:
        lines.append(("Begun", str(timing["begun"])))
    if "seconds" in timing:
        lines.append(("Took", f"{timing['seconds']:,.1f} s"))
    slow = sorted(timing.get("checks", {}).items(), key=lambda pair: (-pair[1], pair[0]))
    if slow:
        lines.append(
            ("By check", ", ".join(f"{_SPECS[n].title if n in _SPECS else n} {s:.1f} s" for n, s in slow[:30]))
        )
    return lines
