"""Noise: as large as it must be, from where the certificate says."""

import builtins

import numpy as np
import pytest
from scipy import stats

from aboveboard.core import InputError, MissingExtra
from aboveboard.privacy.objective_perturbation import _gaussian
from aboveboard.privacy.objective_perturbation._gaussian import Gaussian, calibrated_sigma


@pytest.fixture
def without_opendp(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "opendp":
            raise ModuleNotFoundError("No module named 'opendp'", name="opendp")
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name, *rest: without(name))


@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), [(0.1, 1e-6, 1.0), (1.0, 1e-5, 3.0), (8.0, 1e-9, 0.1)])
def test_the_noise_has_the_delta_of_balle_and_wang(epsilon, delta, sensitivity):
    shift = sensitivity / calibrated_sigma(epsilon, delta, sensitivity)
    found = stats.norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift)
    assert delta * (1 - 1e-4) < found <= delta


def test_float64_noise_is_normal_and_can_be_repeated_with_a_seed():
    gaussian = Gaussian.choose("auto", 0)
    assert gaussian.kind == "float64"
    draws = gaussian.add(np.full(20_000, 5.0), 2.0, 1.0)
    assert stats.kstest(draws, "norm", args=(5.0, 2.0)).pvalue > 1e-3
    assert np.array_equal(draws, Gaussian.choose("float64", 0).add(np.full(20_000, 5.0), 2.0, 1.0))
    assert any("seed" in assumption.text for assumption in gaussian.assumptions)
    assert any("last bits" in text for text in gaussian.does_not_cover)


def test_opendp_draws_normal_noise_on_a_grid_and_proves_what_is_certified(monkeypatch):
    pytest.importorskip("opendp")
    gaussian = Gaussian.choose("auto", None)
    assert gaussian.kind == "opendp"
    assert "OpenDP" in gaussian.numerics["precision"]
    values = np.arange(3_000.0).reshape(30, 100)
    noise = gaussian.add(values, 2.0, 1.0) - values
    assert noise.shape == (30, 100)
    assert stats.kstest(noise.ravel(), "norm", args=(0.0, 2.0)).pvalue > 1e-3
    assert gaussian.does_not_cover == ()
    monkeypatch.setattr(_gaussian, "_SENSITIVITY_ADDED", -0.1)
    with pytest.raises(RuntimeError, match="OpenDP proves"):
        gaussian.add(np.zeros(3), 2.0, 1.0)


def test_a_seed_for_opendp_is_refused():
    with pytest.raises(InputError, match="takes no seed"):
        Gaussian.choose("opendp", 0)
    with pytest.raises(InputError, match="noise is 'laplace'"):
        Gaussian.choose("laplace", None)


@pytest.mark.usefixtures("without_opendp")
def test_without_opendp_noise_is_in_float64_and_the_certificate_says_so():
    gaussian = Gaussian.choose("auto", None)
    assert gaussian.kind == "float64"
    assert gaussian.source.cryptographic
    assert gaussian.numerics["precision"] == "float64"
    assert any("private" in text for text in gaussian.does_not_cover)
    with pytest.raises(MissingExtra, match=r"aboveboard\[private\]"):
        Gaussian.choose("opendp", None)
