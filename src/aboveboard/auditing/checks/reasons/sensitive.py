"""Whether a sensitive attribute, or a column that stands in for it, drives the answers apart.

All effects of a row sum to its answer less that of the rows it is compared with, exactly. So the difference between the
mean answers of a group and of the others is the sum, over columns, of the differences between their mean effects.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.reasons.effects import COMMON, Effects, amount, bonferroni
from aboveboard.auditing.checks.reasons.groups import usable_groups
from aboveboard.auditing.checks.reasons.importance import profile
from aboveboard.auditing.columns import coded
from aboveboard.auditing.estimates import Rows, percent
from aboveboard.auditing.single_column import assign_folds, class_power
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Column, Figure, Finding, Line, Series, Severity, Table

__all__ = ["sensitive_finding"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_SHOWN: Final = 10
_TOLD_BY: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Gap:
    """What each column adds to the difference between a group's mean answer and that of the others."""

    group: int
    total: float
    total_low: float
    total_high: float
    part: Floats
    low: Floats
    high: Floats


def sensitive_finding(subject: Subject, effects: Effects, attribute: str, random_state: int) -> Finding:
    """Return what carries the difference in answers between the groups of a sensitive column."""
    finding_id = f"reasons/sensitive/{attribute}"
    itself = effects.names.index(attribute) if attribute in effects.names else None
    if subject.task == "multiclass":
        return _share_alone(effects, attribute, finding_id, itself)
    codes, names = usable_groups(subject, effects, attribute)
    if len(names) < 2:
        return Finding(
            id=finding_id,
            statement=f"{attribute}: too few rows of two groups were explained to tell what drives answers apart.",
            severity="note",
            status="inconclusive",
            reason="More rows are explained with --effort full.",
            **COMMON,
        )
    gaps = [_gap(effects, codes == g, g, len(names)) for g in range(len(names))]
    gap = max(gaps, key=lambda each: abs(each.total))
    power = _powers(subject, attribute, codes, effects, gap.group, random_state)
    return _finding(subject, effects, attribute, names[gap.group], gap, power, itself, int((codes == gap.group).sum()))


def _gap(effects: Effects, own: NDArray[np.bool_], group: int, groups: int) -> _Gap:
    """Return the parts of a group's gap with intervals for all columns and groups at once."""
    values = np.column_stack([effects.values, effects.values.sum(axis=1)])
    inside, outside = values[own].mean(axis=0), values[~own].mean(axis=0)
    influence = np.where(own[:, None], (values - inside) / own.sum(), -(values - outside) / (~own).sum())
    part = inside - outside
    low, high = effects.linear_interval(part, influence, family=len(part) * groups)
    return _Gap(group, float(part[-1]), float(low[-1]), float(high[-1]), part[:-1], low[:-1], high[:-1])


def _powers(subject: Subject, attribute: str, codes: Ints, effects: Effects, group: int, random_state: int) -> Floats:
    """Return the out-of-fold AUC with which each column alone tells the group from the others."""
    rng = np.random.default_rng(random_state)
    name = subject.sensitive[attribute].iloc[effects.rows[np.argmax(codes == group)]]
    rows = rng.choice(len(subject), min(_TOLD_BY, len(subject)), replace=False)
    y = np.asarray(subject.sensitive[attribute].iloc[rows] == name).astype(np.int64)
    drawn = Rows(len(rows), None, None if subject.cluster is None else subject.cluster[rows])
    fold = assign_folds(y, drawn, rng)
    return np.array(
        [class_power(coded(subject.X[column].iloc[rows]), y, 2, fold, drawn).value for column in effects.names]
    )


def _finding(
    subject: Subject,
    effects: Effects,
    attribute: str,
    group: str,
    gap: _Gap,
    power: Floats,
    itself: int | None,
    n: int,
) -> Finding:
    limit, told = subject.limits["reasons.sensitive"], subject.limits["reasons.proxy_auc"]
    unit = 1.0 if effects.in_points else float(np.std(subject.prediction)) or 1.0
    bound = limit.value * unit
    sure = (gap.low > bound) | (gap.high < -bound)
    suspect = np.abs(power - 0.5) + 0.5 > told.value
    if itself is not None:
        suspect[itself] = True
    driven = np.flatnonzero(sure & suspect)
    told_of = next(found for found in (driven, np.flatnonzero(suspect), np.arange(len(suspect))) if len(found))
    widest = int(told_of[np.argmax(np.abs(gap.part[told_of]))])
    decided = itself if itself is not None and sure[itself] else widest
    inside = bool(((gap.low > -bound) & (gap.high < bound))[suspect].all())
    severity: Severity = "warn" if len(driven) else "ok" if inside else "note"
    own = ""
    if itself is not None and itself != decided:
        own = f" {attribute} itself carries {amount(effects, gap.part[itself], signed=True)}."
    return Finding(
        id=f"reasons/sensitive/{attribute}",
        statement=(
            f"{attribute}: the mean answer for {group} differs from that of the others by "
            f"{amount(effects, gap.total, signed=True)}, of which {effects.names[decided]} carries "
            f"{amount(effects, gap.part[decided], signed=True)} (simultaneous 95 % interval "
            f"{amount(effects, gap.low[decided], signed=True)} to "
            f"{amount(effects, gap.high[decided], signed=True)}).{own}"
        ),
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason=_reason(effects, attribute, driven, itself, severity),
        value=float(gap.part[decided] / unit),
        interval=bonferroni(float(gap.low[decided] / unit), float(gap.high[decided] / unit), 2),
        limit=limit.value,
        limit_source=limit.source,
        group=f"{attribute}={group}",
        n=n,
        evidence=_evidence(effects, attribute, group, gap, power, itself),
        **COMMON,
    )


def _reason(effects: Effects, attribute: str, driven: Ints, itself: int | None, severity: Severity) -> str:
    if severity == "ok":
        return "Neither the attribute nor a column that tells it drives the answers apart by more than the limit."
    if severity == "note":
        return "Too few rows were explained to tell whether a column that tells the attribute drives the answers apart."
    if itself is not None and itself in driven:
        return f"The model uses {attribute} itself, and answers for its groups differ because of it."
    names = ", ".join(repr(effects.names[i]) for i in driven[:3])
    return f"The answers differ by columns that tell {attribute}: {names}."


def _evidence(
    effects: Effects, attribute: str, group: str, gap: _Gap, power: Floats, itself: int | None
) -> tuple[Table, Figure]:
    scale = 100.0 if effects.in_points else 1.0
    unit = "points" if effects.in_points else "the target's unit"
    shown = [int(i) for i in np.argsort(-np.abs(gap.part), kind="stable")[:_SHOWN]]
    names = [effects.names[i] for i in shown]
    rows = tuple(
        (
            f"{effects.names[i]} (itself)" if i == itself else effects.names[i],
            scale * float(gap.part[i]),
            (scale * float(gap.low[i]), scale * float(gap.high[i])),
            None if not np.isfinite(power[i]) else float(power[i]),
        )
        for i in shown
    )
    table = Table(
        f"What carries the difference between {group} and the others",
        (
            Column("column", "text"),
            Column(f"adds, {unit}"),
            Column("simultaneous 95 % interval", "interval"),
            Column(f"AUC for {group}", help="How well the column alone tells the group from the others."),
        ),
        rows,
        note=f"All columns together: {amount(effects, gap.total, signed=True)}. {effects.how}",
    )
    figure = Figure(
        "intervals",
        f"What carries the difference between {group} and the others",
        "column",
        f"part of the difference in the mean answer, {unit}",
        (
            Series(
                attribute,
                tuple(names),
                tuple(row[1] for row in rows),
                tuple(row[2][0] for row in rows),
                tuple(row[2][1] for row in rows),
            ),
        ),
        (Line("no part in it", 0.0),),
        alt=f"The largest part is that of {names[0]}: {amount(effects, gap.part[shown[0]], signed=True)} of "
        f"{amount(effects, gap.total, signed=True)}.",
    )
    return table, figure


def _share_alone(effects: Effects, attribute: str, finding_id: str, itself: int | None) -> Finding:
    """Return what share of all effects the attribute itself has: with several classes there is no one gap."""
    if itself is None:
        return Finding(
            id=finding_id,
            statement=f"{attribute} is no feature of the model, so that it has no effect of its own.",
            reason="Whether columns that tell it drive answers apart is looked into for two classes and for numbers.",
            n=len(effects.rows),
            **COMMON,
        )
    share = float(profile(effects.sizes)[itself])
    return Finding(
        id=finding_id,
        statement=f"{attribute} is a feature of the model and has {percent(share)} of all effects.",
        severity="note",
        reason="Whether it drives answers apart is looked into for two classes and for numbers.",
        value=share,
        n=len(effects.rows),
        **COMMON,
    )
