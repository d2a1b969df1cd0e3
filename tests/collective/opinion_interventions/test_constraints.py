"""The nearest point of every set, against quadratic programs and the inequality that only it satisfies."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from aboveboard.collective import (
    Box,
    BudgetSimplex,
    ConvexSet,
    FrobeniusBall,
    Intersection,
    RowSimplex,
)
from aboveboard.collective.opinion_interventions._constraints import least_linear
from aboveboard.collective.opinion_interventions._network import mutable_edges, read_weights
from aboveboard.core import InputError


def random_edges(seed, *, symmetric, n=6):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) < 0.6, 1) * rng.random((n, n))
    W[0, 1] = 0.5
    W = W + W.T if symmetric else W + np.triu(rng.random((n, n)), 1).T
    return mutable_edges(read_weights(W), "all", symmetric=symmetric)


SETS = {
    "box": Box(0.1, 0.7),
    "budget": BudgetSimplex(2.0),
    "rows": RowSimplex(),
    "ball": FrobeniusBall(0.3),
    "rows in a ball": Intersection(FrobeniusBall(0.3), RowSimplex()),
    "budget, box": Intersection(BudgetSimplex(2.0), Box(0.0, 0.4)),
    "budget, box, ball": Intersection(BudgetSimplex(50.0), Box(0.0, 2.0), FrobeniusBall(0.3)),
    "one set": Intersection(BudgetSimplex(2.0)),
}
each_set = pytest.mark.parametrize("name", SETS)
both = pytest.mark.parametrize("symmetric", [True, False])


def inside(name, edges, x, slack=1e-8):
    """Say whether a point is in a set, from its definition alone."""
    ends = (edges.rows, edges.cols) if edges.paired else (edges.rows,)
    totals = sum(np.bincount(end, weights=x - edges.start, minlength=edges.n) for end in ends)
    held = (x >= -slack).all()
    if "rows" in name:
        held &= np.abs(totals).max() <= slack
    if "ball" in name:
        held &= np.linalg.norm(x - edges.start) <= 0.3 * np.linalg.norm(edges.start) + slack
    if "budget" in name or name == "one set":
        held &= x.sum() * len(edges.positions) <= (50.0 if "ball" in name else 2.0) + slack
    if "box" in name:
        lower, upper = {"box": (0.1, 0.7), "budget, box": (0, 0.4), "budget, box, ball": (0, 2)}[name]
        held &= (x >= lower - slack).all() and (x <= upper + slack).all()
    return bool(held)


@each_set
@both
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), reach=st.sampled_from([1e-3, 0.3, 3.0, 100.0]))
def test_the_projection_is_in_the_set_stays_there_and_no_other_point_is_nearer(name, symmetric, seed, reach):
    edges = random_edges(seed, symmetric=symmetric)
    project = SETS[name].projection(edges)
    rng = np.random.default_rng(seed)
    z = edges.start + reach * rng.normal(size=len(edges.start))
    nearest = project(z)
    assert inside(name, edges, nearest)
    assert project(nearest) == pytest.approx(nearest, abs=1e-7)
    for _ in range(5):  # <z - P z, u - P z> <= 0 for every u in the set
        other = project(edges.start + rng.normal(size=len(z)))
        assert (z - nearest) @ (other - nearest) <= 1e-7 * (1 + reach)


@both
@pytest.mark.parametrize("name", ["budget", "rows", "rows in a ball"])
def test_the_projection_is_that_of_a_general_solver(name, symmetric):
    edges = random_edges(3, symmetric=symmetric)
    z = edges.start + np.random.default_rng(3).normal(size=len(edges.start))
    limits = []
    if "rows" in name:
        ends = (edges.rows, edges.cols) if symmetric else (edges.rows,)
        sums = sum((np.arange(edges.n)[:, None] == end).astype(float) for end in ends)
        limits.append({"type": "eq", "fun": lambda x: (sums @ (x - edges.start))[sums.any(axis=1)]})
    if "ball" in name:
        limits.append(
            {"type": "ineq", "fun": lambda x: 0.09 * (edges.start @ edges.start) - np.sum((x - edges.start) ** 2)}
        )
    if name == "budget":
        limits.append({"type": "ineq", "fun": lambda x: 2.0 - x.sum() * len(edges.positions)})
    found = minimize(
        lambda x: np.sum((x - z) ** 2), edges.start, bounds=[(0, None)] * len(z), constraints=limits, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    assert SETS[name].projection(edges)(z) == pytest.approx(found.x, abs=1e-5)


def test_rows_may_have_other_totals_and_those_of_nothing_are_zero():
    edges = random_edges(1, symmetric=False)
    totals = np.linspace(0.0, 2.0, edges.n) * (np.bincount(edges.rows, minlength=edges.n) > 0)
    nearest = RowSimplex(totals).projection(edges)(np.random.default_rng(0).normal(size=len(edges.start)))
    assert np.bincount(edges.rows, weights=nearest, minlength=edges.n) == pytest.approx(totals)
    assert (nearest[edges.rows == 0] == 0).all()


def test_the_least_point_of_a_linear_function_in_a_ball_is_its_edge():
    edges = random_edges(2, symmetric=False)
    slope = np.random.default_rng(0).random(len(edges.start))
    centre, radius = edges.start, 1e-3 * np.linalg.norm(edges.start)
    least = least_linear(FrobeniusBall(1e-3).projection(edges), centre, slope)
    plain = centre - radius * slope / np.linalg.norm(slope)
    if (plain >= 0).all():
        assert least == pytest.approx(plain)
    assert np.linalg.norm(least - centre) == pytest.approx(radius)


def test_an_intersection_that_is_not_found_in_time_says_so():
    edges = random_edges(1, symmetric=False)
    z = edges.start + 100 * np.random.default_rng(0).normal(size=len(edges.start))
    with pytest.warns(ConvergenceWarning, match="2 rounds"):
        Intersection(BudgetSimplex(2.0), Box(0.0, 0.4), rounds=2).projection(edges)(z)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Box(-1, 1), "bounds of the box"),
        (Box(2, 1), "bounds of the box"),
        (Box(np.nan, 1), "bounds of the box"),
        (Box(np.zeros(2), 1), "lower has shape"),
        (BudgetSimplex(-1), "budget is -1"),
        (BudgetSimplex(np.inf), "budget is inf"),
        (RowSimplex([1.0]), "totals have shape"),
        (RowSimplex(-np.ones(6)), "finite number per account"),
        (FrobeniusBall(0), "radius is 0"),
        (FrobeniusBall(np.nan), "radius is nan"),
    ],
)
def test_sets_that_are_none_are_refused(constraint, message):
    with pytest.raises(InputError, match=message):
        constraint.projection(random_edges(0, symmetric=False))


def test_totals_that_cannot_be_met_are_refused():
    star = mutable_edges(read_weights([[0, 1, 1], [1, 0, 0], [1, 0, 0]]), "all", symmetric=True)
    with pytest.raises(InputError, match="no weights keep the total"):
        RowSimplex([1.0, 1.0, 1.0]).projection(star)(star.start)
    one = mutable_edges(read_weights([[0, 1], [0, 0]]), "all", symmetric=False)
    with pytest.raises(InputError, match="total above 0 and no mutable edge"):
        RowSimplex([1.0, 1.0]).projection(one)


def test_a_ball_around_nothing_is_refused_and_an_empty_intersection_too():
    edges = mutable_edges(read_weights([[0, 1], [1, 0]]), "all", symmetric=False)
    edges.start[:] = 0.0
    with pytest.raises(InputError, match="BudgetSimplex"):
        FrobeniusBall().projection(edges)
    with pytest.raises(InputError, match="0 sets"):
        Intersection()


def test_a_convex_set_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(InputError, match="needs the package cvxpy"):
        ConvexSet(lambda w: [w.sum() <= 1]).projection(random_edges(0, symmetric=False))


def test_a_convex_set_is_projected_on_by_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    edges = random_edges(4, symmetric=False)
    z = np.random.default_rng(0).normal(size=len(edges.start))
    ours = BudgetSimplex(2.0).projection(edges)(z)
    assert ConvexSet(lambda w: [cvxpy.sum(w) <= 2.0]).projection(edges)(z) == pytest.approx(ours, abs=1e-4)
