"""What each stage does to a set of drafts: an order, and a score for every prefix of it that grows with the prefix."""

from collections.abc import Hashable, Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError
from aboveboard.uncertainty.scope_gen._items import GeneratedItem, SampledItem

__all__ = [
    "DEFAULT_GAMMA",
    "FILTERS",
    "SCORES",
    "Item",
    "Score",
    "diversity_walk",
    "generation_scores",
    "quality_walk",
    "unequal",
]

Floats = NDArray[np.float64]
Chosen = NDArray[np.intp]
Item = GeneratedItem | SampledItem
Score = Literal["count", "sum", "max"]

SCORES: Final = ("count", "sum", "max")
FILTERS: Final = ("duplicates", "diversity", "quality")
DEFAULT_GAMMA: Final[Mapping[str, float]] = {"count": 1.0, "sum": 0.5, "max": 0.1, "quality": 0.5, "diversity": 0.1}
"""What each further draft adds to a score, so that scores grow with the set."""


def generation_scores(item: Item, n: int, score: Score, gamma: float) -> Floats:
    """Return the score of the first 1, 2, ..., n drafts in the order in which they were drawn."""
    size = gamma * np.arange(1.0, n + 1.0)
    if score == "count":
        return size
    quality = item.quality_of(n)
    running: Floats = np.cumsum(quality) if score == "sum" else np.maximum.accumulate(quality)
    return size + running


def quality_walk(item: Item, kept: Chosen, gamma: float) -> tuple[Chosen, Floats]:
    """Order drafts from the best down; a prefix scores minus its worst quality."""
    quality = item.quality_of(int(kept.max()) + 1)[kept]
    order = np.argsort(-quality, kind="stable")
    return kept[order], gamma * np.arange(1.0, len(kept) + 1.0) - quality[order]


def diversity_walk(item: Item, kept: Chosen, gamma: float, rng: np.random.Generator) -> tuple[Chosen, Floats]:
    """Order drafts by farthest-first traversal; a prefix scores the largest similarity within it.

    It starts at random, and each next draft is the one whose largest similarity to those before it is least.
    """
    similarity = item.similarity_of(kept)
    order = np.empty(len(kept), dtype=np.intp)
    largest = np.empty(len(kept))  # to those before it
    nearest = np.full(len(kept), -np.inf)
    place = int(rng.integers(len(kept)))
    for step in range(len(kept)):
        order[step], largest[step] = place, nearest[place]
        nearest = np.maximum(nearest, similarity[place])
        nearest[place] = np.inf
        place = int(np.argmin(nearest))
    scores = np.maximum.accumulate(largest) + gamma * np.arange(1.0, len(kept) + 1.0)
    scores[0] = -1.0
    return kept[order], scores


def unequal(item: Item, kept: Chosen) -> Chosen:
    """Return the first of each group of equal drafts."""
    seen: set[Hashable] = set()
    first = []
    for place in kept.tolist():
        sample: Any = item.samples[place]
        if not isinstance(sample, Hashable):
            raise InputError(
                f"a draft is of type {type(sample).__name__}, which cannot be compared",
                expected="text or another hashable type for the stage 'duplicates'",
            )
        if sample not in seen:
            seen.add(sample)
            first.append(place)
    return np.array(first, dtype=np.intp)
