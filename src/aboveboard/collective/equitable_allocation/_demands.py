"""What arrives: a distribution of demands for each place in the queue, from tables of chances or from past days."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = ["Demands", "Floats", "Ints", "check_supply", "read_demands"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_FORMS: Final = "a list with a pair (values, chances) for each arrival, or a table of days x arrivals"
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Demands:
    """Independent demands of T arrivals in a known order.

    Attributes
    ----------
    values, chances : ndarray of shape (K,)
        What may be asked for and how likely it is: slot after slot, ascending within a slot, positive.
    starts : ndarray of int, shape (T + 1,)
        Slot t has the entries from ``starts[t]`` to ``starts[t + 1]``.
    days : ndarray of shape (n_days, T) or None
        The past days that the chances were counted from.
    """

    values: Floats
    chances: Floats
    starts: Ints
    days: Floats | None = None

    @property
    def n_slots(self) -> int:
        return len(self.starts) - 1

    @property
    def slot(self) -> Ints:
        """The slot of each entry."""
        return np.repeat(np.arange(self.n_slots), np.diff(self.starts))

    @property
    def asks(self) -> Floats:
        """The chance that anything is asked for, for each slot."""
        return self.sums(self.chances)

    def sums(self, entries: Floats) -> Floats:
        """Return the sum of `entries` for each slot."""
        return np.add.reduceat(entries, self.starts[:-1])

    def split(self, entries: Floats) -> list[Floats]:
        """Return `entries` slot by slot."""
        return np.split(entries, self.starts[1:-1])

    def find(self, t: int, demand: Floats) -> Ints:
        """Return the entry of slot `t` that stands for each demand: the next larger one, else the largest."""
        first, last = self.starts[t], self.starts[t + 1]
        place = np.searchsorted(self.values[first:last], demand * (1.0 - _ROUNDING))
        return np.asarray(first + np.minimum(place, last - first - 1))

    def draw(self, n: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Draw `n` days; yield what is asked for in each slot, 0 where nothing is."""
        for t in range(self.n_slots):
            first, last = self.starts[t], self.starts[t + 1]
            cumulative = np.cumsum(self.chances[first:last])
            if cumulative[-1] > 1.0 - 1e-9:
                cumulative[-1] = 1.0
            yield np.append(self.values[first:last], 0.0)[np.searchsorted(cumulative, rng.random(n), side="right")]


def read_demands(demands: Any) -> Demands:
    """Return the distributions, whichever way they were given.

    Parameters
    ----------
    demands : sequence of (values, chances), or array-like of shape (n_days, T), or Demands

    Raises
    ------
    InputError
        For values that are negative or not finite, chances that do not sum to 1, or a slot in which nothing is asked
        for.
    """
    if isinstance(demands, Demands):
        return demands
    if hasattr(demands, "columns") or (isinstance(demands, np.ndarray) and demands.ndim == 2):
        return _from_days(_numbers(demands, "the table of past days"))
    if not isinstance(demands, Sequence | np.ndarray) or isinstance(demands, str) or not len(demands):
        raise InputError(f"the demands are {_shown(demands)}", expected=_FORMS)
    if all(_is_row(entry) for entry in demands):
        return _from_days(_numbers(demands, "the table of past days"))
    return _from_chances(demands)


def check_supply(supply: Any) -> float:
    """Return the stock as a number.

    Raises
    ------
    InputError
        When it is not a positive finite number.
    """
    try:
        value = float("nan") if isinstance(supply, bool) else float(supply)
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value) or value <= 0:
        raise InputError(f"the supply is {_shown(supply)}", expected="a positive number")
    return value


def _is_row(entry: Any) -> bool:
    """Whether this is a day of plain numbers, and no pair of values and chances."""
    return isinstance(entry, Sequence | np.ndarray) and len(entry) > 0 and not hasattr(entry[0], "__len__")


def _from_chances(pairs: Any) -> Demands:
    values, chances, sizes = [], [], []
    for t, pair in enumerate(pairs):
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(f"the demand of slot {t} is {_shown(pair)}", expected="a pair (values, chances)")
        value, chance = (_numbers(part, f"the demand of slot {t}") for part in pair)
        if value.ndim != 1 or value.shape != chance.shape or not len(value):
            raise InputError(
                f"slot {t} has values of shape {value.shape} and chances of shape {chance.shape}",
                expected="one chance for each value, and one value at least",
            )
        values.append(value)
        chances.append(chance)
        sizes.append(len(value))
    value, chance = np.concatenate(values), np.concatenate(chances)
    slot = np.repeat(np.arange(len(sizes)), sizes)
    _refuse_values(value, slot)
    if (chance < 0).any():
        raise InputError(f"slot {slot[(chance < 0).argmax()]} has a negative chance", expected="chances from 0 to 1")
    total = np.bincount(slot, chance)
    if (np.abs(total - 1.0) > 1e-6).any():
        wrong = int(np.abs(total - 1.0).argmax())
        raise InputError(
            f"the chances of slot {wrong} sum to {total[wrong]:.6g}",
            expected="chances that sum to 1",
            remedy="Say with a value of 0 how likely it is that nothing is asked for",
        )
    return _made(value, chance / total[slot], slot, len(sizes))


def _from_days(days: Floats) -> Demands:
    if days.ndim != 2 or not days.size:
        raise InputError(f"the past days have shape {days.shape}", expected="(n_days, arrivals), neither 0")
    n, slots = days.shape
    slot = np.tile(np.arange(slots), n)
    _refuse_values(days.ravel(), slot)
    return _made(days.ravel(), np.full(days.size, 1.0 / n), slot, slots, days)


def _made(value: Floats, chance: Floats, slot: Ints, slots: int, days: Floats | None = None) -> Demands:
    """Return the entries sorted, equal values merged, and those left out in which nothing is asked for."""
    asked = (value > 0) & (chance > 0)
    value, chance, slot = value[asked], chance[asked], slot[asked]
    silent = np.flatnonzero(np.bincount(slot, minlength=slots) == 0)
    if len(silent):
        raise InputError(
            f"nothing is ever asked for in {len(silent):,} of {slots:,} slots, the first is slot {silent[0]}",
            expected="a positive demand with a positive chance in every slot",
            remedy="Leave those slots out",
        )
    order = np.lexsort((value, slot))
    value, chance, slot = value[order], chance[order], slot[order]
    new = np.append(True, (value[1:] != value[:-1]) | (slot[1:] != slot[:-1]))
    first = np.flatnonzero(new)
    starts = np.append(np.searchsorted(slot[first], np.arange(slots)), len(first))
    return Demands(value[first], np.add.reduceat(chance, first), starts.astype(np.intp), days)


def _refuse_values(value: Floats, slot: Ints) -> None:
    bad = ~np.isfinite(value) | (value < 0)
    if bad.any():
        at = int(bad.argmax())
        raise InputError(
            f"slot {slot[at]} has the demand {value[at]:g}",
            expected="finite numbers, none below 0; 0 where nothing is asked for",
        )


def _numbers(data: Any, what: str) -> Floats:
    try:
        return np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} holds something that is no number", expected="numbers") from error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
