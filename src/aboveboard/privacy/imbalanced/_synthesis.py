"""What synthesizers of rows and labels share: encoded input, the budget, sampling, the certificate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy._noise import NoiseSource
from aboveboard.privacy._rdp import RDPCurve, privacy_certificate, smallest_noise
from aboveboard.privacy._rdp.checked import checked_positive, checked_whole
from aboveboard.privacy.imbalanced._codebook import Bounds, Codebook, Codes
from aboveboard.privacy.imbalanced._reference import PAPER
from aboveboard.privacy.imbalanced._rows import binary_labels

__all__ = ["Encoded", "concentrated_budget", "encode", "synthesis_certificate", "synthetic_labels"]

Floats = NDArray[np.float64]
Draw = Callable[[Codes, np.random.Generator], Codes]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows and labels as codes.

    Parameters
    ----------
    codebook : Codebook
        Of the features.
    classes : ndarray, shape (2,)
    codes : ndarray of int, shape (n, n_features + 1)
        The last column is the label.
    sizes : tuple of int
        How many codes each column has.
    """

    codebook: Codebook
    classes: NDArray[Any]
    codes: Codes
    sizes: tuple[int, ...]


def encode(X: Any, y: ArrayLike, *, bins: int, bounds: Bounds) -> Encoded:
    """Return rows and labels as codes, or refuse them."""
    bins = checked_whole(bins, "bins", 2)
    check_consistent_length(X, y)
    label, classes = binary_labels(y)
    codebook = Codebook.build(X, bounds, bins)
    codes = np.column_stack([codebook.encode(X), label.astype(np.intp)])
    return Encoded(codebook, classes, codes, (*codebook.sizes, 2))


def concentrated_budget(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP is (epsilon, delta)-differential privacy."""
    checked_positive(epsilon, "epsilon")
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta!r}", expected="a number above 0 and well below 1 / n, such as 1e-6")

    def epsilon_of(noise: float) -> float:
        return RDPCurve.concentrated(1 / noise, adjacency="replace_one").epsilon(delta)

    return 1 / smallest_noise(epsilon_of, epsilon)


def synthetic_labels(n: int, y: Any, classes: NDArray[Any], share: Floats, rng: np.random.Generator) -> Codes:
    """Return the codes of `n` labels: all `y`, or in proportion to `share`."""
    n = checked_whole(n, "n")
    if y is None:
        return rng.choice(2, size=n, p=share)
    place = np.flatnonzero(classes == y)
    if len(place) != 1:
        raise InputError(f"y is {y!r}", expected=f"one of the classes {classes.tolist()}, or None")
    return np.full(n, place[0])


def synthesis_certificate(
    *,
    epsilon: float,
    delta: float,
    encoded: Encoded,
    bounds: Bounds,
    mechanism: str,
    source: NoiseSource,
    parameters: dict[str, Any],
) -> Certificate:
    """Return the certificate of synthetic rows."""
    given = bounds is not None or not encoded.codebook.has_numbers
    return privacy_certificate(
        release="all synthetic rows that are ever drawn, and whatever is learned from them,",
        epsilon=epsilon,
        delta=delta,
        adjacency="replace_one",
        mechanism=mechanism,
        noise=source,
        parameters={"n": len(encoded.codes), **parameters},
        assumptions=(
            Assumption(
                "The bounds of the numeric columns do not come from the rows.",
                basis="assumed" if given else "checked",
                test="" if given else "whether bounds were given: they were taken from the rows",
                passed=None if given else False,
            ),
            Assumption("The lists of categories, the two labels, the number of rows and all options are public."),
            Assumption("Each person has one row."),
        ),
        does_not_cover=("How close synthetic rows come to real ones, in the rare class or in the other.",),
        reference=PAPER,
    )
