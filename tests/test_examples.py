"""Every script in examples/ runs as it stands, and every configuration there is accepted by the command line."""

import runpy
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_every_script_is_run_here():
    assert {script.name for script in EXAMPLES.glob("*.py")} == {"repair_adult.py"}


def test_the_repair_example_narrows_the_gap_between_women_and_men(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "repair_adult.py"), run_name="__main__")
    gaps = {}
    for line in capsys.readouterr().out.splitlines():
        name, _, rest = line.partition(": accuracy ")
        if name in ("before", "after"):
            rates = [float(part.rpartition(" ")[2]) for part in rest[rest.index("{") + 1 : rest.index("}")].split(",")]
            gaps[name] = max(rates) - min(rates)
    assert gaps["after"] < gaps["before"] / 4
    assert (tmp_path / "before.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "after.html").is_file()


@pytest.mark.parametrize("config", sorted(EXAMPLES.glob("*.toml")), ids=lambda config: config.name)
def test_the_configuration_is_accepted(config, tmp_path, monkeypatch):
    from aboveboard.cli import main
    from aboveboard.data import load_german_credit

    monkeypatch.chdir(tmp_path)
    credit = load_german_credit()
    score = 0.2 + 0.4 * credit.X["duration"].rank(pct=True)
    credit.X.assign(credit_risk=credit.y, score=score).to_csv("credit.csv", index=False)
    (tmp_path / config.name).write_bytes(config.read_bytes())
    result = CliRunner().invoke(main, ["audit", "--config", config.name])
    assert result.exit_code in (0, 1), result.output


def test_the_commands_of_the_workflow_run_in_its_order(tmp_path, monkeypatch):
    """Annotations, SARIF and comment come out of one audit; every step names what an earlier one wrote."""
    yaml = pytest.importorskip("yaml")
    from aboveboard.cli import main
    from aboveboard.data import load_german_credit

    workflow = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["audit"]["steps"]
    lines = [line.strip() for step in steps for line in step.get("run", "").splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("aboveboard ")]
    assert [words[1] for words in commands] == ["audit", "show", "compare"]
    monkeypatch.chdir(tmp_path)
    credit = load_german_credit()
    score = 0.2 + 0.4 * credit.X["duration"].rank(pct=True)
    credit.X.assign(risk=credit.y_binary, score=score).to_csv("loans.csv", index=False)
    config = 'data = "loans.csv"\ntarget = "risk"\npredictions = "score"\nonly = ["calibration"]\n'
    (tmp_path / "audit.toml").write_text(config, encoding="utf-8")
    CliRunner().invoke(main, ["audit", "--config", "audit.toml", "--out", "baseline"])
    for words in commands:
        words = words[: words.index(">")] if ">" in words else words
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, result.output
