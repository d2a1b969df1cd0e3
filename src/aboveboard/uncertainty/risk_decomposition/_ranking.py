"""Which measure tells the rows apart: areas under the ROC curve of a whole family, with intervals that hold at once."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from aboveboard.core.errors import InputError

__all__ = ["LEAST_EVENTS", "Areas", "areas_under_curve", "column_text", "rank_measures"]

Floats = NDArray[np.float64]

LEAST_EVENTS: Final = 10
"""Rows of either kind below which no interval is given."""

_DRAWS: Final = 2_000
_BATCH: Final = 2_000_000


def rank_measures(
    measures: pd.DataFrame,
    event: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> pd.DataFrame:
    """Rank measures of uncertainty by how well they tell the rows with an event from the others.

    Parameters
    ----------
    measures : DataFrame of shape (n, k)
        Higher is less certain, as from `uncertainty_measures`.
    event : array-like of bool, shape (n,)
        Whether the prediction is wrong, or the row foreign.
    sample_weight : array-like of shape (n,), optional
    clusters : array-like of shape (n,), optional
        Rows of one value belong together.
    confidence : float, default=0.95
        Of all intervals at once.
    random_state : int, default=0

    Returns
    -------
    DataFrame
        By measure, best first: ``auroc``, ``low`` and ``high`` (NaN below 10 rows of either kind), and in ``attrs``
        the numbers ``n`` and ``events``. The area is the chance that a row with the event has the higher value, ties
        counting half.

    Raises
    ------
    InputError
        For values that are not finite, other lengths, or where all rows are of one kind.

    Notes
    -----
    Intervals are those of the log odds, with DeLong's influence of each row and a multiplier bootstrap of the largest
    deviation over the family. O(k n log n + 2000 k n) time in the worst case; past 2,000 rows the bootstrap works with
    sums over 2,000 blocks.

    References
    ----------
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, Biometrics 44, 1988. V. Chernozhukov, D. Chetverikov, K. Kato,
    Annals of Statistics 41, 2013.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from aboveboard.uncertainty import rank_measures
    >>> wrong = np.arange(200) < 40
    >>> rng = np.random.default_rng(0)
    >>> measures = pd.DataFrame({"good": wrong + rng.random(200), "blind": rng.random(200)})
    >>> rank_measures(measures, wrong)["auroc"].round(2).to_dict()
    {'good': 1.0, 'blind': 0.46}
    """
    found = areas_under_curve(measures.to_numpy(dtype=np.float64), event, sample_weight, clusters)
    low, high = found.intervals(confidence, random_state)
    table = pd.DataFrame({"auroc": found.value, "low": low, "high": high}, index=measures.columns)
    table = table.iloc[np.argsort(-found.value, kind="stable")]
    table.attrs.update(n=found.n, events=found.events)
    return table


@dataclass(frozen=True)
class Areas:
    """Areas under the curve of k measures on the same rows.

    Attributes
    ----------
    value : ndarray of shape (k,)
    influence : ndarray of shape (units, k)
        What each row (cluster) adds to the error of each area: the sum over units is zero, that of the squares the
        variance.
    n, events, units : int
    """

    value: Floats
    influence: Floats
    n: int
    events: int

    @property
    def enough(self) -> bool:
        return min(self.events, self.n - self.events, len(self.influence)) >= LEAST_EVENTS

    def intervals(self, confidence: float, random_state: int) -> tuple[Floats, Floats]:
        """Return simultaneous intervals of all areas; NaN where there are too few rows."""
        if not self.enough:
            return np.full_like(self.value, np.nan), np.full_like(self.value, np.nan)
        error = self._errors(self.influence)
        half = self._critical(self.influence, error, confidence, random_state) * error
        inside = np.clip(self.value, 1e-9, 1 - 1e-9)
        odds, half = np.log(inside / (1 - inside)), half / (inside * (1 - inside))
        low, high = 1 / (1 + np.exp(half - odds)), 1 / (1 + np.exp(-half - odds))
        # a perfect order has no variance: the rarer kind bounds what else it could have been
        rare = min(self.events, self.n - self.events)
        bound = (1 - confidence) ** (1 / rare)
        low = np.where(self.value > 1 - 1e-9, bound, np.minimum(low, self.value))
        high = np.where(self.value < 1e-9, 1 - bound, np.maximum(high, self.value))
        return low, high

    def difference(self, first: int, second: int, confidence: float) -> tuple[float, float, float]:
        """Return how much larger one area is than another, with an interval (NaN where there are too few rows)."""
        value = float(self.value[first] - self.value[second])
        if not self.enough:
            return value, float("nan"), float("nan")
        error = float(self._errors(self.influence[:, [first]] - self.influence[:, [second]])[0])
        half = float(stats.t.ppf(0.5 + confidence / 2, len(self.influence) - 1)) * error
        return value, value - half, value + half

    @staticmethod
    def _errors(influence: Floats) -> Floats:
        units = len(influence)
        return np.asarray(np.sqrt(units / (units - 1) * np.einsum("uk,uk->k", influence, influence)))

    @staticmethod
    def _critical(influence: Floats, error: Floats, confidence: float, random_state: int) -> float:
        """Return the quantile of the largest studentised deviation under random signs and sizes of the influences."""
        blocks = min(len(influence), _DRAWS)
        rng = np.random.default_rng(random_state)
        if blocks < len(influence):
            block = rng.permutation(len(influence)) % blocks
            influence = np.column_stack([np.bincount(block, weights=part, minlength=blocks) for part in influence.T])
        scaled = influence[:, error > 0] / error[error > 0]
        largest = np.zeros(_DRAWS)
        step = max(1, _BATCH // blocks)
        for start in range(0, _DRAWS, step):
            drawn = rng.standard_normal((min(step, _DRAWS - start), blocks)) @ scaled
            largest[start : start + len(drawn)] = np.abs(drawn).max(axis=1, initial=0.0)
        floor = float(stats.t.ppf(0.5 + confidence / 2, max(len(influence) - 1, 1)))
        return max(float(np.quantile(largest, confidence)), floor)


def areas_under_curve(
    values: Floats, event: ArrayLike, sample_weight: ArrayLike | None = None, clusters: ArrayLike | None = None
) -> Areas:
    """Return the area under the curve of each column of `values`, with the influence of each row or cluster."""
    happened = np.asarray(event)
    n = len(values)
    if happened.shape != (n,) or not np.isin(happened, (0, 1)).all():
        raise InputError(f"the events have shape {happened.shape}", expected=f"{n} values, true or false")
    happened = happened.astype(bool)
    if not np.isfinite(values).all():
        raise InputError("some measures are NaN or infinite", expected="finite numbers")
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise InputError(f"the weights have shape {weight.shape}", expected=f"{n} numbers, 0 or more")
    one, zero = float(weight[happened].sum()), float(weight[~happened].sum())
    if one <= 0 or zero <= 0:
        raise InputError(
            f"the event happens in {int(happened.sum()):,} of {n:,} rows", expected="rows with it and without it"
        )
    columns = [_placements(column, happened, weight, one, zero) for column in values.T]
    influence = np.column_stack([part for _, part in columns])
    if clusters is not None:
        code = np.unique(np.asarray(clusters), return_inverse=True)[1].ravel()
        influence = np.column_stack([np.bincount(code, weights=part) for part in influence.T])
    counted = weight > 0
    return Areas(
        np.array([area for area, _ in columns]), influence, int(counted.sum()), int((happened & counted).sum())
    )


def column_text(label: Any) -> str:
    """Return a measure's label as text: ``log excess, outer and inner``."""
    if not isinstance(label, tuple):
        return str(label)
    score, kind, *stands = (str(part) for part in label)
    return f"{score} {kind}, {' and '.join(stand for stand in stands if stand)}"


def _placements(
    value: Floats, happened: NDArray[np.bool_], weight: Floats, one: float, zero: float
) -> tuple[float, Floats]:
    """Return the area of one measure and the influence of each row on it."""
    distinct, place = np.unique(value, return_inverse=True)
    place = place.ravel()
    with_it = np.bincount(place, weights=weight * happened, minlength=len(distinct))
    without = np.bincount(place, weights=weight * ~happened, minlength=len(distinct))
    below = (np.cumsum(without) - 0.5 * without) / zero
    above = (one - np.cumsum(with_it) + 0.5 * with_it) / one
    area = float((with_it * below).sum() / one)
    influence = weight * np.where(happened, (below[place] - area) / one, (above[place] - area) / zero)
    return area, influence
