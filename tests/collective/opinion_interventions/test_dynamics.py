"""The administrator's dynamics do what they are known for: on two users, the wrong thing."""

import numpy as np
import pytest

from aboveboard.collective import FrobeniusBall, Intersection, RowSimplex, administrator_dynamics
from aboveboard.core import InputError


def test_two_users_are_parted_and_disagree_more():
    path = administrator_dynamics([[0, 1], [1, 0]], [1, 0])
    assert path.weights.toarray() == pytest.approx(np.array([[0, 0.8], [0.8, 0]]))
    assert path.disagreement[[0, -1]] == pytest.approx([1 / 9, 0.8 / 2.6**2])
    assert path.opinions == pytest.approx([1.8 / 2.6, 0.8 / 2.6])


def test_the_first_step_is_the_best_if_opinions_stood_still():
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((8, 8)), 1)
    W, s = W + W.T, rng.normal(size=8)
    first = administrator_dynamics(W, s, constraint=FrobeniusBall(0.1), max_iter=1).weights.toarray()
    y = np.linalg.solve(np.eye(8) + np.diag(W.sum(axis=1)) - W, s)
    gaps = (y[:, None] - y[None, :]) ** 2
    radius = 0.1 * np.linalg.norm(W)
    for _ in range(200):
        other = rng.normal(size=(8, 8)) * (1 - np.eye(8))
        other = np.maximum(W + radius * (other + other.T) / np.linalg.norm(other + other.T), 0)
        assert (gaps * first).sum() <= (gaps * other).sum() + 1e-9


def test_totals_can_be_kept():
    rng = np.random.default_rng(1)
    W = np.triu(rng.random((8, 8)), 1)
    W, s = W + W.T, rng.normal(size=8)
    path = administrator_dynamics(W, s, constraint=Intersection(FrobeniusBall(0.2), RowSimplex()))
    assert path.weights.toarray().sum(axis=1) == pytest.approx(W.sum(axis=1))


def test_equal_opinions_leave_everything_as_it_is():
    path = administrator_dynamics([[0, 1], [1, 0]], [1, 1])
    assert path.weights.toarray().tolist() == [[0, 1], [1, 0]]
    assert len(path.disagreement) == 1


def test_a_step_at_least_is_needed():
    with pytest.raises(InputError, match="max_iter is 0"):
        administrator_dynamics([[0, 1], [1, 0]], [1, 0], max_iter=0)
