"""Scores of membership: from one model's answers, and from those of shadow models beside them."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError

__all__ = ["Attack", "Floats", "confidence", "likelihood_ratios", "logit_confidence", "score_attack", "smallest_step"]

Floats = NDArray[np.float64]

_TINY: Final = 1e-300
_LEAST_STEP: Final = 1e-12
_PER_ROW_FROM: Final = 32
"""Shadow models on each side of a row from which its own variance is a better guess than the mean of all rows'."""
_LEAST_VARIANCE: Final = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """An attack's score of each row.

    Parameters
    ----------
    name : str
    scores : ndarray of shape (n,)
        Higher where the row looks more like one that the model was trained on.
    by : ndarray of shape (n,), optional
        Each value of it gets a threshold of its own, such as the row's class.
    """

    name: str
    scores: Floats = field(repr=False)
    by: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        scores = np.asarray(self.scores, dtype=np.float64)
        if scores.ndim != 1 or not len(scores):
            raise InputError(f"the scores of {self.name!r} have shape {scores.shape}", expected="one for each row")
        if not np.isfinite(scores).all():
            raise InputError(f"{int((~np.isfinite(scores)).sum()):,} scores of {self.name!r} are not finite")
        if self.by is not None and np.shape(self.by) != scores.shape:
            raise InputError(f"the thresholds of {self.name!r} are by {np.shape(self.by)}", expected=f"{scores.shape}")
        object.__setattr__(self, "scores", scores)


def score_attack(answers: ArrayLike, y: ArrayLike) -> list[Attack]:
    """Score rows by how well the model answers them: what it was trained on, it tends to answer better.

    Parameters
    ----------
    answers : array-like
        Probabilities of shape (n, n_classes); or, for a regression, numbers of shape (n,).
    y : array-like of shape (n,)
        The true answers: class codes from 0 to n_classes - 1, or numbers. A model that gives labels only is attacked by
        giving its labels as probabilities 0 and 1.

    Returns
    -------
    list of Attack
        ``"loss threshold"``, the negative log loss or squared error; for probabilities also ``"loss threshold by
        class"``, the same with a threshold for each class.

    Raises
    ------
    InputError
        For answers and truth that do not fit each other, or values that are no probabilities.

    Notes
    -----
    O(n) time. It cannot tell a row that is easy from one that was learned by heart, so that it finds few members at low
    false-positive rates; `likelihood_ratio_attack` can.

    References
    ----------
    S. Yeom, I. Giacomelli, M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning: Analyzing the Connection to
    Overfitting", CSF 2018. L. Song, P. Mittal, "Systematic Evaluation of Privacy Risks of Machine Learning Models",
    USENIX Security 2021 (thresholds by class).

    Examples
    --------
    >>> from aboveboard.privacy import score_attack
    >>> [attack.scores.round(2).tolist() for attack in score_attack([[0.9, 0.1], [0.5, 0.5]], [0, 1])]
    [[-0.11, -0.69], [-0.11, -0.69]]
    """
    given = np.asarray(answers, dtype=np.float64)
    if given.ndim == 1:
        truth = np.asarray(y, dtype=np.float64)
        if truth.shape != given.shape:
            raise InputError(f"there are {len(given):,} answers and the truth has shape {truth.shape}")
        return [Attack("loss threshold", -np.square(given - truth))]
    right, _ = confidence(given, y)
    scores = np.log(np.maximum(right, _TINY))
    return [Attack("loss threshold", scores), Attack("loss threshold by class", scores, np.asarray(y))]


def confidence(probabilities: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return the probability of each row's true class, and that of the others, which 1 minus it would round off."""
    p, codes = np.asarray(probabilities, dtype=np.float64), np.asarray(y)
    if p.ndim != 2 or p.shape[1] < 2 or codes.shape != p.shape[:1] or not len(p):
        raise InputError(
            f"the probabilities have shape {p.shape} and the true classes {codes.shape}",
            expected="(n, n_classes) and (n,)",
        )
    if codes.dtype.kind not in "iub" or (codes < 0).any() or (codes >= p.shape[1]).any():
        raise InputError("the true classes are no codes", expected=f"whole numbers from 0 to {p.shape[1] - 1}")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("some probabilities lie outside [0, 1], or are missing")
    at = np.arange(len(p)), codes.astype(np.intp)
    right = p[at].copy()
    others = p.copy()
    others[at] = 0.0
    return right, others.sum(axis=1)


def smallest_step(*parts: Floats) -> float:
    """Return half of the smallest probability above 0: what stands in for 0 in a logarithm.

    A forest of 100 trees says 0.01 or 0; half a step keeps 0 and 0.01 as far apart as its other answers are, where an
    arbitrary small number would put them anywhere.
    """
    positive = [part[part > 0] for part in parts]
    least = min((float(part.min()) for part in positive if len(part)), default=1.0)
    return max(least / 2, _LEAST_STEP)


def logit_confidence(right: Floats, others: Floats, step: float) -> Floats:
    """Return the logit of the probability of the true class, which is close to normal over shadow models."""
    logit: Floats = np.log(right + step) - np.log(others + step)
    return logit


def likelihood_ratios(
    target: ArrayLike,
    shadows: ArrayLike,
    inside: ArrayLike,
    *,
    variance: Literal["auto", "row", "pooled"] = "auto",
) -> list[Attack]:
    """Score rows by how much likelier the model's confidence is if it was trained on them than if not.

    Parameters
    ----------
    target : array-like of shape (n,)
        A statistic of the audited model's answer to each row, close to normal over models: the logit of the probability
        of the true class.
    shadows : array-like of shape (k, n)
        The same of each shadow model.
    inside : array-like of bool, shape (k, n)
        Which rows each shadow model was trained on. Every row must be outside of two of them at least.
    variance : {"auto", "row", "pooled"}, default="auto"
        Of the normal distributions: each row's own, or the mean over all rows, which errs less with few shadow models.
        Auto: the row's own where 32 shadow models were trained on it, and 32 were not.

    Returns
    -------
    list of Attack
        ``"likelihood ratio, online"``, log N(target; inside) - log N(target; outside), where every row is inside of two
        shadow models too; and ``"likelihood ratio, offline"``, how many standard deviations the target lies above the
        models that never saw the row, which needs no model trained on it.

    Raises
    ------
    InputError
        For shapes that do not fit, values that are not finite, or rows that too few models were trained without.

    Notes
    -----
    O(k n) time and memory.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", IEEE S&P 2022, sections V and VI.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import likelihood_ratios
    >>> inside = np.array([[True, False], [True, False], [False, True], [False, True]])
    >>> shadows = np.where(inside, [[3.0], [4.0], [3.0], [4.0]], [[0.0], [1.0], [0.0], [1.0]])
    >>> online, offline = likelihood_ratios([3.5, 0.5], shadows, inside)
    >>> online.scores.tolist(), offline.scores.round(2).tolist()
    ([9.0, -9.0], [4.24, 0.0])
    """
    at = np.asarray(target, dtype=np.float64)
    values, was_in = np.asarray(shadows, dtype=np.float64), np.asarray(inside)
    if at.ndim != 1 or values.ndim != 2 or values.shape[1:] != at.shape or was_in.shape != values.shape:
        raise InputError(
            f"target, shadows and inside have shapes {at.shape}, {values.shape} and {was_in.shape}",
            expected="(n,), (k, n) and (k, n)",
        )
    if was_in.dtype != bool:
        raise InputError(f"inside holds {was_in.dtype}", expected="booleans")
    if not (np.isfinite(at).all() and np.isfinite(values).all()):
        raise InputError("target or shadows hold values that are not finite")
    if variance not in ("auto", "row", "pooled"):
        raise InputError(f"the variance is {variance!r}", expected="auto, row or pooled")
    count = was_in.sum(axis=0)
    if (len(values) - count < 2).any():
        raise InputError(
            "some rows are outside of fewer than two shadow models", expected="two or more that never saw the row"
        )
    per_row = variance == "row" or (
        variance == "auto" and bool((np.minimum(count, len(values) - count) >= _PER_ROW_FROM).all())
    )
    mean_out, variance_out = _normal(values, ~was_in, per_row)
    offline = Attack("likelihood ratio, offline", (at - mean_out) / np.sqrt(variance_out))
    if (count < 2).any():
        return [offline]
    mean_in, variance_in = _normal(values, was_in, per_row)
    ratio = _log_density(at, mean_in, variance_in) - _log_density(at, mean_out, variance_out)
    return [Attack("likelihood ratio, online", ratio), offline]


def _normal(values: Floats, chosen: NDArray[np.bool_], per_row: bool) -> tuple[Floats, Floats]:
    """Return mean and variance of each column over the chosen entries."""
    count = chosen.sum(axis=0)
    mean = np.where(chosen, values, 0.0).sum(axis=0) / count
    own = np.where(chosen, np.square(values - mean), 0.0).sum(axis=0) / (count - 1)
    pooled = max(float(own.mean()), _LEAST_STEP)
    return mean, np.maximum(own, _LEAST_VARIANCE * pooled) if per_row else np.full(len(mean), pooled)


def _log_density(at: Floats, mean: Floats, variance: Floats) -> Floats:
    density: Floats = -0.5 * np.square(at - mean) / variance - 0.5 * np.log(variance)
    return density
