"""The linear parts of a concept bottleneck: one head per concept on the features, and the label layer on the concepts.

All losses are sums over rows plus l2 / 2 times the squared parameters, biases included, which makes every Hessian
positive definite. Missing concept labels (NaN) leave the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from aboveboard.unlearning.editable_cbm._curvature import (
    EXACT_LIMIT,
    Floats,
    KroneckerLayer,
    Solver,
    conjugate_gradient,
    solve_exactly,
)

__all__ = ["Fitted", "LabelLayer", "LinearConcepts", "Loss", "minimise", "with_ones"]

Loss = Literal["log_loss", "squared_error"]

_CHUNK: Final = 4_096


def with_ones(features: Floats) -> Floats:
    """Return `features`, shape (n, d), with a column of ones appended: (n, d + 1)."""
    design = np.empty((features.shape[0], features.shape[1] + 1))
    design[:, :-1] = features
    design[:, -1] = 1.0
    return design


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, n_rows: int, tol: float, max_iter: int
) -> tuple[Floats, int, bool]:
    """Minimise a summed loss with L-BFGS.

    Parameters
    ----------
    objective : callable
        parameters -> (sum, gradient of the sum).
    start : ndarray of shape (p,)
    n_rows : int
        The sum is divided by it, so that `tol` has the same meaning for any number of rows.
    tol : float
        Largest entry of the gradient of the mean at which to stop.
    max_iter : int

    Returns
    -------
    parameters, iterations, whether `tol` was reached
    """

    def mean(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = objective(parameters)
        return value / n_rows, gradient / n_rows

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(mean, start, method="L-BFGS-B", jac=True, options=options)
    return found.x, int(found.nit), bool(np.abs(found.jac).max() <= tol)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Parameters at which a fit stopped, its steps, and whether the tolerance was reached."""

    theta: Floats
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True)
class LinearConcepts:
    """Independent heads: concept j is sigma(x' theta_j), or x' theta_j under the squared loss.

    Parameters are an array of shape (k, p): one row per concept, its last entry the bias; p features with a one
    appended. Each head is a block of the Hessian.
    """

    exact_up_to: ClassVar[int] = EXACT_LIMIT

    loss: Loss
    l2: float
    damping: float = 0.0

    def outputs(self, theta: Floats, design: Floats) -> Floats:
        """Return the concepts' probabilities (values, under the squared loss), shape (n, k)."""
        scores: Floats = design @ theta.T
        return scores if self.loss == "squared_error" else expit(scores)

    def gradient(self, theta: Floats, design: Floats, outputs: Floats, concepts: Floats) -> Floats:
        """Return the gradient of the regularised sum, shape (k, p)."""
        residual = outputs - concepts
        np.nan_to_num(residual, copy=False, nan=0.0)
        gradient: Floats = residual.T @ design + self.l2 * theta
        return gradient

    def hessian(
        self,
        theta: Floats,  # noqa: ARG002 -- the outputs say it all here; other concept predictors need it
        design: Floats,
        outputs: Floats,
        concepts: Floats,
        block: int,
    ) -> Floats:
        """Return the Hessian of one head's sum without the ridge, shape (p, p); O(n p^2) time."""
        roots = np.sqrt(self._weights(outputs[:, [block]], concepts[:, [block]]))
        hessian = np.zeros((design.shape[1], design.shape[1]))
        for start in range(0, len(design), _CHUNK):
            rows = roots[start : start + _CHUNK] * design[start : start + _CHUNK]
            hessian += rows.T @ rows
        return hessian

    def operator(self, theta: Floats, design: Floats, outputs: Floats, concepts: Floats) -> Callable[[Floats], Floats]:
        """Return the product of the Hessian with a flat vector, ridge and damping included."""
        weights = self._weights(outputs, concepts)

        def product(vector: Floats) -> Floats:
            rows = vector.reshape(theta.shape)
            image = (weights * (design @ rows.T)).T @ design + (self.l2 + self.damping) * rows
            flat: Floats = image.ravel()
            return flat

        return product

    def kronecker_step(
        self, theta: Floats, design: Floats, outputs: Floats, concepts: Floats, vector: Floats
    ) -> Floats:
        """Return H^{-1} V by EK-FAC.

        Heads are independent, so the expected outer product of the gradients at their outputs is diagonal and needs no
        rotation: what is approximated is the inputs' share alone.
        """
        _, axes = eigh(design.T @ design)
        curvature = self._weights(outputs, concepts).T @ np.square(design @ axes)
        layer = KroneckerLayer(axes, np.eye(len(theta)), curvature)
        return layer.solve(vector, self.l2 + self.damping)

    def blocks_of(self, concepts: NDArray[np.intp]) -> list[int]:
        """Return the blocks of the Hessian in which these concepts' parameters are."""
        return sorted({int(concept) for concept in concepts})

    def updated(self, theta: Floats, design: Floats, outputs: Floats, blocks: list[int]) -> Floats:
        """Return the outputs after the parameters of some blocks changed."""
        changed = outputs.copy()
        changed[:, blocks] = self.outputs(theta[blocks], design)
        return changed

    def fit(self, design: Floats, concepts: Floats, start: Floats, tol: float, max_iter: int) -> Fitted:
        """Fit each head to the rows that have its label; the squared loss in closed form."""
        theta, steps, converged = start.copy(), 0, True
        for head in range(len(start)):
            known = ~np.isnan(concepts[:, head])
            rows = design if known.all() else design[known]
            target = concepts[known, head]
            if not len(target):
                theta[head] = 0.0
            elif self.loss == "squared_error":
                ridge = self.l2 * np.eye(rows.shape[1])
                theta[head] = solve_exactly(rows.T @ rows + ridge, rows.T @ target)
            else:
                theta[head], count, reached = minimise(
                    self._head_objective(rows, target), start[head], len(design), tol, max_iter
                )
                steps, converged = max(steps, count), converged and reached
        return Fitted(theta, steps, converged)

    def _weights(self, outputs: Floats, concepts: Floats) -> Floats:
        """Return each label's curvature, shape (n, k): p (1 - p), or 1; 0 where the label is missing."""
        curvature = np.ones_like(outputs) if self.loss == "squared_error" else outputs * (1.0 - outputs)
        curvature[np.isnan(concepts)] = 0.0
        return curvature

    def _head_objective(self, design: Floats, target: Floats) -> Callable[[Floats], tuple[float, Floats]]:
        def objective(theta: Floats) -> tuple[float, Floats]:
            scores = design @ theta
            value = np.logaddexp(0.0, scores).sum() - target @ scores + 0.5 * self.l2 * theta @ theta
            return float(value), design.T @ (expit(scores) - target) + self.l2 * theta

        return objective


@dataclass(frozen=True, slots=True)
class LabelLayer:
    """The label from the concepts: softmax regression, or least squares on one-hot labels.

    Parameters are an array of shape (m, k + 1): one row per class, its last entry the bias. `inputs` are the concepts
    with a one appended, shape (n, k + 1); `labels` are class numbers, shape (n,).
    """

    loss: Loss
    l2: float
    damping: float = 0.0

    def outputs(self, theta: Floats, inputs: Floats) -> Floats:
        """Return the probabilities (values, under the squared loss) of the classes, shape (n, m)."""
        scores: Floats = inputs @ theta.T
        return scores if self.loss == "squared_error" else softmax(scores, axis=1)

    def value(self, theta: Floats, inputs: Floats, labels: NDArray[np.intp]) -> float:
        """Return the regularised sum of losses."""
        scores = inputs @ theta.T
        rows = np.arange(len(labels))
        if self.loss == "squared_error":
            scores[rows, labels] -= 1.0
            total = 0.5 * np.square(scores).sum()
        else:
            total = -log_softmax(scores, axis=1)[rows, labels].sum()
        return float(total + 0.5 * self.l2 * np.square(theta).sum())

    def gradient(self, theta: Floats, inputs: Floats, labels: NDArray[np.intp], outputs: Floats) -> Floats:
        """Return the gradient of the regularised sum, shape (m, k + 1)."""
        residual = outputs.copy()
        residual[np.arange(len(labels)), labels] -= 1.0
        gradient: Floats = residual.T @ inputs + self.l2 * theta
        return gradient

    def step(self, theta: Floats, inputs: Floats, outputs: Floats, vector: Floats, solver: Solver) -> Floats:
        """Return H^{-1} V, H the Hessian at these inputs, ridge included."""
        if solver == "exact":
            hessian = self.hessian(inputs, outputs)
            hessian[np.diag_indices_from(hessian)] += self.l2
            return solve_exactly(hessian, vector.ravel()).reshape(theta.shape)
        if solver == "ekfac":
            return self._kronecker(inputs, outputs).solve(vector, self.l2 + self.damping)
        flat = conjugate_gradient(lambda v: self._product(inputs, outputs, v.reshape(theta.shape)), vector.ravel())
        return flat.reshape(theta.shape)

    def hessian(self, inputs: Floats, outputs: Floats) -> Floats:
        """Return the Hessian of the sum without the ridge, shape (m (k + 1), m (k + 1)), classes slowest.

        O(n m^2 k^2) time; rows are taken in chunks, so that memory stays at the size of the Hessian.
        """
        n, m, width = len(inputs), outputs.shape[1], inputs.shape[1]
        if self.loss == "squared_error":
            return np.asarray(np.kron(np.eye(m), inputs.T @ inputs), dtype=np.float64)
        joint_products = np.zeros((m * width, m * width))
        for start in range(0, n, _CHUNK):
            rows, weights = inputs[start : start + _CHUNK], outputs[start : start + _CHUNK]
            joint = (weights[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
            joint_products += joint.T @ joint
        total = -joint_products
        # probabilities sum to 1, so the products with all classes add up to what the diagonal blocks need
        blocks = joint_products.reshape(m, width, m, width).sum(axis=2)
        for label in range(m):
            place = slice(label * width, (label + 1) * width)
            total[place, place] += blocks[label]
        return total

    def fit(self, inputs: Floats, labels: NDArray[np.intp], start: Floats, tol: float, max_iter: int) -> Fitted:
        """Fit with L-BFGS; the squared loss in closed form."""
        if self.loss == "squared_error":
            ridge = self.l2 * np.eye(inputs.shape[1])
            one_hot = np.eye(len(start))[labels]
            return Fitted(solve_exactly(inputs.T @ inputs + ridge, inputs.T @ one_hot).T, 0, True)
        rows = np.arange(len(labels))

        def objective(flat: Floats) -> tuple[float, Floats]:
            theta = flat.reshape(start.shape)
            log_outputs = log_softmax(inputs @ theta.T, axis=1)
            value = -log_outputs[rows, labels].sum() + 0.5 * self.l2 * flat @ flat
            return float(value), self.gradient(theta, inputs, labels, np.exp(log_outputs)).ravel()

        theta, steps, converged = minimise(objective, start.ravel(), len(inputs), tol, max_iter)
        return Fitted(theta.reshape(start.shape), steps, converged)

    def _product(self, inputs: Floats, outputs: Floats, vector: Floats) -> Floats:
        scores = inputs @ vector.T
        if self.loss == "log_loss":
            scores = outputs * (scores - (outputs * scores).sum(axis=1, keepdims=True))
        image: Floats = scores.T @ inputs + (self.l2 + self.damping) * vector
        return image.ravel()

    def _kronecker(self, inputs: Floats, outputs: Floats) -> KroneckerLayer:
        """Return the EK-FAC factors; labels are not sampled from the model, their expectation is taken.

        The gradient at the output is q - e_y with y drawn from q, so its expected outer product is diag(q) - q q'.
        """
        _, axes = eigh(inputs.T @ inputs)
        squares = np.square(inputs @ axes)
        m = outputs.shape[1]
        if self.loss == "squared_error":
            return KroneckerLayer(axes, np.eye(m), np.tile(squares.sum(axis=0), (m, 1)))
        _, turned = eigh(np.diag(outputs.sum(axis=0)) - outputs.T @ outputs)
        spread = outputs @ np.square(turned) - np.square(outputs @ turned)
        return KroneckerLayer(axes, turned, spread.T @ squares)
