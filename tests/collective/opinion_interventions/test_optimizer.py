"""Interventions against closed forms, grids and a general solver, and the report of who pays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from aboveboard.collective import (
    Box,
    BudgetSimplex,
    FriedkinJohnsen,
    FrobeniusBall,
    Intersection,
    OpinionInterventionOptimizer,
    RowSimplex,
    add_influencer,
)
from aboveboard.collective.opinion_interventions._network import mutable_edges, read_weights
from aboveboard.collective.opinion_interventions._objectives import Polarization
from aboveboard.core import InputError

METHODS = ("nesterov", "momentum", "adagrad")
THREE = np.array([[0, 1.4, 0], [1, 0, 1.1], [1, 0, 0]])


def random_network(seed, n=12):
    rng = np.random.default_rng(seed)
    W = (rng.random((n, n)) < 0.4) * rng.random((n, n))
    np.fill_diagonal(W, 0.0)
    W[0, 1] = 1.0
    return W, rng.normal(size=n)


@pytest.mark.parametrize("method", METHODS)
def test_two_users_are_brought_closer_as_the_closed_form_says(method):
    found = OpinionInterventionOptimizer("disagreement", symmetric=True, method=method).fit([[0, 1], [1, 0]], [1, 0])
    assert found.initial_objective_ == pytest.approx(1 / 9)
    assert found.weights_.toarray() == pytest.approx(np.array([[0, 1.2], [1.2, 0]]), abs=1e-6)
    assert found.objective_ == pytest.approx(1.2 / 3.4**2, abs=1e-7)
    assert found.opinions_ == pytest.approx([2.2 / 3.4, 1.2 / 3.4], abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_three_users_end_at_the_best_point_of_a_grid(method):
    s = np.array([-1, 1, 0.5])
    found = OpinionInterventionOptimizer(
        constraint=Box(0, 2), mutable=([0, 1], [1, 2]), method=method, tol=0, max_iter=400
    ).fit(THREE, s)
    best = np.inf
    for a in np.linspace(0, 2, 41):
        for b in np.linspace(0, 2, 41):
            A = np.array([[1 + a, -a, 0], [-1, 2 + b, -b], [-1, 0, 2]])
            best = min(best, float(np.mean(np.linalg.solve(A, s) ** 2)))
    assert found.objective_ <= best + 1e-4


def test_an_influencer_s_budget_is_spent_as_well_as_a_general_solver_does():
    W, s = random_network(1)
    larger, opinions, rows, cols = add_influencer(W, s)
    found = OpinionInterventionOptimizer(
        constraint=BudgetSimplex(1.0), mutable=(rows, cols), tol=1e-9, max_iter=500
    ).fit(larger, opinions)

    def value(w):
        A = np.eye(12) + np.diag(W.sum(axis=1) + w) - W
        return np.sum(np.linalg.solve(A, s) ** 2) / 13

    best = minimize(
        value, np.full(12, 1 / 12), bounds=[(0, None)] * 12, method="SLSQP", options={"ftol": 1e-13},
        constraints=[{"type": "ineq", "fun": lambda w: 1.0 - w.sum()}],
    )  # fmt: skip
    assert found.objective_ == pytest.approx(best.fun, rel=1e-5)
    assert found.weights_.toarray()[:12, 12].sum() == pytest.approx(1.0)
    assert (found.weights_.toarray()[:, :12] == larger.toarray()[:, :12]).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), objective=st.sampled_from(["polarization", "disagreement"]))
def test_nesterov_never_rises_and_ends_in_the_set(seed, objective):
    W, s = random_network(seed)
    found = OpinionInterventionOptimizer(objective, constraint=Intersection(FrobeniusBall(0.3), RowSimplex())).fit(W, s)
    assert (np.diff(found.history_) <= 1e-3 * found.history_[:-1]).all()
    assert found.objective_ <= found.initial_objective_ * (1 + 1e-9)
    assert len(found.history_) == found.n_iter_ + 1
    assert found.weights_.toarray().sum(axis=1) == pytest.approx(W.sum(axis=1))
    assert np.linalg.norm(found.weights_.toarray() - W) <= 0.3 * np.linalg.norm(W) * (1 + 1e-9)
    assert found.certificate_.holds
    assert found.violation_ < 1e-8


def test_the_certificate_holds_for_random_other_weights():
    W, s = random_network(3)
    set_ = Intersection(FrobeniusBall(0.3), RowSimplex())
    found = OpinionInterventionOptimizer(constraint=set_).fit(W, s)
    numbers = found.certificate_.parameters
    project = set_.projection(mutable_edges(read_weights(W), "all", symmetric=False))
    w, g, rng = found.weights_.data, found.gradient_, np.random.default_rng(0)
    for _ in range(200):
        u = w + rng.normal(size=len(w)) * rng.choice([1e-3, 0.1, 1.0])
        u = project(u)
        reach = np.linalg.norm(u - w) + numbers["step"] * numbers["gradient"]
        assert g @ (u - w) >= -numbers["stationarity"] * reach - 1e-12
    assert numbers["stationarity"] < 0.05 * numbers["gradient"]


def test_the_residual_and_the_gradient_are_checked_by_other_means():
    W, s = random_network(4)
    found = OpinionInterventionOptimizer("disagreement").fit(W, s)
    V = found.weights_.toarray()
    exact = np.linalg.solve(np.eye(12) + np.diag(V.sum(axis=1)) - V, s)
    assert np.abs(found.opinions_ - exact).max() <= found.residual_ + 1e-13
    statistics = {item.test: item.statistic for item in found.certificate_.assumptions if item.basis == "checked"}
    assert len(statistics) == 3
    assert max(statistics.values()) < 1e-5


def test_a_wrong_gradient_does_not_get_a_certificate():
    class Wrong(Polarization):
        def __call__(self, model, y, edges):
            found = super().__call__(model, y, edges)
            return found._replace(by_opinion=2.0 * found.by_opinion)

    W, s = random_network(5)
    assert not OpinionInterventionOptimizer(Wrong()).fit(W, s).certificate_.holds


def test_renaming_the_accounts_renames_the_weights():
    W, s = random_network(6)
    order = np.random.default_rng(0).permutation(12)
    one = OpinionInterventionOptimizer().fit(W, s).weights_.toarray()
    two = OpinionInterventionOptimizer().fit(W[np.ix_(order, order)], s[order]).weights_.toarray()
    assert two == pytest.approx(one[np.ix_(order, order)], abs=1e-5)


def test_weights_outside_the_set_are_brought_in_first():
    W, s = random_network(7)
    found = OpinionInterventionOptimizer(constraint=Box(0, 0.1), max_iter=1).fit(W, s)
    assert found.weights_.data.max() <= 0.1
    assert found.initial_objective_ == pytest.approx(FriedkinJohnsen(W, s).polarization(), abs=1e-8)


def test_random_starts_never_make_it_worse_and_follow_the_seed():
    W, s = random_network(8)
    options = {"constraint": FrobeniusBall(0.8), "random_state": 1}
    one, two, three = (OpinionInterventionOptimizer("disagreement", n_starts=n, **options).fit(W, s) for n in (1, 4, 4))
    assert two.objective_ <= one.objective_ + 1e-8
    assert (two.weights_ != three.weights_).nnz == 0


def test_the_report_says_who_pays():
    W, s = random_network(9)
    found = OpinionInterventionOptimizer(constraint=FrobeniusBall(0.5)).fit(W, s)
    report = found.report(decision_maker="The board")
    A, B = (np.eye(12) + np.diag(M.sum(axis=1)) - M for M in (W, found.weights_.toarray()))
    y, z = np.linalg.solve(A, s), np.linalg.solve(B, s)
    lost = np.linalg.inv(A).mean(axis=0) - np.linalg.inv(B).mean(axis=0)
    assert report.mean_shift == pytest.approx((z - y).mean(), abs=1e-8)
    assert report.largest_shift == pytest.approx(np.abs(z - y).max(), abs=1e-8)
    assert report.largest_shift_account == np.abs(z - y).argmax()
    assert report.mean_shift_below == pytest.approx((z - y)[s < s.mean()].mean(), abs=1e-8)
    assert report.mean_shift_above == pytest.approx((z - y)[s > s.mean()].mean(), abs=1e-8)
    assert report.weight_moved == pytest.approx(np.abs(W - found.weights_.toarray()).sum())
    assert report.influence_moved == pytest.approx(np.maximum(lost, 0).sum(), abs=1e-7)
    assert report.losing == (lost > 0).sum()
    assert report.largest_loss_account == lost.argmax()
    assert report.polarization == pytest.approx((np.mean(y**2), np.mean(z**2)), abs=1e-8)
    text = str(report)
    assert "mean opinion moves by" in text
    assert "largest shift of one account" in text
    assert "Who pays" in text
    assert "analysis" in text
    assert "The board decides" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "peace"}, "objective is 'peace'"),
        ({"constraint": "ball"}, "constraint is 'ball'"),
        ({"method": "newton"}, "nesterov, momentum, adagrad"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"n_starts": True}, "n_starts is True"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"tol": np.nan}, "tol is nan"),
        ({"step": 0.0}, "step is 0.0"),
        ({"mutable": ([0], [0])}, "insert_edges"),
    ],
)
def test_options_that_are_none_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        OpinionInterventionOptimizer(**options).fit(THREE, [1, 0, -1])


def test_it_is_an_estimator_in_all_but_its_data():
    """No check_estimator: fit takes a square network and the opinions of its accounts, not rows of features."""
    optimizer = OpinionInterventionOptimizer("disagreement", tol=0.1, constraint=Box(0, 1))
    assert clone(optimizer).get_params() == optimizer.get_params()
    with pytest.raises(NotFittedError):
        optimizer.report()


def test_large_weights_and_opinions_are_no_obstacle():
    W, s = random_network(10)
    found = OpinionInterventionOptimizer("disagreement").fit(1e3 * W, 1e6 * s)
    assert found.objective_ < found.initial_objective_
    assert found.certificate_.holds


def test_nothing_dense_is_made_of_a_large_network():
    n = 200_000
    W = sparse.csr_array(sparse.diags_array(np.ones(n - 1), offsets=1))
    s = np.where(np.arange(n) % 2, 1.0, -1.0)
    found = OpinionInterventionOptimizer(max_iter=2).fit(W, s)
    assert found.objective_ < found.initial_objective_
