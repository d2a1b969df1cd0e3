"""Gradients of modules against those of one example at a time, and against the closed form of softmax regression."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.privacy import CafCorTrainer, FederatedNoise, ModuleObjective, SoftmaxRegression, clipped_mean

torch = pytest.importorskip("torch")


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).double()


def examples(n=7):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 6)), rng.integers(0, 3, n)


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_the_sum_is_that_of_one_backward_pass_per_example(chunk):
    module, (X, y) = network(), examples()
    rows = []
    for x, label in zip(torch.as_tensor(X), torch.as_tensor(y), strict=True):
        module.zero_grad()
        torch.nn.functional.cross_entropy(module(x[None]), label[None]).backward()
        rows.append(np.concatenate([p.grad.numpy().ravel() for p in module.parameters()]))
    objective = ModuleObjective(module, chunk=chunk)
    found = objective.clipped_sum(objective.initial(), *objective.check(X, y), 0.5)
    np.testing.assert_allclose(found, clipped_mean(rows, 0.5) * len(X), rtol=1e-9, atol=1e-12)


def test_a_linear_module_is_softmax_regression():
    X, y = examples()
    module = torch.nn.Linear(6, 3).double()
    objective, closed = ModuleObjective(module), SoftmaxRegression(6, 3)
    parameters = np.random.default_rng(0).normal(size=closed.dimension)
    table = parameters.reshape(7, 3)
    swapped = np.concatenate([table[:-1].T.ravel(), table[-1]])
    found = objective.clipped_sum(swapped, *objective.check(X, y), 0.7)
    expected = closed.clipped_sum(parameters, X, y, 0.7).reshape(7, 3)
    np.testing.assert_allclose(found, np.concatenate([expected[:-1].T.ravel(), expected[-1]]), rtol=1e-9)
    np.testing.assert_allclose(objective.decision(swapped, X), closed.decision(parameters, X), rtol=1e-9)


def test_the_trainer_returns_a_trained_copy_and_leaves_the_module_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    module = network()
    before = ModuleObjective(module).initial()
    noise = FederatedNoise(n_clients=5, byzantine=1, sigma_ind=0.01, sigma_cor=0.01, batch_size=40, steps=60)
    clients = [(X[start::5], y[start::5]) for start in range(5)]
    trainer = CafCorTrainer(module, noise, learning_rate=2.0, random_state=0).fit(clients)
    np.testing.assert_array_equal(ModuleObjective(module).initial(), before)
    np.testing.assert_array_equal(ModuleObjective(trainer.model_).initial(), trainer.parameters_)
    with torch.no_grad():
        np.testing.assert_array_equal(trainer.model_(torch.as_tensor(X)).argmax(1).numpy(), trainer.predict(X))
    assert (trainer.predict(X) == y).mean() > 0.8


def test_parameters_that_are_frozen_stay_as_they_are():
    module = network()
    module[0].requires_grad_(False)
    objective = ModuleObjective(module)
    assert objective.dimension == 18
    moved = objective.module(objective.initial() + 1.0)
    assert torch.equal(moved[0].weight, module[0].weight)
    assert torch.allclose(moved[2].weight, module[2].weight + 1.0)


def test_batch_normalisation_is_refused():
    with pytest.raises(InputError, match="batch normalisation"):
        ModuleObjective(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
