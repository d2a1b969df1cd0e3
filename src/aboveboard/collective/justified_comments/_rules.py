"""How comments are chosen: by new coverage, by score among those that must be chosen, by equal shares, or exactly.

Every rule takes the readers as a `Profile`. Coverage only shrinks as comments are chosen, so each reader's row is taken
out of the counts once: O(nnz) in all, and O(m) per comment for the next choice.
"""

import heapq
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aboveboard._optimize.linear import TimeLimitError, integer_program
from aboveboard.collective.justified_comments._profile import Profile

__all__ = ["Nested", "best_nested", "by_score", "cover_greedily", "coverage_order", "equal_shares", "move_up", "value"]

Floats = NDArray[np.float64]
Picks = list[int]

_SLACK: Final = 1e-9
_GAP: Final = 1e-7
_CUTS: Final = 10
"""How many comments give a cut per round, those with the largest excluded group first."""
_MOST_UNKNOWN: Final = 2000
"""How many comments x prefixes a program may have: beyond, HiGHS does not keep to its time limit."""


@dataclass
class Coverage:
    """Who is served so far, and the weight of each comment's approvers who are not."""

    profile: Profile
    served: NDArray[np.bool_] = field(init=False)
    new: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.served = np.zeros(self.profile.n, dtype=bool)
        self.new = self.profile.support()

    def add(self, comment: int) -> None:
        readers = self.profile.approvers(comment)
        readers = readers[~self.served[readers]]
        self.served[readers] = True
        self.new -= self.profile.support_of(readers)


def by_score(comments: NDArray[np.intp] | Picks, scores: Floats) -> NDArray[np.intp]:
    """Return the comments, best score first; ties by position."""
    chosen = np.sort(np.asarray(comments, dtype=np.intp))
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def fill(chosen: Picks, scores: Floats, k: int) -> Picks:
    """Return k comments: those chosen, then the best of the others."""
    taken = set(chosen)
    rest = (int(c) for c in np.argsort(-scores, kind="stable") if int(c) not in taken)
    return [*chosen, *(next(rest) for _ in range(k - len(chosen)))]


def cover_greedily(profile: Profile, scores: Floats, k: int, *, scores_first: bool) -> Picks:
    """Return a justifying set: comments chosen while some comment has n/k unserved approvers.

    The one with most of them is chosen, or with `scores_first` the one with the best score; the other decides ties.
    Each serves n/k further readers, so there are at most k, and then no comment has n/k unserved approvers.
    """
    quota = profile.quota(k)
    coverage = Coverage(profile)
    chosen: Picks = []
    while len(chosen) < k:
        able = np.flatnonzero(coverage.new >= quota)
        if not len(able):
            break
        keys = (coverage.new[able], scores[able]) if scores_first else (scores[able], coverage.new[able])
        pick = int(able[np.lexsort((-able, *keys))[-1]])
        chosen.append(pick)
        coverage.add(pick)
    return chosen


def coverage_order(profile: Profile, scores: Floats, k: int) -> Picks:
    """Return k comments, each with the most unserved approvers left, ties by score: justified at every prefix.

    If a comment had n/k' unserved approvers after k' choices, each of these had served as many, so all n are served.
    """
    coverage = Coverage(profile)
    chosen: Picks = []
    open_ = np.ones(profile.m, dtype=bool)
    while len(chosen) < k:
        able = np.flatnonzero(open_)
        pick = int(able[np.lexsort((-able, scores[able], coverage.new[able]))[-1]])
        if not coverage.new[pick]:
            return fill(chosen, scores, k)
        chosen.append(pick)
        open_[pick] = False
        coverage.add(pick)
    return chosen


# --- the method of equal shares ---------------------------------------------------------------------------------------


def equal_shares(profile: Profile, scores: Floats, k: int) -> Picks:
    """Return what readers buy with equal shares of k, each comment costing 1: EJR+ (at most k, often fewer).

    The comment whose approvers need the least each to pay for it together is bought; ties by score. What they need only
    grows as money is spent, so a heap of earlier values is enough.
    """
    purse = np.full(profile.n, k / profile.total)
    support = profile.support()
    queue = [(1.0 / int(w), -float(scores[c]), c) for c, w in enumerate(support.tolist()) if w > 0]
    heapq.heapify(queue)
    bought: Picks = []
    while queue:
        stale, worth, comment = heapq.heappop(queue)
        readers = profile.approvers(comment)
        needed = _rate(purse[readers], profile.weights[readers])
        if needed is None:
            continue
        if queue and (needed, worth, comment) > queue[0] and needed > stale:
            heapq.heappush(queue, (needed, worth, comment))
            continue
        purse[readers] -= np.minimum(purse[readers], needed)
        bought.append(comment)
    return bought


def _rate(purse: Floats, weights: NDArray[np.int64]) -> float | None:
    """Return the least rate r with sum of weights x min(purse, r) = 1, or None where the money does not suffice."""
    some = weights > 0
    order = np.argsort(purse[some], kind="stable")
    money, weight = purse[some][order], weights[some][order].astype(np.float64)
    spent = np.cumsum(weight * money)
    if not len(spent) or spent[-1] < 1.0 - _SLACK:
        return None
    still = weight.sum() - np.cumsum(weight) + weight
    rate = (1.0 - (spent - weight * money)) / still
    enough = np.flatnonzero(rate <= money)
    return float(rate[enough[0]]) if len(enough) else float(money[-1])


# --- several prefixes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nested:
    """An order of k comments whose prefixes count, with a bound on how good any could be.

    Attributes
    ----------
    order : list of int
    bound : float
        No order that is justified at these prefixes has a greater `value`.
    optimal : bool
    """

    order: Picks
    bound: float
    optimal: bool


def value(order: Picks, scores: Floats, prefixes: tuple[int, ...]) -> float:
    """Return the mean over the prefixes of their mean score."""
    return float(np.mean([scores[np.asarray(order[:p], dtype=np.intp)].mean() for p in prefixes]))


def arrange(order: Picks, scores: Floats, prefixes: tuple[int, ...]) -> Picks:
    """Return the order with each stretch between two prefixes sorted by score: the sets of the prefixes stay."""
    ends = (0, *prefixes)
    parts = [by_score(order[a:b], scores) for a, b in pairwise(ends)]
    return [int(c) for part in parts for c in part]


def largest_excluded(profile: Profile, chosen: Picks) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return who is not served, and the weight of each comment's approvers among them."""
    unserved = profile.hits(np.asarray(chosen, dtype=np.intp)) == 0
    return unserved, profile.support_among(unserved)


def move_up(profile: Profile, order: Picks, scores: Floats, prefixes: tuple[int, ...], deadline: float) -> Picks:
    """Put better comments in the place of worse ones further up while every prefix stays justified.

    From the first place on, the best comment from below or from outside that can take the place does.
    """

    def justified(candidate: Picks, first: int, last: int) -> bool:
        touched = (p for p in prefixes if first < p <= last)
        return all(int(largest_excluded(profile, candidate[:p])[1].max()) < profile.quota(p) for p in touched)

    current = list(order)
    ranked = [int(c) for c in np.argsort(-scores, kind="stable")]
    k = len(current)
    for place in range(k):
        for comment in ranked:
            if time.monotonic() > deadline or scores[comment] <= scores[current[place]]:
                break
            at = current.index(comment) if comment in current else k
            if at < place:
                continue
            candidate = list(current)
            if at < k:
                candidate[at] = candidate[place]
            candidate[place] = comment
            if justified(candidate, place, at):
                current = candidate
                break
    return current


def best_nested(profile: Profile, scores: Floats, prefixes: tuple[int, ...], start: Picks, time_limit: float) -> Nested:
    """Return the order of greatest `value` among those that are justified at every prefix.

    Parameters
    ----------
    prefixes : tuple of int
        Ascending; the last is k.
    start : list of int
        An order that is justified; what is returned when the time is up and nothing better was found.

    Notes
    -----
    A program over comments alone. Let W be a choice that leaves out a group of weight e >= q that shares comment c,
    where q is the quota. What a further comment j serves of this group is at most g_j, so every justified choice has
    sum_j min(g_j, d) x_j >= d with d = e - q + 1, and W does not. The program is solved, the cuts of the worst
    comments are added, and so on until nobody is left out. No variable stands for a reader: readers cost one product
    of the sparse matrix per round.

    With very many comments the program sees some of them only: those of `start`, the best scores and the most
    approved. What it finds is justified all the same, but proves nothing about the others.
    """
    deadline = time.monotonic() + time_limit
    m, levels = profile.m, len(prefixes)
    spread = float(np.ptp(scores)) or 1.0
    low = float(scores.min())
    seen = _candidates(profile, scores, start, max(_MOST_UNKNOWN // levels, 4 * prefixes[-1]))
    columns = np.concatenate([level * m + seen for level in range(levels)])
    gain = np.concatenate([(scores[seen] - low) / spread / (p * levels) for p in prefixes])
    base, least, most = _nesting(len(seen), prefixes)
    best, best_value = start, value(start, scores, prefixes)
    top = fill([], scores, prefixes[-1])
    bound = value(top, scores, prefixes)
    cuts = _cuts(profile, top, prefixes)
    if not cuts:
        return Nested(top, bound, optimal=True)
    while (left := deadline - time.monotonic()) > 0:
        try:
            found = integer_program(
                -gain,
                _stacked([base, *(cut[:, columns] for cut in cuts)]),
                np.r_[least, np.ones(len(cuts))],
                np.r_[most, np.full(len(cuts), np.inf)],
                np.ones(len(gain), dtype=bool),
                high=1.0,
                gap=_GAP,
                time_limit=left,
            )
        except TimeLimitError:
            break
        if len(seen) == m:
            bound = min(bound, low - spread * found.bound)
        order = _order(found.x.reshape(levels, len(seen)) > 0.5, seen)
        new = _cuts(profile, order, prefixes)
        if not new:
            if (reached := value(order, scores, prefixes)) > best_value:
                best, best_value = order, reached
            if found.optimal and len(seen) == m:
                return Nested(best, max(best_value, min(bound, best_value + _GAP * spread)), optimal=True)
            break
        cuts += new
    return Nested(best, max(bound, best_value), optimal=bound <= best_value + _GAP * spread)


def _nesting(m: int, prefixes: tuple[int, ...]) -> tuple[sparse.csr_array, Floats, Floats]:
    """Return rows that say: prefix p holds p comments, and each prefix holds the one before."""
    levels = len(prefixes)
    sizes = sparse.kron(sparse.eye_array(levels), np.ones((1, m)))
    steps = sparse.diags_array([np.ones(levels - 1), -np.ones(levels - 1)], offsets=[0, 1], shape=(levels - 1, levels))
    inside = sparse.kron(steps, sparse.eye_array(m)) if levels > 1 else sparse.csr_array((0, m))
    rows = sparse.csr_array(sparse.vstack([sizes, inside]))
    count = inside.shape[0]
    p = np.asarray(prefixes, dtype=np.float64)
    return rows, np.r_[p, np.full(count, -np.inf)], np.r_[p, np.zeros(count)]


def _stacked(rows: list[sparse.csr_array]) -> sparse.csr_array:
    """Return the rows as one matrix with 32-bit indices, which is what HiGHS takes."""
    matrix = sparse.csr_array(sparse.vstack(rows, format="csr"))
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=matrix.shape)


def _candidates(profile: Profile, scores: Floats, start: Picks, most: int) -> NDArray[np.intp]:
    """Return the comments that the program may choose, in order of position: all where they are not too many."""
    if profile.m <= most:
        return np.arange(profile.m)
    kept = np.zeros(profile.m, dtype=bool)
    kept[start] = True
    for worth in (scores, profile.support()):
        kept[np.argsort(-worth, kind="stable")[: most // 2]] = True
    return np.flatnonzero(kept)


def _order(chosen: NDArray[np.bool_], seen: NDArray[np.intp]) -> Picks:
    """Return an order whose prefixes are the rows of `chosen`, over the comments `seen`."""
    order: Picks = []
    for row in chosen:
        taken = set(order)
        order += [int(c) for c in seen[row] if int(c) not in taken]
    return order


def _cuts(profile: Profile, order: Picks, prefixes: tuple[int, ...]) -> list[sparse.csr_array]:
    """Return a row over all unknowns, at least 1 in justified choices, for each group that a prefix leaves out."""
    m, rows = profile.m, []
    for level, p in enumerate(prefixes):
        quota = profile.quota(p)
        unserved, excluded = largest_excluded(profile, order[:p])
        worst = np.argsort(-excluded, kind="stable")[:_CUTS]
        for comment in worst[excluded[worst] >= quota].tolist():
            readers = profile.approvers(comment)
            need = int(excluded[comment]) - quota + 1
            served = np.minimum(profile.support_of(readers[unserved[readers]]), need) / need
            at = np.flatnonzero(served)
            rows.append(
                sparse.csr_array(
                    (served[at], (np.zeros(len(at), dtype=np.intp), level * m + at)), shape=(1, m * len(prefixes))
                )
            )
    return rows
