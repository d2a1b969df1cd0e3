"""All clients and the server in one process: to try out privacy, robustness and learning rates before deployment."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import Assumption, Certificate, InputError
from aboveboard.privacy._noise import noise_source
from aboveboard.privacy.cafcor._accountant import FederatedNoise
from aboveboard.privacy.cafcor._objectives import objective_of
from aboveboard.privacy.cafcor._protocol import Aggregate, CafCorClient, CafCorServer, Rejected, Update
from aboveboard.privacy.cafcor._seeds import JointNoise, PairwiseNoise, SharedNoise, simulated_seeds, source_of

__all__ = ["Attack", "CafCorTrainer", "Onlooker", "draw_batch", "step"]

Floats = NDArray[np.float64]


class Onlooker(NamedTuple):
    """What the attackers of one round know.

    Attributes
    ----------
    round_number : int
    honest : ndarray of shape (n - f, d)
        The updates of the honest clients, as they are sent.
    own : ndarray of shape (f, d)
        What the attackers would send if they followed the protocol on their own data, but without noise.
    generator : numpy.random.Generator
    """

    round_number: int
    honest: Floats
    own: Floats
    generator: np.random.Generator


Attack = Callable[[Onlooker], ArrayLike]
"""Returns what the attackers send, an array of shape (f, d)."""


class CafCorTrainer:
    """Train a model on the data of many clients, some of whom lie, without trusting the server or each other.

    Parameters
    ----------
    model : SoftmaxRegression, torch.nn.Module or Objective
    noise : FederatedNoise
        From `calibrate_federated_noise`; its `batch_size`, `clip`, `steps` and `byzantine` rule the training.
    learning_rate : float or callable, default 0.5
        Or a function of the round's number, from 1.
    momentum : float or callable, default 0.9
    weight_decay : float, default 1e-4
        Pulls the parameters towards 0; it costs no privacy.
    aggregator : str or callable, default "caf"
        As for `CafCorServer`.
    attack : callable, optional
        From an `Onlooker` to what the last `noise.byzantine` clients send. Default: they are honest too.
    pair_noise : {"seeds", "joint"}, default "seeds"
        How the noise of pairs is made: from a seed for each pair, as between real clients; or for all at once, from the
        same distribution, which takes O(n d) instead of O(n^2 d) a round.
    lost : callable, optional
        From a round's number to the clients whose updates are lost in it.
    random_state : int, optional
        None takes all noise from the operating system.

    Attributes
    ----------
    parameters_ : ndarray of shape (d,)
    model_ : object
        `model` itself for a `SoftmaxRegression`; a trained copy of a torch module.
    history_ : pandas.DataFrame
        One row per round: how many updates counted, were lost or rejected, and the norm of the aggregate.
    certificate_ : Certificate
        Of the noise; it does not hold where a trusted server takes another rule than the mean.

    Raises
    ------
    InputError
        For options that make no sense, and clients whose data do not fit.

    Notes
    -----
    In each round, client i sends ``m = beta m + (1 - beta) (mean of clipped gradients + own noise + noise of pairs)``,
    the server takes the aggregate R of all m, and ``theta = (1 - learning_rate weight_decay) theta - learning_rate R``.
    Everything is in one process, so this is a simulation of privacy between clients: what is released, the messages and
    the model, has the guarantee. Cost of a round: the gradients of all batches, the noise, and O(n^2 d).

    References
    ----------
    Y. Allouah, R. Guerraoui, J. Stephan, "Towards Trustworthy Federated Learning with Untrusted Participants",
    ICML 2025, arXiv:2505.01874.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from aboveboard.privacy import CafCorTrainer, SoftmaxRegression, calibrate_federated_noise
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> clients = [(X[start::11], y[start::11]) for start in range(10)]  # ten clients; the rest is for testing
    >>> noise = calibrate_federated_noise(8.0, 1e-3, n_clients=10, byzantine=1, batch_size=60, steps=50, clip=2.0)
    >>> trainer = CafCorTrainer(SoftmaxRegression(64, 10), noise, random_state=0).fit(clients)
    >>> bool((trainer.predict(X[10::11]) == y[10::11]).mean() > 0.7)
    True
    """

    def __init__(
        self,
        model: Any,
        noise: FederatedNoise,
        *,
        learning_rate: float | Callable[[int], float] = 0.5,
        momentum: float | Callable[[int], float] = 0.9,
        weight_decay: float = 1e-4,
        aggregator: str | Callable[[Floats, int], Any] = "caf",
        attack: Attack | None = None,
        pair_noise: Literal["seeds", "joint"] = "seeds",
        lost: Callable[[int], Sequence[int]] | None = None,
        random_state: int | None = None,
    ) -> None:
        if not callable(learning_rate) and not learning_rate > 0:
            raise InputError(f"learning_rate is {learning_rate!r}", expected="a number above 0, or a function")
        if not weight_decay >= 0:
            raise InputError(f"weight_decay is {weight_decay!r}", expected="a number of at least 0")
        if pair_noise not in ("seeds", "joint"):
            raise InputError(f"pair_noise is {pair_noise!r}", expected="'seeds' or 'joint'")
        if attack is not None and noise.byzantine == 0:
            raise InputError("there is an attack and no attacker", expected="noise for one Byzantine client or more")
        if random_state is not None and not (isinstance(random_state, int | np.integer) and random_state >= 0):
            raise InputError(f"random_state is {random_state!r}", expected="a whole number of at least 0, or None")
        if noise.unit != "example":
            raise InputError(
                "the noise protects whole clients",
                expected="unit 'example', since batches of examples are sent",
                remedy="Use CafCorClientMod for clients that train by themselves and send their whole update",
            )
        self.model, self.noise = model, noise
        self.learning_rate, self.momentum, self.weight_decay = learning_rate, momentum, weight_decay
        self.aggregator, self.attack, self.pair_noise, self.lost = aggregator, attack, pair_noise, lost
        self.random_state = random_state

    def fit(self, clients: Sequence[tuple[Any, Any]]) -> "CafCorTrainer":
        """Train for `noise.steps` rounds.

        Parameters
        ----------
        clients : sequence of (X, y)
            The examples of each client; as many clients as the noise was made for, or more.

        Returns
        -------
        CafCorTrainer
            Itself.
        """
        objective = objective_of(self.model)
        data = self._checked(objective, clients)
        members = [self._client(number, shared) for number, shared in enumerate(self._shared(len(data)))]
        liars = _Liars(self.attack, len(data), self.noise.byzantine, self.momentum, self.random_state)
        server = CafCorServer(
            len(data), dimension=objective.dimension, byzantine=self.noise.byzantine, aggregator=self.aggregator
        )
        parameters, history = objective.initial(), []
        for _ in range(self.noise.steps):
            round_number = server.open_round()
            means = [self._mean(objective, parameters, data[i], i, round_number) for i in range(len(data))]
            honest = [
                member.update_from_mean(means[member.client], round_number=round_number)
                for member in members[: liars.first]
            ]
            updates = honest + liars.updates(round_number, honest, means)
            aggregate, rejected = self._gather(server, round_number, updates)
            if aggregate is not None:
                rate = self.learning_rate(round_number) if callable(self.learning_rate) else self.learning_rate
                released = aggregate.vector + self._server_noise(round_number, objective.dimension)
                parameters = step(parameters, released, rate, self.weight_decay)
            history.append(_facts(round_number, aggregate, rejected))
        self._objective = objective
        self.parameters_ = parameters
        self.model_ = objective.module(parameters) if hasattr(objective, "module") else self.model
        self.history_ = pd.DataFrame(history).set_index("round")
        self.certificate_ = self._certificate()
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return one score per example and class."""
        return np.asarray(self._objective.decision(self.parameters_, np.asarray(X)), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the class with the highest score of each example."""
        return np.asarray(self.decision_function(X).argmax(axis=1), dtype=np.int64)

    # --- steps of fit -------------------------------------------------------------------------------------------------

    def _checked(self, objective: Any, clients: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        if len(clients) < self.noise.n_clients:
            raise InputError(
                f"{len(clients)} clients", expected=f"{self.noise.n_clients} or more, which the noise was made for"
            )
        data = [objective.check(X, y) for X, y in clients]
        needed = self.noise.batch_size
        if self.noise.sampling_rate is not None:
            needed = int(np.ceil(self.noise.batch_size / self.noise.sampling_rate - 1e-9))
        small = [number for number, (_, y) in enumerate(data) if len(y) < needed]
        if small:
            raise InputError(
                f"{len(small)} clients have fewer than {needed} examples: {', '.join(map(str, small[:5]))}",
                expected="as many examples as batch size and sampling rate ask for",
                remedy="Leave them out, or calibrate for a smaller batch or a larger rate",
            )
        return data

    def _shared(self, n: int) -> list[SharedNoise]:
        if self.pair_noise == "joint":
            cache: dict[Any, Floats] = {}
            return [JointNoise(i, n, self.noise.sigma_cor, cache, self.random_state) for i in range(n)]
        seeds = simulated_seeds(n, self.random_state)
        return [PairwiseNoise(i, seeds[i], self.noise.sigma_cor) for i in range(n)]

    def _client(self, number: int, shared: SharedNoise) -> CafCorClient:
        return CafCorClient(number, shared, self.noise, momentum=self.momentum, random_state=self.random_state)

    def _mean(
        self, objective: Any, parameters: Floats, data: tuple[Any, Any], client: int, round_number: int
    ) -> Floats:
        X, y = data
        rows = draw_batch(len(y), self.noise, client, round_number, self.random_state)
        total: Floats = objective.clipped_sum(parameters, X[rows], y[rows], self.noise.clip)
        return total / self.noise.batch_size

    def _gather(
        self, server: CafCorServer, round_number: int, updates: list[Update]
    ) -> tuple[Aggregate | None, dict[str, int]]:
        lost = set() if self.lost is None else set(self.lost(round_number))
        counts = {"lost": 0, "rejected": 0}
        for update in updates:
            if update.client in lost:
                counts["lost"] += 1
                continue
            try:
                server.receive(update)
            except Rejected:
                counts["rejected"] += 1
        try:
            return server.close_round(), counts
        except InputError:
            return None, counts

    def _server_noise(self, round_number: int, size: int) -> Floats:
        return source_of(self.random_state, "server", round_number).normal(size, self.noise.sigma_server)

    def _certificate(self) -> Certificate:
        assumptions: tuple[Assumption, ...] = ()
        if self.noise.sigma_server > 0:
            assumptions = (
                Assumption(
                    "The rule moves no further than the mean when one message changes.",
                    basis="checked",
                    test="The rule is the mean.",
                    passed=self.aggregator == "mean",
                ),
            )
        return self.noise.certificate(noise_source(self.random_state), assumptions=assumptions)


class _Liars:
    """The last clients, who follow the protocol without noise on their own data, and then send what the attack says."""

    def __init__(
        self,
        attack: Attack | None,
        n: int,
        byzantine: int,
        momentum: float | Callable[[int], float],
        random_state: int | None,
    ) -> None:
        self.first = n if attack is None else n - byzantine
        self._attack, self._momentum, self._random_state = attack, momentum, random_state
        self._own: Floats | None = None

    def updates(self, round_number: int, honest: list[Update], means: list[Floats]) -> list[Update]:
        if self._attack is None:
            return []
        beta = self._momentum(round_number) if callable(self._momentum) else self._momentum
        fresh = np.stack(means[self.first :])
        self._own = (1.0 - beta) * fresh if self._own is None else beta * self._own + (1.0 - beta) * fresh
        onlooker = Onlooker(
            round_number,
            np.stack([update.vector for update in honest]),
            self._own,
            source_of(self._random_state, "attack", round_number).generator(),
        )
        sent = np.asarray(self._attack(onlooker), dtype=np.float64)
        return [Update(self.first + place, round_number, vector) for place, vector in enumerate(sent)]


def step(parameters: Floats, direction: Floats, rate: float, weight_decay: float) -> Floats:
    """Return the parameters after one round."""
    return np.asarray((1.0 - rate * weight_decay) * parameters - rate * direction)


def draw_batch(
    n_examples: int, noise: FederatedNoise, client: int, round_number: int, random_state: int | None
) -> NDArray[np.int64]:
    """Return which examples of a client make its batch of one round."""
    generator = source_of(random_state, "batch", client, round_number).generator()
    if noise.sampling == "poisson":
        return np.flatnonzero(generator.random(n_examples) < noise.batch_size / n_examples)
    return np.asarray(generator.permutation(n_examples)[: noise.batch_size])


def _facts(round_number: int, aggregate: Aggregate | None, counts: dict[str, int]) -> dict[str, Any]:
    norm = float("nan") if aggregate is None else float(np.linalg.norm(aggregate.vector))
    counted = 0 if aggregate is None else len(aggregate.present)
    return {"round": round_number, "counted": counted, **counts, "norm": norm}
