"""Classifiers that tell sources apart, and how one of them is picked and calibrated without the held-out rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._tables import Features

__all__ = ["Learner", "LogisticLearner", "Trained", "TreesLearner", "estimator_learner", "train"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_FOLDS: Final = 3
_HELD_BACK: Final = 7
_LEVELS: Final = 50
_MANY: Final = 5_000
_FURTHEST: Final = 8.0
_TINY: Final = 1e-12
_LARGE: Final = 1e300


class Learner(Protocol):
    """A classifier of rows as `Features`."""

    cross_validated: bool
    """Whether it is fitted in folds to be calibrated; where fitting is dear, a seventh of the rows is held back."""

    def fit(self, features: Features, codes: Codes, m: int, seed: int) -> Self: ...

    def predict_proba(self, features: Features) -> Floats: ...


class TreesLearner:
    """Gradient-boosted trees on numbers, codes and missing values as they are."""

    cross_validated = True

    def fit(self, features: Features, codes: Codes, m: int, seed: int) -> Self:
        from sklearn.ensemble import HistGradientBoostingClassifier

        categorical = features.categorical if features.categorical is not None and features.categorical.any() else None
        # fewer and longer steps where rows are few
        trees, rate = (100, 0.1) if len(features) >= _MANY else (30, 0.15)
        self.model_ = HistGradientBoostingClassifier(
            max_iter=max(trees // (m - 1), 30) if m > 2 else trees,
            learning_rate=rate if m <= 2 else 0.2,
            max_leaf_nodes=15,
            l2_regularization=1.0,
            categorical_features=categorical,
            early_stopping=False,
            random_state=seed,
        )
        self.empty_ = np.isnan(features.values).all(axis=0)
        self.model_.fit(self._values(features), codes)
        return self

    def predict_proba(self, features: Features) -> Floats:
        return np.asarray(self.model_.predict_proba(self._values(features)), dtype=np.float64)

    def _values(self, features: Features) -> NDArray[Any]:
        """Return values that the trees can cut: no infinity, which cannot be subtracted, and no column without any."""
        values = np.nan_to_num(features.values, nan=np.nan, posinf=_LARGE, neginf=-_LARGE)
        values[:, self.empty_] = 0.0
        return np.asarray(values)


class LogisticLearner:
    """Logistic regression on standardised numbers, marks of what is missing, and a column per common word."""

    cross_validated = True

    def fit(self, features: Features, codes: Codes, m: int, seed: int) -> Self:  # noqa: ARG002
        from sklearn.linear_model import LogisticRegression

        self.design_ = Design().fit(features)
        X = self.design_.transform(features)
        self.model_ = LogisticRegression(C=0.1, max_iter=500, tol=1e-3)
        self.model_.fit(X, codes)
        return self

    def predict_proba(self, features: Features) -> Floats:
        return np.asarray(self.model_.predict_proba(self.design_.transform(features)), dtype=np.float64)


class Design:
    """The dense matrix of finite numbers that linear models and users' own estimators get."""

    def fit(self, features: Features) -> Self:
        d = features.values.shape[1]
        categorical = np.zeros(d, dtype=bool) if features.categorical is None else features.categorical
        self.words_ = {
            j: np.arange(min(int(np.nanmax(column)) + 1, _LEVELS)) if np.isfinite(column).any() else np.arange(0)
            for j, column in enumerate(features.values.T)
            if categorical[j]
        }
        self.numbers_ = np.flatnonzero(~categorical)
        X = features.values[:, self.numbers_]
        finite = np.where(np.isfinite(X), X, np.nan)
        self.largest_ = np.ones(len(self.numbers_))
        np.fmax.reduce(np.abs(finite), axis=0, initial=0.0, out=self.largest_)
        self.largest_[~(self.largest_ > 0)] = 1.0
        scaled = finite / self.largest_
        count = np.maximum(np.isfinite(scaled).sum(axis=0), 1)
        self.centre_ = np.nansum(scaled, axis=0) / count
        spread = np.sqrt(np.nansum((scaled - self.centre_) ** 2, axis=0) / count)
        self.spread_ = np.where(spread > 1e-12, spread, 1.0)
        self.gaps_ = np.flatnonzero(np.isnan(features.values).any(axis=0))
        return self

    def transform(self, features: Features) -> Floats:
        X = features.values
        numbers = (X[:, self.numbers_] / self.largest_ - self.centre_) / self.spread_
        parts = [np.clip(np.where(np.isnan(numbers), 0.0, numbers), -_FURTHEST, _FURTHEST)]
        parts += [(X[:, [j]] == levels).astype(np.float64) for j, levels in self.words_.items()]
        parts.append(np.isnan(X[:, self.gaps_]).astype(np.float64))
        return np.hstack(parts)


class _EstimatorLearner:
    """A user's classifier: tables reach it as finite numbers, texts and images as they are."""

    cross_validated = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, features: Features, codes: Codes, m: int, seed: int) -> Self:
        from sklearn.base import clone

        self.design_ = Design().fit(features) if features.categorical is not None else None
        self.model_ = clone(self.estimator)
        if "random_state" in self.model_.get_params():
            self.model_.set_params(random_state=seed)
        self.model_.fit(self._matrix(features), codes)
        if len(self.model_.classes_) != m:
            raise InputError(f"the estimator learned {len(self.model_.classes_)} classes", expected=f"{m}")
        return self

    def predict_proba(self, features: Features) -> Floats:
        return np.asarray(self.model_.predict_proba(self._matrix(features)), dtype=np.float64)

    def _matrix(self, features: Features) -> NDArray[Any]:
        return features.values if self.design_ is None else self.design_.transform(features)


class _TransformingLearner(_EstimatorLearner):
    """One that also has features of its own: what its `transform` gives."""

    def hidden(self, features: Features) -> Floats:
        return np.asarray(self.model_.transform(self._matrix(features)), dtype=np.float64)

    def untrained(self, features: Features, m: int, seed: int) -> Self:
        """Fit it to labels drawn at random."""
        rng = np.random.default_rng(seed)
        return self.fit(features, rng.permutation(np.arange(len(features)) % m), m, seed)


def estimator_learner(estimator: Any) -> Callable[[], Learner]:
    """Return a maker of learners around a classifier of the scikit-learn kind."""
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        raise InputError(
            f"estimator is {estimator!r}", expected="a classifier with fit and predict_proba, or None for the default"
        )
    kind = _TransformingLearner if hasattr(estimator, "transform") else _EstimatorLearner
    return lambda: kind(estimator)


@dataclass(frozen=True, slots=True)
class Trained:
    """A classifier of sources.

    Parameters
    ----------
    name : str
        Which of the candidates it is.
    learner : Learner
    priors : ndarray of shape (m,)
        Shares of the sources among its training rows.
    sharpness : float
        Exponent that calibrates the probabilities: below 1 where the classifier was too sure of itself.
    log_losses : dict of str to float
        Out-of-fold log-loss of every candidate once calibrated, nats per row; empty where nothing was compared.
    """

    name: str
    learner: Learner
    priors: Floats
    sharpness: float
    log_losses: dict[str, float]

    def proba(self, features: Features) -> Floats:
        """Return calibrated probabilities of the sources, as if all were equally common."""
        return tempered(_equal_priors(self.learner.predict_proba(features), self.priors), self.sharpness)


def train(
    features: Features,
    codes: Codes,
    m: int,
    candidates: Mapping[str, Callable[[], Learner]],
    seed: int,
    *,
    calibrate: bool = True,
    groups: Codes | None = None,
) -> Trained:
    """Pick the candidate with the best calibrated out-of-fold log-loss on the training rows, and fit it.

    Parameters
    ----------
    features, codes
        Training rows and their sources.
    m : int
    candidates : mapping of str to maker of learners
    seed : int
    calibrate : bool
        False where only guesses are needed; nothing is cross-validated then unless there are several candidates.
    groups : ndarray of int, optional
        Rows of one group stay in one fold.
    """
    rng = np.random.default_rng(seed)
    priors = np.bincount(codes, minlength=m) / len(codes)
    sharpness, log_losses, name = 1.0, {}, next(iter(candidates))
    if calibrate and not candidates[name]().cross_validated:
        return _held_back(features, codes, m, name, candidates[name], seed, _folds(codes, groups, rng, _HELD_BACK))
    if calibrate or len(candidates) > 1:
        fold = _folds(codes, groups, rng, _FOLDS)
        weight = (1.0 / (m * priors))[codes]
        powers = {}
        for candidate, make in candidates.items():
            out = np.empty((len(codes), m))
            for f in range(_FOLDS):
                inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
                learner = make().fit(features.take(inside), codes[inside], m, seed)
                share = np.bincount(codes[inside], minlength=m) / len(inside)
                out[outside] = _equal_priors(learner.predict_proba(features.take(outside)), share)
            # calibrated first: trees that are too sure of themselves may still be the only ones that see anything
            powers[candidate] = _sharpness(out, codes, weight)
            log_losses[candidate] = _log_loss(tempered(out, powers[candidate]), codes, weight)
        name = min(log_losses, key=lambda candidate: log_losses[candidate])
        sharpness = powers[name]
    return Trained(name, candidates[name]().fit(features, codes, m, seed), priors, sharpness, log_losses)


def tempered(proba: Floats, sharpness: float) -> Floats:
    """Return probabilities raised to a power, with sum 1 again."""
    logs = np.log(np.maximum(proba, _TINY)) * sharpness
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _equal_priors(proba: Floats, priors: Floats) -> Floats:
    scaled = np.maximum(proba, _TINY) / priors
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _log_loss(proba: Floats, codes: Codes, weight: Floats) -> float:
    return float(np.average(-np.log(np.maximum(proba[np.arange(len(codes)), codes], _TINY)), weights=weight))


def _sharpness(proba: Floats, codes: Codes, weight: Floats) -> float:
    """Return the exponent under which the out-of-fold probabilities fit best; never 0, which would end all order."""
    found = minimize_scalar(
        lambda power: _log_loss(tempered(proba, power), codes, weight), bounds=(1e-3, 5.0), method="bounded"
    )
    return float(found.x)


def _held_back(
    features: Features, codes: Codes, m: int, name: str, make: Callable[[], Learner], seed: int, part: NDArray[np.int8]
) -> Trained:
    """Fit to all parts but one, and calibrate on that one."""
    inside, outside = np.flatnonzero(part), np.flatnonzero(part == 0)
    learner = make().fit(features.take(inside), codes[inside], m, seed)
    priors = np.bincount(codes[inside], minlength=m) / len(inside)
    proba = _equal_priors(learner.predict_proba(features.take(outside)), priors)
    weight = (len(outside) / (m * np.bincount(codes[outside], minlength=m)))[codes[outside]]
    power = _sharpness(proba, codes[outside], weight)
    return Trained(name, learner, priors, power, {name: _log_loss(tempered(proba, power), codes[outside], weight)})


def _folds(codes: Codes, groups: Codes | None, rng: np.random.Generator, n_folds: int) -> NDArray[np.int8]:
    if groups is not None:
        _, group = np.unique(groups, return_inverse=True)
        return (rng.permutation(group.max() + 1) % n_folds).astype(np.int8)[group]
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int8)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold
