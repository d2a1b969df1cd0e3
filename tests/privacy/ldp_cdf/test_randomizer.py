"""The side of the person who answers: exact odds, thresholds that know nothing of values, refusals."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import CurrentStatusRandomizer
from aboveboard.privacy._noise import CRYPTOGRAPHIC
from aboveboard.privacy.ldp_cdf._input import lie_probability


@given(st.floats(1e-6, 500.0))
def test_the_odds_of_the_two_answers_never_exceed_the_exact_exponential(epsilon):
    lie = lie_probability(epsilon)
    assert (lie * 2.0**52).is_integer()
    assert 0 < lie <= 0.5
    with localcontext() as context:
        context.prec = 60
        assert (1 - Decimal(lie)) / Decimal(lie) <= Decimal(epsilon).exp()


@pytest.mark.parametrize(("r", "epsilon"), [(0.25, 0.511), (0.5, 1.099), (0.9, 2.944)])
def test_the_share_of_truthful_answers_is_that_of_the_paper(r, epsilon):
    assert 1 - 2 * lie_probability(epsilon) == pytest.approx(r, abs=5e-4)
    assert 1 - 2 * lie_probability(epsilon) == pytest.approx(np.tanh(epsilon / 2), abs=1e-15)


def test_every_number_the_generator_can_give_is_a_lie_as_often_as_certified(monkeypatch):
    # a generator of 2^52 equally likely numbers, at the edge between lie and truth
    device = CurrentStatusRandomizer(1.0)
    lie = device.certificate().parameters["lie_probability"]
    edge = (lie * 2**52 + np.array([-1.5, -0.5, 0.5, 1.5])) / 2**52
    monkeypatch.setattr(device._noise, "uniform", lambda size: edge)
    assert device.respond([0.3] * 4, [0.5] * 4).tolist() == [0, 0, 1, 1]
    assert device.respond([0.7] * 4, [0.5] * 4).tolist() == [1, 1, 0, 0]


def test_answers_are_lies_as_often_as_certified_for_either_truth():
    device = CurrentStatusRandomizer(1.0, random_state=0)
    n = 200_000
    for x in (0.2, 0.8):
        share = device.respond(np.full(n, x), np.full(n, 0.5)).mean()
        expected = 1 / (1 + np.exp(1.0)) if x > 0.5 else 1 / (1 + np.exp(-1.0))
        assert share == pytest.approx(expected, abs=4.5 * np.sqrt(expected * (1 - expected) / n))


def test_thresholds_have_the_distribution_that_was_asked_for():
    n = 100_000
    even = CurrentStatusRandomizer(1.0, bounds=(-2, 6), random_state=0).thresholds(n)
    assert even.min() > -2
    assert even.max() < 6
    assert np.abs(np.sort(even) - np.linspace(-2, 6, n)).max() < 8 * 1.63 / np.sqrt(n)  # Kolmogorov at 1 %
    squared = CurrentStatusRandomizer(1.0, quantile=np.square, random_state=0).thresholds(n)
    assert np.abs(np.sqrt(np.sort(squared)) - np.linspace(0, 1, n)).max() < 1.63 / np.sqrt(n)
    few = CurrentStatusRandomizer(1.0, grid=[0.1, 0.5, 0.6], probs=[0.2, 0.5, 0.3], random_state=0).thresholds(n)
    counts = np.array([(few == point).sum() for point in (0.1, 0.5, 0.6)])
    assert counts.sum() == n
    assert np.abs(counts / n - [0.2, 0.5, 0.3]).max() < 0.007


def test_a_value_equal_to_the_threshold_is_at_most_the_threshold():
    device = CurrentStatusRandomizer(30.0, bounds=(0, 120), random_state=0)
    assert device.respond([18.0, 18.5, 17.0], [18.0, 18.0, 18.0]).tolist() == [1, 0, 1]


def test_one_person_gets_a_number_and_a_bit_and_many_get_arrays():
    device = CurrentStatusRandomizer(1.0, random_state=0)
    threshold, answer = device.report(0.3)
    assert isinstance(threshold, float)
    assert answer in (0, 1)
    t, delta = device.report([0.3, 0.4])
    assert t.shape == delta.shape == (2,)
    assert delta.dtype == np.uint8
    assert (device.report([0.3] * 50)[0] != device.report([0.3] * 50)[0]).all(), "each draw is new"


def test_a_seed_can_be_repeated_and_the_certificate_says_where_the_noise_came_from():
    x = np.linspace(0, 1, 100)
    first, again = (CurrentStatusRandomizer(1.0, random_state=3).report(x) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(CurrentStatusRandomizer(1.0).report(x), CurrentStatusRandomizer(1.0).report(x))
    certificate = CurrentStatusRandomizer(1.0).certificate()
    assert certificate.numerics["noise_source"] == CRYPTOGRAPHIC
    assert "predicted" in CurrentStatusRandomizer(1.0, random_state=3).certificate().numerics["noise_source"]
    assert {"epsilon", "delta", "adjacency", "mechanism"} <= certificate.parameters.keys()
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert any("once" in assumption.text for assumption in certificate.assumptions)


def test_values_beyond_the_bounds_are_refused_or_moved_to_them():
    with pytest.raises(InputError, match=r"beyond the bounds, 0 to 1.*clip=True"):
        CurrentStatusRandomizer(1.0).report([0.2, 1.2])
    device = CurrentStatusRandomizer(30.0, clip=True, random_state=0)
    assert device.respond([1.2, -np.inf], [1.0, 0.0]).tolist() == [1, 1]
    with pytest.raises(InputError, match="missing"):
        device.report([np.nan])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": np.inf}, "infinite"),
        ({"bounds": (1, 1)}, "two finite numbers"),
        ({"bounds": (0, np.inf)}, "two finite numbers"),
        ({"bounds": (0, 1, 2)}, "two finite numbers"),
        ({"grid": [0.5, 0.2]}, "ascending"),
        ({"grid": [0.5, 0.5]}, "none twice"),
        ({"grid": []}, "one or more"),
        ({"grid": [0.5, 1.5]}, "within the bounds"),
        ({"grid": [0.5, 0.7], "probs": [0.5, 0.6]}, "sum to one"),
        ({"grid": [0.5, 0.7], "probs": [1.0]}, "2 positive numbers"),
        ({"probs": [1.0]}, "without a grid"),
        ({"grid": [0.5], "quantile": np.square}, "both"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CurrentStatusRandomizer(**options)


def test_a_quantile_function_must_stay_within_the_bounds():
    with pytest.raises(InputError, match="quantile gave"):
        CurrentStatusRandomizer(1.0, quantile=lambda u: u + 1).thresholds(10)
    with pytest.raises(InputError, match="quantile gave"):
        CurrentStatusRandomizer(1.0, quantile=lambda u: u[:5]).thresholds(10)


def test_values_and_thresholds_must_line_up():
    device = CurrentStatusRandomizer(1.0)
    with pytest.raises(InputError, match="shape"):
        device.respond([0.1, 0.2], [0.5])
    with pytest.raises(InputError, match="threshold is missing"):
        device.respond([0.1], [np.nan])
    with pytest.raises(InputError, match="shape"):
        device.report([[0.1]])
