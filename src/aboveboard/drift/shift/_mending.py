"""How `SHIFT.repair` chooses what to learn, and tries it on the test half."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.shift._fold import Fold
from aboveboard.drift.shift._inference import Family
from aboveboard.drift.shift._nuisances import candidates_of, fit_density_ratio
from aboveboard.drift.shift._reader import rows_of
from aboveboard.drift.shift._repair import OutcomePatch, RepairedClassifier, Reweighted, Trial, trial
from aboveboard.drift.shift._rows import Rows, binary_labels

__all__ = ["mend"]

Floats = NDArray[np.float64]


def mend(
    fitted: Any, kind: Family, X: Any, y: Any, candidate: str | None, where: str, estimator: Any, predictions: Any
) -> RepairedClassifier:
    """Return a repaired classifier; see `SHIFT.repair`."""
    subgroup = fitted.subgroup(kind)
    fold, parts = fitted.best_fold(kind)
    name, columns = _explanation(fitted, kind, candidate)
    source, target = fitted._domains
    if target.scores is None:
        raise InputError("there is no model to repair", expected="model=... or predictions=... in fit")
    if X is None:
        rows, scores = fold.halves.target_train, target.scores[parts[1]]
        inside = subgroup.detector(rows)
    else:
        rows, judged, scores = fitted._reader.with_scores(X, predictions)
        rows = Rows(rows.features, rows.losses, binary_labels(y, len(rows), "the rows to learn from"))
        inside = subgroup.detector(rows) & judged
    if kind == "outcome":
        candidates, seed = candidates_of(fitted.outcome_model), fitted._seed
        patch: Any = OutcomePatch.fit(rows, scores, inside, columns, candidates, seed)
    else:
        patch = _reweighted(fitted, fold, rows, columns, parts[0], estimator)
    names = tuple(rows.features.names[j] for j in columns)
    repaired = RepairedClassifier(kind, name, names, where, patch, subgroup, fitted.threshold)
    if X is None:
        repaired.trial_ = _tried(fitted, repaired, fold, parts[3])
    return repaired


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


def _tried(fitted: Any, repaired: RepairedClassifier, fold: Fold, part: NDArray[np.intp]) -> Trial:
    target, rows = fitted._domains[1], fold.halves.target_test
    table, scores = rows_of(fitted._tables[1], target.positions[part]), target.scores[part]
    inside = repaired.subgroup.detector(rows)
    mended = repaired.mended(rows, scores, inside, table)
    at = np.arange(len(rows)), rows.y
    before, after = (_tried_losses(fitted, table, proba, len(rows))[at] for proba in (scores, mended))
    return trial(before, after, inside)


def _tried_losses(fitted: Any, table: Any, scores: Floats, n: int) -> Floats:
    """Return losses of scores; a loss of the user's own cannot be asked about new scores: then errors."""
    from aboveboard.drift.shift._rows import loss_table

    loss = "zero_one" if fitted._reader.loss_fn is not None else fitted.loss
    return loss_table(loss, scores, fitted.threshold, fitted._reader.class_share, None, table, n)
