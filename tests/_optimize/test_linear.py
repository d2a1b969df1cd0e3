"""Linear and integer programs: known optima, duals that mean what they say, refusals, bounds that bound."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from aboveboard._optimize.linear import InfeasibleError, TimeLimitError, integer_program, linear_program, seconds_left


def test_a_textbook_program_has_its_known_solution():
    # Dantzig's example: maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18
    found = linear_program([-3, -5], np.array([[1, 0], [0, 2], [3, 2]]), [-np.inf] * 3, [4, 12, 18])
    assert found.x == pytest.approx([2, 6])
    assert found.objective == found.bound == pytest.approx(-36)
    assert found.duals == pytest.approx([0, -1.5, -1])
    assert found.optimal


def test_duals_tell_how_the_optimum_moves_with_each_kind_of_row():
    rows = sparse.csr_array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    cost, low, high = [1.0, 2.0, 4.0], np.array([1.0, -np.inf, 0.1]), np.array([1.0, 0.3, np.inf])
    found = linear_program(cost, rows, low, high, high=0.5)
    assert found.x == pytest.approx([0.3, 0.5, 0.2])
    step = 1e-3
    for row, bound in ((0, "both"), (1, "high"), (2, "low")):
        moved = [low.copy(), high.copy()]
        for end, name in enumerate(("low", "high")):
            if bound in ("both", name):
                moved[end][row] += step
        rise = linear_program(cost, rows, *moved, high=0.5).objective - found.objective
        assert found.duals[row] == pytest.approx(rise / step, abs=1e-9)


@given(st.integers(0, 10_000))
def test_strong_duality_holds_for_random_programs(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 6, 2)
    rows = rng.integers(-3, 4, (m, n)).astype(float)
    inside = rng.uniform(0, 2, n)
    kind = rng.integers(0, 3, m)
    low = np.where(kind == 1, -np.inf, rows @ inside)
    high = np.where(kind == 2, np.inf, rows @ inside)
    cost = rng.uniform(0, 3, n)
    found = linear_program(cost, rows, low, high)
    assert found.x.min() >= -1e-9
    assert np.all(rows @ found.x >= low - 1e-7)
    assert np.all(rows @ found.x <= high + 1e-7)
    bound = np.where(np.isfinite(low), low, high)
    assert found.duals @ bound == pytest.approx(found.objective, abs=1e-7)
    assert np.all(cost - rows.T @ found.duals >= -1e-7)


@given(st.integers(0, 10_000))
def test_a_knapsack_is_solved_as_by_trying_everything(seed):
    rng = np.random.default_rng(seed)
    size, value = rng.integers(1, 10, 7), rng.integers(1, 10, 7)
    room = int(size.sum() // 2)
    found = integer_program(-value, size[None, :].astype(float), [-np.inf], [room], np.ones(7, dtype=bool), high=1)
    best = max(value @ pick for pick in map(np.array, itertools.product((0, 1), repeat=7)) if size @ pick <= room)
    assert -found.objective == best
    assert found.x.tolist() == [round(x) for x in found.x]
    assert found.bound <= found.objective
    assert found.bound == pytest.approx(found.objective)
    assert found.optimal


def test_only_marked_unknowns_are_whole():
    rows = np.array([[1.0, 1.0]])
    found = integer_program([1.0, 2.0], rows, [2.5], [np.inf], [True, False])
    assert found.x == pytest.approx([2, 0.5]) or found.x == pytest.approx([3, 0])
    assert found.objective == pytest.approx(3)


def test_what_cannot_be_solved_is_refused_by_kind():
    rows = np.array([[1.0]])
    with pytest.raises(InfeasibleError, match="no x"):
        linear_program([1.0], rows, [2.0], [3.0], high=1.0)
    with pytest.raises(InfeasibleError, match="row 0 must be at least 3 and at most 2"):
        linear_program([1.0], rows, [3.0], [2.0])
    with pytest.raises(InfeasibleError):
        integer_program([1.0], rows, [0.4], [0.6], [True])
    with pytest.raises(ValueError, match="no lower bound"):
        linear_program([-1.0], rows, [0.0], [np.inf])
    with pytest.raises(ValueError, match="shapes do not match"):
        linear_program([1.0, 2.0], rows, [0.0], [1.0])
    with pytest.raises(ValueError, match="integer has shape"):
        integer_program([1.0], rows, [0.0], [1.0], [True, True])


def test_a_time_limit_that_passes_is_an_error_or_an_answer_with_its_bound():
    rng = np.random.default_rng(0)
    n = 300
    rows = sparse.csr_array(np.where(rng.random((200, n)) < 0.2, 100 * rng.random((200, n)), 0.0))
    cost = -rng.integers(1, 100, n)
    high = np.asarray(rows.sum(axis=1)).ravel() / 3
    with pytest.raises(TimeLimitError):
        linear_program(cost, rows, np.full(200, -np.inf), high, high=1, time_limit=1e-9)
    found = integer_program(
        cost, rows, np.full(200, -np.inf), high, np.ones(n, dtype=bool), high=1, gap=0, time_limit=0.5
    )
    assert not found.optimal
    assert found.bound < found.objective
    assert np.all(rows @ found.x <= high + 1e-6)


def test_no_time_is_left_after_the_deadline():
    with pytest.raises(TimeLimitError):
        seconds_left(0.0)
