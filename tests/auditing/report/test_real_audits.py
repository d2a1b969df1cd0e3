"""Reports of real audits: valid, small, deterministic, and safe with hostile data."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from sklearn.ensemble import HistGradientBoostingClassifier

import aboveboard
from aboveboard.auditing.report.schema import report_schema
from aboveboard.core import Report
from aboveboard.core.report import renderers
from aboveboard.data import load_german_credit


def _credit():
    data = load_german_credit()
    X, y, sensitive = data.X, data.y, data.sensitive[["personal_status_sex"]]
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0, categorical_features="from_dtype")
    model.fit(X[:500], y[:500])
    return aboveboard.audit(
        model,
        X[500:],
        y[500:],
        sensitive_features=sensitive[500:],
        train=(X[:500], y[:500]),
        effort="quick",
        skip=["model_determinism", "sensitive_proxies"],
        show_progress=False,
    )


@pytest.fixture(scope="module")
def credit():
    return _credit()


@pytest.fixture(scope="module")
def hostile_audit(hostile_names):
    """Every column, group and label of the audited table is a nasty name."""
    rng = np.random.default_rng(0)
    n = 600
    # pandas' own text type refuses lone surrogates
    names = [name for key, name in hostile_names.items() if name.strip() and key != "lone-surrogate"]
    columns = dict(zip(names[:12], rng.normal(size=(12, n)), strict=True))
    columns |= {name: rng.choice(names[i : i + 3], size=n) for i, name in enumerate(names[12:])}
    X = pd.DataFrame(columns)
    groups = pd.DataFrame({names[0]: rng.choice(names[:4], size=n), names[1]: rng.choice(names[20:23], size=n)})
    labels = np.array([hostile_names["script"], hostile_names["null"]], dtype=object)
    y = pd.Series(labels[rng.integers(0, 2, size=n)], name=hostile_names["bidi-override"])
    return aboveboard.audit(
        None,
        X,
        y,
        predictions=rng.uniform(size=n),
        prediction_type="score",
        positive=hostile_names["script"],
        sensitive_features=groups,
        effort="quick",
        skip="sensitive_proxies",
        accept=[{"id": "performance/metrics", "reason": hostile_names["attribute"]}],
        show_progress=False,
    )


@pytest.mark.parametrize("name", ["credit", "hostile_audit"])
def test_a_real_report_is_valid_small_and_comes_back_unchanged(name, request, tmp_path):
    report = request.getfixturevalue(name)
    path = tmp_path / "report.json"
    report.to_json(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(report_schema()).validate(data)
    assert not [f.reason for f in report.not_run if f.status == "error"]
    again = Report.from_json(path)
    for format_, render in renderers.items():
        assert render(again) == render(report), format_
    assert len(renderers["html"](report).encode()) < 2_000_000


def test_a_real_report_of_hostile_data_is_inert_in_every_form(hostile_audit):
    for format_, render in renderers.items():
        text = render(hostile_audit)
        text.encode("utf-8")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text), format_
    for format_ in ("html", "notebook", "markdown"):
        text = re.sub(r"<script>\n.*?</script>", "", renderers[format_](hostile_audit), flags=re.DOTALL)
        assert not re.search(r"<script|<img|onerror=alert\(1\)>(?!.*&gt;)|<b>out", text), format_


def test_the_same_audit_gives_the_same_bytes_apart_from_times(credit):
    first, second = (renderers["html"](r).split("\n") for r in (credit, _credit()))
    differ = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    assert all(re.search(r"<time|<dt>(Begun|Took|By check)</dt>", line) for line, _ in differ)
    a, b = (json.loads(r.to_json()) | {"timing": None} for r in (credit, _credit()))
    assert a == b
