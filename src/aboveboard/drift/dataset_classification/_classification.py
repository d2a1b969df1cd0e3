"""Dataset classification: can a model tell which data set a row came from?"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.errors import InputError
from aboveboard.core.progress import progress
from aboveboard.drift.dataset_classification._controls import Rung, Trial, growth, ladder, pseudo
from aboveboard.drift.dataset_classification._learners import train
from aboveboard.drift.dataset_classification._result import judge
from aboveboard.drift.dataset_classification._splits import (
    FEWEST_ROWS,
    Split,
    balanced_split,
    needed,
    read_groups,
    whole_split,
)
from aboveboard.drift.dataset_classification._tables import named_frame
from aboveboard.drift.dataset_classification._tabular import TableModality

__all__ = ["DatasetClassification"]

_MOST_TRAIN: Final = 20_000
_MOST_HELD_OUT: Final = 10_000
_PROTOTYPES: Final = 5
_SMALLEST_GROWTH: Final = 20


class DatasetClassification(BaseEstimator):  # type: ignore[misc]
    def __init__(
        self,
        modality: Literal["tabular", "image", "text"] = "tabular",
        *,
        estimator: Any = None,
        embedding: Callable[[Any], Any] | None = None,
        n_train: int | None = None,
        n_val: int | None = None,
        sampling: Literal["balanced", "all"] = "balanced",
        controls: Collection[str] = ("pseudo", "ladder"),
        ladder: Sequence[str] | Mapping[str, Callable[[Any], Any]] | None = None,
        growth_sizes: Sequence[int] | None = None,
        groups: str | None = None,
        keep: Collection[str] = (),
        n_pseudo: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.modality = modality
        self.estimator = estimator
        self.embedding = embedding
        self.n_train = n_train
        self.n_val = n_val
        self.sampling = sampling
        self.controls = controls
        self.ladder = ladder
        self.growth_sizes = growth_sizes
        self.groups = groups
        self.keep = keep
        self.n_pseudo = n_pseudo
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, datasets: Mapping[str, Any], y: Any = None, *, groups: Mapping[str, Any] | None = None) -> Self:
        self._check_settings()
        rng = np.random.default_rng(_seed(self.random_state))
        modality = TableModality(self.keep)
        parts, group_codes, self.rows_ = self._read(modality, datasets, groups, rng)
        self.sources_ = tuple(parts)
        m = len(self.sources_)
        codes = np.repeat(np.arange(m), [modality.size(part) for part in parts.values()])
        data = modality.join(parts, codes)
        split = self._split(codes, group_codes, rng)
        features = modality.features(data, split)
        candidates = modality.candidates(self.estimator)
        seeds = rng.integers(2**31, size=6).tolist()
        with progress(3 + self._steps(features)) as bar:
            trial = Trial(features, codes, group_codes, split, self.sources_, candidates, self.n_jobs, bar)
            bar.step("classifier of sources")
            inside = None if group_codes is None else group_codes[split.train]
            self.trained_ = train(
                features.take(split.train), codes[split.train], m, candidates, seeds[0], groups=inside
            )
            self.result_, proba = judge(self.trained_, features, codes, split, self.sources_, seeds[0])
            self._modality_ = modality
            bar.step("columns")
            self.importance_ = modality.importance(self.trained_, trial, seeds[1])
            self.prototypes_ = self._typical(split, codes, proba)
            self._run_controls(trial, data, seeds[2:])
        return self

    def source_proba(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "result_")
        return self.trained_.proba(self._modality_.read(X))

    def weights(self, source: str, target: str, X: Any, clip: tuple[float, float] | None = None) -> NDArray[np.float64]:
        check_is_fitted(self, "result_")
        for name in (source, target):
            if name not in self.sources_:
                raise InputError(
                    f"there is no source {name!r}", expected=f"one of {', '.join(map(repr, self.sources_))}"
                )
        if clip is not None and not 0 <= clip[0] <= clip[1]:
            raise InputError(f"clip is {clip!r}", expected="two numbers, 0 <= low <= high")
        proba = self.source_proba(X)
        ratio = proba[:, self.sources_.index(target)] / proba[:, self.sources_.index(source)]
        return ratio if clip is None else np.clip(ratio, *clip)

    def _check_settings(self) -> None:
        if self.modality not in ("tabular", "image", "text"):
            raise InputError(f"modality is {self.modality!r}", expected="'tabular', 'image' or 'text'")
        if self.sampling not in ("balanced", "all"):
            raise InputError(f"sampling is {self.sampling!r}", expected="'balanced' or 'all'")
        unknown = sorted(set(self.controls) - {"pseudo", "ladder", "growth"})
        if unknown or isinstance(self.controls, str):
            raise InputError(f"controls is {self.controls!r}", expected="some of 'pseudo', 'ladder' and 'growth'")
        for name in ("n_train", "n_val", "n_pseudo"):
            value = getattr(self, name)
            if name == "n_pseudo" or value is not None:
                if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
                    raise InputError(f"{name} is {value!r}", expected="a whole number above 0")

    def _read(
        self, modality: TableModality, datasets: Any, groups: Any, rng: np.random.Generator
    ) -> tuple[dict[str, Any], NDArray[np.intp] | None, dict[str, NDArray[np.intp]]]:
        """Return the rows to look at, per source, their groups, and their positions in the data as given."""
        if not isinstance(datasets, Mapping):
            raise InputError(
                f"fit got {type(datasets).__name__}",
                expected='a dict of sources: {"reference": X_old, "current": X_new}',
            )
        if len(datasets) < 2:
            raise InputError(f"there are {len(datasets)} sources", expected="two or more")
        parts = {str(name): modality.check(str(name), data) for name, data in datasets.items()}
        if len(parts) < len(datasets):
            raise InputError(f"sources share a name: {', '.join(map(repr, datasets))}", expected="distinct names")
        self._refuse_copies(modality, datasets, parts)
        for name, part in parts.items():
            if modality.size(part) < FEWEST_ROWS:
                raise InputError(
                    f"{name} has {modality.size(part)} rows",
                    expected=f"at least {FEWEST_ROWS} rows per source: with fewer a classifier has next to no power",
                )
        if self.groups is not None:
            parts, groups = self._groups_from_column(parts)
        sizes = {name: modality.size(part) for name, part in parts.items()}
        group_codes = None if groups is None else read_groups(groups, sizes)
        most = self._most_rows(len(parts))
        kept = {
            name: np.sort(rng.permutation(size)[:most]) if size > most else np.arange(size)
            for name, size in sizes.items()
        }
        if group_codes is not None:
            starts = np.cumsum([0, *sizes.values()])
            group_codes = group_codes[np.concatenate([s + rows for s, rows in zip(starts, kept.values())])]
        return {name: modality.take(part, kept[name]) for name, part in parts.items()}, group_codes, kept

    def _refuse_copies(self, modality: TableModality, datasets: Mapping[Any, Any], parts: dict[str, Any]) -> None:
        names, given = list(parts), list(datasets.values())
        for j, name in enumerate(names):
            for i, other in enumerate(names[:j]):
                if given[i] is given[j] or modality.same(parts[other], parts[name]):
                    raise InputError(
                        f"{other} and {name} hold the same rows", expected="different samples",
                        remedy="Equal rows in two sources are a leak that a classifier cannot see: use near_duplicates",
                    )  # fmt: skip

    def _groups_from_column(self, parts: dict[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        for name, part in parts.items():
            if self.groups not in part.columns:
                raise InputError(
                    f"{name} has no column {self.groups!r}", expected="the column of groups in every source"
                )
        groups = {name: part[self.groups].to_numpy(dtype=object) for name, part in parts.items()}
        return {name: part.drop(columns=self.groups) for name, part in parts.items()}, groups

    def _most_rows(self, m: int) -> int:
        if self.sampling == "all":
            return 3 * _MOST_TRAIN
        return m * ((self.n_train or _MOST_TRAIN) + needed(self.n_val or _MOST_HELD_OUT, m))

    def _split(self, codes: NDArray[np.intp], groups: NDArray[np.intp] | None, rng: np.random.Generator) -> Split:
        draw = balanced_split if self.sampling == "balanced" else whole_split
        return draw(codes, self.sources_, groups, self.n_train, self.n_val, rng)

    def _steps(self, features: Any) -> int:
        return (
            self.n_pseudo * ("pseudo" in self.controls)
            + 13 * ("ladder" in self.controls)
            + len(self.growth_sizes or range(4)) * ("growth" in self.controls)
        )

    def _run_controls(self, trial: Trial, data: Any, seeds: list[int]) -> None:
        name = self.trained_.name
        if "pseudo" in self.controls:
            self.pseudo_ = pseudo(trial, self.n_pseudo, seeds[0])
        if "growth" in self.controls:
            self.growth_ = growth(trial, name, self._sizes(trial), seeds[1])
        if "ladder" in self.controls:
            self.ladder_ = ladder(trial, name, self._rungs(trial, data), self.result_, seeds[2])

    def _sizes(self, trial: Trial) -> list[int]:
        largest = int(np.bincount(trial.codes[trial.split.train]).min())
        if self.growth_sizes is None:
            sizes = [largest // 8, largest // 4, largest // 2, largest]
            return [size for size in sizes if size >= _SMALLEST_GROWTH]
        sizes = sorted(int(size) for size in self.growth_sizes)
        if not sizes or sizes[0] < 2 or sizes[-1] > largest:
            raise InputError(
                f"growth_sizes is {self.growth_sizes!r}", expected=f"numbers of rows per source from 2 to {largest}"
            )
        return sizes

    def _rungs(self, trial: Trial, data: Any) -> list[Rung]:
        modality = self._modality_
        if isinstance(self.ladder, Mapping):
            return [self._own_rung(name, change, data) for name, change in self.ladder.items()]
        names = modality.rungs_by_default if self.ladder is None else tuple(self.ladder)
        return [rung for name in names for rung in modality.rung(name, self.importance_, trial)]

    def _own_rung(self, name: str, change: Callable[[Any], Any], data: Any) -> Rung:
        def apply(trial: Trial, _: np.random.Generator) -> Any:
            changed = change(data)
            modality = TableModality(self.keep)
            if modality.size(changed) != len(trial.codes):
                raise InputError(
                    f"the rung {name!r} changed the number of rows", expected="as many rows as it was given"
                )
            return modality.features(changed, trial.split)

        return Rung(str(name), apply)

    def _typical(self, split: Split, codes: NDArray[np.intp], proba: NDArray[np.float64]) -> pd.DataFrame:
        """Return the held-out rows of each source that look most like it."""
        positions, truth, found = np.concatenate(list(self.rows_.values())), codes[split.held_out], []
        for j, source in enumerate(self.sources_):
            own = np.flatnonzero(truth == j)
            for i in own[np.argsort(-proba[own, j], kind="stable")][:_PROTOTYPES]:
                found.append((source, int(positions[split.held_out[i]]), float(proba[i, j])))
        return named_frame(found, ["source", "row", "probability"])


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
