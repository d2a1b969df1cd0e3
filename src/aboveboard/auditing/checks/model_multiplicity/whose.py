"""Whose decisions differ: a rule about rows that is found on one half of them, and shares of the other half.

No single row is ever shown: a part of the rule holds at least 50 rows where it is found, and no figure is on fewer than
the smallest cell.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.model_multiplicity.comparison import Comparison
from aboveboard.auditing.checks.model_multiplicity.differences import COMMON
from aboveboard.auditing.columns import coded
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Finding, Table

__all__ = ["arbitrary", "halves"]

_LEAST_ROWS: Final = 400
_LEAST_DIFFERING: Final = 40
_LEAF: Final = 50
_DEPTH: Final = 3
_MOST_LEVELS: Final = 12
_BANDS: Final = 10

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def arbitrary(subject: Subject, pair: Comparison, random_state: int) -> Finding:
    """Tell what kind of rows are decided differently."""
    common: dict[str, Any] = {"id": "model_multiplicity/arbitrary", **COMMON}
    count = int(pair.differ.sum())
    if len(subject) < _LEAST_ROWS or count < _LEAST_DIFFERING:
        return Finding(
            statement="There are too few rows that are decided differently to say what they have in common.",
            severity="note",
            status="inconclusive",
            reason=f"At least {_LEAST_DIFFERING} such rows of at least {_LEAST_ROWS} are needed.",
            **common,
        )
    found, tried = halves(subject, random_state)
    parts = _rule(subject, pair.differ, found)
    overall = pair.rows.rate(pair.differ, tried)
    tables = [_table("Whose decisions differ", "rows with", parts, subject, pair, tried)]
    if subject.score is not None and subject.score.ndim == 1:
        tables.append(_table("By the score of this model", "score", _bands(subject.score), subject, pair, tried))
    named = [(text, pair.rows.rate(pair.differ, mask & tried), int((mask & tried).sum())) for text, mask in parts]
    named = [entry for entry in named if entry[2] >= max(_LEAF, subject.min_cell)]
    text, rate, _ = max(named, key=lambda entry: entry[1].interval.low)
    clear = rate.interval.low > overall.interval.high
    return Finding(
        statement=(
            f"Decisions differ most often for rows with {text}: {percent(rate.value)} of them, and "
            f"{percent(overall.value)} of all."
            if clear
            else f"No simple rule tells whose decisions differ from the {percent(overall.value)} of all rows."
        ),
        severity="note" if clear else "ok",
        reason="The rule was found on one half of the rows, and the shares are of the other half.",
        value=rate.value,
        interval=rate.interval,
        n=int(tried.sum()),
        evidence=tuple(tables),
        **common,
    )


def halves(subject: Subject, random_state: int) -> tuple[Mask, Mask]:
    """Return two random halves of the rows; rows of one cluster stay together."""
    rng = np.random.default_rng(random_state)
    unit = np.arange(len(subject)) if subject.cluster is None else np.unique(subject.cluster, return_inverse=True)[1]
    first = (rng.permutation(int(unit.max()) + 1) % 2 == 0)[unit]
    return first, ~first


def _rule(subject: Subject, differ: Mask, found: Mask) -> list[tuple[str, Mask]]:
    """Return the leaves of a small tree that is grown on the rows of `found`, in words, with the rows of each."""
    from sklearn.tree import DecisionTreeClassifier

    columns, names, whole = _columns(subject)
    everything = [("anything", np.ones(len(subject), dtype=bool))]
    if not columns or not differ[found].any() or differ[found].all():
        return everything
    X = np.column_stack(columns)
    least = max(_LEAF, 2 * subject.min_cell, int(found.sum()) // 100)
    weight = None if subject.weight is None else subject.weight[found]
    tree = DecisionTreeClassifier(max_depth=_DEPTH, min_samples_leaf=least, random_state=0)
    grown = tree.fit(X[found], differ[found], sample_weight=weight).tree_
    leaves: list[tuple[str, Mask]] = []

    def descend(node: int, words: tuple[str, ...], rows: Mask) -> None:
        column = int(grown.feature[node])
        if column < 0:
            leaves.append((" and ".join(words) or "anything", rows))
            return
        cut = 0.5 if whole[column] else float(f"{grown.threshold[node]:.4g}")
        below = X[:, column] <= cut
        low, high = names[column] if whole[column] else (f"{names[column][0]} {cut:g}", f"{names[column][1]} {cut:g}")
        descend(int(grown.children_left[node]), (*words, low), rows & below)
        descend(int(grown.children_right[node]), (*words, high), rows & ~below)

    descend(0, (), everything[0][1])
    return leaves


def _columns(subject: Subject) -> tuple[list[Floats], list[tuple[str, str]], list[bool]]:
    """Return features as numbers, in words below and above a cut, and whether they are only 0 and 1."""
    columns: list[Floats] = []
    names: list[tuple[str, str]] = []
    whole: list[bool] = []
    for name in subject.X.columns:
        column = coded(subject.X[name])
        if column.values is not None and column.kind in ("number", "boolean"):
            known = np.isfinite(column.values)
            if not known.any():
                continue
            middle = float(np.median(column.values[known]))
            columns.append(np.where(known, np.clip(column.values, -1e30, 1e30), middle))
            names.append((f"{name} up to", f"{name} above"))
            whole.append(False)
            if not known.all():
                columns.append((~known).astype(np.float64))
                names.append((f"{name} known", f"{name} missing"))
                whole.append(True)
        elif column.kind in ("category", "text"):
            counts = np.bincount(column.codes, minlength=column.levels)
            labels = [plain_label(value) for value in _levels(subject, str(name))] + ["missing"]
            for level in np.argsort(-counts, kind="stable")[:_MOST_LEVELS]:
                if 2 * subject.min_cell <= counts[level] < len(subject):
                    columns.append((column.codes == level).astype(np.float64))
                    names.append((f"{name} not {labels[level]}", f"{name} {labels[level]}"))
                    whole.append(True)
    return columns, names, whole


def _levels(subject: Subject, name: str) -> list[Any]:
    from aboveboard.auditing.columns import level_codes

    return level_codes(subject.X[name])[1]


def _bands(score: Floats) -> list[tuple[str, Mask]]:
    """Return tenths of the range of scores."""
    place = np.minimum((score * _BANDS).astype(int), _BANDS - 1)
    return [(f"{k / _BANDS:.1f} to {(k + 1) / _BANDS:.1f}", place == k) for k in range(_BANDS) if (place == k).any()]


def _table(
    title: str, what: str, parts: list[tuple[str, Mask]], subject: Subject, pair: Comparison, tried: Mask
) -> Table:
    """Return the share of rows that are decided differently in each part of the rows that were held out."""
    sizes = [int((mask & tried).sum()) for _, mask in parts]
    withheld = withhold_parts(sizes, subject.min_cell).all
    lines: list[tuple[Cell, ...]] = []
    for (text, mask), size, hidden in zip(parts, sizes, withheld, strict=True):
        if hidden or not size:
            lines.append((text, *(SUPPRESSED,) * 3) if size else (text, None, None, 0))
            continue
        rate = pair.rows.rate(pair.differ, mask & tried)
        lines.append((text, rate.value, (rate.interval.low, rate.interval.high), size))
    if what == "rows with":
        lines.sort(key=lambda line: -line[1] if isinstance(line[1], float) else 1.0)
    return Table(
        title,
        (
            Column(what, "text"),
            Column("decided differently", "percent"),
            Column("interval", "interval"),
            Column("n", "count"),
        ),
        tuple(lines),
        note="Of the half of the rows on which no rule was found. Intervals hold one by one, at 95 %.",
    )
