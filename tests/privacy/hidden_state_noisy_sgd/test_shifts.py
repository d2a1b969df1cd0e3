"""The planner against a general solver of quadratic programs, closed forms, dynamic programming and random plans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aboveboard.privacy.hidden_state_noisy_sgd._shifts import GridPlanner, LinearPlanner, Uses


def tracked(modulus, uses, diameter):
    """D_0, ..., D_T, step by step."""
    found = [0.0]
    for t in range(uses.steps):
        found.append(min(diameter, modulus(found[-1]) + uses.at(uses.steps - 1 - t)))
    return found


def leftovers(modulus, uses, start, distance, shifts):
    """z_start, ..., z_T of a plan."""
    found = [distance]
    for t, shift in enumerate(shifts, start):
        found.append(modulus(found[-1]) + uses.at(uses.steps - 1 - t) - shift)
    return np.array(found)


def by_quadratic_programming(c, uses, diameter):
    """The least cost over all starts, from a solver that knows nothing of the structure."""
    distances, best = tracked(lambda z: c * z, uses, diameter), np.inf
    for start in range(uses.steps):

        def left(shifts, start=start):
            return leftovers(lambda z: c * z, uses, start, distances[start], shifts)[1:]

        k = uses.steps - start
        done = minimize(
            lambda a: a @ a,
            np.full(k, 0.5),
            jac=lambda a: 2 * a,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
            constraints=[
                {"type": "ineq", "fun": lambda a, left=left: left(a)[:-1]},
                {"type": "eq", "fun": lambda a, left=left: left(a)[-1:]},
            ],
        )
        best = min(best, done.fun if done.success else np.inf)
    return best


@pytest.mark.parametrize("c", [0.7, 1.0, 1.3])
@pytest.mark.parametrize(("period", "offset"), [(1, 0), (3, 0), (3, 2)])
@pytest.mark.parametrize("diameter", [0.4, 5.0])
def test_the_linear_plan_is_the_optimum_of_the_quadratic_program(c, period, offset, diameter):
    uses = Uses(7, 0.2, period, offset)
    plan = LinearPlanner(c, diameter).plan(uses)
    assert plan.cost == pytest.approx(by_quadratic_programming(c, uses, diameter), rel=1e-5)


linear = st.tuples(st.floats(0.6, 1.3), st.floats(0.01, 1), st.floats(0.1, 10))
runs = st.tuples(st.integers(1, 60), st.integers(1, 5), st.integers(0, 4))


@settings(deadline=None, max_examples=60)
@given(linear, runs)
def test_a_plan_is_feasible_and_costs_what_it_says(process, run):
    (c, s, diameter), (steps, period, offset) = process, run
    uses = Uses(steps, s, period, offset % period)
    planner = LinearPlanner(c, diameter)
    plan = planner.plan(uses)
    distances = tracked(lambda z: c * z, uses, diameter)
    assert [planner.distance(uses, tau) for tau in range(steps)] == pytest.approx(distances[:-1], rel=1e-9, abs=1e-12)
    left = leftovers(lambda z: c * z, uses, plan.start, distances[plan.start], plan.shifts)
    assert (plan.shifts >= 0).all()
    assert (left >= -1e-8 * (1 + left.max())).all()
    assert left[-1] == pytest.approx(0, abs=1e-8 * (1 + left.max()))
    assert plan.cost == pytest.approx(float(plan.shifts @ plan.shifts), rel=1e-9, abs=1e-15)
    assert plan.cost <= uses.count * s**2


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 1.0), st.floats(0.0, 0.3), st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_random_plans_never_beat_the_planner(lam, slope, steps, seed):
    rng = np.random.default_rng(seed)

    def modulus(z):
        return z + slope * z**lam

    uses, points = Uses(steps, 0.1), 400
    plan = GridPlanner(modulus, 0.7, points).plan(uses)
    distances = tracked(modulus, uses, 0.7)
    left = leftovers(modulus, uses, plan.start, distances[plan.start], plan.shifts)
    assert (left >= -0.7 / points * (1 + slope * points)).all(), "but for the rounding of the start"
    assert plan.cost >= float(plan.shifts @ plan.shifts) * (1 - 1e-9)
    for _ in range(20):
        start = int(rng.integers(steps))
        z, cost = distances[start], 0.0
        for t in range(start, steps):
            reached = modulus(z) + uses.at(steps - 1 - t)
            shift = reached if t == steps - 1 else rng.random() * reached
            z, cost = reached - shift, cost + shift**2
        assert plan.cost <= cost * 1.01 + 1e-4


@pytest.mark.parametrize("c", [0.8, 0.95, 1.0])
@pytest.mark.parametrize("s", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("steps", [3, 10, 40])
def test_dynamic_programming_is_just_above_the_closed_form(c, s, steps):
    k = np.arange(1, steps + 1)
    one, two = (np.array([sum(c ** (power * j) for j in range(length)) for length in k]) for power in (1, 2))
    distances = np.array(tracked(lambda z: c * z, Uses(steps, s), 1.0))[steps - k]
    closed = ((c**k * distances + s * one) ** 2 / two).min()
    assert LinearPlanner(c, 1.0).plan(Uses(steps, s)).cost == pytest.approx(closed, rel=1e-9)
    by_grid = GridPlanner(lambda z: c * z, 1.0, 1000).plan(Uses(steps, s)).cost
    assert closed * (1 - 1e-12) <= by_grid <= closed * (1 + 1e-3)


@pytest.mark.parametrize("uses", [Uses(30, 0.1, 4, 0), Uses(30, 0.1, 4, 3), Uses(3, 0.1, 5, 4), Uses(1, 0.1)])
def test_both_planners_agree_on_steps_that_take_apart(uses):
    exact = LinearPlanner(1.1, 0.6).plan(uses).cost
    by_grid = GridPlanner(lambda z: 1.1 * z, 0.6, 1500).plan(uses).cost
    assert exact * (1 - 1e-12) <= by_grid <= exact * (1 + 3e-3)


@pytest.mark.parametrize("c", [0.9, 1.0, 1.1])
def test_without_uses_at_the_end_only_the_distance_is_paid(c):
    uses = Uses(50, 0.1)
    lengths, costs = LinearPlanner(c, 2.0).costs_without_uses(uses)
    distances = tracked(lambda z: c * z, uses, 2.0)
    for k, cost in zip(lengths.astype(int), costs, strict=True):
        assert cost == pytest.approx((c**k * distances[50 - k]) ** 2 / sum(c ** (2 * j) for j in range(k)))
    k, on_grid = GridPlanner(lambda z: c * z, 2.0, 1000).costs_without_uses(uses)
    exact = np.interp(k, lengths, costs)
    chosen = np.isin(k, lengths)
    assert (on_grid[chosen] >= exact[chosen] * (1 - 1e-12)).all()
    assert on_grid[chosen] == pytest.approx(exact[chosen], rel=2e-2, abs=1e-4)


@pytest.mark.parametrize("c", [1e-9, 0.5, 1 - 1e-12, 1.0, 1.0001, 3.0])
def test_a_million_steps_give_finite_plans(c):
    for period in (1, 1000):
        plan = LinearPlanner(c, 1.0).plan(Uses(10**6, 0.01, period))
        assert 0 < plan.cost < np.inf
        assert plan.cost == pytest.approx(float(plan.shifts @ plan.shifts), rel=1e-6)
