"""What attacks on membership find, as findings of an audit: for all rows, by group, by kind, beside a certificate."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import mover
from aboveboard.core.errors import InputError
from aboveboard.core.finding import (
    SUPPRESSED,
    Cell,
    Column,
    Figure,
    Finding,
    Interval,
    Line,
    Series,
    Severity,
    Table,
)
from aboveboard.privacy._rdp import epsilon_lower_bound
from aboveboard.privacy.membership._kinds import blind_attack, kinds_of_rows, level_codes
from aboveboard.privacy.membership._rates import (
    FALSE_POSITIVE_RATES,
    AttackRate,
    Bools,
    attack_rates,
    enough,
    halves,
    refuse,
)
from aboveboard.privacy.membership._scores import Attack, Floats

__all__ = ["membership_audit"]

_COMMON: Final[dict[str, Any]] = {"check": "membership", "area": "privacy"}
_SHOWN: Final = 8
_CAPACITY: Final = "A model of less capacity (larger leaves, fewer rounds, a stronger penalty) remembers fewer rows."


def membership_audit(
    attacks: Sequence[Attack],
    member: ArrayLike,
    *,
    rows: pd.DataFrame | None = None,
    groups: pd.DataFrame | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    false_positive_rates: Sequence[float] = FALSE_POSITIVE_RATES,
    largest_excess: float = 0.05,
    largest_epsilon: float = 2.0,
    group_excess: float = 0.1,
    limit_source: str = "",
    min_cell: int = 10,
    level: float = 0.95,
    random_state: int = 0,
) -> list[Finding]:
    """Say whether attacks tell the rows that a model was trained on from others, whose, and of what kind.

    Parameters
    ----------
    attacks : sequence of Attack
        From `score_attack`, `likelihood_ratio_attack`, `likelihood_ratios` or of your own, on the same n rows.
    member : array-like of bool, shape (n,)
        Whether the model was trained on the row. The others should come from the same source.
    rows : DataFrame of shape (n, d), optional
        What is known of the rows, their true answers included: which kinds are most exposed? It also tells whether
        members differ from the others without any model, which an attack would then only repeat.
    groups : DataFrame of shape (n, s), optional
        Sensitive columns; a finding for each.
    epsilon : float, optional
        What a certificate of differential privacy promises, for replacing one row by another.
    delta : float, default=1e-5
        That goes with it.
    false_positive_rates, level, random_state
        As for `attack_rates`.
    largest_excess, largest_epsilon, group_excess : float
        Limits: of the excess, of the bound on epsilon where none was promised, of a group's excess over the others'.
    limit_source : str
    min_cell : int, default=10
        No figure is shown on fewer rows.

    Returns
    -------
    list of Finding
        ``membership/attack``, the excess of the true-positive over the false-positive rate: ``warn`` where the interval
        of some attack lies beyond the limit, ``ok`` where all lie within, else inconclusive. ``membership/epsilon``,
        the least epsilon that is compatible with the rates: ``fail`` where it exceeds the one that was promised.
        ``membership/kinds`` where `rows` are given, never more than a note; and ``membership/<column>`` for each column
        of `groups`.

    Raises
    ------
    InputError
        As `attack_rates`, and for tables of another length.

    Notes
    -----
    O(n log n) time for each attack, and one small boosted model on at most 20,000 rows where `rows` are given. The
    threshold that is shown for groups and kinds is chosen on the half of the rows that sets the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import membership_audit, score_attack
    >>> adult = load_adult(split="train")
    >>> X, y = adult.X.select_dtypes("number")[:8000], adult.y_binary[:8000].to_numpy()
    >>> member = np.arange(8000) < 4000
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X[member], y[member])
    >>> finding, *_ = membership_audit(score_attack(forest.predict_proba(X), y), member)
    >>> finding.severity
    'warn'
    """
    is_member = refuse(attacks, member, false_positive_rates, level)
    for table, what in ((rows, "rows"), (groups, "groups")):
        if table is not None and len(table) != len(is_member):
            raise InputError(f"{what} has {len(table):,} rows and member {len(is_member):,}")
    if not 0 <= delta < 1 or (epsilon is not None and not epsilon >= 0):
        raise InputError(f"epsilon is {epsilon!r} and delta {delta!r}", expected="0 or more, and a number in [0, 1)")
    if not enough(is_member):
        return [_too_few(is_member)]
    options: dict[str, Any] = {
        "false_positive_rates": false_positive_rates,
        "level": level,
        "random_state": random_state,
    }
    fit = halves(is_member, random_state)
    rates = attack_rates(attacks, is_member, **options)
    blind = (
        [] if rows is None else attack_rates([blind_attack(rows, is_member, fit, random_state)], is_member, **options)
    )
    explained = blind if any(rate.interval.low > 0 for rate in blind) else []
    shown = max(rates, key=lambda rate: _on_half(rate, is_member, fit).excess)
    found = [
        _attack(rates, blind, explained, largest_excess, limit_source),
        _epsilon(rates, is_member, fit, explained, epsilon, delta, largest_epsilon, limit_source),
    ]
    if rows is not None:
        found.append(_kinds(shown, rows, is_member, min_cell))
    if groups is not None:
        found += [
            _by_group(shown, groups[name], is_member, min_cell, group_excess, limit_source) for name in groups.columns
        ]
    return found


def _too_few(member: Bools) -> Finding:
    return Finding(
        id="membership/attack",
        statement="There are too few rows to tell members of the training data from others.",
        severity="note",
        status="inconclusive",
        reason="It takes 40 of either kind, and 20 / f others for a false-positive rate of f.",
        n=len(member),
        **_COMMON,
    )


def _on_half(rate: AttackRate, member: Bools, half: Bools) -> AttackRate:
    return AttackRate.of(rate.attack, rate.aim, rate.called, member, half, 1, rate.family_level)


def _bound(rate: AttackRate, delta: float) -> float:
    """Return the least epsilon that the counts leave possible, with the confidence of the whole family."""
    return epsilon_lower_bound(
        rate.true_positives, rate.members, rate.false_positives, rate.others, delta=delta, level=rate.family_level
    ).epsilon


def _named(rate: AttackRate) -> str:
    return rate.attack if rate.aim is None else f"{rate.attack}, {100 * rate.aim:g} % false positives"


def _points(interval: Interval) -> str:
    return f"{100 * interval.level:g} % interval {100 * interval.low:+.1f} to {100 * interval.high:+.1f}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


# --- all rows ---------------------------------------------------------------------------------------------------------


def _attack(
    rates: Sequence[AttackRate], blind: Sequence[AttackRate], explained: Sequence[AttackRate], limit: float, source: str
) -> Finding:
    beyond_blind = {rate.aim: rate for rate in explained}
    judged = [_less(rate, beyond_blind.get(rate.aim)) for rate in rates]
    beyond = max(interval.low for _, interval in judged) > limit
    within = all(interval.high <= limit for _, interval in judged)
    worst = max(range(len(rates)), key=lambda i: judged[i][1].low if beyond else judged[i][1].high)
    rate, (value, interval) = rates[worst], judged[worst]
    severity: Severity = "warn" if beyond else "ok" if within else "note"
    statement = (
        f"By the attack '{_named(rate)}', {_percent(rate.true_positive_rate)} of the rows that the model was trained "
        f"on are recognised, and {_percent(rate.false_positive_rate)} of others are taken for such: "
        f"{100 * rate.excess:+.1f} points ({_points(rate.interval)})."
    )
    if explained:
        statement += (
            f" An attack that never asks the model reaches {100 * beyond_blind[rate.aim].excess:+.1f} points, since "
            f"the two tables differ by themselves; beyond that it is {100 * value:+.1f} ({_points(interval)})."
        )
    reason = {
        "warn": "The whole interval lies beyond the limit: who holds a person's row and the model can tell that it was "
        f"in the training data. {_CAPACITY}",
        "ok": "The intervals of all attacks lie within the limit. A stronger attack may find more.",
        "note": "There are too few rows to tell whether that lies within the limit.",
    }[severity]
    return Finding(
        id="membership/attack",
        statement=statement,
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason=reason,
        value=value,
        interval=interval,
        limit=limit,
        limit_source=source,
        n=rate.members + rate.others,
        evidence=(_table(rates, blind), _figure(rates, limit)),
        **_COMMON,
    )


def _less(rate: AttackRate, blind: AttackRate | None) -> tuple[float, Interval]:
    """Return the excess beyond what an attack without the model reaches, where that is anything."""
    if blind is None:
        return rate.excess, rate.interval
    return rate.excess - blind.excess, _difference(rate, blind)


def _difference(first: AttackRate, second: AttackRate) -> Interval:
    """Return the interval of the first excess less the second."""
    low, high = mover(*_excess(first), *_excess(second))
    return Interval(float(low), float(high), first.family_level, "Clopper-Pearson, MOVER", simultaneous=True)


def _excess(rate: AttackRate) -> tuple[Floats, tuple[Floats, Floats]]:
    values = [np.asarray(value) for value in (rate.true_positive_rate, rate.false_positive_rate)]
    of_members, of_others = (
        (np.asarray(interval.low), np.asarray(interval.high))
        for interval in (rate.true_positive_interval, rate.false_positive_interval)
    )
    return np.asarray(rate.excess), mover(values[0], of_members, values[1], of_others)


_HEADS: Final = (
    Column("members recognised", "percent"),
    Column("interval", "interval"),
    Column("others accused", "percent"),
    Column("interval ", "interval"),
    Column("difference", "percent"),
)


def _cells(rate: AttackRate) -> tuple[Cell, ...]:
    of_members, of_others = rate.true_positive_interval, rate.false_positive_interval
    return (
        rate.true_positive_rate,
        (of_members.low, of_members.high),
        rate.false_positive_rate,
        (of_others.low, of_others.high),
        rate.excess,
    )


def _table(rates: Sequence[AttackRate], blind: Sequence[AttackRate]) -> Table:
    first = rates[0]
    return Table(
        "Attacks on membership",
        (Column("attack", "text"), Column("threshold set for", "text"), *_HEADS),
        tuple(
            (
                rate.attack,
                "the largest difference" if rate.aim is None else f"{100 * rate.aim:g} % others accused",
                *_cells(rate),
            )
            for rate in (*rates, *blind)
        ),
        note=f"Thresholds were set on one half of the rows; figures come from the other, {first.members:,} members and "
        f"{first.others:,} others. Clopper-Pearson intervals that hold for all attacks on the model at once. A figure "
        "at a false-positive rate f takes 20 / f others.",
    )


def _figure(rates: Sequence[AttackRate], limit: float) -> Figure:
    best = max(rates, key=lambda rate: rate.excess)
    return Figure(
        "intervals",
        "How much more often members are recognised than others accused",
        "attack",
        "difference of rates",
        (
            Series(
                "difference",
                tuple(_named(rate) for rate in rates),
                tuple(rate.excess for rate in rates),
                tuple(rate.interval.low for rate in rates),
                tuple(rate.interval.high for rate in rates),
            ),
        ),
        (Line("nothing is told", 0.0), Line("limit", limit)),
        alt=f"The largest difference is that of '{_named(best)}': {100 * best.excess:+.1f} points.",
        percent=True,
    )


# --- differential privacy ---------------------------------------------------------------------------------------------


def _epsilon(
    rates: Sequence[AttackRate],
    member: Bools,
    fit: Bools,
    explained: Sequence[AttackRate],
    promised: float | None,
    delta: float,
    limit: float,
    source: str,
) -> Finding:
    chosen = max(rates, key=lambda rate: _bound(_on_half(rate, member, fit), delta))
    bound = _bound(_on_half(chosen, member, ~fit), delta)
    told = (
        f"Training that is differentially private with an epsilon below {bound:.2f} (delta {delta:g}) does not give "
        f"the rates of the attack '{_named(chosen)}' ({100 * chosen.family_level:g} % confidence)"
        if bound > 0
        else "The rates of the attacks are compatible with any epsilon of differential privacy"
    )
    severity: Severity
    if promised is None:
        severity = "warn" if bound > limit else "note"
        statement = f"{told}; no epsilon is promised."
        reason = (
            "The bound lies beyond the limit: seeing the model may multiply the odds that a row was in the training "
            f"data by e to that power. {_CAPACITY}"
            if severity == "warn"
            else "A bound from below: that it is small is no proof of privacy, which only a private algorithm gives."
        )
    else:
        severity = "fail" if bound > promised else "ok"
        statement = f"{told}; the certificate of the model promises {promised:.3g}."
        reason = (
            "The attack contradicts the certificate: some of what that assumes does not hold, or rows of one person "
            "occur more than once."
            if severity == "fail"
            else "The attack does not contradict the certificate. It is a check of the code, and no proof."
        )
    differ = bool(explained) and severity in ("warn", "fail")
    return Finding(
        id="membership/epsilon",
        statement=statement,
        severity="note" if differ else severity,
        status="inconclusive" if differ else "ran",
        reason="Members and others differ by themselves, and the bound needs rows of one source." if differ else reason,
        value=bound,
        limit=limit if promised is None else promised,
        limit_source=source if promised is None else "the certificate of the model",
        n=chosen.members + chosen.others,
        **_COMMON,
    )


# --- kinds of rows ----------------------------------------------------------------------------------------------------


def _kinds(shown: AttackRate, rows: pd.DataFrame, member: Bools, min_cell: int) -> Finding:
    kinds = [
        (label, of_kind)
        for label, of_kind in kinds_of_rows(rows)
        if all(_large(part & shown.measured, member, min_cell) for part in (of_kind, ~of_kind))
    ]
    common: dict[str, Any] = {"id": "membership/kinds", "severity": "note", **_COMMON}
    if not kinds:
        return Finding(
            statement="There is no kind of row with members and others enough to say how exposed it is.",
            status="inconclusive",
            reason="It takes 40 of either in the half that sets no threshold.",
            **common,
        )
    rated = [(label, shown.among(of_kind, member, len(kinds))) for label, of_kind in kinds]
    rated.sort(key=lambda entry: -entry[1].interval.low)
    top = [entry for entry in rated if entry[1].interval.low > max(shown.excess, 0.0)]
    listed = rated[:_SHOWN]
    statement = "No kind of row is exposed more than others, as far as can be told."
    if top:
        label, rate = top[0]
        statement = (
            f"Most exposed are rows with {label}: {_percent(rate.true_positive_rate)} of those that the model was "
            f"trained on are recognised and {_percent(rate.false_positive_rate)} of others taken for such, against "
            f"{_percent(shown.true_positive_rate)} and {_percent(shown.false_positive_rate)} of all rows."
        )
        others = [name for name, _ in top[1:3]]
        statement += f" So are rows with {' and '.join(others)}." if others else ""
    return Finding(
        statement=statement,
        reason=f"By '{_named(shown)}'. Kinds overlap: one may only stand for another.",
        n=shown.members + shown.others,
        evidence=(
            Table(
                "Kinds of rows, the most exposed first",
                (
                    Column("rows with", "text"),
                    Column("n", "count", "members and others that set no threshold"),
                    *_HEADS,
                ),
                tuple((label, rate.members + rate.others, *_cells(rate)) for label, rate in listed),
                note=f"Of {len(kinds)} kinds. Intervals hold for all of them at once.",
            ),
        ),
        **common,
    )


def _large(rows: Bools, member: Bools, min_cell: int) -> bool:
    counts = np.count_nonzero(rows & member), np.count_nonzero(rows & ~member)
    return enough(member[rows]) and bool(min(counts) >= min_cell)


# --- groups -----------------------------------------------------------------------------------------------------------


def _by_group(
    shown: AttackRate, column: "pd.Series[Any]", member: Bools, min_cell: int, limit: float, source: str
) -> Finding:
    name = str(column.name)
    codes, names = level_codes(column)
    common: dict[str, Any] = {"id": f"membership/{name}", **_COMMON}
    compared = _compared(codes, len(names), shown, member, min_cell)
    if len(compared) < 2:
        return Finding(
            statement=f"{name}: there are no two groups with members and others enough to compare.",
            severity="note",
            status="inconclusive",
            reason="It takes 40 of either in the half that sets no threshold, and 20 / f others for a rate of f.",
            **common,
        )
    counted = np.isin(codes, compared)
    own = {g: shown.among(codes == g, member, len(compared)) for g in compared}
    apart = {g: shown.among(counted & (codes != g), member, len(compared)) for g in compared}
    differences = {g: _difference(own[g], apart[g]) for g in compared}
    worst = max(compared, key=lambda g: differences[g].low)
    interval = differences[worst]
    beyond, within = interval.low > limit, all(other.high <= limit for other in differences.values())
    severity: Severity = "warn" if beyond else "ok" if within else "note"
    value = own[worst].excess - apart[worst].excess
    return Finding(
        statement=(
            f"{name}: rows of {names[worst]} that the model was trained on are recognised in "
            f"{_percent(own[worst].true_positive_rate)} of cases and others of them taken for such in "
            f"{_percent(own[worst].false_positive_rate)}, against {_percent(apart[worst].true_positive_rate)} and "
            f"{_percent(apart[worst].false_positive_rate)} elsewhere: {100 * value:+.1f} points more exposed "
            f"(simultaneous {_points(interval)})."
        ),
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason={
            "warn": "The whole interval lies beyond the limit.",
            "ok": "No interval reaches the limit.",
            "note": "The rows are too few to tell whether no group is exposed more than that.",
        }[severity],
        value=value,
        interval=interval,
        limit=limit,
        limit_source=source,
        group=f"{name}={names[worst]}",
        n=own[worst].members + own[worst].others,
        evidence=(_group_table(name, names, codes, own, differences),),
        **common,
    )


def _compared(codes: NDArray[Any], n_groups: int, shown: AttackRate, member: Bools, min_cell: int) -> list[int]:
    """Return the groups that are large enough, and none from which a smaller one could be told by subtraction."""
    counts = np.bincount(codes[codes >= 0], minlength=n_groups)
    large = [
        g
        for g in np.argsort(-counts, kind="stable").tolist()
        if _large((codes == g) & shown.measured, member, min_cell)
        and (shown.aim is None or enough(member[codes == g], shown.aim))
    ]
    left = [np.count_nonzero(~np.isin(codes, large) & kind & shown.measured) for kind in (member, ~member)]
    return large[:-1] if any(0 < count < min_cell for count in left) else large


def _group_table(
    name: str,
    names: Sequence[str],
    codes: NDArray[Any],
    own: dict[int, AttackRate],
    differences: dict[int, Interval],
) -> Table:
    body: list[tuple[Cell, ...]] = [
        (
            names[g],
            rate.members + rate.others,
            *_cells(rate),
            (differences[g].low, differences[g].high),
        )
        for g, rate in own.items()
    ]
    hidden = [names[g] for g in np.unique(codes[codes >= 0]).tolist() if g not in own]
    body += [(group, *[SUPPRESSED] * (len(_HEADS) + 2)) for group in hidden[:_SHOWN]]
    return Table(
        f"Exposure by {name}",
        (
            Column("group", "text"),
            Column("n", "count", "members and others that set no threshold"),
            *_HEADS,
            Column("more exposed than elsewhere by", "interval"),
        ),
        tuple(body),
        note="Groups with too few members or others are withheld. Intervals hold for all groups at once.",
    )
