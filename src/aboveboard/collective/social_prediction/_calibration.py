"""Do outcomes match the forecasts that were published, test by test?"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.social_prediction._families import (
    BumpTests,
    Family,
    GroupTests,
    PolynomialTests,
    ProductTests,
    bind_tests,
    columns_of,
    names_of,
    values_of,
)
from aboveboard.collective.social_prediction._log import Log
from aboveboard.collective.social_prediction._people import Columns
from aboveboard.collective.social_prediction._section import FEWEST, SECTION, inconclusive, verdict
from aboveboard.collective.social_prediction._violations import residuals_on
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["calibration"]

Floats = NDArray[np.float64]

_SHOWN: Final = 20
_TINY: Final = 1e-300


@dataclass(frozen=True)
class _Measured:
    """Tests, and what they say of those whom they look at: one entry per test.

    Attributes
    ----------
    names : list of str
    gap, low, high : ndarray
        Mean outcome less mean forecast, with its interval.
    forecast, outcome : ndarray
        The two means.
    people : ndarray of int
    judged : ndarray of bool
        Whether the interval holds, for all these tests at once.
    """

    names: list[str]
    gap: Floats
    low: Floats
    high: Floats
    forecast: Floats
    outcome: Floats
    people: NDArray[np.intp]
    judged: NDArray[np.bool_]


def calibration(log: Log, limit: float, source: str, min_people: int) -> list[Finding]:
    """Return a finding for all people, one along the forecast, and one for each context."""
    own = ~log.explored
    table = log.contexts[own]
    columns = Columns.learn(table, range(len(table.columns)))
    Z = columns.encode(table)
    families: list[Family] = [PolynomialTests(0), BumpTests()]
    families += [ProductTests(GroupTests([at]), PolynomialTests(1)) for at in range(len(table.columns))]
    tests = bind_tests(families, columns, Z)
    found = _measured(names_of(tests), values_of(tests, Z, log.p[own]), log.p[own], log.y[own], min_people)
    ids = ["level", "forecast", *(f"context/{name}" for name in table.columns)]
    return [
        _judged(found, part, name, len(Z), limit, source, min_people)
        for name, part in zip(ids, columns_of(tests), strict=True)
    ]


def _measured(names: list[str], values: Floats, p: Floats, y: Floats, min_people: int) -> _Measured:
    total = np.maximum(values.sum(axis=0), _TINY)
    people = total**2 / np.maximum((values**2).sum(axis=0), _TINY)
    judged = people >= max(min_people, FEWEST)
    found = residuals_on(values, p, y, judged=judged)
    weight = np.maximum(found.weight, _TINY)
    gap, half = found.mean / weight, found.critical * found.error / weight
    return _Measured(
        names=names,
        gap=gap,
        low=np.maximum(gap - half, -1.0),
        high=np.minimum(gap + half, 1.0),
        forecast=values.T @ p / total,
        outcome=values.T @ y / total,
        people=np.round(people).astype(np.intp),
        judged=judged,
    )


def _judged(found: _Measured, part: slice, name: str, n: int, limit: float, source: str, min_people: int) -> Finding:
    """Return the verdict on one family of tests."""
    tests = np.arange(part.start, part.stop)
    own = tests[found.judged[part]]
    if not len(own):
        return inconclusive(name, f"Fewer than {max(min_people, FEWEST)} people stand behind each figure.", n)
    bad, fine, at = verdict(found.gap[own], found.low[own], found.high[own], limit)
    worst = int(own[at])
    where = _where(name, found.names[worst])
    points = f"{100 * abs(found.gap[worst]):.1f} points {'above' if found.gap[worst] > 0 else 'below'} the forecasts"
    shown = own[:_SHOWN]
    return Finding(
        id=f"performativity/{name}",
        statement=(
            f"After publication, outcomes lie {points} {where}."
            if bad
            else f"After publication, outcomes match the forecasts to within {100 * limit:g} points; "
            f"{'they lie' if len(own) == 1 else 'at most they lie'} {points} {where}."
            if fine
            else f"It is not certain that outcomes match the forecasts: they lie {points} {where}, give or take chance."
        ),
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "Even at the near end of its interval, the difference exceeds the limit."
            if bad
            else "The whole interval of every test lies within the limit."
            if fine
            else "The intervals reach beyond the limit: more outcomes are needed."
        ),
        value=float(found.gap[worst]),
        interval=Interval(float(found.low[worst]), float(found.high[worst]), method="max-|t|", simultaneous=True),
        limit=limit,
        limit_source=source,
        n=n,
        evidence=(_table(found, tests, min_people), *((_figure(found, shown, limit),) if len(shown) > 1 else ())),
        remedies=() if fine else ("PerformativeCalibrator",),
        **SECTION,
    )


def _where(name: str, test: str) -> str:
    if name == "level":
        return "overall"
    if name == "forecast":
        return f"where the forecast is {test.removeprefix('p ')}"
    group = test.removesuffix(" x p")
    return f"for {group}" + ("" if group == test else " (more so at high forecasts)")


def _table(found: _Measured, tests: NDArray[np.intp], min_people: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for i in tests:
        if found.people[i] < min_people:
            rows.append((found.names[i], *(SUPPRESSED,) * 5))
            continue
        interval = (float(found.low[i]), float(found.high[i])) if found.judged[i] else None
        means = (float(found.forecast[i]), float(found.outcome[i]), float(found.gap[i]))
        rows.append((found.names[i], int(found.people[i]), *means, interval))
    return Table(
        "Outcomes after publication, and the forecasts",
        (
            Column("Test", "text"),
            Column("People", "count", "How many the test looks at: bumps weigh people by how near their forecast is"),
            Column("Forecast", "percent", "Mean"),
            Column("Outcome", "percent", "Mean"),
            Column("Difference", "number", "Outcome less forecast"),
            Column("95 % interval", "interval", "Of the difference, for all tests of the audit at once"),
        ),
        tuple(rows),
    )


def _figure(found: _Measured, tests: NDArray[np.intp], limit: float) -> Figure:
    gap, low, high = (tuple(map(float, part[tests])) for part in (found.gap, found.low, found.high))
    names = tuple(found.names[i] for i in tests)
    return Figure(
        "intervals",
        "Outcome less forecast, after publication",
        "Test",
        "Difference",
        (Series("difference", names, gap, low, high),),
        (Line("limit above", limit), Line("limit below", -limit)),
        alt=f"Of {len(tests)} tests, {sum(abs(value) > limit for value in gap)} lie beyond the limits.",
    )
