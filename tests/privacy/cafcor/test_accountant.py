"""The accounting against the inverse of the whole covariance, its limits (local, central), and the paper's figures."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy import FederatedNoise, calibrate_federated_noise, gaussian_rdp, poisson_gaussian_rdp
from aboveboard.privacy._noise import noise_source

PAPER = {"n_clients": 100, "byzantine": 5, "batch_size": 60, "steps": 400}


def covariance(noise, edges=None):
    """The covariance per coordinate of the noise on the messages of those who keep their seeds to themselves."""
    m = noise.secretive
    shared = np.ones((m, m)) - np.eye(m) if edges is None else edges
    return noise.sigma_ind**2 * np.eye(m) + noise.sigma_cor**2 * (np.diag(shared.sum(axis=1)) - shared)


noises = st.builds(
    FederatedNoise,
    n_clients=st.integers(7, 30),
    byzantine=st.integers(0, 3),
    colluding=st.none() | st.integers(0, 6),
    sigma_ind=st.floats(0.01, 10),
    sigma_cor=st.floats(0, 10),
    steps=st.integers(1, 1000),
)


@given(noises)
def test_the_effective_noise_is_that_of_the_inverse_covariance(noise):
    inverse = np.linalg.inv(covariance(noise))
    assert noise.effective_sigma == pytest.approx(inverse[0, 0] ** -0.5, rel=1e-6)


@given(noises.filter(lambda noise: noise.sigma_cor > 0), st.integers(0, 2**31))
def test_what_other_clients_share_among_each_other_only_adds_to_privacy(noise, seed):
    """Also where a server tells each client of other participants: only a client's own pairs count."""
    rng = np.random.default_rng(seed)
    m = noise.secretive
    among = rng.integers(0, 2, (m, m))
    edges = np.triu(among, 1) + np.triu(among, 1).T
    edges[0], edges[:, 0] = 1, 1
    edges[0, 0] = 0
    one_sided = covariance(noise, edges) + np.diag(noise.sigma_cor**2 * rng.integers(0, 3, m))
    for found in (covariance(noise, edges), one_sided):
        assert np.linalg.inv(found)[0, 0] ** -0.5 >= noise.effective_sigma * (1 - 1e-6)


def test_a_client_that_sends_the_noise_of_its_pairs_bare_must_count_as_colluding():
    noise = FederatedNoise(n_clients=10, colluding=0, sigma_ind=0.3, sigma_cor=0.9, steps=1)
    bare = covariance(noise)
    bare[4:, 4:] -= noise.sigma_ind**2 * np.eye(6)
    effective = np.linalg.inv(bare)[0, 0] ** -0.5
    counted = FederatedNoise(n_clients=10, colluding=6, sigma_ind=0.3, sigma_cor=0.9, steps=1)
    assert counted.effective_sigma * (1 - 1e-9) <= effective < noise.effective_sigma


@given(noises, st.integers(0, 5))
def test_the_noise_on_the_mean_is_what_honest_messages_leave(noise, silent):
    n = noise.n_clients
    everybody = noise.sigma_ind**2 * np.eye(n) + noise.sigma_cor**2 * (n * np.eye(n) - 1)
    mean = np.zeros(n)
    mean[silent:] = 1 / (n - silent)
    assert noise.averaged_std(silent) ** 2 == pytest.approx(mean @ everybody @ mean, rel=1e-6)


def test_the_standard_deviations_of_the_paper_s_setting_come_out():
    found = {
        trust: calibrate_federated_noise(10.0, 1e-4, trust=trust, conversion="zcdp", **PAPER)
        for trust in ("pairs", "nobody", "server")
    }
    assert found["pairs"].rdp().rho == pytest.approx(1.82, rel=0.01)
    assert found["pairs"].sigma_ind == found["pairs"].sigma_cor == pytest.approx(0.0505, rel=0.01)
    assert found["nobody"].sigma_ind == pytest.approx(0.350, rel=0.01)
    for trust, published in {"pairs": 0.0127, "nobody": 0.0359, "server": 0.0035}.items():
        assert found[trust].averaged_std() == pytest.approx(published, rel=0.01)


def test_local_and_central_privacy_are_the_limits():
    common = {"n_clients": 50, "byzantine": 4, "steps": 10}
    assert FederatedNoise(sigma_ind=0.7, **common).effective_sigma == pytest.approx(0.7)
    far = FederatedNoise(sigma_ind=0.7, sigma_cor=1e6, **common)
    assert far.effective_sigma == pytest.approx(0.7 * math.sqrt(46), rel=1e-9)
    assert FederatedNoise(sigma_server=0.7 / 50, **common).effective_sigma == pytest.approx(0.7)


def test_local_privacy_is_the_composition_of_gaussian_mechanisms():
    noise = FederatedNoise(n_clients=10, sigma_ind=0.5, steps=40, batch_size=8, clip=1.5)
    alone = gaussian_rdp(0.5, adjacency="replace_one", sensitivity=2 * 1.5 / 8).repeated(40)
    np.testing.assert_allclose(noise.rdp().values, alone.values, rtol=1e-12)
    shift = 2 * 1.5 / 8 / 0.5 * math.sqrt(40)  # the exact trade-off, solved by bisection
    exact = brentq(
        lambda e: norm.cdf(shift / 2 - e / shift) - math.exp(e) * norm.cdf(-shift / 2 - e / shift) - 1e-5, 0, 99
    )
    assert noise.epsilon() == pytest.approx(exact, rel=1e-6)


def test_poisson_batches_are_the_sampled_gaussian_mechanism():
    noise = FederatedNoise(
        n_clients=10, byzantine=1, sigma_ind=0.2, sigma_cor=0.2, steps=30, batch_size=10, sampling="poisson",
        sampling_rate=0.05,
    )  # fmt: skip
    alone = poisson_gaussian_rdp(noise.effective_sigma / 0.1, 0.05).repeated(30)
    np.testing.assert_allclose(noise.rdp().values, alone.values, rtol=1e-12)
    assert noise.certificate().parameters["adjacency"] == "add_remove"


def test_more_colluders_and_more_rounds_cost_privacy():
    def epsilon(**changed):
        return FederatedNoise(
            **({"n_clients": 20, "sigma_ind": 0.5, "sigma_cor": 0.5, "steps": 10, "colluding": 0} | changed)
        ).epsilon()

    by_colluders = [epsilon(colluding=q) for q in range(19)]
    by_rounds = [epsilon(steps=steps) for steps in (1, 10, 100)]
    assert by_colluders == sorted(by_colluders)
    assert by_rounds == sorted(by_rounds)
    double, single = (FederatedNoise(n_clients=9, sigma_ind=1.0, steps=steps).rdp().values for steps in (2, 1))
    np.testing.assert_allclose(double, 2 * single)


@pytest.mark.parametrize("trust", ["pairs", "nobody", "server"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conversion": "zcdp"},
        {"ratio": "best"},
        {"ratio": 0.3, "clip": 2.5},
        {"colluding": 20},
        {"batch_size": 1, "unit": "client"},
    ],
    ids=str,
)
def test_the_calibrated_noise_keeps_the_promise(trust, options):
    noise = calibrate_federated_noise(3.0, 1e-5, trust=trust, **(PAPER | options))
    if options.get("conversion") == "zcdp":
        rho = noise.rdp().rho
        assert rho + 2 * math.sqrt(rho * math.log(1e5)) == pytest.approx(3.0)
        assert noise.epsilon() < 3.0
    else:
        assert 3.0 * (1 - 1e-4) <= noise.epsilon() <= 3.0 * (1 + 1e-9)


@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_calibration_with_credit_for_sampling_keeps_the_promise(sampling):
    noise = calibrate_federated_noise(
        2.0, 1e-5, n_clients=10, byzantine=2, batch_size=10, steps=50, sampling=sampling, sampling_rate=0.05
    )
    assert 2.0 * (1 - 1e-4) <= noise.epsilon() <= 2.0
    without = calibrate_federated_noise(2.0, 1e-5, n_clients=10, byzantine=2, batch_size=10, steps=50)
    assert noise.averaged_std() < without.averaged_std() / 3


def test_the_best_ratio_leaves_less_than_any_on_a_grid():
    def left(noise):
        n, f, m = noise.n_clients, noise.byzantine, noise.secretive
        return noise.averaged_std() ** 2 + f / n * (noise.sigma_ind**2 + m * noise.sigma_cor**2)

    best = left(calibrate_federated_noise(3.0, 1e-5, ratio="best", **PAPER))
    for ratio in np.geomspace(1e-3, 10, 30):
        assert best <= left(calibrate_federated_noise(3.0, 1e-5, ratio=float(ratio), **PAPER)) * (1 + 1e-6)


def test_the_certificate_names_what_it_rests_on_and_makes_the_round_trip():
    noise = calibrate_federated_noise(3.0, 1e-5, **PAPER)
    extra = Assumption("Checked.", basis="checked", passed=True)
    certificate = noise.certificate(noise_source(0), assumptions=(extra,))
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert certificate.holds
    assert "seeds of 5 of them" in certificate.guarantee
    assert "exp(3)" in certificate.guarantee
    assert "can be predicted" in certificate.numerics["noise_source"]
    assert any("At most 5 clients hand their seeds" in assumption.text for assumption in certificate.assumptions)
    local = calibrate_federated_noise(3.0, 1e-5, trust="nobody", **PAPER).certificate()
    assert "seeds" not in local.guarantee
    central = calibrate_federated_noise(3.0, 1e-5, trust="server", **PAPER).certificate()
    assert any("honest" in assumption.text for assumption in central.assumptions)
    sampled = FederatedNoise(n_clients=9, sigma_ind=1.0, steps=1, sampling="fixed", sampling_rate=0.5).certificate()
    assert any("without replacement" in assumption.text for assumption in sampled.assumptions)
    whole = FederatedNoise(n_clients=9, sigma_ind=1.0, steps=1, unit="client").certificate()
    assert any("all data of one client" in assumption.text for assumption in whole.assumptions)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"byzantine": 5}, "fewer than half"),
        ({"byzantine": -1}, "byzantine"),
        ({"n_clients": 0}, "n_clients"),
        ({"colluding": 10}, "fewer than all"),
        ({"colluding": -1}, "colluding"),
        ({"steps": 0}, "steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"clip": 0.0}, "clip"),
        ({"delta": 1.0}, "delta"),
        ({"sigma_ind": 0.0}, "not all of them 0"),
        ({"sigma_ind": -1.0}, "finite numbers"),
        ({"sigma_cor": float("nan")}, "finite numbers"),
        ({"sigma_ind": 0.0, "sigma_cor": 1.0}, "cancels in the sum"),
        ({"sigma_server": 1.0}, "both clients and server"),
        ({"sampling": "often"}, "sampling is 'often'"),
        ({"unit": "village"}, "unit is 'village'"),
        ({"unit": "client", "batch_size": 2}, "clients are protected"),
        ({"sampling": "poisson"}, "a rate for"),
        ({"sampling_rate": 0.5}, "a rate for"),
        ({"sampling": "fixed", "sampling_rate": 1.5}, "sampling_rate"),
    ],
    ids=str,
)
def test_noise_that_makes_no_sense_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        FederatedNoise(**({"n_clients": 10, "sigma_ind": 1.0, "steps": 5} | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta is 0"),
        ({"trust": "god"}, "trust is 'god'"),
        ({"conversion": "magic"}, "conversion is 'magic'"),
        ({"conversion": "zcdp", "sampling": "fixed", "sampling_rate": 0.1}, "sampling 'any'"),
        ({"ratio": -1.0}, "ratio"),
        ({"colluding": 150, "ratio": "best"}, "fewer than all"),
        ({"n_clients": 2.5}, "n_clients"),
        ({"ratio": "worst"}, "ratio"),
    ],
    ids=str,
)
def test_promises_that_make_no_sense_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        calibrate_federated_noise(**({"epsilon": 1.0, "delta": 1e-5} | PAPER | changed))


def test_more_silent_clients_than_there_are_have_no_mean():
    noise = FederatedNoise(n_clients=10, sigma_ind=1.0, steps=5)
    with pytest.raises(InputError, match="fewer than all"):
        noise.averaged_std(10)
