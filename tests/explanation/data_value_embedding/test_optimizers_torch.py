"""Steps and their derivatives are those of torch.optim and of autograd."""

import pytest

from aboveboard.explanation.data_value_embedding._optimizers import Optimizer, State

torch = pytest.importorskip("torch")

KINDS = ["sgd", "decay", "momentum", "nesterov", "adam", "adamw"]


def state_and_options(loops, kind, steps=4, lr=None):
    """Take steps with torch.optim along given gradients; return its weights, state and options before the last one."""
    generator = torch.Generator().manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(5, generator=generator, dtype=torch.float64))
    optimizer = loops.optimizers[kind]([parameter])
    options = Optimizer.of(optimizer)
    for _ in range(steps):
        state = options.read(optimizer, [parameter], parameter.detach().clone())
        gradient = torch.randn(5, generator=generator, dtype=torch.float64)
        gradient[4] = 0.0  # a weight that is never used
        parameter.grad = gradient
        optimizer.step()
    return options, state, gradient, optimizer, parameter


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_step_is_that_of_torch(loops, kind, steps):
    options, state, gradient, optimizer, parameter = state_and_options(loops, kind, steps)
    after = options.advance(state, gradient, optimizer.param_groups[0]["lr"])
    assert torch.allclose(after.theta, parameter.detach(), rtol=1e-13)
    read = options.read(optimizer, [parameter], parameter.detach())
    if options.moments:
        assert torch.allclose(after.momentum, read.momentum, rtol=1e-13)
        assert torch.allclose(after.square, read.square, rtol=1e-13) or options.kind == "sgd"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 4])
def test_its_derivatives_are_those_of_autograd(loops, kind, steps):
    options, state, gradient, optimizer, _ = state_and_options(loops, kind, steps)
    lr, used = optimizer.param_groups[0]["lr"], slice(0, 4)

    def theta_after(d):
        after = options.advance(State(state.theta, state.momentum, state.square, state.count), d, lr)
        return after.theta

    vectors = None if options.kind == "sgd" else options.vectors(state, gradient, lr)
    step = options.step_map(lr, vectors)
    found = -(step.direct + step.gain * step.kappa) * torch.ones(5, dtype=torch.float64)
    if step.slope is not None:
        found = found - step.square_gain * step.slope
        assert torch.isfinite(step.square_gain).all()
    expected = torch.autograd.functional.jacobian(theta_after, gradient).diagonal()
    assert torch.allclose(found[used], expected[used], rtol=1e-10)


def test_the_bound_of_stability_is_where_a_quadratic_stops_converging(loops):
    for kind in ("sgd", "momentum", "nesterov"):
        shown = []
        for factor in (0.98, 1.02):
            parameter = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
            optimizer = loops.optimizers[kind]([parameter])
            bound = Optimizer.of(optimizer).stable_below
            for _ in range(800):
                parameter.grad = factor * bound / optimizer.param_groups[0]["lr"] * parameter.detach()
                if optimizer.param_groups[0]["weight_decay"]:
                    parameter.grad = parameter.grad - optimizer.param_groups[0]["weight_decay"] * parameter.detach()
                optimizer.step()
            shown.append(float(parameter.abs().detach()))
        assert shown[0] < 1e-3
        assert shown[1] > 1e3
    assert Optimizer.of(loops.optimizers["adam"]([torch.nn.Parameter(torch.ones(1))])).stable_below == float("inf")
