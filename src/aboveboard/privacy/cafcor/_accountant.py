"""How much noise the clients must add, and what it proves when the server and some of the clients are against them."""

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.privacy._noise import NoiseSource
from aboveboard.privacy._rdp import (
    RDPCurve,
    gaussian_epsilon,
    gaussian_sigma,
    poisson_gaussian_rdp,
    privacy_certificate,
    smallest_noise,
    without_replacement_gaussian_rdp,
)
from aboveboard.privacy._rdp.checked import checked_delta, checked_positive, checked_whole

__all__ = ["PAPER", "FederatedNoise", "calibrate_federated_noise"]

Trust = Literal["pairs", "nobody", "server"]
Sampling = Literal["any", "fixed", "poisson"]
Unit = Literal["example", "client"]

PAPER: Final = Reference(
    title="Towards Trustworthy Federated Learning with Untrusted Participants",
    authors="Y. Allouah, R. Guerraoui, J. Stephan",
    venue="ICML 2025",
    year=2025,
    url="https://arxiv.org/abs/2505.01874",
)

_LARGEST_RATIO: Final = 100.0
_LEAST_RATIO: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedNoise:
    """The noise of a federated training, and what it proves.

    Parameters
    ----------
    n_clients : int
        How many clients take part in a round, at least.
    byzantine : int, default 0
        How many of them may send anything, fewer than half.
    colluding : int, optional
        How many may let others know of their seeds: by handing them to whoever reads the messages, the server for one,
        or by sending noise of pairs without noise of their own. Default: `byzantine`. A client that sends nothing, or
        what has nothing to do with its seeds, does not count.
    sigma_ind, sigma_cor, sigma_server : float
        Standard deviation per coordinate of each client's own noise, of the noise of each pair of clients, and of what
        a trusted server adds to the mean.
    clip : float, default 1
        Largest Euclidean norm of the gradient of one example (of one client's whole update for ``unit="client"``).
    batch_size : int, default 1
        Examples per client and round; the expected number for ``sampling="poisson"``. 1 for ``unit="client"``.
    steps : int
        Rounds that a client takes part in, at most.
    sampling : {"any", "fixed", "poisson"}, default "any"
        How batches are chosen: in any way, without credit for it; `batch_size` examples without replacement; or each
        example by itself.
    sampling_rate : float, optional
        Largest batch size over number of examples of any client; needed except for ``sampling="any"``.
    unit : {"example", "client"}, default "example"
        Whether one example is protected, or all examples of one client.
    delta : float, default 1e-5
        At which `epsilon` is stated.

    Raises
    ------
    InputError
        For numbers that make no sense; when half of the clients or more may be Byzantine; when all may collude.

    Notes
    -----
    Let m clients not collude. Per coordinate, the noise on their messages has the covariance ``(sigma_ind^2 + m
    sigma_cor^2) I - sigma_cor^2 1 1^T``, and a neighbour moves one message by D at most: 2 clip / batch_size where an
    example is replaced, clip / batch_size where one is added. The release of one round is therefore a Gaussian
    mechanism of sensitivity D and standard deviation ``effective_sigma``, with

        effective_sigma^2 = sigma_ind^2 (sigma_ind^2 + m sigma_cor^2) / (sigma_ind^2 + sigma_cor^2),

    exactly: from sigma_ind^2 (local privacy) to m sigma_ind^2 (as if a trusted server added noise) as sigma_cor grows.
    It depends on a client's own pairs alone: others that stay away, send what has nothing to do with their seeds, or
    are told of other participants can only add to it. For the inverse of the covariance is the resistance to ground of
    a network in which every pair is a conductor, and each client's own noise one to ground.

    Examples
    --------
    >>> from aboveboard.privacy import FederatedNoise
    >>> noise = FederatedNoise(n_clients=100, byzantine=5, sigma_ind=0.1, sigma_cor=0.1, batch_size=60, steps=400)
    >>> round(noise.effective_sigma, 4), round(noise.epsilon(), 2)
    (0.6928, 4.19)
    """

    n_clients: int
    steps: int
    byzantine: int = 0
    colluding: int | None = None
    sigma_ind: float = 0.0
    sigma_cor: float = 0.0
    sigma_server: float = 0.0
    clip: float = 1.0
    batch_size: int = 1
    sampling: Sampling = "any"
    sampling_rate: float | None = None
    unit: Unit = "example"
    delta: float = 1e-5

    def __post_init__(self) -> None:
        n, f = checked_whole(self.n_clients, "n_clients"), checked_whole(self.byzantine, "byzantine", 0)
        if 2 * f >= n:
            raise InputError(
                f"{f} of {n} clients may be Byzantine",
                expected="fewer than half",
                remedy="With half of the clients against it, no rule can tell who is honest",
            )
        if self.colluding is not None and checked_whole(self.colluding, "colluding", 0) >= n:
            raise InputError(f"{self.colluding} of {n} clients may collude", expected="fewer than all")
        checked_whole(self.steps, "steps")
        checked_whole(self.batch_size, "batch_size")
        checked_positive(self.clip, "clip")
        checked_delta(self.delta)
        if not all(sigma >= 0 and math.isfinite(sigma) for sigma in self._sigmas) or not any(self._sigmas):
            raise InputError(f"the noise is {self._sigmas}", expected="finite numbers of at least 0, not all of them 0")
        if self.sigma_server > 0 and (self.sigma_ind > 0 or self.sigma_cor > 0):
            raise InputError("both clients and server add noise", expected="one of the two")
        if self.sigma_cor > 0 and self.sigma_ind == 0:
            raise InputError(
                "sigma_ind is 0", expected="some noise of each client's own: that of pairs cancels in the sum"
            )
        self._check_sampling()

    def _check_sampling(self) -> None:
        for name, value, kinds in (("sampling", self.sampling, Sampling), ("unit", self.unit, Unit)):
            if value not in get_args(kinds):
                raise InputError(f"{name} is {value!r}", expected=f"one of {', '.join(map(repr, get_args(kinds)))}")
        if self.unit == "client" and (self.batch_size != 1 or self.sampling != "any"):
            raise InputError(
                f"batches of {self.batch_size} with sampling {self.sampling!r}, and clients are protected",
                expected="batch_size 1 and sampling 'any': a client's whole update is clipped",
            )
        if (self.sampling == "any") != (self.sampling_rate is None):
            raise InputError(
                f"sampling is {self.sampling!r} and sampling_rate {self.sampling_rate!r}",
                expected="a rate for 'fixed' and 'poisson', and none for 'any'",
            )
        if self.sampling_rate is not None and not 0 < self.sampling_rate <= 1:
            raise InputError(f"sampling_rate is {self.sampling_rate!r}", expected="a number in (0, 1]")

    @property
    def _sigmas(self) -> tuple[float, float, float]:
        return self.sigma_ind, self.sigma_cor, self.sigma_server

    @property
    def secretive(self) -> int:
        """How many clients keep their seeds to themselves."""
        return self.n_clients - (self.byzantine if self.colluding is None else self.colluding)

    @property
    def sensitivity(self) -> float:
        """How far a neighbour can move one client's message, before momentum."""
        return (1.0 if self.sampling == "poisson" else 2.0) * self.clip / self.batch_size

    @property
    def effective_sigma(self) -> float:
        """Standard deviation of the independent noise on one message that would protect a client as well."""
        if self.sigma_server > 0:
            return self.n_clients * self.sigma_server
        own, pair = self.sigma_ind**2, self.sigma_cor**2
        return math.sqrt(own * (own + self.secretive * pair) / (own + pair))

    def averaged_std(self, silent: int | None = None) -> float:
        """Return the standard deviation per coordinate of the noise on the mean of the messages.

        Parameters
        ----------
        silent : int, optional
            How many clients send no noise, because they lie or their message is lost; what they share with the others
            does not cancel. Default: `byzantine`.
        """
        silent = self.byzantine if silent is None else checked_whole(silent, "silent", 0)
        if self.sigma_server > 0:
            return self.sigma_server
        if silent >= self.n_clients:
            raise InputError(f"{silent} of {self.n_clients} clients are silent", expected="fewer than all")
        return math.sqrt((self.sigma_ind**2 + silent * self.sigma_cor**2) / (self.n_clients - silent))

    def rdp(self) -> RDPCurve:
        """Return the Rényi curve of all rounds, for one client that takes part in all of them."""
        multiplier = self.effective_sigma / self.sensitivity
        if self.sampling == "any":
            mechanism = f"{self.steps:,} x (Gaussian noise of multiplier {multiplier:g})"
            return RDPCurve.concentrated(self.steps / (2 * multiplier**2), adjacency="replace_one", mechanism=mechanism)
        assert self.sampling_rate is not None
        sampled = poisson_gaussian_rdp if self.sampling == "poisson" else without_replacement_gaussian_rdp
        return sampled(multiplier, self.sampling_rate).repeated(self.steps)

    def epsilon(self, delta: float | None = None) -> float:
        """Return the epsilon that all rounds have at a delta.

        Parameters
        ----------
        delta : float in (0, 1), optional
            Default: that of the object.

        Notes
        -----
        Without credit for sampling, all rounds are one Gaussian mechanism, whose epsilon is exact; with it, the best
        order of the Rényi curve.
        """
        delta = self.delta if delta is None else delta
        if self.sampling == "any":
            return gaussian_epsilon(delta, self.effective_sigma, sensitivity=self.sensitivity * math.sqrt(self.steps))
        return self.rdp().epsilon(delta)

    def certificate(
        self, source: NoiseSource | None = None, *, assumptions: tuple[Assumption, ...] = ()
    ) -> Certificate:
        """Return what the noise guarantees.

        Parameters
        ----------
        source : NoiseSource, optional
            Where each client's own noise came from; None before any was drawn.
        assumptions : tuple of Assumption
            What was checked besides.
        """
        return privacy_certificate(
            release=self._release,
            epsilon=self.epsilon(),
            delta=self.delta,
            adjacency="add_remove" if self.sampling == "poisson" else "replace_one",
            mechanism=(
                f"Gaussian noise on clipped gradients in each of {self.steps:,} rounds; "
                + ("Rényi composition of subsampled rounds" if self.sampling_rate else "exact composition")
            ),
            noise=source,
            parameters={
                "clients": self.n_clients,
                "colluding": self.n_clients - self.secretive,
                "sigma_ind": self.sigma_ind,
                "sigma_cor": self.sigma_cor,
                "sigma_server": self.sigma_server,
                "effective_sigma": self.effective_sigma,
                "clip": self.clip,
                "batch_size": self.batch_size,
                "steps": self.steps,
                "unit": self.unit,
            },
            assumptions=(*self._assumptions(), *assumptions),
            does_not_cover=(
                *(() if self.unit == "client" else ("a client's data as a whole: a record is one example",)),
                "what a client lets out besides its messages, such as when it answers, or how many examples it has",
            ),
            reference=PAPER,
        )

    @property
    def _release(self) -> str:
        if self.sigma_server > 0:
            return "all models that the server publishes"
        if self.sigma_cor == 0:
            return "all messages of all clients"
        return f"all messages of all clients and the seeds of {self.n_clients - self.secretive} of them"

    def _assumptions(self) -> tuple[Assumption, ...]:
        unit = "A record is one example of one client"
        if self.unit == "client":
            unit = "A record is all data of one client"
        told = [Assumption(f"{unit}; the client that holds it follows the protocol.")]
        if self.sigma_server > 0:
            told.append(Assumption("The server is honest, and keeps the messages to itself."))
            told.append(Assumption("The server takes the mean of the messages: other rules may move further."))
        if self.sigma_cor > 0:
            told.append(
                Assumption(
                    f"At most {self.n_clients - self.secretive} clients hand their seeds to others, or send noise of "
                    "pairs without noise of their own."
                )
            )
            told.append(
                Assumption(
                    "The keys that the seeds come from were compared in a way that the server does not control, and "
                    "are used for one training only."
                )
            )
        if self.sampling_rate is not None:
            chosen = "each by itself" if self.sampling == "poisson" else "without replacement"
            told.append(
                Assumption(
                    f"Batches are drawn at random, {chosen}, afresh in each round, at a rate of "
                    f"{self.sampling_rate:g} at most, and nobody else learns which examples are in them."
                )
            )
        return tuple(told)


def calibrate_federated_noise(
    epsilon: float,
    delta: float,
    *,
    n_clients: int,
    steps: int,
    batch_size: int = 1,
    byzantine: int = 0,
    colluding: int | None = None,
    clip: float = 1.0,
    trust: Trust = "pairs",
    ratio: float | Literal["best"] = 1.0,
    sampling: Sampling = "any",
    sampling_rate: float | None = None,
    unit: Unit = "example",
    conversion: Literal["exact", "zcdp"] = "exact",
) -> FederatedNoise:
    """Return the least noise that keeps a promise of privacy.

    Parameters
    ----------
    epsilon : float > 0
    delta : float in (0, 1)
    n_clients, steps, batch_size, byzantine, colluding, clip, sampling, sampling_rate, unit
        As for `FederatedNoise`.
    trust : {"pairs", "nobody", "server"}, default "pairs"
        Whom clients trust: pairs share a seed and add noise that cancels between them (secret-based local privacy);
        nobody, so that each client's own noise must suffice (local privacy); or the server, which adds noise to the
        mean (central privacy).
    ratio : float >= 0 or "best", default 1
        sigma_cor over sigma_ind, for ``trust="pairs"``. A larger one leaves less noise on the mean of honest messages,
        and spreads the messages among which attackers hide. "best" minimises the variance on the mean, with all
        Byzantine clients silent, plus byzantine / n_clients times the variance of one message.
    conversion : {"exact", "zcdp"}, default "exact"
        How noise and (epsilon, delta) belong together: exactly; or by the bound epsilon = rho + 2 sqrt(rho log(1 /
        delta)) of much of the literature, which asks for more noise. Only for ``sampling="any"``.

    Returns
    -------
    FederatedNoise

    Raises
    ------
    InputError
        For numbers that make no sense, and where no noise keeps the promise.

    Examples
    --------
    >>> from aboveboard.privacy import calibrate_federated_noise
    >>> common = dict(n_clients=100, byzantine=5, batch_size=60, steps=400)
    >>> [round(calibrate_federated_noise(8.0, 1e-5, trust=trust, **common).averaged_std(), 4)
    ...  for trust in ("server", "pairs", "nobody")]
    [0.004, 0.0145, 0.0411]
    """
    checked_positive(epsilon, "epsilon")
    if checked_delta(delta) == 0:
        raise InputError("delta is 0", expected="a number in (0, 1): Gaussian noise never gives pure privacy")
    for name, value, kinds in (("trust", trust, Trust), ("conversion", conversion, Literal["exact", "zcdp"])):
        if value not in get_args(kinds):
            raise InputError(f"{name} is {value!r}", expected=f"one of {', '.join(map(repr, get_args(kinds)))}")
    if conversion == "zcdp" and sampling != "any":
        raise InputError(f"sampling is {sampling!r} with the conversion 'zcdp'", expected="sampling 'any'")
    if ratio != "best" and not (isinstance(ratio, int | float) and 0 <= ratio <= _LARGEST_RATIO):
        raise InputError(f"ratio is {ratio!r}", expected=f"'best', or a number from 0 to {_LARGEST_RATIO:g}")

    local = FederatedNoise(
        n_clients=n_clients, steps=steps, byzantine=byzantine, colluding=colluding, sigma_ind=1.0, clip=clip,
        batch_size=batch_size, sampling=sampling, sampling_rate=sampling_rate, unit=unit, delta=delta,
    )  # fmt: skip
    m, sensitivity = local.secretive, local.sensitivity
    if trust == "nobody":
        chosen = 0.0
    else:
        chosen = _best_ratio(n_clients, byzantine, m) if ratio == "best" else float(ratio)

    def with_effective(sigma: float) -> FederatedNoise:
        if trust == "server":
            return replace(local, sigma_ind=0.0, sigma_server=sigma / n_clients)
        own = sigma * math.sqrt((1.0 + chosen**2) / (1.0 + m * chosen**2))
        return replace(local, sigma_ind=own, sigma_cor=chosen * own)

    if sampling != "any":
        multiplier = smallest_noise(lambda times: with_effective(times * sensitivity).epsilon(), epsilon)
    elif conversion == "exact":
        multiplier = gaussian_sigma(epsilon, delta, sensitivity=math.sqrt(steps))
    else:
        root = math.sqrt(-math.log(delta))
        multiplier = math.sqrt(steps / 2.0) / (math.sqrt(root**2 + epsilon) - root)
    return with_effective(multiplier * sensitivity)


def _best_ratio(n: int, f: int, m: int) -> float:
    """Return the ratio that leaves least noise, on the mean and for attackers to hide in, at the same privacy."""

    def left(logarithm: float) -> float:
        square = math.exp(2.0 * logarithm)
        own = (1.0 + square) / (1.0 + m * square)
        return own * ((1.0 + f * square) / (n - f) + f / n * (1.0 + m * square))

    found = minimize_scalar(left, bounds=(math.log(_LEAST_RATIO), math.log(_LARGEST_RATIO)), method="bounded")
    return float(np.exp(found.x))
