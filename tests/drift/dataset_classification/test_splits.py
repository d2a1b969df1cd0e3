"""Training and held-out rows: disjoint, by a fair die, and whole groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core.errors import InputError
from aboveboard.drift.dataset_classification._splits import balanced_split, needed, read_groups, whole_split

NAMES = ("a", "b", "c", "d")


def codes_of(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


@given(st.lists(st.integers(200, 600), min_size=2, max_size=4), st.integers(0, 2**31))
def test_training_rows_are_equally_many_and_never_held_out(sizes, seed):
    codes = codes_of(*sizes)
    split = balanced_split(codes, NAMES[: len(sizes)], None, None, None, np.random.default_rng(seed))
    assert not set(split.train) & set(split.held_out)
    assert len(set(split.train)) == len(split.train)
    assert len(set(split.held_out)) == len(split.held_out)
    assert len(set(np.bincount(codes[split.train]))) == 1


def test_the_sources_of_held_out_rows_are_drawn_by_a_fair_die():
    codes = codes_of(500, 900)
    rng = np.random.default_rng(0)
    first = [np.bincount(codes[balanced_split(codes, NAMES[:2], None, 300, 100, rng).held_out])[0] for _ in range(2000)]
    expected = stats.binom(200, 0.5)
    assert np.mean(first) == pytest.approx(100, abs=4 * expected.std() / np.sqrt(2000))
    assert np.var(first) == pytest.approx(expected.var(), rel=0.15)


def test_the_reserve_is_so_large_that_a_draw_is_next_to_never_repeated():
    for m in (2, 3, 10):
        for n_val in (60, 500, 10_000):
            assert m * stats.binom.sf(needed(n_val, m), m * n_val, 1 / m) < 1e-3


@given(st.integers(0, 2**31), st.integers(60, 120))
def test_a_group_is_never_on_both_sides_and_judged_once(seed, n_groups):
    rng = np.random.default_rng(seed)
    codes, groups = codes_of(900, 900), rng.integers(n_groups * 8, size=1800)
    split = balanced_split(codes, NAMES[:2], groups, None, None, rng)
    assert not set(groups[split.train]) & set(groups[split.held_out])
    assert len(set(groups[split.held_out])) == len(split.held_out)


def test_all_rows_are_used_where_sources_are_of_unequal_size():
    codes = codes_of(5000, 250)
    split = whole_split(codes, NAMES[:2], None, None, None, np.random.default_rng(0))
    assert len(split.train) + len(split.held_out) == 5250
    assert np.bincount(codes[split.held_out])[1] == 83
    assert not set(split.train) & set(split.held_out)


@pytest.mark.parametrize(
    ("n_train", "n_val", "message"),
    [
        (150, 200, "n_train"),
        (500, None, "n_train"),
        (None, 20, "held-out"),
        (None, 290, "needs"),
        (295, None, "held-out"),
    ],
)
def test_splits_that_the_rows_do_not_allow_are_refused(n_train, n_val, message):
    with pytest.raises(InputError, match=message):
        balanced_split(codes_of(300, 300), NAMES[:2], None, n_train, n_val, np.random.default_rng(0))


@pytest.mark.parametrize(
    "groups", [[1, 2], {"a": [1, 2, 3]}, {"a": [1, 2, 3], "b": [1]}, {"a": [1, None, 3], "b": [1, 2]}]
)
def test_groups_that_do_not_fit_the_rows_are_refused(groups):
    with pytest.raises(InputError, match="groups"):
        read_groups(groups, {"a": 3, "b": 2})


def test_equal_values_are_one_group_across_sources():
    codes = read_groups({"a": ["x", "y", "x"], "b": ["y", "z"]}, {"a": 3, "b": 2})
    assert codes.tolist() == [0, 1, 0, 1, 2]
