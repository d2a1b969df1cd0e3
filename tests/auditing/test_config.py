import datetime as dt
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.auditing.config import Options, read_config
from aboveboard.core.errors import InputError

FULL = """
data = "test.csv"
model = "models/model.skops"
model-classes = ["no", 1]
model-timeout = 60
model-memory = 0.5
target = "income"
predictions = "p"
prediction-type = "score"
sensitive = ["sex", "age:25,40,60"]
train = "../train.csv"
reference = "../old.csv"
task = "binary"
positive = 1
stream = true
threshold = 0.5
drop = ["a", "b"]
weight = "w"
id = "who"
cluster = "family"
only = ["fairness"]
skip = "duplicates"
effort = "quick"
fail_on = "warn"
strict = true
baseline = "old/report.json"
min-cell = 5
jobs = 2
out = "report"
force = true
format = "junit"
seed = 7
compare = "models/other.skops"
compare-predictions = ["q"]
compare-classes = ["no", 1]
auth-header = "X-Api-Key"
endpoint-format = "kserve"
max-queries = 500
batch_rows = 50
concurrency = 4
ca-file = "ca.pem"

[reference-group]
sex = "Male"
grade = 3

[limits]
"group_fairness.selection_rate" = 0.1

[types]
zip = "text"

[[accept]]
id = "a/b"
reason = "We know."
expires = 2030-01-31

[[accept]]
id = "c"
reason = "For ever."
"""


def config(folder, text):
    path = folder / "audit.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_option_can_stand_in_the_config_and_paths_are_relative_to_it(tmp_path):
    options = read_config(config(tmp_path, FULL))
    assert options == Options(
        data=tmp_path / "test.csv", model=str(tmp_path / "models" / "model.skops"), model_classes=("no", "1"),
        model_timeout=60, model_memory=0.5,
        compare=str(tmp_path / "models" / "other.skops"), compare_predictions=("q",), compare_classes=("no", "1"),
        target="income", predictions=("p",), prediction_type="score",
        sensitive=("sex", "age:25,40,60"), train=tmp_path / ".." / "train.csv",
        reference=tmp_path / ".." / "old.csv", task="binary", positive="1",
        stream=True, threshold=0.5, drop=("a", "b"), weight="w", id="who", cluster="family",
        reference_group={"sex": "Male", "grade": "3"}, only=("fairness",), skip=("duplicates",), effort="quick",
        fail_on="warn", strict=True, baseline=tmp_path / "old" / "report.json",
        accept=({"id": "a/b", "reason": "We know.", "expires": dt.date(2030, 1, 31)},
                {"id": "c", "reason": "For ever."}),
        limits={"group_fairness.selection_rate": 0.1}, types={"zip": "text"}, min_cell=5, jobs=2,
        out=tmp_path / "report", force=True, format="junit", seed=7, auth_header="X-Api-Key", endpoint_format="kserve",
        max_queries=500, batch_rows=50, concurrency=4, ca_file=tmp_path / "ca.pem",
    )  # fmt: skip
    defaults = Options()
    spoken_for = ("trust", "trust_type", "trust_pickle", "auth_env", "show_rows", "suite", "columns", "settings")
    differ = [f.name for f in fields(Options) if getattr(options, f.name) != getattr(defaults, f.name)]
    assert {*differ, *spoken_for} == {f.name for f in fields(Options)}


def test_what_a_file_may_be_trusted_with_is_said_on_the_command_line_only(tmp_path):
    for text in (
        "auth-env = 'TOKEN'",
        "trust = 'known'",
        "trust-type = ['a.B']",
        "trust_pickle = true",
        "trust-pickle = false",
        "show-rows = [3]",
    ):
        with pytest.raises(InputError, match="on the command line: a file must not vouch for another, nor"):
            read_config(config(tmp_path, text))
    with pytest.raises(InputError, match=r"function 'scoring:predict'.*--model scoring:predict"):
        read_config(config(tmp_path, "model = 'scoring:predict'"))
    with pytest.raises(InputError, match=r"compare is the function 'scoring:predict'.*--compare scoring:predict"):
        read_config(config(tmp_path, "compare = 'scoring:predict'"))


def test_a_model_in_the_config_is_a_file_beside_it_or_an_address(tmp_path):
    assert read_config(config(tmp_path, "model = 'm.onnx'")).model == str(tmp_path / "m.onnx")
    assert read_config(config(tmp_path, "model = 'HTTPS://a.example/x'")).model == "HTTPS://a.example/x"
    (tmp_path / "a:b").touch()
    assert read_config(config(tmp_path, "model = 'a:b'")).model == str(tmp_path / "a:b")


def test_an_empty_config_and_an_absolute_path_are_fine(tmp_path):
    assert read_config(config(tmp_path, "")) == Options()
    path = Path(os.path.abspath(os.sep)) / "data.csv"
    assert read_config(config(tmp_path, f"data = '{path}'")).data == path


def test_a_byte_order_mark_is_skipped(tmp_path):
    (tmp_path / "audit.toml").write_bytes(b"\xef\xbb\xbftarget = 'y'")
    assert read_config(tmp_path / "audit.toml").target == "y"


def test_the_command_line_wins_and_what_is_not_given_stays():
    options = Options(target="a", drop=("x",), limits={"one": 1.0, "two": 2.0}, strict=True, effort="full")
    merged = options.merged(
        {"target": "b", "drop": (), "limits": {"two": 3.0}, "strict": False, "effort": None, "seed": 0}
    )
    assert merged == Options(target="b", drop=("x",), limits={"one": 1.0, "two": 3.0}, strict=False, effort="full")
    assert options.merged({"drop": ("y", "z")}).drop == ("y", "z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt = 'y'", r"unknown key 'targt'.*Did you mean 'target'"),
        ("min_cel = 1", "Did you mean 'min-cell'"),
        ("fail-on = 'warn'\nfail_on = 'warn'", "twice"),
        ("task = 'binry'", r"did you mean 'binary'"),
        ("format = 'pdf'", "table, json"),
        ("target = 1", "target is 1 in the config. Expected text"),
        ("target = ''", "Expected text"),
        ("drop = [1]", "Expected text"),
        ("drop = 1", "list of texts"),
        ("strict = 'yes'", "true or false"),
        ("seed = 1.5", "whole number"),
        ("seed = true", "whole number"),
        ("threshold = 'half'", "a number"),
        ("positive = [1]", "a label"),
        ("limits = 1", r"a table: \[limits\]"),
        ("[limits]\na = 'x'", "limits.a"),
        ("[types]\na = 'float'", "types.a is 'float'"),
        ("[reference-group]\nsex = ['a']", "reference-group.sex"),
        ("accept = 'x'", r"\[\[accept\]\]"),
        ("[accept]\nid = 'x'", r"\[\[accept\]\]"),
        ("[[accept]]\nid = 'x'", "accept.reason"),
        ("[[accept]]\nid = ''\nreason = 'r'", "accept.id"),
        ("[[accept]]\nid = 'x'\nreason = 'r'\nuntil = 1", r"unknown key 'until'"),
        ("[[accept]]\nid = 'x'\nreason = 'r'\nexpires = 2030", "accept.expires"),
        ("target = ", "is no TOML"),
        ("target = 'y'\ntarget = 'z'", "is no TOML"),
        ("a = " + "[" * 5000, "is no TOML"),
    ],
)
def test_a_mistake_in_the_config_is_refused_and_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_config(config(tmp_path, text))


def test_a_config_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"the config 'none.toml' cannot be read"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path)
    (tmp_path / "audit.toml").write_bytes(b"\xff\xfet")
    with pytest.raises(InputError, match="no TOML"):
        read_config(tmp_path / "audit.toml")


names = st.sampled_from([f.name.replace("_", "-") for f in fields(Options)]) | st.text("abc-_", min_size=1, max_size=6)
values = st.sampled_from(["1", "-1", "0.5", "nan", "true", "'x'", "''", "[]", "['a']", "{}", "{a = 1}", "2030-01-01"])


@given(st.dictionaries(names, values, max_size=5))
def test_any_config_is_read_or_refused(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("config") / "audit.toml"
    path.write_text("\n".join(f"{name} = {value}" for name, value in entries.items()), encoding="utf-8")
    try:
        options = read_config(path)
    except InputError:
        return
    assert isinstance(options, Options)


def test_reading_a_config_loads_neither_numpy_nor_pandas():
    code = "import sys, aboveboard.auditing.config; print({'numpy', 'pandas', 'pyarrow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_suite_has_its_columns_and_settings_in_tables(tmp_path):
    text = 'suite = "ranking"\n[columns]\nitem = "name"\njudge = ["a", "b"]\n[settings]\nvotes = "rank"\nsize = 3\n'
    options = read_config(config(tmp_path, text))
    assert options.suite == "ranking"
    assert options.columns == {"item": ("name",), "judge": ("a", "b")}
    assert options.settings == {"votes": "rank", "size": 3}
    merged = options.merged({"columns": {"item": ("other",)}, "settings": {"votes": "score"}, "suite": None})
    assert merged.columns == {"item": ("other",), "judge": ("a", "b")}
    assert merged.settings == {"votes": "score", "size": 3}
    assert merged.suite == "ranking"


@pytest.mark.parametrize("text", ['suite = "rankin"', "[columns]\nitem = 3", "[settings]\nvotes = true", "columns = 1"])
def test_suites_columns_and_settings_that_are_none_are_refused(tmp_path, text):
    with pytest.raises(InputError):
        read_config(config(tmp_path, text))
