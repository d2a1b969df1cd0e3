"""How well held-out rows were told apart, with what that proves."""

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from aboveboard._stats.intervals import clopper_pearson, rate_interval, wilson
from aboveboard.drift.dataset_classification._learners import Trained
from aboveboard.drift.dataset_classification._splits import Split
from aboveboard.drift.dataset_classification._statistics import (
    binomial_p_value,
    mean_recall_interval,
    permutation_p_value,
    tv_lower_bound,
)
from aboveboard.drift.dataset_classification._tables import Features

__all__ = ["CERTAIN", "LEVEL", "SourceTest", "judge"]

LEVEL: Final = 0.95
CERTAIN: Final = 0.95
_ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceTest:
    """How well a classifier told held-out rows apart.

    Parameters
    ----------
    sources : tuple of str
    accuracy : float
        Share of held-out rows whose source was named; with ``sampling="all"`` the mean over sources.
    ci : tuple of float
        95 % interval of `accuracy`: Wilson's, or, with ``sampling="all"``, Wilson's per source joined.
    chance : float
        1 / m for m sources.
    p_value : float
        Probability of an accuracy at least as high if the sources do not differ.
    confusion : DataFrame of int, shape (m, m)
        Rows are true sources, columns guesses.
    balanced_accuracy : float
        Mean over sources of the share named rightly.
    auroc : float
        Of one source against the other; for three or more, the mean of one against the rest. This and `score_p_value`
        also count the rows that were kept in reserve and not drawn.
    score_p_value : float or None
        For two sources: of the ranks of the probabilities (Mann-Whitney) instead of the guesses. It finds smaller
        differences in few rows, and its level is approximate. Choose one of the two before looking.
    tv_lower_bound : float or None
        For two sources: their total-variation distance is at least this, with 95 % confidence.
    certain_share : float
        Share of held-out rows whose source the calibrated probabilities give away with more than 0.95.
    certain_ci : tuple of float
        Its 95 % Wilson interval.
    n_correct, n_held_out, n_train : int
        Rows named rightly, held out, and trained on, over all sources.
    train_accuracy : float
        On the rows that were trained on: far above `accuracy` means memorised.
    classifier : str
        Which candidate was picked.
    """

    sources: tuple[str, ...]
    accuracy: float
    ci: tuple[float, float]
    chance: float
    p_value: float
    confusion: pd.DataFrame
    balanced_accuracy: float
    auroc: float
    score_p_value: float | None
    tv_lower_bound: float | None
    certain_share: float
    certain_ci: tuple[float, float]
    n_correct: int
    n_held_out: int
    n_train: int
    train_accuracy: float
    classifier: str

    def __repr__(self) -> str:
        low, high = self.ci
        return (
            f"SourceTest({len(self.sources)} sources, accuracy {self.accuracy:.3f} [{low:.3f}, {high:.3f}], "
            f"chance {self.chance:.3f}, p {self.p_value:.2g}, {self.n_held_out:,} held-out rows)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: numbers, text, lists."""
        data = asdict(self)
        data["confusion"] = self.confusion.to_numpy().tolist()
        return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def judge(
    trained: Trained, features: Features, codes: NDArray[np.intp], split: Split, names: tuple[str, ...], seed: int
) -> tuple[SourceTest, NDArray[np.float64]]:
    """Return the result, and the probabilities of the held-out rows in the order of `split.held_out`."""
    m, truth = len(names), codes[split.held_out]
    proba = trained.proba(features.take(split.held_out))
    guess = proba.argmax(axis=1)
    confusion = np.bincount(truth * m + guess, minlength=m * m).reshape(m, m)
    k, n = int(np.trace(confusion)), len(truth)
    sizes = confusion.sum(axis=1)
    mean_recall = float((np.diag(confusion) / np.maximum(sizes, 1)).mean())
    if split.balanced:
        low, high = rate_interval(k, n, level=LEVEL)
        accuracy, ci = k / n, (float(low), float(high))
        p_value = binomial_p_value(k, n, m)
        bound = tv_lower_bound(k, n, _ALPHA) if m == 2 else None
    else:
        accuracy, ci = mean_recall, mean_recall_interval(confusion, level=LEVEL)
        p_value = permutation_p_value(confusion, random_state=seed)
        # either recall may be too high with half of alpha
        lows, _ = clopper_pearson(np.diag(confusion), sizes, level=1.0 - _ALPHA)
        bound = max(0.0, float(lows.sum()) - 1.0) if m == 2 else None
    certain = int(np.count_nonzero(proba.max(axis=1) > CERTAIN))
    certain_low, certain_high = wilson(certain, n, level=LEVEL)
    # ranks of probabilities need no die: the rows in reserve count as well
    all_truth = np.concatenate([truth, codes[split.spare]])
    all_proba = np.concatenate([proba, trained.proba(features.take(split.spare))]) if len(split.spare) else proba
    trained_on = trained.proba(features.take(split.train)).argmax(axis=1)
    result = SourceTest(
        sources=names,
        accuracy=accuracy,
        ci=ci,
        chance=1.0 / m,
        p_value=p_value,
        confusion=pd.DataFrame(
            confusion, index=pd.Index(names, dtype=object, name="source"), columns=pd.Index(names, dtype=object)
        ),
        balanced_accuracy=mean_recall,
        auroc=_auroc(all_proba, all_truth, m),
        score_p_value=_score_p_value(all_proba, all_truth) if m == 2 else None,
        tv_lower_bound=bound,
        certain_share=certain / n,
        certain_ci=(float(certain_low), float(certain_high)),
        n_correct=k,
        n_held_out=n,
        n_train=len(split.train),
        train_accuracy=float((trained_on == codes[split.train]).mean()),
        classifier=trained.name,
    )
    return result, proba


def _score_p_value(proba: NDArray[np.float64], truth: NDArray[np.intp]) -> float:
    second = proba[:, 1]
    return float(stats.mannwhitneyu(second[truth == 1], second[truth == 0], alternative="greater").pvalue)


def _auroc(proba: NDArray[np.float64], truth: NDArray[np.intp], m: int) -> float:
    from sklearn.metrics import roc_auc_score

    if m == 2:
        return float(roc_auc_score(truth, proba[:, 1]))
    return float(np.mean([roc_auc_score(truth == j, proba[:, j]) for j in range(m)]))
