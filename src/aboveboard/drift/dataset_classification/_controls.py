"""The controls: sources that cannot differ, fewer rows, and rows from which something was taken away."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.progress import Progress
from aboveboard.drift.dataset_classification._learners import Learner, train
from aboveboard.drift.dataset_classification._result import SourceTest, judge
from aboveboard.drift.dataset_classification._splits import Split, balanced_split, needed, whole_split
from aboveboard.drift.dataset_classification._tables import Features, named_frame

__all__ = ["Rung", "Trial", "growth", "ladder", "pseudo"]

Codes = NDArray[np.intp]
Candidates = Mapping[str, Callable[[], Learner]]


@dataclass(frozen=True, slots=True)
class Trial:
    """All that one comparison of sources needs, so that a control can repeat it with one thing changed."""

    features: Features
    codes: Codes
    groups: Codes | None
    split: Split
    names: tuple[str, ...]
    candidates: Candidates
    data: Any
    jobs: int | None
    progress: Progress

    @property
    def m(self) -> int:
        return len(self.names)

    def only(self, name: str) -> Candidates:
        return {name: self.candidates[name]}


@dataclass(frozen=True, slots=True)
class Rung:
    """One thing taken away from the rows: `apply(trial, rng)` gives the features that are left."""

    name: str
    apply: Callable[[Trial, np.random.Generator], Features]
    column: str = ""
    rechoose: bool = True
    """Whether the classifier is chosen anew: one that fits the rows as they are may be blind to what is left."""


def pseudo(trial: Trial, repeats: int, seed: int) -> pd.DataFrame:
    """Run the same test on random parts of one source, or of all rows where no source is large enough."""
    seeds = np.random.SeedSequence(seed).spawn(repeats)
    rows = _each([(_pseudo_once, (trial, one)) for one in seeds], trial, "pseudo data sets")
    columns = ["drawn_from", "accuracy", "low", "high", "p_value", "train_accuracy", "n_train", "n_held_out"]
    return named_frame(rows, columns).rename_axis("repeat")


def growth(trial: Trial, name: str, sizes: list[int], seed: int) -> pd.DataFrame:
    """Train on ever more rows, and judge on the same held-out rows each time."""
    order = np.random.default_rng(seed).permutation(trial.split.train)
    calls = [(_grown, (trial, name, order, size, seed)) for size in sizes]
    rows = _each(calls, trial, "growth")
    return pd.DataFrame(rows, columns=["n_train", "accuracy", "low", "high", "p_value", "train_accuracy"])


def ladder(trial: Trial, name: str, rungs: list[Rung], full: SourceTest, seed: int) -> pd.DataFrame:
    """Train and judge again on the same rows with one thing taken away each time."""
    seeds = np.random.SeedSequence(seed).spawn(len(rungs))
    results = _each([(_one_rung, (trial, name, rung, one)) for rung, one in zip(rungs, seeds)], trial, "ladder")
    rows: list[tuple[Any, ...]] = [("nothing", "", full.accuracy, *full.ci, full.p_value, 0.0, 0.0)]
    above = full.accuracy - full.chance
    for rung, (accuracy, low, high, p_value) in zip(rungs, results, strict=True):
        drop = full.accuracy - accuracy
        rows.append((rung.name, rung.column, accuracy, low, high, p_value, drop, drop / above if above > 0 else np.nan))
    columns = ["taken_away", "column", "accuracy", "low", "high", "p_value", "drop", "artefact_share"]
    return named_frame(rows, columns)


def _each(calls: list[tuple[Callable[..., Any], tuple[Any, ...]]], trial: Trial, what: str) -> list[Any]:
    if trial.jobs in (None, 1):
        found = []
        for number, (function, arguments) in enumerate(calls, start=1):
            trial.progress.step(f"{what}: {number} of {len(calls)}")
            found.append(function(*arguments))
        return found
    from joblib import Parallel, delayed

    trial.progress.step(what)
    # threads: the classifiers compute in compiled code, and a rung may be a function that cannot be sent to a process
    return list(Parallel(n_jobs=trial.jobs, prefer="threads")(delayed(f)(*arguments) for f, arguments in calls))


def _pseudo_once(trial: Trial, seed: np.random.SeedSequence) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    m, sizes = trial.m, np.bincount(trial.codes, minlength=trial.m)
    n_train, n_val = len(trial.split.train) // m, len(trial.split.held_out) // m
    one = int(sizes.argmax())
    unequal = trial.groups is not None or not trial.split.balanced
    if not unequal and sizes[one] >= m * (n_train + needed(n_val, m)):
        rows, drawn_from = np.flatnonzero(trial.codes == one), trial.names[one]
    else:
        rows, drawn_from = np.arange(len(trial.codes)), "all sources"
    groups = None if trial.groups is None else trial.groups[rows]
    codes = _random_codes(len(rows), m, None if trial.split.balanced else sizes, groups, rng)
    if unequal:
        most_train, most_judged = (
            int(np.bincount(trial.codes[p]).max()) for p in (trial.split.train, trial.split.held_out)
        )
        split = whole_split(codes, trial.names, groups, most_train, most_judged, rng)
    else:
        split = balanced_split(codes, trial.names, None, n_train, n_val, rng)
    features, whole = trial.features.take(rows), int(rng.integers(2**31))
    inside = None if groups is None else groups[split.train]
    fitted = train(features.take(split.train), codes[split.train], m, trial.candidates, whole, groups=inside)
    found, _ = judge(fitted, features, codes, split, trial.names, whole)
    return (
        drawn_from, found.accuracy, *found.ci, found.p_value, found.train_accuracy, found.n_train, found.n_held_out,
    )  # fmt: skip


def _random_codes(
    n: int, m: int, parts: NDArray[np.intp] | None, groups: Codes | None, rng: np.random.Generator
) -> Codes:
    """Return pseudo-sources of equal size, or of the sizes `parts`; rows of a group share theirs."""
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        return np.asarray(_random_codes(int(group.max()) + 1, m, None, None, rng)[group])
    if parts is not None:
        return rng.permutation(np.repeat(np.arange(m), parts))
    return rng.permutation(np.arange(n) % m)


def _grown(trial: Trial, name: str, order: Codes, size: int, seed: int) -> tuple[Any, ...]:
    per_source = [order[trial.codes[order] == j][:size] for j in range(trial.m)]
    split = replace(trial.split, train=np.concatenate(per_source))
    found = _again(trial, trial.features, trial.only(name), split, seed)
    return size, found.accuracy, *found.ci, found.p_value, found.train_accuracy


def _one_rung(trial: Trial, name: str, rung: Rung, seed: np.random.SeedSequence) -> tuple[float, float, float, float]:
    rng = np.random.default_rng(seed)
    candidates = trial.candidates if rung.rechoose else trial.only(name)
    found = _again(trial, rung.apply(trial, rng), candidates, trial.split, int(rng.integers(2**31)))
    return found.accuracy, *found.ci, found.p_value


def _again(trial: Trial, features: Features, candidates: Candidates, split: Split, seed: int) -> SourceTest:
    groups = None if trial.groups is None else trial.groups[split.train]
    rows = features.take(split.train)
    trained = train(rows, trial.codes[split.train], trial.m, candidates, seed, calibrate=False, groups=groups)
    found, _ = judge(trained, features, trial.codes, split, trial.names, seed)
    return found
