"""Logistic regression that is trained to a promised epsilon, and publishes nothing but its last iterate."""

import hashlib
import math
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy._noise import NoiseSource, noise_source
from aboveboard.privacy._rdp import privacy_certificate
from aboveboard.privacy._rdp.checked import checked_delta, checked_positive, checked_whole
from aboveboard.privacy.hidden_state_noisy_sgd._accountant import (
    PAPER,
    HiddenStateAccountant,
    LastIterateBound,
    Sampling,
)
from aboveboard.privacy.hidden_state_noisy_sgd._losses import ConvexSmoothLoss, LossClass, StronglyConvexLoss

__all__ = ["NoisySGDClassifier"]

Floats = NDArray[np.float64]

_TIME_CONSTANTS: Final = 4.0  # after which exp(-4) of the way to the optimum is left along the flattest direction
_STEPS_WITHOUT_RIDGE: Final = 300
_ROUNDING: Final = 1e-9
_NOT_COVERED: Final = (
    "What was learned from the same data before: scaling to observed means or ranges, encoding, imputation, selection "
    "of features. Give public ranges as `bounds` instead.",
    "Settings that were chosen by trying several on the same data, and every other model that was trained on them.",
    "The number of rows and the names of the classes, which are taken as public.",
    "A person who is in several rows: the promise is for one row.",
)


class NoisySGDClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private logistic regression, binary or multinomial, by noisy gradient descent.

    The noise is chosen so that the last iterate, the only one that is published, keeps (epsilon, delta) by
    `HiddenStateAccountant`: that is less noise than if all steps were charged, and training longer costs nothing. The
    coefficients, and all that is computed from them, may be published; `certificate_` says what that rests on.

    Rows that are longer than `data_norm` are scaled down to it, one by one, in training and in prediction. Scaling to
    observed means or ranges beforehand would leak: give public ranges as `bounds`.

    Parameters
    ----------
    epsilon : float > 0, default 1.0
        To be kept.
    delta : float in (0, 1), default 1e-5
        Well below one over the number of rows.
    ridge : float >= 0, default 0.01
        The objective is the mean loss plus ``ridge / 2`` times the squared norm of all coefficients. With 0, `radius`
        must be given.
    radius : float > 0, optional
        All coefficients together are projected onto the ball of this radius after every step.
    bounds : pair of array-like, each of shape (n_features,), optional
        Public lower and upper limits of the features, not taken from the data: features are cut off there and mapped to
        [-1, 1].
    data_norm : float > 0, default 1.0
        Longest row, after `bounds`, that is not scaled down.
    fit_intercept : bool, default True
        Adds a feature that is 1; its coefficient is shrunk like the others.
    n_steps : int, optional
        Number of steps; default ``4 / (lr * ridge)``, or 300 without ridge.
    lr : float > 0, optional
        Step size; default one over the smoothness of the loss.
    sampling : {"full", "cyclic", "shuffled", "without_replacement"}, default "full"
        What each step uses: see `HiddenStateAccountant`.
    batch_size : int, optional
        For all but full batches; cyclic and shuffled orders need one that divides the number of rows.
    random_state : int, numpy.random.Generator, RandomState or None
        None draws the noise from the operating system's cryptographic generator, for releases. A seed can be repeated,
        and is a secret on which the promise then rests.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the features after `bounds` and `data_norm`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    epsilon_ : float
        What is proved; at most `epsilon`.
    noise_std_ : float
        Standard deviation of the noise in each coordinate of the mean gradient.
    lr_ : float
    n_iter_ : int
    certificate_ : Certificate
    n_features_in_ : int

    Raises
    ------
    InputError
        When a parameter makes no sense, or no step size, batch size or radius fits the others.

    Guarantee
    ---------
    For any two data sets of the same size that differ in one row, the distributions of ``coef_`` and ``intercept_`` are
    (epsilon, delta)-indistinguishable. Neighbours, loss constants, order, start and projection hold by construction;
    assumed is that nothing but them is published, and that the settings do not depend on the data.

    Notes
    -----
    With rows of norm B at most (the intercept counted in), the logistic loss has gradients of norm B and is B^2 / 4
    smooth; the multinomial one sqrt(2) B and B^2 / 2. Of one direction with curvature h, the noise in the coefficients
    has a variance of about ``4 K^2 / (n^2 ridge h R)`` with gradient bound K and ``R`` twice the rho of the curve: more
    ridge, less noise.

    Cost: O(steps x batch x n_features x n_classes).

    References
    ----------
    E. Chien, P. Li, "Convergent Privacy Loss of Noisy-SGD without Convexity and Smoothness", ICLR 2025.
    https://arxiv.org/abs/2410.01068

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.privacy import NoisySGDClassifier
    >>> adult = load_adult(split="train")
    >>> X, y = adult.X[["age", "education_num", "hours_per_week"]], adult.y_binary
    >>> public = [17, 1, 1], [90, 16, 99]
    >>> model = NoisySGDClassifier(epsilon=1.0, bounds=public, data_norm=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.75
    True
    >>> model.certificate_.holds
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        ridge: float = 0.01,
        radius: float | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        n_steps: int | None = None,
        lr: float | None = None,
        sampling: Sampling = "full",
        batch_size: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ridge = ridge
        self.radius = radius
        self.bounds = bounds
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.n_steps = n_steps
        self.lr = lr
        self.sampling = sampling
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "NoisySGDClassifier":
        """Choose the noise, and train.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Numbers, without missing ones.
        y : array-like of shape (n,)
            Two classes or more.
        """
        self._check_options()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class, {self.classes_[0]!r}", expected="a classifier needs two classes or more"
            )
        n = len(X)
        if self.delta >= 1 / n:
            warnings.warn(
                f"delta {self.delta:g} is not below 1 / {n}: it would allow publishing a row outright",
                UserWarning,
                stacklevel=2,
            )
        rows = self._rows(X, tell=True)
        accountant = self.accountant(n, len(self.classes_))
        self.lr_, self.n_iter_ = accountant.lr, self._number_of_steps(accountant.lr)
        self.noise_std_ = accountant.calibrate(self.n_iter_, self.epsilon, self.delta)
        source = noise_source(_seed(self.random_state))
        weights = self._descend(rows, _targets(codes, len(self.classes_)), source)
        self.coef_ = weights[: X.shape[1]].T.copy()
        self.intercept_ = weights[-1].copy() if self.fit_intercept else np.zeros(weights.shape[1])
        bound = accountant.last_iterate(self.n_iter_, self.noise_std_)
        self.epsilon_ = bound.epsilon(self.delta)
        self._certificate = self._certified(bound, source).to_dict()
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return scores: of the second class, of shape (n,), or of each of three or more, of shape (n, n_classes)."""
        check_is_fitted(self, "coef_")
        rows = self._rows(validate_data(self, X, dtype=np.float64, reset=False), tell=False)
        scores: Floats = rows[:, : self.n_features_in_] @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, of shape (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @property
    def certificate_(self) -> Certificate:
        """What the coefficients tell about one row, and what that rests on."""
        check_is_fitted(self, "coef_")
        return Certificate.from_dict(self._certificate)

    def accountant(self, n: int, n_classes: int = 2) -> HiddenStateAccountant:
        """Return the accountant of a training on so many rows: to plan before any data are seen.

        Parameters
        ----------
        n : int
            Number of rows.
        n_classes : int, default 2

        Examples
        --------
        >>> from aboveboard.privacy import NoisySGDClassifier
        >>> accountant = NoisySGDClassifier().accountant(10_000)
        >>> round(accountant.calibrate(steps=200, epsilon=0.5, delta=1e-6), 4)
        0.0242
        """
        self._check_options()
        square = self.data_norm**2 + bool(self.fit_intercept)
        binary = n_classes == 2
        smoothness = square / (4 if binary else 2) + self.ridge
        loss: LossClass
        loss = StronglyConvexLoss(smoothness, self.ridge) if self.ridge else ConvexSmoothLoss(smoothness)
        return HiddenStateAccountant(
            loss=loss,
            lr=1 / smoothness if self.lr is None else self.lr,
            grad_bound=math.sqrt(square if binary else 2 * square),
            n=n,
            batch_size=self.batch_size,
            sampling=self.sampling,
            diameter=math.inf if self.radius is None else 2 * self.radius,
        )

    # --- training -----------------------------------------------------------------------------------------------------

    def _descend(self, rows: Floats, targets: Floats, source: NoiseSource) -> Floats:
        weights = np.zeros((rows.shape[1], targets.shape[1]))
        for batch in self._batches(len(rows), source):
            part = rows[batch]
            gradient = part.T @ _residuals(part @ weights, targets[batch]) / len(part) + self.ridge * weights
            weights = self._projected(weights - self.lr_ * (gradient + source.normal(weights.shape, self.noise_std_)))
        return weights

    def _batches(self, n: int, source: NoiseSource) -> Iterator[Any]:
        """Yield the rows of each step."""
        if self.sampling == "full":
            yield from (slice(None) for _ in range(self.n_iter_))
            return
        size, generator = int(self.batch_size or n), source.generator()
        if self.sampling == "without_replacement":
            yield from (generator.choice(n, size, replace=False, shuffle=False) for _ in range(self.n_iter_))
            return
        order = generator.permutation(n) if self.sampling == "shuffled" else np.arange(n)
        epoch = order.reshape(-1, size)
        yield from (epoch[step % len(epoch)] for step in range(self.n_iter_))

    def _projected(self, weights: Floats) -> Floats:
        if self.radius is None:
            return weights
        norm = float(np.linalg.norm(weights))
        return weights if norm <= self.radius else weights * (self.radius / norm)

    def _rows(self, X: Floats, *, tell: bool) -> Floats:
        """Return rows within the bounds and of norm `data_norm` at most, with the feature of the intercept."""
        if self.bounds is not None:
            low, high = (np.asarray(ends, dtype=np.float64) for ends in self.bounds)
            if low.shape != (X.shape[1],) or high.shape != low.shape or not (low < high).all():
                raise InputError(
                    f"bounds of shapes {low.shape} and {high.shape} for {X.shape[1]} features",
                    expected="a lower and a higher limit for each feature",
                )
            X = 2 * (np.clip(X, low, high) - low) / (high - low) - 1
        longest = np.abs(X).max(axis=1, initial=0.0)[:, None]
        norms = longest * np.linalg.norm(X / np.where(longest == 0, 1.0, longest), axis=1, keepdims=True)
        over = norms > self.data_norm
        if tell and (norms > self.data_norm * (1 + _ROUNDING)).any():
            warnings.warn(
                f"rows longer than data_norm = {self.data_norm:g} are scaled down to it", UserWarning, stacklevel=3
            )
        X = np.where(over, X * (self.data_norm / np.where(over, norms, 1.0)), X)
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    # --- options ------------------------------------------------------------------------------------------------------

    def _number_of_steps(self, lr: float) -> int:
        if self.n_steps is not None:
            return checked_whole(self.n_steps, "n_steps")
        return math.ceil(_TIME_CONSTANTS / (lr * self.ridge)) if self.ridge else _STEPS_WITHOUT_RIDGE

    def _check_options(self) -> None:
        checked_positive(self.epsilon, "epsilon")
        checked_positive(checked_delta(self.delta), "delta")
        checked_positive(self.data_norm, "data_norm")
        if self.radius is not None:
            checked_positive(self.radius, "radius")
        if self.ridge != 0:
            checked_positive(self.ridge, "ridge")
        elif self.radius is None:
            raise InputError(
                "neither ridge nor radius are given",
                expected="one of them: without, the noise of later steps hides nothing",
                remedy="Set ridge to a number above 0, or radius",
            )

    # --- certificate --------------------------------------------------------------------------------------------------

    def _certified(self, bound: LastIterateBound, source: NoiseSource) -> Certificate:
        run = bound.accountant
        built = (
            f"Rows are at most {self.data_norm:g} long: longer ones are scaled down, one by one.",
            f"Every row's gradient has norm {run.grad_bound:g} at most, and its loss with the penalty "
            f"{run.loss.assumption}: this follows from the length of rows for logistic losses.",
            "The step size is within the range in which steps take no two points apart.",
            "Training starts at zero, runs for a number of steps that was set beforehand"
            + (", and projects every iterate." if self.radius else "."),
            f"The order of rows follows the sampling that was accounted for: {self.sampling}.",
        )
        digest = hashlib.sha256(self.coef_.tobytes() + self.intercept_.tobytes()).hexdigest()
        return privacy_certificate(
            release="the coefficients",
            epsilon=self.epsilon_,
            delta=self.delta,
            adjacency="replace_one",
            mechanism=f"{bound.curve.mechanism}; {self.n_iter_:,} steps, Gaussian noise of standard deviation "
            f"{self.noise_std_:g} on the mean gradient",
            noise=source,
            parameters=bound.parameters(self.delta),
            assumptions=(
                *(Assumption(text, "checked", "by construction", passed=True) for text in built),
                Assumption("Nothing that was computed in training is published besides the coefficients."),
                Assumption("No setting was chosen by looking at the data."),
            ),
            does_not_cover=_NOT_COVERED,
            subject={"model": digest},
            reference=PAPER,
        )


def _residuals(scores: Floats, targets: Floats) -> Floats:
    """Return the derivative of the loss by the scores."""
    return np.asarray((expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)) - targets)


def _targets(codes: NDArray[np.intp], n_classes: int) -> Floats:
    if n_classes == 2:
        return codes[:, None].astype(np.float64)
    return np.asarray(np.eye(n_classes)[codes])


def _seed(random_state: int | np.random.Generator | np.random.RandomState | None) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
