"""The noise of pairs cancels to the last bit, has the covariance that the accounting counts on, and needs both keys."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core import InputError
from aboveboard.privacy import PairKeys, PairwiseNoise, check_seed_tags, keys_fingerprint, seed_tags, simulated_seeds
from aboveboard.privacy.cafcor._seeds import JointNoise

N, SIZE, SIGMA = 6, 4000, 0.3


def pairs(n=N, sigma=SIGMA, seed=0):
    seeds = simulated_seeds(n, seed)
    return [PairwiseNoise(client, seeds[client], sigma) for client in range(n)]


@given(st.integers(2, 12), st.floats(1e-9, 1e9), st.integers(1, 1000), st.randoms())
def test_the_sum_over_clients_is_zero_to_the_last_bit_in_any_order(n, sigma, round_number, shuffler):
    drawn = [noise.draw(round_number, 20, range(n)) for noise in pairs(n, sigma)]
    shuffler.shuffle(drawn)
    assert np.array_equal(sum(drawn), np.zeros(20))
    assert all(np.abs(one).max() > 0 for one in drawn)


def test_without_one_client_what_it_shares_with_the_others_is_left():
    noise = pairs()
    left = sum(noise[client].draw(3, 50, range(N)) for client in range(N) if client != 2)
    assert np.array_equal(left, -noise[2].draw(3, 50, range(N)))


def test_clients_that_take_no_part_share_no_noise():
    noise, present = pairs(), [0, 2, 5]
    assert np.array_equal(sum(noise[client].draw(1, 50, present) for client in present), np.zeros(50))


def joint(seed=0):
    cache = {}
    return [JointNoise(client, N, SIGMA, cache, seed) for client in range(N)]


@pytest.mark.parametrize("make", [pairs, joint])
def test_the_covariance_is_that_of_the_sums_over_pairs(make):
    drawn = np.stack([noise.draw(1, 40_000, range(N)) for noise in make()])
    expected = SIGMA**2 * (N * np.eye(N) - 1)
    # the standard error of a covariance of normals is at most sqrt(2 / 40,000) times the product of deviations
    np.testing.assert_allclose(np.cov(drawn), expected, rtol=0, atol=5 * np.sqrt(2 / 40_000) * N * SIGMA**2)
    np.testing.assert_allclose(drawn.sum(axis=0), 0, atol=1e-12)
    assert stats.kstest(drawn[0], "norm", args=(0, SIGMA * np.sqrt(N - 1))).pvalue > 0.001


@pytest.mark.parametrize("make", [pairs, joint])
def test_each_round_has_noise_of_its_own_that_can_be_drawn_again(make):
    noise = make()
    first = noise[1].draw(1, SIZE, range(N)).copy()
    assert abs(np.corrcoef(first, noise[1].draw(2, SIZE, range(N)))[0, 1]) < 5 / np.sqrt(SIZE)
    assert np.array_equal(noise[1].draw(1, SIZE, range(N)), first)


def test_another_process_draws_the_same_noise():
    code = (
        "from aboveboard.privacy import PairwiseNoise, simulated_seeds; "
        "print(PairwiseNoise(1, simulated_seeds(3, 0)[1], 0.3).draw(7, 5, range(3)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = PairwiseNoise(1, simulated_seeds(3, 0)[1], 0.3).draw(7, 5, range(3)).tolist()
    assert done.stdout.strip() == str(here)


def test_two_clients_with_keys_share_a_seed_that_no_third_one_has():
    pytest.importorskip("cryptography")
    keys = [PairKeys() for _ in range(4)]
    public = {client: own.public for client, own in enumerate(keys)}
    seeds = [own.seeds(client, public) for client, own in enumerate(keys)]
    for i in range(4):
        for j in range(i):
            assert seeds[i][j] == seeds[j][i]
    assert len({seed for own in seeds for seed in own.values()}) == 6


def test_a_server_that_puts_its_own_key_in_is_found_out_by_the_fingerprint():
    pytest.importorskip("cryptography")
    keys, liar = [PairKeys() for _ in range(3)], PairKeys()
    public = {client: own.public for client, own in enumerate(keys)}
    told_to_0, told_to_1 = public | {1: liar.public}, public | {0: liar.public}
    assert len({keys_fingerprint(told) for told in (public, told_to_0, told_to_1)}) == 3
    seeds = keys[0].seeds(0, told_to_0), keys[1].seeds(1, told_to_1)
    assert seeds[0][1] != seeds[1][0]
    with pytest.raises(InputError, match="client 0 shares no seed with the clients 1"):
        check_seed_tags(0, {1: seeds[0][1]}, {1: seed_tags(1, seeds[1])[0]})


def test_tags_of_common_seeds_are_accepted_and_cannot_be_sent_back():
    seeds = simulated_seeds(3, 0)
    received = {other: seed_tags(other, seeds[other])[0] for other in (1, 2)}
    check_seed_tags(0, seeds[0], received)
    with pytest.raises(InputError, match="clients 1, 2"):
        check_seed_tags(0, seeds[0], seed_tags(0, seeds[0]))  # its own tags
    with pytest.raises(InputError, match="clients 2"):
        check_seed_tags(0, seeds[0], {1: received[1]})


def test_keys_that_are_wrong_are_refused():
    pytest.importorskip("cryptography")
    keys = [PairKeys() for _ in range(3)]
    public = {client: own.public for client, own in enumerate(keys)}
    with pytest.raises(InputError, match="not its own"):
        keys[0].seeds(1, public)
    with pytest.raises(InputError, match="same public key"):
        keys[0].seeds(0, public | {2: public[1]})
    for bad in (b"short", bytes(32)):
        with pytest.raises(InputError, match="client 2 is none"):
            keys[0].seeds(0, public | {2: bad})


@pytest.mark.parametrize(
    ("client", "seeds", "sigma", "message"),
    [
        (0, {0: bytes(32)}, 1.0, "itself"),
        (0, {1: b"short"}, 1.0, "32 bytes"),
        (0, {1: bytes(32)}, -1.0, "sigma_cor"),
        (0, {1: bytes(32)}, float("nan"), "sigma_cor"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(client, seeds, sigma, message):
    with pytest.raises(InputError, match=message):
        PairwiseNoise(client, seeds, sigma)


def test_without_noise_between_pairs_there_is_none():
    assert not PairwiseNoise(0, {1: bytes(32)}, 0.0).draw(1, 5, [0, 1]).any()
    assert not JointNoise(0, 2, 0.0, {}, 0).draw(1, 5, [0, 1]).any()
