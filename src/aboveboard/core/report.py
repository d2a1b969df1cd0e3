"""The report: everything an audit found, in one object that round-trips through JSON."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aboveboard.core.certificate import Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.finding import SEVERITIES, Finding, Severity

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

__all__ = ["SCHEMA_VERSION", "Report", "loggers", "renderers"]

SCHEMA_VERSION: Final = 1

_KINDS: Final[dict[str, type]] = {
    "subject": dict,
    "complete": bool,
    "findings": list,
    "not_run": list,
    "certificates": list,
    "limits": list,
    "accepted": list,
    "notes": list,
    "environment": dict,
    "seed": int,
    "timing": dict,
}

renderers: dict[str, Callable[["Report"], str]] = {}
"""Renderers by format name ("html", "notebook", "text", ...); aboveboard.auditing.report puts them here."""

loggers: dict[str, Callable[..., str]] = {}
"""What logs a report to another system, by its name ("mlflow"); aboveboard.auditing.report puts them here."""


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `aboveboard.audit` returns.

    Parameters
    ----------
    subject : dict
        What was audited: rows, columns, task, classes, target, features, sensitive columns, data fingerprint.
    findings : tuple of Finding
        Those that ran or were inconclusive, worst first.
    certificates : tuple of Certificate
    not_run : tuple of Finding
        Checks that did not apply, were skipped, or raised an error, each with its reason.
    limits : tuple of dict
        Each limit in force: name, value, reason, source, and whether the user set it.
    accepted : tuple of dict
        Findings that somebody accepted: id, reason, expires, and whether it is in force.
    notes : tuple of str
        What the reader should know about how the data were read (types, groups, columns left out, sampling).
    environment : dict
        Versions only.
    seed : int
    timing : dict
        When the audit began and how long it took, by check: all that may differ between equal runs.
    complete : bool
        False when the audit was interrupted.
    schema_version : int
    """

    subject: dict[str, Any]
    findings: tuple[Finding, ...]
    certificates: tuple[Certificate, ...] = ()
    not_run: tuple[Finding, ...] = ()
    limits: tuple[dict[str, Any], ...] = ()
    accepted: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    timing: dict[str, Any] = field(default_factory=dict)
    complete: bool = True
    schema_version: int = SCHEMA_VERSION

    @property
    def worst(self) -> Severity:
        """The worst severity among the findings that nobody accepted; ``"ok"`` when there are none."""
        found = {finding.severity for finding in self.findings if finding.id not in self.accepted_ids}
        return max(found, key=SEVERITIES.index, default="ok")

    @property
    def accepted_ids(self) -> frozenset[str]:
        """Ids of the findings whose acceptance is in force."""
        return frozenset(entry["id"] for entry in self.accepted if entry.get("in_force", True))

    def to_dict(self) -> dict[str, Any]:
        """Return the one dict that feeds every output; its schema is shipped as ``report.schema.json``."""
        return {
            "schema_version": self.schema_version,
            "subject": self.subject,
            "worst": self.worst,
            "complete": self.complete,
            "findings": [finding.to_dict() for finding in self.findings],
            "not_run": [finding.to_dict() for finding in self.not_run],
            "certificates": [certificate.to_dict() for certificate in self.certificates],
            "limits": list(self.limits),
            "accepted": list(self.accepted),
            "notes": list(self.notes),
            "environment": self.environment,
            "seed": self.seed,
            "timing": self.timing,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Report":
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise InputError(
                f"the report has schema version {version!r}",
                expected=f"version {SCHEMA_VERSION}",
                remedy="Run the audit again with this version of aboveboard",
            )
        known = {key: value for key, value in data.items() if key != "worst"}
        for name, kind in _KINDS.items():
            if not isinstance(known[name], kind) or (kind is int and isinstance(known[name], bool)):
                raise TypeError(f"{name} is no {kind.__name__}")
        if not all(isinstance(entry.get("id"), str) for entry in known["accepted"]):
            raise TypeError("an accepted finding has no id")
        if not all(isinstance(limit.get("name"), str) for limit in known["limits"]):
            raise TypeError("a limit has no name")
        for name in ("features", "sensitive"):
            if not all(isinstance(entry.get("name"), str) for entry in known["subject"].get(name) or []):
                raise TypeError(f"one of the {name} has no name")
        if not isinstance(known["subject"].get("reference_groups") or {}, dict):
            raise TypeError("reference_groups is no dict")
        for name in ("findings", "not_run"):
            known[name] = tuple(Finding.from_dict(item) for item in known[name])
        known["certificates"] = tuple(Certificate.from_dict(item) for item in known["certificates"])
        for name in ("limits", "accepted", "notes"):
            known[name] = tuple(known[name])
        return cls(**known)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON text, and write it to `path` where one is given."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate becomes its JSON escape
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> "Report":
        """Read a report from a JSON file, or from JSON text (anything that begins with a brace).

        Raises
        ------
        InputError
            When it is not a report, or one of another schema version.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        try:
            text = str(source) if is_text else Path(source).read_text(encoding="utf-8")
            data = json.loads(text, parse_float=_finite, parse_constant=_finite)
            if not isinstance(data, dict):
                raise TypeError("not an object")
            return cls.from_dict(data)
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"the report cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise InputError(
                f"this is not an aboveboard report ({type(error).__name__}: {error})",
                expected="the report.json that 'aboveboard audit' writes",
            ) from error

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per finding as a data frame, those that did not run at the end."""
        import pandas as pd

        rows = []
        for finding in (*self.findings, *self.not_run):
            interval = finding.interval
            rows.append(
                {
                    "id": finding.id,
                    "area": finding.area,
                    "check": finding.check,
                    "severity": finding.severity,
                    "status": finding.status,
                    "group": finding.group,
                    "value": finding.value,
                    "low": interval.low if interval else None,
                    "high": interval.high if interval else None,
                    "limit": finding.limit,
                    "n": finding.n,
                    "accepted": finding.id in self.accepted_ids,
                    "statement": finding.statement,
                    "reason": finding.reason,
                    "remedies": ", ".join(finding.remedies),
                }
            )
        columns = ["id", "area", "check", "severity", "status", "group", "value", "low", "high", "limit", "n"]
        frame = pd.DataFrame(rows, columns=[*columns, "accepted", "statement", "reason", "remedies"])
        numbers = ["value", "low", "high", "limit"]
        return frame.astype({**dict.fromkeys(numbers, "float64"), "n": "Int64"})

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one self-contained HTML page, and write it to `path` where one is given."""
        text = renderers["html"](self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        return text

    def log_to_mlflow(self, run: "Run | str | None" = None, *, prefix: str = "aboveboard", step: int = 0) -> str:
        """Log the report to an MLflow run (extra ``mlflow``), and return the run's id.

        Parameters
        ----------
        run : mlflow.entities.Run or str, optional
            A run or its id. Default: the active run, else a new one, which is ended again.
        prefix : str
            Stands before every name, so that several reports can be logged to one run: ASCII letters, digits, ``_`` and
            ``-``.
        step : int
            The step of the metrics, for a model that is audited again and again.

        Raises
        ------
        MissingExtra
            When MLflow is not installed.
        InputError
            When the run has a report of other parameters under this prefix: MLflow lets nobody change these.

        Notes
        -----
        Metrics: how many findings there are of each verdict (``aboveboard/count.fail``), and the figure of each
        finding and each performance metric (``aboveboard/calibration.ece``) with the ends of its interval (``.low``,
        ``.high``). Characters that MLflow or a file system could refuse become ``_``, and a hash keeps such names
        apart. Tags: worst severity, version, ids of failures and warnings, target, rows, fingerprint of the data.
        Parameters: task, seed, effort, threshold, smallest cell, limits of your own. Artifacts:
        ``aboveboard/report.html`` and ``aboveboard/report.json``.
        """
        return loggers["mlflow"](self, run, prefix=prefix, step=step)

    def _repr_html_(self) -> str:
        return renderers["notebook"](self)

    def __repr__(self) -> str:
        counts = {name: sum(f.severity == name and f.status == "ran" for f in self.findings) for name in SEVERITIES}
        inconclusive = sum(finding.status == "inconclusive" for finding in self.findings)
        parts = [f"{counts[name]} {name}" for name in reversed(SEVERITIES)]
        return f"<Report: {', '.join(parts)}, {inconclusive} inconclusive, {len(self.not_run)} not run>"
