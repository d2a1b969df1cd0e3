"""From the dissent against each comparison to the rankings for every tolerated share of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from aboveboard.core.errors import InputError
from aboveboard.core.finding import Figure, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RankingPath", "TierCheck", "check_tau", "check_tiers", "order_and_boundaries"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

HALF: Final = 0.5
TOLERANCE: Final = 1e-9
"""On shares of dissent: counts are whole, and tau is a float that may lie a rounding error below k / p."""

_BLOCK: Final = 64
"""Rows that are looked at together."""


@dataclass(frozen=True, eq=False)
class RankingPath:
    """The selective rankings for every tolerated dissent at once: a dendrogram of tiers.

    Attributes
    ----------
    items : tuple
        Labels.
    order : ndarray of int, shape (n,)
        Positions of the items, best first. Items that no tau below `limit` separates keep their old order.
    boundary_dissent : ndarray of float, shape (n - 1,)
        Entry k: the dissent that must be tolerated for a boundary between places k and k + 1 of `order`; NaN where no
        tau below `limit` gives one.
    limit : float
        The path holds for tau below it: 0.5, or less where missing votes are ignored and two items have so few votes
        that neither order can be refused.
    blocking : (label, label) or None
        These two items.
    n_judges : int
    """

    items: tuple[Any, ...]
    order: Ints
    boundary_dissent: Floats
    limit: float
    blocking: tuple[Any, Any] | None
    n_judges: int

    @property
    def levels(self) -> Floats:
        """The values of tau at which another ranking begins, ascending."""
        return np.unique(self.boundary_dissent[~np.isnan(self.boundary_dissent)])

    @property
    def finest(self) -> float:
        """The smallest tau that gives the finest ranking of the path."""
        return float(self.levels[-1]) if len(self.levels) else 0.0

    @property
    def comparability(self) -> Floats:
        """The share of pairs that are ordered, at each of `levels`."""
        return np.array([self.share_comparable(tau) for tau in self.levels.tolist()])

    def at(self, tau: float) -> list[list[Any]]:
        """Return the tiers for a tolerated dissent, best first, as lists of labels.

        Parameters
        ----------
        tau : float in [0, 0.5)

        Raises
        ------
        InputError
            When tau lies outside, or at or above `limit`.
        """
        return [[self.items[i] for i in tier] for tier in self.tiers(tau)]

    def tiers(self, tau: float) -> list[list[int]]:
        """Return the tiers as lists of the items' positions."""
        tier = self.tier_of(tau)
        tiers: list[list[int]] = [[] for _ in range(int(tier.max()) + 1)]
        for i, place in enumerate(tier.tolist()):
            tiers[place].append(i)
        return tiers

    def tier_of(self, tau: float) -> Ints:
        """Return the tier of each item, 0 for the best."""
        check_tau(tau)
        if tau >= self.limit - TOLERANCE and self.blocking is not None:
            raise InputError(
                f"at tau = {tau:g} neither order of {self.blocking[0]!r} and {self.blocking[1]!r} can be refused: too "
                "few judges voted on the two",
                expected=f"tau below {self.limit:g}",
                remedy="missing='dissent' or 'rescale' orders them for every tau",
            )
        with np.errstate(invalid="ignore"):
            opened = self.boundary_dissent <= tau + TOLERANCE
        tier = np.empty(len(self.items), dtype=np.int64)
        tier[self.order] = np.concatenate([[0], np.cumsum(opened)])
        return tier

    def separation(self, first: int, second: int) -> float | None:
        """Return the smallest tau at which the item at position `first` is placed above that at `second`, or None."""
        place = np.empty(len(self.items), dtype=np.int64)
        place[self.order] = np.arange(len(self.items))
        between = self.boundary_dissent[place[first] : place[second]]
        between = between[~np.isnan(between)]
        return float(between.min()) if len(between) else None

    def share_comparable(self, tau: float) -> float:
        """Return the share of pairs that are ordered at `tau`."""
        n = len(self.items)
        sizes = np.bincount(self.tier_of(tau))
        return float(1.0 - (sizes * (sizes - 1)).sum() / (n * (n - 1)))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per ranking of the path, from tau = 0 on: tau, tiers, comparable (share of pairs), top."""
        levels = self.levels.tolist()
        levels = levels if levels and levels[0] <= TOLERANCE else [0.0, *levels]
        rows = [(tau, self.at(tau)) for tau in levels]
        return pd.DataFrame(
            {
                "tau": levels,
                "tiers": [len(tiers) for _, tiers in rows],
                "comparable": [self.share_comparable(tau) for tau in levels],
                "top": [tuple(tiers[0]) for _, tiers in rows],
            }
        )

    def figure(self) -> Figure:
        """Return the share of ordered pairs over the tolerated dissent, as a figure for a report."""
        frame = self.to_frame()
        x, y = [0.0], [float(frame["comparable"].iloc[0])]
        for tau, share in zip(frame["tau"].tolist()[1:], frame["comparable"].tolist()[1:], strict=True):
            x += [tau, tau]
            y += [y[-1], share]
        x.append(self.limit)
        y.append(y[-1])
        last = frame.iloc[-1]
        return Figure(
            "lines",
            "Pairs that can be ordered, by tolerated dissent",
            "Tolerated dissent (share of judges)",
            "Pairs that are ordered",
            (Series("ordered pairs", tuple(x), tuple(y)),),
            alt=(
                f"{len(frame)} rankings; the last begins at a dissent of {last['tau']:.3g} and orders "
                f"{100 * last['comparable']:.3g} % of the pairs."
            ),
            percent=True,
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the dendrogram: a line between two neighbours begins at the dissent at which they part.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots(figsize=(6, 0.3 * len(self.items) + 1))[1]
        for place, dissent in enumerate(self.boundary_dissent.tolist()):
            if not np.isnan(dissent):
                ax.plot([dissent, self.limit], [place + 0.5, place + 0.5], color="tab:blue", solid_capstyle="butt")
                ax.text(dissent, place + 0.5, f"{dissent:.2f} ", ha="right", va="center", fontsize="small")
        names = [str(self.items[i]) for i in self.order.tolist()]
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.set(xlim=(-0.05, self.limit), ylim=(len(self.items) - 0.5, -0.5), xlabel="tolerated dissent")
        return ax


def order_and_boundaries(dissent: NDArray[Any], limit: float) -> tuple[Ints, NDArray[Any]]:
    """Return the items, best first, and the dissent b that a boundary behind each place but the last would meet.

    Parameters
    ----------
    dissent : ndarray of shape (n, n)
        Entry i, j: the dissent against i above j. For each pair one of the two orders meets at least `limit`.
    limit : float
        Boundaries matter where b < limit.

    Notes
    -----
    The digraph with an arc from j to i where the dissent against i above j is at least `limit` is the sparsest that
    matters, and has an arc between any two items. Its strongly connected components are therefore contiguous when the
    items are sorted by out-degree. For every smaller threshold arcs are added and components merge, neighbours with
    neighbours. A boundary before place k stands iff no arc leads back over it: iff b_k, the largest dissent against an
    item at a place above k over one at k or below, is within the threshold. O(n^2) time, in blocks of rows that stay
    in the cache; O(n) memory beyond the input.
    """
    n = len(dissent)
    degree = np.zeros(n, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        degree += np.count_nonzero(dissent[start : start + _BLOCK] >= limit - TOLERANCE * max(limit, 1.0), axis=0)
    order = np.argsort(-degree, kind="stable")
    worst = np.empty(n - 1, dtype=dissent.dtype)
    carried = np.zeros(n, dtype=dissent.dtype)
    for start in range(0, n - 1, _BLOCK):
        above = order[start : min(start + _BLOCK, n - 1)]
        block = dissent[above][:, order]
        block = np.maximum.accumulate(block[:, ::-1], axis=1)[:, ::-1]  # over the places below
        np.maximum(block[0], carried, out=block[0])
        block = np.maximum.accumulate(block, axis=0)  # over the places above
        carried = block[-1].copy()
        rows = np.arange(len(above))
        worst[start : start + len(above)] = block[rows, start + rows + 1]
    return order, worst


@dataclass(frozen=True)
class TierCheck:
    """Whether tiers are the selective ranking of some votes, found out without the algorithm that made them.

    Attributes
    ----------
    worst_dissent : float
        The largest share of judges that do not support a comparison which the tiers make; 0 where they make none.
    feasible : bool
        Whether that is within tau.
    maximal : bool
        Whether no tier can be split: then no ranking within tau makes a comparison that this one does not make.
    """

    worst_dissent: float
    feasible: bool
    maximal: bool


def check_tiers(tiers: Sequence[Sequence[int]], weights: ArrayLike, *, n_judges: int, tau: float) -> TierCheck:
    """Check a tiered ranking against the votes.

    Parameters
    ----------
    tiers : lists of positions of items, best first
    weights : array-like of shape (n, n)
        Entry i, j: how many judges do not support that j stands above i (`SelectiveRanker.weights_`).
    n_judges : int
    tau : float in [0, 0.5)

    Returns
    -------
    TierCheck

    Notes
    -----
    Feasible: the largest weight against a comparison, looked up pair by pair. Maximal: each tier is strongly
    connected by comparisons that must not be made, so that no feasible ranking splits it. A ranking with both
    properties makes every comparison that any feasible one makes. O(n^2).
    """
    check_tau(tau)
    w = np.asarray(weights, dtype=np.float64)
    tier = np.full(len(w), -1, dtype=np.int64)
    for place, members in enumerate(tiers):
        tier[list(members)] = place
    if (tier < 0).any() or sum(map(len, tiers)) != len(w):
        raise InputError(
            "the tiers do not hold every item once", expected=f"the positions 0 to {len(w) - 1}, each once"
        )
    claims = tier[None, :] < tier[:, None]  # entry i, j: j is placed above i
    worst = float(w[claims].max()) / n_judges if claims.any() else 0.0
    maximal = True
    for members in tiers:
        inside = w[np.ix_(list(members), list(members))] / n_judges > tau + TOLERANCE
        np.fill_diagonal(inside, False)
        parts, _ = connected_components(csr_array(inside), directed=True, connection="strong")
        maximal &= parts == 1
    return TierCheck(worst, worst <= tau + TOLERANCE, bool(maximal))


def check_tau(tau: Any) -> None:
    """Refuse a tolerated dissent that is none."""
    if isinstance(tau, bool) or not np.isscalar(tau) or not isinstance(tau, int | float | np.number):
        raise TypeError(f"the tolerated dissent tau must be a number in [0, 0.5); got {tau!r}")
    if not 0 <= tau < HALF:
        raise InputError(
            f"the tolerated dissent tau is {tau:g}",
            expected="a number in [0, 0.5): from one half on, both orders of a pair could be claimed",
        )
