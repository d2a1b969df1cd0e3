"""The cheapest fair assignment: HiGHS on the whole program, the dual bound, and cases known by thought."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from aboveboard.core import InputError
from aboveboard.data import load_adult
from aboveboard.fairness.fair_kmeans._assignment import fair_assignment, squared_distances
from aboveboard.fairness.fair_kmeans._groups import Fairness, read_groups, shares_allowed

ADULT = ["age", "fnlwgt", "education_num", "capital_gain", "hours_per_week"]


def by_highs(cost, weight, groups, allowed):
    """Solve the program as it is written down: one unknown per point and centre, groups one by one."""
    n, k = cost.shape
    membership = groups.member[:, groups.cell].astype(float) * weight
    rows = []
    for member, (low, high) in zip(membership, allowed, strict=True):
        rows += [member - high * weight, low * weight - member]
    each = sparse.kron(sparse.csr_array(np.array(rows)), sparse.eye_array(k))
    whole = sparse.kron(sparse.eye_array(n), np.ones((1, k)))
    found = linprog(
        (weight[:, None] * cost).ravel(), A_ub=each, b_ub=np.zeros(each.shape[0]), A_eq=whole, b_eq=np.ones(n)
    )
    assert found.status == 0
    return found.fun


def problem(seed, n, k, values, slack, *, weighted=False):
    rng = np.random.default_rng(seed)
    X, centers = rng.normal(size=(n, 2)), rng.normal(size=(k, 2))
    sensitive = np.column_stack([rng.integers(0, v, n) for v in values])
    groups = read_groups(sensitive, n)
    weight = rng.uniform(0.1, 2, n) if weighted else np.ones(n)
    allowed = shares_allowed(groups, slack, None)
    if weighted:
        share = groups.member @ np.bincount(groups.cell, weights=weight) / weight.sum()
        allowed = np.column_stack([share * (1 - slack), np.minimum(1, share / (1 - slack))])
    return squared_distances(X, centers), weight, groups, allowed


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(2, 60),
    st.integers(1, 6),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.booleans(),
)
def test_it_costs_what_highs_says_and_keeps_every_bound(seed, n, k, values, slack, weighted):
    cost, weight, groups, allowed = problem(seed, n, k, values, slack, weighted=weighted)
    fairness = Fairness.of(groups, allowed)
    found = fair_assignment(cost, weight, groups.cell, fairness)
    mass = found.mass.toarray()
    best = by_highs(cost, weight, groups, allowed)
    assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert found.bound <= best * (1 + 1e-9) + 1e-9
    assert found.cost == pytest.approx((mass * cost).sum(), rel=1e-9)
    assert found.gap <= 1e-6
    assert mass.min() >= 0
    assert mass.sum(axis=1) == pytest.approx(weight)
    masses = np.array([mass[groups.cell == c].sum(axis=0) for c in range(groups.n_cells)])
    assert fairness.violation(masses).max(initial=0.0) < 1e-6 * weight.sum()


def test_on_adult_it_costs_what_highs_says():
    adult = load_adult()
    rows = np.random.default_rng(0).choice(len(adult.X), 1000, replace=False)
    X = adult.X[ADULT].to_numpy(dtype=float)[rows]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    groups = read_groups(adult.X[["sex", "race"]].iloc[rows].astype(str), len(rows))
    allowed = shares_allowed(groups, 0.0, None)
    cost = squared_distances(X, X[:6])
    found = fair_assignment(cost, np.ones(1000), groups.cell, Fairness.of(groups, allowed))
    assert found.cost == pytest.approx(by_highs(cost, np.ones(1000), groups, allowed), rel=1e-7)


def test_without_demands_every_point_goes_to_its_nearest_centre():
    cost, weight, groups, _ = problem(0, 50, 4, [3], 0.0)
    found = fair_assignment(cost, weight, groups.cell, Fairness.of(groups, np.tile([0.0, 1.0], (3, 1))))
    assert (found.mass.toarray().argmax(axis=1) == cost.argmin(axis=1)).all()
    assert found.cost == found.bound == pytest.approx(cost.min(axis=1).sum())


def test_two_copies_of_the_same_points_are_paired_at_no_extra_cost():
    rng = np.random.default_rng(0)
    half, centers = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    cost = squared_distances(np.vstack([half, half]), centers)
    groups = read_groups(np.repeat(["a", "b"], 40), 80)
    found = fair_assignment(cost, np.ones(80), groups.cell, Fairness.of(groups, shares_allowed(groups, 0.0, None)))
    assert found.cost == pytest.approx(cost.min(axis=1).sum())


def test_starting_from_known_prices_changes_nothing_but_the_time():
    cost, weight, groups, allowed = problem(1, 300, 5, [3, 2], 0.1)
    fairness = Fairness.of(groups, allowed)
    first = fair_assignment(cost, weight, groups.cell, fairness)
    again = fair_assignment(cost, weight, groups.cell, fairness, prices=first.prices)
    assert again.cost == pytest.approx(first.cost, rel=1e-7)


def test_prices_say_what_a_looser_demand_would_save():
    cost, weight, groups, allowed = problem(2, 200, 3, [2], 0.0)
    fairness = Fairness.of(groups, allowed)
    found = fair_assignment(cost, weight, groups.cell, fairness)
    reduced = cost + (fairness.rows.T @ found.prices)[groups.cell]
    assert weight @ reduced.min(axis=1) == pytest.approx(found.bound, rel=1e-9)


def test_points_that_all_coincide_cost_nothing():
    groups = read_groups([0, 1, 0, 1], 4)
    found = fair_assignment(
        np.zeros((4, 2)), np.ones(4), groups.cell, Fairness.of(groups, shares_allowed(groups, 0.0, None))
    )
    assert found.cost == 0
    assert found.gap == 0


def test_one_far_point_does_not_spoil_the_answer():
    cost, weight, groups, allowed = problem(3, 200, 4, [2, 2], 0.0)
    cost[0] *= 1e6
    found = fair_assignment(cost, weight, groups.cell, Fairness.of(groups, allowed))
    assert found.cost == pytest.approx(by_highs(cost, weight, groups, allowed), rel=1e-6)


def test_too_little_time_is_said_and_not_hidden():
    cost, weight, groups, allowed = problem(4, 500, 5, [3], 0.0)
    with pytest.raises(
        InputError, match="no fair assignment of 500 points to 5 centres was found within 1e-09 seconds"
    ):
        fair_assignment(cost, weight, groups.cell, Fairness.of(groups, allowed), time_limit=1e-9)


@given(st.integers(0, 10_000))
def test_distances_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    X, centers = rng.normal(size=(7, 3)) * 1e6, rng.normal(size=(4, 3)) * 1e6
    expected = [[sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in centers] for x in X]
    assert squared_distances(X, centers) == pytest.approx(np.array(expected))
