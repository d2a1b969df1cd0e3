"""PyTorch modules: lists of them, and one with dropout."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.uncertainty import RiskDecomposition

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)


def net(seed, out=3, p=0.0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(p), nn.Linear(16, out))


def test_torch_modules_of_a_list_are_asked_for_the_softmax_of_their_logits():
    nets = [net(0), net(1)]
    members = RiskDecomposition(nets, temperature=2.0, batch_size=7).member_proba(X)
    with torch.no_grad():
        expected = [torch.softmax(n.eval()(torch.tensor(X)).double() / 2, dim=1).numpy() for n in nets]
    assert members == pytest.approx(np.stack(expected), abs=1e-6)
    assert RiskDecomposition(nets).member_proba(torch.tensor(X)).shape == (2, 30, 3)


def test_torch_dropout_is_drawn_anew_and_the_module_is_left_as_it_was():
    module = net(0, p=0.5)
    module.train()
    module[0].eval()
    decomposition = RiskDecomposition(module, n_draws=200, random_state=3)
    state = torch.get_rng_state()
    members = decomposition.member_proba(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert [part.training for part in module] == [False, True, True, True]
    assert members == pytest.approx(decomposition.member_proba(X))
    assert members.std(axis=0).min() > 0.001
    assert (decomposition.measures(X)["log", "excess", "outer", "inner"] > 0).all()


def test_torch_modules_with_one_output_speak_of_two_classes():
    members = RiskDecomposition([net(0, out=1), net(1, out=1)]).member_proba(X)
    assert members.shape == (2, 30, 2)
    assert members.sum(axis=2) == pytest.approx(1)


def test_torch_errors_are_found_where_labels_are_numbers():
    nets = [net(0), net(1), net(2)]
    said = RiskDecomposition(nets).member_proba(X).mean(0).argmax(1)
    table = RiskDecomposition(nets, names=["predictive_entropy"]).compare(X, np.where(np.arange(30) < 12, 9, said))
    assert set(table["events"]) == {12}


def test_torch_modules_without_dropout_or_with_other_shapes_are_refused():
    with pytest.raises(InputError, match="no dropout"):
        RiskDecomposition(net(0)).member_proba(X)
    with pytest.raises(InputError, match="logits of shape"):
        RiskDecomposition([nn.Unflatten(1, (2, 2))] * 2).member_proba(X)
    with pytest.raises(InputError, match="not both"):
        RiskDecomposition([net(0), object()]).member_proba(X)
