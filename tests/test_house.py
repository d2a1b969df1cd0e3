"""The house rules of ARCHITECTURE, as facts about the repository: every method and check has all its parts, parts
import only what stands below them, and recorded evidence gives its verdict.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement
from packaging.version import Version

import aboveboard
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.report.schema import report_schema
from aboveboard.auditing.suites import AREAS, EFFORTS, SUITES, all_checks
from aboveboard.core import MissingExtra
from aboveboard.core.catalogue import catalogue, find_method
from aboveboard.reproduce import Criterion, Outcome
from aboveboard.reproduce.runner import run, source_hash

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "aboveboard"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

METHODS = catalogue()
METHOD_AREAS = frozenset(
    {
        "fairness", "collective", "privacy", "encrypted", "unlearning", "robustness", "uncertainty", "explanation",
        "drift", "alignment", "generative", "decision", "dynamics", "domains", "accountability",
    }
)  # fmt: skip
BUILDING_BLOCKS = frozenset({"_stats", "_optimize", "_nn", "_lm"})
MODEL_HOST = "_model_host"


def _label(method) -> str:
    """Return what names the method in a test's name; those that need PyTorch are found by "-k torch"."""
    return f"{method.area}/{method.slug}" + ("-torch" if "torch" in method.extras else "")


each_method = pytest.mark.parametrize("method", METHODS, ids=_label)
each_check = pytest.mark.parametrize("spec", all_checks(), ids=lambda spec: spec.name)


def _object(method):
    module, _, attribute = method.import_path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _evidence(method):
    evidence = method.evidence
    assert evidence is not None, f"no evidence; commit, then: aboveboard reproduce {method.slug} --scale full --record"
    return evidence


def _page(method) -> str:
    return (ROOT / "docs" / "methods" / method.area / f"{method.slug}.md").read_text(encoding="utf-8")


# --- the catalogue -------------------------------------------------------------------------------------------------


def test_every_experiment_has_a_catalogue_entry_and_every_entry_an_experiment():
    folder = SOURCE / "reproduce"
    experiments = {file.relative_to(folder).with_suffix("") for file in folder.glob("*/[!_]*.py")}
    entries = {file.relative_to(folder).with_suffix("") for file in folder.glob("*/*.toml")}
    assert experiments == entries
    assert {file.relative_to(folder).with_suffix("") for file in folder.glob("*/*.json")} <= entries


def test_names_and_slugs_are_unique():
    names = [alias for method in METHODS for alias in {method.name.casefold(), method.slug.casefold()}]
    assert len(names) == len(set(names))


def test_every_module_of_an_area_is_a_method_of_the_catalogue():
    for area in METHOD_AREAS:
        modules = {
            entry.stem
            for entry in (SOURCE / area).glob("[!_]*")
            if entry.suffix == ".py" or (entry / "__init__.py").is_file()
        }
        assert modules == {method.slug for method in METHODS if method.area == area}, area


@each_method
def test_the_method_is_one_module_named_by_area_and_slug(method):
    module = method.import_path.partition(":")[0]
    if method.area == "auditing":
        assert module.startswith("aboveboard.auditing.")
    else:
        assert method.area in METHOD_AREAS
        assert module == f"aboveboard.{method.area}.{method.slug}"


@each_method
def test_the_method_bears_the_name_of_its_catalogue_entry(method):
    found = _object(method)
    if method.area == "auditing":
        module, _, attribute = method.import_path.partition(":")
        assert method.name in (attribute, module.rpartition(".")[2])
    else:
        assert found.__name__ == method.name
        area = importlib.import_module(f"aboveboard.{method.area}")
        assert method.name in area.__all__
        assert getattr(area, method.name) is found
    assert find_method(method.name) == method
    assert find_method(f"{method.area}/{method.slug}") == method


@each_method
def test_the_entry_is_filled_in(method):
    assert method.summary.endswith(".")
    assert "\n" not in method.summary
    assert set(method.role) <= {"audit", "repair", "learner", "guarantee", "model"}
    assert method.role
    assert method.tier in ("stable", "experimental")
    assert method.paper.title
    known = set(PROJECT["project"]["optional-dependencies"])
    assert set(method.extras) <= known, f"extras that pyproject.toml does not have: {set(method.extras) - known}"


@each_method
def test_the_method_has_mirrored_tests(method):
    assert _mirrored_tests(method.import_path.partition(":")[0]), f"no tests for {method.import_path}"


def _mirrored_tests(module: str) -> list[Path]:
    *folders, name = module.split(".")[1:]
    folder = (ROOT / "tests").joinpath(*folders)
    return [*folder.glob(f"test_{name}.py"), *(folder / name).glob("test_*.py")]


@each_method
def test_the_method_has_a_page_with_its_name_figure_and_an_example(method):
    page = _page(method)
    title = next(line for line in page.splitlines() if line.startswith("# "))
    assert method.name.casefold() in title.casefold().replace(" ", "_") or method.name.casefold() in title.casefold()
    assert f"{{evidence-figure}} {method.area}/{method.slug}" in page
    assert re.search(r"^```python$", page, re.MULTILINE)


@each_method
def test_the_method_has_an_experiment(method):
    experiment = importlib.import_module(f"aboveboard.reproduce.{method.area}.{method.slug}")
    parameters = inspect.signature(experiment.run).parameters
    assert list(parameters) == ["scale", "random_state"]
    assert parameters["random_state"].kind is inspect.Parameter.KEYWORD_ONLY


@each_method
def test_the_docstring_gives_an_example_and_is_in_the_style_of_numpy(method):
    text = inspect.getdoc(_object(method)) or ""
    assert text, method.import_path
    assert re.search(r"^(Parameters|Returns)\n-+$", text, re.MULTILINE)
    if method.import_path.rpartition(":")[2] != "check":
        assert ">>> " in text


# --- evidence ------------------------------------------------------------------------------------------------------


@each_method
def test_recorded_evidence_gives_its_verdict(method):
    evidence = _evidence(method)
    for scale in ("full", "quick"):
        for recorded in evidence[scale]["criteria"]:
            again = Criterion.from_dict(recorded)
            assert again.figure == pytest.approx(recorded["figure"], rel=1e-12, abs=0), recorded["id"]
            assert again.passed == recorded["passed"], recorded["id"]
    assert evidence["passed"] == Outcome.from_dict(evidence["full"]).passed
    assert evidence["method"] == method.name
    assert re.fullmatch(r"[0-9a-f]{40}", evidence["commit"])


@each_method
def test_recorded_evidence_has_a_figure_for_the_page(method):
    figures = Outcome.from_dict(_evidence(method)["full"]).figures
    assert figures
    assert all(figure.alt for figure in figures)


@each_method
def test_recorded_evidence_comes_from_the_code_as_it_is(method):
    assert _evidence(method)["source_sha256"] == source_hash(method), (
        f"the code of {method.name} changed after its evidence was recorded; commit, then record again: "
        f"aboveboard reproduce {method.slug} --scale full --record"
    )


@each_method
def test_the_quick_scale_gives_the_recorded_figures_again(method):
    evidence = _evidence(method)
    recorded = {c["id"]: Criterion.from_dict(c) for c in evidence["quick"]["criteria"]}
    try:
        outcome = run(method, "quick", seed=evidence["seed"])
    except MissingExtra as error:
        pytest.skip(str(error))
    again = {c.id: c for c in outcome.criteria}
    assert again.keys() == recorded.keys()
    for name, criterion in again.items():
        if criterion.tolerance is not None:
            assert abs(criterion.figure - recorded[name].figure) <= criterion.tolerance, name


@each_method
def test_no_recorded_figure_is_repeated_by_hand(method):
    """Figures come from the .json alone: a page that repeats one would go stale unseen."""
    pages = {
        "its page": _page(method),
        "README.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "its docstring": inspect.getdoc(_object(method)) or "",
    }
    for criterion in Outcome.from_dict(_evidence(method)["full"]).criteria:
        for spelled in (f"{criterion.figure:.3g}", f"{criterion.figure:.4g}", f"{100 * criterion.figure:.3g} %"):
            digits = re.sub(r"e.*|\D", "", spelled).strip("0")
            if len(digits) >= 3 and criterion.figure != criterion.bound:
                for where, text in pages.items():
                    assert not re.search(rf"(?<![\d.]){re.escape(spelled)}(?!\d)", text), f"{where}: {spelled}"


# --- remedies ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult_scope():
    """Return what a remedy snippet finds in scope: a model of the Adult data, its rows, their sex; votes; requests."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from aboveboard.data import load_adult

    parts = {}
    for split, rows in (("train", 4000), ("test", 2000)):
        adult = load_adult(split=split)
        parts |= {
            f"X_{split}": adult.X.select_dtypes("number").iloc[:rows],
            f"y_{split}": adult.y_binary.iloc[:rows],
            f"sensitive_{split}": adult.sensitive["sex"].iloc[:rows],
        }
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(parts["X_train"], parts["y_train"])
    votes = parts["X_test"].head(30).set_axis([f"item {i}" for i in range(parts["X_test"].shape[1])], axis=1)
    requests = np.random.default_rng(0).lognormal(size=(60, 8))
    phrases = ["Probably" if row % 3 else "Unlikely" for row in range(len(parts["y_test"]))]
    said = {"phrases": phrases, "outcomes": parts["y_test"]}
    return parts | {"model": model, "votes": votes, "requests": requests} | said


@pytest.mark.parametrize("method", [m for m in METHODS if m.remedy], ids=lambda m: m.name)
def test_the_remedy_runs(method, adult_scope):
    exec(compile(method.remedy, f"<remedy of {method.name}>", "exec"), dict(adult_scope))


def test_every_remedy_that_a_check_names_is_in_the_catalogue():
    for file in (SOURCE / "auditing").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "remedies":
                tuples = (part for part in ast.walk(node.value) if isinstance(part, ast.Tuple))
                for name in (item.value for part in tuples for item in part.elts if isinstance(item, ast.Constant)):
                    method = find_method(str(name))
                    assert method.name == name, file.name
                    assert method.remedy, f"{method.name} is named as a remedy and has no snippet"


# --- estimators ----------------------------------------------------------------------------------------------------


def test_estimators_follow_scikit_learn():
    """Constructor arguments are stored untouched, copies are equal, nothing is learned before fit."""
    from sklearn.base import BaseEstimator, clone

    estimators = [c for c in map(_object, METHODS) if inspect.isclass(c) and issubclass(c, BaseEstimator)]
    assert estimators
    for found in estimators:
        estimator = found()
        first, *others = list(inspect.signature(found).parameters.values())
        assert all(getattr(estimator, parameter.name) is parameter.default for parameter in (first, *others))
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in others), f"{found.__name__}: all but the first"
        assert clone(estimator).get_params() == estimator.get_params()
        assert [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")] == []
        assert found.__name__ in repr(estimator)


# --- checks and limits ---------------------------------------------------------------------------------------------


@each_check
def test_the_check_has_a_module_mirrored_tests_and_a_page(spec):
    check = importlib.import_module(f"aboveboard.auditing.checks.{spec.name}").check
    parameters = inspect.signature(check).parameters
    assert list(parameters) == ["subject", "random_state", "effort"]
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in ("random_state", "effort"))
    assert inspect.getdoc(check)
    assert _mirrored_tests(f"aboveboard.auditing.checks.{spec.name}")
    page = (ROOT / "docs" / "checks" / f"{spec.name}.md").read_text(encoding="utf-8")
    title = next(line for line in page.splitlines() if line.startswith("# "))
    assert spec.title.casefold() in title.casefold()
    assert f"{{check-limits}} {spec.name}" in page or not Limits().of(spec.name)


def test_every_module_among_the_checks_is_in_the_suite():
    entries = (SOURCE / "auditing" / "checks").glob("[!_]*")
    modules = {entry.stem for entry in entries if entry.suffix == ".py" or (entry / "__init__.py").is_file()}
    assert modules == {spec.name for spec in all_checks()}


def test_every_check_belongs_to_an_area_and_looks_at_no_fewer_rows_with_more_effort():
    for spec in all_checks():
        assert spec.area in AREAS
        caps = [spec.rows(effort) or float("inf") for effort in EFFORTS]
        assert caps == sorted(caps)


def test_every_limit_belongs_to_a_check_and_says_why_and_who_says_so():
    checks = {spec.name for spec in all_checks()}
    limits = Limits()
    assert limits
    for name, limit in limits.items():
        assert name.partition(".")[0] in checks, name
        assert len(limit.reason) > 20, name
        assert limit.source, name
        assert limit.unit, name


# --- suites --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES[1:], ids=lambda suite: suite.name)
def test_the_suite_has_a_subject_with_a_reader_an_example_and_mirrored_tests(suite):
    module = importlib.import_module(f"aboveboard.auditing.subjects.{suite.name}")
    assert list(inspect.signature(module.read).parameters) == ["table", "settings", "common"]
    assert list(inspect.signature(module.example).parameters) == ["random_state"]
    assert _mirrored_tests(module.__name__)
    assert suite.checks
    assert not suite.takes.endswith(".")
    assert not suite.example.endswith(".")
    assert all(entry.help.endswith(".") for entry in (*suite.columns, *suite.settings))


@pytest.mark.parametrize("suite", SUITES[1:], ids=lambda suite: suite.name)
def test_the_suite_audits_its_example_and_every_check_of_it_runs(suite):
    report = aboveboard.audit(None, suite=suite.name, effort="quick")
    assert {finding.check for finding in report.findings} == {spec.name for spec in suite.checks}
    assert not report.not_run
    assert report.subject["suite"] == suite.name
    assert {finding.data for finding in report.findings} == {report.subject["data"]}
    Draft202012Validator(report_schema()).validate(json.loads(report.to_json()))


def test_names_of_suites_and_checks_are_unique_and_every_subject_is_in_the_table():
    names = [suite.name for suite in SUITES]
    assert len(set(names)) == len(names)
    checks = [spec.name for spec in all_checks()]
    assert len(set(checks)) == len(checks)
    modules = {file.stem for file in (SOURCE / "auditing" / "subjects").glob("[!_]*.py")}
    assert modules == {suite.name for suite in SUITES[1:]}


# --- floors --------------------------------------------------------------------------------------------------------


def _part(module: str) -> str:
    """Return the part of the package that a module belongs to: its first folder, or its name."""
    return module.split(".")[1]


def _floor(part: str) -> int:
    if part in METHOD_AREAS:
        return 3
    return {
        "core": 0,
        "data": 1,
        **dict.fromkeys(BUILDING_BLOCKS, 2),
        MODEL_HOST: 2,
        "auditing": 4,
        "reproduce": 5,
        "testing": 5,
        "cli": 6,
        "__main__": 7,
    }[part]


def _imports(file: Path) -> set[str]:
    """Return the modules of this package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            target = node.args[0]
            if isinstance(target, ast.Constant):
                found.add(str(target.value))
    return {name for name in found if name.startswith("aboveboard.")}


def test_parts_import_only_what_stands_on_a_lower_floor():
    wrong = []
    for file in SOURCE.rglob("*.py"):
        relative = file.relative_to(SOURCE)
        if relative == Path("__init__.py"):
            continue
        part = relative.parts[0].removesuffix(".py")
        for module in _imports(file):
            other = _part(module)
            is_part = (SOURCE / other).exists() or (SOURCE / f"{other}.py").exists()
            if is_part and other != part and _floor(other) >= _floor(part):
                wrong.append(f"{relative} imports {module}")
    assert not wrong


def test_experiments_import_their_own_area_alone():
    for file in (SOURCE / "reproduce").glob("*/*.py"):
        allowed = {"core", "data", "reproduce", *BUILDING_BLOCKS, file.parent.name}
        if file.parent.name == "auditing":
            allowed |= METHOD_AREAS
        parts = {_part(module) for module in _imports(file)} - {"audit", "compare", "Report", "__version__"}
        assert parts <= allowed, file.name


def test_the_command_line_starts_without_numpy_pandas_scikit_learn_or_pyarrow():
    code = (
        "import sys, aboveboard.cli; "
        "print(*{'numpy', 'pandas', 'sklearn', 'scipy', 'pyarrow', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for package in ("aboveboard", "aboveboard.core", "aboveboard.data", "aboveboard.testing", *_areas()):
        for name in importlib.import_module(package).__all__:
            if not name.startswith("__") and name not in ("SUPPRESSED", "require"):
                spellings = {f"~{package}.{name}\n", f"~aboveboard.{name}\n"}
                assert any(spelling in page for spelling in spellings), f"{package}.{name}"


def _areas() -> list[str]:
    return [f"aboveboard.{area}" for area in sorted(METHOD_AREAS) if (SOURCE / area).is_dir()]


def test_no_area_is_empty():
    for area in METHOD_AREAS:
        if (SOURCE / area).is_dir():
            assert any(method.area == area for method in METHODS), area


# --- the repository ------------------------------------------------------------------------------------------------


@cache
def _files() -> tuple[Path, ...]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no git checkout")
    return tuple(file for name in done.stdout.split("\0") if name and (file := ROOT / name).is_file())


def _text_files() -> list[tuple[Path, str]]:
    texts = []
    for file in _files():
        content = file.read_bytes()
        if b"\0" not in content[:8192]:
            texts.append((file, content.decode("utf-8", "replace")))
    return texts


_WHOLE_FOLDER = frozenset(
    {
        "tests/auditing/checks/test_tabular_checks_hold_up.py",
        "tests/auditing/models/endpoint/test_audit.py",
        "tests/auditing/report/test_browser.py",
        "tests/auditing/report/test_real_audits.py",
        "tests/data/test_page.py",
    }
)
"""Tests of a whole folder, of its page, or in a browser, instead of one module."""


def test_tests_mirror_the_source_path_for_path():
    alone = []
    for file in _files():
        relative = file.relative_to(ROOT)
        if relative.parts[0] != "tests" or not relative.name.startswith("test_") or len(relative.parts) == 2:
            continue
        folder = SOURCE.joinpath(*relative.parts[1:-1])
        name = relative.stem.removeprefix("test_")
        modules = [entry.stem.strip("_") for entry in folder.iterdir() if entry.suffix == ".py" or entry.is_dir()]
        if not any(name.startswith(module) for module in modules if module):
            alone.append(relative.as_posix())
    assert set(alone) <= _WHOLE_FOLDER


def test_no_file_holds_a_path_of_somebody_s_machine():
    homes = "|".join(("root", "home/[a-z]", "Users/[a-z]", "wo" + "rk", "tm" + "p"))
    pattern = re.compile(rf"(?<![\w.~$/}}-])/(?:{homes})/[\w.-]|[A-Z]:\\\\?Users\\")
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}" for file, text in _text_files() for match in pattern.finditer(text)
    ]
    assert not found


def test_nothing_is_left_to_be_done_in_the_source():
    marks = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
    found = [str(file.relative_to(ROOT)) for file, text in _text_files() if marks.search(text)]
    assert not found


def test_the_makefile_has_every_command_that_the_readme_and_ci_name():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for text in (readme, ci, contributing):
        assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    for command in ("make audit", "make test"):
        assert command in readme
        assert re.search(rf"^{command}$", ci, re.MULTILINE)


def _pins(name: str) -> dict[str, Version]:
    lines = (ROOT / "constraints" / name).read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", package).lower(): Version(version) for package, version in pins}


def _requirements(*extras: str) -> list[Requirement]:
    """Return the base dependencies and those of the extras, with the extras that an extra names."""
    project = PROJECT["project"]
    found = [*map(Requirement, project["dependencies"])]
    asked, seen = list(extras), set()
    while asked:
        extra = asked.pop()
        if extra not in seen:
            seen.add(extra)
            for requirement in map(Requirement, project["optional-dependencies"][extra]):
                if requirement.name == "aboveboard":
                    asked += requirement.extras
                else:
                    found.append(requirement)
    return found


def test_the_oldest_versions_are_the_lower_bounds():
    pins = _pins("oldest.txt")
    held = set()
    for requirement in _requirements("test"):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        assert pins[requirement.name.lower()] == Version(bound.version), requirement.name
        held.add(requirement.name.lower())
    assert set(pins) - held <= {"pyparsing"}, "only what a dependency's oldest version cannot do without"


def test_the_newest_versions_pin_every_dependency_of_every_extra():
    pins = _pins("newest.txt")
    for requirement in _requirements(*set(PROJECT["project"]["optional-dependencies"]) - {"federated"}):
        assert pins[requirement.name.lower()] in requirement.specifier, requirement.name


def test_flower_has_pins_of_its_own_since_it_caps_what_others_take_newer():
    pins = _pins("federated.txt")
    for requirement in _requirements("federated"):
        assert pins[requirement.name.lower()] in requirement.specifier, requirement.name


def test_deprecation_warnings_are_errors():
    filters = PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"]
    assert {"error::DeprecationWarning", "error::FutureWarning"} <= set(filters)


def test_every_licence_file_that_the_package_names_exists():
    for pattern in PROJECT["project"]["license-files"]:
        assert list(ROOT.glob(pattern)), pattern
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_wheel_holds_all_that_the_package_reads(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    package = {file.relative_to(ROOT / "src").as_posix() for file in _files() if file.is_relative_to(SOURCE)}
    assert package <= inside
    kinds = {Path(name).suffix for name in inside}
    assert {".py", ".toml", ".json", ".parquet", ".typed"} <= kinds
    assert any(name.endswith("licenses/LICENSE") for name in inside)
