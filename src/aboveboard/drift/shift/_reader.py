"""From tables and models as users have them to rows with losses."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._tables import Features, TableEncoder, as_frame, joined
from aboveboard.drift.shift._rows import Rows, binary_labels, loss_table

__all__ = ["Domain", "Reader", "column_groups", "read_domains"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FEWEST_ROWS = 200
_ALL = slice(None)


class Domain(NamedTuple):
    """Rows of one domain, with what the audited model says of them."""

    rows: Rows
    scores: Floats | None
    positions: NDArray[np.intp]
    """Where the rows stand in the table as given: all of it, or for "ppv" those predicted positive."""


class Reader:
    """Reads new rows as those that were fitted.

    Parameters
    ----------
    encoder : TableEncoder
    model : object or None
    loss, threshold, direction, loss_fn
        As for `SHIFT`.
    class_share : float
    """

    def __init__(
        self,
        encoder: TableEncoder,
        model: Any,
        *,
        loss: str,
        threshold: float,
        direction: int,
        loss_fn: Any,
        class_share: float,
    ) -> None:
        self.encoder, self.model, self.loss, self.threshold = encoder, model, loss, threshold
        self.direction, self.loss_fn, self.class_share = direction, loss_fn, class_share

    def __call__(self, X: Any, predictions: Any = None) -> tuple[Rows, Mask]:
        """Return rows without labels, and which of them the loss is about."""
        features = self.encoder.read(X)
        scores = self.scores(X, predictions, len(features), "X")
        rows = Rows(features, self.losses(X, scores, len(features)), np.zeros(len(features), dtype=np.intp))
        return rows, self.judged(scores, len(features))

    def with_scores(self, X: Any, predictions: Any = None) -> tuple[Rows, Mask, Floats]:
        """Return the same and the scores.

        Raises
        ------
        InputError
            Where nothing gives scores.
        """
        rows, judged = self(X, predictions)
        scores = self.scores(X, predictions, len(rows), "X")
        if scores is None:
            raise InputError("there is no model", expected="predictions=..., what the audited model says of these rows")
        return rows, judged, scores

    def losses(self, X: Any, scores: Floats | None, n: int) -> Floats:
        """Return the losses under both labels; improvements are looked for as decays of the negative loss."""
        return self.direction * loss_table(self.loss, scores, self.threshold, self.class_share, self.loss_fn, X, n)

    def judged(self, scores: Floats | None, n: int) -> Mask:
        if self.loss != "ppv" or self.loss_fn is not None or scores is None:
            return np.ones(n, dtype=bool)
        return scores >= self.threshold

    def scores(self, X: Any, predictions: Any, n: int, what: str) -> Floats | None:
        """Return the probability of class 1 (or the label) that the model gives each row; None without a model."""
        if predictions is None and self.model is None:
            if self.loss_fn is None:
                raise InputError(
                    f"there is neither a model nor predictions for {what}", expected="model=... or predictions=..."
                )
            return None
        values = _asked(self.model, X) if predictions is None else np.asarray(predictions, dtype=np.float64)
        if values.shape != (n,):
            raise InputError(f"predictions for {what} have shape {values.shape}", expected=f"({n},): one per row")
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
            raise InputError(
                f"predictions for {what} run from {values.min()} to {values.max()}",
                expected="probabilities of class 1, or labels 0 and 1",
            )
        return values


def read_domains(
    source: tuple[Any, Any, Any], target: tuple[Any, Any, Any], settings: Any, model: Any, loss_fn: Any
) -> tuple[Reader, Domain, Domain]:
    """Return a reader, and the rows of source and target; each is given as (X, y, predictions or None)."""
    names = ("the source", "the target")
    frames = {name: as_frame(part[0], name) for name, part in zip(names, (source, target), strict=True)}
    for name, frame in frames.items():
        if len(frame) < _FEWEST_ROWS:
            raise InputError(
                f"{name} has {len(frame)} rows",
                expected=f"{_FEWEST_ROWS} or more",
                remedy="Half of them are spent on learning where to look, half on the test",
            )
    both = joined(frames)
    encoder = TableEncoder().fit(both)
    features = encoder.transform(both)
    labels = [
        binary_labels(part[1], len(frames[name]), name) for name, part in zip(names, (source, target), strict=True)
    ]
    reader = Reader(
        encoder,
        model,
        loss=settings.loss,
        threshold=settings.threshold,
        direction=settings.direction,
        loss_fn=loss_fn,
        class_share=float(labels[0].mean()),
    )
    cut = len(labels[0])
    parts = (features.take(np.arange(cut)), features.take(np.arange(cut, len(features))))
    domains = [
        _domain(reader, part[0], part[2], own, y, name)
        for part, own, y, name in zip((source, target), parts, labels, names, strict=True)
    ]
    return reader, domains[0], domains[1]


def _domain(reader: Reader, X: Any, predictions: Any, features: Features, y: NDArray[np.intp], name: str) -> Domain:
    scores = reader.scores(X, predictions, len(y), name)
    positions = np.flatnonzero(reader.judged(scores, len(y)))
    if len(positions) < _FEWEST_ROWS:
        raise InputError(
            f"{name} has {len(positions)} rows that are predicted positive", expected=f"{_FEWEST_ROWS} or more"
        )
    rows = Rows(features, reader.losses(X, scores, len(y)), y)
    if len(positions) == len(y):
        return Domain(rows, scores, positions)
    kept = rows.take(positions)
    if len(np.unique(kept.y)) < 2:
        raise InputError(f"rows of {name} that are predicted positive have one label alone", expected="both classes")
    return Domain(kept, None if scores is None else scores[positions], positions)


def column_groups(candidates: Any, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the columns of each candidate by position; every column alone where none are given."""
    if candidates is None:
        return {name: (j,) for j, name in enumerate(names)}
    if not hasattr(candidates, "items") or not len(candidates):
        raise InputError(
            f"candidates is {type(candidates).__name__}", expected="a dict from a name to a list of columns, not empty"
        )
    places = {name: j for j, name in enumerate(names)}
    groups = {}
    for name, columns in candidates.items():
        if isinstance(columns, str) or not len(columns):
            raise InputError(f"candidate {str(name)!r} is {columns!r}", expected="a list of one column or more")
        wanted = [f"x{c}" if isinstance(c, int) and str(c) not in places else str(c) for c in columns]
        unknown = [column for column in wanted if column not in places]
        if unknown:
            raise InputError(
                f"candidate {str(name)!r} names columns that there are not: {', '.join(map(repr, unknown[:5]))}",
                expected=f"some of {', '.join(map(repr, names[:10]))}{' ...' if len(names) > 10 else ''}",
            )
        groups[str(name)] = tuple(sorted({places[column] for column in wanted}))
    return groups


def _asked(model: Any, X: Any) -> Floats:
    if hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(X), dtype=np.float64)
        if proba.ndim != 2 or proba.shape[1] != 2:
            raise InputError(f"predict_proba gives shape {proba.shape}", expected="two columns: a binary classifier")
        return proba[:, 1]
    if not hasattr(model, "predict"):
        raise InputError(f"the model is {type(model).__name__}", expected="an object with predict_proba or predict")
    return np.asarray(model.predict(X), dtype=np.float64)


def rows_of(X: Any, positions: NDArray[np.intp]) -> Any:
    """Return some rows of a table in its own container."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[positions]
    return X[positions] if hasattr(X, "__getitem__") else np.asarray(X)[positions]
