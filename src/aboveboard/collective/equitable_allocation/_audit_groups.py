"""Groups in a log of allocations: whose requests are met less, and who gets less than its share."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.equitable_allocation._demands import Floats, Ints
from aboveboard.collective.equitable_allocation._log import AllocationLog
from aboveboard.core.errors import InputError
from aboveboard.core.finding import SUPPRESSED, Column, Finding, Interval, Table

__all__ = ["METHOD", "REMEDIES", "SECTION", "Mask", "fill_finding", "share_finding", "short"]

Mask = NDArray[np.bool_]

SECTION: Final[dict[str, Any]] = {"check": "allocation_audit", "area": "allocation"}
REMEDIES: Final = ("ExternalEquityAllocator",)
METHOD: Final = "Clopper-Pearson"
_ABSENT: Final = 1e-3
"""Shares of the population that sum to less than 1 by more than this are not all there."""


def fill_finding(
    log: AllocationLog,
    name: str,
    codes: Ints,
    names: tuple[str, ...],
    limit: float,
    source: str,
    hide: Callable[[Ints], Mask],
) -> Finding:
    size = len(names)
    own = log.fill_rates(codes, size, family=2 * size)
    hidden = np.asarray(hide(own.n), dtype=bool)
    judged = ~hidden
    if judged.sum() < 2:
        return _no_groups("fill", name, len(log))
    others = [log.fill_rates(np.where(codes == g, -1, 0), 1, family=2 * size) for g in range(size)]
    rest, rest_low, rest_high = (
        np.array([getattr(part, end)[0] for part in others]) for end in ("mean", "low", "high")
    )
    value, low, high = _ratio(own.mean, rest), _ratio(own.low, rest_high), _ratio(own.high, rest_low)
    worst = int(np.where(judged, value, np.inf).argmin())
    bad, fine = bool((high < limit)[judged].any()), bool((low >= limit)[judged].all())
    if bad:
        worst = int(np.where(judged & (high < limit), value, np.inf).argmin())
    scope = " that is shown" if hidden.any() else ""
    who = f"of {name}, {short(names[worst])} is granted {100 * own.mean[worst]:.3g} % of what it asks for on average, "
    who += f"the others {100 * rest[worst]:.3g} %"
    return Finding(
        id=f"allocation_audit/fill/{name}",
        group=name,
        statement=(
            f"A group's requests are met less: {who}."
            if bad
            else f"No group{scope} has its requests met much less than the others: {who}."
            if fine
            else f"It is not certain whether some group's requests are met much less: {who}."
        ),
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "The groups may come at other times, or ask for other amounts: the slots tell more."
            if bad or fine
            else "There are too few requests, or rounds, to tell."
        ),
        value=float(value[worst]) if np.isfinite(value[worst]) else None,
        interval=_interval(low[worst], high[worst]),
        limit=limit,
        limit_source=source,
        n=int(own.n[worst]),
        evidence=(
            Table(
                f"Fill rate by {name}",
                (
                    Column("Group", "text"),
                    Column("n", "count", "Requests"),
                    Column("Fill rate", "percent", "Mean of granted / asked for, at most 1"),
                    Column("Interval", "interval", f"{METHOD}, over all groups"),
                    Column("The others", "percent"),
                ),
                tuple(
                    (short(names[g]), int(own.n[g]), *[SUPPRESSED] * 3)
                    if hidden[g]
                    else (
                        short(names[g]),
                        int(own.n[g]),
                        float(own.mean[g]),
                        (float(own.low[g]), float(own.high[g])),
                        float(rest[g]),
                    )
                    for g in range(size)
                ),
            ),
        ),
        remedies=() if fine else REMEDIES,
        **SECTION,
    )


def share_finding(
    log: AllocationLog,
    name: str,
    codes: Ints,
    names: tuple[str, ...],
    shares: Mapping[str, float],
    limit: float,
    source: str,
    hide: Callable[[Ints], Mask],
) -> Finding:
    due = np.array([shares.get(label, np.nan) for label in names], dtype=np.float64)
    known = np.isfinite(due)
    if not (due[known] > 0).all() or due[known].sum() > 1.0 + 1e-6:
        raise InputError(
            f"the population shares of {name!r} are not usable", expected="positive shares that sum to at most 1"
        )
    size = len(names)
    got = log.received(np.where(known[codes], codes, -1), size, family=int(known.sum()))
    hidden = np.asarray(hide(np.bincount(codes, minlength=size)), dtype=bool)
    judged = known & ~hidden
    if not judged.any() or not log.granted.sum() > 0:
        return _no_groups("share", name, len(log))
    value, low, high = (np.where(known, part / due, np.inf) for part in (got.mean, got.low, got.high))
    worst = int(np.where(judged, value, np.inf).argmin())
    absent = 1.0 - float(due[known].sum())
    bad, fine = bool((high < limit)[judged].any()), bool((low >= limit)[judged].all() and absent <= _ABSENT)
    if bad:
        worst = int(np.where(judged & (high < limit), value, np.inf).argmin())
    who = f"of {name}, {short(names[worst])} is {100 * due[worst]:.3g} % of the population "
    who += f"and got {100 * got.mean[worst]:.3g} %"
    scope = " that is shown" if hidden[known].any() else ""
    return Finding(
        id=f"allocation_audit/share/{name}",
        group=name,
        statement=(
            f"A group gets less than its share: {who}."
            if bad
            else f"No group{scope} gets much less than its share: {who}."
            if fine
            else f"It is not certain whether some group gets much less than its share: {who}."
        ),
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            f"Of groups that are {100 * absent:.3g} % of the population nobody is known to have asked."
            if absent > _ABSENT
            else "Whether a group asked for less is not considered."
            if bad or fine
            else "There are too few requests, or rounds, to tell."
        ),
        value=float(value[worst]),
        interval=_interval(low[worst], high[worst]),
        limit=limit,
        limit_source=source,
        n=int(got.n[worst]),
        evidence=(
            Table(
                f"Shares by {name}",
                (
                    Column("Group", "text"),
                    Column("n", "count", "Requests"),
                    Column("Of the population", "percent"),
                    Column("Of the requests", "percent"),
                    Column("Of what was granted", "percent"),
                    Column("Interval", "interval", f"{METHOD}, over all groups"),
                ),
                tuple(
                    (short(names[g]), int(got.n[g]), *[SUPPRESSED] * 4)
                    if hidden[g]
                    else (
                        short(names[g]),
                        int(got.n[g]),
                        float(due[g]),
                        float(got.n[g] / max(got.n.sum(), 1)),
                        float(got.mean[g]),
                        (float(got.low[g]), float(got.high[g])),
                    )
                    for g in np.flatnonzero(known).tolist()
                ),
            ),
        ),
        remedies=() if fine else REMEDIES,
        **SECTION,
    )


def _no_groups(what: str, name: str, n: int) -> Finding:
    return Finding(
        id=f"allocation_audit/{what}/{name}",
        group=name,
        statement=f"The groups of {name} cannot be compared.",
        severity="note",
        status="inconclusive",
        reason="There are no two groups with enough requests." if what == "fill" else "No group has enough requests.",
        n=n,
        **SECTION,
    )


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(part, np.inf), where=whole > 0)


def _interval(low: float, high: float) -> Interval | None:
    if not (np.isfinite(low) and np.isfinite(high)):
        return None
    return Interval(float(low), float(high), method=METHOD, simultaneous=True)


def short(label: str) -> str:
    return label if len(label) <= 60 else label[:59] + "…"
