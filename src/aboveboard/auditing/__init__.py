"""The audit: a model and its data in; findings, figures and remedies out."""

from aboveboard.auditing.runner import audit
from aboveboard.core.report import Report

__all__ = ["Report", "audit"]
