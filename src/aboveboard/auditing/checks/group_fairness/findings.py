"""What the numbers mean, in sentences, tables and figures."""

import math
from collections.abc import Sequence
from typing import Any, Final

from aboveboard.auditing.checks.group_fairness.families import Centre, Family, Member, Metric
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["family_findings", "left_out_finding"]

_COMMON: Final[dict[str, Any]] = {"check": "group_fairness", "area": "fairness"}
_EVERYBODY: Final = "everybody"
_MOST_NAMED: Final = 3  # groups that a statement names
_METHODS: Final = {
    "points": "Newcombe, max-|t|",
    "deviations": "studentised bootstrap, max-|t|",
    "relative": "studentised bootstrap, max-|t|",
}


def family_findings(subject: Subject, family: Family) -> list[Finding]:
    """Return the verdict on a family, then one finding for each group beyond the limit."""
    if len(family.partition.labels) < 2:
        return [_nothing_to_compare(family, f"{family.partition.name} has a single group.")]
    if family.hidden:
        return [_withheld_family(subject, family)]
    judged = [m for m in family.members if m.state not in ("absent", "alone", "reference")]
    if not judged:
        why = "There is only one group for which it exists."
        if all(m.state == "absent" for m in family.members):
            why = "It exists for no group."
        return [_nothing_to_compare(family, why)]
    return [_verdict(subject, family, judged), *(_beyond(subject, family, m) for m in judged if m.state == "beyond")]


def left_out_finding(left_out: Sequence[str]) -> Finding:
    """Return the finding that says what was not compared."""
    return Finding(
        id="group_fairness/not_compared",
        **_COMMON,
        statement="Some comparisons of groups were left out.",
        status="skipped",
        reason=" ".join(left_out),
    )


def _verdict(subject: Subject, family: Family, judged: list[Member]) -> Finding:
    metric, name = family.metric, family.partition.name
    beyond = [m for m in judged if m.state == "beyond"]
    unclear = [m for m in judged if m.state == "unclear"]
    limit = _amount(metric, family.limit)
    of = f"{metric.title} by {name}"
    shown = [m for m in judged if m.shown and math.isfinite(m.deviation_low)]
    farthest = max(shown, key=lambda m: (m.state == "beyond", abs(m.deviation)), default=None)
    if beyond:
        statement = f"{of}: {_beyond_text(family, beyond, farthest, len(judged))}"
    elif unclear:
        statement = (
            f"{of}: it cannot be told whether {_names(unclear)} "
            f"{'lies' if len(unclear) == 1 else 'lie'} within {limit} of {_centre(family)}."
        )
    else:
        both = "both groups" if len(judged) == 2 and not judged[0].klass else f"all {len(judged)} {_things(family)}"
        both = "the other group" if len(judged) == 1 else both
        statement = f"{of}: {both} {'lies' if len(judged) == 1 else 'lie'} within {limit} of {_centre(family)}."
    return Finding(
        id=_id(family),
        **_COMMON,
        statement=statement,
        severity="fail" if beyond else "note" if unclear else "ok",
        status="inconclusive" if unclear and not beyond else "ran",
        reason=_reason(subject, family, judged, None if beyond else farthest),
        value=farthest.deviation if farthest else None,
        interval=_interval(farthest, metric) if farthest else None,
        limit=family.limit,
        limit_source=subject.limits[f"group_fairness.{metric.name}"].source,
        n=family.n,
        evidence=(_table(subject, family), *_figures(family)),
        remedies=(metric.remedy,) if beyond and metric.remedy and subject.task == "binary" else (),
    )


def _beyond_text(family: Family, beyond: list[Member], farthest: Member | None, judged: int) -> str:
    limit = _amount(family.metric, family.limit)
    count = f"{len(beyond)} of {judged} {_things(family)} {'lies' if len(beyond) == 1 else 'lie'}"
    if farthest is None or farthest.state != "beyond":
        return f"{count} more than {limit} from {_centre(family)} ({_names(beyond)})."
    way = "above" if farthest.deviation > 0 else "below"
    text = f"{_named(farthest)} lies {_amount(family.metric, abs(farthest.deviation))} {way} {_centre(family)}"
    return f"{text} (limit {limit})." if len(beyond) == 1 else f"{text} (limit {limit}); {count} beyond the limit."


def _beyond(subject: Subject, family: Family, member: Member) -> Finding:
    metric = family.metric
    klass = f" [{member.klass}]" if member.klass else ""
    noun = metric.noun.format(positive=_positive(subject, member.klass))
    way = "higher" if member.deviation > 0 else "lower"
    common: dict[str, Any] = {
        "id": f"group_fairness/{metric.name}/{member.group}{klass}",
        **_COMMON,
        "severity": "fail",
        "limit": family.limit,
        "limit_source": subject.limits[f"group_fairness.{metric.name}"].source,
        "group": member.group,
        "remedies": (metric.remedy,) if metric.remedy and subject.task == "binary" else (),
    }
    if not member.shown:
        return Finding(
            statement=f"{member.group}: {noun} is {way} than for {_centre(family)} by more than the limit of "
            f"{_amount(metric, family.limit)}.",
            reason=f"Its figures are withheld: they would give away a group of fewer than {subject.min_cell} people.",
            **common,
        )
    centre = next(c for c in family.centres if c.klass == member.klass)
    span = _span(metric, member.deviation_low, member.deviation_high)
    return Finding(
        statement=(
            f"{member.group}: {noun} is {_amount(metric, abs(member.deviation))} {way} than for {_centre(family)} "
            f"(95 % interval {span}; limit {_amount(metric, family.limit)})."
        ),
        reason=(
            f"{_value(metric, member.value)} in the group, {_value(metric, centre.value)} for {_centre(family)}. "
            "The interval holds for all groups at once and lies wholly beyond the limit."
        ),
        value=member.deviation,
        interval=_interval(member, metric),
        n=member.n,
        **common,
    )


def _nothing_to_compare(family: Family, why: str) -> Finding:
    return Finding(
        id=_id(family),
        **_COMMON,
        statement=f"{family.metric.title} by {family.partition.name}: there is nothing to compare.",
        status="not_applicable",
        reason=why,
    )


def _withheld_family(subject: Subject, family: Family) -> Finding:
    return Finding(
        id=_id(family),
        **_COMMON,
        statement=f"{family.metric.title} by {family.partition.name}: nothing may be shown.",
        severity="note",
        status="inconclusive",
        reason=family.hidden,
        limit=family.limit,
        limit_source=subject.limits[f"group_fairness.{family.metric.name}"].source,
    )


def _reason(subject: Subject, family: Family, judged: list[Member], farthest: Member | None) -> str:
    parts = []
    if farthest is not None:
        parts.append(
            f"Farthest: {_named(farthest)}, {_signed(family.metric, farthest.deviation)} "
            f"({_span(family.metric, farthest.deviation_low, farthest.deviation_high)})."
        )
    unclear = [m for m in judged if m.state == "unclear"]
    too_wide = [m for m in unclear if m.withheld != "small" and math.isfinite(m.deviation_low)]
    spreadless = [m for m in unclear if m.withheld != "small" and not math.isfinite(m.deviation_low)]
    if too_wide:
        parts.append(f"Too close to the limit for so few people: {_names(too_wide)}.")
    if spreadless:
        parts.append(f"Too few rows, or all alike, so that their spread is not known: {_names(spreadless)}.")
    small = [m for m in family.members if m.withheld == "small"]
    if small:
        parts.append(f"Withheld, since a figure would describe fewer than {subject.min_cell} people: {_names(small)}.")
    also = [m for m in family.members if m.withheld == "complementary"]
    if also:
        parts.append(f"Judged but not shown, because their figures would give those away: {_names(also)}.")
    absent = [m for m in family.members if m.state == "absent"]
    if absent:
        base = family.metric.base.format(positive=_positive(subject, absent[0].klass))
        parts.append(f"Does not exist for {_names(absent)}: nobody there is among {base}.")
    return " ".join(parts)


def _table(subject: Subject, family: Family) -> Table:
    metric = family.metric
    kind: Any = "number" if metric.unit == "deviations" else "percent"
    classes = any(member.klass for member in family.members)
    base = metric.base.format(positive=_positive(subject, ""))
    columns = (
        Column("Group", "text"),
        *((Column("Class", "text"),) if classes else ()),
        Column("n", "count", f"rows: {base}"),
        Column(metric.title, kind),
        Column("95 % interval", "interval", "of the group by itself"),
        Column("Difference", kind, f"from {_centre(family)}"),
        Column("95 % interval of the difference", "interval", "holds for all groups at once"),
        Column("Verdict", "text"),
    )
    rows: list[tuple[Cell, ...]] = []
    for centre in family.centres:
        rows += [_row(member, classes) for member in family.members if member.klass == centre.klass]
        if family.partition.reference is None:
            rows.append(_everybody_row(centre, classes))
    return Table(
        title=f"{metric.title} by {family.partition.name}",
        columns=columns,
        rows=tuple(rows),
        note=" ".join(filter(None, (_spread_text(family), _scale_text(family)))),
    )


_VERDICTS: Final = {
    "beyond": "beyond the limit",
    "within": "within the limit",
    "unclear": "cannot be told",
    "absent": "does not exist",
    "alone": "nothing to compare with",
    "reference": "reference group",
}


def _row(member: Member, classes: bool) -> tuple[Cell, ...]:
    head: tuple[Cell, ...] = (member.group, *((member.klass,) if classes else ()))
    if member.withheld == "small":
        return (*head, *[SUPPRESSED] * 5, "withheld")
    if member.withheld:
        return (*head, *[SUPPRESSED] * 5, f"{_VERDICTS[member.state]}, withheld")
    return (
        *head,
        member.n,
        _number(member.value),
        _pair(member.low, member.high),
        _number(member.deviation),
        _pair(member.deviation_low, member.deviation_high),
        _VERDICTS[member.state],
    )


def _everybody_row(centre: Centre, classes: bool) -> tuple[Cell, ...]:
    head: tuple[Cell, ...] = (_EVERYBODY, *((centre.klass,) if classes else ()))
    return (*head, centre.n, _number(centre.value), _pair(centre.low, centre.high), None, None, "")


def _figures(family: Family) -> tuple[Figure, ...]:
    metric = family.metric
    shown = [m for m in family.members if m.shown and math.isfinite(m.deviation_low)]
    if not shown:
        return ()
    series = []
    for klass in dict.fromkeys(m.klass for m in shown):
        own = [m for m in shown if m.klass == klass]
        series.append(
            Series(
                klass or "difference",
                tuple(m.group for m in own),
                tuple(m.deviation for m in own),
                tuple(m.deviation_low for m in own),
                tuple(m.deviation_high for m in own),
            )
        )
    limit = _amount(metric, family.limit)
    return (
        Figure(
            kind="intervals",
            title=f"{metric.title} by {family.partition.name}: difference from {_centre(family)}",
            x_label=family.partition.name,
            y_label="difference" if metric.unit != "deviations" else "difference (standard deviations of the target)",
            series=tuple(series),
            lines=(
                Line(f"limit, {limit} below", -family.limit),
                Line(_centre(family), 0.0),
                Line(f"limit, {limit} above", family.limit),
            ),
            alt=(
                f"{len(shown)} {_things(family)} with 95 % intervals that hold at once; "
                f"{sum(m.state == 'beyond' for m in shown)} wholly beyond the limit of {limit}."
            ),
            percent=metric.unit != "deviations",
        ),
    )


def _spread_text(family: Family) -> str:
    if family.spread is None:
        return ""
    width, low, high = family.spread
    text = f"Largest minus smallest shown: {_amount(family.metric, width)}"
    if math.isfinite(low):
        text += f" (95 % bootstrap interval {_span(family.metric, low, high)})"
    return text + "; not judged, because it grows with the number of groups."


def _scale_text(family: Family) -> str:
    return f"1 is {family.scale}." if family.scale else ""


def _interval(member: Member, metric: Metric) -> Interval:
    return Interval(member.deviation_low, member.deviation_high, 0.95, _METHODS[metric.unit], simultaneous=True)


def _id(family: Family) -> str:
    return f"group_fairness/{family.metric.name}/{family.partition.name}"


def _centre(family: Family) -> str:
    at = family.partition.reference
    return _EVERYBODY if at is None else family.partition.labels[at]


def _positive(subject: Subject, klass: str) -> str:
    name = klass or subject.positive
    return repr(name) if name else "of the class"


def _named(member: Member) -> str:
    return f"{member.group} [{member.klass}]" if member.klass else member.group


def _names(members: Sequence[Member]) -> str:
    names = [_named(m) for m in members[:_MOST_NAMED]]
    rest = len(members) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _things(family: Family) -> str:
    return "groups and classes" if any(m.klass for m in family.members) else "groups"


def _amount(metric: Metric, value: float) -> str:
    if metric.unit == "points":
        return f"{100 * value:.1f} points".replace(".0 points", " points")
    if metric.unit == "relative":
        return f"{100 * value:.1f} %".replace(".0 %", " %")
    return f"{value:.2g} standard deviations"


def _value(metric: Metric, value: float) -> str:
    return f"{value:.3g}" if metric.unit == "deviations" else f"{100 * value:.1f} %"


def _signed(metric: Metric, value: float) -> str:
    return ("+" if value > 0 else "-") + _amount(metric, abs(value))


def _span(metric: Metric, low: float, high: float) -> str:
    if metric.unit == "deviations":
        return f"{low:.2g} to {high:.2g}"
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _pair(low: float, high: float) -> tuple[float, float] | None:
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
