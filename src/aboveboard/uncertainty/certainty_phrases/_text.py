"""Phrases of certainty in texts: find them, ask for them, let a language model choose among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from sklearn.utils import check_random_state

from aboveboard.core.errors import InputError
from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary

__all__ = ["choose_phrases", "extract_phrase", "parse_answer", "verbal_confidence_prompt"]

_NEGATED: Final = re.compile(
    r"(?:\b(?:not|no|never|hardly|scarcely|neither|nor|without|cannot)|n['\u2019]t)\s+(?:[\w'\u2019]+\s+){0,2}$",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(
    r"^\s*answer\s*:\s*(.*?)\s*^\s*certainty\s*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE | re.DOTALL
)


def extract_phrase(text: str, vocabulary: PhraseVocabulary) -> tuple[str, tuple[int, int]] | None:
    """Find the phrase of certainty in a text.

    Parameters
    ----------
    text : str
    vocabulary : PhraseVocabulary

    Returns
    -------
    (phrase, (start, end)) or None
        As the vocabulary spells it, and where it stands. The longest phrase wins, then the first. Within a longer
        phrase a shorter one does not count ("almost certainly" is not "certainly"), nor does one that is negated up to
        three words before ("not likely", "isn't at all likely"), unless the vocabulary holds the negated phrase itself.

    Notes
    -----
    O(phrases x length). It reads words, not grammar: a negation further away, or of another clause, is not understood.

    Examples
    --------
    >>> from aboveboard.uncertainty import PhraseVocabulary, extract_phrase
    >>> words = PhraseVocabulary.from_beta({"likely": (7, 3), "very likely": (9, 1)})
    >>> extract_phrase("Rain is very likely tonight.", words)
    ('very likely', (8, 19))
    >>> extract_phrase("Rain is not likely.", words) is None
    True
    """
    found: list[tuple[int, int, str]] = []
    for phrase in sorted(vocabulary.phrases, key=len, reverse=True):
        pattern = r"(?<![\w-])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?![\w-])"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if not any(start <= match.start() and match.end() <= end for start, end, _ in found):
                found.append((*match.span(), phrase))
    plain = [(start, end, phrase) for start, end, phrase in found if not _NEGATED.search(text[:start])]
    if not plain:
        return None
    start, end, phrase = min(plain, key=lambda item: (item[0] - item[1], item[0]))
    return phrase, (start, end)


def verbal_confidence_prompt(question: str, vocabulary: PhraseVocabulary, *, random_state: Any = None) -> str:
    """Return a prompt that asks for an answer and for how certain it is, in words of the vocabulary.

    Parameters
    ----------
    question : str
    vocabulary : PhraseVocabulary
    random_state : int, RandomState or None
        The order of the phrases is drawn anew for each question, since models favour some places in a list.

    Examples
    --------
    >>> from aboveboard.uncertainty import PhraseVocabulary, parse_answer, verbal_confidence_prompt
    >>> words = PhraseVocabulary.from_points({"likely": 0.8, "unlikely": 0.2})
    >>> "likely" in verbal_confidence_prompt("Is Rome in Italy?", words, random_state=0)
    True
    >>> parse_answer("Answer: yes\\nCertainty: Likely.")
    ('yes', 'Likely')
    """
    order = check_random_state(random_state).permutation(len(vocabulary))
    listed = ", ".join(vocabulary.phrases[k] for k in order)
    return (
        f"{question.strip()}\n\nGive your answer, and how certain you are that it is right, in two lines:\n"
        f"Answer: <your answer>\nCertainty: <one of: {listed}>"
    )


def parse_answer(text: str) -> tuple[str, str] | None:
    """Return answer and certainty of a reply in the form that `verbal_confidence_prompt` asks for, or None.

    Parameters
    ----------
    text : str
    """
    match = _ANSWER.search(text)
    return None if match is None else (match[1].strip(), match[2].strip().rstrip(".!"))


def choose_phrases(
    log_probabilities: Callable[[Sequence[str], Sequence[str]], tuple[np.ndarray, np.ndarray]],
    prompts: Sequence[str],
    vocabulary: PhraseVocabulary,
) -> list[str]:
    """Let a language model choose a phrase for each prompt: the one of the lowest perplexity.

    For models that do not keep to a format when they write freely.

    Parameters
    ----------
    log_probabilities : callable
        Takes prompts and continuations, returns the sums of the log-probabilities, (prompts, continuations), and the
        numbers of tokens of the continuations: `aboveboard.data.LanguageModel.log_probabilities`.
    prompts : sequence of str
    vocabulary : PhraseVocabulary

    Returns
    -------
    list of str
    """
    scores, n_tokens = log_probabilities(prompts, vocabulary.phrases)
    scores, n_tokens = np.asarray(scores, dtype=np.float64), np.asarray(n_tokens)
    if scores.shape != (len(prompts), len(vocabulary)) or not np.isfinite(scores).all():
        raise InputError(
            f"the log-probabilities have the shape {scores.shape}, or are not finite",
            expected=f"{len(prompts)} rows of {len(vocabulary)} finite numbers",
        )
    return [vocabulary.phrases[k] for k in (scores / n_tokens).argmax(axis=1)]
