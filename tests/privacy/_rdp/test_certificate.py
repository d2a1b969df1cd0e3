"""What every certificate of privacy says."""

import pytest

from aboveboard.core import Assumption, Certificate
from aboveboard.privacy._noise import CRYPTOGRAPHIC, noise_source
from aboveboard.privacy._rdp import privacy_certificate

PROMISE = {"release": "the weights", "epsilon": 1.00001, "delta": 1e-5, "mechanism": "Gaussian noise"}


@pytest.mark.parametrize(
    ("adjacency", "words"), [("add_remove", "one record more"), ("replace_one", "of the same size")]
)
def test_it_names_epsilon_delta_neighbours_mechanism_and_noise(adjacency, words):
    certificate = privacy_certificate(
        **PROMISE, adjacency=adjacency, noise=noise_source(None), assumptions=[Assumption("Rows are bounded.")],
        does_not_cover=["the scaler"], parameters={"steps": 3},
    )  # fmt: skip
    assert certificate.kind == "differential privacy"
    assert words in certificate.guarantee
    assert "exp(1.001)" in certificate.guarantee, "rounded upwards"
    assert "plus 1e-05" in certificate.guarantee
    assert certificate.parameters == {
        "epsilon": 1.00001, "delta": 1e-5, "adjacency": adjacency, "mechanism": "Gaussian noise", "steps": 3,
    }  # fmt: skip
    assert certificate.numerics["noise_source"] == CRYPTOGRAPHIC
    assert [assumption.text for assumption in certificate.assumptions] == ["Rows are bounded."]
    assert certificate.does_not_cover[0] == "the scaler"
    assert "last bits" in certificate.does_not_cover[1]
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_a_seed_is_an_assumption_and_no_noise_is_said():
    seeded = privacy_certificate(**PROMISE, adjacency="add_remove", noise=noise_source(0))
    assert "seed" in seeded.assumptions[-1].text
    assert "PCG64" in seeded.numerics["noise_source"]
    planned = privacy_certificate(**PROMISE | {"delta": 0.0}, adjacency="add_remove", noise=None, floating_point="")
    assert planned.numerics["noise_source"].startswith("none")
    assert planned.does_not_cover == ()
    assert "plus" not in planned.guarantee
