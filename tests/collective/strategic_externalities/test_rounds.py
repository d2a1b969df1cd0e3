"""Rounds and what a score is worth in them."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score
from sklearn.metrics import log_loss as reference_loss

from aboveboard.collective import ManipulationGame, performance_at_equilibrium
from aboveboard.collective.strategic_externalities._rounds import drawn_rounds, shuffled_rounds
from aboveboard.core import InputError


def task(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)), -2, 2)
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), np.array([1.5, 0.2, -0.3])


def test_nobody_is_twice_in_a_round_and_a_shuffle_uses_every_row_at_most_once():
    rng = np.random.default_rng(0)
    for sizes in (7, stats.poisson(7)):
        shuffled = shuffled_rounds(100, sizes, 1, rng)
        used = np.concatenate([index.ravel() for index in shuffled.values()])
        assert len(set(used)) == len(used)
        assert len(used) >= 80
        twice = np.concatenate([index.ravel() for index in shuffled_rounds(100, sizes, 2, rng).values()])
        assert np.bincount(twice).max() == 2
        for n, index in drawn_rounds(100, sizes, 40, rng).items():
            assert index.shape[1] == n
            assert all(len(set(row)) == n for row in index)
    assert sum(len(index) for index in drawn_rounds(100, stats.poisson(7), 40, rng).values()) == 40


def test_rounds_have_the_sizes_of_the_distribution():
    found = drawn_rounds(100, stats.poisson(5), 4000, np.random.default_rng(0))
    share = {n: len(index) / 4000 for n, index in found.items()}
    above_nil = 1 - stats.poisson(5).pmf(0)
    for n in range(2, 9):
        assert share[n] == pytest.approx(stats.poisson(5).pmf(n) / above_nil, abs=0.025)


def test_figures_before_are_those_of_scikit_learn_where_everybody_plays_once():
    X, y, w = task()
    found = performance_at_equilibrium(
        w, 0.1, X, y, game=ManipulationGame(alpha=1e3), n_agents=200, n_rounds=1, random_state=0
    )
    score = X @ w + 0.1
    assert found.clean_accuracy == found.accuracy == pytest.approx(accuracy_score(y, score > 0))
    assert found.clean_log_loss == pytest.approx(reference_loss(y, 1 / (1 + np.exp(-score))))
    assert found.displacement == 0


def test_without_bounds_the_score_of_everybody_rises_alike():
    X, y, w = task()
    game = ManipulationGame(alpha=0.1, beta=0.05)
    found = performance_at_equilibrium(w, 0.1, X, y, game=game, n_agents=200, n_rounds=1, random_state=0)
    G = np.linalg.norm(w)
    r = (G - 0.1) / (4 * 0.05 * 199)
    assert found.displacement == pytest.approx(r)
    assert found.accuracy == pytest.approx(accuracy_score(y, X @ w + 0.1 + G * r > 0))


def test_noise_changes_nothing_without_bounds_and_little_with_them():
    X, y, w = task(400)
    options = {"n_agents": 8, "n_rounds": 200, "random_state": 3}
    free = ManipulationGame(cost="squared_l2", alpha=0.1, beta=0.01)
    still, noisy = (performance_at_equilibrium(w, 0, X, y, game=free, noise=s, **options) for s in (0.0, 0.5))
    assert noisy.displacement == pytest.approx(still.displacement, rel=1e-9)
    boxed = ManipulationGame(cost="squared_l2", alpha=0.1, beta=0.01, bounds=(-2, 2))
    still, little, much = (
        performance_at_equilibrium(w, 0, X, y, game=boxed, noise=s, **options) for s in (0.0, 0.01, 1.0)
    )
    assert little.displacement == pytest.approx(still.displacement, abs=0.05)
    assert little.displacement != still.displacement
    assert 0 <= much.accuracy <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(200, 3)}, "0 and 1"),
        ({"y": np.zeros(3)}, "0 and 1"),
        ({"noise": -1.0}, "noise is -1.0"),
        ({"n_rounds": 0}, "n_rounds is 0"),
        ({"n_agents": "many"}, "n_agents is 'many'"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    X, y, w = task()
    with pytest.raises(InputError, match=message):
        performance_at_equilibrium(w, 0.0, X, **({"y": y} | change))
