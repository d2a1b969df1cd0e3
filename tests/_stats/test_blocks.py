import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard._stats.blocks import BLOCKS, BlockSums, row_blocks


@pytest.mark.parametrize("total", [1, 2, 1999, 2000, 2001, 7000])
def test_every_block_holds_as_many_rows_give_or_take_one(total):
    sizes = np.bincount(row_blocks(0, total, total), minlength=min(total, BLOCKS))
    assert len(sizes) == min(total, BLOCKS)
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(1, 9000), st.data())
def test_a_rows_block_does_not_depend_on_the_part_it_comes_in(total, data):
    start = data.draw(st.integers(0, total))
    n = data.draw(st.integers(0, total - start))
    np.testing.assert_array_equal(row_blocks(start, n, total), row_blocks(0, total, total)[start : start + n])


def test_two_rows_share_a_block_as_often_as_if_blocks_were_drawn():
    blocks = row_blocks(0, 400_000, 400_000)
    first, second = np.random.default_rng(0).integers(0, 400_000, (2, 1_000_000))
    apart = first // BLOCKS != second // BLOCKS
    share = np.mean(blocks[first[apart]] == blocks[second[apart]])
    assert share == pytest.approx(1 / BLOCKS, rel=0.15)


def test_draws_of_a_mean_spread_as_its_standard_error():
    rng = np.random.default_rng(1)
    values, weights = rng.gamma(2, 1, 50_000), rng.uniform(0.5, 2, 50_000)
    sums = BlockSums.from_arrays(row_blocks(0, 50_000, 50_000), BLOCKS, weights, [values])
    means, draws = sums.means(4000, rng)
    mean = np.average(values, weights=weights)
    assert means[0] == pytest.approx(mean, rel=1e-12)
    error = np.sqrt((weights**2 * (values - mean) ** 2).sum()) / weights.sum()
    assert draws[:, 0].std() == pytest.approx(error, rel=0.06)


def test_sums_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(2)
    values = rng.normal(size=5000)
    block = row_blocks(0, 5000, 5000)
    whole = BlockSums.from_arrays(block, BLOCKS, None, [values])
    parts = [BlockSums.from_arrays(block[i], BLOCKS, None, [values[i]]) for i in np.array_split(np.arange(5000), 7)]
    total = parts[3]
    for i in (0, 6, 1, 2, 5, 4):
        total = total + parts[i]
    np.testing.assert_allclose(total.sums, whole.sums, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="do not add up"):
        whole + BlockSums(np.zeros((2, 3)))
