"""How many members an attack recognises, and how many others it accuses, with exact intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import clopper_pearson
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Interval
from aboveboard.privacy.membership._scores import Attack, Floats

__all__ = ["FALSE_POSITIVE_RATES", "AttackRate", "attack_rates", "enough", "halves"]

Bools = NDArray[np.bool_]

FALSE_POSITIVE_RATES: Final = (0.1, 0.01, 0.001)
_EXPECTED: Final = 20
"""False accusations that must be expected among all who are no members."""
_FEWEST: Final = 40
"""Members, and others, that any figure needs."""


@dataclass(frozen=True, slots=True)
class AttackRate:
    """What an attack with one threshold (or one for each value of `Attack.by`) does to rows that did not set it.

    Parameters
    ----------
    attack : str
    aim : float or None
        The false-positive rate that the threshold was set for. None: for the largest difference of the two rates.
    true_positives, members : int
        Members that the attack calls members, of how many.
    false_positives, others : int
        Others that the attack calls members, of how many.
    level : float
        Of each rate's interval: so near 1 that the intervals of a whole family of figures hold at once.
    family_level : float
        That of the whole family.
    called, measured : ndarray of bool, shape (n,)
        Which rows the attack calls members, and which of them did not set the threshold.
    """

    attack: str
    aim: float | None
    true_positives: int
    members: int
    false_positives: int
    others: int
    level: float
    family_level: float
    called: Bools = field(repr=False, compare=False)
    measured: Bools = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, attack: str, aim: float | None, called: Bools, member: Bools, measured: Bools, figures: int, level: float
    ) -> "AttackRate":
        """Count over the measured rows; `figures` is how many share the level."""
        return cls(
            attack,
            aim,
            true_positives=int(np.count_nonzero(called & member & measured)),
            members=int(np.count_nonzero(member & measured)),
            false_positives=int(np.count_nonzero(called & ~member & measured)),
            others=int(np.count_nonzero(~member & measured)),
            level=1.0 - (1.0 - level) / (2 * figures),
            family_level=level,
            called=called,
            measured=measured,
        )

    @property
    def true_positive_rate(self) -> float:
        return self.true_positives / self.members

    @property
    def false_positive_rate(self) -> float:
        return self.false_positives / self.others

    @property
    def true_positive_interval(self) -> Interval:
        return self._interval(self.true_positives, self.members)

    @property
    def false_positive_interval(self) -> Interval:
        return self._interval(self.false_positives, self.others)

    @property
    def excess(self) -> float:
        """How much more often a member is called one than another row is."""
        return self.true_positive_rate - self.false_positive_rate

    @property
    def interval(self) -> Interval:
        """Of the excess: it holds wherever those of both rates do."""
        of_members, of_others = self.true_positive_interval, self.false_positive_interval
        low, high = of_members.low - of_others.high, of_members.high - of_others.low
        return Interval(low, high, self.family_level, "Clopper-Pearson, both rates", simultaneous=True)

    def among(self, rows: Bools, member: Bools, figures: int) -> "AttackRate":
        """Return the same of some rows only, one of so many figures."""
        part = self.measured & rows
        return AttackRate.of(self.attack, self.aim, self.called, member, part, figures, self.family_level)

    def _interval(self, count: int, n: int) -> Interval:
        low, high = clopper_pearson(count, n, level=self.level)
        return Interval(float(low), float(high), self.family_level, "Clopper-Pearson", simultaneous=True)


def attack_rates(
    attacks: Sequence[Attack],
    member: ArrayLike,
    *,
    false_positive_rates: Sequence[float] = FALSE_POSITIVE_RATES,
    level: float = 0.95,
    random_state: int = 0,
) -> list[AttackRate]:
    """Set each attack's threshold on one half of the rows, and count on the other half whom it calls a member.

    Parameters
    ----------
    attacks : sequence of Attack
        On the same n rows.
    member : array-like of bool, shape (n,)
        Whether the model was trained on the row.
    false_positive_rates : sequence of float in (0, 0.5]
        Each gives a figure where there are 20 / rate rows or more that are no members.
    level : float, default=0.95
        Of all intervals at once.
    random_state : int, default=0
        Of the halves.

    Returns
    -------
    list of AttackRate
        For each attack: with the threshold of the largest difference of the two rates, then for each false-positive
        rate. Empty where there are fewer than 40 rows of either kind.

    Raises
    ------
    InputError
        For lengths that differ, values that are no booleans, or rates and levels out of range.

    Guarantee
    ---------
    All intervals of rates and of their differences hold at once with probability `level` or more, if rows of either
    kind are independent draws given the thresholds. Rows that one model was trained on are only nearly so.

    Notes
    -----
    O(n log n) time for each attack. Intervals are Clopper and Pearson's, shared out by Bonferroni. A row is called a
    member where its score lies above the threshold, so that ties make an attack weaker and no figure wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import Attack, attack_rates
    >>> rng = np.random.default_rng(0)
    >>> member = np.arange(4000) < 2000
    >>> at_best, *low = attack_rates([Attack("mine", rng.normal(size=4000) + member)], member)
    >>> [rate.aim for rate in low]
    [0.1, 0.01]
    >>> bool(at_best.interval.low < 0.383 < at_best.interval.high)  # 2 Phi(1/2) - 1
    True
    """
    is_member = refuse(attacks, member, false_positive_rates, level)
    aims = [None, *(rate for rate in false_positive_rates if enough(is_member, rate))] if enough(is_member) else []
    fit = halves(is_member, random_state)
    figures = len(attacks) * len(aims)
    return [
        AttackRate.of(attack.name, aim, _called(attack, is_member, fit, aim), is_member, ~fit, figures, level)
        for attack in attacks
        for aim in aims
    ]


def refuse(attacks: Sequence[Attack], member: ArrayLike, rates: Sequence[float], level: float) -> Bools:
    """Return `member` as an array, or refuse what does not fit."""
    is_member = np.asarray(member)
    if is_member.dtype != bool or is_member.ndim != 1:
        raise InputError(
            f"member has shape {is_member.shape} and holds {is_member.dtype}", expected="one boolean a row"
        )
    if not attacks:
        raise InputError("there is no attack", expected="one or more, as score_attack gives them")
    for attack in attacks:
        if len(attack.scores) != len(is_member):
            raise InputError(f"{attack.name!r} scores {len(attack.scores):,} rows and member has {len(is_member):,}")
    names = [attack.name for attack in attacks]
    if len(set(names)) < len(names):
        raise InputError("two attacks have the same name")
    if not all(0 < rate <= 0.5 for rate in rates):
        raise InputError(f"the false-positive rates are {list(rates)}", expected="numbers above 0, at most 0.5")
    if not 0.5 <= level < 1:
        raise InputError(f"the level is {level!r}", expected="a number from 0.5, below 1")
    return is_member


def enough(member: Bools, rate: float | None = None) -> bool:
    """Return whether there are rows enough for a figure, or for one at a false-positive rate."""
    members, others = np.count_nonzero(member), np.count_nonzero(~member)
    return bool(min(members, others) >= _FEWEST and (rate is None or others * rate >= _EXPECTED - 1e-9))


def halves(member: Bools, random_state: int) -> Bools:
    """Return which rows set thresholds: a random half of the members and of the others."""
    order = np.random.default_rng(random_state).permutation(len(member))
    order = order[np.argsort(member[order], kind="stable")]
    fit = np.zeros(len(member), dtype=bool)
    for kind in (order[~member[order]], order[member[order]]):
        fit[kind[::2]] = True
    return fit


def _called(attack: Attack, member: Bools, fit: Bools, aim: float | None) -> Bools:
    """Return the rows that score above the threshold of their part."""
    parts: NDArray[Any] = np.zeros(len(member), dtype=np.intp)
    if attack.by is not None:
        parts = np.unique(attack.by, return_inverse=True)[1].ravel()
    worth = np.where(member, 1.0 / np.count_nonzero(fit & member), -1.0 / np.count_nonzero(fit & ~member))
    thresholds = np.full(parts.max() + 1, np.inf)
    for part in range(len(thresholds)):
        rows = fit & (parts == part)
        scores, of_members = attack.scores[rows], member[rows]
        thresholds[part] = _best_threshold(scores, worth[rows]) if aim is None else _threshold(scores[~of_members], aim)
    return np.asarray(attack.scores > thresholds[parts])


def _threshold(others: Floats, aim: float) -> float:
    """Return the least of their scores that no more than the share `aim` of them exceeds."""
    if not len(others):
        return np.inf
    allowed = int(aim * len(others) + 1e-9)
    return float(np.partition(others, len(others) - 1 - allowed)[len(others) - 1 - allowed])


def _best_threshold(scores: Floats, worth: Floats) -> float:
    """Return the threshold above which the worth of the rows is largest."""
    order = np.argsort(-scores, kind="stable")
    ordered, gained = scores[order], np.cumsum(worth[order])
    ends = np.flatnonzero(np.append(ordered[:-1] != ordered[1:], True)) if len(ordered) else np.empty(0, dtype=np.intp)
    if not len(ends) or gained[ends].max() <= 0:
        return np.inf
    last = ends[np.argmax(gained[ends])]
    return float(ordered[last + 1]) if last + 1 < len(ordered) else -np.inf
