"""Every example in the documentation is run: Python blocks in one namespace per page, ``aboveboard`` commands in order.

A block is left out only where the line before it says so: ``<!-- not run: why -->``, or, where a package of an extra is
not installed, ``<!-- needs: PACKAGE -->``. A block after ``<!-- file: NAME -->`` is written to that file, for the
commands that follow it.
"""

import doctest
import re
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")])

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,}|:{3,})(?P<info>.*)$")
_MARKER = re.compile(r"^\s*<!--\s*(?P<kind>not run|needs|file):\s*(?P<text>.+?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block of code: its language, text, first line, and the marker on the line before it."""

    language: str
    code: str
    line: int
    marker: str = ""
    marker_text: str = ""


def blocks(text: str) -> list[Block]:
    """Return the fenced code blocks of a page, also those inside directives."""
    found: list[Block] = []
    marker: tuple[str, str] = ("", "")
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if match := _MARKER.match(line):
            marker = (match["kind"], match["text"])
            continue
        match = _FENCE.match(line)
        if match is None or match["info"].lstrip().startswith("{") or not match["info"].strip():
            marker = marker if not line.strip() else ("", "")
            continue
        code = []
        for _, inner in lines:
            if inner.strip() == match["fence"]:
                break
            code.append(inner.removeprefix(match["indent"]))
        found.append(Block(match["info"].split()[0], "\n".join(code) + "\n", number, *marker))
        marker = ("", "")
    return found


def commands(code: str) -> list[str]:
    """Return the commands of a console block: the lines after a dollar, continued lines joined."""
    joined = re.sub(r"\s*\\\n\s*>?\s*", " ", code)
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def test_blocks_are_found_inside_directives_and_with_their_markers():
    page = "\n".join(
        [
            "````{tab-set}",
            "```python",
            "x = 1",
            "```",
            "````",
            "<!-- not run: slow -->",
            "```python",
            "x = 2",
            "```",
            "<!-- needs: torch -->",
            "```python",
            "import torch",
            "```",
            "<!-- file: a.toml -->",
            "",
            "```toml",
            "y = 3",
            "```",
            "```{evidence-figure} a/b",
            "```",
            "```console",
            "$ aboveboard audit a.csv \\",
            "    --target y",
            "out",
            "$ ls",
            "```",
        ]
    )
    found = blocks(page)
    assert [(b.language, b.marker) for b in found] == [
        ("python", ""),
        ("python", "not run"),
        ("python", "needs"),
        ("toml", "file"),
        ("console", ""),
    ]
    assert commands(found[4].code) == ["aboveboard audit a.csv --target y", "ls"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.marker == "not run" or (block.marker == "needs" and find_spec(block.marker_text) is None):
            continue
        if block.marker == "file":
            Path(block.marker_text).write_text(block.code, encoding="utf-8")
        elif block.language in ("python", "pycon"):
            _run_python(block, page, namespace)
        elif block.language == "console":
            for command in commands(block.code):
                _run(command, f"{page.name}:{block.line}")


def _run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    """Run a block in `namespace`: as a session whose output must match where it has prompts, else as it stands."""
    if not block.code.lstrip().startswith(">>> "):
        padded = "\n" * block.line + block.code
        exec(compile(padded, str(page), "exec"), namespace)
        return
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    session = doctest.DocTestParser().get_doctest(block.code, {}, page.name, str(page), block.line)
    session.globs = namespace
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False, optionflags=flags).run(session, out=said.append, clear_globs=False)
    assert failed == 0, "".join(said)


def _run(command: str, where: str) -> None:
    words = shlex.split(command, comments=True)
    if words[:1] != ["aboveboard"]:
        return
    from aboveboard.cli import main

    result = CliRunner().invoke(main, words[1:])
    allowed = (0, 1) if words[1:2] == ["audit"] else (0,)
    assert result.exit_code in allowed, f"{where}: {command} ended with {result.exit_code}\n{result.output}"


def test_every_block_that_is_not_run_gives_a_reason():
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.marker == "not run":
                assert len(block.marker_text) > 5, f"{page.name}:{block.line}"


def test_python_is_never_hidden_from_the_tests():
    """A block marked as another spelling of Python would not be run."""
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            assert block.language.lower() not in ("py", "py3", "python3", "ipython"), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_and_pictures_exist(page):
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)\s#]+)", text):
        assert (page.parent / target).exists() or (page.parent / f"{target}.md").exists(), f"{page.name}: {target}"
