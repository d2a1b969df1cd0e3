"""Tests of a forecast: functions c(x, p) between -1 and 1, continuous in p, on which outcomes must match forecasts.

Nearly all tests are products of a feature of the person and a function of the forecast, and a family holds all products
of some features with some functions. Along p, the sum of S_j c_j(x, p) over such a family is then a combination of its
functions, with weights that are computed once per person.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from aboveboard.collective.social_prediction._people import Columns, position
from aboveboard.core.errors import InputError

__all__ = [
    "BaseScoreTests",
    "BumpTests",
    "CallableTests",
    "Family",
    "GroupTests",
    "LinearTests",
    "PolynomialTests",
    "ProductTests",
    "bind_tests",
    "columns_of",
    "default_tests",
    "names_of",
    "refuse_unusable",
    "values_of",
]

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]
"""From candidates of shape (n, g), g for each person, to the sum of S_j c_j(x, p) at each; (n, 1) if all are alike."""

_PROBE: Final = 257
_JUMP: Final = 0.25
_PROBED_PEOPLE: Final = 32


class Family(ABC):
    """Some tests; `bind` makes the copy that knows the columns of X, and only that one has names and values."""

    @abstractmethod
    def bind(self, columns: Columns, Z: Floats) -> Self: ...

    @abstractmethod
    def names(self) -> list[str]: ...

    @abstractmethod
    def values(self, Z: Floats, p: Floats) -> Floats:
        """Return c_j(x_i, p_i), shape (n, tests)."""

    @abstractmethod
    def score(self, Z: Floats, S: Floats) -> Score:
        """Return the sum of S_j c_j(x_i, p) as a function of p; S has shape (n, tests) or (1, tests)."""

    def group_columns(self) -> tuple[str | int, ...]:
        """Columns of X whose values the tests take as groups."""
        return ()

    def asks_for_groups(self) -> bool:
        """Whether the tests are about the groups that the calibrator was given, whichever they are."""
        return False


class _Products(Family):
    """All products of the features a_i(x) and the functions b_k(p)."""

    @abstractmethod
    def features(self, Z: Floats) -> Floats:
        """Return a_i(x), shape (n, features)."""

    @abstractmethod
    def functions(self, p: Floats) -> Floats:
        """Return b_k(p), with a new last axis."""

    @abstractmethod
    def feature_names(self) -> list[str]: ...

    @abstractmethod
    def function_names(self) -> list[str]: ...

    def names(self) -> list[str]:
        return _joined(self.feature_names(), self.function_names())

    def values(self, Z: Floats, p: Floats) -> Floats:
        a, b = self.features(Z), self.functions(p)
        return (a[:, :, None] * b[:, None, :]).reshape(len(p), a.shape[1] * b.shape[1])

    def score(self, Z: Floats, S: Floats) -> Score:
        a = self.features(Z)
        shaped = S.reshape(len(S), a.shape[1], S.shape[1] // max(a.shape[1], 1))
        weights = (a[:, None, :] @ shaped)[:, 0] if a.shape[1] else np.zeros((len(Z), 0))

        def along(p: Floats) -> Floats:
            return (self.functions(p) @ weights[:, :, None])[:, :, 0] if weights.shape[1] else np.zeros(p.shape)

        return along


class _OfForecast(_Products):
    """Functions of the forecast alone."""

    def bind(self, columns: Columns, Z: Floats) -> Self:  # noqa: ARG002 - there is nothing to learn
        return self

    def features(self, Z: Floats) -> Floats:
        return np.ones((len(Z), 1))

    def feature_names(self) -> list[str]:
        return ["1"]


class _OfPerson(_Products):
    """Features of the person alone."""

    def functions(self, p: Floats) -> Floats:
        return np.ones((*p.shape, 1))

    def function_names(self) -> list[str]:
        return ["1"]

    def score(self, Z: Floats, S: Floats) -> Score:
        constant = (self.features(Z) * S).sum(axis=1, keepdims=True)
        return lambda p: constant  # noqa: ARG005 - the signature of a score


@dataclass(frozen=True)
class PolynomialTests(_OfForecast):
    """The forecast's powers: 1, p, ..., p to the `degree`.

    Parameters
    ----------
    degree : int, default 1
        0 is the single test 1: outcomes match forecasts on average.
    """

    degree: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or not isinstance(self.degree, int | np.integer) or self.degree < 0:
            raise InputError(f"degree is {self.degree!r}", expected="a whole number, 0 or more")

    def functions(self, p: Floats) -> Floats:
        powers = np.ones((*p.shape, self.degree + 1))
        for k in range(self.degree):
            powers[..., k + 1] = powers[..., k] * p
        return powers

    def function_names(self) -> list[str]:
        return ["1", "p", *(f"p^{k}" for k in range(2, self.degree + 1))][: self.degree + 1]


@dataclass(frozen=True)
class BumpTests(_OfForecast):
    """Gaussian bumps along the forecast: of those who get a forecast near each centre.

    Parameters
    ----------
    centers : int or sequence of float, default 8
        Positions between 0 and 1, or how many: they then stand in the middle of equal parts.
    width : float, default 1/8
        Standard deviation of each bump. Below 0.01 a bump is as good as a jump, and is refused.

    Notes
    -----
    Narrow bumps need many rounds: the guarantee is about c(x, p) (y - p) averaged over everybody, so a bump that few
    forecasts meet says little.
    """

    centers: int | Sequence[float] = 8
    width: float = 0.125

    def __post_init__(self) -> None:
        many = isinstance(self.centers, int | np.integer) and not isinstance(self.centers, bool)
        if many and self.centers < 1:  # type: ignore[operator]
            raise InputError(f"centers is {self.centers!r}", expected="1 or more, or positions between 0 and 1")
        if not many and not all(0 <= c <= 1 for c in self.centers):  # type: ignore[union-attr]
            raise InputError(f"centers is {self.centers!r}", expected="positions between 0 and 1")
        if not 0 < self.width < np.inf:
            raise InputError(f"width is {self.width!r}", expected="a number above 0, such as 0.125")

    def functions(self, p: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * ((p[..., None] - self._positions()) / self.width) ** 2))

    def function_names(self) -> list[str]:
        return [f"p near {center:.3g}" for center in self._positions()]

    def _positions(self) -> Floats:
        if isinstance(self.centers, int | np.integer):
            return (np.arange(self.centers) + 0.5) / self.centers
        return np.asarray(self.centers, dtype=np.float64)


@dataclass(frozen=True)
class LinearTests(_OfPerson):
    """Each number that is known of a person, standardised and clipped to [-1, 1].

    Parameters
    ----------
    scale : float, default 1
        How many standard deviations from the mean are 1.
    columns : sequence of str or int, optional
        Default: all columns of X that are no groups.
    """

    scale: float = 1.0
    columns: Sequence[str | int] | None = None
    _at: Any = field(default=None, repr=False, compare=False)
    _centre: Any = field(default=None, repr=False, compare=False)
    _spread: Any = field(default=None, repr=False, compare=False)
    _names: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.scale < np.inf:
            raise InputError(f"scale is {self.scale!r}", expected="a number of standard deviations above 0")

    def bind(self, columns: Columns, Z: Floats) -> Self:
        chosen = columns.numeric if self.columns is None else [position(c, columns.names) for c in self.columns]
        groups = [columns.names[at] for at in chosen if at in columns.levels]
        if groups:
            raise InputError(f"the column {groups[0]!r} is both a group and a number", expected="one of the two")
        at = np.asarray(chosen, dtype=np.intp)
        size = np.abs(Z[:, at]).max(axis=0, initial=1.0)  # keeps the squares of huge values finite
        spread = (Z[:, at] / size).std(axis=0) * size
        return replace(
            self,
            _at=at,
            _centre=(Z[:, at] / size).mean(axis=0) * size,
            _spread=self.scale * np.where(spread > 0, spread, 1.0),
            _names=tuple(columns.names[i] for i in chosen),
        )

    def features(self, Z: Floats) -> Floats:
        return np.asarray(np.clip((Z[:, self._at] - self._centre) / self._spread, -1.0, 1.0))

    def feature_names(self) -> list[str]:
        return list(self._names)


@dataclass(frozen=True)
class GroupTests(_OfPerson):
    """Whether a person is in a group: a test for each value of each group column.

    Parameters
    ----------
    columns : sequence of str or int, optional
        Default: the calibrator's `groups`.
    """

    columns: Sequence[str | int] | None = None
    _pairs: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    _names: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def group_columns(self) -> tuple[str | int, ...]:
        return () if self.columns is None else tuple(self.columns)

    def asks_for_groups(self) -> bool:
        return self.columns is None

    def bind(self, columns: Columns, Z: Floats) -> Self:  # noqa: ARG002 - the levels were learned before
        chosen = columns.levels if self.columns is None else [position(c, columns.names) for c in self.columns]
        pairs = [(at, code) for at in chosen for code in range(len(columns.levels[at]))]
        names = tuple(f"{columns.names[at]}={columns.levels[at][code]}" for at, code in pairs)
        return replace(self, _pairs=tuple(pairs), _names=names)

    def features(self, Z: Floats) -> Floats:
        at, code = np.array(self._pairs, dtype=np.intp).reshape(-1, 2).T
        return np.asarray(Z[:, at] == code, dtype=np.float64)

    def feature_names(self) -> list[str]:
        return list(self._names)


@dataclass(frozen=True)
class ProductTests(_Products):
    """Each test of one family times each of another, such as groups times powers of the forecast.

    Parameters
    ----------
    first, second : PolynomialTests, BumpTests, LinearTests, GroupTests or ProductTests
    """

    first: Any
    second: Any

    def __post_init__(self) -> None:
        for part in (self.first, self.second):
            if not isinstance(part, _Products):
                raise InputError(
                    f"a product was asked for with {type(part).__name__}",
                    expected="two of PolynomialTests, BumpTests, LinearTests, GroupTests, ProductTests",
                    remedy="Write a function c(X, p) that multiplies them",
                )

    def group_columns(self) -> tuple[str | int, ...]:
        return (*self.first.group_columns(), *self.second.group_columns())

    def asks_for_groups(self) -> bool:
        return bool(self.first.asks_for_groups() or self.second.asks_for_groups())

    def bind(self, columns: Columns, Z: Floats) -> Self:
        return replace(self, first=self.first.bind(columns, Z), second=self.second.bind(columns, Z))

    def features(self, Z: Floats) -> Floats:
        return _outer(self.first.features(Z), self.second.features(Z))

    def functions(self, p: Floats) -> Floats:
        return _outer(self.first.functions(p), self.second.functions(p))

    def feature_names(self) -> list[str]:
        return _joined(self.first.feature_names(), self.second.feature_names())

    def function_names(self) -> list[str]:
        return _joined(self.first.function_names(), self.second.function_names())


@dataclass(frozen=True)
class CallableTests(Family):
    """Functions c(X, p) that a user wrote: from a matrix and forecasts to one number per person."""

    calls: tuple[Callable[[Floats, Floats], Any], ...]

    def bind(self, columns: Columns, Z: Floats) -> Self:  # noqa: ARG002 - there is nothing to learn
        return self

    def names(self) -> list[str]:
        return [getattr(call, "__name__", "") or f"test {i + 1}" for i, call in enumerate(self.calls)]

    def values(self, Z: Floats, p: Floats) -> Floats:
        columns = []
        for name, call in zip(self.names(), self.calls, strict=True):
            found = np.asarray(call(Z, p), dtype=np.float64)
            if found.shape != p.shape:
                raise InputError(f"the test {name!r} gives shape {found.shape}", expected=f"{p.shape}: one per person")
            columns.append(found)
        return np.column_stack(columns)

    def score(self, Z: Floats, S: Floats) -> Score:
        def along(p: Floats) -> Floats:
            n, g = p.shape
            values = self.values(np.repeat(Z, g, axis=0), p.ravel()).reshape(n, g, -1)
            return (values @ S[:, :, None])[:, :, 0]

        return along


@dataclass(frozen=True)
class BaseScoreTests(_OfPerson):
    """The base model's score h(x), which stands behind the last column of the people."""

    def bind(self, columns: Columns, Z: Floats) -> Self:  # noqa: ARG002 - there is nothing to learn
        return self

    def features(self, Z: Floats) -> Floats:
        return Z[:, -1:]

    def feature_names(self) -> list[str]:
        return ["base score"]


def default_tests() -> list[Family]:
    """Return 1, p, standardised features, groups, groups x p, and eight bumps."""
    return [PolynomialTests(1), LinearTests(), ProductTests(GroupTests(), PolynomialTests(1)), BumpTests()]


def bind_tests(tests: Sequence[Family], columns: Columns, Z: Floats) -> tuple[Family, ...]:
    """Return families that know the columns."""
    return tuple(family.bind(columns, Z) for family in tests)


def values_of(tests: Sequence[Family], Z: Floats, p: Floats) -> Floats:
    """Return the values of all tests, shape (n, tests)."""
    return np.concatenate([np.empty((len(p), 0)), *(family.values(Z, p) for family in tests)], axis=1)


def refuse_unusable(tests: Sequence[Family], Z: Floats) -> float:
    """Return the largest jump of any test along a grid of forecasts, for some of the people.

    Raises
    ------
    InputError
        For a test that is no finite number, exceeds 1, or jumps by more than 0.25 from one of 257 forecasts to the
        next: against a jump nature can answer so that no forecaster at all is calibrated.
    """
    grid = np.linspace(0.0, 1.0, _PROBE)
    some = Z[np.linspace(0, len(Z) - 1, min(len(Z), _PROBED_PEOPLE)).astype(np.intp)]
    largest = 0.0
    for family in tests:
        names = family.names()
        values = family.values(np.repeat(some, _PROBE, axis=0), np.tile(grid, len(some)))
        if not np.isfinite(values).all():
            wrong = names[int((~np.isfinite(values)).any(axis=0).argmax())]
            raise InputError(f"the test {wrong!r} gives something that is no finite number")
        values = values.reshape(len(some), _PROBE, len(names))
        size = np.abs(values).max(axis=(0, 1), initial=0.0)
        if (size > 1 + 1e-12).any():
            worst = int(size.argmax())
            raise InputError(
                f"the test {names[worst]!r} reaches {size[worst]:.3g}",
                expected="values between -1 and 1",
                remedy="Divide it by its largest absolute value",
            )
        jump = np.abs(np.diff(values, axis=1)).max(axis=(0, 1), initial=0.0)
        if (jump > _JUMP).any():
            worst = int(jump.argmax())
            raise InputError(
                f"the test {names[worst]!r} jumps by {jump[worst]:.3g} between forecasts 1/{_PROBE - 1} apart",
                expected="a test that is continuous in p",
                remedy="Replace a threshold by a ramp or a bump; where people react to the side of a threshold that "
                "they are on, no forecast at all is calibrated on it",
            )
        largest = max(largest, float(jump.max(initial=0.0)))
    return largest


def names_of(tests: Sequence[Family]) -> list[str]:
    """Return the names of all tests."""
    return [name for family in tests for name in family.names()]


def columns_of(tests: Sequence[Family]) -> Iterator[slice]:
    """Yield where the tests of each family stand among all."""
    start = 0
    for family in tests:
        stop = start + len(family.names())
        yield slice(start, stop)
        start = stop


def _outer(first: Floats, second: Floats) -> Floats:
    """Return all products along the last axis."""
    both = first[..., :, None] * second[..., None, :]
    return both.reshape(*both.shape[:-2], -1) if both.size else np.zeros((*first.shape[:-1], 0))


def _joined(first: list[str], second: list[str]) -> list[str]:
    return [" x ".join(part for part in pair if part != "1") or "1" for pair in product(first, second)]
