"""Opinions in equilibrium, against dense solves and what is known of the model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from aboveboard.collective import FriedkinJohnsen
from aboveboard.core import InputError

METHODS = ("auto", "jacobi", "krylov")


def random_network(seed, n=12, *, mutual=False, scale=1.0):
    rng = np.random.default_rng(seed)
    W = (rng.random((n, n)) < 0.4) * rng.random((n, n)) * scale
    np.fill_diagonal(W, 0.0)
    return (W + W.T if mutual else W), rng.normal(size=n)


def system(W):
    return np.eye(len(W)) + np.diag(W.sum(axis=1)) - W


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("mutual", [True, False])
def test_every_solver_gives_the_dense_solution(method, scale, mutual):
    W, s = random_network(1, mutual=mutual, scale=scale)
    model = FriedkinJohnsen(W, s)
    y = np.linalg.solve(system(W), s)
    assert model.equilibrium(1e-10, method) == pytest.approx(y, abs=1e-9)
    assert model.equilibrium(1e-10, method, start=y + 1.0) == pytest.approx(y, abs=1e-9)
    assert model.adjoint(s, 1e-10, method) == pytest.approx(np.linalg.solve(system(W).T, s), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_residual_bounds_the_error_of_every_opinion(seed):
    W, s = random_network(seed)
    model = FriedkinJohnsen(W, s)
    exact = np.linalg.solve(system(W), s)
    guess = exact + np.random.default_rng(seed).normal(size=len(s))
    assert np.abs(guess - exact).max() <= model.residual(guess) * (1 + 1e-12)
    for tol in (1e-2, 1e-6):
        assert np.abs(model.equilibrium(tol) - exact).max() <= tol
        v = np.linalg.solve(system(W).T, s)
        assert np.abs(model.adjoint(s, tol) - v).sum() <= tol


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_opinions_stay_between_the_least_and_the_largest_own_opinion(seed):
    W, s = random_network(seed)
    y = FriedkinJohnsen(W, s).equilibrium(1e-12)
    assert s.min() - 1e-11 <= y.min()
    assert y.max() <= s.max() + 1e-11


def test_nobody_who_listens_to_nobody_changes_an_opinion():
    assert FriedkinJohnsen(np.zeros((3, 3)), [1, 2, 4]).equilibrium().tolist() == [1, 2, 4]


@pytest.mark.parametrize("method", METHODS)
def test_with_large_weights_everybody_says_the_same(method):
    W, s = random_network(2, mutual=True)
    y = FriedkinJohnsen(1e4 * W, s).equilibrium(1e-6, "auto" if method == "jacobi" else method)
    assert np.ptp(y) < 1e-3
    assert y.mean() == pytest.approx(s.mean(), abs=1e-5)


def test_weights_beyond_float64_are_said_to_be():
    W, s = random_network(2)
    with pytest.warns(ConvergenceWarning, match="hardly anything of people's own opinions"):
        FriedkinJohnsen(1e14 * W, s).equilibrium(1e-12)


def test_mutual_weights_leave_the_mean_opinion():
    W, s = random_network(3, mutual=True)
    model = FriedkinJohnsen(W, s)
    assert model.equilibrium(1e-12).mean() == pytest.approx(s.mean(), abs=1e-12)
    assert model.influence(1e-12) == pytest.approx(np.full(12, 1 / 12))


def test_influence_is_the_column_sum_of_the_inverse():
    W, s = random_network(4)
    influence = FriedkinJohnsen(W, s).influence(1e-12)
    assert influence == pytest.approx(np.linalg.inv(system(W)).mean(axis=0))
    assert influence.sum() == pytest.approx(1.0)


def test_the_adjoint_is_the_adjoint():
    W, s = random_network(5)
    rng = np.random.default_rng(0)
    right, change = rng.normal(size=(2, 12))
    v = FriedkinJohnsen(W, s).adjoint(right, 1e-12)
    assert v @ system(W) @ change == pytest.approx(right @ change)


def test_renaming_the_accounts_renames_the_opinions():
    W, s = random_network(6)
    order = np.random.default_rng(1).permutation(12)
    y = FriedkinJohnsen(W, s).equilibrium(1e-12)
    assert FriedkinJohnsen(W[np.ix_(order, order)], s[order]).equilibrium(1e-12) == pytest.approx(y[order])


def test_polarization_and_disagreement_are_those_of_their_definitions():
    W, s = random_network(7)
    model = FriedkinJohnsen(W, s)
    y = np.linalg.solve(system(W), s)
    assert model.polarization() == pytest.approx(np.mean(y**2))
    assert model.polarization(center=None) == pytest.approx(y.var())
    assert model.disagreement() == pytest.approx(0.5 * (W * (y[:, None] - y[None, :]) ** 2).sum())
    assert model.disagreement(s) == pytest.approx(0.5 * (W * (s[:, None] - s[None, :]) ** 2).sum())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.equilibrium(0.0), "tol is 0.0"),
        (lambda model: model.equilibrium(method="lu"), "auto, jacobi or krylov"),
        (lambda model: model.equilibrium(start=[1, 2]), "start has shape"),
        (lambda model: model.adjoint([1, 2]), "rhs has shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(FriedkinJohnsen(np.zeros((3, 3)), [1, 2, 3]))
