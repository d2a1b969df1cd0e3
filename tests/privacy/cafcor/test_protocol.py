"""What a client sends, to the last number, and everything that client and server refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.privacy import (
    CafCorClient,
    CafCorServer,
    FederatedNoise,
    PairwiseNoise,
    Rejected,
    Update,
    caf,
    clipped_mean,
    simulated_seeds,
)

N, D = 5, 7
NOISE = FederatedNoise(n_clients=N, byzantine=1, sigma_ind=0.2, sigma_cor=0.4, batch_size=3, steps=4, clip=1.0)
SEEDS = simulated_seeds(N, 0)


def client(number=0, noise=NOISE, **options):
    shared = PairwiseNoise(number, SEEDS[number], noise.sigma_cor)
    return CafCorClient(number, shared, noise, **({"random_state": 1} | options))


def gradients(seed=0, rows=3):
    return np.random.default_rng(seed).normal(size=(rows, D))


# --- clients ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.floats(0.01, 10))
def test_each_gradient_is_shortened_by_itself(seed, clip):
    rows = gradients(seed, 4) * np.array([[0.0], [0.01], [1.0], [100.0]])
    by_hand = [row if np.linalg.norm(row) <= clip else row * clip / np.linalg.norm(row) for row in rows]
    np.testing.assert_allclose(clipped_mean(rows, clip), np.mean(by_hand, axis=0), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(clipped_mean(rows, clip, 10), np.sum(by_hand, axis=0) / 10, rtol=1e-10, atol=1e-15)
    assert np.linalg.norm(clipped_mean(rows, clip)) <= clip * (1 + 1e-12)


def test_a_client_sends_the_momentum_of_its_noisy_gradients():
    one, beta = client(momentum=0.8), 0.8
    noises = []
    for round_number in (1, 2):
        still = client()  # the same noise on a gradient of zero, without momentum
        still = client(momentum=0.0)
        noises.append(still.update_from_mean(np.zeros(D), round_number=round_number).vector)
    first = one.update(gradients(1), round_number=1).vector
    second = one.update(gradients(2), round_number=2).vector
    np.testing.assert_allclose(first, (1 - beta) * (clipped_mean(gradients(1), 1.0) + noises[0]), rtol=1e-12)
    np.testing.assert_allclose(
        second, beta * first + (1 - beta) * (clipped_mean(gradients(2), 1.0) + noises[1]), rtol=1e-12
    )


def test_the_noise_of_all_clients_has_the_deviations_that_were_asked_for():
    noise = FederatedNoise(n_clients=N, sigma_ind=0.2, sigma_cor=0.4, steps=1)
    sent = np.stack(
        [
            client(number, noise, momentum=0.0).update_from_mean(np.zeros(50_000), round_number=1).vector
            for number in range(N)
        ]
    )
    assert sent.std(axis=1) == pytest.approx(np.full(N, np.sqrt(0.2**2 + 4 * 0.4**2)), rel=0.02)
    assert sent.mean(axis=0).std() == pytest.approx(noise.averaged_std(), rel=0.02)


def test_without_a_seed_the_noise_comes_from_the_system_and_never_repeats():
    sent = [client(random_state=None).update_from_mean(np.zeros(D), round_number=1).vector for _ in range(2)]
    assert not np.isin(sent[0], sent[1]).any()


def test_momentum_may_depend_on_the_round():
    same = client(momentum=lambda number: 0.9).update(gradients(), round_number=1)
    np.testing.assert_array_equal(same.vector, client(momentum=0.9).update(gradients(), round_number=1).vector)


def test_a_client_goes_on_where_its_state_was():
    whole, first = client(), client()
    whole.update(gradients(1), round_number=1)
    first.update(gradients(1), round_number=1)
    second = client(state=first.state)
    expected = whole.update(gradients(2), round_number=2).vector
    np.testing.assert_array_equal(second.update(gradients(2), round_number=2).vector, expected)
    assert second.state.answered == 2


@pytest.mark.parametrize("again", [1, 2])
def test_a_round_is_answered_once_and_earlier_ones_never(again):
    one = client()
    one.update(gradients(), round_number=2)
    with pytest.raises(InputError, match=rf"round {again} comes after round 2"):
        one.update(gradients(), round_number=again)
    assert one.state.answered == 1


def test_no_more_rounds_are_answered_than_the_noise_was_made_for():
    one = client()
    for round_number in range(1, 5):
        one.update(gradients(), round_number=round_number)
    with pytest.raises(InputError, match="all 4 rounds are used up"):
        one.update(gradients(), round_number=5)


def test_a_round_of_too_few_or_unknown_clients_is_not_answered():
    for participants, message in [
        (range(4), "4 clients take part"),
        (range(1, 6), "not among"),
        (range(6), "not among"),
    ]:
        with pytest.raises(InputError, match=message):
            client().update(gradients(), round_number=1, participants=participants)
    fewer = FederatedNoise(n_clients=4, byzantine=1, sigma_ind=0.2, sigma_cor=0.4, batch_size=3, steps=4)
    client(0, fewer).update(gradients(), round_number=1, participants=range(4))


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        (np.full(D, 1.0), "each example is clipped"),
        (np.full(D, np.nan), "finite"),
        (np.zeros((2, D)), "vector"),
    ],
)
def test_a_mean_that_cannot_be_of_clipped_gradients_is_refused(mean, message):
    with pytest.raises(InputError, match=message):
        client().update_from_mean(mean, round_number=1)


def test_batches_of_another_size_and_broken_gradients_are_refused():
    with pytest.raises(InputError, match="2 gradients"):
        client().update(gradients(rows=2), round_number=1)
    with pytest.raises(InputError, match="finite"):
        client().update(np.full((3, D), np.inf), round_number=1)
    with pytest.raises(InputError, match="one row per example"):
        client().update(np.zeros(3), round_number=1)
    poisson = FederatedNoise(n_clients=N, sigma_ind=0.2, batch_size=3, steps=4, sampling="poisson", sampling_rate=0.5)
    assert client(0, poisson).update(np.zeros((0, D)), round_number=1).vector.shape == (D,)


def test_clients_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="shares noise with 2 others"):
        CafCorClient(0, PairwiseNoise(0, {1: bytes(32), 2: bytes(32)}, 0.4), NOISE)
    with pytest.raises(InputError, match="momentum"):
        client(momentum=1.0)
    with pytest.raises(InputError, match="client"):
        CafCorClient(-1, PairwiseNoise(0, SEEDS[0], 0.4), NOISE)


# --- the server -------------------------------------------------------------------------------------------------------


def opened(**options):
    server = CafCorServer(**({"clients": N, "dimension": D, "byzantine": 1} | options))
    return server, server.open_round()


def test_the_server_aggregates_what_came_and_says_who_was_missing():
    server, round_number = opened()
    rows = gradients(3, N)
    for number in (0, 2, 4):
        server.receive(Update(number, round_number, rows[number]))
    aggregate = server.close_round()
    np.testing.assert_allclose(aggregate.vector, caf(rows[[0, 2, 4]], 1).mean, rtol=1e-12)
    assert (aggregate.present, aggregate.absent, aggregate.round_number) == ((0, 2, 4), (1, 3), 1)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Update(0, 0, np.zeros(D)), "belongs to round 0"),
        (Update(0, 2, np.zeros(D)), "belongs to round 2"),
        (Update(5, 1, np.zeros(D)), "takes no part"),
        (Update(1, 1, np.zeros(D)), "has sent an update"),
        (Update(0, 1, np.zeros(D + 1)), "shape"),
        (Update(0, 1, np.zeros((D, 1))), "shape"),
        (Update(0, 1, np.zeros(D, dtype=complex)), "type"),
        (Update(0, 1, np.zeros(D, dtype=int)), "type"),
        (Update(0, 1, np.array(["1"] * D)), "type"),
        (Update(0, 1, np.full(D, np.nan)), "missing or huge"),
        (Update(0, 1, np.full(D, -np.inf)), "missing or huge"),
        (Update(0, 1, np.full(D, 1e200)), "missing or huge"),
        (Update(0, 1, np.full(D, np.inf, dtype=np.float16)), "missing or huge"),
        (Update(0, 1, [[1.0], [1.0, 2.0]]), "no array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_replayed_and_malformed_updates_are_rejected(update, message):
    server, _ = opened()
    server.receive(Update(1, 1, np.ones(D)))
    with pytest.raises(Rejected, match=message):
        server.receive(update)
    for number in (2, 3):
        server.receive(Update(number, 1, np.ones(D)))
    np.testing.assert_allclose(server.close_round().vector, 1.0)


def test_an_update_of_an_earlier_round_is_a_replay():
    server, first = opened()
    old = Update(0, first, np.ones(D))
    server.receive(old)
    assert server.open_round() == 2
    with pytest.raises(Rejected, match="belongs to round 1"):
        server.receive(old)


def test_outside_a_round_nothing_is_taken():
    server = CafCorServer(N, dimension=D, byzantine=1)
    with pytest.raises(Rejected, match="no round is open"):
        server.receive(Update(0, 0, np.zeros(D)))
    with pytest.raises(InputError, match="no round is open"):
        server.close_round()


def test_too_few_updates_end_the_round_without_a_result():
    server, round_number = opened()
    for number in range(2):
        server.receive(Update(number, round_number, np.ones(D)))
    with pytest.raises(InputError, match="2 sound updates of 5"):
        server.close_round()
    assert server.open_round() == 2


def test_what_a_client_changes_after_it_was_received_changes_nothing():
    server, round_number = opened()
    vectors = [np.ones(D) for _ in range(N)]
    for number, vector in enumerate(vectors):
        server.receive(Update(number, round_number, vector))
    vectors[0][:] = 100.0
    np.testing.assert_allclose(server.close_round().vector, 1.0)


def test_a_rule_of_one_s_own_gets_updates_and_the_number_of_liars():
    server, round_number = opened(aggregator=lambda rows, f: rows[f])
    for number in range(N):
        server.receive(Update(number, round_number, np.full(D, float(number))))
    np.testing.assert_array_equal(server.close_round().vector, np.ones(D))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"byzantine": 3}, "fewer than half"),
        ({"byzantine": -1}, "byzantine"),
        ({"dimension": 0}, "dimension"),
        ({"clients": 0}, "clients"),
        ({"aggregator": "vote"}, "aggregator is 'vote'"),
    ],
)
def test_a_server_that_makes_no_sense_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        CafCorServer(**({"clients": N, "dimension": D, "byzantine": 1} | changed))


@pytest.mark.parametrize("participants", [[0, 1], [0, 1, 9]])
def test_a_round_needs_known_clients_and_more_than_twice_the_liars(participants):
    with pytest.raises(InputError, match="participants"):
        CafCorServer(N, dimension=D, byzantine=1).open_round(participants)
