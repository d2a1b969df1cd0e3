"""Two models side by side: how good each is, by how much they differ, and whether that is nothing to speak of."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aboveboard.auditing.estimates import Rows
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Interval

__all__ = ["Comparison", "PairedDifference", "brier_scores", "compared", "paired", "probabilities"]

Floats = NDArray[np.float64]
Verdict = Literal["equal", "different", "unclear"]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A measure of two models on the same rows.

    Parameters
    ----------
    first, second : float
        Of the audited model, and of the other.
    difference : float
        First minus second.
    interval : Interval
    p_value : float
        Of the hypothesis that there is no difference.
    """

    first: float
    second: float
    difference: float
    interval: Interval
    p_value: float

    def verdict(self, margin: float) -> Verdict:
        """Say whether the whole interval lies within the margin, or none of it."""
        if -margin <= self.interval.low and self.interval.high <= margin:
            return "equal"
        return "different" if self.interval.low > margin or self.interval.high < -margin else "unclear"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The decisions of two models on the same rows.

    Parameters
    ----------
    differ : boolean ndarray of shape (n,)
    rows : Rows
    accuracy : PairedDifference
    brier : PairedDifference or None
        None where one of the models gives no scores.
    verdict : {"equal", "different", "unclear"}
        Whether they are equally good: in accuracy, and in Brier score where there is one.
    """

    differ: NDArray[np.bool_]
    rows: Rows
    accuracy: PairedDifference
    brier: PairedDifference | None
    verdict: Verdict


def compared(subject: Subject) -> Comparison:
    """Return the comparison of the audited model with the other."""
    assert subject.other is not None
    rows = Rows.of(subject)
    mine, theirs = ((said == subject.y).astype(np.float64) for said in (subject.prediction, subject.other.prediction))
    accuracy = paired(mine, theirs, rows, discrete=True)
    both = probabilities(subject)
    brier = None
    if both is not None:
        brier = paired(brier_scores(both[0], subject.y), brier_scores(both[1], subject.y), rows)
    margin = subject.limits["model_multiplicity.margin"].value
    verdicts = [difference.verdict(margin) for difference in (accuracy, brier) if difference is not None]
    verdict: Verdict = "different" if "different" in verdicts else "unclear" if "unclear" in verdicts else "equal"
    return Comparison(subject.prediction != subject.other.prediction, rows, accuracy, brier, verdict)


def paired(first: Floats, second: Floats, rows: Rows, *, discrete: bool = False) -> PairedDifference:
    """Compare the means of two columns row by row.

    Parameters
    ----------
    first, second : ndarray of shape (n,)
    rows : Rows
    discrete : bool
        The columns hold 0 and 1: without weights and clusters the p-value is that of McNemar's exact test.

    Notes
    -----
    The interval is a normal one (Student's for clusters) with the variance of one more pair that differs, so that it
    has a width also where no pair does.
    """
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    gain = first - second
    mean = float(np.average(gain, weights=weight))
    units = rows.clusters
    error = float(np.hypot(np.nan_to_num(rows.error(gain - mean), nan=1.0), 1.0 / units))
    half = rows.quantile_of_normal() * error
    if discrete and rows.weight is None and rows.cluster is None:
        better, worse = int((gain > 0).sum()), int((gain < 0).sum())
        p_value = float(stats.binomtest(better, better + worse).pvalue) if better + worse else 1.0
    elif rows.cluster is not None:
        p_value = float(2 * stats.t.sf(abs(mean) / error, max(units - 1, 1)))
    else:
        p_value = float(2 * stats.norm.sf(abs(mean) / error))
    return PairedDifference(
        float(np.average(first, weights=weight)),
        float(np.average(second, weights=weight)),
        mean,
        Interval(mean - half, mean + half, method="normal, paired"),
        p_value,
    )


def brier_scores(p: Floats, y: NDArray[np.intp]) -> Floats:
    """Return the Brier score of each row: (p - y)^2 for two classes, the sum over classes for more."""
    squares: Floats = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)
    return squares / 2 if p.shape[1] == 2 else squares


def probabilities(subject: Subject) -> list[Floats] | None:
    """Return the probabilities of both models, shape (n, classes); None where one of them gives none."""
    assert subject.other is not None
    scores = (subject.score, subject.other.score)
    if scores[0] is None or scores[1] is None:
        return None
    found = []
    for score in (scores[0], scores[1]):
        matrix = np.column_stack([1.0 - score, score]) if score.ndim == 1 else score
        sums = matrix.sum(axis=1, keepdims=True)
        # some models give probabilities that do not quite sum to 1; the check of answers tells by how much
        found.append(np.divide(matrix, sums, out=np.full(matrix.shape, 1.0 / matrix.shape[1]), where=sums > 0))
    return found
