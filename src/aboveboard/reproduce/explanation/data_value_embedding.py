"""Influences beside retraining: networks on Fashion-MNIST, single examples left out of single steps.

A network of one hidden layer is trained on the principal components of 1,000 images, and 200 pairs of an example and a
step are drawn; each is left out in a training of its own. The peer scores the same training. A small convolutional
network shows the projected recording, and what recording costs. The quick scale is a logistic regression on Adult, as
in the check that the bounds were set from, where there is no influence function to compare with.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from aboveboard.core import require
from aboveboard.core.finding import Column, Figure, Line, Series, Table
from aboveboard.data import load_adult, load_fashion_mnist
from aboveboard.explanation import DataValueEmbedding, TrajectoryRecorder, exact_tsloo
from aboveboard.reproduce import Criterion, Outcome, Scale

__all__ = ["run"]

Floats = NDArray[np.float64]
Make = Callable[[Any], Any]

_SEEDS: Final = 3
_ROWS, _HELD, _TARGETS, _REMOVED = 1_000, 300, 50, 200
_COMPONENTS, _HIDDEN, _BATCH, _EPOCHS, _LR = 50, 32, 20, 3, 0.1
_WRONG: Final = 0.1
_DAMPING: Final = 0.01
_PARTS: Final = 10
_REPEATS: Final = 3


@dataclass(frozen=True, slots=True)
class _Images:
    """Training and held-out rows, as tensors in float64, and where training labels were made wrong."""

    X: Any
    y: Any
    X_held: Any
    y_held: Any
    wrong: NDArray[np.bool_]

    @property
    def targets(self) -> tuple[Any, Any]:
        return self.X_held[:_TARGETS], self.y_held[:_TARGETS]

    @property
    def held(self) -> tuple[Any, Any]:
        return self.X_held, self.y_held


def run(scale: Scale = "quick", *, random_state: int = 0) -> Outcome:
    """Compare influences with retraining.

    Parameters
    ----------
    scale : {"quick", "full"}
        Seconds on Adult, or minutes on Fashion-MNIST with the peer beside it.
    random_state : int
        Of rows, order, first weights and what is left out; further seeds follow it.
    """
    if scale == "quick":
        return _quick(random_state)
    ranks: list[dict[str, float]] = []
    identity, peers = {}, {}
    auc: dict[str, list[float]] = {"fisher": [], "exact": []}
    phases: dict[tuple[str, str], list[Floats]] = {
        (curvature, rate): [] for rate in ("warm-up", "constant") for curvature in ("fisher", "exact")
    }
    for seed in range(random_state, random_state + _SEEDS):
        data = _components(seed)
        recorder = _trained(data, seed)
        found, true, columns = _ranked(recorder, data, seed)
        peer = _peer(recorder, data)
        examples = columns["index"].to_numpy()
        by_peer = {name: peer.arrays[name][:, examples] for name in ("influence", "tracin", "trak")}
        adam = _adam(data, seed)
        ranks.append({name: _rank(values, true) for name, values in (found | by_peer).items()} | adam)
        ours = DataValueEmbedding("fisher").embed(recorder).influence(data.targets, per="example")
        identity[f"seed {seed}"] = float(np.abs(ours - peer.arrays["dvemb"]).max() / np.abs(ours).max())
        peers[f"dattri, seed {seed}"] = {"freeze": list(peer.freeze), "seconds": peer.options["seconds"]}
        for name, value in _mislabelled(data, seed).items():
            auc[name].append(value)
        for curvature, rate in phases:
            phases[curvature, rate].append(_phases(data, seed, curvature, warm_up=rate == "warm-up"))
    criteria = [
        *_rank_criteria(ranks, peer=True),
        Criterion(
            "mislabelled",
            "Summed influence (fisher) on 300 held-out images finds mislabelled training images, a tenth of them, with "
            "an area under the ROC curve above 0.8",
            {f"seed {i}": value for i, value in enumerate(auc["fisher"], random_state)},
            "min",
            ">",
            0.8,
        ),
        Criterion(
            "phases",
            "With a learning rate that warms up over the first tenth of the training, mean |influence| (fisher) is "
            "higher in the first tenth and in the last than in the lowest tenth between (the smaller ratio)",
            {f"seed {i}": _valley(parts) for i, parts in enumerate(phases["fisher", "warm-up"], random_state)},
            "min",
            ">",
            1.0,
        ),
        Criterion(
            "dattri",
            "Influences (fisher, summed over steps) differ from dattri's DVEmb by at most 1e-8 of the largest",
            identity,
            "max",
            "<=",
            1e-8,
        ),
        *_mathematics(random_state),
    ]
    network, costs = _convolutional(random_state)
    costs = [*_costs_of_network(random_state), *costs]
    return Outcome(
        criteria,
        figures=(
            _rank_figure(ranks),
            _phase_figure(phases),
            _cost_figure(costs, 2, "time", "CPU time, plain training = 1"),
            _cost_figure(costs, 3, "memory", "bytes per step, weights = 1"),
        ),
        tables=(
            _rank_table(ranks, "Network on Fashion-MNIST: rank correlation with retraining"),
            _auc_table(auc),
            _rank_table([network], "Convolutional network on Fashion-MNIST: rank correlation with retraining"),
            _cost_table(costs),
        ),
        notes=(
            "Rank correlations are over what was left out, averaged over 50 held-out images. Scores of TracIn, TRAK "
            "and the influence function do not tell steps apart: every pair gets the score of its example.",
            f"The influence function is dattri's, with the whole Hessian and {_DAMPING:g} added to it; TracIn takes "
            "the weights at the end of every epoch; TRAK one model and 512 dimensions.",
            "Cost is CPU time on one thread, the smallest of three runs. Plain training keeps the weights, and neither "
            "batches nor gradients.",
            "The paper's language models and their storage and speed are out of reach here.",
        ),
        peers=peers,
    )


# --- the quick scale -----------------------------------------------------------------------------------------------


def _quick(seed: int) -> Outcome:
    data = _adult(seed)
    recorder = _trained(data, seed, hidden=None, batch=10, epochs=1)
    found, true, _ = _ranked(recorder, data, seed, removed=60)
    ranks = [{name: _rank(values, true) for name, values in found.items()}]
    return Outcome(
        [*_rank_criteria(ranks, peer=False), *_mathematics(seed)],
        figures=(_rank_figure(ranks),),
        tables=(_rank_table(ranks, "Logistic regression on Adult: rank correlation with retraining"),),
        notes=("The quick scale is convex, has no peer beside it, and measures neither phases nor cost.",),
    )


def _adult(seed: int) -> _Images:
    adult = load_adult(split="train")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(adult.X))[: _ROWS + _HELD]
    numbers = adult.X.select_dtypes("number").iloc[rows].to_numpy(dtype=np.float64)
    return _images(StandardScaler().fit_transform(numbers), np.asarray(adult.y_binary)[rows].astype(np.int64))


def _torch() -> Any:
    return require("torch", extra="torch", feature="the experiment of DataValueEmbedding")


# --- data and training ---------------------------------------------------------------------------------------------


def _pixels(seed: int) -> tuple[Floats, NDArray[np.int64]]:
    data = load_fashion_mnist(split="train")
    rows = np.random.default_rng(seed).permutation(len(data.X))[: _ROWS + _HELD]
    labels = np.asarray(data.y, dtype=str)
    codes = np.searchsorted(sorted(set(labels)), labels[rows]).astype(np.int64)
    return data.X.iloc[rows].to_numpy(dtype=np.float64) / 255, codes


def _components(seed: int) -> _Images:
    pixels, y = _pixels(seed)
    components = PCA(_COMPONENTS, random_state=seed).fit(pixels[:_ROWS])
    reduced = components.transform(pixels)
    return _images(reduced / reduced[:_ROWS].std(axis=0), y)


def _images(X: Floats, y: NDArray[np.int64]) -> _Images:
    torch = _torch()
    rows, labels = torch.as_tensor(X), torch.as_tensor(y)
    return _Images(rows[:_ROWS], labels[:_ROWS], rows[_ROWS:], labels[_ROWS:], np.zeros(_ROWS, dtype=bool))


def _with_wrong_labels(data: _Images, seed: int) -> _Images:
    torch = _torch()

    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(data.y), dtype=bool)
    wrong[rng.choice(len(data.y), int(_WRONG * len(data.y)), replace=False)] = True
    shift = torch.as_tensor(np.where(wrong, rng.integers(1, 10, len(data.y)), 0))
    return _Images(data.X, (data.y + shift) % 10, data.X_held, data.y_held, wrong)


def _model(inputs: int, classes: int, hidden: int | None, seed: int) -> Any:
    torch = _torch()

    torch.manual_seed(seed)
    if hidden is None:
        return torch.nn.Linear(inputs, classes).double()
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, classes)
    ).double()


def _sgd(parameters: Any) -> Any:
    return _torch().optim.SGD(parameters, lr=_LR)


def _adamw(parameters: Any) -> Any:
    return _torch().optim.AdamW(parameters, lr=0.003)


def _order(n: int, batch: int, epochs: int, seed: int) -> list[Any]:
    torch = _torch()

    generator = torch.Generator().manual_seed(seed)
    return [part for _ in range(epochs) for part in torch.randperm(n, generator=generator).split(batch)]


def _trained(
    data: _Images,
    seed: int,
    *,
    hidden: int | None = _HIDDEN,
    batch: int = _BATCH,
    epochs: int = _EPOCHS,
    optimizer: Make = _sgd,
    warm_up: bool = False,
) -> TrajectoryRecorder:
    model = _model(data.X.shape[1], int(data.y.max()) + 1, hidden, seed)
    order = _order(len(data.y), batch, epochs, seed)
    rates = None
    if warm_up:
        rates = [_LR * min(1.0, (step + 1) * _PARTS / len(order)) for step in range(len(order))]
    made = optimizer(model.parameters())
    recorder = TrajectoryRecorder(model, _loss(), made, weights="every")
    _train(model, (data.X, data.y), order, made, recorder, rates)
    recorder.finish()
    return recorder


def _loss() -> Any:
    return _torch().nn.functional.cross_entropy


def _train(
    model: Any,
    data: tuple[Any, Any],
    order: Sequence[Any],
    optimizer: Any,
    recorder: TrajectoryRecorder | None = None,
    rates: Sequence[float] | None = None,
) -> None:
    X, y = data
    loss_fn = _loss()
    for step, indices in enumerate(order):
        if rates is not None:
            optimizer.param_groups[0]["lr"] = rates[step]
        if recorder is not None:
            recorder.step((X[indices], y[indices]), indices)
        optimizer.zero_grad()
        loss_fn(model(X[indices]), y[indices]).backward()
        optimizer.step()


# --- influences beside retraining ----------------------------------------------------------------------------------


def _ranked(
    recorder: TrajectoryRecorder, data: _Images, seed: int, removed: int = _REMOVED
) -> tuple[dict[str, Floats], Floats, Any]:
    """Return influences by method, the truth, both of shape (targets, removed), and what was left out."""
    values = {name: DataValueEmbedding(name, propagation="adjoint") for name in ("none", "fisher", "ggn", "exact")}
    found = {name: value.embed(recorder).influence(data.targets) for name, value in values.items()}
    picked = np.random.default_rng(seed).choice(recorder.n_rows, removed, replace=False)
    columns = values["none"].columns().iloc[picked]
    pairs = list(zip(columns["step"].tolist(), columns["index"].tolist(), strict=True))
    true = exact_tsloo(recorder, pairs, data.targets)
    return {name: scores[:, picked] for name, scores in found.items()}, true, columns


def _rank(predicted: Floats, true: Floats) -> float:
    return float(np.mean([spearmanr(*pair).statistic for pair in zip(predicted, true, strict=True)]))


def _adam(data: _Images, seed: int) -> dict[str, float]:
    found, true, _ = _ranked(_trained(data, seed, optimizer=_adamw), data, seed)
    return {f"AdamW: {_NAMES[name]}": _rank(values, true) for name, values in found.items()}


def _mislabelled(data: _Images, seed: int) -> dict[str, float]:
    noisy = _with_wrong_labels(data, seed)
    recorder = _trained(noisy, seed)
    return {
        name: float(
            roc_auc_score(
                noisy.wrong,
                -DataValueEmbedding(name, propagation="adjoint")
                .embed(recorder)
                .influence(noisy.held, per="example")
                .sum(axis=0),
            )
        )
        for name in ("fisher", "exact")
    }


def _phases(data: _Images, seed: int, curvature: Any, *, warm_up: bool) -> Floats:
    """Return mean |influence| by tenth of the training."""
    recorder = _trained(data, seed, warm_up=warm_up)
    by_step = (
        DataValueEmbedding(curvature, propagation="adjoint").embed(recorder).phases(data.targets)["mean_abs"].to_numpy()
    )
    return np.array([part.mean() for part in np.array_split(by_step, _PARTS)])


def _valley(parts: Floats) -> float:
    return float(min(parts[0], parts[-1]) / parts[1:-1].min())


def _peer(recorder: TrajectoryRecorder, data: _Images) -> Any:
    from aboveboard.reproduce._peers import run_peer

    trajectory = recorder._trajectory
    steps = range(recorder.n_steps)
    weights = [trajectory.state_before(step).theta.numpy() for step in steps] + [trajectory.final().numpy()]
    targets = data.targets
    arrays = {
        "X": data.X.numpy(), "y": data.y.numpy(), "X_targets": targets[0].numpy(), "y_targets": targets[1].numpy(),
        "weights": np.array(weights), "batches": np.array([trajectory.indices(step) for step in steps]),
        "epochs": np.arange(recorder.n_steps) * _BATCH // _ROWS,
    }  # fmt: skip
    return run_peer("dattri", "scores", arrays, hidden=_HIDDEN, lr=_LR, regularization=_DAMPING)


# --- what mathematics promises -------------------------------------------------------------------------------------


def _mathematics(seed: int) -> list[Criterion]:
    return [
        Criterion(
            "least-squares",
            "For least squares, embeddings equal the change of the weights in a training without the example to 1e-10 "
            "of the largest",
            {f"seed {seed}": _least_squares(seed)},
            "max",
            "<=",
            1e-10,
        ),
        Criterion(
            "second-order",
            "Halving the learning rate of the step divides the error of the prediction by four, to within 0.4",
            {f"seed {seed}": abs(_halved(seed) - 4)},
            "max",
            "<=",
            0.4,
            tolerance=1e-3,
        ),
    ]


def _least_squares(seed: int) -> float:
    """Return the largest deviation from gradient steps by hand, relative to the largest change."""
    torch = _torch()

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=100)
    order, lr = [rng.permutation(100)[:10] for _ in range(30)], 0.05
    model = torch.nn.Linear(5, 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    recorder = TrajectoryRecorder(model, torch.nn.functional.mse_loss, optimizer, weights="every")
    for batch in order:
        rows = torch.as_tensor(X[batch]), torch.as_tensor(y[batch])[:, None]
        recorder.step(rows, batch)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(rows[0]), rows[1]).backward()
        optimizer.step()
    recorder.finish()
    embeddings = DataValueEmbedding("exact").embed(recorder).embeddings_

    def by_hand(without: tuple[int, int] | None) -> Floats:
        theta = np.zeros(5)
        for step, batch in enumerate(order):
            kept = [i for i in batch if (step, i) != without]
            theta -= lr / len(batch) * 2 * X[kept].T @ (X[kept] @ theta - y[kept])
        return theta

    picked = rng.choice(len(embeddings.E), 40, replace=False)
    changes = np.array([by_hand((embeddings.step[row], embeddings.index[row])) - by_hand(None) for row in picked])
    return float(np.abs(embeddings.E[picked] - changes).max() / np.abs(changes).max())


def _halved(seed: int) -> float:
    """Return the error of the prediction at a learning rate over that at half of it, for the examples of one step."""
    torch = _torch()

    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(200, 8, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (200,), generator=generator)
    order, errors = _order(200, 10, 1, seed), []
    for rate in (0.02, 0.01):
        model = _model(8, 3, 10, seed)
        optimizer = _sgd(model.parameters())
        recorder = TrajectoryRecorder(model, _loss(), optimizer, weights="every")
        rates = [rate if step == 10 else _LR for step in range(len(order))]
        _train(model, (X, y), order, optimizer, recorder, rates)
        recorder.finish()
        values = DataValueEmbedding("exact", propagation="adjoint").embed(recorder)
        columns = values.columns()["step"].to_numpy() == 10
        true = exact_tsloo(recorder, [(10, int(i)) for i in order[10]], (X, y))
        errors.append(float(np.abs(true - values.influence((X, y))[:, columns]).sum()))
    return errors[0] / errors[1]


# --- a convolutional network, and what recording costs -------------------------------------------------------------


def _lenet(seed: int) -> Any:
    torch = _torch()

    torch.manual_seed(seed)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 84), nn.Tanh(), nn.Linear(84, 10),
    ).double()  # fmt: skip


def _convolutional(seed: int) -> tuple[dict[str, float], list[tuple[Any, ...]]]:
    """Rank correlations for LeNet on 400 images, and its rows of the table of costs."""
    torch = _torch()

    pixels, labels = _pixels(seed)
    X, y = torch.as_tensor(pixels).view(-1, 1, 28, 28), torch.as_tensor(labels)
    data, targets = (X[:400], y[:400]), (X[_ROWS : _ROWS + 20], y[_ROWS : _ROWS + 20])
    order = _order(400, _BATCH, 1, seed)

    def recorded(**options: Any) -> TrajectoryRecorder:
        model = _lenet(seed)
        optimizer = _sgd(model.parameters())
        recorder = TrajectoryRecorder(model, _loss(), optimizer, **options)
        _train(model, data, order, optimizer, recorder)
        recorder.finish()
        return recorder

    whole, projected = recorded(weights="every"), recorded(projection=(16, 16), random_state=seed)
    picked = np.random.default_rng(seed).choice(whole.n_rows, 40, replace=False)
    found = {
        "fisher, linear layers, 16 x 16": DataValueEmbedding("fisher").embed(projected).influence(targets)[:, picked]
    }
    for name in ("none", "fisher", "exact"):
        values = DataValueEmbedding(name, propagation="adjoint").embed(whole)
        found[name] = values.influence(targets)[:, picked]
    columns = values.columns().iloc[picked]
    true = exact_tsloo(whole, list(zip(columns["step"].tolist(), columns["index"].tolist(), strict=True)), targets)
    ranks = {name: _rank(scores, true) for name, scores in found.items()}
    return ranks, _costs("LeNet", lambda: _lenet(seed), data, order)


def _costs_of_network(seed: int) -> list[tuple[Any, ...]]:
    data = _components(seed)
    order = _order(_ROWS, _BATCH, 1, seed)
    return _costs("network", lambda: _model(_COMPONENTS, 10, _HIDDEN, seed), (data.X, data.y), order)


def _costs(name: str, make: Callable[[], Any], data: tuple[Any, Any], order: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows of the table: CPU time and memory per step, as multiples of those of plain training."""
    settings: dict[str, dict[str, Any]] = {
        "weights at every 10th step": {"gradients": False, "weights": 10},
        "weights at every step": {"gradients": False, "weights": "every"},
        "gradients, 16 x 16 per linear layer": {"projection": (16, 16)},
        "gradients, half precision": {"precision": "float16"},
        "gradients": {},
    }
    plain, weights = np.inf, 0
    for _ in range(_REPEATS):
        model = make()
        weights = sum(p.numel() * p.element_size() for p in model.parameters())
        plain = min(plain, _seconds(model, data, order, None))
    rows = []
    for what, options in settings.items():
        seconds, nbytes = np.inf, 0
        for _ in range(_REPEATS):
            model = make()
            recorder = TrajectoryRecorder(model, _loss(), _sgd(model.parameters()), **options)
            seconds = min(seconds, _seconds(model, data, order, recorder))
            nbytes = recorder.nbytes
        rows.append((name, what, seconds / plain, nbytes / len(order) / weights))
    return rows


def _seconds(model: Any, data: tuple[Any, Any], order: list[Any], recorder: TrajectoryRecorder | None) -> float:
    optimizer = _sgd(model.parameters())
    start = time.process_time()
    _train(model, data, order, optimizer, recorder)
    return time.process_time() - start


# --- criteria and what is shown ------------------------------------------------------------------------------------


def _rank_criteria(ranks: list[dict[str, float]], *, peer: bool) -> list[Criterion]:
    def values(name: str, less: str = "") -> dict[str, float]:
        return {f"run {i}": found[name] - (found[less] if less else 0.0) for i, found in enumerate(ranks)}

    criteria = [
        Criterion(
            "fisher",
            "Rank correlation of influences (fisher) with retraining is at least 0.6",
            values("fisher"),
            "min",
            ">=",
            0.6,
            tolerance=1e-4,
        ),
        Criterion(
            "fisher-above-none",
            "It is above that without curvature (the product of gradients at both ends)",
            values("fisher", "none"),
            "min",
            ">",
            0.0,
            tolerance=1e-4,
        ),
        Criterion(
            "exact",
            "Rank correlation of influences (exact, adjoint) with retraining is at least 0.9",
            values("exact"),
            "min",
            ">=",
            0.9,
            tolerance=1e-4,
        ),
    ]
    if peer:
        criteria.append(
            Criterion(
                "fisher-above-influence-function",
                "It (fisher) is at least 0.2 above that of the influence function",
                values("fisher", "influence"),
                "min",
                ">=",
                0.2,
            )
        )
    return criteria


_NAMES: Final = {
    "exact": "exact",
    "ggn": "Gauss-Newton",
    "fisher": "fisher",
    "none": "none (final gradients)",
    "tracin": "TracIn (dattri)",
    "influence": "influence function (dattri)",
    "trak": "TRAK (dattri)",
}


def _rank_figure(ranks: list[dict[str, float]]) -> Figure:
    names = [name for name in _NAMES if name in ranks[0]]
    return Figure(
        "intervals",
        "Who predicts what leaving out an example at a step does?",
        "method",
        "rank correlation with retraining",
        (
            Series(
                "mean and range over runs",
                tuple(_NAMES[name] for name in names),
                tuple(float(np.mean([found[name] for found in ranks])) for name in names),
                tuple(min(found[name] for found in ranks) for name in names),
                tuple(max(found[name] for found in ranks) for name in names),
            ),
        ),
        (Line("0.6", 0.6), Line("0.9", 0.9)),
        alt="Mean and range of the rank correlation with retraining by method, from the whole curvature of later "
        "steps to none, and for scores that do not tell steps apart.",
    )


def _phase_figure(phases: dict[tuple[str, str], list[Floats]]) -> Figure:
    tenths = tuple(float(part + 1) for part in range(_PARTS))
    return Figure(
        "lines",
        "When did examples matter most?",
        "tenth of the training",
        "mean |influence|, largest tenth = 1",
        tuple(
            Series(
                f"{curvature}, learning rate: {rate}",
                tenths,
                tuple((np.mean(parts, axis=0) / np.mean(parts, axis=0).max()).tolist()),
            )
            for (curvature, rate), parts in phases.items()
        ),
        alt="Mean absolute influence by tenth of the training, averaged over runs, by curvature, with a learning rate "
        "that warms up and with a constant one.",
    )


def _rank_table(ranks: list[dict[str, float]], title: str) -> Table:
    return Table(
        title,
        (Column("method", "text"), *(Column(f"run {i}") for i in range(len(ranks)))),
        tuple((_NAMES.get(name, name), *(found[name] for found in ranks)) for name in ranks[0]),
    )


def _auc_table(auc: dict[str, list[float]]) -> Table:
    return Table(
        "Finding mislabelled images: area under the ROC curve",
        (Column("curvature", "text"), *(Column(f"run {i}") for i in range(len(auc["fisher"])))),
        tuple((name, *values) for name, values in auc.items()),
    )


def _cost_figure(costs: list[tuple[Any, ...]], column: int, what: str, label: str) -> Figure:
    kept = tuple(dict.fromkeys(row[1] for row in costs))
    return Figure(
        "bars",
        f"What recording costs per step: {what}",
        "what is kept",
        label,
        tuple(
            Series(model, kept, tuple(row[column] for row in costs if row[0] == model))
            for model in dict.fromkeys(row[0] for row in costs)
        ),
        (Line("1", 1.0),),
        alt=f"Bars by what is kept of a training: {what} per step, for a network of one hidden layer and a "
        "convolutional one.",
    )


def _cost_table(rows: list[tuple[Any, ...]]) -> Table:
    return Table(
        "What recording costs per step, as multiples of plain training",
        (
            Column("model", "text"),
            Column("kept", "text"),
            Column("time", help="CPU time of a training that is recorded, over that of one that is not"),
            Column("memory", help="Bytes kept per step, over those of the weights"),
        ),
        tuple(rows),
    )
