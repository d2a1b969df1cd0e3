"""Synthetic rows whose columns are independent within each class."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard.privacy._noise import noise_source
from aboveboard.privacy.imbalanced._codebook import Bounds, Codes
from aboveboard.privacy.imbalanced._marginals import counts, gaussian_scale
from aboveboard.privacy.imbalanced._synthesis import (
    concentrated_budget,
    encode,
    synthesis_certificate,
    synthetic_labels,
)

__all__ = ["IndependentSynthesizer"]

Floats = NDArray[np.float64]


class IndependentSynthesizer(BaseEstimator):  # type: ignore[misc]
    """Private synthetic rows in which, within each class, columns are independent.

    The table of each column with the label is measured once with Gaussian noise. It keeps what each column says about
    the label and nothing of how columns hang together: the choice for many columns and few rows, where
    `GEMSynthesizer` has no budget left for each pair, and where PyTorch is not installed.

    Parameters
    ----------
    epsilon : float, default 1.0
    delta : float in (0, 1), default 1e-6
        Well below one over the number of rows.
    bins : int, default 16
        Bins of a numeric column.
    bounds : pair, array of shape (n_numeric, 2), or mapping of column to pair, optional
        Smallest and largest value of the numeric columns, not from the rows; values beyond fall into the outer bins.
        Without it they are taken from the rows, with a warning, and nothing is guaranteed.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    certificate_ : Certificate

    Guarantee
    ---------
    (epsilon, delta)-differential privacy when one row is replaced; the number of rows, labels, bounds and categories
    are public.

    Notes
    -----
    O(n d) time, O(d x bins) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import IndependentSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(3000) < 0.05).astype(int)
    >>> X = rng.normal(size=(3000, 2)) + y[:, None]
    >>> synthesizer = IndependentSynthesizer(1.0, 1e-6, bounds=(-4, 5), random_state=0).fit(X, y)
    >>> rows, labels = synthesizer.sample(500, y=1)
    >>> bool(rows.mean() > 0.5)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bins: int = 16,
        bounds: Bounds = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bins = bins
        self.bounds = bounds
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> "IndependentSynthesizer":
        """Measure the tables, and spend the budget.

        Parameters
        ----------
        X : array or data frame, shape (n, n_features)
            Numbers; in a data frame also categories and truth values.
        y : array-like, shape (n,)

        Returns
        -------
        self
        """
        rho = concentrated_budget(self.epsilon, self.delta)
        encoded = encode(X, y, bins=self.bins, bounds=self.bounds)
        source = noise_source(self.random_state)
        d = len(encoded.sizes) - 1
        scale = gaussian_scale(rho / d)
        noisy = []
        for j in range(d):
            table = counts(encoded.codes, encoded.sizes, (j, d))
            noisy.append(np.maximum(table + source.normal(table.shape, scale), 0.0))
        self.classes_ = encoded.classes
        self._codebook = encoded.codebook
        self._given_label = [_shares(table) for table in noisy]
        self._label_share = _shares(np.mean([table.sum(axis=0) for table in noisy], axis=0)[:, None])[:, 0]
        self._generator = source.generator()
        self.certificate_ = synthesis_certificate(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            encoded=encoded,
            bounds=self.bounds,
            mechanism=f"Gaussian noise on the tables of each of {d} columns with the label (zCDP)",
            source=source,
            parameters={"rho": rho, "noise_std": scale},
        )
        return self

    def sample(self, n: int, y: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw synthetic rows, of one class or of both in their noisy proportion.

        Parameters
        ----------
        n : int
        y : label, optional

        Returns
        -------
        X : array or data frame, shape (n, n_features)
        y : ndarray, shape (n,)
        """
        check_is_fitted(self, "certificate_")
        rng = self._generator
        label = synthetic_labels(n, y, self.classes_, self._label_share, rng)
        codes = np.column_stack([_drawn(table[:, label], rng) for table in self._given_label])
        return self._codebook.decode(codes, rng), self.classes_[label]


def _shares(table: Floats) -> Floats:
    """Return columns that sum to one; even ones where nothing was counted."""
    total = table.sum(axis=0)
    shares: Floats = np.where(total > 0, table / np.where(total > 0, total, 1.0), 1 / len(table))
    return shares


def _drawn(share: Floats, rng: np.random.Generator) -> Codes:
    """Draw a code from each column of `share`, shape (n_codes, n)."""
    codes: Codes = (np.cumsum(share, axis=0)[:-1] < rng.random(share.shape[1])).sum(axis=0)
    return codes
