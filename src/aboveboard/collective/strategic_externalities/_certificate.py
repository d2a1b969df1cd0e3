"""How many rounds must be seen until the loss on them says what the loss will be: a certificate."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from aboveboard import __version__
from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.core import Assumption, Certificate, InputError, Reference

__all__ = ["PAPER", "deviation", "pac_certificate", "rounds_needed"]

PAPER: Final = Reference(
    title="Strategic Classification with Externalities",
    authors="S. Hossain, E. Micha, Y. Chen, A. Procaccia",
    venue="ICLR 2025",
    year=2025,
    url="https://arxiv.org/abs/2410.08032",
)


def deviation(m: int, *, dimension: int, ball: float, steepness: float, largest: float, delta: float) -> float:
    """Return eps: with probability 1 - delta over m rounds, no score in the ball has a mean loss on them that differs
    by more than eps from its expectation.

    Parameters
    ----------
    m : int
    dimension : int
        Of the ball of scores: weights and intercept.
    ball : float
        Its radius.
    steepness : float
        By how much the loss of a round changes at most, per unit of the score's parameters.
    largest : float
        The largest loss.
    delta : float in (0, 1)

    Notes
    -----
    A cover of the ball with balls of radius 1 / m, Hoeffding's inequality for each centre, and a union bound::

        2 steepness / m + largest sqrt((dimension log(1 + 2 ball m) + log(2 / delta)) / (2 m))
    """
    cover = dimension * np.log1p(2.0 * ball * m)
    return float(2.0 * steepness / m + largest * np.sqrt((cover + np.log(2.0 / delta)) / (2.0 * m)))


def rounds_needed(epsilon: float, *, delta: float, **bound: float) -> int:
    """Return the fewest rounds for which `deviation` is at most `epsilon`; it falls with m from some m on."""
    if not (epsilon > 0 and 0 < delta < 1):
        raise InputError(f"epsilon is {epsilon!r} and delta {delta!r}", expected="epsilon above 0, and delta in (0, 1)")
    few, many = 1, 2
    while deviation(many, delta=delta, **bound) > epsilon:  # type: ignore[arg-type]
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        enough = deviation(middle, delta=delta, **bound) <= epsilon  # type: ignore[arg-type]
        few, many = (few, middle) if enough else (middle, many)
    return many


def pac_certificate(
    game: ManipulationGame,
    *,
    sizes: Sequence[int],
    n_rounds: int,
    n_shuffles: int,
    radius: float,
    dimension: int,
    reg: float,
    rarer: float,
    delta: float = 0.05,
    epsilon: float = 0.1,
) -> Certificate:
    """Return what `n_rounds` rounds say about the expected loss of any score in the ball that training can reach.

    Parameters
    ----------
    sizes : sequence of int
        How many applicants rounds had.
    radius : float
        Of a ball around 0 that holds all true features.
    rarer : float
        Share of the rarer class.
    """
    largest_weight = float(np.sqrt(np.log(2.0) / reg))  # a longer one loses more by itself than no score at all
    known = not callable(game.externality)
    mu = min((game.strong_convexity(n) for n in sizes), default=0.0) if known else 0.0
    reach = np.inf
    if mu > 0:
        reach = radius + game.gain * largest_weight / mu
    if game._bounded:
        low, high = game._limits(dimension)
        reach = min(reach, float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high)))))
    usable = mu > 0 and bool(np.isfinite(reach))
    parameters: dict[str, float | int | None] = {
        "rounds": n_rounds,
        "delta": delta,
        "strong_convexity": mu if known else None,
        "largest_weight": largest_weight,
        "deviation": None,
        "epsilon": epsilon,
        "rounds_needed": None,
    }
    guarantee = "No bound: the costs are not known to be strictly convex, or reports are not bounded."
    if usable:
        intercept = largest_weight * reach + float(np.log(2.0)) / rarer
        ball = float(np.hypot(largest_weight, intercept))
        bound = {
            "dimension": dimension + 1,
            "ball": ball,
            "steepness": float(np.hypot(reach, 1.0)) + largest_weight * game.gain / mu,
            "largest": float(np.log1p(np.exp(min(largest_weight * reach + intercept, 700.0)))),
        }
        eps = deviation(n_rounds, delta=delta / n_shuffles, **bound)  # type: ignore[arg-type]
        needed = rounds_needed(epsilon, delta=delta / n_shuffles, **bound)
        parameters |= {"deviation": eps, "rounds_needed": needed, "largest_loss": bound["largest"]}
        guarantee = (
            f"With probability {1 - delta:g} over the training rounds, for every score with weights of length up to "
            f"{largest_weight:.3g} and an intercept up to {intercept:.3g}, mean log loss in equilibrium on them and "
            f"expected log loss in equilibrium differ by at most {eps:.3g}"
            + (", which says nothing here" if eps >= np.log(2.0) else "")
            + f"; for {epsilon:g}, {needed:,} rounds are needed."
        )
    return Certificate(
        kind="uniform convergence at equilibrium",
        guarantee=guarantee,
        parameters=parameters,
        assumptions=(
            Assumption("Applicants know the score, all costs and each other's features, and report the equilibrium."),
            Assumption("Rounds are drawn independently, and applicants within a round too."),
            Assumption("Costs, externality and bounds are those of the game."),
            Assumption(
                "The constants are reconstructed: they follow from the proof idea of the paper (a Lipschitz "
                "equilibrium, a cover, Hoeffding's inequality) and not from its text. Read them as orders of magnitude."
            ),
        ),
        confidence=1 - delta,
        does_not_cover=(
            "applicants who know less, or pay otherwise",
            "improvement: a move that raises the chance of a good outcome itself",
            "how close the fitted score is to the best one: the objective is not convex",
        ),
        library_version=__version__,
        reference=PAPER,
    )
