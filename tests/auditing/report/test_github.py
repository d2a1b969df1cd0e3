"""Annotations are workflow commands, one a line, and names cannot forge another."""

import re
from urllib.parse import unquote

from aboveboard.auditing.report.view import clean
from aboveboard.core.report import renderers

_COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)")


def test_every_line_is_one_command(make_report, hostile_name):
    lines = renderers["github"](make_report(hostile_name)).splitlines()
    assert len(lines) == 7
    for line in lines:
        assert _COMMAND.fullmatch(line), line
        assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)


def test_a_runner_reads_the_name_back(make_report, hostile_names):
    for name in ("workflow", "set-output", "percent", "newline"):
        messages = [
            _COMMAND.fullmatch(line)[3] for line in renderers["github"](make_report(hostile_names[name])).splitlines()
        ]
        assert any(clean(hostile_names[name]) in unquote(message) for message in messages)


def test_failures_are_errors_and_accepted_findings_notices(report):
    commands = [_COMMAND.fullmatch(line).group(1, 2) for line in renderers["github"](report).splitlines()]
    assert commands == [
        ("notice", "aboveboard audit"),
        ("error", "Group fairness"),
        ("warning", "Proxies and leaks"),
        ("notice", "Data quality"),
        ("notice", "Group fairness"),
        ("notice", "Performance and calibration"),
        ("error", "Sanity of the model"),
    ]
