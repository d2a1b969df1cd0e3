"""One split of the rows: learn on its training half, estimate on its test half."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard.drift.dataset_classification._tables import Features
from aboveboard.drift.shift._detectors import Region, Threshold, nested_thresholds, scan_regions
from aboveboard.drift.shift._estimates import Estimate, covariate_decay, outcome_decay, residual_outcome_decay
from aboveboard.drift.shift._independence import dependence_p_values, dependent_columns
from aboveboard.drift.shift._inference import Family
from aboveboard.drift.shift._nuisances import (
    Candidates,
    DensityRatio,
    Probability,
    Regression,
    RiskBins,
    candidates_of,
    fit_density_ratio,
    fit_probability,
    fit_regression,
    widened,
)
from aboveboard.drift.shift._rows import Rows

__all__ = ["Detector", "Fold", "Halves", "Settings", "Stage", "settings_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Detector = Callable[[Rows], Mask]

_FEWEST: Final = 10
_RISK_COLUMN: Final = "bin of the old risk"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose, as far as a fold needs it."""

    tolerance: float
    min_prevalence: float
    n_detectors: int
    n_bins: int
    clip: float
    outcome: Candidates
    density: Candidates
    alpha: float
    filter_features: bool


class Halves(NamedTuple):
    """Source and target rows to learn from, and to test on."""

    source_train: Rows
    target_train: Rows
    source_test: Rows
    target_test: Rows


@dataclass(frozen=True, slots=True)
class Stage:
    """Subgroups of one hypothesis, with what the test half says of them.

    Parameters
    ----------
    estimates : tuple of Estimate
    masks : tuple of pairs of ndarray of bool
        Which test rows of source and target are in each subgroup.
    detectors : tuple of callables
        From rows to membership; empty for hypotheses about explanations.
    independence : float
        The largest p-value of independence of the loss and a column from which subgroups were carved; 0 where columns
        were not filtered.
    """

    estimates: tuple[Estimate, ...]
    masks: tuple[tuple[Mask, Mask], ...] = ()
    detectors: tuple[Detector, ...] = ()
    independence: float = 0.0


@dataclass(frozen=True, slots=True)
class _CovariateDetector:
    region: Region
    outcome: Probability
    density: DensityRatio
    columns: tuple[int, ...]

    def __call__(self, rows: Rows) -> Mask:
        z = rows.risk(self.outcome(rows.features))
        return self.region(z, self.density(rows.features.keep(list(self.columns))), 1.0)


@dataclass(frozen=True, slots=True)
class _OutcomeDetector:
    threshold: Threshold
    decay: Regression

    def __call__(self, rows: Rows) -> Mask:
        return self.threshold(self.decay(rows.features))


class _Scored(NamedTuple):
    """Old probability of class 1, expected old loss and density ratio of rows."""

    mu: Floats
    z: Floats
    w: Floats


class _Carving(NamedTuple):
    """Columns that the loss depends on, and the density ratio of these alone, per half."""

    columns: tuple[int, ...]
    density: DensityRatio
    ratios: list[Floats]
    independence: float


class Fold:
    """Nuisances of one split, and the four tests that rest on them.

    Parameters
    ----------
    halves : Halves
    settings : Settings
    seed : int
    """

    def __init__(self, halves: Halves, settings: Settings, seed: int) -> None:
        self.halves, self.settings, self.seed = halves, settings, seed
        self.outcome = fit_probability(halves.source_train.features, halves.source_train.y, settings.outcome, seed)
        self.density = fit_density_ratio(
            halves.source_train.features, halves.target_train.features, settings.density, settings.clip, seed
        )
        self.domain = [self.density.domain(rows.features) for rows in halves]
        self.scored = [self._score(rows, p) for rows, p in zip(halves, self.domain, strict=True)]

    def _score(self, rows: Rows, p: Floats) -> _Scored:
        mu = self.outcome(rows.features)
        return _Scored(mu, rows.risk(mu), self.density.ratio(p))

    # --- is there a decay ----------------------------------------------------------------------------------------

    def aggregate(self, family: Family) -> Stage:
        """Return the subgroups where a family of changes seems to do harm, with their decay."""
        return self._covariate() if family == "covariate" else self._outcome()

    def _covariate(self) -> Stage:
        carving, ones = self.carving, [np.ones(len(rows)) for rows in self.halves]
        if not carving.columns:
            return Stage((), independence=carving.independence)
        regions = self._scan(ones)
        masks = [self._region_masks(region, ones)[2:] for region in regions]
        used = [j for j, mask in enumerate(masks) if _enough(mask)]
        return Stage(
            tuple(self._covariate_estimate(masks[j]) for j in used),
            tuple(masks[j] for j in used),
            tuple(_CovariateDetector(regions[j], self.outcome, carving.density, carving.columns) for j in used),
            carving.independence,
        )

    def _outcome(self) -> Stage:
        predicted = [self.growth(rows.features) for rows in self.halves[1:]]
        thresholds = self._nested(predicted[0])
        masks = [(threshold(predicted[1]), threshold(predicted[2])) for threshold in thresholds]
        used = [j for j, mask in enumerate(masks) if _enough(mask)]
        return Stage(
            tuple(self._outcome_estimate(masks[j]) for j in used),
            tuple(masks[j] for j in used),
            tuple(_OutcomeDetector(thresholds[j], self.growth) for j in used),
        )

    # --- what explains it ----------------------------------------------------------------------------------------

    def explained(self, family: Family, columns: Sequence[int]) -> Stage:
        """Return the subgroups where decay is left once `columns` alone are allowed to change."""
        if len(columns) == len(self.halves.source_train.features.names):
            return Stage(())  # all that changed is explained
        return self._covariate_given(columns) if family == "covariate" else self._outcome_given(columns)

    def _covariate_given(self, columns: Sequence[int]) -> Stage:
        settings = self.settings
        kept = [self._kept(rows, columns) for rows in self.halves]
        shift = fit_density_ratio(kept[0], kept[1], settings.density, settings.clip, self.seed)
        ratios = [shift(features) for features in kept]
        learner = _only(shift.domain, settings.density)
        estimates = []
        for region in self._scan(ratios):
            masks = self._region_masks(region, ratios)
            if _enough(masks):
                estimates.append(self._covariate_residual(masks, kept, learner))
        return Stage(tuple(estimates), independence=self.carving.independence)

    def _covariate_residual(self, masks: list[Mask], kept: list[Features], learner: Candidates) -> Estimate:
        """Estimate the decay that is left, with density ratio and expected loss learned anew within the subgroup."""
        rows = self.halves.source_train
        inside = [features.take(np.flatnonzero(mask)) for features, mask in zip(kept, masks, strict=True)]
        ratio = fit_density_ratio(inside[0], inside[1], learner, self.settings.clip, self.seed)
        expected = fit_regression(inside[0], rows.loss[masks[0]], self.seed)
        return self._covariate_estimate(
            (masks[2], masks[3]),
            g0=_spread(ratio(inside[2]), masks[2]),
            m0=_spread(expected(inside[2]), masks[2]),
            m1=_spread(expected(inside[3]), masks[3]),
        )

    def _outcome_given(self, columns: Sequence[int]) -> Stage:
        halves, tolerance = self.halves, self.settings.tolerance
        explaining = [
            widened(self._kept(rows, columns), _RISK_COLUMN, self.bins(scored.mu))
            for rows, scored in zip(halves, self.scored, strict=True)
        ]
        surprise = [rows.y - scored.mu for rows, scored in zip(halves, self.scored, strict=True)]
        change = fit_regression(explaining[1], surprise[1], self.seed)
        explained = [change(features) for features in explaining]
        left = [
            self._grown(rows, scored) - rows.stake * part
            for rows, scored, part in zip(halves, self.scored, explained, strict=True)
        ]
        estimates = []
        for threshold in self._nested(left[1]):
            masks = [threshold(decay) for decay in left]
            if not _enough(masks):
                continue
            stake = [np.where(mask, rows.stake, 0.0) for mask, rows in zip(masks, halves, strict=True)]
            expected = fit_regression(explaining[1], stake[1], self.seed)
            bet = [stake[d] - expected(explaining[d]) for d in (2, 3)]
            estimates.append(
                residual_outcome_decay(
                    masks[2],
                    surprise[2],
                    bet[0],
                    self.scored[2].w,
                    masks[3],
                    surprise[3],
                    bet[1],
                    explained[3],
                    tolerance=tolerance,
                )
            )
        return Stage(tuple(estimates))

    def _grown(self, rows: Rows, scored: "_Scored") -> Floats:
        """Predict by how much losses grew beyond the tolerance: the mean of a smooth and of a rough prediction."""
        smooth = rows.stake * (self.new_outcome(rows.features) - scored.mu) - self.settings.tolerance
        return np.asarray((smooth + self.growth(rows.features)) / 2.0)

    @cached_property
    def growth(self) -> Regression:
        """By how much the loss of a target row exceeds the old expectation and the tolerance, given its columns."""
        train, settings = self.halves.target_train, self.settings
        grown = train.loss - self.scored[1].z - settings.tolerance
        return fit_regression(train.features, grown, self.seed, leaf_share=settings.min_prevalence / 2.0)

    @cached_property
    def new_outcome(self) -> Probability:
        """The outcome law of the target."""
        train = self.halves.target_train
        return fit_probability(train.features, train.y, self.settings.outcome, self.seed)

    @cached_property
    def bins(self) -> RiskBins:
        """Bins of the old risk, from the training rows of both domains."""
        return RiskBins.fit(np.concatenate([scored.mu for scored in self.scored[:2]]), self.settings.n_bins)

    @cached_property
    def carving(self) -> "_Carving":
        """What subgroups of the covariate family are carved from."""
        settings, names = self.settings, self.halves.source_train.features.names
        columns = tuple(range(len(names)))
        if not settings.filter_features:
            return _Carving(columns, self.density, [scored.w for scored in self.scored], 0.0)
        rng = np.random.default_rng([self.seed, 1])
        train, test = self.halves.source_train, self.halves.source_test
        columns = dependent_columns(train.features, train.loss, columns, settings.alpha, rng)
        if not columns:
            return _Carving((), self.density, [np.ones(len(rows)) for rows in self.halves], 1.0)
        p_values = dependence_p_values(test.features, test.loss, columns, rng)
        kept = [self._kept(rows, columns) for rows in self.halves]
        density = fit_density_ratio(kept[0], kept[1], settings.density, settings.clip, self.seed)
        return _Carving(columns, density, [density(features) for features in kept], max(p_values.values()))

    # --- parts ---------------------------------------------------------------------------------------------------

    def _scan(self, ratios: list[Floats]) -> list[Region]:
        first, second = ((self.scored[d].z, self.carving.ratios[d], ratios[d]) for d in (0, 1))
        return scan_regions(
            first,
            second,
            tolerance=self.settings.tolerance,
            min_prevalence=self.settings.min_prevalence,
            n_keep=self.settings.n_detectors,
        )

    def _nested(self, decay: Floats) -> list[Threshold]:
        return nested_thresholds(decay, min_prevalence=self.settings.min_prevalence, n_keep=self.settings.n_detectors)

    def _region_masks(self, region: Region, ratios: list[Floats]) -> Any:
        return tuple(region(s.z, w, g) for s, w, g in zip(self.scored, self.carving.ratios, ratios, strict=True))

    def _covariate_estimate(self, masks: tuple[Mask, Mask], **explained: Floats) -> Estimate:
        source, target = self.scored[2:]
        return covariate_decay(
            masks[0],
            self.halves.source_test.loss,
            source.z,
            source.w,
            masks[1],
            target.z,
            tolerance=self.settings.tolerance,
            **explained,
        )

    def _outcome_estimate(self, masks: tuple[Mask, Mask]) -> Estimate:
        source, target = self.scored[2:]
        return outcome_decay(
            masks[0],
            self.halves.source_test.loss,
            source.z,
            source.w,
            masks[1],
            self.halves.target_test.loss,
            target.z,
            tolerance=self.settings.tolerance,
        )

    def _kept(self, rows: Rows, columns: Sequence[int]) -> Features:
        return rows.features.keep(list(columns))


def settings_of(estimator: Any) -> Settings:
    """Return the settings of a `SHIFT` object."""
    return Settings(
        tolerance=float(estimator.tolerance),
        min_prevalence=float(estimator.min_prevalence),
        n_detectors=int(estimator.n_detectors),
        n_bins=int(estimator.n_bins),
        clip=float(estimator.clip),
        outcome=candidates_of(estimator.outcome_model),
        density=candidates_of(estimator.density_model),
        alpha=float(estimator.alpha),
        filter_features=bool(estimator.filter_features),
    )


def _enough(masks: Sequence[Mask]) -> bool:
    return all(mask.sum() >= _FEWEST for mask in masks)


def _spread(values: Floats, mask: Mask) -> Floats:
    """Return values of the rows in a subgroup among zeros for the others."""
    out = np.zeros(len(mask))
    out[mask] = values
    return out


def _only(chosen: Probability, candidates: Candidates) -> Candidates:
    return {chosen.name: candidates[chosen.name]}
