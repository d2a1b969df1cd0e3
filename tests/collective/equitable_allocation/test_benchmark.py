"""The benchmark is the linear program's optimum, nobody beats it, and the bounds of single days hold every rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.collective import ExternalEquityAllocator, clairvoyant_lp, ex_post_bounds, simulate
from aboveboard.core import InputError


def test_the_least_fill_is_that_of_the_linear_program(tools):
    rng = np.random.default_rng(0)
    for _ in range(100):
        demands, supply = tools.instance(rng)
        assert clairvoyant_lp(demands, supply).value == pytest.approx(tools.best_least_fill(demands, supply), abs=1e-8)


def test_slots_that_can_have_more_do_and_the_stock_is_spent(tools):
    """Leximin, by definition: with the poorer slots where they are, the program gives the next no more."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        demands, supply = tools.instance(rng)
        found = clairvoyant_lp(demands, supply)
        spent = 0.0
        for t, ((value, chance), part) in enumerate(zip(demands, found.fractions)):
            keep = np.argsort(value[value > 0])
            d, q = value[value > 0][keep], chance[value > 0][keep]
            assert (q @ part) / q.sum() == pytest.approx(found.fills[t], abs=1e-9)
            assert (part <= np.minimum(1.0, supply / d) + 1e-12).all()
            assert (part >= 0).all()
            spent += q * d @ part
        most = [q[d > 0] @ np.minimum(1.0, supply / d[d > 0]) / q[d > 0].sum() for d, q in demands]
        assert spent <= supply * (1 + 1e-9)
        level = found.fills.max()
        assert found.fills == pytest.approx(np.minimum(most, level), abs=1e-9)
        assert spent == pytest.approx(supply) or found.fills == pytest.approx(most)


def test_known_optima():
    assert clairvoyant_lp([([2.0], [1.0])] * 3, 6.0).value == pytest.approx(1.0)
    assert clairvoyant_lp([([2.0], [1.0])] * 4, 6.0).value == pytest.approx(0.75)
    value, chance = np.array([1.0, 4.0, 10.0]), np.array([0.2, 0.5, 0.3])
    one = clairvoyant_lp([(value, chance)], 5.0).value
    assert one == pytest.approx(chance @ np.minimum(1.0, 5.0 / value))


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
@settings(max_examples=30, deadline=None)
def test_units_do_not_matter_and_neither_does_a_value_given_twice(seed, unit):
    rng = np.random.default_rng(seed)
    demands = [(rng.lognormal(0, 1, 3), rng.dirichlet(np.ones(3))) for _ in range(4)]
    before = clairvoyant_lp(demands, 5.0)
    scaled = clairvoyant_lp([(unit * value, chance) for value, chance in demands], unit * 5.0)
    twice = clairvoyant_lp([(np.repeat(value, 2), np.repeat(chance / 2, 2)) for value, chance in demands], 5.0)
    assert scaled.fills == pytest.approx(before.fills)
    assert twice.fills == pytest.approx(before.fills)
    assert np.concatenate(twice.fractions) == pytest.approx(np.concatenate(before.fractions))


def test_a_planner_who_sees_each_day_in_advance_is_between_the_rules_and_the_benchmark(tools):
    rng = np.random.default_rng(2)
    for _ in range(5):
        demands, supply = tools.instance(rng, slots=4)
        drawn = np.column_stack([rng.choice(value, 4000, p=chance) for value, chance in demands])
        seen = np.array([tools.path_optimum(day, supply) for day in drawn])
        for policy in ("proportional", "attenuated", "ppa", "greedy"):
            rule = ExternalEquityAllocator(policy, factor="best", n_particles=2000, random_state=0)
            assert simulate(rule.fit(demands, supply), drawn).ex_post <= seen.mean() + 1e-9
        assert clairvoyant_lp(demands, supply).value >= seen.mean() - 4 * seen.std() / np.sqrt(len(seen))


def test_no_rule_has_more_on_a_single_day_than_the_bound_and_the_bound_is_below_the_planners(tools):
    rng = np.random.default_rng(3)
    for _ in range(4):
        demands, supply = tools.instance(rng, slots=3)
        low, high = ex_post_bounds(demands, supply)
        drawn = np.column_stack([rng.choice(value, 20_000, p=chance) for value, chance in demands])
        seen = np.array([tools.path_optimum(day, supply) for day in drawn])
        assert low <= high <= low + 0.05
        assert low <= seen.mean() + 4 * seen.std() / np.sqrt(len(seen))
        for policy in ("proportional", "attenuated", "ppa", "greedy"):
            rule = ExternalEquityAllocator(policy, factor="best", n_particles=2000, random_state=0)
            report = simulate(rule.fit(demands, supply), drawn)
            assert report.ex_post <= high + 4 * report.ex_post_error


def test_the_bound_of_a_day_is_that_of_a_search_over_all_grants():
    """Two arrivals, the second uncertain: the best first grant by brute force."""
    first = np.linspace(0, 1, 2001)
    tried = 0.5 * np.minimum(first, np.minimum(1.0, 2.0 - first)) + 0.5 * np.minimum(first, (2.0 - first) / 4.0)
    low, high = ex_post_bounds([([1.0], [1.0]), ([1.0, 4.0], [0.5, 0.5])], 2.0, grid=400)
    assert low <= tried.max() <= high
    assert high - low < 0.02


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ([([1.0, -1.0], [0.5, 0.5])], "has the demand -1"),
        ([([1.0, np.nan], [0.5, 0.5])], "has the demand nan"),
        ([([1.0, np.inf], [0.5, 0.5])], "has the demand inf"),
        ([([1.0, 2.0], [0.5, 0.4])], "sum to 0.9"),
        ([([1.0, 2.0], [1.5, -0.5])], "negative chance"),
        ([([1.0], [1.0]), ([1.0, 2.0], [1.0])], "one chance for each value"),
        ([([1.0], [1.0]), ([0.0], [1.0])], "slot 1"),
        ([(["a"], [1.0])], "no number"),
        ([1.0, 2.0], "pair"),
        ([], "expected|Expected"),
        ("abc", "Expected"),
        (np.zeros((0, 3)), "shape"),
        (np.array([[1.0, np.nan]]), "has the demand nan"),
    ],
)
def test_demands_that_cannot_be_used_are_refused(demands, message):
    with pytest.raises(InputError, match=message):
        clairvoyant_lp(demands, 1.0)


@pytest.mark.parametrize("supply", [0.0, -1.0, np.nan, np.inf, "much", None, True])
def test_a_supply_that_is_no_positive_number_is_refused(supply):
    with pytest.raises(InputError, match="supply"):
        clairvoyant_lp([([1.0], [1.0])], supply)


def test_a_grid_below_one_is_refused():
    with pytest.raises(InputError, match="grid"):
        ex_post_bounds([([1.0], [1.0])], 1.0, grid=0)
