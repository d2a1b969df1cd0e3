"""GEM: tables that agree with the rows, a ledger that sums to the budget, balanced draws."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.privacy import GEMSynthesizer, PrivateSyntheticBalancer, RDPCurve
from aboveboard.privacy.imbalanced._marginals import counts, workload

pytest.importorskip("torch")


def rows(n=2000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return np.clip(rng.normal(size=(n, d)) + 1.5 * y[:, None], -3, 4), y


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
