"""Pseudo-moments: real data have them, and with enough of them nothing else does."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

from aboveboard.core import InputError
from aboveboard.privacy import project_pseudo_moments
from aboveboard.privacy.objective_perturbation._pseudo_moments import PseudoMoments, subsets


def _parities(signs, k):
    return np.array([signs[:, list(subset)].prod(axis=1).mean() for subset in subsets(signs.shape[1], k)])


def _signs(n_rows, n, seed):
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(n_rows, n))


def test_subsets_come_by_size_and_in_lexicographic_order():
    assert subsets(3, 2) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert subsets(3, 1, empty=True) == [(), (0,), (1,), (2,)]


@pytest.mark.parametrize(("n", "k", "half_degree"), [(3, 2, 3), (3, 3, 3), (4, 3, 4)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_all_moments_it_is_the_projection_onto_the_marginals_of_data(n, k, half_degree, seed):
    corners = np.array(list(product([-1.0, 1.0], repeat=n)))
    points = np.column_stack([_parities(corner[None], k) for corner in corners])
    noisy = np.random.default_rng(seed).normal(size=len(points))
    # the nearest mixture of the 2^n corners, by non-negative least squares with a stiff row for their sum
    stiff = 1e4
    weights = nnls(np.vstack([points, np.full(len(corners), stiff)]), np.append(noisy, stiff))[0]
    found = project_pseudo_moments(noisy, n, k, half_degree=half_degree, tol=1e-8, max_iter=20_000)
    assert found == pytest.approx(points @ (weights / weights.sum()), abs=1e-4)


def test_with_fewer_moments_the_set_is_larger_so_that_the_nearest_point_is_nearer():
    noisy = np.random.default_rng(0).normal(size=len(subsets(4, 2)))
    distances = [
        np.linalg.norm(project_pseudo_moments(noisy, 4, 2, half_degree=half, tol=1e-8, max_iter=20_000) - noisy)
        for half in (1, 2, 4)
    ]
    assert distances[0] < distances[1] <= distances[2] + 1e-6


@pytest.mark.parametrize(("n", "k"), [(6, 2), (6, 3), (5, 4), (70, 1)])
def test_marginals_of_data_stay_as_they_are(n, k):
    observed = _parities(_signs(40, n, 0), k)
    assert project_pseudo_moments(observed, n, k, tol=1e-8, max_iter=5_000) == pytest.approx(observed, abs=1e-5)


def test_the_nearest_point_is_feasible_and_makes_no_acute_angle_with_data():
    n, k = 8, 3
    observed = _parities(_signs(30, n, 0), k)
    noise = np.random.default_rng(1).normal(size=len(observed))
    moments = PseudoMoments(n, k)
    full, negative = moments._nearest(observed + noise, 5_000, 1e-8)
    assert (
        np.linalg.eigvalsh(moments.matrix(full / (1 + negative)) + np.eye(37) * negative / (1 + negative))[0] >= -1e-10
    )
    found = moments.project(observed + noise, max_iter=5_000, tol=1e-8)
    assert np.sum((found - observed) ** 2) <= noise @ (found - observed) + 1e-4
    for seed in range(20):
        other = _parities(_signs(5, n, seed), k)
        assert (observed + noise - found) @ (other - found) <= 1e-3


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="1 <= k <= n"):
        project_pseudo_moments([0.0], 1, 2)
    with pytest.raises(InputError, match="6 finite numbers"):
        project_pseudo_moments([0.0], 3, 2)
    with pytest.raises(InputError, match="at least half"):
        project_pseudo_moments(np.zeros(7), 3, 3, half_degree=1)
    with pytest.raises(InputError, match=r"has 2,017 rows and takes 33 MB"):
        PseudoMoments(63, 3)
