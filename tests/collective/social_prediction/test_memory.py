"""K29 against any nature: the bounds hold path by path, and forecasts are zeros of what they must be zeros of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from aboveboard.collective.social_prediction import BumpTests, LinearTests, PolynomialTests, ProductTests
from aboveboard.collective.social_prediction._families import CallableTests, bind_tests, values_of
from aboveboard.collective.social_prediction._memory import KernelMemory, SumMemory, forecast
from aboveboard.collective.social_prediction._people import Columns

FAMILIES = [PolynomialTests(1), LinearTests(), ProductTests(LinearTests(), PolynomialTests(2)), BumpTests(4)]


def memory_for(X, families=FAMILIES):
    return SumMemory(bind_tests(families, Columns.learn(X, ()), X))


def play(memory, X, answer, batch=1):
    """Publish, answer, learn; return forecasts and outcomes."""
    forecasts, outcomes = [], []
    for start in range(0, len(X), batch):
        Z = X[start : start + batch]
        p = forecast(memory, Z, np.full(len(Z), 0.5), np.full(len(Z), memory.versions))
        y = np.array([answer(z, q) for z, q in zip(Z, p, strict=True)])
        memory.add(Z, p, y - p)
        forecasts.extend(p)
        outcomes.extend(y)
    return np.array(forecasts), np.array(outcomes)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([1, 3, 7]))
def test_no_nature_can_break_the_bounds(seed, rounds, batch):
    """Outcomes are chosen after the forecast: at random, at the ends, or to make the sums as large as can be."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, 2))
    memory = memory_for(X)
    kind = rng.integers(3)

    def answer(z, p):
        if kind == 0:
            return rng.random()
        if kind == 1:
            return float(p < 0.5)
        growth = [abs(np.linalg.norm(memory.sums + (y - p) * values_of(memory.tests, z[None], np.array([p]))[0]))
                  for y in (0.0, 1.0)]  # fmt: skip
        return float(np.argmax(growth))

    p, y = play(memory, X, answer, batch)
    values = values_of(memory.tests, X, p)
    sums = values.T @ (y - p)
    assert np.allclose(memory.sums, sums, atol=1e-9)
    assert np.abs(sums).max() <= np.sqrt(batch * rounds * memory.size) + 1e-9
    assert np.linalg.norm(sums) <= memory.bound * (1 + 1e-9)


def test_the_norm_grows_by_no_more_than_each_round_allows():
    """The squared norm is at most the sum of (y - p)^2 |Phi|^2 at every round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    memory = memory_for(X)
    allowed = 0.0
    for z in X[:, None]:
        p = forecast(memory, z, np.array([0.5]), np.array([memory.versions]))
        y = float(rng.random() < 0.5 + 0.4 * (p[0] < 0.5) - 0.2)
        allowed += float((y - p[0]) ** 2 * (values_of(memory.tests, z, p) ** 2).sum())
        memory.add(z, p, y - p)
        assert memory.norm**2 <= allowed + 1e-9 * (1 + memory.norm)


def test_the_forecast_is_a_zero_or_an_end():
    """Held against a grid of a million: no change of sign means an end, and a forecast inside is a zero."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    memory = memory_for(X)
    play(memory, X, lambda z, p: float(rng.random() < 1 - p))
    grid = np.linspace(0, 1, 20_001)
    for z in rng.normal(size=(50, 2)):
        p = forecast(memory, z[None], np.array([0.5]), np.array([memory.versions]))[0]
        values = values_of(memory.tests, np.repeat(z[None], len(grid), axis=0), grid) @ memory.sums
        at = values_of(memory.tests, z[None], np.array([p]))[0] @ memory.sums
        if (values > 0).all():
            assert p == 1.0
        elif (values < 0).all():
            assert p == 0.0
        else:
            assert abs(at) <= 1e-9 * (1 + memory.norm)


def test_of_several_zeros_the_nearest_to_the_anchor_is_taken():
    cosine = CallableTests((lambda X, p: np.cos(4 * np.pi * p),))  # zeros at 1/8, 3/8, 5/8, 7/8
    memory = SumMemory((cosine,))
    memory.add(np.zeros((1, 0)), np.array([0.0]), np.array([1.0]))
    anchors = np.array([0.0, 0.2, 0.26, 0.5001, 0.7, 1.0])
    found = forecast(memory, np.zeros((6, 0)), anchors, np.ones(6, dtype=int))
    assert found == pytest.approx([1 / 8, 1 / 8, 3 / 8, 5 / 8, 5 / 8, 7 / 8], abs=1e-9)


def test_before_anything_is_known_the_anchor_is_published():
    memory = SumMemory((PolynomialTests(1),))
    anchors = np.array([0.0, 0.3, 1.0])
    assert forecast(memory, np.zeros((3, 0)), anchors, np.zeros(3, dtype=int)) == pytest.approx(anchors, abs=1e-15)


def test_with_the_single_test_1_forecasts_push_back_against_the_sum():
    """The forecast is 1 after too many outcomes, 0 after too few: the mean residual is at most 1/sqrt(T)."""
    rng = np.random.default_rng(2)
    memory = SumMemory((PolynomialTests(0),))
    total = 0.0
    for t in range(200):
        p = forecast(memory, np.zeros((1, 0)), np.array([0.5]), np.array([t]))
        assert p[0] == (1.0 if total > 1e-12 else 0.0 if total < -1e-12 else 0.5)
        y = float(rng.random() < 0.3)
        total += y - p[0]
        memory.add(np.zeros((1, 0)), p, y - p)
    assert abs(total) / 200 <= 1 / np.sqrt(200)


def test_a_function_and_the_same_tests_by_products_agree():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(60, 2))
    products = memory_for(X, [PolynomialTests(1), BumpTests([0.2, 0.7], 0.2)])
    calls = (
        lambda X, p: np.ones(len(p)),
        lambda X, p: p,
        lambda X, p: np.exp(-0.5 * ((p - 0.2) / 0.2) ** 2),
        lambda X, p: np.exp(-0.5 * ((p - 0.7) / 0.2) ** 2),
    )
    functions = SumMemory((CallableTests(calls),))
    draws = rng.random(60)
    for memory in (products, functions):
        outcomes = iter(draws)
        play(memory, X, lambda z, p, o=outcomes: float(next(o) < 0.8 - 0.6 * p))
    assert products.sums == pytest.approx(functions.sums, abs=1e-9)


def test_a_kernel_with_a_finite_map_gives_the_forecasts_of_that_map():
    """k(z, z') = 1 + p p' has the map (1, p): its forecasts are those of PolynomialTests(1), scaled by a constant."""

    class OneAndP:
        def __call__(self, first, second=None):
            return (1 + first[:, -1:] @ (first if second is None else second)[:, -1:].T) / 2

    rng = np.random.default_rng(4)
    X, draws = rng.normal(size=(80, 1)), rng.random(80)
    found = []
    for memory in (KernelMemory(OneAndP(), 1), SumMemory((PolynomialTests(1),))):
        outcomes = iter(draws)
        found.append(play(memory, X, lambda z, p, o=outcomes: float(next(o) < 1 - p))[0])
        norm = memory.norm
    assert found[0] == pytest.approx(found[1], abs=1e-8)
    kernel = KernelMemory(OneAndP(), 1)
    outcomes = iter(draws)
    p, y = play(kernel, X, lambda z, p: float(next(outcomes) < 1 - p))
    assert kernel.norm == pytest.approx(norm / np.sqrt(2), abs=1e-8)
    del y, p


def test_the_norm_of_a_kernel_is_that_of_its_gram_matrix():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 1))
    kernel = RBF([1.0, 0.1])
    memory = KernelMemory(kernel, 1)
    p, y = play(memory, X, lambda z, p: float(rng.random() < 1 - p), batch=4)
    gram = kernel(np.column_stack([X, p]))
    assert memory.norm == pytest.approx(np.sqrt((y - p) @ gram @ (y - p)), rel=1e-9)
    assert memory.norm <= memory.bound


def test_every_version_can_be_asked_again():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 2))
    for memory in (memory_for(X), KernelMemory(RBF([1.0, 1.0, 0.2]), 2)):
        p, _ = play(memory, X, lambda z, p: float(rng.random() < 0.7), batch=3)
        versions = memory.version_met_by(np.arange(30))
        assert versions.tolist() == [t // 3 for t in range(30)]
        assert forecast(memory, X, np.full(30, 0.5), versions) == pytest.approx(p, abs=1e-12)
