"""Gaussian noise on what will be published: by OpenDP, safe against attacks on rounding, or in float64."""

import math
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, Literal

import numpy as np

from aboveboard.core import Assumption, InputError, MissingExtra, require
from aboveboard.privacy._noise import NoiseSource, noise_source
from aboveboard.privacy._rdp import gaussian_sigma
from aboveboard.privacy.objective_perturbation._projections import Floats

__all__ = ["Gaussian", "NoiseKind", "RandomState", "calibrated_sigma"]

NoiseKind = Literal["auto", "float64", "opendp"]
RandomState = int | np.random.Generator | None

_DELTA_SET_ASIDE: Final = 1e-6  # of delta: for the difference between noise on a very fine grid and continuous noise
_SENSITIVITY_ADDED: Final = 1e-9  # relative: for rounding values to that grid
_GRID_BITS: Final = 50  # steps of the grid in a standard deviation, as a power of two


def calibrated_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the standard deviation of the noise, with what is set aside for a grid."""
    return gaussian_sigma(epsilon, delta * (1 - _DELTA_SET_ASIDE), sensitivity=sensitivity * (1 + _SENSITIVITY_ADDED))


@dataclass(frozen=True)
class Gaussian:
    """A way to add Gaussian noise.

    Parameters
    ----------
    kind : {"float64", "opendp"}
    source : NoiseSource
        Of the float64 draws.
    opendp : str
        Its version, where it is used.
    """

    kind: Literal["float64", "opendp"]
    source: NoiseSource
    opendp: str = ""

    @classmethod
    def choose(cls, noise: NoiseKind, random_state: RandomState) -> "Gaussian":
        """Return the safest way that the options allow.

        Raises
        ------
        InputError
            For an unknown kind of noise, or a seed for OpenDP.
        MissingExtra
            When OpenDP is asked for and not installed.
        """
        if noise not in ("auto", "float64", "opendp"):
            raise InputError(f"noise is {noise!r}", expected="'auto', 'float64' or 'opendp'")
        seeded = random_state is not None
        if noise == "opendp" and seeded:
            raise InputError("OpenDP takes no seed", remedy="Leave out random_state, or pass noise='float64'")
        source = noise_source(random_state)
        if noise == "float64" or seeded:
            return cls("float64", source)
        try:
            return cls("opendp", source, _opendp_version())
        except MissingExtra:
            if noise == "opendp":
                raise
            return cls("float64", source)

    def add(self, values: Floats, sigma: float, sensitivity: float) -> Floats:
        """Return the values with independent noise of standard deviation `sigma` on each."""
        if self.kind == "float64":
            return values + self.source.normal(values.shape, sigma)
        mechanism = _opendp_gaussian(values.size, sigma)
        rho, proved = float(mechanism.map(sensitivity)), (sensitivity * (1 + _SENSITIVITY_ADDED) / sigma) ** 2 / 2
        if not rho <= proved:
            raise RuntimeError(f"OpenDP proves {rho} zero-concentrated privacy; {proved} was expected")
        return np.asarray(mechanism(values.ravel().tolist()), dtype=np.float64).reshape(values.shape)

    @property
    def numerics(self) -> dict[str, str]:
        """What a certificate says of the noise."""
        if self.kind == "float64":
            return {"precision": "float64", "noise_source": self.source.name}
        return {
            "precision": f"exact discrete Gaussian of OpenDP {self.opendp}, on a grid of 2^-{_GRID_BITS} sigma",
            "noise_source": "the operating system's cryptographic generator, by OpenDP",
        }

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        if self.kind == "opendp":
            return (
                Assumption(
                    "OpenDP proves as much zero-concentrated privacy for its noise as continuous noise has.",
                    basis="checked",
                    test="OpenDP's privacy map at the sensitivity, against sensitivity^2 / (2 sigma^2)",
                    passed=True,
                ),
                Assumption(
                    "Noise on so fine a grid differs from continuous noise by less than the millionth of delta that "
                    "was set aside for it."
                ),
            )
        if self.source.cryptographic:
            return ()
        return (Assumption("Nobody who sees the release knows the seed of the noise, or can find it by trying."),)

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        if self.kind == "opendp":
            return ()
        return (
            "What the last bits of float64 noise tell; the extra 'private' brings noise that is safe against that.",
        )


def _opendp_version() -> str:
    require("opendp", extra="private", feature="Noise that is safe against attacks on rounding")
    return version("opendp")


def _opendp_gaussian(size: int, sigma: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=sigma, k=math.floor(math.log2(sigma)) - _GRID_BITS)
