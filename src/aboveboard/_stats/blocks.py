"""Sums of columns over blocks of rows, which add up over partitions: what a bootstrap of means resamples.

Rows (or whole clusters of them) are put into at most 2,000 blocks, and blocks are resampled: the variance of a sum has
the same expectation as if rows were, standard errors are known to 1.6 %, and a replicate costs the number of blocks.

How to use it::

    block = row_blocks(start, n, total)                     # of the rows start, ..., start + n - 1 of `total`
    sums = BlockSums.from_arrays(block, blocks, weights, [score, y])
    means, draws = (sums + sums_of_another_part).means(1000, np.random.default_rng(0))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCKS", "BlockSums", "row_blocks", "scrambled"]

Floats = NDArray[np.float64]

BLOCKS: Final = 2000
"""How many blocks there are at most."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def scrambled(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64-bit numbers that look random, a function of `keys` alone (the finaliser of SplitMix64)."""
    mixed = keys * _GOLDEN
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def row_blocks(start: int, n: int, total: int) -> NDArray[np.intp]:
    """Return the block of each of `n` rows from row `start` on, of `total` rows.

    A row's block depends on its position alone, so that it is the same in whatever parts the rows come. Each run of
    2,000 rows is dealt to all the blocks, from a block on that looks random; no more than 2,000 rows have one each.
    """
    blocks = min(total, BLOCKS)
    position = np.arange(start, start + n, dtype=np.int64)
    turn = scrambled((position // blocks).astype(np.uint64)) % np.uint64(blocks)
    return np.asarray((position + turn.astype(np.int64)) % blocks, dtype=np.intp)


@dataclass(frozen=True)
class BlockSums:
    """Sums by block; make one with `from_arrays`.

    Attributes
    ----------
    sums : ndarray, shape (blocks, 1 + columns)
        The weights, then weight x value of each column.
    """

    sums: Floats

    @classmethod
    def from_arrays(
        cls, block: NDArray[np.intp], blocks: int, weights: NDArray[Any] | None, columns: Sequence[NDArray[Any]]
    ) -> "BlockSums":
        """Sum columns of shape (n,) by block. O(n) time for each."""
        weighted = [column if weights is None else weights * column for column in columns]
        return cls(
            np.column_stack(
                [
                    np.bincount(block, weights=values, minlength=blocks).astype(np.float64)
                    for values in (weights, *weighted)
                ]
            )
        )

    def __add__(self, other: "BlockSums") -> "BlockSums":
        """Return the sums of the rows of both."""
        if self.sums.shape != other.sums.shape:
            raise ValueError(f"sums of shapes {self.sums.shape} and {other.sums.shape} do not add up")
        return BlockSums(self.sums + other.sums)

    @property
    def mean(self) -> Floats:
        """Weighted means of the columns."""
        total = self.sums.sum(axis=0)
        return np.asarray(total[1:] / total[0])

    def means(self, replicates: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the weighted means, and what they are in resamples of the blocks.

        Returns
        -------
        means : ndarray of shape (columns,)
        draws : ndarray of shape (replicates, columns)
        """
        blocks = len(self.sums)
        drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=replicates).astype(np.float64) @ self.sums
        scale = np.where(drawn[:, :1] > 0, drawn[:, :1], np.nan)
        return self.mean, np.asarray(drawn[:, 1:] / scale)
