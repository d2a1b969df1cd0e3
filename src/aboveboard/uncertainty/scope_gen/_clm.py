"""Conformal language modelling, the method that SCOPE-Gen is held against: every draft of every item is judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.uncertainty.scope_gen._items import GeneratedItem
from aboveboard.uncertainty.scope_gen._scope_gen import PredictionSet
from aboveboard.uncertainty.scope_gen._stages import SCORES, Score

__all__ = ["ConformalLanguageModel"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_REFERENCE: Final = Reference(
    title="Conformal Language Modeling",
    authors="V. Quach, A. Fisch, T. Schuster, A. Yala, J. H. Sohn, T. S. Jaakkola, R. Barzilay",
    venue="ICLR",
    year=2024,
    url="https://arxiv.org/abs/2306.10193",
)


class ConformalLanguageModel(BaseEstimator):  # type: ignore[misc]
    """Sets of drafts by three thresholds (too similar, too poor, enough), chosen by testing on items judged in full.

    The baseline of `SCOPEGen`: it asks about every draft of every calibration item.

    Parameters
    ----------
    alpha : float, default=0.3
        In (0, 1): the probability, at most, that a set holds no admissible draft, over calibration and prompt.
    failure : float, default=0.05
        In (0, alpha): the part of `alpha` that is spent on calibrations that went wrong. A set then misses with
        probability (alpha - failure) / (1 - failure) at most, for all but a share `failure` of calibrations.
    score : {"count", "sum", "max"}, default="sum"
        Of the accepted drafts, when to stop.
    max_samples : int, default=20
    n_levels : int, default=10
        Candidates per threshold, at quantiles of the items of the first half.
    use_similarity : bool, default=True
        Whether drafts too similar to an accepted one are left out; needs a similarity.
    random_state : int, RandomState instance or None, default=None
        Splits the items into halves.

    Attributes
    ----------
    thresholds_ : tuple of three floats, or None
        Largest similarity to an accepted draft, least quality, score at which to stop. None where no candidate passed
        its test: every set is rejected then.
    n_queries_ : int
        n times `max_samples`.
    n_valid_ : int
        How many candidates passed.
    certificate_ : Certificate

    Notes
    -----
    Candidates on the front of misses against set size on the first half are tested on the second in the order of
    their misses, each by the binomial tail, until one fails (fixed sequence, so `failure` holds for all of them
    together); of those that passed, the one with the smallest sets on the first half is used.

    Cost: O(G^2 n M^2) time for G levels, n items, M drafts; O(n M^2) memory.

    References
    ----------
    V. Quach and others, "Conformal Language Modeling", ICLR 2024, arXiv:2306.10193.
    """

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        failure: float = 0.05,
        score: Score = "sum",
        max_samples: int = 20,
        n_levels: int = 10,
        use_similarity: bool = True,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.failure = failure
        self.score = score
        self.max_samples = max_samples
        self.n_levels = n_levels
        self.use_similarity = use_similarity
        self.random_state = random_state

    def calibrate(self, items: Sequence[GeneratedItem]) -> Self:
        """Choose the three thresholds from labelled items.

        Raises
        ------
        InputError
            For parameters out of range, fewer than 20 items, or items without labels or with too few drafts.
        """
        self._check_parameters()
        if len(items) < 20:
            raise InputError(f"there are {len(items)} items", expected="20 or more")
        if any(item.labels is None for item in items):
            raise InputError("an item has no labels", expected="a label for each draft of each item")
        drafts = _Drafts.of(items, self.max_samples, similarity=self.use_similarity)
        first, second = np.array_split(check_random_state(self.random_state).permutation(len(items)), 2)
        candidates, misses, sizes = self._candidates(drafts.take(first))
        order = _front(misses, sizes)
        risk = (self.alpha - self.failure) / (1 - self.failure)
        held_out = drafts.take(second)
        valid = []
        for place in order:
            missed = np.count_nonzero(~self._outcome(held_out, candidates[place])[0])
            if stats.binom.cdf(missed, len(second), risk) > self.failure:
                break
            valid.append(place)
        best = min(valid, key=lambda place: sizes[place], default=None)
        self.thresholds_ = None if best is None else candidates[best]
        self.n_valid_, self.n_items_ = len(valid), len(items)
        self.n_queries_ = len(items) * self.max_samples
        self.certificate_ = self._certificate(risk, len(second))
        return self

    def predict(self, item: GeneratedItem) -> PredictionSet:
        """Return which drafts of an item are kept."""
        return self.predict_many([item])[0]

    def predict_many(self, items: Sequence[GeneratedItem]) -> list[PredictionSet]:
        """Return which drafts of each item are kept."""
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("This ConformalLanguageModel has no thresholds yet; call 'calibrate' first.")
        if self.thresholds_ is None:
            return [PredictionSet((), True) for _ in items]
        drafts = _Drafts.of(items, self.max_samples, similarity=self.use_similarity)
        similarity, quality, stop = self.thresholds_
        accepted = drafts.accepted(similarity, quality)
        kept = accepted & ~self._stopped_before(drafts, accepted, stop)
        return [PredictionSet(tuple(np.flatnonzero(row).tolist()), False) for row in kept]

    def certificate(self) -> Certificate:
        """Return `certificate_`."""
        if not hasattr(self, "certificate_"):
            raise NotFittedError("This ConformalLanguageModel has no certificate yet; call 'calibrate' first.")
        return self.certificate_

    def _check_parameters(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha!r}", expected="a number between 0 and 1")
        if not 0 < self.failure < self.alpha:
            raise InputError(f"failure is {self.failure!r}", expected="a number between 0 and alpha")
        if self.score not in SCORES:
            raise InputError(f"score is {self.score!r}", expected=f"one of {', '.join(SCORES)}")
        if self.max_samples < 1 or self.n_levels < 1:
            raise InputError("max_samples or n_levels is below 1", expected="1 or more")

    def _candidates(self, drafts: "_Drafts") -> tuple[list[tuple[float, float, float]], Floats, Floats]:
        """Return all triples of thresholds, and the misses and set sizes of each on these items."""
        shares = np.linspace(0, 1, self.n_levels + 1)
        qualities = np.concatenate([[0.0], np.quantile(drafts.quality, shares[1:-1])])
        similarities = np.array([math.inf])
        if drafts.similarity is not None:
            off_diagonal = drafts.similarity[:, ~np.eye(self.max_samples, dtype=bool)]
            similarities = np.concatenate([np.quantile(off_diagonal, shares[1:-1]), [math.inf]])
        candidates, misses, sizes = [], [], []
        for similarity in np.unique(similarities).tolist():
            for quality in np.unique(qualities).tolist():
                scores = self._running(drafts, drafts.accepted(similarity, quality))
                stops = np.unique(np.concatenate([np.quantile(scores, shares[1:]), [math.inf]]))
                for stop in stops.tolist():
                    covered, size = self._outcome(drafts, (similarity, quality, stop))
                    candidates.append((similarity, quality, stop))
                    misses.append(1 - covered.mean())
                    sizes.append(size.mean())
        return candidates, np.array(misses), np.array(sizes)

    def _outcome(self, drafts: "_Drafts", thresholds: tuple[float, float, float]) -> tuple[Flags, NDArray[np.intp]]:
        """Return for each item whether its set holds an admissible draft, and the size of the set."""
        similarity, quality, stop = thresholds
        accepted = drafts.accepted(similarity, quality)
        kept = accepted & ~self._stopped_before(drafts, accepted, stop)
        return np.any(kept & drafts.admissible, axis=1), np.sum(kept, axis=1)

    def _running(self, drafts: "_Drafts", accepted: Flags) -> Floats:
        """Return the score of the accepted drafts after each draw."""
        if self.score == "count":
            return np.cumsum(accepted, axis=1, dtype=np.float64)
        quality = np.where(accepted, drafts.quality, 0.0)
        return np.cumsum(quality, axis=1) if self.score == "sum" else np.maximum.accumulate(quality, axis=1)

    def _stopped_before(self, drafts: "_Drafts", accepted: Flags, stop: float) -> Flags:
        """Return for each draft whether drawing had stopped before it."""
        reached = self._running(drafts, accepted) >= stop
        return np.concatenate([np.zeros((len(reached), 1), dtype=bool), reached[:, :-1]], axis=1)

    def _certificate(self, risk: float, n: int) -> Certificate:
        return Certificate(
            kind="conformal admissibility",
            guarantee=(
                f"With probability {1 - self.failure:g} over the calibration items, a new prompt's set holds no "
                f"admissible draft with probability at most {risk:.4g}; over both together, at most {self.alpha:g}."
            ),
            parameters={"level": 1 - self.alpha, "failure": self.failure, "risk": risk, "tested_on": n},
            assumptions=(
                Assumption("Items of calibration and use are drawn independently from one source."),
                Assumption("Quality and similarity do not come from the judge of admissibility."),
            ),
            confidence=1 - self.failure,
            numerics={"precision": "float64", "noise_source": "pseudo-random"},
            does_not_cover=("Any single prompt, or a group of prompts: the probability is an average over all.",),
            library_version=aboveboard.__version__,
            reference=_REFERENCE,
        )


@dataclass(frozen=True, slots=True)
class _Drafts:
    """The drafts of n items as arrays: quality and labels (n, M), similarity (n, M, M)."""

    quality: Floats
    similarity: Floats | None
    admissible: Flags

    @classmethod
    def of(cls, items: Sequence[GeneratedItem], most: int, *, similarity: bool) -> "_Drafts":
        for place, item in enumerate(items):
            if len(item) < most:
                raise InputError(f"item {place} has {len(item)} drafts", expected=f"max_samples, {most}, or more")
            item.draw(most)
        return cls(
            np.array([item.quality_of(most) for item in items]),
            np.array([item.similarity_of(np.arange(most)) for item in items]) if similarity else None,
            np.array([np.zeros(most, dtype=bool) if item.labels is None else item.labels[:most] for item in items]),
        )

    def take(self, rows: NDArray[np.intp]) -> "_Drafts":
        return _Drafts(
            self.quality[rows],
            None if self.similarity is None else self.similarity[rows],
            self.admissible[rows],
        )

    def accepted(self, similarity: float, quality: float) -> Flags:
        """Return which drafts are good enough and not too similar to one accepted before."""
        accepted = self.quality >= quality
        if self.similarity is None or similarity >= 1:
            return accepted
        for j in range(1, accepted.shape[1]):
            nearest = np.where(accepted[:, :j], self.similarity[:, :j, j], -math.inf).max(axis=1)
            accepted[:, j] &= nearest <= similarity
        return accepted


def _front(misses: Floats, sizes: Floats) -> list[int]:
    """Return the candidates that no other beats in both, by their misses from the fewest up."""
    front, smallest = [], math.inf
    for place in np.lexsort((sizes, misses)).tolist():
        if sizes[place] < smallest:
            front.append(place)
            smallest = sizes[place]
    return front
