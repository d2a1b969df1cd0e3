"""Secrets that each pair of clients shares, and the noise made from them, which cancels in the sum over clients."""

import hashlib
import hmac
import math
import zlib
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError, require
from aboveboard.privacy._noise import NoiseSource, keyed_noise_source, noise_source

__all__ = [
    "JointNoise",
    "PairKeys",
    "PairwiseNoise",
    "SharedNoise",
    "check_seed_tags",
    "keys_fingerprint",
    "seed_tags",
    "simulated_seeds",
    "source_of",
]

Floats = NDArray[np.float64]

_SEED_BYTES: Final = 32
_BITS: Final = 32
"""Of the noise below its standard deviation; 2^16 such numbers are summed without rounding."""


class PairKeys:
    """One client's keys for one training: from them and the public keys of the others come the shared seeds.

    Make new ones for each training, and forget them after it: noise that is used twice can be taken off.

    Attributes
    ----------
    public : bytes of length 32
        To be sent to all other clients.

    Raises
    ------
    aboveboard.core.MissingExtra
        Without the package cryptography (extra ``federated``).

    Notes
    -----
    X25519, then HKDF with SHA-256 over both public keys. A server that passes the keys on can put its own in their
    place, and then knows all noise: compare `keys_fingerprint` in a way that the server does not control.

    Examples
    --------
    >>> from aboveboard.privacy import PairKeys
    >>> keys = [PairKeys() for _ in range(3)]
    >>> public = {client: own.public for client, own in enumerate(keys)}
    >>> keys[0].seeds(0, public)[2] == keys[2].seeds(2, public)[0]
    True
    """

    def __init__(self) -> None:
        x25519: Any = require("cryptography.hazmat.primitives.asymmetric.x25519", extra="federated", feature="PairKeys")
        self._private = x25519.X25519PrivateKey.generate()
        self._public_key = x25519.X25519PublicKey.from_public_bytes
        self.public: bytes = self._private.public_key().public_bytes_raw()

    def seeds(self, client: int, public: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return the seeds that this client shares with each of the others.

        Parameters
        ----------
        client : int
            Which of the clients this one is.
        public : mapping of int to bytes
            The public key of each client, with its own.

        Raises
        ------
        InputError
            When the own key is another one there, two clients have the same key, or a key is none.
        """
        if public.get(client) != self.public:
            raise InputError(
                f"the public key of client {client} is not its own",
                expected="the keys as they were sent",
                remedy="Do not train: somebody may have put other keys in their place",
            )
        if len(set(public.values())) < len(public):
            raise InputError("two clients have the same public key", expected="one key for each client")
        return {other: self._seed(other, key) for other, key in sorted(public.items()) if other != client}

    def _seed(self, other: int, key: bytes) -> bytes:
        hkdf: Any = require("cryptography.hazmat.primitives.kdf.hkdf", extra="federated", feature="PairKeys")
        hashes: Any = require("cryptography.hazmat.primitives.hashes", extra="federated", feature="PairKeys")
        try:
            secret = self._private.exchange(self._public_key(key))
        except (TypeError, ValueError) as error:
            raise InputError(f"the public key of client {other} is none", expected="32 bytes of X25519") from error
        info = b"aboveboard CafCor seed" + min(self.public, key) + max(self.public, key)
        derived: bytes = hkdf.HKDF(hashes.SHA256(), _SEED_BYTES, salt=None, info=info).derive(secret)
        return derived


def keys_fingerprint(public: Mapping[int, bytes]) -> str:
    """Return a short text that differs wherever two clients were given different public keys.

    Parameters
    ----------
    public : mapping of int to bytes
        The public key of each client.

    Returns
    -------
    str
        16 groups of four hexadecimal digits, to be compared by people or through a channel that the server does not
        control.
    """
    digest = hashlib.sha256()
    for client, key in sorted(public.items()):
        digest.update(client.to_bytes(8, "big") + len(key).to_bytes(8, "big") + key)
    text = digest.hexdigest()
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


def seed_tags(client: int, seeds: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return for each other client a tag that shows that this one has the shared seed, and tells nothing about it.

    Parameters
    ----------
    client : int
        Who makes the tags.
    seeds : mapping of int to bytes
        Its seeds.
    """
    return {other: _tag(seed, client) for other, seed in seeds.items()}


def check_seed_tags(client: int, seeds: Mapping[int, bytes], received: Mapping[int, bytes]) -> None:
    """Refuse to go on where another client has another seed: their noise would not cancel.

    Parameters
    ----------
    client : int
        Who checks.
    seeds : mapping of int to bytes
        Its seeds.
    received : mapping of int to bytes
        From each other client, the tag that it made for this one.

    Raises
    ------
    InputError
        Naming the clients whose tags are missing or wrong.
    """
    wrong = [
        other for other, seed in seeds.items() if not hmac.compare_digest(received.get(other, b""), _tag(seed, other))
    ]
    if wrong:
        raise InputError(
            f"client {client} shares no seed with the clients {', '.join(map(str, wrong))}",
            expected="the tag of the common seed from each of them",
            remedy="Exchange keys again, and compare their fingerprints",
        )


def _tag(seed: bytes, client: int) -> bytes:
    return hmac.digest(seed, b"aboveboard CafCor tag of client %d" % client, "sha256")


def simulated_seeds(n_clients: int, random_state: int | np.random.Generator | None = None) -> list[dict[int, bytes]]:
    """Return the seeds of all clients, made in one place: for simulations, never for training with real people.

    Parameters
    ----------
    n_clients : int
    random_state : int, Generator or None
        None takes them from the operating system.

    Returns
    -------
    list of dict
        For each client, the seed that it shares with each of the others.
    """
    generator = noise_source(random_state).generator()
    seeds: list[dict[int, bytes]] = [{} for _ in range(n_clients)]
    for i in range(n_clients):
        for j in range(i + 1, n_clients):
            seeds[i][j] = seeds[j][i] = generator.bytes(_SEED_BYTES)
    return seeds


class SharedNoise(Protocol):
    """Noise of one client that cancels in the sum over the clients that take part in a round."""

    @property
    def others(self) -> Collection[int]:
        """The clients that it is shared with."""

    def draw(self, round_number: int, size: int, participants: Collection[int]) -> Floats:
        """Return the noise of one round; the same arguments give the same noise."""


class PairwiseNoise:
    """The noise that one client shares with the others: for each pair, one adds what the other takes off.

    Parameters
    ----------
    client : int
    seeds : mapping of int to bytes
        The 32 bytes that it shares with each of the others, from `PairKeys`.
    sigma_cor : float
        Standard deviation of the noise of one pair, per coordinate.

    Notes
    -----
    Each number is a multiple of 2^-32 of the power of two below `sigma_cor`, so that sums are exact, and that of all
    clients is 0 to the last bit, in whatever order it is computed. Cost: O(n d) for n clients, about 0.15 microseconds
    for each number.

    Examples
    --------
    >>> from aboveboard.privacy import PairwiseNoise, simulated_seeds
    >>> seeds = simulated_seeds(5, random_state=0)
    >>> noise = [PairwiseNoise(client, seeds[client], 0.05) for client in range(5)]
    >>> float(abs(sum(one.draw(1, 1000, range(5)) for one in noise)).max())
    0.0
    """

    def __init__(self, client: int, seeds: Mapping[int, bytes], sigma_cor: float) -> None:
        if client in seeds:
            raise InputError(f"client {client} has a seed with itself", expected="seeds with others")
        if any(len(seed) != _SEED_BYTES for seed in seeds.values()):
            raise InputError("some seeds are not 32 bytes long", expected="what PairKeys.seeds returns")
        if not (math.isfinite(sigma_cor) and sigma_cor >= 0):
            raise InputError(f"sigma_cor is {sigma_cor!r}", expected="a finite number of at least 0")
        self._client, self._seeds, self._sigma = client, dict(seeds), float(sigma_cor)

    @property
    def others(self) -> Collection[int]:
        return self._seeds.keys()

    def draw(self, round_number: int, size: int, participants: Collection[int]) -> Floats:
        """Return the sum over the other participants.

        Parameters
        ----------
        round_number : int
        size : int
            Number of coordinates.
        participants : collection of int
            The clients of this round; those without a seed are refused.
        """
        total = np.zeros(size)
        if self._sigma == 0.0:
            return total
        unit = 2.0 ** (math.floor(math.log2(self._sigma)) - _BITS)
        for other in participants:
            if other != self._client:
                drawn = keyed_noise_source(self._seeds[other], b"round %d" % round_number).normal(
                    size, self._sigma / unit
                )
                total += np.rint(drawn) if self._client < other else -np.rint(drawn)
        return np.asarray(total * unit)


class JointNoise:
    """The noise of all pairs at once, with the distribution that `PairwiseNoise` has, for simulations of many clients.

    Parameters
    ----------
    client : int
    n_clients : int
    sigma_cor : float
        Standard deviation of the noise of one pair, per coordinate.
    cache : dict
        One for all clients: the draws of the current round.
    random_state : int or None

    Notes
    -----
    With Z of n independent normal rows, sigma sqrt(n) (Z - mean of Z) has the covariance of the sums over pairs: n - 1
    times sigma^2 on the diagonal, and -sigma^2 off it. Cost: O(n d) for all clients together, instead of O(n^2 d).
    """

    def __init__(
        self, client: int, n_clients: int, sigma_cor: float, cache: dict[Any, Floats], random_state: int | None
    ) -> None:
        self._client, self._n, self._sigma = client, n_clients, sigma_cor
        self._cache, self._random_state = cache, random_state

    @property
    def others(self) -> Collection[int]:
        return [other for other in range(self._n) if other != self._client]

    def draw(self, round_number: int, size: int, participants: Collection[int]) -> Floats:
        if self._sigma == 0.0:
            return np.zeros(size)
        order = sorted(participants)
        asked = (round_number, size, *order)
        if asked not in self._cache:
            self._cache.clear()
            self._cache[asked] = self._drawn(round_number, (len(order), size))
        own: Floats = self._cache[asked][order.index(self._client)]
        return own

    def _drawn(self, round_number: int, shape: tuple[int, int]) -> Floats:
        source = source_of(self._random_state, "noise of pairs", round_number)
        drawn = source.normal(shape, self._sigma * math.sqrt(shape[0]))
        return np.asarray(drawn - drawn.mean(axis=0))


def source_of(random_state: int | None, purpose: str, *numbers: int) -> NoiseSource:
    """Return the operating system's source where there is no seed, else one of its own for each purpose and round."""
    if random_state is None:
        return noise_source(None)
    return noise_source(np.random.default_rng([random_state, zlib.crc32(purpose.encode()), *numbers]))
