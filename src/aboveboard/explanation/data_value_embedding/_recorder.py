"""The recorder: watches a training loop, checks that its steps are what they are taken for, keeps what is needed."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError, require
from aboveboard.explanation.data_value_embedding._optimizers import Optimizer
from aboveboard.explanation.data_value_embedding._store import DiskStore, MemoryStore, Store

__all__ = ["TrajectoryRecorder"]

_FORMAT: Final = 1
_GIB: Final = 2**30
_WATCHED: Final = 3
_OFF: Final = 1e-3
_ROUNDINGS: Final = 8


class TrajectoryRecorder:
    """Record a training as it runs: which examples each step saw, their gradients, and, if asked, the weights.

    Call `step` once per batch, before ``optimizer.step()``, and `finish` after the last one; as a context manager it
    finishes by itself.

    Parameters
    ----------
    model : torch.nn.Module
        All float32 or all float64. Rows of a batch must not depend on each other (no batch normalisation in training
        mode).
    loss_fn : callable ``(outputs, targets) -> loss``
        As in the training loop, such as ``torch.nn.functional.cross_entropy``. It is called with one example at a time,
        so that its own mean or sum does not matter.
    optimizer : torch.optim.SGD, Adam or AdamW, optional
        Read at each step: learning rate, momentum, weight decay. Without one, every `step` needs ``lr`` and is a plain
        gradient step.
    reduction : {"mean", "sum"}, default "mean"
        How the loop makes one loss of a batch. If the steps that follow are not those of this reduction and this
        optimiser, the second call of `step` says so.
    layers : sequence of str, optional
        Names of submodules; only their weights are followed, as if the others were not changed by the removal.
    projection : pair of int > 0, optional
        ``(k_in, k_out)``: follow linear layers alone, with inputs and output gradients projected to these sizes by
        random matrices, each layer a block of its own.
    gradients : bool, default True
        Whether to keep each example's gradient. Without, `weights` must be kept, and gradients are computed when they
        are needed: a quick and small recording, and a slower answer.
    weights : {"none", "every"} or int > 0, default "none"
        Keep batches, and the weights at every step or at every so many; those in between are replayed. Needed by the
        curvatures "ggn" and "exact" and for retraining.
    store : {"memory"} or path, default "memory"
        A folder to be made, for trainings larger than memory; `open` reads it in another process.
    precision : {"float32", "float16"}, optional
        Of kept gradients. Half precision has one factor per row. Default: the model's.
    clip_norm : float > 0, optional
        The loop clips the gradient's norm to this (``torch.nn.utils.clip_grad_norm_``).
    n_steps : int > 0, optional
        How many steps are planned: the first one then tells whether all will fit into `max_gib`.
    max_gib : float > 0, default 4.0
        Refuse to keep more than this, in GiB.
    random_state : int or numpy Generator, optional
        Of the projection.

    Attributes
    ----------
    n_steps, n_rows : int
        Recorded so far; a row is one example at one step.
    nbytes : int
        Size of what is kept.
    finished : bool
    followed : float
        Share of the weights to train that gradients are taken of: 1 without `layers` and `projection`.

    Raises
    ------
    InputError
        For options out of range; for a step that is not the one declared, as far as the weights that follow show it (in
        the first steps; later ones are warned of); when the store would grow too large.
    MissingExtra
        When PyTorch is not installed.

    Warns
    -----
    UserWarning
        For dropout in training mode: gradients are those without it.

    Notes
    -----
    Each step keeps B q numbers with gradients (B examples, q weights followed; with a projection the sum over layers of
    k_in k_out), and p numbers (twice that with momentum, three times with Adam) where weights are kept. Time: a forward
    and backward pass per example of the batch, vectorised; with ``gradients=False`` little more than a copy.

    Examples
    --------
    >>> import torch
    >>> from aboveboard.explanation import TrajectoryRecorder
    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.randn(60, 4), torch.arange(60) % 3
    >>> model, loss_fn = torch.nn.Linear(4, 3), torch.nn.functional.cross_entropy
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> with TrajectoryRecorder(model, loss_fn, optimizer) as recorder:
    ...     for indices in torch.randperm(60).split(10):
    ...         recorder.step((X[indices], y[indices]), indices)
    ...         optimizer.zero_grad()
    ...         loss_fn(model(X[indices]), y[indices]).backward()
    ...         _ = optimizer.step()
    >>> recorder.n_steps, recorder.n_rows
    (6, 60)
    """

    def __init__(
        self,
        model: Any,
        loss_fn: Callable[[Any, Any], Any],
        optimizer: Any = None,
        *,
        reduction: Literal["mean", "sum"] = "mean",
        layers: Sequence[str] | None = None,
        projection: tuple[int, int] | None = None,
        gradients: bool = True,
        weights: Literal["none", "every"] | int = "none",
        store: str | PathLike[str] = "memory",
        precision: Literal["float16", "float32"] | None = None,
        clip_norm: float | None = None,
        n_steps: int | None = None,
        max_gib: float = 4.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        require("torch", extra="torch", feature="TrajectoryRecorder")
        from aboveboard.explanation.data_value_embedding._layers import ProjectedLayers, linear_layers
        from aboveboard.explanation.data_value_embedding._losses import Losses
        from aboveboard.explanation.data_value_embedding._trajectory import Options, Trajectory

        every = _checked_weights(weights)
        _check_choices(reduction, precision, gradients, every)
        for name, value in (("clip_norm", clip_norm), ("max_gib", max_gib)):
            if value is not None and not (isinstance(value, Real) and 0 < value < np.inf):
                raise InputError(f"{name} is {value!r}", expected="a finite number above 0")
        if n_steps is not None and not (isinstance(n_steps, int | np.integer) and n_steps > 0):
            raise InputError(f"n_steps is {n_steps!r}", expected="a whole number above 0")
        declared = Optimizer() if optimizer is None else Optimizer.of(optimizer)
        names = _checked_names(layers)
        if projection is not None:
            _check_projection(projection, gradients, declared)
            names = linear_layers(model, names)
        losses = Losses(model, loss_fn, names)
        _check_same_parameters(optimizer, losses.parameters)
        replayable = _can_be_repeated(model)
        projected = None
        if projection is not None and names is not None:
            projected = ProjectedLayers.drawn(losses, names, projection, np.random.default_rng(random_state))
        kept: Store = MemoryStore() if store == "memory" else DiskStore.created(Path(store))
        options = Options(reduction == "mean", clip_norm, gradients, every, precision, replayable)
        self._trajectory = Trajectory(losses, projected, declared, options, kept)
        self._optimizer, self._planned_steps, self._max_bytes = optimizer, n_steps, max_gib * _GIB
        self._before: Any = None
        self._planned: Any = None
        self._told = False
        self.n_rows = 0
        if isinstance(kept, DiskStore):
            _write_header(kept, self._trajectory)

    @classmethod
    def open(cls, path: str | PathLike[str], model: Any, loss_fn: Callable[[Any, Any], Any]) -> "TrajectoryRecorder":
        """Read a recording from its folder.

        Parameters
        ----------
        path : path
        model, loss_fn
            As they were given when it was recorded; the weights of the model do not matter.
        """
        require("torch", extra="torch", feature="TrajectoryRecorder")
        from aboveboard.explanation.data_value_embedding._layers import ProjectedLayers
        from aboveboard.explanation.data_value_embedding._losses import Losses
        from aboveboard.explanation.data_value_embedding._trajectory import Options, Trajectory

        store = DiskStore.opened(Path(path))
        header = store.header()
        if header["format"] != _FORMAT:
            raise InputError(
                f"the recording has format {header['format']}",
                expected=f"format {_FORMAT}, of this version of aboveboard",
            )
        layers = None if header["layers"] is None else tuple(header["layers"])
        losses = Losses(model, loss_fn, layers)
        if losses.size != header["size"]:
            raise InputError(
                f"the model has {losses.size:,} weights to train", expected=f"{header['size']:,}, as recorded"
            )
        projected = None
        if layers is not None and header["projected"]:
            matrices = [store.read("projection", number) for number in range(2 * len(layers))]
            projected = ProjectedLayers.of(losses, layers, [m if m.size else None for m in matrices])
        recorder = cls.__new__(cls)
        options, optimizer = Options(**header["options"]), Optimizer(**header["optimizer"])
        recorder._trajectory = Trajectory(losses, projected, optimizer, options, store)
        recorder._optimizer, recorder._planned_steps, recorder._max_bytes = None, None, np.inf
        recorder._before = recorder._planned = None
        recorder._told = False
        recorder.n_rows = sum(len(recorder._trajectory.indices(number)) for number in range(recorder.n_steps))
        return recorder

    @property
    def n_steps(self) -> int:
        """How many steps have been recorded."""
        return len(self._trajectory)

    @property
    def nbytes(self) -> int:
        """How many bytes are kept."""
        return self._trajectory.store.nbytes

    @property
    def finished(self) -> bool:
        """Whether the last weights are kept."""
        return self._trajectory.store.count("final") > 0

    @property
    def followed(self) -> float:
        """Which share of the weights to train is followed."""
        losses = self._trajectory.losses
        return float(losses.tracked_size / losses.size)

    def step(self, batch: tuple[Any, Any], indices: ArrayLike, lr: float | None = None) -> None:
        """Record one step; call it before the optimiser changes the weights.

        Parameters
        ----------
        batch : pair of tensors ``(inputs, targets)``
            What the loop trains on in this step, augmented as there. `inputs` may be a tuple, for a model of several.
        indices : array-like of int, shape (B,)
            Which examples these are: any numbers by which you know them again.
        lr : float > 0, optional
            Learning rate of this step. Default: the optimiser's.
        """
        from aboveboard.explanation.data_value_embedding._losses import checked_batch

        if self.finished:
            raise InputError("the recording is finished", remedy="Start another recorder for another training")
        trajectory = self._trajectory
        rows_of = checked_batch(batch, trajectory.losses.device)
        numbers = _checked_indices(indices, len(rows_of[1]))
        rate = self._learning_rate(lr)
        _check_rows_are_alone(trajectory.losses.model)
        theta = self._weights()
        self._compare(theta)
        state = trajectory.optimizer.read(self._optimizer, trajectory.losses.parameters, theta)
        rows = trajectory.per_example(theta, rows_of) if trajectory.options.gradients else None
        total = self._total(theta, rows_of, rows)
        self._keep(trajectory.pieces(state, rows_of, numbers, rate, rows, total))
        self.n_rows += len(numbers)
        self._before = theta
        self._planned = None if total is None else trajectory.planned(state, total, len(numbers), rate)

    def finish(self) -> None:
        """Keep the weights as they are now, those after the last step."""
        if self.finished:
            return
        if not self.n_steps:
            raise InputError("no step was recorded", remedy="Call step in the training loop, once per batch")
        theta = self._weights()
        self._compare(theta)
        self._trajectory.store.append("final", theta.cpu().numpy())

    def __enter__(self) -> "TrajectoryRecorder":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()

    def _weights(self) -> Any:
        theta = self._trajectory.losses.packed()
        if not bool(theta.isfinite().all()):
            raise InputError(
                f"the weights are not finite after {self.n_steps} steps",
                expected="a training that does not diverge",
                remedy="Lower the learning rate",
            )
        return theta

    def _learning_rate(self, lr: float | None) -> float:
        if lr is None and self._optimizer is None:
            raise InputError("the learning rate is missing", expected="lr, or an optimizer given to the recorder")
        rate = self._optimizer.param_groups[0]["lr"] if lr is None else lr
        if not np.ndim(rate) == 0 or not 0 <= float(rate) < np.inf:
            raise InputError(f"lr is {rate!r}", expected="a finite number, 0 or more")
        return float(rate)

    def _total(self, theta: Any, batch: Any, rows: Any) -> Any:
        """Return the gradient of the sum of losses where it costs nothing or is needed, else None."""
        trajectory = self._trajectory
        if rows is not None and trajectory.projected is None and trajectory.size == trajectory.losses.size:
            return rows.sum(dim=0)
        needed = trajectory.options.clip_norm is not None or trajectory.optimizer.kind != "sgd"
        if needed or self.n_steps < _WATCHED:
            return trajectory.losses.total_gradient(theta, batch)
        return None

    def _keep(self, pieces: dict[str, NDArray[Any]]) -> None:
        states = pieces["state"].nbytes if "state" in pieces else 0
        others = sum(array.nbytes for array in pieces.values()) - states
        expected = self.nbytes + others + states
        if self._planned_steps and not self.n_steps:
            checkpoints = -(-self._planned_steps // max(self._trajectory.options.every, 1))
            expected = self._planned_steps * others + checkpoints * states
        if expected > self._max_bytes:
            raise InputError(
                f"the recording takes {expected / _GIB:.3g} GiB",
                expected=f"at most {self._max_bytes / _GIB:.3g} GiB (max_gib)",
                remedy="Keep weights at fewer steps and no gradients (gradients=False, weights=100), project "
                "(projection=(16, 16)), name some layers, or raise max_gib",
            )
        self._trajectory.keep(pieces)

    def _compare(self, theta: Any) -> None:
        """Hold the weights against those to which the last step as recorded should have led."""
        if self._planned is None or not self._trajectory.options.replayable:
            return
        taken, planned = theta - self._before, self._planned - self._before
        rounding = _ROUNDINGS * np.finfo(str(theta.dtype).removeprefix("torch.")).eps * float(self._before.norm())
        if float((taken - planned).norm()) <= _OFF * float(planned.norm()) + rounding:
            return
        reason = _difference(taken, planned, len(self._trajectory.indices(self.n_steps - 1)))
        where = f"step {self.n_steps - 1} is not the one that was recorded: {reason}"
        if self.n_steps <= _WATCHED:
            raise InputError(
                where,
                expected="the gradient step of this batch, with the declared reduction, optimiser and clipping",
                remedy="Call step before optimizer.step(), with the batch and options of the loop",
            )
        if not self._told:
            warnings.warn(f"{where}. Influences that pass through it are off", UserWarning, stacklevel=3)
            self._told = True


# --- what is checked -----------------------------------------------------------------------------------------------


def _check_choices(reduction: Any, precision: Any, gradients: Any, every: int) -> None:
    if reduction not in ("mean", "sum"):
        raise InputError(f"reduction is {reduction!r}", expected="'mean' or 'sum'")
    if precision not in (None, "float16", "float32"):
        raise InputError(f"precision is {precision!r}", expected="'float32', 'float16' or None")
    if not isinstance(gradients, bool):
        raise InputError(f"gradients is {gradients!r}", expected="True or False")
    if not gradients and not every:
        raise InputError(
            "neither gradients nor weights would be kept", expected="gradients=True, or weights='every' or a number"
        )


def _checked_weights(weights: Any) -> int:
    if isinstance(weights, str) and weights in ("none", "every"):
        return int(weights == "every")
    if isinstance(weights, int | np.integer) and not isinstance(weights, bool) and weights > 0:
        return int(weights)
    raise InputError(f"weights is {weights!r}", expected="'none', 'every', or every how many steps")


def _checked_names(layers: Any) -> tuple[str, ...] | None:
    if layers is None:
        return None
    if isinstance(layers, str) or not all(isinstance(name, str) and name for name in layers) or not len(layers):
        raise InputError(f"layers is {layers!r}", expected="a list of names, as in model.named_modules()")
    if len(set(layers)) < len(layers):
        raise InputError("layers names one twice", expected="each once")
    return tuple(layers)


def _check_projection(projection: Any, gradients: bool, optimizer: Optimizer) -> None:
    pair = isinstance(projection, tuple | list) and len(projection) == 2
    if not pair or not all(isinstance(k, int | np.integer) and not isinstance(k, bool) and k > 0 for k in projection):
        raise InputError(f"projection is {projection!r}", expected="a pair (k_in, k_out) of whole numbers above 0")
    if not gradients:
        raise InputError("projected gradients are not to be kept", expected="gradients=True with a projection")
    if optimizer.kind != "sgd":
        raise InputError(
            f"{optimizer.kind} scales every weight apart, which a projection mixes",
            expected="SGD with a projection",
            remedy="Leave out the projection, and name some layers if there are too many weights",
        )


def _check_same_parameters(optimizer: Any, parameters: list[Any]) -> None:
    if optimizer is not None:
        held = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
        if held != {id(p) for p in parameters}:
            raise InputError(
                "the optimiser does not hold the parameters of the model that require gradients",
                remedy="Freeze those that it does not train with requires_grad_(False), or give it all",
            )


def _check_rows_are_alone(model: Any) -> None:
    for name, module in model.named_modules():
        if module.training and "BatchNorm" in type(module).__name__:
            raise InputError(
                f"{name!r} is batch normalisation in training mode, which mixes the rows of a batch, so that an "
                "example has no gradient of its own",
                remedy="Train with it in evaluation mode, or use group or layer normalisation",
            )


def _can_be_repeated(model: Any) -> bool:
    modules = [module for module in model.modules() if "Dropout" in type(module).__name__]
    if any(module.training and module.p > 0 for module in modules):
        warnings.warn(
            "the model has dropout in training mode: gradients are recorded without it, steps cannot be checked, and "
            "no retraining can repeat them",
            UserWarning,
            stacklevel=3,
        )
        return False
    return True


def _checked_indices(indices: Any, n_rows: int) -> NDArray[np.intp]:
    found = np.asarray(indices.cpu() if hasattr(indices, "cpu") else indices)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
        raise InputError(
            f"indices have shape {found.shape} and type {found.dtype}",
            expected="one whole number per row: which example it is",
            remedy="Where a loader shuffles, let its data set return the index with each example",
        )
    if len(found) != n_rows:
        raise InputError(f"there are {len(found)} indices for {n_rows} rows", expected="one per row")
    return found.astype(np.intp)


def _difference(taken: Any, planned: Any, n_rows: int) -> str:
    """Say in what the step that was taken differs from the one that was planned."""
    long, wanted = float(taken.norm()), float(planned.norm())
    if long == 0:
        return "the weights have not changed"
    cosine = float(taken @ planned) / max(long * wanted, np.finfo(float).tiny)
    if cosine < 0.999:
        return f"its direction is another one (cosine {cosine:.3g}); was it another batch, or another optimiser?"
    ratio = long / wanted
    for times, said in ((n_rows, "the loop sums the losses of a batch"), (1 / n_rows, "the loop averages them")):
        if n_rows > 1 and abs(ratio / times - 1) < 0.01:
            return f"it is {ratio:.3g} times as long; {said}"
    return f"it is {ratio:.3g} times as long; another learning rate, or clipping?"


def _write_header(store: DiskStore, trajectory: Any) -> None:
    projected = trajectory.projected
    for matrix in () if projected is None else projected.matrices:
        store.append("projection", np.empty(0) if matrix is None else matrix)
    store.write_header(
        {
            "format": _FORMAT,
            "size": trajectory.losses.size,
            "layers": trajectory.losses.layers,
            "projected": projected is not None,
            "options": asdict(trajectory.options),
            "optimizer": asdict(trajectory.optimizer),
        }
    )
