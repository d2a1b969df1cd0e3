"""The estimator: one linear head per concept on the features, and a linear label layer on the concepts."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._curvature import Floats
from aboveboard.unlearning.editable_cbm._linear import LabelLayer, LinearConcepts, Loss, with_ones

__all__ = ["ConceptBottleneckClassifier", "checked_concepts", "checked_l2", "concept_names"]


def _gives_probabilities(model: "ConceptBottleneckClassifier") -> bool:
    if model.loss == "log_loss":
        return True
    raise AttributeError("with loss='squared_error' the model gives no probabilities; use decision_function")


class ConceptBottleneckClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A concept bottleneck of linear parts: features tell concepts, and concepts alone tell the label.

    Each concept has a logistic head on the features; softmax regression on the concepts' probabilities gives the label.
    Both are fitted in turn (the sequential bottleneck), with a ridge that makes the losses strongly convex, so that
    `EditableCBM` can edit the fitted model.

    Parameters
    ----------
    loss : {"log_loss", "squared_error"}, default "log_loss"
        With the squared error both parts are least squares (on 0/1 concepts and one-hot labels): edits are then exact.
    l2 : pair of float > 0, default (1e-2, 1e-2)
        Ridge of the concept heads and of the label layer, on the scale of losses summed over rows. Biases count.
    tol : float > 0, default 1e-6
        Largest entry of the mean loss's gradient at which L-BFGS stops.
    max_iter : int, default 5000
        Most L-BFGS steps of each part.

    Attributes
    ----------
    classes_ : ndarray of shape (m,)
    concept_names_ : list of str
        Column names of `C`, or ``"concept0"``, ...
    concept_coef_, concept_intercept_ : ndarray of shape (k, d) and (k,)
    coef_, intercept_ : ndarray of shape (m, k) and (m,)
    active_concepts_ : ndarray of bool, shape (k,)
        False for concepts that an edit dropped: their heads and label weights are 0.
    n_iter_ : tuple of int
        L-BFGS steps of the slowest concept head, and of the label layer.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Raises
    ------
    InputError
        For concepts that are not 0, 1 or missing, a concept without any label, a single class, options out of range.

    Notes
    -----
    Scale features to unit variance first. Missing concept labels (NaN) leave the loss of their head. Each L-BFGS step
    costs O(n d) per head and O(n k m) for the label layer.

    References
    ----------
    P. W. Koh et al., "Concept Bottleneck Models", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.unlearning import ConceptBottleneckClassifier
    >>> data = load_breast_cancer(as_frame=True)
    >>> worst = data.data.filter(like="worst")
    >>> concepts = (worst > worst.median()).astype(int)
    >>> X = StandardScaler().fit_transform(data.data.filter(like="mean"))
    >>> model = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, concepts, data.target)
    >>> model.predict_concepts(X).shape
    (569, 10)
    >>> bool(model.score(X, data.target) > 0.9)
    True
    """

    def __init__(
        self, *, loss: Loss = "log_loss", l2: Sequence[float] = (1e-2, 1e-2), tol: float = 1e-6, max_iter: int = 5000
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, C: Any, y: ArrayLike) -> "ConceptBottleneckClassifier":
        """Fit the concept heads, then the label layer on what they predict.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        C : array or data frame of shape (n, k)
            Concept labels: 0, 1, or NaN where nobody annotated.
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        concepts, labels = self.parts()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y), return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only: {self.classes_.tolist()[0]!r}", expected="two classes or more")
        C_array = checked_concepts(C, len(X))
        self.concept_names_ = concept_names(C, C_array.shape[1])
        for name, column in zip(self.concept_names_, C_array.T, strict=True):
            if np.isnan(column).all():
                raise InputError(f"concept {name!r} has no label", remedy="Annotate some rows, or leave it out of C")
        design = with_ones(X)
        k, m = C_array.shape[1], len(self.classes_)
        fitted = concepts.fit(design, C_array, np.zeros((k, design.shape[1])), self.tol, self.max_iter)
        inputs = with_ones(concepts.outputs(fitted.theta, design))
        top = labels.fit(inputs, codes, np.zeros((m, k + 1)), self.tol, self.max_iter)
        self.active_concepts_ = np.ones(k, dtype=bool)
        self.set_parameters(fitted.theta, top.theta)
        self.n_iter_ = (fitted.n_iter, top.n_iter)
        if not (fitted.converged and top.converged):
            warnings.warn(
                f"L-BFGS stopped before the gradient fell to tol={self.tol:g}; scale the features, raise max_iter, "
                "l2 or tol. EditableCBM needs a model that is at its optimum",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_concepts(self, X: Any) -> Floats:
        """Return each concept's probability (its value, under the squared error), shape (n, k); NaN where dropped."""
        outputs = self._concept_outputs(X)
        outputs[:, ~self.active_concepts_] = np.nan
        return outputs

    def decision_function(self, X: Any) -> Floats:
        """Return the classes' scores, shape (n, m); with two classes the second's less the first's, shape (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the classes' probabilities, shape (n, m)."""
        probabilities: Floats = softmax(self._scores(X), axis=1)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each row, shape (n,)."""
        best = self._scores(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def parts(self) -> tuple[LinearConcepts, LabelLayer]:
        """Return the losses of the two parts, after checking the options."""
        if self.loss not in ("log_loss", "squared_error"):
            raise InputError(f"loss is {self.loss!r}", expected="'log_loss' or 'squared_error'")
        if not self.tol > 0:
            raise InputError(f"tol is {self.tol!r}", expected="a number above 0")
        if not (isinstance(self.max_iter, int | np.integer) and self.max_iter >= 1):
            raise InputError(f"max_iter is {self.max_iter!r}", expected="a whole number of at least 1")
        first, second = checked_l2(self.l2)
        return LinearConcepts(self.loss, first), LabelLayer(self.loss, second)

    def set_parameters(self, theta: Floats, top: Floats) -> None:
        """Take the parameters of the concept heads, shape (k, d + 1), and of the label layer, shape (m, k + 1)."""
        self.concept_coef_, self.concept_intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        self.coef_, self.intercept_ = top[:, :-1].copy(), top[:, -1].copy()

    def _concept_outputs(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        concepts, _ = self.parts()
        return concepts.outputs(np.column_stack([self.concept_coef_, self.concept_intercept_]), with_ones(X))

    def _scores(self, X: Any) -> Floats:
        scores: Floats = self._concept_outputs(X) @ self.coef_.T + self.intercept_
        return scores


def checked_l2(l2: Any) -> tuple[float, float]:
    """Return the two ridges, or say what is wrong with them."""
    try:
        first, second = (float(value) for value in l2)
    except (TypeError, ValueError) as error:
        raise InputError(f"l2 is {l2!r}", expected="a pair of numbers above 0") from error
    if not (np.isfinite([first, second]).all() and first > 0 and second > 0):
        raise InputError(
            f"l2 is {l2!r}",
            expected="a pair of numbers above 0",
            remedy="Without a ridge the loss may have no single optimum, which edits need",
        )
    return first, second


def checked_concepts(C: Any, n_rows: int) -> Floats:
    """Return the concept labels as floats of shape (n, k): 0, 1 or NaN."""
    try:
        if isinstance(C, pd.DataFrame):
            C = C.to_numpy(dtype=np.float64, na_value=np.nan)
        concepts = np.array(C, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the concept labels are no numbers ({error})", expected="0, 1 or NaN (unknown)") from error
    if concepts.ndim != 2 or concepts.shape[0] != n_rows or not concepts.shape[1]:
        raise InputError(
            f"the concept labels have shape {concepts.shape} for {n_rows} rows",
            expected="one row per row of X and one column per concept",
        )
    wrong = ~(np.isnan(concepts) | (concepts == 0) | (concepts == 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"concept column {column} holds {concepts[row, column]:g} in row {row}", expected="0, 1 or NaN (unknown)"
        )
    return concepts


def concept_names(C: Any, k: int) -> list[str]:
    """Return the column names of `C`, or numbered ones."""
    columns = getattr(C, "column_names", getattr(C, "columns", None))
    names = [str(name) for name in columns] if columns is not None else [f"concept{j}" for j in range(k)]
    if len(set(names)) != len(names):
        raise InputError("two concepts have the same name", expected="names that differ")
    return names
