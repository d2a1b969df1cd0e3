"""Was this row in the training data? The relative membership inference attack, from probabilities alone."""

import numpy as np
from numpy.typing import ArrayLike

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._curvature import Floats

__all__ = ["rmia_scores"]


def rmia_scores(
    target: ArrayLike,
    reference: ArrayLike,
    population_target: ArrayLike,
    population_reference: ArrayLike,
    *,
    gamma: float = 1.0,
) -> Floats:
    """Return how strongly a model remembers each row, beside rows that it never saw.

    A row x scores the share of population rows z for which [p(x | model) / p(x)] / [p(z | model) / p(z)] >= gamma,
    where p(.) without the model is the mean over reference models. Rows that were trained on score high; after an
    erasure that worked they score as others do.

    Parameters
    ----------
    target : array-like of shape (n,)
        Probability that the model gives to each row's true outcome, in (0, 1].
    reference : array-like of shape (r, n) or (n,)
        The same by r reference models; about half of them should have seen the row (RMIA's online form).
    population_target, population_reference : array-like of shape (m,) and (r, m) or (m,)
        The same for m population rows that none of the models was fitted to.
    gamma : float > 0, default 1
        How many times more likely than a population row a row must be to count.

    Returns
    -------
    ndarray of float in [0, 1], shape (n,)

    Raises
    ------
    InputError
        For probabilities outside (0, 1], shapes that do not fit, or a gamma that is not positive.

    Notes
    -----
    O((n + m) log m) time.

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", ICML 2024.

    Examples
    --------
    >>> from aboveboard.unlearning import rmia_scores
    >>> rmia_scores([0.9, 0.5], [0.6, 0.5], [0.5, 0.6, 0.7, 0.8], [0.5, 0.5, 0.5, 0.5]).tolist()
    [0.75, 0.25]
    """
    if not (np.isfinite(gamma) and gamma > 0):
        raise InputError(f"gamma is {gamma!r}", expected="a number above 0")
    rows = _ratio(target, reference, "target", "reference")
    population = np.sort(_ratio(population_target, population_reference, "population_target", "population_reference"))
    return np.searchsorted(population, rows / gamma, side="right") / len(population)


def _ratio(target: ArrayLike, reference: ArrayLike, name: str, reference_name: str) -> Floats:
    found = np.asarray(target, dtype=np.float64)
    others = np.atleast_2d(np.asarray(reference, dtype=np.float64))
    if found.ndim != 1 or not len(found) or others.ndim != 2 or others.shape[1:] != found.shape or not len(others):
        raise InputError(
            f"{name} has shape {found.shape} and {reference_name} {np.shape(reference)}",
            expected="one probability per row, and one per reference model and row",
        )
    for values, which in ((found, name), (others, reference_name)):
        if not ((values > 0) & (values <= 1)).all():
            raise InputError(f"{which} holds values that are no probabilities above 0", expected="numbers in (0, 1]")
    ratio: Floats = found / others.mean(axis=0)
    return ratio
