"""Recall and precision of each class, and where its rows go."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.performance.findings import COMMON, shown, shown_pair
from aboveboard.auditing.checks.performance.sums import PerformanceSums
from aboveboard.auditing.disclosure import withhold_crossed, withhold_parts
from aboveboard.auditing.estimates import Rate, interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import cell_rate
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Finding, Table

__all__ = ["classes_finding"]


def classes_finding(subject: Subject, sums: PerformanceSums) -> Finding:
    """Recall and precision of each class, and where its rows go."""
    entries: list[tuple[Cell, ...]] = []
    worst: tuple[float, str, Rate] | None = None
    withheld = withhold_parts(sums.table.sum(axis=1), subject.min_cell).all
    classes = np.eye(len(subject.classes), dtype=bool)
    for code, name in enumerate(subject.class_names):
        label, predicted = classes[code][:, None], classes[code][None, :]
        recall, precision = cell_rate(sums.cells, predicted, label), cell_rate(sums.cells, label, predicted)
        hide = bool(withheld[code])
        entries.append(
            (
                name,
                SUPPRESSED if hide else recall.n,
                SUPPRESSED if hide else shown(recall.value, recall.n, subject.min_cell),
                SUPPRESSED if hide else shown_pair(recall.interval, recall.n, subject.min_cell) if recall.n else None,
                SUPPRESSED if hide else shown(precision.value, precision.n, subject.min_cell),
                SUPPRESSED
                if hide
                else shown_pair(precision.interval, precision.n, subject.min_cell)
                if precision.n
                else None,
            )
        )
        if recall.n and not hide and (worst is None or recall.value < worst[0]):
            worst = (recall.value, name, recall)
    columns = (
        Column("class", "text"),
        Column("n", "count", "rows of the class"),
        Column("recall", "percent", "share of its rows that are found"),
        Column("95 % interval of recall", "interval"),
        Column("precision", "percent", "share of the predictions of it that are right"),
        Column("95 % interval of precision", "interval"),
    )
    tables = (Table("By class", columns, tuple(entries)), *_confusion(subject, sums))
    if worst is None:
        return Finding(
            id="performance/classes",
            statement=f"Every class has fewer than {subject.min_cell} rows.",
            status="inconclusive",
            evidence=tables,
            **COMMON,
        )
    value, name, recall = worst
    limit = subject.limits["performance.class_recall"]
    chance = 1 / len(subject.classes)
    ignored = recall.interval.high < limit.value * chance
    return Finding(
        id="performance/classes",
        statement=f"The class found least often is {name!r}: recall {percent(value)}"
        f"{interval_text(recall.interval, as_percent=True)}; chance would find {percent(chance)}.",
        severity="warn" if ignored else "ok",
        reason="A class is found less often than by guessing." if ignored else "No class is surely below the limit.",
        value=value,
        interval=recall.interval,
        limit=limit.value * chance,
        limit_source=limit.source,
        n=recall.n,
        evidence=tables,
        **COMMON,
    )


def _confusion(subject: Subject, sums: PerformanceSums) -> tuple[Table, ...]:
    """Return the confusion table as shares of each true class; small cells are withheld."""
    k = len(subject.classes)
    if k > 12:
        return ()
    counts, weights = sums.table, sums.cells.weight[0]
    hidden = _hidden_cells(counts, subject.min_cell)
    few = withhold_parts(counts.sum(axis=1), subject.min_cell).all
    hidden[few] = True
    total = weights.sum(axis=1)
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(subject.class_names):
        cells: list[Cell] = [
            SUPPRESSED if hidden[i, j] else float(weights[i, j] / total[i]) if total[i] > 0 else None for j in range(k)
        ]
        rows.append((name, SUPPRESSED if few[i] else int(counts[i].sum()), *cells))
    columns = (
        Column("true class", "text"),
        Column("n", "count"),
        *(Column(f"predicted {name}", "percent") for name in subject.class_names),
    )
    return (
        Table("Where the rows of each class go", columns, tuple(rows), note="Shares of the rows of the true class."),
    )


def _hidden_cells(counts: NDArray[Any], min_cell: int) -> NDArray[np.bool_]:
    """Return which cells off the diagonal are withheld; recall and precision give their sums by row and column away."""
    k = len(counts)
    hidden = np.zeros((k, k), dtype=bool)
    at = np.argwhere((counts > 0) & ~np.eye(k, dtype=bool))
    if len(at):
        sums = np.vstack([at[:, axis] == c for axis in (0, 1) for c in range(k)])
        hidden[tuple(at.T)] = withhold_crossed(counts[tuple(at.T)], sums, min_cell).all
    return hidden
