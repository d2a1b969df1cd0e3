"""The command line as a user meets it: what is printed, what is written, and the exit status."""

import getpass
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import types
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aboveboard
from aboveboard import cli
from aboveboard.auditing.config import Options
from aboveboard.auditing.suites import TABULAR
from aboveboard.core.errors import ModelError
from aboveboard.core.finding import Finding
from aboveboard.core.report import Report, renderers
from aboveboard.data import list_datasets
from aboveboard.reproduce import Criterion, Outcome
from aboveboard.reproduce import runner as reproduce_runner

N = 400
RNG = np.random.default_rng(1)
SEX = RNG.choice(["Female", "Male"], N)
SCORE = np.clip(RNG.random(N) * 0.5 + 0.5 * (SEX == "Male") * RNG.random(N), 0, 1)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "sex": SEX,
        "hours": RNG.normal(40, 5, N).round(3),
        "income": np.where(RNG.random(N) < SCORE, ">50K", "<=50K"),
        "p": SCORE.round(6),
    }
)
BASIC = ("--target", "income", "--predictions", "p")
FAST = ("--only", "model_outputs")
GROUPS = ("--sensitive", "sex", "--only", "group_fairness")


@pytest.fixture
def run_whole(capsys, monkeypatch, tmp_path):
    """Run the command line in an empty folder: run(*arguments) -> status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main([str(argument) for argument in arguments], prog_name="aboveboard")
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err or "-v" in arguments
        return caught.value.code or 0, out, err

    return run


@pytest.fixture
def run(run_whole, monkeypatch):
    """As `run_whole`, without the time that it takes to draw the page."""
    monkeypatch.setitem(renderers, "html", lambda report: "<!doctype html>")
    return run_whole


@pytest.fixture
def data(tmp_path):
    TABLE.to_csv(tmp_path / "test.csv", index=False)
    return "test.csv"


@pytest.fixture
def check(monkeypatch):
    """Replace what the check model_outputs does."""

    def replace(function):
        module = types.ModuleType("aboveboard.auditing.checks.model_outputs")
        module.check = function
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return replace


def finds(*severities):
    def check(subject, *, random_state, effort):
        return [
            Finding(
                id=f"model_outputs/{severity}", check="model_outputs", area="model", severity=severity, statement="."
            )
            for severity in severities
        ]

    return check


def read_report(folder="aboveboard-report"):
    return Report.from_json(Path(folder) / "report.json")


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


# --- starting up ------------------------------------------------------------------------------------------------------

HEAVY = ("numpy", "pandas", "sklearn", "pyarrow", "scipy", "matplotlib", "polars", "narwhals")


def test_importing_the_command_line_loads_no_heavy_package():
    code = f"import sys, aboveboard.cli; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", code, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "arguments", [["audit", "--list-checks"], ["methods"], ["data", "list"], ["data", "show", "adult"], ["--version"],
                  ["--help"], ["audit", "--help"]],
)  # fmt: skip
def test_listings_work_where_numpy_cannot_be_imported(arguments):
    code = f"import sys; sys.modules.update(dict.fromkeys({HEAVY})); from aboveboard.cli import main; main({arguments})"
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_module_runs_like_the_command():
    done = python("-m", "aboveboard", "--version")
    assert done.stdout == f"aboveboard {aboveboard.__version__}\n"
    assert "aboveboard" in python("-m", "aboveboard", "--help").stdout.splitlines()[0]


def test_help_names_every_option_of_the_config_and_every_exit_status(run):
    status, out, _ = run("audit", "--help")
    assert status == 0
    names = {"limits": "limit", "accept": None, "types": None, "data": None,
             "columns": "column", "settings": "setting"}  # fmt: skip
    for field in fields(Options):
        name = names.get(field.name, field.name)
        if name:
            assert f"--{name.replace('_', '-')}" in out, field.name
    for code in ("0", "1", "2", "3", "4", "130"):
        assert re.search(rf"^  .*\b{code}  ", out, re.MULTILINE)
    assert "aboveboard audit test.csv" in out


@pytest.mark.parametrize(
    "arguments", [["zzz"], ["audit", "--nothing"], ["audit", "--task", "x"], ["methods", "a", "b"], ["reproduce"]]
)
def test_usage_errors_are_status_2(run, arguments):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert "Error" in err


# --- an audit from end to end -----------------------------------------------------------------------------------------


def test_an_audit_prints_a_table_and_writes_the_report(run_whole, data):
    status, out, err = run_whole("audit", data, *BASIC, "--sensitive", "sex", "--effort", "quick")
    assert status == 1
    assert "Group fairness" in out
    assert "aboveboard-report/index.html" in out
    assert "Note: '>50K' is read as the positive class" in err
    assert sorted(os.listdir("aboveboard-report")) == ["index.html", "report.json"]
    report = read_report()
    assert report.worst == "fail"
    assert [column["name"] for column in report.subject["sensitive"]] == ["sex"]
    assert [feature["name"] for feature in report.subject["features"]] == ["age", "sex", "hours"]
    assert not [finding for finding in report.not_run if finding.status == "error"]


def test_no_output_names_a_folder_a_user_or_a_host(run_whole, data, tmp_path, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "zqx-user")
    monkeypatch.setenv("HOME", str(tmp_path / "zqx-home"))
    run_whole("audit", tmp_path / data, *BASIC, *GROUPS, "--out", tmp_path / "out")
    for name in ("index.html", "report.json"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        for secret in (str(tmp_path), tmp_path.name, socket.gethostname(), getpass.getuser(), "zqx-home", data):
            assert secret not in text


def test_an_audit_asks_nothing_of_the_network(run_whole, data, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert run_whole("audit", data, *BASIC, *GROUPS)[0] == 1


def without_times(report):
    return {name: value for name, value in report.to_dict().items() if name not in ("timing", "notes")}


@pytest.mark.parametrize("suffix", [".csv.gz", ";.csv", ".parquet", ".feather", ".arrow"])
def test_the_same_table_gives_the_same_report_from_any_file(run, data, suffix):
    name = f"other{suffix.removeprefix(';')}"
    if "csv" in suffix:
        TABLE.to_csv(name, index=False, sep=";" if suffix[0] == ";" else ",")
    elif suffix == ".parquet":
        TABLE.to_parquet(name)
    elif suffix == ".feather":
        TABLE.to_feather(name)
    else:
        pa = importlib.import_module("pyarrow")
        table = pa.Table.from_pandas(TABLE)
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    options = (*BASIC, "--sensitive", "sex", "--effort", "quick", "--skip", "sensitive_proxies")
    run("audit", data, *options, "--out", "one")
    run("audit", name, *options, "--out", "two")
    assert without_times(read_report("one")) == without_times(read_report("two"))


def test_the_same_table_gives_the_same_report_from_any_container(run, data):
    polars, pa = importlib.import_module("polars"), importlib.import_module("pyarrow")
    options = {"predictions": "p", "sensitive_features": ["sex"], "effort": "quick", "skip": "sensitive_proxies"}
    tables = {
        "pandas": TABLE,
        "nullable": TABLE.convert_dtypes(),
        "arrow": TABLE.convert_dtypes(dtype_backend="pyarrow"),
        "objects": TABLE.astype(object),
        "polars": polars.from_pandas(TABLE),
        "pyarrow": pa.Table.from_pandas(TABLE),
    }
    run("audit", data, *BASIC, "--sensitive", "sex", "--effort", "quick", "--skip", "sensitive_proxies")
    expected = without_times(read_report())
    for name, table in tables.items():
        report = aboveboard.audit(None, table, "income", show_progress=False, **options)
        assert without_times(Report.from_json(report.to_json())) == expected, name


def test_the_bundled_example_is_audited_without_data(run, monkeypatch):
    example = importlib.import_module("aboveboard.auditing.example")
    whole = example.bundled_example
    monkeypatch.setattr(example, "bundled_example", lambda **options: whole(rows=3000, **options))
    status, out, err = run("audit", "--effort", "quick", "--only", "fairness", "--skip", "price_of_fairness")
    assert status == 1
    assert "bundled example" in err
    report = read_report()
    assert report.subject["target"] == "income"
    assert report.subject["positive"] == ">50K"
    assert [column["name"] for column in report.subject["sensitive"]] == ["sex", "race", "age"]
    assert report.subject["training_rows"] == 3000
    assert "Group fairness" in out


@pytest.mark.slow
def test_the_whole_bundled_example_runs_every_check(run_whole):
    status, _, _ = run_whole("audit")
    report = read_report()
    assert status == 1
    assert not report.not_run
    assert report.subject["rows"] == 16_281
    assert {finding.check for finding in report.findings} == {spec.name for spec in TABULAR}


def test_several_classes_have_a_column_each(run):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1, 1], N)
    table = pd.DataFrame(scores, columns=["p_a", "p_b", "p_c"]).assign(
        y=rng.choice(list("abc"), N), x=1.5 * rng.random(N)
    )
    table.to_parquet("test.parquet")
    named = [part for name in ("p_c", "p_a", "p_b") for part in ("--predictions", name)]
    assert run("audit", "test.parquet", "--target", "y", *named, *FAST)[0] in (0, 1)
    assert read_report().subject["classes"] == ["a", "b", "c"]


def test_every_option_reaches_the_audit(run):
    TABLE.assign(w=1.5, who=range(N), family=np.arange(N) // 2, junk=0).to_csv("test.csv", index=False)
    TABLE.drop(columns="p")[:100].assign(junk=1).to_csv("train.csv", index=False)
    TABLE[:80].assign(w=1.5, family=0, junk=0).to_csv("old.csv", index=False)
    status, _, _ = run(
        "audit", "test.csv", *BASIC, "--sensitive", "sex", "--weight", "w", "--id", "who", "--cluster", "family",
        "--drop", "junk", "--train", "train.csv", "--reference", "old.csv", "--task", "binary", "--positive", "<=50K",
        "--prediction-type", "score", "--threshold", "0.3", "--reference-group", "sex=Male",
        "--only", "group_fairness,column_health", "--skip", "column_health", "--effort", "quick",
        "--limit", "group_fairness.selection_rate=0.9", "--min-cell", "20",
        "--jobs", "2", "--seed", "9", "--fail-on", "warn", "--strict", "--out", "there",
    )  # fmt: skip
    assert status in (0, 1)
    report = read_report("there")
    subject = report.subject
    assert [feature["name"] for feature in subject["features"]] == ["age", "sex", "hours"]
    assert subject["clusters"] == N // 2
    assert subject["weighted"]
    assert subject["positive"] == "<=50K"
    assert subject["threshold"] == 0.3
    assert subject["reference_groups"] == {"sex": "Male"}
    assert subject["min_cell"] == 20
    assert subject["training_rows"] == 100
    assert subject["reference_rows"] == 80
    assert report.seed == 9
    assert report.timing["effort"] == "quick"
    assert {finding.check for finding in report.findings} == {"group_fairness"}
    by_name = {limit["name"]: limit for limit in report.limits}
    assert by_name["group_fairness.selection_rate"]["value"] == 0.9
    assert by_name["group_fairness.selection_rate"]["by_user"]


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_it"),
    [
        ("json", lambda text: Report.from_json(text).worst == "fail"),
        ("markdown", lambda text: text.lstrip().startswith("#")),
        ("github", lambda text: "::error" in text),
        ("junit", lambda text: text.lstrip().startswith("<?xml")),
        ("sarif", lambda text: json.loads(text)["version"] == "2.1.0"),
        ("table", lambda text: "Verdict" in text),
    ],
)
def test_each_format_is_printed_alone_on_standard_output(run, data, name, is_it):
    status, out, _ = run("audit", data, *BASIC, *GROUPS, "--format", name)
    assert status == 1
    assert is_it(out)
    assert (Path("aboveboard-report") / "index.html").is_file()


def test_no_progress_bar_and_no_colour_go_into_a_pipe(run, data):
    _, out, err = run("audit", data, *BASIC, *GROUPS)
    assert "\x1b" not in out + err
    assert "━" not in err


# --- the exit status --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "options", "status"),
    [
        (["ok", "warn"], [], 0),
        (["ok", "fail"], [], 1),
        (["warn"], ["--fail-on", "warn"], 1),
        (["note"], ["--fail-on", "warn"], 0),
        (["note"], ["--fail-on", "note"], 1),
    ],
)
def test_the_bar_decides_between_0_and_1(run, data, check, found, options, status):
    check(finds(*found))
    got, _, err = run("audit", data, *BASIC, *FAST, *options)
    assert got == status
    assert ("Exit status 1" in err) == (status == 1)


def test_a_model_that_fails_is_status_3_and_nothing_is_written(run, data, check):
    def asks(subject, *, random_state, effort):
        raise ModelError("the model ran out of memory")

    check(asks)
    status, out, err = run("audit", data, *BASIC, *FAST)
    assert (status, out) == (3, "")
    assert "Error: The model ran out of memory." in err
    assert not Path("aboveboard-report").exists()


# --- models that are no Python objects ----------------------------------------------------------------------------

SCORING = """
import os, sys, time
def score(rows): return (rows["age"] / 100).clip(0, 1)
def dies(rows): os._exit(1)
def hangs(rows): time.sleep(600)
def prints(rows):
    print("\\x1b[31mnoise")
    return score(rows)
def forgets(rows): return [float("nan")] * len(rows)
"""


@pytest.fixture
def scoring(tmp_path):
    (tmp_path / "own_scoring.py").write_text(SCORING, encoding="utf-8")
    return ("--target", "income", "--positive", ">50K", "--drop", "p")


def test_a_model_is_asked_instead_of_reading_predictions(run, data, scoring):
    TABLE[:300].to_csv("train.csv", index=False)
    options = (
        *scoring,
        "--sensitive",
        "sex",
        "--train",
        "train.csv",
        "--effort",
        "quick",
        "--only",
        "performance,model",
    )
    status, out, _ = run("audit", data, *options, "--model", "own_scoring:prints", "--format", "json")
    assert status in (0, 1)
    report = json.loads(out)
    assert report["subject"]["model"] == "function"
    assert report["subject"]["model_source"] == {
        "format": "function", "name": "own_scoring:prints", "sha256": None, "trusted_types": [], "versions": {},
    }  # fmt: skip
    assert report["subject"]["training_rows"] == 300
    assert {"model_determinism", "model_inputs", "model_outputs"} <= {f["check"] for f in report["findings"]}
    assert [f["id"] for f in report["not_run"] if f["status"] == "error"] == []


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dies", (), "Error: The model crashed: its process ended with status 1."),
        ("forgets", (), "Error: The model gave 400 answers that are not finite."),
        ("score", ("--model-memory", "0.01"), "than the 0.01 GiB that it may."),
        ("score", ("--model-timeout", "0.0001"), "Error: The model took longer than 0.0001 seconds."),
    ],
)
def test_a_model_that_misbehaves_is_status_3_and_nothing_is_written(run, data, scoring, name, options, message):
    status, out, err = run("audit", data, *scoring, *FAST, "--model", f"own_scoring:{name}", *options)
    assert (status, out) == (3, "")
    assert message in err
    assert not Path("aboveboard-report").exists()


def test_the_reasons_of_named_rows_are_printed_and_in_no_report(run, data, scoring):
    options = (*scoring, *FAST, "--model", "own_scoring:score", "--format", "json")
    status, out, err = run("audit", data, *options, "--show-rows", "2,5")
    assert status in (0, 1)
    answer = TABLE["age"].iloc[1] / 100
    assert f"Row 2: The probability of '>50K' is {answer:.3g} and not " in err
    assert f"mainly because of age = {TABLE['age'].iloc[1]} (" in err
    assert "Row 5: " in err
    written = (Path("aboveboard-report") / "report.json").read_text(encoding="utf-8")
    assert "Row 2" not in out + written


@pytest.mark.parametrize(
    ("rows", "message"),
    [("0", "'0' is no row"), ("x", "'x' is no row"), ("401", "row 401 is to be explained. Expected 1 to 400")],
)
def test_rows_that_are_not_there_are_refused_before_the_audit(run, data, scoring, rows, message):
    status, out, err = run("audit", data, *scoring, *FAST, "--model", "own_scoring:score", "--show-rows", rows)
    assert (status, out) == (2, "")
    assert message in err
    assert not Path("aboveboard-report").exists()


def test_a_model_that_needs_trust_is_status_2_with_the_flag_that_would_give_it(run_whole, data, scoring):
    import joblib
    import skops.io
    from sklearn.ensemble import HistGradientBoostingClassifier

    features = ["age", "hours"]
    fitted = HistGradientBoostingClassifier(max_iter=3).fit(TABLE[features], TABLE["income"])
    skops.io.dump(fitted, "model.skops")
    joblib.dump(fitted, "model.joblib")
    for file, flag in (("model.skops", "--trust known"), ("model.joblib", "--trust-pickle")):
        status, out, err = run_whole("audit", data, *scoring, *FAST, "--model", file)
        assert (status, out) == (2, "")
        assert flag in err
        status, _, err = run_whole("audit", data, *scoring, *FAST, "--model", file, *flag.split())
        assert status == 0
        assert ("which runs whatever code" in err) == (flag == "--trust-pickle")
        report = Report.from_json("aboveboard-report/report.json")
        assert [feature["name"] for feature in report.subject["features"]] == features
        trusted = report.subject["model_source"]["trusted_types"]
        assert bool(trusted) == (file == "model.skops")
        page = report.to_html()
        assert f"{file} (" in page
        assert all(name in page for name in trusted)


def test_another_model_is_compared_with_from_a_function_and_from_a_column(run_whole, data, scoring):
    options = ("--sensitive", "sex", "--only", "model_multiplicity", "--format", "json")
    status, out, _ = run_whole("audit", data, *scoring, *options, "--model", "own_scoring:score", "--compare",
                               "own_scoring:prints")  # fmt: skip
    assert status == 0
    report = json.loads(out)
    assert report["subject"]["other_model"]["source"]["name"] == "own_scoring:prints"
    (decisions,) = (f for f in report["findings"] if f["id"] == "model_multiplicity/decisions")
    assert decisions["value"] == 0
    assert "function, own_scoring:prints (function)" in Path("aboveboard-report/index.html").read_text(encoding="utf-8")
    TABLE.assign(q=1 - TABLE["p"]).to_csv("two.csv", index=False)
    status, out, _ = run_whole("audit", "two.csv", *BASIC, *options, "--compare-predictions", "q")
    report = json.loads(out)
    assert report["subject"]["other_model"] == {"model": "predictions given", "source": None}
    assert "q" not in [feature["name"] for feature in report["subject"]["features"]]
    (decisions,) = (f for f in report["findings"] if f["id"] == "model_multiplicity/decisions")
    assert decisions["value"] > 0.9


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--compare", "own_scoring:dies"), 3, "Error: The other model (compare, --compare): the model crashed"),
        (("--compare", "own_scoring:forgets"), 3, "The other model (compare, --compare): the model gave 400 answers"),
        (("--compare", "nowhere.skops"), 2, "Error: the other model (compare, --compare): "),
        (("--compare", "https://a.example/x"), 2, "--compare names an endpoint"),
        (("--compare", "own_scoring:score"), 2, "--compare names the model itself"),
        (("--compare", "a.skops", "--compare-predictions", "p"), 2, "both --compare and --compare-predictions"),
        (("--compare-classes", "a,b"), 2, "--compare-classes was given and no --compare"),
        (("--compare-predictions", "q"), 2, "no column 'q' for the predictions to compare with"),
        (("--compare-predictions", "hours"), 2, "the other model (compare_predictions, --compare-predictions): "),
    ],
)
def test_another_model_that_cannot_be_used_is_told_from_the_audited_one(run, data, scoring, options, status, message):
    found, out, err = run("audit", data, *scoring, *FAST, "--model", "own_scoring:score", *options)
    assert (found, out) == (status, "")
    assert message in err


def test_the_trust_that_another_model_needs_is_asked_for(run, data, scoring):
    import joblib
    from sklearn.ensemble import HistGradientBoostingClassifier

    joblib.dump(HistGradientBoostingClassifier(max_iter=3).fit(TABLE[["age"]], TABLE["income"]), "other.joblib")
    options = ("audit", data, *BASIC, "--only", "model_multiplicity", "--compare", "other.joblib")
    status, out, err = run(*options)
    assert (status, out) == (2, "")
    assert "the other model (compare, --compare): 'other.joblib' is a pickle" in err
    status, _, err = run(*options, "--trust-pickle")
    assert status == 0
    assert "The other model: " in err


def test_a_config_names_a_model_file_and_vouches_for_nothing(run, data, scoring):
    for text, message in (
        ("model = 'own_scoring:score'", "code to run is named on the command line only"),
        ("model = 'model.skops'\ntrust = 'known'", "a file must not vouch for another"),
        ("model = 'model.skops'\ntrust-type = ['os.system']", "a file must not vouch for another"),
        ("model = 'model.pkl'\ntrust-pickle = true", "a file must not vouch for another"),
        ("model = 'model.skops'", "there is no model file 'model.skops'"),
    ):
        Path("audit.toml").write_text(text, encoding="utf-8")
        status, out, err = run("audit", data, *scoring, *FAST, "--config", "audit.toml")
        assert (status, out) == (2, "")
        assert message in err


def test_ctrl_c_while_the_model_is_asked_ends_its_process_too(data, scoring, tmp_path):
    command = [sys.executable, "-m", "aboveboard", "audit", data, *scoring, "--model", "own_scoring:hangs"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as started:
        parent = psutil.Process(started.pid)
        while not (below := parent.children(recursive=True)):
            assert started.poll() is None
            time.sleep(0.05)
        time.sleep(3)  # by now it hangs, or still reads; it is ended either way
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 130
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []


def breaks(subject, *, random_state, effort):
    raise ZeroDivisionError("by zero")


def test_a_check_that_breaks_is_status_4_and_the_report_says_so(run, data, check):
    check(breaks)
    status, out, err = run("audit", data, *BASIC, *FAST)
    assert status == 4
    assert "The check model_outputs failed to run: The check raised ZeroDivisionError: by zero" in err
    assert "Traceback" not in err
    assert read_report().not_run[0].status == "error"
    assert "ZeroDivisionError" in out


def test_a_traceback_is_shown_to_those_who_ask(run, data, check):
    check(breaks)
    assert "Traceback" in run("-v", "audit", data, *BASIC, *FAST)[2]


def test_an_internal_error_is_status_4_in_one_friendly_line(run, data, monkeypatch):
    monkeypatch.setattr("aboveboard.auditing.streaming.read_or_stream", lambda *a, **k: 1 / 0)
    status, out, err = run("audit", data, *BASIC)
    assert (status, out) == (4, "")
    assert err.startswith("Internal error: ZeroDivisionError: division by zero\nThis is a fault of aboveboard")
    assert "Traceback" in run("-v", "audit", data, *BASIC)[2]
    monkeypatch.setattr("aboveboard.auditing.streaming.read_or_stream", lambda *a, **k: bytearray(2**62))
    assert run("audit", data, *BASIC)[0] == 4


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_what_was_found_and_says_so(run, data, check, number, status):
    def is_interrupted(subject, *, random_state, effort):
        signal.raise_signal(number)
        return []

    check(is_interrupted)
    got, out, err = run("audit", data, *BASIC, "--only", "column_health,model_outputs")
    assert got == status
    assert "holds what had been found until then" in err
    report = read_report()
    assert not report.complete
    assert {finding.check for finding in report.findings} == {"column_health"}
    assert out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_before_the_first_check_writes_nothing(run, data, monkeypatch, number, status):
    monkeypatch.setattr("aboveboard.auditing.streaming.read_or_stream", lambda *a, **k: signal.raise_signal(number))
    before = signal.getsignal(signal.SIGTERM)
    got, out, err = run("audit", data, *BASIC)
    assert (got, out) == (status, "")
    assert "nothing was written" in err
    assert not Path("aboveboard-report").exists()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_reader_that_closes_the_pipe_is_no_error():
    code = "import sys; from aboveboard.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "audit", "--list-checks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait() == 0
    assert errors == b""


def test_a_pipe_that_closes_during_the_report_leaves_the_exit_status_alone(data, tmp_path):
    command = [sys.executable, "-m", "aboveboard", "audit", data, *BASIC, *GROUPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait() == 1
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


def test_a_terminal_that_lacks_letters_gets_escapes_and_a_program_gets_utf_8(data, tmp_path):
    TABLE.rename(columns={"sex": "gënder→"}).to_csv(tmp_path / "test.csv", index=False)
    code = """if True:
        import sys
        from aboveboard.cli import main
        from aboveboard.core.report import renderers
        renderers["html"] = lambda report: ""
        for kind in ("table", "json"):
            try:
                main([*sys.argv[1:], "--format", kind])
            except SystemExit as stop:
                assert stop.code == 1
    """
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", code, "audit", "test.csv", *BASIC, "--sensitive", "gënder→"]
    command += ["--only", "group_fairness"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    table, brace, document = done.stdout.partition(b"\n{")
    assert b"g\\xebnder" in table
    assert table.isascii()
    assert Report.from_json((brace + document).decode("utf-8")).subject["sensitive"][0]["name"] == "gënder→"


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_with_a_baseline_only_what_is_new_or_worse_counts(run, data, check):
    check(finds("fail"))
    assert run("audit", data, *BASIC, *FAST, "--out", "old")[0] == 1
    status, _, err = run("audit", data, *BASIC, *FAST, "--baseline", "old/report.json")
    assert status == 0
    assert "stood in the baseline already" in err
    check(finds("fail", "warn"))
    assert run("audit", data, *BASIC, *FAST, "--baseline", "old/report.json", "--fail-on", "warn")[0] == 1


@pytest.mark.parametrize(("name", "begins"), [("table", "New"), ("json", "{"), ("markdown", "## "), ("html", "<!DOC")])
def test_two_reports_are_compared_in_each_format(run, data, check, name, begins):
    check(finds("warn"))
    run("audit", data, *BASIC, *FAST, "--out", "old")
    check(finds("warn", "fail"))
    run("audit", data, *BASIC, *FAST, "--out", "new")
    status, out, err = run("compare", "old/report.json", "new/report.json", "--format", name)
    assert status == 1
    assert out.startswith(begins)
    assert "Exit status 1 (--fail-on fail): model_outputs/fail." in err
    status, out, err = run("compare", "new/report.json", "old/report.json", "--fail-on", "note", "--format", name)
    assert (status, err) == (0, "")
    assert run("compare", "old/report.json", "old/report.json", "--strict")[0] == 0


@pytest.mark.parametrize("name", ["table", "json", "markdown", "github", "junit", "sarif"])
def test_a_report_is_shown_again_as_the_audit_printed_it(run, data, name):
    _, printed, _ = run("audit", data, *BASIC, *FAST, "--format", name)
    status, shown, err = run("show", "aboveboard-report/report.json", "--format", name)
    assert (status, err) == (0, "")
    assert shown == "".join(line for line in printed.splitlines(keepends=True) if "aboveboard-report" not in line)
    assert run("show", "aboveboard-report/report.json", "--format", "html")[1].startswith("<!doctype html>")
    assert run("show", data)[0] == 2


def test_what_cannot_be_compared_is_status_2(run, data):
    run("audit", data, *BASIC, *FAST, "--out", "old")
    status, _, err = run("compare", "old/report.json", data)
    assert status == 2
    assert err.startswith("Error: the newer report: this is not an aboveboard report")
    assert run("compare", "old/report.json")[0] == 2
    other = json.loads(Path("old/report.json").read_text(encoding="utf-8"))
    other["subject"]["task"] = "regression"
    Path("other.json").write_text(json.dumps(other), encoding="utf-8")
    status, _, err = run("compare", "old/report.json", "other.json")
    assert status == 2
    assert "Expected two reports on the same question." in err


def test_a_baseline_that_is_no_report_is_refused_before_any_work(run, data):
    Path("old.json").write_text("{}", encoding="utf-8")
    for name in ("old.json", "none.json", "."):
        assert run("audit", data, *BASIC, "--baseline", name)[0] == 2
    assert not Path("aboveboard-report").exists()


def test_accepted_findings_do_not_count_and_expired_or_unused_ones_are_told(run, data, check):
    check(finds("fail"))
    entry = "[[accept]]\nid = '{}'\nreason = 'We know.'\n{}\n"
    Path("audit.toml").write_text(entry.format("model_outputs/fail", "") + entry.format("gone", ""), encoding="utf-8")
    status, _, err = run("audit", data, *BASIC, *FAST, "--config", "audit.toml")
    assert status == 0
    assert "The accepted finding 'gone' was not found" in err
    assert read_report().accepted[0]["reason"] == "We know."
    Path("audit.toml").write_text(entry.format("model_outputs/fail", "expires = 2020-01-01"), encoding="utf-8")
    status, _, err = run("audit", data, *BASIC, *FAST, "--config", "audit.toml")
    assert status == 1
    assert "expired on 2020-01-01" in err


# --- the config -------------------------------------------------------------------------------------------------------


def test_a_config_is_enough_and_the_command_line_wins(run, data):
    Path("sub").mkdir()
    Path("sub/audit.toml").write_text(
        "data = '../test.csv'\ntarget = 'income'\npredictions = 'p'\nonly = 'model_outputs'\nout = 'report'\nseed = 4\n"
        "format = 'json'\n[types]\nage = 'text'\n",
        encoding="utf-8",
    )
    status, out, _ = run("audit", "--config", "sub/audit.toml", "--seed", "5")
    assert status == 0
    report = Report.from_json(out)
    assert report.seed == 5
    assert {"name": "age", "kind": "text"} in report.subject["features"]
    assert Path("sub/report/index.html").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt = 'income'", "Did you mean 'target'"),
        ("[types]\nagee = 'text'", "no column 'agee' for the [types] table of the config"),
        ("[types]\nsex = 'number'", "the column 'sex' has the value"),
        ("[limits]\nnothing = 1", "no limit is called 'nothing'"),
    ],
)
def test_a_mistake_in_the_config_is_status_2(run, data, text, message):
    Path("audit.toml").write_text(text, encoding="utf-8")
    status, _, err = run("audit", data, *BASIC, *FAST, "--config", "audit.toml")
    assert status == 2
    assert message in err


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = [
    ((), "no --target was given"),
    (("--target", "income"), "neither --model nor --predictions was given"),
    ((*BASIC, "--show-rows", "3"), "--show-rows was given and predictions instead of a model"),
    (("--target", "incme", "--predictions", "p"), "Did you mean 'income'"),
    ((*BASIC, "--sensitive", "sec"), "no column 'sec' for the sensitive column"),
    ((*BASIC, "--weight", "wieght"), "no column 'wieght' for the weights"),
    (("--target", "income", "--predictions", "hours"), "outside [0, 1]"),
    (("--target", "hours", "--predictions", "sex"), "not numbers"),
    ((*BASIC, "--model", "m.skops"), "both --model and --predictions were given"),
    (("--target", "income", "--model", "m.skops"), "there is no model file 'm.skops'"),
    (("--target", "income", "--model", "test.csv"), "of no known format"),
    (("--target", "income", "--model", "."), "is a folder"),
    (("--target", "income", "--model", "gone:predict"), "there is no module 'gone'"),
    ((*BASIC, "--trust", "known"), "no --model was given"),
    ((*BASIC, "--trust", "all"), "'known'"),
    ((*BASIC, "--trust-type", ""), "must not be empty"),
    ((*BASIC, "--threshold", "2"), "threshold is 2.0"),
    ((*BASIC, "--limit", "x"), "CHECK=VALUE"),
    ((*BASIC, "--limit", "group_fairness.selection_rate=x"), "is no number"),
    ((*BASIC, "--limit", "group_fairness.selection_rate=nan"), "a number at or above 0"),
    ((*BASIC, "--limit", "calibration=nan"), "limit"),
    ((*BASIC, "--reference-group", "sex"), "COLUMN=GROUP"),
    ((*BASIC, "--reference-group", "sex=a", "--reference-group", "sex=b"), "given twice"),
    ((*BASIC, "--sensitive", "sex", "--reference-group", "sex=male"), "no group 'male'"),
    ((*BASIC, "--only", "zzz"), "no check or area"),
    ((*BASIC, "--skip", ",".join(spec.name for spec in TABULAR)), "no check to run"),
    ((*BASIC, "--min-cell", "0"), "smallest cell"),
    ((*BASIC, "--jobs", "0"), "jobs"),
    ((*BASIC, "--seed", "-1"), "seed"),
    ((*BASIC, "--drop", ""), "must not be empty"),
    ((*BASIC, "--train", "none.csv"), "the training data: there is no file 'none.csv'"),
    ((*BASIC, "--reference", "none.csv"), "the reference data: there is no file 'none.csv'"),
    ((*BASIC, "--config", "none.toml"), "the config 'none.toml' cannot be read"),
    ((*BASIC, "--out", "test.csv"), "is no folder"),
    ((*BASIC, "--out", "."), "no audit wrote"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_bad_input_is_status_2_with_one_message_and_nothing_written(run, data, options, message):
    before = sorted(os.listdir("."))
    status, out, err = run("audit", data, *options)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) <= 4
    assert sorted(os.listdir(".")) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("income,p\n", "a header and no rows"),
        ("income,p\n1,0.5\n", "the data have one row"),
        ("income,p,p\n1,0.5,0.5\n0,0.5,0.5\n", "more than one column called 'p'"),
        ("income,p\n1,0.5\n1,0.6\n", "in every row"),
        ("income,p\n1,0.5\n,0.6\n0,0.1\n", "missing in 1 of 3 rows"),
        ("income,p\n1,0.5\n0\n", "line 3 has 1 values"),
    ],
)
def test_a_table_that_cannot_be_audited_is_status_2(run, content, message):
    Path("test.csv").write_text(content, encoding="utf-8")
    status, _, err = run("audit", "test.csv", *BASIC)
    assert status == 2
    assert message in err


@pytest.mark.parametrize("option", ["--target", "--sensitive", "--train", "--reference", "--positive", "--drop"])
def test_an_option_about_data_without_data_is_refused(run, option):
    status, _, err = run("audit", option, "x")
    assert status == 2
    assert f"{option} was given and no DATA" in err


def test_the_reference_is_read_with_the_types_of_the_audited_table(run):
    TABLE.assign(code=["007", "1", "2", "3"] * (N // 4)).to_csv("test.csv", index=False)
    TABLE.assign(code=[7, 1, 2, 3] * (N // 4)).drop(columns=["p", "income"]).to_csv("old.csv", index=False)
    options = ("--reference", "old.csv", "--only", "column_drift")
    assert run("audit", "test.csv", *BASIC, *options)[0] in (0, 1)
    report = read_report()
    assert "column_drift/schema/types" not in {finding.id for finding in report.findings}
    assert any("no labels: there is no column 'income'" in note for note in report.notes)
    TABLE.assign(age="old").to_csv("old.csv", index=False)
    status, _, err = run("audit", "test.csv", *BASIC, *options, "--force")
    assert status == 2
    assert "the reference data: the column 'age' has the value 'old'" in err
    assert "says the audited data" in err


def test_a_folder_with_other_files_is_written_by_force_only_and_they_stay(run, data):
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine", encoding="utf-8")
    assert run("audit", data, *BASIC, *FAST, "--out", "mine")[0] == 2
    assert run("audit", data, *BASIC, *FAST, "--out", "mine", "--force")[0] == 0
    assert sorted(os.listdir("mine")) == ["index.html", "notes.txt", "report.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "--limit", "\x1b[31mx"),
        ("audit", "--limit", "\x1b=\x1b"),
        ("audit", "--task", "\x1b"),
        ("audit", "--\x1b"),
        ("audit", "a", "\x1b"),
        ("\x1b",),
        ("--\x1b",),
        ("reproduce", "audit", "--seed", "\x1b"),
    ],
)
def test_what_was_typed_wrongly_does_not_steer_the_terminal(run, arguments):
    """Found by fuzzing."""
    status, out, err = run(*arguments)
    assert status == 2
    assert "\x1b" not in out + err


def test_an_error_message_cannot_steer_the_terminal(run):
    Path("test.csv").write_text("a\x1b[31m,b\n1,2\n3,4\n", encoding="utf-8")
    _, _, err = run("audit", "test.csv", "--target", "z\x1b]0;x\x07", "--predictions", "b")
    assert "\x1b" not in err
    assert "\x07" not in err


# --- methods, cite, data, reproduce -----------------------------------------------------------------------------------


def test_methods_are_listed_and_told(run):
    catalogue = importlib.import_module("aboveboard.core.catalogue").catalogue()
    status, out, _ = run("methods")
    assert status == 0
    for method in catalogue:
        assert method.name in out
        status, told, _ = run("methods", method.slug)
        assert status == 0
        assert method.import_path.partition(":")[2] in told
        assert "evidence:" in told
    assert run("methods", "zzzzzz")[0] == 2


def test_a_citation_is_bibtex(run):
    method = importlib.import_module("aboveboard.core.catalogue").catalogue()[0]
    status, out, _ = run("cite", method.name)
    assert status == 0
    assert "@inproceedings{" in out


def test_data_sets_are_listed_and_told(run):
    status, out, _ = run("data", "list")
    assert status == 0
    assert all(record.name in out for record in list_datasets())
    status, out, _ = run("data", "show", "adult")
    assert status == 0
    for text in ("CC BY 4.0", "48,842 rows", "caveats:", "aboveboard.data.load('adult')"):
        assert text in out
    status, _, err = run("data", "show", "adlt")
    assert status == 2
    assert "'adlt'" in err
    assert "48,842 rows" in run("data", "show", "adult", "--download")[2]


class Experiment:
    def __init__(self, value):
        self.value = value
        self.calls = []

    def run(self, method, scale, *, seed):
        self.calls.append((scale, seed))
        criterion = Criterion("loss", "The loss is at most 0.5.", {"a": self.value, "b": 0.1}, "max", "<=", 0.5, "nats")
        return Outcome([criterion], notes=("A note.",))

    def record(self, method, *, seed):
        return self.run(method, "recorded", seed=seed), Path("evidence.json")


@pytest.mark.parametrize(("value", "status", "verdict"), [(0.25, 0, "passed"), (0.75, 1, "FAILED")])
def test_an_experiment_prints_figures_bounds_and_verdicts(run, monkeypatch, value, status, verdict):
    method = importlib.import_module("aboveboard.core.catalogue").catalogue()[0]
    experiment = Experiment(value)
    monkeypatch.setattr(reproduce_runner, "run", experiment.run)
    monkeypatch.setattr(reproduce_runner, "record", experiment.record)
    got, out, err = run("reproduce", method.name)
    assert got == status
    row = next(line for line in out.splitlines() if line.startswith("loss"))
    assert row.split()[:6] == ["loss", str(value), "<=", "0.5", "nats", verdict]
    assert "Note: A note." in err
    run("reproduce", method.name, "--scale", "full", "--seed", "3")
    run("reproduce", method.name, "--scale", "full", "--record")
    assert experiment.calls == [("quick", 0), ("full", 3), ("recorded", 0)]
    assert run("reproduce", method.name, "--scale", "quick", "--record")[0] == 2


# --- anything ---------------------------------------------------------------------------------------------------------

words = st.sampled_from(["", "income", "p", "sex", "age", "age:25,40", "hours", "sex=Male", "zzz", "0", "-1", "0.5",
                         "nan", "1e999", "performance", "model_outputs", "data", "model_outputs=1", "quick", "binary",
                         "regression", "label", "score", "json", "github", "test.csv", ".", "none.csv",
                         "é\x00"])  # fmt: skip
options = st.sampled_from(
    ["--target", "--predictions", "--sensitive", "--train", "--weight", "--id", "--cluster", "--drop", "--config",
     "--task", "--positive", "--prediction-type", "--threshold", "--reference-group", "--only", "--skip", "--effort",
     "--limit", "--min-cell", "--jobs", "--seed", "--fail-on", "--baseline", "--format"]
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(options, words), max_size=4))
def test_any_options_end_in_a_status_and_never_in_a_traceback(run, data, check, pairs):
    check(finds("ok"))
    chosen = [part for pair in pairs for part in pair]
    status, _, err = run("audit", data, *BASIC, *FAST, *chosen)
    assert status in (0, 1, 2), err
    assert "Internal error" not in err


# --- suites -----------------------------------------------------------------------------------------------------------

VOTES = pd.DataFrame({"drink": ["tea", "coffee"], **{f"judge {k}": [1, 2] for k in range(20)}})
RANKED = ("votes.csv", "--suite", "ranking", "--column", "item=drink", "--setting", "votes=rank")


@pytest.fixture
def votes(tmp_path):
    VOTES.to_csv(tmp_path / "votes.csv", index=False)


def test_a_suite_audits_its_natural_file(run, votes):
    status, out, err = run("audit", *RANKED)
    assert status == 0
    assert "Rankings" in out
    assert read_report().subject["suite"] == "ranking"
    assert read_report().subject["summary"] == "a ranking of 2 items by 20 judges"
    assert "Note: No published order was named" in err


def test_a_suite_without_data_audits_its_example(run):
    status, _, err = run("audit", "--suite", "ranking", "--effort", "quick")
    assert status == 1
    assert "the bundled example is audited: the 100 ballots" in err
    assert "rank_audit/order" in err


def test_gates_work_for_suites_as_for_tables(run):
    assert run("audit", "--suite", "ranking", "--effort", "quick", "--only", "rank_audit")[0] == 1
    again = ("--baseline", "aboveboard-report/report.json", "--out", "again")
    assert run("audit", "--suite", "ranking", "--effort", "quick", "--only", "rank_audit", *again)[0] == 0
    limit = ("--limit", "rank_audit.dissent=0.99", "--only", "rank_audit", "--out", "third")
    assert run("audit", "--suite", "ranking", "--effort", "quick", *limit)[0] == 0
    assert (
        run("audit", "--suite", "ranking", "--effort", "quick", "--format", "markdown", *limit)[1].count("Judges") >= 1
    )


def test_a_suite_can_be_named_in_the_config(run, votes, tmp_path):
    text = 'data = "votes.csv"\nsuite = "ranking"\n[columns]\nitem = "drink"\n[settings]\nvotes = "score"\n'
    (tmp_path / "audit.toml").write_text(text)
    assert run("audit", "--config", "audit.toml", "--setting", "votes=rank")[0] == 0
    assert {"name": "Votes", "value": "items x judges, ranks"} in read_report().subject["facts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RANKED, "--target", "drink"), "--target was given and the suite is ranking"),
        ((*RANKED, "--task", "binary"), "--task was given and the suite is ranking"),
        ((*RANKED, "--model", "m.skops"), "--model was given and the suite is ranking"),
        ((*RANKED, "--column", "items=drink"), "Did you mean 'item'"),
        ((*RANKED, "--column", "drink"), "is not of the form ROLE=COLUMN"),
        ((*RANKED, "--setting", "votes"), "is not of the form NAME=VALUE"),
        ((*RANKED, "--only", "fairness"), "It belongs to the suite tabular"),
        ((*RANKED, "--column", "published=sold"), "there is no column 'sold' for the role published"),
        (("none.csv", "--suite", "ranking"), "there is no file 'none.csv'"),
        (("--suite", "ranking", "--column", "item=x"), "--column was given and no DATA"),
        (("votes.csv", *BASIC, "--column", "item=x"), "--column was given and the suite is tabular"),
        (("votes.csv", *BASIC, "--setting", "votes=rank"), "--setting was given and the suite is tabular"),
        (("--suite", "rankings"), "is not one of"),
    ],
)
def test_what_does_not_belong_to_a_suite_is_refused(run, votes, arguments, message):
    status, out, err = run("audit", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert not Path("aboveboard-report").exists()


def test_the_checks_of_one_suite_can_be_listed_alone(run):
    _, every, _ = run("audit", "--list-checks")
    _, one, _ = run("audit", "--list-checks", "--suite", "ranking")
    assert "group_fairness" in every
    assert "group_fairness" not in one
    for text in (every, one):
        assert "--suite ranking" in text
        assert "--setting votes=... (rank, score)" in text
        assert "limit rank_audit.dissent = 0.5" in text


# --- admit ------------------------------------------------------------------------------------------------------------


def test_an_expert_is_asked_interrupted_and_goes_on(tmp_path):
    lines = [json.dumps({"prompt": f"q{i}", "samples": [f"a{i}", f"b{i}"], "quality": [0.4, 0.6]}) for i in range(40)]
    (tmp_path / "drafts.jsonl").write_text("\n".join(lines))
    command = [sys.executable, "-m", "aboveboard.cli", "admit", "drafts.jsonl", "--alpha", "0.3"]
    command += ["--stages", "generation,quality", "--score", "count"]

    def answer(words):
        return subprocess.run(command, cwd=tmp_path, input=words, capture_output=True, text=True, check=False)

    first = answer("y\nn\ny\n")
    assert first.returncode == 130
    assert "Every answer is in drafts.answers.jsonl" in first.stderr
    assert first.stdout.strip() == ""
    assert len((tmp_path / "drafts.answers.jsonl").read_text().splitlines()) == 3
    second = answer("b\ny\n" + "y\n" * 100)
    assert second.returncode == 0, second.stderr
    assert "at least 0.7" in second.stdout
    answers = [json.loads(line)["admissible"] for line in (tmp_path / "drafts.answers.jsonl").read_text().splitlines()]
    assert answers.count(False) == 1
    from aboveboard.uncertainty import SCOPEGen

    assert list(SCOPEGen.load(tmp_path / "drafts.scope.json").thresholds_) == ["generation", "quality"]
    again = answer("")
    assert (again.returncode, again.stdout.strip()) == (0, second.stdout.strip())


def test_drafts_that_cannot_be_used_are_status_2(run, tmp_path):
    (tmp_path / "drafts.jsonl").write_text('{"samples": ["a"]}\n')
    status, _, err = run("admit", "drafts.jsonl", "--stages", "generation", "--score", "count")
    assert status == 2
    assert "Error: there are 1 items for 1 calibrated stages" in err
    assert run("admit", "nowhere.jsonl")[0] == 2
