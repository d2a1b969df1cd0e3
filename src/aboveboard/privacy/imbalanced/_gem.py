"""Synthetic rows from a generator network that is fitted to tables measured with noise (GEM)."""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.extras import require
from aboveboard.privacy._noise import NoiseSource, noise_source
from aboveboard.privacy._rdp.checked import checked_positive, checked_whole
from aboveboard.privacy.imbalanced._codebook import Bounds, Codes
from aboveboard.privacy.imbalanced._marginals import (
    Query,
    counts,
    exponential_choice,
    gaussian_scale,
    workload,
)
from aboveboard.privacy.imbalanced._synthesis import (
    Encoded,
    concentrated_budget,
    encode,
    synthesis_certificate,
    synthetic_labels,
)

__all__ = ["GEMSynthesizer"]

_MEASURED_SHARE: Final = 0.9  # of the budget of a round; the rest selects
_MEAN_ABSOLUTE: Final = np.sqrt(2 / np.pi)  # of standard normal noise

Floats = NDArray[np.float64]


class GEMSynthesizer(BaseEstimator):  # type: ignore[misc]
    """Private synthetic rows that agree with the tables of pairs of columns, and of pairs with the label.

    In each round, a part of the budget finds the table that the generator gets most wrong, another measures it with
    Gaussian noise, and the generator, a small network that turns random inputs into distributions of each column, is
    fitted to everything measured so far.

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
    rounds : int, optional
        Tables that are measured; the noise grows with the square root. Default: as many as there are features. Where
        there are no more tables than that, all are measured, and nothing is spent on selecting.
    batch_size : int, default 500
        Inputs of the generator, and so components of the mixture from which rows are drawn.
    steps : int, default 100
        Steps of Adam after each measurement.
    learning_rate : float, default 0.005
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    measured_ : list of tuple of int
        The tables, as positions of columns; the label comes last.
    certificate_ : Certificate

    Guarantee
    ---------
    (epsilon, delta)-differential privacy when one row is replaced; the number of rows, labels, bounds and categories
    are public.

    Notes
    -----
    Needs PyTorch. Scores of the exponential mechanism are the L1 errors of the tables, less the error that measuring
    would leave because of noise, so that large tables of noise are not chosen. Each round costs `steps` passes
    over the network: some 10 to 30 seconds in all for ten columns on one core, and O(batch_size x (d x bins)^2) to
    evaluate all tables.

    References
    ----------
    T. Liu, G. Vietri, Z. S. Wu, "Iterative Methods for Private Synthetic Data: Unifying Framework and New Methods",
    NeurIPS 2021. https://arxiv.org/abs/2106.07153
    R. McKenna, B. Mullins, D. Sheldon, G. Miklau, "AIM: An Adaptive and Iterative Mechanism for Differentially Private
    Synthetic Data", VLDB 2022. https://arxiv.org/abs/2201.12677
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bins: int = 16,
        bounds: Bounds = None,
        rounds: int | None = None,
        batch_size: int = 500,
        steps: int = 100,
        learning_rate: float = 5e-3,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bins = bins
        self.bounds = bounds
        self.rounds = rounds
        self.batch_size = batch_size
        self.steps = steps
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> "GEMSynthesizer":
        """Measure tables and fit the generator, and spend the budget.

        Parameters
        ----------
        X : array or data frame, shape (n, n_features)
            Numbers; in a data frame also categories and truth values.
        y : array-like, shape (n,)

        Returns
        -------
        self

        Raises
        ------
        MissingExtra
            When PyTorch is not installed.
        """
        require("torch", extra="torch", feature="GEMSynthesizer")
        for name in ("batch_size", "steps"):
            checked_whole(getattr(self, name), name)
        if self.rounds is not None:
            checked_whole(self.rounds, "rounds")
        checked_positive(self.learning_rate, "learning_rate")
        rho = concentrated_budget(self.epsilon, self.delta)
        encoded = encode(X, y, bins=self.bins, bounds=self.bounds)
        source = noise_source(self.random_state)
        self.classes_ = encoded.classes
        self._codebook = encoded.codebook
        ledger = self._fit_rounds(encoded, rho, source)
        self._generator = source.generator()
        self.certificate_ = synthesis_certificate(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            encoded=encoded,
            bounds=self.bounds,
            mechanism="exponential mechanism to select tables, Gaussian noise to measure them (zCDP)",
            source=source,
            parameters={"rho": rho, **ledger},
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
        label_given_component = self._mixture[:, -1, :2]
        label = synthetic_labels(n, y, self.classes_, label_given_component.mean(axis=0), rng)
        component = np.empty(len(label), dtype=np.intp)
        for code in (0, 1):
            rows = label == code
            weight = label_given_component[:, code] / label_given_component[:, code].sum()
            component[rows] = rng.choice(len(weight), size=int(rows.sum()), p=weight)
        codes = [_drawn(self._mixture[component, j], size, rng) for j, size in enumerate(self._codebook.sizes)]
        return self._codebook.decode(np.column_stack(codes), rng), self.classes_[label]

    def _fit_rounds(self, encoded: Encoded, rho: float, source: NoiseSource) -> dict[str, float]:
        """Select, measure and fit, round by round; return what each part cost."""
        from aboveboard.privacy.imbalanced._generator import Generator

        n = len(encoded.codes)
        queries = workload(len(encoded.sizes) - 1)
        tables = [counts(encoded.codes, encoded.sizes, query) for query in queries]
        rounds = min(self.rounds or len(encoded.sizes) - 1, len(queries))
        share = _MEASURED_SHARE if rounds < len(queries) else 1.0
        measuring, selecting = share * rho / rounds, (1 - share) * rho / rounds
        scale = gaussian_scale(measuring)
        noise_error = _MEAN_ABSOLUTE * scale * np.array([table.size for table in tables])
        generator = Generator(
            encoded.sizes,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=int(source.generator().integers(2**63)),
        )
        open_queries = list(range(len(queries)))
        self.measured_: list[Query] = []
        for _ in range(rounds):
            if selecting:
                errors = generator.errors(queries, tables, n)[open_queries]
                place = exponential_choice(errors - noise_error[open_queries], selecting, source)
            else:
                place = 0
            chosen = open_queries.pop(place)
            noisy = tables[chosen] + source.normal(tables[chosen].shape, scale)
            self.measured_.append(queries[chosen])
            generator.add(queries[chosen], noisy / n)
            if selecting or not open_queries:
                generator.fit(self.steps if selecting else self.steps * rounds)
        self._mixture = generator.mixture()
        return {
            "rounds": rounds,
            "noise_std": scale,
            "rho_measuring": measuring * rounds,
            "rho_selecting": selecting * rounds,
        }


def _drawn(share: Floats, size: int, rng: np.random.Generator) -> Codes:
    """Draw a code below `size` from each row of `share`."""
    codes: Codes = (np.cumsum(share[:, : size - 1], axis=1) < rng.random((len(share), 1))).sum(axis=1)
    return codes
