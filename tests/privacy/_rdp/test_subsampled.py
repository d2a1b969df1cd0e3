"""Subsampled Gaussian noise against quadrature, against exact arithmetic, and against true mixtures."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp

from aboveboard.core import InputError
from aboveboard.privacy import gaussian_rdp, poisson_gaussian_rdp, without_replacement_gaussian_rdp


def divergence(log_p, log_q, alpha, ends):
    """Rényi divergence of two densities, by quadrature around the points where they change."""

    def ratio(x):
        return math.exp(alpha * log_p(x) + (1 - alpha) * log_q(x))

    moment = sum(quad(ratio, *piece, epsabs=0, epsrel=1e-12, limit=500)[0] for piece in itertools.pairwise(ends))
    return math.log(moment) / (alpha - 1)


def log_normal(x, mean, sigma):
    return -((x - mean) ** 2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))


def log_mixture(x, q, first, second, sigma):
    return np.logaddexp(math.log1p(-q) + log_normal(x, first, sigma), math.log(q) + log_normal(x, second, sigma))


@pytest.mark.parametrize("alpha", [1.2, 2.0, 3.7, 8.0])
@pytest.mark.parametrize(("sigma", "q"), [(0.5, 0.1), (1.0, 0.01), (2.0, 0.3), (5.0, 0.9)])
def test_poisson_sampling_gives_the_divergence_of_a_mixture_from_the_normal(sigma, q, alpha):
    ends = [-12 * sigma, -1, 0, 1, 2, alpha, alpha + 3 * sigma, alpha + 12 * sigma]
    truth = divergence(
        lambda x: log_mixture(x, q, 0, 1, sigma), lambda x: log_normal(x, 0, sigma), alpha, sorted(set(ends))
    )
    assert poisson_gaussian_rdp(sigma, q, orders=[alpha]).values[0] == pytest.approx(truth, rel=1e-7, abs=1e-12)


def exact_without_replacement(sigma, q, alpha):
    """The bound in 200 digits: moments of p / q - 1 as sums of alternating signs."""
    with localcontext() as context:
        context.prec = 200
        power = [(Decimal(j * (j - 1)) / Decimal(2 * sigma**2)).exp() for j in range(alpha + 2)]
        moment = {
            j: sum((-1) ** (j - k) * math.comb(j, k) * power[k] for k in range(j + 1)) for j in range(2, alpha + 2, 2)
        }
        total = Decimal(1)
        for j in range(2, alpha + 1):
            swaps = 4 * (moment[2 * (j // 2)] * moment[2 * ((j + 1) // 2)]).sqrt()
            total += math.comb(alpha, j) * Decimal(q) ** j * min(swaps, 2 * power[j])
        return float(total.ln()) / (alpha - 1)


@pytest.mark.parametrize("alpha", [2, 3, 10, 65])
@pytest.mark.parametrize(("sigma", "q"), [(1, 0.01), (4, 0.25), (50, 0.02)])
def test_without_replacement_gives_theorem_27_in_exact_arithmetic(sigma, q, alpha):
    found = without_replacement_gaussian_rdp(sigma, q, orders=[alpha]).values[0]
    assert found == pytest.approx(exact_without_replacement(sigma, q, alpha), rel=1e-9)


@pytest.mark.parametrize("alpha", [2.0, 2.5, 6.0])
@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.1), (3.0, 0.5)])
def test_without_replacement_is_no_less_than_the_divergence_of_a_true_sample(sigma, q, alpha):
    """Records of 0, but one that is 1/2 or -1/2: its sample sums are at distance 1."""
    mixtures = [lambda x: log_mixture(x, q, 0, 0.5, sigma), lambda x: log_mixture(x, q, 0, -0.5, sigma)]
    truth = divergence(*mixtures, alpha, [-15 * sigma, -3, 0, 3, 15 * sigma])
    assert truth <= without_replacement_gaussian_rdp(sigma, q, orders=[alpha]).values[0]


@settings(deadline=None, max_examples=20)
@given(st.floats(0.5, 20), st.floats(0.001, 0.5))
def test_more_noise_and_smaller_samples_leak_less_and_sampling_never_hurts(sigma, q):
    orders = [1.5, 2.0, 4.0, 16.0, 64.0]
    poisson = poisson_gaussian_rdp(sigma, q, orders=orders).values
    assert (poisson_gaussian_rdp(1.1 * sigma, q, orders=orders).values <= poisson).all()
    assert (poisson_gaussian_rdp(sigma, 0.9 * q, orders=orders).values <= poisson).all()
    assert (poisson <= gaussian_rdp(sigma, adjacency="add_remove", orders=orders).values).all()
    fixed = without_replacement_gaussian_rdp(sigma, q, orders=orders).values
    assert (without_replacement_gaussian_rdp(1.1 * sigma, q, orders=orders).values <= fixed + 1e-15).all()
    assert (without_replacement_gaussian_rdp(sigma, 0.9 * q, orders=orders).values <= fixed).all()


@pytest.mark.parametrize("curve", [poisson_gaussian_rdp, without_replacement_gaussian_rdp])
def test_a_rate_of_zero_or_one_is_no_sampling(curve):
    assert curve(2.0, 0.0).rho == 0
    assert curve(2.0, 1.0).rho == 0.125
    assert curve(2.0, 0.5).adjacency == ("add_remove" if curve is poisson_gaussian_rdp else "replace_one")
    assert math.isinf(curve(2.0, 0.5).values[-1])
    with pytest.raises(InputError, match="sampling_rate"):
        curve(2.0, 1.1)
    with pytest.raises(InputError, match="noise_multiplier"):
        curve(0.0, 0.1)


def test_a_thousand_steps_convert_as_the_sum_of_their_moments():
    curve = poisson_gaussian_rdp(1.0, 0.01).repeated(1000)
    alpha, moments = np.arange(2, 65, dtype=float), []
    for order in range(2, 65):
        k = np.arange(order + 1)
        terms = [math.log(math.comb(order, i)) + i * math.log(0.01) + (order - i) * math.log(0.99) for i in k]
        moments.append(logsumexp(np.array(terms) + k * (k - 1) / 2))
    by_hand = 1000 * np.array(moments) / (alpha - 1) + np.log1p(-1 / alpha) - np.log(1e-5 * alpha) / (alpha - 1)
    assert by_hand.min() - 0.01 <= curve.epsilon(1e-5) <= by_hand.min()
