"""Many days of a rule, side by side: what each place in the queue and each group gets, and what is left over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from aboveboard.collective.equitable_allocation._demands import Floats, Ints, read_demands
from aboveboard.collective.equitable_allocation._external import ExternalEquityAllocator, Queue
from aboveboard.collective.equitable_allocation._internal import Counter, InternalEquityAllocator
from aboveboard.core.errors import InputError

__all__ = ["EquityReport", "simulate"]


@dataclass(frozen=True)
class EquityReport:
    """How a rule fared on many days.

    Attributes
    ----------
    ex_ante : float
        The least expectation: of the fill rate over slots, or of ``X_g / (share_g b)`` over groups.
    ex_post : float
        The expectation of the least, which a single day sees; never above `ex_ante`. A day without requests has 1.
    ex_post_error : float
        Standard error of `ex_post`.
    per_slot : ndarray
        Mean fill rate of the requests of each slot, or share of days on which each place in the queue was served.
    per_slot_error : ndarray
        Standard errors; 0 where a day is not drawn at random.
    per_group : dict of name to float
        Mean fill rate of the slots of each group, or mean ``X_g / (share_g b)``.
    waste : float
        Mean share of the stock that is left.
    n : int
        Days.
    """

    ex_ante: float
    ex_post: float
    ex_post_error: float
    per_slot: Floats
    per_slot_error: Floats
    per_group: dict[str, float] = field(default_factory=dict)
    waste: float = 0.0
    n: int = 0


def simulate(
    policy: ExternalEquityAllocator | InternalEquityAllocator,
    scenario: Any = None,
    *,
    n: int = 10_000,
    groups: Sequence[Any] | None = None,
    random_state: int | None = None,
) -> EquityReport:
    """Run a fitted allocator on many days.

    Parameters
    ----------
    policy : ExternalEquityAllocator or InternalEquityAllocator
        Fitted.
    scenario : optional
        What really arrives; by default what the allocator was fitted to. For external equity demands as `fit` takes
        them: chances are drawn from, past days are replayed as they are. For internal equity whole numbers, n_days x
        arrivals (types, replayed), or chances, arrivals x types (each place in the queue with chances of its own).
    n : int, default 10_000
        Days that are drawn.
    groups : sequence, optional
        For external equity, the group of each slot.
    random_state : int or None, default None

    Returns
    -------
    EquityReport

    Raises
    ------
    aboveboard.core.InputError
        For a scenario that does not fit the allocator.

    Notes
    -----
    O(arrivals n) time, with a step for all days at once for each arrival; O(n) memory besides the scenario.

    Examples
    --------
    >>> from aboveboard.collective import ExternalEquityAllocator, simulate
    >>> demands = [([20.0, 60.0], [0.5, 0.5])] * 3
    >>> first_come = ExternalEquityAllocator("greedy").fit(demands, supply=60.0)
    >>> [round(float(fill), 2) for fill in simulate(first_come, random_state=0).per_slot]
    [1.0, 0.42, 0.16]
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n is {n!r}", expected="a whole number of days, 1 or more")
    rng = np.random.default_rng(random_state)
    if isinstance(policy, ExternalEquityAllocator):
        check_is_fitted(policy, "demands_")
        return _external(policy, scenario, int(n), groups, rng)
    if isinstance(policy, InternalEquityAllocator):
        check_is_fitted(policy, "groups_")
        if groups is not None:
            raise InputError("groups were given for internal equity", expected="those of the allocator")
        return _internal(policy, scenario, int(n), rng)
    raise InputError(f"the policy is {type(policy).__name__}", expected="a fitted allocator")


def _external(
    policy: ExternalEquityAllocator,
    scenario: Any,
    n: int,
    groups: Sequence[Any] | None,
    rng: np.random.Generator,
) -> EquityReport:
    demands = policy.demands_ if scenario is None else read_demands(scenario)
    if demands.n_slots != policy.n_slots_:
        raise InputError(f"the scenario has {demands.n_slots:,} slots", expected=f"{policy.n_slots_:,}, as in the fit")
    labels = None if groups is None else [str(label) for label in groups]
    if labels is not None and len(labels) != policy.n_slots_:
        raise InputError(f"{len(labels):,} groups were given", expected=f"one for each of {policy.n_slots_:,} slots")
    replayed = scenario is not None and demands.days is not None
    days = demands.days if replayed and demands.days is not None else None
    n = n if days is None else len(days)
    queue = Queue(policy.supply_, n)
    fills, errors = np.empty(policy.n_slots_), np.empty(policy.n_slots_)
    for t, demand in enumerate(demands.draw(n, rng) if days is None else days.T):
        given = policy.grant(t, demand, queue)
        asked = demand > 0
        rate = given[asked] / demand[asked]
        fills[t] = rate.mean() if rate.size else np.nan
        errors[t] = rate.std() / np.sqrt(rate.size) if rate.size else np.nan
    named = {} if labels is None else _means(fills, labels)
    return EquityReport(
        ex_ante=float(np.nanmin(fills)),
        ex_post=float(queue.least.mean()),
        ex_post_error=float(queue.least.std() / np.sqrt(n)),
        per_slot=fills,
        per_slot_error=errors,
        per_group=named,
        waste=float(queue.remaining.mean() / policy.supply_),
        n=n,
    )


def _internal(policy: InternalEquityAllocator, scenario: Any, n: int, rng: np.random.Generator) -> EquityReport:
    n, arrivals, columns = _arrivals(policy, scenario, n, rng)
    planned = policy.n_arrivals_ if policy.policy in ("positions", "reserve") else None
    if planned is not None and arrivals > planned:
        raise InputError(f"the scenario has {arrivals:,} arrivals", expected=f"at most {planned:,}, as in the fit")
    counter = Counter(policy, n, rng)
    places = np.empty(arrivals)
    for t, types in enumerate(columns):
        places[t] = policy.serve(t, types, counter).mean()
    groups = policy.groups_
    share = counter.served / groups.due
    mean, least = share.mean(axis=0), share.min(axis=1)
    return EquityReport(
        ex_ante=float(mean.min()),
        ex_post=float(least.mean()),
        ex_post_error=float(least.std() / np.sqrt(n)),
        per_slot=places,
        per_slot_error=np.sqrt(places * (1.0 - places) / n),
        per_group=dict(zip(groups.names, mean.tolist())),
        waste=float(counter.remaining.mean() / groups.supply),
        n=n,
    )


def _arrivals(
    policy: InternalEquityAllocator, scenario: Any, n: int, rng: np.random.Generator
) -> tuple[int, int, Iterator[Ints]]:
    """Return how many days and arrivals there are, and the types that come at each place in the queue."""
    types = len(policy.rates_)
    if scenario is None:
        if policy.n_arrivals_ is None:
            raise InputError(
                "the rates do not sum to a whole number, so it is not known how many arrive",
                expected="a scenario, or rates that sum to the number of arrivals",
            )
        chance = policy.rates_ / policy.rates_.sum()
        return n, policy.n_arrivals_, (rng.choice(types, n, p=chance) for _ in range(policy.n_arrivals_))
    given = np.asarray(scenario)
    if given.ndim == 2 and given.size and given.dtype.kind in "iu":
        if given.min() < 0 or given.max() >= types:
            raise InputError(f"the scenario holds the type {given.max()}", expected=f"0 to {types - 1}")
        return len(given), given.shape[1], iter(given.T.astype(np.intp))
    if given.ndim == 2 and given.dtype.kind == "f" and given.shape[1:] == (types,) and len(given):
        if not ((given >= 0).all() and np.allclose(given.sum(axis=1), 1.0)):
            raise InputError("the chances of a place do not sum to 1", expected=f"arrivals x {types} chances")
        return n, len(given), (rng.choice(types, n, p=row / row.sum()) for row in given)
    raise InputError(
        f"the scenario has shape {given.shape} and type {given.dtype}",
        expected=f"types (whole numbers, days x arrivals) or chances (arrivals x {types})",
    )


def _means(values: ArrayLike, labels: Sequence[str]) -> dict[str, float]:
    found = np.asarray(labels, dtype=object)
    return {name: float(np.nanmean(np.asarray(values)[found == name])) for name in sorted(set(labels))}
