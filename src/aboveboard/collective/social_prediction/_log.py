"""A log of forecasts and outcomes, read and checked: what the audit looks at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.social_prediction._people import Columns, check_forecasts, check_outcomes
from aboveboard.core.errors import InputError

__all__ = ["Log", "read_log"]

Floats = NDArray[np.float64]

_PERIODS: Final = 4
_CELLS: Final = 5
_MOST: Final = 20


@dataclass(frozen=True)
class Log:
    """Forecasts, outcomes, and what is known besides, one entry per person.

    Attributes
    ----------
    p, y : ndarray of shape (n,)
    contexts : DataFrame of text
    explored : ndarray of bool
        Who got a forecast drawn at random.
    arm, version : ndarray of text or None
        To what people were assigned at random; which model made the forecast, or in which period.
    versions : tuple of str
        In order of their first forecast.
    periods : bool
        Whether the versions are periods of time.
    """

    p: Floats
    y: Floats
    contexts: pd.DataFrame
    explored: NDArray[np.bool_]
    arm: NDArray[Any] | None
    version: NDArray[Any] | None
    versions: tuple[str, ...]
    periods: bool

    def cells(self) -> NDArray[np.intp]:
        """Return kinds of people who would get about the same forecast: fifths of what the contexts say of it."""
        n = len(self.p)
        if not len(self.contexts.columns):
            return np.zeros(n, dtype=np.intp)
        columns = Columns.learn(self.contexts, range(len(self.contexts.columns)))
        codes = columns.encode(self.contexts)
        groups = [codes[:, at] == level for at, found in columns.levels.items() for level in range(len(found))]
        design = np.column_stack([np.ones(n), *groups])
        known = ~self.explored if (~self.explored).sum() >= design.shape[1] else np.ones(n, dtype=bool)
        expected = design @ np.linalg.lstsq(design[known], self.p[known], rcond=None)[0]
        edges = np.unique(np.quantile(expected, np.linspace(0, 1, _CELLS + 1)[1:-1]).round(9))
        return np.asarray(np.searchsorted(edges, expected.round(9), side="right"))


def read_log(
    p: ArrayLike,
    y: ArrayLike,
    contexts: Mapping[str, Any] | None,
    arm: Any,
    explored: Any,
    version: Any,
    time: Any,
) -> Log:
    """Check a log; parameters as for `performativity_audit`."""
    forecasts = check_forecasts(p)
    n = len(forecasts)
    outcomes = check_outcomes(y, n)
    table = {str(name): _labels(labels, n, f"context {name!r}") for name, labels in (contexts or {}).items()}
    for name, labels in table.items():
        _refuse_many(labels, f"context {name!r}", 100)
    arms = None if arm is None else _labels(arm, n, "arm")
    if arms is not None:
        _refuse_many(arms, "arm", _MOST)
    random = np.zeros(n, dtype=bool)
    if explored is not None:
        if arms is None:
            raise InputError(f"explored is {explored!r} and no arms were given", expected="arm, or no explored")
        random = arms == str(explored)
        if not random.any():
            raise InputError(
                f"nobody was in the arm {explored!r}", expected=f"one of {sorted(set(arms.tolist()))[:10]}"
            )
        if random.all():
            raise InputError(f"everybody was in the arm {explored!r}", expected="people with published forecasts too")
    moment = None if time is None else _moments(time, n)
    models = None if version is None else _labels(version, n, "version")
    if models is not None:
        _refuse_many(models, "version", _MOST)
    elif moment is not None and n >= _PERIODS:
        rank = np.argsort(np.argsort(moment, kind="stable"), kind="stable")
        models = np.array([f"period {1 + _PERIODS * int(r) // n}" for r in rank], dtype=object)
    order = np.arange(n) if moment is None else np.argsort(moment, kind="stable")
    return Log(
        p=forecasts,
        y=outcomes,
        contexts=pd.DataFrame(dict(enumerate(table.values())), index=range(n), dtype=object).set_axis(
            pd.Index(list(table), dtype=object), axis=1
        ),
        explored=random,
        arm=arms,
        version=models,
        versions=() if models is None else tuple(dict.fromkeys(models[order].tolist())),
        periods=version is None and models is not None,
    )


def _labels(given: Any, n: int, what: str) -> NDArray[Any]:
    values = pd.Series(given, dtype=object).reset_index(drop=True)
    if len(values) != n:
        raise InputError(f"the {what} has {len(values):,} entries", expected=f"{n:,}, one per forecast")
    missing = values.isna().to_numpy()
    labels = ["(missing)" if gone else str(v) for v, gone in zip(values.tolist(), missing, strict=True)]
    return np.array(labels, dtype=object)


def _refuse_many(labels: NDArray[Any], what: str, most: int) -> None:
    found = len(set(labels.tolist()))
    if found > most:
        raise InputError(
            f"the {what} has {found:,} values",
            expected=f"at most {most}",
            remedy="Put numbers into bands first, or join small groups",
        )


def _moments(given: Any, n: int) -> Floats:
    """Return times as numbers that sort alike."""
    values = pd.Series(given).reset_index(drop=True)
    if len(values) != n:
        raise InputError(f"the time has {len(values):,} entries", expected=f"{n:,}, one per forecast")
    if values.isna().any():
        raise InputError(f"the time is missing in {int(values.isna().sum()):,} rows", expected="a time in every row")
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64)
    try:
        dates = pd.to_datetime(values, utc=True, format="ISO8601")
        return np.asarray(dates.astype("int64"), dtype=np.float64)
    except (ValueError, TypeError):
        raise InputError(
            f"the time {str(values.iloc[0])!r} cannot be read", expected="numbers, or dates such as 2026-03-01"
        ) from None
