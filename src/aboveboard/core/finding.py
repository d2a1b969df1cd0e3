"""What an audit says: a finding, with the tables and figures that carry it.

Everything here is plain data (text, numbers, tuples), so that one dict feeds JSON, terminal, HTML and notebook.
"""

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Final, Literal, get_args

__all__ = [
    "SEVERITIES",
    "STATUSES",
    "SUPPRESSED",
    "Cell",
    "Column",
    "Figure",
    "Finding",
    "Interval",
    "Line",
    "Series",
    "Severity",
    "Status",
    "Table",
]

Severity = Literal["ok", "note", "warn", "fail"]
Status = Literal["ran", "inconclusive", "not_applicable", "skipped", "error"]
ColumnKind = Literal["text", "count", "number", "percent", "interval"]
FigureKind = Literal["intervals", "lines", "bars"]
DataKind = Literal["real", "simulated"]

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""From harmless to worst."""
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

SUPPRESSED: Final = "suppressed"
"""Stands in a table cell that would describe fewer people than the smallest cell allowed."""

Cell = str | int | float | bool | None | tuple[float, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """An uncertainty interval.

    Parameters
    ----------
    low, high : float
    level : float
        Confidence level, such as 0.95.
    method : str
        ``"Wilson"``, ``"Newcombe"``, ``"max-|t| bootstrap"`` and so on.
    simultaneous : bool
        Whether the level holds for the whole family of intervals at once.
    """

    low: float
    high: float
    level: float = 0.95
    method: str = ""
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if not all(isinstance(end, Real) for end in (self.low, self.high, self.level)):
            raise TypeError(f"an interval needs numbers; got [{self.low!r}, {self.high!r}] at level {self.level!r}")
        if not self.low <= self.high:
            raise ValueError(f"an interval needs low <= high; got [{self.low}, {self.high}]")

    def to_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an evidence table; `kind` tells the renderers how to write its cells.

    ``"percent"`` cells hold fractions (0.25 is shown as 25.0 %), ``"interval"`` cells pairs ``(low, high)``, and
    ``"count"`` cells numbers of people or rows.
    """

    name: str
    kind: ColumnKind = "number"
    help: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A small table of aggregates; never rows of the data.

    Parameters
    ----------
    title : str
    columns : tuple of Column
    rows : tuple of tuples
        Cells are text, numbers, booleans, pairs for intervals, None (does not exist) or `SUPPRESSED`.
    note : str
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.title!r}: a row has {len(row)} cells for {len(self.columns)} columns")

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "columns": [{"name": c.name, "kind": c.kind, "help": c.help} for c in self.columns],
            "rows": [[plain(cell) for cell in row] for row in self.rows],
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Table":
        columns = tuple(Column(**column) for column in data["columns"])
        rows = tuple(tuple(tuple(c) if isinstance(c, list) else c for c in row) for row in data["rows"])
        return cls(data["title"], columns, rows, data.get("note", ""))


@dataclass(frozen=True, slots=True)
class Series:
    """One set of marks of a figure.

    Parameters
    ----------
    name : str
    x : tuple of float or str
        Categories (text) for ``"intervals"`` and ``"bars"``, numbers for ``"lines"``.
    y : tuple of float or None
    low, high : tuple of float or None
        Ends of the error bars or of the band; empty when there are none.
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or any(len(e) not in (0, len(self.x)) for e in (self.low, self.high)):
            raise ValueError(f"series {self.name!r}: x, y, low and high must have equal lengths")

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **{name: [plain(v) for v in getattr(self, name)] for name in ("x", "y", "low", "high")},
        }


@dataclass(frozen=True, slots=True)
class Line:
    """A reference line: a limit, a pooled rate, a baseline. On the value axis, or ``diagonal`` (y = x)."""

    label: str
    value: float | None = None
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """What a figure shows, not how it is drawn: the report draws it.

    Parameters
    ----------
    kind : {"intervals", "lines", "bars"}
        Estimates with error bars by category, curves with optional bands, or bars by category.
    title, x_label, y_label : str
        `y_label` names the value axis for all kinds, `x_label` the categories or the horizontal axis.
    series : tuple of Series
    lines : tuple of Line
    alt : str
        What a reader who cannot see it should know, in one or two sentences.
    percent : bool
        Values are fractions, to be labelled in percent.
    """

    kind: FigureKind
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    lines: tuple[Line, ...] = ()
    alt: str = ""
    percent: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "series": [series.to_dict() for series in self.series],
            "lines": [
                {"label": line.label, "value": plain(line.value), "diagonal": line.diagonal} for line in self.lines
            ],
            "alt": self.alt,
            "percent": self.percent,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Figure":
        series = tuple(
            Series(s["name"], tuple(s["x"]), tuple(s["y"]), tuple(s["low"]), tuple(s["high"])) for s in data["series"]
        )
        lines = tuple(Line(**line) for line in data["lines"])
        rest = {key: data[key] for key in ("kind", "title", "x_label", "y_label", "alt", "percent")}
        return cls(series=series, lines=lines, **rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing an audit found, or could not find out.

    Parameters
    ----------
    id : str
        Stable across runs: check, then metric or column, then group, joined by ``/``.
    check, area : str
        Which check said it, and the section of the report it stands in.
    statement : str
        One plain sentence.
    severity : {"ok", "note", "warn", "fail"}
        Only a finding that ``ran`` may be above ``"note"``.
    status : {"ran", "inconclusive", "not_applicable", "skipped", "error"}
    reason : str
        Why this severity or status; for those that did not run, what was missing.
    value : float, optional
        The figure that was judged, with its `interval`, in the unit that the statement names.
    limit : float, optional
        What `value` was judged against, and `limit_source`, who says so.
    group : str
        ``"sex=Female"``; empty for all rows.
    n : int, optional
        How many rows the value rests on.
    evidence : tuple of Table and Figure
    remedies : tuple of str
        Names of methods in the catalogue.
    data : {"real", "simulated"}
    """

    id: str
    check: str
    area: str
    statement: str
    severity: Severity = "ok"
    status: Status = "ran"
    reason: str = ""
    value: float | None = None
    interval: Interval | None = None
    limit: float | None = None
    limit_source: str = ""
    group: str = ""
    n: int | None = None
    evidence: tuple[Table | Figure, ...] = ()
    remedies: tuple[str, ...] = ()
    data: DataKind = "real"

    def __post_init__(self) -> None:
        for name in ("id", "check", "area", "statement", "reason", "group", "limit_source"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"finding {self.id!r}: {name} must be text; got {getattr(self, name)!r}")
        if not all(isinstance(name, str) for name in self.remedies):
            raise TypeError(f"finding {self.id!r}: remedies must be names of methods; got {self.remedies!r}")
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity must be one of {SEVERITIES}; got {self.severity!r}")
        if self.status not in STATUSES:
            raise ValueError(f"status must be one of {STATUSES}; got {self.status!r}")
        if self.status != "ran" and self.severity in ("warn", "fail"):
            raise ValueError(f"finding {self.id!r} is {self.status}, so it cannot {self.severity}")
        for name in ("value", "limit"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(f"finding {self.id!r}: {name} must be finite or None; got {number}")
        if self.n is not None and not (hasattr(self.n, "__index__") and 0 <= self.n < 2**63):
            raise ValueError(f"finding {self.id!r}: n must be a number of rows or None; got {self.n!r}")

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(item for item in self.evidence if isinstance(item, Table))

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(item for item in self.evidence if isinstance(item, Figure))

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"}
        data["value"], data["limit"] = plain(self.value), plain(self.limit)
        data["n"] = None if self.n is None else int(self.n)
        data["interval"] = self.interval.to_dict() if self.interval else None
        data["remedies"] = list(self.remedies)
        data["tables"] = [table.to_dict() for table in self.tables]
        data["figures"] = [figure.to_dict() for figure in self.figures]
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Finding":
        known = dict(data)
        tables = tuple(Table.from_dict(table) for table in known.pop("tables"))
        figures = tuple(Figure.from_dict(figure) for figure in known.pop("figures"))
        interval = known.pop("interval")
        known["remedies"] = tuple(known["remedies"])
        return cls(evidence=tables + figures, interval=Interval(**interval) if interval else None, **known)


def plain(value: Any) -> Any:
    """Return a JSON value: NumPy scalars become Python's, numbers that are not finite become None."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if hasattr(value, "item"):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
