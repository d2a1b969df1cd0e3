"""What happens to a linear model when all applicants know it and polish their features, in each other's way?

Whether a model is linear is seen from its answers alone, whatever it is made of and wherever it runs: other values are
put into one column at a time, and the log-odds must change in proportion to what was put in, by the same factor in
every row. The factors are the weights of the columns as they were given, through any scaler or encoder.

References
----------
S. Hossain, E. Micha, Y. Chen, A. Procaccia, "Strategic Classification with Externalities", ICLR 2025.
"""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import numbers
from aboveboard.auditing.frames import column_kind
from aboveboard.auditing.model import FittedModel, not_asked
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.collective import ManipulationGame, manipulation_audit
from aboveboard.core.errors import QueriesSpent
from aboveboard.core.finding import Finding

__all__ = ["check", "questions"]

_COMMON: Final[dict[str, Any]] = {"check": "gaming", "area": "strategic"}
_SHUFFLES: Final[dict[str, int]] = {"quick": 2, "standard": 5, "full": 20}
_PROBED: Final = 64
_FEWEST: Final = 8
_TOLERANCE: Final = 2e-3
_SINGLE_PRECISION: Final = 6e-7
_CERTAIN: Final = 1e-4  # log-odds of probabilities beyond this say little in single precision
_IMMUTABLE: Final = re.compile(
    r"(?:^|[\W_])(?:age|ages|aged|birth|birthday|birthdate|birthyear|born|dob)(?:$|[\W_])", re.I
)

Floats = NDArray[np.float64]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Play the game on the audited rows.

    Parameters
    ----------
    subject : Subject
        Binary, with a model that gives scores.
    random_state : int
        Seed of the probed rows and of the rounds.
    effort : {"quick", "standard", "full"}
        2, 5 or 20 shuffles of the rows into rounds.

    Returns
    -------
    list of Finding
        ``gaming/accuracy``, and ``gaming/groups/<column>`` for each sensitive column; or one finding that says why
        there are none.

    Notes
    -----
    Columns of numbers can be moved, within the range that occurs, but for sensitive ones, constant ones, and those that
    are called age or birth; whatever is missing stays so. Applicants are taken to want the positive class. The model is
    asked once about up to 64 rows per column of numbers, O(64 d); the game costs O(shuffles n d log d).
    """
    assert subject.model is not None
    assert subject.score is not None
    columns = _number_columns(subject.X)
    if not columns:
        return [_silent("The model has no column of numbers that applicants could move.")]
    try:
        slopes = _slopes(subject.model, subject.X, columns, random_state)
    except QueriesSpent as stop:
        return [not_asked(stop, id="gaming", **_COMMON)]
    if slopes.bent:
        return [
            _silent(
                "The model is not linear: its log-odds do not change in proportion to "
                f"{_listed(slopes.bent)}. What applicants would do is only predicted for linear models."
            )
        ]
    cut = _cut(subject)
    if cut is None:
        return [_silent("The model's labels do not follow from its scores by a threshold.")]
    values = np.column_stack([numbers(subject.X[name]) for name in columns])
    movable = _movable(subject, columns, slopes)
    if not movable.any():
        return [_silent("No column of numbers that could be moved has an effect on the model's scores.")]
    return _played(subject, columns, values, slopes.weight, movable, cut, random_state, _SHUFFLES[effort])


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of the question that `check` asks."""
    columns = _number_columns(X)
    return [min(_PROBED, len(X)) * (1 + len(columns))] if columns else []


# --- is it linear? ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slopes:
    """By column: the change in log-odds per unit, whether it could be told, and the columns where there is no such."""

    weight: Floats
    known: NDArray[np.bool_]
    bent: tuple[str, ...]


def _slopes(model: FittedModel, X: pd.DataFrame, columns: list[str], random_state: int) -> _Slopes:
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.choice(len(X), min(_PROBED, len(X)), replace=False))
    base = X.iloc[rows].reset_index(drop=True)
    changed = [_with_other_values(base, X[name], name, rng) for name in columns]
    score = model.answer(pd.concat([base, *changed], ignore_index=True)).score
    assert score is not None
    log_odds, noise, sure = _log_odds(score.reshape(len(columns) + 1, len(base)))
    weight, known, bent = np.zeros(len(columns)), np.zeros(len(columns), dtype=bool), []
    for k, name in enumerate(columns):
        step = numbers(changed[k][name]) - numbers(base[name])
        with np.errstate(invalid="ignore"):
            told = np.isfinite(step) & (step != 0) & sure[0] & sure[k + 1]
        if told.sum() < min(_FEWEST, len(base)):
            continue
        step, change = step[told], (log_odds[k + 1] - log_odds[0])[told]
        known[k] = True
        weight[k] = float(step @ change / (step @ step))
        error = np.abs(change - weight[k] * step)
        if (error > _TOLERANCE * np.abs(change).max() + (noise[0] + noise[k + 1])[told]).any():
            bent.append(name)
        elif np.abs(change).max() <= 2 * (noise[0] + noise[k + 1])[told].max():
            weight[k] = 0.0
    return _Slopes(weight, known, tuple(bent))


def _with_other_values(
    base: pd.DataFrame, column: "pd.Series[Any]", name: str, rng: np.random.Generator
) -> pd.DataFrame:
    """Return rows with other values of one column that occur in it; what is missing stays so."""
    values = numbers(column)
    distinct = np.flatnonzero(np.isfinite(values))
    distinct = distinct[np.unique(values[distinct], return_index=True)[1]]
    donors = rng.choice(distinct, len(base)) if len(distinct) else np.zeros(len(base), dtype=int)
    replaced = column.iloc[donors].reset_index(drop=True)
    return base.assign(**{name: replaced.where(base[name].notna(), base[name])})


def _log_odds(score: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return log-odds, how far off they may be in single precision, and where they can be relied on."""
    sure = (score > _CERTAIN) & (score < 1 - _CERTAIN)
    inside = np.where(sure, score, 0.5)
    return np.log(inside / (1 - inside)), _SINGLE_PRECISION / (inside * (1 - inside)), sure


def _cut(subject: Subject) -> float | None:
    """Return the log-odds above which the model answers with the positive class, None where there are none."""
    assert subject.score is not None
    yes, score = subject.prediction == 1, subject.score
    threshold = 0.5 if subject.threshold is None else subject.threshold
    reached = np.array_equal(yes, score >= threshold)
    if not reached and not np.array_equal(yes, score > threshold):
        lowest, highest = score[yes].min(initial=1.0), score[~yes].max(initial=0.0)
        if lowest <= highest:
            return None
        threshold = (lowest + highest) / 2
    inside = min(max(threshold, 1e-12), 1 - 1e-12)
    cut = float(np.log(inside / (1 - inside)))
    return float(np.nextafter(cut, -np.inf)) if reached else cut


# --- the game ---------------------------------------------------------------------------------------------------------


def _number_columns(X: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that vary."""
    names = [name for name in X.columns if column_kind(X[name]) == "number"]
    return [name for name in names if _varies(numbers(X[name]))]


def _varies(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 1 and bool(known.min() < known.max()) and not np.isinf(values).any()


def _movable(subject: Subject, columns: list[str], slopes: _Slopes) -> NDArray[np.bool_]:
    fixed = [name in subject.sensitive.columns or bool(_IMMUTABLE.search(str(name))) for name in columns]
    return slopes.known & (slopes.weight != 0) & ~np.array(fixed)


def _played(
    subject: Subject,
    columns: list[str],
    values: Floats,
    weight: Floats,
    movable: NDArray[np.bool_],
    cut: float,
    random_state: int,
    shuffles: int,
) -> list[Finding]:
    limits, score = subject.limits, subject.score
    assert score is not None
    inside = np.clip(score, 1e-12, 1 - 1e-12)
    log_odds = np.log(inside / (1 - inside))
    low, high, spread = (part(values, axis=0) for part in (np.nanmin, np.nanmax, np.nanstd))
    game = ManipulationGame(
        cost="squared_l2",
        alpha=limits["gaming.cost"].value,
        externality="congestion",
        beta=limits["gaming.crowding"].value * limits["gaming.cost"].value,
        bounds=(low, high),
        cost_weights=(1.0 / spread).tolist(),
        manipulable=movable.tolist(),
    )
    no, yes = subject.class_names
    return manipulation_audit(
        SimpleNamespace(coef_=weight, intercept_=0.0),
        values,
        subject.y,
        game,
        n_agents=max(int(limits["gaming.applicants"].value), 1),
        n_shuffles=shuffles,
        offset=log_odds - np.nan_to_num(values) @ weight,
        cut=cut,
        feature_names=[str(name) for name in columns],
        sensitive_features={str(name): subject.sensitive[name].astype(object) for name in subject.sensitive.columns},
        sample_weight=subject.weight,
        clusters=subject.cluster,
        wanted=repr(yes),
        other=repr(no),
        units=("a move of one standard deviation", "log-odds"),
        limit=limits["gaming.accuracy"].value,
        limit_source=limits["gaming.accuracy"].source,
        group_limit=limits["gaming.groups"].value,
        group_limit_source=limits["gaming.groups"].source,
        min_rows=max(int(limits["gaming.min_rows"].value), subject.min_cell),
        random_state=random_state,
    )


def _silent(reason: str) -> Finding:
    return Finding(
        id="gaming",
        statement="What gaming by applicants would do to this model is not predicted.",
        severity="note",
        status="not_applicable",
        reason=reason,
        **_COMMON,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(str, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
