import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard._stats.blocks import BLOCKS
from aboveboard._stats.cells import GroupCells
from aboveboard.auditing.estimates import Rows
from aboveboard.auditing.subject import make_subject
from aboveboard.auditing.summaries import SAMPLE, Units, cell_rate, effective_rows, sample_positions


def drawn(n, seed, *, weighted, clustered):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 3, n) if weighted else None
    cluster = rng.integers(0, max(n // 3, 2), n) if clustered else None
    return rng.integers(0, 2, n), rng.integers(0, 2, n), weight, cluster


@given(st.integers(2, 400), st.integers(0, 99), st.booleans(), st.booleans())
def test_a_rate_of_cells_is_that_of_the_rows(n, seed, weighted, clustered):
    y, p, weight, cluster = drawn(n, seed, weighted=weighted, clustered=clustered)
    cells = GroupCells.from_arrays(np.zeros(n, int), y, p, weight, n_groups=1, n_labels=2, clusters=cluster)
    rows = Rows(n, weight, cluster)
    label, predicted = np.array([[False], [True]]), np.array([[False, True]])
    for got, expected in (
        (cell_rate(cells, predicted), rows.rate(p == 1)),
        (cell_rate(cells, predicted, label), rows.rate(p == 1, y == 1)),
        (cell_rate(cells, label, ~predicted, z=2.5), rows.rate(y == 1, p == 0, z=2.5)),
    ):
        assert got.n == expected.n
        assert got.effective_n == pytest.approx(expected.effective_n, rel=1e-9)
        assert got.value == pytest.approx(expected.value, rel=1e-12, nan_ok=True)
        assert (got.interval.low, got.interval.high) == pytest.approx((expected.interval.low, expected.interval.high))


def test_effective_rows_are_kishs():
    y, p, weight, cluster = drawn(300, 0, weighted=True, clustered=True)
    cells = GroupCells.from_arrays(np.zeros(300, int), y, p, weight, n_groups=1, n_labels=2)
    assert effective_rows(cells) == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    cells = GroupCells.from_arrays(np.zeros(300, int), y, p, weight, n_groups=1, n_labels=2, clusters=cluster)
    by_cluster = np.bincount(cluster, weights=weight)
    assert effective_rows(cells) == pytest.approx(by_cluster.sum() ** 2 / (by_cluster**2).sum())


def test_the_rows_that_are_drawn_depend_on_the_number_of_rows_alone():
    assert len(sample_positions(SAMPLE)) == SAMPLE
    many = sample_positions(3 * SAMPLE)
    np.testing.assert_array_equal(many, sample_positions(3 * SAMPLE))
    assert len(np.unique(many)) == SAMPLE
    assert many.min() >= 0
    assert many.max() < 3 * SAMPLE


@pytest.mark.parametrize("clusters", [50, 5000])
def test_rows_of_one_cluster_are_in_one_block(clusters):
    names = np.random.default_rng(0).integers(0, clusters, 20_000)
    y = np.arange(20_000) % 2
    subject = make_subject(None, {"x": y}, y, predictions=y * 1.0, prediction_type="score", clusters=names)
    units = subject.units
    block = units.block(subject)
    assert units.blocks == min(clusters, BLOCKS)
    assert block.min() >= 0
    assert block.max() < units.blocks
    assert len(set(zip(names, block, strict=True))) == len(set(names))


def test_units_of_rows_have_no_ids():
    assert Units.of(10, None) == Units(10, None, None)
    assert Units(10).blocks == 10
