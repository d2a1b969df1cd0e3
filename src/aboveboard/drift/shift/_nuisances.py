"""What must be learned on the training half: outcome models, density ratios and regressions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.drift.dataset_classification._learners import (
    Learner,
    LogisticLearner,
    TreesLearner,
    estimator_learner,
)
from aboveboard.drift.dataset_classification._tables import Features

__all__ = [
    "Candidates",
    "DensityRatio",
    "Probability",
    "Regression",
    "RiskBins",
    "candidates_of",
    "fit_density_ratio",
    "fit_probability",
    "fit_regression",
    "logit",
    "widened",
]

Floats = NDArray[np.float64]
Candidates = Mapping[str, Callable[[], Learner]]

_FOLDS: Final = 3
_TINY: Final = 1e-6
_MANY: Final = 5_000
_LEAF: Final = 20
_LARGE: Final = 1e300
_FURTHEST: Final = 10.0

_DEFAULT: Final[Candidates] = {"logistic regression": LogisticLearner, "gradient-boosted trees": TreesLearner}


@dataclass(frozen=True, slots=True)
class Probability:
    """A calibrated model of the probability of class 1.

    Parameters
    ----------
    name : str
        Which candidate it is.
    learner : Learner
    intercept, slope : float
        Platt's calibration of the logit; 0 and 1 for a user's model, which is taken as it is.
    """

    name: str
    learner: Learner
    intercept: float = 0.0
    slope: float = 1.0

    def __call__(self, features: Features) -> Floats:
        """Return the probability of class 1 of each row."""
        logits = logit(self.learner.predict_proba(features)[:, 1])
        return np.asarray(1.0 / (1.0 + np.exp(-(self.intercept + self.slope * logits))))


def candidates_of(model: Any) -> Candidates:
    """Return the default learners, or the user's classifier alone."""
    if model is None:
        return _DEFAULT
    estimator_learner(model)  # refuses what is no classifier
    return {type(model).__name__: _Made(model)}


@dataclass(frozen=True, slots=True)
class _Made:
    """Makes learners around a user's classifier, and can be pickled."""

    model: Any

    def __call__(self) -> Learner:
        return estimator_learner(self.model)()


def fit_probability(features: Features, y: NDArray[np.intp], candidates: Candidates, seed: int) -> Probability:
    """Return the candidate with the best calibrated log-loss in a 3-fold cross-validation, fitted to all rows.

    A single candidate that is a user's own is fitted once and taken as it is.
    """
    if len(candidates) == 1 and not set(candidates) <= set(_DEFAULT):
        ((name, make),) = candidates.items()
        return Probability(name, make().fit(features, y, 2, seed))
    fold = _folds(y, seed)
    tried = {name: _platt(_out_of_fold(features, y, make, fold, seed), y) for name, make in candidates.items()}
    name = min(tried, key=lambda candidate: tried[candidate][2])
    intercept, slope, _ = tried[name]
    return Probability(name, candidates[name]().fit(features, y, 2, seed), intercept, slope)


@dataclass(frozen=True, slots=True)
class DensityRatio:
    """The density of the target over that of the source.

    Parameters
    ----------
    domain : Probability
        Of belonging to the target.
    odds : float
        Rows of the source over rows of the target among those it was fitted to.
    clip : float
        Probabilities are kept within [clip, 1 - clip].
    """

    domain: Probability
    odds: float
    clip: float

    def __call__(self, features: Features) -> Floats:
        return self.ratio(self.domain(features))

    def ratio(self, p: Floats) -> Floats:
        """Return the ratio that belongs to the probability of the target."""
        kept = np.clip(p, self.clip, 1.0 - self.clip)
        return np.asarray(kept / (1.0 - kept) * self.odds)

    def clipped(self, p: Floats) -> int:
        """Return how many probabilities are beyond the clip."""
        return int(np.count_nonzero((p < self.clip) | (p > 1.0 - self.clip)))


def fit_density_ratio(
    source: Features, target: Features, candidates: Candidates, clip: float, seed: int
) -> DensityRatio:
    """Fit a classifier of domains, and turn its odds into a ratio of densities."""
    joined = Features(np.vstack([source.values, target.values]), source.names, source.categorical)
    domain = np.repeat([0, 1], [len(source), len(target)])
    return DensityRatio(fit_probability(joined, domain, candidates, seed), len(source) / len(target), clip)


@dataclass(frozen=True, slots=True)
class Regression:
    """Gradient-boosted trees for a number, kept within the range that was seen."""

    model: Any
    low: float
    high: float

    def __call__(self, features: Features) -> Floats:
        return np.asarray(np.clip(self.model.predict(_treeable(features)), self.low, self.high))


def fit_regression(features: Features, target: Floats, seed: int, *, leaf_share: float = 0.0) -> Regression:
    """Regress `target` on features.

    Parameters
    ----------
    leaf_share : float
        Least share of the rows in a leaf. Where it is above 0, trees have a depth of 3: they look for large regions
        that few columns mark off.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    categorical = features.categorical if features.categorical is not None and features.categorical.any() else None
    trees, rate = (100, 0.1) if len(features) >= _MANY and not leaf_share else (30, 0.15)
    model = HistGradientBoostingRegressor(
        max_iter=trees,
        learning_rate=rate,
        max_leaf_nodes=15,
        max_depth=3 if leaf_share else None,
        min_samples_leaf=max(_LEAF, int(leaf_share * len(features))),
        l2_regularization=1.0,
        categorical_features=categorical,
        early_stopping=False,
        random_state=seed,
    )
    return Regression(model.fit(_treeable(features), target), float(target.min()), float(target.max()))


@dataclass(frozen=True, slots=True)
class RiskBins:
    """Equal-width bins of the logit of the old risk; a new value falls into the nearest.

    Parameters
    ----------
    low, width : float
    n_bins : int
    """

    low: float
    width: float
    n_bins: int

    @classmethod
    def fit(cls, mu: Floats, n_bins: int) -> "RiskBins":
        logits = logit(mu)
        low, high = float(logits.min()), float(logits.max())
        return cls(low, (high - low) / n_bins or 1.0, n_bins)

    def __call__(self, mu: Floats) -> Floats:
        """Return the middle of the bin of each row."""
        bins = np.clip(np.floor((logit(mu) - self.low) / self.width), 0, self.n_bins - 1)
        return np.asarray(self.low + (bins + 0.5) * self.width)


def widened(features: Features, name: str, column: Floats) -> Features:
    """Return the features with one more column of numbers."""
    categorical = np.zeros(0, dtype=bool) if features.categorical is None else features.categorical
    return Features(np.column_stack([features.values, column]), (*features.names, name), np.append(categorical, False))


def _out_of_fold(
    features: Features, y: NDArray[np.intp], make: Callable[[], Learner], fold: NDArray[np.intp], seed: int
) -> Floats:
    out = np.empty(len(y))
    for f in range(_FOLDS):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        learner = make().fit(features.take(inside), y[inside], 2, seed)
        out[outside] = learner.predict_proba(features.take(outside))[:, 1]
    return out


def _folds(y: NDArray[np.intp], seed: int) -> NDArray[np.intp]:
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % _FOLDS
    return fold


def _platt(p: Floats, y: NDArray[np.intp]) -> tuple[float, float, float]:
    """Return intercept and slope of the logit by Newton's steps, and the mean log-loss that is left."""
    design = np.column_stack([np.ones(len(p)), logit(p)])
    weights = np.array([0.0, 1.0])
    ridge = 1e-3 * np.eye(2)
    for _ in range(20):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        gradient = design.T @ (fitted - y) + ridge @ (weights - [0.0, 1.0])
        step = np.linalg.solve((design * (fitted * (1.0 - fitted))[:, None]).T @ design + ridge, gradient)
        weights = weights - np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    signed = np.where(y == 1, 1.0, -1.0) * (design @ weights)
    return float(weights[0]), float(weights[1]), float(np.logaddexp(0.0, -signed).mean())


def logit(p: Floats) -> Floats:
    """Return log odds, at most 10 from 0."""
    kept = np.clip(p, _TINY, 1.0 - _TINY)
    return np.clip(np.log(kept / (1.0 - kept)), -_FURTHEST, _FURTHEST)


def _treeable(features: Features) -> Floats:
    """Return values without infinities and without wholly missing columns, which trees cannot cut."""
    values = np.nan_to_num(features.values, nan=np.nan, posinf=_LARGE, neginf=-_LARGE)
    values[:, np.isnan(values).all(axis=0)] = 0.0
    return np.asarray(values)
