"""Markdown shows names letter by letter, and its tables hold."""

import re

import pytest
from markdown_it import MarkdownIt

from aboveboard.auditing.report.markdown import markdown_text
from aboveboard.auditing.report.view import clean
from aboveboard.core.report import renderers

_parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_DETAILS = re.compile(r"<details><summary>[\d,]+ (?:within limits|on single groups)</summary>|</details>")


def _tokens(text):
    for token in _parser.parse(text):
        yield token
        yield from token.children or ()


def test_a_hostile_name_adds_no_markup(make_report, hostile_name):
    for token in _tokens(renderers["markdown"](make_report(hostile_name))):
        if token.type == "html_block":
            assert not _DETAILS.sub("", token.content).strip()
        assert token.type not in (
            "html_inline", "link_open", "image", "code_inline", "code_block", "fence", "em_open", "strong_open",
            "s_open", "hr", "blockquote_open", "bullet_list_open", "ordered_list_open", "hardbreak",
        )  # fmt: skip


def test_a_hostile_name_is_shown_letter_by_letter(hostile_name):
    shown = "".join(
        token.content for token in _tokens("x " + markdown_text(hostile_name)) if token.type in ("text", "text_special")
    )
    assert shown.replace("\u200b", "").removeprefix("x").strip() == clean(hostile_name).strip()


@pytest.mark.parametrize("name", ["list", "heading", "setext", "ordered", "formula-plus", "space"])
def test_a_line_that_begins_with_a_hostile_name_is_a_paragraph(hostile_names, name):
    kinds = {token.type for token in _parser.parse("Text above.\n" + markdown_text(hostile_names[name]))}
    assert kinds <= {"paragraph_open", "inline", "paragraph_close"}


def test_every_row_of_every_table_has_as_many_cells_as_its_head(make_report, hostile_name):
    text = renderers["markdown"](make_report(hostile_name))
    assert [token.type for token in _parser.parse(text)].count("table_open") == text.count("| Verdict |") + 1
    for table in re.split("\n\n", text):
        rows = [line for line in table.split("\n") if line.startswith("|")]
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(cells) <= 1


def test_github_sees_no_mention_no_issue_and_no_address(make_report, hostile_names):
    for name in ("mention", "issue", "bare-link", "markdown-link"):
        text = renderers["markdown"](make_report(hostile_names[name]))
        assert not re.search(r"@\w|#\d|https?://|www\.|GH-\d", text, flags=re.IGNORECASE)


def test_it_says_the_answer_first_and_folds_what_is_fine(report):
    text = renderers["markdown"](report)
    assert text.startswith("## ✖ 1 finding fails\n")
    assert "<details><summary>1 within limits</summary>" in text
    assert "| ▲ Warning, accepted | 1,123 rows occur more than once. | 1,123 |  | 100 | 16,281 |" in text
