"""How `SHIFT.repair` chooses what to learn, and tries it on the test half."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.shift._fold import Fold
from aboveboard.drift.shift._inference import Family
from aboveboard.drift.shift._nuisances import fit_density_ratio
from aboveboard.drift.shift._reader import rows_of
from aboveboard.drift.shift._repair import OutcomePatch, RepairedClassifier, Reweighted, Trial, trial
from aboveboard.drift.shift._rows import Rows, binary_labels, loss_table

__all__ = ["mend"]

Floats = NDArray[np.float64]


def mend(
    fitted: Any, kind: Family, X: Any, y: Any, candidate: str | None, where: str, estimator: Any, predictions: Any
) -> RepairedClassifier:
    """Return a repaired classifier; see `SHIFT.repair`."""
    subgroup = fitted.subgroup(kind)
    fold, parts = fitted.best_fold(kind)
    name, columns = _explanation(fitted, kind, candidate)
    target = fitted._domains[1]
    if target.scores is None:
        raise InputError("there is no model to repair", expected="model=... or predictions=... in fit")
    if X is None:
        learned = _Learned(fold.halves.target_test, target.scores[parts[3]], subgroup.detector(fold.halves.target_test))
    else:
        rows, judged, scores = fitted._reader.with_scores(X, predictions)
        rows = Rows(rows.features, rows.losses, binary_labels(y, len(rows), "the rows to learn from"))
        learned = _Learned(rows, scores, subgroup.detector(rows) & judged)

    def patched(chosen: NDArray[np.intp]) -> Any:
        part = learned.take(chosen)
        if kind == "outcome":
            return OutcomePatch.fit(*part, columns, where == "subgroup", fold.settings.outcome, fold.seed)
        return _reweighted(fitted, fold, part.rows, columns, parts[0], estimator)

    names = tuple(learned.rows.features.names[j] for j in columns)
    everyone = np.arange(len(learned.rows))
    repaired = RepairedClassifier(kind, name, names, where, patched(everyone), subgroup, fitted.threshold)
    if X is None:
        table = rows_of(fitted._tables[1], target.positions[parts[3]])
        repaired.trial_ = _tried(fitted, repaired, learned, patched, table)
    return repaired


class _Learned(NamedTuple):
    """Rows that a repair learns from, their scores, and which are in the subgroup."""

    rows: Rows
    scores: Floats
    inside: NDArray[np.bool_]

    def take(self, chosen: NDArray[np.intp]) -> "_Learned":
        return _Learned(self.rows.take(chosen), self.scores[chosen], self.inside[chosen])


def _explanation(fitted: Any, kind: Family, candidate: str | None) -> tuple[str, tuple[int, ...]]:
    groups = fitted._groups
    if candidate is not None:
        if candidate not in groups:
            raise InputError(f"candidate is {candidate!r}", expected=f"one of {', '.join(map(repr, groups))}")
        return candidate, groups[candidate]
    table = fitted.detailed_
    kept = table[(table["kind"] == kind) & table["kept"].astype(bool)]
    if not len(kept):
        return "all columns", tuple(range(len(fitted._domains[0].rows.features.names)))
    p_values = dict(zip(kept["candidate"], kept["p_value"], strict=True))
    name = min(p_values, key=lambda one: (len(groups[one]), -p_values[one]))
    return name, groups[name]


def _reweighted(
    fitted: Any, fold: Fold, rows: Rows, columns: tuple[int, ...], part: NDArray[np.intp], estimator: Any
) -> Reweighted:
    settings, train = fold.settings, fold.halves.source_train
    kept = [features.keep(list(columns)) for features in (train.features, rows.features)]
    ratio = fit_density_ratio(kept[0], kept[1], settings.density, settings.clip, fold.seed)
    model = fitted._reader.model if estimator is None else estimator
    trainable = hasattr(model, "get_params") and hasattr(model, "fit")
    table = rows_of(fitted._tables[0], fitted._domains[0].positions[part])
    return Reweighted.fit(model if trainable else None, table, train, ratio, columns)


def _tried(
    fitted: Any, repaired: RepairedClassifier, learned: _Learned, patched: Callable[[Any], Any], table: Any
) -> Trial:
    """Judge each half of the rows by a repair that was learned from the other half."""
    n = len(learned.rows)
    half = np.random.default_rng(fitted._seed).permutation(n) % 2
    mended = learned.scores.copy()
    for h in (0, 1):
        others, own = np.flatnonzero(half != h), np.flatnonzero(half == h)
        part = learned.take(own)
        new = patched(others)(part.rows.features, part.scores, part.inside, rows_of(table, own))
        mended[own] = new if repaired.where == "everywhere" else np.where(part.inside, new, part.scores)
    at = np.arange(n), learned.rows.y
    before, after = (_tried_losses(fitted, table, proba, n)[at] for proba in (learned.scores, mended))
    return trial(before, after, learned.inside)


def _tried_losses(fitted: Any, table: Any, scores: Floats, n: int) -> Floats:
    """Return losses of scores; a loss of the user's own cannot be asked about new scores: then errors."""
    loss = "zero_one" if fitted._reader.loss_fn is not None else fitted.loss
    return loss_table(loss, scores, fitted.threshold, fitted._reader.class_share, None, table, n)
