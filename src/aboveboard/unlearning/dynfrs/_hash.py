"""Keyed randomness for the forest: every random number is a hash of where it is used, never a draw.

A number depends on the seed, the tree, the path from the root, the attribute and an index, and on nothing else; so a
node that is grown later, or grown again, gets the numbers that it would have had in the first place. The mixer is the
64-bit finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), used as a counter-based generator: word ``i`` of a
stream is the mix of ``key + i * golden``.
"""

import numpy as np
from numba import njit

__all__ = ["below", "child_path", "hash_value", "mix", "occurrences", "root_path", "stream_word"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_S27, _S30, _S31, _S32, _S40 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(40)
_LEFT, _RIGHT = np.uint64(0x4C454654), np.uint64(0x5249474854)
_OCCURRENCE, _TREE = np.uint64(0x4F4343), np.uint64(0x54524545)


@njit(cache=True, nogil=True)
def mix(z: np.uint64) -> np.uint64:
    """Return a bijective scramble of 64 bits."""
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@njit(cache=True, nogil=True)
def stream_word(key: np.uint64, index: int | np.int64) -> np.uint64:
    """Return word `index` of the stream of `key`."""
    return mix(key + (np.uint64(index) + _ONE) * _GOLDEN)


@njit(cache=True, nogil=True)
def below(word: np.uint64, bound: int) -> np.int64:
    """Map the upper half of `word` to 0 .. bound - 1; no number is favoured by more than bound / 2**32."""
    return np.int64(((word >> _S32) * np.uint64(bound)) >> _S32)


@njit(cache=True, nogil=True)
def root_path(seed: np.uint64, tree: int) -> np.uint64:
    """Return the path hash of the root of `tree`."""
    return stream_word(mix(seed ^ _TREE), tree)


@njit(cache=True, nogil=True)
def child_path(path: np.uint64, right: bool) -> np.uint64:
    """Return the path hash of a child; a chain, so that no depth overflows it."""
    return mix(path ^ (_RIGHT if right else _LEFT))


@njit(cache=True, nogil=True)
def hash_value(key: np.uint64, code: np.float32) -> np.float32:
    """Return the place of a category in the random order of one node and attribute: a multiple of 2**-24 in [0, 1)."""
    return np.float32(np.float64(stream_word(key, np.int64(code)) >> _S40) * 2.0**-24)


@njit(cache=True, nogil=True)
def occurrences(seed: np.uint64, uids: np.ndarray, n_trees: int, k: int) -> np.ndarray:
    """Return the `k` distinct trees of each record, shape (n, k): the first `k` steps of a keyed shuffle of the trees.

    Parameters
    ----------
    uids : ndarray of int64, shape (n,)
    """
    out = np.empty((uids.size, k), np.int32)
    order = np.arange(n_trees).astype(np.int32)
    swapped = np.empty(k, np.int64)
    base = mix(seed ^ _OCCURRENCE)
    for i in range(uids.size):
        key = stream_word(base, uids[i])
        for j in range(k):
            other = j + below(stream_word(key, j), n_trees - j)
            order[j], order[other] = order[other], order[j]
            swapped[j] = other
            out[i, j] = order[j]
        for j in range(k - 1, -1, -1):
            other = swapped[j]
            order[j], order[other] = order[other], order[j]
    return out
