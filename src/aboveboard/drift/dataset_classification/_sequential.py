"""Watching two or more sources row by row: evidence that may be looked at, and acted on, at any time."""

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._tables import TableEncoder, as_frame

__all__ = ["SequentialTwoSample"]

_FIRST: Final = 32
_GROWTH: Final = 1.25
_SHARE: Final = 0.5
_FURTHEST: Final = 8.0


class SequentialTwoSample:
    """An e-process against the hypothesis that the sources of a stream do not differ.

    Before a row is learned from, its source is predicted. The better the predictions, the faster the evidence grows;
    where the sources do not differ, no way of predicting makes it grow.

    Parameters
    ----------
    estimator : classifier, optional
        With ``fit`` and ``predict_proba``; it is cloned, and gets the rows as finite, standardised numbers, at most 8
        standard deviations from the mean. Default: logistic regression.
    m : int
        Number of sources, called 0 to m - 1.
    alpha : float in (0, 1)
        Probability of ever crying wolf; `rejected_` turns true when the e-value reaches 1 / alpha.
    random_state : int, Generator or None
        For `next_source` and the estimator.

    Attributes
    ----------
    e_value_ : float
        Product of the factors so far. 1 at the start; infinite where it exceeds what a float can hold.
    log_e_value_ : float
        Its natural logarithm.
    p_value_ : float
        1 over the largest e-value so far, at most 1: valid at any time.
    rejected_ : bool
    n_seen_ : int

    Guarantee
    ---------
    Let the source of each row be drawn uniformly from the m sources, apart from all rows before. If rows of all sources
    have one distribution, the probability that the e-value ever reaches 1 / alpha is at most alpha, whatever the
    estimator, and whenever one looks.

    Notes
    -----
    Row t multiplies the e-value by 1/2 + m p_t / 2, where p_t is the probability that was given to its true source by a
    classifier of earlier rows. Under the hypothesis its mean is 1, so that the e-value is a martingale with mean 1, and
    Ville's inequality gives the bound. The half keeps one bad prediction from ruining all. The rows of one call to
    `update` are all predicted before any is learned from.

    The estimator is fitted again each time the rows have grown by a quarter: O(log n) fits.

    References
    ----------
    J. Ville: "Étude critique de la notion de collectif", 1939. A. Ramdas, P. Grünwald, V. Vovk, G. Shafer:
    "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.drift import SequentialTwoSample
    >>> rng, watch = np.random.default_rng(0), SequentialTwoSample(alpha=0.01, random_state=0)
    >>> while not watch.rejected_:
    ...     source = watch.next_source()
    ...     e = watch.update([rng.normal(loc=source, size=3)], source)
    >>> bool(e >= 100), watch.n_seen_ < 200
    (True, True)
    """

    def __init__(self, estimator: Any = None, *, m: int = 2, alpha: float = 0.01, random_state: Any = None) -> None:
        if isinstance(m, bool) or not hasattr(m, "__index__") or m < 2:
            raise InputError(f"m is {m!r}", expected="a whole number of sources, 2 or more")
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha!r}", expected="a number between 0 and 1")
        if estimator is not None and not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
            raise InputError(f"estimator is {estimator!r}", expected="a classifier with fit and predict_proba")
        self.estimator = estimator
        self.m = int(m)
        self.alpha = float(alpha)
        self.random_state = random_state
        self._rng = np.random.default_rng(random_state)
        self._model: Any = None
        self._rows: list[NDArray[np.float64]] = []
        self._codes: list[NDArray[np.intp]] = []
        self._refit_at = _FIRST
        self._columns: tuple[str, ...] | None = None
        self._best = 0.0
        self.log_e_value_ = 0.0
        self.n_seen_ = 0

    @property
    def e_value_(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_e_value_))

    @property
    def p_value_(self) -> float:
        return float(np.exp(-self._best))

    @property
    def rejected_(self) -> bool:
        return bool(self._best >= -np.log(self.alpha))

    def next_source(self) -> int:
        """Draw the source that the next row should come from: 0 to m - 1, all equally likely."""
        return int(self._rng.integers(self.m))

    def update(self, x: Any, source: Any) -> float:
        """Take in one row or several.

        Parameters
        ----------
        x : array or data frame of shape (n, d), numbers
            New rows, never seen before; missing values count as the column's mean.
        source : int, or array of int of shape (n,)
            Where each came from, 0 to m - 1.

        Returns
        -------
        float
            The e-value after them.

        Raises
        ------
        InputError
            For rows with other columns than before, text, and sources that there are not.
        """
        rows = self._read(x)
        codes = np.atleast_1d(np.asarray(source))
        if codes.ndim != 1 or len(codes) != len(rows) or codes.dtype.kind not in "iu":
            raise InputError(
                f"{len(rows)} rows came with sources of shape {np.shape(source)} and type {codes.dtype}",
                expected="one whole number per row",
            )
        if len(codes) and not (codes.min() >= 0 and codes.max() < self.m):
            raise InputError(f"sources run from {codes.min()} to {codes.max()}", expected=f"0 to {self.m - 1}")
        if not len(rows):
            return self.e_value_
        self._take(rows, codes.astype(np.intp))
        return self.e_value_

    def _take(self, rows: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
        factors = (1.0 - _SHARE) + _SHARE * self.m * self._predicted(rows)[np.arange(len(codes)), codes]
        path = self.log_e_value_ + np.cumsum(np.log(factors))
        self._best = max(self._best, float(path.max()))
        self.log_e_value_ = float(path[-1])
        self._learn(rows, codes)

    def _read(self, x: Any) -> NDArray[np.float64]:
        if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "fiu":
            values, columns = x.astype(np.float64), tuple(f"x{j}" for j in range(x.shape[1]))
        else:
            frame = as_frame(x, "x")
            columns = tuple(frame.columns)
            if self._columns is not None and set(columns) == set(self._columns):
                frame, columns = frame[list(self._columns)], self._columns
            encoder = TableEncoder().fit(frame)
            if encoder.words_:
                raise InputError(
                    f"x holds words in {', '.join(map(repr, encoder.words_))}",
                    expected="numbers",
                    remedy="Turn categories into numbers first",
                )
            values = encoder.transform(frame).values
        if self._columns is None:
            self._columns = columns
        elif columns != self._columns:
            raise InputError(
                f"x has the columns {', '.join(map(repr, columns))}",
                expected=f"those of the rows before: {', '.join(map(repr, self._columns))}",
            )
        return values

    def _predicted(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._model is None:
            return np.full((len(rows), self.m), 1.0 / self.m)
        proba = np.zeros((len(rows), self.m))
        proba[:, self._model.classes_] = self._model.predict_proba(self._scaled(rows))
        total = proba.sum(axis=1, keepdims=True)
        if not (np.isfinite(proba).all() and (proba >= 0).all() and np.allclose(total, 1.0, atol=1e-3)):
            raise InputError("the estimator gave something other than probabilities", expected="rows that sum to 1")
        # a factor must have a mean of exactly 1
        return np.asarray(proba / total)

    def _learn(self, rows: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
        self._rows.append(rows)
        self._codes.append(codes)
        self.n_seen_ += len(rows)
        if self.n_seen_ < self._refit_at:
            return
        X, y = np.concatenate(self._rows), np.concatenate(self._codes)
        self._rows, self._codes = [X], [y]
        if len(np.unique(y)) > 1:
            self._model = self._fitted(X, y)
            self._refit_at = max(self.n_seen_ + 1, int(np.ceil(self.n_seen_ * _GROWTH)))

    def _fitted(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> Any:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression

        known = np.isfinite(X)
        count = np.maximum(known.sum(axis=0), 1)
        self._centre = np.where(known, X, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (X - self._centre) ** 2, 0.0).sum(axis=0) / count)
        self._spread = np.where(spread > 0, spread, 1.0)
        model = LogisticRegression(max_iter=500) if self.estimator is None else clone(self.estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=int(self._rng.integers(2**31)))
        return model.fit(self._scaled(X), y)

    def _scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = (X - self._centre) / self._spread
        return np.asarray(np.clip(np.where(np.isnan(scaled), 0.0, scaled), -_FURTHEST, _FURTHEST))

    def watch(self, sources: Any, *, most: int | None = None) -> Self:
        """Draw rows from whole tables by a fair die, one by one, until the hypothesis is rejected or rows run out.

        Parameters
        ----------
        sources : sequence of m arrays or data frames
        most : int, optional
            Stop after this many rows.
        """
        tables = [self._read(table) for table in sources]
        if len(tables) != self.m:
            raise InputError(f"there are {len(tables)} sources", expected=f"m = {self.m}")
        left = [iter(self._rng.permutation(len(table))) for table in tables]
        while not self.rejected_ and (most is None or self.n_seen_ < most):
            source = self.next_source()
            row = next(left[source], None)
            if row is None:
                break
            self._take(tables[source][[row]], np.array([source]))
        return self
