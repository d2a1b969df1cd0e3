"""Influences from a recorded training."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from aboveboard.core import InputError, require
from aboveboard.explanation.data_value_embedding._recorder import TrajectoryRecorder
from aboveboard.explanation.data_value_embedding._retraining import exact_tsloo
from aboveboard.explanation.data_value_embedding._store import DiskStore

if TYPE_CHECKING:
    from aboveboard.explanation.data_value_embedding._trajectory import Trajectory

__all__ = ["DataValueEmbedding", "Embeddings", "RetrainComparison"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Curvature = Literal["fisher", "ggn", "exact", "none"]
Per = Literal["step", "example", "epoch"]

_GIB: Final = 2**30


@dataclass(frozen=True)
class Embeddings:
    """What every example did to the weights, at every step.

    Attributes
    ----------
    E : ndarray of shape (n_rows, q)
        By how much the final weights would be moved, to first order, if the example had been left out of the step; in
        the projected coordinates where the recording is projected. In a file where the recording is.
    step, index, epoch : ndarray of int, shape (n_rows,)
        Step, example, and how many times the example had been seen before.
    sharpness : dict of int to float, or empty
        By step, learning rate times the largest curvature, as power iteration sees it: a lower bound.
    """

    E: NDArray[Any]
    step: Indices
    index: Indices
    epoch: Indices
    sharpness: dict[int, float]


@dataclass(frozen=True)
class RetrainComparison:
    """Influences beside the truth.

    Attributes
    ----------
    step, index : ndarray of shape (r,)
        What was left out.
    predicted, true : ndarray of shape (t, r)
    spearman, pearson : float
        Correlations over what was left out, averaged over targets.
    """

    step: Indices
    index: Indices
    predicted: Floats
    true: Floats
    spearman: float
    pearson: float


class DataValueEmbedding:
    """How would an answer change if the training had gone on without this example at this step?

    Record a training with `TrajectoryRecorder`, hand it to `embed`, ask `influence`; or let `fit` run the training.
    **Positive influence: the example helped**, that is, without it the loss of the target would be higher.

    Parameters
    ----------
    curvature : {"fisher", "ggn", "exact", "none"}, default "fisher"
        What stands for the Hessian of the batches of later steps: the outer products of the gradients that were
        recorded, as in the paper; the Gauss-Newton matrix; Hessian-vector products; or nothing, which is the product of
        gradients at both ends (TracIn's, at the final weights). "ggn" and "exact" need weights in the recording. For
        squared losses the Fisher matrix scales with the squared residual: take "ggn".
    propagation : {"embedding", "adjoint"}, default "embedding"
        Carry every example forwards, once for all targets, with a matrix of q x q; or the targets' gradients backwards,
        once for all examples, with a vector per target. Both give the same influences.
    damping : float >= 0, default 0.0
        Added to the curvature of every step (times the identity).
    n_jobs : int, optional
        Segments of the training that "embedding" goes through at the same time, with threads, and puts together. For
        "fisher" and "none" with gradients in the recording.
    random_state : int or numpy Generator, optional
        Of the vector that looks for instability, and of the rows that `compare_with_retrain` picks.

    Attributes
    ----------
    embeddings_ : Embeddings
        With ``propagation="embedding"``.
    recorder_ : TrajectoryRecorder
        What `embed` was given.
    sharpness_ : dict of int to float
        By step, learning rate times the largest curvature (a lower bound), from the last pass.

    Raises
    ------
    InputError
        For options out of range, a recording that lacks what the curvature needs or is not finished, a matrix that does
        not fit into the recorder's `max_gib`, a recursion that overflows (with its step).
    MissingExtra
        When PyTorch is not installed.

    Warns
    -----
    UserWarning
        Where learning rate times curvature reaches 2 (2 + 2 mu with momentum mu), so that the recursion amplifies.

    Guarantee
    ---------
    With "exact" and twice differentiable losses, the influence is the derivative of the target's loss by the example's
    weight at that step, through SGD, momentum, Adam, AdamW and clipping; the error of the prediction is of second order
    in the weight. With SGD and a quadratic loss the embedding is the change of the weights itself. "fisher" and "ggn"
    replace the Hessian, and no bound is known; `compare_with_retrain` measures.

    Notes
    -----
    A step is theta' = theta - eta w sum_z g(z), with w = 1/B for a mean loss, and leaving out z* moves the end by

        E_s(z*) = eta_s w Pi_s g_s(z*),   Pi_s = (I - eta_{T-1} H_{T-1}) ... (I - eta_{s+1} H_{s+1}),

    H the sum of w Hess l(z) over a batch, so that the influence on v is <gradient of l(theta_T, v), E_s(z*)>. Weight
    decay is part of H; the moments of the optimiser are propagated together with the weights. Time, with N rows of
    length q: O(N q^2) for "embedding" with "fisher", O(t N q) for "adjoint" with t targets; a Hessian product costs
    about two backward passes of its batch. Memory: q^2 and N q; or t q.

    References
    ----------
    J. T. Wang et al., "Capturing the Temporal Dependence of Training Data Influence", ICLR 2025.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.explanation import DataValueEmbedding
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = torch.as_tensor(StandardScaler().fit_transform(X)), torch.as_tensor(y)
    >>> model, loss_fn = torch.nn.Linear(30, 2).double(), torch.nn.functional.cross_entropy
    >>> train = torch.utils.data.TensorDataset(X[:400], y[:400])
    >>> loader = torch.utils.data.DataLoader(train, batch_size=20)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    >>> values = DataValueEmbedding(random_state=0)
    >>> values = values.fit(model, loss_fn, loader, optimizer, epochs=2, weights=10)
    >>> values.influence((X[400:], y[400:]), per="example").shape
    (169, 400)
    >>> values.compare_with_retrain((X[400:], y[400:])).spearman > 0.8
    True
    """

    embeddings_: Embeddings
    recorder_: TrajectoryRecorder
    sharpness_: dict[int, float]

    def __init__(
        self,
        curvature: Curvature = "fisher",
        *,
        propagation: Literal["embedding", "adjoint"] = "embedding",
        damping: float = 0.0,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.curvature = curvature
        self.propagation = propagation
        self.damping = damping
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        model: Any,
        loss_fn: Callable[[Any, Any], Any],
        loader: Any,
        optimizer: Any,
        epochs: int = 1,
        *,
        scheduler: Any = None,
        **options: Any,
    ) -> "DataValueEmbedding":
        """Train the model, record it, and embed.

        Parameters
        ----------
        model : torch.nn.Module
            Trained in place, in the mode in which it is.
        loss_fn : callable ``(outputs, targets) -> loss``
        loader : torch.utils.data.DataLoader
            Of pairs ``(inputs, targets)``. Its batches are drawn through its `batch_sampler`, so that it may shuffle;
            examples are numbered as in its data set. Its workers are not used.
        optimizer : torch.optim.SGD, Adam or AdamW
        epochs : int
        scheduler : torch.optim.lr_scheduler.LRScheduler, optional
            Stepped after every batch.
        **options
            Of `TrajectoryRecorder`. Weights are kept where the curvature needs them.

        Returns
        -------
        DataValueEmbedding
            Itself.
        """
        self._check_options()
        if not (isinstance(epochs, int | np.integer) and epochs > 0):
            raise InputError(f"epochs is {epochs!r}", expected="a whole number above 0")
        sampler = getattr(loader, "batch_sampler", None)
        if sampler is None or not hasattr(loader.dataset, "__getitem__"):
            raise InputError(
                "the loader does not tell which examples are in a batch",
                expected="a DataLoader of a data set with numbered examples, with a batch size",
                remedy="Train in your own loop, with a TrajectoryRecorder",
            )
        if self.curvature in ("ggn", "exact"):
            options = {"weights": "every"} | options
        options.setdefault("n_steps", int(epochs) * len(sampler))
        with TrajectoryRecorder(model, loss_fn, optimizer, **options) as recorder:
            device = next(iter(model.parameters())).device
            for _ in range(epochs):
                for indices in sampler:
                    batch = loader.collate_fn([loader.dataset[i] for i in indices])
                    recorder.step(batch, indices)
                    _train_step(recorder, optimizer, batch, device)
                    if scheduler is not None:
                        scheduler.step()
        return self.embed(recorder)

    def embed(self, recorder: TrajectoryRecorder) -> "DataValueEmbedding":
        """Take a recorded training, and compute the embeddings of its examples.

        With ``propagation="adjoint"`` nothing is computed before `influence` is asked.

        Parameters
        ----------
        recorder : TrajectoryRecorder
            Finished.

        Returns
        -------
        DataValueEmbedding
            Itself.
        """
        self._check_options()
        if not isinstance(recorder, TrajectoryRecorder):
            raise TypeError(f"embed takes a TrajectoryRecorder; got {type(recorder).__name__}")
        trajectory = recorder._trajectory
        trajectory.final()
        self._check_recording(trajectory)
        self.recorder_ = recorder
        step, index, epoch = _rows_of(trajectory)
        self._rows = pd.DataFrame({"step": step, "index": index, "epoch": epoch})
        if self.propagation == "embedding":
            E = self._embedded(recorder, len(step))
            self.embeddings_ = Embeddings(E, step, index, epoch, self.sharpness_)
        return self

    def influence(self, targets: tuple[Any, Any], per: Per = "step") -> Floats:
        """Return by how much the loss of each target would rise without each example.

        Parameters
        ----------
        targets : pair of tensors ``(inputs, targets)``, t rows
            Examples as in training. The loss is the recorder's.
        per : {"step", "example", "epoch"}, default "step"
            One column per example and step; summed over all steps that saw an example; or summed by how many times the
            example had been seen before. `columns` tells which is which.

        Returns
        -------
        ndarray of shape (t, n_columns)
            Positive where the example helped.
        """
        from aboveboard.explanation.data_value_embedding._losses import checked_batch

        trajectory = self._embedded_trajectory()
        keys = _keys(per)
        batch = checked_batch(targets, trajectory.losses.device)
        slopes = trajectory.per_example(trajectory.final(), batch).double()
        if self.propagation == "embedding":
            E = self.embeddings_.E
            scores = (E @ slopes.cpu().numpy().T.astype(E.dtype)).T.astype(np.float64)
        else:
            scores = self._adjoint(trajectory, slopes)
        if per == "step":
            return np.asarray(scores)
        groups = self._rows.groupby(keys, sort=True).ngroup().to_numpy()
        summed = np.zeros((len(scores), groups.max() + 1))
        np.add.at(summed.T, groups, scores.T)
        return summed

    def columns(self, per: Per = "step") -> pd.DataFrame:
        """Return what the columns of `influence` are.

        Returns
        -------
        DataFrame
            With columns step, index and epoch; index alone for ``per="example"``; epoch and index for ``per="epoch"``.
        """
        self._embedded_trajectory()
        keys = _keys(per)
        if per == "step":
            return self._rows.copy()
        return self._rows[keys].drop_duplicates().sort_values(keys, ignore_index=True)

    def phases(self, targets: tuple[Any, Any]) -> pd.DataFrame:
        """Return how much each step of the training mattered for the targets.

        Returns
        -------
        DataFrame
            A row per step: ``mean_abs`` and ``mean``, of influences over examples and targets.
        """
        scores = self.influence(targets)
        table = pd.DataFrame(
            {
                "step": self._rows["step"],
                "mean_abs": np.abs(scores).mean(axis=0),
                "mean": scores.mean(axis=0),
            }
        )
        return table.groupby("step", as_index=False).mean()

    def compare_with_retrain(self, targets: tuple[Any, Any], n_rows: int = 20) -> RetrainComparison:
        """Leave out some examples at some steps, train again, and hold the influences against the truth.

        Parameters
        ----------
        targets : pair of tensors
        n_rows : int, default 20
            How many pairs of example and step are picked, with equal chances.

        Returns
        -------
        RetrainComparison
        """
        self._embedded_trajectory()
        if not (isinstance(n_rows, int | np.integer) and 3 <= n_rows <= len(self._rows)):
            raise InputError(f"n_rows is {n_rows!r}", expected=f"3 to {len(self._rows)}, the rows that were recorded")
        rng = np.random.default_rng(self.random_state)
        picked = np.sort(rng.choice(len(self._rows), n_rows, replace=False))
        step, index = (self._rows[name].to_numpy()[picked] for name in ("step", "index"))
        true = exact_tsloo(self.recorder_, list(zip(step.tolist(), index.tolist(), strict=True)), targets)
        predicted = self.influence(targets)[:, picked]
        pairs = list(zip(predicted, true, strict=True))
        return RetrainComparison(
            step,
            index,
            predicted,
            true,
            float(np.mean([spearmanr(*pair).statistic for pair in pairs])),
            float(np.mean([pearsonr(*pair).statistic for pair in pairs])),
        )

    # --- passes through the training ---

    def _embedded(self, recorder: TrajectoryRecorder, n_rows: int) -> NDArray[Any]:
        trajectory = recorder._trajectory
        kind = np.float32 if "32" in str(trajectory.losses.dtype) else np.float64
        widest = max(block.stop - block.start for block in trajectory.blocks)
        needed = 8 * widest**2 * (2 + trajectory.optimizer.moments) + n_rows * trajectory.size * np.dtype(kind).itemsize
        if needed > recorder._max_bytes:
            raise InputError(
                f"embeddings of {trajectory.size:,} numbers for {n_rows:,} rows take {needed / _GIB:.3g} GiB",
                expected=f"at most {recorder._max_bytes / _GIB:.3g} GiB (max_gib of the recorder)",
                remedy="Choose propagation='adjoint', record with a projection or some layers, or raise max_gib",
            )
        store = trajectory.store
        shape = (n_rows, trajectory.size)
        if isinstance(store, DiskStore):
            file = store.folder / f"embeddings-{self.curvature}.npy"
            E: NDArray[Any] = np.lib.format.open_memmap(file, mode="w+", dtype=kind, shape=shape)
        else:
            E = np.empty(shape, dtype=kind)
        self.sharpness_ = {}
        for block in trajectory.blocks:
            self._embed_block(trajectory, block, E)
        self._warn_of_instability(trajectory)
        return E

    def _embed_block(self, trajectory: "Trajectory", block: slice, E: NDArray[Any]) -> None:
        """Go through segments of the training at the same time, and put them together from the last to the first."""
        edges = np.linspace(0, len(trajectory), self._n_segments(trajectory) + 1).astype(int).tolist()
        segments = list(pairwise(edges))
        seeds = np.random.default_rng(self.random_state).integers(2**32, size=len(segments)).tolist()
        places = self._places
        earlier = Parallel(n_jobs=len(segments), prefer="threads")(
            delayed(_segment)(
                trajectory,
                self.curvature,
                self.damping,
                block,
                segment,
                E if segment is segments[-1] else None,
                places,
                seed,
            )
            for segment, seed in zip(segments, seeds, strict=True)
        )
        after: Floats | None = None
        for found, product, sharpness in reversed(earlier):
            if after is not None:
                for number, rows in found.items():
                    E[places[number], block] = rows @ after.T
            after = product if after is None else after @ product
            _merge(self.sharpness_, sharpness)

    def _adjoint(self, trajectory: "Trajectory", slopes: Any) -> Floats:
        from aboveboard.explanation.data_value_embedding._propagation import Propagation

        self.sharpness_ = {}
        rng = np.random.default_rng(self.random_state)
        scores = np.zeros((len(slopes), len(self._rows)))
        places = self._places
        for block in trajectory.blocks:
            propagation = Propagation(trajectory, self.curvature, self.damping, block, rng)
            start = slopes[:, block]
            state = [start, *[start.new_zeros(start.shape)] * trajectory.optimizer.moments]
            for number, rows in propagation.run(state, 0, len(trajectory)):
                scores[:, places[number]] += rows.T
            _merge(self.sharpness_, propagation.sharpness)
        self._warn_of_instability(trajectory)
        return scores

    def _warn_of_instability(self, trajectory: "Trajectory") -> None:
        from aboveboard.explanation.data_value_embedding._propagation import warn_of_instability

        warn_of_instability(self.sharpness_, trajectory.optimizer.stable_below)

    # --- what is checked ---

    def _n_segments(self, trajectory: "Trajectory") -> int:
        return 1 if self.n_jobs is None else min(effective_n_jobs(self.n_jobs), len(trajectory))

    @property
    def _places(self) -> list[slice]:
        """Which rows belong to each step."""
        ends = np.cumsum(np.bincount(self._rows["step"])).tolist()
        return [slice(start, end) for start, end in pairwise([0, *ends])]

    def _embedded_trajectory(self) -> "Trajectory":
        if not hasattr(self, "recorder_"):
            raise InputError("nothing has been embedded", remedy="Call embed(recorder) or fit first")
        return self.recorder_._trajectory

    def _check_options(self) -> None:
        require("torch", extra="torch", feature="DataValueEmbedding")
        if self.curvature not in get_args(Curvature):
            raise InputError(f"curvature is {self.curvature!r}", expected=f"one of {', '.join(get_args(Curvature))}")
        if self.propagation not in ("embedding", "adjoint"):
            raise InputError(f"propagation is {self.propagation!r}", expected="'embedding' or 'adjoint'")
        if not (isinstance(self.damping, Real) and 0 <= self.damping < np.inf):
            raise InputError(f"damping is {self.damping!r}", expected="a finite number, 0 or more")

    def _check_recording(self, trajectory: "Trajectory") -> None:
        if self.curvature in ("ggn", "exact"):
            if trajectory.projected is not None:
                raise InputError(
                    f"curvature {self.curvature!r} cannot be taken of a projected recording",
                    expected="'fisher' or 'none'",
                    remedy="Record without a projection, and choose propagation='adjoint'",
                )
            if not trajectory.options.every:
                raise InputError(
                    f"curvature {self.curvature!r} needs the weights of the training",
                    expected="a recording with weights='every' or a number",
                )
        replays = self.curvature in ("ggn", "exact") or not trajectory.options.gradients
        if self.propagation == "embedding" and self._n_segments(trajectory) > 1 and replays:
            raise InputError(
                f"n_jobs={self.n_jobs!r} needs gradients in the recording, and curvature 'fisher' or 'none'",
                remedy="Leave n_jobs out",
            )


def _train_step(recorder: TrajectoryRecorder, optimizer: Any, batch: Any, device: Any) -> None:
    from aboveboard.explanation.data_value_embedding._losses import checked_batch

    trajectory = recorder._trajectory
    inputs, targets = checked_batch(batch, device)
    optimizer.zero_grad()
    outputs = trajectory.losses.model(*inputs)
    loss = trajectory.losses.losses_of(outputs, targets).sum() * trajectory.row_weight(len(targets))
    loss.backward()
    if trajectory.options.clip_norm is not None:
        torch = require("torch", extra="torch", feature="DataValueEmbedding")
        torch.nn.utils.clip_grad_norm_(trajectory.losses.parameters, trajectory.options.clip_norm)
    optimizer.step()


def _segment(
    trajectory: "Trajectory",
    curvature: Curvature,
    damping: float,
    block: slice,
    segment: tuple[int, int],
    E: NDArray[Any] | None,
    places: list[slice],
    seed: int,
) -> tuple[dict[int, Floats], Floats, dict[int, float]]:
    """Return the embeddings of a segment's examples at its end, and its own linear map, of weights and moments.

    The last segment has `E`, and writes its embeddings there: at the end of the training the weights alone matter. At
    the end of an earlier one the moments do as well.
    """
    import torch

    from aboveboard.explanation.data_value_embedding._propagation import Propagation

    kinds = 1 + trajectory.optimizer.moments
    unit = torch.eye(kinds * (block.stop - block.start), dtype=torch.float64, device=trajectory.losses.device)
    outcomes = unit if E is None else unit[: block.stop - block.start]
    propagation = Propagation(trajectory, curvature, damping, block, np.random.default_rng(seed))
    found: dict[int, Floats] = {}
    for number, rows in propagation.run(list(outcomes.chunk(kinds, dim=1)), *segment):
        if E is None:
            found[number] = rows
        else:
            E[places[number], block] = rows
    return found, torch.cat(propagation.state, dim=1).cpu().numpy(), propagation.sharpness


def _rows_of(trajectory: "Trajectory") -> tuple[Indices, Indices, Indices]:
    """Return step, example and epoch of every row, in the order of training."""
    batches = [trajectory.indices(number) for number in range(len(trajectory))]
    step = np.repeat(np.arange(len(batches), dtype=np.intp), [len(batch) for batch in batches])
    index: Indices = np.concatenate(batches)
    epoch = pd.Series(index).groupby(index).cumcount().to_numpy().astype(np.intp)
    return step, index, epoch


def _keys(per: Any) -> list[str]:
    keys = {"step": ["step", "index"], "example": ["index"], "epoch": ["epoch", "index"]}
    if per not in keys:
        raise InputError(f"per is {per!r}", expected=f"one of {', '.join(keys)}")
    return keys[per]


def _merge(sharpness: dict[int, float], more: dict[int, float]) -> None:
    for number, value in more.items():
        sharpness[number] = max(value, sharpness.get(number, value))
