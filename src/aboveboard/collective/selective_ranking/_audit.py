"""A published order held against the votes of its judges: findings for a report."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.intervals import clopper_pearson, wilson
from aboveboard.collective.selective_ranking._ranker import SelectiveRanker
from aboveboard.core.errors import InputError
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["rank_audit", "stability_audit"]

_ORDER: Final[dict[str, Any]] = {"check": "rank_audit", "area": "ranking"}
_STABILITY: Final[dict[str, Any]] = {"check": "rank_stability", "area": "ranking"}
_LEVEL: Final = 0.95
_MOST: Final = 200
Floats = NDArray[np.float64]


def rank_audit(
    order: Sequence[Any],
    votes: Any,
    *,
    limit: float = 0.5,
    limit_source: str = "",
    tolerated: float = 1 / 3,
    min_judges: int = 10,
    called: str = "published order",
    **options: Any,
) -> list[Finding]:
    """Hold a published order against the votes of its judges.

    Parameters
    ----------
    order : sequence
        The items, best first; a list in it holds items that the order leaves tied.
    votes : array-like or data frame of shape (n_judges, n_items), or a fitted SelectiveRanker
    limit : float in (0, 1)
        The largest share of judges that may fail to support a comparison of the order.
    limit_source : str
    tolerated : float in [0, 0.5)
        The dissent at which the selective ranking is shown.
    min_judges : int
        Nothing is said of a pair on which fewer voted.
    called : str
        What the order is called in the findings.
    **options
        Of `SelectiveRanker`, where votes are given as an array.

    Returns
    -------
    list of Finding
        ``rank_audit/order``: the neighbours in the order; ``rank_audit/winner``: its first item against every other;
        ``rank_audit/tiers``: what the judges bear out.

    Raises
    ------
    aboveboard.core.InputError
        When the order does not hold every item once.

    Notes
    -----
    The judges count as a sample of those who could have judged: shares have Clopper-Pearson intervals, simultaneous
    over the pairs of a finding (Bonferroni). O(p n^2).

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import rank_audit
    >>> votes = np.tile([3.0, 2.0, 1.0], (40, 1))
    >>> [finding.severity for finding in rank_audit([0, 1, 2], votes)]
    ['ok', 'ok', 'note']
    """
    ranker = votes if isinstance(votes, SelectiveRanker) else SelectiveRanker(**options).fit(votes)
    tiers = _tiers(order, ranker)
    p = ranker.n_judges_
    if p < min_judges:
        return [_too_few("rank_audit", name, p, min_judges) for name in ("order", "winner", "tiers")]
    neighbours = [(i, j) for above, below in pairwise(tiers) for i in above for j in below]
    rivals = [(i, j) for i in tiers[0] for tier in tiers[1:] for j in tier]
    judged: dict[str, Any] = {"limit": limit, "limit_source": limit_source, "min_judges": min_judges}
    findings = []
    if neighbours:
        findings = [
            _judged_order(ranker, neighbours, called, **judged),
            _judged_winner(ranker, rivals, len(tiers[0]), called, **judged),
        ]
    return [*findings, _shown_tiers(ranker, tolerated, min_judges)]


def stability_audit(
    votes: Any,
    *,
    limit: float = 0.05,
    limit_source: str = "",
    tolerated: float = 1 / 3,
    n_bootstrap: int = 1000,
    min_judges: int = 10,
    random_state: int | None = None,
    **options: Any,
) -> list[Finding]:
    """See whether other judges of the same kind would have led to another order.

    Parameters
    ----------
    votes, limit_source, tolerated, min_judges, **options :
        As in `rank_audit`.
    limit : float in (0, 1)
        The largest share of draws in which the two leaders of the Borda count may change places, and the largest share
        of comparisons of the selective ranking that may turn round.
    n_bootstrap : int
    random_state : int, optional

    Returns
    -------
    list of Finding
        ``rank_stability/borda``: the leaders of the Borda count; ``rank_stability/selective``: the comparisons of the
        selective ranking.

    Notes
    -----
    O(n_bootstrap x p n^2).
    """
    ranker = votes if isinstance(votes, SelectiveRanker) else SelectiveRanker(**options).fit(votes)
    p = ranker.n_judges_
    if p < min_judges:
        return [_too_few("rank_stability", name, p, min_judges) for name in ("borda", "selective")]
    found = ranker.stability(tolerated, n_bootstrap=n_bootstrap, random_state=random_state)
    first, second = (_name(label) for label in found.borda_top)
    swapped = round(found.borda_top_reversed * n_bootstrap)
    low, high = (float(end) for end in wilson(swapped, n_bootstrap))
    shaky = low > limit
    borda = Finding(
        id="rank_stability/borda",
        statement=(
            f"When the {p:,} judges are drawn anew, the two leaders of the Borda count, {first} and {second}, change "
            f"places in {100 * found.borda_top_reversed:.3g} % of the draws."
        ),
        severity="warn" if shaky else "ok" if high <= limit else "note",
        status="ran" if shaky or high <= limit else "inconclusive",
        reason=(
            "An order that hangs on who happened to judge says more than the votes do."
            if shaky
            else "Any total order of these votes has the same leader."
            if high <= limit
            else "Too few draws to tell on which side of the limit this lies: a larger effort draws more."
        ),
        value=found.borda_top_reversed,
        interval=Interval(low, high, method=f"Wilson, {n_bootstrap:,} draws"),
        limit=limit,
        limit_source=limit_source,
        n=p,
        remedies=("SelectiveRanker",) if shaky else (),
        **_STABILITY,
    )
    return [borda, _selective(found, limit, limit_source, p)]


def _selective(found: Any, limit: float, limit_source: str, p: int) -> Finding:
    reversed_, lost = float(found.selective_reversed.mean()), float(found.selective_lost.mean())
    ever = int((found.selective_reversed > 0).sum())
    what = f"at a tolerated dissent of {100 * found.tau:.3g} %"
    if not found.claims:
        return Finding(
            id="rank_stability/selective",
            statement=f"The selective ranking {what} makes no comparison, so there is none that could turn round.",
            severity="note",
            reason="The judges disagree too much for any order of these items.",
            n=p,
            **_STABILITY,
        )
    return Finding(
        id="rank_stability/selective",
        statement=(
            f"Of the {found.claims:,} comparisons that the selective ranking {what} makes, "
            f"{100 * reversed_:.3g} % turn round when the judges are drawn anew, and {100 * lost:.3g} % are not made."
        ),
        severity="warn" if reversed_ > limit else "ok",
        reason=f"In {ever:,} of {found.n_bootstrap:,} draws a comparison turned round.",
        value=reversed_,
        limit=limit,
        limit_source=limit_source,
        n=p,
        evidence=(
            Table(
                "When the judges are drawn anew",
                (
                    Column("Ranking", "text"),
                    Column("Comparisons", "number"),
                    Column("Turned round, on average", "percent"),
                    Column("Turned round, at most", "percent"),
                    Column("Not made, on average", "percent"),
                ),
                (
                    (
                        f"selective, {what}",
                        found.claims,
                        reversed_,
                        float(found.selective_reversed.max()),
                        lost,
                    ),
                    (
                        "Borda count, all pairs",
                        None,
                        float(found.borda_reversed.mean()),
                        float(found.borda_reversed.max()),
                        0.0,
                    ),
                ),
                note=f"{found.n_bootstrap:,} draws of as many judges, with replacement.",
            ),
        ),
        **_STABILITY,
    )


# --- the parts of rank_audit ------------------------------------------------------------------------------------------


def _tiers(order: Sequence[Any], ranker: SelectiveRanker) -> list[list[int]]:
    """Return the order as lists of positions."""
    position = {label: i for i, label in enumerate(ranker.items_)}
    tiers = []
    for entry in order:
        members = list(entry) if isinstance(entry, list | tuple | set | frozenset) else [entry]
        foreign = next((label for label in members if label not in position), None)
        if foreign is not None:
            raise InputError(f"the published order names {foreign!r}, which is no item of the votes")
        tiers.append([position[label] for label in members])
    named = [i for tier in tiers for i in tier]
    if len(set(named)) != len(named):
        twice = next(i for i in named if named.count(i) > 1)
        raise InputError(f"the published order names {ranker.items_[twice]!r} twice", expected="every item once")
    if len(named) != len(position):
        left = next(label for label, i in position.items() if i not in set(named))
        raise InputError(f"the published order leaves out {left!r}", expected="every item once")
    return tiers


def _dissent(ranker: SelectiveRanker, pairs: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    """Return how many judges do not support each pair (above, below), and out of how many."""
    above, below = np.array(pairs).T
    n = ranker.compared_[above, below].astype(np.float64)
    if ranker.missing == "dissent":
        n = np.full(len(pairs), float(ranker.n_judges_))
    against = n - ranker.support_[above, below]
    if ranker.ties == "half":
        against -= ranker._tally.ties()[above, below] / 2
    return against, n


def _judged_order(ranker: SelectiveRanker, pairs: list[tuple[int, int]], called: str, **judged: Any) -> Finding:
    def says(bad: int, fine: bool, worst: tuple[int, int]) -> str:
        above, below = (_name(ranker.items_[i]) for i in worst)
        places = "place" if len(pairs) == 1 else "places"
        where = f"{len(pairs):,} {places} where the {called} puts one item right above another"
        told = (
            f"At {bad:,} of {where}, too few judges agree"
            if bad
            else f"Enough judges agree with each of {where}"
            if fine
            else f"Of {where}, none is certain to have too few judges behind it"
        )
        return f"{told}; the least agree that {above} belongs above {below}."

    return _judged("rank_audit/order", ranker, pairs, says, called=called, **judged)


def _judged_winner(
    ranker: SelectiveRanker, pairs: list[tuple[int, int]], firsts: int, called: str, **judged: Any
) -> Finding:
    def says(bad: int, fine: bool, worst: tuple[int, int]) -> str:
        first, rival = (_name(ranker.items_[i]) for i in worst)
        lead = (
            f"{first}, first in the {called}" if firsts == 1 else f"{first}, among the first {firsts} of the {called}"
        )
        outcome = "does not have enough judges behind it against" if bad else "has the least support over"
        outcome = "has enough judges behind it against all others, the fewest against" if fine else outcome
        return f"{lead}, {outcome} {rival}."

    return _judged("rank_audit/winner", ranker, pairs, says, called=called, **judged)


def _judged(
    finding_id: str,
    ranker: SelectiveRanker,
    pairs: list[tuple[int, int]],
    says: Callable[[int, bool, tuple[int, int]], str],
    *,
    called: str,
    limit: float,
    limit_source: str,
    min_judges: int,
) -> Finding:
    against, n = _dissent(ranker, pairs)
    enough = n >= min_judges
    if not enough.any():
        return _too_few("rank_audit", finding_id.partition("/")[2], int(n.max()), min_judges)
    share = against / np.maximum(n, 1.0)
    low, high = clopper_pearson(against, np.maximum(n, 1.0), level=1.0 - (1.0 - _LEVEL) / int(enough.sum()))
    share, low, high = (np.where(enough, values, np.nan) for values in (share, low, high))
    worst = int(np.nanargmax(np.where(np.isnan(low), -1.0, low) + 1e-9 * np.nan_to_num(share)))
    bad, fine = int((low > limit).sum()), bool(enough.all() and (high <= limit).all())
    unsure = int(((low <= limit) & (high > limit)).sum()) + int((~enough).sum())
    shares = f"{100 * limit:g} %"
    return Finding(
        id=finding_id,
        statement=says(bad, fine, pairs[worst])
        + f" {against[worst]:,.6g} of {int(n[worst]):,} judges do not place them so ({100 * share[worst]:.3g} %).",
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            f"More than {shares} of those who could judge fail to support {'it' if bad == 1 else 'them'}."
            if bad
            else f"At most {shares} fail to support any."
            if fine
            else f"For {unsure:,} of {len(pairs):,} pairs the votes do not tell whether at most {shares} dissent."
        ),
        value=float(share[worst]),
        interval=Interval(float(low[worst]), float(high[worst]), method="Clopper-Pearson", simultaneous=len(pairs) > 1),
        limit=limit,
        limit_source=limit_source,
        n=int(n[worst]),
        evidence=_evidence(ranker, pairs, share, low, high, n, limit, called),
        remedies=() if fine else ("SelectiveRanker",),
        **_ORDER,
    )


def _evidence(
    ranker: SelectiveRanker,
    pairs: list[tuple[int, int]],
    share: Floats,
    low: Floats,
    high: Floats,
    n: Floats,
    limit: float,
    called: str,
) -> tuple[Table | Figure, ...]:
    """Return the pairs with the most dissent, as a table and as a figure."""
    worst_first = np.argsort(-np.where(np.isnan(low), -1.0, low), kind="stable")[:_MOST]
    rows: list[tuple[Cell, ...]] = []
    for k in worst_first.tolist():
        i, j = pairs[k]
        names = (_name(ranker.items_[i]), _name(ranker.items_[j]))
        if np.isnan(share[k]):
            rows.append((*names, *[SUPPRESSED] * 6))
            continue
        up, down = int(ranker.support_[i, j]), int(ranker.support_[j, i])
        rest = int(n[k]) - up - down
        rows.append((*names, int(n[k]), up, down, rest, float(share[k]), (float(low[k]), float(high[k]))))
    table = Table(
        f"Dissent from the {called}",
        (
            Column("Above", "text"),
            Column("Below", "text"),
            Column("n", "count", "Judges"),
            Column("Agree", "number", "Judges who place the two so"),
            Column("Disagree", "number", "Judges who place them the other way round"),
            Column("Neither", "number", "Judges who tie them or did not vote on both"),
            Column("Dissent", "percent", "Judges who do not place the two so"),
            Column("Interval", "interval"),
        ),
        tuple(rows),
        note=f"The {len(rows):,} of {len(pairs):,} pairs with the most dissent." if len(rows) < len(pairs) else "",
    )
    shown = [k for k in worst_first.tolist() if not np.isnan(share[k])]
    marks = tuple(f"{_name(ranker.items_[pairs[k][0]])} > {_name(ranker.items_[pairs[k][1]])}" for k in shown)
    figure = Figure(
        "intervals",
        f"Dissent from the {called}",
        "Above > below",
        "Judges who do not place the two so",
        (
            Series(
                "dissent",
                marks,
                tuple(float(share[k]) for k in shown),
                tuple(float(low[k]) for k in shown),
                tuple(float(high[k]) for k in shown),
            ),
        ),
        (Line(f"Limit: {100 * limit:g} %", limit),),
        alt=f"Of {len(shown)} pairs, {int((low > limit).sum())} lie above the limit with their whole interval.",
        percent=True,
    )
    return (table, figure) if len(set(marks)) == len(marks) else (table,)


def _shown_tiers(ranker: SelectiveRanker, tolerated: float, min_judges: int) -> Finding:
    path, p = ranker.path_, ranker.n_judges_
    voted = ranker.compared_[~np.eye(len(ranker.items_), dtype=bool)]
    if ranker.missing != "dissent" and voted.min() < min_judges:
        return _too_few("rank_audit", "tiers", int(voted.min()), min_judges)
    if path.blocking is not None and tolerated >= path.limit:
        first, second = map(_name, path.blocking)
        return Finding(
            id="rank_audit/tiers",
            statement=f"At a tolerated dissent of {100 * tolerated:.3g} % nothing can be ordered: too few judges "
            f"voted on {first} and {second}.",
            status="inconclusive",
            severity="note",
            reason="Missing votes are ignored; counted as dissent, or rescaled, they give an order.",
            n=p,
            **_ORDER,
        )
    tiers = path.at(tolerated)
    share = path.share_comparable(tolerated)
    top = ", ".join(map(_name, tiers[0][:5])) + (f" and {len(tiers[0]) - 5:,} more" if len(tiers[0]) > 5 else "")
    frame = path.to_frame()
    rows = tuple(
        (
            float(tau),
            int(count),
            float(comparable),
            ", ".join(map(_name, names[:8])) + (", ..." if len(names) > 8 else ""),
        )
        for tau, count, comparable, names in frame.itertuples(index=False)
    )
    overruled = ranker.overruled(tolerated)
    return Finding(
        id="rank_audit/tiers",
        statement=(
            f"Where at most {100 * tolerated:.3g} % of the judges may dissent, the votes bear out {len(tiers):,} "
            f"{'tier' if len(tiers) == 1 else 'tiers'} and order {100 * share:.3g} % of the pairs; on top: {top}."
        ),
        severity="note",
        reason=f"They overrule {100 * float(np.median(overruled)):.3g} % of the preferences of the median judge.",
        value=share,
        n=p,
        evidence=(
            Table(
                "What the votes bear out, by tolerated dissent",
                (
                    Column("Tolerated dissent", "percent"),
                    Column("Tiers", "number"),
                    Column("Ordered pairs", "percent"),
                    Column("Top tier", "text"),
                ),
                rows[:_MOST],
            ),
            path.figure(),
        ),
        remedies=("SelectiveRanker",),
        **_ORDER,
    )


def _too_few(check: str, name: str, p: int, least: int) -> Finding:
    return Finding(
        id=f"{check}/{name}",
        check=check,
        area="ranking",
        statement="Too few judges to say anything without showing how single ones voted.",
        status="inconclusive",
        severity="note",
        reason=f"Fewer than {least} judges. Where their votes are no secret, or they are no people: --min-cell 1.",
        n=p if p >= least else None,
    )


def _name(label: Any) -> str:
    text = str(label)
    return text if len(text) <= 60 else text[:59] + "…"
