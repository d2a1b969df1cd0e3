"""The runner of experiments: what counts as a change of the source, and when evidence may be recorded."""

import subprocess

import pytest

from aboveboard.core.catalogue import Method
from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference
from aboveboard.reproduce import Criterion, Outcome
from aboveboard.reproduce import runner as runner_module
from aboveboard.reproduce.runner import code_digest, record, source_hash

CODE = '''
"""A module."""
import math


class Circle:
    """A circle."""

    def area(self, radius):
        """Return the area."""
        return math.pi * radius**2
'''

METHOD = Method(
    name="Toy",
    slug="toy",
    area="fairness",
    import_path="aboveboard.fairness.toy:Toy",
    summary="A method for this test.",
    role=("audit",),
    tier="experimental",
    paper=Reference(title="Toy"),
)


def test_docstrings_comments_and_layout_do_not_change_the_hash():
    reworded = CODE.replace("A circle.", "A round thing.").replace("Return the area.", "Area in square units.")
    commented = reworded.replace("import math\n", "import math  # for pi\n\n\n")
    assert code_digest(commented) == code_digest(CODE)
    without = CODE.replace('        """Return the area."""\n', "").replace('"""A module."""\n', "")
    assert code_digest(without) == code_digest(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("radius**2", "radius**3"), ("math.pi", "math.tau"), ("radius", "r"), ("import math", "import cmath as math")],
)
def test_any_change_of_the_code_changes_the_hash(old, new):
    assert code_digest(CODE.replace(old, new)) != code_digest(CODE)


def test_a_string_that_is_no_docstring_counts():
    assert code_digest("x = 'a'") != code_digest("x = 'b'")
    assert code_digest("def f():\n    x = 1\n    'a'\n") != code_digest("def f():\n    x = 1\n    'b'\n")
    assert code_digest("x = 1") != code_digest("x = '1'")
    assert code_digest("x = 1") != code_digest("x = 1.0")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout that holds one method and its experiment, seen by the runner as the project."""
    package = tmp_path / "aboveboard"
    for folder in ("fairness", "reproduce/fairness"):
        (package / folder).mkdir(parents=True)
    (package / "fairness/toy.py").write_text("def Toy():\n    return 1\n")
    (package / "reproduce/fairness/toy.py").write_text("EXPERIMENT = 1\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(runner_module.resources, "files", lambda _: package)
    criterion = Criterion("one", "the answer is at most 2", {"seed 0": 1.0, "seed 1": 2.0}, "max", "<=", 2.0)
    monkeypatch.setattr(runner_module, "run", lambda *_, **__: Outcome([criterion]))
    return package


def test_evidence_names_the_commit_and_the_source_that_gave_it(checkout):
    outcome, path = record(METHOD, seed=3)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    import json

    evidence = json.loads(path.read_text())
    assert path == checkout / "reproduce/fairness/toy.json"
    assert evidence["commit"] == head.stdout.strip()
    assert evidence["source_sha256"] == source_hash(METHOD)
    assert evidence["seed"] == 3
    assert evidence["passed"] is True
    assert Outcome.from_dict(evidence["full"]).criteria == outcome.criteria
    assert str(checkout) not in path.read_text()


def test_evidence_is_refused_where_the_source_has_uncommitted_changes(checkout):
    (checkout / "fairness/toy.py").write_text("def Toy():\n    return 2\n")
    with pytest.raises(InputError, match="uncommitted changes"):
        record(METHOD)
    assert not (checkout / "reproduce/fairness/toy.json").exists()


def test_evidence_is_refused_outside_a_checkout(checkout):
    import shutil

    shutil.rmtree(checkout.parent / ".git")
    with pytest.raises(InputError, match="git checkout"):
        record(METHOD)


def test_a_criterion_is_judged_by_its_statistic():
    values = {"a": 1.0, "b": 2.0, "c": 6.0}
    for statistic, expected in (("max", 6.0), ("min", 1.0), ("mean", 3.0), ("median", 2.0)):
        criterion = Criterion("c", "s", values, statistic, "==", expected)
        assert criterion.figure == expected
        assert criterion.passed
        assert not Criterion("c", "s", values, statistic, ">", expected).passed
        assert Criterion("c", "s", values, statistic, ">=", expected).passed


def test_a_criterion_survives_json_with_its_verdict():
    criterion = Criterion("c", "s", {"a": 0.1, "b": 0.30000000000000004}, "mean", "<", 0.2, "points", None)
    again = Criterion.from_dict(criterion.to_dict())
    assert again == criterion
    assert again.to_dict()["passed"] is criterion.passed
