"""A subgroup that a person can read: rules, sizes, losses, and which columns decide who is in it."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.intervals import critical_z, rate_interval
from aboveboard.drift.dataset_classification._tables import Features, TableEncoder, named_frame
from aboveboard.drift.shift._fold import Detector
from aboveboard.drift.shift._inference import Family
from aboveboard.drift.shift._rows import Rows

__all__ = ["Subgroup", "describe", "importances", "loss_interval"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_DEPTH: Final = 3
_LEAF_SHARE: Final = 0.005
_WORDS: Final = 20
_SHUFFLED: Final = 2_000
_TREE_ROWS: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroup:
    """The rows that suffer.

    Attributes
    ----------
    kind : {"covariate", "outcome"}
    rules : tuple of str
        Who is in it, in words: a row that meets any of the rules is. They come from a tree of depth 3 at most that
        imitates the subgroup; empty where no such tree finds it.
    fidelity : dict of str to float
        How well the rules imitate the subgroup on test rows of the target: ``agreement`` (share of rows), ``jaccard``.
    prevalence : tuple of float
        Share of the test rows of source and target that are in it.
    n : tuple of int
        Number of these rows.
    source_loss, target_loss : tuple of float
        Mean loss in it, with the ends of a 95 % interval.
    decay : float
        Decay in it that this kind of change brings about.
    interval : tuple of float
        Interval of `decay`, at level 1 - alpha for all subgroups that were tested at once.
    importances : DataFrame
        Per column the share of test rows that change sides when the column is shuffled, the most telling first.
    """

    kind: Family
    rules: tuple[str, ...]
    fidelity: dict[str, float]
    prevalence: tuple[float, float]
    n: tuple[int, int]
    source_loss: tuple[float, float, float]
    target_loss: tuple[float, float, float]
    decay: float
    interval: tuple[float, float]
    importances: pd.DataFrame
    detector: Detector = field(repr=False)
    read: Any = field(repr=False)

    @property
    def rules_(self) -> tuple[str, ...]:
        """The same as `rules`."""
        return self.rules

    def predict(self, X: Any, *, predictions: Any = None) -> Mask:
        """Tell which rows are in the subgroup.

        Parameters
        ----------
        X : table of shape (n, d)
            With the columns that were fitted.
        predictions : ndarray of shape (n,), optional
            What the audited model says of these rows; needed where `SHIFT.fit` got predictions and no model.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        rows, judged = self.read(X, predictions)
        return np.asarray(self.detector(rows) & judged)


def loss_interval(loss: Floats, *, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean loss with its interval: a score interval for errors, else a normal one."""
    n, mean = len(loss), float(loss.mean()) if len(loss) else np.nan
    if n and np.isin(loss, (0.0, 1.0)).all():
        low, high = rate_interval(int(loss.sum()), n, level=level)
        return mean, float(low), float(high)
    half = critical_z(level) * float(loss.std(ddof=1)) / np.sqrt(n) if n > 1 else np.inf
    return mean, mean - half, mean + half


def importances(detector: Detector, rows: Rows, rng: np.random.Generator) -> pd.DataFrame:
    """Return per column the share of rows that change sides when it is shuffled; the model's losses stay."""
    sample = rows.take(rng.permutation(len(rows))[:_SHUFFLED])
    before, found = detector(sample), []
    for j, name in enumerate(sample.features.names):
        values = sample.features.values.copy()
        values[:, j] = values[rng.permutation(len(values)), j]
        shuffled = Rows(Features(values, sample.features.names, sample.features.categorical), sample.losses, sample.y)
        found.append((name, float((detector(shuffled) != before).mean())))
    return named_frame(sorted(found, key=lambda row: -row[1]), ["column", "importance"])


def describe(
    train: Features, in_train: Mask, test: Features, in_test: Mask, encoder: TableEncoder, seed: int
) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return rules that imitate a subgroup, learned on training rows, and how well they do on test rows."""
    from sklearn.tree import DecisionTreeClassifier

    if len(train) > _TREE_ROWS:
        chosen = np.random.default_rng(seed).choice(len(train), _TREE_ROWS, replace=False)
        train, in_train = train.take(chosen), in_train[chosen]
    design = _Readable(train, encoder)
    X, X_test = design.matrix(train), design.matrix(test)
    best: tuple[float, Any] = (-1.0, None)
    for weight in (None, "balanced"):
        tree = DecisionTreeClassifier(
            max_depth=_DEPTH, min_samples_leaf=_LEAF_SHARE, class_weight=weight, random_state=seed
        ).fit(X, in_train)
        found = _jaccard(tree.predict(X), in_train)
        best = max(best, (found, tree), key=lambda pair: pair[0])
    predicted = best[1].predict(X_test).astype(bool)
    fidelity = {"agreement": float((predicted == in_test).mean()), "jaccard": _jaccard(predicted, in_test)}
    return tuple(_rules(best[1], design)), fidelity


class _Readable:
    """A matrix whose columns can be put in words: numbers, marks of what is missing, a column per common word."""

    def __init__(self, features: Features, encoder: TableEncoder) -> None:
        self.middles: dict[int, float] = {}
        self.columns: list[tuple[int, str, str]] = []  # position, name, word (empty: a number; None: missing)
        self.codes: list[float] = []
        for j, name in enumerate(features.names):
            words = encoder.words_.get(name)
            column = features.values[:, j]
            if words is None:
                known = column[np.isfinite(column)]
                self.middles[j] = float(np.median(known)) if len(known) else 0.0
                self._add(j, name, "", np.inf)
            for word, code in list((words or {}).items())[:_WORDS]:
                self._add(j, name, f"is {word!r}", float(code))
            if np.isnan(column).any():
                self._add(j, name, "is missing", np.nan)

    def _add(self, j: int, name: str, words: str, code: float) -> None:
        self.columns.append((j, name, words))
        self.codes.append(code)

    def matrix(self, features: Features) -> Floats:
        out = np.empty((len(features), len(self.columns)))
        for k, ((j, _, words), code) in enumerate(zip(self.columns, self.codes, strict=True)):
            column = features.values[:, j]
            if not words:
                out[:, k] = np.clip(np.where(np.isnan(column), self.middles[j], column), -1e30, 1e30)
            else:
                out[:, k] = np.isnan(column) if np.isnan(code) else column == code
        return out

    def condition(self, k: int, low: float, high: float) -> str:
        """Return the condition that column `k` lies above `low` and is at most `high`, in words."""
        _, name, words = self.columns[k]
        if words:
            return f"{name} {words}" if low > 0 else f"{name} {words.replace('is', 'is not', 1)}"
        if np.isfinite(low) and np.isfinite(high):
            return f"{low:.4g} < {name} <= {high:.4g}"
        return f"{name} > {low:.4g}" if np.isfinite(low) else f"{name} <= {high:.4g}"


def _rules(tree: Any, design: _Readable) -> list[str]:
    """Return one sentence per branch that leads into the subgroup; neighbours that both do are one branch."""
    nodes = tree.tree_
    inside = tree.classes_[nodes.value[:, 0, :].argmax(axis=1)].astype(bool)

    def walk(node: int, bounds: dict[int, tuple[float, float]]) -> list[dict[int, tuple[float, float]]]:
        if nodes.children_left[node] < 0:
            return [bounds] if inside[node] else []
        k, cut = int(nodes.feature[node]), float(nodes.threshold[node])
        low, high = bounds.get(k, (-np.inf, np.inf))
        left = walk(nodes.children_left[node], bounds | {k: (low, min(high, cut))})
        right = walk(nodes.children_right[node], bounds | {k: (max(low, cut), high)})
        both_whole = len(left) == len(right) == 1 and left[0].keys() == right[0].keys() == (bounds.keys() | {k})
        return [bounds] if both_whole else left + right

    found = walk(0, {})
    return [
        " and ".join(design.condition(k, low, high) for k, (low, high) in sorted(bounds.items())) or "every row"
        for bounds in found
    ]


def _jaccard(one: NDArray[Any], other: NDArray[Any]) -> float:
    one, other = one.astype(bool), other.astype(bool)
    union = int((one | other).sum())
    return float((one & other).sum() / union) if union else 1.0
