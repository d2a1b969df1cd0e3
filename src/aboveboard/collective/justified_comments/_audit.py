"""A published feed held against its readers' approvals: findings for a report."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import clopper_pearson, wilson
from aboveboard.collective.justified_comments._imputer import ApprovalImputer
from aboveboard.collective.justified_comments._profile import Profile, check_selected, read_profile
from aboveboard.collective.justified_comments._properties import JRReport, jr_report
from aboveboard.collective.justified_comments._ranker import RepresentativeRanker
from aboveboard.core.errors import InputError
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["feed_audit"]

_SECTION: Final[dict[str, Any]] = {"check": "feed", "area": "feeds"}
_LEVEL: Final = 0.95
_MOST: Final = 10
_CELLS: Final = 200_000_000
"""Readers x comments x draws of the missing approvals, at most; ten draws at least."""


def feed_audit(
    order: ArrayLike,
    approvals: Any,
    *,
    k: Sequence[int] = (5, 10, 20),
    groups: Mapping[str, Any] | None = None,
    weights: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    readers: Literal["all", "sample"] = "all",
    limit: float = 1.0,
    limit_source: str = "",
    min_readers: int = 10,
    called: str = "feed",
    n_draws: int = 100,
    time_limit: float = 5.0,
    random_state: int | None = None,
) -> list[Finding]:
    """Hold a feed against its readers' approvals.

    Parameters
    ----------
    order : array-like of int
        Positions of the comments, the first on top; comments that are not in it are never shown.
    approvals : array, sparse matrix or data frame of shape (n_readers, n_comments), or a fitted ApprovalImputer
        0 and 1, or booleans. With an imputer, its approvals, and a finding that says how firm they are.
    k : sequence of int
        The lengths that are judged. A feed that is shorter is judged as a whole.
    groups : mapping of name to labels of the readers, optional
        Only reported: the verdict needs no groups.
    weights : array-like of shape (n_readers,), optional
    labels : sequence, optional
        What the comments are called.
    readers : {"all", "sample"}
        Whether these are the readers of the feed, or a random sample of them: the verdict is then for those whom they
        were drawn from, with intervals.
    limit : float
        From which size on, in units of n/k, an excluded group fails the feed. 1 is the definition.
    limit_source : str
    min_readers : int
        Nothing is said of fewer.
    called : str
        What the order is called in the findings.
    n_draws : int
        Draws of the missing approvals, with an imputer; fewer for very many readers and comments.
    time_limit : float
        In seconds, for each repair that is priced.
    random_state : int, optional

    Returns
    -------
    list of Finding
        ``feed/top<k>`` for each length; ``feed/repair``: what it would take; ``feed/groups/<name>``; ``feed/imputed``.

    Raises
    ------
    aboveboard.core.InputError
        When the order is empty or names no comments, or what was given does not fit together.

    Notes
    -----
    O(nnz) per length, and a `RepresentativeRanker` per length. Of a sample, the share of readers who approve a comment
    and nothing above has a Clopper-Pearson interval, simultaneous over comments and lengths (Bonferroni).

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import feed_audit
    >>> approvals = np.array([[1, 1, 0]] * 60 + [[0, 0, 1]] * 40)
    >>> [(finding.id, finding.severity, finding.value) for finding in feed_audit([0, 1, 2], approvals, k=[2, 3])]
    [('feed/top2', 'ok', 0.8), ('feed/top3', 'ok', 0.0), ('feed/repair', 'note', 0.0)]
    """
    imputer = approvals if isinstance(approvals, ApprovalImputer) else None
    profile = read_profile(approvals if imputer is None else imputer.approvals(), weights)
    feed = check_selected(order, profile.m, profile.m)
    if not len(feed):
        raise InputError("the order is empty", expected="one comment at least")
    if readers not in ("all", "sample"):
        raise InputError(f"readers is {readers!r}", expected="'all' or 'sample'")
    if readers == "sample" and weights is not None:
        raise InputError(
            "weights were given and the readers are a sample",
            expected="weights or a sample",
            remedy="Draw the sample with equal chances, or judge the weighted readers as they are",
        )
    names = [_name(label) for label in (range(profile.m) if labels is None else labels)]
    if len(names) != profile.m:
        raise InputError(f"{len(names)} labels were given", expected=f"one per comment: {profile.m}")
    lengths = _lengths(k, len(feed))
    if profile.n < min_readers:
        return [_too_few(f"top{p}", profile.n, min_readers) for p in lengths]
    judged = {p: jr_report(profile, feed[:p], p) for p in lengths}
    findings = [
        _judged(
            profile, feed[:p], p, judged[p], names,
            sample=readers == "sample", family=profile.m * len(lengths), limit=limit, limit_source=limit_source,
            min_readers=min_readers, called=called,
        )
        for p in lengths
    ]  # fmt: skip
    findings.append(_repair(profile, feed, judged, time_limit))
    for name, members in (groups or {}).items():
        findings.append(_groups(profile, feed, lengths, name, members, min_readers))
    if imputer is not None:
        draws = max(10, min(n_draws, _CELLS // (profile.n * profile.m)))
        findings.append(_imputed(imputer, profile, feed, lengths, weights, draws, random_state))
    return findings


def _lengths(k: Sequence[int], shown: int) -> list[int]:
    given = list(k)
    wrong = next((p for p in given if isinstance(p, bool) or not isinstance(p, int | np.integer) or p < 1), None)
    if wrong is not None or not given:
        raise InputError(f"k is {k!r}", expected="lengths such as (5, 10, 20), each 1 or more")
    return sorted({min(int(p), shown) for p in given})


def _judged(
    profile: Profile,
    top: NDArray[np.intp],
    k: int,
    found: JRReport,
    names: list[str],
    *,
    sample: bool,
    family: int,
    limit: float,
    limit_source: str,
    min_readers: int,
    called: str,
) -> Finding:
    unserved = profile.hits(top) == 0
    excluded = profile.support_among(unserved)
    people = len(found.excluded_readers)
    interval = _interval(excluded, profile, k, family) if sample else None
    low, high = (found.worst_ratio, found.worst_ratio) if interval is None else (interval.low, interval.high)
    bad, fine = low >= limit, high < limit
    hidden = 0 < people < min_readers
    many = f"fewer than {min_readers}" if hidden else f"{people:,}"
    unit = f"1/{k} of the readers" if k > 1 else "all readers"
    whom = f"{many} of {profile.n:,} readers"
    if found.witness_comment is None:
        statement = f"Every reader who approves any comment approves one of the first {k:,} of the {called}."
    elif bad:
        statement = (
            f"The first {k:,} of the {called} leave out a group that is too large: {whom} approve "
            f"{names[found.witness_comment]} and none of these."
        )
    elif fine:
        statement = (
            f"The first {k:,} of the {called} leave out no group of {unit}: the largest that shares a comment, "
            f"{names[found.witness_comment]}, and finds none it approves is {whom}."
        )
    else:
        statement = (
            f"It is not certain whether the first {k:,} of the {called} leave out a group of {unit}: {whom} in the "
            f"sample approve {names[found.witness_comment]} and none of these."
        )
    if found.without_approvals and not 0 < found.without_approvals < min_readers:
        statement += f" {found.without_approvals:,} approve nothing at all."
    return Finding(
        id=f"feed/top{k}",
        statement=statement,
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            f"A group of {unit} that agrees on a comment has a claim to one of {k:,} places."
            if bad
            else "This bounds the worst exclusion; it does not make the feed proportional."
            if fine
            else "The readers are a sample, and it is too small to tell."
        ),
        value=None if hidden else found.worst_ratio,
        interval=interval,
        limit=limit,
        limit_source=limit_source,
        n=profile.n,
        evidence=() if found.witness_comment is None else _evidence(profile, excluded, unserved, k, names, min_readers),
        remedies=() if fine else ("RepresentativeRanker",),
        **_SECTION,
    )


def _interval(excluded: NDArray[np.int64], profile: Profile, k: int, family: int) -> Interval:
    low, high = clopper_pearson(excluded, np.full(len(excluded), profile.n), level=1.0 - (1.0 - _LEVEL) / family)
    return Interval(
        k * float(low.max()), k * float(high.max()), method="Clopper-Pearson, of the largest", simultaneous=True
    )


def _evidence(
    profile: Profile,
    excluded: NDArray[np.int64],
    unserved: NDArray[np.bool_],
    k: int,
    names: list[str],
    min_readers: int,
) -> tuple[Table | Figure, ...]:
    """Return the comments whose approvers are left out most."""
    worst = [c for c in np.argsort(-excluded, kind="stable")[:_MOST].tolist() if excluded[c] > 0]
    rows: list[tuple[Cell, ...]] = []
    shown: dict[str, float] = {}
    for c in worst:
        approvers = profile.approvers(c)
        left = int(unserved[approvers].sum())
        units = int(excluded[c]) * k / profile.total
        if left < min_readers:
            rows.append((names[c], SUPPRESSED, SUPPRESSED, SUPPRESSED))
            continue
        rows.append((names[c], len(approvers), left, units))
        shown[names[c]] = units
    table = Table(
        f"Whom the first {k:,} leave out",
        (
            Column("Comment", "text"),
            Column("Approve it", "count", "Readers who approve this comment"),
            Column("Approve nothing shown", "count", f"Of these, who approve none of the first {k:,}"),
            Column("In units of n/k", "number", "1 or more is a group that has a claim to a place"),
        ),
        tuple(rows),
        note="The comments with the most such readers. The same readers may stand behind several.",
    )
    if len(shown) < len(rows) or not shown:
        return (table,)
    figure = Figure(
        "bars",
        f"Readers who approve a comment and none of the first {k:,}",
        "Comment",
        "In units of n/k",
        (Series("left out", tuple(shown), tuple(shown.values())),),
        (Line("a claim to a place", 1.0),),
        alt=f"Of {len(shown)} comments, {sum(units >= 1 for units in shown.values())} reach the line.",
    )
    return table, figure


def _repair(profile: Profile, feed: NDArray[np.intp], judged: dict[int, JRReport], time_limit: float) -> Finding:
    """Return how many of the comments on top must make room, by the ranker, for each length."""
    support = profile.support() / profile.total
    rows: list[tuple[Cell, ...]] = []
    share = 0.0
    for p, report in judged.items():
        kept = np.zeros(profile.m)
        kept[feed[:p]] = 1.0
        ranking = RepresentativeRanker(p, time_limit=time_limit).rank(profile, kept + 1e-3 * support)
        new = int(p - kept[ranking.order].sum())
        share = max(share, new / p)
        rows.append((p, report.coverage, new, ranking.report.coverage, "yes" if ranking.optimal else "not proved"))
    most = max(int(row[2]) for row in rows)  # type: ignore[arg-type]
    return Finding(
        id="feed/repair",
        statement=(
            "No comment has to make room."
            if not most
            else f"To leave out no such group, at most {most:,} of the comments on top "
            f"{'has' if most == 1 else 'have'} to make room for others."
        ),
        severity="note",
        reason="Found by RepresentativeRanker, which keeps as many of the comments on top as it can.",
        value=share,
        n=profile.n,
        evidence=(
            Table(
                "What it would take",
                (
                    Column("First", "number", "How many comments are shown"),
                    Column("Served now", "percent", "Readers who approve a comment that is shown"),
                    Column("Exchanged", "number", "Comments that make room"),
                    Column("Served then", "percent", "Readers who approve a comment that is shown, after the exchange"),
                    Column("Fewest possible", "text"),
                ),
                tuple(rows),
            ),
        ),
        remedies=("RepresentativeRanker",) if most else (),
        **_SECTION,
    )


def _groups(
    profile: Profile, feed: NDArray[np.intp], lengths: list[int], name: str, members: Any, min_readers: int
) -> Finding:
    """Return which share of each group of readers is served."""
    labels = np.asarray(["(missing)" if _absent(value) else str(value) for value in members], dtype=object)
    if labels.shape != (profile.n,):
        raise InputError(f"the groups {name!r} have {len(labels)} labels", expected=f"one per reader: {profile.n}")
    found = sorted(set(labels))
    served = {p: profile.hits(feed[:p]) > 0 for p in lengths}
    last = lengths[-1]
    rows: list[tuple[Cell, ...]] = []
    least: tuple[float, str, int] | None = None
    for label in found:
        inside = labels == label
        n, weight = int(inside.sum()), int(profile.weights[inside].sum())
        if n < min_readers or not weight:
            rows.append((_name(label), n, *[SUPPRESSED] * (len(lengths) + 1)))
            continue
        shares = [int(profile.weights[inside & served[p]].sum()) / weight for p in lengths]
        low, high = wilson(int((inside & served[last]).sum()), n, level=1.0 - (1.0 - _LEVEL) / len(found))
        rows.append((_name(label), n, *shares, (float(low), float(high))))
        least = min(least or (2.0, "", 0), (shares[-1], _name(label), n))
    overall = int(profile.weights[served[last]].sum()) / profile.total
    return Finding(
        id=f"feed/groups/{name}",
        group=name,
        statement=(
            f"No group of {name} has {min_readers} readers."
            if least is None
            else f"By {name}, readers of the group {least[1]} find least: {100 * least[0]:.3g} % approve one of the "
            f"first {last:,}, of all readers {100 * overall:.3g} %."
        ),
        severity="note",
        status="inconclusive" if least is None else "ran",
        reason="Groups are reported, not judged: the guarantee holds for every group that agrees on a comment.",
        value=None if least is None else least[0],
        n=profile.n if least is None else least[2],
        evidence=(
            Table(
                f"Readers who approve a comment that is shown, by {name}",
                (
                    Column("Group", "text"),
                    Column("n", "count", "Readers"),
                    *(Column(f"First {p:,}", "percent") for p in lengths),
                    Column("Interval", "interval", f"Wilson, of the first {last:,}, unweighted; over all groups"),
                ),
                tuple(rows),
            ),
        ),
        **_SECTION,
    )


def _imputed(
    imputer: ApprovalImputer,
    profile: Profile,
    feed: NDArray[np.intp],
    lengths: list[int],
    weights: ArrayLike | None,
    draws: int,
    random_state: int | None,
) -> Finding:
    """Return how firmly verdicts on imputed approvals stand."""
    held = {
        p: imputer.probability_of_jr(feed[:p], p, weights=weights, n_draws=draws, random_state=random_state)
        for p in lengths
    }
    learned = imputer.cv_log_loss_ < imputer.baseline_log_loss_
    told = ", ".join(f"{100 * share:.3g} % for the first {p:,}" for p, share in held.items())
    return Finding(
        id="feed/imputed",
        statement=(
            f"Missing votes are guesses. In draws of them, {draws:,} in all, no group that is too large is left out in "
            f"{told}."
            if learned
            else "The votes do not tell who would approve what: on votes that were held out, the model is no better "
            "than the overall share of approval."
        ),
        severity="note" if learned else "warn",
        reason=(
            f"Log-loss on held-out votes: {imputer.cv_log_loss_:.3g}, with the overall share alone "
            f"{imputer.baseline_log_loss_:.3g}."
        ),
        value=min(held.values()),
        n=profile.n,
        evidence=(
            Table(
                "Draws in which the feed leaves out no group that is too large",
                (Column("First", "number"), Column("Share of draws", "percent")),
                tuple(held.items()),
            ),
        ),
        **_SECTION,
    )


def _too_few(name: str, n: int, least: int) -> Finding:
    return Finding(
        id=f"feed/{name}",
        statement="Too few readers to say anything without showing what single ones approve.",
        severity="note",
        status="inconclusive",
        reason=f"Fewer than {least} readers. Where their votes are no secret: --min-cell 1.",
        n=n if n >= least else None,
        **_SECTION,
    )


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _name(label: Any) -> str:
    text = str(label)
    return text if len(text) <= 60 else text[:59] + "…"
