"""A log of what was handed out, held against what could have been promised: findings for a report."""

import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from aboveboard.collective.equitable_allocation._audit_groups import (
    METHOD,
    REMEDIES,
    SECTION,
    Mask,
    fill_finding,
    share_finding,
    short,
)
from aboveboard.collective.equitable_allocation._demands import Floats, Ints
from aboveboard.collective.equitable_allocation._external import ExternalEquityAllocator
from aboveboard.collective.equitable_allocation._log import (
    ENOUGH_ROUNDS,
    AllocationLog,
    Rates,
    labels_of,
    read_log,
)
from aboveboard.collective.equitable_allocation._simulate import simulate
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Series, Table

__all__ = ["allocation_audit"]

_ROUNDING: Final = 1e-9
_MOST_SHOWN: Final = 40
_PARTICLES: Final = 5_000


def allocation_audit(
    log: Any,
    supply: ArrayLike | None = None,
    groups: Mapping[str, Any] | None = None,
    *,
    shares: Mapping[str, Mapping[str, float]] | None = None,
    slots: int = 10,
    limit: float = 0.5,
    limit_source: str = "",
    group_limit: float = 0.8,
    group_source: str = "",
    share_limit: float = 0.8,
    share_source: str = "",
    min_requests: int = 10,
    withhold: Callable[[Ints], Mask] | None = None,
    random_state: int | None = None,
) -> list[Finding]:
    """Hold a log of allocations against what each place in the queue, and each group, could have been promised.

    Parameters
    ----------
    log : mapping or data frame
        In order of arrival: ``demand`` and ``granted``, in the same unit; optionally ``round`` (a day, a site: what has
        a stock of its own) and ``slot`` (the place in the queue). A demand of 0 is no request.
    supply : float or array-like, optional
        The stock of each round; or, for each row, that of its round. Without it, what was handed out in a round counts
        as its stock.
    groups : mapping of name to labels of the rows, optional
        Groups whose fill rates are compared.
    shares : mapping of name to (mapping of group to share), optional
        For some of the groups, what share of the population each is; a group without one is not judged by it.
    slots : int, default 10
        Where the log has no slot, the queue of each round is cut into so many parts.
    limit : float
        The least share of the best possible fill rate that a slot should have. One half can always be promised.
    group_limit : float
        The least fill rate of a group, as a share of the others'.
    share_limit : float
        The least share of what was handed out that a group should have, as a part of its share of the population.
    limit_source, group_source, share_source : str
    min_requests : int, default 10
        Nothing is said of fewer.
    withhold : callable, optional
        From the numbers of requests of the groups, which groups must not be shown; default those below `min_requests`.
    random_state : int, optional
        For the rules that are compared.

    Returns
    -------
    list of Finding
        ``allocation_audit/slots``, ``/fill/<name>``, ``/share/<name>``, ``/stock`` and ``/rule``: what a rule that
        can be announced in advance would have given.

    Raises
    ------
    aboveboard.core.InputError
        For a log, a supply or shares that cannot be used.

    Notes
    -----
    Of 20 rounds or more the intervals are for the rounds that these were drawn from, and heed that requests of one
    round share a stock; with fewer rounds, requests count as drawn one by one. All intervals are Clopper and Pearson's
    on an effective number of requests, simultaneous over the slots or groups of a finding (Bonferroni).
    O(n log n) for n rows.

    Examples
    --------
    >>> from aboveboard.collective import allocation_audit
    >>> log = {"demand": [2.0] * 400, "granted": [2.0] * 200 + [0.0] * 200}  # first come first served
    >>> for finding in allocation_audit(log, supply=400.0)[:2]:
    ...     print(finding.id, finding.severity, finding.value)
    allocation_audit/slots fail 0.0
    allocation_audit/stock note 0.0
    """
    found = read_log(log, supply, slots)
    if len(found) < min_requests:
        return [_too_few("slots", len(found), min_requests)]
    hide = withhold or (lambda counts: np.asarray((counts > 0) & (counts < min_requests)))
    findings = [_slots(found, limit, limit_source, min_requests)]
    for name, labels in (groups or {}).items():
        codes, names = labels_of(labels, found.kept, f"the group {name!r}")
        findings.append(fill_finding(found, name, codes, names, group_limit, group_source, hide))
        if shares is not None and name in shares:
            findings.append(share_finding(found, name, codes, names, shares[name], share_limit, share_source, hide))
    findings.append(_stock(found, min_requests))
    findings.append(_rule(found, random_state))
    return findings


# --- places in the queue ----------------------------------------------------------------------------------------------


def _slots(log: AllocationLog, limit: float, source: str, least: int) -> Finding:
    size = len(log.slot_names)
    rates = log.fill_rates(log.slots, size, family=size)
    best = log.best_fills()
    judged = (rates.n >= least) & (best > 0)
    if not judged.any():
        return _too_few("slots", len(log), least)
    ratio, low, high = (
        np.divide(part, best, out=np.ones(size), where=best > 0) for part in (rates.mean, rates.low, rates.high)
    )
    worst = int(np.where(judged, ratio, np.inf).argmin())
    bad, fine = bool((high < limit)[judged].any()), bool((low >= limit)[judged].all())
    if bad:
        worst = int(np.where(judged & (high < limit), ratio, np.inf).argmin())
    where = f"{short(log.slot_names[worst])}, {100 * rates.mean[worst]:.3g} % of what a request asks for is granted"
    scope = "" if judged.all() else f" with {least} requests or more"
    statement = (
        f"Some places in the queue get too little: in {where}, where {100 * best[worst]:.3g} % was possible for all."
        if bad
        else f"Every place in the queue{scope} gets {100 * limit:.3g} % or more of what was possible: least in {where}."
        if fine
        else f"It is not certain whether every place in the queue gets {100 * limit:.3g} % of what was possible: in "
        f"{where}; {100 * best[worst]:.3g} % was possible for all."
    )
    return Finding(
        id="allocation_audit/slots",
        statement=statement,
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "Half of the best possible fill rate can be promised to every place in advance, whatever is asked for."
            if bad
            else "An average over requests: it does not say that single days were fair."
            if fine
            else "There are too few requests, or rounds, to tell."
        ),
        value=float(ratio[worst]),
        interval=Interval(float(low[worst]), float(high[worst]), method=METHOD, simultaneous=True),
        limit=limit,
        limit_source=source,
        n=int(rates.n[worst]),
        evidence=(
            _slot_table(log, rates, best, ratio, least),
            _sizes(log, least),
            *_slot_figure(log, rates, best, least),
        ),
        remedies=() if fine else REMEDIES,
        **SECTION,
    )


def _slot_table(log: AllocationLog, rates: Rates, best: Floats, ratio: Floats, least: int) -> Table:
    shown = np.arange(len(ratio))
    if len(shown) > _MOST_SHOWN:
        shown = np.sort(np.argsort(ratio, kind="stable")[:_MOST_SHOWN])
    rows: list[tuple[Cell, ...]] = [
        (short(log.slot_names[t]), int(rates.n[t]), *[SUPPRESSED] * 4)
        if 0 < rates.n[t] < least
        else (
            short(log.slot_names[t]),
            int(rates.n[t]),
            float(rates.mean[t]),
            (float(rates.low[t]), float(rates.high[t])),
            float(best[t]),
            float(ratio[t]),
        )
        for t in shown.tolist()
    ]
    return Table(
        "Places in the queue",
        (
            Column("Place", "text"),
            Column("n", "count", "Requests"),
            Column("Fill rate", "percent", "Mean of granted / asked for, at most 1"),
            Column("Interval", "interval", f"{METHOD}, over all places"),
            Column("Possible", "percent", "In the best plan that knows all requests in advance"),
            Column("Of what was possible", "percent"),
        ),
        tuple(rows),
        note=f"The {_MOST_SHOWN} places with the least." if len(shown) < len(ratio) else "",
    )


def _sizes(log: AllocationLog, least: int) -> Table:
    """Return fill rates by what was asked for: the mean over a slot hides whose requests are met."""
    edges = np.unique([float(f"{edge:.3g}") for edge in np.quantile(log.demand, [0.25, 0.5, 0.75])])
    band = np.searchsorted(edges, log.demand)
    texts = [f"up to {edges[0]:g}", *(f"{a:g} to {b:g}" for a, b in pairwise(edges)), f"above {edges[-1]:g}"]
    total = max(float(log.granted.sum()), np.finfo(float).tiny)
    rows: list[tuple[Cell, ...]] = []
    for code in np.unique(band).tolist():
        inside, text = band == code, texts[code]
        n = int(inside.sum())
        if n < least:
            rows.append((text, n, SUPPRESSED, SUPPRESSED))
        else:
            rows.append((text, n, float(log.fill[inside].mean()), float(log.granted[inside].sum()) / total))
    return Table(
        "By what was asked for",
        (
            Column("Asked for", "text"),
            Column("n", "count", "Requests"),
            Column("Fill rate", "percent"),
            Column("Of all that was granted", "percent"),
        ),
        tuple(rows),
        note="In the mean of a slot a small request counts as much as a large one.",
    )


def _slot_figure(log: AllocationLog, rates: Rates, best: Floats, least: int) -> tuple[Figure, ...]:
    if len(best) > _MOST_SHOWN or (rates.n < least).any():
        return ()
    names = tuple(short(name) for name in log.slot_names)
    if len(set(names)) < len(names):
        return ()
    return (
        Figure(
            "intervals",
            "Fill rate by place in the queue",
            "Place in the queue",
            "Granted, of what was asked for",
            (
                Series(
                    "as it was",
                    names,
                    tuple(rates.mean.tolist()),
                    tuple(rates.low.tolist()),
                    tuple(rates.high.tolist()),
                ),
                Series("possible for all", names, tuple(best.tolist())),
            ),
            alt=f"The fill rate goes from {100 * rates.mean.min():.3g} % to {100 * rates.mean.max():.3g} % by place.",
            percent=True,
        ),
    )


# --- the stock --------------------------------------------------------------------------------------------------------


def _stock(log: AllocationLog, least: int) -> Finding:
    rounds = len(log.stock)
    given = np.bincount(log.rounds, log.granted, minlength=rounds)
    unmet = np.bincount(log.rounds, np.maximum(log.demand - log.granted, 0.0), minlength=rounds)
    left = np.maximum(log.stock - given, 0.0)
    idle = float(np.minimum(left, unmet).sum() / max(log.stock.sum(), np.finfo(float).tiny))
    more = int((log.granted > log.demand * (1.0 + _ROUNDING)).sum())
    over = int((given > log.stock * (1.0 + _ROUNDING)).sum())
    faults = []
    if more:
        faults.append(f"{_some(more, least)} {'request' if more == 1 else 'requests'} got more than was asked for")
    if over:
        faults.append(f"{over:,} of {rounds:,} {'round' if rounds == 1 else 'rounds'} gave more than the stock")
    idle = idle if idle > _ROUNDING else 0.0
    if faults:
        statement = f"The books do not balance: {', and '.join(faults)}."
    elif not log.stock_known:
        statement = "No stock was named, so what was handed out counts as the stock, and nothing was left over."
    elif idle:
        statement = f"{100 * idle:.3g} % of the stock was left although requests were not met."
    else:
        statement = "Nothing was left that could have met a request."
    return Finding(
        id="allocation_audit/stock",
        statement=statement,
        severity="warn" if faults else "note",
        reason=(
            "Fill rates count at most 1, and what was possible follows the stock as it was named."
            if faults
            else "What is held back for requests that do not come is the price of a promise to those who come late."
        ),
        value=idle,
        n=len(log),
        evidence=(
            Table(
                "The stock",
                (Column("What", "text"), Column("Sum over rounds", "number")),
                (
                    ("Stock" if log.stock_known else "Stock (what was handed out)", float(log.stock.sum())),
                    ("Asked for", float(log.demand.sum())),
                    ("Handed out", float(log.granted.sum())),
                    ("Left over", float(left.sum())),
                ),
            ),
        ),
        **SECTION,
    )


# --- rules that could be announced ------------------------------------------------------------------------------------


def _rule(log: AllocationLog, random_state: int | None) -> Finding:
    """Return what rules that know the distribution of requests would have given on the rounds of the log."""
    rounds, size = len(log.stock), len(log.slot_names)
    if rounds < ENOUGH_ROUNDS or (log.stock <= 0).any():
        return Finding(
            id="allocation_audit/rule",
            statement="What a rule that is announced in advance would have given cannot be told from so few rounds.",
            severity="note",
            status="inconclusive",
            reason=f"{rounds:,} {'round' if rounds == 1 else 'rounds'} with a stock; {ENOUGH_ROUNDS} are needed.",
            n=len(log),
            **SECTION,
        )
    demand, granted = np.zeros((rounds, size)), np.zeros((rounds, size))
    np.add.at(demand, (log.rounds, log.slots), log.demand)
    np.add.at(granted, (log.rounds, log.slots), np.minimum(log.granted, log.demand))
    demand, granted = demand / log.stock[:, None], granted / log.stock[:, None]
    fill = np.divide(granted, demand, out=np.ones_like(demand), where=demand > 0)
    mean = (fill * (demand > 0)).sum(axis=0) / (demand > 0).sum(axis=0)
    least = float(mean.min())
    rows: list[tuple[Cell, ...]] = [
        ("as it was", least, float(fill.min(axis=1).mean()), float(np.maximum(1.0 - granted.sum(axis=1), 0.0).mean()))
    ]
    for called, rule in _rules(random_state):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rule.fit(demand, 1.0)
        report = simulate(rule, demand)
        rows.append((called, report.ex_ante, report.ex_post, report.waste))
    independent = rule.dependence_ is None or rule.dependence_.passed
    reached = float(rows[-1][1])  # type: ignore[arg-type]
    return Finding(
        id="allocation_audit/rule",
        statement=(
            f"Shares announced in advance would have given every place in the queue at least {100 * reached:.3g} % of "
            f"what it asked for on average; as it was, the least is {100 * least:.3g} %."
        ),
        severity="note",
        reason=(
            "Learnt from these rounds and replayed on them, which flatters the rules a little."
            if independent
            else "Requests of one round depend on each other here, so that nothing can be guaranteed for other rounds."
        ),
        value=reached,
        n=len(log),
        evidence=(
            Table(
                "Other rules on the same rounds",
                (
                    Column("Rule", "text"),
                    Column("Least place", "percent", "The least mean fill rate over places in the queue"),
                    Column("Least of a round", "percent", "Mean over rounds of the least fill rate in the round"),
                    Column("Left over", "percent", "Of the stock"),
                ),
                tuple(rows),
                note="Requests of one place and round are taken together.",
            ),
        ),
        remedies=REMEDIES if reached > least else (),
        **SECTION,
    )


def _rules(random_state: int | None) -> list[tuple[str, ExternalEquityAllocator]]:
    """Return the rules to compare; the last is the one that is announced with a promise."""
    announced = ExternalEquityAllocator("attenuated", factor="best", n_particles=_PARTICLES, random_state=random_state)
    return [
        ("first come first served", ExternalEquityAllocator("greedy")),
        ("projected proportional", ExternalEquityAllocator("ppa")),
        ("announced shares", announced),
    ]


# --- small things -----------------------------------------------------------------------------------------------------


def _too_few(what: str, n: int, least: int) -> Finding:
    return Finding(
        id=f"allocation_audit/{what}",
        statement="There are too few requests to say anything without showing what single ones got.",
        severity="note",
        status="inconclusive",
        reason=f"Fewer than {least} requests. Where they are no secret: --min-cell 1.",
        n=n if n >= least else None,
        **SECTION,
    )


def _some(count: int, least: int) -> str:
    return f"{count:,}" if count >= least else f"fewer than {least}"
