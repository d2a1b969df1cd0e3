"""Arrivals of known types, each asking for one unit: a rule that gives every group its share of the stock."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, poisson
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import aboveboard
from aboveboard.collective.equitable_allocation._demands import Floats, Ints
from aboveboard.collective.equitable_allocation._external import PAPER
from aboveboard.collective.equitable_allocation._groups import expected_optimum, read_groups, whole_reserves
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError

__all__ = ["Counter", "InternalEquityAllocator", "InternalSession", "kept_share"]

_POLICIES: Final = ("sampling", "positions", "reserve", "greedy")


class Counter:
    """Where many runs of one day stand, side by side.

    Attributes
    ----------
    remaining : ndarray of int, shape (n_runs,)
    served : ndarray of int, shape (n_runs, groups)
    kinds : ndarray of int, shape (n_runs, combinations of groups)
        How many of each were served, with the policy "reserve".
    """

    def __init__(self, allocator: "InternalEquityAllocator", n_runs: int, rng: np.random.Generator) -> None:
        groups = allocator.groups_
        self.remaining = np.full(n_runs, groups.supply)
        self.served = np.zeros((n_runs, len(groups.shares)), dtype=np.intp)
        self.kinds = np.zeros((n_runs, int(allocator._kinds.max()) + 1), dtype=np.intp)
        self.rng = rng


class InternalEquityAllocator(BaseEstimator):  # type: ignore[misc]
    """Serve arrivals one by one so that groups get units in proportion to their shares of the population.

    Parameters
    ----------
    policy : {"sampling", "positions", "reserve", "greedy"}, default "sampling"
        "sampling" serves each type with a probability fixed in advance while stock lasts; "positions" draws the places
        in the queue that are served, whoever stands there; both guarantee what each group can expect.
        "reserve" keeps units for each combination of groups and releases them when they will not be needed, which is
        for the least group of each single day and guarantees nothing; "greedy" serves first come first served.
    risk : float, default 0.05
        With "reserve": how likely it may be that a reserve is given away too early, for each decision.
    random_state : int or None, default None

    Attributes
    ----------
    lp_value_ : float
        The best least ``E[X_g] / (share_g b)`` over groups that a planner can have who knows all arrivals.
    x_ : ndarray of shape (types,)
        How many of each type such a planner serves in expectation. The groups that can have more than the least do
        (the leximin optimum), and within a group nobody is passed over without need.
    ratio_ : float or None
        The promised part of `lp_value_`; None for "reserve" and "greedy".
    served_ : ndarray of shape (types,) or None
        How many of each type can be expected to be served.
    certificate_ : Certificate or None
    reserves_ : ndarray of int, shape (types,) or None
        With "reserve": the units kept for those who are in the same groups as each type.
    n_arrivals_ : int or None
        The sum of the rates where it is whole.
    rates_, groups_
        As given.

    Notes
    -----
    X_g counts the units that went to group g. "sampling" serves type j with probability ``x_j / r_j``. Where types come
    independently of each other in n draws, what would be served is binomial with mean ``sum x <= b``, so each type gets
    at least ``kappa_b x_j`` with ``kappa_b = E[min(Poisson(b), b)] / b = 1 - exp(-b) b^b / b!``: 0.632 for one unit,
    0.875 for 10, 0.960 for 100. "positions" serves with the chance of units left to arrivals left, which draws b of n
    places with equal chances; it needs the number n, and gives group g exactly ``b/n`` of its arrivals in expectation,
    in whatever order they come: all that is possible where arrivals mirror the population, and `ratio_` of it
    elsewhere. Goods that can be divided need no rule: b/n to each of n arrivals.

    "reserve" keeps units for each combination of groups: the whole numbers nearest to an optimum of the benchmark in
    which as many of each may be served as come with probability 1 - risk, and the best of them for the least group. It
    serves an arrival while its reserve is not used up, and else if more is left than the reserves will need: of each,
    what it lacks, at most the 1 - risk quantile of the arrivals to come.

    `fit` solves a few linear programs with a column for each type; "reserve" also keeps a table of arrivals x
    combinations of groups, and two small integer programs. A decision takes O(types).

    References
    ----------
    K. A. Sankararaman, A. Srinivasan, P. Xu, "Promoting External and Internal Equities Under Ex-Ante/Ex-Post Metrics in
    Online Resource Allocation", ICML 2024, for the setting; the rules are this project's.

    Examples
    --------
    >>> from aboveboard.collective import InternalEquityAllocator
    >>> allocator = InternalEquityAllocator(random_state=0)
    >>> allocator.fit([90, 30], membership=[[1, 0], [0, 1]], shares=[0.5, 0.5], supply=40)  # 3 to 1 come
    InternalEquityAllocator(random_state=0)
    >>> allocator.lp_value_, allocator.x_.round(6).tolist(), round(allocator.ratio_, 3)
    (1.0, [20.0, 20.0], 0.937)
    >>> session = allocator.start()
    >>> sum(session.decide(0) for _ in range(30)), sum(session.decide(1) for _ in range(30))
    (7, 21)
    """

    def __init__(
        self,
        policy: Literal["sampling", "positions", "reserve", "greedy"] = "sampling",
        *,
        risk: float = 0.05,
        random_state: int | None = None,
    ) -> None:
        self.policy = policy
        self.risk = risk
        self.random_state = random_state

    def fit(
        self,
        type_rates: ArrayLike,
        membership: Any,
        shares: ArrayLike,
        supply: int,
        *,
        attributes: Sequence[Any] | None = None,
    ) -> "InternalEquityAllocator":
        """Learn whom to serve.

        Parameters
        ----------
        type_rates : array-like of shape (types,)
            How many of each type are expected; "positions" and "reserve" need a whole sum, the number of arrivals.
        membership : array-like of 0 and 1, shape (types, groups)
            The groups of each type, one for each attribute; the columns of a data frame name the groups.
        shares : array-like of shape (groups,)
            Each group's share of the population; those of an attribute sum to 1.
        supply : int
            The number of units.
        attributes : sequence of length groups, optional
            What each group is a value of, such as ["sex", "sex", "race", "race"]; without it all are of one.

        Returns
        -------
        InternalEquityAllocator

        Raises
        ------
        aboveboard.core.InputError
            For parameters, rates, groups or a supply that cannot be used, and for a group none of whose types comes.
        """
        self._check_parameters()
        self.groups_ = read_groups(membership, shares, supply, attributes)
        self.rates_ = _rates(type_rates, self.groups_.member, self.groups_.names)
        n = float(self.rates_.sum())
        self.n_arrivals_ = round(n) if abs(n - round(n)) < 1e-6 * max(n, 1.0) else None
        if self.n_arrivals_ is None and self.policy in ("positions", "reserve"):
            raise InputError(
                f"the rates sum to {n:.6g}, and the policy {self.policy!r} needs the number of arrivals",
                expected="rates that sum to a whole number",
            )
        levels, self.x_ = expected_optimum(self.rates_, self.groups_)
        self.lp_value_ = float(levels.min())
        self._kinds = np.zeros(len(self.rates_), dtype=np.intp)
        self.ratio_ = self.served_ = self.certificate_ = None
        self.reserves_: Ints | None = None
        if self.policy == "reserve":
            self._reserve()
        elif self.policy != "greedy":
            self.served_ = self._expected()
            self.ratio_ = self._least_expected() / self.lp_value_
            self.certificate_ = self._certificate()
        return self

    def start(self) -> "InternalSession":
        """Begin a day."""
        check_is_fitted(self, "groups_")
        return InternalSession(self)

    def serve(self, t: int, types: Ints, counter: Counter) -> NDArray[np.bool_]:
        """Return who is served in each run, and move `counter` on.

        Parameters
        ----------
        t : int
            The place in the queue, from 0.
        types : ndarray of int, shape (n_runs,)
        counter : Counter
        """
        yes = self._wanted(t, types, counter) & (counter.remaining > 0)
        counter.remaining = counter.remaining - yes
        counter.served = counter.served + (self.groups_.member[types] & yes[:, None])
        if self.reserves_ is not None:
            counter.kinds[np.flatnonzero(yes), self._kinds[types[yes]]] += 1
        return np.asarray(yes)

    # --- the rules ------------------------------------------------------------------------------------------------

    def _wanted(self, t: int, types: Ints, counter: Counter) -> NDArray[np.bool_]:
        if self.policy == "sampling":
            chance = np.divide(self.x_, self.rates_, out=np.zeros_like(self.x_), where=self.rates_ > 0)
            return np.asarray(counter.rng.random(len(types)) < chance[types])
        if self.policy == "positions":
            return np.asarray(counter.rng.random(len(types)) * (self._n() - t) < counter.remaining)
        if self.policy == "greedy":
            return np.ones(len(types), dtype=bool)
        kind = self._kinds[types]
        lacking = np.maximum(self._reserved - counter.kinds, 0)
        needed = np.minimum(lacking, self._later[t]).sum(axis=1)
        return np.asarray((lacking[np.arange(len(kind)), kind] > 0) | (counter.remaining > needed))

    def _expected(self) -> Floats:
        """Return how many of each type can be expected to be served."""
        if self.policy == "positions":
            return np.asarray(min(1.0, self.groups_.supply / self._n()) * self.rates_)
        return np.asarray(kept_share(float(self.x_.sum()), self.groups_.supply) * self.x_)

    def _least_expected(self) -> float:
        """Return the promised least share of a group."""
        return float((self.groups_.member.T @ np.asarray(self.served_) / self.groups_.due).min())

    def _reserve(self) -> None:
        """Learn the reserves of each combination of groups, and how many of each may come after each arrival."""
        member, self._kinds = np.unique(self.groups_.member, axis=0, return_inverse=True)
        self._kinds = self._kinds.reshape(-1)
        n = self._n()
        chance = np.minimum(np.bincount(self._kinds, self.rates_) / n, 1.0)
        later = np.arange(n, -1, -1)[:, None]
        may_come = binom.ppf(1.0 - self.risk, later, chance[None, :]).astype(np.intp)
        groups = replace(self.groups_, member=member)
        x = expected_optimum(may_come[0].astype(np.float64), groups)[1]
        self._reserved, self._later = whole_reserves(x, may_come[0], groups), may_come[1:]
        self.reserves_ = self._reserved[self._kinds]

    def _n(self) -> int:
        if self.n_arrivals_ is None:
            raise InputError("the number of arrivals is not known", expected="rates that sum to a whole number")
        return self.n_arrivals_

    # --- what is guaranteed ---------------------------------------------------------------------------------------

    def _certificate(self) -> Certificate:
        positions = self.policy == "positions"
        groups = self.groups_
        least = self._least_expected()
        return Certificate(
            kind="ex-ante internal equity",
            guarantee=(
                f"Each of {len(groups.names):,} groups can expect at least {least:.4f} of its share of the "
                f"{groups.supply:,} units; no plan gives all of them more than {self.lp_value_:.4f}."
            ),
            parameters={
                "ratio": self.ratio_,
                "policy": self.policy,
                "lp_value": self.lp_value_,
                "least_promised_share": least,
                "supply": groups.supply,
                "arrivals": float(self.rates_.sum()),
                "groups": len(groups.names),
            },
            assumptions=(
                Assumption(f"Exactly {self.n_arrivals_:,} arrive, of each type as many as expected, in any order.")
                if positions
                else Assumption("Types arrive independently of each other, with the same chances all day."),
                Assumption("The rates are those of the day to come, and the shares those of the population."),
                Assumption("Each arrival asks for one unit, and nobody comes because of the rule."),
            ),
            does_not_cover=(
                "what a group gets on a single day",
                "who within a group is served",
                *(() if positions else ("types that come early or late in the day rather than all day",)),
            ),
            library_version=aboveboard.__version__,
            reference=PAPER,
        )

    def _check_parameters(self) -> None:
        if self.policy not in _POLICIES:
            raise InputError(f"policy is {self.policy!r}", expected=", ".join(map(repr, _POLICIES)))
        risk = self.risk
        if isinstance(risk, bool) or not isinstance(risk, int | float | np.number) or not 0.0 < risk < 1.0:
            raise InputError(f"risk is {risk!r}", expected="a number between 0 and 1")


class InternalSession:
    """A day of a fitted `InternalEquityAllocator`: arrivals come one by one.

    Attributes
    ----------
    position : int
        How many have come.
    """

    def __init__(self, allocator: InternalEquityAllocator) -> None:
        self._allocator = allocator
        self._counter = Counter(allocator, 1, np.random.default_rng(allocator.random_state))
        self._entries: list[dict[str, Any]] = []
        self.position = 0

    @property
    def remaining(self) -> int:
        """The units left."""
        return int(self._counter.remaining[0])

    @property
    def log(self) -> str:
        """Every decision with its reason, one JSON object a line."""
        return "".join(json.dumps(entry) + "\n" for entry in self._entries)

    def decide(self, arrival: int | Sequence[str]) -> bool:
        """Decide whether the next arrival is served.

        Parameters
        ----------
        arrival : int or sequence of str
            Its type, or the names of its groups, one for each attribute.

        Raises
        ------
        aboveboard.core.InputError
            For a type or groups that do not exist, and, where their number was planned, after the last arrival.
        """
        allocator = self._allocator
        kind = self._type(arrival)
        if allocator.policy in ("positions", "reserve") and self.position >= (allocator.n_arrivals_ or 0):
            raise InputError(
                f"this is arrival {self.position + 1:,}, and {allocator.n_arrivals_:,} were planned for",
                expected="no more arrivals than the sum of the rates",
                remedy="Start another session",
            )
        stock = self.remaining
        yes = bool(allocator.serve(self.position, np.array([kind]), self._counter)[0])
        self._entries.append(
            {
                "position": self.position,
                "type": kind,
                "served": yes,
                "remaining": self.remaining,
                "reason": self._reason(kind, stock),
            }
        )
        self.position += 1
        return yes

    def _type(self, arrival: Any) -> int:
        groups = self._allocator.groups_
        if isinstance(arrival, int | np.integer) and not isinstance(arrival, bool):
            if 0 <= arrival < len(groups.member):
                return int(arrival)
            raise InputError(f"the type is {arrival}", expected=f"0 to {len(groups.member) - 1}")
        wanted = (
            {str(name) for name in arrival} if isinstance(arrival, Sequence) and not isinstance(arrival, str) else None
        )
        found = [j for j, row in enumerate(groups.member) if wanted == {groups.names[g] for g in np.flatnonzero(row)}]
        if not found:
            raise InputError(f"no type is in exactly the groups {arrival!r}", expected=f"of {', '.join(groups.names)}")
        return found[0]

    def _reason(self, kind: int, stock: int) -> str:
        allocator = self._allocator
        if not stock:
            return "nothing was left"
        if allocator.policy == "sampling":
            rate = allocator.rates_[kind]
            return f"served with probability {allocator.x_[kind] / rate if rate else 0.0:.6g}"
        if allocator.policy == "positions":
            return f"served with the chance of {stock:,} units left to the arrivals left"
        if allocator.policy == "greedy":
            return "first come first served"
        return f"served while its reserve lasts, or where more is left than reserves need; {stock:,} were left"


def kept_share(requests: float, supply: int) -> float:
    """Return ``E[min(S, b)] / E[S]`` for a Poisson number S of requests: the share that is met while stock lasts.

    Parameters
    ----------
    requests : float
        E[S], positive.
    supply : int
        b

    Notes
    -----
    At ``E[S] = b`` this is ``1 - exp(-b) b^b / b!``. It falls as the requests grow.
    """
    if requests <= 0:
        return 1.0
    met = requests * poisson.cdf(supply - 1, requests) + supply * poisson.sf(supply, requests)
    return float(met / requests)


def _rates(type_rates: ArrayLike, member: NDArray[np.bool_], names: tuple[str, ...]) -> Floats:
    try:
        rates = np.asarray(type_rates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("the rates hold something that is no number", expected="numbers") from error
    if rates.shape != (len(member),):
        raise InputError(f"the rates have shape {rates.shape}", expected=f"one for each of {len(member)} types")
    if not np.isfinite(rates).all() or (rates < 0).any():
        raise InputError("a rate is negative or not finite", expected="how many of each type are expected")
    silent = np.flatnonzero(member.T @ rates == 0)
    if len(silent):
        raise InputError(
            f"nobody of the group {names[silent[0]]!r} is expected", expected="a positive rate in each group"
        )
    return rates
