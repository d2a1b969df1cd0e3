"""What resampling costs: changed rows by brute force, group privacy by summation; SMOTE against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from aboveboard.core import InputError
from aboveboard.privacy import bootstrap_delta, effective_epsilon, kissing_number_bound, nominal_epsilon, smote


def neighbour_sets(rows, k):
    return [set(found) for found in NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(return_distance=False)]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), d=st.integers(1, 3), k=st.integers(1, 4), n=st.integers(6, 60), m=st.integers(1, 9))
def test_replacing_a_row_changes_no_more_points_of_smote_than_the_bound(seed, d, k, n, m):
    """With coupled randomness: a row's points change where its list of neighbours does, or where it moved itself."""
    rng = np.random.default_rng(seed)
    before = rng.normal(size=(n, d)) * rng.exponential(size=(n, 1)) ** 3
    after = before.copy()
    after[0] = 3 * rng.normal(size=d)
    # whose list holds the row that moved, before or after, has its points changed, even where the list stays the same
    others = sum(
        old != new or 0 in old
        for old, new in zip(neighbour_sets(before, k)[1:], neighbour_sets(after, k)[1:], strict=True)
    )
    found = effective_epsilon("smote", 1.0, n_minority=n, n_majority=9 * n, per_row=m, k_neighbors=k, n_features=d)
    assert 1 + m + m * others <= found.changed_rows <= 1 + m * n


def test_on_a_line_the_bound_on_neighbour_lists_is_attained():
    rows = np.array([0.0, 1.0, -1.0, 3.0, -3.0, 100.0, 101.0, 103.0])[:, None]
    k = 2
    assert sum(0 in found for found in neighbour_sets(rows, k)) == k * kissing_number_bound(1)


def test_kissing_numbers_lie_between_the_known_lower_bounds_and_those_of_the_cap_argument():
    lower = {1: 2, 2: 6, 3: 12, 4: 24, 5: 40, 6: 72, 7: 126, 8: 240, 9: 306, 10: 510, 12: 840, 16: 4320, 24: 196_560}
    for d, known in lower.items():
        assert kissing_number_bound(d) >= known
    assert kissing_number_bound(3) == 12
    assert kissing_number_bound(10_000) == 10**15


@given(epsilon=st.floats(0.001, 2), copies=st.integers(0, 60), delta=st.floats(1e-12, 1e-4))
def test_group_privacy_is_that_of_one_step_after_another(epsilon, copies, delta):
    found = effective_epsilon("oversampling", epsilon, delta, n_minority=5, n_majority=50, per_row=copies)
    whole, lost = 0.0, 0.0
    for _ in range(copies + 1):  # D_i to D_{i+1}: P <= e^eps (e^whole Q + lost) + delta
        whole, lost = whole + epsilon, math.exp(epsilon) * lost + delta
    assert found.epsilon == pytest.approx(whole)
    assert found.delta == pytest.approx(min(lost, 1.0), rel=1e-6)
    assert found.vacuous == (found.delta >= 1)


def test_balancing_takes_as_many_rows_as_the_ratio_of_the_classes():
    found = effective_epsilon("oversampling", 1.0, n_minority=30, n_majority=1000)
    assert found.changed_rows == math.ceil(1000 / 30)
    assert effective_epsilon("oversampling", 1.0, n_minority=50, n_majority=50).epsilon == 1.0


def test_ties_may_put_a_row_into_every_list():
    rows = np.zeros((20, 2))
    lists = neighbour_sets(np.vstack([rows, np.ones((1, 2))]), 3)
    most = max(sum(row in found for found in lists) for row in range(20))
    assert most > 3 * 6  # more than the kissing number allows without ties
    assert effective_epsilon("smote", 1.0, n_minority=21, n_majority=63, per_row=2).changed_rows == 1 + 2 * 21


@given(
    epsilon=st.floats(0.01, 10),
    n=st.integers(2, 200),
    ratio=st.integers(1, 50),
    d=st.integers(1, 50),
    k=st.integers(1, 9),
)
def test_the_nominal_epsilon_is_the_inverse(epsilon, n, ratio, d, k):
    setting = {"n_minority": n, "n_majority": ratio * n, "n_features": d, "k_neighbors": k}
    nominal = nominal_epsilon(epsilon, "smote", **setting)
    assert effective_epsilon("smote", nominal, **setting).epsilon == pytest.approx(epsilon)


def test_bootstrap_delta_is_the_chance_that_a_row_is_drawn():
    rng = np.random.default_rng(0)
    drawn = (rng.integers(40, size=(20_000, 12)) == 0).any(axis=1).mean()
    assert bootstrap_delta(40, 4, 3) == pytest.approx(drawn, abs=4 * math.sqrt(0.25 / 20_000))
    assert bootstrap_delta(1, 1, 1) == 1.0


def test_smote_puts_points_between_rows_of_the_rare_class_and_their_neighbours():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), np.array(["no"] * 65 + ["yes"] * 15)
    rows, labels = smote(X, y, per_row=4, k_neighbors=3, random_state=0)
    assert np.array_equal(rows[:80], X)
    assert labels.tolist() == y.tolist() + ["yes"] * 60
    rare = X[65:]
    near = NearestNeighbors(n_neighbors=3).fit(rare).kneighbors(return_distance=False)
    for i, point in enumerate(rows[80:]):
        start = rare[i // 4]
        ends = rare[near[i // 4]]
        detour = (
            np.linalg.norm(point - start) + np.linalg.norm(point - ends, axis=1) - np.linalg.norm(ends - start, axis=1)
        )
        assert detour.min() < 1e-9


def test_bad_numbers_are_refused():
    good = {"n_minority": 10, "n_majority": 90}
    for bad in ({"n_minority": 0}, {"n_majority": -1}, {"per_row": -1}, {"k_neighbors": 0}, {"n_features": 0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            effective_epsilon("smote", 1.0, **(good | bad))
    with pytest.raises(InputError, match="method"):
        effective_epsilon("adasyn", 1.0, **good)
    with pytest.raises(InputError, match="epsilon"):
        effective_epsilon("smote", -1.0, **good)
    with pytest.raises(InputError, match="rarer class has 3"):
        smote(np.arange(20.0)[:, None], [1] * 3 + [0] * 17, per_row=1)
