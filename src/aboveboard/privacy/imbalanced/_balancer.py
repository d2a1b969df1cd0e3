"""Replace an imbalanced table by a balanced, private, synthetic one."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from aboveboard.core import Certificate, InputError
from aboveboard.privacy._rdp.checked import checked_whole
from aboveboard.privacy.imbalanced._codebook import Bounds
from aboveboard.privacy.imbalanced._gem import GEMSynthesizer
from aboveboard.privacy.imbalanced._independent import IndependentSynthesizer
from aboveboard.privacy.imbalanced._rows import binary_labels

__all__ = ["PrivateSyntheticBalancer"]


class PrivateSyntheticBalancer(BaseEstimator):  # type: ignore[misc]
    """Balanced synthetic rows that are private, for any learner that is not.

    The whole budget goes into a synthesizer; both classes then get half of the rows that are drawn. What is learned
    from them, by any algorithm, as often as one likes, needs no further budget. It stands where imbalanced-learn has
    SMOTE, also in its pipelines.

    Parameters
    ----------
    epsilon : float, default 1.0
    delta : float in (0, 1), default 1e-6
        Well below one over the number of rows.
    synthesizer : {"gem", "independent"} or object, default "gem"
        `GEMSynthesizer` (needs PyTorch) or `IndependentSynthesizer`; or an object with ``fit(X, y)`` and
        ``sample(n, y)``, which answers for its own privacy: `epsilon`, `delta`, `bins`, `bounds`, `rounds` and
        `random_state` are then not used.
    bins : int, default 16
        Bins of a numeric column.
    bounds : pair, array of shape (n_numeric, 2), or mapping of column to pair, optional
        Smallest and largest value of the numeric columns, not from the rows. Without it they are taken from the rows,
        with a warning, and nothing is guaranteed.
    rounds : int, optional
        Of GEM.
    n_samples : int, optional
        Rows to draw; default as many as were given.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    synthesizer_ : object
        Fitted; ``sample(n, y)`` draws more rows at no further cost.
    certificate_ : Certificate or None
        Of the synthesizer; None where an object of the user's has none.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy when one row is replaced, of the synthetic rows and of all that is computed
    from them and from nothing else: test rows must not be rows that were fitted.

    References
    ----------
    L. Rosenblatt, Y. Lut, E. Turok, M. Avella-Medina, R. Cummings, "Differential Privacy Under Class Imbalance: Methods
    and Empirical Insights", ICML 2025, Algorithm 3.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import PrivateSyntheticBalancer
    >>> adult = load_adult(split="train")
    >>> X = adult.X[["age", "education_num", "hours_per_week"]]
    >>> bounds = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)}
    >>> balancer = PrivateSyntheticBalancer(1.0, 1e-6, synthesizer="independent", bounds=bounds, random_state=0)
    >>> rows, labels = balancer.fit_resample(X, adult.y_binary)
    >>> round(float(labels.mean()), 3)
    0.5
    >>> model = HistGradientBoostingClassifier(random_state=0).fit(rows, labels)  # as private as the rows
    """

    synthesizer_: Any
    certificate_: Certificate | None

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        synthesizer: Literal["gem", "independent"] | Any = "gem",
        bins: int = 16,
        bounds: Bounds = None,
        rounds: int | None = None,
        n_samples: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.synthesizer = synthesizer
        self.bins = bins
        self.bounds = bounds
        self.rounds = rounds
        self.n_samples = n_samples
        self.random_state = random_state

    def fit_resample(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Fit the synthesizer, spend the budget, and draw as many rows of each class.

        Parameters
        ----------
        X : array or data frame, shape (n, n_features)
        y : array-like, shape (n,)

        Returns
        -------
        X : array or data frame, shape (n_samples, n_features)
        y : ndarray, shape (n_samples,)
        """
        _, classes = binary_labels(y)
        total = len(np.asarray(y)) if self.n_samples is None else checked_whole(self.n_samples, "n_samples", 2)
        self.synthesizer_ = self._chosen().fit(X, y)
        self.certificate_ = getattr(self.synthesizer_, "certificate_", None)
        parts = [
            self.synthesizer_.sample(size, y=label)
            for size, label in zip((total - total // 2, total // 2), classes.tolist(), strict=True)
        ]
        rows = [part for part, _ in parts]
        drawn = pd.concat(rows, ignore_index=True) if isinstance(rows[0], pd.DataFrame) else np.concatenate(rows)
        return drawn, np.concatenate([labels for _, labels in parts])

    def _chosen(self) -> Any:
        common: dict[str, Any] = {"bins": self.bins, "bounds": self.bounds, "random_state": self.random_state}
        if isinstance(self.synthesizer, str):
            if self.synthesizer == "gem":
                return GEMSynthesizer(self.epsilon, self.delta, rounds=self.rounds, **common)
            if self.synthesizer == "independent":
                return IndependentSynthesizer(self.epsilon, self.delta, **common)
        elif callable(getattr(self.synthesizer, "fit", None)) and callable(getattr(self.synthesizer, "sample", None)):
            return clone(self.synthesizer, safe=False)
        raise InputError(
            f"synthesizer is {self.synthesizer!r}",
            expected="'gem', 'independent', or an object with fit(X, y) and sample(n, y)",
        )
