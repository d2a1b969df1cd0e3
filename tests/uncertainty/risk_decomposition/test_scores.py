"""Centres against numerical minimisation over the simplex, and scores of one's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import xlogy

from aboveboard.core import InputError
from aboveboard.uncertainty import ProperScore, central_prediction, pointwise_risk, uncertainty_measures


class Own:
    """A built-in score, given as its convex function."""

    def __init__(self, G, grad, name):
        self.G, self.grad, self.name = G, grad, name


BRIER = Own(lambda p: -(p * (1 - p)).sum(-1), lambda p: 2 * p - 1, "own brier")
LOG = Own(lambda p: xlogy(p, p).sum(-1), lambda p: 1 + np.log(p), "own log")
SPHERICAL = Own(
    lambda p: np.linalg.norm(p, axis=-1) - 1, lambda p: p / np.linalg.norm(p, axis=-1, keepdims=True), "own spherical"
)


def draws(M=4, n=6, K=4, seed=0, a=1.5):
    return np.random.default_rng(seed).dirichlet(np.full(K, a), size=(M, n))


@pytest.mark.parametrize(("name", "own"), [("log", LOG), ("brier", BRIER), ("spherical", SPHERICAL)])
def test_the_centre_minimises_the_mean_divergence(name, own):
    members = draws()
    centre = central_prediction(members, name)
    assert centre.sum(axis=1) == pytest.approx(1)
    for row in range(members.shape[1]):
        slope = own.grad(members[:, row]).mean(axis=0)

        def mean_divergence(t, slope=slope):
            z = np.exp(t - t.max())
            z = z / z.sum()
            return float(own.G(z) - slope @ z)

        found = minimize(mean_divergence, np.zeros(4), method="BFGS", options={"gtol": 1e-10}).x
        best = np.exp(found - found.max())
        assert centre[row] == pytest.approx(best / best.sum(), abs=1e-5)


def test_the_centre_of_the_zero_one_score_is_the_mean():
    members = draws()
    assert central_prediction(members, "zero_one") == pytest.approx(members.mean(axis=0))


simplex = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(2, 6)), elements=st.floats(0, 1)
).map(lambda a: (a + 1e-9) / (a + 1e-9).sum(-1, keepdims=True))


@given(simplex)
def test_the_spherical_centre_never_leaves_the_simplex(members):
    v = members / np.linalg.norm(members, axis=-1, keepdims=True)
    v = v.mean(axis=0)
    v = v - v.mean(axis=-1, keepdims=True)
    K = members.shape[-1]
    before_rounding = 1 / K + v / np.sqrt(K * (1 - (v**2).sum(-1)))[:, None]
    assert before_rounding.min() >= -1e-9
    assert central_prediction(members, "spherical") == pytest.approx(before_rounding, abs=1e-9)


@pytest.mark.parametrize(("name", "own"), [("log", LOG), ("brier", BRIER), ("spherical", SPHERICAL)])
def test_a_score_of_ones_own_gives_the_measures_of_the_built_in_one(name, own):
    members = draws()
    assert isinstance(own, ProperScore)
    ours, theirs = uncertainty_measures(members, [own]), uncertainty_measures(members, [name])
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy(), abs=1e-6)
    assert list(ours.columns.get_level_values("score")) == [own.name] * 16


def test_its_own_centre_is_used():
    own = Own(BRIER.G, BRIER.grad, "own")
    own.central = lambda members: np.full(members.shape[1:], 0.25)
    assert central_prediction(draws(), own) == pytest.approx(0.25)


def test_a_score_of_the_wrong_shape_or_without_an_end_is_refused():
    members = draws()
    with pytest.raises(InputError, match="gave shapes"):
        pointwise_risk(members, score=Own(lambda p: p, lambda p: p, "square"))
    with pytest.raises(InputError, match="not finite"):
        pointwise_risk(
            np.array([[[1.0, 0.0]]] * 2),
            score=Own(lambda p: p.sum(-1), lambda p: np.where(p > 0, p, np.inf), "endless"),
        )
    with pytest.raises(InputError, match=r"G\(p\) and grad\(p\)"):
        pointwise_risk(members, score=object())
