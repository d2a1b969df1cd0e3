"""A network trained by clipped, weighted, noisy gradients: what one row can do, what noise that takes, the refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.core import InputError
from aboveboard.privacy import PrivateWeightedSGDClassifier, gaussian_delta
from aboveboard.privacy.imbalanced._dpsgd import weighted_gradient_sums

torch = pytest.importorskip("torch")


def rows(n=2000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return np.clip(rng.normal(size=(n, d)) + 1.5 * y[:, None], -3, 4), y


ACCURATE = PrivateWeightedSGDClassifier(
    epsilon=1e4, delta=1e-3, sampling_rate=0.5, epochs=40, learning_rate=0.05, clip_norm=10.0, random_state=0
)


@parametrize_with_checks([ACCURATE])
def test_torch_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    share=st.floats(0.001, 1),
    clip_norm=st.floats(0.01, 10),
    size=st.floats(0.01, 1000),
)
def test_torch_no_row_moves_the_sum_by_more_than_the_clipping_norm_whatever_its_weight(seed, share, clip_norm, size):
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    sums = weighted_gradient_sums(
        torch, module, size * torch.randn(1, 3), torch.ones(1), torch.tensor([share]), clip_norm
    )
    norm = math.sqrt(sum(float(part.square().sum()) for part in sums.values()))
    assert norm <= share * clip_norm * (1 + 1e-5)


def test_torch_sums_are_those_of_one_row_after_another():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    X, y, share = torch.randn(20, 3), (torch.rand(20) < 0.5).float(), torch.rand(20)
    expected = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    for row, label, weight in zip(X, y, share, strict=True):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(row)[0], label)
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        norm = torch.sqrt(sum(part.square().sum() for part in gradients))
        for name, part in zip(expected, gradients, strict=True):
            expected[name] += weight * part * min(1.0, 0.3 / float(norm))
    found = weighted_gradient_sums(torch, module, X, y, share, 0.3)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, atol=1e-5)


def test_torch_the_noise_is_no_less_than_the_exact_analysis_of_full_batches_asks_for():
    """With every row in every step, T steps are one Gaussian of multiplier sigma / sqrt(T), whose delta is known."""
    X, y = rows(200)
    model = PrivateWeightedSGDClassifier(1.0, 1e-5, class_weight=None, sampling_rate=1.0, epochs=9, random_state=0).fit(
        X, y
    )
    exact = gaussian_delta(1.0, model.noise_multiplier_ / 3)
    assert 1e-7 < exact <= 1e-5


def test_torch_private_class_weights_are_part_of_the_budget():
    X, y = rows(300)
    options = {"epochs": 2, "random_state": 0}
    free = PrivateWeightedSGDClassifier(1.0, class_weight=None, **options).fit(X, y)
    paid = PrivateWeightedSGDClassifier(1.0, **options).fit(X, y)
    assert paid.noise_multiplier_ > free.noise_multiplier_
    for model in (free, paid):
        assert 0.99 < model.certificate_.parameters["epsilon"] <= 1.0
    assert paid.certificate_.parameters["epsilon_class_weights"] == pytest.approx(0.1)
    assert paid.certificate_.parameters["adjacency"] == "add_remove"


def test_torch_weights_raise_the_recall_of_the_rare_class():
    X, y = rows(4000)
    recalls = {}
    for class_weight in ("private", None):
        model = PrivateWeightedSGDClassifier(
            8.0, module="logistic", class_weight=class_weight, epochs=5, random_state=0
        ).fit(X, y)
        recalls[class_weight] = (model.predict(X)[y == 1] == 1).mean()
    assert recalls["private"] > recalls[None] + 0.1


def test_torch_a_module_of_ones_own_is_trained_and_batch_normalisation_is_refused():
    X, y = rows(200)
    options = {"epochs": 1, "random_state": 0}
    own = PrivateWeightedSGDClassifier(
        module=lambda d: torch.nn.Sequential(torch.nn.LayerNorm(d), torch.nn.Linear(d, 1)), **options
    ).fit(X, y)
    assert own.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    normalised = PrivateWeightedSGDClassifier(
        module=lambda d: torch.nn.Sequential(torch.nn.BatchNorm1d(d), torch.nn.Linear(d, 1)), **options
    )
    with pytest.raises(InputError, match="normalises batches"):
        normalised.fit(X, y)
    with pytest.raises(InputError, match="module gave"):
        PrivateWeightedSGDClassifier(module=lambda d: d).fit(X, y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"sampling_rate": 0}, "sampling_rate"),
        ({"sampling_rate": 1.5}, "sampling_rate"),
        ({"epochs": 0}, "epochs"),
        ({"clip_norm": 0}, "clip_norm"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"module": "cnn"}, "module"),
        ({"class_weight": "balanced_public"}, "balanced_public"),
    ],
)
def test_torch_bad_options_are_refused(options, said):
    X, y = rows(50)
    with pytest.raises(InputError, match=said):
        PrivateWeightedSGDClassifier(**options).fit(X, y)
