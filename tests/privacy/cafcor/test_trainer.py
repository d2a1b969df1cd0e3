"""The trainer against the protocol written out, under every attack, with lost clients, and what its options mean."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits

from aboveboard.core import InputError
from aboveboard.privacy import (
    CafCorClient,
    CafCorTrainer,
    FederatedNoise,
    PairwiseNoise,
    SoftmaxRegression,
    caf,
    calibrate_federated_noise,
    simulated_seeds,
)
from aboveboard.privacy.cafcor._trainer import draw_batch

N, LIARS = 16, 3
DIGITS, LABELS = load_digits(return_X_y=True)
DIGITS = DIGITS / 16 - 0.3
CLIENTS = [(DIGITS[start:1440:N], LABELS[start:1440:N]) for start in range(N)]
TEST = DIGITS[1440:], LABELS[1440:]
LITTLE = FederatedNoise(
    n_clients=N, byzantine=LIARS, sigma_ind=0.001, sigma_cor=0.001, batch_size=40, steps=60, clip=1.0
)
MODEL = SoftmaxRegression(64, 10)


def trained(noise=LITTLE, clients=CLIENTS, **options):
    options = {"learning_rate": 2.0, "pair_noise": "joint", "random_state": 0} | options
    return CafCorTrainer(MODEL, noise, **options).fit(clients)


def accuracy(trainer):
    return (trainer.predict(TEST[0]) == TEST[1]).mean()


def alie(seen):
    """A little is enough: as far from the mean as hides among honest clients."""
    n, f = len(seen.honest) + len(seen.own), len(seen.own)
    z = norm.ppf((n - f - (n // 2 + 1 - f)) / (n - f))
    return np.tile(seen.honest.mean(axis=0) - z * seen.honest.std(axis=0), (f, 1))


ATTACKS = {
    "sign flip": lambda seen: -seen.own,
    "label flip": lambda seen: seen.own,
    "a little is enough": alie,
    "inner product": lambda seen: np.tile(-0.5 * seen.honest.mean(axis=0), (len(seen.own), 1)),
    "fall of empires": lambda seen: np.tile(-10 * seen.honest.mean(axis=0), (len(seen.own), 1)),
    "noise": lambda seen: 1e6 * seen.generator.normal(size=seen.own.shape),
    "nonsense": lambda seen: np.full(seen.own.shape, np.nan),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_of_few_clients_spoils_the_model(attack):
    clients = CLIENTS
    if attack == "label flip":
        clients = CLIENTS[:-LIARS] + [(X, 9 - y) for X, y in CLIENTS[-LIARS:]]
    trainer = trained(clients=clients, attack=ATTACKS[attack])
    assert accuracy(trainer) > 0.8
    assert (trainer.history_["rejected"] == (LIARS if attack == "nonsense" else 0)).all()
    if attack == "fall of empires":
        assert accuracy(trained(clients=clients, attack=ATTACKS[attack], aggregator="mean")) < 0.5


def test_two_rounds_are_those_of_the_protocol_written_out():
    noise = calibrate_federated_noise(9.0, 1e-3, n_clients=4, byzantine=1, batch_size=20, steps=2)
    found = trained(noise, CLIENTS[:4], pair_noise="seeds", learning_rate=0.3, momentum=0.5, weight_decay=0.01)
    seeds = simulated_seeds(4, 0)
    members = [
        CafCorClient(i, PairwiseNoise(i, seeds[i], noise.sigma_cor), noise, momentum=0.5, random_state=0)
        for i in range(4)
    ]
    theta = np.zeros(MODEL.dimension)
    for round_number in (1, 2):
        sent = []
        for member, (X, y) in zip(members, CLIENTS, strict=False):
            rows = draw_batch(len(y), noise, member.client, round_number, 0)
            gradients = [MODEL.clipped_sum(theta, X[row : row + 1], y[row : row + 1], 1e9) for row in rows]
            sent.append(member.update(gradients, round_number=round_number).vector)
        theta = (1 - 0.3 * 0.01) * theta - 0.3 * caf(np.stack(sent), 1).mean
    np.testing.assert_allclose(found.parameters_, theta, rtol=0, atol=1e-12)


def test_the_noise_of_pairs_and_of_all_at_once_train_alike():
    noise = calibrate_federated_noise(30.0, 1e-3, n_clients=N, byzantine=LIARS, batch_size=40, steps=40)
    seeds, joint = (accuracy(trained(noise, pair_noise=way)) for way in ("seeds", "joint"))
    assert abs(seeds - joint) < 0.06  # some two standard errors of a difference on 357 digits
    assert min(seeds, joint) > 0.6


def test_lost_clients_are_left_out_and_training_goes_on():
    trainer = trained(lost=lambda number: [number % N, (number + 1) % N])
    assert (trainer.history_["lost"] == 2).all()
    assert (trainer.history_["counted"] == N - 2).all()
    assert accuracy(trainer) > 0.85


def test_a_round_in_which_too_many_are_lost_changes_nothing():
    trainer = trained(lost=lambda number: range(12) if number > 30 else [])
    before = trained(noise=FederatedNoise(
        n_clients=N, byzantine=LIARS, sigma_ind=0.001, sigma_cor=0.001, batch_size=40, steps=30
    ))  # fmt: skip
    np.testing.assert_array_equal(trainer.parameters_, before.parameters_)
    assert trainer.history_["norm"].isna().sum() == 30


def test_the_same_seed_gives_the_same_model_and_no_seed_another_each_time():
    few = FederatedNoise(n_clients=N, sigma_ind=0.1, sigma_cor=0.1, batch_size=40, steps=2)
    assert np.array_equal(trained(few).parameters_, trained(few).parameters_)
    assert not np.array_equal(trained(few).parameters_, trained(few, random_state=1).parameters_)
    system = [trained(few, random_state=None, pair_noise=way) for way in ("joint", "seeds")]
    assert not np.array_equal(system[0].parameters_, system[1].parameters_)
    assert "cryptographic" in system[0].certificate_.numerics["noise_source"]
    assert "predicted" in trained(few).certificate_.numerics["noise_source"]


def test_a_trusted_server_adds_its_noise_once_and_vouches_for_the_mean_only():
    noise = FederatedNoise(n_clients=N, sigma_server=0.2, batch_size=40, steps=1)
    still = FederatedNoise(n_clients=N, sigma_server=1e-12, batch_size=40, steps=1)
    moved = trained(noise, aggregator="mean").parameters_ - trained(still, aggregator="mean").parameters_
    assert moved.std() == pytest.approx(2.0 * 0.2, rel=0.1)  # the learning rate times the noise
    assert trained(noise, aggregator="mean").certificate_.holds
    assert not trained(noise).certificate_.holds


def test_rate_and_momentum_may_depend_on_the_round():
    few = FederatedNoise(n_clients=N, sigma_ind=0.1, sigma_cor=0.1, batch_size=40, steps=3)
    by_function = trained(few, learning_rate=lambda number: 2.0, momentum=lambda number: 0.9)
    assert np.array_equal(by_function.parameters_, trained(few).parameters_)
    decayed = trained(few, learning_rate=lambda number: 2.0 / number)
    assert not np.array_equal(decayed.parameters_, by_function.parameters_)


@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_batches_are_drawn_as_the_accounting_says(sampling):
    noise = FederatedNoise(n_clients=N, sigma_ind=0.1, batch_size=30, steps=3, sampling=sampling, sampling_rate=1 / 3)
    batches = [draw_batch(90, noise, 0, number, 0) for number in range(1, 401)]
    counts = np.bincount(np.concatenate(batches), minlength=90)
    sizes = np.array([len(batch) for batch in batches])
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)
    # each count is binomial (400, 1/3): five standard deviations around 133
    assert (np.abs(counts - 400 / 3) < 5 * np.sqrt(400 * 2 / 9)).all()
    if sampling == "fixed":
        assert (sizes == 30).all()
    else:
        assert sizes.var() == pytest.approx(90 * 2 / 9, rel=0.3)
    trained(noise)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"pair_noise": "loud"}, "pair_noise"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "now"}, "random_state"),
        ({"aggregator": "vote"}, "aggregator"),
        ({"momentum": 1.0}, "momentum"),
        ({"clients": CLIENTS[:5]}, "5 clients"),
        ({"clients": [*CLIENTS[:-1], (DIGITS[:10], LABELS[:10])]}, "1 clients have fewer than 40 examples: 15"),
        ({"clients": [(DIGITS[:, :5], LABELS)] * N}, "64 columns"),
        ({"noise": FederatedNoise(n_clients=N, sigma_ind=1.0, steps=1), "attack": ATTACKS["noise"]}, "no attacker"),
        ({"noise": FederatedNoise(n_clients=N, sigma_ind=1.0, steps=1, unit="client")}, "whole clients"),
        (
            {"noise": FederatedNoise(
                n_clients=N, sigma_ind=1.0, steps=1, batch_size=40, sampling="fixed", sampling_rate=0.2
            )},
            "fewer than 200 examples",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_be_trained_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        trained(**changed)
