"""Whether columns have changed since the reference: their values, and how often they are missing.

Each column is compared by itself, on a scale that is the same for all kinds: the share of rows that moved (see
`aboveboard.auditing.two_samples`). The ends of the intervals that accuse hold for all columns at once, so that the
false discovery rate is below 5 % however many there are, and verdicts go by the effect: among a million rows a change
too small to matter is *ok*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.intervals import wilson
from aboveboard.auditing.changes import bounds, judged, listed, side
from aboveboard.auditing.columns import (
    changed_kind,
    comparable_columns,
    has_values,
    level_codes,
    numbers,
    row_hashes,
)
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.frames import column_kind, plain_label
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.auditing.two_samples import LevelShift, NumberShift, RateChange, TwoSamples
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "column_drift", "area": "drift"}
_SHOWN: Final = 40
_SHOWN_PARTS: Final = 12
_RANGES: Final = 10
_RARE: Final = 0.01  # levels below this share of all rows are joined: what chance adds grows with their number
_RARE_ROWS: Final = 10
_MOSTLY_RARE: Final = 0.5
_ID_ROWS: Final = 100


@dataclass(slots=True)
class _Result:
    """What came out for one column; nothing in it grows with the rows.

    `parts` are the levels, or ranges of a number, in which the rows are counted; `counts` says how many lie in each,
    now and then, and `shares` what share.
    """

    name: str
    kind: str
    n: int
    aside: str = ""  # why the values are not judged
    unknown: bool = False  # the reference has no value, so nothing can be told
    shift: NumberShift | LevelShift | None = None
    words: str = ""
    missing: RateChange | None = None
    missing_counts: tuple[int, int] = (0, 0)
    newcomers: RateChange | None = None
    newcomer_count: int = 0
    parts: tuple[str, ...] = ()
    counts: tuple[NDArray[Any], NDArray[Any]] | None = None
    shares: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def verdict(self, limits: Limits) -> dict[str, str]:
        """Return ``beyond``, ``within`` or ``open`` for each thing that was compared."""
        found = {"moved": "open"} if self.unknown else {}
        if self.shift is not None:
            found["moved"] = side(self.shift.interval, limits["column_drift.moved"].value)
        if self.missing is not None:
            found["missing"] = side(self.missing.interval, limits["column_drift.missing"].value)
        if self.newcomers is not None:
            found["new_levels"] = side(
                self.newcomers.interval, limits["column_drift.new_levels"].value, above_only=True
            )
        return found


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Compare every column with that of the reference.

    Returns
    -------
    list of Finding
        ``column_drift/summary`` with the table and the figure; for each column beyond a limit
        ``column_drift/moved/...``, ``column_drift/missing/...`` or ``column_drift/new_levels/...``;
        ``column_drift/schema/absent``, ``.../extra`` and ``.../types`` where the tables differ in their columns;
        ``column_drift/shared_rows`` where they share rows.

    Notes
    -----
    O(d n log n) time, O(n) memory for one column at a time.
    """
    assert subject.reference is not None
    samples = TwoSamples.of(subject)
    schema = _schema_findings(subject)
    if samples.smaller < subject.limits["column_drift.min_rows"].value:
        return [_too_few(subject, samples.smaller), *schema]
    names = comparable_columns(subject.X, subject.reference.X)
    family = _family(subject, names)
    results = [_compared(subject, samples, name, family) for name in names]
    return [_summary(subject, results, family), *schema, *_column_findings(subject, results), *_shared_rows(subject)]


def _family(subject: Subject, names: list[str]) -> int:
    """Return how many comparisons there may be: values, missing values and new levels of each column."""
    assert subject.reference is not None
    new, old = subject.X, subject.reference.X
    worded = sum(column_kind(new[name]) in ("category", "text") for name in names)
    gaps = sum(bool(new[name].isna().any() or old[name].isna().any()) for name in names)
    return max(len(names) + worded + gaps, 1)


# --- which columns ----------------------------------------------------------------------------------------------------


def _schema_findings(subject: Subject) -> list[Finding]:
    assert subject.reference is not None
    reference = subject.reference
    older = reference.X
    changed = [str(name) for name in older.columns if changed_kind(subject.X[name], older[name])]
    findings = []
    if changed:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (name, column_kind(older[name]), column_kind(subject.X[name])) for name in changed[:_SHOWN]
        )
        columns = (Column("column", "text"), Column("held", "text"), Column("holds", "text"))
        findings.append(
            Finding(
                id="column_drift/schema/types",
                statement=f"{_columns(len(changed))} of another kind than in the reference: {listed(changed)}.",
                severity="fail",
                reason="Values of another kind cannot be compared, and mean something else to a model.",
                n=len(subject),
                evidence=(Table("Kinds of values", columns, rows),),
                **_COMMON,
            )
        )
    if reference.absent:
        findings.append(
            Finding(
                id="column_drift/schema/absent",
                statement=f"{_columns(len(reference.absent))} not in the reference: {listed(reference.absent)}.",
                severity="warn",
                reason="What is new cannot be compared.",
                n=len(subject),
                **_COMMON,
            )
        )
    if reference.extra:
        findings.append(
            Finding(
                id="column_drift/schema/extra",
                statement=f"{_columns(len(reference.extra))} in the reference only: {listed(reference.extra)}.",
                severity="note" if subject.model is not None else "warn",
                reason="The model was never given them."
                if subject.model is not None
                else "Where predictions rest on them, they have lost their ground.",
                n=len(subject),
                **_COMMON,
            )
        )
    return findings


def _columns(count: int) -> str:
    return "One column is" if count == 1 else f"{count:,} columns are"


def _too_few(subject: Subject, size: float) -> Finding:
    limit = subject.limits["column_drift.min_rows"]
    assert subject.reference is not None
    units = "rows" if subject.cluster is None else "clusters"
    where = "the reference" if len(subject.reference) <= len(subject) else "the data"
    return Finding(
        id="column_drift/summary",
        statement=f"There are too few {units} in {where} to compare columns by: {int(size):,} that count."
        if size >= subject.min_cell
        else f"There are too few {units} in {where} to compare columns by.",
        status="inconclusive",
        reason=f"Below {limit.value:g} nothing is judged.",
        limit=limit.value,
        limit_source=limit.source,
        **_COMMON,
    )


# --- one column -------------------------------------------------------------------------------------------------------


def _compared(subject: Subject, samples: TwoSamples, name: str, family: int) -> _Result:
    assert subject.reference is not None
    new, old = subject.X[name], subject.reference.X[name]
    kind = column_kind(new if has_values(new) else old)
    if kind in ("category", "text"):
        labels, codes = _joint_codes(new, old)
        masks = codes[0] >= 0, codes[1] >= 0
    else:
        values = numbers(new), numbers(old)
        masks = ~np.isnan(values[0]), ~np.isnan(values[1])
    result = _Result(name, kind, int(np.count_nonzero(masks[0])))
    result.unknown = not masks[1].any() and bool(masks[0].any())
    if not (result.unknown or (masks[0].all() and masks[1].all())):
        result.missing = samples.rate(~masks[0], ~masks[1], family=family)
        result.missing_counts = int((~masks[0]).sum()), int((~masks[1]).sum())
    known = samples.among(*masks)
    if not known.usable:
        empty = [word for word, mask in zip(("new", "old"), masks, strict=True) if not mask.any()]
        result.aside = "no value in either table" if len(empty) == 2 else f"no value in the {''.join(empty)} rows"
    elif kind in ("category", "text"):
        _compare_levels(subject, result, known, labels, (codes[0][masks[0]], codes[1][masks[1]]), family)
    else:
        _compare_numbers(subject, result, known, (values[0][masks[0]], values[1][masks[1]]), family)
    return result


def _joint_codes(new: "pd.Series[Any]", old: "pd.Series[Any]") -> tuple[list[str], tuple[NDArray[Any], NDArray[Any]]]:
    """Return the levels of both as text, and the codes of the rows, -1 where missing."""
    number: dict[str, int] = {}
    codes = []
    for part in (new, old):
        own, uniques = level_codes(part)
        table = np.array([number.setdefault(plain_label(value), len(number)) for value in uniques] + [-1])
        codes.append(table[own])
    return list(number), (codes[0], codes[1])


def _compare_numbers(
    subject: Subject,
    result: _Result,
    samples: TwoSamples,
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    family: int,
) -> None:
    if result.kind == "datetime":
        result.aside = "dates, which move as time goes by"
        return
    if all(_counts_rows(part) for part in values):
        result.aside = "another whole number in every row, as record ids have"
        return
    if all(((part == 0) | (part == 1)).all() for part in values):
        labels = ("false", "true") if result.kind == "boolean" else ("0", "1")
        codes = values[0].astype(np.int64), values[1].astype(np.int64)
        result.shift = samples.levels(*codes, 2, family=family)
        _count(result, samples, codes, labels)
        result.words = _level_words(subject, result)
        return
    shift = samples.numbers(*values, family=family)
    result.shift = shift
    if shift.interval.low <= subject.limits["column_drift.moved"].value:
        return
    result.words = _number_words(subject, samples, values, shift.at)
    _count(result, samples, *_ranges(values))


def _counts_rows(values: NDArray[np.float64]) -> bool:
    if len(values) < _ID_ROWS or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return False
    return len(np.unique(values)) == len(values)


def _compare_levels(
    subject: Subject,
    result: _Result,
    samples: TwoSamples,
    labels: list[str],
    codes: tuple[NDArray[Any], NDArray[Any]],
    family: int,
) -> None:
    counts = np.array([np.bincount(part, minlength=len(labels)) for part in codes])
    sizes = counts.sum(axis=1)
    distinct = (counts > 0).sum(axis=1)
    if (distinct > subject.limits["column_health.distinct"].value * sizes).all() and sizes.min() >= _ID_ROWS:
        result.aside = "another text in almost every row, as names and record ids have"
        return
    unseen, alone = (counts[1] == 0)[codes[0]], (counts[1] == 1)[codes[1]]
    result.newcomers = _newcomers(samples, unseen, alone, family)
    result.newcomer_count = int(np.count_nonzero(unseen))
    shares = counts / sizes[:, None]
    rare = (shares.mean(axis=0) < _RARE) | (counts.sum(axis=0) < _RARE_ROWS)
    if rare.sum() > 1 and shares[:, rare].sum(axis=1).mean() > _MOSTLY_RARE:
        result.aside = "so many rare values that their shares cannot be compared"
        return
    kept = np.flatnonzero(~rare)
    place = np.full(len(labels), len(kept))
    place[kept] = np.arange(len(kept))
    names = (*(labels[i] for i in kept), *(["(rare values together)"] if rare.any() else []))
    joined = place[codes[0]], place[codes[1]]
    result.shift = samples.levels(*joined, len(names), family=family)
    _count(result, samples, joined, names)
    result.words = _level_words(subject, result)


def _newcomers(samples: TwoSamples, unseen: NDArray[np.bool_], alone: NDArray[np.bool_], family: int) -> RateChange:
    """Return the share of new rows whose level the reference lacks, less what is expected of rare levels.

    A fresh row has a level that the reference lacks about as often as a row of the reference is alone in its own
    (I. J. Good, "The population frequencies of species and the estimation of population parameters", 1953).
    """
    if not alone.any() and not unseen.any():
        high = float(wilson(0.0, samples.smaller)[1])
        return RateChange(0.0, 0.0, 0.0, Interval(0.0, high, method="Wilson"))
    return samples.rate(unseen, alone, family=family)


def _ranges(
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[str, ...]]:
    """Return the range in which each row lies, and the names of the ranges: about as many rows of both in each."""
    both = np.concatenate([part[:: max(len(part) // 20_000, 1)] for part in values])
    finite = both[np.isfinite(both)]
    cuts = np.quantile(finite, np.arange(1, _RANGES) / _RANGES, method="lower") if len(finite) else np.zeros(0)
    edges = np.unique([_rounded(float(cut)) for cut in cuts])
    codes = tuple(np.searchsorted(edges, part, side="left") for part in values)
    texts = [plain_label(float(edge)) for edge in edges]
    if not texts:
        return (codes[0], codes[1]), ("all",)
    names = (f"up to {texts[0]}", *(f"above {a}, up to {b}" for a, b in pairwise(texts)), f"above {texts[-1]}")
    return (codes[0], codes[1]), names


def _rounded(value: float) -> float:
    """Return a value to three digits: a place to cut at, and nobody's figure."""
    return float(f"{value:.3g}")


def _count(
    result: _Result, samples: TwoSamples, codes: tuple[NDArray[Any], NDArray[Any]], names: Sequence[str]
) -> None:
    result.parts = tuple(names)
    result.counts = tuple(np.bincount(part, minlength=len(names)) for part in codes)  # type: ignore[assignment]
    result.shares = samples.shares(*codes, len(names))


# --- words ------------------------------------------------------------------------------------------------------------


def _number_words(
    subject: Subject, samples: TwoSamples, values: tuple[NDArray[np.float64], NDArray[np.float64]], at: float
) -> str:
    """Say where a number moved most, at a rounded value, unless that would tell of few people."""
    place = _rounded(at) if np.isfinite(at) else at
    below = values[0] <= place, values[1] <= place
    for part in below:
        inside = int(np.count_nonzero(part))
        if any(0 < count < subject.min_cell for count in (inside, len(part) - inside)):
            return ""
    new, old = (float(shares[1]) for shares in samples.shares(below[0].astype(int), below[1].astype(int), 2))
    went = "rose" if new > old else "fell"
    return f"; the share at or below {plain_label(place)} {went} from {percent(old)} to {percent(new)}"


def _level_words(subject: Subject, result: _Result) -> str:
    assert result.shares is not None
    new, old = result.shares
    hidden = _hidden(subject, result)
    gap = np.where(hidden, 0.0, new - old)
    at = int(np.argmax(np.abs(gap)))
    if gap[at] == 0:
        return ""
    went = "rose" if gap[at] > 0 else "fell"
    return f"; the share of {result.parts[at]!r} {went} from {percent(float(old[at]))} to {percent(float(new[at]))}"


def _hidden(subject: Subject, result: _Result) -> NDArray[np.bool_]:
    """Return which parts must not be shown: few people lie there, or could be found out about."""
    assert result.counts is not None
    return np.asarray(withhold_parts(np.column_stack(result.counts), subject.min_cell).all)


# --- findings ---------------------------------------------------------------------------------------------------------


def _column_findings(subject: Subject, results: list[_Result]) -> list[Finding]:
    beyond = {name: [r for r in results if r.verdict(subject.limits).get(name) == "beyond"] for name in _MAKERS}
    beyond["moved"].sort(key=lambda r: -r.shift.interval.low if r.shift else 0.0)
    return [_MAKERS[name](subject, result, name) for name, found in beyond.items() for result in found]


def _moved_finding(subject: Subject, result: _Result, name: str) -> Finding:
    shift = result.shift
    assert shift is not None
    return Finding(
        id=f"column_drift/{name}/{result.name}",
        statement=f"{result.name!r}: {percent(shift.value)} of the rows moved {bounds(shift.interval)}{result.words}.",
        value=shift.value,
        n=result.n,
        evidence=_parts_table(subject, result),
        **judged(subject, shift.interval, f"column_drift.{name}"),
        **_COMMON,
    )


def _missing_finding(subject: Subject, result: _Result, name: str) -> Finding:
    change = result.missing
    assert change is not None
    new, old = _missing_cells(subject, result)
    told = (
        f", {percent(float(new))} against {percent(float(old))}"
        if isinstance(new, float) and isinstance(old, float)
        else ""
    )
    more = "more" if change.value > 0 else "less"
    return Finding(
        id=f"column_drift/{name}/{result.name}",
        statement=f"{result.name!r} is missing {more} often than in the reference{told}: a change of "
        f"{100 * change.value:.1f} points (95 % interval {100 * change.interval.low:.1f} to "
        f"{100 * change.interval.high:.1f}).",
        value=change.value,
        n=len(subject),
        **judged(subject, change.interval, f"column_drift.{name}"),
        **_COMMON,
    )


def _levels_finding(subject: Subject, result: _Result, name: str) -> Finding:
    change = result.newcomers
    assert change is not None
    shown = result.newcomer_count >= subject.min_cell
    expected = f", {percent(change.old)} of which chance explains" if change.old > 0.0005 else ""
    return Finding(
        id=f"column_drift/{name}/{result.name}",
        statement=f"{result.name!r}: {percent(change.new)} of the rows have a value that the reference never has"
        f"{expected}; the excess is {percent(change.value)} {bounds(change.interval)}."
        if shown
        else f"{result.name!r}: some rows have a value that the reference never has.",
        value=change.value if shown else None,
        n=result.n,
        **judged(subject, change.interval, f"column_drift.{name}"),
        **_COMMON,
    )


_MAKERS: Final = {"moved": _moved_finding, "missing": _missing_finding, "new_levels": _levels_finding}


def _parts_table(subject: Subject, result: _Result) -> tuple[Table, ...]:
    if result.counts is None or result.shares is None:
        return ()
    hidden = _hidden(subject, result)
    new, old = result.shares
    order = np.arange(len(result.parts))
    if not isinstance(result.shift, NumberShift):
        order = np.argsort(-np.abs(np.where(hidden, 0.0, new - old)), kind="stable")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (result.parts[i], *((SUPPRESSED,) * 3 if hidden[i] else (old[i], new[i], new[i] - old[i])))
        for i in order[:_SHOWN_PARTS]
    )
    columns = (
        Column("values", "text"),
        Column("share then", "percent"),
        Column("share now", "percent"),
        Column("change", "percent"),
    )
    left = len(order) - len(rows)
    return (Table(f"Where the rows of {result.name} lie", columns, rows, note=f"And {left} more." if left else ""),)


def _missing_cells(subject: Subject, result: _Result) -> tuple[Cell, Cell]:
    """Return the shares missing now and then, unless few rows lack a value, or few have one."""
    assert subject.reference is not None
    change = result.missing
    if change is None:
        return 0.0, 0.0
    cells: list[Cell] = []
    for share, count, n in zip(
        (change.new, change.old), result.missing_counts, (len(subject), len(subject.reference)), strict=True
    ):
        small = 0 < count < subject.min_cell or 0 < n - count < subject.min_cell
        cells.append(SUPPRESSED if small else share)
    return cells[0], cells[1]


def _summary(subject: Subject, results: list[_Result], family: int) -> Finding:
    limits = subject.limits
    limit = limits["column_drift.moved"]
    verdicts = [verdict for result in results for verdict in result.verdict(limits).values()]
    beyond = sum("beyond" in result.verdict(limits).values() for result in results)
    unsure = [result for result in results if "open" in result.verdict(limits).values()]
    compared = sorted((r for r in results if r.shift is not None), key=lambda r: -r.shift.value if r.shift else 0.0)
    worst = compared[0].shift if compared else None
    most = (
        f"; {compared[0].name!r} moved most, {percent(worst.value)} of its rows {bounds(worst.interval)}"
        if worst
        else ""
    )
    severity: Severity = "ok"
    status: Any = "ran"
    if set(verdicts) <= {"open"} and not compared:
        status, reason = "inconclusive", "No column has values that can be compared."
        statement = "No column could be compared with the reference."
    elif beyond:
        severity, reason = "note", "Each column that changed beyond a limit has a finding of its own."
        statement = f"{beyond:,} of {len(results):,} columns changed since the reference beyond a limit{most}."
    elif unsure:
        status, reason = "inconclusive", "The rows are too few to tell whether all columns are within the limits."
        statement = (
            f"No column changed for certain since the reference; of {len(unsure):,} of {len(results):,} columns it "
            f"cannot be told{most}."
        )
    else:
        reason = "All intervals lie within the limits."
        statement = f"All {len(results):,} columns are as in the reference, within the limits{most}."
    return Finding(
        id="column_drift/summary",
        statement=statement,
        severity=severity,
        status=status,
        reason=reason,
        value=None if worst is None else worst.value,
        interval=None if worst is None else worst.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(_table(subject, results, family), *(_figure(subject, compared) if compared else ())),
        **_COMMON,
    )


def _table(subject: Subject, results: list[_Result], family: int) -> Table:
    ranked = sorted(results, key=lambda r: -(r.shift.value if r.shift else abs(r.missing.value) if r.missing else -1.0))
    words = {"beyond": "changed", "open": "cannot be told", "within": "as before"}
    rows: list[tuple[Cell, ...]] = []
    for result in ranked[:_SHOWN]:
        verdicts = set(result.verdict(subject.limits).values())
        worst = next((words[name] for name in words if name in verdicts), "not judged")
        worst = "not judged" if result.aside and worst == "as before" else worst
        new, old = _missing_cells(subject, result)
        rows.append(
            (
                result.name,
                result.kind,
                None if result.shift is None else result.shift.value,
                None if result.shift is None else (result.shift.interval.low, result.shift.interval.high),
                old,
                new,
                worst,
                result.aside,
            )
        )
    left = len(results) - len(rows)
    note = (
        f"The end towards no change holds for all {family:,} comparisons at once, so that no column is accused by "
        "chance; the other for each, because only all together are acquitted."
    )
    return Table(
        "Columns",
        (
            Column("column", "text"),
            Column("holds", "text"),
            Column("moved", "percent", "share of the rows that moved: see the page of this check"),
            Column("95 % interval", "interval"),
            Column("missing then", "percent"),
            Column("missing now", "percent"),
            Column("verdict", "text"),
            Column("not judged because of", "text"),
        ),
        tuple(rows),
        note=f"{note} {left:,} columns that moved less are left out." if left else note,
    )


def _figure(subject: Subject, compared: list[_Result]) -> tuple[Figure, ...]:
    shown = [(result.name, result.shift) for result in compared[:_SHOWN] if result.shift is not None]
    series = Series(
        "share of rows that moved",
        tuple(name for name, _ in shown),
        tuple(shift.value for _, shift in shown),
        tuple(shift.interval.low for _, shift in shown),
        tuple(shift.interval.high for _, shift in shown),
    )
    limit, severe = subject.limits["column_drift.moved"].value, subject.limits["column_drift.moved_severe"].value
    return (
        Figure(
            "intervals",
            "How far columns moved since the reference",
            "column",
            "share of rows that moved",
            (series,),
            (Line("limit for a warning", limit), Line("limit for a failure", severe)),
            alt=f"{shown[0][0]} moved most: {100 * shown[0][1].value:.1f} % of its rows.",
            percent=True,
        ),
    )


def _shared_rows(subject: Subject) -> list[Finding]:
    """Say so where rows occur in both tables: they are no two samples then."""
    assert subject.reference is not None
    older = subject.reference.X
    names = [str(name) for name in older.columns]
    single = frozenset(name for name in names if "float32" in (str(subject.X[name].dtype), str(older[name].dtype)))
    mine, theirs = row_hashes(subject.X[names], single=single), row_hashes(older, single=single)
    shared = np.isin(mine, theirs)
    share = float(shared.mean())
    usual = 1 - len(np.unique(theirs)) / len(theirs)
    limit = subject.limits["column_drift.shared"]
    if share - usual <= limit.value or np.count_nonzero(shared) < subject.min_cell:
        return []
    return [
        Finding(
            id="column_drift/shared_rows",
            statement=f"{percent(share)} of the rows occur in the reference too, where {percent(usual)} repeat others.",
            severity="note",
            reason="Rows in both hide a change: leave them out of one of the two.",
            value=share - usual,
            limit=limit.value,
            limit_source=limit.source,
            n=len(subject),
            **_COMMON,
        )
    ]
