"""A random forest classifier from which any row can be removed exactly, in well under a millisecond."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from aboveboard.core import InputError
from aboveboard.unlearning.dynfrs._estimator import ForestEstimator, json_label
from aboveboard.unlearning.dynfrs._input import listed

__all__ = ["DynFrsClassifier"]


class DynFrsClassifier(ClassifierMixin, ForestEstimator):  # type: ignore[misc]
    """DynFrs: a forest of extremely randomised trees that forgets and learns single rows exactly.

    Parameters
    ----------
    n_estimators : int
        Number of trees, T.
    occurrence : float in (0, 1]
        Share of the trees that each row is put into, q; k = ceil(q T) trees hold it. 0.1 for speed, 0.2 for accuracy.
    max_depth : int or None
        Greatest depth, D; None for no limit.
    n_thresholds : int
        Candidate thresholds per attribute and node, s.
    max_features : "sqrt", int, float or None
        Candidate attributes per node, p: "sqrt" is floor(sqrt(d)) + 1, a float a share of d, None all.
    min_samples_split : int
        A node with less weight than this is a leaf.
    categorical_features : sequence of str, int or bool, optional
        Columns that hold categories (text or numbers; a missing value is one more category). In every node the
        categories of such a column stand in a random order of their own, which thresholds cut in two.
    lazy : bool
        True: a node whose split has changed is grown when it is next needed. False: at once, before `remove` returns.
        The forest is the same.
    n_jobs : int or None
        Threads over trees (and over rows, for queries); None for 1 unless in a ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Source of the 64-bit `seed_`, from which all that is random is hashed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    seed_ : int
    sample_ids_ : ndarray of shape (n,)
    n_tagged_, memory_bytes_ : int
    certificate_ : Certificate
    forest_ : object
        The forest itself; changed in place by `remove`, `partial_fit` and queries.
    n_features_in_, feature_names_in_

    Guarantee
    ---------
    After any sequence of `partial_fit`, `remove` and queries the forest, with every count and candidate that it
    remembers, is bit-identical to that of ``fit`` on the rows that are left, with the same ids, settings and `seed_`.
    `certify` checks it. Fitted scalers or encoders before the forest, and choices made by looking at the rows, are
    not covered.

    Notes
    -----
    n rows, d attributes, C classes. Nothing is drawn: each random number is a hash of the seed, the tree, the path to
    the node, the attribute and an index, so that a node grown later, or again, is the node that would have been grown.
    Row i is in the k trees that a hash of (seed, id) picks. A node takes the first p attributes that are not constant
    in it, in a hashed order; attribute a has the thresholds min_a + U (max_a - min_a). It splits where the weighted
    Gini impurity is least, computed from whole counts; ties go to the earlier candidate.

    Cost: `fit` O(k n D p s), where the s comparisons of a row are done in vectors; `remove` and `partial_fit` of one
    row O(k D p s), plus ``O(|S_u|)`` where a node u with rows S_u must be grown again and ``O(|S_u| s)`` per attribute
    whose range in u moved; queries O(T D) per row, plus the growth of tagged nodes that they pass. Memory: 4 d bytes
    per row, 12 k bytes per row for the trees, and 4 p s C bytes per inner node.

    Values are held in single precision, as in scikit-learn's trees. Several threads may query, remove and add at once.

    References
    ----------
    S. Wang, Z. Shen, X. Qiao, T. Zhang, M. Zhang: "DynFrs: An Efficient Framework for Machine Unlearning in Random
    Forest", ICLR 2025, https://arxiv.org/abs/2410.01588.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aboveboard.unlearning import DynFrsClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = DynFrsClassifier(occurrence=0.2, random_state=0).fit(X, y)
    >>> smaller = DynFrsClassifier(occurrence=0.2, random_state=0).fit(X[3:], y[3:], sample_id=range(3, 569))
    >>> forest.remove([0, 1, 2]).fingerprint() == smaller.fingerprint()
    True
    >>> forest.certify(n_probe=5).holds
    True
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        occurrence: float = 0.1,
        max_depth: int | None = 20,
        n_thresholds: int = 30,
        max_features: Literal["sqrt"] | float | None = "sqrt",
        min_samples_split: int = 10,
        categorical_features: Sequence[Any] | None = None,
        lazy: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.occurrence = occurrence
        self.max_depth = max_depth
        self.n_thresholds = n_thresholds
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.lazy = lazy
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sample_id: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Finite numbers within single precision; categorical columns may hold anything.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), optional
            Whole numbers at or above 0. A row of weight w counts as w equal rows, all in the same trees.
        sample_id : array of int of shape (n,), optional
            Distinct ids by which rows are removed later; default 0 .. n-1.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For values, settings, ids or weights that cannot be used; it is a ValueError.
        MissingExtra
            Without Numba (extra ``fast``).
        """
        return self._fit(X, y, None, sample_weight, sample_id)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, sample_id: Any = None
    ) -> Self:
        """Add rows, as if they had been there from the start.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            All labels that may ever come; read in the first call only, where it defaults to the labels of `y`.
        sample_id : array of int, optional
            Ids not in use; default: whole numbers above all ids so far.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For unknown labels and ids in use, which it names; nothing has changed then.
        """
        if not hasattr(self, "forest_"):
            return self._fit(X, y, classes, sample_weight, sample_id)
        values = self._features(X, reset=False)
        labels = column_or_1d(y, warn=True)
        if len(labels) != len(values):
            raise InputError(f"y has {len(labels):,} labels for {len(values):,} rows", expected="one per row")
        self._extend(values, self._codes(labels), np.zeros(0, np.int64), sample_weight, sample_id)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the trees' leaf shares, shape (n, n_classes), float64."""
        check_is_fitted(self, "forest_")
        return np.asarray(self.forest_.answer(self._features(X, reset=False)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely label of each row, shape (n,)."""
        check_is_fitted(self, "forest_")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, sample_id: Any) -> Self:
        values = self._features(X, reset=True)
        if y is None:
            raise InputError("requires y to be passed, but the target y is None", expected="one label per row")
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if len(labels) != len(values):
            raise InputError(f"y has {len(labels):,} labels for {len(values):,} rows", expected="one per row")
        self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
        codes = self._codes(labels)
        self._start(values, codes, np.zeros(0, np.int64), sample_weight, sample_id, len(self.classes_))
        return self

    def _codes(self, labels: np.ndarray) -> np.ndarray:
        places = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        strange = self.classes_[places] != labels
        if strange.any():
            unknown = np.unique(labels[strange]).tolist()
            raise InputError(
                f"y holds labels that are not among the classes: {listed(unknown)}",
                expected=listed(self.classes_.tolist()),
                remedy="Name all classes in the first call: partial_fit(X, y, classes=...)",
            )
        return places.astype(np.int32)

    def _target_header(self) -> dict[str, Any]:
        return {"classes": [json_label(label) for label in self.classes_]}
