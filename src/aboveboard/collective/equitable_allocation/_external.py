"""Arrivals in a known order, each with an uncertain demand: a rule that promises every place its fill rate."""

import json
import warnings
from typing import Any, Final, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import aboveboard
from aboveboard.collective.equitable_allocation._benchmark import benchmark_of
from aboveboard.collective.equitable_allocation._demands import Demands, Floats, check_supply, read_demands
from aboveboard.collective.equitable_allocation._rules import (
    Dependence,
    Proportional,
    attenuated_rates,
    dependence,
    largest_attenuated_factor,
)
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["PAPER", "ExternalEquityAllocator", "ExternalSession", "Queue"]

PAPER: Final = Reference(
    title="Promoting External and Internal Equities Under Ex-Ante/Ex-Post Metrics in Online Resource Allocation",
    authors="K. A. Sankararaman, A. Srinivasan, P. Xu",
    venue="ICML",
    year=2024,
    url="https://proceedings.mlr.press/v235/sankararaman24a.html",
)
_POLICIES: Final = ("proportional", "attenuated", "ppa", "greedy")
_FACTORS: Final = ("half", "best")


class Queue:
    """Where many runs of one queue stand, side by side.

    Attributes
    ----------
    remaining, least, asked : ndarray of shape (n_runs,)
        The stock left, the smallest fill rate so far (1 before the first request), and what was asked for so far.
    """

    def __init__(self, supply: float, n_runs: int) -> None:
        self.remaining = np.full(n_runs, supply)
        self.least = np.ones(n_runs)
        self.asked = np.zeros(n_runs)


class ExternalEquityAllocator(BaseEstimator):  # type: ignore[misc]
    """Hand out a stock to arrivals in a known order so that each place in the queue gets its share of the best.

    Parameters
    ----------
    policy : {"proportional", "attenuated", "ppa", "greedy"}, default "proportional"
        "proportional" gives a fixed share of what is left, known in advance, for each demand; "attenuated" gives what
        the benchmark would, scaled down by a factor found by simulation. Both keep the guarantee. "ppa", projected
        proportional allocation, gives each the fill rate at which the stock is expected to last, and "greedy" serves
        first come first served; they guarantee nothing, and "ppa" is the better for the least fill of each single day.
    factor : {"half", "best"}, default "half"
        Which share of the benchmark is promised: one half, which is always possible, or the largest share that these
        demands allow, never less; then the last arrival also gets what is left. Of "proportional" and "attenuated".
    n_particles : int, default 100_000
        Simulated days for "attenuated".
    random_state : int or None, default None
        For "attenuated", and for whole units.

    Attributes
    ----------
    lp_value_ : float
        The least expected fill rate of the benchmark: no plan has more, even one that knows all demands.
    x_ : list of ndarrays
        The fraction of each demand that the benchmark meets, slot by slot, in the order of the values, ascending.
    ratio_ : float or None
        The promised share of the benchmark; None for "ppa" and "greedy".
    fills_ : ndarray of shape (T,) or None
        The promised expected fill rate of each slot: `ratio_` times that of the benchmark.
    expected_stock_ : ndarray of shape (T,) or None
        The expected stock before each slot.
    dependence_ : Dependence or None
        Whether the past days speak against independence; None where it could not be tested.
    certificate_ : Certificate or None
        None for "ppa" and "greedy". It does not hold where the past days speak against independence.
    n_slots_ : int
    supply_ : float
    demands_ : Demands
        The distributions as they were read.

    Notes
    -----
    Let x be an optimum of `clairvoyant_lp`, ``y_t = x_t(D_t) D_t`` and ``Y_t = E[y_t]``. "proportional" gives
    ``a_t = R_t y_t alpha / rho_t`` with R_t left and ``rho_t = b - alpha (Y_1 + ... + Y_{t-1})`` its expectation. R_t
    depends on the demands before t alone, so ``E[a_t | D_t] = alpha y_t`` exactly, and the expected fill rate of a slot
    is alpha times that of the benchmark. One half always works, since ``rho_t >= b/2``; no rule can promise more for
    all demands. "best" is the largest alpha at which no path of demands breaks ``a_t <= min(R_t, D_t)``, at least
    ``1 / (1 + (Y_1 + ... + Y_{T-1}) / b)``.
    "attenuated" gives ``alpha y_t / E[min(R_t, y_t)]`` times ``min(R_t, y_t)``.

    Fill rates are ex-ante: an average over what the slot itself may ask for, in which a small demand met counts as much
    as a large one. A demand between the values of the fit counts as the next larger one, one above them as the largest.

    `fit` takes O(K log K) for K values in all, "attenuated" O(n_particles log n_particles) per slot, times ten with
    "best"; a decision takes O(log K).

    References
    ----------
    K. A. Sankararaman, A. Srinivasan, P. Xu, "Promoting External and Internal Equities Under Ex-Ante/Ex-Post Metrics in
    Online Resource Allocation", ICML 2024. V. Manshadi, R. Niazadeh, S. Rodilitz, "Fair Dynamic Rationing", Management
    Science 2023, for "ppa". The rules with a guarantee and the largest factor are reconstructions of this project.

    Examples
    --------
    >>> from aboveboard.collective import ExternalEquityAllocator
    >>> demands = [([20.0, 60.0], [0.5, 0.5])] * 3  # each of three pantries asks for 20 or 60
    >>> allocator = ExternalEquityAllocator(factor="best").fit(demands, supply=90.0)
    >>> round(allocator.lp_value_, 3), round(allocator.ratio_, 3)
    (0.833, 0.765)
    >>> session = allocator.start()
    >>> [round(session.allocate(demand), 1) for demand in (60.0, 20.0, 60.0)]
    [30.6, 13.6, 45.8]
    """

    def __init__(
        self,
        policy: Literal["proportional", "attenuated", "ppa", "greedy"] = "proportional",
        *,
        factor: Literal["half", "best"] = "half",
        n_particles: int = 100_000,
        random_state: int | None = None,
    ) -> None:
        self.policy = policy
        self.factor = factor
        self.n_particles = n_particles
        self.random_state = random_state

    def fit(self, demands: Any, supply: float) -> "ExternalEquityAllocator":
        """Learn what can be promised.

        Parameters
        ----------
        demands : sequence of (values, chances), or array-like of shape (n_days, T)
            For each arrival what it may ask for and how likely that is; or what was asked for on past days, 0 where
            nothing was. Independent across arrivals.
        supply : float
            The stock of a day, positive, in the unit of the demands.

        Returns
        -------
        ExternalEquityAllocator

        Raises
        ------
        aboveboard.core.InputError
            For parameters, demands or a supply that cannot be used.

        Warns
        -----
        UserWarning
            When the past days speak against independence: nothing is then guaranteed.
        """
        self._check_parameters()
        asked, self.supply_ = read_demands(demands), check_supply(supply)
        self.demands_, self.n_slots_ = asked, asked.n_slots
        self._fractions, level = benchmark_of(asked, self.supply_)
        self._requested = self._fractions * asked.values
        self.lp_value_, self.x_ = float(level.min()), asked.split(self._fractions)
        self.ratio_: float | None = None
        self.expected_stock_: Floats | None = None
        self._rates = np.zeros(0)
        if self.policy == "proportional":
            self._announce(asked)
        elif self.policy == "attenuated":
            self._attenuate(asked)
        mean = asked.sums(asked.chances * asked.values)
        self._total = mean.sum()
        self._later = self._total - np.cumsum(mean)
        self._slope = np.zeros(self.n_slots_)
        self.dependence_ = None if asked.days is None else dependence(asked.days, self._replayed(asked.days))
        if asked.days is not None and self.dependence_ is not None and not self.dependence_.passed:
            self._heed_dependence(asked.days, self.dependence_)
        self.fills_ = None if self.ratio_ is None else self.ratio_ * level
        self.certificate_ = None if self.ratio_ is None else self._certificate(self.ratio_)
        return self

    def start(self, *, units: bool = False) -> "ExternalSession":
        """Begin a day.

        Parameters
        ----------
        units : bool, default False
            Hand out whole units: each grant is rounded up or down so that its expectation stays, and the sum over any
            stretch of the day moves by less than one unit. The supply must then be whole.

        Raises
        ------
        aboveboard.core.InputError
            When whole units of a stock that is not whole are asked for.
        """
        check_is_fitted(self, "demands_")
        if units and not self.supply_.is_integer():
            raise InputError(
                f"whole units were asked for, and the supply is {self.supply_:g}", expected="a whole supply"
            )
        return ExternalSession(self, units=units)

    def grant(self, t: int, demand: Floats, queue: Queue) -> Floats:
        """Return what slot `t` gets in each run, and move `queue` on; 0 where nothing is asked for.

        Parameters
        ----------
        t : int
        demand : ndarray of shape (n_runs,)
        queue : Queue
        """
        given = np.where(demand > 0, np.minimum(self._offer(t, demand, queue), demand), 0.0)
        given = np.minimum(np.maximum(given, 0.0), queue.remaining)
        queue.remaining = queue.remaining - given
        queue.asked = queue.asked + demand
        fill = np.divide(given, demand, out=np.ones_like(given), where=demand > 0)
        queue.least = np.minimum(queue.least, fill)
        return np.asarray(given)

    # --- the rules ------------------------------------------------------------------------------------------------

    def _offer(self, t: int, demand: Floats, queue: Queue) -> Floats:
        if self.policy == "ppa":
            later = np.maximum(self._later[t] + self._slope[t] * (queue.asked + demand - self._so_far(t)), 0.0)
            fair = np.divide(queue.remaining, demand + later, out=np.ones_like(demand), where=demand > 0)
            return np.asarray(np.minimum(queue.least, fair) * demand)
        last = self.factor == "best" and t == self.n_slots_ - 1
        if self.policy == "greedy" or last:
            return np.asarray(np.minimum(queue.remaining, demand))
        entry = self.demands_.find(t, demand)
        request = self._fractions[entry] * np.minimum(demand, self.demands_.values[entry])
        if self.policy == "proportional":
            return np.asarray(queue.remaining * request * self._rates[t])
        return np.asarray(self._rates[entry] * np.minimum(queue.remaining, request))

    def _announce(self, demands: Demands) -> None:
        rule = Proportional(demands, self._fractions, self.supply_)
        factor = 0.5 if self.factor == "half" else rule.largest_factor()
        self.ratio_, self._rates, self.expected_stock_ = factor, rule.rates(factor), rule.expected_stock(factor)

    def _attenuate(self, demands: Demands) -> None:
        seed = int(np.random.default_rng(self.random_state).integers(2**63))
        rule = (demands, self._requested, self.supply_)
        factor = 0.5
        if self.factor == "best":
            floor = Proportional(demands, self._fractions, self.supply_).largest_factor()
            factor = largest_attenuated_factor(*rule, self.n_particles, seed, floor)
        rates, self.expected_stock_ = attenuated_rates(*rule, factor, self.n_particles, seed)
        self.ratio_, self._rates = factor, np.minimum(rates, 1.0)

    def _so_far(self, t: int) -> float:
        """The mean of what is asked for up to slot `t`."""
        return float(self._total - self._later[t])

    # --- dependence -----------------------------------------------------------------------------------------------

    def _replayed(self, days: Floats) -> Floats:
        """Return the stock left before each slot on the past days."""
        queue = Queue(self.supply_, len(days))
        left = np.empty_like(days)
        for t in range(self.n_slots_):
            left[:, t] = queue.remaining
            self.grant(t, days[:, t], queue)
        return left

    def _heed_dependence(self, days: Floats, found: Dependence) -> None:
        """Warn, and let "ppa" expect later demands by what was asked for so far (least squares)."""
        so_far = np.cumsum(days, axis=1)
        later = so_far[:, -1:] - so_far
        centred = so_far - so_far.mean(axis=0)
        spread = (centred**2).sum(axis=0)
        self._slope = np.divide((centred * later).sum(axis=0), spread, out=np.zeros_like(spread), where=spread > 0)
        warnings.warn(
            f"The demands of one day are not independent: a rank correlation of {found.statistic:.2f} on "
            f"{found.n_days:,} days. Nothing is guaranteed; policy='ppa' heeds what was asked for so far.",
            UserWarning,
            stacklevel=3,
        )

    # --- what is guaranteed ---------------------------------------------------------------------------------------

    def _certificate(self, ratio: float) -> Certificate:
        simulated = self.policy == "attenuated"
        return Certificate(
            kind="ex-ante external equity",
            guarantee=(
                f"Each of {self.n_slots_:,} arrivals in this order has an expected fill rate of at least "
                f"{ratio:.4f} times its own in the benchmark, whose least, {self.lp_value_:.4f}, no plan exceeds."
            ),
            parameters={
                "ratio": ratio,
                "policy": self.policy,
                "factor": self.factor,
                "lp_value": self.lp_value_,
                "least_promised_fill": ratio * self.lp_value_,
                "slots": self.n_slots_,
                "supply": self.supply_,
            },
            assumptions=(
                _independence(self.dependence_),
                Assumption(
                    "Demands are distributed as fitted"
                    + ("." if self.demands_.days is None else f": as on {len(self.demands_.days):,} past days.")
                ),
                Assumption("The order of arrivals is known in advance, and nobody asks for more because of the rule."),
                Assumption("The stock can be divided; whole units keep the expectation, not each single fill."),
            ),
            numerics={
                "precision": "float64",
                "noise_source": f"{self.n_particles:,} simulated days" if simulated else "none",
            },
            does_not_cover=(
                "the fill rate on a single day, or of a demand much larger than the slot's others",
                "arrivals in another order, and demands that depend on each other",
                "a better promise for these demands: one half is the best for all demands together",
            ),
            library_version=aboveboard.__version__,
            reference=PAPER,
        )

    def _check_parameters(self) -> None:
        for name, value, known in (("policy", self.policy, _POLICIES), ("factor", self.factor, _FACTORS)):
            if value not in known:
                raise InputError(f"{name} is {value!r}", expected=", ".join(map(repr, known)))
        n = self.n_particles
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InputError(f"n_particles is {n!r}", expected="a whole number, 1 or more")


class ExternalSession:
    """A day of a fitted `ExternalEquityAllocator`: arrivals come one by one, in the order of the fit.

    Attributes
    ----------
    remaining : float
        The stock left.
    slot : int
        Which arrival comes next, from 0.
    """

    def __init__(self, allocator: ExternalEquityAllocator, *, units: bool = False) -> None:
        self._allocator = allocator
        self._queue = Queue(allocator.supply_, 1)
        self._units = units
        self._offset = float(np.random.default_rng(allocator.random_state).random()) if units else 0.0
        self._entries: list[dict[str, Any]] = []
        self._given = 0.0
        self.slot = 0

    @property
    def remaining(self) -> float:
        return self._allocator.supply_ - self._given

    @property
    def log(self) -> str:
        """Every decision with its reason, one JSON object a line."""
        return "".join(json.dumps(entry) + "\n" for entry in self._entries)

    def allocate(self, demand: float) -> float:
        """Decide on the next arrival.

        Parameters
        ----------
        demand : float
            What it asks for; 0 for nothing.

        Returns
        -------
        float
            What it gets: at most what it asks for and what is left.

        Raises
        ------
        aboveboard.core.InputError
            For a demand that is negative or not finite (with whole units: not whole), and after the last arrival.
        """
        asked = self._checked(demand)
        before = self._allocator.supply_ - float(self._queue.remaining[0])
        share = float(self._allocator.grant(self.slot, np.array([asked]), self._queue)[0])
        granted = share
        if self._units:
            granted = float(np.floor(before + share + self._offset) - np.floor(before + self._offset))
            granted = min(granted, asked)
        self._given += granted
        self._entries.append(
            {
                "slot": self.slot,
                "demand": asked,
                "granted": granted,
                "remaining": self.remaining,
                "reason": self._reason(asked, share),
            }
        )
        self.slot += 1
        return granted

    def _checked(self, demand: Any) -> float:
        allocator = self._allocator
        if self.slot >= allocator.n_slots_:
            raise InputError(
                f"this is arrival {self.slot + 1:,}, and {allocator.n_slots_:,} were planned for",
                expected="no more arrivals than in the fit",
                remedy="Start another session",
            )
        try:
            asked = float("nan") if isinstance(demand, bool) else float(demand)
        except (TypeError, ValueError):
            asked = float("nan")
        if not np.isfinite(asked) or asked < 0:
            raise InputError(f"the demand is {demand!r}", expected="a finite number, not below 0")
        if self._units and not asked.is_integer():
            raise InputError(f"the demand is {asked:g}, and whole units are handed out", expected="a whole number")
        return asked

    def _reason(self, asked: float, share: float) -> str:
        allocator, t = self._allocator, self.slot
        if not asked:
            return "nothing was asked for"
        text = f"{allocator.policy}: {share:.6g} is due"
        if allocator.ratio_ is not None:
            entry = int(allocator.demands_.find(t, np.array([asked]))[0])
            stands_for = float(allocator.demands_.values[entry])
            if abs(stands_for - asked) > 1e-9 * asked:
                text += f"; this demand was not expected here, and counts as {stands_for:g}"
        if allocator.factor == "best" and allocator.ratio_ is not None and t == allocator.n_slots_ - 1:
            text += "; the last arrival may have all that is left"
        return text


def _independence(found: Dependence | None) -> Assumption:
    text = "The demands of different arrivals are independent."
    if found is None:
        return Assumption(text)
    return Assumption(
        text,
        basis="checked",
        test=f"rank correlations with the slot before and with the stock left, on {found.n_days:,} past days, each "
        "where chance does not explain it",
        statistic=abs(found.statistic),
        limit=found.limit,
        passed=found.passed,
    )
