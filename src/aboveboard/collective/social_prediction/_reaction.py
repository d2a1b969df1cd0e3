"""Do outcomes react to the forecasts, and how strongly?"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.collective.social_prediction._log import Log
from aboveboard.collective.social_prediction._section import FEWEST, SECTION, inconclusive, unanswerable
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Finding, Interval, Table

__all__ = ["reaction"]

Floats = NDArray[np.float64]


def reaction(log: Log, limits: tuple[float, float], sources: Mapping[str, str], min_people: int) -> Finding:
    """Return a finding about the slope of the outcome in the forecast; `limits` are those of reaction and severe."""
    assigned = log.arm if log.arm is not None else log.version
    if assigned is None or len(set(assigned.tolist())) < 2:
        return unanswerable(
            "reaction",
            "Whether outcomes react to the forecasts is not known.",
            "Neither arms nor versions of the model are in the log: everybody of one kind got one forecast.",
        )
    cells = log.cells()
    rows = log.explored if log.explored.any() else np.ones(len(log.p), dtype=bool)
    if log.explored.any():
        how, push = "forecasts drawn at random", _within(log.p[rows], cells[rows])
    else:
        how = "arms assigned at random" if log.arm is not None else "the change from version to version"
        push = _moved_by(assigned, log.p, cells)
    n = int(rows.sum())
    if n < max(min_people, FEWEST):
        return inconclusive("reaction", f"Only {n} people got a forecast by chance.", n)
    slope, interval = _slope(push, _within(log.p[rows], cells[rows]), _within(log.y[rows], cells[rows]))
    if interval is None:
        return inconclusive("reaction", f"By {how}, people of one kind got nearly the same forecasts.", n)
    low, high = interval.low, interval.high
    hardly, severe = limits
    reacts, inside = low > 0 or high < 0, max(-low, high) <= hardly
    causal = log.arm is not None
    unsettled = causal and (low > severe or high < -severe)
    return Finding(
        id="performativity/reaction",
        statement=_reacted(slope, reacts, inside),
        severity="ok" if inside else "warn" if unsettled else "note",
        status="ran" if inside or reacts else "inconclusive",
        reason=(
            f"Going by {how}{'' if causal else ', where nothing else changed with them'}. "
            + (
                "From a slope of 1 on, retraining on the outcomes does not settle."
                if unsettled
                else "The whole interval of the slope is small."
                if inside
                else "Training on these outcomes learns what people do who were forecast, not what they would do."
                if reacts
                else "The interval of the slope holds 0."
            )
        ),
        value=slope,
        interval=interval,
        limit=severe if reacts and not inside else hardly,
        limit_source=sources.get("reaction_severe" if reacts and not inside else "reaction", ""),
        n=n,
        evidence=(_arms(log, assigned, min_people),),
        remedies=("PerformativeCalibrator",) if reacts and not inside else (),
        **SECTION,
    )


def _reacted(slope: float, reacts: bool, inside: bool) -> str:
    moved = f"{10.0 * abs(slope):.1f} points"
    if inside:
        return f"Outcomes hardly react to forecasts: where the forecast is 10 points higher, they move {moved}."
    if not reacts:
        return "It is not certain whether outcomes react to forecasts."
    kind, side = ("self-fulfilling", "higher") if slope > 0 else ("self-negating", "lower")
    return f"The forecasts are {kind}: where the forecast is 10 points higher, outcomes are {moved} {side}."


def _within(values: Floats, cells: NDArray[np.intp]) -> Floats:
    """Return values less the mean of their cell."""
    n = np.maximum(np.bincount(cells), 1)
    return values - (np.bincount(cells, values) / n)[cells]


def _moved_by(assigned: NDArray[Any], p: Floats, cells: NDArray[np.intp]) -> Floats:
    """Return how far assignment moves the forecast of each person from that of its kind, learned on other people."""
    arms, code = np.unique(assigned.astype(str), return_inverse=True)
    both = cells * len(arms) + code
    half = np.arange(len(p)) % 2
    push = np.empty(len(p))
    for own in (0, 1):
        other = half != own
        n = np.bincount(both[other], minlength=both.max() + 1)
        mean = np.bincount(both[other], _within(p, cells)[other], both.max() + 1) / np.maximum(n, 1)
        push[~other] = mean[both[~other]]
    return _within(push, cells)


def _slope(push: Floats, p: Floats, y: Floats) -> tuple[float, Interval | None]:
    """Return the slope of y in p that `push` brings about, with Anderson and Rubin's interval; None: it has no end.

    A slope b is in the interval where the mean of push (y - b p) is within 1.96 standard errors of zero.
    """
    on_y, on_p = float(push @ y), float(push @ p)
    square = critical_z() ** 2
    yy, yp, pp = (float((push**2) @ (a * b)) for a, b in ((y, y), (y, p), (p, p)))
    curve, middle, end = on_p**2 - square * pp, on_y * on_p - square * yp, on_y**2 - square * yy
    if curve <= 0:
        return 0.0, None
    root = np.sqrt(max(middle**2 - curve * end, 0.0))
    low, high = float((middle - root) / curve), float((middle + root) / curve)
    return on_y / on_p, Interval(low, high, method="Anderson-Rubin")


def _arms(log: Log, assigned: NDArray[Any], min_people: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(assigned.tolist()):
        own = assigned == name
        few = own.sum() < min_people
        p, y = log.p[own], log.y[own]
        rest = (int(own.sum()), float(p.mean()), float(y.mean()), float(((y - p) ** 2).mean()))
        rows.append((name, *((SUPPRESSED,) * 4 if few else rest)))
    return Table(
        "Forecasts and outcomes by assignment",
        (
            Column("Arm" if log.arm is not None else "Version", "text"),
            Column("n", "count"),
            Column("Forecast", "percent", "Mean"),
            Column("Outcome", "percent", "Mean"),
            Column("Brier score"),
        ),
        tuple(rows),
    )
