"""Similarities: sensitivities by brute force, errors below their bounds, matrices of cosines."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import gaussian_sigma, private_cosine_similarity, private_item_similarity


def _unit(n, d, seed):
    V = np.random.default_rng(seed).normal(size=(n, d))
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def _rows(n_users, n, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_users, n)) < np.linspace(0.05, 0.6, n)) * rng.random((n_users, n))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)


def test_no_shift_of_a_vector_moves_the_similarities_further_than_is_certified():
    rng = np.random.default_rng(0)
    furthest = 0.0
    for _ in range(500):
        n, shift = int(rng.integers(2, 5)), 0.3
        V = _unit(n, 2, rng)
        if rng.random() < 0.5:
            V[:] = V[0]  # vectors that agree are the worst case
        turned = V.copy()
        angle = 2 * np.arcsin(shift / 2) * rng.choice([-1, 1])
        turned[0] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] @ V[0]
        assert np.linalg.norm(turned[0] - V[0]) == pytest.approx(shift)
        moved = np.linalg.norm(np.triu(turned @ turned.T - V @ V.T, 1)) / np.sqrt(n - 1)
        furthest = max(furthest, moved)
    certified = private_cosine_similarity(V, shift=shift, epsilon=100.0, random_state=0).certificate()
    assert furthest <= certified.parameters["sensitivity"] / np.sqrt(n - 1)
    assert furthest > 0.9 * shift


@pytest.mark.parametrize("solver", ["dykstra", "alternating"])
@pytest.mark.parametrize("max_iter", [1, 50])
def test_errors_are_below_the_bound_and_what_is_released_are_cosines(solver, max_iter):
    n, sigma = 60, 0.5
    V = _unit(n, 6, 0)
    sensitivity = sigma / gaussian_sigma(1.0, 1e-6)
    errors = []
    for seed in range(5):
        release = private_cosine_similarity(
            V, sensitivity=sensitivity, solver=solver, max_iter=max_iter, random_state=seed
        )
        errors.append(np.mean((release.matrix - V @ V.T) ** 2))
        assert np.diag(release.matrix) == pytest.approx(1)
        assert np.linalg.eigvalsh(release.matrix)[0] >= -1e-8
        assert np.array_equal(release.matrix, release.matrix.T)
    assert release.sigma == pytest.approx(sigma, rel=1e-5)
    assert release.error_bound == pytest.approx(2 * sigma / np.sqrt(n), rel=1e-5)
    assert np.mean(errors) < release.error_bound < sigma**2
    assert release.gram is None


def test_a_release_of_nothing_but_noise_is_refused_unless_forced():
    V = _unit(20, 3, 0)
    with pytest.raises(InputError, match="force=True"):
        private_cosine_similarity(V, shift=2.0, random_state=0)
    forced = private_cosine_similarity(V, shift=2.0, force=True, random_state=0)
    assert forced.error_bound >= 1
    assert Certificate.from_dict(forced.certificate().to_dict()) == forced.certificate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither or both"),
        ({"shift": 0.1, "sensitivity": 0.1}, "neither or both"),
        ({"shift": 2.5}, "2 at most"),
        ({"shift": 0}, "shift is 0"),
        ({"sensitivity": -1}, "sensitivity is -1"),
        ({"shift": 0.01, "solver": "newton"}, "solver is 'newton'"),
        ({"shift": 0.01, "max_iter": 0}, "max_iter is 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        private_cosine_similarity(_unit(5, 2, 0), random_state=0, **options)


def test_vectors_of_another_length_are_refused():
    with pytest.raises(InputError, match="norm other than 1"):
        private_cosine_similarity(2 * _unit(5, 2, 0), shift=0.01)
    with pytest.raises(InputError, match="finite numbers"):
        private_cosine_similarity([[np.nan]], shift=0.01)
    with pytest.raises(InputError, match="one vector"):
        private_cosine_similarity([[1.0]], shift=0.01)


def test_one_item_has_a_norm_and_is_like_itself():
    release = private_item_similarity(np.ones((500, 1)), epsilon=5.0, random_state=0)
    assert release.matrix.tolist() == [[1.0]]
    assert release.gram[0, 0] == pytest.approx(500, abs=10)


# --- items ------------------------------------------------------------------------------------------------------------


def test_one_user_moves_sums_of_products_by_no_more_than_the_noise_pays_for():
    # noise of variance 1 on the diagonal and 1/2 above it hides any shift of norm 1 in these units
    for x in _rows(200, 4, 0):
        gram = np.outer(x, x)
        paid = np.sum(np.diag(gram) ** 2) + 2 * np.sum(np.triu(gram, 1) ** 2)
        assert paid <= 1 + 1e-12
        assert np.linalg.norm(np.triu(gram, 1)) <= np.sqrt(0.5) + 1e-12


def test_items_are_as_similar_as_they_are_where_noise_is_small():
    X = _rows(5_000, 6, 0)
    truth = X.T @ X
    release = private_item_similarity(X, epsilon=50.0, max_users=5_000, random_state=0)
    scale = 1 / np.sqrt(np.diag(truth))
    assert release.gram == pytest.approx(truth, abs=3.0)
    assert release.matrix == pytest.approx(truth * np.outer(scale, scale), abs=0.05)


def test_errors_of_sums_are_below_the_bound_and_of_the_noise_that_was_drawn():
    X = _rows(200, 30, 0)
    truth = X.T @ X
    releases = [private_item_similarity(X, max_users=200, random_state=seed) for seed in range(10)]
    first = releases[0]
    assert first.sigma * np.sqrt(2) == pytest.approx(gaussian_sigma(1.0, 1e-6), rel=1e-6)
    assert first.error_bound == pytest.approx(min(2 * first.sigma**2, 2 * first.sigma * 200 / 30**1.5))
    assert np.mean([np.mean((release.gram - truth) ** 2) for release in releases]) < first.error_bound
    for release in releases:
        assert np.diag(release.matrix) == pytest.approx(1)
        assert np.linalg.eigvalsh(release.matrix)[0] >= -1e-8
        assert np.trace(release.gram) <= 200 + 1e-9


def test_without_a_bound_of_users_the_trace_is_bounded_from_the_noisy_one():
    X = _rows(3_000, 10, 0)
    release = private_item_similarity(X, random_state=0)
    assert release.error_bound is None
    assert np.trace(release.gram) == pytest.approx(np.sum(X**2), rel=0.1)


def test_items_that_nobody_has_are_like_nothing():
    X = np.zeros((500, 3))
    X[:, 0] = X[:250, 1] = 0.7
    release = private_item_similarity(X, epsilon=2.0, random_state=0)
    assert np.abs(release.matrix[2, :2]).max() < 0.5
    assert release.matrix[0, 1] > 0.5
    assert private_item_similarity(X, floor=1e6, random_state=0).matrix == pytest.approx(np.eye(3), abs=1e-3)


def test_rows_that_are_too_long_are_refused_or_shortened():
    X = pd.DataFrame({"a": [1.0, 0.0], "b": [1.0, 1.0]})
    with pytest.raises(InputError, match="norm above 1"):
        private_item_similarity(X)
    release = private_item_similarity(X, clip=True, epsilon=1e4, delta=0.1, random_state=0)
    assert release.gram == pytest.approx(np.array([[0.5, 0.5], [0.5, 1.5]]), abs=0.1)


def test_rounding_never_makes_a_row_longer():
    rows = _unit(2_000, 7, 0)
    exact = np.trunc(rows * 2.0**16).astype(np.int64)
    assert ((exact**2).sum(axis=1) <= 2**32).all()


def test_options_for_items_out_of_range_are_refused():
    for options in ({"floor": 0}, {"max_users": 0}, {"epsilon": -1}, {"noise": "none"}):
        with pytest.raises(InputError):
            private_item_similarity(np.eye(3), random_state=0, **options)
