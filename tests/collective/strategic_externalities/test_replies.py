"""The path of best replies, against a general solver for one applicant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from aboveboard.collective.strategic_externalities._replies import Paths, Replies, settled


def reply(pull, below, above, A, B):
    paths = Paths.of(pull, below, above)
    lam, r, slope = Replies.of(paths, np.full(len(below), B)).at(np.full(len(below), A))
    return paths.moves(lam), r, slope


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 5),
    A=st.sampled_from([0.0, 0.3, 2.0]),
    B=st.sampled_from([1e-6, 0.5, 30.0]),
)
def test_the_move_meets_the_conditions_of_optimality(seed, d, A, B):
    """Projected onto the bounds, the gradient of pull v - A |v| - B |v|^2 / 2 is nil; at 0, the pull is at most A."""
    rng = np.random.default_rng(seed)
    pull = rng.normal(size=(20, d)) * (rng.random((20, d)) < 0.9)
    below, above = rng.exponential(size=(2, 20, d)) * (rng.random((2, 20, d)) < 0.8)
    moves, r, _ = reply(pull, below, above, A, B)
    assert (moves >= -below).all()
    assert (moves <= above).all()
    assert r == pytest.approx(np.linalg.norm(moves, axis=1), abs=1e-12)
    moved = r > 0
    gradient = pull[moved] - (A / r[moved] + B)[:, None] * moves[moved]
    upwards, downwards = moves[moved] < above[moved], moves[moved] > -below[moved]
    assert (np.where(upwards, gradient, 0.0) <= 1e-9).all()
    assert (np.where(downwards, gradient, 0.0) >= -1e-9).all()
    possible = np.where(pull > 0, above > 0, below > 0) & (pull != 0)
    assert (np.linalg.norm(pull * possible, axis=1)[~moved] <= A + 1e-12).all()


def test_the_slope_is_that_of_central_differences():
    rng = np.random.default_rng(0)
    pull, (below, above) = rng.normal(size=(50, 4)), rng.exponential(size=(2, 50, 4))
    h = 1e-6
    _, _, slope = reply(pull, below, above, 0.5, 0.2)
    differences = (reply(pull, below, above, 0.5 + h, 0.2)[1] - reply(pull, below, above, 0.5 - h, 0.2)[1]) / (2 * h)
    assert slope == pytest.approx(differences, rel=1e-4, abs=1e-6)


def test_the_total_of_a_game_is_the_root_that_a_general_solver_finds():
    rng = np.random.default_rng(1)
    pull, (below, above) = rng.normal(size=(6, 3)), rng.exponential(size=(2, 6, 3))
    replies = Replies.of(Paths.of(pull, below, above), np.full(6, 0.1))
    _, total, _ = settled(replies, np.full(6, 0.05), 0.3, 6)
    miss = minimize_scalar(
        lambda s: (replies.at(np.full(6, 0.05 + 0.3 * s))[1].sum() - s) ** 2, bounds=(0, 20), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert total == pytest.approx([miss.x], abs=1e-5)


def test_nothing_stops_a_move_where_costs_grow_slower_than_gains():
    endless = np.full((1, 2), np.inf)
    paths = Paths.of(np.ones((1, 2)), endless, endless)
    lam, r, _ = Replies.of(paths, np.zeros(1)).at(np.array([0.5]))
    assert lam == 0
    assert r == np.inf
