"""What a K29 forecaster remembers: sums over the tests, or all that happened where tests are those of a kernel.

The forecaster needs one function of its past: s(x, p), the sum over past people i of
(y_i - p_i) <Phi(x_i, p_i), Phi(x, p)>. With finitely many tests that is <S, Phi(x, p)>, where S sums
(y_i - p_i) Phi(x_i, p_i); with a kernel it is a sum over the past. Every version of either can be asked again.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.social_prediction._families import Family, Score, columns_of, names_of, values_of

__all__ = ["KernelMemory", "Memory", "SumMemory", "forecast"]

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

_STEPS = np.linspace(0.0, 1.0, 33)
_LEVELS = 5
_AT_ONCE = 4_000_000


class Memory(ABC):
    """The past of a forecaster, with all its versions: version v is what it knew after v calls of `add`."""

    def __init__(self) -> None:
        self._ends = [0]
        self._square = 0.0

    @property
    def people(self) -> int:
        return self._ends[-1]

    @property
    def versions(self) -> int:
        return len(self._ends) - 1

    @property
    def bound(self) -> float:
        """What `norm` cannot exceed: the root of the sum, over versions, of people x the sum of (y - p)^2 |Phi|^2."""
        return float(np.sqrt(self._square))

    @property
    @abstractmethod
    def norm(self) -> float:
        """The norm of the sum of (y - p) Phi(x, p)."""

    @abstractmethod
    def score(self, Z: Floats, version: Positions) -> Score:
        """Return s(x_i, p) of the version that each person meets, as a function of p."""

    @abstractmethod
    def add(self, Z: Floats, p: Floats, residual: Floats) -> None:
        """Learn the residuals y - p of people who met the current version."""

    def version_met_by(self, person: Positions) -> Positions:
        """Return the version that each person met, by the order in which people came."""
        return np.searchsorted(np.asarray(self._ends[1:]), person, side="right")

    def _count(self, squares: Floats) -> None:
        self._ends.append(self.people + len(squares))
        self._square += len(squares) * float(squares.sum())


class SumMemory(Memory):
    """Finitely many tests: one vector of sums per version."""

    def __init__(self, tests: Sequence[Family]) -> None:
        super().__init__()
        self.tests = tests
        self.size = len(names_of(tests))
        self._parts = list(columns_of(tests))
        self._sums = _Rows(self.size)
        self._sums.append(np.zeros((1, self.size)))

    @property
    def sums(self) -> Floats:
        """S, shape (tests,)."""
        return np.asarray(self._sums.values[-1])

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.sums))

    def score(self, Z: Floats, version: Positions) -> Score:
        S = self._sums.values[version]
        parts = [family.score(Z, S[:, part]) for family, part in zip(self.tests, self._parts, strict=True)]
        return lambda p: sum((part(p) for part in parts), np.zeros(p.shape))

    def add(self, Z: Floats, p: Floats, residual: Floats) -> None:
        values = values_of(self.tests, Z, p)
        self._count(residual**2 * (values**2).sum(axis=1))
        self._sums.append((self.sums + residual @ values)[None, :])


class KernelMemory(Memory):
    """The tests of a kernel on rows (x, p): all past rows, and their residuals."""

    def __init__(self, kernel: Any, columns: int) -> None:
        super().__init__()
        self.kernel = kernel
        self._rows = _Rows(columns + 1)
        self._residual = _Rows(1)
        self._norm_square = 0.0

    @property
    def norm(self) -> float:
        return float(np.sqrt(max(self._norm_square, 0.0)))

    def score(self, Z: Floats, version: Positions) -> Score:
        ends = np.asarray(self._ends)[version]
        past, residual = self._rows.values[: ends.max()], self._residual.values[: ends.max(), 0]
        counted = np.where(np.arange(len(past)) < ends[:, None], residual, 0.0)

        def along(p: Floats) -> Floats:
            if not len(past):
                return np.zeros(p.shape)
            rows = np.column_stack([np.repeat(Z, p.shape[1], axis=0), p.ravel()])
            values = np.asarray(self.kernel(rows, past)).reshape(*p.shape, len(past))
            return (values @ counted[:, :, None])[:, :, 0]

        return along

    def add(self, Z: Floats, p: Floats, residual: Floats) -> None:
        rows = np.column_stack([Z, p])
        gram = np.asarray(self.kernel(rows))
        before = self.score(Z, np.full(len(p), self.versions))(p[:, None])[:, 0]
        self._norm_square += 2.0 * float(residual @ before) + float(residual @ gram @ residual)
        self._count(residual**2 * np.diag(gram))
        self._rows.append(rows)
        self._residual.append(residual[:, None])


def forecast(memory: Memory, Z: Floats, anchor: Floats, version: Positions) -> Floats:
    """Return K29's forecast for each person: where s(x, p) is zero, else 1 where it is positive and 0 where negative.

    Parameters
    ----------
    memory : Memory
    Z : ndarray of shape (n, columns)
    anchor : ndarray of shape (n,)
        Of several zeros, the one nearest to it is taken.
    version : ndarray of int, shape (n,)

    Notes
    -----
    Whatever the outcome y is, (y - p) s(x, p) <= 0, but for rounding: a zero is shut in to 2^-25, and taken from the
    straight line between those ends, where s is below 1e-12 |S| if tests are smooth, and 2^-25 |S| times the steepest
    slope of a test in any case.
    """
    width = memory.size if isinstance(memory, SumMemory) else max(memory.people, 1)
    block = max(1, _AT_ONCE // (len(_STEPS) * width))
    parts = [slice(start, start + block) for start in range(0, len(Z), block)]
    found = [_nearest_zero(memory.score(Z[part], version[part]), anchor[part]) for part in parts]
    return np.concatenate([np.empty(0), *found])


def _nearest_zero(score: Score, anchor: Floats) -> Floats:
    """Return a zero of each function on [0, 1], by cutting an interval with a change of sign into ever shorter ones."""
    rows = np.arange(len(anchor))
    grid = np.tile(_STEPS, (len(anchor), 1))
    value = score(grid)
    above, below = (value > 0).all(axis=1), (value < 0).all(axis=1)
    zero, at = _nearest_step(grid, value, anchor)
    for _ in range(_LEVELS - 1):
        low, high = grid[rows, at, None], grid[rows, at + 1, None]
        grid = low + (high - low) * _STEPS
        # the values at both ends are kept, so that rounding cannot lose the change of sign
        value = np.column_stack([value[rows, at], score(grid[:, 1:-1]), value[rows, at + 1]])
        zero, at = _nearest_step(grid, value, anchor)
    return np.where(above, 1.0, np.where(below, 0.0, zero))


def _nearest_step(grid: Floats, value: Floats, anchor: Floats) -> tuple[Floats, Positions]:
    """Return the zero nearest to the anchor of the straight lines between the points, and the step that it is on."""
    left, right, size, sign = grid[:, :-1], grid[:, 1:], np.abs(value), np.sign(value)
    total = size[:, :-1] + size[:, 1:]
    flat = total == 0
    on_line = left + (right - left) * size[:, :-1] / np.where(flat, 1.0, total)
    zeros = np.where(flat, np.clip(anchor[:, None], left, right), on_line)
    changes = sign[:, :-1] * sign[:, 1:] <= 0
    at = np.where(changes, np.abs(zeros - anchor[:, None]), np.inf).argmin(axis=1)
    return zeros[np.arange(len(anchor)), at], at


class _Rows:
    """A matrix that grows by rows, in amortised constant time."""

    def __init__(self, columns: int) -> None:
        self._buffer = np.empty((16, columns))
        self._used = 0

    @property
    def values(self) -> Floats:
        return self._buffer[: self._used]

    def append(self, rows: Floats) -> None:
        needed = self._used + len(rows)
        if needed > len(self._buffer):
            larger = np.empty((max(needed, 2 * len(self._buffer)), self._buffer.shape[1]))
            larger[: self._used] = self.values
            self._buffer = larger
        self._buffer[self._used : needed] = rows
        self._used = needed
