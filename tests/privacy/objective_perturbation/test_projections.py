"""Nearest points, against optimality conditions and solvers of another kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from aboveboard.core import InputError
from aboveboard.privacy import alternate, dykstra, project_elliptope, project_psd, project_simplex_ball


def _cosines(n, d, seed):
    V = np.random.default_rng(seed).normal(size=(n, d))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    return V @ V.T


def _mirrored_noise(n, sigma, seed):
    W = np.triu(np.random.default_rng(seed).normal(scale=sigma, size=(n, n)), 1)
    return W + W.T


@given(hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(-3, 3)), st.floats(0, 4))
@settings(max_examples=30, deadline=None)
def test_the_point_of_the_simplex_is_the_one_a_solver_finds(a, radius):
    found = project_simplex_ball(a, radius)
    assert found.min() >= 0
    assert found.sum() <= radius + 1e-9
    other = minimize(
        lambda x: np.sum((x - a) ** 2),
        np.zeros(len(a)),
        jac=lambda x: 2 * (x - a),
        bounds=[(0, None)] * len(a),
        constraints={"type": "ineq", "fun": lambda x: radius - x.sum()},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.sum((found - a) ** 2) <= np.sum((np.maximum(other.x, 0) - a) ** 2) + 1e-6


def test_the_positive_part_keeps_positive_eigenvalues_and_the_trace_can_be_bounded():
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    matrix = (rotation * [3.0, 1.0, -1.0, -2.0]) @ rotation.T
    assert np.linalg.eigvalsh(project_psd(matrix)) == pytest.approx([0, 0, 1, 3], abs=1e-12)
    assert np.linalg.eigvalsh(project_psd(matrix, max_trace=3.0)) == pytest.approx([0, 0, 0.5, 2.5], abs=1e-12)
    assert project_psd(matrix, max_trace=5.0) == pytest.approx(project_psd(matrix))


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.0])
def test_the_correlation_matrix_satisfies_the_conditions_of_optimality(sigma):
    n = 12
    Y = _cosines(n, 3, 0) + _mirrored_noise(n, sigma, 1)
    X = project_elliptope(Y, max_iter=5_000, tol=1e-10)
    assert np.diag(X) == pytest.approx(1, abs=1e-15)
    assert np.linalg.eigvalsh(X)[0] >= -1e-12
    # a dual solution: S = diag(u) - (Y - X) is positive semidefinite and orthogonal to X
    S = np.diag(np.diag((Y - X) @ X)) - (Y - X)
    assert np.linalg.eigvalsh(S)[0] >= -1e-5
    assert abs(np.sum(S * X)) < 1e-5


def test_a_correlation_matrix_is_its_own_nearest_one():
    A = _cosines(10, 3, 0)
    assert project_elliptope(A) == pytest.approx(A, abs=1e-6)


def test_dykstra_finds_the_nearest_point_where_alternating_does_not():
    def below(x):  # y <= 0
        return np.array([x[0], min(x[1], 0.0)])

    def left(x):  # x + y <= 0
        return x - max(x.sum(), 0.0) / 2

    corner = dykstra([1.0, 2.0], [left, below], max_iter=2_000, tol=1e-12)
    assert corner == pytest.approx([0, 0], abs=1e-6)  # both constraints hold the point (1, 2) back
    assert alternate([1.0, 2.0], [left, below], max_iter=2_000) == pytest.approx([-0.5, 0], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_projection_makes_no_acute_angle_with_the_answer_and_alternating_never_moves_away(seed):
    n = 20
    A, W = _cosines(n, 4, seed), _mirrored_noise(n, 1.0, seed + 100)
    X = project_elliptope(A + W, max_iter=3_000, tol=1e-10)
    assert np.sum((X - A) ** 2) <= np.sum(W * (X - A)) + 1e-5

    def ones(M):
        return M + np.diag(1 - np.diag(M))

    errors = [np.sum((alternate(A + W, [project_psd, ones], max_iter=m) - A) ** 2) for m in range(6)]
    assert (np.diff(errors) <= 1e-9).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: project_simplex_ball([[1.0]], 1), "a vector"),
        (lambda: project_simplex_ball([1.0], -1), "radius"),
        (lambda: project_psd(np.ones((2, 3))), "square"),
        (lambda: project_psd([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (lambda: project_elliptope([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
    ],
)
def test_what_cannot_be_projected_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
