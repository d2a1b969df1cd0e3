"""Simulators follow their formulas, and outcomes their rates."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.collective import ResponseModel
from aboveboard.core import InputError

P = np.array([0.0, 0.4, 0.5, 0.9])
X = pd.DataFrame({"base": [0.1, 0.5, 0.5, 0.8]})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("self_fulfilling", [0.0, 0.45, 0.5, 1.0]),
        ("self_negating", [0.35, 0.55, 0.5, 0.6]),
        ("threshold", [0.1, 0.5, 0.5, 0.3]),
        (lambda X, p: 1 - p, [1.0, 0.6, 0.5, 0.1]),
    ],
)
def test_rates_follow_the_formulas(kind, expected):
    response = ResponseModel(kind, 0.5, base_rate=lambda X: X["base"].to_numpy())
    assert response.mean(X, P) == pytest.approx(expected)


def test_outcomes_have_the_rates_and_the_seed_repeats_them():
    n = 20_000
    many = [ResponseModel("self_negating", 1.0, random_state=7)(np.zeros((n, 0)), np.full(n, 0.2)) for _ in range(2)]
    assert np.array_equal(*many)
    assert set(many[0]) == {0.0, 1.0}
    assert many[0].mean() == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / n))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResponseModel("none"), "kind is 'none'"),
        (lambda: ResponseModel(strength=np.inf), "strength is inf"),
        (lambda: ResponseModel(base_rate=2), "base_rate is 2"),
        (lambda: ResponseModel().mean(X, [0.5]), "shape"),
        (lambda: ResponseModel().mean(X, P + 1), "outside"),
        (lambda: ResponseModel(lambda X, p: p + 1).mean(X, P), "response lies outside"),
        (lambda: ResponseModel(lambda X, p: 0.5).mean(X, P), "one number per person"),
        (lambda: ResponseModel(base_rate=lambda X: [0.5]).mean(X, P), "base rate has shape"),
    ],
)
def test_what_is_no_response_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
