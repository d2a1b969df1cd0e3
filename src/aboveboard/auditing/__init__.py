"""The audit: a model and its data in; findings, figures and remedies out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import aboveboard.auditing.report  # noqa: F401 - registers the renderers, and loads none of them
from aboveboard.auditing.models import open_model
from aboveboard.core.report import Report

if TYPE_CHECKING:
    from aboveboard.auditing.comparison import compare
    from aboveboard.auditing.runner import audit

__all__ = ["Report", "audit", "compare", "open_model"]


def __getattr__(name: str) -> Any:
    if name == "audit":  # only now are NumPy and pandas loaded: listing the checks does without them
        return import_module("aboveboard.auditing.runner").audit
    if name == "compare":
        return import_module("aboveboard.auditing.comparison").compare
    raise AttributeError(f"module 'aboveboard.auditing' has no attribute {name!r}")
