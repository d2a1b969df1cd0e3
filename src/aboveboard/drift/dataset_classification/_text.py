"""Texts: character n-grams, or an embedding that the user brings."""

import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._controls import Candidates, Rung, Trial
from aboveboard.drift.dataset_classification._learners import LogisticLearner, Trained, TreesLearner, estimator_learner
from aboveboard.drift.dataset_classification._modality import IMPORTANCE_COLUMNS, no_importance
from aboveboard.drift.dataset_classification._splits import Split
from aboveboard.drift.dataset_classification._tables import Features, named_frame

__all__ = ["TextModality", "embedded"]

_NGRAMS: Final = (1, 4)
_MOST_NGRAMS: Final = 50_000
_TOLD: Final = 20

_ROWS: Final = 2_000
_TINY: Final = 1e-12


class TextModality:
    """Rows that are texts."""

    def __init__(self, embedding: Callable[[Any], Any] | None) -> None:
        self.embedding = embedding
        self.excluded_: dict[str, str] = {}

    def check(self, name: str, data: Any) -> NDArray[Any]:
        if isinstance(data, str) or not hasattr(data, "__len__"):
            raise InputError(f"{name} is {type(data).__name__}", expected="a sequence of texts")
        texts = np.empty(len(data), dtype=object)
        texts[:] = list(data)
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None or any(text is None for text in texts):
            raise InputError(f"{name} holds {type(wrong).__name__}", expected="texts only", remedy="Drop missing texts")
        return texts

    def take(self, data: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(data[rows])

    def same(self, one: NDArray[Any], other: NDArray[Any]) -> bool:
        return len(one) == len(other) and bool((one == other).all())

    def join(self, parts: Mapping[str, NDArray[Any]], codes: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        return np.concatenate(list(parts.values()))

    def features(self, data: NDArray[Any], split: Split) -> Features:  # noqa: ARG002
        return Features(data) if self.embedding is None else embedded(self.embedding, list(data))

    def read(self, X: Any) -> Features:
        texts = self.check("X", X)
        return Features(texts) if self.embedding is None else embedded(self.embedding, list(texts))

    def candidates(self, estimator: Any) -> Candidates:
        if estimator is not None:
            return {type(estimator).__name__: estimator_learner(estimator)}
        if self.embedding is not None:
            return {"logistic regression": LogisticLearner, "gradient-boosted trees": TreesLearner}
        return {"character n-grams, logistic regression": NgramLearner}

    def default_rungs(self, data: Any) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(_CHANGES)

    def check_rung(self, name: str, features: Features) -> None:  # noqa: ARG002
        if name not in _CHANGES:
            raise InputError(f"ladder names {name!r}", expected=f"some of {', '.join(map(repr, _CHANGES))} for text")

    def rung(self, name: str, importance: pd.DataFrame, trial: Trial) -> list[Rung]:  # noqa: ARG002
        change = _CHANGES[name]

        def apply(trial: Trial, rng: np.random.Generator) -> Features:
            changed = np.empty(len(trial.data), dtype=object)
            changed[:] = change(list(trial.data), rng)
            return self.features(changed, trial.split)

        return [Rung(name, apply)]

    def importance(self, trained: Trained, trial: Trial, seed: int) -> pd.DataFrame:  # noqa: ARG002
        """Return what it costs to strike out words: those whose share of texts differs most between sources."""
        if self.embedding is not None:
            return no_importance()
        rows = trial.split.held_out[:_ROWS]
        codes, texts = trial.codes[rows], list(trial.data[rows])

        def quality(texts: list[str]) -> tuple[float, float]:
            proba = trained.proba(Features(np.array(texts, dtype=object)))
            own = np.maximum(proba[np.arange(len(codes)), codes], _TINY)
            return float(-np.log(own).mean()), float((proba.argmax(axis=1) == codes).mean())

        loss, accuracy = quality(texts)
        found = []
        for word in _telling_words(list(trial.data[trial.split.train]), trial.codes[trial.split.train], trial.m):
            pattern = re.compile(rf"\b{re.escape(word)}\b")
            new_loss, new_accuracy = quality([pattern.sub("", text) for text in texts])
            found.append((word, new_loss - loss, accuracy - new_accuracy))
        return named_frame(sorted(found, key=lambda row: -row[1]), IMPORTANCE_COLUMNS)


class NgramLearner:
    """Logistic regression on weights of character n-grams."""

    cross_validated = True

    def fit(self, features: Features, codes: NDArray[np.intp], m: int, seed: int) -> Self:  # noqa: ARG002
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        self.vectorizer_ = TfidfVectorizer(
            analyzer="char",
            ngram_range=_NGRAMS,
            min_df=2,
            max_features=_MOST_NGRAMS,
            sublinear_tf=True,
            lowercase=False,
        )
        self.model_ = LogisticRegression(C=10.0, max_iter=500, tol=1e-3)
        try:
            X = self.vectorizer_.fit_transform(features.values)
        except ValueError as error:
            raise InputError("no run of characters occurs in two texts", expected="longer texts") from error
        self.model_.fit(X, codes)
        return self

    def predict_proba(self, features: Features) -> NDArray[np.float64]:
        return np.asarray(self.model_.predict_proba(self.vectorizer_.transform(features.values)))


def _telling_words(texts: list[str], codes: NDArray[np.intp], m: int) -> list[str]:
    counts: dict[str, NDArray[np.float64]] = {}
    for text, code in zip(texts, codes, strict=True):
        for word in set(re.findall(r"\w+", text)):
            counts.setdefault(word, np.zeros(m))[code] += 1
    sizes = np.bincount(codes, minlength=m)
    spread = {word: float(np.ptp(count / sizes)) for word, count in counts.items()}
    return sorted(spread, key=lambda word: (-spread[word], word))[:_TOLD]


def embedded(embedding: Callable[[Any], Any], data: Any) -> Features:
    """Return the user's embedding of rows, checked."""
    values = np.asarray(embedding(data), dtype=np.float64)
    if values.ndim != 2 or len(values) != len(data) or not np.isfinite(values).all():
        raise InputError(
            f"the embedding gave shape {values.shape} for {len(data)} rows"
            + ("" if np.isfinite(values).all() else ", with values that are not finite"),
            expected="one row of finite numbers per row",
        )
    names = tuple(f"dimension {j}" for j in range(values.shape[1]))
    return Features(values, names, np.zeros(values.shape[1], dtype=bool))


def _lower(texts: list[str], _: Any) -> list[str]:
    return [text.lower() for text in texts]


def _letters(texts: list[str], _: Any) -> list[str]:
    return [re.sub(r"[\W\d_]+", " ", text).strip() for text in texts]


def _equal_length(texts: list[str], _: Any) -> list[str]:
    """Cut or pad all texts to the length that nine in ten reach, so that lengths tell nothing."""
    length = max(int(np.quantile([len(text) for text in texts], 0.1)), 1)
    return [text[:length].ljust(length) for text in texts]


def _word_order(texts: list[str], rng: np.random.Generator) -> list[str]:
    draw = random.Random(int(rng.integers(2**31)))  # noqa: S311 - no secret
    shuffled = []
    for text in texts:
        words = text.split()
        draw.shuffle(words)
        shuffled.append(" ".join(words))
    return shuffled


_CHANGES: Final[dict[str, Callable[[list[str], np.random.Generator], list[str]]]] = {
    "case": _lower,
    "punctuation_digits": _letters,
    "length": _equal_length,
    "word_order": _word_order,
}
