"""A network for a rare class, trained by noisy gradients that were clipped before they were weighted."""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from aboveboard.core import Assumption, InputError
from aboveboard.core.extras import require
from aboveboard.privacy._noise import NoiseSource, noise_source
from aboveboard.privacy._rdp import (
    RDPCurve,
    laplace_rdp,
    poisson_gaussian_rdp,
    privacy_certificate,
    smallest_noise,
)
from aboveboard.privacy._rdp.checked import checked_fraction, checked_positive, checked_whole
from aboveboard.privacy.imbalanced._reference import PAPER
from aboveboard.privacy.imbalanced._rows import binary_labels
from aboveboard.privacy.imbalanced._weights import ClassWeight, ClassWeights, checked_class_weight, class_weights

__all__ = ["PrivateWeightedSGDClassifier"]

_ORDERS: Final = (*map(float, range(2, 65)), 80.0, 96.0, 128.0, 192.0, 256.0, 512.0)
"""Whole orders, for which the curve of a Poisson sample is a short sum."""

Floats = NDArray[np.float64]
Module = Literal["logistic", "mlp"] | Callable[[int], Any]


class PrivateWeightedSGDClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A PyTorch network for a rare class, trained with differential privacy (DP-SGD with class weights).

    The gradient of each row is clipped and then weighted, so that a heavy class cannot move a step further than the
    clipping allows, and the usual accounting holds as it is. Rows should be scaled to about unit size by bounds that do
    not come from them.

    Parameters
    ----------
    epsilon : float, default 1.0
    delta : float in (0, 1), default 1e-6
        Well below one over the number of rows.
    module : {"logistic", "mlp"} or callable, default "mlp"
        A linear layer; one hidden layer of 32; or a function from the number of features to a `torch.nn.Module` with
        one output, the log odds, and no batch normalisation.
    class_weight : "private", dict or None, default "private"
        As for `PrivateWeightedLogisticRegression`; only their ratio matters here.
    weight_cap, balance : float
        As there.
    clip_norm : float, default 1.0
        Largest Euclidean norm of the gradient of a row.
    sampling_rate : float in (0, 1], default 0.05
        With which probability each row takes part in a step.
    epochs : int, default 20
        Steps are epochs over sampling rate.
    learning_rate : float, default 0.01
        Of Adam.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    module_ : torch.nn.Module
    noise_multiplier_ : float
        Standard deviation of the noise over `clip_norm`, the least that keeps the promise.
    classes_ : ndarray, shape (2,)
    class_weight_ : dict
    certificate_ : Certificate
    n_features_in_ : int

    Raises
    ------
    InputError
        For labels of one class or of more than two, batch normalisation, options out of range.
    MissingExtra
        When PyTorch is not installed.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy of the module and the class weights when one row is added or removed. For one
    row replaced by another, it is (2 epsilon, (1 + exp(epsilon)) delta).

    Notes
    -----
    With a heavy class, Adam follows sum(w clip(g)) / w_max plus Gaussian noise; the number of rows is never used. The
    noise comes from the Renyi curve of the sampled Gaussian mechanism, composed with the Laplace noise of the class
    counts. Time: steps x sampling_rate x n gradients of single rows, by `torch.func`.

    References
    ----------
    L. Rosenblatt, Y. Lut, E. Turok, M. Avella-Medina, R. Cummings, "Differential Privacy Under Class Imbalance: Methods
    and Empirical Insights", ICML 2025, Algorithm 4.
    M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        module: Module = "mlp",
        class_weight: ClassWeight = "private",
        weight_cap: float = 20.0,
        balance: float = 1.0,
        clip_norm: float = 1.0,
        sampling_rate: float = 0.05,
        epochs: int = 20,
        learning_rate: float = 0.01,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.module = module
        self.class_weight = class_weight
        self.weight_cap = weight_cap
        self.balance = balance
        self.clip_norm = clip_norm
        self.sampling_rate = sampling_rate
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> "PrivateWeightedSGDClassifier":
        """Learn the class weights and the network, and spend the budget.

        Parameters
        ----------
        X : array or data frame of float, shape (n, n_features)
        y : array-like, shape (n,)
            Two classes; the second in sorted order is the positive one.

        Returns
        -------
        self
        """
        torch = require("torch", extra="torch", feature="PrivateWeightedSGDClassifier")
        self._check_options()
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        X, y = validate_data(self, X, y, dtype=np.float64)
        label, self.classes_ = binary_labels(y)
        source = noise_source(self.random_state)
        weights = class_weights(
            self.class_weight,
            label,
            self.classes_,
            epsilon=float(self.epsilon),
            weight_cap=self.weight_cap,
            balance=self.balance,
            adjacency="add_remove",
            source=source,
        )
        steps = max(round(self.epochs / self.sampling_rate), 1)
        curve = self._calibrated(weights, steps)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(source.generator().integers(2**63)))
            self.module_ = _built(torch, self.module, X.shape[1])
        share = weights.values[label.astype(int)] / weights.largest
        self._train(torch, X, label, share, steps, source)
        self.class_weight_ = dict(zip(self.classes_.tolist(), weights.values.tolist(), strict=True))
        self.certificate_ = privacy_certificate(
            release="the network and the class weights",
            epsilon=curve.epsilon(float(self.delta)),
            delta=float(self.delta),
            adjacency="add_remove",
            mechanism=curve.mechanism,
            noise=source,
            parameters={
                "noise_multiplier": self.noise_multiplier_,
                "sampling_rate": float(self.sampling_rate),
                "steps": steps,
                "clip_norm": float(self.clip_norm),
                "epsilon_class_weights": weights.epsilon,
            },
            assumptions=(
                Assumption("The options and the two labels are public: none was chosen by looking at these rows."),
                Assumption("The log odds of a row depend on that row and the parameters of the network only."),
                Assumption("Each person has one row."),
            ),
            does_not_cover=(
                "How accurate the model is, for the rare class or for the other.",
                "Preprocessing that was learned from the same rows: scaling, selection of columns, resampling.",
            ),
            reference=PAPER,
        )
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second class, among rows weighted as in `fit`, shape (n,)."""
        check_is_fitted(self)
        torch = require("torch", extra="torch", feature="PrivateWeightedSGDClassifier")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        exact = {name: value.double() for name, value in self.module_.state_dict().items()}
        with torch.no_grad():
            log_odds: Floats = torch.func.functional_call(self.module_, exact, torch.tensor(X))[:, 0].numpy()
        return log_odds

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class among weighted rows, shape (n, 2)."""
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class whose probability is above 1/2, shape (n,)."""
        second = self.decision_function(X) > 0
        label: NDArray[Any] = self.classes_[second.astype(int)]
        return label

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = self.random_state is None
        return tags

    def _check_options(self) -> None:
        if self.class_weight == "balanced_public":
            raise InputError(
                "class_weight is 'balanced_public'",
                expected="'private', a dict or None: class counts cannot be public when one row is added or removed",
            )
        checked_class_weight(self.class_weight, self.weight_cap, self.balance)
        for name in ("epsilon", "clip_norm", "learning_rate"):
            checked_positive(getattr(self, name), name)
        if not 0 < checked_fraction(self.delta, "delta") < 1:
            raise InputError(f"delta is {self.delta!r}", expected="a number above 0 and well below 1 / n, such as 1e-6")
        if not checked_fraction(self.sampling_rate, "sampling_rate"):
            raise InputError("sampling_rate is 0", expected="a number in (0, 1]")
        checked_whole(self.epochs, "epochs")

    def _calibrated(self, weights: ClassWeights, steps: int) -> RDPCurve:
        """Find the least noise multiplier, and return the curve of everything that is released."""

        def curve(multiplier: float) -> RDPCurve:
            training = poisson_gaussian_rdp(multiplier, self.sampling_rate, orders=_ORDERS).repeated(steps)
            if not weights.epsilon:
                return training
            return training + laplace_rdp(1 / weights.epsilon, adjacency="add_remove", orders=_ORDERS)

        self.noise_multiplier_ = smallest_noise(
            lambda multiplier: curve(multiplier).epsilon(self.delta), self.epsilon, relative=1e-3
        )
        return curve(self.noise_multiplier_)

    def _train(self, torch: Any, X: Floats, label: Floats, share: Floats, steps: int, source: NoiseSource) -> None:
        """Take steps of Adam along noisy sums of clipped, then weighted gradients; `share` is at most 1."""
        parameters = dict(self.module_.named_parameters())
        optimizer = torch.optim.Adam(parameters.values(), lr=self.learning_rate)
        rows, labels, shares = (torch.tensor(values, dtype=torch.float32) for values in (X, label, share))
        std = self.noise_multiplier_ * self.clip_norm
        for _ in range(steps):
            batch = torch.as_tensor(np.flatnonzero(source.uniform(len(X)) < self.sampling_rate))
            sums = weighted_gradient_sums(
                torch, self.module_, rows[batch], labels[batch], shares[batch], self.clip_norm
            )
            for name, parameter in parameters.items():
                noise = source.normal(tuple(parameter.shape), std)
                parameter.grad = sums[name] + torch.as_tensor(noise, dtype=torch.float32)
            optimizer.step()


def weighted_gradient_sums(torch: Any, module: Any, rows: Any, labels: Any, shares: Any, clip_norm: float) -> Any:
    """Return, by parameter, the sum of the rows' gradients, each clipped to `clip_norm` and then weighted.

    Parameters
    ----------
    module : torch.nn.Module
    rows, labels, shares : tensors of shape (n, n_features), (n,) and (n,)
        `shares` are weights of at most 1.
    clip_norm : float
    """
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    if not len(rows):
        return {name: torch.zeros_like(value) for name, value in parameters.items()}

    def loss(values: Any, row: Any, label: Any) -> Any:
        log_odds = torch.func.functional_call(module, values, (row[None],))[0, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(log_odds, label)

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, rows, labels)
    squares = sum(gradient.flatten(1).square().sum(dim=1) for gradient in gradients.values())
    factor = shares * (clip_norm / squares.sqrt().clamp(min=clip_norm))
    return {name: torch.tensordot(factor, gradient, dims=1) for name, gradient in gradients.items()}


def _built(torch: Any, module: Module, n_features: int) -> Any:
    """Return the network, or say why it cannot be trained row by row."""
    if module == "logistic":
        return torch.nn.Linear(n_features, 1)
    if module == "mlp":
        return torch.nn.Sequential(torch.nn.Linear(n_features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    if not callable(module):
        raise InputError(f"module is {module!r}", expected="'logistic', 'mlp' or a function of the number of features")
    built = module(n_features)
    if not isinstance(built, torch.nn.Module):
        raise InputError(f"module gave a {type(built).__name__}", expected="a torch.nn.Module")
    if any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in built.modules()):
        raise InputError(
            "the network normalises batches, so that one row reaches the gradients of others",
            expected="a network that treats each row by itself",
            remedy="Use LayerNorm or GroupNorm",
        )
    return built
