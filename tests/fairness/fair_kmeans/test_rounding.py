"""Labels from fractions: brute force over all labels, counts that are rounded masses, cost and violation that keep."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core import MissingExtra
from aboveboard.fairness.fair_kmeans._assignment import fair_assignment, squared_distances
from aboveboard.fairness.fair_kmeans._groups import Fairness, read_groups, shares_allowed
from aboveboard.fairness.fair_kmeans._rounding import (
    by_flow,
    by_integer_program,
    by_largest_share,
    cell_masses,
    matching_flow,
)


def assigned(seed, n, k, values, slack):
    """Return costs, groups, demands and the fractional assignment of random points."""
    rng = np.random.default_rng(seed)
    cost = squared_distances(rng.normal(size=(n, 2)), rng.normal(size=(k, 2)))
    groups = read_groups(np.column_stack([rng.integers(0, v, n) for v in values]), n)
    fairness = Fairness.of(groups, shares_allowed(groups, slack, None))
    return cost, groups, fairness, fair_assignment(cost, np.ones(n), groups.cell, fairness)


def counts_of(labels, groups, k):
    return np.array([np.bincount(labels[groups.cell == c], minlength=k) for c in range(groups.n_cells)])


problems = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(4, 60),
    "k": st.integers(1, 5),
    "values": st.lists(st.integers(1, 3), min_size=1, max_size=2),
    "slack": st.sampled_from([0.0, 0.2]),
}


@settings(max_examples=60)
@given(**problems)
def test_the_flow_costs_no_more_than_the_fractions_and_rounds_every_mass_down_or_up(seed, n, k, values, slack):
    cost, groups, _, found = assigned(seed, n, k, values, slack)
    labels = by_flow(cost, found, groups.cell, groups.n_cells)
    assert cost[np.arange(n), labels].sum() <= found.cost * (1 + 1e-9) + 1e-9
    mass, counts = cell_masses(found.mass, groups.cell, groups.n_cells), counts_of(labels, groups, k)
    assert np.abs(counts - mass).max() < 1 + 1e-6
    assert np.abs(counts.sum(axis=0) - mass.sum(axis=0)).max() < 1 + 1e-6


@settings(max_examples=40)
@given(**problems)
def test_no_group_exceeds_a_bound_by_more_people_than_rounding_can_cost(seed, n, k, values, slack):
    cost, groups, fairness, found = assigned(seed, n, k, values, slack)
    labels = by_flow(cost, found, groups.cell, groups.n_cells)
    worst = fairness.violation(counts_of(labels, groups, k)).max(initial=0.0)
    cells = groups.member.sum(axis=1).max()
    assert worst < (2 if len(values) == 1 else cells + 1)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(4, 7), st.sampled_from([[2], [2, 2]]))
def test_the_flow_is_the_cheapest_of_all_labels_with_rounded_counts(seed, n, values):
    k = 2
    cost, groups, _, found = assigned(seed, n, k, values, 0.0)
    mass = cell_masses(found.mass, groups.cell, groups.n_cells)
    least, most = np.floor(mass + 1e-7), np.ceil(mass - 1e-7)
    low, high = np.floor(mass.sum(axis=0) + 1e-7), np.ceil(mass.sum(axis=0) - 1e-7)
    best = np.inf
    for labels in map(np.array, itertools.product(range(k), repeat=n)):
        counts = counts_of(labels, groups, k)
        inside = (counts >= least).all() and (counts <= most).all()
        if inside and (counts.sum(axis=0) >= low).all() and (counts.sum(axis=0) <= high).all():
            best = min(best, cost[np.arange(n), labels].sum())
    labels = by_flow(cost, found, groups.cell, groups.n_cells)
    assert cost[np.arange(n), labels].sum() == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(4, 7), st.sampled_from([[2], [2, 2]]), st.sampled_from([0.0, 0.2]))
def test_the_integer_program_has_the_smallest_violation_and_then_the_least_cost(seed, n, values, slack):
    k = 2
    cost, groups, fairness, found = assigned(seed, n, k, values, slack)
    labels, optimal = by_integer_program(cost, found, groups.cell, fairness, 10.0)
    assert optimal
    mass = cell_masses(found.mass, groups.cell, groups.n_cells)
    best = (np.inf, np.inf)
    for other in map(np.array, itertools.product(range(k), repeat=n)):
        counts = counts_of(other, groups, k)
        sizes = counts.sum(axis=0)
        near = np.abs(counts - mass).max() < 1 - 1e-7 and np.abs(sizes - mass.sum(axis=0)).max() < 1 - 1e-7
        if near:
            worst = fairness.violation(counts).max(initial=0.0)
            best = min(best, (round(worst, 9), cost[np.arange(n), other].sum()))
    worst = fairness.violation(counts_of(labels, groups, k)).max(initial=0.0)
    assert worst == pytest.approx(best[0], abs=1e-6)
    assert cost[np.arange(n), labels].sum() == pytest.approx(best[1], rel=1e-6, abs=1e-9)


def test_the_integer_program_never_breaks_a_bound_by_more_than_the_flow():
    for seed in range(5):
        cost, groups, fairness, found = assigned(seed, 80, 4, [2, 3], 0.0)
        flow = by_flow(cost, found, groups.cell, groups.n_cells)
        program, _ = by_integer_program(cost, found, groups.cell, fairness, 20.0)
        worst = [fairness.violation(counts_of(labels, groups, 4)).max() for labels in (program, flow)]
        assert worst[0] <= worst[1] + 1e-6


def test_whole_assignments_are_left_as_they_are():
    cost, groups, _, found = assigned(0, 30, 3, [1], 0.0)  # one group: nothing to divide
    for labels in (by_flow(cost, found, groups.cell, groups.n_cells), by_largest_share(found)):
        assert (labels == cost.argmin(axis=1)).all()


def test_a_matching_by_flow_is_the_cheapest():
    rng = np.random.default_rng(0)
    cost = rng.random((3, 6))
    tail, head = (part.ravel() for part in np.indices(cost.shape))
    partner = matching_flow(tail, head, cost.ravel(), 3, 6, 2)
    best = min(
        sum(cost[place, column] for column, place in enumerate(order))
        for order in set(itertools.permutations((0, 0, 1, 1, 2, 2)))
    )
    assert cost[partner, np.arange(6)].sum() == pytest.approx(best)
    assert np.bincount(partner).tolist() == [2, 2, 2]


def test_without_or_tools_the_error_names_the_extra(monkeypatch):
    cost, groups, _, found = assigned(0, 10, 2, [2], 0.0)
    for name in [name for name in sys.modules if name.split(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Refuse(), *sys.meta_path])
    with pytest.raises(MissingExtra, match=r"aboveboard\[solvers\]"):
        by_flow(cost, found, groups.cell, groups.n_cells)


class _Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "ortools":
            raise ModuleNotFoundError(f"No module named {name!r}", name="ortools")
