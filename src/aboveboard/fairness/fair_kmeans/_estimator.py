"""The estimator: options and data checked, then relax and merge or fairlets, labels, and what they come to."""

import warnings
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from aboveboard.core import Certificate, InputError, require
from aboveboard.fairness.fair_kmeans._assignment import squared_distances
from aboveboard.fairness.fair_kmeans._barycenter import checked_candidates
from aboveboard.fairness.fair_kmeans._certificate import (
    clustering_certificate,
    data_sha256,
    rounding_limit,
    strict_certificate,
)
from aboveboard.fairness.fair_kmeans._fairlets import fairlets, refuse_uneven
from aboveboard.fairness.fair_kmeans._groups import Fairness, Floats, Groups, Indices, read_groups, shares_allowed
from aboveboard.fairness.fair_kmeans._relax_merge import relax_merge, weighted_kmeans
from aboveboard.fairness.fair_kmeans._rounding import by_flow, by_integer_program, by_largest_share, cell_masses

__all__ = ["RelaxMergeFairKMeans"]

_ROUNDINGS: Final = ("flow", "milp", None)


class RelaxMergeFairKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """k-means in whose clusters every group keeps a share between a lower and an upper bound.

    A relaxation assigns points fairly to many candidate centres; its clusters are merged into `n_clusters` by k-means;
    and the cheapest fair assignment to the merged centres is found exactly. That assignment is fractional: at most a
    few points are divided among clusters. Hard labels come from a flow, cost no more, and break a bound by fewer than
    two people where each person is in one group.

    Parameters
    ----------
    n_clusters : int, default 8
    slack : float in [0, 1), default 0.1
        A group that is a share r of the data may have between r (1 - slack) and r / (1 - slack) in each cluster; 0 asks
        for exact proportions. Not used with `bounds`.
    bounds : mapping, optional
        The least and largest share by group, ``{"Female": (0.3, 0.6)}``, or by column and group,
        ``{"sex": {"Female": (0.3, 0.6)}}``. Groups that are not named are not bounded.
    candidates : {"kmeans", "points"} or array of shape (candidates, n_features), default "kmeans"
        Where the relaxation may put centres: at those of a k-means with many clusters and of each group's own k-means;
        at all points (up to some 1,200, a sample of more), which has a guarantee and takes longer; or where you say.
    n_candidates : int, optional
        Default: the larger of 100 and 15 `n_clusters` for "kmeans", and at most 1,224 for "points".
    recenter : bool, default True
        Move each candidate to the mean of what it was assigned before merging.
    refine : int, default 5
        How often, at most, centres move to the mean of what they were assigned and the assignment is found again. The
        cost never rises. The centres of plain k-means are refined as well, and the cheaper end is kept.
    rounding : {"flow", "milp", None}, default "flow"
        How labels are made: by min-cost flow (extra ``solvers``); by an integer program that among the same roundings
        makes the largest violation smallest, and the cost second, for small data or where attributes overlap; or by
        each point's largest share, without a bound on the violation.
    strict : bool, default False
        Match people into fairlets and cluster these: every cluster has the proportions of the data exactly. Groups
        (combinations of the sensitive columns) must be equally large, or whole multiples of the smallest. `slack`,
        `candidates`, `refine` and `rounding` are not used.
    kmeans_n_init : int, default 10
        Runs of k-means in merging.
    time_limit : float, default 120
        Seconds for each assignment problem and each integer program.
    random_state : int, RandomState or None
        Of k-means, and of the samples of large data.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (clusters, n_features)
        Fewer clusters than asked for, with a warning, where some would be empty.
    labels_ : ndarray of int, shape (n,)
    assignment_ : csr_array of shape (n, clusters)
        The fractional assignment; rows add up to 1.
    fractional_cost_ : float
        Sum of squared distances to the centres under `assignment_`.
    inertia_ : float
        The same under `labels_`.
    relaxed_cost_ : float
        Cost of the relaxation, or of the fairlets, to their own centres.
    merged_cost_ : float
        Fractional cost to the merged centres, before any refinement.
    refinement_costs_ : list of float
        Fractional cost at first and after each refinement, from the start that ended cheapest: the merged centres, or
        those of plain k-means.
    balance_ : DataFrame
        Share of each group (row) in each cluster (column), by `labels_`.
    bounds_ : DataFrame
        By group, its share in the data and the bounds.
    max_violation_ : float
        By how many people a bound is broken at most, in any cluster, by `labels_`.
    max_violation_share_ : float
        By how much of its cluster.
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : ndarray

    Raises
    ------
    InputError
        Before any work: bounds that cross or that no clustering can meet, a group absent from the data, more clusters
        than rows, sensitive features that are missing or do not line up, and with `strict` sizes that do not divide.
    MissingExtra
        For ``rounding="flow"`` without OR-tools.

    Guarantee
    ---------
    The fractional assignment keeps every bound, and is the cheapest fair one for its centres to a relative 1e-7, which
    a dual bound proves. With ``candidates="points"`` and all points as candidates its cost is at most (2 + 6 rho) times
    that of the best fair clustering, with rho the factor of the k-means that merges; (4 + 12 rho) without re-centring;
    (1 + 4 rho)(1 + O(eps)) where an array of candidates is an eps-approximate centroid set. ``candidates="kmeans"``
    claims no ratio. Fairlets: (2 + 6 rho) for groups of one size. `certificate_` has the exact figures.

    Notes
    -----
    Assignments cost O(n k) per evaluation of the dual, and a linear program over near-ties. The relaxation looks at a
    sample of the points once points times candidates exceed 1.5 million. Memory is a few times n k numbers.

    Columns in large units rule the distances: standardise first. For new rows, `predict` gives the nearest centre,
    which is not bound to be fair.

    References
    ----------
    S. Song, G. Mo, Q. Yang, H. Ding, "Relax and Merge: A Simple Yet Effective Framework for Solving Fair k-Means and
    k-sparse Wasserstein Barycenter Problems", ICLR 2025.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.data import load_german_credit
    >>> from aboveboard.fairness import RelaxMergeFairKMeans
    >>> credit = load_german_credit()
    >>> X = StandardScaler().fit_transform(credit.X[["age", "duration", "amount"]])
    >>> young = (credit.X["age"] < 26).map({True: "young", False: "older"})
    >>> fair = RelaxMergeFairKMeans(4, slack=0.2, rounding="milp", random_state=0)
    >>> fair.fit(X, sensitive_features=young).max_violation_ < 2
    True
    >>> bool(fair.balance_.loc["young"].min() > 0.14)  # they are 19 % of all
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        slack: float = 0.1,
        bounds: Any = None,
        candidates: Any = "kmeans",
        n_candidates: int | None = None,
        recenter: bool = True,
        refine: int = 5,
        rounding: str | None = "flow",
        strict: bool = False,
        kmeans_n_init: int = 10,
        time_limit: float = 120.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.slack = slack
        self.bounds = bounds
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.recenter = recenter
        self.refine = refine
        self.rounding = rounding
        self.strict = strict
        self.kmeans_n_init = kmeans_n_init
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> "RelaxMergeFairKMeans":  # noqa: ARG002
        """Cluster the rows.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Numbers, without NaN.
        y : ignored
        sensitive_features : array, Series or data frame of shape (n,) or (n, n_columns), optional
            Bounds hold for the groups of each column. None: one group, which is plain k-means.

        Returns
        -------
        self
        """
        self._check_options()
        points = validate_data(self, X, dtype=np.float64)
        if self.n_clusters > len(points):
            raise InputError(f"n_clusters is {self.n_clusters} for {len(points):,} rows", expected="no more than rows")
        chosen = checked_candidates(self.candidates, points.shape[1])
        groups = read_groups(sensitive_features, len(points), index=getattr(X, "index", None))
        if self.strict:
            self._fit_strict(points, groups)
        else:
            self._fit_relaxed(points, groups, chosen)
        clusters = self.cluster_centers_.shape[0]
        if clusters < self.n_clusters:
            warnings.warn(
                f"there are {clusters} clusters, not {self.n_clusters}: more would be empty", UserWarning, stacklevel=2
            )
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the nearest centre of each row, with a warning: fairness holds for the rows of `fit` only.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of int, shape (n,)
        """
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        if len(self.bounds_):
            warnings.warn(
                "new rows go to the nearest centre, and need not keep the bounds; those of the fitted rows are in "
                "labels_",
                UserWarning,
                stacklevel=2,
            )
        return np.asarray(squared_distances(points, self.cluster_centers_).argmin(axis=1))

    def _fit_relaxed(self, X: Floats, groups: Groups, candidates: Any) -> None:
        allowed = shares_allowed(groups, self.slack, self.bounds)
        fairness = Fairness.of(groups, allowed)
        if self.rounding == "flow" and len(fairness.rows):
            require("ortools", extra="solvers", feature="rounding='flow'")
        merged = relax_merge(
            X,
            np.ones(len(X)),
            groups.cell,
            fairness,
            self.n_clusters,
            candidates=candidates,
            n_candidates=self.n_candidates,
            recenter=self.recenter,
            refine=self.refine,
            n_init=self.kmeans_n_init,
            time_limit=self.time_limit,
            random_state=self.random_state,
        )
        cost = squared_distances(X, merged.centers)
        self.cluster_centers_ = merged.centers
        self.assignment_ = merged.assignment.mass
        self.fractional_cost_ = merged.assignment.cost
        self.relaxed_cost_ = merged.relaxed_cost
        self.merged_cost_ = merged.merged_cost
        self.refinement_costs_ = merged.costs
        self._describe(groups, allowed, self._rounded(cost, merged.assignment, groups, fairness), cost)
        mass = cell_masses(merged.assignment.mass, groups.cell, groups.n_cells)
        self.certificate_: Certificate = clustering_certificate(
            merged,
            candidates=candidates if isinstance(candidates, str) else "array",
            recentred=self.recenter,
            n=len(X),
            k=self.n_clusters,
            fractional_violation=float(fairness.violation(mass).max(initial=0.0)),
            max_violation=self.max_violation_,
            limit=rounding_limit(groups, allowed),
            rounding=self.rounding,
            subject=data_sha256(X, groups.cell),
        )

    def _rounded(self, cost: Floats, assignment: Any, groups: Groups, fairness: Fairness) -> Indices:
        if not len(fairness.rows) or self.rounding is None:
            return by_largest_share(assignment)
        if self.rounding == "flow":
            return by_flow(cost, assignment, groups.cell, groups.n_cells)
        labels, optimal = by_integer_program(cost, assignment, groups.cell, fairness, self.time_limit)
        if not optimal:
            warnings.warn(
                f"the integer program was not solved to the end in {self.time_limit:g} seconds: other labels may have "
                "a smaller violation or cost",
                UserWarning,
                stacklevel=4,
            )
        return labels

    def _fit_strict(self, X: Floats, groups: Groups) -> None:
        refuse_uneven(groups, self.n_clusters)
        share = groups.member @ groups.cell_counts() / len(X)
        fair = fairlets(X, groups)
        random = check_random_state(self.random_state)
        weight = np.full(len(fair.centers), float(fair.size))
        centers = weighted_kmeans(fair.centers, weight, self.n_clusters, self.kmeans_n_init, random)
        nearest = squared_distances(fair.centers, centers).argmin(axis=1)
        used, nearest = np.unique(nearest, return_inverse=True)
        labels = nearest.ravel()[fair.of]
        sizes = np.bincount(labels, minlength=len(used))
        # the mean of a cluster's fairlets is the mean of its people
        self.cluster_centers_ = np.column_stack([np.bincount(labels, weights=c) for c in X.T]) / sizes[:, None]
        cost = squared_distances(X, self.cluster_centers_)
        rows = np.arange(len(X))
        self.assignment_ = sparse.csr_array((np.ones(len(X)), (rows, labels)), shape=cost.shape)
        self.fractional_cost_ = float(cost[rows, labels].sum())
        self.relaxed_cost_ = float(((X - fair.centers[fair.of]) ** 2).sum())
        self.merged_cost_ = self.fractional_cost_
        self.refinement_costs_ = [self.fractional_cost_]
        self._describe(groups, np.column_stack([share, share]), labels, cost)
        self.certificate_ = strict_certificate(
            fair, self.fractional_cost_, self.n_clusters, data_sha256(X, groups.cell)
        )

    def _describe(self, groups: Groups, allowed: Floats, labels: Indices, cost: Floats) -> None:
        """Set what the labels come to."""
        self.labels_ = labels
        self.inertia_ = float(cost[np.arange(len(labels)), labels].sum())
        k = cost.shape[1]
        counts = np.zeros((groups.n_cells, k))
        np.add.at(counts, (groups.cell, labels), 1.0)
        sizes = counts.sum(axis=0)
        members = groups.member @ counts
        with np.errstate(invalid="ignore"):
            shares = members / sizes
        excess = np.maximum(members - allowed[:, 1:] * sizes, allowed[:, :1] * sizes - members).clip(min=0.0)
        self.max_violation_ = float(excess.max(initial=0.0))
        self.max_violation_share_ = float((excess / np.maximum(sizes, 1.0)).max(initial=0.0))
        rows = _group_index(groups)
        self.balance_ = pd.DataFrame(shares, index=rows, columns=pd.RangeIndex(k, name="cluster"))
        share = groups.member @ groups.cell_counts() / len(labels)
        self.bounds_ = pd.DataFrame({"share": share, "least": allowed[:, 0], "largest": allowed[:, 1]}, index=rows)

    def _check_options(self) -> None:
        wanted: dict[str, tuple[ArrayLike, int]] = {
            "n_clusters": (self.n_clusters, 1),
            "refine": (self.refine, 0),
            "kmeans_n_init": (self.kmeans_n_init, 1),
        }
        if self.n_candidates is not None:
            wanted["n_candidates"] = (self.n_candidates, max(int(self.n_clusters), 1))
        for name, (value, least) in wanted.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name} is {value!r}", expected=f"a whole number of at least {least}")
        if self.rounding not in _ROUNDINGS:
            raise InputError(f"rounding is {self.rounding!r}", expected="'flow', 'milp' or None")
        if not isinstance(self.time_limit, int | float | np.number) or not self.time_limit > 0:
            raise InputError(f"time_limit is {self.time_limit!r}", expected="a number of seconds above 0")
        if self.strict and self.bounds is not None:
            raise InputError(
                "strict=True keeps the proportions of the data, and bounds were given", expected="one of the two"
            )


def _group_index(groups: Groups) -> "pd.Index[Any]":
    values: pd.Index[Any] = pd.Index([group.value for group in groups.groups], dtype=object)
    if len(groups.attributes) > 1:
        return pd.MultiIndex.from_arrays([groups.attribute_of, values], names=["attribute", "group"])
    values.name = groups.attributes[0] if groups.attributes else "group"
    return values
