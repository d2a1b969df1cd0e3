"""Marginals: sensitivities by brute force, tables that are those of the data, errors below their bounds."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from sklearn.base import clone

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import PrivateMarginals
from aboveboard.privacy.objective_perturbation._marginals import _block_width, _Dense, _nest, _Sparse, _sums_of_products
from aboveboard.privacy.objective_perturbation._pseudo_moments import subsets


def _table(n_rows, n, seed):
    rng = np.random.default_rng(seed)
    cause = rng.random((n_rows, 1))
    return (rng.random((n_rows, n)) < 0.2 + 0.6 * cause * np.linspace(0, 1, n)).astype(np.int64)


def _sparse_table(n_rows, n, t, seed):
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, n + 1)
    rows = np.zeros((n_rows, n), dtype=bool)
    for row in rows:
        row[rng.choice(n, rng.integers(0, t + 1), replace=False, p=weight / weight.sum())] = True
    return rows


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_row_moves_the_sums_by_the_sensitivity_at_most_and_parities_by_all_of_it(k):
    n = 4
    rows = np.array(list(product([0.0, 1.0], repeat=n)))
    each = [_sums_of_products(_Dense(n, k, "none").factors(row[None]), k) for row in rows]
    furthest = max(np.linalg.norm(a - b) for a in each for b in each)
    # no two rows differ in all parities (those of even size agree where all signs do), but in more than half
    assert _Dense(n, k, "none").sensitivity / np.sqrt(2) <= furthest <= _Dense(n, k, "none").sensitivity
    for t in (1, 2, 3):
        few = [_sums_of_products(row[None], k) for row in rows if row.sum() <= t]
        furthest = max(np.linalg.norm(a - b) for a in few for b in few)
        assert furthest <= _Sparse(n, k, t, "none").sensitivity + 1e-12
        if t <= n / 2:
            assert furthest == pytest.approx(_Sparse(n, k, t, "none").sensitivity)


def test_sums_are_those_of_the_products_of_the_columns():
    factors = 1 - 2 * _table(50, 5, 0).astype(float)
    found = _sums_of_products(factors, 3)
    assert found.tolist() == [factors[:, list(subset)].prod(axis=1).sum() for subset in subsets(5, 3)]


@pytest.mark.parametrize("sparsity", [None, 4])
def test_tables_are_those_of_the_data_where_noise_is_next_to_nothing(sparsity):
    Y = _table(300, 4, 0)
    released = PrivateMarginals(3, epsilon=1e6, delta=1e-4, sparsity=sparsity, max_iter=5_000, random_state=0).fit(Y)
    assert len(released.subsets_) == 14
    for columns in ([2], [0, 3], [3, 0], [1, 0, 2]):
        truth = np.zeros((2,) * len(columns))
        for row in Y[:, columns]:
            truth[tuple(row)] += 1 / 300
        table = released.table(columns)
        assert table == pytest.approx(truth, abs=2e-3)
        assert table.sum() == pytest.approx(1, abs=1e-12)
        assert released.marginal(columns) == table[(1,) * len(columns)]
        assert released.marginal(columns, [0] * len(columns)) == table[(0,) * len(columns)]


def test_noise_is_of_the_certified_size_and_the_same_for_the_same_seed():
    Y = _table(2_000, 12, 0)
    options = {"epsilon": 0.5, "delta": 1e-5, "relaxation": "none", "random_state": 3}
    released = PrivateMarginals(3, **options).fit(Y)
    exact = _sums_of_products(1 - 2 * Y.astype(float), 3) / 2_000
    assert (released.parities_ - exact).std() == pytest.approx(released.sigma_, rel=0.15)
    assert released.error_bound_ == released.sigma_**2
    assert np.array_equal(released.parities_, PrivateMarginals(3, **options).fit(Y).parities_)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_errors_are_below_the_bound_and_much_below_clipping(k):
    Y = _table(150, 8, 0)
    exact = _sums_of_products(1 - 2 * Y.astype(float), k) / 150
    errors, clipped = [], []
    for seed in range(4):
        released = PrivateMarginals(k, epsilon=0.5, delta=1e-3, random_state=seed).fit(Y)
        raw = PrivateMarginals(k, epsilon=0.5, delta=1e-3, relaxation="none", random_state=seed).fit(Y)
        errors.append(np.mean((released.parities_ - exact) ** 2))
        clipped.append(np.mean((np.clip(raw.parities_, -1, 1) - exact) ** 2))
    assert np.mean(errors) < released.error_bound_
    assert np.mean(errors) <= 1.01 * np.mean(clipped)


def test_errors_of_sparse_rows_are_below_the_bound():
    Y = _sparse_table(3_000, 30, 4, 0)
    exact = _sums_of_products(Y.astype(float), 3) / 3_000
    released = PrivateMarginals(3, sparsity=4, delta=1e-5, random_state=0).fit(Y)
    error = np.mean((released.conjunctions_ - exact) ** 2)
    assert error < released.error_bound_
    assert released.conjunctions_.min() >= 0
    raw = PrivateMarginals(3, sparsity=4, delta=1e-5, relaxation="none", random_state=0).fit(Y)
    assert error < np.mean((np.clip(raw.conjunctions_, 0, 1) - exact) ** 2) / 2


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (7, 3), (7, 4)])
def test_widths_are_no_less_than_those_of_real_data(n, k):
    rng = np.random.default_rng(0)
    rows = np.array(list(product([0.0, 1.0], repeat=n)))
    points = np.array([_sums_of_products(1 - 2 * row[None], k) for row in rows])
    best = (points @ rng.normal(size=(points.shape[1], 400))).max(axis=0)
    assert best.mean() < _Dense(n, k, "sos").width() + 3 * best.std() / 20  # equal for single columns
    few = rows[rows.sum(axis=1) <= 3]
    points = np.array([_sums_of_products(row[None], k) for row in few])
    best = (points @ rng.normal(size=(points.shape[1], 400))).max(axis=0)
    assert best.mean() < _Sparse(n, k, 3, "sparse").width()


def test_block_widths_are_those_of_matrices_of_noise():
    rng = np.random.default_rng(0)
    n = 12
    W = [np.triu(rng.normal(size=(n, n)), 1) for _ in range(200)]
    # pairs: half of <W + W', X> over correlation matrices X is at most n / 2 times the largest eigenvalue
    pairs = np.mean([n / 2 * np.linalg.eigvalsh(w + w.T)[-1] for w in W])
    assert 0.7 * _block_width(n, 2) < pairs < _block_width(n, 2)
    triples = np.mean([np.linalg.norm(rng.normal(size=(n, 66)), 2) * np.sqrt(n * 66) for _ in range(50)])
    assert 0.9 * _block_width(n, 3) < triples < _block_width(n, 3)


def test_no_share_exceeds_that_of_a_part_of_its_columns():
    Y = _sparse_table(500, 12, 3, 1)
    released = PrivateMarginals(2, sparsity=3, delta=1e-4, random_state=0).fit(Y)
    place = {subset: i for i, subset in enumerate(released.subsets_)}
    for i, j in (subset for subset in released.subsets_ if len(subset) == 2):
        pair = released.conjunctions_[place[i, j]]
        assert pair <= released.conjunctions_[place[i,]] + 1e-12
        assert pair <= released.conjunctions_[place[j,]] + 1e-12


@given(hnp.arrays(np.float64, st.integers(2, 6), elements=st.floats(-2, 2)))
@settings(max_examples=50, deadline=None)
def test_nesting_is_the_projection_that_a_solver_finds(values):
    found = values.copy()
    _nest(found, 0, np.arange(1, len(values)))
    other = minimize(
        lambda x: np.sum((x - values) ** 2),
        np.full(len(values), values.mean()),
        jac=lambda x: 2 * (x - values),
        constraints={"type": "ineq", "fun": lambda x: x[0] - x[1:]},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert (found[1:] <= found[0] + 1e-12).all()
    assert np.sum((found - values) ** 2) <= np.sum((other.x - values) ** 2) + 1e-6


def test_columns_have_names_and_order():
    Y = pd.DataFrame(_table(500, 3, 0).astype(bool), columns=["a", "b", "c"])
    released = PrivateMarginals(2, epsilon=5.0, delta=1e-4, random_state=0).fit(Y)
    assert released.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(released.table(["a", "c"]), released.table([0, 2]))
    assert released.table(["c", "a"]) == pytest.approx(released.table([0, 2]).T, abs=1e-12)
    again = clone(released).fit(Y.to_numpy())
    assert not hasattr(again, "feature_names_in_")
    assert np.array_equal(again.parities_, released.parities_)


def test_rows_with_too_many_ones_are_refused_or_cut():
    Y = np.array([[1, 1, 1, 0], [0, 1, 0, 1]] * 10)
    with pytest.raises(InputError, match="more than 2 ones"):
        PrivateMarginals(1, sparsity=2, delta=0.01).fit(Y)
    released = PrivateMarginals(1, sparsity=2, clip=True, epsilon=1e6, delta=0.01, random_state=0).fit(Y)
    assert released.conjunctions_ == pytest.approx([0.5, 1.0, 0.0, 0.5], abs=1e-3)


def test_a_delta_as_large_as_one_row_is_warned_about():
    with pytest.warns(UserWarning, match="publishing one of them"):
        PrivateMarginals(1, delta=0.1, random_state=0).fit(_table(20, 3, 0))


def test_the_certificate_names_everything():
    released = PrivateMarginals(2, sparsity=3, random_state=0, clip=True).fit(_table(100, 4, 0))
    certificate = released.certificate_
    assert certificate.parameters["sensitivity"] == pytest.approx(np.sqrt(2 * 6) / 100)
    assert certificate.parameters["sparsity"] == 3
    assert "differ in one row" in certificate.guarantee
    assert Certificate.from_dict(certificate.to_dict()) == certificate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 9}, "k is 9 for 4 columns"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"delta": 0}, "delta is 0"),
        ({"sparsity": 0}, "sparsity is 0"),
        ({"relaxation": "lp"}, "relaxation is 'lp'"),
        ({"relaxation": "sparse"}, "'sparse' with a bound"),
        ({"relaxation": "sos", "sparsity": 3}, "'sos' without"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"noise": "laplace"}, "noise is 'laplace'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PrivateMarginals(**{"random_state": 0, "clip": True} | options).fit(_table(100, 4, 0))


def test_tables_of_other_things_are_refused():
    with pytest.raises(InputError, match="neither 0 nor 1"):
        PrivateMarginals().fit([[0, 2], [1, 0]])
    with pytest.raises(InputError, match="neither 0 nor 1"):
        PrivateMarginals().fit([[0.0, np.nan], [1.0, 0.0]])
    with pytest.raises(InputError, match="rows and columns"):
        PrivateMarginals().fit([0, 1])
    released = PrivateMarginals(2, random_state=0).fit(_table(100, 4, 0))
    for columns in ([], [0, 0], [0, 1, 2], [4], ["a"], [-1]):
        with pytest.raises(InputError, match="columns is"):
            released.table(columns)
    with pytest.raises(InputError, match="1 values for 2 columns"):
        released.marginal([0, 1], [1])
