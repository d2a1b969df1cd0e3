"""Are calibrated forecasts worth publishing? Their Brier score, a constant's, and the best that there could be.

Where people react, a forecast has two ways to be right: to know people, or to make them predictable. Calibration asks
for neither. Forecasts that settle where outcomes are a coin's are calibrated, and the worst that could be published.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.collective.social_prediction._people import check_forecasts, check_outcomes, count_people
from aboveboard.core.errors import InputError

__all__ = ["Policy", "UsefulnessReport", "best_policy", "brier_parts", "usefulness"]

Floats = NDArray[np.float64]
Interval = tuple[float, float]

_BINS: Final = 10
_ANSWERS: Final = np.linspace(0.0, 1.0, 101)
_LITTLE: Final = 0.05


@dataclass(frozen=True)
class Policy:
    """The best single forecast for each cell of people, and how good it would be.

    Attributes
    ----------
    brier : float
        Of publishing each cell its forecast.
    error : float
        Standard error of `brier`; 0 where a response model gave it.
    cells : DataFrame
        ``cell``, ``share`` of the people, ``publish``, ``brier``, ``n`` (people it was observed on).
    """

    brier: float
    error: float
    cells: pd.DataFrame


@dataclass(frozen=True)
class UsefulnessReport:
    """What published forecasts are worth.

    Attributes
    ----------
    n : int
    brier : float
        Mean of (y - p)^2.
    constant_brier : float
        The same of publishing nobody anything but the mean outcome, had outcomes been what they were.
    skill : float
        ``1 - brier / constant_brier``; NaN where all outcomes are the same.
    skill_interval : (float, float)
        95 %.
    resolution : float
        Variance of E[y | p] over tenths of the forecasts, less what chance gives: what the forecasts tell apart.
    policy : Policy or None
        The best single forecast per cell, where it could be known.
    gap : float or None
        ``brier - policy.brier``.
    gap_interval : (float, float) or None
        95 %.
    """

    n: int
    brier: float
    constant_brier: float
    skill: float
    skill_interval: Interval
    resolution: float
    policy: Policy | None
    gap: float | None
    gap_interval: Interval | None

    @property
    def statement(self) -> str:
        """The verdict, in a sentence."""
        if self.policy is not None and self.gap_interval is not None and self.gap_interval[0] > _LITTLE:
            return (
                f"The Brier score is {self.brier:.3f}, which is {self.gap:.3f} above the {self.policy.brier:.3f} of "
                "the best single forecast per cell: however well calibrated, these forecasts are not worth publishing."
            )
        if not self.skill_interval[1] > _LITTLE:
            return f"The forecasts tell people apart no better than a constant: Brier score {self.brier:.3f}."
        beyond = "" if self.gap is None else f", {self.gap:+.3f} from the best single forecast per cell"
        return f"The Brier score is {self.brier:.3f}, with a skill of {self.skill:.2f} over a constant{beyond}."


def usefulness(
    p: ArrayLike,
    y: ArrayLike,
    *,
    X: Any = None,
    response: Callable[[Any, Floats], ArrayLike] | None = None,
    explored: ArrayLike | None = None,
    cells: ArrayLike | None = None,
    min_people: int = 10,
) -> UsefulnessReport:
    """Say what forecasts are worth, from people to whom they were published.

    Parameters
    ----------
    p, y : array-like of shape (n,), in [0, 1]
        Forecasts that were published, and outcomes.
    X : table of n people, optional
        What `response` looks at.
    response : callable, optional
        ``response(X, p)`` gives the probability of the outcome for any forecast (`ResponseModel.mean`). The best
        forecast per cell is then searched among 0, 0.01, ..., 1.
    explored : array-like of bool, shape (n,), optional
        Who got a forecast at random, whatever is known of the person. The best forecast per cell is then found among
        their tenths, in one half of them, and judged in the other.
    cells : array-like of shape (n,), optional
        Kinds of people who may get different forecasts; default: everybody the same.
    min_people : int, default 10
        A tenth with fewer explored people of a cell is no candidate.

    Returns
    -------
    UsefulnessReport

    Raises
    ------
    aboveboard.core.InputError
        When both or none of X and `response` are missing, or lengths do not fit.

    Notes
    -----
    With outcomes of 0 or 1 and g the response, a constant q has the Brier score ``g(q) (1 - g(q)) + (g(q) - q)^2``. The
    people who were explored are left out of the score of the published forecasts. O(n) time, O(100 n) with `response`.

    References
    ----------
    J. C. Perdomo, "Revisiting the Predictability of Performative, Social Events", ICML 2025, theorem 5.1: exact
    calibration can force the largest risk. The report is this project's.

    Examples
    --------
    Where outcomes turn against the forecast by a tenth, calibrated forecasts end at 1/2; 0 would be right nine times
    out of ten:

    >>> import numpy as np
    >>> from aboveboard.collective import ResponseModel, usefulness
    >>> react = ResponseModel(lambda X, p: np.where(p <= 0.5, p + 0.1, p - 0.1), random_state=0)
    >>> X, p = np.zeros((4000, 0)), np.where(np.arange(4000) % 2, 0.49, 0.51)
    >>> report = usefulness(p, react(X, p), X=X, response=react.mean)
    >>> round(report.brier, 2), round(report.policy.brier, 2)
    (0.25, 0.1)
    """
    forecast = check_forecasts(p)
    outcome = check_outcomes(y, len(forecast))
    if (response is None) != (X is None):
        raise InputError("X and response go together", expected="both, or neither")
    if response is not None and explored is not None:
        raise InputError("both a response and explored people were given", expected="one of the two")
    kind = np.zeros(len(forecast)) if cells is None else np.asarray(cells)
    random = np.zeros(len(forecast), dtype=bool) if explored is None else np.asarray(explored)
    for what, given in (("cells", kind), ("explored", random)):
        if given.shape != forecast.shape:
            raise InputError(f"{what} has shape {given.shape}", expected=f"{forecast.shape}: one per person")
    if random.dtype != bool:
        raise InputError(f"explored holds {random.dtype}", expected="true or false for each person")
    if X is not None and count_people(X) != len(forecast):
        raise InputError(f"X has {count_people(X):,} rows", expected=f"{len(forecast):,}, one per forecast")
    own = ~random
    if own.sum() < 2:
        raise InputError(f"{int(own.sum())} people got a published forecast", expected="two at least")
    policy = None
    if response is not None:
        policy = _simulated_policy(X, response, kind)
    elif explored is not None:
        policy = best_policy(forecast[random], outcome[random], kind[random], kind[own], min_people)
    return _report(forecast[own], outcome[own], policy)


def _report(p: Floats, y: Floats, policy: Policy | None) -> UsefulnessReport:
    n, z = len(p), critical_z()
    square, constant = (y - p) ** 2, (y - y.mean()) ** 2
    brier, without = float(square.mean()), float(constant.mean())
    skill, half = float("nan"), float("nan")
    if without > 0:
        skill = 1.0 - brier / without
        half = z * float(np.std(square - (1.0 - skill) * constant)) / without / np.sqrt(n)
    gap = None if policy is None else brier - policy.brier
    error = None if policy is None else float(np.hypot(square.std() / np.sqrt(n), policy.error))
    return UsefulnessReport(
        n=n,
        brier=brier,
        constant_brier=without,
        skill=skill,
        skill_interval=(skill - half, skill + half),
        resolution=brier_parts(p, y)[1],
        policy=policy,
        gap=gap,
        gap_interval=None if gap is None or error is None else (gap - z * error, gap + z * error),
    )


def brier_parts(p: Floats, y: Floats) -> tuple[float, float]:
    """Return the squared distance of outcomes from forecasts, and their variance, over tenths of the forecasts.

    Both less what chance alone gives, so that they can be slightly below zero.
    """
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, p, side="right")
    n = np.bincount(bins).astype(np.float64)
    many = n > 1
    n_safe = np.where(n > 0, n, 1.0)
    mean, forecast = np.bincount(bins, y) / n_safe, np.bincount(bins, p) / n_safe
    noise = (np.bincount(bins, y**2) / n_safe - mean**2) / np.where(many, n - 1.0, 1.0)
    residual = np.bincount(bins, (y - p) ** 2) / n_safe - (mean - forecast) ** 2
    share = n / n.sum()
    distance = (mean - forecast) ** 2 - residual / np.where(many, n - 1.0, 1.0)
    spread = (mean - y.mean()) ** 2 - (1.0 - share) * noise
    return float(share[many] @ distance[many]), float(share[many] @ spread[many])


def _simulated_policy(X: Any, response: Callable[[Any, Floats], ArrayLike], kind: NDArray[Any]) -> Policy:
    names, cell = np.unique(kind, return_inverse=True)
    size = np.bincount(cell)
    risk = np.empty((len(_ANSWERS), len(names)))
    for i, answer in enumerate(_ANSWERS):
        rate = check_forecasts(response(X, np.full(len(cell), answer)), len(cell))
        risk[i] = np.bincount(cell, rate * (1.0 - rate) + (rate - answer) ** 2) / size
    best = risk.argmin(axis=0)
    least = risk[best, np.arange(len(names))]
    frame = pd.DataFrame(
        {"cell": names, "share": size / size.sum(), "publish": _ANSWERS[best], "brier": least, "n": size}
    )
    return Policy(float(size @ least / size.sum()), 0.0, frame)


def best_policy(p: Floats, y: Floats, kind: NDArray[Any], published: NDArray[Any], min_people: int) -> Policy | None:
    """Find the best tenth of random forecasts for each kind of people, and judge it on people who did not choose it.

    Parameters
    ----------
    p, y, kind : ndarray of shape (m,)
        Of people who got a forecast at random.
    published : ndarray of shape (n,)
        The kinds of all others, by which cells are weighted.

    Returns
    -------
    Policy or None
        None where some kind of people was hardly explored.
    """
    rows = []
    total = variance = 0.0
    tenth = np.minimum((p * _BINS).astype(np.intp), _BINS - 1)
    square = (y - p) ** 2

    def best(people: NDArray[np.intp], usable: NDArray[np.bool_]) -> int:
        n = np.bincount(tenth[people], minlength=_BINS)
        risk = np.bincount(tenth[people], square[people], _BINS) / np.maximum(n, 1)
        return int(np.where(usable, risk, np.inf).argmin())

    names, counts = np.unique(published, return_counts=True)
    for name, share in zip(names, counts / counts.sum(), strict=True):
        own = np.flatnonzero(kind == name)
        halves = own[::2], own[1::2]
        met = [np.bincount(tenth[half], minlength=_BINS) for half in halves]
        usable = np.minimum(*met) >= min_people
        if not usable.any():
            return None
        judged = [square[judge][tenth[judge] == best(chooser, usable)] for chooser, judge in (halves, halves[::-1])]
        score = float(np.mean([part.mean() for part in judged]))
        publish = own[tenth[own] == best(own, usable)]
        rows.append((name, share, float(p[publish].mean()), score, len(publish)))
        total += share * score
        variance += share**2 * sum(part.var() / len(part) for part in judged) / 4.0
    frame = pd.DataFrame(rows, columns=["cell", "share", "publish", "brier", "n"])
    return Policy(float(total), float(np.sqrt(variance)), frame)
