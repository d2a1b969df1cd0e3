"""A comparison in every form: names shown letter by letter, tables that hold, one page that stands alone."""

import dataclasses
import io
import json
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

import aboveboard
from aboveboard.auditing.report.comparison import print_comparison
from aboveboard.auditing.report.view import clean
from aboveboard.core import Interval

_parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_DETAILS = re.compile(r"<details><summary>[^<>]*</summary>|</details>")


@pytest.fixture(scope="session")
def make_comparison(make_report):
    """Compare the full report with what it was before: a name stands wherever a user's text can stand."""

    def make(name):
        new = make_report(name)
        first, second, third, *rest = new.findings
        old = dataclasses.replace(
            new,
            subject={**new.subject, "features": [{"name": f"{name} gone", "kind": "text"}], "data_sha256": "1e" * 32,
                     "sensitive": [{"name": name, "groups": [name]}], "target": f"{name}?"},
            findings=(
                dataclasses.replace(first, id=f"{first.id}?", group=name),
                dataclasses.replace(second, severity="fail"),
                dataclasses.replace(third, value=0.5, interval=Interval(0.49, 0.51)),
                *rest[:-1],
            ),
            not_run=(),
            accepted=({"id": name, "reason": name, "expires": None, "in_force": True},),
            limits=({**new.limits[0], "value": 0.2}, *new.limits[1:]),
            environment={**new.environment, name: name},
        )  # fmt: skip
        return aboveboard.compare(old, new)

    return make


@pytest.fixture
def comparison(make_comparison):
    return make_comparison("Female")


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def test_a_hostile_name_adds_no_markup_to_the_markdown(make_comparison, hostile_name):
    for token in _parser.parse(make_comparison(hostile_name).to_markdown()):
        for part in (token, *(token.children or ())):
            if part.type == "html_block":
                assert not _DETAILS.sub("", part.content).strip()
            assert part.type not in (
                "html_inline", "link_open", "image", "code_inline", "code_block", "fence", "em_open", "strong_open",
                "s_open", "hr", "blockquote_open", "ordered_list_open", "hardbreak",
            )  # fmt: skip


def test_every_row_of_every_markdown_table_has_as_many_cells_as_its_head(make_comparison, hostile_name):
    text = make_comparison(hostile_name).to_markdown()
    assert [token.type for token in _parser.parse(text)].count("table_open") == text.count("\n| ---")
    for table in re.split("\n\n", text):
        rows = [line for line in table.split("\n") if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_github_sees_no_mention_no_issue_and_no_address(make_comparison, hostile_names):
    for name in ("mention", "issue", "bare-link", "markdown-link"):
        text = make_comparison(hostile_names[name]).to_markdown()
        assert not re.search(r"@\w|#\d|https?://|www\.|GH-\d", text, flags=re.IGNORECASE)


@pytest.mark.parametrize("form", ["page", "notebook"])
def test_a_hostile_name_adds_no_tag_and_no_attribute_and_is_read_back(make_comparison, hostile_name, form):
    def write(name):
        comparison = make_comparison(name)
        return comparison.to_html() if form == "page" else comparison._repr_html_()

    page, harmless = _Page(write(hostile_name)), _Page(write("Female"))
    assert set(page.tags) == set(harmless.tags)
    assert set(page.attributes) == set(harmless.attributes)
    assert page.tags.count("script") == (form == "page")
    assert any(clean(hostile_name)[:100].strip() in text for text in page.texts)


def test_a_hostile_name_does_not_steer_the_terminal(make_comparison, hostile_name):
    buffer = io.StringIO()
    console = Console(file=buffer, width=100, color_system="truecolor", force_terminal=True, legacy_windows=False)
    print_comparison(make_comparison(hostile_name), console)
    shown = re.sub(r"\x1b\[[\d;]*m", "", buffer.getvalue())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)


def test_a_hostile_name_is_read_back_from_json(make_comparison, hostile_name):
    data = json.loads(make_comparison(hostile_name).to_json())
    assert any(difference["name"] == f"sensitive: {hostile_name}" for difference in data["subject"])


def test_a_terminal_without_letters_gets_signs_that_it_has(comparison):
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    print_comparison(comparison, Console(file=buffer, width=80, legacy_windows=False))
    buffer.flush()
    assert b"[0.49 to 0.51]" in buffer.buffer.getvalue()


def test_all_forms_say_the_same(comparison):
    text = str(comparison)
    for form in (text, comparison.to_markdown(), comparison.to_html(), comparison._repr_html_()):
        assert "1 finding is new or worse" in form
        for words in ("Better", "Gone", "New", "Figures that moved beyond chance", "Limits that differ"):
            assert words in form, words
    assert "[0.49 to 0.51]" in text
    assert "[0.929 to 0.939]" in text


def test_the_page_allows_its_own_style_and_script_alone(comparison):
    page = comparison.to_html()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; .*", policy)
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page)


def test_long_lists_are_cut_and_counted(make_report):
    report = make_report("Female")
    first = report.findings[0]
    many = tuple(dataclasses.replace(first, id=f"x/{at}", check="x", group="") for at in range(100))
    text = aboveboard.compare(report, dataclasses.replace(report, findings=many)).to_markdown()
    assert "40 more in" in text


def test_markdown_fits_into_a_comment(make_report, hostile_names):
    name = hostile_names["long"]
    report = make_report(name)
    first = dataclasses.replace(report.findings[0], group="", statement=name, evidence=())
    many = tuple(
        dataclasses.replace(first, id=f"{area}/{at}", check=area, severity=severity)
        for area in ("x", "y")
        for at in range(100)
        for severity in ("fail" if at % 2 else "warn",)
    )
    old = dataclasses.replace(report, findings=many[50:])
    new = dataclasses.replace(report, findings=tuple(dataclasses.replace(f, severity="note") for f in many[:150]))
    for pair in ((old, new), (new, old)):
        assert len(aboveboard.compare(*pair).to_markdown()) < 65_536


def test_files_are_written(comparison, tmp_path):
    for name, write in (
        ("c.json", comparison.to_json),
        ("c.md", comparison.to_markdown),
        ("c.html", comparison.to_html),
    ):
        assert write(tmp_path / name) == (tmp_path / name).read_text(encoding="utf-8")
