"""Fairlets: matchings that brute force finds no cheaper, proportions in each, sparse matchings near the dense."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.fairness.fair_kmeans import _fairlets
from aboveboard.fairness.fair_kmeans._fairlets import fairlets, refuse_uneven
from aboveboard.fairness.fair_kmeans._groups import read_groups


def points(sizes, seed=0, d=2):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(group))
    return rng.normal(size=(len(group), d)), read_groups(group[order], len(group))


def star_cost(X, groups, of, pivot):
    """Sum of squared distances of each fairlet's members to its member from the pivot cell."""
    members = np.flatnonzero(groups.cell == pivot)
    centre = np.empty_like(X[: len(members)])
    centre[of[members]] = X[members]
    return ((X - centre[of]) ** 2).sum()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([[3, 3], [3, 3, 3], [2, 4], [2, 4, 6], [2, 2, 4]]))
def test_the_matching_cost_is_the_least_over_pivots_and_matchings(seed, sizes):
    X, groups = points(sizes, seed)
    fair = fairlets(X, groups)
    members = [np.flatnonzero(groups.cell == c) for c in range(len(sizes))]
    best = np.inf
    for pivot in (c for c, size in enumerate(sizes) if size == min(sizes)):
        total = 0.0
        for other in (c for c in range(len(sizes)) if c != pivot):
            each = sizes[other] // sizes[pivot]
            slots = [a for a in members[pivot] for _ in range(each)]
            total += min(
                sum(((X[a] - X[b]) ** 2).sum() for a, b in zip(slots, order, strict=True))
                for order in itertools.permutations(members[other])
            )
        best = min(best, total)
    assert fair.matching_cost == pytest.approx(best)
    assert min(star_cost(X, groups, fair.of, c) for c in range(len(sizes)) if sizes[c] == min(sizes)) == pytest.approx(
        best
    )


def test_every_fairlet_has_every_group_in_its_proportion():
    X, groups = points([4, 8, 12])
    fair = fairlets(X, groups)
    assert fair.size == 6
    for fairlet in range(4):
        assert np.bincount(groups.cell[fair.of == fairlet]).tolist() == [1, 2, 3]
        assert fair.centers[fairlet] == pytest.approx(X[fair.of == fairlet].mean(axis=0))


def test_all_groups_of_the_smallest_size_are_tried_as_pivot():
    assert fairlets(*points([4, 4, 4])).n_pivots == 3
    assert fairlets(*points([4, 4, 8])).n_pivots == 2
    # the middle of three: matching both others with it is cheaper than matching the ends with each other
    X = np.array([[0.0], [1.0], [2.0]] * 2) + np.array([[0.0]] * 3 + [[50.0]] * 3)
    fair = fairlets(X, read_groups([0, 1, 2] * 2, 6))
    assert fair.matching_cost == pytest.approx(4.0)


def test_matching_among_near_neighbours_says_so_and_comes_close(monkeypatch):
    X, groups = points([150, 300])
    exact = fairlets(X, groups)
    monkeypatch.setattr(_fairlets, "_DENSE", 100)
    sparse = fairlets(X, groups)
    assert exact.exact
    assert not sparse.exact
    assert exact.matching_cost - 1e-9 <= sparse.matching_cost <= 1.05 * exact.matching_cost
    assert np.bincount(sparse.of).tolist() == [3] * 150


def test_near_neighbours_alone_need_not_hold_a_matching_and_one_is_found_all_the_same(monkeypatch):
    monkeypatch.setattr(_fairlets, "_DENSE", 10)
    monkeypatch.setattr(_fairlets, "_NEIGHBOURS", 1)
    X = np.r_[np.zeros(20), np.full(20, 1.0), np.full(39, 0.1), 5.0][:, None]  # nearly all are nearest to one another
    groups = read_groups([0] * 40 + [1] * 40, 80)
    fair = fairlets(X, groups)
    assert np.bincount(fair.of).tolist() == [2] * 40


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match=r"strict=True, and the groups .* have 4, 6 rows"):
        refuse_uneven(points([4, 6])[1], 2)
