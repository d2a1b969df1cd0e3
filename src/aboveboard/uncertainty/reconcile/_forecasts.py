"""Plain Reconcile: the models' probabilities are brought together, whatever is decided by them."""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.errors import InputError
from aboveboard.uncertainty.reconcile._input import is_real, read_classes, read_outcomes, read_probabilities
from aboveboard.uncertainty.reconcile._patches import project_simplex

__all__ = ["Reconcile"]

Floats = NDArray[np.float64]


class _Shift(NamedTuple):
    """One correction: of `model`, where its probability of a class and the other model's differ in this direction."""

    model: int
    column: int
    above: bool
    shift: Floats


class Reconcile(BaseEstimator):  # type: ignore[misc]
    """Make two models agree on probabilities, as Roth, Tolbert and Weinstein do: the baseline of `ReDCal`.

    While the models differ by more than `eps` in more than a share `alpha` of the rows, the one that is more wrong
    there is shifted by the mean of its error.

    Parameters
    ----------
    eps : float in (0, 1)
        How far apart two probabilities of a class may be.
    alpha : float in (0, 1)
        The share of rows in which they may be further apart.
    max_patches : int
    min_event : int
        No patch is fitted on fewer rows.

    Attributes
    ----------
    history_ : DataFrame
        ``model``, ``column`` (the class), ``above`` (whether the first model is above the second), ``rows``, ``gain``.
    classes_ : list
    bound_T_ : float
        The most patches that there can be.

    Notes
    -----
    Two classes are the original method. For more, the event is that the probabilities of one class differ, and the
    whole vector is shifted and projected onto the simplex. With Brier scores B as squared distances of vectors, there
    are at most (B1 + B2) 8 / (alpha eps^2) patches, half of that for two classes: the larger side of the event has mass
    of more than alpha / 2, and one of the models is off by eps / 2 or more on average there. O(n d^2) time a patch.

    References
    ----------
    A. Roth, A. Tolbert, S. Weinstein, "Reconciling Individual Probability Forecasts", FAccT 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import Reconcile
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> one, other = p, np.where(p > 0.5, p - 0.2, p)
    >>> fitted = Reconcile().fit([one, other], y)
    >>> a, b = fitted.transform([one, other])
    >>> bool((np.abs(a - b).max(axis=1) > 0.1).mean() <= 0.05)
    True
    """

    __metadata_request__fit = {"models": UNUSED}  # noqa: RUF012 - scikit-learn reads the class
    __metadata_request__transform = {"models": UNUSED}  # noqa: RUF012

    def __init__(self, eps: float = 0.1, *, alpha: float = 0.05, max_patches: int = 10_000, min_event: int = 1) -> None:
        self.eps = eps
        self.alpha = alpha
        self.max_patches = max_patches
        self.min_event = min_event

    def fit(self, models: Any, y: ArrayLike) -> Self:
        """Find the patches for the probabilities of two models, shape (n, d) or (n,), and outcomes.

        Raises
        ------
        InputError
            For more or fewer than two models, and what `ReDCal.fit` refuses.
        """
        self._refuse_settings()
        forecasts = read_probabilities(models, expected=2)
        n, d = forecasts[0].shape
        self.classes_ = read_classes(models, y, d, from_models=False)
        outcomes = read_outcomes(y, self.classes_, n)
        scores = sum(float(((part - outcomes) ** 2).sum(axis=1).mean()) for part in forecasts)
        self.bound_T_ = scores * (4 if d == 2 else 8) / (self.alpha * self.eps**2)
        self.shifts_: list[_Shift] = []
        lines = []
        while len(self.shifts_) < self.max_patches and (best := self._largest(forecasts, outcomes)) is not None:
            rows, patch = best
            before = ((forecasts[patch.model][rows] - outcomes[rows]) ** 2).sum()
            _apply(patch, forecasts, rows)
            gain = (before - ((forecasts[patch.model][rows] - outcomes[rows]) ** 2).sum()) / n
            self.shifts_.append(patch)
            lines.append((patch.model, patch.column, patch.above, len(rows), gain))
        self.history_ = pd.DataFrame(lines, columns=["model", "column", "above", "rows", "gain"])
        return self

    def transform(self, models: Any) -> list[Floats]:
        """Return the probabilities of both models, shape (n, d), after all patches."""
        check_is_fitted(self)
        forecasts = read_probabilities(models, expected=2)
        if forecasts[0].shape[1] != len(self.classes_):
            raise InputError(
                f"the probabilities are of {forecasts[0].shape[1]} classes", expected=str(len(self.classes_))
            )
        for patch in self.shifts_:
            _apply(patch, forecasts, self._apart(forecasts, patch.column, above=patch.above))
        return forecasts

    def _refuse_settings(self) -> None:
        for name in ("eps", "alpha"):
            value = getattr(self, name)
            if not (is_real(value) and 0 < value < 1):
                raise InputError(f"{name} is {value!r}", expected="a number between 0 and 1")

    def _apart(self, forecasts: list[Floats], column: int, *, above: bool) -> NDArray[np.intp]:
        difference = forecasts[0][:, column] - forecasts[1][:, column]
        return np.flatnonzero(difference > self.eps if above else difference < -self.eps)

    def _largest(self, forecasts: list[Floats], outcomes: Floats) -> tuple[NDArray[np.intp], _Shift] | None:
        """Return the event and the shift that lower a Brier score the most; None when the models are close enough."""
        n, d = outcomes.shape
        difference = forecasts[0] - forecasts[1]
        best, most = None, 0.0
        columns = range(1, 2) if d == 2 else range(d)
        apart = (np.abs(difference) > self.eps).mean(axis=0)
        for column in (k for k in columns if apart[k] > self.alpha):
            for above in (True, False):
                rows = self._apart(forecasts, column, above=above)
                if len(rows) < self.min_event or not len(rows):
                    continue
                for model in range(2):
                    shift = (outcomes[rows] - forecasts[model][rows]).mean(axis=0)
                    gain = len(rows) / n * float(shift @ shift)
                    if gain > most:
                        best, most = (rows, _Shift(model, column, above, shift)), gain
        return best


def _apply(patch: _Shift, forecasts: list[Floats], rows: NDArray[np.intp]) -> None:
    if len(rows):
        forecasts[patch.model][rows] = project_simplex(forecasts[patch.model][rows] + patch.shift)
