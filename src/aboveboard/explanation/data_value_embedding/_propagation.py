"""Backwards through a training: how does a change at one step move what came out?

Rows P, Q and S hold the derivative of r outcomes by weights, momentum and mean square after a step. Before it they are

    M = Q - P gain,    V = S - P square_gain,    R = P direct - M kappa - V slope,
    P <- shrink P - R (C H + decay),    Q <- mu M,    S <- nu V,

H the curvature of the step's losses, and leaving out an example of gradient g and weight w changes the outcomes by
w R C g. C is 1, but for a gradient that was clipped, which keeps its length: there C takes its direction out. With the
weights themselves as outcomes (P = I) that is the data value embedding; with losses as outcomes it is their adjoint.
Importing this module needs PyTorch.
"""

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError, require
from aboveboard.explanation.data_value_embedding._optimizers import StepMap
from aboveboard.explanation.data_value_embedding._trajectory import RecordedStep, Trajectory

torch: Any = require("torch", extra="torch", feature="DataValueEmbedding")

__all__ = ["Curvature", "Propagation", "warn_of_instability"]

Curvature = Literal["fisher", "ggn", "exact", "none"]
Floats = NDArray[np.float64]


class Propagation:
    """Walks backwards in one block of the weights.

    `state` holds P, then Q and S where the optimiser has them, each of shape (r, block), and changes as `run` goes. A
    probe vector goes along, by which power iteration finds the largest curvature of the steps, from below.
    """

    def __init__(
        self, trajectory: Trajectory, curvature: Curvature, damping: float, block: slice, rng: np.random.Generator
    ) -> None:
        self._trajectory, self._curvature, self._damping, self._block = trajectory, curvature, damping, block
        probe = torch.as_tensor(rng.standard_normal(block.stop - block.start)).to(trajectory.losses.device)
        self._probe = probe / probe.norm()
        self.sharpness: dict[int, float] = {}
        self.state: list[Any] = []

    def run(self, state: list[Any], start: int, stop: int) -> Iterator[tuple[int, Floats]]:
        """Yield each step from `stop` - 1 down to `start` and what leaving out its examples does, shape (B, r)."""
        self.state = state
        for step in self._trajectory.backward(start, stop, weights=self._curvature in ("ggn", "exact")):
            response, moments = self._response(step.map)
            free = self._without_clipped(step, response)
            yield step.number, (step.weight * step.rows[:, self._block] @ free.T).cpu().numpy()
            bent = self._bent(step, free) + (step.map.decay + self._damping) * response
            self.state = [step.map.shrink * self.state[0] - bent, *moments]
            if not bool(torch.isfinite(self.state[0]).all()):
                raise InputError(
                    f"the recursion overflows at step {step.number}, where learning rate times curvature is at least "
                    f"{self.sharpness[step.number]:.3g}",
                    expected=f"less than {self._trajectory.optimizer.stable_below:.3g}",
                    remedy="First-order influence says nothing about a training that is unstable to first order",
                )

    def _response(self, step: StepMap) -> tuple[Any, list[Any]]:
        """Return R, and Q and S as they are before the step."""
        p, *moments = self.state
        if not moments:
            return (step.direct + step.gain) * p, []
        if step.slope is None:
            momentum = moments[0] - step.gain * p
            return step.direct * p - step.kappa * momentum, [step.mu * momentum]
        gain, square_gain, slope = (part[self._block] for part in (step.gain, step.square_gain, step.slope))
        momentum, square = moments[0] - p * gain, moments[1] - p * square_gain
        return -step.kappa * momentum - square * slope, [step.mu * momentum, step.nu * square]

    def _without_clipped(self, step: RecordedStep, response: Any) -> Any:
        if step.direction is None:
            return response
        direction = step.direction[self._block]
        return response - (response @ direction)[:, None] * direction

    def _bent(self, step: RecordedStep, response: Any) -> Any:
        """Return R H, and note the largest curvature that the probe finds, weight decay included."""
        products = self._products(step, torch.cat([response, self._probe[None]]))
        found = products[-1] + (step.map.decay + self._damping) * self._probe
        self.sharpness[step.number] = step.lr * float(self._probe @ found)
        length = found.norm()
        if length > 0 and bool(torch.isfinite(length)):
            self._probe = found / length
        return products[:-1]

    def _products(self, step: RecordedStep, vectors: Any) -> Any:
        if self._curvature == "none":
            return torch.zeros_like(vectors)
        if self._curvature == "fisher":
            rows = step.rows[:, self._block]
            return step.weight * (vectors @ rows.T) @ rows
        losses = self._trajectory.losses
        product = losses.hessian_product if self._curvature == "exact" else losses.gauss_newton_product
        return step.weight * product(step.theta, step.batch, vectors.to(losses.dtype)).double()


def warn_of_instability(sharpness: dict[int, float], stable_below: float) -> None:
    """Say where learning rate times curvature is so large that the recursion grows instead of shrinking."""
    above = [number for number, value in sharpness.items() if value >= stable_below]
    if above:
        worst = max(above, key=sharpness.__getitem__)
        warnings.warn(
            f"learning rate times curvature reaches {sharpness[worst]:.3g} at step {worst}, and {stable_below:.3g} or "
            f"more at {len(above)} of {len(sharpness)} steps: there the first-order recursion amplifies errors. "
            "compare_with_retrain tells how far to trust it",
            UserWarning,
            stacklevel=3,
        )
