"""Curves against quadrature, conversions against exact privacy profiles and a fine grid of orders."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from aboveboard.core import InputError
from aboveboard.privacy import RDPCurve, gaussian_delta, gaussian_epsilon, gaussian_rdp, laplace_rdp

EITHER = pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
rhos = st.floats(1e-6, 50)
deltas = st.floats(1e-12, 0.3)


@pytest.mark.parametrize("shift", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [1.3, 2.0, 7.5])
def test_the_curve_of_laplace_noise_is_its_divergence(shift, alpha):
    def ratio(x):
        return 0.5 * math.exp(-alpha * abs(x) + (alpha - 1) * abs(x - shift))

    pieces = [(-60, 0), (0, shift), (shift, 60)]
    moment = sum(quad(ratio, *piece, epsabs=0, epsrel=1e-12, limit=300)[0] for piece in pieces)
    found = laplace_rdp(2.0, sensitivity=2 * shift, adjacency="add_remove", orders=[alpha, math.inf])
    assert found.values == pytest.approx([math.log(moment) / (alpha - 1), shift], rel=1e-9)
    assert found.epsilon(0) == found.values[-1]
    assert found.delta(shift) == 0


@settings(deadline=None, max_examples=30)
@given(rhos, deltas)
def test_the_order_of_a_concentrated_curve_is_the_best_of_all(rho, delta):
    curve = RDPCurve.concentrated(rho, adjacency="add_remove")
    alpha = 1 + np.logspace(-6, 8, 20_000)
    each = rho * alpha + np.log1p(-1 / alpha) - np.log(delta * alpha) / (alpha - 1)
    found = curve.epsilon(delta)
    assert found <= max(each.min(), 0) * (1 + 1e-12) + 1e-12
    if found > 0:
        assert found >= each.min() * (1 - 1e-5) - 1e-12


@settings(deadline=None, max_examples=50)
@given(rhos, deltas)
def test_a_curve_never_promises_more_than_gaussian_noise_keeps(rho, delta):
    curve, sigma = RDPCurve.concentrated(rho, adjacency="replace_one"), 1 / math.sqrt(2 * rho)
    epsilon = curve.epsilon(delta)
    assert epsilon >= gaussian_epsilon(delta, sigma) * (1 - 1e-9)
    assert curve.delta(epsilon) <= delta * (1 + 1e-7)
    assert curve.delta(1.0) >= gaussian_delta(1.0, sigma) * (1 - 1e-9)
    on_a_grid = RDPCurve(orders=curve.orders, values=curve.values, adjacency=curve.adjacency)
    assert on_a_grid.epsilon(delta) >= epsilon * (1 - 1e-9)
    assert on_a_grid.delta(1.0) >= curve.delta(1.0) * (1 - 1e-9)


@EITHER
def test_composition_adds_divergences_and_keeps_the_adjacency(adjacency):
    first, second = gaussian_rdp(2.0, adjacency=adjacency), laplace_rdp(3.0, adjacency=adjacency)
    both = first + second.repeated(3)
    finite = np.isfinite(first.orders)
    assert both.values[finite] == pytest.approx((first.values + 3 * second.values)[finite], rel=1e-15)
    assert both.rho is None
    assert both.adjacency == adjacency
    assert both.mechanism == "Gaussian noise of standard deviation 2 + 3 x (Laplace noise of scale 3)"
    # noise of standard deviation 2 once is noise of standard deviation 4 four times
    assert gaussian_rdp(4.0, adjacency=adjacency).repeated(4).epsilon(1e-6) == pytest.approx(first.epsilon(1e-6))


def test_curves_of_different_adjacency_are_never_added():
    with pytest.raises(InputError, match="replace_one neighbours"):
        gaussian_rdp(1.0, adjacency="add_remove") + gaussian_rdp(1.0, adjacency="replace_one")


def test_nothing_that_moves_needs_no_noise_and_no_bound_gives_none():
    still = RDPCurve.concentrated(0.0, adjacency="add_remove")
    assert (still.epsilon(0), still.epsilon(1e-9), still.delta(0)) == (0, 0, 0)
    unbounded = RDPCurve(orders=[2.0], values=[math.inf], adjacency="add_remove")
    assert (unbounded.epsilon(0.1), unbounded.delta(5.0)) == (math.inf, 1.0)


def test_total_variation_below_delta_makes_epsilon_zero():
    curve = RDPCurve.concentrated(1e-8, adjacency="add_remove")
    assert curve.epsilon(2e-4) == 0
    assert curve.epsilon(0.5e-4) > 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"orders": [1.0, 2.0]}, "orders"),
        ({"orders": [3.0, 2.0]}, "orders"),
        ({"values": [1.0]}, "1 values for 2 orders"),
        ({"values": [1.0, math.nan]}, "NaN"),
        ({"values": [-1.0, 1.0]}, "negative"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"rho": 0.3}, "rho"),
    ],
)
def test_what_is_no_curve_is_refused(change, match):
    with pytest.raises(InputError, match=match):
        RDPCurve(**{"orders": [2.0, 4.0], "values": [0.1, 0.2], "adjacency": "add_remove"} | change)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, "0.1", True])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        gaussian_rdp(1.0, adjacency="add_remove").epsilon(delta)


@pytest.mark.parametrize("times", [0, 1.5, True])
def test_only_whole_numbers_of_repetitions_are_taken(times):
    with pytest.raises(InputError, match="times"):
        gaussian_rdp(1.0, adjacency="add_remove").repeated(times)
