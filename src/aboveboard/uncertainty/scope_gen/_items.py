"""The drafts for one prompt, all at hand or drawn one by one, and what may be known of them besides their labels."""

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError

__all__ = ["GeneratedItem", "SampledItem", "from_sampler"]

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-6


class GeneratedItem:
    """The drafts that a generator gave for one prompt, in the order in which they were drawn.

    Parameters
    ----------
    samples : sequence of length M
        Texts, molecules or anything else. Drafts that are equal are the same draft and must have the same label.
    quality : array-like of shape (M,), optional
        In [0, 1], higher is better; it must not come from the judge who says what is admissible.
    similarity : array-like of shape (M, M), optional
        In [0, 1], symmetric, 1 on the diagonal.
    labels : array-like of shape (M,), optional
        1 where a draft is admissible, 0 where it is not. Left out, an expert is asked for the few that are needed.
    prompt : object, optional
        What was asked; shown to the expert.

    Raises
    ------
    InputError
        For a wrong shape, values outside [0, 1], an unsymmetric similarity, and equal drafts with unequal labels.
    """

    def __init__(
        self,
        samples: Sequence[Any],
        *,
        quality: ArrayLike | None = None,
        similarity: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        prompt: Any = None,
    ) -> None:
        if isinstance(samples, str) or not hasattr(samples, "__getitem__") or not len(samples):
            raise InputError(f"samples is {samples!r:.80}", expected="a sequence of one or more drafts")
        self.samples = samples
        self.prompt = prompt
        self._quality = None if quality is None else _shares(quality, "quality", (len(samples),))
        self._similarity = None if similarity is None else _similarities(similarity, len(samples))
        self.labels = None if labels is None else _labels(labels, samples)

    def __len__(self) -> int:
        """Return the most drafts there can be."""
        return len(self.samples)

    @property
    def has(self) -> frozenset[str]:
        """What the item tells of its drafts: ``"quality"``, ``"similarity"``."""
        known = {"quality": self._quality, "similarity": self._similarity}
        return frozenset(name for name, values in known.items() if values is not None)

    def draw(self, n: int) -> int:
        """Have `n` drafts ready; return how many are."""
        if n > len(self.samples):
            raise InputError(f"{n} drafts are needed and the item has {len(self.samples)}")
        return len(self.samples)

    def quality_of(self, n: int) -> Floats:
        """Return the quality of the first `n` drafts."""
        if self._quality is None:
            raise InputError("an item has no quality", expected="quality, one number per draft")
        return self._quality[:n]

    def similarity_of(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the similarities of the chosen drafts, shape (k, k)."""
        if self._similarity is None:
            raise InputError("an item has no similarity", expected="similarity, a matrix")
        return self._similarity[np.ix_(chosen, chosen)]

    def stream(self, seed: int, n: int) -> np.random.Generator:
        """Return a generator of random numbers that depends on the seed and on the first `n` drafts only."""
        content = b"" if self._quality is None else self._quality[:n].tobytes()
        return _keyed(seed, content)


class SampledItem:
    """The drafts for one prompt, drawn when they are first needed; made by `from_sampler`."""

    labels: None = None

    def __init__(
        self,
        prompt: Any,
        draw_one: Callable[[], Any],
        quality: Callable[[Any], float] | None,
        similarity: Callable[[Any, Any], float] | None,
        max_samples: int,
    ) -> None:
        self.prompt = prompt
        self.samples: list[Any] = []
        self._draw_one, self._quality_fn, self._similarity_fn = draw_one, quality, similarity
        self._max_samples = max_samples
        self._quality: list[float] = []
        self._similarity: dict[tuple[int, int], float] = {}

    def __len__(self) -> int:
        """Return the most drafts there can be."""
        return self._max_samples

    @property
    def has(self) -> frozenset[str]:
        """What the item tells of its drafts: ``"quality"``, ``"similarity"``."""
        known = {"quality": self._quality_fn, "similarity": self._similarity_fn}
        return frozenset(name for name, function in known.items() if function is not None)

    def draw(self, n: int) -> int:
        """Draw until there are `n` drafts; return how many there are."""
        if n > self._max_samples:
            raise InputError(f"{n} drafts are needed and at most {self._max_samples} may be drawn")
        while len(self.samples) < n:
            self.samples.append(self._draw_one())
        return len(self.samples)

    def quality_of(self, n: int) -> Floats:
        """Return the quality of the first `n` drafts."""
        if self._quality_fn is None:
            raise InputError("an item has no quality", expected="quality_fn")
        self.draw(n)
        while len(self._quality) < n:
            self._quality.append(_share(self._quality_fn(self.samples[len(self._quality)]), "quality_fn"))
        return np.array(self._quality[:n])

    def similarity_of(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the similarities of the chosen drafts, shape (k, k)."""
        if self._similarity_fn is None:
            raise InputError("an item has no similarity", expected="similarity_fn")
        matrix = np.eye(len(chosen))
        for row, i in enumerate(chosen.tolist()):
            for column, j in enumerate(chosen[:row].tolist()):
                pair = (min(i, j), max(i, j))
                if pair not in self._similarity:
                    value = self._similarity_fn(self.samples[pair[0]], self.samples[pair[1]])
                    self._similarity[pair] = _share(value, "similarity_fn")
                matrix[row, column] = matrix[column, row] = self._similarity[pair]
        return matrix

    def stream(self, seed: int, n: int) -> np.random.Generator:
        """Return a generator of random numbers that depends on the seed and on the first `n` drafts only."""
        content = b"" if self._quality_fn is None else self.quality_of(n).tobytes()
        return _keyed(seed, content)


def from_sampler(
    sampler: Callable[[Any, np.random.Generator], Any],
    prompt: Any,
    *,
    quality_fn: Callable[[Any], float] | None = None,
    similarity_fn: Callable[[Any, Any], float] | None = None,
    max_samples: int = 20,
    seed: int | None = None,
) -> SampledItem:
    """Make an item whose drafts are drawn only as far as they are needed.

    Parameters
    ----------
    sampler : callable
        ``sampler(prompt, rng)`` returns one draft; calls must be independent of each other given the prompt.
    prompt : object
    quality_fn : callable, optional
        ``quality_fn(draft)`` in [0, 1].
    similarity_fn : callable, optional
        ``similarity_fn(draft, draft)`` in [0, 1], symmetric.
    max_samples : int, default=20
    seed : int, optional
        Of the `rng` that the sampler gets.

    Returns
    -------
    SampledItem

    Raises
    ------
    InputError
        For a `max_samples` below 1; later, when a function returns a value outside [0, 1].
    """
    if max_samples < 1:
        raise InputError(f"max_samples is {max_samples}", expected="1 or more")
    rng = np.random.default_rng(seed)
    return SampledItem(prompt, lambda: sampler(prompt, rng), quality_fn, similarity_fn, max_samples)


def _shares(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}", expected=f"{shape}, one value per draft")
    if not (np.isfinite(array).all() and (array >= -_ROUNDING).all() and (array <= 1 + _ROUNDING).all()):
        raise InputError(f"{name} holds values outside [0, 1]", expected="numbers from 0 to 1, none missing")
    return np.clip(array, 0.0, 1.0)


def _share(value: float, name: str) -> float:
    return float(_shares([value], name, (1,))[0])


def _similarities(values: ArrayLike, n: int) -> Floats:
    matrix = _shares(values, "similarity", (n, n))
    if np.abs(matrix - matrix.T).max() > _ROUNDING:
        raise InputError("similarity is not symmetric", expected="the same value for (a, b) and (b, a)")
    if np.abs(np.diagonal(matrix) - 1).max() > _ROUNDING:
        raise InputError("a draft is not fully similar to itself", expected="1 on the diagonal of similarity")
    return (matrix + matrix.T) / 2


def _labels(values: ArrayLike, samples: Sequence[Any]) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.shape != (len(samples),) or not np.isin(array, (0, 1)).all():
        raise InputError(f"labels is {values!r:.80}", expected=f"{len(samples)} values, each 0 or 1")
    labels = array.astype(bool)
    seen: dict[Hashable, bool] = {}
    for sample, label in zip(samples, labels.tolist(), strict=True):
        if isinstance(sample, Hashable) and seen.setdefault(sample, label) != label:
            raise InputError(
                f"the draft {sample!r:.80} is admissible in one place and not in another",
                expected="labels that depend on the draft alone",
            )
    return labels


def _keyed(seed: int, content: bytes) -> np.random.Generator:
    digest = hashlib.sha256(seed.to_bytes(8, "big") + content).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
