"""The most accurate fair classifier over atoms: in closed form, by whole atoms only, and how far poison can move it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from time import monotonic
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError

__all__ = [
    "CONSTRAINTS",
    "Constraint",
    "FairBOC",
    "GroupCurve",
    "best_rates",
    "checked_constraint",
    "checked_slack",
    "constant_from_totals",
    "constraint_mass",
    "deterministic_fair_bayes_optimal",
    "fair_bayes_optimal",
    "kappa_from_totals",
    "robustness_constant",
    "without_mass",
]

Constraint = Literal["demographic_parity", "equal_opportunity", "predictive_equality"]
CONSTRAINTS: Final[tuple[Constraint, ...]] = get_args(Constraint)

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_SAME_RATE: Final = 1e-12  # rates closer than this are equal: float sums of masses do not meet more exactly
_ROW_SCALE: Final = 1e4
_FEW_WINDOWS: Final = 256  # so many are sorted and searched; more are narrowed down first
_HALVINGS: Final = 5
_FLAT: Final = 1e-12  # a summed slope smaller than this is zero


@dataclass(frozen=True, slots=True, kw_only=True)
class FairBOC:
    """A fair Bayes-optimal classifier over atoms.

    Attributes
    ----------
    f : ndarray of float, shape (n_atoms,)
        Probability of acceptance of each atom, in [0, 1].
    groups : tuple
        Group labels, in the order of `rates`.
    rates : ndarray of float, shape (n_groups,)
        Acceptance, true positive or false positive rate of each group, as the constraint says.
    accuracy : float
        Expected accuracy, in [0, 1].
    n_fractional : int
        Number of atoms for which a coin is flipped.
    randomized_mass : float
        Mass of those atoms.
    """

    f: Floats
    groups: tuple[Any, ...]
    rates: Floats
    accuracy: float
    n_fractional: int
    randomized_mass: float

    @property
    def rate(self) -> float:
        """The smallest group rate; with ``slack=0`` the common one."""
        return float(self.rates.min())

    @property
    def gap(self) -> float:
        """Largest minus smallest group rate."""
        return float(np.ptp(self.rates))


def fair_bayes_optimal(
    mass: ArrayLike,
    eta: ArrayLike,
    group: ArrayLike,
    constraint: Constraint = "demographic_parity",
    slack: float = 0.0,
) -> FairBOC:
    """Return the most accurate randomised classifier whose group rates differ by at most `slack`: exact, closed form.

    Parameters
    ----------
    mass : array-like of float, shape (n_atoms,)
        Probability of each atom; non-negative, sums to one.
    eta : array-like of float, shape (n_atoms,)
        Probability of a positive outcome in each atom, in [0, 1].
    group : array-like, shape (n_atoms,)
        Group that each atom belongs to.
    constraint : {"demographic_parity", "equal_opportunity", "predictive_equality"}
        Which rate must be equal: acceptance, true positive or false positive rate.
    slack : float, default 0
        How far apart the largest and the smallest group rate may be, in [0, 1].

    Returns
    -------
    FairBOC
        Of the optimal classifiers at a breakpoint of some group, the one that flips a coin for the least mass.

    Raises
    ------
    InputError
        When masses do not sum to one, `eta` leaves [0, 1], or a group has no positives (equal opportunity) or no
        negatives (predictive equality).

    Notes
    -----
    Let c(v) be the constraint mass of an atom: mass, mass x eta, or mass x (1 - eta). Accepting atoms of group a in
    descending order of eta until its rate is r is best for that r, because the gain per unit of c is increasing in
    eta; the gain g_a(r) is concave and piecewise linear. With slack d the best total over windows [r, r + d] is

        h(r) = sum_a max{g_a(s) : r <= s <= r + d},    h'(r+) = sum_a [min(g_a'(r+), 0) + max(g_a'((r + d)+), 0)],

    concave and piecewise linear too, with breakpoints at those of the g_a and at the same less d; the first one where
    the slope stops being positive is found by bisection. At most n_groups - 1 atoms are
    fractional, whatever the slack: only groups held at an end of the window can have one, and the group whose
    breakpoint fixed the window has none.

    Cost: O(n log n) time for the sort, O(n + G log n) after it; O(n) memory.

    Examples
    --------
    Half of each group is certain to repay; then a little of group "b" turns good:

    >>> best = fair_bayes_optimal([.25, .25, .26, .24], [1, 0, 1, 0], ["a", "a", "b", "b"])
    >>> round(best.accuracy, 6), best.n_fractional, best.f.round(4).tolist()
    (0.99, 1, [1.0, 0.04, 1.0, 0.0])
    """
    atoms = _Atoms.checked(mass, eta, group, constraint)
    slack = checked_slack(slack)
    f = (atoms.eta > 0.5).astype(np.float64)  # atoms without constraint mass are free to choose
    curves, members = [], []
    for code in range(len(atoms.groups)):
        rows = np.flatnonzero((atoms.code == code) & (atoms.weight > 0))
        rows = rows[np.argsort(-atoms.eta[rows], kind="stable")]
        members.append(rows)
        curves.append(GroupCurve.from_sorted(atoms.mass[rows], atoms.eta[rows], constraint))
    rates = best_rates(curves, slack)
    for rows, curve, rate in zip(members, curves, rates, strict=True):
        f[rows] = curve.acceptance(rate)
    return atoms.classifier(f)


def deterministic_fair_bayes_optimal(
    mass: ArrayLike,
    eta: ArrayLike,
    group: ArrayLike,
    constraint: Constraint = "demographic_parity",
    tol: float = 0.0,
    time_limit: float = 60.0,
) -> FairBOC:
    """Return the most accurate fair classifier that accepts or rejects whole atoms, by integer programming.

    The problem is NP-complete (exact parity is a subset-sum), so keep it to about 40 atoms. It is here to show what
    the coin buys, and as an independent check of `fair_bayes_optimal`.

    Parameters
    ----------
    mass, eta, group, constraint
        As for `fair_bayes_optimal`.
    tol : float, default 0
        How far apart the largest and the smallest group rate may be.
    time_limit : float, default 60
        Seconds.

    Returns
    -------
    FairBOC
        With ``n_fractional == 0``.

    Raises
    ------
    InputError
        As `fair_bayes_optimal`.
    TimeoutError
        When no proven optimum was found in time.

    Notes
    -----
    Where the constraint masses are multiples of one unit (counts of people) and ``tol == 0``, the equal rates can only
    be multiples of one over the greatest common divisor of the group totals; the program is then posed in whole numbers
    and the parity exact. Else rows are scaled up, since HiGHS accepts rows that are violated by 1e-6, and a solution
    whose rates differ by more than ``tol + 1e-9`` is cut off and the program solved again.
    """
    atoms = _Atoms.checked(mass, eta, group, constraint)
    tol = checked_slack(tol, "tol")
    counts = _whole_numbers(atoms.weight) if tol == 0 else None
    if counts is not None:
        rows, bounds = _counted_rows(atoms, counts)
        slack = 0.0
    else:
        rows, bounds = _scaled_rows(atoms)
        slack = (tol + 1e-9) * _ROW_SCALE
    found = _best_whole(atoms, rows, bounds, slack, tol + 1e-9, time_limit)
    if found is None:
        raise TimeoutError(
            f"no proven optimum over {len(atoms.mass)} atoms within {time_limit:g} s. Merge atoms, allow a larger tol "
            "or more time"
        )
    return found


def robustness_constant(
    mass: ArrayLike, eta: ArrayLike, group: ArrayLike, constraint: Constraint = "demographic_parity", *, tv: float = 0.0
) -> float:
    """Return C such that poison of total variation `tv` moves the best fair accuracy by at most C x `tv`.

    Parameters
    ----------
    mass, eta, group, constraint
        As for `fair_bayes_optimal`.
    tv : float, default 0
        Radius of the ball of distributions of (features, group, outcome) that C must hold for. At 0, the limit of
        small radii.

    Returns
    -------
    float
        1 for a single group, 3 for demographic parity, ``1 + 2 kappa`` for the other two, where kappa is the largest
        odds that a positive (equal opportunity) or negative (predictive equality) case is *not* of group b, over all
        groups b and all distributions in the ball; ``inf`` when poison could empty a group of such cases.

    Notes
    -----
    For two groups kappa is the ratio of the larger to the smaller group; with more it grows with their number, and
    must: with G groups of equal size and a perfect classifier, relabelling a share eps of the cases of one group costs
    every other group as much. The bound holds for every slack. See the method's page for the proof.
    """
    atoms = _Atoms.checked(mass, eta, group, constraint)
    return constant_from_totals(atoms.totals, constraint, tv)


def constant_from_totals(totals: Floats, constraint: Constraint, tv: float = 0.0) -> float:
    """Return the robustness constant, given the constraint mass of each group."""
    if len(totals) == 1:
        return 1.0
    return 3.0 if constraint == "demographic_parity" else 1.0 + 2.0 * kappa_from_totals(totals, tv)


def kappa_from_totals(totals: Floats, tv: float = 0.0) -> float:
    """Return the largest odds against a group, over all distributions within `tv`."""
    smallest = float(totals.min()) - tv
    return float("inf") if smallest <= 0 else (float(totals.sum()) - smallest) / smallest


def constraint_mass(mass: Floats, eta: Floats, constraint: Constraint) -> Floats:
    """Return what each atom weighs in its group's rate: c(v)."""
    if constraint == "demographic_parity":
        return mass
    return mass * eta if constraint == "equal_opportunity" else mass * (1 - eta)


def checked_constraint(constraint: str) -> Constraint:
    if constraint not in CONSTRAINTS:
        raise InputError(f"constraint is {constraint!r}", expected="one of " + ", ".join(map(repr, CONSTRAINTS)))
    return constraint


def checked_slack(slack: float, name: str = "slack") -> float:
    if not 0 <= slack <= 1:
        raise InputError(f"{name} is {slack!r}", expected="a difference of rates in [0, 1]")
    return float(slack)


def without_mass(group: Any, constraint: Constraint) -> InputError:
    """Return the error for a group whose rate does not exist."""
    lacking = {"equal_opportunity": "positives", "predictive_equality": "negatives"}.get(constraint, "weight")
    return InputError(
        f"group {group!r} has no {lacking}, so its rate under {constraint} does not exist",
        remedy="Leave the group out, merge it with another, or choose another constraint",
    )


@dataclass(frozen=True, slots=True)
class _Atoms:
    """Checked input."""

    mass: Floats
    eta: Floats
    code: Indices
    groups: tuple[Any, ...]
    weight: Floats
    totals: Floats

    @classmethod
    def checked(cls, mass: ArrayLike, eta: ArrayLike, group: ArrayLike, constraint: Constraint) -> "_Atoms":
        checked_constraint(constraint)
        masses, etas = np.asarray(mass, dtype=np.float64), np.asarray(eta, dtype=np.float64)
        labels = np.asarray(group)
        if masses.ndim != 1 or not masses.shape == etas.shape == labels.shape:
            shapes = ", ".join(str(a.shape) for a in (masses, etas, labels))
            raise InputError(f"mass, eta and group have shapes {shapes}", expected="three equal one-dimensional shapes")
        if not np.all(masses >= 0) or abs(masses.sum() - 1) > 1e-8:
            raise InputError(
                f"mass has minimum {masses.min(initial=np.inf):g} and sum {masses.sum():.10g}",
                expected="non-negative numbers that sum to 1 (to 1e-8)",
            )
        if not np.all((etas >= 0) & (etas <= 1)):
            raise InputError("eta holds values outside [0, 1] or NaN", expected="probabilities of a positive outcome")
        groups, code = np.unique(labels, return_inverse=True)
        weight = constraint_mass(masses, etas, constraint)
        totals = np.asarray(np.bincount(code, weights=weight, minlength=len(groups)), dtype=np.float64)
        if not totals.all():
            raise without_mass(groups[totals.argmin()].item(), constraint)
        return cls(masses, etas, code, tuple(groups.tolist()), weight, totals)

    def classifier(self, f: Floats) -> FairBOC:
        rates = np.bincount(self.code, weights=self.weight * f, minlength=len(self.groups)) / self.totals
        coin = (f > 0) & (f < 1) & (self.mass > 0)
        return FairBOC(
            f=f,
            groups=self.groups,
            rates=rates,
            accuracy=float(self.mass @ np.where(f == 1, self.eta, f * self.eta + (1 - f) * (1 - self.eta))),
            n_fractional=int(coin.sum()),
            randomized_mass=float(self.mass[coin].sum()),
        )


def _whole_numbers(weight: Floats) -> NDArray[np.int64] | None:
    """Return weights as multiples of one unit; None where there is no unit of at least 1e-7."""
    fractions = [Fraction(float(value)).limit_denominator(10**6) for value in weight]
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    if unit > 10**7 or max(abs(float(f) - w) for f, w in zip(fractions, weight, strict=True)) > 1e-12:
        return None
    return np.array([int(fraction * unit) for fraction in fractions], dtype=np.int64)


def _counted_rows(atoms: _Atoms, counts: NDArray[np.int64]) -> tuple[Floats, tuple[float, float]]:
    """Return rows that say ``accepted of group a = (n_a / g) t``; t is the last variable, from 0 to g."""
    n = len(counts)
    rows = np.zeros((len(atoms.groups), n + 1))
    rows[atoms.code, np.arange(n)] = counts
    totals = rows.sum(axis=1).astype(np.int64)
    divisor = int(np.gcd.reduce(totals))
    rows[:, n] = -(totals // divisor)
    return rows, (0.0, float(divisor))


def _scaled_rows(atoms: _Atoms) -> tuple[Floats, tuple[float, float]]:
    """Return rows that say ``rate of group a - r``, times a scale; r is the last variable, from 0 to 1."""
    n = len(atoms.mass)
    rows = np.zeros((len(atoms.groups), n + 1))
    rows[atoms.code, np.arange(n)] = _ROW_SCALE * atoms.weight / atoms.totals[atoms.code]
    rows[:, n] = -_ROW_SCALE
    return rows, (0.0, 1.0)


def _best_whole(
    atoms: _Atoms, rows: Floats, bounds: tuple[float, float], slack: float, gap: float, time_limit: float
) -> FairBOC | None:
    """Solve the integer program, whose rows may lie in [0, slack]; None when time is up."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = len(atoms.mass)
    lower, upper = np.zeros(n + 1), np.append(np.ones(n), bounds[1])
    integrality = np.append(np.ones(n), float(slack == 0))  # t is whole where rows are exact, r is not
    gain = np.append(atoms.mass * (2 * atoms.eta - 1), 0.0)
    constraints = [LinearConstraint(rows, 0.0, slack)]
    deadline = monotonic() + time_limit
    while (left := deadline - monotonic()) > 0:
        solution = milp(
            -gain,
            integrality=integrality,
            bounds=Bounds(lower, upper),
            constraints=constraints,
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )
        if solution.status != 0:
            return None
        f = np.round(solution.x[:n])
        found = atoms.classifier(f)
        if found.gap <= gap:
            return found
        constraints.append(LinearConstraint(np.append(2 * f - 1, 0.0), -np.inf, f.sum() - 1))
    return None


@dataclass(frozen=True, slots=True)
class GroupCurve:
    """The gain g_a(r) of one group, and its atoms in the order in which they are accepted.

    Parameters
    ----------
    filled : ndarray, shape (n_atoms + 1,)
        Rate once so many atoms are accepted: from 0 to 1.
    mass : ndarray, shape (n_atoms,)
        Mass of each atom.
    breakpoint : ndarray, shape (n_levels + 1,)
        The entries of `filled` at which eta changes.
    slope : ndarray, shape (n_levels,)
        g_a'(r) between them, descending.
    total : float
        Constraint mass of the group.
    """

    filled: Floats
    mass: Floats
    breakpoint: Floats
    slope: Floats
    total: float
    own: tuple[float, float] = field(init=False)  # the rates at which g_a is largest

    def __post_init__(self) -> None:
        low, high = self.breakpoint[[(self.slope > 0).sum(), (self.slope >= 0).sum()]]
        object.__setattr__(self, "own", (float(low), float(high)))

    @classmethod
    def from_sorted(cls, mass: Floats, eta: Floats, constraint: Constraint) -> "GroupCurve":
        """Build it from atoms that all have constraint mass, in descending order of eta."""
        reached = np.cumsum(constraint_mass(mass, eta, constraint))
        total = float(reached[-1])
        filled = np.concatenate([[0.0], reached / total])
        starts = np.flatnonzero(np.diff(eta, prepend=np.inf))
        level = eta[starts]
        if constraint == "demographic_parity":
            slope = 2 * level - 1
        elif constraint == "equal_opportunity":
            with np.errstate(over="ignore"):  # a denormal eta makes the slope minus infinity, which is right
                slope = 2 - 1 / level
        else:
            slope = 1 / (1 - level) - 2
        return cls(filled, mass, filled[np.append(starts, len(eta))], total * slope, total)

    def cut(self, rate: Floats) -> tuple[Indices, Floats]:
        """Return, for each rate, how many atoms are accepted whole, and the fraction of the next one.

        Atoms may weigh next to nothing in the rate and much in accuracy (eta near 0 under equal opportunity, near 1
        under predictive equality), so of the whole numbers that give the same rate the most accurate one is taken.
        """
        fewest = self.filled.searchsorted(rate - _SAME_RATE)
        most = self.filled.searchsorted(rate + _SAME_RATE, side="right") - 1
        best = self.filled.searchsorted(self.own[0])
        part = (rate - self.filled[most]) / np.append(np.diff(self.filled), np.inf)[most]
        return np.where(fewest <= most, np.clip(best, fewest, most), most), np.where(fewest <= most, 0.0, part)

    def acceptance(self, rate: float) -> Floats:
        """Return the probability of acceptance of each atom at this rate."""
        whole, part = self.cut(np.array([rate]))
        f = np.zeros(len(self.mass))
        f[: whole[0]] = 1.0
        if part[0] > 0:
            f[whole[0]] = part[0]
        return f

    def randomized(self, rate: Floats) -> Floats:
        """Return, for each rate, the mass of the fractional atom."""
        whole, part = self.cut(rate)
        return np.where(part > 0, np.append(self.mass, 0.0)[whole], 0.0)

    def within(self, low: Floats, high: Floats) -> Floats:
        """Return the best rate in each window; a whole number of atoms where the group is indifferent."""
        best = np.clip(self.own[0], low, high)
        if self.own[1] > self.own[0]:
            whole = self.filled[np.minimum(self.filled.searchsorted(low - _SAME_RATE), len(self.filled) - 1)]
            indifferent = (self.own[0] < low) & (whole <= np.minimum(high, self.own[1]) + _SAME_RATE)
            best = np.where(indifferent, whole, best)
        return np.asarray(best)


def best_rates(curves: Sequence[GroupCurve], slack: float) -> Floats:
    """Return each group's rate in the most accurate fair classifier; shape (n_groups,)."""
    slopes = _Slopes.of(curves)
    start = slopes.first_window(slack, _FLAT)
    stop = start if slopes.summed(*start) < -_FLAT else slopes.first_window(slack, -_FLAT)
    low, high = np.array([start, stop]).T
    if stop[0] > start[0] + _SAME_RATE:  # h is flat from start to stop: any breakpoint between them will do
        for curve in curves:
            for shift in (0.0, slack):
                inside = curve.filled[slice(*curve.filled.searchsorted([start[0] + shift, stop[0] + shift]))]
                low, high = np.append(low, inside - shift), np.append(high, inside - shift + slack)
    rates = np.array([curve.within(low, high) for curve in curves])
    coin = np.array([curve.randomized(rate) for curve, rate in zip(curves, rates, strict=True)]).sum(axis=0)
    best: Floats = np.clip(rates[:, coin.argmin()], 0.0, 1.0)
    return best


@dataclass(frozen=True, slots=True)
class _Slopes:
    """The slopes of all groups in one sorted array, so that h' at a point is two look-ups.

    Parameters
    ----------
    point : ndarray
        Breakpoints of all groups, one group after the other.
    key : ndarray
        The same plus twice the number of the group: ascending.
    slope : ndarray
        Slope to the right of each; minus infinity to the right of 1.
    offset : ndarray, shape (n_groups,)
        What was added to the breakpoints of each group.
    """

    point: Floats
    key: Floats
    slope: Floats
    offset: Floats

    @classmethod
    def of(cls, curves: Sequence[GroupCurve]) -> "_Slopes":
        offset: Floats = 2.0 * np.arange(len(curves), dtype=np.float64)
        point = np.concatenate([curve.breakpoint for curve in curves])
        slope = np.concatenate([part for curve in curves for part in (curve.slope, [-np.inf])])
        return cls(point, point + np.repeat(offset, [len(curve.breakpoint) for curve in curves]), slope, offset)

    def summed(self, low: float, high: float) -> float:
        """Return h'(r+) for the window [low, high]; minus infinity where it cannot move further."""
        if high >= 1 - _SAME_RATE:
            return -np.inf
        left, right = (
            self.slope[self.key.searchsorted(self.offset + (end + _SAME_RATE), side="right") - 1] for end in (low, high)
        )
        return float(np.minimum(left, 0.0).sum() + np.maximum(right, 0.0).sum())

    def first_window(self, slack: float, limit: float) -> tuple[float, float]:
        """Return the leftmost window, with an end at a breakpoint, from where the summed slope is at most `limit`."""
        if self.summed(0.0, slack) <= limit:
            return 0.0, slack
        low, high = 0.0, 1.0 - slack  # h' is above the limit at low, and is not at high
        while self._count(low, high, slack) > _FEW_WINDOWS and high - low > _SAME_RATE / 4:
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                if self.summed(middle, middle + slack) <= limit:
                    high = middle
                else:
                    low = middle
        windows = self._windows(low, high, slack)
        first, last = 0, len(windows) - 1
        while first < last:
            at = (first + last) // 2
            if self.summed(*windows[at]) <= limit:
                last = at
            else:
                first = at + 1
        return float(windows[first, 0]), float(windows[first, 1])

    def _bounds(self, low: float, high: float, shift: float) -> tuple[Indices, Indices]:
        """Return, by group, the first and the last place of breakpoints within [low, high] once shifted."""
        first = self.key.searchsorted(self.offset + (low + shift - 2 * _SAME_RATE))
        return first, self.key.searchsorted(self.offset + (high + shift + 2 * _SAME_RATE))

    def _count(self, low: float, high: float, slack: float) -> int:
        """Return how many windows start within [low, high] and have an end at a breakpoint."""
        ends = [self._bounds(low, high, shift) for shift in ((0.0, slack) if slack else (0.0,))]
        return int(sum((last - first).sum() for first, last in ends))

    def _windows(self, low: float, high: float, slack: float) -> Floats:
        """Return those windows, from left to right; shape (n, 2)."""
        found = []
        for shift in (0.0, slack) if slack else (0.0,):
            first, last = self._bounds(low, high, shift)
            for group in np.flatnonzero(first < last):
                start = self.point[first[group] : last[group]] - shift
                found.append(np.column_stack([start, start + slack]))
        windows = np.concatenate(found)
        return windows[np.argsort(windows[:, 0], kind="stable")]
