"""Facts about plans: against POT's solvers, a general convex one, and the conditions of optimality."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from aboveboard.uncertainty.certainty_phrases._transport import entropic_plan, exact_plan, joint_plan


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    return rng.uniform(-1, 1, (4, 5)), a, b


def _divergence(plan, b):
    q = plan.sum(axis=0)
    return float((np.where(q > 0, q * np.log(np.maximum(q, 1e-300) / b), 0) - q + b).sum())


def _by_slsqp(cost, a, b, tau):
    K, L = cost.shape

    def objective(x):
        plan = x.reshape(K, L)
        return (cost * plan).sum() + tau * _divergence(plan, b)

    rows = {"type": "eq", "fun": lambda x: x.reshape(K, L).sum(axis=1) - a}
    start = np.outer(a, np.full(L, 1 / L)).ravel()
    return minimize(
        objective, start, constraints=[rows], bounds=[(0, 1)] * (K * L), options={"maxiter": 2000, "ftol": 1e-12}
    )


@pytest.mark.parametrize("tau", [0.05, 0.5, 5.0])
def test_the_linear_program_reaches_the_convex_optimum(problem, tau):
    cost, a, b = problem
    plan = exact_plan(cost, a, b, tau=tau)
    value = (cost * plan).sum() + tau * _divergence(plan, b)
    assert value <= _by_slsqp(cost, a, b, tau).fun + 0.01 * tau
    assert plan.sum(axis=1) == pytest.approx(a, abs=1e-6)


def test_without_a_wish_each_row_goes_to_its_cheapest_column(problem):
    cost, a, b = problem
    plan = exact_plan(cost, a, b, tau=0)
    assert (plan.argmax(axis=1) == cost.argmin(axis=1)).all()
    soft, solver = entropic_plan(cost, a, b, eps=1e-4, tau=0)
    assert soft == pytest.approx(plan, abs=1e-6)
    assert solver == "sinkhorn"


def test_an_infinite_wish_is_balanced_transport(problem):
    ot = pytest.importorskip("ot")
    cost, a, b = problem
    plan = exact_plan(cost, a, b, tau=np.inf)
    assert (cost * plan).sum() == pytest.approx((cost * ot.emd(a, b, cost)).sum(), abs=1e-9)
    assert plan.sum(axis=0) == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize(("eps", "tau"), [(0.05, 0.1), (5e-3, 0.1), (1e-2, 1.0), (0.05, np.inf)])
def test_sinkhorn_is_that_of_pot_where_pot_does_not_overflow(problem, eps, tau):
    # POT's plain iterations; its stabilised ones give another plan at small eps (0.9.4 to 0.9.7).
    ot = pytest.importorskip("ot")
    cost, a, b = problem
    plan, solver = entropic_plan(cost, a, b, eps=eps, tau=tau)
    theirs = ot.unbalanced.sinkhorn_knopp_unbalanced(
        a, b, cost, eps, (np.inf, tau), reg_type="kl", numItermax=20_000, stopThr=1e-14
    )
    assert solver == "sinkhorn"
    assert plan == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize(("eps", "tau"), [(0.05, 0.1), (5e-3, 0.1), (2e-3, 1e-3)])
def test_sinkhorn_meets_the_optimality_condition_of_its_own_problem(problem, eps, tau):
    cost, a, b = problem
    plan, solver = entropic_plan(cost, a, b, eps=eps, tau=tau)
    assert solver == "sinkhorn"
    assert plan.sum(axis=1) == pytest.approx(a, abs=1e-12)
    # d/dT of <cost, T> + tau KL(T'1 || b) + eps KL(T || ab'): the same for all entries of a row
    seen = np.where(plan > 1e-250, plan, np.nan)
    seen = cost + tau * np.log(plan.sum(axis=0) / b) + eps * np.log(seen / np.outer(a, b))
    assert np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1) == pytest.approx(0, abs=1e-6)


def test_sinkhorn_tends_to_the_linear_program(problem):
    cost, a, b = problem
    soft, _ = entropic_plan(cost, a, b, eps=1e-3, tau=0.05)
    assert soft == pytest.approx(exact_plan(cost, a, b, tau=0.05), abs=0.01)


def test_the_usage_comes_nearer_to_the_wish_as_its_weight_grows(problem):
    cost, a, b = problem
    distances = [_divergence(exact_plan(cost, a, b, tau=tau), b) for tau in (1e-3, 1e-2, 1e-1, 1, 10)]
    assert all(after <= before + 1e-6 for before, after in pairwise(distances))


def test_columns_that_are_not_wished_stay_empty(problem):
    cost, a, b = problem
    b = np.array([0.5, 0.5, 0, 0, 0])
    assert exact_plan(cost, a, b, tau=0.1)[:, 2:].max() == 0
    assert entropic_plan(cost, a, b, eps=0.01, tau=0.1)[0][:, 2:].max() == 0


def test_without_convergence_the_linear_program_takes_over_and_says_so(problem):
    cost, a, b = problem
    with pytest.warns(UserWarning, match="did not converge"):
        plan, solver = entropic_plan(cost, a, b, eps=1e-7, tau=np.inf)
    assert solver == "linear program"
    assert plan == pytest.approx(exact_plan(cost, a, b, tau=np.inf))


def test_moving_all_at_once_reaches_the_least_error():
    rng = np.random.default_rng(0)
    residuals, a = rng.normal(size=(3, 4, 6)), np.array([0.5, 0.3, 0.2])

    def error(plan):
        return np.abs(np.einsum("kl,klm->m", plan, residuals)).sum()

    least = error(joint_plan(residuals, a, np.full(4, 0.25), tau=0))
    random = rng.dirichlet(np.full(4, 0.3), size=(20_000, 3)) * a[:, None]
    assert least <= min(map(error, random)) + 1e-9
