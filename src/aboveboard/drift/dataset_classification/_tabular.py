"""Tables: how they are read, what can be taken away from them, and which columns carry the difference."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._controls import Candidates, Rung, Trial
from aboveboard.drift.dataset_classification._learners import LogisticLearner, Trained, TreesLearner, estimator_learner
from aboveboard.drift.dataset_classification._modality import IMPORTANCE_COLUMNS
from aboveboard.drift.dataset_classification._splits import Split
from aboveboard.drift.dataset_classification._tables import (
    Features,
    TableEncoder,
    as_frame,
    encodable,
    joined,
    named_frame,
)

__all__ = ["TableModality"]

_RUNGS: Final = ("no_missing", "quantiles", "ranks", "leave_one_out")
_BINS: Final = 10
_LEFT_OUT: Final = 10
_IMPORTANCE_ROWS: Final = 2_000
_REPEATS: Final = 3
_AT_ONCE: Final = 50_000
_TINY: Final = 1e-12


class TableModality:
    """Rows of a table."""

    def __init__(self, keep: Collection[str]) -> None:
        self.keep = keep

    def check(self, name: str, data: Any) -> pd.DataFrame:
        return as_frame(data, name)

    def take(self, data: pd.DataFrame, rows: NDArray[np.intp]) -> pd.DataFrame:
        return data.iloc[rows]

    def same(self, one: pd.DataFrame, other: pd.DataFrame) -> bool:
        return one.shape == other.shape and one.reset_index(drop=True).equals(other.reset_index(drop=True))

    def join(self, parts: Mapping[str, pd.DataFrame], codes: NDArray[np.intp]) -> pd.DataFrame:
        frame, self.excluded_ = encodable(joined(parts), codes, tuple(parts), self.keep)
        return frame

    def features(self, data: pd.DataFrame, split: Split) -> Features:
        self.encoder_ = TableEncoder().fit(data.iloc[split.train])
        return self.encoder_.transform(data)

    def read(self, X: Any) -> Features:
        return self.encoder_.read(X)

    def candidates(self, estimator: Any) -> Candidates:
        if estimator is not None:
            return {type(estimator).__name__: estimator_learner(estimator)}
        return {"gradient-boosted trees": TreesLearner, "logistic regression": LogisticLearner}

    def default_rungs(self, data: pd.DataFrame) -> tuple[str, ...]:  # noqa: ARG002
        return _RUNGS

    def check_rung(self, name: str, features: Features) -> None:
        if name.startswith("without:"):
            column = name.removeprefix("without:")
            if column not in features.names or len(features.names) < 2:
                raise InputError(f"ladder names {name!r}", expected="a column that is used, and another one beside it")
        elif name not in _RUNGS:
            raise InputError(
                f"ladder names {name!r}",
                expected=f"{', '.join(map(repr, _RUNGS))} or 'without:COLUMN' for tables",
            )

    def rung(self, name: str, importance: pd.DataFrame, trial: Trial) -> list[Rung]:
        """Return the rungs of a name; none where there is nothing to take away."""
        if name == "no_missing":
            return [Rung(name, _filled)] if np.isnan(trial.features.values).any() else []
        if name == "quantiles":
            return [Rung(name, _binned)] if not _categorical(trial.features).all() else []
        if name == "ranks":
            return [Rung(name, _ranked)]
        if name == "leave_one_out":
            columns = list(importance["column"][:_LEFT_OUT]) if len(trial.features.names) > 1 else []
            return [_without(column) for column in columns]
        return [_without(name.removeprefix("without:"))]

    def importance(self, trained: Trained, trial: Trial, seed: int) -> pd.DataFrame:
        """Return what shuffling each column among held-out rows costs, the dearest first."""
        rng = np.random.default_rng(seed)
        rows = trial.split.held_out[:_IMPORTANCE_ROWS]
        features, codes = trial.features.take(rows), trial.codes[rows]
        weight = 1.0 / np.bincount(codes, minlength=trial.m)[codes]

        def quality(values: NDArray[np.float64]) -> NDArray[np.float64]:
            """Return log-loss and accuracy of each copy of the rows in a stack of them, shape (copies, 2)."""
            proba = trained.proba(Features(values, features.names, features.categorical))
            proba = proba.reshape(-1, len(rows), trial.m)
            loss = -np.log(np.maximum(proba[:, np.arange(len(rows)), codes], _TINY))
            right = (proba.argmax(axis=2) == codes).astype(np.float64)
            return np.stack([np.average(part, axis=1, weights=weight) for part in (loss, right)], axis=1)

        loss, accuracy = quality(features.values)[0]
        shuffles = np.repeat(np.arange(len(features.names)), _REPEATS)
        changes = np.empty((len(shuffles), 2))
        # many copies at a time: a call of its own for each would cost more than the predictions
        for block in np.array_split(np.arange(len(shuffles)), -(-len(shuffles) * len(rows) // _AT_ONCE)):
            values = np.tile(features.values, (len(block), 1))
            for copy, shuffle in enumerate(block):
                column = shuffles[shuffle]
                place = slice(copy * len(rows), (copy + 1) * len(rows))
                values[place, column] = features.values[rng.permutation(len(rows)), column]
            changes[block] = quality(values)
        means = changes.reshape(-1, _REPEATS, 2).mean(axis=1)
        found = [(n, new - loss, accuracy - less) for n, (new, less) in zip(features.names, means, strict=True)]
        table = named_frame(found, IMPORTANCE_COLUMNS)
        return table.sort_values("log_loss_increase", ascending=False, kind="stable", ignore_index=True)


def _without(column: str) -> Rung:
    return Rung("leave_one_out", lambda trial, _: trial.features.without(column), column, rechoose=False)


def _categorical(features: Features) -> NDArray[np.bool_]:
    return np.zeros(len(features.names), dtype=bool) if features.categorical is None else features.categorical


def _filled(trial: Trial, rng: np.random.Generator) -> Features:
    """Put values of other training rows, drawn at random, where values are missing, so that gaps tell nothing."""
    values = trial.features.values.copy()
    for j in range(values.shape[1]):
        gaps = np.flatnonzero(np.isnan(values[:, j]))
        known = trial.features.values[trial.split.train, j]
        known = known[~np.isnan(known)]
        values[gaps, j] = rng.choice(known, size=len(gaps)) if len(known) else 0.0
    return Features(values, trial.features.names, trial.features.categorical)


def _binned(trial: Trial, rng: np.random.Generator) -> Features:  # noqa: ARG001
    """Round numbers to tenths of the training rows, so that precision, heaping and units in the last place are gone."""
    values = trial.features.values.copy()
    for j in np.flatnonzero(~_categorical(trial.features)):
        known = values[trial.split.train, j]
        known = known[np.isfinite(known)]
        if len(known):
            edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS))
            values[:, j] = np.where(np.isnan(values[:, j]), np.nan, np.searchsorted(edges, values[:, j], side="right"))
    return Features(values, trial.features.names, trial.features.categorical)


def _ranked(trial: Trial, rng: np.random.Generator) -> Features:
    """Replace each column by ranks within the source, so that every column has the same distribution in each.

    Training and held-out rows are ranked apart. Equal values get ranks in random order: a shared rank would differ
    between sources, and give them away. Missing values rank below all others, and words by how common they are.
    """
    values = np.full_like(trial.features.values, np.nan)
    columns = range(len(trial.features.names))
    for part in (trial.split.train, np.concatenate([trial.split.held_out, trial.split.spare])):
        for code in range(trial.m):
            rows = part[trial.codes[part] == code]
            for j in columns:
                column = np.nan_to_num(trial.features.values[rows, j], nan=-np.inf)
                order = np.lexsort((rng.random(len(rows)), column))
                ranks = np.empty(len(rows))
                ranks[order] = (np.arange(len(rows)) + rng.random(len(rows))) / len(rows)
                values[rows, j] = ranks
    return Features(values, trial.features.names, np.zeros(len(columns), dtype=bool))
