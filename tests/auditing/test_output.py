import errno
import os
import stat
from pathlib import Path

import pytest

from aboveboard.auditing import output
from aboveboard.auditing.output import check_folder, write_report
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report, renderers

REPORT = Report(subject={}, findings=(Finding(id="a", check="a", area="b", statement="So."),))


@pytest.fixture(autouse=True)
def plain_html(monkeypatch):
    monkeypatch.setitem(renderers, "html", lambda report: "<!doctype html>" + report.findings[0].statement)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_folder_holds_both_files_and_nothing_stands_beside_it(tmp_path):
    write_report(REPORT, tmp_path / "deep" / "report")
    assert names(tmp_path / "deep" / "report") == ["index.html", "report.json"]
    assert names(tmp_path / "deep") == ["report"]
    assert Report.from_json(tmp_path / "deep" / "report" / "report.json") == REPORT


def test_others_may_read_the_report_as_far_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        write_report(REPORT, tmp_path / "report")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "report" / "index.html").stat().st_mode) == 0o640


def test_an_earlier_report_is_replaced_and_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "report").mkdir()
    write_report(REPORT, tmp_path / "report")
    (tmp_path / "report" / "index.html").write_text("old", encoding="utf-8")
    write_report(REPORT, tmp_path / "report")
    assert (tmp_path / "report" / "index.html").read_text(encoding="utf-8") == "<!doctype html>So."
    assert names(tmp_path) == ["report"]


@pytest.mark.parametrize("content", [b"{}", b"[]", b"", b"\xff", b"not json", b'{"findings": []}'])
def test_a_folder_that_no_audit_wrote_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(InputError, match="no audit wrote"):
        write_report(REPORT, tmp_path)
    assert (tmp_path / "report.json").read_bytes() == content
    assert names(tmp_path) == ["report.json"]


def test_by_force_the_report_is_written_beside_other_files_which_stay(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work", encoding="utf-8")
    (folder / "sub").mkdir()
    write_report(REPORT, folder, force=True)
    assert names(folder) == ["index.html", "report.json", "sub", "thesis.tex"]
    assert (folder / "thesis.tex").read_text(encoding="utf-8") == "years of work"
    write_report(REPORT, folder)  # it holds a report of ours now
    assert names(folder) == ["index.html", "report.json", "sub", "thesis.tex"]
    assert names(tmp_path) == ["mine"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_report(REPORT, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["index.html", "report.json"]


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("file", "file/report", "dangling", "loop", "x\0y", "n" * 300):
        with pytest.raises(InputError):
            check_folder(tmp_path / name)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "x"


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    def denied(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(output.tempfile, "mkdtemp", denied)
    with pytest.raises(InputError, match="cannot be written \\(Permission denied\\)"):
        check_folder(tmp_path / "report")


def test_checking_leaves_nothing_behind(tmp_path):
    check_folder(tmp_path / "new" / "report")
    assert names(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_leaves_the_earlier_report_whole(tmp_path, monkeypatch, force):
    folder = tmp_path / "report"
    write_report(REPORT, folder)
    before = (folder / "index.html").read_bytes()

    def full(path, text):
        Path(path).write_text(text[:3], encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "_write", full)
    with pytest.raises(InputError, match="No space left"):
        write_report(REPORT, folder, force=force)
    assert (folder / "index.html").read_bytes() == before
    assert names(tmp_path) == ["report"]


def test_a_rename_that_fails_puts_the_earlier_report_back(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    write_report(REPORT, folder)
    rename = Path.rename

    def fails_once(self, target):
        if self.name.startswith(".aboveboard-") and Path(target) == folder:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(InputError, match="busy"):
        write_report(REPORT, folder)
    assert names(folder) == ["index.html", "report.json"]
    assert names(tmp_path) == ["report"]


def test_a_report_that_cannot_be_rendered_touches_nothing(tmp_path, monkeypatch):
    def broken(report):
        raise ZeroDivisionError

    monkeypatch.setitem(renderers, "html", broken)
    with pytest.raises(ZeroDivisionError):
        write_report(REPORT, tmp_path / "report")
    assert names(tmp_path) == []
