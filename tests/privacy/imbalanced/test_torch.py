"""What needs PyTorch: GEM, and a network trained by weighted, clipped, noisy gradients."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from aboveboard.core import InputError  # noqa: E402
from aboveboard.privacy import (  # noqa: E402
    GEMSynthesizer,
    PrivateSyntheticBalancer,
    PrivateWeightedSGDClassifier,
    RDPCurve,
    gaussian_delta,
)
from aboveboard.privacy.imbalanced._dpsgd import weighted_gradient_sums  # noqa: E402
from aboveboard.privacy.imbalanced._marginals import counts, workload  # noqa: E402


def rows(n=2000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return np.clip(rng.normal(size=(n, d)) + 1.5 * y[:, None], -3, 4), y


# --- GEM -------------------------------------------------------------------------------------------------------------


def test_torch_gem_matches_all_tables_when_the_budget_is_huge():
    X, y = rows()
    options = {"batch_size": 100, "learning_rate": 2e-3, "steps": 300, "random_state": 0}
    synthesizer = GEMSynthesizer(1e8, 1e-6, bins=3, bounds=(-3, 4), rounds=4, **options).fit(X, y)
    codes = np.column_stack([synthesizer._codebook.encode(X), y])
    mixture, sizes = synthesizer._mixture, (3, 3, 2)
    for query in workload(2):
        letters = "abc"[: len(query)]
        terms = ",".join(f"z{letter}" for letter in letters)
        answer = np.einsum(f"{terms}->{letters}", *(mixture[:, j, : sizes[j]] for j in query)) / len(mixture)
        assert np.abs(answer - counts(codes, sizes, query) / len(y)).max() < 2e-3


def test_torch_gem_draws_each_class_as_it_is():
    X, y = rows()
    synthesizer = GEMSynthesizer(1e8, 1e-6, bins=8, bounds=(-3, 4), rounds=4, batch_size=100, random_state=0).fit(X, y)
    for label in (0, 1):
        drawn, labels = synthesizer.sample(5000, y=label)
        assert (labels == label).all()
        assert np.allclose(drawn.mean(axis=0), X[y == label].mean(axis=0), atol=0.2)
    assert synthesizer.sample(5000)[1].mean() == pytest.approx(y.mean(), abs=0.02)


@pytest.mark.parametrize("rounds", [None, 2, 50])
def test_torch_the_ledger_of_gem_sums_to_rho(rounds):
    X, y = rows(300, 3)
    synthesizer = GEMSynthesizer(1.0, 1e-6, bounds=(-3, 4), rounds=rounds, steps=2, random_state=0).fit(X, y)
    p = synthesizer.certificate_.parameters
    assert p["rho_measuring"] + p["rho_selecting"] == pytest.approx(p["rho"])
    assert p["rounds"] * 2 / (2 * p["noise_std"] ** 2) == pytest.approx(p["rho_measuring"])
    assert RDPCurve.concentrated(p["rho"], adjacency="replace_one").epsilon(1e-6) == pytest.approx(1.0, rel=1e-4)
    assert len(set(synthesizer.measured_)) == p["rounds"] == {None: 3, 2: 2, 50: 9}[rounds]


def test_torch_gem_measures_the_table_that_is_most_wrong():
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    X = np.column_stack([rng.random(4000), (y + rng.random(4000)) / 2])  # the second column tells the label
    synthesizer = GEMSynthesizer(100.0, 1e-6, bins=4, bounds=(0, 1), rounds=1, random_state=0).fit(X, y)
    assert set(synthesizer.measured_[0]) >= {1, 2}


def test_torch_gem_balances_and_repeats_with_its_seed():
    X, y = rows(400)
    draws = [
        PrivateSyntheticBalancer(1.0, bounds=(-3, 4), rounds=1, random_state=3).fit_resample(X, y) for _ in range(2)
    ]
    assert np.array_equal(draws[0][0], draws[1][0])
    assert draws[0][1].mean() == 0.5
    with pytest.raises(InputError, match="rounds"):
        GEMSynthesizer(rounds=0).fit(X, y)


# --- noisy gradients -------------------------------------------------------------------------------------------------


EXPECTED = PrivateWeightedSGDClassifier(
    epsilon=1e4, delta=1e-3, sampling_rate=0.5, epochs=40, learning_rate=0.05, clip_norm=10.0, random_state=0
)


@parametrize_with_checks([EXPECTED])
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
