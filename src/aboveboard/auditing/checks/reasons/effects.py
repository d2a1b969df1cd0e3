"""The effects of columns on the answers about some rows, drawn so that ordinary statistics apply to them.

Rows are explained in small lots. Each lot has its own rows to take absent columns from, and its own coalitions, so
that lots are independent of each other, given the model; intervals are those of lots.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from aboveboard.auditing.columns import numbers
from aboveboard.auditing.frames import column_kind
from aboveboard.auditing.model import FittedModel, source_of
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Interval
from aboveboard.explanation import GEFA, TabularMasker

__all__ = [
    "COMMON",
    "Effects",
    "amount",
    "answering",
    "bonferroni",
    "explained",
    "features",
    "listed",
    "rows_asked_about",
]

COMMON: Final[dict[str, Any]] = {"check": "reasons", "area": "explanation"}

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_LOT: Final = 10
_FEWEST_LOTS: Final = 4
_CHANGE: Final = 0.01
_MANY: Final = 30  # whole numbers are moved by one where a column has more of them


@dataclass(frozen=True, slots=True)
class _Size:
    """How many rows are explained, and how thoroughly.

    Parameters
    ----------
    rows, background : int
        At most so many rows, each compared with so many others.
    per_column, fewest, most : int
        Coalitions asked about for each row.
    budget : int
        Rows that the model is asked about in all, but for very many columns.
    """

    rows: int
    background: int
    per_column: int
    fewest: int
    most: int
    budget: int


_SIZES: Final[dict[str, _Size]] = {
    "quick": _Size(60, 3, 6, 62, 256, 20_000),
    "standard": _Size(150, 4, 8, 62, 512, 100_000),
    "full": _Size(1_000, 8, 16, 62, 2_048, 2_000_000),
}
_ENDPOINT_SIZES: Final[dict[str, _Size]] = {
    "quick": _Size(60, 2, 2, 30, 64, 4_000),
    "standard": _Size(150, 2, 4, 30, 128, 10_000),
    "full": _Size(1_000, 4, 8, 62, 512, 100_000),
}


@dataclass(frozen=True)
class Effects:
    """Effects of columns on answers.

    Attributes
    ----------
    names : tuple of str
        The columns.
    rows : ndarray of int, shape (m,)
        Positions of the explained rows.
    values : ndarray of shape (m, n)
        By how much each column moves each answer: probabilities, or the target's unit.
    lot : ndarray of int, shape (m,)
    changed : ndarray of shape (k, n)
        Effects for the first k rows after a small change of their numbers; k is zero where there are none.
    background : int
    coalitions : int
        Asked about for each row, times `background`.
    in_points : bool
        Whether the answers are probabilities.
    """

    names: tuple[str, ...]
    rows: Ints
    values: Floats
    lot: Ints
    changed: Floats
    background: int
    coalitions: int
    in_points: bool

    @cached_property
    def sizes(self) -> Floats:
        return np.abs(self.values)

    @property
    def lots(self) -> int:
        return int(self.lot.max()) + 1

    def by_lot(self, values: Floats) -> Floats:
        """Return sums over the rows of each lot."""
        sums = np.zeros((self.lots, *values.shape[1:]))
        np.add.at(sums, self.lot[: len(values)], values)
        return sums

    def mean_interval(self, values: Floats, family: int = 1) -> tuple[Floats, Floats, Floats]:
        """Return means over rows, with intervals that hold for `family` means together (Bonferroni, Student)."""
        mean = values.mean(axis=0)
        low, high = self.linear_interval(mean, (values - mean) / len(values), family)
        return mean, low, high

    def linear_interval(self, estimate: Floats, influence: Floats, family: int = 1) -> tuple[Floats, Floats]:
        """Return intervals for estimates that are sums over rows of `influence`, but for a constant."""
        lots = len(np.unique(self.lot[: len(influence)]))
        error = np.sqrt(np.square(self.by_lot(influence)).sum(axis=0) * lots / (lots - 1))
        half = float(stats.t.isf(0.025 / family, lots - 1)) * error
        return estimate - half, estimate + half

    @property
    def how(self) -> str:
        """How the effects were found, in a sentence or two."""
        return (
            f"{len(self.rows):,} rows, {self.coalitions:,} coalitions of columns each; absent columns are taken from "
            f"{self.background} other rows, drawn anew for every {_LOT} rows."
        )


def explained(subject: Subject, effort: Effort, random_state: int) -> Effects | None:
    """Explain some rows; None where there are too few.

    Raises
    ------
    ModelError
        When the model fails on rows that mix the values of two rows.
    QueriesSpent
        When it may not be asked any more.
    """
    X = features(subject)
    size = _size(subject, effort)
    rng = np.random.default_rng(random_state)
    rows = _drawn(subject, _lots(len(X), X.shape[1], size) * _LOT, rng)
    lots = len(rows) // _LOT
    if lots < _FEWEST_LOTS:
        return None
    rows = rows[: lots * _LOT]
    moved = _moved(X, rows, rng)
    predict = answering(subject)
    values, changed = [], []
    # threads gain little on so few rows, and where cores are shared they wait for each other a hundred times longer
    with threadpool_limits(1, user_api="openmp"):
        for lot in range(lots):
            own = rows[lot * _LOT : (lot + 1) * _LOT]
            others = rng.choice(np.setdiff1d(np.arange(len(X)), own), size.background, replace=False)
            explainer = GEFA(
                predict,
                TabularMasker(X.iloc[others]),
                n_queries=_queries(X.shape[1], size),
                random_state=int(rng.integers(2**31)),
            )
            values.append(explainer.explain_many(X.iloc[own]).values)
            if moved is not None and lot < _changed_lots(lots):
                changed.append(explainer.explain_many(moved.iloc[lot * _LOT : (lot + 1) * _LOT]).values)
    return Effects(
        names=tuple(map(str, X.columns)),
        rows=rows,
        values=np.concatenate(values),
        lot=np.repeat(np.arange(lots), _LOT),
        changed=np.concatenate(changed) if changed else np.empty((0, X.shape[1])),
        background=size.background,
        coalitions=_coalitions(X.shape[1], size),
        in_points=subject.task != "regression",
    )


def features(subject: Subject) -> pd.DataFrame:
    """Return what the model is given, row by row."""
    assert subject.model is not None
    return subject.X.loc[:, list(subject.model.columns)].reset_index(drop=True)


def answering(subject: Subject) -> Callable[[pd.DataFrame], Floats]:
    """Return what is explained as a function of rows: see `check`."""
    assert subject.model is not None
    model: FittedModel = subject.model
    classes = len(subject.classes)

    def answer(frame: pd.DataFrame) -> Floats:
        score = model.scores(frame)
        if score is not None:
            return np.asarray(score, dtype=np.float64)
        said = model.answer(frame).prediction
        if subject.task == "regression":
            return np.asarray(said, dtype=np.float64)
        if subject.task == "binary":
            return np.asarray(said == 1, dtype=np.float64)
        return np.eye(classes)[said]

    return answer


def rows_asked_about(n_rows: int, n_columns: int, effort: Effort) -> list[int]:
    """Return the rows of each question to an endpoint, at most; what was answered about whole rows is remembered."""
    if n_columns < 2:
        return []
    size = _ENDPOINT_SIZES[effort]
    lots = _lots(n_rows, n_columns, size)
    if lots < _FEWEST_LOTS:
        return []
    masked = _LOT * (_coalitions(n_columns, size) - 1) * size.background
    return [masked] * lots + [_LOT, masked] * _changed_lots(lots)


def amount(effects: Effects, value: float, *, signed: bool = False) -> str:
    """Return an effect as text: points of probability, or the target's unit."""
    sign = "+" if signed else ""
    return f"{100 * value:{sign}.1f} points" if effects.in_points else f"{value:{sign}.3g}"


def listed(names: list[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bonferroni(low: float, high: float, family: int) -> Interval:
    """Return an interval of `Effects.linear_interval` as a finding has it."""
    return Interval(low, high, 0.95, "Student, over lots of rows", family > 1)


# --- sizes ------------------------------------------------------------------------------------------------------------


def _size(subject: Subject, effort: Effort) -> _Size:
    assert subject.model is not None
    source = source_of(subject.model.model)
    return (_ENDPOINT_SIZES if source is not None and source.format == "endpoint" else _SIZES)[effort]


def _queries(n_columns: int, size: _Size) -> int:
    return min(max(size.per_column * n_columns // 2 * 2, size.fewest), size.most)


def _coalitions(n_columns: int, size: _Size) -> int:
    queries = _queries(n_columns, size)
    return int(2**n_columns) if n_columns < 20 and 2**n_columns - 2 <= queries else queries + 2


def _lots(n_rows: int, n_columns: int, size: _Size) -> int:
    wanted = min(size.rows, n_rows - size.background)
    cost = 1.5 * _coalitions(n_columns, size) * size.background  # a half is explained again, after small changes
    return min(wanted // _LOT, max(_FEWEST_LOTS, int(size.budget / cost) // _LOT))


def _changed_lots(lots: int) -> int:
    return max(_FEWEST_LOTS, lots // 2)


# --- rows -------------------------------------------------------------------------------------------------------------


def _drawn(subject: Subject, wanted: int, rng: np.random.Generator) -> Ints:
    """Return rows drawn by weight, no more than one of each cluster."""
    weight = subject.weights
    order = np.argsort(-np.log(rng.random(len(weight))) / np.where(weight > 0, weight, np.nan), kind="stable")
    order = order[weight[order] > 0]
    if subject.cluster is not None:
        order = order[np.sort(np.unique(subject.cluster[order], return_index=True)[1])]
    return order[: max(wanted, 0)].astype(np.intp)


def _moved(X: pd.DataFrame, rows: Ints, rng: np.random.Generator) -> pd.DataFrame | None:
    """Return the rows with their numbers moved a little; None where there is none that could be.

    Fractions by a hundredth of the standard deviation, up or down; whole numbers by one, where there are many.
    """
    picked = X.iloc[rows].reset_index(drop=True)
    changed = {}
    for name in X.columns:
        if column_kind(X[name]) != "number" or isinstance(X[name].dtype, pd.CategoricalDtype):
            continue
        values = numbers(X[name])
        known = values[np.isfinite(values)]
        spread = float(known.std()) if len(known) else 0.0
        whole = bool((known == np.round(known)).all())
        if spread == 0.0 or (whole and len(np.unique(known)) <= _MANY):
            continue
        step = np.where(rng.random(len(rows)) < 0.5, -1.0, 1.0) * (1.0 if whole else _CHANGE * spread)
        moved = np.clip(values[rows] + step, known.min(), known.max())
        changed[name] = pd.Series(moved).astype(picked[name].dtype) if picked[name].notna().all() else pd.Series(moved)
    return picked.assign(**changed) if changed else None
