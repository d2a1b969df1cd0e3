"""The estimator: votes in, the rankings that they bear out."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

import aboveboard
from aboveboard._stats.intervals import clopper_pearson
from aboveboard.collective.selective_ranking._path import (
    HALF,
    TOLERANCE,
    RankingPath,
    check_tau,
    check_tiers,
    order_and_boundaries,
)
from aboveboard.collective.selective_ranking._votes import Ballots, Missing, PairBallots, RankBallots, Tally, Ties
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["SelectiveRanker", "StabilityReport"]

_PAPER: Final = Reference(
    title="Selective Preference Aggregation",
    authors="S. Kadekodi, H. McTavish, B. Ustun",
    venue="ICML",
    year=2025,
)
_MISSING: Final = ("dissent", "ignore", "rescale")
_TIES: Final = ("dissent", "half")
_VOTES: Final = ("score", "rank")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StabilityReport:
    """What becomes of comparisons when the judges are drawn anew.

    Attributes
    ----------
    tau : float
    n_bootstrap : int
    claims : int
        Comparisons that the selective ranking at `tau` makes.
    selective_reversed : ndarray of shape (n_bootstrap,)
        The share of these that the selective ranking of the drawn judges makes the other way round.
    selective_lost : ndarray of shape (n_bootstrap,)
        The share that it does not make any more.
    borda_reversed : ndarray of shape (n_bootstrap,)
        The share of all pairs that the Borda count of the drawn judges orders the other way round than that of all.
    borda_top : tuple
        The two items with the highest Borda count.
    borda_top_reversed : float
        The share of draws in which these two change places.
    """

    tau: float
    n_bootstrap: int
    claims: int
    selective_reversed: Floats
    selective_lost: Floats
    borda_reversed: Floats
    borda_top: tuple[Any, Any]
    borda_top_reversed: float


class SelectiveRanker(BaseEstimator):  # type: ignore[misc]
    """Rank items by the votes of many judges, and order two of them only where enough judges agree.

    A selective ranking is a list of tiers, best first. Items of different tiers are ordered, items of one tier are not.
    For a tolerated dissent tau, the ranking makes as many comparisons as it can, such that at most the share tau of
    the judges fails to support any of them. All tau come out of one fit: see `path_`.

    Parameters
    ----------
    dissent : float in [0, 0.5), optional
        The tolerated dissent tau for `tiers_`, `labels_` and `certificate_`. None: only the path.
    votes : {"score", "rank"}
        Whether higher is better, or 1 is best. For lists of items, best first, see `ranks_from_orders`.
    missing : {"dissent", "ignore", "rescale"}
        What a missing vote on one of two items is. ``"dissent"``: support for neither order, so that every comparison
        holds however the missing votes would have come out. ``"ignore"``: it does not count, and neither does its
        judge where a share of all judges is taken; the path may stop before one half. ``"rescale"``: the judges who
        compared the two speak for all.
    ties : {"dissent", "half"}
        A judge who places two items alike supports neither order, or half supports each.
    confidence : float in (0, 1), optional
        The judges are an independent sample of a population: make a comparison at tau only where, with this
        confidence for all comparisons at once, at most the share tau of the population fails to support it. Not with
        missing votes that are ignored or rescaled.

    Attributes
    ----------
    path_ : RankingPath
    items_ : tuple
        Labels: the columns of a data frame, else 0, 1, ...
    n_judges_ : int
    support_ : ndarray of int, shape (n_items, n_items)
        Entry i, j: how many judges place i above j.
    compared_ : ndarray of int, shape (n_items, n_items)
        How many voted on both.
    weights_ : ndarray of shape (n_items, n_items)
        Entry i, j: how many do not support that j stands above i.
    tiers_ : list of lists of labels
        With `dissent`: the tiers, best first.
    labels_ : ndarray of int, shape (n_items,)
        With `dissent`: the tier of each item, 0 for the best.
    certificate_ : Certificate
        With `dissent`.

    Raises
    ------
    aboveboard.core.InputError
        At fit, for tau outside [0, 0.5), fewer than two items, infinite votes, two items that no judge compared where
        missing votes are ignored, and options that do not go together.

    Guarantee
    ---------
    The ranking at tau is the only one that makes the most comparisons within tau. A larger tau refines it, so there
    are at most n rankings. If at most d of p judges change their votes in any way, every comparison at tau still
    stands at tau + d / p, while that is below one half. With ``missing="dissent"`` every comparison holds for every
    completion of the missing votes. Where no judge ties items, the top tier at `path_.finest` is the smallest set of
    items each of which a majority prefers to every item outside it. With `confidence`, assuming that judges are drawn
    independently from one population, all comparisons at all tau hold for the population at once.

    Notes
    -----
    With w_ij the number of judges who do not support j above i, the tiers at tau are the strongly connected components
    of the digraph with an arc from i to j where w_ij > tau p. The whole path takes one pass: see
    `order_and_boundaries`. O(p n^2) time to count, vectorised; O(n^2) time and memory for the path.

    For `confidence` = 1 - delta, the share b / p of dissent at a boundary becomes the upper Clopper-Pearson limit at
    level 1 - delta / (n (n - 1)), for half ties Hoeffding's b / p + sqrt(log(n (n - 1) / delta) / (2 p)).

    References
    ----------
    S. Kadekodi, H. McTavish, B. Ustun, "Selective Preference Aggregation", ICML 2025. That the path takes one pass, and
    the population bound, are derived here.

    Examples
    --------
    Five judges rank three wines; two of them would swap the last two.

    >>> import pandas as pd
    >>> from aboveboard.collective import SelectiveRanker
    >>> ranks = pd.DataFrame({"red": [1, 1, 1, 1, 1], "white": [2, 2, 2, 3, 3], "rosé": [3, 3, 3, 2, 2]})
    >>> ranker = SelectiveRanker(votes="rank").fit(ranks)
    >>> ranker.path_.at(0.0)
    [['red'], ['white', 'rosé']]
    >>> ranker.path_.at(0.4)
    [['red'], ['white'], ['rosé']]
    >>> ranker.compare("white", "rosé")
    0.4
    """

    def __init__(
        self,
        dissent: float | None = None,
        *,
        votes: Literal["score", "rank"] = "score",
        missing: Missing = "dissent",
        ties: Ties = "dissent",
        confidence: float | None = None,
    ) -> None:
        self.dissent = dissent
        self.votes = votes
        self.missing = missing
        self.ties = ties
        self.confidence = confidence

    def fit(self, R: Any, y: Any = None) -> Self:  # noqa: ARG002 - the signature of scikit-learn
        """Read the votes and rank.

        Parameters
        ----------
        R : array-like or data frame of shape (n_judges, n_items)
            Scores or ranks (see `votes`); NaN where a judge did not place an item. Ranks need not begin at 1.
        y : ignored

        Returns
        -------
        self
        """
        self._refuse_options()
        labels = _labels(R)
        if hasattr(R, "columns") and not isinstance(R, pd.DataFrame):
            R = R.to_pandas()
        values = validate_data(
            self, R, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_features=2, ensure_min_samples=1
        )
        if self.votes == "score" and _reads_like_ranks(values):
            warnings.warn(
                "Every row reads like ranks 1, 2, 3, ..., and votes='score' takes the highest for the best. If 1 is "
                "best, say votes='rank'.",
                UserWarning,
                stacklevel=2,
            )
        silent = int(np.isnan(values).all(axis=1).sum())
        if silent:
            warnings.warn(
                f"{silent} of {len(values)} judges placed no item; each still counts as one judge.",
                UserWarning,
                stacklevel=2,
            )
        items = tuple(range(values.shape[1])) if labels is None else labels
        return self._rank(RankBallots(values if self.votes == "score" else -values), items)

    def fit_pairwise(
        self,
        judge: ArrayLike | None,
        winner: ArrayLike,
        loser: ArrayLike,
        tie: ArrayLike | None = None,
        *,
        items: Sequence[Any] | None = None,
    ) -> Self:
        """Read comparisons of two items each, and rank.

        Parameters
        ----------
        judge : array-like of shape (n_rows,), optional
            Who compared. What a judge says of one pair several times counts once, by the judge's own majority (a draw
            is a tie). None: each row is a judge of its own, which wants ``missing="rescale"`` (or "ignore").
        winner, loser : array-like of shape (n_rows,)
            Labels.
        tie : array-like of bool, optional
            Rows in which neither was preferred.
        items : sequence, optional
            All items; default those that occur, sorted.

        Returns
        -------
        self

        Notes
        -----
        O(rows log(rows)), and O(n^2) for the counts.
        """
        self._refuse_options()
        first, second = _column(winner, "winner"), _column(loser, "loser")
        columns = {"winner": first, "loser": second}
        tied = np.zeros(len(first), dtype=bool)
        if tie is not None:
            columns["tie"] = _column(tie, "tie")
            tied = columns["tie"].astype(bool)
        if judge is not None:
            columns["judge"] = _column(judge, "judge")
        for name, column in columns.items():
            if len(column) != len(first):
                raise InputError(f"{name} has {len(column):,} entries and winner {len(first):,}", expected="as many")
            gaps = int(pd.isna(column).sum())
            if gaps:
                raise InputError(f"{name} is missing in {gaps:,} rows", expected="a value in every row")
        if not len(first):
            raise InputError("there are no comparisons")
        labels = tuple(_sorted_labels([*first, *second]) if items is None else items)
        position = {label: i for i, label in enumerate(labels)}
        if len(position) != len(labels):
            raise InputError("an item is among the items twice", expected="every item to have a name of its own")
        if len(labels) < 2:
            raise InputError(f"there is {len(labels)} item", expected="two or more")
        foreign = next((label for label in (*first, *second) if label not in position), None)
        if foreign is not None:
            raise InputError(f"{foreign!r} was compared and is none of the items", expected="one of the items")
        upper = np.array([position[label] for label in first], dtype=np.int64)
        lower = np.array([position[label] for label in second], dtype=np.int64)
        if (upper == lower).any():
            label = labels[int(upper[upper == lower][0])]
            raise InputError(f"{label!r} was compared with itself", expected="two items in every comparison")
        who = None if judge is None else pd.factorize(columns["judge"])[0]
        ballots = PairBallots.from_rows(who, upper, lower, tied, n_items=len(labels))
        return self._rank(ballots, labels)

    def compare(self, i: Any, j: Any) -> float | None:
        """Return the smallest tau at which item `i` is placed above item `j`, or None where none does."""
        self._check_path()
        return self.path_.separation(self._position(i), self._position(j))

    def disputed_pairs(self, tau: float) -> pd.DataFrame:
        """Return the pairs that are not ordered at `tau`, the most evenly split first.

        Returns
        -------
        DataFrame
            item, other (the judges who place item above other are no fewer than those who do the reverse),
            prefer_item, prefer_other, tied, missing (numbers of judges), and separates_at: the smallest tau that
            orders the two either way, NaN where none does.
        """
        self._check_path()
        tier = self.path_.tier_of(tau)
        left, right = np.triu_indices(len(tier), 1)
        same = tier[left] == tier[right]
        left, right = left[same], right[same]
        swap = self.support_[left, right] < self.support_[right, left]
        left, right = np.where(swap, right, left), np.where(swap, left, right)
        prefer, against = self.support_[left, right], self.support_[right, left]
        labels = np.empty(len(self.items_), dtype=object)
        labels[:] = self.items_
        found = pd.DataFrame(
            {
                "item": labels[left],
                "other": labels[right],
                "prefer_item": prefer,
                "prefer_other": against,
                "tied": self.compared_[left, right] - prefer - against,
                "missing": self.n_judges_ - self.compared_[left, right],
                "separates_at": self._separations(left, right),
            }
        )
        return found.iloc[np.argsort(prefer - against, kind="stable")].reset_index(drop=True)

    def overruled(self, tau: float) -> Floats:
        """Return for each judge which share of their own strict preferences the ranking at `tau` reverses.

        Returns
        -------
        ndarray of shape (n_judges,)
            0 for a judge without a strict preference.
        """
        self._check_path()
        reversed_, strict = self._ballots.overruled(self.path_.tier_of(tau))
        return reversed_.astype(np.float64) / np.maximum(strict, 1).astype(np.float64)

    def top_tier(self, tau: float | None = None) -> list[Any]:
        """Return the top tier at `tau`; default that of the finest ranking. Ties in it are not broken."""
        self._check_path()
        return self.path_.at(self.path_.finest if tau is None else tau)[0]

    def stability(self, tau: float, *, n_bootstrap: int = 1000, random_state: int | None = None) -> StabilityReport:
        """Draw the judges anew, with replacement, and see which comparisons change; beside it the Borda count.

        Parameters
        ----------
        tau : float in [0, 0.5)
        n_bootstrap : int
        random_state : int, optional

        Notes
        -----
        The selective rankings of the draws have the same tau and options. O(n_bootstrap x p n^2).
        """
        self._check_path()
        tier = self.path_.tier_of(tau)
        claims = tier[:, None] < tier[None, :]
        n_claims = int(claims.sum())
        borda = _borda(self._tally)
        leaders = np.argsort(-borda, kind="stable")[:2]
        ahead = borda[:, None] > borda[None, :]
        n_ahead = max(int(np.count_nonzero(ahead)), 1)
        rng = np.random.default_rng(random_state)
        p, size = self.n_judges_, int(n_bootstrap)
        reversed_, lost, turned, swapped = np.zeros(size), np.zeros(size), np.zeros(size), 0
        for k in range(size):
            drawn = np.bincount(rng.integers(p, size=p), minlength=p)
            tally = self._ballots.tally(drawn)
            path = self._path(tally)
            if path.blocking is None or tau < path.limit - TOLERANCE:
                again = path.tier_of(tau)
                reversed_[k] = np.count_nonzero(claims & (again[:, None] > again[None, :])) / max(n_claims, 1)
                lost[k] = np.count_nonzero(claims & (again[:, None] == again[None, :])) / max(n_claims, 1)
            else:
                lost[k] = 1.0
            anew = _borda(tally)
            turned[k] = np.count_nonzero(ahead & (anew[:, None] < anew[None, :])) / n_ahead
            swapped += bool(anew[leaders[0]] < anew[leaders[1]])
        first, second = (self.items_[i] for i in leaders.tolist())
        return StabilityReport(float(tau), size, n_claims, reversed_, lost, turned, (first, second), swapped / size)

    def certify(self, tau: float) -> Certificate:
        """Return what is guaranteed at `tau`, after checking it against the votes pair by pair.

        Parameters
        ----------
        tau : float in [0, 0.5)
        """
        self._check_path()
        tiers = self.path_.tiers(tau)
        shares = self._shares(self.weights_.astype(np.float64))
        found = check_tiers(tiers, shares, n_judges=1, tau=tau)
        p, n = self.n_judges_, len(self.items_)
        whom = "the judges" if self.confidence is None else "the population from which the judges were drawn"
        how = {
            "dissent": "however the missing votes would have come out, ",
            "ignore": "of those who voted on both, ",
            "rescale": "with the judges who voted on both speaking for all, ",
        }[self.missing]
        has_gaps = bool((self.compared_[~np.eye(n, dtype=bool)] < p).any())
        assumptions = [
            Assumption(
                "No comparison has more dissent than is tolerated.",
                basis="checked",
                test="the largest dissent against any comparison, pair by pair",
                statistic=found.worst_dissent,
                limit=float(tau),
                passed=found.feasible,
            ),
            Assumption(
                "No tier can be split, so no ranking within the tolerated dissent makes a comparison that is not here.",
                basis="checked",
                test="each tier is strongly connected by comparisons with too much dissent",
                passed=found.maximal,
            ),
        ]
        if self.confidence is not None:
            assumptions.append(Assumption("The judges were drawn independently from the population."))
        claims = sum(len(above) * len(below) for above, below in combinations(tiers, 2))
        prefix = how[:1].upper() + how[1:] + "at" if has_gaps else "At"
        return Certificate(
            kind="selective ranking",
            guarantee=(
                f"{prefix} most {100 * tau:.4g} % of {whom} fail to support any of the {claims:,} comparisons that the "
                f"{len(tiers)} tiers make, and no other tiers with that property make a further comparison."
            ),
            parameters={
                "tau": float(tau),
                "judges": p,
                "items": n,
                "tiers": len(tiers),
                "comparable": self.path_.share_comparable(tau),
                "missing": self.missing,
                "ties": self.ties,
            },
            assumptions=tuple(assumptions),
            confidence=self.confidence,
            does_not_cover=(
                "whether the judges are right, or speak for anybody else"
                if self.confidence is None
                else "whether the judges of the population are right",
                "the order within a tier, and how far apart tiers are",
            ),
            library_version=aboveboard.__version__,
            reference=_PAPER,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _refuse_options(self) -> None:
        for name, value, allowed in (
            ("votes", self.votes, _VOTES), ("missing", self.missing, _MISSING), ("ties", self.ties, _TIES),
        ):  # fmt: skip
            if value not in allowed:
                near = get_close_matches(str(value), allowed, n=1)
                raise InputError(
                    f"{name} is {value!r}",
                    expected=" or ".join(map(repr, allowed)),
                    remedy=f"Did you mean {near[0]!r}?" if near else "",
                )
        if self.dissent is not None:
            check_tau(self.dissent)
        if self.confidence is not None:
            if isinstance(self.confidence, bool) or not 0 < self.confidence < 1:
                raise InputError(f"the confidence is {self.confidence!r}", expected="a number between 0 and 1")
            if self.missing != "dissent":
                raise InputError(
                    f"a confidence was given with missing={self.missing!r}",
                    expected="missing='dissent': only then is each judge one vote of a fixed number",
                )

    def _rank(self, ballots: Ballots, items: tuple[Any, ...]) -> Self:
        self.items_ = items
        self.n_judges_ = ballots.n_judges
        self._ballots = ballots
        self._tally = ballots.tally()
        self.support_, self.compared_ = self._tally.support, self._tally.compared
        self.weights_ = self._tally.dissent(self.missing, self.ties).T
        self._refuse_uncompared()
        self.path_ = self._path(self._tally)
        if self.dissent is not None:
            self.tiers_ = self.path_.at(self.dissent)
            self.labels_ = self.path_.tier_of(self.dissent)
            self.certificate_ = self.certify(self.dissent)
        return self

    def _refuse_uncompared(self) -> None:
        if self.missing != "ignore":
            return
        n = len(self.items_)
        never = (self.compared_ == 0) & ~np.eye(n, dtype=bool)
        if never.any():
            i, j = divmod(int(never.argmax()), n)
            raise InputError(
                f"no judge voted on both {self.items_[i]!r} and {self.items_[j]!r}, so neither order can be refused",
                expected="a vote on every pair where missing votes are ignored",
                remedy="missing='dissent' leaves such a pair unordered",
            )

    def _path(self, tally: Tally) -> RankingPath:
        dissent = tally.dissent(self.missing, self.ties)
        p, n = tally.n_judges, len(self.items_)
        limit, blocking = p * HALF, None
        if self.missing == "ignore":
            either = np.maximum(dissent, dissent.T).astype(np.float64)
            np.fill_diagonal(either, np.inf)
            least = int(either.argmin())
            if either.flat[least] < limit - TOLERANCE * p:
                limit = float(either.flat[least])
                i, j = divmod(least, n)
                blocking = (self.items_[i], self.items_[j])
        order, worst = order_and_boundaries(dissent, limit)
        shares = self._shares(worst.astype(np.float64), p)
        return RankingPath(
            items=self.items_,
            order=order,
            boundary_dissent=np.where(shares < limit / p - TOLERANCE, shares, np.nan),
            limit=limit / p,
            blocking=blocking,
            n_judges=p,
        )

    def _shares(self, counts: Floats, n_judges: int | None = None) -> Floats:
        """Return the dissent that must be tolerated for counts of judges: their share, or its upper limit."""
        p = self.n_judges_ if n_judges is None else n_judges
        if self.confidence is None:
            return counts / p
        n = len(self.items_)
        alpha = (1.0 - self.confidence) / (n * (n - 1))
        if self.ties == "half":
            return np.asarray(counts / p + np.sqrt(np.log(1.0 / alpha) / (2.0 * p)))
        return clopper_pearson(counts, p, level=1.0 - 2.0 * alpha)[1]

    def _separations(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> Floats:
        """Return the smallest tau that orders the items of each pair either way; NaN where none does."""
        place = np.empty(len(self.items_), dtype=np.int64)
        place[self.path_.order] = np.arange(len(place))
        low, high = np.minimum(place[left], place[right]), np.maximum(place[left], place[right])
        boundary = np.where(np.isnan(self.path_.boundary_dissent), np.inf, self.path_.boundary_dissent)
        least = _range_minimum(boundary, low, high)
        return np.where(np.isinf(least), np.nan, least)

    def _position(self, item: Any) -> int:
        try:
            return self.items_.index(item)
        except ValueError:
            near = get_close_matches(str(item), [str(label) for label in self.items_], n=1)
            raise InputError(
                f"no item is called {item!r}", remedy=f"Did you mean {near[0]!r}?" if near else "See items_"
            ) from None

    def _check_path(self) -> None:
        check_is_fitted(self, "path_")


def _labels(R: Any) -> tuple[Any, ...] | None:
    columns = getattr(R, "columns", None)
    if columns is None:
        return None
    labels = tuple(columns)
    if len(set(labels)) != len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"two columns are called {twice!r}", expected="every item to have a name of its own")
    return labels


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    column = np.asarray(values, dtype=object)
    if column.ndim != 1:
        raise InputError(f"{name} has {column.ndim} dimensions", expected="one value per comparison")
    return column


def _sorted_labels(labels: list[Any]) -> list[Any]:
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct)
    except TypeError:  # labels of several kinds keep the order in which they occur
        return distinct


def _reads_like_ranks(values: Floats) -> bool:
    """Whether every row holds ranks: each value is 1 plus the number of smaller ones, or of smaller distinct ones."""
    p, n = values.shape
    if n < 3 or p < 2 or np.isnan(values).any():
        return False
    ordered = np.sort(values, axis=1)
    if (ordered[:, 0] != 1).any() or (ordered[:, -1] == 1).any():
        return False
    rises = ordered[:, 1:] > ordered[:, :-1]
    places = np.arange(2, n + 1)
    standard = np.where(rises, ordered[:, 1:] == places, True).all(axis=1)
    dense = (ordered[:, 1:] - ordered[:, :-1] == rises).all(axis=1)
    return bool((standard | dense).all())


def _borda(tally: Tally) -> Floats:
    """Return each item's Borda count: how often it stands above another, less how often below."""
    balance: Floats = (tally.support - tally.support.T).sum(axis=1).astype(np.float64)
    return balance


def _range_minimum(values: Floats, low: NDArray[np.intp], high: NDArray[np.intp]) -> Floats:
    """Return min(values[low:high]) for each pair of ends, low < high, by a sparse table."""
    if not len(low):
        return np.empty(0)
    table = [values]
    while 2 ** len(table) <= len(values):
        half = 2 ** (len(table) - 1)
        table.append(np.minimum(table[-1][:-half], table[-1][half:]))
    depth = np.floor(np.log2(high - low)).astype(np.int64)
    least = np.empty(len(low))
    for k, row in enumerate(table):
        own = depth == k
        least[own] = np.minimum(row[low[own]], row[high[own] - 2**k])
    return least
