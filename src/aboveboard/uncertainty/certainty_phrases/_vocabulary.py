"""Phrases of certainty as distributions of probability."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from aboveboard.core.errors import InputError

__all__ = ["PhraseVocabulary", "normalised"]

Floats = NDArray[np.float64]

_NUMBER: Final = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_PAIR: Final = re.compile(
    rf"beta\s*\(\s*(?:\w+\s*=\s*)?({_NUMBER})\s*,\s*(?:\w+\s*=\s*)?({_NUMBER})\s*\)", re.IGNORECASE
)


class PhraseVocabulary:
    """What each phrase of certainty means: a distribution of probability on [0, 1].

    A phrase is a Beta distribution, so that "likely" can cover 55 to 85 % and "almost certainly" less; or a point,
    where it is taken for one number. Make one with `from_beta`, `from_points`, `from_samples`, `from_ranges` or
    `from_llm`.

    Parameters
    ----------
    phrases : sequence of str
        Distinct, whatever their case and spacing.
    mean : array-like of shape (K,)
        Mean probability of each phrase, between 0 and 1.
    concentration : array-like of shape (K,)
        a + b of its Beta(a, b); infinite for a point.

    Attributes
    ----------
    phrases : tuple of str
    mean, concentration, variance : ndarray of shape (K,)

    Raises
    ------
    aboveboard.core.InputError
        When phrases repeat or are empty, a mean lies outside [0, 1] (on its ends for a Beta), or a concentration is not
        positive.

    Examples
    --------
    >>> from aboveboard.uncertainty import PhraseVocabulary
    >>> words = PhraseVocabulary.from_beta({"likely": (8, 2), "maybe": (5, 5), "unlikely": (2, 8)})
    >>> words.mean.tolist()
    [0.8, 0.5, 0.2]
    >>> words.verbalise([0.9, 0.45])
    ['likely', 'maybe']
    """

    def __init__(self, phrases: Sequence[str], mean: ArrayLike, concentration: ArrayLike) -> None:
        self.phrases = tuple(phrases)
        self.mean = np.asarray(mean, dtype=np.float64)
        self.concentration = np.asarray(concentration, dtype=np.float64)
        _check(self.phrases, self.mean, self.concentration)
        self._code = {normalised(phrase): k for k, phrase in enumerate(self.phrases)}
        if len(self._code) < len(self.phrases):
            twice = Counter(map(normalised, self.phrases)).most_common(1)[0][0]
            raise InputError(f"the phrase {twice!r} occurs more than once", expected="distinct phrases")

    # --- where the distributions come from ----------------------------------------------------------------------------

    @classmethod
    def from_beta(cls, parameters: Mapping[str, tuple[float, float]]) -> PhraseVocabulary:
        """Make one from the parameters (a, b) of each phrase, both above 0.

        Parameters
        ----------
        parameters : mapping of str to (float, float)
        """
        pairs = [_pair(phrase, value) for phrase, value in parameters.items()]
        a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return cls(list(parameters), a / (a + b), a + b)

    @classmethod
    def from_points(cls, probabilities: Mapping[str, float]) -> PhraseVocabulary:
        """Make one in which each phrase stands for one number: the usual dictionary, without spread.

        Parameters
        ----------
        probabilities : mapping of str to float
        """
        values = np.array([float(value) for value in probabilities.values()])
        return cls(list(probabilities), values, np.full(len(values), np.inf))

    @classmethod
    def from_samples(cls, answers: Mapping[str, ArrayLike]) -> PhraseVocabulary:
        """Make one from a survey: the Beta of the same mean and variance as the numbers that people gave.

        Parameters
        ----------
        answers : mapping of str to array-like of float
            Probabilities, two or more for each phrase.

        Raises
        ------
        aboveboard.core.InputError
            Also where all answers to a phrase are the same, or so far apart that no Beta has their variance.
        """
        means, variances = [], []
        for phrase, given in answers.items():
            values = np.asarray(given, dtype=np.float64).ravel()
            if len(values) < 2 or not ((values >= 0) & (values <= 1)).all():
                raise InputError(
                    f"the answers for {str(phrase)!r} are {len(values)} numbers, or not all probabilities",
                    expected="two or more numbers between 0 and 1",
                )
            means.append(values.mean())
            variances.append(values.var())
        return cls._from_moments(list(answers), np.array(means), np.array(variances))

    @classmethod
    def from_ranges(cls, counts: pd.DataFrame | Mapping[str, ArrayLike], edges: ArrayLike) -> PhraseVocabulary:
        """Make one from a survey over ranges: the Beta of the same mean and variance as the mixture of uniforms.

        Parameters
        ----------
        counts : DataFrame (phrases x ranges) or mapping of str to array-like
            How many people chose each range for each phrase.
        edges : array-like of shape (ranges + 1,)
            Increasing, within [0, 1].
        """
        rows: dict[Any, Any] = counts.T.to_dict("list") if isinstance(counts, pd.DataFrame) else dict(counts)
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all() or ends[0] < 0 or ends[-1] > 1:
            raise InputError(f"the edges are {ends.tolist()}", expected="increasing numbers within [0, 1]")
        low, high = ends[:-1], ends[1:]
        means, variances = [], []
        for phrase, given in rows.items():
            chosen = np.asarray(given, dtype=np.float64).ravel()
            if len(chosen) != len(low) or not (np.isfinite(chosen) & (chosen >= 0)).all() or not chosen.sum() > 0:
                raise InputError(
                    f"the counts for {str(phrase)!r} are {chosen.tolist()}",
                    expected=f"{len(low)} counts, not all 0: one for each range",
                )
            share = chosen / chosen.sum()
            mean = share @ (low + high) / 2
            means.append(mean)
            variances.append(share @ (low**2 + low * high + high**2) / 3 - mean**2)
        return cls._from_moments(list(rows), np.array(means), np.array(variances))

    @classmethod
    def from_llm(
        cls, generate: Callable[[str], str], phrases: Sequence[str], *, n_answers: int = 1
    ) -> PhraseVocabulary:
        """Make one by asking a language model for the Beta distribution of each phrase.

        Parameters
        ----------
        generate : callable
            Takes a prompt, returns the model's answer.
        phrases : sequence of str
        n_answers : int
            How often to ask for each phrase; the mean and the variance of the mixture of its answers are matched.

        Raises
        ------
        aboveboard.core.InputError
            When an answer holds no ``Beta(a, b)`` with positive numbers: what it said is quoted.

        Notes
        -----
        What a model says a phrase means is not what readers understand by it. Small models do not keep to the format.
        """
        if not n_answers >= 1:
            raise InputError(f"n_answers is {n_answers}", expected="1 or more")
        means, variances = [], []
        for phrase in phrases:
            pairs = np.array([_asked(generate, phrase) for _ in range(n_answers)])
            a, b = pairs.T
            mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
            means.append(mean.mean())
            variances.append(variance.mean() + mean.var())
        return cls._from_moments(list(phrases), np.array(means), np.array(variances))

    @classmethod
    def _from_moments(cls, phrases: list[str], mean: Floats, variance: Floats) -> PhraseVocabulary:
        with np.errstate(divide="ignore", invalid="ignore"):
            concentration = mean * (1 - mean) / variance - 1
        for phrase, nu in zip(phrases, concentration):
            if not 0 < nu < 1e12:
                raise InputError(
                    f"no Beta distribution has the mean and the variance of what was said of {str(phrase)!r}",
                    expected="answers that differ, and are not all 0 or 1",
                    remedy="Give such a phrase by from_beta, or by from_points",
                )
        return cls(phrases, mean, concentration)

    # --- what they are ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.phrases)

    def __contains__(self, phrase: object) -> bool:
        return isinstance(phrase, str) and normalised(phrase) in self._code

    def __repr__(self) -> str:
        shown = ", ".join(f"{phrase!r}: {mean:.2f}" for phrase, mean in zip(self.phrases[:4], self.mean))
        return f"PhraseVocabulary({len(self)} phrases; {shown}{', ...' if len(self) > 4 else ''})"

    @property
    def variance(self) -> Floats:
        """Variance of each phrase; 0 for a point."""
        spread: Floats = self.mean * (1 - self.mean) / (self.concentration + 1)
        return spread

    @property
    def points(self) -> PhraseVocabulary:
        """The same phrases, each taken for its mean: what a dictionary of numbers keeps of them."""
        return PhraseVocabulary(self.phrases, self.mean, np.full(len(self), np.inf))

    def cdf(self, edges: ArrayLike) -> Floats:
        """Return the probability of each phrase up to and including each edge, of shape (K, edges)."""
        return self._cdf(np.asarray(edges, dtype=np.float64), more=0)

    def weights(self, edges: ArrayLike) -> Floats:
        """Return the probability of each phrase in each bin (left, right], of shape (K, bins); the first holds 0 too.

        The edges run from 0 to 1, so that rows sum to 1.
        """
        return np.diff(_closed(self.cdf(edges)), axis=1)

    def partial_mean(self, edges: ArrayLike) -> Floats:
        """Return ``E[U 1{U in bin}]`` of each phrase, of shape (K, bins); rows sum to the mean.

        Closed form: for Beta(a, b) it is ``a / (a + b)`` times the probability of the bin under Beta(a + 1, b).
        """
        ends = np.asarray(edges, dtype=np.float64)
        return self.mean[:, None] * np.diff(_closed(self._cdf(ends, more=1)), axis=1)

    def codes(self, phrases: Iterable[str], *, fallback: str | None = None) -> NDArray[np.int64]:
        """Return the place of each phrase in the vocabulary.

        Parameters
        ----------
        phrases : iterable of str
        fallback : str, optional
            The phrase of the vocabulary that stands for all that are not in it.

        Raises
        ------
        aboveboard.core.InputError
            For phrases that are not in the vocabulary, with how often each occurs.
        """
        given = [phrases] if isinstance(phrases, str) else list(phrases)
        if fallback is not None and fallback not in self:
            raise InputError(f"the fallback {fallback!r} is not in the vocabulary", expected=", ".join(self.phrases))
        other = -1 if fallback is None else self._code[normalised(fallback)]
        wrong = next((phrase for phrase in given if not isinstance(phrase, str)), None)
        if wrong is not None:
            raise InputError(f"a phrase is {wrong!r}", expected="text in every place")
        found = np.array([self._code.get(normalised(phrase), other) for phrase in given], dtype=np.int64)
        if (found < 0).any():
            unknown = Counter(phrase for phrase, code in zip(given, found) if code < 0).most_common(6)
            told = ", ".join(f"{phrase!r} ({count:,} times)" for phrase, count in unknown)
            raise InputError(
                f"not in the vocabulary: {told}",
                expected=", ".join(self.phrases[:20]),
                remedy="Add them to the vocabulary, or name a fallback phrase that stands for all of them",
            )
        return found

    def verbalise(self, probabilities: ArrayLike) -> list[str]:
        """Return for each probability the phrase whose mean is nearest."""
        values = np.asarray(probabilities, dtype=np.float64).ravel()
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError("the probabilities are not all between 0 and 1", expected="numbers in [0, 1]")
        nearest = np.abs(values[:, None] - self.mean).argmin(axis=1)
        return [self.phrases[k] for k in nearest]

    def to_frame(self) -> pd.DataFrame:
        """Return phrase, mean, standard deviation and the middle 80 % of each, one row per phrase."""
        low, high = (self._quantile(share) for share in (0.1, 0.9))
        return pd.DataFrame(
            {"mean": self.mean, "std": np.sqrt(self.variance), "p10": low, "p90": high},
            index=pd.Index(self.phrases, name="phrase", dtype=object),
        )

    def _cdf(self, edges: Floats, *, more: int) -> Floats:
        """Distribution functions of Beta(a + `more`, b); of a point, a step."""
        finite = np.isfinite(self.concentration)[:, None]
        mean = self.mean[:, None]
        inside, nu = np.where(finite, mean, 0.5), np.where(finite, self.concentration[:, None], 1.0)
        return np.where(finite, beta.cdf(edges, inside * nu + more, (1 - inside) * nu), edges >= mean)

    def _quantile(self, share: float) -> Floats:
        finite = np.isfinite(self.concentration)
        nu = np.where(finite, self.concentration, 1.0)
        inside = np.where(finite, self.mean, 0.5)
        return np.where(finite, beta.ppf(share, inside * nu, (1 - inside) * nu), self.mean)


def normalised(phrase: str) -> str:
    """Return a phrase without case and superfluous spaces, as phrases are compared."""
    return " ".join(phrase.casefold().split())


def _check(phrases: tuple[str, ...], mean: Floats, concentration: Floats) -> None:
    if not phrases or not all(isinstance(phrase, str) and phrase.strip() for phrase in phrases):
        raise InputError("the vocabulary is empty, or a phrase of it is no text", expected="one phrase or more")
    if mean.shape != (len(phrases),) or concentration.shape != (len(phrases),):
        raise InputError(
            f"{len(phrases)} phrases, means of shape {mean.shape} and concentrations of shape {concentration.shape}",
            expected="one mean and one concentration for each phrase",
        )
    for phrase, m, nu in zip(phrases, mean, concentration):
        inside = 0 <= m <= 1 if np.isinf(nu) else 0 < m < 1
        if not inside or not nu > 0:
            raise InputError(
                f"the phrase {phrase!r} has the mean {m:g} and the concentration {nu:g}",
                expected="a mean between 0 and 1 (a Beta reaches neither end) and a positive concentration",
            )


def _pair(phrase: str, value: Any) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in value)
    except (TypeError, ValueError):
        a = b = np.nan
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise InputError(
            f"the parameters of {str(phrase)!r} are {value!r}",
            expected="two finite numbers above 0, the a and b of Beta(a, b)",
            remedy="For certainty write (1e4, 1), for impossibility (1, 1e4)",
        )
    return a, b


def _asked(generate: Callable[[str], str], phrase: str) -> tuple[float, float]:
    answer = generate(
        f"In plain English, a speaker says that something is {phrase!r} to happen or to be true. Which probabilities "
        "does a reader understand by that? Answer with a Beta distribution on probabilities from 0 to 1 and nothing "
        "else, in the form Beta(a, b)."
    )
    match = _PAIR.search(str(answer))
    if match is None:
        raise InputError(
            f"asked for {phrase!r}, the language model answered {str(answer)[:80]!r}",
            expected="an answer with Beta(a, b)",
            remedy="Use a larger model, or give the distributions by from_beta",
        )
    return _pair(phrase, match.groups())


def _closed(cdf: Floats) -> Floats:
    """Let the first bin hold what lies at its left end."""
    cdf = cdf.copy()
    cdf[:, 0] = 0.0
    return cdf
