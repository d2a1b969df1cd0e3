"""Does a forecast mean the same from one version of the model to the next?"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.collective.social_prediction._log import Log
from aboveboard.collective.social_prediction._section import FEWEST, SECTION, inconclusive, unanswerable, verdict
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Finding, Interval, Table

__all__ = ["drift"]

Floats = NDArray[np.float64]

_BINS: Final = 5


class _Fifths(NamedTuple):
    """By version and fifth of the forecasts: people, mean forecast, mean of outcome less forecast, standard error."""

    n: Floats
    forecast: Floats
    residual: Floats
    error: Floats


def drift(log: Log, limit: float, source: str, min_people: int) -> Finding:
    """Return a finding about outcomes at equal forecasts, between versions in a row."""
    if len(log.versions) < 2:
        return unanswerable(
            "drift",
            "Whether the meaning of a forecast has moved is not known.",
            "The log names no versions of the model and no times, or only one.",
        )
    fifths = _fifths(log)
    enough = fifths.n >= max(min_people, FEWEST)
    known = enough[1:] & enough[:-1]
    n = int((~log.explored).sum())
    if not known.any():
        return inconclusive("drift", "No fifth of the forecasts has thirty people in two versions in a row.", n)
    change = np.diff(fifths.residual, axis=0)[known]
    half = critical_z(1.0 - 0.05 / int(known.sum())) * np.hypot(fifths.error[1:], fifths.error[:-1])[known]
    bad, fine, worst = verdict(change, change - half, change + half, limit)
    version, fifth = (int(axis[worst]) for axis in np.nonzero(known))
    between = f"from {log.versions[version]} to {log.versions[version + 1]}"
    moved = f"{100 * abs(change[worst]):.1f} points {'up' if change[worst] > 0 else 'down'}"
    what = (
        f"outcomes of a forecast of {fifths.forecast[version : version + 2, fifth].mean():.2f} went {moved} {between}"
    )
    kind = "periods" if log.periods else "versions"
    return Finding(
        id="performativity/drift",
        statement=(
            f"What a forecast means has moved: {what}, beyond the forecast's own change."
            if bad
            else f"A forecast means the same in all {len(log.versions)} {kind}, to within {100 * limit:g} points."
            if fine
            else f"It is not certain that a forecast means the same in all {kind}: {what}, give or take chance."
        ),
        severity="warn" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "Either the world has changed, or people react to the new forecasts; arms assigned at random tell which."
            if bad
            else "The whole interval of every fifth of the forecasts lies within the limit."
            if fine
            else "The intervals reach beyond the limit: more outcomes are needed."
        ),
        value=float(change[worst]),
        interval=Interval(
            float((change - half)[worst]), float((change + half)[worst]), method="normal, Bonferroni", simultaneous=True
        ),
        limit=limit,
        limit_source=source,
        n=n,
        evidence=(_table(log, fifths, min_people),),
        remedies=("PerformativeCalibrator",) if bad else (),
        **SECTION,
    )


def _fifths(log: Log) -> _Fifths:
    assert log.version is not None
    own = ~log.explored
    p, y = log.p[own], log.y[own]
    position = {name: i for i, name in enumerate(log.versions)}
    version = np.array([position[name] for name in log.version[own]])
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    shape = (len(log.versions), len(edges) + 1)
    cell = version * shape[1] + np.searchsorted(edges, p, side="right")
    n = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(cell, values, len(n)) / np.maximum(n, 1.0))

    residual = mean(y - p)
    variance = mean((y - p) ** 2) - residual**2
    if np.isin(y, (0.0, 1.0)).all():
        variance = np.maximum(variance, mean(p * (1.0 - p)))  # a handful without the outcome has no spread of its own
    error = np.sqrt(variance / np.maximum(n, 1.0))
    return _Fifths(*(part.reshape(shape) for part in (n, mean(p), residual, error)))


def _table(log: Log, fifths: _Fifths, min_people: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for v, b in np.ndindex(*fifths.n.shape):
        forecast, outcome = fifths.forecast[v, b], fifths.forecast[v, b] + fifths.residual[v, b]
        shown: tuple[Cell, ...] = (int(fifths.n[v, b]), float(forecast), float(outcome))
        rows.append((log.versions[v], b + 1, *((SUPPRESSED,) * 3 if fifths.n[v, b] < min_people else shown)))
    return Table(
        "Outcomes by fifth of the forecasts",
        (
            Column("Period" if log.periods else "Version", "text"),
            Column("Fifth"),
            Column("n", "count"),
            Column("Forecast", "percent"),
            Column("Outcome", "percent"),
        ),
        tuple(rows),
    )
