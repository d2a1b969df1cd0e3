import io
import sys

from aboveboard.core.progress import Progress, progress


def test_nothing_is_shown_where_standard_error_is_no_terminal(capsys):
    with progress(2) as bar:
        bar.step("one")
        bar.step("two")
    assert capsys.readouterr() == ("", "")
    assert type(bar) is Progress


def test_the_work_in_hand_is_shown_where_it_is_one_without_markup(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress(2) as bar:
        bar.step("check [bold]one[/bold]")
        with progress(1) as inside:
            inside.step("hidden")
        bar.step("two")
    assert "two" in terminal.getvalue()
    assert "hidden" not in terminal.getvalue()
