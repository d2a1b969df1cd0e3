"""Which columns move the answers, by how much, and whether other rows would say the same."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.reasons.effects import COMMON, Effects, amount, bonferroni, listed
from aboveboard.auditing.estimates import percent
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Column, Figure, Finding, Line, Series, Severity, Table

__all__ = ["importance_finding", "profile", "resampling_finding"]

Floats = NDArray[np.float64]

_SHOWN: Final = 15
_NAMED: Final = 3
_SPLITS: Final = 500
_AGREED: Final = 0.8


def importance_finding(subject: Subject, effects: Effects) -> Finding:
    """Return which columns move the answers; a warning where one alone decides."""
    n = len(effects.names)
    mean, low, high = effects.mean_interval(effects.sizes, family=n)
    total = mean.sum()
    if total == 0:
        return Finding(
            id="reasons/importance",
            statement=f"No column moves any of the answers about {len(effects.rows):,} rows.",
            severity="warn",
            reason="The model gives the same answer whatever is put in.",
            n=len(effects.rows),
            **COMMON,
        )
    order = [int(i) for i in np.argsort(-mean, kind="stable")]
    best, share = order[0], profile(effects.sizes)
    influence = (effects.sizes[:, best] - share[best] * effects.sizes.sum(axis=1)) / (len(effects.rows) * total)
    share_low, share_high = (float(np.clip(end, 0.0, 1.0)) for end in effects.linear_interval(share[best], influence))
    limit = subject.limits["reasons.dominance"]
    severity: Severity = "warn" if share_low > limit.value else "ok" if share_high < limit.value else "note"
    named = order[: min(_NAMED, n)]
    return Finding(
        id="reasons/importance",
        statement=(
            f"The answers are driven mainly by {listed([effects.names[i] for i in named])}: "
            f"{percent(share[named].sum())} of all effects. {effects.names[best]} moves an answer by "
            f"{amount(effects, mean[best])} on average (simultaneous 95 % interval "
            f"{amount(effects, max(low[best], 0.0))} to {amount(effects, high[best])}) and has "
            f"{percent(share[best])} of all effects."
        ),
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason={
            "ok": "No column decides alone.",
            "warn": "One column alone decides: it may give the answer away, or the model may have learned little else.",
            "note": "It cannot be told whether one column decides alone.",
        }[severity],
        value=float(share[best]),
        interval=bonferroni(share_low, share_high, 1),
        limit=limit.value,
        limit_source=limit.source,
        n=len(effects.rows),
        evidence=_evidence(effects, order, mean, np.maximum(low, 0.0), high, share),
        **COMMON,
    )


def resampling_finding(effects: Effects, random_state: int) -> Finding:
    """Return how far two halves of the explained rows agree on what matters."""
    rng = np.random.default_rng(random_state)
    sums = effects.by_lot(effects.sizes)
    agreed, same_first = [], 0
    for _ in range(_SPLITS):
        first = rng.permutation(effects.lots) % 2 == 0
        one, other = (_shares(sums[part].sum(axis=0)) for part in (first, ~first))
        agreed.append(1.0 - np.abs(one - other).sum() / 2.0)
        same_first += int(np.argmax(one) == np.argmax(other))
    value, worst = float(np.mean(agreed)), float(np.quantile(agreed, 0.05))
    enough = worst >= _AGREED
    return Finding(
        id="reasons/resampling",
        statement=(
            f"Two halves of the {len(effects.rows):,} explained rows, each with its own coalitions and rows to compare "
            f"with, agree on {percent(value)} of what matters, and on the first column in "
            f"{percent(same_first / _SPLITS)} of {_SPLITS} splits."
        ),
        severity="ok" if enough else "note",
        status="ran" if enough else "inconclusive",
        reason=(
            f"In 95 % of the splits they agree on {percent(worst)} or more."
            if enough
            else f"In one split of twenty they agree on less than {percent(worst)}: rely on the intervals, or explain "
            "more rows (--effort full)."
        ),
        value=value,
        n=len(effects.rows),
        **COMMON,
    )


def profile(sizes: Floats) -> Floats:
    """Return each column's share of all effects."""
    return _shares(sizes.sum(axis=0))


def _shares(sums: Floats) -> Floats:
    total = float(sums.sum())
    return sums / total if total > 0 else np.full(len(sums), 1.0 / len(sums))


def _evidence(
    effects: Effects, order: list[int], mean: Floats, low: Floats, high: Floats, share: Floats
) -> tuple[Table, Figure]:
    scale = 100.0 if effects.in_points else 1.0
    unit = "points" if effects.in_points else "the target's unit"
    signed = effects.values.mean(axis=0)
    shown = order[:_SHOWN]
    table = Table(
        "How far columns move an answer",
        (
            Column("column", "text"),
            Column(f"mean size, {unit}", help="The mean over rows of the size of the column's effect."),
            Column("simultaneous 95 % interval", "interval"),
            Column("share of all effects", "percent"),
            Column(f"mean effect, {unit}", help="Signed: positive where it mostly raises the answer."),
        ),
        tuple(
            (
                effects.names[i],
                scale * float(mean[i]),
                (scale * float(low[i]), scale * float(high[i])),
                float(share[i]),
                scale * float(signed[i]),
            )
            for i in shown
        ),
        note=effects.how + (f" The first {len(shown)} of {len(order)} columns." if len(shown) < len(order) else ""),
    )
    figure = Figure(
        "intervals",
        "How far columns move an answer",
        "column",
        f"mean size of the effect, {unit}",
        (
            Series(
                "mean size",
                tuple(effects.names[i] for i in shown),
                tuple(scale * float(mean[i]) for i in shown),
                tuple(scale * float(low[i]) for i in shown),
                tuple(scale * float(high[i]) for i in shown),
            ),
        ),
        (Line("no effect", 0.0),),
        alt=f"{effects.names[shown[0]]} moves an answer by {amount(effects, mean[shown[0]])} on average, "
        f"{effects.names[shown[-1]]} by {amount(effects, mean[shown[-1]])}.",
    )
    return table, figure
