"""What a client sends and when it refuses to, and what the server takes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_whole
from aboveboard.privacy.cafcor._accountant import FederatedNoise
from aboveboard.privacy.cafcor._aggregators import AGGREGATORS, LARGEST
from aboveboard.privacy.cafcor._seeds import SharedNoise, source_of

__all__ = ["Aggregate", "CafCorClient", "CafCorServer", "ClientState", "Rejected", "Update", "clipped_mean"]

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-5
"""By how much a mean of clipped gradients in single precision may be longer than the largest norm."""


class Rejected(InputError):
    """An update that the server does not take; the round goes on without it."""


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """What a client sends in one round.

    Parameters
    ----------
    client : int
    round_number : int
    vector : ndarray of shape (d,)
        Momentum of its noisy clipped gradients.
    """

    client: int
    round_number: int
    vector: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ClientState:
    """What a client must remember from one round to the next.

    Parameters
    ----------
    last_round : int
        The last one that it answered, 0 for none.
    answered : int
        How many it has answered.
    momentum : ndarray of shape (d,), or None before the first
    """

    last_round: int = 0
    answered: int = 0
    momentum: Floats | None = None


def clipped_mean(gradients: ArrayLike, clip: float, batch_size: int | None = None) -> Floats:
    """Return the mean of gradients of which each is shortened to a largest norm.

    Parameters
    ----------
    gradients : array of shape (b, d)
        One row per example.
    clip : float
        Largest Euclidean norm.
    batch_size : int, optional
        What the sum is divided by, for batches whose size is random. Default: b.
    """
    rows = np.asarray(gradients, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"gradients of shape {rows.shape}", expected="a matrix of finite numbers, one row per example")
    shares = clip / np.maximum(np.linalg.norm(rows, axis=1), clip)
    return np.asarray(shares @ rows / (len(rows) if batch_size is None else batch_size))


class CafCorClient:
    """An honest client: it hides its gradients in its own noise and in noise that it shares with the others.

    Parameters
    ----------
    client : int
        Its number.
    shared : SharedNoise
        `PairwiseNoise` with the seeds that it shares with the others.
    noise : FederatedNoise
        How much noise, for how many clients and rounds.
    momentum : float in [0, 1) or callable, default 0.9
        Share of the last message in the next; or a function of the round's number, from 1.
    random_state : int, optional
        Seed of its own noise. None, the default, takes it from the operating system.
    state : ClientState, optional
        To go on where `state` was.

    Attributes
    ----------
    client, noise, random_state
        As given.
    state : ClientState
        After the last answer.

    Raises
    ------
    InputError
        For a noise that another party adds, or seeds for fewer clients than the noise was made for.

    Notes
    -----
    A client answers each round once, in ascending order, `noise.steps` times at most, and only where at least
    `noise.n_clients` clients take part: a server that asks again with another model, or leaves others out, would learn
    more than the noise was made for. Cost: O(n d) a round.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import CafCorClient, PairwiseNoise, calibrate_federated_noise, simulated_seeds
    >>> noise = calibrate_federated_noise(4.0, 1e-5, n_clients=5, byzantine=1, batch_size=20, steps=100)
    >>> seeds = simulated_seeds(5, random_state=0)
    >>> client = CafCorClient(2, PairwiseNoise(2, seeds[2], noise.sigma_cor), noise)
    >>> gradients = np.random.default_rng(0).normal(size=(20, 3))
    >>> client.update(gradients, round_number=1).vector.shape
    (3,)
    """

    def __init__(
        self,
        client: int,
        shared: SharedNoise,
        noise: FederatedNoise,
        *,
        momentum: float | Callable[[int], float] = 0.9,
        random_state: int | None = None,
        state: ClientState | None = None,
    ) -> None:
        self.client = checked_whole(client, "client", 0)
        if len(shared.others) + 1 < noise.n_clients:
            raise InputError(
                f"client {client} shares noise with {len(shared.others)} others",
                expected=f"{noise.n_clients - 1} or more, which the noise was made for",
            )
        if not callable(momentum) and not 0 <= momentum < 1:
            raise InputError(f"momentum is {momentum!r}", expected="a number in [0, 1), or a function of the round")
        self.noise, self.random_state = noise, random_state
        self._shared, self._momentum = shared, momentum
        self.state = ClientState() if state is None else state

    def update(self, gradients: ArrayLike, *, round_number: int, participants: Collection[int] | None = None) -> Update:
        """Return what to send, from the gradients of a batch.

        Parameters
        ----------
        gradients : array of shape (b, d)
            One row per example, not yet clipped. Except for ``sampling="poisson"``, b is `noise.batch_size`.
        round_number : int
        participants : collection of int, optional
            The clients of this round, with this one. Default: all.

        Raises
        ------
        InputError
            When the round was answered already, all rounds are used up, or too few clients take part.
        """
        rows = np.asarray(gradients, dtype=np.float64)
        if self.noise.sampling != "poisson" and len(rows) != self.noise.batch_size:
            raise InputError(f"{len(rows)} gradients", expected=f"{self.noise.batch_size}, the batch size of the noise")
        mean = clipped_mean(rows, self.noise.clip, self.noise.batch_size)
        return self.update_from_mean(mean, round_number=round_number, participants=participants)

    def update_from_mean(
        self, mean: Floats, *, round_number: int, participants: Collection[int] | None = None
    ) -> Update:
        """Return what to send, from the mean of gradients that were clipped one by one.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Their sum over `noise.batch_size`. That it is no longer than `noise.clip` is checked; that each example was
            clipped by itself cannot be.
        round_number, participants
            As for `update`.
        """
        present = self._checked_round(round_number, participants)
        mean = np.asarray(mean, dtype=np.float64)
        if mean.ndim != 1 or not np.isfinite(mean).all():
            raise InputError(f"a mean of shape {mean.shape}", expected="a vector of finite numbers")
        if self.noise.sampling != "poisson" and np.linalg.norm(mean) > self.noise.clip * (1.0 + _ROUNDING):
            raise InputError(
                f"the mean has the norm {np.linalg.norm(mean):.4g}",
                expected=f"at most {self.noise.clip:g}: the gradient of each example is clipped",
            )
        noisy = mean + self._own_noise(round_number, mean.size) + self._shared.draw(round_number, mean.size, present)
        beta = self._momentum(round_number) if callable(self._momentum) else self._momentum
        before = np.zeros(mean.size) if self.state.momentum is None else self.state.momentum
        momentum = beta * before + (1.0 - beta) * noisy
        self.state = ClientState(round_number, self.state.answered + 1, momentum)
        return Update(self.client, round_number, momentum)

    def _checked_round(self, round_number: int, participants: Collection[int] | None) -> Collection[int]:
        everybody = {self.client, *self._shared.others}
        present = everybody if participants is None else set(participants)
        if checked_whole(round_number, "round_number") <= self.state.last_round:
            raise InputError(
                f"round {round_number} comes after round {self.state.last_round}",
                expected="a later round",
                remedy="The same noise on another gradient would show the difference of the two: start a new round",
            )
        if self.state.answered >= self.noise.steps:
            raise InputError(
                f"all {self.noise.steps} rounds are used up",
                remedy="Calibrate the noise for more steps, and begin anew",
            )
        if self.client not in present or not present <= everybody:
            raise InputError(
                "the participants of the round are not among the clients that share noise, or this client is not one",
                expected="numbers of clients, with this one",
            )
        if len(present) < self.noise.n_clients:
            raise InputError(
                f"{len(present)} clients take part in round {round_number}",
                expected=f"{self.noise.n_clients} or more, which the noise was made for",
                remedy="Calibrate the noise for the fewest that may take part",
            )
        return present

    def _own_noise(self, round_number: int, size: int) -> Floats:
        if self.noise.sigma_ind == 0.0:  # a trusted server adds it
            return np.zeros(size)
        source = source_of(self.random_state, "own noise", self.client, round_number)
        return source.normal(size, self.noise.sigma_ind)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """What the server made of one round.

    Parameters
    ----------
    vector : ndarray of shape (d,)
    round_number : int
    present, absent : tuple of int
        The clients whose updates counted, and the other participants.
    """

    vector: Floats
    round_number: int
    present: tuple[int, ...]
    absent: tuple[int, ...]


class CafCorServer:
    """The server: it takes one sound update of each client a round, and aggregates them in spite of liars.

    Parameters
    ----------
    clients : int or collection of int
        Their number, or their numbers.
    dimension : int
        Length of an update.
    byzantine : int
        How many clients may send anything.
    aggregator : {"caf", "mean", "trimmed_mean", "median", "geometric_median", "multi_krum"} or callable
        A callable takes updates, one row per client, and `byzantine`, and returns a vector. Default ``"caf"``.

    Notes
    -----
    A client that is lost is like one that lies by silence: the noise that it shares with the others does not cancel,
    which raises the noise on the mean (`FederatedNoise.averaged_std`) and costs no privacy. Nobody is asked to reveal
    the noise of pairs, since a server that lies about who was lost could then take it off.

    Who sent an update is for the transport to say; the server checks that one client sends one.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import CafCorServer, Update
    >>> server = CafCorServer(4, dimension=2, byzantine=1)
    >>> round_number = server.open_round()
    >>> for client in range(3):
    ...     server.receive(Update(client, round_number, np.array([1.0, 2.0])))
    >>> aggregate = server.close_round()
    >>> aggregate.vector, aggregate.absent
    (array([1., 2.]), (3,))
    """

    def __init__(
        self,
        clients: int | Collection[int],
        *,
        dimension: int,
        byzantine: int,
        aggregator: str | Callable[[Floats, int], Any] = "caf",
    ) -> None:
        numbers = range(checked_whole(clients, "clients")) if isinstance(clients, int) else clients
        self.clients = tuple(sorted(numbers))
        self.dimension = checked_whole(dimension, "dimension")
        self.byzantine = checked_whole(byzantine, "byzantine", 0)
        if 2 * byzantine >= len(self.clients):
            raise InputError(f"{byzantine} of {len(self.clients)} clients may lie", expected="fewer than half")
        if not callable(aggregator) and aggregator not in AGGREGATORS:
            raise InputError(
                f"aggregator is {aggregator!r}", expected=f"a function, or one of {', '.join(map(repr, AGGREGATORS))}"
            )
        self._aggregate = aggregator if callable(aggregator) else AGGREGATORS[aggregator]
        self._round = 0
        self._participants: tuple[int, ...] | None = None
        self._received: dict[int, Floats] = {}

    def open_round(self, participants: Collection[int] | None = None) -> int:
        """Begin a round, and return its number, which was never used before.

        Parameters
        ----------
        participants : collection of int, optional
            Default: all clients.
        """
        present = self.clients if participants is None else tuple(sorted(set(participants)))
        if not set(present) <= set(self.clients) or 2 * self.byzantine >= len(present):
            raise InputError(
                f"{len(present)} participants",
                expected=f"clients of this server, more than {2 * self.byzantine} of them",
            )
        self._round += 1
        self._participants, self._received = present, {}
        return self._round

    def receive(self, update: Update) -> None:
        """Take one update.

        Raises
        ------
        Rejected
            When no round is open, it belongs to another one, its client takes no part or has sent one already, or it is
            no vector of the right length of finite numbers up to 1e100 in size.
        """
        if self._participants is None:
            raise Rejected("no round is open", expected="open_round() before updates")
        if update.round_number != self._round:
            raise Rejected(f"the update belongs to round {update.round_number!r}", expected=f"round {self._round}")
        if update.client not in self._participants:
            raise Rejected(f"client {update.client!r} takes no part in round {self._round}", expected="a participant")
        if update.client in self._received:
            raise Rejected(f"client {update.client} has sent an update for round {self._round}", expected="one")
        try:
            vector = np.asarray(update.vector)
        except ValueError as error:
            raise Rejected(f"client {update.client} sent no array", expected="a vector") from error
        if vector.shape != (self.dimension,) or not np.issubdtype(vector.dtype, np.floating):
            raise Rejected(
                f"client {update.client} sent an array of shape {vector.shape} and type {vector.dtype}",
                expected=f"{self.dimension} floating-point numbers",
            )
        vector = vector.astype(np.float64)
        if not (np.abs(vector) <= LARGEST).all():
            raise Rejected(f"client {update.client} sent numbers that are missing or huge", expected="finite numbers")
        self._received[update.client] = vector

    def close_round(self) -> Aggregate:
        """Aggregate what was received.

        Raises
        ------
        InputError
            When so few updates came that liars may be half of them; the round is over all the same.
        """
        if self._participants is None:
            raise InputError("no round is open", expected="open_round() before")
        participants, received = self._participants, self._received
        self._participants, self._received = None, {}
        if len(received) <= 2 * self.byzantine:
            raise InputError(
                f"{len(received)} sound updates of {len(participants)} came in round {self._round}",
                expected=f"more than {2 * self.byzantine}, since {self.byzantine} may be lies",
                remedy="Go on with the next round",
            )
        present = tuple(sorted(received))
        vector = self._aggregate(np.stack([received[client] for client in present]), self.byzantine)
        absent = tuple(client for client in participants if client not in received)
        return Aggregate(np.asarray(vector, dtype=np.float64), self._round, present, absent)
