"""Logistic regression with class weights whose coefficients are epsilon-differentially private."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy._noise import NoiseSource, noise_source
from aboveboard.privacy._rdp import privacy_certificate
from aboveboard.privacy._rdp.checked import checked_positive
from aboveboard.privacy.imbalanced._reference import PAPER
from aboveboard.privacy.imbalanced._rows import binary_labels, within_ball
from aboveboard.privacy.imbalanced._weights import ClassWeight, ClassWeights, checked_class_weight, class_weights

__all__ = ["PrivateWeightedLogisticRegression"]

_CURVATURE: Final = 0.25  # the second derivative of the logistic loss is at most this
_GRADIENT: Final = 1e-9  # the objective is minimised until its gradient is no longer than this
_POLISHING: Final = 20
_PUBLIC_COUNTS: Final = Assumption(
    "How many rows each class has is public: data sets of other class counts are not told apart any less."
)

Floats = NDArray[np.float64]
Probabilities = Literal["balanced", "population"]


class PrivateWeightedLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression for a rare class, differentially private with delta = 0.

    An unweighted private model of a rare class tends to predict the majority for everybody. Here the rare class weighs
    more; the weights are learned from a part of the budget, and the noise grows with the largest of them.

    Parameters
    ----------
    epsilon : float, default 1.0
        Budget of everything that `fit` learns.
    class_weight : {"private", "balanced_public"}, dict or None, default "private"
        ``"private"``: inverse to noisy class counts, for a tenth of the budget. ``"balanced_public"``: inverse to the
        exact counts, which the guarantee then does not protect. A dict gives the weight of each class, and must not
        come from the data. None: all rows weigh the same.
    weight_cap : float of at least 1, default 20
        Largest weight that is computed. The noise grows in proportion to the largest weight.
    balance : float in [0, 1], default 1
        Power of the inverse counts: 1 makes both classes weigh the same in total, 0 all rows.
    lam : float, default 0.01
        Strength of the ridge penalty, for rows of norm at most 1; more of it needs less noise.
    data_norm : float, default 1.0
        Largest Euclidean norm of a row, known without looking at the data.
    clip : bool, default False
        Shorten longer rows, in `fit` and in `predict`, instead of refusing them.
    fit_intercept : bool, default True
        Learn an intercept, which is penalised as the coefficients are.
    probabilities : {"balanced", "population"}, default "balanced"
        Whether `predict_proba` gives probabilities among rows weighted as in `fit`, so that a probability of 1/2
        separates the weighted classes, or among all rows, in which a rare class seldom reaches 1/2.
    random_state : int, numpy.random.Generator or None
        None draws the noise from the operating system's cryptographic generator. A seed makes it predictable: for
        tests, not for releases.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features)
    intercept_ : ndarray, shape (1,)
    classes_ : ndarray, shape (2,)
        The second one is the positive class.
    class_weight_ : dict
        The weight of each class.
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : ndarray

    Raises
    ------
    InputError
        For labels of one class or of more than two, rows beyond `data_norm` without `clip`, options out of range.
    RuntimeError
        When the minimiser was not found as exactly as the proof needs.

    Guarantee
    ---------
    The fitted attributes are epsilon-differentially private when one row is replaced by any other; the number of rows,
    the two labels and all options are public. It assumes that no option was tuned on the same rows (or that the tuning
    was paid for), and that the minimiser is exact: it is found up to a gradient norm of 1e-9.

    Notes
    -----
    Minimises, over rows x of norm at most 1 and labels s = -1 or 1, ::

        mean of w_s log(1 + exp(-s theta.x)) + (Lambda + Delta) / 2 |theta|^2 + b.theta / n

    with b of a uniformly random direction and a norm of the Gamma distribution of shape d and scale 2 w_max / epsilon'.
    Of epsilon, log(1 + w_max / (4 n (Lambda + Delta))) pays for the curvature and epsilon' for the noise; Delta is the
    smallest that leaves half of epsilon to the noise. With an intercept, rows become (x, 1) / sqrt(2). O(n d^2 + d^3)
    time per Newton step, some ten of them.

    The noise has length 2 d w_max / (epsilon' n) beside gradients of at most 1: a few hundred rows of the rare class
    are needed at epsilon = 1, and below 50 nothing useful is learned.

    References
    ----------
    L. Rosenblatt, Y. Lut, E. Turok, M. Avella-Medina, R. Cummings, "Differential Privacy Under Class Imbalance: Methods
    and Empirical Insights", ICML 2025.
    K. Chaudhuri, C. Monteleoni, A. D. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 12, 2011.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import PrivateWeightedLogisticRegression
    >>> adult = load_adult()
    >>> X = adult.X[["age", "education_num", "hours_per_week"]] / [100, 20, 100]
    >>> model = PrivateWeightedLogisticRegression(epsilon=1.0, data_norm=2.0, random_state=0)
    >>> model.fit(X, adult.y_binary).certificate_.parameters["epsilon"]
    1.0
    >>> sorted(set(model.predict(X.head(500)).tolist()))
    [0, 1]
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        class_weight: ClassWeight = "private",
        weight_cap: float = 20.0,
        balance: float = 1.0,
        lam: float = 1e-2,
        data_norm: float = 1.0,
        clip: bool = False,
        fit_intercept: bool = True,
        probabilities: Probabilities = "balanced",
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.class_weight = class_weight
        self.weight_cap = weight_cap
        self.balance = balance
        self.lam = lam
        self.data_norm = data_norm
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.probabilities = probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> "PrivateWeightedLogisticRegression":
        """Learn the class weights and the coefficients, and spend the budget.

        Parameters
        ----------
        X : array or data frame of float, shape (n, n_features)
        y : array-like, shape (n,)
            Two classes; the second in sorted order is the positive one.

        Returns
        -------
        self
        """
        epsilon = self._checked_options()
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        X, y = validate_data(self, X, y, dtype=np.float64)
        label, self.classes_ = binary_labels(y)
        rows = self._scaled(X)
        source = noise_source(self.random_state)
        weights = class_weights(
            self.class_weight,
            label,
            self.classes_,
            epsilon=epsilon,
            weight_cap=self.weight_cap,
            balance=self.balance,
            adjacency="replace_one",
            source=source,
        )
        budget = Budget.split(epsilon - weights.epsilon, w_max=weights.largest, n=len(rows), lam=float(self.lam))
        noise = perturbation(rows.shape[1], budget.noise_scale(weights.largest), source)
        theta = minimiser(rows, 2 * label - 1, weights.values[label.astype(int)], budget.lam, noise)

        scale = self.data_norm * math.sqrt(2) if self.fit_intercept else self.data_norm
        self.coef_ = theta[None, : X.shape[1]] / scale
        self.intercept_ = theta[-1:] / math.sqrt(2) if self.fit_intercept else np.zeros(1)
        self.class_weight_ = dict(zip(self.classes_.tolist(), weights.values.tolist(), strict=True))
        self._shift = weights.shift
        self.certificate_ = self._certificate(epsilon, weights, budget, len(rows), source)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second class, among rows weighted as in `fit`.

        Parameters
        ----------
        X : array or data frame of float, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.clip:
            X = within_ball(X, self.data_norm, clip=True)
        log_odds: Floats = X @ self.coef_[0] + self.intercept_[0]
        return log_odds - self._shift if self.probabilities == "population" else log_odds

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class: see `probabilities`.

        Parameters
        ----------
        X : array or data frame of float, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n, 2)
        """
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class whose probability is above 1/2.

        Parameters
        ----------
        X : array or data frame of float, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n,)
            Of `classes_`.
        """
        second = self.decision_function(X) > 0
        label: NDArray[Any] = self.classes_[second.astype(int)]
        return label

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = self.random_state is None
        return tags

    def _checked_options(self) -> float:
        checked_class_weight(self.class_weight, self.weight_cap, self.balance)
        checked_positive(self.lam, "lam")
        checked_positive(self.data_norm, "data_norm")
        if self.probabilities not in ("balanced", "population"):
            raise InputError(f"probabilities is {self.probabilities!r}", expected="'balanced' or 'population'")
        return checked_positive(self.epsilon, "epsilon")

    def _scaled(self, X: Floats) -> Floats:
        """Return rows of norm at most 1, with a constant for the intercept."""
        rows = within_ball(X, self.data_norm, clip=self.clip) / self.data_norm
        return np.column_stack([rows, np.ones(len(rows))]) / math.sqrt(2) if self.fit_intercept else rows

    def _certificate(
        self, epsilon: float, weights: ClassWeights, budget: "Budget", n: int, source: NoiseSource
    ) -> Certificate:
        return privacy_certificate(
            release="the coefficients, the intercept and the class weights",
            epsilon=epsilon,
            delta=0.0,
            adjacency="replace_one",
            mechanism="objective perturbation" + (", and Laplace noise on a class count" if weights.epsilon else ""),
            noise=source,
            parameters={
                "epsilon_class_weights": weights.epsilon,
                "epsilon_curvature": budget.curvature,
                "epsilon_noise": budget.noise,
                "largest_weight": weights.largest,
                "lam": budget.lam,
                "data_norm": float(self.data_norm),
                "n": n,
            },
            assumptions=(
                Assumption(
                    f"Every row has a Euclidean norm of at most {self.data_norm:g}"
                    + (": longer ones were shortened." if self.clip else "."),
                    basis="checked",
                    test="norm of every row",
                    passed=True,
                ),
                Assumption(
                    "The objective was minimised exactly.",
                    basis="checked",
                    test="norm of its gradient",
                    limit=_GRADIENT,
                    passed=True,
                ),
                Assumption(
                    "The options, the number of rows and the two labels are public: none was chosen by looking at "
                    "these rows."
                ),
                *([_PUBLIC_COUNTS] if weights.counts_are_public else []),
                Assumption("Each person has one row."),
            ),
            does_not_cover=(
                "How accurate the model is, for the rare class or for the other.",
                "Preprocessing that was learned from the same rows: scaling, selection of columns, resampling.",
            ),
            reference=PAPER,
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """How epsilon is shared between the curvature of the objective and the noise.

    Parameters
    ----------
    lam : float
        Strength of the whole ridge penalty: what was asked for, and what privacy needs beyond it.
    curvature, noise : float
        Parts of epsilon.
    """

    lam: float
    curvature: float
    noise: float

    @classmethod
    def split(cls, epsilon: float, *, w_max: float, n: int, lam: float) -> "Budget":
        """Return the split with the least penalty, of at least `lam`, that leaves half of `epsilon` to the noise."""
        bend = _CURVATURE * w_max / n
        lam = max(lam, bend * math.exp(-epsilon / 2) / -math.expm1(-epsilon / 2))
        curvature = math.log1p(bend / lam)
        return cls(lam, curvature, epsilon - curvature)

    def noise_scale(self, w_max: float) -> float:
        """Return the scale of the norm of the noise: one row moves a sum of gradients by at most 2 w_max."""
        return 2 * w_max / self.noise


def perturbation(d: int, scale: float, source: NoiseSource) -> Floats:
    """Draw a vector of dimension `d` with density proportional to exp(-norm / scale)."""
    direction = source.normal(d)
    norm = -scale * np.log(source.uniform(d)).sum()
    noise: Floats = norm * direction / np.linalg.norm(direction)
    return noise


def minimiser(rows: Floats, sign: Floats, weight: Floats, lam: float, noise: Floats) -> Floats:
    """Return the minimiser of the perturbed objective, to a gradient norm of 1e-9.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    sign, weight : ndarray, shape (n,)
        Labels -1 or 1, and weights.
    lam : float
    noise : ndarray, shape (d,)
    """
    n, d = rows.shape
    signed = sign[:, None] * rows
    tilt = noise / n

    def value(theta: Floats) -> float:
        loss = weight @ np.logaddexp(0.0, -signed @ theta) / n
        return float(loss + lam / 2 * theta @ theta + tilt @ theta)

    def gradient(theta: Floats) -> Floats:
        slope: Floats = -(weight * expit(-signed @ theta)) @ signed / n + lam * theta + tilt
        return slope

    def hessian(theta: Floats) -> Floats:
        p = expit(signed @ theta)
        curved: Floats = (signed * (weight * p * (1 - p) / n)[:, None]).T @ signed + lam * np.eye(d)
        return curved

    theta: Floats = minimize(value, np.zeros(d), jac=gradient, hess=hessian, method="trust-exact").x
    for _ in range(_POLISHING):
        slope = gradient(theta)
        if np.linalg.norm(slope) <= _GRADIENT:
            return theta
        try:
            theta = theta - np.linalg.solve(hessian(theta), slope)
        except np.linalg.LinAlgError:
            break
    raise RuntimeError(
        f"the gradient of the objective stayed at {np.linalg.norm(gradient(theta)):.1e}, above the {_GRADIENT:g} that "
        "the proof of privacy needs, and nothing is released; a larger lam makes the problem better conditioned"
    )
