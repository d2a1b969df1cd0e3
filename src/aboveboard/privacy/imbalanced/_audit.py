"""Is the epsilon that is quoted for a model of resampled rows the one that people get?"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import Column, Finding, InputError, Interval, Table
from aboveboard.core.finding import Severity
from aboveboard.privacy._rdp import epsilon_lower_bound
from aboveboard.privacy._rdp.checked import checked_positive, checked_whole
from aboveboard.privacy.imbalanced._erm import PrivateWeightedLogisticRegression
from aboveboard.privacy.imbalanced._resampling import Resampling, effective_epsilon, smote

__all__ = ["resampling_privacy_audit", "smote_canary_audit"]

_CHECK: Final = "resampling_privacy"
_AREA: Final = "privacy"
_REMEDIES: Final = ("PrivateWeightedLogisticRegression",)

Floats = NDArray[np.float64]


def resampling_privacy_audit(
    method: Resampling,
    epsilon: float,
    delta: float = 0.0,
    *,
    tolerated: float = 1.0,
    **setting: Any,
) -> list[Finding]:
    """Hold the epsilon that a private learner of resampled rows quotes against the one that people get.

    Parameters
    ----------
    method : {"oversampling", "smote"}
    epsilon, delta : float
        What the learner guarantees for its rows.
    tolerated : float, default 1
        Largest ratio of the two that is not a failure.
    **setting
        `n_minority`, `n_majority` and what else `effective_epsilon` takes.

    Returns
    -------
    list of Finding
        One, ``resampling_privacy/<method>``: its value is the effective epsilon.

    Examples
    --------
    >>> from aboveboard.privacy import resampling_privacy_audit
    >>> [finding] = resampling_privacy_audit("smote", 1.0, n_minority=100, n_majority=1900)
    >>> finding.severity, finding.value
    ('fail', 1801.0)
    """
    tolerated = checked_positive(tolerated, "tolerated")
    found = effective_epsilon(method, epsilon, delta, **setting)
    limit = tolerated * found.nominal_epsilon
    severity: Severity = "fail" if found.epsilon > limit else "ok"
    name = "SMOTE" if method == "smote" else "Oversampling"
    nothing = ", and delta reaches 1: nothing is guaranteed" if found.vacuous else ""
    return [
        Finding(
            id=f"{_CHECK}/{method}",
            check=_CHECK,
            area=_AREA,
            statement=(
                f"{name} before a learner of epsilon {found.nominal_epsilon:g} leaves people with epsilon "
                f"{found.epsilon:,.6g}: one person of the rare class can change {found.changed_rows:,} of the "
                f"learner's rows{nothing}."
            ),
            severity=severity,
            reason="by group privacy; the true loss lies between the nominal figure and this bound",
            value=found.epsilon,
            limit=limit,
            limit_source="the epsilon that is quoted",
            evidence=(_figures(found.nominal_epsilon, found.nominal_delta, found.epsilon, found.delta),),
            remedies=_REMEDIES if severity == "fail" else (),
        )
    ]


def smote_canary_audit(
    epsilon: float = 0.5,
    *,
    per_row: int = 20,
    k_neighbors: int = 5,
    runs: int = 2000,
    level: float = 0.95,
    fit: Callable[[Floats, NDArray[Any], float, np.random.Generator], float] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> list[Finding]:
    """Show on two tables that differ in one person how much a private learner after SMOTE gives away.

    The person of the rare class stands far from the others of the class, on one side or on the other, and SMOTE draws
    `per_row` more points from there. An attacker sees the released coefficient and says on which side the person was.

    Parameters
    ----------
    epsilon : float, default 0.5
        What the learner guarantees for the rows that it is given.
    per_row, k_neighbors : int
        Of SMOTE.
    runs : int, default 2000
        Fits, half on each table; the first tenth of each half fixes the threshold, the others are counted.
    level : float, default 0.95
        Confidence of the lower bound.
    fit : callable, optional
        Learner to be tried: takes rows in [-1, 1] of shape (n, 1), labels, epsilon and a random generator, and returns
        the released number. Default: `PrivateWeightedLogisticRegression` without class weights.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    list of Finding
        One, ``resampling_privacy/smote/canary``: its value is an epsilon that the whole certainly exceeds. It fails
        where that is above the nominal epsilon.

    Raises
    ------
    InputError
        For fewer than 100 runs, and other numbers out of range.

    Notes
    -----
    The bound is Clopper and Pearson's, of the true and false positive rate at once. `runs` fits of some 200 rows: 10
    seconds for 2,000.
    """
    epsilon, runs = checked_positive(epsilon, "epsilon"), checked_whole(runs, "runs")
    if runs < 100:
        raise InputError(f"runs is {runs}", expected="at least 100")
    learner = _released if fit is None else fit
    rng = np.random.default_rng(random_state)
    tables = [_table(side) for side in (-1.0, 1.0)]
    setting: dict[str, Any] = {"per_row": per_row, "k_neighbors": k_neighbors, "random_state": rng}
    low, high = (
        np.array([learner(*smote(*table, **setting), epsilon, rng) for _ in range(runs // 2)]) for table in tables
    )
    tried = runs // 20
    threshold = _best_threshold(low[:tried], high[:tried])
    low, high = low[tried:], high[tried:]
    bound = epsilon_lower_bound(
        int((high > threshold).sum()), len(high), int((low > threshold).sum()), len(low), level=level
    )
    broken = bound.epsilon > epsilon
    return [
        Finding(
            id=f"{_CHECK}/smote/canary",
            check=_CHECK,
            area=_AREA,
            statement=(
                f"With {level:.0%} confidence, SMOTE and a learner of epsilon {epsilon:g} together have an epsilon of "
                f"at least {bound.epsilon:.2f}: the release tells where one person stood in "
                f"{(high > threshold).mean():.0%} of cases, with {(low > threshold).mean():.0%} false alarms."
            ),
            severity="fail" if broken else "ok",
            reason="a lower bound; what was not found may still be there" if not broken else "",
            value=bound.epsilon,
            limit=epsilon,
            limit_source="the epsilon that is quoted",
            n=len(low) + len(high),
            evidence=(_rates(bound.true_positive_rate, bound.false_positive_rate),),
            remedies=_REMEDIES if broken else (),
            data="simulated",
        )
    ]


def _table(side: float) -> tuple[Floats, NDArray[Any]]:
    """Return 60 rows of the frequent class and 11 of the rare one, of which one stands alone at `side`."""
    frequent, rare = np.linspace(-0.5, 0.5, 60), np.linspace(-0.05, 0.05, 10)
    values = np.concatenate([frequent, rare, [side]])
    return values[:, None], np.concatenate([np.zeros(60, dtype=int), np.ones(11, dtype=int)])


def _released(X: Floats, y: NDArray[Any], epsilon: float, rng: np.random.Generator) -> float:
    model = PrivateWeightedLogisticRegression(epsilon, class_weight=None, fit_intercept=False, random_state=rng)
    return float(model.fit(X, y).coef_[0, 0])


def _best_threshold(low: Floats, high: Floats) -> float:
    """Return the threshold that separates the two samples best, by the ratio of their rates above it."""
    candidates = np.sort(np.concatenate([low, high]))
    rates = np.array([((high > c).mean(), (low > c).mean()) for c in candidates])
    ratio = np.log((rates[:, 0] + 0.05) / (rates[:, 1] + 0.05))
    return float(candidates[int(np.argmax(ratio))])


def _figures(nominal: float, nominal_delta: float, epsilon: float, delta: float) -> Table:
    columns = (Column("", "text"), Column("epsilon"), Column("delta"))
    rows = (("for the learner's rows", nominal, nominal_delta), ("for people", epsilon, delta))
    return Table("What is guaranteed", columns, rows)


def _rates(true_positive: Interval, false_positive: Interval) -> Table:
    columns = (Column("rate", "text"), Column("interval", "interval", "Clopper-Pearson"))
    rows = tuple(
        (name, (rate.low, rate.high))
        for name, rate in (("true positives", true_positive), ("false positives", false_positive))
    )
    return Table("How often the attacker says that the person stood on the right", columns, rows)
