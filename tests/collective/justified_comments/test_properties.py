"""The checks against their definitions, by enumerating groups of readers."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from aboveboard.collective import extended_justified_representation, justified_representation
from aboveboard.core import InputError

profiles = st.tuples(
    st.integers(1, 7), st.integers(1, 5), st.floats(0.1, 0.8), st.integers(0, 2**32 - 1), st.integers(1, 5)
)


def drawn(n, m, share, seed):
    rng = np.random.default_rng(seed)
    return rng.random((n, m)) < share, rng


def by_definition(approvals, selected, k, level_most=1):
    """Return whether no group of l n/k readers shares a comment left out while each approves fewer than l selected."""
    n, m = approvals.shape
    hits = approvals[:, selected].sum(axis=1)
    for level in range(1, level_most + 1):
        for size in range(1, n + 1):
            if size * k < level * n:
                continue
            for group in map(list, combinations(range(n), size)):
                shared = [c for c in range(m) if approvals[group, c].all() and c not in selected]
                if shared and (hits[group] < level).all():
                    return False
    return True


@given(profiles)
@settings(max_examples=60, deadline=None)
def test_both_properties_are_what_the_definitions_say(case):
    n, m, share, seed, k = case
    k = min(k, m)
    approvals, rng = drawn(n, m, share, seed)
    selected = rng.choice(m, size=int(rng.integers(0, k + 1)), replace=False)
    found = justified_representation(approvals, selected, k)
    assert found.satisfied == by_definition(approvals, selected, k)
    assert (found.worst_ratio >= 1) == (not found.satisfied)
    assert extended_justified_representation(approvals, selected, k).satisfied == by_definition(
        approvals, selected, k, k
    )


@given(profiles)
@settings(max_examples=60, deadline=None)
def test_verdicts_depend_on_neither_order_nor_container_nor_clones(case):
    n, m, share, seed, k = case
    k = min(k, m)
    approvals, rng = drawn(n, m, share, seed)
    selected = rng.choice(m, size=k, replace=False)
    first = justified_representation(approvals, selected, k)
    shuffled = rng.permutation(m)
    again = justified_representation(approvals[rng.permutation(n)][:, shuffled], np.argsort(shuffled)[selected], k)
    assert (again.satisfied, again.worst_ratio, again.coverage) == (
        first.satisfied,
        first.worst_ratio,
        first.coverage,
    )
    for same in (sparse.csr_matrix(approvals), sparse.coo_array(approvals.astype(int)), pd.DataFrame(approvals)):
        assert justified_representation(same, selected, k).worst_ratio == first.worst_ratio
    cloned = justified_representation(np.vstack([approvals] * 3), selected, k)
    weighted = justified_representation(approvals, selected, k, weights=np.full(n, 0.3))
    assert cloned.worst_ratio == weighted.worst_ratio == first.worst_ratio
    assert cloned.satisfied == weighted.satisfied == first.satisfied


@given(profiles)
@settings(max_examples=60, deadline=None)
def test_more_approvals_of_selected_comments_never_break_the_property(case):
    n, m, share, seed, k = case
    k = min(k, m)
    approvals, rng = drawn(n, m, share, seed)
    selected = rng.choice(m, size=k, replace=False)
    more = approvals.copy()
    more[:, selected] |= rng.random((n, k)) < 0.5
    assert justified_representation(more, selected, k).worst_ratio <= (
        justified_representation(approvals, selected, k).worst_ratio
    )


def test_a_group_of_exactly_a_kth_counts():
    approvals = np.zeros((8, 5), dtype=bool)
    approvals[:6, 0] = True
    approvals[6:, 4] = True
    assert not justified_representation(approvals, [0, 1, 2, 3], 4).satisfied  # 2 of 8 are a quarter
    approvals = np.vstack([approvals, [1, 0, 0, 0, 0]])
    assert justified_representation(approvals, [0, 1, 2, 3], 4).satisfied  # 2 of 9 are not
    approvals[8] = [0, 0, 0, 0, 1]
    assert not justified_representation(approvals, [0, 1, 2, 3], 4).satisfied  # 3 of 9 are


def test_the_witness_and_the_excluded_are_named():
    approvals = [[1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 0]]
    found = justified_representation(approvals, [0], 2)
    assert (found.witness_comment, found.excluded_readers.tolist(), found.worst_ratio) == (1, [1, 2], 1.0)
    assert (found.coverage, found.without_approvals) == (0.25, 1)


def test_decimal_weights_count_exactly():
    approvals = np.array([[1, 0], [0, 1], [0, 1]])
    thirds = [0.7, 0.1, 0.2]  # 0.1 + 0.2 is not 0.3 in binary
    assert justified_representation(approvals, [0], 1, weights=thirds).worst_ratio == pytest.approx(0.3)
    halves = justified_representation(approvals, [0], 2, weights=[0.3, 0.1, 0.2])
    assert halves.worst_ratio == 1.0
    assert not halves.satisfied


def test_weights_beyond_decimals_keep_equal_readers_equal():
    approvals = np.array([[1, 0], [0, 1]])
    assert justified_representation(approvals, [0], 2, weights=[np.pi, np.pi]).worst_ratio == 1.0


@pytest.mark.parametrize(
    ("approvals", "selected", "k", "weights", "message"),
    [
        (np.ones(3), [0], 1, None, "have shape"),
        (np.ones((0, 3)), [0], 1, None, "have shape"),
        ([[1, -1]], [0], 1, None, r"hold -1(\.0)?\..*votes > 0"),
        ([[1, np.nan]], [0], 1, None, "hold nan"),
        ([["a", "b"]], [0], 1, None, "type"),
        (sparse.csr_array(np.array([[2, 1]])), [0], 1, None, "hold 2"),
        (sparse.csr_array((np.ones(2), [1, 1], [0, 2]), shape=(1, 2)), [0], 1, None, "cell twice"),
        ([[1, 0]], [0], 0, None, "k is 0"),
        ([[1, 0]], [0], 3, None, "k is 3"),
        ([[1, 0]], [0], 1.0, None, "k is 1.0"),
        ([[1, 0]], [0], True, None, "k is True"),
        ([[1, 0]], [2], 1, None, "positions from 2"),
        ([[1, 0]], [0.5], 1, None, "positions of comments"),
        ([[1, 0]], [0, 0], 2, None, "twice"),
        ([[1, 0]], [0, 1], 1, None, "2 comments are selected"),
        ([[1, 0]], [0], 1, [1, 2], "weights have shape"),
        ([[1, 0]], [0], 1, [-1], "not usable"),
        ([[1, 0]], [0], 1, [0], "not usable"),
        ([[1, 0]], [0], 1, [np.inf], "not usable"),
        ([[1, 0]], [0], 1, ["x"], "not all numbers"),
    ],
)
def test_what_is_no_profile_is_refused(approvals, selected, k, weights, message):
    with pytest.raises(InputError, match=message):
        justified_representation(approvals, selected, k, weights=weights)
