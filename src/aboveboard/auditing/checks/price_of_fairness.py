"""What accuracy would equal treatment of the groups cost?

For every sensitive column and their intersections, and for equal selection, true positive and false positive rates: the
accuracy of the most accurate classifier that can be made of the audited scores and the group with rates that differ by
at most so much, cross-fitted, beside the best one without such a demand. It is a price, not a verdict on the model:
where it is small, there is a remedy at hand.

References
----------
S. Agarwal, A. Deshpande, R. Rajaraman, R. Sundaram, "Optimal Fair Learning Robust to Adversarial Distribution Shift",
ICML 2025 (the fair optimum).
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.group_fairness.partitions import Partition, partitions_of_rows
from aboveboard.auditing.estimates import Rows, count_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding, Interval, Table
from aboveboard.fairness import price_of_parity
from aboveboard.fairness.randomized_fair_boc import PriceOfParity

__all__ = ["check"]

_CONSTRAINTS: Final[dict[str, str]] = {
    "demographic_parity": "selection rates",
    "equal_opportunity": "true positive rates",
    "predictive_equality": "false positive rates",
}
_SLACKS: Final[dict[str, tuple[float, ...]]] = {
    "quick": (0.0, 0.05, 0.2),
    "standard": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
    "full": (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3),
}
_FOLDS: Final = 5
_REMEDY: Final = "RandomizedFairClassifier"

Mask = NDArray[np.bool_]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Price three kinds of parity for every sensitive column, and for their intersections.

    Parameters
    ----------
    subject : Subject
        Binary, with scores and at least one sensitive column.
    random_state : int
        Seed of the folds.
    effort : {"quick", "standard", "full"}
        How many points the curve has.

    Returns
    -------
    list of Finding
        ``price_of_fairness/<constraint>/<column>`` (``<column> & <column>``), each with its curve. The severity is
        ``note`` where the whole interval of the price lies beyond the limit, ``ok`` where it lies below.

    Notes
    -----
    Groups with fewer rows that count than ``price_of_fairness.min_rows`` are left out, and named. O(n log n) time for
    each partition and constraint.
    """
    found, left_out = partitions_of_rows(subject.sensitive, subject.reference_groups)
    findings = [
        _finding(subject, partition, constraint, random_state, _SLACKS[effort])
        for partition in found
        for constraint in _CONSTRAINTS
    ]
    if left_out:
        findings.append(
            Finding(
                id="price_of_fairness/not_priced",
                check="price_of_fairness",
                area="fairness",
                statement="Some intersections were left out.",
                status="skipped",
                reason=" ".join(left_out),
            )
        )
    return findings


def _finding(
    subject: Subject, partition: Partition, constraint: str, random_state: int, slack: tuple[float, ...]
) -> Finding:
    of = f"Equal {_CONSTRAINTS[constraint]} by {partition.name}"
    common: dict[str, Any] = {
        "id": f"price_of_fairness/{constraint}/{partition.name}",
        "check": "price_of_fairness",
        "area": "fairness",
    }
    counted = _counted(subject, constraint)
    least = subject.limits["price_of_fairness.min_rows"].value
    group = partition.codes(subject.sensitive)
    counts = np.bincount(group[counted], minlength=len(partition.labels))
    enough = counts >= max(least, 2 * _FOLDS)
    small = _small_text(partition, enough)
    if enough.sum() < 2:
        return Finding(
            **common,
            statement=f"{of}: there are not two groups with enough rows to price it.",
            severity="note",
            status="inconclusive",
            reason=f"At least {max(least, 2 * _FOLDS):g} rows that count are needed in a group. {small}".strip(),
        )
    rows = np.flatnonzero(enough[group])
    kept = subject if len(rows) == len(subject) else subject.take(rows)
    codes = group[rows]
    assert kept.score is not None
    price = price_of_parity(
        kept.score,
        kept.y,
        codes,
        constraint,  # type: ignore[arg-type]
        cv=_FOLDS,
        slack=slack,
        sample_weight=kept.weight,
        cluster=kept.cluster,
        random_state=random_state,
    )
    limit = subject.limits["price_of_fairness.points"]
    value, low, high = (float(part[0]) for part in (price.price, price.price_low, price.price_high))
    beyond, within = low > limit.value, high <= limit.value
    span = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
    costs = f"{of} would cost {100 * value:.1f} points of accuracy ({span})"
    free, fair = percent(price.unconstrained_accuracy), percent(float(price.accuracy[0]))
    shown_n = len(rows) if not 0 < len(subject) - len(rows) < subject.min_cell else None
    return Finding(
        **common,
        statement=f"{costs}: {fair} instead of {free}.",
        severity="ok" if within else "note",
        status="ran" if beyond or within else "inconclusive",
        reason=_reason(price, beyond, within, limit.value, small),
        value=value,
        interval=Interval(low, high, price.level, "Agresti-Min, cross-fitted"),
        limit=limit.value,
        limit_source=limit.source,
        n=shown_n,
        evidence=(_table(kept, price, codes, constraint, small, shown_n), _figure(price, partition.name, constraint)),
        remedies=(_REMEDY,),
    )


def _counted(subject: Subject, constraint: str) -> Mask:
    """Return the rows that a group's rate is a share of; those of weight 0 never are."""
    heavy = np.ones(len(subject), dtype=bool) if subject.weight is None else subject.weight > 0
    label = {"equal_opportunity": 1, "predictive_equality": 0}.get(constraint)
    return heavy if label is None else heavy & (subject.y == label)


def _small_text(partition: Partition, enough: Mask) -> str:
    names = [label for label, fine in zip(partition.labels, enough, strict=True) if not fine]
    if not names:
        return ""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"Left out, with too few rows: {shown}."


def _reason(price: PriceOfParity, beyond: bool, within: bool, limit: float, small: str) -> str:
    points = f"{100 * limit:g} points"
    if within:
        verdict = f"The whole interval lies below {points}: equality is to be had at little or no loss of accuracy."
    elif beyond:
        verdict = f"The whole interval lies above {points}: equality has a price that somebody must decide on."
    else:
        verdict = f"The interval includes {points}: there are too few rows to tell."
    cheapest = np.flatnonzero(price.price_high <= limit)
    if not within and len(cheapest):
        slack = float(price.slack[cheapest[0]])
        verdict += f" Rates that differ by up to {100 * slack:g} points cost less than that."
    return f"{verdict} {small}".strip()


def _table(
    kept: Subject, price: PriceOfParity, codes: NDArray[np.intp], constraint: str, small: str, shown_n: int | None
) -> Table:
    """Return the table of the price, with a row for the model's own decisions."""
    table = price.table()
    own = Rows.of(kept).rate(kept.prediction == kept.y)
    span = (own.interval.low, own.interval.high)
    gap = _own_gap(kept, codes, constraint)
    rows = (*table.rows, ("the model as it is", own.value, span, price.unconstrained_accuracy - own.value, None, gap))
    among = f" of {count_text(shown_n, kept.min_cell)}" if shown_n is not None else ""
    note = (
        f"Cross-fitted in {price.cv} folds{among}; the classifiers are thresholds on the model's score, one per group. "
        f"Intervals hold one by one, at {price.level:.0%}."
    )
    return replace(table, rows=rows, note=f"{note} {small}".strip())


def _own_gap(kept: Subject, codes: NDArray[np.intp], constraint: str) -> float:
    weight = kept.weights * _counted(kept, constraint)
    total = np.bincount(codes, weights=weight)
    chosen = np.bincount(codes, weights=weight * (kept.prediction == 1))
    return float(np.ptp(chosen[total > 0] / total[total > 0]))


def _figure(price: PriceOfParity, name: str, constraint: str) -> Any:
    figure = price.figure()
    return replace(figure, title=f"What equal {_CONSTRAINTS[constraint]} by {name} would cost")
