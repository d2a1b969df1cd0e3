"""Where the noise of private mechanisms comes from: the operating system's cryptographic generator, or a seed.

Whoever can predict the noise can take it off again, so that a release is only as private as its generator. NumPy's
generators are not cryptographic: their state can be found from their output. They serve tests and reproductions.
"""

import hashlib
import math
import os
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from aboveboard.core import InputError

__all__ = ["CRYPTOGRAPHIC", "NoiseSource", "keyed_noise_source", "noise_source"]

CRYPTOGRAPHIC: Final = "the operating system's cryptographic generator"

Floats = NDArray[np.float64]
Shape = int | tuple[int, ...]


class NoiseSource(Protocol):
    """Draws of noise, and where they come from.

    The draws are float64. Their last bits can tell of the value to which they were added (Mironov, "On Significance of
    the Least Significant Bits for Differential Privacy", CCS 2012), which certificates name as not covered.
    """

    @property
    def name(self) -> str:
        """Where the noise comes from, as a certificate says it."""

    @property
    def cryptographic(self) -> bool:
        """Whether the noise cannot be predicted."""

    def uniform(self, size: Shape) -> Floats:
        """Draw evenly from the open interval (0, 1)."""

    def normal(self, size: Shape, scale: float = 1.0) -> Floats:
        """Draw from the normal distribution of mean zero and the given standard deviation."""

    def laplace(self, size: Shape, scale: float = 1.0) -> Floats:
        """Draw from the Laplace distribution of mean zero and the given scale (its standard deviation over sqrt(2))."""

    def generator(self) -> np.random.Generator:
        """Return a generator for what is not noise, such as the order of rows, started from this source."""


def noise_source(random_state: int | np.random.Generator | None) -> NoiseSource:
    """Return the cryptographic source where no seed is given, else one that can be repeated.

    Parameters
    ----------
    random_state : int, numpy.random.Generator or None
        None for releases; a seed makes the noise predictable, and the certificate says so.

    Notes
    -----
    Cost per draw: about 25 ns from the operating system, 10 ns from a seed.
    """
    return _OperatingSystem() if random_state is None else _Seeded(random_state)


def keyed_noise_source(key: bytes, label: bytes) -> NoiseSource:
    """Return a source that whoever holds the key can draw again, and nobody else can predict.

    Parameters
    ----------
    key : bytes of length 32
        Secret, and random.
    label : bytes
        Sources with other labels are independent of this one.

    Notes
    -----
    SHAKE-256 of the key, the label and the number of the draw (FIPS 202); about 100 ns for each number.
    """
    if len(key) != 32:
        raise InputError(f"the key has {len(key)} bytes", expected="32 random bytes")
    return _Keyed(key, label)


class _FromUniform:
    """The other distributions, by inversion."""

    def uniform(self, size: Shape) -> Floats:
        raise NotImplementedError

    def normal(self, size: Shape, scale: float = 1.0) -> Floats:
        draws: Floats = scale * ndtri(self.uniform(size))
        return draws

    def laplace(self, size: Shape, scale: float = 1.0) -> Floats:
        centred = self.uniform(size) - 0.5
        draws: Floats = -scale * np.sign(centred) * np.log1p(-2 * np.abs(centred))
        return draws


class _OperatingSystem(_FromUniform):
    name = CRYPTOGRAPHIC
    cryptographic = True

    def uniform(self, size: Shape) -> Floats:
        return _from_bytes(os.urandom(8 * _count(size)), size)

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(int.from_bytes(os.urandom(32), "little"))


class _Seeded(_FromUniform):
    cryptographic = False

    def __init__(self, random_state: int | np.random.Generator) -> None:
        self._generator = np.random.default_rng(random_state)
        kind = type(self._generator.bit_generator).__name__
        self.name = f"{kind}, which can be predicted (a seed was given)"

    def uniform(self, size: Shape) -> Floats:
        return (np.floor(self._generator.random(size) * 2.0**52) + 0.5) / 2.0**52

    def generator(self) -> np.random.Generator:
        return self._generator


class _Keyed(_FromUniform):
    name = "SHAKE-256 of a secret key"
    cryptographic = True

    def __init__(self, key: bytes, label: bytes) -> None:
        self._state = hashlib.shake_256(key + len(label).to_bytes(8, "big") + label)
        self._draws = 0

    def uniform(self, size: Shape) -> Floats:
        return _from_bytes(self._next(8 * _count(size)), size)

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(int.from_bytes(self._next(32), "little"))

    def _next(self, length: int) -> bytes:
        state = self._state.copy()
        state.update(self._draws.to_bytes(8, "big"))
        self._draws += 1
        return state.digest(length)


def _count(size: Shape) -> int:
    return math.prod(size) if isinstance(size, tuple) else size


def _from_bytes(drawn: bytes, size: Shape) -> Floats:
    """Return the middles of 2^52 intervals of the open interval (0, 1), the same on every machine."""
    words = np.frombuffer(drawn, dtype="<u8").astype(np.uint64)
    return (((words >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52).reshape(size)
