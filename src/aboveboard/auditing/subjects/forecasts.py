"""A log of forecasts and outcomes: one row per forecast that was published."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.frames import column_kind, group_codes, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

__all__ = ["ForecastsSubject", "example", "read"]

Floats = NDArray[np.float64]

_ROLES: Final = ("forecast", "outcome", "version", "time", "arm")
_WORDS: Final = {**dict.fromkeys(("true", "yes"), 1.0), **dict.fromkeys(("false", "no"), 0.0)}
_MOST_GROUPS: Final = 20


@dataclass(frozen=True, kw_only=True)
class ForecastsSubject(SuiteSubject):
    """Forecasts and their outcomes.

    Attributes
    ----------
    forecast, outcome : ndarray of shape (n,), in [0, 1]
    contexts : dict of column name to labels of the people
    version, arm : ndarray of text or None
    time : Series or None
    explored : str or None
        The arm with random forecasts.
    """

    forecast: Floats
    outcome: Floats
    contexts: dict[str, NDArray[Any]]
    version: NDArray[Any] | None
    time: "pd.Series[Any] | None"
    arm: NDArray[Any] | None
    explored: str | None

    def __len__(self) -> int:
        return len(self.forecast)

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        return f"{len(self):,} {'forecast' if len(self) == 1 else 'forecasts'} and their outcomes"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts and means."""
        several = {"Versions": self.version, "Arms": self.arm}
        return (
            ("Forecast, mean", round(float(self.forecast.mean()), 4)),
            ("Outcome, mean", round(float(self.outcome.mean()), 4)),
            ("Contexts", len(self.contexts)),
            *((name, len(set(labels.tolist()))) for name, labels in several.items() if labels is not None),
            *((("Arm with random forecasts", self.explored),) if self.explored is not None else ()),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> ForecastsSubject:
    """Read the log.

    Parameters
    ----------
    table : RoleColumns
        A column that is called like a role has it, unless another was named. All columns that are left are contexts
        where none was named as one.
    settings : mapping
        explored.

    Raises
    ------
    InputError
        Without forecasts or outcomes, for forecasts that are missing or outside [0, 1], outcomes that cannot be read,
        or an arm that is not there.
    """
    notes: list[str] = []
    columns = _columns(table, notes)
    kept = _known(columns, notes)
    columns = {role: series[kept] for role, series in columns.items()}
    forecast = _unit(columns["forecast"], "forecast")
    outcome = _unit(columns["outcome"], "outcome")
    named = table.all("context")
    left = named or [table.frame[name] for name in table.left()]
    contexts: dict[str, NDArray[Any]] = {}
    for series in left:
        labels = _context(series[kept], notes, asked_for=bool(named))
        if labels is not None:
            contexts[str(series.name)] = labels
    texts = {role: _texts(columns[role]) if role in columns else None for role in ("version", "arm")}
    explored = settings.get("explored")
    if explored is not None and (texts["arm"] is None or explored not in texts["arm"]):
        there = "no column was named as arm" if texts["arm"] is None else "nobody is in it"
        raise InputError(f"the setting explored is {explored!r}, and {there}", expected="the name of an arm")
    parts = [forecast, outcome, *map(list, contexts.values()), list(contexts)]
    parts += [list(labels) for labels in texts.values() if labels is not None]
    return ForecastsSubject(
        forecast=forecast,
        outcome=outcome,
        contexts=contexts,
        version=texts["version"],
        time=columns.get("time"),
        arm=texts["arm"],
        explored=explored,
        data_sha256=fingerprint(*parts),
        notes=tuple(notes),
        **common,
    )


def example(*, random_state: int) -> Example:
    """Return simulated forecasts of who drops out, by two models, where pupils at risk get help."""
    rng = np.random.default_rng(random_state)
    n = 8_000
    absences = rng.gamma(2.0, 4.0, n)
    grade = rng.normal(0.0, 1.0, n)
    risk = 1.0 / (1.0 + np.exp(-(0.12 * (absences - 8.0) - 0.8 * grade)))
    helped_before = np.where(risk > 0.5, risk - 0.3, risk)
    second, drawn = np.arange(n) >= n // 2, rng.random(n) < 0.2
    forecast = np.where(drawn, rng.random(n), np.where(second, helped_before, risk))
    chance = np.where(forecast > 0.5, np.maximum(risk - 0.3, 0.0), risk)
    frame = pd.DataFrame(
        {
            "forecast": forecast.round(4),
            "outcome": (rng.random(n) < chance).astype(int),
            "version": np.where(second, "second", "first"),
            "arm": np.where(drawn, "random", "model"),
            "absences": absences.round(1),
            "school": rng.choice(["north", "south", "west"], n),
        }
    )
    return Example(
        frame=frame,
        settings={"explored": "random"},
        data="simulated",
        note=(
            "The example is simulated: 8,000 pupils; a forecast above 1/2 brings help, which lowers the risk of "
            "dropping out by 30 points; the second model was trained on what happened under the first; one pupil in "
            "five got a random forecast."
        ),
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _columns(table: RoleColumns, notes: list[str]) -> dict[str, "pd.Series[Any]"]:
    """Return the column of each role, by its name where none was named."""
    after_their_name = [role for role in _ROLES if role not in table and role in table.left()]
    if after_their_name:
        table.named.update({role: (role,) for role in after_their_name})
        notes.append(f"Columns that were taken as what they are called: {', '.join(after_their_name)}.")
    table.need("forecast", "outcome", why="what was published, and what happened")
    return {role: table[role] for role in _ROLES if role in table}


def _known(columns: Mapping[str, "pd.Series[Any]"], notes: list[str]) -> NDArray[np.bool_]:
    """Return the rows with an outcome."""
    known = columns["outcome"].notna().to_numpy()
    if not known.any():
        raise InputError("no forecast has an outcome", expected="one at least")
    if not known.all():
        notes.append(f"{int((~known).sum()):,} forecasts have no outcome yet and are left out.")
    return np.asarray(known)


def _unit(series: "pd.Series[Any]", role: str) -> Floats:
    if series.isna().any():
        raise InputError(f"the {role} is missing in {int(series.isna().sum()):,} rows", expected="one in every row")
    if column_kind(series) in ("text", "category"):
        words = [plain_label(value).strip().casefold() for value in series]
        if role == "outcome" and all(word in _WORDS for word in words):
            return np.array([_WORDS[word] for word in words])
    try:
        values = np.asarray(numbers(series), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"the column {series.name!r} holds something that is no {role}",
            expected="numbers between 0 and 1" + (", true and false, or yes and no" if role == "outcome" else ""),
        ) from None
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        raise InputError(
            f"the {role} {values[bad][0]:g} lies outside [0, 1], with {int(bad.sum()) - 1:,} more",
            expected=f"{role}s between 0 and 1",
            remedy="Divide by 100 where they are in percent" if values[bad].max() > 1 else "",
        )
    return values


def _context(series: "pd.Series[Any]", notes: list[str], *, asked_for: bool) -> NDArray[Any] | None:
    """Return groups of people, or None for a column that can be none and was not asked for."""
    name = str(series.name)
    kind = column_kind(series)
    if not asked_for:
        distinct = series.nunique()
        identifies = distinct == len(series) and kind == "number" and (numbers(series) % 1 == 0).all()
        if kind == "datetime" or identifies or (kind in ("text", "category") and distinct > _MOST_GROUPS):
            notes.append(f"The column {name} holds too much that is different to be a context.")
            return None
    labels, note = group_codes(series)
    if note:
        notes.append(note)
    return labels.astype(object).to_numpy()


def _texts(series: "pd.Series[Any]") -> NDArray[Any]:
    missing = series.isna().to_numpy()
    labels = ["(missing)" if gone else plain_label(value) for value, gone in zip(series, missing, strict=True)]
    return np.array(labels, dtype=object)
