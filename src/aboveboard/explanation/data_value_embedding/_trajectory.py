"""A recorded training, to be walked through: steps, gradients, and weights, replayed where they were not kept.

Importing this module needs PyTorch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError, require
from aboveboard.explanation.data_value_embedding._layers import ProjectedLayers
from aboveboard.explanation.data_value_embedding._losses import Batch, Losses
from aboveboard.explanation.data_value_embedding._optimizers import Optimizer, State, StepMap
from aboveboard.explanation.data_value_embedding._store import Store

torch: Any = require("torch", extra="torch", feature="DataValueEmbedding")

__all__ = ["Options", "Precision", "RecordedStep", "Trajectory"]

Floats = NDArray[np.float64]
Precision = Literal["float16", "float32"]

_CLIP_EPS: Final = 1e-6  # as in torch.nn.utils.clip_grad_norm_


@dataclass(frozen=True)
class Options:
    """How a training is recorded.

    `every` counts the steps from one kept state of weights to the next; 0 for none. `replayable` is False where the
    training drew random numbers that a replay would not draw again.
    """

    mean: bool
    clip_norm: float | None
    gradients: bool
    every: int
    precision: Precision | None
    replayable: bool = True


@dataclass(frozen=True)
class RecordedStep:
    """One step: its gradients `rows` (B, q) in float64, and where they are needed its weights (p,).

    `direction` (q,) is that of the batch's gradient, of length 1, where it was clipped.
    """

    number: int
    map: StepMap
    weight: float
    lr: float
    rows: Any
    direction: Any = None
    theta: Any = None


class Trajectory:
    """What was recorded, in the order of training."""

    def __init__(
        self, losses: Losses, projected: ProjectedLayers | None, optimizer: Optimizer, options: Options, store: Store
    ) -> None:
        self.losses, self.projected = losses, projected
        self.optimizer, self.options, self.store = optimizer, options, store

    # --- written while the model trains ---

    def pieces(
        self, state: State, batch: Batch, indices: NDArray[np.intp], lr: float, rows: Any, total: Any
    ) -> dict[str, NDArray[Any]]:
        """Return what is kept of one step, by name."""
        numbers = [lr, self.clip_of(total, len(indices)), state.count + 1]
        found = {"numbers": np.array(numbers), "indices": indices.astype(np.int64)}
        if rows is not None:
            found |= _coded(_array(rows), self.options.precision)
        if self.optimizer.kind != "sgd":
            vectors = self.optimizer.vectors(state, self._scaled(total, numbers[1], len(indices)), lr)
            found["vectors"] = _array(self.losses.tracked(torch.stack(vectors)))
        if self.options.every:
            inputs, targets = batch
            found |= {f"input{i}": _array(part) for i, part in enumerate(inputs)} | {"target": _array(targets)}
            if len(self) % self.options.every == 0:
                kept = (state.theta, state.momentum, state.square)[: 1 + self.optimizer.moments]
                found["state"] = _array(torch.stack(kept))
        return found

    def keep(self, pieces: dict[str, NDArray[Any]]) -> None:
        """Write one step; its numbers last, so that a step counts once it is whole."""
        for name in sorted(pieces, key="numbers".__eq__):
            self.store.append(name, pieces[name])

    def per_example(self, theta: Any, batch: Batch) -> Any:
        """Return the gradients of the examples, projected where the recording is, shape (B, q)."""
        return (self.projected or self.losses).gradients(theta, batch)

    def clip_of(self, total: Any, n_rows: int) -> float:
        """Return the factor by which the gradient of a step is clipped, from the gradient of the sum of losses."""
        if self.options.clip_norm is None:
            return 1.0
        return float(self.clip_factors(self._scaled(total, 1.0, n_rows)))

    def clip_factors(self, gradients: Any) -> Any:
        """Return by which factors gradients of shape (..., p) are clipped."""
        return (self.options.clip_norm / (gradients.norm(dim=-1) + _CLIP_EPS)).clamp(max=1.0)

    def planned(self, state: State, total: Any, n_rows: int, lr: float) -> Any:
        """Return the weights to which the step as recorded leads."""
        return self.optimizer.advance(state, self._scaled(total, self.clip_of(total, n_rows), n_rows), lr).theta

    # --- read afterwards ---

    def __len__(self) -> int:
        return self.store.count("numbers")

    @property
    def size(self) -> int:
        """Length of a row of gradients."""
        return self.losses.tracked_size if self.projected is None else self.projected.size

    @property
    def blocks(self) -> list[slice]:
        """The parts of a row that are taken to be without curvature between them."""
        return [slice(0, self.size)] if self.projected is None else self.projected.blocks

    def indices(self, number: int) -> NDArray[np.intp]:
        """Return which examples were in the batch of a step."""
        return self.store.read("indices", number).astype(np.intp)

    def final(self) -> Any:
        """Return the weights after the last step, shape (p,)."""
        if not self.store.count("final"):
            raise InputError("the recording is not finished", remedy="Call recorder.finish() after the last step")
        return self._tensor(self.store.read("final", 0))

    def backward(self, start: int, stop: int, *, weights: bool) -> Iterator[RecordedStep]:
        """Yield the steps from `stop` - 1 down to `start`, with weights where they are asked or needed."""
        if not weights and self.options.gradients:
            for number in reversed(range(start, stop)):
                yield self._step(number, self._rows(number))
            return
        for number, state in self._states_backward(start, stop):
            kept = self.options.gradients
            rows = self._rows(number) if kept else self.per_example(state.theta, self.batch(number)).double()
            yield self._step(number, rows, state.theta)

    def state_before(self, number: int) -> State:
        """Return the state from which a step started, replayed from the last one that was kept."""
        first = number // self.options.every * self.options.every
        state = self._kept(first)
        for step in range(first, number):
            state = self._replayed(state, step)
        return state

    def batch(self, number: int) -> Batch:
        """Return the batch of a step."""
        inputs: list[Any] = []
        while self.store.count(f"input{len(inputs)}"):
            inputs.append(self._tensor(self.store.read(f"input{len(inputs)}", number)))
        return tuple(inputs), self._tensor(self.store.read("target", number))

    def lr(self, number: int) -> float:
        """Return the learning rate of a step."""
        return float(self.store.read("numbers", number)[0])

    def row_weight(self, n_rows: int) -> float:
        """Return what one example's loss counts in a step that is not clipped."""
        return 1 / n_rows if self.options.mean else 1.0

    def _step(self, number: int, rows: Any, theta: Any = None) -> RecordedStep:
        lr, clip, _ = self.store.read("numbers", number).tolist()
        adam = self.optimizer.kind != "sgd"
        vectors = tuple(self._tensor(self.store.read("vectors", number)).double()) if adam else None
        step_map = self.optimizer.step_map(lr, vectors)
        weight = clip * self.row_weight(len(rows))
        direction = weight * rows.sum(dim=0) / self.options.clip_norm if clip < 1 else None
        return RecordedStep(number, step_map, weight, lr, rows, direction, theta)

    def _rows(self, number: int) -> Any:
        rows = self.store.read("gradients", number).astype(np.float64)
        if self.options.precision == "float16":
            rows *= self.store.read("row_scales", number)[:, None]
        return self._tensor(rows)

    def _states_backward(self, start: int, stop: int) -> Iterator[tuple[int, State]]:
        every = self.options.every
        for first in reversed(range(start // every * every, stop, every)):
            states = [self._kept(first)]
            for number in range(first, min(first + every, stop) - 1):
                states.append(self._replayed(states[-1], number))
            for number in reversed(range(max(first, start), first + len(states))):
                yield number, states[number - first]

    def _kept(self, number: int) -> State:
        theta, *moments = self._tensor(self.store.read("state", number // self.options.every))
        momentum, square = (moments + [torch.zeros_like(theta)] * 2)[:2]
        return State(theta, momentum, square, int(self.store.read("numbers", number)[2]) - 1)

    def _replayed(self, state: State, number: int) -> State:
        lr, clip, _ = self.store.read("numbers", number).tolist()
        batch = self.batch(number)
        total = self.losses.total_gradient(state.theta, batch)
        return self.optimizer.advance(state, self._scaled(total, clip, len(batch[1])), lr)

    def _scaled(self, total: Any, clip: float, n_rows: int) -> Any:
        return total * (clip * self.row_weight(n_rows))

    def _tensor(self, array: NDArray[Any]) -> Any:
        return torch.as_tensor(array).to(self.losses.device)


def _array(tensor: Any) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _coded(rows: NDArray[Any], precision: Precision | None) -> dict[str, NDArray[Any]]:
    """Return gradients in less precision; in half precision with one factor per row, since most are tiny."""
    if precision != "float16":
        return {"gradients": rows if precision is None else rows.astype(precision)}
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32)
    return {"gradients": (rows / scales[:, None]).astype(np.float16), "row_scales": scales}
