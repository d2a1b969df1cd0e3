"""The shared objects: findings, certificates, reports, the catalogue, errors and keyed randomness."""

from aboveboard.core.catalogue import Method, catalogue, find_method
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError, MissingExtra, ModelError, QueriesSpent
from aboveboard.core.extras import require
from aboveboard.core.finding import SUPPRESSED, Column, Figure, Finding, Interval, Line, Series, Table
from aboveboard.core.keyed import keyed_uniform
from aboveboard.core.reference import Reference
from aboveboard.core.report import Report

__all__ = [
    "SUPPRESSED",
    "Assumption",
    "Certificate",
    "Column",
    "Figure",
    "Finding",
    "InputError",
    "Interval",
    "Line",
    "Method",
    "MissingExtra",
    "ModelError",
    "QueriesSpent",
    "Reference",
    "Report",
    "Series",
    "Table",
    "catalogue",
    "find_method",
    "keyed_uniform",
    "require",
]
