"""The theory's answer as a finding of an audit: is the gap between groups made by training one model for all?"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from aboveboard.core import Column, Figure, Finding, Interval, Line, Series, Table
from aboveboard.fairness.ridge_bias._estimator import RidgeBiasTheory, WhatIf

__all__ = ["ridge_bias_audit"]

_COMMON: Final[dict[str, Any]] = {"check": "ridge_bias", "area": "fairness"}


def ridge_bias_audit(
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    name: str = "sensitive_features",
    sample_weight: Any = None,
    clusters: Any = None,
    train_fraction: float = 1.0,
    amplification: float = 1.05,
    smallest_gap: float = 0.01,
    limit_source: str = "",
    n_bootstrap: int = 100,
    random_state: Any = None,
) -> list[Finding]:
    """Say whether one linear model for all would widen the gap between groups, and what would close it.

    Parameters
    ----------
    X, y, sensitive_features, sample_weight, clusters, train_fraction, n_bootstrap, random_state :
        As for `RidgeBiasTheory`.
    name : str
        What the groups are called, for the finding.
    amplification : float, default=1.05
        The limit: above it the joint model widens the gap.
    smallest_gap : float, default=0.01
        A gap of fewer of the outcome's variance is no gap, whatever the ratio.
    limit_source : str

    Returns
    -------
    list of Finding
        One, ``ridge_bias/<name>``: ``note`` where the whole interval of the amplification lies above the limit, ``ok``
        where it lies below or the gap is too small to matter, else inconclusive. A forecast is never more than a note.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.fairness import ridge_bias_audit
    >>> adult = load_adult(split="train")
    >>> X = adult.X[["age", "education_num", "hours_per_week"]]
    >>> y = 2 * adult.y_binary - 1
    >>> (finding,) = ridge_bias_audit(X, y, adult.X["sex"], name="sex", n_bootstrap=20, random_state=0)
    >>> finding.id
    'ridge_bias/sex'
    """
    theory = RidgeBiasTheory(train_fraction, n_bootstrap=n_bootstrap, random_state=random_state)
    theory.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, clusters=clusters)
    groups = [str(group) for group in theory.groups_]
    if len(groups) < 2:
        return [
            Finding(
                id=f"ridge_bias/{name}", statement=f"{name}: there is one group only.", status="inconclusive", **_COMMON
            )
        ]
    planned, result = theory.planned_, theory.planned_.result
    low, high = theory.amplification_interval_
    gap_high = theory.gap_interval_[1]
    worst, best = groups[int(planned.error.argmax())], groups[int(planned.error.argmin())]
    small = gap_high < smallest_gap
    enough = theory.enough_rows_
    above, below = low > amplification, high <= amplification
    return [
        Finding(
            id=f"ridge_bias/{name}",
            statement=(
                f"A linear model for all would err most for {worst} ({planned.error.max():.3f} of the outcome's "
                f"variance) and least for {best} ({planned.error.min():.3f}). {_cause(planned)}"
            ),
            severity="note" if enough and above and not small else "ok" if enough and (below or small) else "note",
            status="ran" if enough and (above or below or small) else "inconclusive",
            reason=_reason(theory, enough, small, above, below, smallest_gap),
            value=float(result.add) if math.isfinite(result.add) else None,
            interval=Interval(low, high, theory.confidence, "bootstrap percentiles")
            if math.isfinite(result.add) and math.isfinite(high)
            else None,
            limit=amplification,
            limit_source=limit_source,
            n=len(y),
            evidence=(_table(theory, groups), _figure(theory, groups, name)),
            **_COMMON,
        )
    ]


def _cause(planned: WhatIf) -> str:
    noise = planned.error - planned.result.joint.risk
    return (
        f"That is a gap of {np.ptp(planned.error):.3f}; one model for each group would leave {planned.result.edd:.3f}, "
        f"and {np.ptp(noise):.3f} is noise that no linear model of these features takes away."
    )


def _reason(theory: RidgeBiasTheory, enough: bool, small: bool, above: bool, below: bool, smallest_gap: float) -> str:
    if not enough:
        return "The smallest group has too few rows for so many columns."
    if small:
        return f"The whole interval of the gap lies below {smallest_gap:g} of the outcome's variance."
    planned = float(np.ptp(theory.planned_.error))
    more, kindest = theory.what_if_[2], theory.what_if_[3]
    helps = (
        f"With unlimited rows the gap would be {np.ptp(more.error):.3f} instead of {planned:.3f}, with the penalty "
        f"kindest to the worst-off group {np.ptp(kindest.error):.3f}."
    )
    if above:
        least = theory.amplification_interval_[0]
        return f"Training one model for all widens the gap, {least:.2f} times or more. {helps}"
    if below:
        return f"Training one model for all does not widen the gap. {helps}"
    return f"It cannot be told whether training one model for all widens the gap. {helps}"


def _table(theory: RidgeBiasTheory, groups: Sequence[str]) -> Table:
    columns = (
        Column("plan", "text"),
        Column("rows", "text", "Of the training data."),
        Column("penalty"),
        *(Column(f"error: {group}", help="Squared error by the outcome's variance.") for group in groups),
        Column("gap", help="Between the largest and the smallest error."),
        Column("gap, apart", help="With a model for each group."),
        Column("amplification", help="The gap by the gap with a model for each group."),
    )
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (
            answer.label,
            "unlimited" if answer.rows > 1e5 * theory.planned_.rows else f"{answer.rows:,.0f}",
            answer.penalty,
            *(float(error) for error in answer.error),
            float(np.ptp(answer.error)),
            answer.result.edd,
            float(answer.result.add) if math.isfinite(answer.result.add) else None,
        )
        for answer in theory.what_if_
    )
    return Table(
        "What would close the gap? Predicted, not trained",
        columns,
        rows,
        note="Ridge regression on standardised columns. All but the first row and the kindest penalty have the penalty "
        "with the least error over everybody.",
    )


def _figure(theory: RidgeBiasTheory, groups: Sequence[str], name: str) -> Figure:
    points = [point for point in theory.curve_ if point.penalty > 0]
    x = tuple(math.log10(point.penalty) for point in points)
    series = []
    for s, group in enumerate(groups):
        series.append(Series(f"{group}, one model", x, tuple(float(point.error[s]) for point in points)))
        apart = tuple(float(point.result.separate[s].test_error[0]) for point in points)
        series.append(Series(f"{group}, apart", x, apart))
    return Figure(
        "lines",
        f"Predicted error by {name} and penalty",
        "log10 of the penalty",
        "squared error, by the outcome's variance",
        tuple(series),
        (Line("no model", 1.0),),
        alt=f"The predicted error of each group with one model for all and with one for each, as the penalty grows; at "
        f"the planned penalty of {theory.planned_.penalty:.3g} the joint errors differ by "
        f"{float(np.ptp(theory.planned_.error)):.3f}.",
    )
