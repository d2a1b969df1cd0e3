"""A log of what was asked for and what was handed out, and the rates that an audit needs from it."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import clopper_pearson, cluster_effective_n
from aboveboard.collective.equitable_allocation._benchmark import leximin
from aboveboard.collective.equitable_allocation._demands import Floats, Ints
from aboveboard.core.errors import InputError

__all__ = ["ENOUGH_ROUNDS", "AllocationLog", "Rates", "labels_of", "read_log"]

ENOUGH_ROUNDS: Final = 20
"""From this number on the rounds are a sample of all rounds; below it they are all there are."""
MISSING: Final = "(missing)"
_MOST_SLOTS: Final = 1_000
_LEVEL: Final = 0.95
_TINY: Final = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Rates:
    """Means by label, each with an interval; all intervals hold at once.

    Attributes
    ----------
    n : ndarray of int
    mean, low, high : ndarray
    """

    n: Ints
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class AllocationLog:
    """Requests in order of arrival.

    Attributes
    ----------
    demand, granted : ndarray of shape (n,)
        Positive; from 0 on.
    rounds, slots : ndarray of int, shape (n,)
        Which stock a request was met from, and its place in the queue.
    slot_names : tuple of str
    stock : ndarray of shape (n_rounds,)
    stock_known : bool
        Otherwise what was handed out in a round counts as its stock.
    kept : ndarray of bool
        Which rows of the log are requests.
    """

    demand: Floats
    granted: Floats
    rounds: Ints
    slots: Ints
    slot_names: tuple[str, ...]
    stock: Floats
    stock_known: bool
    kept: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.demand)

    @property
    def fill(self) -> Floats:
        return np.minimum(self.granted / self.demand, 1.0)

    @property
    def clustered(self) -> bool:
        return len(self.stock) >= ENOUGH_ROUNDS

    def best_fills(self) -> Floats:
        """Return the mean fill rate of each slot in the best plan that knows the log in advance (leximin)."""
        order = np.lexsort((self.demand, self.slots))
        slot, demand = self.slots[order], self.demand[order]
        size = np.bincount(slot, minlength=len(self.slot_names))
        starts = np.append(0, np.cumsum(size))
        stock = np.maximum(self.stock, 0.0)[self.rounds[order]]
        most = np.maximum(np.minimum(1.0, stock / demand), 1e-12)
        return leximin(1.0 / size[slot], demand, most, starts, float(self.stock.sum()))[1]

    def fill_rates(self, codes: Ints, size: int, *, family: int) -> Rates:
        """Return the mean fill rate of the requests of each code; codes below 0 are left out."""
        inside = codes >= 0
        value, code, cluster = self.fill[inside], codes[inside], self._clusters()[inside]
        n = np.bincount(code, minlength=size)
        mean = np.asarray(np.bincount(code, value, minlength=size) / np.maximum(n, 1))
        effective = n.astype(np.float64)
        if self.clustered:
            clusters, variance = _spread(value - mean[code], code, cluster, size)
            effective = cluster_effective_n(mean, variance / np.maximum(n, 1) ** 2, clusters, n)
        return _rates(n, mean, effective, family)

    def received(self, codes: Ints, size: int, *, family: int) -> Rates:
        """Return the share of what was handed out that went to each code; codes below 0 are left out."""
        inside = codes >= 0
        amount, code, cluster = self.granted[inside], codes[inside], self._clusters()[inside]
        total = max(float(amount.sum()), _TINY)
        share = np.bincount(code, amount, minlength=size) / total
        units = int((np.bincount(cluster, amount) > 0).sum())
        most = total**2 / max(float((amount**2).sum()), _TINY)
        effective = np.empty(size)
        for g in range(size):
            residual = np.bincount(cluster, ((code == g) - share[g]) * amount)
            variance = float((residual**2).sum()) / total**2 * units / max(units - 1, 1)
            effective[g] = cluster_effective_n(share[g], variance, units, most)
        return _rates(np.bincount(code, minlength=size), share, effective, family)

    def _clusters(self) -> Ints:
        return self.rounds if self.clustered else np.arange(len(self))


def read_log(log: Any, supply: ArrayLike | None, slots: int) -> AllocationLog:
    """Return the requests of a log.

    Parameters
    ----------
    log : mapping or data frame
        With demand and granted, in order of arrival; optionally round and slot.
    supply : float or array-like of shape (n,), optional
        The stock of each round, or of the round of each row.
    slots : int
        Into how many parts the queue of a round is cut, where the log has no slot.

    Raises
    ------
    InputError
    """
    demand, granted = (_numbers(log, name) for name in ("demand", "granted"))
    if demand.ndim != 1 or demand.shape != granted.shape:
        raise InputError(f"demand has shape {demand.shape} and granted {granted.shape}", expected="one each per row")
    if (granted[demand == 0] > 0).any():
        raise InputError("something was granted where nothing was asked for", expected="a positive demand there")
    kept = demand > 0
    if not kept.any():
        raise InputError("there is no request", expected="one row with a positive demand at least")
    rounds = _codes(log, "round", len(demand))[0]
    rounds = np.unique(rounds[kept], return_inverse=True)[1].reshape(-1)
    stock, known = _stock(supply, granted[kept], rounds, kept)
    place, names = _places(log, kept, rounds, slots)
    return AllocationLog(demand[kept], granted[kept], rounds, place, names, stock, known, kept)


def labels_of(values: Any, kept: NDArray[np.bool_], what: str) -> tuple[Ints, tuple[str, ...]]:
    """Return a code for each request, and what the codes are called; missing values are a group of their own."""
    series = pd.Series(np.asarray(values, dtype=object), dtype=object)
    if len(series) != len(kept):
        raise InputError(f"{what} has {len(series):,} values", expected=f"one for each of {len(kept):,} rows")
    codes, found = pd.factorize(series[kept])
    names, merged = np.unique([str(value) for value in found] + [MISSING], return_inverse=True)
    place = merged.reshape(-1)[codes]  # a missing value has the code -1, which is the last name
    used, place = np.unique(place, return_inverse=True)
    return place.reshape(-1).astype(np.intp), tuple(str(names[code]) for code in used)


def _places(log: Any, kept: NDArray[np.bool_], rounds: Ints, slots: int) -> tuple[Ints, tuple[str, ...]]:
    if "slot" in log:
        codes, names = _codes(log, "slot", len(kept))
        used, place = np.unique(codes[kept], return_inverse=True)
        if len(used) > _MOST_SLOTS:
            raise InputError(
                f"there are {len(used):,} slots",
                expected=f"at most {_MOST_SLOTS:,}",
                remedy="Name no slot, and the queue is cut into parts",
            )
        return place.reshape(-1), tuple(names[code] for code in used)
    if isinstance(slots, bool) or not isinstance(slots, int | np.integer) or not 1 <= slots <= _MOST_SLOTS:
        raise InputError(f"slots is {slots!r}", expected=f"a whole number from 1 to {_MOST_SLOTS:,}")
    size = np.bincount(rounds)
    parts = int(max(1, min(slots, np.median(size))))
    order = np.argsort(rounds, kind="stable")
    first = np.append(0, np.cumsum(size)[:-1])
    position = np.empty(len(rounds), dtype=np.intp)
    position[order] = np.arange(len(rounds)) - first[rounds[order]]
    place = position * parts // size[rounds]
    used, place = np.unique(place, return_inverse=True)
    return place.reshape(-1), tuple(f"part {code + 1} of {parts}" for code in used)


def _stock(supply: ArrayLike | None, granted: Floats, rounds: Ints, kept: NDArray[np.bool_]) -> tuple[Floats, bool]:
    size = int(rounds.max()) + 1
    if supply is None:
        return np.asarray(np.bincount(rounds, granted, minlength=size), dtype=np.float64), False
    given = np.asarray(supply, dtype=np.float64)
    if given.ndim == 0:
        given = np.full(len(kept), float(given))
    if given.shape != kept.shape or not np.isfinite(given).all() or (given <= 0).any():
        raise InputError("the supply is not usable", expected="positive numbers: one, or the round's for each row")
    stock = np.zeros(size)
    stock[rounds] = given[kept]
    if (stock[rounds] != given[kept]).any():
        raise InputError("a round has more than one supply", expected="the same supply in all rows of a round")
    return stock, True


def _codes(log: Any, name: str, n: int) -> tuple[Ints, list[str]]:
    """Return codes and names of a column, numbers ascending and texts in order of appearance; zeros without it."""
    if name not in log:
        return np.zeros(n, dtype=np.intp), [""]
    values = np.asarray(log[name])
    numeric = values.dtype.kind in "iufM"
    series = pd.Series(values, dtype=None if numeric else object)
    if len(series) != n:
        raise InputError(f"{name} has {len(series):,} values", expected=f"one for each of {n:,} rows")
    if series.isna().any():
        raise InputError(f"the {name} is missing in {int(series.isna().sum()):,} rows", expected="one in every row")
    codes, found = pd.factorize(series, sort=numeric)
    return codes.astype(np.intp), [str(value) for value in found]


def _numbers(log: Any, name: str) -> Floats:
    if name not in log:
        raise InputError(f"the log has no {name}", expected="demand and granted for each request")
    try:
        values = np.asarray(log[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is no number", expected="numbers") from error
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        raise InputError(
            f"{name} is negative or missing in {int(bad.sum()):,} rows", expected="finite numbers from 0 on"
        )
    return values


def _spread(residual: Floats, code: Ints, cluster: Ints, size: int) -> tuple[Ints, Floats]:
    """Return how many clusters each code has, and the cluster-robust variance of its sum."""
    several = int(cluster.max()) + 1
    place, both = pd.factorize(code * several + cluster)
    sums = np.bincount(place, residual)
    clusters = np.bincount(both // several, minlength=size)
    squares = np.bincount(both // several, sums**2, minlength=size)
    return clusters, squares * clusters / np.maximum(clusters - 1, 1)


def _rates(n: Ints, mean: Floats, effective: Floats, family: int) -> Rates:
    mean = np.clip(mean, 0.0, 1.0)
    level = 1.0 - (1.0 - _LEVEL) / max(family, 1)
    low, high = clopper_pearson(mean * effective, effective, level=level)
    return Rates(n, mean, np.minimum(low, mean), np.maximum(high, mean))
