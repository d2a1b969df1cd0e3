"""The truth: train again without an example at a step, or at all steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError
from aboveboard.explanation.data_value_embedding._recorder import TrajectoryRecorder

if TYPE_CHECKING:
    from aboveboard.explanation.data_value_embedding._trajectory import Trajectory

__all__ = ["exact_tsloo"]

Floats = NDArray[np.float64]
Removal = tuple[int | None, int]

_TOGETHER: Final = 64


def exact_tsloo(
    recorder: TrajectoryRecorder, removals: Sequence[tuple[int | None, int]], targets: tuple[Any, Any]
) -> Floats:
    """Train again without an example at one step, and return how the losses of the targets changed.

    The training is the recorded one, order and learning rates included; the example is left out of the sum of its
    batch, and the others count as before. Trainings that leave the recorded one at different steps share what comes
    before, and run side by side, vectorised.

    Parameters
    ----------
    recorder : TrajectoryRecorder
        Finished, with weights kept, every so many steps at least.
    removals : sequence of pairs ``(step, index)``
        Step None: leave the example out of every step.
    targets : pair of tensors ``(inputs, targets)``, t rows

    Returns
    -------
    ndarray of shape (t, len(removals))
        Loss without the example minus loss with it: positive where the example helped.

    Raises
    ------
    InputError
        For a recording without weights or with dropout, a step that was not recorded, an example that was not in it.

    Notes
    -----
    Cost: up to 64 trainings at a time, from the first step that one of them leaves out; memory 64 (p + B q). In the
    model's own precision, so that with float32 a small influence drowns in rounding; the trajectory without any removal
    is run beside them, so that rounding is alike.
    """
    from aboveboard.explanation.data_value_embedding._losses import checked_batch

    trajectory = recorder._trajectory
    trajectory.final()
    if not trajectory.options.every:
        raise InputError(
            "no weights were kept, so nothing can be trained again", expected="weights='every' or a number"
        )
    if not trajectory.options.replayable:
        raise InputError("the training drew dropout masks that no retraining can repeat", expected="no dropout")
    checked = [_checked_removal(trajectory, step, index) for step, index in removals]
    rows = checked_batch(targets, trajectory.losses.device)
    order = sorted(range(len(checked)), key=lambda i: checked[i][0] or 0)
    found = np.empty((len(rows[1]), len(checked)))
    for start in range(0, len(order), _TOGETHER):
        together = order[start : start + _TOGETHER]
        found[:, together] = _changes(trajectory, [checked[i] for i in together], rows)
    return found


def _changes(trajectory: "Trajectory", removals: list[Removal], targets: Any) -> Floats:
    import torch

    first = min(step or 0 for step, _ in removals)
    state = trajectory.state_before(first)
    theta, momentum, square = (
        part.expand(len(removals) + 1, -1) for part in (state.theta, state.momentum, state.square)
    )
    state = replace(state, theta=theta, momentum=momentum, square=square)
    for number in range(first, len(trajectory)):
        batch = trajectory.batch(number)
        indices = trajectory.indices(number)
        weights = torch.ones(len(removals) + 1, len(indices), dtype=trajectory.losses.dtype)
        for row, (step, index) in enumerate(removals):
            if step in (None, number):
                weights[row, indices == index] = 0.0
        totals = trajectory.losses.weighted_gradients(state.theta, batch, weights.to(trajectory.losses.device))
        gradients = totals * trajectory.row_weight(len(indices))
        if trajectory.options.clip_norm is not None:
            gradients = gradients * trajectory.clip_factors(gradients)[:, None]
        state = trajectory.optimizer.advance(state, gradients, trajectory.lr(number))
    losses = trajectory.losses.all_losses(state.theta, targets).double().cpu().numpy()
    changes: Floats = (losses[:-1] - losses[-1]).T
    return changes


def _checked_removal(trajectory: "Trajectory", step: Any, index: Any) -> Removal:
    steps = range(len(trajectory)) if step is None else [step]
    if step is not None and not (isinstance(step, int | np.integer) and 0 <= step < len(trajectory)):
        raise InputError(f"step {step!r} was not recorded", expected=f"0 to {len(trajectory) - 1}, or None for all")
    if not any((trajectory.indices(number) == index).any() for number in steps):
        where = "any step" if step is None else f"step {step}"
        raise InputError(f"example {index!r} was not in {where}", expected="pairs (step, index) that were recorded")
    return (None if step is None else int(step)), int(index)
