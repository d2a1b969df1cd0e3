"""The hook that we offer to pre-commit: it says what it runs, what it runs works, and pre-commit itself runs it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
CONFIG = """\
data = "loans.csv"
target = "risk"
predictions = "score"
effort = "quick"
only = ["calibration"]
"""


@pytest.fixture
def hook():
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return hook


@pytest.fixture
def loans(tmp_path, monkeypatch):
    """A folder with a table whose scores are what they say, and the config of an audit."""
    from aboveboard.data import load_german_credit

    monkeypatch.chdir(tmp_path)
    credit = load_german_credit()
    table = credit.X[["duration"]].assign(risk=credit.y_binary, score=float(credit.y_binary.mean()))
    table["score"] += (credit.X["duration"].rank(pct=True) - 0.5) * 0.2
    table.to_csv("loans.csv", index=False)
    (tmp_path / "audit.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_the_hook_runs_what_the_command_line_takes(hook, loans):
    from aboveboard.cli import main

    program, *words = hook["entry"].split()
    assert program == "aboveboard"
    result = CliRunner().invoke(main, [*words, *hook["args"]])
    assert result.exit_code == 0, result.output


def test_the_hook_looks_at_tables_and_the_config_and_at_nothing_else(hook):
    wanted = re.compile(hook["files"])
    for name in ("audit.toml", "models/audit.toml", "loans.csv", "data/test.parquet", "x.arrow"):
        assert wanted.search(name), name
    for name in ("model.py", "pyproject.toml", "my-audit.toml.txt", "csv", "README.md"):
        assert not wanted.search(name), name
    assert hook["pass_filenames"] is False


@pytest.mark.slow
@pytest.mark.timeout(1500)  # pip fills an environment for the hook
def test_pre_commit_builds_and_runs_it(loans, tmp_path_factory, monkeypatch):
    """Needs pre-commit and the package index that pip is configured with: the hook gets an environment of its own."""
    pytest.importorskip("pre_commit")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path_factory.mktemp("pre-commit")))
    commit = _run("git", "-C", str(ROOT), "rev-parse", "HEAD").stdout.strip()
    (loans / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: '{ROOT}', rev: {commit}, hooks: [{{id: aboveboard-audit}}]}}]\n", encoding="utf-8"
    )
    _run("git", "init", "--quiet")
    _run("git", "add", ".")
    done = _run(sys.executable, "-m", "pre_commit", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    (loans / "audit.toml").write_text(CONFIG + "strict = true\n[limits]\n'calibration.ece' = 0.0\n", encoding="utf-8")
    _run("git", "add", ".")
    done = _run(sys.executable, "-m", "pre_commit", "run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Exit status 1 (--fail-on fail, --strict)" in done.stdout


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
