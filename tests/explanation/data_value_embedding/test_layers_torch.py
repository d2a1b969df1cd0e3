"""Projected gradients of linear layers: those of autograd, under the Kronecker product of the two matrices."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.explanation import DataValueEmbedding, TrajectoryRecorder
from aboveboard.explanation.data_value_embedding._layers import ProjectedLayers
from aboveboard.explanation.data_value_embedding._losses import Losses

torch = pytest.importorskip("torch")

cross_entropy = torch.nn.functional.cross_entropy


class Words(torch.nn.Module):
    """A layer that is used twice, at several places, and in front of an operation that changes its input."""

    def __init__(self):
        super().__init__()
        self.mix, self.relu = torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True)
        self.head = torch.nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return self.head(self.relu(self.mix(torch.tanh(self.mix(x)))).mean(dim=1))


@pytest.fixture
def words():
    torch.manual_seed(0)
    X = torch.randn(3, 5, 4, dtype=torch.float64)
    return Words().double(), (X,), torch.tensor([0, 1, 2])


def layer_gradients(losses, theta, batch):
    """Return autograd's gradients, by layer as matrices (n, out, in), the bias as last column."""
    rows = losses.gradients(theta, batch)
    named = dict(zip(("mix.weight", "mix.bias", "head.weight"), rows.split([16, 4, 12], dim=1), strict=True))
    mix = torch.cat([named["mix.weight"].view(-1, 4, 4), named["mix.bias"][:, :, None]], dim=2)
    return [mix, named["head.weight"].view(-1, 3, 4)]


@pytest.mark.parametrize("sizes", [(9, 9), (2, 9), (3, 2)])
def test_rows_are_autograds_under_both_matrices(words, sizes):
    model, inputs, y = words
    losses = Losses(model, cross_entropy, ("mix", "head"))
    layers = ProjectedLayers.drawn(losses, ("mix", "head"), sizes, np.random.default_rng(0))
    theta = losses.packed()
    expected = []
    for matrix, into, out in zip(layer_gradients(losses, theta, (inputs, y)), layers.into, layers.out, strict=True):
        left = torch.eye(matrix.shape[1], dtype=torch.float64) if out is None else out
        right = torch.eye(matrix.shape[2], dtype=torch.float64) if into is None else into
        expected.append((left @ matrix @ right.T).flatten(1))
    assert torch.allclose(layers.gradients(theta, (inputs, y)), torch.cat(expected, dim=1))
    assert layers.size == sum(part.shape[1] for part in expected)


def test_random_projections_keep_products_of_gradients_on_average(words):
    model, inputs, y = words
    losses = Losses(model, cross_entropy, ("head",))
    theta, rng = losses.packed(), np.random.default_rng(0)
    full = ProjectedLayers.of(losses, ("head",), [None, None]).gradients(theta, (inputs, y))
    target = (full @ full.T).numpy()
    draws = np.array(
        [
            (rows @ rows.T).numpy()
            for rows in (
                ProjectedLayers.drawn(losses, ("head",), (2, 2), rng).gradients(theta, (inputs, y)) for _ in range(1000)
            )
        ]
    )
    errors = np.abs(draws.mean(axis=0) - target) / (draws.std(axis=0) / np.sqrt(len(draws)))
    assert errors.max() < 4.5  # 6 figures, each beyond this with a chance of 7e-6


def test_orthogonal_matrices_leave_influences_as_they_are(loops):
    model, (X, y) = torch.nn.Linear(4, 3).double(), loops.problem()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = TrajectoryRecorder(model, cross_entropy, optimizer)
    turned = TrajectoryRecorder(model, cross_entropy, optimizer, projection=(9, 9))
    rng = np.random.default_rng(0)
    matrices = [np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (5, 3)]
    turned._trajectory.projected = ProjectedLayers.of(turned._trajectory.losses, ("",), matrices)

    class Both:
        def step(self, batch, indices):
            plain.step(batch, indices)
            turned.step(batch, indices)

        def finish(self):
            plain.finish()
            turned.finish()

    loops.train(model, (X, y), loops.batches(), optimizer, recorder=Both())
    found = [DataValueEmbedding().embed(recorder).influence((X[:5], y[:5])) for recorder in (plain, turned)]
    assert np.allclose(*found, rtol=1e-9, atol=1e-14)


def test_layers_are_blocks_without_curvature_between_them(loops):
    model, (X, y), order = loops.network(), loops.problem(), loops.batches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer, projection=(99, 99))
    loops.train(model, (X, y), order, optimizer, recorder=recorder)
    E = DataValueEmbedding().embed(recorder).embeddings_.E
    trajectory = recorder._trajectory
    for block in trajectory.blocks:
        product = np.eye(block.stop - block.start)
        for step in reversed(range(len(order))):
            rows = trajectory._rows(step)[:, block].numpy()
            assert np.allclose(E[8 * step : 8 * step + 8, block], 0.1 / 8 * rows @ product.T, atol=1e-15)
            product = product @ (np.eye(len(product)) - 0.1 / 8 * rows.T @ rows)


def test_a_layer_that_the_model_does_not_use_and_a_model_without_layers_are_refused(loops):
    class Idle(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.used(x)

    X, y = loops.problem()
    with pytest.raises(InputError, match="does not use its layer 'idle'"):
        TrajectoryRecorder(Idle().double(), cross_entropy, projection=(2, 2)).step((X, y), range(40), 0.1)
    with pytest.raises(InputError, match="no linear layer"):
        TrajectoryRecorder(torch.nn.Conv1d(1, 1, 1), cross_entropy, projection=(2, 2))
