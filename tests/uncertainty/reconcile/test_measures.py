"""Measures against loops, the projection against a quadratic program, and nets of actions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aboveboard.core import InputError
from aboveboard.uncertainty import ReDCal, best_response, decision_calibration_error, delta_net, disagreement
from aboveboard.uncertainty.reconcile._patches import project_simplex


def test_best_responses_are_the_cheapest_actions_and_the_first_of_equals():
    loss = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    assert best_response([0.5, 0.59, 0.61, 0.1], loss).tolist() == [2, 2, 1, 0]
    assert best_response([[0.5, 0.5]]).tolist() == [0]
    assert best_response([0.6, 0.4]).tolist() == [1, 0]


def test_disagreement_counts_pairs_of_actions(two_views):
    (first, second), _, losses = two_views(300)
    for alpha in (0.0, 0.3):
        table = disagreement(first, second, losses[0], alpha=alpha)
        rows = {}
        for p, q in zip(first, second, strict=True):
            a, b = int((p @ losses[0]).argmin()), int((q @ losses[0]).argmin())
            if a != b and (p - q) @ (losses[0][:, b] - losses[0][:, a]) >= alpha:
                rows[a, b] = rows.get((a, b), 0) + 1
        found = {(a, b): n for a, b, n in table[["action", "other_action", "rows"]].itertuples(index=False)}
        assert found == rows
        assert table["mass"].sum() == pytest.approx(sum(rows.values()) / 300)
        assert table["mass"].is_monotonic_decreasing
        assert (table["gap"] >= alpha).all()


def test_disagreement_takes_weights_and_names_and_may_be_empty():
    loss = pd.DataFrame([[0, 1], [1, 0]], columns=["stay", "go"])
    table = disagreement([0.4, 0.9], [0.6, 0.8], loss, sample_weight=[3, 1])
    assert table[["action", "other_action", "mass"]].to_numpy().tolist() == [["stay", "go", 0.75]]
    assert len(disagreement([0.4, 0.9], [0.3, 0.8], loss)) == 0
    with pytest.raises(InputError, match="alpha"):
        disagreement([0.4], [0.3], alpha=-1)


def test_decision_calibration_errors_are_those_of_a_loop(two_views):
    (p, _), y, losses = two_views(400)
    table = decision_calibration_error(p, y, losses)
    residual = np.eye(4)[y] - p
    lines = table.itertuples(index=False)
    for loss in losses:
        best = (p @ loss).argmin(axis=1)
        for a in range(3):
            line = next(lines)
            chosen = (best == a)[:, None]
            assert line.mass == pytest.approx(chosen.mean())
            assert line.error == pytest.approx(np.linalg.norm((residual * chosen).mean(axis=0)))
            assert line.forecast == pytest.approx((p @ loss[:, a] * chosen[:, 0]).mean())
            assert line.realised == pytest.approx((loss[y, a] * chosen[:, 0]).mean())


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_the_projection_is_the_nearest_point(seed, d):
    rng = np.random.default_rng(seed)
    shift = rng.standard_normal(d)
    point = rng.dirichlet(np.ones(d)) + shift - shift.mean()
    (found,) = project_simplex(point[None])
    exact = minimize(
        lambda x: ((x - point) ** 2).sum(), np.full(d, 1 / d), jac=lambda x: 2 * (x - point), bounds=[(0, 1)] * d,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    assert ((found - point) ** 2).sum() <= exact.fun + 1e-7
    assert project_simplex(found[None])[0] == pytest.approx(found, abs=1e-12)


def test_points_of_the_simplex_are_left_alone():
    points = np.array([[0.2, 0.8], [1.0, 0.0]])
    assert project_simplex(points) is points


def _dose(doses):
    return np.column_stack([doses[:, 0] ** 2, 2 * (1 - doses[:, 0]) ** 2])


@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_every_action_costs_within_delta_of_one_in_the_net(delta):
    net = delta_net(_dose, 0.0, 1.0, delta=delta, lipschitz=4.5)
    everything = _dose(np.random.default_rng(0).random((5000, 1)))
    nearest = np.linalg.norm(everything[:, :, None] - net.loss[None], axis=1).min(axis=1)
    assert nearest.max() <= delta
    assert np.array_equal(net.loss, _dose(net.actions).T)


def test_a_net_of_a_square_and_its_use_as_a_loss():
    def cost(actions):
        return np.column_stack([np.hypot(*(actions - corner).T) for corner in ([0, 0], [1, 0], [0, 1])])

    net = delta_net(cost, [0, 0], [1, 1], delta=0.4, lipschitz=np.sqrt(3) + 0.01)
    assert 4 < len(net.actions) < 40
    rng = np.random.default_rng(0)
    models = [rng.dirichlet(np.ones(3), 500) for _ in range(2)]
    fitted = ReDCal(net.loss, min_event=5).fit(models, rng.integers(3, size=500))
    assert fitted.certificate_.parameters["largest_event"] <= 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 1.0}, "low below high"),
        ({"delta": 0}, "delta"),
        ({"lipschitz": np.inf}, "lipschitz"),
        ({"delta": 1e-9}, "grid would have"),
        ({"lipschitz": 0.5}, "lipschitz must be at least"),
        ({"delta": 50}, "smaller delta"),
        ({"cost": lambda doses: doses[:, 0]}, "shape"),
    ],
)
def test_nets_that_cannot_be_made_are_refused(change, message):
    options = {"cost": _dose, "low": 0.0, "high": 1.0, "delta": 0.2, "lipschitz": 4.5} | change
    with pytest.raises(InputError, match=message):
        delta_net(
            options["cost"], options["low"], options["high"], delta=options["delta"], lipschitz=options["lipschitz"]
        )
