"""Whether the same columns matter in every group."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.reasons.effects import COMMON, Effects, listed
from aboveboard.auditing.checks.reasons.importance import profile
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.frames import MISSING
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Cell, Column, Finding, Severity, Table

__all__ = ["groups_finding", "usable_groups"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_FEWEST: Final = 20
_PERMUTATIONS: Final = 1_000
_LEVEL: Final = 0.05
_MOST: Final = 10


def groups_finding(subject: Subject, effects: Effects, attribute: str, random_state: int) -> Finding:
    """Return how far the groups of a sensitive column lie apart in what matters, and whether that may be chance.

    The distance is the total variation between a group's shares of effects and those of the others. Whether the largest
    is chance is told by giving the groups' names to other rows.
    """
    codes, names = usable_groups(subject, effects, attribute)
    finding_id = f"reasons/groups/{attribute}"
    if len(names) < 2:
        return Finding(
            id=finding_id,
            statement=f"{attribute}: there are no two groups with {_least(subject)} explained rows to compare.",
            severity="note",
            status="inconclusive",
            reason="More rows are explained with --effort full.",
            **COMMON,
        )
    kept = codes >= 0
    sizes, member = effects.sizes[kept], np.eye(len(names))[codes[kept]]
    distance = _distances(sizes, member)
    rng = np.random.default_rng(random_state)
    chance = np.array([_distances(sizes, rng.permutation(member)) for _ in range(_PERMUTATIONS)])
    excess = (distance - chance.mean(axis=0)) / np.maximum(chance.std(axis=0), 1e-12)
    extreme = ((chance - chance.mean(axis=0)) / np.maximum(chance.std(axis=0), 1e-12)).max(axis=1)
    worst = int(np.argmax(excess))
    p = float((1 + np.count_nonzero(extreme >= excess[worst])) / (1 + _PERMUTATIONS))
    limit = subject.limits["reasons.groups"]
    real, large = p < _LEVEL, distance[worst] > limit.value
    severity: Severity = "warn" if real and large else "note" if large else "ok"
    return Finding(
        id=finding_id,
        statement=(
            f"{attribute}: {percent(distance[worst])} of what matters for {names[worst]} is other than for the others "
            f"(p = {p:.2g}, for the largest of {len(names)} groups; {percent(chance.mean(axis=0)[worst])} would be "
            "expected by chance)."
        ),
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason={
            "ok": "The same columns matter for all groups." if not real else "What differs is less than the limit.",
            "warn": "Groups are answered for different reasons: see which.",
            "note": "The difference may be chance.",
        }[severity],
        value=float(distance[worst]),
        limit=limit.value,
        limit_source=limit.source,
        group=f"{attribute}={names[worst]}" if severity == "warn" else "",
        n=int(member[:, worst].sum()) if severity == "warn" else len(sizes),
        evidence=(_table(effects, sizes, member, names, distance),),
        **COMMON,
    )


def usable_groups(subject: Subject, effects: Effects, attribute: str) -> tuple[Ints, list[str]]:
    """Return the group of each explained row, -1 where it has too few explained rows or no value, and their names."""
    column = subject.sensitive[attribute].iloc[effects.rows].cat
    raw = column.codes.to_numpy().astype(np.intp)
    names = [str(group) for group in column.categories]
    counts = np.bincount(raw, minlength=len(names))
    everybody = np.bincount(subject.sensitive[attribute].cat.codes.to_numpy(), minlength=len(names))
    shown = ~withhold_parts(everybody, subject.min_cell).all
    order = np.argsort(-counts, kind="stable")
    least = _least(subject)
    wanted = sorted(
        [int(g) for g in order if counts[g] >= least and shown[g] and not names[g].startswith(MISSING)][:_MOST]
    )
    table = np.full(len(names), -1, dtype=np.intp)
    table[wanted] = np.arange(len(wanted))
    return table[raw], [names[g] for g in wanted]


def _least(subject: Subject) -> int:
    return max(_FEWEST, subject.min_cell)


def _distances(sizes: Floats, member: Floats) -> Floats:
    """Return the total variation between each group's shares of effects and those of the others."""
    own = member.T @ sizes
    others = sizes.sum(axis=0) - own
    return np.asarray(np.abs(_by_row(own) - _by_row(others)).sum(axis=1) / 2.0)


def _by_row(sums: Floats) -> Floats:
    return np.asarray(sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300))


def _table(effects: Effects, sizes: Floats, member: Floats, names: list[str], distance: Floats) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for g, name in enumerate(names):
        share = profile(sizes[member[:, g] > 0])
        first = [f"{effects.names[i]} {percent(share[i])}" for i in np.argsort(-share, kind="stable")[:3]]
        rows.append((name, int(member[:, g].sum()), float(distance[g]), listed(first)))
    columns = (
        Column("group", "text"),
        Column("n", "count", "explained rows"),
        Column("other than for the others", "percent"),
        Column("what matters most", "text"),
    )
    return Table("What matters in each group", columns, tuple(rows), note=effects.how)
