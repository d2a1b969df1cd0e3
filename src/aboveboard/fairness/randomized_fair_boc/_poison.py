"""Poison a sample on purpose, within a stated total variation distance."""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError
from aboveboard.fairness.randomized_fair_boc._optimum import Constraint, checked_constraint

__all__ = ["Poisoned", "poison"]

Strategy = Literal["flip", "inject", "subset_sum"]


class Poisoned(NamedTuple):
    """A poisoned sample.

    `tv` bounds the total variation distance between the empirical distributions of (features, group, outcome) before
    and after.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any]
    tv: float


def poison(
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    rate: float,
    strategy: Strategy = "flip",
    *,
    constraint: Constraint = "demographic_parity",
    random_state: int | None = None,
) -> Poisoned:
    """Return a poisoned copy of a sample, to see what it does to a fair classifier.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
    y : array-like of {0, 1}, shape (n,)
    groups : array-like, shape (n,)
        One column; no missing values.
    rate : float in [0, 1)
        Share of the poisoned sample that the adversary controls.
    strategy : {"flip", "inject", "subset_sum"}
        ``"flip"`` turns the outcomes of random rows of the smallest group, then of others. ``"inject"`` adds copies of
        random rows of the smallest group with the other outcome. ``"subset_sum"`` moves rows of the largest group to
        the smallest, as many as the budget allows while the sizes of all groups have no common divisor; then whole
        people can be accepted at equal rates only if all are, or none. For equal opportunity (predictive equality) it
        moves positives (negatives) and looks at their numbers.
    constraint : str
        What ``"subset_sum"`` is aimed at.
    random_state : int, optional

    Returns
    -------
    Poisoned
        X, y, groups and the bound ``tv <= rate``.

    Raises
    ------
    InputError
        For a rate outside [0, 1), an unknown strategy, or lengths that differ.

    Notes
    -----
    O(n) time.
    """
    checked_constraint(constraint)
    outcome, group = np.asarray(y).copy(), np.asarray(groups).copy()
    n = len(outcome)
    if not 0 <= rate < 1:
        raise InputError(f"rate is {rate!r}", expected="a share in [0, 1)")
    if group.shape != (n,) or len(X) != n:
        raise InputError(f"X, y and groups have {len(X)}, {n} and {len(group)} rows", expected="equal numbers")
    if not np.isin(outcome, (0, 1)).all():
        raise InputError("y holds other values than 0 and 1", expected="1 for the positive outcome, 0 for the other")
    rng = np.random.default_rng(random_state)
    if strategy == "flip":
        return _flip(X, outcome, group, int(rate * n), rng)
    if strategy == "inject":
        return _inject(X, outcome, group, int(rate * n / (1 - rate)), rng)
    if strategy == "subset_sum":
        return _subset_sum(X, outcome, group, int(rate * n), constraint, rng)
    raise InputError(f"strategy is {strategy!r}", expected="one of " + ", ".join(map(repr, get_args(Strategy))))


def _flip(X: Any, outcome: NDArray[Any], group: NDArray[Any], budget: int, rng: np.random.Generator) -> Poisoned:
    order = rng.permutation(len(outcome))
    smallest = _by_size(group)[0]
    chosen = order[np.argsort(group[order] != smallest, kind="stable")][:budget]
    outcome[chosen] = 1 - outcome[chosen]
    return Poisoned(X, outcome, group, budget / len(outcome))


def _inject(X: Any, outcome: NDArray[Any], group: NDArray[Any], budget: int, rng: np.random.Generator) -> Poisoned:
    from sklearn.utils import _safe_indexing

    copied = rng.choice(np.flatnonzero(group == _by_size(group)[0]), size=budget)
    rows = np.concatenate([np.arange(len(outcome)), copied])
    more = np.concatenate([outcome, 1 - outcome[copied]])
    return Poisoned(_safe_indexing(X, rows), more, group[rows], budget / len(rows))


def _subset_sum(
    X: Any, outcome: NDArray[Any], group: NDArray[Any], budget: int, constraint: Constraint, rng: np.random.Generator
) -> Poisoned:
    counted = {"equal_opportunity": outcome == 1, "predictive_equality": outcome == 0}.get(
        constraint, np.ones(len(outcome), dtype=bool)
    )
    names = _by_size(group[counted])
    sizes = np.array([int((counted & (group == name)).sum()) for name in names])
    movable = rng.permutation(np.flatnonzero(counted & (group == names[-1])))
    for moved in range(min(budget, len(movable) - 1), 0, -1):
        after = sizes.copy()
        after[-1] -= moved
        after[0] += moved
        if len(names) > 1 and np.gcd.reduce(after) == 1:
            group[movable[:moved]] = names[0]
            return Poisoned(X, outcome, group, moved / len(outcome))
    return Poisoned(X, outcome, group, 0.0)


def _by_size(group: NDArray[Any]) -> NDArray[Any]:
    names, counts = np.unique(group, return_counts=True)
    return names[np.argsort(counts, kind="stable")]
