"""Run ``aboveboard audit`` on any table, config and options: it ends in an exit status that is documented.

The input is text in three parts, split by lines that hold only ``---``: the options (one a line), the config, and the
table. Only one cheap check runs; what is fuzzed is the way to it.
"""

import contextlib
import io
import os
import tempfile
from pathlib import Path

from harness import run

FOLDER = Path(tempfile.mkdtemp(prefix="aboveboard-cli-"))
OPTIONS = frozenset(
    {
        "--target", "--predictions", "--sensitive", "--train", "--reference", "--weight", "--id", "--cluster",
        "--drop", "--task", "--positive", "--prediction-type", "--threshold", "--reference-group", "--limit",
        "--min-cell", "--seed", "--fail-on", "--strict", "--baseline", "--format",
    }
)  # fmt: skip
PATHS = ("data", "out", "force", "train", "reference", "baseline")
STATUSES = frozenset({0, 1, 2})


def arguments(text: str) -> list[str]:
    """Return the options that are known, with their values; no input can name a file outside the scratch folder."""
    found = []
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if name in ("--train", "--reference", "--baseline"):
            found.append(f"{name}={Path(value).name if value.isprintable() else 'x'}")
        elif name in OPTIONS:
            found.append(name + equals + value)
    return found


def test_one_input(content: bytes) -> None:
    from aboveboard import cli
    from aboveboard.core.report import renderers

    renderers["html"] = lambda _: ""  # the page has tests of its own, and takes a second to draw
    options, _, rest = content.decode("utf-8", "replace").partition("\n---\n")
    config, _, table = rest.partition("\n---\n")
    os.chdir(FOLDER)
    Path("data.csv").write_text(table, encoding="utf-8", newline="")
    kept = [line for line in config.splitlines() if not line.lstrip(" \t'\"").startswith(PATHS)]
    Path("audit.toml").write_text("\n".join(kept), encoding="utf-8")
    fixed = ["audit", "data.csv", "--config", "audit.toml", "--only", "model_outputs", "--jobs", "1", "--out", "report"]
    output = io.StringIO()
    status: object = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            cli.main([*fixed, *arguments(options)], prog_name="aboveboard")
        except SystemExit as stop:
            status = stop.code or 0
    text = output.getvalue()
    assert status in STATUSES, f"exit status {status}: {text}"
    assert "Traceback" not in text
    assert "\x1b" not in text, "something steers the terminal"


if __name__ == "__main__":
    run(
        test_one_input,
        ["aboveboard.cli", "aboveboard.auditing.config", "aboveboard.auditing.subject", "aboveboard.auditing.gate"],
    )
