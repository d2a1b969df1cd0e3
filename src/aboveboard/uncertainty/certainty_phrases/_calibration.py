"""How far phrases of certainty are from what comes true, as a function of counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.bootstrap import basic_interval
from aboveboard.core.errors import InputError
from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary

__all__ = ["CalibrationResult", "Phrases", "Residuals", "brier", "phrase_calibration", "tallied", "tallied_input"]

Floats = NDArray[np.float64]
Phrases = Sequence[str] | NDArray[Any]

_FEWEST = 30
_BATCH = 2_000_000


@dataclass(frozen=True)
class CalibrationResult:
    """How honest the phrases are.

    Parameters
    ----------
    ece, mce : float
        Expected and largest calibration error over the bins.
    floor : float
        The expected calibration error if every phrase came true exactly as often as its mean says: what the spread of
        the phrases alone contributes. 0 for points.
    brier : float
        Mean of ``(U - y)^2``: ``(1 - mean)^2 + variance`` where it came true, ``mean^2 + variance`` where not.
    resolution : float
        Variance of the rates of the phrases: how far they tell cases apart at all. 0 for one phrase for everything.
    entropy : float
        Of the use of phrases, in nats.
    curve : DataFrame
        For each bin: ``weight``, ``confidence`` (mean of U in it), ``accuracy``; with a bootstrap ``low`` and ``high``.
    counts : DataFrame
        For each phrase that occurs: ``n``, ``successes``, ``rate``, ``mean``.
    ci : DataFrame or None
        For ``ece`` and ``brier``: the mean of the bootstrap replicates, ``low`` and ``high`` of the interval; None
        without a bootstrap.
    """

    ece: float
    mce: float
    floor: float
    brier: float
    resolution: float
    entropy: float
    curve: pd.DataFrame
    counts: pd.DataFrame
    ci: pd.DataFrame | None

    def __str__(self) -> str:
        return (
            f"ECE {self.ece:.3f} (floor {self.floor:.3f}), Brier {self.brier:.3f}, resolution {self.resolution:.3f}, "
            f"{len(self.counts)} phrases in use"
        )


class Residuals:
    """The calibration error of any use of a vocabulary, in O(phrases x bins).

    With W the probabilities of the phrases in the bins and P their partial means, n uses and s successes of each, the
    error is ``sum_m |(s W - n P)_m| / sum(n)``: a norm of something linear in n and s, hence convex in any restatement.
    """

    def __init__(self, vocabulary: PhraseVocabulary, n_bins: int) -> None:
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        self.edges = edges
        self.W, self.P = vocabulary.weights(edges), vocabulary.partial_mean(edges)

    def of(self, n: Floats, s: Floats) -> Floats:
        """Return ``s W - n P``: successes less confidence in each bin, of shape (..., bins)."""
        return s @ self.W - n @ self.P

    def ece(self, n: Floats, s: Floats) -> Floats:
        """Return the expected calibration error of each row of counts."""
        error: Floats = np.abs(self.of(n, s)).sum(axis=-1) / n.sum(axis=-1)
        return error


def brier(vocabulary: PhraseVocabulary, n: Floats, s: Floats) -> Floats:
    """Return the mean of ``(U - y)^2`` of each row of counts; outcomes that are probabilities count as expectations."""
    mean, variance = vocabulary.mean, vocabulary.variance
    hit, miss = (1 - mean) ** 2 + variance, mean**2 + variance
    score: Floats = (s @ hit + (n - s) @ miss) / n.sum(axis=-1)
    return score


def phrase_calibration(
    phrases: Phrases,
    outcomes: ArrayLike,
    vocabulary: PhraseVocabulary,
    n_bins: int = 100,
    n_boot: int = 0,
    *,
    level: float = 0.95,
    fallback: str | None = None,
    random_state: int | None = None,
) -> CalibrationResult:
    """Measure whether phrases of certainty come true as often as they say.

    Parameters
    ----------
    phrases : sequence of str, length n
        The phrase that each item bears.
    outcomes : array-like of shape (n,)
        Whether it came true: 0, 1 or bool; or the probability of that where the label itself is uncertain.
    vocabulary : PhraseVocabulary
    n_bins : int
        Bins of equal width.
    n_boot : int
        Resamples of the items for intervals; 0 for none.
    level : float
        Of the intervals.
    fallback : str, optional
        The phrase that stands for those that are not in the vocabulary.
    random_state : int, optional

    Returns
    -------
    CalibrationResult

    Raises
    ------
    aboveboard.core.InputError
        For phrases outside the vocabulary, outcomes that are not between 0 and 1, lengths that differ, or fewer than 30
        items.

    Notes
    -----
    Phrase i stands for U_i, drawn from its distribution whatever the outcome. In a bin, accuracy is the mean outcome
    weighted by ``P(U_i in bin)``, confidence the mean of U there, and the error the mean distance of the two. The error
    of a speaker whose every phrase comes true as often as its mean says is `floor`, not 0: a phrase that covers half
    the scale says different things in different bins and comes true equally often in all of them.

    O(n + K bins), and O(n_boot (cells + K bins)) for intervals, where cells are the distinct pairs of phrase and
    outcome. Intervals of the error are basic bootstrap intervals, since it is too large in every sample.

    References
    ----------
    P. Wang and others, "Calibrating Expressions of Certainty", ICLR 2025.

    Examples
    --------
    >>> from aboveboard.uncertainty import phrase_calibration, truthfulqa_phrases
    >>> phrases, correct, vocabulary = truthfulqa_phrases()
    >>> found = phrase_calibration(phrases, correct, vocabulary)
    >>> len(phrases), int(correct.sum()), found.counts.index[0]
    (817, 258, 'Definitely')
    """
    codes, y = tallied_input(phrases, outcomes, vocabulary, fallback)
    _check_settings(n_bins, n_boot, level)
    n, s = tallied(codes, y, len(vocabulary))
    residuals = Residuals(vocabulary, n_bins)
    weight = n @ residuals.W
    with np.errstate(invalid="ignore", divide="ignore"):
        confidence, accuracy = n @ residuals.P / weight, s @ residuals.W / weight
        rate = s / n
    used = n > 0
    curve = pd.DataFrame(
        {
            "left": residuals.edges[:-1],
            "right": residuals.edges[1:],
            "weight": weight / len(y),
            "confidence": confidence,
            "accuracy": accuracy,
        }
    )
    ci = None
    if n_boot:
        ci, curve["low"], curve["high"] = _bootstrap(codes, y, vocabulary, residuals, n_boot, level, random_state)
    seen = weight > 1e-9 * len(y)
    return CalibrationResult(
        ece=float(residuals.ece(n, s)),
        mce=float(np.abs(accuracy - confidence)[seen].max()),
        floor=float(residuals.ece(n, n * vocabulary.mean)),
        brier=float(brier(vocabulary, n, s)),
        resolution=float(n[used] @ (rate[used] - s.sum() / n.sum()) ** 2 / n.sum()),
        entropy=float(-(n[used] / n.sum()) @ np.log(n[used] / n.sum())),
        curve=curve,
        counts=pd.DataFrame(
            {"n": n[used], "successes": s[used], "rate": rate[used], "mean": vocabulary.mean[used]},
            index=pd.Index([p for p, u in zip(vocabulary.phrases, used) if u], name="phrase", dtype=object),
        ),
        ci=ci,
    )


def tallied(codes: NDArray[np.int64], y: Floats, K: int) -> tuple[Floats, Floats]:
    """Return uses and successes of each phrase."""
    n, s = np.bincount(codes, minlength=K), np.bincount(codes, weights=y, minlength=K)
    return n.astype(np.float64), s.astype(np.float64)


def tallied_input(
    phrases: Phrases, outcomes: ArrayLike, vocabulary: PhraseVocabulary, fallback: str | None
) -> tuple[NDArray[np.int64], Floats]:
    """Return the codes of the phrases and their outcomes, or refuse them."""
    if not isinstance(vocabulary, PhraseVocabulary):
        raise InputError(
            f"the vocabulary is a {type(vocabulary).__name__}",
            expected="a PhraseVocabulary",
            remedy="Make one, for example by PhraseVocabulary.from_beta({'likely': (8, 2), ...})",
        )
    y = _usable(outcomes)
    codes = vocabulary.codes(phrases, fallback=fallback)
    if len(codes) != len(y):
        raise InputError(f"{len(codes):,} phrases with {len(y):,} outcomes", expected="one outcome for each phrase")
    if len(y) < _FEWEST:
        raise InputError(f"there are {len(y)} items", expected=f"at least {_FEWEST}")
    return codes, y


def _usable(outcomes: ArrayLike) -> Floats:
    """Return outcomes as float64, or refuse them."""
    try:
        y = np.asarray(outcomes if not hasattr(outcomes, "to_numpy") else _dense(outcomes), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("an outcome is no number", expected="0, 1, true, false, or a probability") from error
    if y.ndim != 1 or not ((y >= 0) & (y <= 1)).all():
        wrong = f"have the shape {y.shape}" if y.ndim != 1 else "hold something missing, or outside [0, 1]"
        raise InputError(f"the outcomes {wrong}", expected="one number between 0 and 1 for each phrase")
    return y


def _dense(column: Any) -> Any:
    """Nullable columns give NaN for what is missing."""
    try:
        return column.to_numpy(dtype="float64", na_value=np.nan)
    except TypeError:  # not pandas
        return column.to_numpy()


def _check_settings(n_bins: int, n_boot: int, level: float) -> None:
    if not n_bins >= 1:
        raise InputError(f"n_bins is {n_bins}", expected="1 or more")
    if not n_boot >= 0:
        raise InputError(f"n_boot is {n_boot}", expected="0 or more")
    if not 0 < level < 1:
        raise InputError(f"level is {level}", expected="a number between 0 and 1")


def _bootstrap(
    codes: NDArray[np.int64],
    y: Floats,
    vocabulary: PhraseVocabulary,
    residuals: Residuals,
    n_boot: int,
    level: float,
    random_state: int | None,
) -> tuple[pd.DataFrame, Floats, Floats]:
    """Return intervals of ECE and Brier score, and the band of the curve."""
    cells, counts = np.unique(np.stack([codes, y]), axis=1, return_counts=True)
    of_phrase = (cells[0][:, None] == np.arange(len(vocabulary))).astype(np.float64)
    rng, size = np.random.default_rng(random_state), max(1, _BATCH // max(len(counts), len(residuals.edges)))
    errors, scores, accuracies = [], [], []
    for start in range(0, n_boot, size):
        drawn = rng.multinomial(len(y), counts / len(y), size=min(size, n_boot - start)).astype(np.float64)
        n, s = drawn @ of_phrase, (drawn * cells[1]) @ of_phrase
        errors.append(residuals.ece(n, s))
        scores.append(brier(vocabulary, n, s))
        with np.errstate(invalid="ignore", divide="ignore"):
            accuracies.append((s @ residuals.W) / (n @ residuals.W))
    n, s = tallied(codes, y, len(vocabulary))
    rows = {}
    for name, now, replicates in (
        ("ece", residuals.ece(n, s), np.concatenate(errors)),
        ("brier", brier(vocabulary, n, s), np.concatenate(scores)),
    ):
        low, high = basic_interval(now, replicates, level)
        rows[name] = (replicates.mean(), *np.clip((low, high), 0.0, 1.0))
    band = np.concatenate(accuracies)
    exists = np.isfinite(band).any(axis=0)
    tail = (1 - level) / 2
    low, high = np.nanquantile(np.where(exists, band, 0.0), [tail, 1 - tail], axis=0)
    ci = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "low", "high"])
    return ci, np.where(exists, low, np.nan), np.where(exists, high, np.nan)
