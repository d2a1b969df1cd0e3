"""The mechanism: noise for the sensitivity of the query, and a projection that never looks at the data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.privacy._rdp.checked import checked_positive
from aboveboard.privacy.objective_perturbation._gaussian import Gaussian, NoiseKind, RandomState, calibrated_sigma
from aboveboard.privacy.objective_perturbation._projections import Floats

__all__ = ["Release", "gaussian_certificate", "perturb_and_project"]

_PAPER: Final = Reference(
    title="Perturb-and-Project: Differentially Private Similarities and Marginals",
    authors="V. Cohen-Addad, T. d'Orsi, A. Epasto, V. Mirrokni, P. Zhong",
    venue="ICML 2024, PMLR 235",
    year=2024,
    url="https://arxiv.org/abs/2406.04868",
)


@dataclass(frozen=True)
class Release:
    """A query that was perturbed and projected, to be published.

    Attributes
    ----------
    value : ndarray
        Of the shape of the query.
    sigma : float
        Standard deviation of the noise on each entry.
    error_bound : float or None
        Of the mean squared error of an entry, in expectation; known before the data are seen.
    """

    value: Floats
    sigma: float
    error_bound: float | None
    _certificate: Certificate = field(repr=False)

    def certificate(self) -> Certificate:
        """Return what the release promises."""
        return self._certificate


def perturb_and_project(
    a: ArrayLike,
    project: Callable[[Floats], Floats],
    *,
    sensitivity: float,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    neighbours: str = "two data sets that differ in one record",
    width: float | None = None,
    noise: NoiseKind = "auto",
    random_state: RandomState = None,
) -> Release:
    """Release a query under differential privacy: add Gaussian noise, then project.

    Parameters
    ----------
    a : array-like
        The answer of the query on the data. Each entry gets noise of its own; of a symmetric matrix, give one triangle.
    project : callable
        Gives, for an array of that shape, the nearest point of a convex set of possible answers, or any point that
        looks better. It must not use the data.
    sensitivity : float
        How far the answer can move, in Euclidean distance, from one data set to a neighbour.
    epsilon, delta : float, default 1.0 and 1e-6
        Of the release. Delta should be well below one over the number of people.
    neighbours : str
        Which data sets are meant, for the certificate.
    width : float, optional
        Gaussian width of the set, the expectation of the largest inner product of its points with a standard normal
        vector, or a bound of it: gives `error_bound`.
    noise : {"auto", "float64", "opendp"}
        "auto" takes OpenDP's exact sampler (extra ``private``) where it is installed and no seed is given. Draws in
        float64 can be attacked through their last bits.
    random_state : int, numpy.random.Generator or None
        None draws from the operating system's cryptographic generator. A seed is for tests.

    Returns
    -------
    Release

    Raises
    ------
    InputError
        For entries that are not finite, sensitivity or epsilon out of range, delta of 0, a projection that changes the
        shape.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for data sets that are neighbours, by the exact trade-off of Gaussian noise
    (Balle and Wang, 2018): projecting is post-processing. If the set is convex, contains the answer and `project` gives
    its nearest point, the mean squared error of an entry is at most sigma^2, and at most sigma x width / entries.

    Notes
    -----
    The second bound: the line from the projection back to the perturbed answer makes no acute angle with the set, so
    that ``|A' - A|^2 <= <W, A' - A>`` for answer A, noise W and release A'; on average that is at most sigma times
    the width.

    References
    ----------
    V. Cohen-Addad et al., "Perturb-and-Project: Differentially Private Similarities and Marginals", ICML 2024. A.
    Nikolov, K. Talwar, L. Zhang, "The Geometry of Differential Privacy", STOC 2013 (projection after noise).

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import perturb_and_project, project_simplex_ball
    >>> jobs = load_adult(split="train").X["occupation"].value_counts().to_numpy(dtype=float)
    >>> release = perturb_and_project(  # one person in or out moves one count by one
    ...     jobs, lambda counts: project_simplex_ball(counts, 50_000), sensitivity=1.0, epsilon=0.1, random_state=0
    ... )
    >>> bool(np.abs(release.value - jobs).max() < 5 * release.sigma)
    True
    """
    answer = np.asarray(a, dtype=np.float64)
    if not answer.size or not np.isfinite(answer).all():
        raise InputError("the answer has no entries, or some that are missing or infinite")
    sensitivity = checked_positive(sensitivity, "sensitivity")
    gaussian = Gaussian.choose(noise, random_state)
    sigma = calibrated_sigma(epsilon, delta, sensitivity)
    bound = None if width is None else error_bound(sigma, checked_positive(width, "width"), answer.size)
    value = np.asarray(project(gaussian.add(answer, sigma, sensitivity)), dtype=np.float64)
    if value.shape != answer.shape:
        raise InputError(f"the projection gave shape {value.shape}", expected=f"{answer.shape}, that of the answer")
    certificate = gaussian_certificate(
        "the released values",
        gaussian,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        mechanism=f"Gaussian noise of standard deviation {sigma:.6g} on {answer.size:,} entries, then projection",
        parameters={"sensitivity": sensitivity, "sigma": sigma, "error_bound": bound},
        assumptions=[
            Assumption("No two neighbours' answers are further apart than the sensitivity, in Euclidean distance."),
            Assumption("The projection does not use the data."),
        ],
    )
    return Release(value, sigma, bound, certificate)


def error_bound(sigma: float, width: float, entries: int) -> float:
    """Return the bound of the mean squared error of an entry: projecting never adds, and the obtuse angle takes off."""
    return min(sigma**2, sigma * width / entries)


def gaussian_certificate(
    release: str,
    gaussian: Gaussian,
    *,
    epsilon: float,
    delta: float,
    neighbours: str,
    mechanism: str,
    parameters: Mapping[str, Any],
    assumptions: Iterable[Assumption],
) -> Certificate:
    """Return the certificate of one release with Gaussian noise."""
    return Certificate(
        kind="differential privacy",
        guarantee=(
            f"For any {neighbours}, and any set of outcomes, the probability that {release} fall into the set with the "
            f"one is at most exp({epsilon:g}) times that with the other, plus {delta:g}."
        ),
        parameters={
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": neighbours,
            "mechanism": mechanism,
            "calibration": "analytic, Balle and Wang (2018)",
            **parameters,
        },
        assumptions=(*assumptions, *gaussian.assumptions),
        numerics=gaussian.numerics,
        does_not_cover=(
            "Other releases from the same data, whose epsilons and deltas add up.",
            "People who make up several records.",
            *gaussian.does_not_cover,
        ),
        library_version=aboveboard.__version__,
        reference=_PAPER,
    )
