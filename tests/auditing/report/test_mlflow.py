"""The report in MLflow, in a store of its own: what is logged is read back, whatever the names are."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aboveboard.auditing.report.mlflow import metric_name
from aboveboard.core import Finding, InputError, MissingExtra, Report
from aboveboard.core.report import renderers

mlflow = pytest.importorskip("mlflow")


@pytest.fixture
def client(tmp_path, monkeypatch):
    for name, value in {
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    client = mlflow.MlflowClient()
    client.create_experiment("Default") if client.get_experiment_by_name("Default") is None else None
    mlflow.set_experiment("Default")
    yield client
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


def text(client, run_id, name):
    return Path(client.download_artifacts(run_id, name)).read_text(encoding="utf-8")


def test_a_run_of_its_own_is_started_and_ended(client, report):
    run_id = report.log_to_mlflow()
    assert mlflow.active_run() is None
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    metrics = run.data.metrics
    assert metrics["aboveboard/count.fail"] == 1
    assert metrics["aboveboard/count.error"] == 1
    assert metrics["aboveboard/performance.auc"] == 0.927
    assert (metrics["aboveboard/performance.auc.low"], metrics["aboveboard/performance.auc.high"]) == (0.923, 0.931)
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("aboveboard.")}
    assert tags == {
        "aboveboard.worst": "fail",
        "aboveboard.complete": "true",
        "aboveboard.version": "0.1.0",
        "aboveboard.findings": "1 failure, 2 warnings, 1 inconclusive, 1 note, 2 OK",
        "aboveboard.attention": "group_fairness/selection_rate/sex=Female, sensitive_proxies/sex",
        "aboveboard.target": "Female",
        "aboveboard.rows": "16281",
        "aboveboard.data_sha256": "0f" * 32,
    }
    assert run.data.params == {
        "aboveboard.task": "binary",
        "aboveboard.seed": "7",
        "aboveboard.effort": "standard",
        "aboveboard.min_cell": "10",
        "aboveboard.threshold": "0.5",
        "aboveboard.limit.duplicates.rows": "100.0",
    }
    assert text(client, run_id, "aboveboard/report.html") == report.to_html()
    assert text(client, run_id, "aboveboard/report.json") == report.to_json()


def test_the_active_run_is_used_and_left_open(client, report):
    with mlflow.start_run() as run:
        assert report.log_to_mlflow() == run.info.run_id
        assert mlflow.active_run().info.run_id == run.info.run_id


def test_a_run_can_be_named_by_itself_or_by_its_id(client, report):
    run = client.create_run(client.get_experiment_by_name("Default").experiment_id)
    assert report.log_to_mlflow(run) == run.info.run_id
    assert report.log_to_mlflow(run.info.run_id, step=3) == run.info.run_id
    assert mlflow.active_run() is None
    history = client.get_metric_history(run.info.run_id, "aboveboard/performance.auc")
    assert sorted(metric.step for metric in history) == [0, 3]


def test_a_report_of_other_parameters_needs_another_prefix(client, report):
    run_id = report.log_to_mlflow()
    other = dataclasses.replace(report, seed=8)
    with pytest.raises(InputError, match=r"the run has the parameter aboveboard\.seed = '7'"):
        other.log_to_mlflow(run_id)
    other.log_to_mlflow(run_id, prefix="again")
    assert client.get_run(run_id).data.params["again.seed"] == "8"


@pytest.mark.parametrize("prefix", ["", "a/b", "a.b", "é", "x" * 41])
def test_a_prefix_that_could_not_be_a_folder_is_refused(client, report, prefix):
    with pytest.raises(InputError, match="the prefix is"):
        report.log_to_mlflow(prefix=prefix)
    assert client.search_runs([client.get_experiment_by_name("Default").experiment_id]) == []


def test_hostile_names_reach_the_store_and_are_told_apart(client, make_report, hostile_names, monkeypatch):
    """One run for each name, and one report with all of them as findings; the page is tested on its own."""
    monkeypatch.setitem(renderers, "html", lambda report: "<!doctype html>")
    for name in hostile_names.values():
        run = client.get_run(make_report(name).log_to_mlflow())
        assert run.data.metrics["aboveboard/performance.auc"] == 0.927
        report = Report.from_json(text(client, run.info.run_id, "aboveboard/report.json"))
        assert report.findings[0].group == f"sex={name}"
        assert not re.search(r"[\x00-\x1f\u202a-\u202e\ud800-\udfff]", "".join(run.data.tags.values()))
    findings = tuple(
        Finding(id=f"x/{name}", check="x", area="a", statement=".", value=float(at))
        for at, name in enumerate(hostile_names.values())
    )
    run_id = Report(subject={}, findings=findings).log_to_mlflow()
    metrics = client.get_run(run_id).data.metrics
    logged = [value for name, value in metrics.items() if not name.startswith("aboveboard/count.")]
    assert sorted(logged) == [float(at) for at in range(len(findings))]


def test_a_metric_name_is_plain_ascii_short_and_no_path(hostile_name):
    name = metric_name("check/metric", hostile_name)
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_. -]*", name)
    assert len(name) <= 209
    assert name.startswith("check.metric")


def test_different_names_stay_different(hostile_names):
    names = {metric_name(f"c/{name}") for name in hostile_names.values()}
    assert len(names) == len(hostile_names)
    assert metric_name("c/a b") != metric_name("c/a_b")
    assert metric_name("c/a.b") != metric_name("c/a/b")


def test_more_findings_than_a_batch_holds_are_all_logged(client):
    findings = tuple(Finding(id=f"x/{at}", check="x", area="a", statement=".", value=float(at)) for at in range(1200))
    run_id = Report(subject={}, findings=findings).log_to_mlflow()
    assert client.get_run(run_id).data.metrics["aboveboard/x.1199"] == 1199


def test_without_mlflow_the_extra_is_named(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtra, match=r"Report.log_to_mlflow needs .* pip install 'aboveboard\[mlflow\]'"):
        report.log_to_mlflow()


def test_a_report_loads_mlflow_only_when_it_is_logged():
    code = "import sys, aboveboard.auditing.report, aboveboard.cli; print('mlflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.strip().lower()) is False
