from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.auditing.disclosure import Withheld, crossed_margins, few, withhold_crossed, withhold_parts


def _parts(total: int, n: int):
    """All ways to write `total` as a sum of n whole numbers from 0."""
    if n == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _parts(total - first, n - 1):
            yield (first, *rest)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 14), min_size=2, max_size=5), st.integers(2, 6))
def test_no_small_group_can_be_computed_from_the_total_and_the_groups_shown(counts, min_cell):
    counts = np.array(counts)
    withheld = withhold_parts(counts, min_cell)
    hidden = np.flatnonzero(withheld.all)
    assert withheld.small.tolist() == (counts < min_cell).tolist()
    if not withheld.small.any() or counts.sum() < min_cell:
        return
    left = counts[hidden].sum()
    assert left >= min_cell
    solutions = list(_parts(left, len(hidden)))
    for i, g in enumerate(hidden):
        if withheld.small[g]:
            assert len({solution[i] for solution in solutions}) > 1


def _tables(rows, columns):
    """All tables of whole numbers from 0 with these margins, by brute force, row after row."""
    if len(rows) == 1:
        yield (tuple(columns),)
        return
    for row in _parts(rows[0], len(columns)):
        left = [c - r for c, r in zip(columns, row)]
        if min(left) >= 0:
            for rest in _tables(rows[1:], left):
                yield (row, *rest)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_no_small_cell_can_be_computed_from_the_margins_and_the_cells_shown(seed, min_cell):
    rng = np.random.default_rng(seed)
    table = rng.choice([1, 2, 4, 5, 6], size=(3, 3))
    codes = np.array(list(product(range(3), range(3))))
    withheld = withhold_crossed(table.ravel(), crossed_margins([codes[:, 0], codes[:, 1]]), min_cell)
    hidden = withheld.all.reshape(3, 3)
    # what the margins leave for the hidden cells; the shown cells are known
    rows, columns = (table * hidden).sum(axis=1), (table * hidden).sum(axis=0)
    values = {}
    for candidate in _tables(list(rows), list(columns)):
        candidate = np.array(candidate)
        if (candidate[~hidden] == 0).all():
            for i, j in zip(*np.nonzero(hidden)):
                values.setdefault((i, j), set()).add(candidate[i, j])
    for i, j in zip(*np.nonzero(withheld.small.reshape(3, 3))):
        assert len(values[i, j]) > 1


def test_a_withheld_group_takes_the_next_smallest_with_it():
    withheld = withhold_parts([5000, 3000, 4], 10)
    assert withheld.small.tolist() == [False, False, True]
    assert withheld.complementary.tolist() == [False, True, False]


def test_two_small_groups_that_are_few_together_take_a_third_with_them():
    assert withhold_parts([100, 50, 3, 4], 10).complementary.tolist() == [False, True, False, False]
    assert withhold_parts([100, 50, 6, 7], 10).complementary.tolist() == [False, False, False, False]


def test_nothing_is_withheld_where_every_group_is_large_or_empty():
    assert not withhold_parts([100, 50, 0], 10).all.any()
    assert few([0, 9, 10], 10).tolist() == [False, True, False]


def test_every_kind_of_people_counts():
    withheld = withhold_parts([[500, 200], [400, 3], [300, 90]], 10)
    assert withheld.small.tolist() == [False, True, False]
    assert withheld.all.tolist() == [False, True, True]


def test_a_withheld_margin_cannot_be_added_up_from_its_cells():
    # groups a0, a1, a2 of 4, 40 and 90 people; a0 is small, a1 complementary
    counts = np.array([2, 2, 20, 20, 45, 45])
    a, b = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    margins = crossed_margins([a, b])
    of_a, of_b = withhold_parts([4, 40, 90], 10), withhold_parts([67, 67], 10)
    both = Withheld(np.r_[of_a.small, of_b.small], np.r_[of_a.complementary, of_b.complementary])
    hidden = withhold_crossed(counts, margins, 10, withheld_margins=both).all
    published = np.vstack([margins[~both.all], np.ones(6), np.eye(6)[~hidden]]).astype(float)
    for target in (margins[0], *np.eye(6)[:2]):
        assert np.linalg.matrix_rank(np.vstack([published, target])) == np.linalg.matrix_rank(published) + 1


@pytest.mark.parametrize("seed", range(20))
def test_no_small_cell_of_three_crossed_columns_is_a_combination_of_what_is_shown(seed):
    rng = np.random.default_rng(seed)
    codes = np.array(list(product(range(2), range(3), range(4))))
    counts = rng.geometric(0.04, size=len(codes))
    margins = crossed_margins(list(codes.T))
    withheld = withhold_crossed(counts, margins, 10)
    published = np.vstack([margins, np.ones(len(counts)), np.eye(len(counts))[~withheld.all]]).astype(float)
    rank = np.linalg.matrix_rank(published)
    for i in np.flatnonzero(withheld.small):
        assert np.linalg.matrix_rank(np.vstack([published, np.eye(len(counts))[i]])) == rank + 1
