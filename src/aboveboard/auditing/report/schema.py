"""The schema of ``report.json``, shipped with the package."""

import json
from importlib import resources
from typing import Any

__all__ = ["report_schema"]


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what `Report.to_json` writes."""
    text = (resources.files("aboveboard.auditing.report") / "report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
