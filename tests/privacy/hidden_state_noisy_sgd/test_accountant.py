"""Bounds against processes of known divergence: Gaussians, mixtures of them, densities propagated step by step."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from aboveboard.core import InputError
from aboveboard.privacy import (
    ConvexSmoothLoss,
    HiddenStateAccountant,
    HolderLoss,
    SmoothLoss,
    StronglyConvexLoss,
    without_replacement_gaussian_rdp,
)


def unit(loss, s, **options):
    """A full-batch run with step 1, noise of 1 per step, and sensitivity s."""
    return HiddenStateAccountant(loss=loss, lr=1.0, grad_bound=s * 50, n=100, **options)


def divergence_of_mixtures(first, second, weights, sigma, alpha):
    """Rényi divergence of two mixtures of normals of one width, by the trapezoidal rule."""
    x = np.linspace(min(*first, *second) - 14 * sigma * alpha, max(*first, *second) + 14 * sigma * alpha, 6001)
    p, q = (logsumexp(stats.norm.logpdf(x[:, None], means, sigma), axis=1, b=weights) for means in (first, second))
    return (logsumexp(alpha * p + (1 - alpha) * q) + math.log(x[1] - x[0])) / (alpha - 1)


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
@pytest.mark.parametrize(("lr", "m"), [(0.5, 0.2), (1.0, 0.6)])
def test_on_a_quadratic_the_bound_is_the_divergence_itself(steps, lr, m):
    """f_i(x) = m / 2 (x - y_i)^2: the last iterate is Gaussian, and its mean moves by s S1."""
    run = HiddenStateAccountant(loss=StronglyConvexLoss(L=m, m=m), lr=lr, grad_bound=m * 3.0, n=10)
    c, s, noise = 1 - lr * m, 2 * lr * m * 3.0 / 10, 0.7
    shift = s * sum(c**t for t in range(steps))
    variance = (lr * noise) ** 2 * sum(c ** (2 * t) for t in range(steps))
    bound = run.last_iterate(steps, noise)
    assert bound.curve.rho == pytest.approx(shift**2 / variance / 2, rel=1e-12)


def test_the_limit_and_the_earlier_bound_are_those_of_the_paper():
    """Strongly convex: 0.190 against 0.438; c < 1 needs no bounded set."""
    run = unit(StronglyConvexLoss(L=0.1, m=0.1), 0.1, diameter=3.0)
    assert 2 * run.last_iterate(10**5, 1.0).curve.rho == pytest.approx(0.01 * 1.9 / 0.1, rel=1e-9)
    by_hand = min(2 * 0.01 * k + 2 * 9 * 0.9 ** (2 * k) / sum(0.9 ** (2 * j) for j in range(k)) for k in range(1, 200))
    assert 2 * run.altschuler_talwar(10**5, 1.0).rho == pytest.approx(by_hand, rel=1e-6)
    assert by_hand == pytest.approx(0.438, abs=5e-4)


def test_convex_losses_pay_for_the_diameter_and_no_more():
    run = unit(ConvexSmoothLoss(1.0), 0.1, diameter=1.0)
    assert 2 * run.last_iterate(10**6, 1.0).curve.rho == pytest.approx(4 * 0.1 * 1.0)
    assert 2 * run.last_iterate(20, 1.0).curve.rho == pytest.approx(20 * 0.01)


@pytest.mark.parametrize(("steps", "figure"), [(10, 1.29), (100, 2.76), (1000, 2.77), (10_000, 2.77)])
def test_epsilon_stops_growing(steps, figure):
    run = HiddenStateAccountant(loss=StronglyConvexLoss(L=0.35, m=0.1), lr=0.5, grad_bound=1.0, n=1000)
    assert run.last_iterate(steps, 0.02).epsilon(1e-5) == pytest.approx(figure, abs=0.005)


@pytest.mark.parametrize(
    ("loss", "figure"), [(SmoothLoss(0.05), 0.513), (HolderLoss(0.05, 0.75), 0.526), (HolderLoss(0.05, 0.5), 0.545)]
)
def test_losses_that_are_not_convex_converge_on_a_bounded_set(loss, figure):
    run = unit(loss, 0.1, diameter=1.0)
    bounds = [run.last_iterate(steps, 1.0) for steps in (100, 300)]
    assert [2 * bound.curve.rho for bound in bounds] == pytest.approx([figure, figure], abs=1e-3)
    assert [2 * bound.composition.rho for bound in bounds] == pytest.approx([1.0, 3.0])


def test_the_exponent_tends_to_smoothness_and_the_factor_to_one():
    nearly, smooth = (
        unit(loss, 0.1, diameter=1.0).last_iterate(200, 1.0) for loss in (HolderLoss(0.05, 1 - 1e-7), SmoothLoss(0.05))
    )
    assert smooth.curve.rho <= nearly.curve.rho <= smooth.curve.rho * 1.001
    around = [StronglyConvexLoss(L=1e-9, m=1e-9), ConvexSmoothLoss(1.0), SmoothLoss(1e-9)]
    found = [unit(loss, 0.1, diameter=1.0).last_iterate(500, 1.0).curve.rho for loss in around]
    assert found == pytest.approx([found[1]] * 3, rel=1e-6)


@pytest.mark.parametrize("steps", [3, 30])
def test_a_projected_walk_keeps_the_bound(steps):
    """Linear losses on [0, 1]: the two runs drift by 0 and by s; densities are propagated cell by cell."""
    s, deviation, cells = 0.12, 0.35, 500
    edges = np.linspace(0, 1, cells + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    cut = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])  # what would leave the set is put onto its ends

    def last(drift):
        to = stats.norm.cdf((cut - centres[:, None] - drift) / deviation)
        density = np.zeros(cells)
        density[cells // 2] = 1.0
        for _ in range(steps):
            density = density @ np.diff(to, axis=1)
        return density

    first, second = last(s / 2), last(-s / 2)
    run = HiddenStateAccountant(loss=ConvexSmoothLoss(1.0), lr=1.0, grad_bound=s / 2, n=1, diameter=1.0)
    bound = run.last_iterate(steps, deviation)
    assert bound.curve.rho < bound.composition.rho or steps == 3
    for alpha in (2.0, 6.0):
        truth = math.log((first**alpha * second ** (1 - alpha)).sum()) / (alpha - 1)
        assert 0.05 * alpha * bound.curve.rho <= truth <= alpha * bound.curve.rho


@pytest.mark.parametrize("sampling", ["shuffled", "without_replacement"])
@pytest.mark.parametrize("steps", [1, 2, 5, 8])
def test_two_records_one_at_a_time_keep_the_bound(sampling, steps):
    """f_i(x) = m / 2 (x - y_i)^2 with y = (0, 1) or (0, -1): a mixture over the orders in which they are used."""
    m, lr, noise = 0.4, 0.8, 0.5
    c = 1 - lr * m
    run = HiddenStateAccountant(
        loss=StronglyConvexLoss(L=m, m=m), lr=lr, grad_bound=m, n=2, batch_size=1, sampling=sampling
    )
    if sampling == "shuffled":
        used = [[(t + first) % 2 for t in range(steps)] for first in (0, 1)]
    else:
        used = list(itertools.product((0, 1), repeat=steps))
    means = np.array([sum(lr * m * c ** (steps - 1 - t) * use for t, use in enumerate(order)) for order in used])
    sigma = lr * noise * math.sqrt(sum(c ** (2 * t) for t in range(steps)))
    weights = np.full(len(means), 1 / len(means))
    curve = run.last_iterate(steps, noise).curve
    for alpha in (2.0, 4.0):
        truth = divergence_of_mixtures(means, -means, weights, sigma, alpha)
        assert truth <= float(curve.values[curve.orders == alpha][0])


def test_a_fixed_order_is_that_of_the_record_that_is_used_last():
    """n quadratics one after the other: the worst of the places, each of them a Gaussian."""
    m, lr, noise, n, steps = 0.3, 1.0, 0.5, 4, 10
    c = 1 - lr * m
    run = HiddenStateAccountant(
        loss=StronglyConvexLoss(L=m, m=m), lr=lr, grad_bound=m, n=n, batch_size=1, sampling="cyclic"
    )
    variance = (lr * noise) ** 2 * sum(c ** (2 * t) for t in range(steps))
    shifts = [sum(2 * lr * m * c ** (steps - 1 - t) for t in range(steps) if t % n == place) for place in range(n)]
    bound = run.last_iterate(steps, noise).curve.rho
    assert bound >= max(shifts) ** 2 / variance / 2
    shuffled = HiddenStateAccountant(
        loss=StronglyConvexLoss(L=m, m=m), lr=lr, grad_bound=m, n=n, batch_size=1, sampling="shuffled"
    ).last_iterate(steps, noise)
    assert shuffled.epsilon(1e-5) <= run.last_iterate(steps, noise).epsilon(1e-5)


@pytest.mark.parametrize("sampling", ["full", "cyclic", "shuffled", "without_replacement"])
@pytest.mark.parametrize("loss", [StronglyConvexLoss(L=1.0, m=0.2), ConvexSmoothLoss(1.0), HolderLoss(0.1, 0.5)])
def test_it_is_never_above_composition_and_grows_with_what_it_should(sampling, loss):
    def epsilon(steps=40, noise=0.3, **change):
        batch = None if sampling == "full" else 25
        options = {"lr": 0.5, "grad_bound": 1.0, "n": 100, "diameter": 1.0, "grid": 200, "batch_size": batch}
        options |= {"orders": [1.5, 2.0, 4.0, 8.0, 16.0, 64.0]} | change
        bound = HiddenStateAccountant(loss=loss, sampling=sampling, **options).last_iterate(steps, noise)
        assert bound.epsilon(1e-5) <= bound.composition.epsilon(1e-5)
        assert bound.delta(bound.epsilon(1e-5)) <= 1e-5 * (1 + 1e-6)
        return bound.epsilon(1e-5)

    slack = 1.01 if isinstance(loss, HolderLoss) else 1 + 1e-9
    base = epsilon()
    assert epsilon(steps=20) <= base * slack
    assert epsilon(noise=0.6) < base
    assert epsilon(grad_bound=0.5) < base
    assert epsilon(diameter=0.5) <= base * slack


def test_the_limits_of_fresh_batches_are_composition_and_no_sampling():
    options = {"loss": StronglyConvexLoss(L=1.0, m=0.2), "lr": 0.5, "grad_bound": 1.0, "n": 100, "batch_size": 10}
    run = HiddenStateAccountant(sampling="without_replacement", **options)
    few = run.last_iterate(3, 0.3)
    plain = without_replacement_gaussian_rdp(0.3 / 0.2, 0.1).repeated(3)
    assert few.composition.values == pytest.approx(plain.values)
    assert few.epsilon(1e-5) <= plain.epsilon(1e-5)
    many = [run.last_iterate(steps, 0.3).epsilon(1e-5) for steps in (10**3, 10**5)]
    assert many[1] == pytest.approx(many[0], rel=1e-2)


@pytest.mark.parametrize("sampling", ["full", "cyclic", "shuffled", "without_replacement"])
def test_calibrated_noise_gives_the_epsilon_that_was_asked_for(sampling):
    run = HiddenStateAccountant(
        loss=StronglyConvexLoss(L=0.35, m=0.1), lr=0.5, grad_bound=1.0, n=1000, sampling=sampling,
        batch_size=None if sampling == "full" else 100, orders=[1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0],
    )  # fmt: skip
    noise = run.calibrate(steps=50, epsilon=1.5, delta=1e-5)
    assert 0.99 * 1.5 <= run.last_iterate(50, noise).epsilon(1e-5) <= 1.5


@settings(deadline=None, max_examples=30)
@given(st.floats(0.05, 1.9), st.floats(0.01, 1.0), st.integers(1, 10**6), st.floats(0.01, 10))
def test_the_bound_of_strongly_convex_losses_is_below_its_limit_and_composition(lr, m, steps, noise):
    run = HiddenStateAccountant(loss=StronglyConvexLoss(L=1.0, m=m), lr=lr, grad_bound=1.0, n=1000)
    c, s = max(run.loss.contraction(lr), 1e-9), 2 * lr / 1000
    rho = run.last_iterate(steps, noise).curve.rho
    limit = s**2 * (1 + c) / ((lr * noise) ** 2 * (1 - c)) / 2
    assert 0 < rho <= min(limit, steps * s**2 / (lr * noise) ** 2 / 2) * (1 + 1e-9)


def test_without_a_bounded_set_steps_that_do_not_contract_are_composed_with_a_warning():
    for loss in (ConvexSmoothLoss(1.0), SmoothLoss(1.0), HolderLoss(1.0, 0.5)):
        with pytest.warns(UserWarning, match="composition"):
            bound = unit(loss, 0.1).last_iterate(30, 1.0)
        assert bound.curve.rho == pytest.approx(bound.composition.rho)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unit(StronglyConvexLoss(L=1.0, m=0.1), 0.1).last_iterate(30, 1.0)


def test_the_noise_of_the_last_step_alone_is_a_bound_too():
    run = unit(ConvexSmoothLoss(1.0), 0.1, diameter=0.2)
    assert 2 * run.output_perturbation(100, 1.0).rho == pytest.approx(0.3**2)
    assert run.last_iterate(100, 1.0).curve.rho <= run.output_perturbation(100, 1.0).rho
    holder = unit(HolderLoss(0.1, 0.5), 0.1, diameter=0.2)
    assert 2 * holder.output_perturbation(100, 1.0).rho == pytest.approx((0.3 + 0.1 * 0.2**0.5) ** 2)


def test_the_certificate_says_what_it_rests_on():
    run = unit(StronglyConvexLoss(L=1.0, m=0.1), 0.1, diameter=2.0)
    bound = run.last_iterate(50, 1.0)
    certificate = bound.certificate(1e-5)
    assert certificate.holds
    assert certificate.parameters["epsilon"] == bound.epsilon(1e-5)
    assert certificate.parameters["epsilon_of_composition"] == bound.composition.epsilon(1e-5)
    assert certificate.parameters["adjacency"] == "replace_one"
    texts = " ".join(assumption.text for assumption in certificate.assumptions)
    for words in ("0.1-strongly convex", "norm 5 at most", "diameter 2", "last iterate is released", "all records"):
        assert words in texts
    assert "clipped" in certificate.does_not_cover[0]
    assert bound.curve.adjacency == "replace_one"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"lr": 3.0}, "at most 2 / L = 2"),
        ({"lr": 0.0}, "lr"),
        ({"grad_bound": -1.0}, "grad_bound"),
        ({"n": 0}, "n is 0"),
        ({"diameter": 0.0}, "diameter"),
        ({"grid": 10}, "grid"),
        ({"grid": 10**5}, "grid"),
        ({"loss": "logistic"}, "loss"),
        ({"sampling": "poisson"}, "sampling"),
        ({"batch_size": 10}, "full batches"),
        ({"batch_size": 7, "sampling": "cyclic"}, "does not divide"),
        ({"batch_size": 200, "sampling": "without_replacement"}, "at most n"),
        ({"batch_size": None, "sampling": "shuffled"}, "batch_size"),
    ],
)
def test_runs_that_make_no_sense_are_refused(change, match):
    options = {"loss": ConvexSmoothLoss(1.0), "lr": 0.5, "grad_bound": 1.0, "n": 100, "diameter": 1.0}
    with pytest.raises(InputError, match=match):
        HiddenStateAccountant(**options | change)


@pytest.mark.parametrize("call", [{"steps": 0, "noise_std": 1.0}, {"steps": 10, "noise_std": 0.0}])
def test_steps_and_noise_that_make_no_sense_are_refused(call):
    with pytest.raises(InputError):
        unit(ConvexSmoothLoss(1.0), 0.1, diameter=1.0).last_iterate(**call)
