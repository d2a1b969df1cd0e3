"""A model mended where it decayed, with what changed on rows that it did not learn from."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.drift.dataset_classification._tables import Features
from aboveboard.drift.shift._nuisances import Candidates, DensityRatio, Probability, fit_probability, logit, widened
from aboveboard.drift.shift._rows import Rows

__all__ = ["OutcomePatch", "RepairedClassifier", "Reweighted", "Trial", "trial"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FEWEST_OF_A_CLASS: Final = 30
_SCORE: Final = "score of the model"
_INSIDE: Final = "in the subgroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Mean loss before and after a repair, on test rows of the target that the repair did not learn from.

    Parameters
    ----------
    before, after : float
        Over all test rows.
    gain : float
        Before minus after: above 0 where the repair helps.
    interval : tuple of float
        95 % interval of `gain`, from the paired differences.
    before_inside, after_inside : float
        Within the subgroup.
    n, n_inside : int
    """

    before: float
    after: float
    gain: float
    interval: tuple[float, float]
    before_inside: float
    after_inside: float
    n: int
    n_inside: int


class RepairedClassifier:
    """A classifier that answers as the audited model does, but for the rows that it mends.

    Attributes
    ----------
    kind : {"covariate", "outcome"}
    candidate : str
        Which variables were allowed to change.
    columns : tuple of str
    where : {"subgroup", "everywhere"}
    trial_ : Trial or None
        What changed on held-out rows; None where the rows to learn from were given to `SHIFT.repair`, since it cannot
        know which are held out.
    classes_ : ndarray
    """

    def __init__(
        self,
        kind: str,
        candidate: str,
        columns: tuple[str, ...],
        where: str,
        patch: Any,
        subgroup: Any,
        threshold: float,
    ) -> None:
        self.kind, self.candidate, self.columns, self.where = kind, candidate, columns, where
        self.patch, self.subgroup, self.threshold = patch, subgroup, threshold
        self.trial_: Trial | None = None
        self.classes_ = np.array([0, 1])

    def predict_proba(self, X: Any, *, predictions: Any = None) -> Floats:
        """Return probabilities of the classes, shape (n, 2).

        Parameters
        ----------
        X : table of shape (n, d)
        predictions : ndarray of shape (n,), optional
            What the audited model says of these rows; needed where `SHIFT.fit` got predictions and no model.
        """
        rows, judged, scores = self.subgroup.read.with_scores(X, predictions)
        inside = self.subgroup.detector(rows) & judged
        proba = self.mended(rows, scores, inside, X)
        return np.column_stack([1.0 - proba, proba])

    def predict(self, X: Any, *, predictions: Any = None) -> NDArray[np.intp]:
        """Return 0 or 1 per row."""
        return (self.predict_proba(X, predictions=predictions)[:, 1] >= self.threshold).astype(np.intp)

    def mended(self, rows: Rows, scores: Floats, inside: Mask, X: Any) -> Floats:
        """Return the probability of class 1 where subgroup and scores are known already."""
        new = self.patch(rows.features, scores, inside, X)
        return new if self.where == "everywhere" else np.where(inside, new, scores)


@dataclass(frozen=True, slots=True)
class OutcomePatch:
    """A model of the label on the old score, the variables whose effect changed, and the subgroup."""

    law: Probability
    columns: tuple[int, ...]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        scores: Floats,
        inside: Mask,
        columns: tuple[int, ...],
        inside_alone: bool,
        candidates: Candidates,
        seed: int,
    ) -> "OutcomePatch":
        """Learn from the rows that will be mended, or from all where these are too few."""
        features, y = _patched(rows.features, columns, scores, inside), rows.y
        if inside_alone and np.bincount(y[inside], minlength=2).min() >= _FEWEST_OF_A_CLASS:
            features, y = features.take(np.flatnonzero(inside)), y[inside]
        return cls(fit_probability(features, y, candidates, seed), columns)

    def __call__(self, features: Features, scores: Floats, inside: Mask, X: Any) -> Floats:  # noqa: ARG002
        return self.law(_patched(features, self.columns, scores, inside))


@dataclass(frozen=True, slots=True)
class Reweighted:
    """A model trained anew on the source, weighted to the target's law of the variables that moved."""

    model: Any
    raw: bool

    @classmethod
    def fit(cls, estimator: Any, X: Any, rows: Rows, ratio: DensityRatio, columns: tuple[int, ...]) -> "Reweighted":
        from sklearn.base import clone
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.pipeline import Pipeline

        weights = ratio(rows.features.keep(list(columns)))
        if estimator is None:
            categorical = rows.features.categorical
            model = HistGradientBoostingClassifier(categorical_features=categorical, max_leaf_nodes=15, random_state=0)
            return cls(model.fit(rows.features.values, rows.y, sample_weight=weights), False)
        model = clone(estimator)
        named = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
        return cls(model.fit(X, rows.y, **{named: weights}), True)

    def __call__(self, features: Features, scores: Floats, inside: Mask, X: Any) -> Floats:  # noqa: ARG002
        return np.asarray(self.model.predict_proba(X if self.raw else features.values)[:, 1], dtype=np.float64)


def trial(before: Floats, after: Floats, inside: Mask) -> Trial:
    """Compare the losses of the same rows before and after."""
    difference = before - after
    half = critical_z() * float(difference.std(ddof=1)) / np.sqrt(len(difference))
    gain = float(difference.mean())
    return Trial(
        before=float(before.mean()),
        after=float(after.mean()),
        gain=gain,
        interval=(float(gain - half), float(gain + half)),
        before_inside=float(before[inside].mean()),
        after_inside=float(after[inside].mean()),
        n=len(before),
        n_inside=int(inside.sum()),
    )


def _patched(features: Features, columns: tuple[int, ...], scores: Floats, inside: Mask) -> Features:
    told = widened(features.keep(list(columns)), _SCORE, logit(scores))
    return widened(told, _INSIDE, inside.astype(np.float64))
