"""Rounds: applicants who play one game, drawn from rows; and what a score is worth in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.core import InputError

__all__ = [
    "EquilibriumPerformance",
    "Rounds",
    "drawn_rounds",
    "log_loss",
    "log_loss_slope",
    "performance_at_equilibrium",
    "shuffled_rounds",
]

Rounds = dict[int, NDArray[np.intp]]


@dataclass(frozen=True)
class EquilibriumPerformance:
    """What a linear score is worth before and after everybody polishes his features.

    Attributes
    ----------
    clean_accuracy, clean_log_loss : float
        On true features, of the same applicants.
    accuracy, log_loss : float
        On what is reported in equilibrium.
    displacement : float
        How far an applicant moves, on average, in the units of the game's costs.
    nash_gap : float
        The largest over all rounds.
    n_rounds : int
    """

    clean_accuracy: float
    clean_log_loss: float
    accuracy: float
    log_loss: float
    displacement: float
    nash_gap: float
    n_rounds: int


def performance_at_equilibrium(
    coef: ArrayLike,
    intercept: float,
    X: ArrayLike,
    y: ArrayLike,
    *,
    game: ManipulationGame | None = None,
    n_agents: Any = 8,
    n_rounds: int = 100,
    noise: float = 0.0,
    random_state: Any = None,
) -> EquilibriumPerformance:
    """Return what the score ``X coef + intercept`` (log-odds of class 1) is worth when applicants game it together.

    Parameters
    ----------
    coef : array-like of shape (d,)
    intercept : float
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        0 or 1.
    game : ManipulationGame, optional
        Default ``ManipulationGame()``.
    n_agents : int or frozen SciPy distribution
        How many applicants meet in a round.
    n_rounds : int
        Each draws its applicants from the rows, without replacement.
    noise : float at or above 0
        Applicants decide on features that are off by a normal error of this standard deviation (in units of cost), and
        add to their true ones what they decided on: how much hangs on everybody knowing everything. Where features have
        no bounds, and the externality is no callable, nothing does.
    random_state : int, Generator or None

    Returns
    -------
    EquilibriumPerformance

    Notes
    -----
    O(n_rounds n_agents d log d).

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import ManipulationGame, performance_at_equilibrium
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> game = ManipulationGame(alpha=0.1, beta=0.05)
    >>> found = performance_at_equilibrium([2.0], 0.0, X, X[:, 0] > 0, game=game, random_state=0)
    >>> found.accuracy < found.clean_accuracy
    True
    """
    game = ManipulationGame() if game is None else game
    rows, w = game._read(X, coef)
    label = np.asarray(y)
    if rows.ndim != 2 or label.shape != rows.shape[:1] or not np.isin(label, (0, 1)).all():
        raise InputError(f"X of shape {rows.shape} and y of shape {label.shape}", expected="(n, d), and n of 0 and 1")
    if not (isinstance(noise, int | float) and 0 <= noise < np.inf):
        raise InputError(f"noise is {noise!r}", expected="a standard deviation, 0 or more")
    rng = np.random.default_rng(random_state)
    rounds = drawn_rounds(len(rows), n_agents, n_rounds, rng)
    before, after, shares, moved, gap = [], [], [], [], 0.0
    for n, index in rounds.items():
        true = rows[index]
        believed = _clipped(true + noise * rng.normal(size=true.shape) / game._scale(len(w)), true, game)
        found = game.equilibrium(believed, w, intercept)
        reported = _clipped(true + (found.X_reported - believed), true, game) if noise else found.X_reported
        before.append((true @ w + intercept).ravel())
        after.append((reported @ w + intercept).ravel())
        shares.append(np.full(index.size, 1.0 / (n * n_rounds)))
        moved.append(found.displacement.ravel())
        gap = max(gap, float(found.nash_gap.max()))
    truth = np.concatenate([label[index].ravel() for index in rounds.values()]).astype(np.float64)
    share, clean, gamed = np.concatenate(shares), np.concatenate(before), np.concatenate(after)
    return EquilibriumPerformance(
        clean_accuracy=float(share @ ((clean > 0) == truth)),
        clean_log_loss=float(share @ log_loss(clean, truth)),
        accuracy=float(share @ ((gamed > 0) == truth)),
        log_loss=float(share @ log_loss(gamed, truth)),
        displacement=float(share @ np.concatenate(moved)),
        nash_gap=gap,
        n_rounds=n_rounds,
    )


def log_loss(score: Floats, truth: Floats) -> Floats:
    """Return the log loss of each log-odds."""
    return np.logaddexp(0.0, score) - truth * score


def log_loss_slope(score: Floats, truth: Floats) -> Floats:
    """Return the derivative of `log_loss` by the score."""
    return np.asarray(expit(score) - truth)


def drawn_rounds(n_rows: int, n_agents: Any, n_rounds: int, rng: np.random.Generator) -> Rounds:
    """Return rows for `n_rounds` rounds, by the number of applicants: arrays of shape (rounds, n)."""
    if not isinstance(n_rounds, int | np.integer) or n_rounds < 1:
        raise InputError(f"n_rounds is {n_rounds!r}", expected="a whole number, 1 or more")
    sizes = _sizes(n_agents, n_rounds, n_rows, rng)
    return {
        int(n): np.stack([rng.choice(n_rows, int(n), replace=False) for _ in range(count)])
        for n, count in zip(*np.unique(sizes, return_counts=True), strict=True)
    }


def shuffled_rounds(n_rows: int, n_agents: Any, n_shuffles: int, rng: np.random.Generator) -> Rounds:
    """Return the rows, shuffled and cut into rounds, `n_shuffles` times; rows left over in a shuffle take no part."""
    cut: dict[int, list[NDArray[np.intp]]] = {}
    for _ in range(n_shuffles):
        sizes = _sizes(n_agents, n_rows, n_rows, rng)
        ends = np.cumsum(sizes)
        order = rng.permutation(n_rows)
        for n, end in zip(sizes[ends <= n_rows], ends[ends <= n_rows], strict=True):
            cut.setdefault(int(n), []).append(order[end - n : end])
    return {n: np.stack(rows) for n, rows in sorted(cut.items())}


def _sizes(n_agents: Any, count: int, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the number of applicants in each of `count` rounds; a draw below 1 is a round that does not happen."""
    if hasattr(n_agents, "rvs"):
        drawn = np.asarray(n_agents.rvs(size=count, random_state=rng))
        for _ in range(100):
            absent = drawn < 1
            if not absent.any():
                break
            drawn[absent] = n_agents.rvs(size=int(absent.sum()), random_state=rng)
    elif isinstance(n_agents, int | np.integer) and not isinstance(n_agents, bool):
        drawn = np.full(count, n_agents)
    else:
        raise InputError(
            f"n_agents is {n_agents!r}",
            expected="a whole number, or a frozen distribution such as scipy.stats.poisson(8)",
        )
    if not (np.isfinite(drawn).all() and (drawn == np.round(drawn)).all() and (drawn >= 1).all()):
        raise InputError(f"n_agents gives rounds of {drawn.min():g} applicants", expected="whole numbers, 1 or more")
    if drawn.size and drawn.max() > n_rows:
        raise InputError(
            f"a round of {int(drawn.max()):,} applicants, and {n_rows:,} rows", expected="as many rows at least"
        )
    return drawn.astype(np.intp)


def _clipped(features: Floats, true: Floats, game: ManipulationGame) -> Floats:
    """Return features within the bounds; those that cannot be moved are left as they were."""
    low, high = game._limits(features.shape[-1])
    return np.where(game._movable(features.shape[-1]), np.clip(features, low, high), true)
