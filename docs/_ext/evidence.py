"""Directives that build tables and figures from what the code and the recorded evidence say, so that no page repeats
a figure by hand.

``evidence-figure`` (a method's recorded figures and criteria), ``evidence-table`` (every criterion of every method),
``method-table``, ``check-table``, ``suite-tables`` and ``check-limits``.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aboveboard.auditing.limits import Limits
from aboveboard.auditing.report.figures import draw
from aboveboard.auditing.suites import AREAS, EFFORTS, SUITES, TABULAR, Suite, all_checks
from aboveboard.core.catalogue import Method, catalogue
from aboveboard.reproduce import Criterion, Outcome

_NEEDS = {
    "sensitive": "a sensitive column",
    "score": "scores",
    "model": "the model itself",
    "train": "the training data",
    "reference": "older data",
    "reference predictions": "predictions on them",
    "reference labels": "their labels",
}
_NO_BREAK = "\N{NO-BREAK SPACE}"
_TASKS = ("binary", "multiclass", "regression")

Cell = str | nodes.Node


class EvidenceFigure(SphinxDirective):
    """``{evidence-figure} area/slug``: the figures that were recorded at full scale, and the criteria with verdicts."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        method = _method(self.arguments[0])
        self.env.note_dependency(str(_evidence_file(method)))
        evidence = method.evidence
        if evidence is None:
            return [_no_evidence(f"No evidence recorded yet for {method.name}.", method)]
        outcome = Outcome.from_dict(evidence["full"])
        shown: list[nodes.Node] = []
        for number, figure in enumerate(outcome.figures):
            svg = draw(figure, prefix=f"{method.slug}-{number}")
            html = f'<figure class="evidence-figure">{svg}</figure>'
            shown.append(nodes.paragraph(text=figure.title, classes=["evidence-title"]))
            shown.append(nodes.raw("", html, format="html"))
            shown.append(nodes.paragraph(text=figure.alt, classes=["evidence-alt"]))
        rows = [[c.statement, _number(c.figure, c.unit), _bound(c), _verdict(c)] for c in outcome.criteria]
        shown.append(_table(["Claim", "Measured", "Must be", "Verdict"], rows))
        shown += [nodes.paragraph(text=note) for note in outcome.notes]
        shown.append(nodes.paragraph(text=_provenance(evidence), classes=["evidence-source"]))
        return shown


class EvidenceTable(SphinxDirective):
    """``{evidence-table}``: every criterion of every method, with what was measured and on what."""

    def run(self) -> list[nodes.Node]:
        shown: list[nodes.Node] = []
        for method in catalogue():
            self.env.note_dependency(str(_evidence_file(method)))
            evidence = method.evidence
            if evidence is None:
                shown.append(_no_evidence(f"No evidence recorded yet for {method.name}.", method))
                continue
            criteria = Outcome.from_dict(evidence["full"]).criteria
            rows: list[list[Cell]] = [
                [c.statement, _number(c.figure, c.unit), _bound(c), _verdict(c)] for c in criteria
            ]
            shown += [
                self._heading(method, evidence),
                _table(["Claim", "Measured", "Must be", "Verdict"], rows, widths=[6, 2, 2, 1]),
            ]
        return shown

    def _heading(self, method: Method, evidence: dict[str, Any]) -> nodes.Node:
        hardware = evidence["hardware"]
        where = (
            f": commit {evidence['commit'][:10]}, seed {evidence['seed']}, {evidence['minutes']:g} minutes on "
            f"{hardware['cores']} cores and {hardware['memory_gib']}{_NO_BREAK}GiB."
        )
        link = _doc_link(self.env.docname, f"/methods/{method.area}/{method.slug}", method.name)
        return nodes.paragraph("", "", nodes.strong("", "", link), nodes.Text(where))


class MethodTable(SphinxDirective):
    """``{method-table}``: the catalogue, one row per method."""

    def run(self) -> list[nodes.Node]:
        rows: list[list[Cell]] = [
            [
                _doc_link(self.env.docname, f"/methods/{m.area}/{m.slug}", m.name),
                m.area,
                ", ".join(m.role),
                m.tier,
                m.summary,
            ]
            for m in catalogue()
        ]
        return [_table(["Method", "Area", "Role", "Tier", "What it does"], rows)]


class CheckTable(SphinxDirective):
    """``{check-table}``: the tabular suite, one row per check."""

    def run(self) -> list[nodes.Node]:
        rows: list[list[Cell]] = []
        for spec in TABULAR:
            caps = [f"{cap:,}" if cap else "all" for cap in map(spec.rows, EFFORTS)]
            rows.append(
                [
                    _doc_link(self.env.docname, f"/checks/{spec.name}", spec.title),
                    spec.question,
                    AREAS[spec.area],
                    ", ".join(task for task in _TASKS if task in spec.tasks),
                    ", ".join(text for need, text in _NEEDS.items() if need in spec.needs) or "nothing more",
                    spec.cost,
                    "all" if set(caps) == {"all"} else " / ".join(caps),
                ]
            )
        rows_heading = f"Rows ({' / '.join(EFFORTS)})"
        return [_table(["Check", "Question", "Section", "Tasks", "Needs", "Cost", rows_heading], rows)]


class SuiteTables(SphinxDirective):
    """``{suite-tables}``: the suites other than the tabular one: what each takes, and its checks."""

    def run(self) -> list[nodes.Node]:
        shown: list[nodes.Node] = []
        for suite in SUITES[1:]:
            command = nodes.literal(text=f"aboveboard audit DATA --suite {suite.name}")
            words = f": {suite.takes}. Without DATA: {suite.example}."
            shown.append(
                nodes.paragraph("", "", nodes.strong(text=suite.title), nodes.Text(". "), command, nodes.Text(words))
            )
            shown += self._options(suite)
            checks: list[list[Cell]] = [
                [_doc_link(self.env.docname, f"/checks/{spec.name}", spec.title), spec.question, spec.cost]
                for spec in suite.checks
            ]
            shown.append(_table(["Check", "Question", "Cost"], checks))
        return shown

    def _options(self, suite: Suite) -> list[nodes.Node]:
        rows: list[list[Cell]] = [
            [nodes.literal(text=f"--column {role.name}=..."), role.help + (" May be repeated." if role.many else "")]
            for role in suite.columns
        ]
        rows += [
            [nodes.literal(text=f"--setting {s.name}={'|'.join(s.choices) or '...'}"), s.help] for s in suite.settings
        ]
        return [_table(["Option", "Meaning"], rows)] if rows else []


class CheckLimits(SphinxDirective):
    """``{check-limits} name``: the default limits of one check, each with its reason and source."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        check = self.arguments[0]
        if check not in {spec.name for spec in all_checks()}:
            raise self.error(f"no check is called {check!r}")
        self.env.note_dependency(str(resources.files("aboveboard.auditing") / "limits.toml"))
        limits = Limits().of(check)
        if not limits:
            return [nodes.paragraph(text="This check judges against no number, so there is no limit to set.")]
        rows: list[list[Cell]] = [
            [nodes.literal(text=limit.name), f"{limit.value:g}", limit.unit, limit.reason, limit.source]
            for limit in limits
        ]
        return [_table(["Limit", "Default", "Unit", "Reason", "Source"], rows)]


def _method(path: str) -> Method:
    for method in catalogue():
        if f"{method.area}/{method.slug}" == path:
            return method
    raise ValueError(f"no method is called {path!r}; expected area/slug of one of the .toml files in reproduce/")


def _evidence_file(method: Method) -> Path:
    return Path(str(resources.files("aboveboard"))) / "reproduce" / method.area / f"{method.slug}.json"


def _no_evidence(text: str, method: Method) -> nodes.Node:
    command = nodes.literal(text=f"aboveboard reproduce {method.name} --scale full --record")
    return nodes.warning("", nodes.paragraph("", f"{text} It is recorded with ", command, nodes.Text(".")))


def _provenance(evidence: dict[str, Any]) -> str:
    hardware = evidence["hardware"]
    versions = ", ".join(f"{name} {number}" for name, number in evidence["versions"].items())
    return (
        f"Recorded at commit {evidence['commit'][:10]} with seed {evidence['seed']}, in {evidence['minutes']:g} "
        f"minutes on {hardware['cores']} cores and {hardware['memory_gib']} GiB of memory, with {versions}."
    )


def _verdict(criterion: Criterion) -> nodes.Node:
    if criterion.passed:
        return nodes.inline(text="passed", classes=["verdict", "verdict-passed"])
    return nodes.inline(text="FAILED", classes=["verdict", "verdict-failed"])


def _number(value: float, unit: str) -> str:
    size = abs(value)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".strip().replace(" ", _NO_BREAK)


def _bound(criterion: Criterion) -> str:
    relation = {"<=": "≤", ">=": "≥", "==": "="}.get(criterion.relation, criterion.relation)
    return f"{relation}{_NO_BREAK}{_number(criterion.bound, criterion.unit)}"


def _doc_link(docname: str, target: str, text: str) -> nodes.Node:
    link = addnodes.pending_xref(
        "", refdomain="std", reftype="doc", refexplicit=True, refwarn=True, reftarget=target, refdoc=docname
    )
    link += nodes.inline(text=text)
    return link


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, widths: Sequence[int] | None = None
) -> nodes.Node:
    group = nodes.tgroup(cols=len(headings))
    group += [nodes.colspec(colwidth=width) for width in widths or [1] * len(headings)]
    group += nodes.thead("", _row(headings))
    group += nodes.tbody("", *map(_row, rows))
    fixed = [] if widths is None else ["colwidths-given"]
    return nodes.table("", group, classes=["evidence-table", *fixed])


def _row(cells: Sequence[Cell]) -> nodes.Node:
    return nodes.row(
        "", *(nodes.entry("", nodes.paragraph("", "", nodes.Text(c) if isinstance(c, str) else c)) for c in cells)
    )


def setup(app: Sphinx) -> dict[str, Any]:
    for name, directive in {
        "evidence-figure": EvidenceFigure,
        "evidence-table": EvidenceTable,
        "method-table": MethodTable,
        "check-table": CheckTable,
        "suite-tables": SuiteTables,
        "check-limits": CheckLimits,
    }.items():
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
