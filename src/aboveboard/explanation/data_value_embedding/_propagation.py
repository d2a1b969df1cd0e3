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
            rows, (response, moments) = step.rows[:, self._block], self._response(step.map)
            free = self._without_clipped(step, response)
            effects = step.weight * (free @ rows.T)
            yield step.number, effects.T.cpu().numpy()
            kept, decay = self.state[0], step.map.decay + self._damping
            if step.map.shrink != 1.0:
                kept = step.map.shrink * kept
            if decay:
                kept = kept - decay * response
            self.state = [self._bent(step, kept, free, effects), *moments]
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

    def _bent(self, step: RecordedStep, kept: Any, free: Any, effects: Any) -> Any:
        """Return what is kept less R C H, and note the largest curvature that the probe finds."""
        if self._curvature == "none":
            self._note(step, torch.zeros_like(self._probe))
            return kept
        if self._curvature == "fisher":
            rows = step.rows[:, self._block]
            self._note(step, step.weight * (rows @ self._probe) @ rows)
            return torch.addmm(kept, effects, rows, alpha=-1)
        losses = self._trajectory.losses
        product = losses.hessian_product if self._curvature == "exact" else losses.gauss_newton_product
        vectors = torch.cat([free, self._probe[None]]).to(losses.dtype)
        products = step.weight * product(step.theta, self._trajectory.batch(step.number), vectors).double()
        self._note(step, products[-1])
        return kept - products[:-1]

    def _note(self, step: RecordedStep, bent_probe: Any) -> None:
        """Keep learning rate times the curvature along the probe, weight decay included, and turn the probe."""
        found = bent_probe + (step.map.decay + self._damping) * self._probe
        self.sharpness[step.number] = step.lr * float(self._probe @ found)
        length = found.norm()
        if length > 0 and bool(torch.isfinite(length)):
            self._probe = found / length


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
