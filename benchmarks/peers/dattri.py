"""dattri's scores of the same training: DVEmb, influence function, TracIn, TRAK; run in an environment of its own."""

import time

import torch
from dattri.algorithm import DVEmbAttributor, IFAttributorExplicit, TracInAttributor, TRAKAttributor
from dattri.task import AttributionTask
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def scores(X, y, X_targets, y_targets, weights, batches, epochs, *, hidden, lr, regularization):
    """Return, for each method, the scores of shape (targets, examples), and its seconds.

    `weights` holds those before every step and the final ones, `batches` the examples of each step and `epochs` the
    epoch that each step belongs to. Its scores are the rise of the loss when an example is left out, like ours.
    """
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, int(y.max()) + 1)
    ).double()
    X, X_targets = torch.as_tensor(X), torch.as_tensor(X_targets)
    y, y_targets = torch.as_tensor(y), torch.as_tensor(y_targets)
    train, targets = (DataLoader(TensorDataset(*pair), len(pair[0])) for pair in ((X, y), (X_targets, y_targets)))
    final = _state(model, weights[-1])
    ends = [max(step for step, epoch in enumerate(epochs) if epoch == wanted) + 1 for wanted in sorted(set(epochs))]
    checkpoints = [_state(model, weights[end]) for end in ends]
    found, seconds = {}, {}

    start = time.process_time()
    task = AttributionTask(loss_func=_row_loss(model), model=model, checkpoints=final)
    embedding = DVEmbAttributor(task)
    for theta, batch, epoch in zip(weights[:-1], batches, epochs, strict=True):
        model.load_state_dict(_state(model, theta))
        indices = torch.as_tensor(batch)
        embedding.cache_gradients(int(epoch), (X[indices], y[indices]), indices, lr)
    model.load_state_dict(final)
    embedding.cache()
    found["dvemb"] = embedding.attribute(targets).T
    seconds["dvemb"] = time.process_time() - start

    task = AttributionTask(loss_func=_row_loss(model), model=model, checkpoints=final)
    start = time.process_time()
    influence = IFAttributorExplicit(task, regularization=regularization)
    influence.cache(train)
    found["influence"] = influence.attribute(train, targets).T
    seconds["influence"] = time.process_time() - start

    start = time.process_time()
    task = AttributionTask(loss_func=_row_loss(model), model=model, checkpoints=checkpoints)
    tracin = TracInAttributor(task, torch.ones(len(checkpoints)), normalized_grad=False)
    found["tracin"] = tracin.attribute(train, targets).T
    seconds["tracin"] = time.process_time() - start

    start = time.process_time()
    task = AttributionTask(loss_func=_row_loss(model), model=model, checkpoints=final)
    trak = TRAKAttributor(task, _probability(model), projector_kwargs={"proj_dim": 512})
    trak.cache(train)
    found["trak"] = trak.attribute(targets).T
    seconds["trak"] = time.process_time() - start
    return {**{name: value.detach().double().numpy() for name, value in found.items()}, "seconds": seconds}


def _state(model, flat):
    parameters = dict(model.named_parameters())
    parts = torch.as_tensor(flat).split([p.numel() for p in parameters.values()])
    return {name: part.view(p.shape).clone() for (name, p), part in zip(parameters.items(), parts, strict=True)}


def _row_loss(model):
    def loss(params, data):
        inputs, labels = data
        outputs = functional_call(model, params, inputs.reshape(-1, inputs.shape[-1]))
        return cross_entropy(outputs, labels.reshape(-1))

    return loss


def _probability(model):
    row_loss = _row_loss(model)

    def probability(params, data):
        return torch.exp(-row_loss(params, data))

    return probability
