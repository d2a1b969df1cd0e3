"""What is known of rows besides the model: the kinds they fall into, and an attack that never asks the model."""

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.privacy.membership._rates import Bools
from aboveboard.privacy.membership._scores import Attack

__all__ = ["BLIND", "blind_attack", "kinds_of_rows", "level_codes"]

BLIND: Final = "without the model"
_MOST_LEVELS: Final = 50
_FEW_NUMBERS: Final = 8
_BLIND_ROWS: Final = 10_000
_BLIND_ROUNDS: Final = 30
_BLIND_LEAF: Final = 50
MISSING: Final = "(missing)"


def kinds_of_rows(rows: pd.DataFrame) -> list[tuple[str, Bools]]:
    """Return the kinds that rows fall into, column by column: levels, and for numbers quarters between round figures.

    Columns with more than 50 levels, such as names, make no kinds.
    """
    return [(f"{name} {label}", of_kind) for name in rows.columns for label, of_kind in _kinds(rows[name])]


def _kinds(column: "pd.Series[Any]") -> list[tuple[str, Bools]]:
    missing = column.isna().to_numpy(dtype=bool)
    kinds = [(MISSING, missing)] if missing.any() else []
    if _is_number(column) and column.nunique() > _FEW_NUMBERS:
        return _quarters(column.to_numpy(dtype=np.float64, na_value=np.nan)) + kinds
    codes, levels = level_codes(column)
    if len(levels) > _MOST_LEVELS:
        return kinds
    return [(f"= {level}", np.asarray(codes == code)) for code, level in enumerate(levels)] + kinds


def level_codes(column: "pd.Series[Any]") -> tuple[NDArray[np.intp], list[str]]:
    """Return a code for each row, -1 where it is missing, and the levels as text, in order of appearance."""
    # as objects, since pandas' own text cannot hold half of a surrogate pair
    codes, levels = pd.factorize(column.to_numpy(dtype=object))
    return codes, [f"{level:g}" if isinstance(level, float) else str(level) for level in levels]


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _quarters(values: NDArray[np.float64]) -> list[tuple[str, Bools]]:
    """Cut at the quartiles, rounded so that no end is the value of a row."""
    known = values[np.isfinite(values)]
    if not len(known):
        return []
    cuts = np.unique([float(f"{cut:.2g}") for cut in np.quantile(known, [0.25, 0.5, 0.75])])
    place = np.searchsorted(cuts, values, side="right")
    names = [
        f"below {cuts[0]:g}",
        *(f"from {low:g} to below {high:g}" for low, high in pairwise(cuts)),
        f"of {cuts[-1]:g} or more",
    ]
    there = ~np.isnan(values)
    return [(name, np.asarray((place == at) & there)) for at, name in enumerate(names)]


def blind_attack(rows: pd.DataFrame, member: Bools, fit: Bools, random_state: int) -> Attack:
    """Return the scores of a boosted model that learns on the rows of `fit` to tell members from others."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X = np.column_stack([_as_numbers(rows[name]) for name in rows.columns] or [np.zeros(len(rows))])
    rng = np.random.default_rng(random_state)
    drawn = [rng.permutation(np.flatnonzero(fit & kind))[:_BLIND_ROWS] for kind in (member, ~member)]
    few = np.concatenate([part[: min(map(len, drawn))] for part in drawn])
    model = HistGradientBoostingClassifier(
        max_iter=_BLIND_ROUNDS, min_samples_leaf=_BLIND_LEAF, early_stopping=False, random_state=random_state
    )
    return Attack(BLIND, model.fit(X[few], member[few]).predict_proba(X)[:, 1])


def _as_numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    if _is_number(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, _ = level_codes(column)
    return np.where(codes < 0, np.nan, codes)
