"""What a step does to distances, against steps on losses that are the worst of their class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.privacy import ConvexSmoothLoss, HolderLoss, SmoothLoss, StronglyConvexLoss


@pytest.mark.parametrize("lr", [0.01, 0.5, 1.2, 1.9])
def test_a_quadratic_of_the_steepest_or_flattest_curvature_attains_the_factor(lr):
    loss = StronglyConvexLoss(L=1.0, m=0.3)
    assert loss.contraction(lr) == pytest.approx(max(abs(1 - lr * h) for h in (0.3, 1.0)))
    assert ConvexSmoothLoss(1.0).contraction(lr) == 1.0
    assert SmoothLoss(1.0).contraction(lr) == pytest.approx(1 + lr)  # a step on -x^2 / 2


@given(st.floats(0.1, 1), st.floats(-3, 3), st.floats(-3, 3))
def test_the_modulus_covers_a_gradient_that_is_a_signed_power(lam, x, y):
    def gradient(z):  # Hölder with constant 2^(1 - lam)
        return -np.sign(z) * abs(z) ** lam

    moved = abs((x - 0.7 * gradient(x)) - (y - 0.7 * gradient(y)))
    assert moved <= HolderLoss(2 ** (1 - lam), lam).modulus(0.7)(np.abs(x - y)) + 1e-9


def test_exponent_one_is_smoothness():
    z = np.linspace(0, 3, 7)
    assert HolderLoss(0.4).contraction(0.5) == SmoothLoss(0.4).contraction(0.5)
    assert HolderLoss(0.4, 0.5).contraction(0.5) is None
    assert HolderLoss(0.4, 1.0).modulus(0.5)(z) == pytest.approx(SmoothLoss(0.4).modulus(0.5)(z))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: StronglyConvexLoss(L=1.0, m=2.0), "m of at most L"),
        (lambda: StronglyConvexLoss(L=1.0, m=0.5).contraction(2.1), "at most 2 / L = 2"),
        (lambda: ConvexSmoothLoss(4.0).contraction(0.6), "SmoothLoss"),
        (lambda: ConvexSmoothLoss(0.0), "L is"),
        (lambda: HolderLoss(1.0, 1.5), "lam"),
        (lambda: SmoothLoss(1.0).contraction(-0.1), "lr"),
    ],
)
def test_what_says_nothing_is_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()
