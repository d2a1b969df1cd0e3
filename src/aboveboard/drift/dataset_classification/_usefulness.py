"""Is what the classifier of sources learned good for anything, and does the source say more about a target?"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from aboveboard._stats.intervals import critical_z, rate_interval
from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._learners import Learner, TreesLearner
from aboveboard.drift.dataset_classification._result import LEVEL
from aboveboard.drift.dataset_classification._tables import Features, named_frame

__all__ = ["TargetLink", "link", "probe"]

_FOLDS: Final = 5
_FEWEST: Final = 100
_MOST_CLASSES: Final = 50
_TINY: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLink:
    """Whether the source helps to predict a target that the features predict already.

    Parameters
    ----------
    loss : {"log-loss", "squared error"}
        Per row, out of fold.
    without_source, with_source : float
        Mean loss of a model of the features, and of one that is told the source as well.
    gain : float
        Their difference: above 0 where the relation of features and target differs between sources.
    ci : tuple of float
        95 % interval of `gain`, from the spread of the paired differences.
    p_value : float
        One-sided, of a gain of 0.
    n : int
    """

    loss: str
    without_source: float
    with_source: float
    gain: float
    ci: tuple[float, float]
    p_value: float
    n: int


def probe(make: Any, fitted: Learner, features: Features, y: Any, seed: int) -> pd.DataFrame:
    """Return how well a linear classifier does on three sets of frozen features, on the half it was not fitted to."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not hasattr(fitted, "hidden"):
        raise InputError(
            "the classifier of sources has no features of its own",
            expected="images without an estimator or embedding, or an estimator with a transform method",
        )
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(codes) != len(features) or len(features) < 2 * _FEWEST:
        raise InputError(
            f"{len(codes)} labels came with {len(features)} rows", expected=f"one label per row, {2 * _FEWEST} or more"
        )
    if not 2 <= len(labels) <= _MOST_CLASSES or np.bincount(codes).min() < 2:
        raise InputError(
            f"y has {len(labels)} classes, the smallest with {np.bincount(codes).min()} rows",
            expected=f"2 to {_MOST_CLASSES} classes of two rows or more",
        )
    order = np.random.default_rng(seed).permutation(len(codes))
    inside, outside = order[: len(order) // 2], order[len(order) // 2 :]
    half = features.take(inside)
    learners = {
        "classifier of sources": fitted,
        "random weights": make().untrained(half, len(labels), seed),
        "supervised": make().fit(half, codes[inside], len(labels), seed),
    }
    rows = []
    for name, learner in learners.items():
        hidden = learner.hidden(features)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500, tol=1e-3))
        right = model.fit(hidden[inside], codes[inside]).predict(hidden[outside]) == codes[outside]
        low, high = rate_interval(int(right.sum()), len(right), level=LEVEL)
        rows.append((name, float(right.mean()), float(low), float(high)))
    return named_frame(rows, ["features", "accuracy", "low", "high"])


def link(features: Features, sources: NDArray[np.intp], y: Any, seed: int) -> TargetLink:
    """Return how much better a target is predicted, out of fold, by a model that is told the source."""
    target = pd.Series(np.asarray(y)) if not isinstance(y, pd.Series) else y.reset_index(drop=True)
    if len(target) != len(features) or target.isna().any():
        raise InputError(
            f"{len(target)} targets, {int(target.isna().sum())} missing, for {len(features)} rows",
            expected="one target per row, none missing",
        )
    told = Features(
        np.column_stack([features.values, sources]),
        (*features.names, "source"),
        np.append(features.categorical if features.categorical is not None else np.zeros(0, bool), True),
    )
    fold = np.random.default_rng(seed).permutation(len(target)) % _FOLDS
    numeric = pd.api.types.is_float_dtype(target.dtype) or (
        pd.api.types.is_integer_dtype(target.dtype) and target.nunique() > _MOST_CLASSES
    )
    losses = _number_loss if numeric else _class_loss
    without, with_source = losses(features, target, fold, seed), losses(told, target, fold, seed)
    difference = without - with_source
    gain, error = float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
    half = critical_z(LEVEL) * error
    return TargetLink(
        loss="squared error" if numeric else "log-loss",
        without_source=float(without.mean()),
        with_source=float(with_source.mean()),
        gain=gain,
        ci=(gain - half, gain + half),
        p_value=float(stats.norm.sf(gain / error)) if error > 0 else 1.0,
        n=len(difference),
    )


def _class_loss(features: Features, target: "pd.Series[Any]", fold: NDArray[np.intp], seed: int) -> NDArray[np.float64]:
    codes, labels = pd.factorize(target)
    if len(labels) < 2 or np.bincount(codes).min() < 2 * _FOLDS:
        raise InputError(
            f"the target has {len(labels)} classes, the smallest with {np.bincount(codes).min()} rows",
            expected=f"two classes or more, each with {2 * _FOLDS} rows",
        )
    loss = np.empty(len(codes))
    for f in range(_FOLDS):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        learner = TreesLearner().fit(features.take(inside), codes[inside], len(labels), seed)
        proba = learner.predict_proba(features.take(outside))
        loss[outside] = -np.log(np.maximum(proba[np.arange(len(outside)), codes[outside]], _TINY))
    return loss


def _number_loss(
    features: Features, target: "pd.Series[Any]", fold: NDArray[np.intp], seed: int
) -> NDArray[np.float64]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    values = target.to_numpy(dtype=np.float64)
    categorical = features.categorical if features.categorical is not None and features.categorical.any() else None
    loss = np.empty(len(values))
    for f in range(_FOLDS):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        model = HistGradientBoostingRegressor(
            max_leaf_nodes=15, categorical_features=categorical, early_stopping=False, random_state=seed
        )
        finite = np.nan_to_num(features.values, nan=np.nan, posinf=1e300, neginf=-1e300)
        loss[outside] = (model.fit(finite[inside], values[inside]).predict(finite[outside]) - values[outside]) ** 2
    return loss
