"""Published counts of phrases and outcomes, from which the paper's figures can be computed again."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary

__all__ = ["truthfulqa_phrases"]

_COUNTS: Final[dict[str, tuple[float, float, int, int]]] = {
    "Definitely": (9, 1, 151, 87),
    "Almost certainly": (8, 2, 45, 18),
    "Highly likely": (7, 3, 146, 52),
    "Probably": (6, 4, 193, 65),
    "Likely": (5, 5, 66, 12),
    "Possibly": (4, 6, 66, 5),
    "Maybe": (3, 7, 30, 2),
    "Unlikely": (2, 8, 75, 10),
    "Highly unlikely": (1, 9, 25, 2),
    "Almost impossible": (1, 10, 14, 5),
    "Certainly not": (1, 11, 1, 0),
    "Impossible": (1, 12, 5, 0),
}


def truthfulqa_phrases() -> tuple[list[str], NDArray[np.int64], PhraseVocabulary]:
    """Return GPT-4o's phrases of certainty on TruthfulQA, and whether its answers were correct.

    Returns
    -------
    phrases : list of str, length 817
    correct : ndarray of shape (817,), int64
        258 are.
    vocabulary : PhraseVocabulary
        The twelve phrases, with the Beta distributions that go with the counts.

    Notes
    -----
    A published aggregate: how often each phrase was used and how often it was right. The items are rebuilt from it,
    so that their order means nothing.

    References
    ----------
    P. Wang, B. D. Lam, Y. Liu, A. Asgari-Targhi, R. Panda, W. M. Wells, T. Kapur, P. Golland, "Calibrating Expressions
    of Certainty", ICLR 2025, and its tutorial. S. Lin, J. Hilton, O. Evans, "TruthfulQA", ACL 2022.
    """
    phrases = [phrase for phrase, (_, _, n, _) in _COUNTS.items() for _ in range(n)]
    correct = np.concatenate([np.arange(n) < right for _, _, n, right in _COUNTS.values()]).astype(np.int64)
    return phrases, correct, PhraseVocabulary.from_beta({phrase: (a, b) for phrase, (a, b, _, _) in _COUNTS.items()})
