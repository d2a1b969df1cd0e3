"""Answers then and now, whether they are a model's or the true ones: for all rows, and within each sensitive group.

What the checks of score drift and label drift have in common. A binary answer is compared by its share, one of several
classes by the least share of rows that changed class, a number by the largest change in the share of rows at or below
any value; each with the intervals of `aboveboard.auditing.two_samples`.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.changes import bounds, judged, side
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.two_samples import LevelShift, NumberShift, RateChange, TwoSamples
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["Answers", "findings", "too_few"]

_SHOWN: Final = 40
_BINS: Final = 20
_FEWEST: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What is compared.

    Parameters
    ----------
    check, key : str
        The finding on all rows is ``<check>/<key>``, and ``<check>.<limit>`` its limit.
    limit : str
    what : str
        ``"the share predicted 'yes'"``, ``"the predicted classes"``, ``"the scores"``: in the middle of a sentence.
    new, old : ndarray
        Booleans, class codes from 0, or numbers.
    classes : tuple of str
        Names of the codes; empty for the others.
    """

    check: str
    key: str
    limit: str
    what: str
    new: NDArray[Any]
    old: NDArray[Any]
    classes: tuple[str, ...] = ()

    @classmethod
    def of_classes(cls, check: str, what: str, subject: Subject, new: NDArray[Any], old: NDArray[Any]) -> "Answers":
        """Compare class codes; -1, a class that the audited data do not know, gets a name of its own."""
        unknown = bool((old < 0).any())
        names = (*subject.class_names, *(["(a class that is gone)"] if unknown else []))
        codes = np.where(old < 0, len(names) - 1, old)
        return cls(check=check, key="classes", limit="moved", what=what, new=new, old=codes, classes=names)

    @property
    def share(self) -> bool:
        return self.new.dtype == np.bool_

    @property
    def common(self) -> dict[str, Any]:
        return {"check": self.check, "area": "drift"}

    def change(
        self, samples: TwoSamples, new: NDArray[Any], old: NDArray[Any], family: int
    ) -> RateChange | LevelShift | NumberShift:
        if self.share:
            return samples.rate(new, old, family=family)
        if self.classes:
            return samples.levels(new, old, len(self.classes), family=family)
        return samples.numbers(new.astype(np.float64), old.astype(np.float64), family=family)

    def values(self, change: RateChange | LevelShift | NumberShift, effect: str = "") -> str:
        """Return the change in words."""
        if isinstance(change, RateChange):
            return (
                f"{self.what} went from {percent(change.old)} to {percent(change.new)}, a change of "
                f"{100 * change.value:.1f} points {bounds(change.interval, '')}"
            )
        return f"{self.what} changed in {percent(change.value)} of the rows {bounds(change.interval)}{effect}"


def too_few(answers: Answers, samples: TwoSamples) -> list[Finding]:
    """Return the finding that nothing can be said, where one of the samples is too small; else nothing."""
    if samples.smaller >= _FEWEST:
        return []
    return [
        Finding(
            id=f"{answers.check}/{answers.key}",
            statement=f"There are too few rows, now or then, to tell whether {answers.what} changed.",
            status="inconclusive",
            reason=f"Below {_FEWEST} independent rows nothing is judged.",
            **answers.common,
        )
    ]


def findings(subject: Subject, answers: Answers) -> list[Finding]:
    """Compare all rows, and then each group of each sensitive column by itself.

    Returns
    -------
    list of Finding
        ``<check>/<key>``, and for each sensitive column of both tables ``<check>/<key>/<column>``.
    """
    assert subject.reference is not None
    samples = TwoSamples.of(subject)
    few = too_few(answers, samples)
    if few:
        return few
    names = map(str, subject.reference.sensitive.columns)
    return [_overall(subject, answers, samples), *(_by_group(subject, answers, samples, name) for name in names)]


# --- all rows ---------------------------------------------------------------------------------------------------------


def _overall(subject: Subject, answers: Answers, samples: TwoSamples) -> Finding:
    change = answers.change(samples, answers.new, answers.old, 1)
    words = ""
    evidence: tuple[Table | Figure, ...] = ()
    if isinstance(change, LevelShift):
        words, evidence = _class_evidence(subject, answers, change)
    elif isinstance(change, NumberShift):
        evidence = _distribution(subject, answers, samples, change)
    statement = answers.values(change, words)
    return Finding(
        id=f"{answers.check}/{answers.key}",
        statement=f"{statement[0].upper()}{statement[1:]}.",
        value=change.value,
        n=len(subject),
        evidence=evidence,
        **judged(subject, change.interval, f"{answers.check}.{answers.limit}"),
        **answers.common,
    )


def _class_evidence(subject: Subject, answers: Answers, change: LevelShift) -> tuple[str, tuple[Table | Figure, ...]]:
    size = len(answers.classes)
    counts = [np.bincount(part, minlength=size) for part in (answers.new, answers.old)]
    hidden = withhold_parts(np.column_stack(counts), subject.min_cell).all
    gap = change.new - change.old
    order = np.argsort(-np.abs(np.where(hidden, 0.0, gap)), kind="stable")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (answers.classes[c], *((SUPPRESSED,) * 3 if hidden[c] else (change.old[c], change.new[c], gap[c])))
        for c in order[:_SHOWN]
    )
    columns = (
        Column("class", "text"),
        Column("share then", "percent"),
        Column("share now", "percent"),
        Column("change", "percent"),
    )
    most = int(order[0])
    words = (
        ""
        if hidden[most] or gap[most] == 0
        else f"; {answers.classes[most]!r} went from {percent(float(change.old[most]))} to "
        f"{percent(float(change.new[most]))}"
    )
    return words, (Table("Classes then and now", columns, rows),)


def _distribution(
    subject: Subject, answers: Answers, samples: TwoSamples, change: NumberShift
) -> tuple[Table | Figure, ...]:
    """Return where the numbers lie, then and now, and their means."""
    both = np.concatenate([answers.new, answers.old]).astype(np.float64)
    low, high = float(np.quantile(both, 0.005)), float(np.quantile(both, 0.995))
    if both.min() >= 0 and both.max() <= 1:
        low, high = 0.0, 1.0
    if not high > low:
        return ()
    edges = np.linspace(low, high, _BINS + 1)
    codes = [
        np.clip(np.searchsorted(edges, part, side="right") - 1, 0, _BINS - 1) for part in (answers.new, answers.old)
    ]
    counts = np.column_stack([np.bincount(part, minlength=_BINS) for part in codes])
    hidden = withhold_parts(counts, subject.min_cell).all
    shares = samples.shares(codes[0], codes[1], _BINS)
    middle = tuple(float(x) for x in (edges[1:] + edges[:-1]) / 2)
    series = tuple(
        Series(name, middle, tuple(None if gone else float(y) for gone, y in zip(hidden, share, strict=True)))
        for name, share in (("now", shares[0]), ("then", shares[1]))
    )
    what = answers.what.removeprefix("the ")
    figure = Figure(
        "lines",
        f"{what.capitalize()}, then and now",
        what,
        "share of rows",
        series,
        alt=f"The distributions lie {100 * change.value:.1f} % of the rows apart.",
        percent=True,
    )
    means = samples.means(answers.new.astype(np.float64), answers.old.astype(np.float64))
    spread = float(np.std(answers.old))
    rows: tuple[tuple[Cell, ...], ...] = (
        ("mean then", means[1]),
        ("mean now", means[0]),
        ("change in standard deviations of then", (means[0] - means[1]) / spread if spread > 0 else None),
    )
    return figure, Table("Means", (Column("what", "text"), Column("value")), rows)


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    n: int
    change: RateChange | LevelShift | NumberShift


def _by_group(subject: Subject, answers: Answers, samples: TwoSamples, name: str) -> Finding:
    finding_id = f"{answers.check}/{answers.key}/{name}"
    groups, left = _groups(subject, answers, samples, name)
    if not groups:
        return Finding(
            id=finding_id,
            statement=f"{name}: no group has enough rows, now and then, to tell whether {answers.what} changed in it.",
            status="inconclusive",
            n=len(subject),
            **answers.common,
        )
    limit = subject.limits[f"{answers.check}.{answers.limit}"].value
    groups.sort(key=lambda group: _rank(group.change, limit))
    worst = groups[0]
    more = sum(side(group.change.interval, limit) == "beyond" for group in groups) - 1
    statement = f"{name}: for {worst.name}, {answers.values(worst.change)}"
    statement += f", and likewise for {more} more of {len(groups)} groups." if more > 0 else "."
    return Finding(
        id=finding_id,
        statement=statement,
        value=worst.change.value,
        n=worst.n,
        evidence=(_group_table(answers, name, groups, left), _group_figure(answers, name, groups, limit)),
        **judged(subject, worst.change.interval, f"{answers.check}.{answers.limit}"),
        **answers.common,
    )


def _groups(subject: Subject, answers: Answers, samples: TwoSamples, name: str) -> tuple[list[_Group], int]:
    """Return the groups that can be compared, and how many cannot."""
    assert subject.reference is not None
    older: pd.Series[Any] = subject.reference.sensitive[name]
    names = [str(group) for group in older.cat.categories]
    place = {group: code for code, group in enumerate(names)}
    own = subject.sensitive[name]
    new = np.array([place[str(group)] for group in own.cat.categories])[own.cat.codes.to_numpy()]
    old = older.cat.codes.to_numpy()
    counts = np.column_stack([np.bincount(part, minlength=len(names)) for part in (new, old)])
    hidden = withhold_parts(counts, subject.min_cell).all | (counts.min(axis=1) < max(subject.min_cell, _FEWEST))
    kept = np.flatnonzero(~hidden)
    found = []
    for code in kept:
        now, then = new == code, old == code
        part = samples.among(now, then)
        if part.usable and part.smaller >= _FEWEST:
            change = answers.change(part, answers.new[now], answers.old[then], max(len(kept), 1))
            found.append(_Group(names[code], int(now.sum()), change))
    return found, int((counts.sum(axis=1) > 0).sum()) - len(found)


def _rank(change: RateChange | LevelShift | NumberShift, limit: float) -> tuple[int, float]:
    """Sort key: beyond the limit first, by how far for certain; then what cannot be told; then the rest."""
    where = side(change.interval, limit)
    if where == "beyond":
        return 0, -max(change.interval.low, -change.interval.high)
    return (1 if where == "open" else 2), -abs(change.value)


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def _group_table(answers: Answers, name: str, groups: list[_Group], left: int) -> Table:
    columns = [Column("group", "text"), Column("n", "count", "rows now")]
    if answers.share:
        columns += [Column("then", "percent"), Column("now", "percent")]
    columns += [Column("change", "percent"), Column("95 % interval", "interval")]
    rows = []
    for group in groups[:_SHOWN]:
        change = group.change
        both = (change.old, change.new) if isinstance(change, RateChange) else ()
        rows.append((group.name, group.n, *both, change.value, _ends(change.interval)))
    note = "The ends towards no change hold for all groups at once." if len(groups) > 1 else ""
    if left:
        note += f" {left} groups with too few rows, now or then, are left out."
    return Table(f"Change by {name}", tuple(columns), tuple(rows), note=note.strip())


def _group_figure(answers: Answers, name: str, groups: list[_Group], limit: float) -> Figure:
    shown = groups[:_SHOWN]
    series = Series(
        "change",
        tuple(group.name for group in shown),
        tuple(group.change.value for group in shown),
        tuple(group.change.interval.low for group in shown),
        tuple(group.change.interval.high for group in shown),
    )
    lines = (Line("no change", 0.0), Line("limit", limit), *((Line("limit", -limit),) if answers.share else ()))
    return Figure(
        "intervals",
        f"Change of {answers.what} by {name}",
        name,
        "change",
        (series,),
        lines,
        alt=f"It changed most for {shown[0].name}: {100 * shown[0].change.value:.1f} %.",
        percent=True,
    )
