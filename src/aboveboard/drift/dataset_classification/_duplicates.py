"""Rows of one table that are also, or nearly, in another: the leak that no classifier of sources can see."""

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._learners import Design
from aboveboard.drift.dataset_classification._tables import Features, TableEncoder, as_frame, joined

__all__ = ["near_duplicates"]

_METRICS: Final = ("euclidean", "manhattan", "cosine", "hamming")
_NGRAMS: Final = (3, 5)
_SAMPLE: Final = 2_000


def near_duplicates(A: Any, B: Any, metric: str = "euclidean", quantile: float = 0.01) -> pd.DataFrame:
    """Find rows of `A` that have an equal or a suspiciously close row in `B`.

    Parameters
    ----------
    A, B : data frame or array of shape (n, d), images of shape (n, height, width[, channels]), or sequences of text
        Say training and test rows. Two tables need the same columns.
    metric : {"euclidean", "manhattan", "cosine", "hamming"}
        Distance, of standardised columns, pixels, or weights of character n-grams. "hamming" is the share of columns
        that differ.
    quantile : float in [0, 1]
        How close is suspicious: closer than this quantile of the distances from rows of `B` to their nearest other row
        of `B`. With 0, equal rows alone (and rows closer than any two of `B`).

    Returns
    -------
    DataFrame
        One line per row of `A` with such a counterpart: ``row_a``, ``row_b`` (positions), ``distance``, and ``equal``
        where the two do not differ at all. Nearest first. ``attrs["threshold"]`` holds the distance that counted.

    Raises
    ------
    InputError
        For tables with other columns, unknown metrics, and quantiles outside [0, 1].

    Notes
    -----
    Every row of `A` with an equal row in `B` is found. Exact nearest neighbours: O(n_a n_b d) time in blocks, much less
    with few columns, where a tree is used; the quantile comes from 2,000 rows of `B` at most, spread evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.drift import near_duplicates
    >>> rows = np.random.default_rng(0).normal(size=(500, 4))
    >>> int(near_duplicates(rows[:260], rows[250:], quantile=0.0)["equal"].sum())
    10
    """
    if metric not in _METRICS:
        raise InputError(f"metric is {metric!r}", expected=f"one of {', '.join(map(repr, _METRICS))}")
    if not 0 <= quantile <= 1:
        raise InputError(f"quantile is {quantile!r}", expected="a number from 0 to 1")
    first, second, keys_a, keys_b = _vectors(A, B, metric)
    threshold = _threshold(second, metric, quantile)
    found, neighbour = _nearest(second, first, metric, 1)
    distance, partner = found[:, 0], neighbour[:, 0]
    # distances of equal rows are rounded: what is equal is looked up instead
    places = {key: row for row, key in reversed(list(enumerate(keys_b)))}
    twin = np.array([places.get(key, -1) for key in keys_a], dtype=np.intp)
    equal = twin >= 0
    distance, partner = np.where(equal, 0.0, distance), np.where(equal, twin, partner)
    rows = np.flatnonzero(equal | (distance <= threshold))
    rows = rows[np.argsort(distance[rows], kind="stable")]
    pairs = pd.DataFrame(
        {"row_a": rows, "row_b": partner[rows], "distance": distance[rows], "equal": equal[rows]},
    )
    pairs.attrs["threshold"] = threshold
    return pairs


def _vectors(A: Any, B: Any, metric: str) -> tuple[Any, Any, list[Any], list[Any]]:
    """Return rows as vectors, and keys that are equal exactly where the rows are."""
    for name, part in (("A", A), ("B", B)):
        if not (len(part) if hasattr(part, "__len__") else 0):
            raise InputError(f"{name} has no rows", expected="a table, images or texts with at least one row")
    if _is_text(A) and _is_text(B):
        return *_text_vectors(list(A), list(B), metric), list(A), list(B)
    if not (hasattr(A, "columns") or hasattr(A, "column_names")) and np.ndim(A) > 2:
        images = [np.asarray(part, dtype=np.float64) for part in (A, B)]
        if images[0].shape[1:] != images[1].shape[1:]:
            raise InputError(
                f"images of shapes {images[0].shape[1:]} and {images[1].shape[1:]}", expected="equal shapes"
            )
        first, second = (part.reshape(len(part), -1) for part in images)
    else:
        first, second = _table_vectors(A, B, metric)
    keys_a, keys_b = ([row.tobytes() for row in part + 0.0] for part in (first, second))
    return first, second, keys_a, keys_b


def _table_vectors(A: Any, B: Any, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    frames = {"A": as_frame(A, "A"), "B": as_frame(B, "B")}
    both = joined(frames)
    cut = len(frames["A"])
    features = TableEncoder().fit(both).transform(both)
    if metric == "hamming":
        codes = np.column_stack([pd.factorize(column, use_na_sentinel=False)[0] for column in features.values.T])
        return codes[:cut].astype(np.float64), codes[cut:].astype(np.float64)
    matrix = _all_words(features)
    return matrix[:cut], matrix[cut:]


def _all_words(features: Features) -> NDArray[np.float64]:
    """Return standardised numbers, and a code for each word as a column of its own, so that different rows differ."""
    design = Design().fit(features)
    dense = design.transform(features)
    rare = [
        (features.values[:, [j]] / max(float(np.nanmax(features.values[:, j])), 1.0))
        for j, levels in design.words_.items()
        if len(levels) and np.nanmax(features.values[:, j]) >= len(levels)
    ]
    return np.nan_to_num(np.hstack([dense, *rare]), nan=-1.0)


def _is_text(data: Any) -> bool:
    if hasattr(data, "columns") or hasattr(data, "column_names") or np.ndim(data) != 1:
        return False
    return len(data) > 0 and all(isinstance(item, str) for item in data)


def _text_vectors(first: list[str], second: list[str], metric: str) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    if metric == "hamming":
        raise InputError("metric is 'hamming' for text", expected="'cosine' or 'euclidean'")
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=_NGRAMS, sublinear_tf=True)
    try:
        matrix = vectorizer.fit_transform([*first, *second])
    except ValueError as error:
        raise InputError("the texts hold no three characters", expected="longer texts") from error
    return matrix[: len(first)].tocsr(), matrix[len(first) :].tocsr()


def _threshold(rows: Any, metric: str, quantile: float) -> float:
    n = rows.shape[0]
    if n < 2:
        return 0.0
    picked = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
    distance, nearest = _nearest(rows, rows[picked], metric, 2)
    # the row itself is its own nearest, unless it has a twin
    other = np.where(nearest[:, 0] == picked, distance[:, 1], distance[:, 0])
    return float(np.quantile(other, quantile))


def _nearest(rows: Any, queries: Any, metric: str, k: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    from sklearn.neighbors import NearestNeighbors

    brute = metric in ("cosine", "hamming") or not isinstance(rows, np.ndarray) or rows.shape[1] > 15
    index = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute" if brute else "kd_tree").fit(rows)
    distance, nearest = index.kneighbors(queries)
    return distance, nearest
