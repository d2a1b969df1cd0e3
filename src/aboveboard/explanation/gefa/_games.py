"""Shapley values of any game that can be asked about coalitions."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from aboveboard.core.errors import InputError, ModelError
from aboveboard.explanation.gefa._attribution import Attribution
from aboveboard.explanation.gefa._coalitions import (
    Bools,
    Draw,
    Floats,
    Noise,
    draw_by_path,
    draw_by_size,
    every_coalition,
)
from aboveboard.explanation.gefa._estimates import Control, Estimates, estimate, estimate_as_published, exact_values

__all__ = ["Game", "Plan", "Weights", "exact_shapley", "make_plan", "published_gefa", "shapley_from_game"]

Game = Callable[[Bools], ArrayLike]
Weights = Literal["marginal", "score", "published"]

NODES: Final = 11
_MOST_EXACT: Final = 20
_FEWEST: Final = 8
_METHODS: Final[dict[str, str]] = {
    "marginal": "marginal weights",
    "score": "score weights",
    "published": "as published",
}


def shapley_from_game(
    game: Game,
    n: int,
    *,
    n_queries: int = 500,
    weights: Literal["marginal", "score"] = "marginal",
    control: Control = "linear",
    antithetic: bool = True,
    feature_names: Sequence[str] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Attribution:
    """Estimate the Shapley values of a game without bias, with standard errors.

    Parameters
    ----------
    game : callable
        Takes coalitions, an array of bool of shape (m, n): which players are present. Returns m finite numbers.
    n : int
        Players, 2 or more; there may be more of them than queries.
    n_queries : int, default=500
        Coalitions to ask about, besides the full and the empty one: even, 8 or more; 4 to 20 per player is a useful
        range. Where there are no more than that, all are asked about and the values are exact.
    weights : {"marginal", "score"}
        How an answer counts: by the size of its coalition, or by the score function of the presence probability that
        the coalition was drawn with, whose conditional expectation the former is. "score" has infinite variance, and
        is here to be compared with.
    control : {"linear", "size", None}
        What is subtracted to save variance: a linear surrogate fitted on one half of the answers and corrected on the
        other, a function of the coalition's size, or a constant.
    antithetic : bool, default=True
        Whether to ask about each coalition and its complement.
    feature_names : sequence of str, optional
    random_state : int, Generator or None

    Returns
    -------
    Attribution

    Raises
    ------
    InputError
        For fewer than two players, too few or an odd number of queries, or unknown options.
    ModelError
        When the game gives anything but one finite number per coalition.

    Notes
    -----
    **Guarantee.** Each value is unbiased for its player's Shapley value, whatever the game, and the values sum to
    ``v(all) - v(none)``. It assumes that the game is a fixed function. Intervals are approximate: they take the mean
    over coalitions to be normal.

    **What is computed.** The Shapley value is the integral, over t from 0 to 1, of the derivative of the expected
    answer by a player's probability of being present, where all others are present with probability t (Owen, 1972).
    The derivative is an expectation of answers times weights; t can be integrated out of the weights.

    **Cost.** ``n_queries + 2`` answers; O(N n) memory, and O(N n min(N, n)) time for the surrogate.

    References
    ----------
    Y. Cai, T. Ardoin, G. Wunder, "GEFA", ICML 2025. G. Owen, "Multilinear Extensions of Games", Management Science 18,
    1972. The weights without t, the terms of the full and the empty coalition and the cross-fitted surrogate are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.explanation import shapley_from_game
    >>> def everybody_of_the_first_three(z):
    ...     return z[:, :3].all(axis=1)
    >>> attribution = shapley_from_game(everybody_of_the_first_three, 40, n_queries=2000, random_state=0)
    >>> bool(np.all(np.abs(attribution.values[:3] - 1 / 3) < 4 * attribution.stderr[:3]))
    True
    >>> round(float(attribution.values.sum()), 9)
    1.0
    """
    if weights not in ("marginal", "score"):
        raise InputError(f"weights is {weights!r}", expected="'marginal' or 'score'")
    return _played(game, n, n_queries, weights, control, antithetic, feature_names, random_state)


def published_gefa(
    game: Game,
    n: int,
    *,
    n_queries: int = 500,
    feature_names: Sequence[str] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Attribution:
    """Compute what Algorithm 1 of the paper gives, to be compared with.

    Presence probabilities lie on a grid of 11 points, answers count by the score function, and the coalition's size is
    the control, with a slope fitted on the same answers.

    Parameters
    ----------
    game, n, n_queries, feature_names, random_state :
        As for `shapley_from_game`.

    Returns
    -------
    Attribution
        Its values are not the Shapley values, nor do they sum to ``v(all) - v(none)``: the full and the empty coalition
        take no part, so that values lack ``(v(all) - v(none)) / n`` and are ``(n + 1) / (n - 1)`` times as large; the
        grid adds a bias. Its standard errors tell of the drawing alone.

    Raises
    ------
    InputError, ModelError
        As for `shapley_from_game`.

    References
    ----------
    Y. Cai, T. Ardoin, G. Wunder, "GEFA", ICML 2025, Algorithm 1, as its official code has it.

    Examples
    --------
    >>> from aboveboard.explanation import published_gefa
    >>> attribution = published_gefa(lambda z: z[:, :2].sum(axis=1), 30, random_state=0)
    >>> attribution.unbiased
    False
    """
    return _played(game, n, n_queries, "published", "size", True, feature_names, random_state)


def exact_shapley(game: Game, n: int, *, feature_names: Sequence[str] | None = None) -> Attribution:
    """Compute the Shapley values of a game from all its coalitions.

    Parameters
    ----------
    game : callable
        As for `shapley_from_game`; it is asked about all 2^n coalitions at once.
    n : int
        Players: 1 to 20.
    feature_names : sequence of str, optional

    Returns
    -------
    Attribution
        With standard errors of zero.

    Raises
    ------
    InputError
        For more than 20 players.
    ModelError
        As for `shapley_from_game`.

    Notes
    -----
    2^n answers, O(2^n n) time.

    Examples
    --------
    >>> from aboveboard.explanation import exact_shapley
    >>> exact_shapley(lambda z: z.all(axis=1), 4).values
    array([0.25, 0.25, 0.25, 0.25])
    """
    if not 1 <= n <= _MOST_EXACT:
        raise InputError(f"n is {n!r}", expected=f"1 to {_MOST_EXACT} players", remedy="Use shapley_from_game for more")
    names = _names(feature_names, n)
    answers = _answers(game, every_coalition(n))
    return Attribution(
        values=exact_values(answers[:, None], n)[0],
        stderr=np.zeros(n),
        base_value=float(answers[0]),
        full_value=float(answers[-1]),
        feature_names=names,
        n_queries=len(answers),
        dof=np.inf,
        method="exact enumeration",
        unbiased=True,
    )


def _played(
    game: Game,
    n: int,
    n_queries: int,
    weights: Weights,
    control: Control,
    antithetic: bool,
    feature_names: Sequence[str] | None,
    random_state: int | np.random.Generator | None,
) -> Attribution:
    plan = make_plan(n, n_queries, weights, control, antithetic, np.random.default_rng(random_state))
    names = _names(feature_names, n)
    answers = _answers(game, plan.asked)[:, None]
    found = plan.estimates(answers)
    return Attribution(
        values=found.values[0],
        stderr=found.stderr[0],
        base_value=float(answers[0, 0]),
        full_value=float(answers[-1, 0]),
        feature_names=names,
        n_queries=len(answers),
        dof=plan.dof,
        method=plan.method,
        unbiased=plan.unbiased,
    )


class Plan:
    """What to ask about, and how to make estimates of the answers.

    Attributes
    ----------
    asked : ndarray of bool, shape (N + 2, n)
        The empty coalition first, the full one last.
    method : str
    unbiased : bool
    dof : float
    """

    def __init__(self, n: int, draw: Draw | None, weights: Weights, control: Control, *, smoothed: bool) -> None:
        self._n, self._draw, self._weights, self._control = n, draw, weights, control
        if draw is None:
            self.asked, self.method, self.dof = every_coalition(n), "exact enumeration", np.inf
        else:
            ends = np.zeros((1, n), dtype=bool)
            self.asked = np.concatenate([ends, draw.present, ~ends])
            self.method, self.dof = _METHODS[weights], float(np.count_nonzero(draw.fold >= 0) - 2)
        self.unbiased = weights != "published" and not smoothed

    def estimates(self, answers: Floats) -> Estimates:
        """Return the estimates of several games from their answers, shape (N + 2, games)."""
        if self._draw is None:
            values = exact_values(answers, self._n)
            return Estimates(values, np.zeros_like(values))
        if self._weights == "published":
            return estimate_as_published(self._draw, answers[1:-1])
        return estimate(self._draw, answers[1:-1], answers[0], answers[-1], self._control)


def make_plan(
    n: int,
    n_queries: int,
    weights: Weights,
    control: Control,
    antithetic: bool,
    rng: np.random.Generator,
    noise: Noise | None = None,
) -> Plan:
    """Draw the coalitions, or take all of them where there are no more than may be asked about."""
    refuse_options(n_queries, weights, control)
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 2:
        raise InputError(f"there are {n!r} features", expected="2 or more")
    paired = antithetic or weights == "published"
    if weights == "marginal" and noise is None and n <= _MOST_EXACT and 2**n - 2 <= n_queries:
        draw = None
    elif weights == "marginal":
        draw = draw_by_size(n, n_queries, rng, paired=paired, noise=noise)
    else:
        nodes = NODES if weights == "published" else None
        draw = draw_by_path(n, n_queries, rng, paired=paired, noise=noise, nodes=nodes)
    return Plan(n, draw, weights, control, smoothed=noise is not None)


def refuse_options(n_queries: int, weights: str, control: str | None) -> None:
    if isinstance(n_queries, bool) or not hasattr(n_queries, "__index__") or n_queries < _FEWEST or n_queries % 2:
        raise InputError(f"n_queries is {n_queries!r}", expected=f"an even whole number, {_FEWEST} or more")
    if weights not in get_args(Weights):
        raise InputError(f"weights is {weights!r}", expected=", ".join(map(repr, get_args(Weights))))
    if control not in ("linear", "size", None):
        raise InputError(f"control is {control!r}", expected="'linear', 'size' or None")


def _names(given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"x{i}" for i in range(n))
    names = tuple(map(str, given))
    if len(names) != n:
        raise InputError(f"there are {len(names)} feature names for {n} features", expected="one for each")
    return names


def _answers(game: Game, asked: Bools) -> Floats:
    answers: Any = np.asarray(game(asked))
    if answers.shape != (len(asked),):
        raise ModelError(f"the game gave an answer of shape {answers.shape} for {len(asked)} coalitions")
    answers = answers.astype(np.float64)
    if not np.isfinite(answers).all():
        raise ModelError(f"the game gave {int((~np.isfinite(answers)).sum())} answers that are not finite")
    return np.asarray(answers)
