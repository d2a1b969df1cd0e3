"""Marginals: every table of up to k yes-or-no columns, released at once."""

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard.core import Assumption, InputError
from aboveboard.privacy._rdp.checked import checked_whole
from aboveboard.privacy.objective_perturbation._gaussian import Gaussian, NoiseKind, RandomState, calibrated_sigma
from aboveboard.privacy.objective_perturbation._mechanism import error_bound, gaussian_certificate
from aboveboard.privacy.objective_perturbation._projections import Floats, project_simplex_ball
from aboveboard.privacy.objective_perturbation._pseudo_moments import PseudoMoments, subsets

__all__ = ["PrivateMarginals"]

Indices = NDArray[np.intp]

_NEIGHBOURS: Final = "two tables of the same number of rows that differ in one row"


class PrivateMarginals(BaseEstimator):  # type: ignore[misc]
    """Release all tables of up to k yes-or-no columns, once, and read off any of them.

    Parameters
    ----------
    k : int, default=2
        Columns that a table may have.
    epsilon, delta : float, default=1.0 and 1e-6
        Of the whole release. Delta should be well below one over the number of rows.
    sparsity : int, optional
        A public bound of the number of ones in a row. Much smaller errors where it is far below the number of columns.
    relaxation : {"auto", "sos", "sparse", "none"}, default="auto"
        What to project onto: "sos", parities that a sum-of-squares proof of degree k (or k + 1) cannot tell from real
        ones; "sparse", shares that rows with so few ones can have, none larger than that of a part of its columns;
        "none". "auto" is "sparse" with `sparsity`, else "sos".
    clip : bool, default=False
        Set ones beyond `sparsity` to zero, from the last column backwards, instead of refusing.
    max_iter : int, default=500
        Iterations of the projection onto pseudo-moments.
    noise, random_state : as for `perturb_and_project`

    Attributes
    ----------
    subsets_ : list of tuple of int
        Of 1 to k columns, by size and then in lexicographic order.
    parities_ : ndarray of shape (m,)
        Released, for each of them: mean of the product of signs, -1 for a one and 1 for a zero. Without `sparsity`.
    conjunctions_ : ndarray of shape (m,)
        Released, for each of them: share of rows with ones in all its columns. With `sparsity`.
    sigma_ : float
        Standard deviation of the noise on each of them.
    error_bound_ : float
        Of their mean squared error, in expectation; it does not depend on the data.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.
    certificate_ : Certificate

    Raises
    ------
    InputError
        In `fit`, for options out of range, cells other than 0 and 1, rows with too many ones, too many columns for the
        moment matrix.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for tables of the same number of rows that differ in one; the number of rows
    is public. Sums are of whole numbers, and exact.

    Notes
    -----
    One row moves the m parities by at most 2 sqrt(m) / n_rows, and shares with at most t ones a row by
    sqrt(2 (C(t, 1) + ... + C(t, k))) / n_rows. Bounds of the error are widths of the sets: parities of size s are
    entries of a matrix with C(n, s/2) rows and a known trace (or of two blocks of it), or numbers within [-1, 1],
    whichever is less; shares of size s add up to C(t, s) at most. Shares are projected onto one set after the other,
    which never moves them away from the truth. Cost: O(n_rows m), then O(D^3) for each iteration of the first
    projection, D = 1 + n + ... + C(n, k/2), or O(m log m) for the second.

    References
    ----------
    V. Cohen-Addad et al., "Perturb-and-Project: Differentially Private Similarities and Marginals", ICML 2024.
    C. Dwork, A. Nikolov, K. Talwar, "Efficient Algorithms for Privately Releasing Marginals via Convex Relaxations",
    Discrete and Computational Geometry 53, 2015.

    Examples
    --------
    >>> import pandas as pd
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import PrivateMarginals
    >>> X = load_adult(split="train").X
    >>> answers = pd.DataFrame(
    ...     {"young": X["age"] < 30, "woman": X["sex"] == "Female", "overtime": X["hours_per_week"] > 40}
    ... )
    >>> released = PrivateMarginals(3, epsilon=1.0, random_state=0).fit(answers)
    >>> table = released.table(["woman", "overtime"])  # [no, yes] x [no, yes]
    >>> truth = pd.crosstab(answers["woman"], answers["overtime"], normalize=True)
    >>> bool(abs(table - truth).max(axis=None) < 0.01)
    True
    """

    def __init__(
        self,
        k: int = 2,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        sparsity: int | None = None,
        relaxation: Literal["auto", "sos", "sparse", "none"] = "auto",
        clip: bool = False,
        max_iter: int = 500,
        noise: NoiseKind = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.delta = delta
        self.sparsity = sparsity
        self.relaxation = relaxation
        self.clip = clip
        self.max_iter = max_iter
        self.noise = noise
        self.random_state = random_state

    def fit(self, Y: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Release the marginals of a table.

        Parameters
        ----------
        Y : array-like or data frame of shape (n_rows, n)
            Zeros and ones, or booleans; k <= n.
        y : ignored

        Returns
        -------
        self
        """
        relaxation = self._checked_options()
        rows = self._checked_rows(Y)
        n_rows, n = rows.shape
        gaussian = Gaussian.choose(self.noise, self.random_state)
        query = (
            _Dense(n, self.k, relaxation) if self.sparsity is None else _Sparse(n, self.k, self.sparsity, relaxation)
        )
        if self.delta >= 1 / n_rows:
            warnings.warn(
                f"delta is {self.delta:g} for {n_rows:,} rows: publishing one of them at random would be as private",
                UserWarning,
                stacklevel=2,
            )
        whole = calibrated_sigma(self.epsilon, self.delta, query.sensitivity)
        sums = _sums_of_products(query.factors(rows), self.k)
        released = query.project(gaussian.add(sums, whole, query.sensitivity) / n_rows, self.max_iter)
        self.subsets_ = subsets(n, self.k)
        self._place = {subset: i for i, subset in enumerate(self.subsets_)}
        self.sigma_ = whole / n_rows
        self.error_bound_ = error_bound(self.sigma_, query.width(), len(released))
        self._released, self._terms = released, query.terms
        if self.sparsity is None:
            self.parities_ = released
        else:
            self.conjunctions_ = released
        self.certificate_ = gaussian_certificate(
            "the released marginals",
            gaussian,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=_NEIGHBOURS,
            mechanism=(
                f"Gaussian noise of standard deviation {self.sigma_:.6g} on each of {len(sums):,} marginals, then "
                f"projection ({relaxation})"
            ),
            parameters={
                "sensitivity": query.sensitivity / n_rows,
                "sigma": self.sigma_,
                "error_bound": self.error_bound_,
                "k": self.k,
                "sparsity": self.sparsity,
            },
            assumptions=[
                Assumption("The number of rows and the columns are public, and each person is one row."),
                *([] if self.sparsity is None else [Assumption("The bound of the ones in a row is public.")]),
            ],
        )
        return self

    def marginal(self, columns: Sequence[Any], values: Sequence[bool] | None = None) -> float:
        """Return the released share of rows with given values in some columns.

        Parameters
        ----------
        columns : sequence of int or str
            1 to k of them, by position or name.
        values : sequence of bool, optional
            Default: all ones.

        Returns
        -------
        float
        """
        table = self.table(columns)
        wanted = (True,) * table.ndim if values is None else tuple(bool(value) for value in values)
        if len(wanted) != table.ndim:
            raise InputError(f"there are {len(wanted)} values for {table.ndim} columns")
        return float(table[tuple(int(value) for value in wanted)])

    def table(self, columns: Sequence[Any]) -> Floats:
        """Return the released table of some columns.

        Parameters
        ----------
        columns : sequence of int or str
            1 to k of them, by position or name.

        Returns
        -------
        ndarray of shape (2, ..., 2)
            Share of rows with each combination of values, zeros first. They sum to one; a cell may be slightly below 0,
            and is not cut, so that tables agree with each other.
        """
        check_is_fitted(self)
        places = self._positions(columns)
        cells = np.zeros((2,) * len(places))
        for values in product((0, 1), repeat=len(places)):
            for sign, chosen in self._terms(values):
                subset = tuple(sorted(places[i] for i in chosen))
                cells[values] += sign * (self._released[self._place[subset]] if subset else 1.0)
        return cells

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def _checked_options(self) -> Literal["sos", "sparse", "none"]:
        checked_whole(self.k, "k")
        checked_whole(self.max_iter, "max_iter")
        if self.sparsity is not None:
            checked_whole(self.sparsity, "sparsity")
        if self.relaxation not in ("auto", "sos", "sparse", "none"):
            raise InputError(f"relaxation is {self.relaxation!r}", expected="'auto', 'sos', 'sparse' or 'none'")
        if self.relaxation == "auto":
            return "sos" if self.sparsity is None else "sparse"
        if self.relaxation == ("sos" if self.sparsity is not None else "sparse"):
            raise InputError(
                f"relaxation is {self.relaxation!r} and sparsity is {self.sparsity!r}",
                expected="'sparse' with a bound of the ones in a row, or 'sos' without",
            )
        return self.relaxation

    def _checked_rows(self, Y: Any) -> Floats:
        names = getattr(Y, "columns", None)
        table = np.asarray(Y)
        if table.ndim != 2 or not table.size:
            raise InputError(f"a table of shape {table.shape} is given", expected="rows and columns")
        if not ((table == 0) | (table == 1)).all():
            raise InputError(
                "a cell is neither 0 nor 1", remedy="Turn columns into yes or no, such as above the median"
            )
        n = table.shape[1]
        if self.k > n:
            raise InputError(f"k is {self.k} for {n} columns", expected=f"{n} at most")
        rows: Floats = np.asarray(table, dtype=np.float64)
        if self.sparsity is not None:
            allowed = rows.cumsum(axis=1) <= self.sparsity
            if not (self.clip or allowed.all()):
                raise InputError(
                    f"a row has more than {self.sparsity} ones",
                    remedy="Raise the public bound, or pass clip=True to drop ones beyond it",
                )
            rows = rows * allowed
        self.n_features_in_ = n
        if names is not None:
            self.feature_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return rows

    def _positions(self, columns: Sequence[Any]) -> list[int]:
        names = {name: i for i, name in enumerate(getattr(self, "feature_names_in_", ()))}
        places = [names.get(column, column) if isinstance(column, str) else column for column in columns]
        known = [int(p) for p in places if isinstance(p, int | np.integer) and 0 <= p < self.n_features_in_]
        if len(known) != len(places) or not 1 <= len(set(known)) == len(known) <= self.k:
            raise InputError(
                f"columns is {list(columns)!r}", expected=f"1 to {self.k} different ones, by position or name"
            )
        return known


# --- what is released -------------------------------------------------------------------------------------------------


class _Dense:
    """Parities of up to k columns."""

    def __init__(self, n: int, k: int, relaxation: Literal["sos", "sparse", "none"]) -> None:
        self._n, self._k = n, k
        self._moments = PseudoMoments(n, k) if relaxation == "sos" else None
        self.sensitivity = 2 * math.sqrt(_number(n, k))
        self.terms = _parity_terms

    def factors(self, rows: Floats) -> Floats:
        return 1 - 2 * rows

    def project(self, noisy: Floats, max_iter: int) -> Floats:
        return noisy if self._moments is None else self._moments.project(noisy, max_iter=max_iter, tol=1e-5)

    def width(self) -> float:
        """Return a bound of the expected inner product of the set's best point with standard normal noise."""
        if self._moments is None:
            return math.inf
        return sum(min(_block_width(self._n, s), math.sqrt(2 / math.pi) * math.comb(self._n, s)) for s in self._sizes())

    def _sizes(self) -> range:
        return range(1, self._k + 1)


class _Sparse:
    """Shares of rows with ones in up to k columns, where rows have few ones."""

    def __init__(self, n: int, k: int, t: int, relaxation: Literal["sos", "sparse", "none"]) -> None:
        self._n, self._k, self._t = n, k, t
        self._projected = relaxation == "sparse"
        self._supersets = _supersets(n, k) if self._projected else []
        self.sensitivity = math.sqrt(2 * _number(min(t, n), k))
        self.terms = _conjunction_terms

    def factors(self, rows: Floats) -> Floats:
        return rows

    def project(self, noisy: Floats, max_iter: int) -> Floats:  # noqa: ARG002
        if not self._projected:
            return noisy
        ends = np.cumsum([math.comb(self._n, size) for size in range(1, self._k)])
        parts = np.split(noisy, ends)
        shares = np.concatenate([project_simplex_ball(part, math.comb(self._t, i + 1)) for i, part in enumerate(parts)])
        for one, larger in self._supersets:
            _nest(shares, one, larger)
        return shares

    def width(self) -> float:
        """Return the same bound: the largest of 0 and m normal numbers is sqrt(2 log(m + 1)) at most, on average."""
        if not self._projected:
            return math.inf
        sizes = range(1, self._k + 1)
        best = (math.sqrt(2 * math.log(math.comb(self._n, size) + 1)) for size in sizes)
        return sum(math.comb(self._t, size) * most for size, most in zip(sizes, best, strict=True))


def _supersets(n: int, k: int) -> list[tuple[int, Indices]]:
    """Return the place of each subset of fewer than k, and the places of those that have one element more."""
    place = {subset: i for i, subset in enumerate(subsets(n, k))}
    larger: dict[int, list[int]] = {}
    for subset, i in place.items():
        for left_out in range(len(subset)) if len(subset) > 1 else ():
            larger.setdefault(place[subset[:left_out] + subset[left_out + 1 :]], []).append(i)
    return [(one, np.array(larger[one])) for one in sorted(larger)]


def _nest(shares: Floats, one: int, larger: Indices) -> None:
    """Project, in place, onto shares of which none of `larger` exceeds `one`: too large ones are pooled with it."""
    above = np.sort(shares[larger][shares[larger] > shares[one]])[::-1]
    if not len(above):
        return
    pooled = (shares[one] + np.cumsum(above)) / np.arange(2, len(above) + 2)
    level = pooled[np.flatnonzero(np.append(above[1:], -np.inf) <= pooled)[0]]
    shares[larger] = np.minimum(shares[larger], level)
    shares[one] = level


def _number(n: int, k: int) -> int:
    """Return the number of subsets of 1 to k of n."""
    return sum(math.comb(n, size) for size in range(1, k + 1))


def _block_width(n: int, size: int) -> float:
    """Return the width of parities of one size, as a block of a moment matrix with ones on its diagonal.

    Of even size: C = C(n, size / 2) rows, each normal number put at one place and, halved, mirrored, so that the
    largest eigenvalue is sqrt(C) at most and the trace is C. Of odd size: a block of C by C' with independent numbers,
    whose largest singular value is sqrt(C) + sqrt(C') at most, between diagonal blocks of traces C and C'.
    """
    small, large = math.comb(n, size // 2), math.comb(n, size - size // 2)
    if size % 2 == 0:
        return float(small**1.5)
    return (math.sqrt(small) + math.sqrt(large)) * math.sqrt(small * large)


def _sums_of_products(factors: Floats, k: int) -> Floats:
    """Return the sum over rows of the product of each 1 to k columns, by size and then in lexicographic order.

    The factors are -1, 0 or 1: all sums are whole numbers, and exact.
    """
    columns = np.asfortranarray(factors)
    n = columns.shape[1]
    sums = []
    for size in range(1, k + 1):
        for first in combinations(range(n), size - 1):
            start = first[-1] + 1 if first else 0
            sums.append(columns[:, list(first)].prod(axis=1) @ columns[:, start:])
    return np.concatenate(sums)


def _parity_terms(values: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield sign and columns of the parities that make up the share of rows with these values."""
    for size in range(len(values) + 1):
        for chosen in combinations(range(len(values)), size):
            yield (-1) ** sum(values[i] for i in chosen) / 2 ** len(values), chosen


def _conjunction_terms(values: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield sign and columns of the conjunctions that make up the share of rows with these values."""
    ones = tuple(i for i, value in enumerate(values) if value)
    zeros = [i for i, value in enumerate(values) if not value]
    for size in range(len(zeros) + 1):
        for chosen in combinations(zeros, size):
            yield (-1.0) ** size, ones + chosen
