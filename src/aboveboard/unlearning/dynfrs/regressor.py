"""A random forest regressor from which any row can be removed exactly."""

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from aboveboard.core import InputError
from aboveboard.unlearning.dynfrs._estimator import ForestEstimator

__all__ = ["DynFrsRegressor"]

_LIMIT = 2.0**62
_COARSE = 1000


class DynFrsRegressor(RegressorMixin, ForestEstimator):  # type: ignore[misc]
    """DynFrs for regression: the same forest, with exact sums of the targets in place of class counts.

    Parameters
    ----------
    n_estimators, occurrence, max_depth, n_thresholds, max_features, min_samples_split, categorical_features, lazy, \
n_jobs, random_state
        As in `DynFrsClassifier`.
    target_step : float
        Targets are rounded to whole multiples of this, once, and summed as whole numbers; so sums are exact and no
        order of requests leaves a trace. Choose it by the meaning of the target, never by looking at the rows.
        The weighted sum of ``|y|`` must stay below 2**62 steps.

    Attributes
    ----------
    seed_, sample_ids_, n_tagged_, memory_bytes_, certificate_, forest_, n_features_in_, feature_names_in_
        As in `DynFrsClassifier`.

    Guarantee
    ---------
    As for `DynFrsClassifier`, bit for bit, for the targets rounded to `target_step`. A prediction is within half a step
    of what the same trees would give for the targets as they came.

    Notes
    -----
    The split is where the squared error is least, from the whole-number sums S_l, S_r, S of the sides and the node:
    (S_l n - S n_l)^2 / (n_l n_r) is largest, with the sums taken from the node's whole-number mean so that no digits
    cancel. A node where no candidate reduces the error is a leaf. Cost as for the classifier, and 8 p s more bytes per
    inner node.

    References
    ----------
    S. Wang, Z. Shen, X. Qiao, T. Zhang, M. Zhang: "DynFrs: An Efficient Framework for Machine Unlearning in Random
    Forest", ICLR 2025, https://arxiv.org/abs/2410.01588 (classification only; the regression is ours).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from aboveboard.unlearning import DynFrsRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = DynFrsRegressor(occurrence=0.2, random_state=0).fit(X, y)
    >>> afresh = DynFrsRegressor(occurrence=0.2, random_state=0).fit(X[1:], y[1:], sample_id=range(1, 442))
    >>> forest.remove(0).fingerprint() == afresh.fingerprint()
    True
    """

    _regression: ClassVar[bool] = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        occurrence: float = 0.1,
        max_depth: int | None = 20,
        n_thresholds: int = 30,
        max_features: Literal["sqrt"] | float | None = "sqrt",
        min_samples_split: int = 10,
        categorical_features: Sequence[Any] | None = None,
        target_step: float = 2.0**-20,
        lazy: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.occurrence = occurrence
        self.max_depth = max_depth
        self.n_thresholds = n_thresholds
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.target_step = target_step
        self.lazy = lazy
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sample_id: Any = None) -> Self:
        """Grow the forest; parameters and errors as in `DynFrsClassifier.fit`, with finite numbers for `y`."""
        values = self._features(X, reset=True)
        target = self._steps(y, len(values))
        if len(target) > 1 and 0 < float(np.std(target)) < _COARSE:
            warnings.warn(
                f"target_step={self.target_step:g} is coarse for this target: its standard deviation is only "
                f"{np.std(target):.3g} steps",
                stacklevel=2,
            )
        self._start(values, np.zeros(len(values), np.int32), target, sample_weight, sample_id, 1)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, sample_id: Any = None) -> Self:
        """Add rows, as if they had been there from the start; as in `DynFrsClassifier.partial_fit`."""
        if not hasattr(self, "forest_"):
            return self.fit(X, y, sample_weight, sample_id)
        values = self._features(X, reset=False)
        self._extend(values, np.zeros(len(values), np.int32), self._steps(y, len(values)), sample_weight, sample_id)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the trees' leaf means, shape (n,), float64."""
        check_is_fitted(self, "forest_")
        return np.asarray(self.forest_.answer(self._features(X, reset=False))[:, 0] * self._step())

    def _step(self) -> float:
        step = self.target_step
        if isinstance(step, bool) or not isinstance(step, numbers.Real) or not 0 < step < math.inf:
            raise InputError(f"target_step is {step!r}", expected="a number above 0")
        return float(step)

    def _steps(self, y: Any, n: int) -> np.ndarray:
        """Return the targets as whole numbers of steps."""
        if y is None:
            raise InputError("requires y to be passed, but the target y is None", expected="one number per row")
        target = column_or_1d(y, warn=True).astype(np.float64)
        if len(target) != n:
            raise InputError(f"y has {len(target):,} values for {n:,} rows", expected="one per row")
        if not np.isfinite(target).all():
            what = "NaN" if np.isnan(target).any() else "infinity"
            raise InputError(f"Input y contains {what}", expected="finite numbers")
        steps = np.rint(target / self._step())
        if np.abs(steps).max(initial=0.0) >= _LIMIT:
            raise self._too_large(float(np.abs(steps).max()))
        return np.asarray(steps, dtype=np.int64)

    def _check_total(self, target: np.ndarray, weight: np.ndarray, held: int = 0) -> None:
        total = held + float(np.abs(target.astype(np.float64)) @ weight.astype(np.float64))
        if total >= _LIMIT:
            raise self._too_large(total)

    def _too_large(self, steps: float) -> InputError:
        return InputError(
            f"the absolute targets sum to {steps:.3g} steps of {self.target_step:g}",
            expected=f"less than {_LIMIT:.3g}, so that sums stay exact",
            remedy="Set a larger target_step",
        )

    def _target_header(self) -> dict[str, Any]:
        return {"target_step": self._step().hex()}
