"""The ranker: any quality score, kept as far as no sizeable group of readers is left without a comment it approves."""

import time
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

import aboveboard
from aboveboard.collective.justified_comments import _rules
from aboveboard.collective.justified_comments._profile import Profile, check_k, check_scores, read_profile
from aboveboard.collective.justified_comments._properties import EJRReport, JRReport, ejr_report, jr_report
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["Ranking", "RepresentativeRanker"]

_RULES: Final = ("exact", "greedy", "score_greedy", "mes")
_PAPER: Final = Reference(
    title="Representative Ranking for Deliberation in the Public Sphere",
    authors="M. Revel, S. Milli, T. Lu, J. Watson-Daniels, M. Nickel",
    venue="ICML",
    year=2025,
    url="https://arxiv.org/abs/2503.18962",
)
Positions = NDArray[np.intp]


@dataclass(frozen=True)
class Ranking:
    """The comments to show, and what their choice cost.

    Attributes
    ----------
    order : ndarray of int, shape (k,)
        Positions of the comments, the first on top.
    justifying_set : ndarray of int
        Some of them that serve every sizeable group already; the others could be anything.
    score, best_score : float
        Mean score of the order, and of the k best scores; with prefixes the mean over prefixes of their mean scores.
    score_loss : float
        What the guarantee cost, as a share of the best score: ``(best_score - score) / |best_score|``.
    bound : float
        No order with the guarantee has a greater score. Equal to `score` where the rule proves it; the rules "greedy",
        "score_greedy" and "mes" prove nothing, and have the best score here.
    optimal : bool
        Whether no order with the guarantee has a greater score, to within 1e-7 of the range of the scores.
    reports : dict of int to JRReport
        The check of each prefix that is guaranteed; the last is k.
    extended : EJRReport or None
        With rule "mes".
    """

    order: Positions
    justifying_set: Positions
    score: float
    best_score: float
    bound: float
    optimal: bool
    reports: dict[int, JRReport]
    extended: EJRReport | None
    _facts: dict[str, Any] = field(repr=False)

    @property
    def selected(self) -> Positions:
        """The comments in order of position."""
        return np.sort(self.order)

    @property
    def report(self) -> JRReport:
        """The check of the k comments."""
        return self.reports[len(self.order)]

    @property
    def score_loss(self) -> float:
        return _share(self.best_score - self.score, self.best_score)

    @property
    def gap(self) -> float:
        """How much better an order with the guarantee could be at most, as a share of the best score."""
        return _share(self.bound - self.score, self.best_score)

    def certificate(self) -> Certificate:
        """Return the guarantee, with the check of it."""
        k, facts = len(self.order), self._facts
        lengths = ", ".join(f"{p:,}" for p in self.reports)
        assumptions = [
            Assumption(
                f"No group of {_part(p)} of the readers shares a comment and approves none of the first {p:,}.",
                basis="checked",
                test="largest excluded group, in units of a k-th of the readers, counted anew from the approvals",
                statistic=report.worst_ratio,
                limit=1.0,
                passed=report.satisfied,
            )
            for p, report in self.reports.items()
        ]
        if self.extended is not None:
            assumptions.append(
                Assumption(
                    f"Any l/{k} of the readers who share a comment that is not shown have a member who approves l "
                    "that are (EJR+).",
                    basis="checked",
                    test="largest group with fewer, over comments and l, in units of l k-ths of the readers",
                    statistic=self.extended.worst_ratio,
                    limit=1.0,
                    passed=self.extended.satisfied,
                )
            )
        assumptions.append(Assumption("The approvals are what the readers think."))
        parameters = {
            "k": k,
            "rule": facts["rule"],
            "readers": facts["readers"],
            "comments": facts["comments"],
            "justifying_set": len(self.justifying_set),
            "score_loss": self.score_loss,
            "optimal": self.optimal,
            "gap": self.gap,
            "coverage": self.report.coverage,
            "readers_without_approvals": self.report.without_approvals,
        }
        if self.best_score > 0 and self.score > 0:
            parameters["price"] = self.best_score / self.score
        if facts["price_bound"] is not None:
            parameters["price_bound"] = facts["price_bound"]
        return Certificate(
            kind="justified representation",
            guarantee=(
                f"Of {facts['readers']:,} readers{' by weight' if facts['weighted'] else ''}, every group that is a "
                f"k-th of all and shares a comment has a member who approves one of the first k; k = {lengths}."
            ),
            parameters=parameters,
            assumptions=tuple(assumptions),
            does_not_cover=(
                "groups smaller than a k-th of the readers, who may find nothing",
                "proportional representation: a large group may find one comment only"
                if self.extended is None
                else "the order of the comments that are shown",
                "readers whose approvals are not here, and replies below a comment",
            ),
            library_version=aboveboard.__version__,
            reference=_PAPER,
        )


class RepresentativeRanker(BaseEstimator):  # type: ignore[misc]
    """Rank comments by any score while no sizeable group of readers is left without a comment it approves.

    Parameters
    ----------
    k : int, default 8
        How many comments are shown.
    rule : {"exact", "greedy", "score_greedy", "mes"}, default "exact"
        The order of best score (an integer program); the published GreedyCC, which serves the most readers first;
        the same where the best score goes first; or the method of equal shares, which guarantees more (EJR+): larger
        groups get more comments.
    prefixes : None, "all" or sequence of int, optional
        Further lengths at which the feed must be representative by itself, for readers who scroll. k is always one.
        "greedy" then takes the comment with the most unserved approvers at every step; "score_greedy" starts there and
        moves better comments up; "mes" does not take prefixes.
    time_limit : float, default 10
        In seconds, for "exact" and for moving comments up. When it ends, the best order so far is returned, with what
        it may lack (`Ranking.gap`).

    Notes
    -----
    Readers are those of the approvals, n in all. A selection W of k comments satisfies justified representation when no
    comment has n/k approvers none of whom approves anything in W. The guarantee needs no groups: whoever agrees on a
    comment is one. It holds for the approvals given, and `justified_representation` checks it without this class.

    Nobody who can be served needs more than k comments: each comment of the greedy rules serves n/k further readers.
    Where that takes l comments and no score is negative, the best score is at most k/(k-l) times what is kept
    (`price_bound` in the certificate).

    The greedy rules and "mes" take O(nnz) and O(m) per comment; "exact" solves programs over the m comments, with one
    product of the approval matrix per round. With more than 2,000 comments (comments x prefixes) it chooses among those
    of the greedy rules, the best scores and the most approved, and does not prove that others are no better.

    References
    ----------
    M. Revel, S. Milli, T. Lu, J. Watson-Daniels, M. Nickel, "Representative Ranking for Deliberation in the Public
    Sphere", ICML 2025. The rules "exact" and "score_greedy" and the prefixes are this project's. D. Peters, P. Skowron,
    "Proportionality and the Limits of Welfarism", EC 2020, for "mes".

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import RepresentativeRanker
    >>> approvals = np.array([[1, 1, 0]] * 6 + [[0, 0, 1]] * 4)  # readers x comments
    >>> ranking = RepresentativeRanker(k=2).rank(approvals, scores=[0.9, 0.8, 0.1])
    >>> ranking.order.tolist(), round(ranking.score_loss, 3), ranking.certificate().holds
    ([0, 1], 0.0, True)
    >>> RepresentativeRanker(k=2).rank(approvals[2:], scores=[0.9, 0.8, 0.1]).order.tolist()  # 4 of 8 are
    [0, 2]
    """

    def __init__(
        self,
        k: int = 8,
        *,
        rule: Literal["exact", "greedy", "score_greedy", "mes"] = "exact",
        prefixes: Any = None,
        time_limit: float = 10.0,
    ) -> None:
        self.k = k
        self.rule = rule
        self.prefixes = prefixes
        self.time_limit = time_limit

    def rank(self, approvals: Any, scores: ArrayLike, *, weights: ArrayLike | None = None) -> Ranking:
        """Choose and order k comments.

        Parameters
        ----------
        approvals : array, sparse matrix or data frame of shape (n_readers, n_comments)
            0 and 1, or booleans.
        scores : array-like of shape (n_comments,)
            Higher is better: civility, engagement, anything.
        weights : array-like of shape (n_readers,), optional
            What each reader counts, see `justified_representation`.

        Returns
        -------
        Ranking

        Raises
        ------
        aboveboard.core.InputError
            When k is below 1 or above the number of comments; for approvals that are not 0 or 1, scores or weights that
            do not fit, an unknown rule, prefixes outside 1 to k, or a time limit that is not above 0.
        """
        profile = read_profile(approvals, weights)
        k = check_k(self.k, profile.m)
        values = check_scores(scores, profile.m)
        prefixes = self._prefixes(k)
        self._refuse_options(prefixes)
        order, bound, optimal = self._choose(profile, values, prefixes)
        chosen = np.asarray(order, dtype=np.intp)
        best = _rules.value(_rules.fill([], values, k), values, prefixes)
        reports = {p: jr_report(profile, chosen[:p], p) for p in prefixes}
        justifying = _justifying(profile, order)
        bounded = self.rule in ("greedy", "score_greedy") and len(prefixes) == 1 and values.min() >= 0
        return Ranking(
            order=chosen,
            justifying_set=np.asarray(justifying, dtype=np.intp),
            score=_rules.value(order, values, prefixes),
            best_score=best,
            bound=best if bound is None else bound,
            optimal=optimal,
            reports=reports,
            extended=ejr_report(profile, chosen, k) if self.rule == "mes" else None,
            _facts={
                "rule": self.rule,
                "readers": profile.n,
                "comments": profile.m,
                "weighted": bool((profile.weights != profile.weights[0]).any()),
                "price_bound": self._price_bound(profile, values, k) if bounded else None,
            },
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _choose(
        self, profile: Profile, scores: NDArray[np.float64], prefixes: tuple[int, ...]
    ) -> tuple[list[int], float | None, bool]:
        """Return the order, what no order can exceed (None: not known), and whether it is the best."""
        k, single = prefixes[-1], len(prefixes) == 1
        if self.rule == "mes":
            order = _rules.fill(_rules.equal_shares(profile, scores, k), scores, k)
        elif single:
            kinds = {"greedy": (False,), "score_greedy": (True,)}.get(self.rule, (False, True))
            found = [_rules.cover_greedily(profile, scores, k, scores_first=first) for first in kinds]
            order = max((_rules.fill(some, scores, k) for some in found), key=lambda o: float(scores[o].sum()))
        else:
            order = _rules.coverage_order(profile, scores, k)
            if self.rule != "greedy":
                deadline = time.monotonic() + self.time_limit / (2.0 if self.rule == "exact" else 1.0)
                order = _rules.move_up(profile, order, scores, prefixes, deadline)
        if self.rule != "exact":
            order = _rules.arrange(order, scores, prefixes)
            top = _rules.value(_rules.fill([], scores, k), scores, prefixes)
            return order, None, _rules.value(order, scores, prefixes) >= top
        best = _rules.best_nested(profile, scores, prefixes, order, self.time_limit)
        return _rules.arrange(best.order, scores, prefixes), best.bound, best.optimal

    def _price_bound(self, profile: Profile, scores: NDArray[np.float64], k: int) -> float | None:
        needed = len(_rules.cover_greedily(profile, scores, k, scores_first=self.rule == "score_greedy"))
        return k / (k - needed) if needed < k else None

    def _prefixes(self, k: int) -> tuple[int, ...]:
        if self.prefixes is None:
            return (k,)
        if isinstance(self.prefixes, str):
            if self.prefixes != "all":
                raise InputError(f"prefixes is {self.prefixes!r}", expected="'all', lengths such as (5, 10), or None")
            return tuple(range(1, k + 1))
        try:
            given = list(self.prefixes)
        except TypeError:
            raise InputError(
                f"prefixes is {self.prefixes!r}", expected="'all', lengths such as (5, 10), or None"
            ) from None
        return tuple(sorted({*(check_k(p, k, "a prefix") for p in given), k}))

    def _refuse_options(self, prefixes: tuple[int, ...]) -> None:
        if self.rule not in _RULES:
            near = get_close_matches(str(self.rule), _RULES, n=1)
            raise InputError(
                f"rule is {self.rule!r}",
                expected=", ".join(map(repr, _RULES)),
                remedy=f"Did you mean {near[0]!r}?" if near else "",
            )
        if self.rule == "mes" and len(prefixes) > 1:
            raise InputError("prefixes were given with rule='mes'", expected="another rule, or no prefixes")
        limit = self.time_limit
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not 0 < limit < np.inf:
            raise InputError(f"the time limit is {limit!r}", expected="a number of seconds above 0")


def _justifying(profile: Profile, order: list[int]) -> list[int]:
    """Return few of the comments that satisfy the guarantee by themselves: those that serve the most, one by one."""
    quota = profile.quota(len(order))
    coverage = _rules.Coverage(profile)
    chosen: list[int] = []
    while int(coverage.new.max()) >= quota:
        pick = max((c for c in order if c not in chosen), key=lambda c: int(coverage.new[c]))
        chosen.append(pick)
        coverage.add(pick)
    return chosen


def _share(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / abs(whole) if whole else float("nan")


def _part(k: int) -> str:
    return "all" if k == 1 else f"1/{k}"
