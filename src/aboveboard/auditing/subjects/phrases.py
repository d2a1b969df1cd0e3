"""Phrases of certainty and what came true: a row per statement, or counts of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.frames import column_kind, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

if TYPE_CHECKING:
    from aboveboard.uncertainty import PhraseVocabulary

__all__ = ["PhrasesSubject", "example", "read"]

_TRUE: Final = frozenset({"true", "1", "1.0", "yes"})
_FALSE: Final = frozenset({"false", "0", "0.0", "no"})
_MOST_GROUPS: Final = 50
_MOST_ITEMS: Final = 10_000_000
_MISSING: Final = "(missing)"


@dataclass(frozen=True, kw_only=True)
class PhrasesSubject(SuiteSubject):
    """Statements with a phrase of certainty, and whether they came true.

    Attributes
    ----------
    phrases : list of str
    outcomes : ndarray of float
    vocabulary : PhraseVocabulary
    meanings : str
        Where the vocabulary comes from.
    groups : DataFrame of text, or None
    """

    phrases: list[str]
    outcomes: NDArray[np.float64]
    vocabulary: "PhraseVocabulary"
    meanings: str
    groups: pd.DataFrame | None

    def __len__(self) -> int:
        return len(self.phrases)

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        used = len(set(self.phrases))
        return f"{len(self):,} statements with {used:,} {'phrase' if used == 1 else 'phrases'} of certainty"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts, and what the phrases were taken to mean."""
        groups = () if self.groups is None else self.groups.columns
        return (
            ("Phrases in use", len(set(self.phrases))),
            ("Came true, of all", round(float(self.outcomes.mean()), 4)),
            ("Meaning of the phrases", self.meanings),
            *((f"Values of {name}", int(self.groups[name].nunique())) for name in groups if self.groups is not None),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> PhrasesSubject:
    """Read phrases, outcomes and what the phrases mean.

    Parameters
    ----------
    table : RoleColumns
        With phrase, or text in which it is looked for; outcome; alpha and beta, or mean: what the phrases mean.
    settings : mapping
        unknown (refuse or leave out).

    Raises
    ------
    InputError
        When roles do not go together, an outcome is neither true nor false nor a probability, a phrase has several
        meanings or none, or fewer than 30 statements are left.
    """
    from aboveboard.uncertainty import extract_phrase

    table.need("outcome", why="whether the statement came true")
    if ("phrase" in table) == ("text" in table):
        raise InputError(
            "no column was named as phrase or text, or both were",
            expected="the phrase of each statement, or a text in which to look for it",
            remedy="Say columns={'phrase': NAME} (--column phrase=NAME)",
        )
    said = _texts(table["phrase"] if "phrase" in table else table["text"], "phrase" if "phrase" in table else "text")
    outcomes, counts = _outcomes(table["outcome"]), _counts(table.get("count"), len(said))
    vocabulary, meanings = _vocabulary(table, said)
    notes: list[str] = []
    if "text" in table:
        found = [extract_phrase(text, vocabulary) for text in said]
        said = ["" if match is None else match[0] for match in found]
    known = np.array([phrase in vocabulary for phrase in said])
    if not known.all():
        if settings.get("unknown", "refuse") == "refuse" and "phrase" in table:
            vocabulary.codes(said)  # refuses, and names them
        if settings.get("unknown", "refuse") == "refuse":
            raise InputError(
                f"{int((~known).sum()):,} of {len(said):,} texts hold no phrase of the vocabulary, or a negated one",
                expected=", ".join(vocabulary.phrases[:20]),
                remedy="Leave them out: settings={'unknown': 'leave out'} (--setting 'unknown=leave out')",
            )
        notes.append(
            f"{int((~known).sum()):,} of {len(said):,} rows hold no phrase of the vocabulary and were left out."
        )
    kept = np.flatnonzero(known).repeat(counts[known])
    groups = _groups(table)
    spelled = {phrase.casefold(): phrase for phrase in vocabulary.phrases}
    phrases = [spelled.get(said[i].casefold(), said[i]) for i in kept]
    if len(phrases) < 30:
        raise InputError(f"{len(phrases)} statements are left", expected="at least 30")
    return PhrasesSubject(
        phrases=phrases,
        outcomes=outcomes[kept],
        vocabulary=vocabulary,
        meanings=meanings,
        groups=None if groups is None else groups.iloc[kept].reset_index(drop=True),
        data_sha256=fingerprint(
            phrases, outcomes[kept], list(vocabulary.phrases), vocabulary.mean, vocabulary.variance
        ),
        notes=tuple(notes),
        **common,
    )


def example(*, random_state: int) -> Example:  # noqa: ARG001 - real data
    """Return the published counts of GPT-4o's phrases on TruthfulQA."""
    from aboveboard.uncertainty import truthfulqa_phrases

    phrases, correct, vocabulary = truthfulqa_phrases()
    frame = pd.DataFrame({"phrase": phrases, "correct": correct})
    frame = frame.groupby(["phrase", "correct"], sort=False, as_index=False).size().rename(columns={"size": "count"})
    a = dict(zip(vocabulary.phrases, vocabulary.mean * vocabulary.concentration))
    b = dict(zip(vocabulary.phrases, (1 - vocabulary.mean) * vocabulary.concentration))
    frame["a"], frame["b"] = frame["phrase"].map(a).round(9), frame["phrase"].map(b).round(9)
    return Example(
        frame=frame,
        columns={"phrase": "phrase", "outcome": "correct", "count": "count", "alpha": "a", "beta": "b"},
        note=(
            "The example: how often GPT-4o used each of twelve phrases on TruthfulQA and was right, as published by "
            "Wang and others, ICLR 2025, with the Beta distributions given there."
        ),
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _texts(series: "pd.Series[Any]", role: str) -> list[str]:
    if series.isna().any():
        raise InputError(f"the {role} is missing in {int(series.isna().sum()):,} rows", expected="a value in every row")
    return [" ".join(plain_label(value).split()) for value in series]


def _outcomes(series: "pd.Series[Any]") -> NDArray[np.float64]:
    if series.isna().any():
        raise InputError(f"the outcome is missing in {int(series.isna().sum()):,} rows", expected="one in every row")
    if column_kind(series) == "number":
        values = numbers(series).astype("float64")
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(
                f"the column {series.name!r} holds outcomes outside 0 to 1", expected="0, 1, or a probability"
            )
        return np.asarray(values)
    words = [plain_label(value).strip().casefold() for value in series]
    wrong = next((word for word in words if word not in _TRUE | _FALSE), None)
    if wrong is not None:
        raise InputError(
            f"the column {series.name!r} holds the outcome {wrong!r}", expected="0, 1, true, false, yes or no"
        )
    return np.array([float(word in _TRUE) for word in words])


def _counts(series: "pd.Series[Any] | None", rows: int) -> NDArray[np.int64]:
    if series is None:
        return np.ones(rows, dtype=np.int64)
    values = _number_column(series)
    if not ((values >= 0) & (values == np.floor(values))).all() or values.sum() > _MOST_ITEMS:
        raise InputError(
            f"the column {series.name!r} does not hold counts",
            expected=f"whole numbers, {_MOST_ITEMS:,} at most in all",
        )
    return values.astype(np.int64)


def _number_column(series: "pd.Series[Any]") -> NDArray[np.float64]:
    try:
        values: NDArray[np.float64] = numbers(series).astype("float64")
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {series.name!r} holds something that is no number", expected="numbers") from error
    if not np.isfinite(values).all():
        raise InputError(f"the column {series.name!r} lacks values, or holds infinite ones", expected="finite numbers")
    return values


def _vocabulary(table: RoleColumns, said: list[str]) -> "tuple[PhraseVocabulary, str]":
    """Return what the phrases mean: by columns of the file, or as in the published study."""
    from aboveboard.uncertainty import PhraseVocabulary, truthfulqa_phrases

    if "mean" in table or "alpha" in table or "beta" in table:
        if "text" in table:
            raise InputError("the meaning of phrases was given beside texts", expected="a column named as phrase")
        if "mean" in table and ("alpha" in table or "beta" in table):
            raise InputError("columns were named as mean and as alpha or beta", expected="mean, or alpha and beta")
        if "mean" in table:
            return PhraseVocabulary.from_points(_meanings(said, table["mean"])), "one number each, by a column"
        table.need("alpha", "beta", why="the parameters of the Beta distribution of each phrase")
        a, b = _meanings(said, table["alpha"]), _meanings(said, table["beta"])
        return PhraseVocabulary.from_beta(
            {phrase: (a[phrase], b[phrase]) for phrase in a}
        ), "Beta distributions, by columns"
    return truthfulqa_phrases()[2], "as in Wang et al., ICLR 2025"


def _meanings(said: list[str], series: "pd.Series[Any]") -> dict[str, float]:
    values = _number_column(series)
    found: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for phrase, value in zip(said, values):
        first = spelled.setdefault(phrase.casefold(), phrase)
        if found.setdefault(first, float(value)) != value:
            raise InputError(
                f"the phrase {phrase!r} has several values in the column {series.name!r}",
                expected="one meaning per phrase",
            )
    return found


def _groups(table: RoleColumns) -> pd.DataFrame | None:
    columns = table.all("group")
    if not columns:
        return None
    for column in columns:
        if column.nunique() > _MOST_GROUPS:
            raise InputError(
                f"the column {column.name!r} has {column.nunique():,} values", expected=f"at most {_MOST_GROUPS} groups"
            )
    texts = [[_MISSING if pd.isna(value) else plain_label(value) for value in column] for column in columns]
    frame = pd.DataFrame(dict(enumerate(texts)), dtype=object)
    return frame.set_axis(pd.Index([str(column.name) for column in columns], dtype=object), axis=1)
