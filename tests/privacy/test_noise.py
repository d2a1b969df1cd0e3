"""The noise against SciPy's distributions, and where it comes from."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core import InputError
from aboveboard.privacy import _noise
from aboveboard.privacy._noise import CRYPTOGRAPHIC, keyed_noise_source, noise_source

DRAWS = 20_000
DISTRIBUTIONS = {"uniform": stats.uniform(), "normal": stats.norm(scale=3), "laplace": stats.laplace(scale=3)}


def drawn(source, kind):
    return source.uniform(DRAWS) if kind == "uniform" else getattr(source, kind)(DRAWS, scale=3)


@pytest.mark.parametrize("random_state", [None, 7])
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_draws_follow_their_distribution(kind, random_state, monkeypatch):
    if random_state is None:  # the same bytes each time, so that the test cannot fail by chance
        monkeypatch.setattr(_noise.os, "urandom", np.random.default_rng(3).bytes)
    draws = drawn(noise_source(random_state), kind)
    assert stats.kstest(draws, DISTRIBUTIONS[kind].cdf).pvalue > 0.01
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 4 / np.sqrt(DRAWS)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_a_seed_repeats_the_noise_and_the_system_never_does(kind):
    assert np.array_equal(drawn(noise_source(1), kind), drawn(noise_source(1), kind))
    assert not np.isin(drawn(noise_source(1), kind), drawn(noise_source(2), kind)).any()
    assert not np.isin(drawn(noise_source(None), kind), drawn(noise_source(None), kind)).any()


def test_the_source_says_whether_it_can_be_predicted():
    assert (noise_source(None).name, noise_source(None).cryptographic) == (CRYPTOGRAPHIC, True)
    seeded = noise_source(np.random.Generator(np.random.Philox(1)))
    assert (seeded.name, seeded.cryptographic) == ("Philox, which can be predicted (a seed was given)", False)


@given(st.binary(min_size=8, max_size=8), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_no_bytes_give_an_infinite_draw(word, columns):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise.os, "urandom", lambda size: word * (size // 8))
        source = noise_source(None)
        uniform = source.uniform((2, columns))
        assert uniform.shape == (2, columns)
        assert ((uniform > 0) & (uniform < 1)).all()
        assert np.isfinite(source.normal(3)).all()
        assert np.isfinite(source.laplace(3)).all()


def test_what_is_not_noise_comes_from_the_same_source():
    assert noise_source(5).generator().random() == np.random.default_rng(5).random()
    assert noise_source(None).generator().random() != noise_source(None).generator().random()


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_whoever_has_the_key_draws_the_noise_again_and_nobody_else(kind):
    key, other = bytes(range(32)), bytes(range(1, 33))
    draws = drawn(keyed_noise_source(key, b"round 1"), kind)
    assert np.array_equal(draws, drawn(keyed_noise_source(key, b"round 1"), kind))
    assert stats.kstest(draws, DISTRIBUTIONS[kind].cdf).pvalue > 0.01
    twice = keyed_noise_source(key, b"round 1")
    drawn(twice, kind)
    sources = [twice, keyed_noise_source(key, b"2"), keyed_noise_source(other, b"round 1")]
    assert not any(np.isin(draws, drawn(source, kind)).any() for source in sources)


def test_keyed_noise_is_shake_256_of_key_label_and_draw():
    """Written out, so that another implementation can draw the same."""
    stream = hashlib.shake_256(bytes(32) + (5).to_bytes(8, "big") + b"label" + (0).to_bytes(8, "big")).digest(16)
    words = [int.from_bytes(stream[start : start + 8], "little") >> 12 for start in (0, 8)]
    found = keyed_noise_source(bytes(32), b"label").uniform(2)
    assert found.tolist() == [(word + 0.5) / 2**52 for word in words]
    source = keyed_noise_source(bytes(32), b"label")
    assert source.generator().random() == keyed_noise_source(bytes(32), b"label").generator().random()
    assert source.cryptographic


def test_a_key_of_another_length_is_refused():
    with pytest.raises(InputError, match="5 bytes"):
        keyed_noise_source(b"short", b"")
