"""What it means that a feature is absent: columns, words or pixels are replaced by a baseline.

A masker binds the inputs that are to be explained, and then makes the model's inputs from coalitions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from aboveboard.core.errors import InputError
from aboveboard.explanation.gefa._coalitions import Bools, Floats, Noise

__all__ = ["Bound", "ImageMasker", "Masker", "TabularMasker", "TokenMasker"]

Ints = NDArray[np.intp]

_TRUNCATE: Final = 3.0
"""Where a Gaussian of standard deviation 5 ends, to be 31 pixels wide as the paper's."""


class Bound(Protocol):
    """Inputs to be explained, which share their number of features.

    Attributes
    ----------
    names : tuple of str
    repeats : int
        Inputs of the model for each coalition, over which its answers are averaged.
    cells : int
        Numbers that an input of the model holds, roughly.
    noise : callable or None
        Scores by which coalitions are drawn, where they are not to be independent; see `Noise`.
    """

    names: tuple[str, ...]
    repeats: int
    cells: int
    noise: Noise | None

    def __len__(self) -> int: ...

    def whole(self) -> Any:
        """Return the inputs as they are."""

    def masked(self, who: Ints, present: Bools) -> Any:
        """Return the model's inputs for some coalitions: `repeats` in a row for each.

        Parameters
        ----------
        who : ndarray of int, shape (m,)
            Which input each belongs to.
        present : ndarray of bool, shape (m, n)
        """

    def values(self, row: int) -> tuple[Any, ...]:
        """Return one input's features as they are to be shown; may be empty."""

    def baseline(self, row: int) -> Any:
        """Return what absent features of one input are replaced by."""


class Masker(Protocol):
    """Says what it means that a feature is absent."""

    def bind_one(self, x: Any) -> Bound:
        """Bind one input."""

    def bind(self, X: Any) -> Bound:
        """Bind many inputs."""


# --- tables -----------------------------------------------------------------------------------------------------------


class TabularMasker:
    """Absent columns take the values of background rows, and answers are averaged over these.

    Parameters
    ----------
    background : DataFrame of shape (b, d), or array of shape (b, d) or (d,)
        One row, such as a typical one, or some rows of the data. The model gets what this is: a data frame with the
        same columns and types, or an array.
    groups : dict of str to sequence, optional
        Columns (names, or positions in an array) that are present or absent together, by the name of their feature.
        Columns that are not named are features by themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.explanation import GEFA, TabularMasker
    >>> masker = TabularMasker(np.zeros(3), groups={"place": [0, 1]})
    >>> GEFA(lambda X: X @ [1.0, 2.0, 4.0], masker).explain(np.ones(3)).to_frame()["attribution"].to_dict()
    {'x2': 4.0, 'place': 3.0}
    """

    def __init__(
        self, background: pd.DataFrame | ArrayLike, *, groups: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        if isinstance(background, pd.DataFrame):
            self.background: Any = background.reset_index(drop=True)
            columns: list[Any] = list(background.columns)
            if len(set(columns)) < len(columns):
                raise InputError("two columns of the background have the same name", expected="different names")
        else:
            self.background = np.atleast_2d(np.asarray(background))
            columns = list(range(self.background.shape[-1]))
        if self.background.ndim != 2 or 0 in self.background.shape:
            raise InputError(
                f"the background has shape {self.background.shape}", expected="one row or more, of columns"
            )
        self.groups = groups
        self._player, self._names = _players_of(columns, groups or {}, isinstance(background, pd.DataFrame))

    def bind_one(self, x: Any) -> Bound:
        return self.bind(_as_rows(x, self.background))

    def bind(self, X: Any) -> Bound:
        if isinstance(self.background, pd.DataFrame):
            return _BoundFrame(self._player, self._names, X, self.background)
        return _BoundArray(self._player, self._names, X, self.background)


def _players_of(
    columns: Sequence[Any], groups: Mapping[str, Sequence[Any]], named: bool
) -> tuple[Ints, tuple[str, ...]]:
    """Return which feature each column belongs to, and the features' names, in the order of their first columns."""
    owner: dict[Any, str] = {}
    for name, members in groups.items():
        for column in members:
            if column not in columns:
                raise InputError(
                    f"the group {name!r} names the column {column!r}", expected="a column of the background"
                )
            if column in owner:
                raise InputError(
                    f"the column {column!r} is in the groups {owner[column]!r} and {name!r}", expected="one"
                )
            owner[column] = str(name)
    own_names = [owner.get(column, str(column) if named else f"x{column}") for column in columns]
    features = tuple(dict.fromkeys(own_names))
    grouped = {str(name) for name in groups}
    alone = {name for column, name in zip(columns, own_names, strict=True) if column not in owner}
    if alone & grouped:
        raise InputError(f"a group has the name of a column, {sorted(alone & grouped)[0]!r}", expected="another name")
    if len(features) < 2:
        raise InputError(f"the columns make {len(features)} feature", expected="2 or more")
    position = {name: i for i, name in enumerate(features)}
    return np.array([position[name] for name in own_names], dtype=np.intp), features


def _as_rows(x: Any, background: Any) -> Any:
    """Return one input as a table of one row."""
    if not isinstance(background, pd.DataFrame):
        return np.atleast_2d(np.asarray(x))
    if isinstance(x, pd.Series):
        x = x.to_frame().T
    elif isinstance(x, Mapping):
        x = pd.DataFrame([x])
    if not isinstance(x, pd.DataFrame) or len(x) != 1:
        raise InputError(f"x is a {type(x).__name__}", expected="a data frame of one row, a Series or a dict")
    known = [name for name in background.columns if name in x.columns]
    return x.astype({name: background[name].dtype for name in known})


class _BoundTable:
    """Rows with a background: features are columns, or groups of them."""

    noise: Noise | None = None

    def __init__(self, player: Ints, names: tuple[str, ...], rows: int, background: Any) -> None:
        self.names = names
        self.repeats = len(background)
        self.cells = len(player)
        self._player = player
        self._rows = rows
        self._background = background

    def __len__(self) -> int:
        return self._rows

    def baseline(self, row: int) -> Any:  # noqa: ARG002 - one for all
        return self._background

    def _sources(self, who: Ints, present: Bools, column: int) -> Ints:
        """Return the rows that a column's values come from: those explained come first, then the background."""
        background = self._rows + np.arange(self.repeats)
        return np.where(present[:, self._player[column], None], who[:, None], background).ravel()

    def _shown(self, row: "Sequence[Any]") -> tuple[Any, ...]:
        """Return the value of each feature; those of a group are joined by commas."""
        parts: list[list[Any]] = [[] for _ in self.names]
        for player, value in zip(self._player, row, strict=True):
            parts[player].append(value)
        return tuple(part[0] if len(part) == 1 else ", ".join(map(str, part)) for part in parts)


class _BoundArray(_BoundTable):
    def __init__(self, player: Ints, names: tuple[str, ...], X: Any, background: NDArray[Any]) -> None:
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] != background.shape[1]:
            raise InputError(
                f"the inputs have shape {array.shape} and the background has {background.shape[1]} columns",
                expected="as many columns",
            )
        super().__init__(player, names, len(array), background)
        self._X = array

    def whole(self) -> Any:
        return self._X

    def masked(self, who: Ints, present: Bools) -> Any:
        chosen = present[:, self._player]
        if self.repeats == 1:
            return np.where(chosen, self._X[who], self._background[0])
        rows = np.where(chosen[:, None, :], self._X[who][:, None, :], self._background)
        return rows.reshape(-1, rows.shape[-1])

    def values(self, row: int) -> tuple[Any, ...]:
        return self._shown(self._X[row].tolist())


class _BoundFrame(_BoundTable):
    def __init__(self, player: Ints, names: tuple[str, ...], X: Any, background: pd.DataFrame) -> None:
        if not isinstance(X, pd.DataFrame):
            raise InputError(f"the inputs are a {type(X).__name__}", expected="a data frame, as the background is")
        missing = [name for name in background.columns if name not in X.columns]
        if missing:
            raise InputError(f"the inputs lack the column {missing[0]!r}", expected="the columns of the background")
        super().__init__(player, names, len(X), background)
        self._X = X.loc[:, list(background.columns)].reset_index(drop=True)
        both = pd.concat([self._X, background], ignore_index=True)
        for name in background.columns:
            if isinstance(background[name].dtype, pd.CategoricalDtype) and both[name].dtype != background[name].dtype:
                raise InputError(
                    f"the column {name!r} has other categories in the inputs than in the background",
                    expected="the same categorical type",
                )
        self._columns = {name: both[name].array for name in background.columns}

    def whole(self) -> Any:
        return self._X

    def masked(self, who: Ints, present: Bools) -> Any:
        taken = {
            name: part.take(self._sources(who, present, k)) for k, (name, part) in enumerate(self._columns.items())
        }
        return pd.DataFrame(taken)

    def values(self, row: int) -> tuple[Any, ...]:
        return self._shown([part[row] for part in self._columns.values()])


# --- texts ------------------------------------------------------------------------------------------------------------


class TokenMasker:
    """Absent words or tokens are replaced in the text, and the model gets texts.

    Parameters
    ----------
    tokenizer : callable or Hugging Face tokenizer, optional
        What the features are: a function from a text to its tokens, each of them a piece of the text, in order; or a
        fast tokenizer of transformers. Default: words, between white space.
    mask_token : str, optional
        What stands for an absent token. Default: the tokenizer's own mask token; without one, nothing, and the white
        space around it stays.
    keep_special : bool, default=True
        Whether the tokenizer's special tokens, where they occur in the text, are always present and no features.

    Examples
    --------
    >>> from aboveboard.explanation import GEFA, TokenMasker
    >>> def praise(texts):
    ...     return [float("good" in text and "not" not in text) for text in texts]
    >>> GEFA(praise, TokenMasker()).explain("not good at all").to_frame()["attribution"].round(2).to_dict()
    {'not': -0.5, 'good': 0.5, 'at': 0.0, 'all': 0.0}
    """

    def __init__(self, tokenizer: Any = None, *, mask_token: str | None = None, keep_special: bool = True) -> None:
        if tokenizer is not None and not callable(tokenizer):
            raise InputError(f"the tokenizer is a {type(tokenizer).__name__}", expected="a function, or a tokenizer")
        self.tokenizer = tokenizer
        self.mask_token = mask_token
        self.keep_special = keep_special

    def bind_one(self, x: Any) -> Bound:
        return self.bind([x])

    def bind(self, X: Any) -> Bound:
        texts = list(X)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError("the inputs are no texts", expected="one text or more")
        spans = [self._spans(text) for text in texts]
        counts = sorted({len(each) for each in spans})
        if len(counts) > 1:
            raise InputError(
                f"the texts have {counts[0]} to {counts[-1]} tokens",
                expected="texts of equally many tokens",
                remedy="Explain them one by one",
            )
        mask = self.mask_token if self.mask_token is not None else getattr(self.tokenizer, "mask_token", None) or ""
        return _BoundTexts(texts, spans, mask)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each token begins and ends in the text."""
        if hasattr(self.tokenizer, "all_special_tokens"):
            offsets = self.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
            found = [(int(start), int(end)) for start, end in offsets if end > start]
            special = set(self.tokenizer.all_special_tokens) if self.keep_special else set()
            return [(start, end) for start, end in found if text[start:end] not in special]
        spans, position = [], 0
        for token in (self.tokenizer or str.split)(text):
            start = text.find(token, position) if token else -1
            if start < 0:
                raise InputError(f"the tokenizer gave {token!r}", expected="pieces of the text, in their order")
            position = start + len(token)
            spans.append((start, position))
        return spans


class _BoundTexts:
    repeats = 1
    noise: Noise | None = None

    def __init__(self, texts: list[str], spans: list[list[tuple[int, int]]], mask: str) -> None:
        self._texts, self._spans, self._mask = texts, spans, mask
        first = [texts[0][start:end] for start, end in spans[0]]
        self.names = tuple(first) if len(texts) == 1 else tuple(f"token {i + 1}" for i in range(len(first)))
        self.cells = max(map(len, texts))

    def __len__(self) -> int:
        return len(self._texts)

    def whole(self) -> Any:
        return list(self._texts)

    def masked(self, who: Ints, present: Bools) -> Any:
        return [self._text(int(row), coalition) for row, coalition in zip(who, present, strict=True)]

    def values(self, row: int) -> tuple[Any, ...]:
        if len(self) == 1:  # the names say it
            return ()
        return tuple(self._texts[row][start:end] for start, end in self._spans[row])

    def baseline(self, row: int) -> Any:
        return self._text(row, np.zeros(len(self.names), dtype=bool))

    def _text(self, row: int, coalition: Bools) -> str:
        text, spans = self._texts[row], self._spans[row]
        between = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(text), len(text))])]
        tokens = [text[a:b] if kept else self._mask for (a, b), kept in zip(spans, coalition, strict=True)]
        return "".join(part for pair in zip(between, [*tokens, ""], strict=True) for part in pair)


# --- images -----------------------------------------------------------------------------------------------------------


class ImageMasker:
    """Absent pixels, or groups of them, take the values of a baseline image.

    Parameters
    ----------
    baseline : "blur", float or array, default="blur"
        The image blurred until nothing can be told (Gaussian, standard deviation 5 pixels); one value; or an image of
        the same shape.
    groups : int or array of int of shape (height, width), optional
        Side of the square blocks that are present or absent together; or a map of regions, such as superpixels.
        Default: every pixel by itself. A pixel's channels always belong together.
    smoothing : float, optional
        Draw coalitions as smooth blobs: ranks of noise that is blurred by a Gaussian of this standard deviation, in
        pixels (the paper takes 5). Neighbours are then mostly present or absent together. What is estimated is no
        longer the Shapley value of the pixels, and the attribution says so.
    channel_axis : int, optional
        Which axis of an image holds its channels; None for images without.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.explanation import GEFA, ImageMasker
    >>> image = np.zeros((8, 8))
    >>> image[:4, :4] = 1.0
    >>> brightness = lambda images: np.asarray(images).mean(axis=(1, 2))
    >>> GEFA(brightness, ImageMasker(0.0, groups=4)).explain(image).values
    array([0.25, 0.  , 0.  , 0.  ])
    """

    def __init__(
        self,
        baseline: Literal["blur"] | float | ArrayLike = "blur",
        *,
        groups: int | ArrayLike | None = None,
        smoothing: float | None = None,
        channel_axis: int | None = None,
    ) -> None:
        if isinstance(baseline, str) and baseline != "blur":
            raise InputError(f"the baseline is {baseline!r}", expected="'blur', a number or an image")
        if smoothing is not None and groups is not None:
            raise InputError("groups and smoothing were both given", expected="one of them")
        if smoothing is not None and not smoothing > 0:
            raise InputError(f"smoothing is {smoothing!r}", expected="a positive number of pixels")
        self.baseline = baseline
        self.groups = groups
        self.smoothing = smoothing
        self.channel_axis = channel_axis

    def bind_one(self, x: Any) -> Bound:
        return self.bind(np.asarray(x)[None])

    def bind(self, X: Any) -> Bound:
        images = np.asarray(X)
        wanted = 3 if self.channel_axis is None else 4
        if images.ndim != wanted or 0 in images.shape:
            raise InputError(
                f"an image has shape {images.shape[1:]}",
                expected=f"{wanted - 1} axes" if self.channel_axis is None else "3 axes, one of them for channels",
                remedy="Say which axis holds the channels: channel_axis",
            )
        # channels last inside: an image is height x width x channels
        inside = images[..., None] if self.channel_axis is None else np.moveaxis(images, self._axis(), -1)
        regions = self._regions(inside.shape[1:3])
        return _BoundImages(images, inside, self._baselines(inside), regions, self._restored, self.smoothing)

    def _axis(self) -> int:
        """Return which axis of a stack of images holds the channels."""
        assert self.channel_axis is not None
        if not -3 <= self.channel_axis < 3:
            raise InputError(f"channel_axis is {self.channel_axis}", expected="an axis of an image: -3 to 2")
        return self.channel_axis % 3 + 1

    def _restored(self, inside: NDArray[Any]) -> NDArray[Any]:
        return inside[..., 0] if self.channel_axis is None else np.moveaxis(inside, -1, self._axis())

    def _baselines(self, inside: NDArray[Any]) -> NDArray[Any]:
        if isinstance(self.baseline, str):
            blurred = ndimage.gaussian_filter(inside.astype(np.float64), (0, 5.0, 5.0, 0), truncate=_TRUNCATE)
            return np.asarray(blurred.astype(inside.dtype if inside.dtype.kind == "f" else np.float64))
        given = np.asarray(self.baseline)
        if given.ndim == 0:
            return np.broadcast_to(given, inside.shape)
        if self.channel_axis is None:
            given = given[..., None]
        elif given.ndim == 3:
            given = np.moveaxis(given[None], self._axis(), -1)[0]
        if given.shape != inside.shape[1:]:
            raise InputError(f"the baseline has shape {np.shape(self.baseline)}", expected="the shape of an image")
        return np.broadcast_to(given, inside.shape)

    def _regions(self, shape: tuple[int, ...]) -> Ints:
        """Return the feature of each pixel, counted from zero."""
        height, width = shape
        if self.groups is None:
            return np.arange(height * width).reshape(height, width)
        given = np.asarray(self.groups)
        if given.ndim == 0:
            side = int(given)
            if side < 1:
                raise InputError(f"groups is {self.groups!r}", expected="the side of a block, 1 pixel or more")
            across = -(-width // side)
            return (np.arange(height) // side)[:, None] * across + np.arange(width) // side
        if given.shape != shape:
            raise InputError(f"the map of groups has shape {given.shape} for images of {shape}", expected="the same")
        return np.unique(given, return_inverse=True)[1].reshape(shape).astype(np.intp)


@dataclass
class _BoundImages:
    _images: NDArray[Any]
    _inside: NDArray[Any]
    _baseline: NDArray[Any]
    _regions: Ints
    _restored: Callable[[NDArray[Any]], NDArray[Any]]
    _smoothing: float | None

    repeats = 1

    def __post_init__(self) -> None:
        n = int(self._regions.max()) + 1
        if n < 2:
            raise InputError(f"the image has {n} feature", expected="2 or more")
        self.cells = self._inside[0].size
        self.names = tuple(
            f"pixel {divmod(i, self._regions.shape[1])}" if n == self._regions.size else f"region {i}" for i in range(n)
        )
        self.noise: Noise | None = None if self._smoothing is None else self._blobs

    def __len__(self) -> int:
        return len(self._images)

    def whole(self) -> Any:
        return self._images

    def masked(self, who: Ints, present: Bools) -> Any:
        shown = present[:, self._regions][..., None]
        return self._restored(np.where(shown, self._inside[who], self._baseline[who]))

    def values(self, row: int) -> tuple[Any, ...]:  # noqa: ARG002 - a pixel's value says nothing to a reader
        return ()

    def baseline(self, row: int) -> Any:
        return self._restored(self._baseline[row : row + 1])[0]

    def _blobs(self, rng: np.random.Generator, m: int) -> Floats:
        """Return ranks of blurred noise, drawn on a larger canvas so that borders are like the rest."""
        assert self._smoothing is not None
        height, width = self._regions.shape
        margin = int(_TRUNCATE * self._smoothing + 0.5)
        scores = np.empty((m, height * width))
        for row in range(m):
            canvas = rng.random((height + 2 * margin, width + 2 * margin))
            blurred = ndimage.gaussian_filter(canvas, self._smoothing, truncate=_TRUNCATE)
            inner = blurred[margin : margin + height, margin : margin + width].ravel()
            scores[row, np.argsort(inner)] = (np.arange(inner.size) + rng.random(inner.size)) / inner.size
        return scores
