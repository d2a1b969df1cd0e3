"""Are the models equally good, how many decisions differ, and for which groups?"""

from typing import Any, Final

import numpy as np

from aboveboard._stats.intervals import critical_z, newcombe
from aboveboard.auditing.checks.model_multiplicity.comparison import Comparison
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["COMMON", "by_group", "differing", "equally_good"]

COMMON: Final[dict[str, Any]] = {"check": "model_multiplicity", "area": "uncertainty"}
_MOST_PAIRS: Final = 12
_EQUALLY: Final = {
    "equal": "are equally good",
    "different": "are not equally good",
    "unclear": "may or may not be equally good",
}


def equally_good(subject: Subject, pair: Comparison) -> Finding:
    """Tell whether the models are equally good, by paired differences."""
    limit = subject.limits["model_multiplicity.margin"]
    measures = [("accuracy", pair.accuracy), *([] if pair.brier is None else [("Brier score", pair.brier)])]
    accuracy = pair.accuracy
    reasons = {
        "equal": f"Every interval of a difference lies within {limit.value:g}.",
        "different": f"An interval of a difference lies beyond {limit.value:g}: to change models is to change quality.",
        "unclear": f"An interval of a difference includes {limit.value:g}: there are too few rows to tell.",
    }
    table = Table(
        "How good the two models are, on the same rows",
        (
            Column("measure", "text"),
            Column("this model"),
            Column("the other"),
            Column("difference"),
            Column("interval", "interval"),
            Column("p-value", help="That there is no difference: McNemar's exact test for accuracy."),
        ),
        tuple(
            (name, d.first, d.second, d.difference, (d.interval.low, d.interval.high), d.p_value)
            for name, d in measures
        ),
        note="The Brier score is the mean squared distance of the probabilities to the truth: lower is better.",
    )
    return Finding(
        id="model_multiplicity/equally_good",
        statement=(
            f"The two models {_EQUALLY[pair.verdict]}: this one has an accuracy of {percent(accuracy.first)} and the "
            f"other of {percent(accuracy.second)}, a difference of {100 * accuracy.difference:.1f} points (95 % "
            f"interval {100 * accuracy.interval.low:.1f} to {100 * accuracy.interval.high:.1f})."
        ),
        severity="ok" if pair.verdict == "equal" else "note",
        status="inconclusive" if pair.verdict == "unclear" else "ran",
        reason=reasons[pair.verdict],
        value=accuracy.difference,
        interval=accuracy.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(table,),
        **COMMON,
    )


def differing(subject: Subject, pair: Comparison) -> Finding:
    """Tell for how many rows the models decide differently."""
    limit = subject.limits["model_multiplicity.decisions"]
    rate = pair.rows.rate(pair.differ)
    low, high = rate.interval.low, rate.interval.high
    severity, status, verdict = "ok", "ran", f"The whole interval lies below {percent(limit.value)}."
    if low > limit.value:
        severity = "warn" if pair.verdict == "equal" else "note"
        verdict = {
            "equal": "They are equally good, so these decisions hang on which of them somebody chose.",
            "different": "They are not equally good, so that the better one may have reasons.",
            "unclear": "Whether they are equally good is not clear from these rows.",
        }[pair.verdict]
    elif high > limit.value:
        severity, status = "note", "inconclusive"
        verdict = f"The interval includes {percent(limit.value)}: there are too few rows to tell."
    return Finding(
        id="model_multiplicity/decisions",
        statement=(
            f"The other model would decide otherwise about {percent(rate.value)} of the rows"
            f"{interval_text(rate.interval, as_percent=True)}."
        ),
        severity=severity,  # type: ignore[arg-type]
        status=status,  # type: ignore[arg-type]
        reason=verdict,
        value=rate.value,
        interval=rate.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(_pairs(subject, pair),),
        remedies=("ReDCal",) if low > limit.value and pair.brier is not None else (),
        **COMMON,
    )


def _pairs(subject: Subject, pair: Comparison) -> Table:
    """Return how often each decision of the one meets each of the other; small counts are withheld."""
    assert subject.other is not None
    count = len(subject.classes)
    cells = subject.prediction * count + subject.other.prediction
    found = np.flatnonzero(np.bincount(cells[pair.differ], minlength=count * count))
    sizes = np.bincount(cells, minlength=count * count)[found]
    order = found[np.argsort(-sizes, kind="stable")]
    entries = [(subject.class_names[k // count], subject.class_names[k % count], cells == k) for k in order]
    rest = np.isin(cells, order[_MOST_PAIRS:])
    entries = entries[:_MOST_PAIRS] + ([("others", "others", rest)] if rest.any() else [])
    entries.append(("the same", "the same", ~pair.differ))
    withheld = withhold_parts([int(mask.sum()) for *_, mask in entries], subject.min_cell).all
    lines: list[tuple[Cell, ...]] = []
    for (one, other, mask), hidden in zip(entries, withheld, strict=True):
        rate = pair.rows.rate(mask)
        shown = (rate.value, (rate.interval.low, rate.interval.high), int(mask.sum()))
        lines.append((one, other, *((SUPPRESSED,) * 3 if hidden else shown)))
    return Table(
        "What the two models decide",
        (
            Column("this model", "text"),
            Column("the other", "text"),
            Column("share", "percent"),
            Column("interval", "interval"),
            Column("n", "count"),
        ),
        tuple(lines),
        note="Intervals hold one by one, at 95 %.",
    )


def by_group(subject: Subject, pair: Comparison, name: str) -> Finding:
    """Tell whether decisions differ more often for some group than for all others."""
    column = subject.sensitive[name].cat
    codes = column.codes.to_numpy()
    groups = [str(group) for group in column.categories]
    sizes = np.bincount(codes, minlength=len(groups))
    occurring = np.flatnonzero(sizes)
    hidden = dict(zip(occurring, withhold_parts(sizes[occurring], subject.min_cell).all, strict=True))
    shown = [g for g in occurring if not hidden[g]]
    common: dict[str, Any] = {"id": f"model_multiplicity/by_group/{name}", **COMMON}
    if len(shown) < 2:
        return Finding(
            statement=f"{name}: there are not two groups with enough rows to compare.",
            severity="note",
            status="inconclusive",
            reason=f"No figure is shown on fewer than {subject.min_cell:,} rows.",
            **common,
        )
    z = critical_z(1.0 - 0.05 / len(shown))
    rates = {g: pair.rows.rate(pair.differ, codes == g, z=z) for g in shown}
    others = {g: pair.rows.rate(pair.differ, codes != g, z=z) for g in shown}
    gaps = {
        g: tuple(
            float(end)
            for end in newcombe(
                rates[g].value, max(rates[g].effective_n, 1e-9), others[g].value, max(others[g].effective_n, 1e-9), z=z
            )
        )
        for g in shown
        if np.isfinite(rates[g].value) and np.isfinite(others[g].value)
    }
    limit = subject.limits["model_multiplicity.group_gap"]
    worst = max(gaps, key=lambda g: gaps[g][0])
    low, high = gaps[worst]
    beyond, within = low > limit.value, max(end for _, end in gaps.values()) <= limit.value
    gap = rates[worst].value - others[worst].value
    severity: Severity = "ok" if within else "warn" if beyond and pair.verdict == "equal" else "note"
    reason = f"No group's decisions differ more often than those of all others by more than {percent(limit.value)}."
    if beyond:
        reason = f"The whole interval of the difference lies beyond {percent(limit.value)}."
    elif not within:
        reason = f"An interval includes {percent(limit.value)}: there are too few rows to tell."
    return Finding(
        statement=(
            f"{name}: decisions about {groups[worst]} differ in {percent(rates[worst].value)} of the rows, those about "
            f"all others in {percent(others[worst].value)}."
        ),
        severity=severity,
        status="ran" if beyond or within else "inconclusive",
        reason=f"{reason} Intervals hold for all groups at once.",
        value=gap,
        interval=Interval(min(low, gap), max(high, gap), method="Newcombe, Bonferroni", simultaneous=True),
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(
            _group_table(name, groups, occurring, sizes, rates, gaps),
            _group_figure(name, groups, rates, pair.rows.rate(pair.differ).value),
        ),
        **common,
    )


def _group_table(name: str, groups: list[str], occurring: Any, sizes: Any, rates: Any, gaps: Any) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for g in occurring:
        if g not in gaps:
            lines.append((groups[g], *(SUPPRESSED,) * 4))
            continue
        interval = rates[g].interval
        lines.append((groups[g], rates[g].value, (interval.low, interval.high), gaps[g], int(sizes[g])))
    return Table(
        f"How often the two models decide differently, by {name}",
        (
            Column("group", "text"),
            Column("share", "percent"),
            Column("interval", "interval"),
            Column("difference to all others", "interval"),
            Column("n", "count"),
        ),
        tuple(lines),
        note="Intervals hold for all groups at once, at 95 %.",
    )


def _group_figure(name: str, groups: list[str], rates: Any, everybody: float) -> Figure:
    shown = list(rates)
    return Figure(
        "intervals",
        f"How often the two models decide differently, by {name}",
        name,
        "share of rows decided differently",
        (
            Series(
                "share",
                tuple(groups[g] for g in shown),
                tuple(rates[g].value for g in shown),
                tuple(rates[g].interval.low for g in shown),
                tuple(rates[g].interval.high for g in shown),
            ),
        ),
        (Line("everybody", everybody),),
        alt=f"Shares of rows on which two models decide differently, for {len(shown)} groups of {name}.",
        percent=True,
    )
