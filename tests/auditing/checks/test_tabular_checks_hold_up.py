"""What every check of the tabular suite must stand: containers, hostile names, odd data."""

import importlib
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from aboveboard.auditing.subject import make_subject

CHECKS = (
    "performance",
    "calibration",
    "abstention",
    "novel_rows",
    "sensitive_proxies",
    "target_leak",
    "shared_rows",
    "duplicates",
    "column_health",
    "group_missingness",
    "column_drift",
    "score_drift",
    "label_drift",
    "performance_drift",
    "model_determinism",
    "model_inputs",
    "model_outputs",
    "membership",
)
NEEDS_MODEL = ("model_determinism", "model_inputs", "membership")
N = 400


def applies(name, subject):
    if name in NEEDS_MODEL and subject.model is None:
        return False
    if name in ("shared_rows", "novel_rows", "membership") and subject.train is None:
        return False
    if name.endswith("_drift") and (subject.reference is None or subject.reference.prediction is None):
        return False
    if name in ("calibration", "abstention") and (subject.task == "regression" or subject.score is None):
        return False
    return not (name in ("sensitive_proxies", "group_missingness") and subject.sensitive.shape[1] == 0)


def run(subject, names=CHECKS, effort="quick"):
    findings = []
    for name in names:
        if not applies(name, subject):
            continue
        check = importlib.import_module(f"aboveboard.auditing.checks.{name}").check
        found = check(subject, random_state=7, effort=effort)
        assert found, name
        for finding in found:
            assert finding.check == name
            assert finding.id.startswith(f"{name}/")
            assert finding.statement.endswith((".", "?")), finding.statement
            json.dumps(finding.to_dict(), allow_nan=False)
        findings += found
    assert len({finding.id for finding in findings}) == len(findings)
    return findings


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, np.round(rng.normal(size=n), 3)),
            "town": pd.Series(rng.choice(["x", "y ", "?", "z"], n), dtype=object),
            "sex": pd.Series(rng.choice(["F", "M"], n), dtype=object),
            "owner": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    frame["y"] = (frame["age"] + rng.normal(size=n) * 15 > 50).astype(int)
    frame["p"] = np.clip(frame["age"] / 100 + rng.normal(size=n) * 0.05, 0.01, 0.99)
    frame.loc[3, "sex"] = None
    frame.loc[5, "town"] = None
    return frame


TABLE = table()
CONTAINERS = {
    "nullable": lambda t: t.convert_dtypes(),
    "arrow": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda t: t.astype(dict.fromkeys(["age", "income", "town", "sex", "owner"], object)),
    "small": lambda t: t.astype({"age": "int8", "y": "uint8"}),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "category": lambda t: t.astype({"sex": "category", "town": "category"}),
    "shuffled index": lambda t: t.set_axis(range(N)[::-1]),
}


def given(frame, train=None, **options):
    options = {"predictions": "p", "prediction_type": "score", "sensitive_features": ["sex", "age:40"]} | options
    return make_subject(None, frame, "y", train=train, **options)


def told(findings):
    """What must not depend on the container; how a column is stored may be named."""
    out = []
    for finding in findings:
        data = finding.to_dict()
        data["tables"] = json.loads(json.dumps(data["tables"]).replace('"category"', '"text"'))
        out.append(data)
    return out


@pytest.mark.parametrize("container", list(CONTAINERS))
def test_every_container_gives_the_same_findings(container):
    train = table(seed=0).iloc[::2].reset_index(drop=True)
    convert = CONTAINERS[container]
    older = table(seed=1)
    expected = told(run(given(TABLE, train, reference=older)))
    got = told(
        run(given(convert(TABLE), train if container != "nullable" else convert(train), reference=convert(older)))
    )
    assert got == expected


HOSTILE = [
    '"><script>alert(1)</script>',
    "[bold]red[/bold]",
    "line\nbreak\ttab",
    "emoji 🙂‍🌈",
    "quote ' and \" and `",
    "x" * 3000,
    "{{7*7}} %s {0}",
    "../../etc/passwd",
    "\u202eright to left",
    "",
    " ",
    "nul\x00byte",
]


def test_hostile_names_of_columns_groups_and_classes_survive_as_they_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=N) for name in HOSTILE})
    frame[HOSTILE[0]] = rng.choice(HOSTILE, N)
    frame[HOSTILE[2]] = np.where(rng.random(N) < 0.3, np.nan, frame[HOSTILE[2]])
    y = np.where(rng.random(N) < 0.5, "<b>no</b>", "[red]yes")
    subject = make_subject(
        None,
        frame,
        y,
        predictions=rng.random(N),
        positive="[red]yes",
        prediction_type="score",
        sensitive_features=[HOSTILE[0], HOSTILE[2]],
        train=(frame, y),
        reference=(frame[::-1], y[::-1], rng.random(N)),
    )
    findings = run(subject)
    assert {f"sensitive_proxies/{name}" for name in (HOSTILE[0], HOSTILE[2])} <= {finding.id for finding in findings}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_weights_and_clusters_are_accepted_everywhere(weighted, clustered):
    rng = np.random.default_rng(0)
    options = {}
    if weighted:
        options["sample_weight"] = np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.5, 3, N))
    if clustered:
        options["clusters"] = rng.integers(0, 60, N)
    run(given(TABLE, TABLE.iloc[:50], ids=np.arange(N), **options))


def test_several_classes_with_one_that_the_data_lack():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "g": rng.choice(["u", "v"], N)})
    y = np.array(["lo", "mid", "hi"])[np.clip(np.rint(X["a"]).astype(int) + 1, 0, 2)]
    model = RandomForestClassifier(10, random_state=0).fit(X[["a", "b"]], y)
    kept = y != "hi"
    subject = make_subject(
        model, X[kept].reset_index(drop=True), y[kept], sensitive_features=X["g"][kept].reset_index(drop=True)
    )
    findings = {finding.id: finding for finding in run(subject)}
    assert findings["performance/absent_class"].severity == "note"
    assert "'hi'" in findings["performance/absent_class"].statement


def test_labels_of_several_classes_without_scores():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, N)
    run(
        make_subject(
            None, TABLE[["age", "town"]], y, predictions=np.where(rng.random(N) < 0.8, y, 0), task="multiclass"
        )
    )


def test_regression():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.integers(0, 5, N)})
    y = X["a"] * 2 + rng.normal(size=N)
    model = LinearRegression().fit(X, y)
    run(make_subject(model, X, y, sensitive_features=["b"], train=(X, y), clusters=np.arange(N) // 3))


@pytest.mark.parametrize(
    "column",
    [np.zeros(N), np.full(N, np.nan), np.array(["a"] * N, dtype=object), np.arange(N), np.full(N, np.inf), [None] * N],
    ids=["constant", "missing", "text", "id", "infinite", "none"],
)
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_a_single_column_of_any_kind(column, task):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N) if task == "binary" else rng.normal(size=N)
    predictions = rng.random(N)
    groups = pd.Series(rng.choice(["u", "v"], N), name="g")
    frame = pd.DataFrame({"only": column})
    run(make_subject(None, frame, y, predictions=predictions, task=task, sensitive_features=groups, train=(frame, y)))


@pytest.mark.parametrize("n", [2, 3, 11])
def test_very_few_rows_give_no_verdict_on_the_model(n):
    frame = TABLE.head(n).assign(y=[0, 1, *([0] * (n - 2))])
    findings = {finding.id: finding for finding in run(given(frame, sensitive_features="sex"))}
    for key in ("performance/metrics", "calibration/ece", "target_leak/columns", "sensitive_proxies/sex"):
        assert findings[key].status == "inconclusive", key


def test_perfect_and_constant_scores_are_measured_without_warnings():
    y = TABLE["y"].to_numpy()
    for score in (y.astype(float), np.full(N, 0.5), np.zeros(N), 1.0 - y):
        run(make_subject(None, TABLE[["age"]], y, predictions=score, prediction_type="score"))


def test_the_same_seed_gives_the_same_findings():
    subject = given(TABLE, TABLE)
    assert told(run(subject)) == told(run(subject))


def test_no_table_or_statement_shows_a_value_of_a_row():
    secrets = [f"secret{i}" for i in range(N)]
    frame = TABLE.assign(name=secrets, note=[f"secret note {i % 37}" for i in range(N)])
    X = frame[["age", "income"]].fillna(0)
    model = LogisticRegression().fit(X, frame["y"])
    for subject in (
        given(frame, frame, ids=secrets),
        make_subject(model, X.join(frame[["name"]]), frame["y"], drop=["name"], train=(X, frame["y"])),
    ):
        assert "secret" not in json.dumps([finding.to_dict() for finding in run(subject)])
