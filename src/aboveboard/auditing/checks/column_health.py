"""Which columns are constant, empty, all different, or hold codes and numbers that mean that a value is missing.

Only names of columns, shares and codes from a fixed list are shown, never a value of a row.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import numbers
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Finding, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "column_health", "area": "data"}
_MISSING_WORDS: Final = frozenset(
    ["", "?", "-", "--", ".", "na", "n/a", "#n/a", "nan", "null", "missing", "unknown", "not available", "<na>", "nil"]
)
_MISSING_NUMBERS: Final = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0)
_NUMERIC_TEXT: Final = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|\.\d+)([eE][-+]?\d+)?\s*%?\s*")
_FEW_ROWS: Final = 50  # with fewer, all rows being different says nothing
_MOST_LEVELS: Final = 20_000  # more are names or free text, whose spelling is nobody's business
_SHOWN: Final = 30


@dataclass(frozen=True, slots=True)
class _Profile:
    """What is known of a column: its distinct values with their counts, most common first."""

    name: str
    kind: str
    n: int
    missing: int
    values: NDArray[Any]
    counts: NDArray[np.intp]
    integer: bool
    mixed: int

    @property
    def known(self) -> int:
        return self.n - self.missing


@dataclass(frozen=True, slots=True)
class _Problem:
    """A row of a problem's table: the column, how many rows it concerns, and what to say of it."""

    column: str
    count: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of problem: how to find it, and how to say so."""

    key: str
    severity: Severity
    one: str
    many: str
    reason: str
    find: Callable[[_Profile, Subject], _Problem | None]
    limit: str = ""
    affected: str = "rows concerned"


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Look at each feature column.

    Returns
    -------
    list of Finding
        ``column_health/<problem>`` for each kind of problem, with a table of columns; ``column_health/columns`` where
        there is none.

    Notes
    -----
    O(n) time per column.
    """
    found: dict[str, list[_Problem]] = {kind.key: [] for kind in _KINDS}
    for name in subject.X.columns:
        profile = _profile(subject.X[name], subject.kinds[str(name)])
        for kind in _KINDS:
            problem = kind.find(profile, subject)
            if problem is not None:
                found[kind.key].append(problem)
    findings = [_finding(subject, kind, found[kind.key]) for kind in _KINDS if found[kind.key]]
    if findings:
        return findings
    d = subject.X.shape[1]
    return [
        Finding(
            id="column_health/columns",
            statement=f"Nothing is amiss with the {d:,} columns: none is constant, empty, all different or coded."
            if d > 1
            else "Nothing is amiss with the column.",
            value=0.0,
            n=len(subject),
            **_COMMON,
        )
    ]


def _profile(series: "pd.Series[Any]", kind: str) -> _Profile:
    mixed = 0
    if kind in ("number", "boolean", "datetime"):
        values = numbers(series, kind)
        codes, uniques = pd.factorize(values, use_na_sentinel=True)
    else:
        codes, labels = pd.factorize(series, use_na_sentinel=True)
        uniques = np.asarray(labels, dtype=object)
    counts = np.bincount(codes[codes >= 0], minlength=len(uniques))
    if kind == "text" and len(uniques):
        strings = np.fromiter((isinstance(value, str) for value in uniques), dtype=bool, count=len(uniques))
        mixed = int(min(counts[strings].sum(), counts[~strings].sum()))
    order = np.argsort(-counts, kind="stable")
    uniques, counts = uniques[order], counts[order]
    integer = kind == "number" and bool(np.all(np.isfinite(uniques)) and np.all(uniques == np.floor(uniques)))
    return _Profile(
        str(series.name), kind, len(series), int(np.count_nonzero(codes < 0)), uniques, counts, integer, mixed
    )


# --- the problems ----------------------------------------------------------------------------------------------------


def _all_missing(p: _Profile, _: Subject) -> _Problem | None:
    return _Problem(p.name, p.missing) if p.known == 0 else None


def _mostly_missing(p: _Profile, subject: Subject) -> _Problem | None:
    limit = subject.limits["column_health.missing"].value
    return _Problem(p.name, p.missing) if p.known and p.missing > limit * p.n else None


def _infinite(p: _Profile, _: Subject) -> _Problem | None:
    if p.kind != "number":
        return None
    count = int(p.counts[np.isinf(p.values.astype("float64"))].sum())
    return _Problem(p.name, count) if count else None


def _mixed(p: _Profile, _: Subject) -> _Problem | None:
    return _Problem(p.name, p.mixed, "text and other types") if p.mixed else None


def _constant(p: _Profile, _: Subject) -> _Problem | None:
    if len(p.counts) != 1:
        return None
    return _Problem(p.name, p.known, "apart from missing values" if p.missing else "")


def _dominant(p: _Profile, subject: Subject) -> _Problem | None:
    limit = subject.limits["column_health.dominant"].value
    if len(p.counts) < 2 or p.known < _FEW_ROWS or p.counts[0] <= limit * p.known:
        return None
    return _Problem(p.name, int(p.counts[0]))


def _identifier(p: _Profile, subject: Subject) -> _Problem | None:
    limit = subject.limits["column_health.distinct"].value
    if p.known < _FEW_ROWS:
        return None
    if p.kind in ("text", "category") and len(p.counts) > limit * p.known:
        return _Problem(p.name, len(p.counts), "text")
    if p.integer and len(p.counts) == p.known:
        return _Problem(p.name, len(p.counts), "whole numbers, no two alike")
    return None


def _many_levels(p: _Profile, subject: Subject) -> _Problem | None:
    limit = subject.limits["column_health.levels"].value
    if p.kind not in ("text", "category") or len(p.counts) <= limit or _identifier(p, subject) is not None:
        return None
    return _Problem(p.name, len(p.counts))


def _missing_codes(p: _Profile, _: Subject) -> _Problem | None:
    if p.kind in ("text", "category"):
        hits = [i for i, value in enumerate(p.values) if isinstance(value, str) and _is_missing_word(value)]
        words = sorted({str(p.values[i]).strip() for i in hits})
        count = int(p.counts[hits].sum()) if hits else 0
        return _Problem(p.name, count, ", ".join(f'"{word}"' for word in words)) if count else None
    return None


def _missing_numbers(p: _Profile, _: Subject) -> _Problem | None:
    if p.kind != "number":
        return None
    values = p.values.astype("float64")
    codes = _number_codes(values, p.counts)
    if not codes:
        return None
    return _Problem(p.name, int(p.counts[np.isin(values, codes)].sum()), ", ".join(f"{code:g}" for code in codes))


def _is_missing_word(value: str) -> bool:
    return value.strip().casefold() in _MISSING_WORDS


def _number_codes(values: NDArray[np.float64], counts: NDArray[np.intp]) -> list[float]:
    """Return the numbers that are often used as codes, occur more than once and lie far outside all others."""
    finite = values[np.isfinite(values)]
    candidates = [code for code in _MISSING_NUMBERS if code in finite]
    usual = finite[~np.isin(finite, candidates)]
    if not candidates or len(usual) < 5:
        return []
    low, high = float(usual.min()), float(usual.max())
    total = counts.sum()
    out = []
    for code in candidates:
        count = int(counts[values == code][0])
        if count < max(3, 0.001 * total):
            continue
        if code == -1.0:
            far = low >= 0 and count >= 0.01 * total
        elif code < 0:
            far = low >= 0 or low - code > high - low
        else:
            far = code - high > high - low
        if far:
            out.append(code)
    return out


def _spelling(p: _Profile, _: Subject) -> _Problem | None:
    """Levels that differ only in case or in blanks at their ends."""
    if p.kind not in ("text", "category") or not 2 <= len(p.counts) <= _MOST_LEVELS:
        return None
    seen: dict[str, int] = {}
    count = 0
    for value, rows in zip(p.values, p.counts, strict=True):  # most common spelling first
        if not isinstance(value, str) or _is_missing_word(value):
            continue
        plain = value.strip().casefold()
        if plain in seen:
            count += int(rows)
        else:
            seen[plain] = int(rows)
    return _Problem(p.name, count) if count else None


def _numbers_as_text(p: _Profile, _: Subject) -> _Problem | None:
    if p.kind not in ("text", "category"):
        return None
    sampled = [value for value in p.values[:2000] if isinstance(value, str) and not _is_missing_word(value)]
    if len(sampled) < 3:
        return None
    if sum(_NUMERIC_TEXT.fullmatch(value) is not None for value in sampled) <= 0.95 * len(sampled):
        return None
    return _Problem(p.name, p.known)


_KINDS: Final = (
    _Kind(
        "all_missing",
        "warn",
        "column holds no value at all",
        "columns hold no value at all",
        "It says nothing, and hints at a step that went wrong.",
        _all_missing,
    ),
    _Kind(
        "infinite",
        "warn",
        "column holds infinite numbers",
        "columns hold infinite numbers",
        "Most models refuse them or are thrown off.",
        _infinite,
    ),
    _Kind(
        "mixed_types",
        "warn",
        "column mixes text with other types",
        "columns mix text with other types",
        "1 and '1' are then different values.",
        _mixed,
        affected="rows of the rarer type",
    ),
    _Kind(
        "missing_codes",
        "warn",
        "column seems to write missing values as a code",
        "columns seem to write missing values as a code",
        "A model reads such a code as a value.",
        _missing_codes,
    ),
    _Kind(
        "missing_numbers",
        "note",
        "column has a number far outside the others that often stands for a missing value",
        "columns have a number far outside the others that often stands for a missing value",
        "If it is a code, a model reads it as a value; it may also be a cap.",
        _missing_numbers,
    ),
    _Kind(
        "mostly_missing",
        "note",
        "column is mostly missing",
        "columns are mostly missing",
        "What it tells rests on few rows.",
        _mostly_missing,
        limit="column_health.missing",
    ),
    _Kind(
        "constant",
        "note",
        "column has the same value in every row",
        "columns have the same value in every row",
        "It can tell no rows apart.",
        _constant,
    ),
    _Kind(
        "dominant",
        "note",
        "column has one value in almost every row",
        "columns have one value in almost every row",
        "What it tells rests on few rows.",
        _dominant,
        limit="column_health.dominant",
    ),
    _Kind(
        "identifiers",
        "note",
        "column has almost as many values as rows",
        "columns have almost as many values as rows",
        "An id tells nothing about new rows, and a model can learn it by heart: leave it out (drop, --drop).",
        _identifier,
        limit="column_health.distinct",
        affected="distinct values",
    ),
    _Kind(
        "many_levels",
        "note",
        "column of text or categories has very many levels",
        "columns of text or categories have very many levels",
        "Rare levels are learned from few rows, and new ones turn up.",
        _many_levels,
        limit="column_health.levels",
        affected="distinct values",
    ),
    _Kind(
        "numbers_as_text",
        "note",
        "column holds numbers as text",
        "columns hold numbers as text",
        "A model takes them for categories.",
        _numbers_as_text,
    ),
    _Kind(
        "spelling",
        "note",
        "column has levels that differ only in case or blanks",
        "columns have levels that differ only in case or blanks",
        "They are most likely one level.",
        _spelling,
        affected="rows of the rarer spellings",
    ),
)


def _finding(subject: Subject, kind: _Kind, problems: list[_Problem]) -> Finding:
    n = len(subject)
    names = [repr(problem.column) for problem in problems]
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    verb = kind.one if len(problems) == 1 else kind.many
    distinct = kind.affected == "distinct values"
    rows: list[tuple[Cell, ...]] = []
    for problem in problems[:_SHOWN]:
        small = not distinct and 0 < problem.count < subject.min_cell
        shown: tuple[Cell, ...] = (SUPPRESSED, SUPPRESSED) if small else (problem.count, problem.count / n)
        rows.append((problem.column, *shown, problem.detail))
    columns = (
        Column("column", "text"),
        Column("values" if distinct else "n", "count", kind.affected),
        Column("share of rows", "percent"),
        Column("what", "text"),
    )
    left = len(problems) - len(rows)
    limit = subject.limits[kind.limit] if kind.limit else None
    return Finding(
        id=f"column_health/{kind.key}",
        statement=f"{len(problems):,} {verb}: {listed}.",
        severity=kind.severity,
        reason=kind.reason,
        value=float(len(problems)),
        limit=None if limit is None else limit.value,
        limit_source="" if limit is None else limit.source,
        n=n,
        evidence=(Table("Columns concerned", columns, tuple(rows), note=f"And {left} more." if left else ""),),
        **_COMMON,
    )
