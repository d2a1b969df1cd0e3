"""Every objective has its value and its derivatives, held against dense solves and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.collective import (
    Box,
    Disagreement,
    MeanOpinion,
    OpinionInterventionOptimizer,
    Polarization,
    ShareOutside,
    WeightedSum,
)
from aboveboard.collective.opinion_interventions._objectives import read_objective
from aboveboard.core import InputError


def random_network(seed, n=12, *, mutual=False):
    rng = np.random.default_rng(seed)
    W = (rng.random((n, n)) < 0.4) * rng.random((n, n))
    np.fill_diagonal(W, 0.0)
    return (W + W.T if mutual else W), rng.normal(size=n)


def system(W):
    return np.eye(len(W)) + np.diag(W.sum(axis=1)) - W


def polarization(W, y):
    return np.mean(y**2)


def disagreement(W, y):
    return 0.5 * (W * (y[:, None] - y[None, :]) ** 2).sum()


OBJECTIVES = {
    "polarization": ("polarization", polarization),
    "around 0.3": (Polarization(0.3), lambda W, y: np.mean((y - 0.3) ** 2)),
    "variance": (Polarization(None), lambda W, y: y.var()),
    "disagreement": ("disagreement", disagreement),
    "mean": (MeanOpinion(), lambda W, y: y.mean()),
    "outside": (ShareOutside(0.2, 0.3), lambda W, y: np.mean(1 / (1 + np.exp(-(np.abs(y) - 0.2) / 0.3)))),
    "sum": (
        WeightedSum([(2.0, "polarization"), (-0.5, MeanOpinion()), (0.1, Disagreement()), (0.1, "disagreement")]),
        lambda W, y: 2 * polarization(W, y) - 0.5 * y.mean() + 0.2 * disagreement(W, y),
    ),
}
each_objective = pytest.mark.parametrize("name", OBJECTIVES)


def held(objective, W, s, **options):
    """Return an optimizer that may change nothing: its gradient is that of the weights as they are."""
    rows, cols = np.nonzero(np.triu(W) if options else W)
    start = W[rows, cols]
    return OpinionInterventionOptimizer(objective, constraint=Box(start, start), **options).fit(W, s)


@each_objective
@pytest.mark.parametrize("mutual", [True, False])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_gradients_are_those_of_central_differences_of_dense_solves(name, mutual, seed):
    objective, formula = OBJECTIVES[name]
    W, s = random_network(seed, n=7, mutual=mutual)
    W[0, 1] = W[1, 0] = 1.0
    found = held(objective, W, s, **({"symmetric": True} if mutual else {}))
    numeric = []
    for i, j in zip(found.rows_, found.cols_):
        values = []
        for h in (1e-5, -1e-5):
            V = W.copy()
            V[i, j] += h
            if mutual:
                V[j, i] += h
            values.append(formula(V, np.linalg.solve(system(V), s)))
        numeric.append((values[0] - values[1]) / 2e-5)
    assert found.objective_ == pytest.approx(formula(W, np.linalg.solve(system(W), s)), abs=1e-9)
    assert found.gradient_ == pytest.approx(np.array(numeric), rel=1e-6, abs=1e-8)


@each_objective
def test_equal_opinions_leave_nothing_to_gain(name):
    W, _ = random_network(1)
    found = held(OBJECTIVES[name][0], W, np.full(12, 0.7))
    assert found.opinions_ == pytest.approx(np.full(12, 0.7))
    assert found.gradient_ == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: read_objective("peace"), "objective is 'peace'"),
        (lambda: read_objective(3), "objective is 3"),
        (lambda: ShareOutside(0.5, 0.0), "width"),
        (lambda: ShareOutside(np.nan), "threshold"),
        (lambda: WeightedSum([]), "pairs"),
        (lambda: WeightedSum([(np.nan, "polarization")]), "finite weight"),
    ],
)
def test_what_is_no_objective_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
