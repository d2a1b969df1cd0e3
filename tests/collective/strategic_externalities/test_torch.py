"""The layer in PyTorch: values of the game, and gradients that PyTorch's own check accepts."""

import numpy as np
import pytest

from aboveboard.collective import ManipulationGame

torch = pytest.importorskip("torch")


def layer(game):
    from aboveboard.collective import EquilibriumLayer

    return EquilibriumLayer(game)


def setting(seed=0, shape=(2, 5, 3)):
    rng = np.random.default_rng(seed)
    X = torch.tensor(np.clip(rng.normal(size=shape), -1.9, 1.9), requires_grad=True)
    return X, torch.tensor(rng.normal(size=shape[-1]), requires_grad=True)


@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0)])
@pytest.mark.parametrize(
    "options",
    [
        {"cost": "l2", "alpha": 0.1, "beta": 0.05},
        {"cost": "squared_l2", "alpha": 0.3, "beta": 0.05, "gain": 1.3},
        {
            "cost": "squared_l2",
            "externality": "proportional",
            "alpha": 0.3,
            "beta": 0.2,
            "cost_weights": [1.0, 2.0, 0.5],
        },
        {"cost": "squared_l2", "externality": None, "alpha": 0.3},
    ],
    ids=["l2", "squared", "proportional", "alone"],
)
def test_gradients_pass_the_check_of_pytorch(options, bounds):
    game = ManipulationGame(**options, bounds=bounds)
    X, weight = setting()
    assert torch.autograd.gradcheck(layer(game), (X, weight), eps=1e-6, atol=1e-5, rtol=1e-4)


def test_the_forward_pass_is_the_equilibrium():
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=(-2, 2))
    X, weight = setting()
    found = layer(game)(X, weight)
    expected = game.equilibrium(X.detach().numpy(), weight.detach().numpy()).X_reported
    assert (found.detach().numpy() == expected).all()


def test_single_precision_comes_back_as_single_precision():
    X, weight = setting()
    found = layer(ManipulationGame())(X.detach().float(), weight.detach().float().requires_grad_())
    assert found.dtype == torch.float32
    found.sum().backward()


def test_it_is_a_module_without_parameters_and_a_score_is_learned_through_it():
    game = ManipulationGame(cost="squared_l2", alpha=0.1, beta=0.01, bounds=(-2, 2))
    module = layer(game)
    assert isinstance(module, torch.nn.Module)
    assert not list(module.parameters())
    assert "squared_l2" in repr(module)
    X, weight = setting(shape=(10, 8, 3))
    X = X.detach()
    label = (X.sum(-1) > 0).double()
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([weight, bias], lr=0.15)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(X, weight) @ weight + bias, label)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


def test_only_weights_have_a_gradient_where_the_externality_is_one_s_own():
    def crowded(x_i, r_i, x_j, r_j):
        both = (r_i - x_i) + (r_j - x_j)
        return 0.05 * (both**2).sum(-1), 0.1 * both

    game = ManipulationGame(cost="squared_l2", alpha=0.3, externality=crowded)
    X, weight = setting(shape=(4, 3))
    assert torch.autograd.gradcheck(lambda w: layer(game)(X.detach(), w), (weight,), atol=1e-4, rtol=1e-3)
