"""The report in MLflow: figures as metrics, what it came to as tags, how it was made as parameters, and its two files.

Names of columns and groups are the user's, and metric names become file names in some stores: `metric_name` makes them
safe and keeps them apart.
"""

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from aboveboard.auditing.comparison import table_figures
from aboveboard.auditing.report.view import MARKS, clean, count_words, counts, family_counts, shorten, verdict
from aboveboard.core.errors import InputError
from aboveboard.core.extras import require
from aboveboard.core.report import Report

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = ["log_to_mlflow", "metric_name"]

_LONGEST_NAME: Final = 200
_LONGEST_TAG: Final = 2000
_LONGEST_PARAM: Final = 250
_T = TypeVar("_T")


def log_to_mlflow(report: Report, run: "Run | str | None" = None, *, prefix: str = "aboveboard", step: int = 0) -> str:
    """Log `report` to an MLflow run, and return the id of the run; see `Report.log_to_mlflow`."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", prefix):
        raise InputError(f"the prefix is {prefix!r}", expected="up to 40 ASCII letters, digits, _ or -")
    mlflow = require("mlflow", extra="mlflow", feature="Report.log_to_mlflow")
    client = mlflow.MlflowClient()
    with ExitStack() as stack:
        if run is None:
            active = mlflow.active_run() or stack.enter_context(mlflow.start_run(run_name="aboveboard audit"))
            run_id: str = active.info.run_id
        else:
            run_id = run if isinstance(run, str) else run.info.run_id
        params = _params(report, prefix)
        _refuse_other_params(client, run_id, params)
        _log(client, run_id, dict(_metrics(report, prefix)), params, _tags(report, prefix), step)
        client.log_text(run_id, report.to_html(), f"{prefix}/report.html")
        client.log_text(run_id, report.to_json(), f"{prefix}/report.json")
    return run_id


def metric_name(*parts: str) -> str:
    """Return a name for a metric that every MLflow store takes: ASCII letters, digits, spaces, ``_``, ``-`` and dots.

    Dots part what slashes part in the id of a finding. A name that had to be changed or cut otherwise ends in a hash of
    what it was, so that two never become one.
    """
    told = ".".join(parts).replace("/", ".")
    safe = re.sub(r"[^A-Za-z0-9_. -]+", "_", told).strip("_. ") or "_"
    if safe != told or any("." in part for part in parts) or len(safe) > _LONGEST_NAME:
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
        safe = f"{safe[:_LONGEST_NAME].rstrip('_. ')}.{digest}"
    return safe


def _metrics(report: Report, prefix: str) -> Iterator[tuple[str, float]]:
    """Give the counts of verdicts, and value and interval of each finding and of each performance metric."""
    found = counts((*report.findings, *report.not_run))
    for name in MARKS:
        yield f"{prefix}/count.{name}", float(found.get(name, 0))
    for finding in report.findings:
        if finding.value is not None:
            ends = (finding.interval.low, finding.interval.high) if finding.interval else None
            yield from _figure(metric_name(finding.id), prefix, finding.value, ends)
        if finding.check == "performance":
            for table in finding.tables:
                for row, estimate in table_figures(table).items():
                    yield from _figure(metric_name(finding.id, row), prefix, estimate.value, estimate.interval)


def _figure(name: str, prefix: str, value: float, ends: tuple[float, float] | None) -> Iterator[tuple[str, float]]:
    yield f"{prefix}/{name}", float(value)
    if ends is not None:
        yield f"{prefix}/{name}.low", float(ends[0])
        yield f"{prefix}/{name}.high", float(ends[1])


def _params(report: Report, prefix: str) -> dict[str, str]:
    """Return how the report was made: what may not differ between two reports under one prefix of a run."""
    subject = report.subject
    given = {
        "task": subject.get("task"),
        "seed": report.seed,
        "effort": report.timing.get("effort"),
        "min_cell": subject.get("min_cell"),
        "threshold": subject.get("threshold"),
    }
    given |= {f"limit.{limit['name']}": limit["value"] for limit in report.limits if limit.get("by_user")}
    return {
        f"{prefix}.{metric_name(*name.split('.'))}": shorten(clean(value), _LONGEST_PARAM)
        for name, value in given.items()
        if value is not None
    }


def _tags(report: Report, prefix: str) -> dict[str, str]:
    """Return what the report came to, and what it is about."""
    subject = report.subject
    wrong = [f.id for f in report.findings if verdict(f) in ("fail", "warn") and f.id not in report.accepted_ids]
    given = {
        "worst": report.worst,
        "complete": str(report.complete).lower(),
        "findings": count_words(family_counts(report.findings)),
        "attention": ", ".join(wrong),
        "version": report.environment.get("aboveboard"),
        "target": subject.get("target"),
        "rows": subject.get("rows"),
        "data_sha256": subject.get("data_sha256"),
    }
    return {
        f"{prefix}.{name}": shorten(clean(value), _LONGEST_TAG) for name, value in given.items() if value is not None
    }


def _refuse_other_params(client: "MlflowClient", run_id: str, params: dict[str, str]) -> None:
    """Parameters of a run cannot be changed; say so before anything is logged."""
    logged = client.get_run(run_id).data.params
    other = [name for name, value in params.items() if logged.get(name, value) != value]
    if other:
        raise InputError(
            f"the run has the parameter {other[0]} = {logged[other[0]]!r} from another report, and this one has "
            f"{params[other[0]]!r}",
            expected="parameters that stay as they are",
            remedy="Give another prefix, such as prefix='aboveboard-test', or another run",
        )


def _log(
    client: "MlflowClient",
    run_id: str,
    metrics: dict[str, float],
    params: dict[str, str],
    tags: dict[str, str],
    step: int,
) -> None:
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    for some_params in _batches([Param(name, value) for name, value in params.items()], 100):
        client.log_batch(run_id, params=some_params)
    for some_tags in _batches([RunTag(name, value) for name, value in tags.items()], 100):
        client.log_batch(run_id, tags=some_tags)
    for some_metrics in _batches([Metric(name, value, now, step) for name, value in metrics.items()], 1000):
        client.log_batch(run_id, metrics=some_metrics)


def _batches(items: list[_T], most: int) -> Iterator[list[_T]]:
    """Give items in as many parts as MLflow takes at once."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
