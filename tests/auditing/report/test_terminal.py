"""The terminal gets the findings within its width, its colours and its letters."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from aboveboard.auditing.report import print_report
from aboveboard.core import Report
from aboveboard.core.report import renderers


class _Ascii(io.StringIO):
    encoding = "ascii"


def _printed(report, *, width=80, stream=None, **options):
    stream = io.StringIO() if stream is None else stream
    console = Console(file=stream, width=width, legacy_windows=False, **{"color_system": None, **options})
    print_report(report, console, files={"Report": "out/index.html"})
    return stream.getvalue()


def test_it_says_what_was_found_what_did_not_run_where_the_files_are_and_the_answer(report):
    text = _printed(report, width=120)
    for said in (
        "Group fairness",
        "✖ Fail",
        "-11.9 points",
        "[-12.7 to -11.1]",
        "10 points",
        "5,421",
        "accepted",
        "Not run",
        "No training data were given",
        "Report: out/index.html",
    ):
        assert said in text
    assert "✖ 1 finding fails." in text.split("Report: ")[1]


def test_a_narrow_terminal_gets_the_figures_below_the_sentence(report):
    text = _printed(report, width=80)
    assert "-11.9 points [-12.7 to -11.1], limit 10 points, 5,421 rows" in text


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(make_report, hostile_names, width):
    for name in ("long", "long-word", "wide", "emoji", "combining", "script"):
        for line in _printed(make_report(hostile_names[name]), width=width).splitlines():
            assert cell_len(line) <= width


def test_a_hostile_name_moves_no_cursor_and_sets_no_colour(make_report, hostile_name):
    text = _printed(make_report(hostile_name))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    text.encode("utf-8")


def test_markup_in_names_is_shown_and_not_obeyed(make_report, hostile_names):
    text = _printed(make_report(hostile_names["rich"]), width=200)
    assert "[bold red]loud[/bold red][/]" in text


def test_a_terminal_of_ascii_gets_ascii(make_report, hostile_name):
    stream = _Ascii()
    text = _printed(make_report(hostile_name), stream=stream)
    text.encode("ascii")
    assert "x Fail" in text


def test_colours_are_used_only_where_there_are_some(report):
    assert "\x1b[" not in _printed(report)
    assert "\x1b[" in _printed(report, color_system="standard", force_terminal=True)


def test_plain_text_does_not_depend_on_the_terminal(report, monkeypatch):
    first = renderers["table"](report)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert renderers["table"](report) == first
    assert "\x1b" not in first
    assert max(map(cell_len, first.splitlines())) <= 100


def test_an_empty_report_says_that_nothing_was_found_out():
    assert "Nothing was found out. No check ran." in renderers["table"](Report(subject={}, findings=()))
