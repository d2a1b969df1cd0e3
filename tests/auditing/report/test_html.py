"""The page stands alone, is safe, small and accessible, and says the same each time."""

import base64
import dataclasses
import functools
import hashlib
import itertools
import json
import re
import types
from html.parser import HTMLParser
from importlib import resources

import pytest

import aboveboard.auditing.report.figures as figures_module
import aboveboard.auditing.report.html as html_module
from aboveboard.auditing.report.figures import COLOURS
from aboveboard.core import Column, Figure, Finding, Reference, Report, Series, Table
from aboveboard.core.report import renderers

_VOID = {"meta", "link", "img", "br", "hr", "input", "path", "use", "rect"}


class _Page(HTMLParser):
    """The elements of a page, with the text of each."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.text = []
        self._open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": ""}
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append({"tag": tag, "attrs": dict(attrs), "text": ""})

    def handle_endtag(self, tag):
        while self._open and self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        self.text.append(data)
        for element in self._open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


@pytest.fixture(scope="module")
def html(report):
    return renderers["html"](report)


@pytest.fixture(scope="module")
def page(html):
    return _Page(html)


def _policy(page):
    meta = next(e for e in page.all("meta") if e["attrs"].get("http-equiv") == "Content-Security-Policy")
    return dict(part.strip().split(" ", 1) for part in meta["attrs"]["content"].split(";"))


def test_the_policy_allows_the_one_style_and_the_one_script_by_hash_and_nothing_else(html, page):
    policy = _policy(page)
    assert policy == {
        "default-src": "'none'",
        "style-src": policy["style-src"],
        "script-src": policy["script-src"],
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"


def _assert_nothing_active(page, *, styles=frozenset()):
    for element in page.elements:
        for name, value in element["attrs"].items():
            assert name != "style" or value in styles, element
            assert not name.startswith("on"), element
            if name in ("href", "src", "xlink:href", "action", "formaction", "data", "poster"):
                assert re.match(r"#|https?://|data:image/svg\+xml,", value or ""), element
        assert element["tag"] not in ("iframe", "object", "embed", "form", "base", "img", "audio", "video")


def test_nothing_on_the_page_is_loaded_or_active(page):
    _assert_nothing_active(page)
    assert all(e["attrs"]["rel"] == "icon" for e in page.all("link"))


@pytest.fixture
def drawn_once(monkeypatch):
    """Figures that do not change from name to name are drawn once; names in figures have tests of their own."""
    monkeypatch.setattr(html_module, "draw", _draw_once)


@functools.cache
def _draw_once(figure, *, prefix):
    return figures_module.draw(figure, prefix=prefix)


def test_a_hostile_name_adds_no_element_and_no_attribute(make_report, hostile_name, drawn_once):
    page = _Page(renderers["html"](make_report(hostile_name)))
    _assert_nothing_active(page)
    assert len(page.all("style")) == len(page.all("script")) == 1
    tame = _Page(renderers["html"](make_report("tame")))
    extra = {e["tag"] for e in page.elements} - {e["tag"] for e in tame.elements}
    assert extra <= {"desc"}
    names = {name for e in page.elements for name in e["attrs"]} - {name for e in tame.elements for name in e["attrs"]}
    assert not names


def test_a_hostile_name_is_shown_letter_by_letter(make_report, hostile_names):
    for name in ("script", "attribute", "entity", "rich", "mathtext", "jinja", "emoji", "right-to-left"):
        text = "".join(_Page(renderers["html"](make_report(hostile_names[name]))).text)
        assert f"sex = {hostile_names[name]} are" in text


_CELLS = frozenset(
    {
        "text-align: left; vertical-align: top",
        "text-align: left; vertical-align: top; white-space: nowrap",
        "text-align: right; vertical-align: top; white-space: nowrap",
    }
)


def test_cells_in_a_notebook_carry_their_layout_themselves(report):
    """A notebook that is not trusted drops the style sheet, and Jupyter's own aligns cells to the right."""
    cells = _Page(report._repr_html_()).all("td", "th")
    assert cells
    assert {cell["attrs"]["style"] for cell in cells} == _CELLS


def test_all_notebook_output_is_inert_too(make_report, hostile_name):
    text = renderers["notebook"](make_report(hostile_name))
    page = _Page(text)
    _assert_nothing_active(page, styles=_CELLS)
    assert not page.all("script", "html", "body", "head")
    assert text.encode("utf-8")


def test_equal_reports_give_equal_bytes_also_after_a_round_trip(report, html):
    again = Report.from_json(report.to_json())
    for name, render in renderers.items():
        assert render(again) == render(report), name
    assert html == renderers["html"](report)


def test_only_times_differ_between_runs(report, html):
    later = dataclasses.replace(
        report,
        timing={**report.timing, "begun": "2027-01-01T00:00:00+00:00", "seconds": 99.9, "checks": {"performance": 9.9}},
    )
    changed = [(a, b) for a, b in zip(html.split("\n"), renderers["html"](later).split("\n"), strict=True) if a != b]
    assert len(changed) == 4
    assert all(re.search(r"<time|<dt>(Begun|Took|By check)</dt>", line) for line, _ in changed)


def _huge():
    name = "<&'\"" * 150
    table = Table(
        name, tuple(Column(name, "text", name) for _ in range(30)), tuple((name,) * 30 for _ in range(60)), name
    )
    findings = []
    for i in range(1500):
        x = tuple(f"{name}{i}/{j}" for j in range(100))
        figure = Figure(
            "intervals", f"{name}{i}", name, name, (Series(name, x, (0.5,) * 100, (0.4,) * 100, (0.6,) * 100),)
        )
        findings.append(
            Finding(
                id=f"{name}/{i}",
                check=name,
                area="fairness" if i % 2 else name,
                statement=f"{name} {i}",
                severity=("fail", "ok", "note", "warn")[i % 4],
                reason=name,
                value=1.0,
                n=10,
                evidence=(figure, table),
                remedies=(f"{name}{i}",),
            )
        )
    silent = tuple(
        Finding(id=f"{name}/{i}", check=name, area=name, statement=name, status="skipped", reason=name)
        for i in range(500)
    )
    return Report(
        subject={
            "features": [{"name": name, "kind": "text"}] * 5000,
            "classes": [name] * 100,
            "sensitive": [{"name": name, "groups": [name] * 1000}] * 100,
            "target": name,
            "model": name,
        },
        findings=tuple(findings),
        not_run=silent,
        notes=(name,) * 1000,
        limits=({"name": name, "value": 1.0, "unit": name, "reason": name, "source": name, "by_user": True},) * 500,
        accepted=({"id": name, "reason": name, "expires": None, "in_force": True},) * 500,
        environment={f"{name}{i}": name for i in range(500)},
    )


def test_the_page_stays_under_two_megabytes_and_says_what_it_leaves_out():
    text = renderers["html"](_huge())
    assert len(text.encode()) < 2_000_000
    assert re.search(r"[\d,]+ more findings are in report\.json", text)
    assert "left out to keep this page small; it is in report.json" in text


def test_long_tables_and_crowded_figures_are_cut_and_say_so():
    x = tuple(map(str, range(100)))
    figure = Figure("bars", "F", "x", "y", (Series("", x, (0.5,) * 100),))
    table = Table("T", tuple(Column(name) for name in x), tuple(tuple(range(100)) for _ in range(500)))
    finding = Finding(id="a", check="c", area="data", statement="S.", evidence=(figure, table))
    text = renderers["html"](Report(subject={}, findings=(finding,)))
    assert "The first 60 of 500 rows; all are in report.json." in text
    assert "The first 20 of 100 columns; all are in report.json." in text
    assert "The first 40 of 100 are drawn; all are in report.json." in text


def test_evidence_that_several_findings_share_is_on_the_page_once(html):
    assert html.count("<caption>Selection rate by sex</caption>") == 1
    assert html.count("Selection rate by sex is shown under") == 2


def test_every_link_inside_the_page_leads_somewhere_and_ids_are_unique(page):
    ids = [e["attrs"]["id"] for e in page.elements if "id" in e["attrs"]]
    assert len(ids) == len(set(ids))
    links = [e["attrs"]["href"][1:] for e in page.elements if e["attrs"].get("href", "").startswith("#")]
    assert set(links) <= set(ids)
    refs = [
        name
        for e in page.elements
        for k in ("aria-labelledby", "aria-describedby")
        for name in e["attrs"].get(k, "").split()
    ]
    assert set(refs) <= set(ids)


def test_headings_descend_one_level_at_a_time_from_one_first_level(page):
    levels = [int(e["tag"][1]) for e in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_the_page_has_landmarks_a_language_and_a_skip_link(page):
    assert page.all("html")[0]["attrs"]["lang"] == "en"
    for tag in ("main", "nav", "header", "footer"):
        assert page.all(tag), tag
    assert page.all("nav")[0]["attrs"]["aria-label"]
    first = page.all("a")[0]
    assert first["attrs"]["href"] == "#main"
    assert page.all("title")[0]["text"].startswith("1 finding fails")


def test_every_table_has_a_caption_and_scoped_headers(page):
    tables = page.all("table")
    assert len(tables) == len(page.all("caption")) >= 6
    assert all(header["attrs"].get("scope") in ("col", "row") for header in page.all("th"))


def test_every_verdict_is_said_in_words_beside_its_colour(page):
    for element in page.elements:
        if element["attrs"].get("class", "").startswith("chip"):
            assert element["text"].strip()


def test_the_summary_says_what_is_wrong_how_sure_what_to_do_and_what_did_not_run(page):
    summary = next(e for e in page.all("section") if e["attrs"].get("id") == "summary")["text"]
    for said in (
        "What is wrong",
        "Rows with sex = Female are selected 11.9 points less often",
        "95\u00a0% simultaneous interval −12.7 to −11.1 points (max-|t| bootstrap), 5,421 rows",
        "RandomizedFairClassifier",
        "What could not be decided",
        "may or may not lie within 10 points",
        "What did not run, and why",
        "No training data were given",
    ):
        assert said in summary
    assert "1,123 rows occur more than once" not in summary  # accepted


def test_suppressed_cells_stay_suppressed(page):
    gone = [e for e in page.all("td", "th") if e["text"] == "suppressed"]
    assert len(gone) == 4
    assert all("data-v" not in e["attrs"] for e in gone)


def test_a_link_that_is_not_to_the_web_is_shown_as_text(make_report):
    page = _Page(renderers["html"](make_report("javascript:alert(1)")))
    assert all(not e["attrs"].get("href", "").startswith("javascript") for e in page.elements)
    assert "javascript:alert(1)" in "".join(page.text)


def test_every_remedy_of_the_catalogue_is_shown_with_its_snippet():
    from aboveboard.core import catalogue

    methods = catalogue()
    finding = Finding(
        id="a", check="c", area="fairness", statement="Bad.", severity="fail", remedies=tuple(m.name for m in methods)
    )
    text = "".join(_Page(renderers["html"](Report(subject={}, findings=(finding,)))).text)
    for method in methods:
        assert method.summary in text
        assert method.remedy.strip("\n") in text


def test_an_empty_report_has_a_page():
    assert "Nothing was found out" in renderers["html"](Report(subject={}, findings=()))
    assert "Nothing was found out" in renderers["notebook"](Report(subject={}, findings=()))


def test_a_report_shows_itself_in_a_notebook(report):
    assert "1 finding fails" in report._repr_html_()
    assert len(report._repr_html_()) < 20_000


def test_a_notebook_gets_html_and_a_line_of_text(report):
    formatters = pytest.importorskip("IPython.core.formatters")
    data, _ = formatters.DisplayFormatter().format(report)
    assert data == {"text/plain": repr(report), "text/html": report._repr_html_()}


def test_the_page_is_written_where_one_asks(report, html, tmp_path):
    path = tmp_path / "index.html"
    report.to_html(path)
    assert path.read_bytes() == html.encode()


def _style():
    return (resources.files("aboveboard.auditing.report") / "report.css").read_text(encoding="utf-8")


def _variables():
    """The custom properties of light and dark pages."""
    blocks = re.findall(r":root \{(.*?)\n\s*\}", _style(), flags=re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks)
    return {"light": light, "dark": dark}


def _luminance(colour):
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_black_and_white_is_21():
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    assert _contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_at_least_the_contrast_that_wcag_aa_asks_for(scheme):
    colours = _variables()[scheme]
    pairs = [(text, ground) for text in ("ink", "muted", "link") for ground in ("page", "card", "code")]
    tones = ("fail", "warn", "unsure", "note", "ok", "idle")
    pairs += [(tone, ground) for tone in tones for ground in (f"{tone}-bg", "card")]
    pairs += [(text, f"{tone}-bg") for tone in tones for text in ("ink",)]
    pairs += [("f-ink", ground) for ground in ("card", "page")]
    for text, ground in pairs:
        assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_marks_in_figures_stand_out_from_the_ground(scheme):
    colours = _variables()[scheme]
    for name in ("f-ref", *(f"f-s{i}" for i in range(8))):
        assert _contrast(colours[name], colours["card"]) >= 3, name


def test_light_and_dark_define_the_same_colours_and_figures_carry_the_light_ones():
    variables = _variables()
    assert variables["light"].keys() == variables["dark"].keys()
    assert {
        name.removeprefix("f-"): value for name, value in variables["light"].items() if name.startswith("f-")
    } == COLOURS


def test_the_schema_the_page_and_the_figures_tell_of_the_same_numbers(report, page):
    data = json.loads(report.to_json())
    text = "".join(page.text)
    for finding in data["findings"]:
        assert finding["statement"] in text
        assert finding["id"] in text


def test_findings_on_single_groups_are_folded_into_their_family():
    def one(id_, group=""):
        return Finding(id=id_, check="g", area="fairness", statement=f"On {id_}.", severity="fail", group=group)

    findings = (one("g/rate/sex"), one("g/rate/sex=F", "sex=F"), one("g/rate/sex=M", "sex=M"))
    page = _Page(renderers["html"](Report(subject={}, findings=findings)))
    (article,) = [e for e in page.all("article") if e["attrs"].get("id") == "finding-1"]
    assert "2 groups" in article["text"]
    assert "On g/rate/sex=F." in article["text"]
    assert {e["attrs"]["id"] for e in page.all("li") if "id" in e["attrs"]} == {"finding-2", "finding-3"}


@pytest.fixture
def method(monkeypatch):
    """A method in the catalogue, with evidence in which one criterion of three did not come out."""
    found = types.SimpleNamespace(
        name="RandomizedFairClassifier",
        slug="x",
        area="fairness",
        tier="experimental",
        summary="Finds the most accurate <classifier> under a parity.",
        remedy="model = fit(X, y)\nif a < b and c > d:\n    print('</code><script>')\n",
        extras=("fast", "ot"),
        paper=Reference(title="A paper", authors="A. Author", year=2025, doi="10.1000/x"),
        evidence={
            "method": "RandomizedFairClassifier",
            "seed": 3,
            "commit": "0123456789abcdef",
            "full": {"criteria": [{"passed": True}, {"passed": False}, {"passed": True}]},
        },
    )
    monkeypatch.setattr(html_module, "catalogue", lambda: (found,))
    return found


def test_a_remedy_shows_its_snippet_its_evidence_its_extras_and_its_source(report, method):
    page = _Page(renderers["html"](report))
    (remedy,) = [e for e in page.all("article") if e["attrs"].get("id") == "remedy-1"]
    for said in (
        "Experimental",
        method.summary,
        "pip install 'aboveboard[fast,ot]'",
        "2 of 3 criteria of its experiment came out, at full scale with seed 3, recorded at commit 0123456789ab.",
        "aboveboard reproduce RandomizedFairClassifier",
        'A. Author, "A paper", 2025. https://doi.org/10.1000/x',
        "Rows with sex = Female are selected",
    ):
        assert said in remedy["text"]
    assert method.remedy.strip("\n") in [e["text"] for e in page.all("code")]
    assert "https://doi.org/10.1000/x" in [e["attrs"].get("href") for e in page.all("a")]
    assert len(page.all("script")) == 1


def test_a_method_without_evidence_says_so(report, method):
    method.evidence = None
    assert "None recorded." in renderers["html"](report)
