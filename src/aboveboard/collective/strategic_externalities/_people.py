"""Applicants who are audited: how they were drawn, and what becomes of each of them in rounds of the game."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aboveboard.collective.strategic_externalities._crowd import Crowd
from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.collective.strategic_externalities._rounds import log_loss
from aboveboard.core import InputError

__all__ = ["LEVEL", "People", "Played", "dearer", "default_game", "padded_rounds", "played_by", "read_people"]

LEVEL: Final = 0.95


@dataclass(frozen=True)
class People:
    """Applicants: features (those that are missing are 0 here), scores, outcomes and how they were drawn."""

    X: Floats
    missing: NDArray[np.bool_]
    coef: Floats
    score: Floats
    truth: Floats
    weight: Floats
    cluster: NDArray[Any] | None
    cut: float

    def __len__(self) -> int:
        return len(self.score)

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def spread(self) -> Floats:
        spread: Floats = np.nanstd(np.where(self.missing, np.nan, self.X), axis=0)
        return spread

    def mean(self, values: Floats, among: NDArray[np.bool_] | None = None) -> tuple[float, float]:
        """Return a weighted mean and its standard error, NaN for a single row (or cluster)."""
        weight = self.weight if among is None else self.weight * among
        total = float(weight.sum())
        value = float(weight @ values) / total
        parts: Floats = weight * (values - value)
        if self.cluster is not None:
            parts = np.asarray(np.bincount(self.cluster, weights=parts), dtype=np.float64)
            units = int((np.bincount(self.cluster, weights=weight) > 0).sum())
        else:
            units = int((weight > 0).sum())
        if units < 2:
            return value, float("nan")
        return value, float(np.sqrt(units / (units - 1) * (parts**2).sum())) / total

    def critical(self, level: float = LEVEL) -> float:
        if self.cluster is None:
            return float(stats.norm.ppf(0.5 + level / 2))
        return float(stats.t.ppf(0.5 + level / 2, max(int(self.cluster.max()), 1)))


@dataclass(frozen=True)
class Played:
    """For each applicant, a mean over rounds: right answer, log loss, positive answer, length of the move.

    `moves` and `gains` are means over applicants, per feature: of the absolute move in standard deviations, and of what
    it adds to the score; `stopped` is the share of those who met the bound.
    """

    right: Floats
    loss: Floats
    positive: Floats
    length: Floats
    moves: Floats
    gains: Floats
    stopped: Floats


def read_people(estimator: Any, X: Any, y: Any, offset: Any, sample_weight: Any, clusters: Any, cut: float) -> People:
    """Return what `manipulation_audit` was given, checked."""
    coef, intercept = _coefficients(estimator)
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"X is not made of numbers ({error})") from error
    if rows.ndim != 2 or rows.shape[1] != len(coef):
        raise InputError(f"X has shape {rows.shape}", expected=f"(n, {len(coef)}), a column per weight")
    missing = np.isnan(rows)
    if np.isinf(rows).any() or (offset is None and missing.any()):
        raise InputError("X holds values that are missing or infinite", expected="numbers")
    rows = np.where(missing, 0.0, rows)
    n, truth = len(rows), _truth(estimator, y)
    extra = np.zeros(n) if offset is None else np.asarray(offset, dtype=np.float64)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    cluster = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1].ravel()
    for name, values in (("y", truth), ("offset", extra), ("sample_weight", weight), ("clusters", cluster)):
        if values is not None and (values.shape != (n,) or not np.isfinite(values).all()):
            raise InputError(f"{name} has shape {values.shape}", expected=f"({n},), all finite")
    if (weight < 0).any() or not weight.any():
        raise InputError("sample_weight is negative, or 0 for all", expected="weights at or above 0")
    return People(rows, missing, coef, rows @ coef + intercept + extra, truth, weight, cluster, cut)


def _coefficients(estimator: Any) -> tuple[Floats, float]:
    coef, intercept = getattr(estimator, "coef_", None), getattr(estimator, "intercept_", None)
    if coef is None or intercept is None:
        raise InputError(
            f"{type(estimator).__name__} has no coef_ and intercept_",
            expected="a fitted linear classifier",
            remedy="Gaming is only predicted for scores that are linear in the features",
        )
    coef, intercept = np.asarray(coef, dtype=np.float64), np.ravel(np.asarray(intercept, dtype=np.float64))
    if coef.ndim == 2 and len(coef) == 1:
        coef = coef[0]
    if coef.ndim != 1 or len(intercept) != 1:
        raise InputError(f"coef_ has shape {coef.shape}", expected="a score of two classes")
    return coef, float(intercept[0])


def _truth(estimator: Any, y: Any) -> Floats:
    """Return outcomes as 0.0 and 1.0."""
    label, classes = np.asarray(y), getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == 2 and np.isin(label, classes).all():
        return np.asarray(label == classes[1], dtype=np.float64)
    if not np.isin(label, (0, 1)).all():
        raise InputError("y holds labels that the estimator does not know", expected="its classes_, or 0 and 1")
    return label.astype(np.float64)


def default_game(X: Floats) -> ManipulationGame:
    spread = X.std(axis=0)
    return ManipulationGame(
        cost="squared_l2",
        alpha=1.0,
        externality="congestion",
        beta=0.01,
        bounds=(X.min(axis=0), X.max(axis=0)),
        cost_weights=(1.0 / np.where(spread > 0, spread, 1.0)).tolist(),
        manipulable=(spread > 0).tolist(),
    )


def dearer(game: ManipulationGame, factor: float) -> ManipulationGame:
    return replace(game, alpha=factor * game.alpha, beta=factor * game.beta)


def padded_rounds(n: int, n_agents: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return all rows, shuffled and cut into rounds; others fill up the last one."""
    order = rng.permutation(n)
    return np.concatenate([order, order[: -n % n_agents]]).reshape(-1, n_agents)


def played_by(
    people: People, game: ManipulationGame, shuffles: Sequence[NDArray[np.intp]], towards: float = 1.0
) -> Played:
    """Play all rounds; with `towards` -1 everybody wants a low score."""
    n = len(people)
    low, high = game._limits(people.d)
    inside = np.where(people.missing, np.clip(0.0, low, high), people.X)
    game._read(inside, people.coef)
    unit = np.where(people.spread > 0, people.spread, 1.0) * game._scale(people.d)
    sums, times = np.zeros((4, n)), np.zeros(n)
    moved, gained, stopped = np.zeros((3, people.d))
    total = sum(float(people.weight[index].sum()) for index in shuffles)
    for index in shuffles:
        flat = index.ravel()
        crowd = _crowd(game, inside, people, index, towards)
        for at, part in crowd.parts():
            rows = flat[at]
            moves, at_bound, _ = part.equilibrium()
            if not np.isfinite(moves).all():
                raise InputError(
                    "nothing stops an applicant from moving ever further", expected="bounds, or a larger alpha"
                )
            gains = towards * moves * part.pull / game.gain
            score = people.score[rows] + gains.sum(axis=1)
            judged = score > people.cut
            truth, weight = people.truth[rows], people.weight[rows]
            measures = (judged == truth, log_loss(score, truth), judged, np.linalg.norm(moves, axis=1))
            for k, measure in enumerate(measures):
                sums[k] += np.bincount(rows, weights=measure, minlength=n)
            times += np.bincount(rows, minlength=n)
            moved += weight @ np.abs(moves) / unit
            gained += weight @ gains
            stopped += weight @ at_bound
    right, loss, positive, length = sums / times
    return Played(right, loss, positive, length, moved / total, gained / total, stopped / total)


def _crowd(game: ManipulationGame, inside: Floats, people: People, index: NDArray[np.intp], towards: float) -> Crowd:
    """Return the rounds as games in which nobody moves what is missing."""
    game._refuse_many_equilibria(index.shape[1], np.ones(index.shape))
    crowd = game._crowd(inside[index], towards * people.coef, np.ones(index.shape))
    held = people.missing[index.ravel()]
    return replace(crowd, pull=np.where(held, 0.0, crowd.pull)) if held.any() else crowd
