import numpy as np
import pytest
from scipy.stats import chisquare

pytest.importorskip("numba")
from aboveboard.unlearning.dynfrs import _hash

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(state: int) -> int:
    """The generator as its authors published it, in Python's whole numbers."""
    z = (state + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_the_first_words_of_stream_zero_are_those_published_for_splitmix64():
    words = [int(_hash.stream_word(np.uint64(0), i)) for i in range(3)]
    assert words == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("key", [1, 2**63, MASK])
def test_a_stream_is_splitmix64_read_by_index(key):
    for index in (0, 1, 7, 10**6):
        expected = splitmix64((key + index * GOLDEN) & MASK)
        assert int(_hash.stream_word(np.uint64(key), index)) == expected


def test_every_record_is_in_k_distinct_trees_and_in_the_same_ones_whoever_else_is_there():
    uids = np.arange(1000)
    trees = _hash.occurrences(np.uint64(5), uids, 40, 7)
    assert all(len(set(row)) == 7 for row in trees.tolist())
    assert trees.min() >= 0
    assert trees.max() < 40
    assert np.array_equal(_hash.occurrences(np.uint64(5), uids[::-3], 40, 7), trees[::-3])


def test_all_trees_hold_a_record_when_k_is_their_number():
    trees = _hash.occurrences(np.uint64(5), np.arange(50), 6, 6)
    assert np.array_equal(np.sort(trees, axis=1), np.tile(np.arange(6), (50, 1)))


def test_occurrences_are_uniform_over_trees_and_over_pairs_of_trees():
    n_trees, k, n = 10, 3, 30_000
    trees = np.sort(_hash.occurrences(np.uint64(11), np.arange(n), n_trees, k), axis=1)
    single = np.bincount(trees.ravel(), minlength=n_trees)
    # Each of a row's k trees is uniform, and they exclude each other: the statistic shrinks by (T - k) / (T - 1).
    statistic = chisquare(single).statistic * (n_trees - 1) / (n_trees - k)
    assert statistic < 27.9  # 0.999 quantile of chi-square with 9 degrees of freedom
    pairs = np.zeros((n_trees, n_trees))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        np.add.at(pairs, (trees[:, a], trees[:, b]), 1)
    share = pairs[np.triu_indices(n_trees, 1)] / n
    expected = k * (k - 1) / (n_trees * (n_trees - 1))
    assert np.abs(share - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / n)


def test_paths_do_not_repeat_however_deep():
    seen, path = set(), np.uint64(_hash.root_path(np.uint64(0), 0))
    for depth in range(500):
        seen |= {int(_hash.child_path(path, False)), int(_hash.child_path(path, True))}
        path = np.uint64(_hash.child_path(path, depth % 3 == 0))
    assert len(seen) == 1000


def test_bounded_numbers_are_uniform():
    words = [np.uint64(_hash.stream_word(np.uint64(3), i)) for i in range(7000)]
    counts = np.bincount([_hash.below(word, 7) for word in words], minlength=7)
    assert chisquare(counts).pvalue > 0.001
