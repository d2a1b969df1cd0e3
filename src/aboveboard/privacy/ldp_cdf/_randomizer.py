"""The side of the person who answers: one threshold, one bit, and a lie every so often."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import Certificate, InputError
from aboveboard.privacy._noise import noise_source
from aboveboard.privacy.ldp_cdf._certificate import local_certificate
from aboveboard.privacy.ldp_cdf._input import (
    Floats,
    checked_bounds,
    checked_epsilon,
    checked_grid,
    lie_probability,
)

__all__ = ["CurrentStatusRandomizer"]

_SUM_TO_ONE: Final = 1e-9


class CurrentStatusRandomizer:
    """Privatise a number as one bit: is it at most a random threshold? With a lie every so often.

    Runs where the number is, on the device or at the desk of whoever asks. What leaves it is the threshold and the
    answer; `LDPCurrentStatusCDF` estimates from those.

    Parameters
    ----------
    epsilon : float, at least 1e-6, default=1.0
        Of local differential privacy. The answer is the opposite of the truth with probability 1 / (1 + e^epsilon).
    bounds : pair of float, default=(0.0, 1.0)
        The least and the largest value there can be, in the unit of the values; public, not taken from the data.
    grid : array-like of shape (k,), optional
        Thresholds of interest, ascending, such as a poverty line. Default: thresholds from the whole range.
    probs : array-like of shape (k,), optional
        How often each threshold of the grid is drawn. Default: all alike.
    quantile : callable, optional
        Quantile function of the thresholds' distribution: takes an array within (0, 1), gives thresholds within the
        bounds. Default: all thresholds alike. Little is gained by drawing thresholds like the values.
    clip : bool, default=False
        Move values beyond the bounds to them, instead of refusing.
    random_state : int, numpy.random.Generator or None
        None draws from the operating system's cryptographic generator. A seed is for tests: whoever knows it knows who
        lied. Never one that made simulated values too, on which thresholds would then depend.

    Raises
    ------
    InputError
        For an epsilon too small or infinite, bounds or a grid out of order, probabilities that do not sum to one.

    Guarantee
    ---------
    One report is epsilon-locally differentially private, exactly: the probability of a lie is rounded up to a multiple
    of 2^-52, the resolution of the generator, and there is no other arithmetic. Assumes that each person reports once
    (epsilons add up) and that thresholds are drawn without looking at values.

    Notes
    -----
    Cost: O(n), O(n log k) with a grid; about 60 ns for each person.

    Examples
    --------
    >>> from aboveboard.privacy import CurrentStatusRandomizer
    >>> randomizer = CurrentStatusRandomizer(1.0, bounds=(0, 120), random_state=0)
    >>> threshold, answer = randomizer.report(37.5)
    >>> round(threshold, 2), answer
    (76.44, 1)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Sequence[float] = (0.0, 1.0),
        grid: ArrayLike | None = None,
        probs: ArrayLike | None = None,
        quantile: Callable[[Floats], Any] | None = None,
        clip: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = checked_epsilon(epsilon)
        if self.epsilon == np.inf:
            raise InputError("epsilon is infinite", expected="a finite number; otherwise nothing is privatised")
        self.bounds = checked_bounds(bounds)
        self.grid = None if grid is None else checked_grid(grid, self.bounds)
        if quantile is not None and grid is not None:
            raise InputError("both grid and quantile are given", expected="one of them, or neither")
        self.probs = self._checked_probs(probs)
        self.quantile = quantile
        self.clip = clip
        self._lie = lie_probability(self.epsilon)
        self._noise = noise_source(random_state)

    def report(self, x: ArrayLike) -> tuple[Any, Any]:
        """Draw a threshold for each value and answer it.

        Parameters
        ----------
        x : float, or array-like of shape (n,)
            One person's value, or one for each of n people; never two of one person.

        Returns
        -------
        t : float, or ndarray of shape (n,)
            Thresholds.
        delta : int, or ndarray of uint8, shape (n,)
            1 for "at most the threshold", 0 for "above it".

        Raises
        ------
        InputError
            For values that are missing, or beyond the bounds unless `clip`.
        """
        values = self._checked_values(x)
        t = self.thresholds(values.size).reshape(values.shape)
        delta = self._answers(values, t)
        return (float(t), int(delta)) if values.ndim == 0 else (t, delta)

    def thresholds(self, n: int) -> Floats:
        """Draw thresholds, for whoever sends them out before values are known.

        Returns
        -------
        ndarray of float, shape (n,)
        """
        draws = self._noise.uniform(int(n))
        if self.grid is not None and self.probs is not None:
            return self.grid[np.searchsorted(np.cumsum(self.probs)[:-1], draws, side="right")]
        low, high = self.bounds
        if self.quantile is None:
            return low + (high - low) * draws
        t = np.asarray(self.quantile(draws), dtype=np.float64)
        if t.shape != draws.shape or not ((t >= low) & (t <= high)).all():
            raise InputError(
                "quantile gave thresholds of another number, or beyond the bounds",
                expected=f"as many as it was given, from {low:g} to {high:g}",
            )
        return t

    def respond(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.uint8]:
        """Answer thresholds that were drawn before.

        Parameters
        ----------
        x, t : float, or array-like of shape (n,)
            Values and thresholds. Answering twice, or a threshold chosen for the value, breaks the guarantee.

        Returns
        -------
        ndarray of uint8, shape (n,)
            1 for "at most the threshold", 0 for "above it"; a lie with probability 1 / (1 + e^epsilon).
        """
        values, asked = self._checked_values(x), np.asarray(t, dtype=np.float64)
        if values.shape != asked.shape:
            raise InputError(f"there are values of shape {values.shape} and thresholds of shape {asked.shape}")
        if not np.isfinite(asked).all():
            raise InputError("a threshold is missing or infinite")
        return self._answers(values, asked)

    def certificate(self) -> Certificate:
        """Return what one report promises the person behind it."""
        return local_certificate(self.epsilon, self._lie, self._noise.name)

    def _answers(self, x: Floats, t: Floats) -> NDArray[np.uint8]:
        lies = self._noise.uniform(x.shape) < self._lie
        answers: NDArray[np.uint8] = ((x <= t) ^ lies).astype(np.uint8)
        return answers

    def _checked_values(self, x: ArrayLike) -> Floats:
        values: Floats = np.asarray(x, dtype=np.float64)
        if values.ndim > 1:
            raise InputError(f"values have shape {values.shape}", expected="one number, or one for each person")
        if np.isnan(values).any():
            raise InputError("a value is missing", remedy="Leave out people without a value, if that may be known")
        low, high = self.bounds
        if self.clip:
            return np.clip(values, low, high)
        if not ((values >= low) & (values <= high)).all():
            raise InputError(
                f"a value lies beyond the bounds, {low:g} to {high:g}",
                remedy="Widen the public bounds, or pass clip=True to move such values to them",
            )
        return values

    def _checked_probs(self, probs: ArrayLike | None) -> Floats | None:
        if self.grid is None:
            if probs is not None:
                raise InputError("probs is given without a grid")
            return None
        if probs is None:
            return np.full(len(self.grid), 1 / len(self.grid))
        shares = np.asarray(probs, dtype=np.float64)
        if shares.shape != self.grid.shape or not (shares > 0).all() or abs(shares.sum() - 1) > _SUM_TO_ONE:
            raise InputError(f"probs is {probs!r}", expected=f"{len(self.grid)} positive numbers that sum to one")
        return shares
